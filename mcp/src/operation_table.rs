//! The operations of the API, read from `sdk/operations.json`, which is compiled in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The committed table. The API's tests keep it equal to the operations.
pub static OPERATIONS_JSON: &str = include_str!("../../sdk/operations.json");

static TABLE: LazyLock<OperationTable> = LazyLock::new(OperationTable::load);

/// All operations that accept an API key, with the schemas that they refer to.
#[derive(Debug, Clone, Deserialize)]
pub struct OperationTable {
    /// The value of the header `Service-Version`.
    pub service_version: String,
    pub operations: Vec<Operation>,
    pub schemas: BTreeMap<String, Value>,
    pub webhook_events: Vec<WebhookEvent>,
    /// By name; two names may have one code.
    pub error_codes: Map<String, Value>,
    pub dns_providers: Vec<DnsProvider>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct WebhookEvent {
    #[serde(rename = "type")]
    pub kind: String,
    /// When it is sent, as a sentence.
    pub description: String,
    /// True if an endpoint gets it only if its `events` name it.
    pub explicit: bool,
    pub schema: Value,
    pub example: Value,
}

/// A DNS provider at which records can be published.
#[derive(Debug, Clone, Deserialize)]
pub struct DnsProvider {
    /// The name in requests.
    pub name: String,
    pub title: String,
    pub credentials: Vec<CredentialField>,
}

/// A field of a provider's credentials.
#[derive(Debug, Clone, Deserialize)]
pub struct CredentialField {
    pub name: String,
    pub label: String,
    pub required: bool,
    /// False if the value may be shown.
    pub secret: bool,
}

/// The least scope of a key that may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    Sending,
    Full,
}

/// The most serious effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Read,
    Write,
    Send,
    Delete,
    /// The response contains a secret.
    Secret,
    Money,
    /// An effect that this program does not know.
    #[serde(other)]
    Unknown,
}

impl Risk {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
            Self::Delete => "delete",
            Self::Secret => "secret",
            Self::Money => "money",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct Operation {
    pub id: String,
    /// The method of the SDKs, for example `webhooks.deliveries.list`.
    pub name: String,
    /// The words of the command, for example `webhooks deliveries list`.
    pub command: String,
    pub http_method: String,
    /// With `{name}` for path parameters.
    pub path: String,
    /// The noun, for example `received_emails`.
    pub tag: String,
    pub summary: String,
    pub description: Option<String>,
    pub path_parameters: Vec<Parameter>,
    pub query_parameters: Vec<Parameter>,
    pub headers: Vec<Parameter>,
    pub body: Option<RequestBody>,
    pub response: SuccessResponse,
    /// Whether it also answers server-sent events.
    pub streams: bool,
    pub scope: KeyScope,
    /// Whether a key that is restricted to a domain is accepted.
    pub domain_scoped: bool,
    /// Names of errors.
    pub errors: Vec<String>,
    /// The path of nouns: `emails`, `emails.events`.
    pub resource: String,
    /// The field of a list's entries, if the operation has pages.
    pub pages: Option<String>,
    /// True if it takes an `Idempotency-Key`.
    pub idempotent: bool,
    /// True if a repeated call does no harm.
    pub retry: bool,
    pub risk: Risk,
    /// Fields of the body that each call sends: the operation is one action of another one.
    #[serde(default)]
    pub fixed: Map<String, Value>,
}

/// A parameter of the path, the query or the header.
#[derive(Debug, Clone, Deserialize)]
pub struct Parameter {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub schema: Value,
    /// False if several values are joined by commas (OpenAPI 3.1 4.8.12.2).
    #[serde(default)]
    pub explode: Option<bool>,
}

/// The request body of an operation.
#[derive(Debug, Clone, Deserialize)]
pub struct RequestBody {
    pub media_types: Vec<String>,
    pub schema: Option<Value>,
}

/// The success response of an operation.
#[derive(Debug, Clone, Deserialize)]
pub struct SuccessResponse {
    pub status: u16,
    pub media_type: String,
    pub schema: Option<Value>,
}

impl RequestBody {
    pub fn schema(&self) -> &Value {
        self.schema.as_ref().unwrap_or(NO_SCHEMA)
    }
}

impl SuccessResponse {
    pub fn schema(&self) -> &Value {
        self.schema.as_ref().unwrap_or(NO_SCHEMA)
    }
}

const NO_SCHEMA: &Value = &Value::Null;

/// Returns whether a field with this description can only be given by a session of the dashboard, not with a key.
pub fn is_session_field(description: &str) -> bool {
    description.starts_with("Dashboard sessions only")
}

impl OperationTable {
    /// The table that is compiled in.
    pub fn get() -> &'static Self {
        &TABLE
    }

    /// Reads the table.
    ///
    /// # Panics
    /// Never: a test reads the file that is compiled in.
    pub fn load() -> Self {
        serde_json::from_str(OPERATIONS_JSON).unwrap_or_else(|error| panic!("sdk/operations.json: {error}"))
    }

    /// The name of the schema that a reference names.
    pub fn referred(schema: &Value) -> Option<&str> {
        schema.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")
    }

    /// Follows a reference; any other schema is returned as it is.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        Self::referred(schema).and_then(|name| self.schemas.get(name)).unwrap_or(schema)
    }
}

impl Operation {
    /// The resource at the top: `emails` of `emails.events`.
    pub fn top_resource(&self) -> &str {
        self.resource.split('.').next().unwrap_or(&self.resource)
    }

    /// Returns whether a call changes nothing.
    pub fn only_reads(&self) -> bool {
        self.risk == Risk::Read
    }

    /// Returns whether its success response is JSON.
    pub fn answers_json(&self) -> bool {
        self.response.media_type.starts_with("application/json")
    }

    /// Returns whether it takes a header field.
    pub fn takes_header(&self, name: &str) -> bool {
        self.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
    }

    /// The fields of the body that a caller sets; empty without a body, and if all of it is fixed.
    pub fn body_fields<'a>(&'a self, table: &'a OperationTable) -> Option<&'a Map<String, Value>> {
        let schema = self.body.as_ref()?.schema.as_ref()?;
        if !self.fixed.is_empty() {
            return None;
        }
        table.resolve(schema).get("properties")?.as_object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let table = OperationTable::load();
        assert!(table.operations.iter().all(|operation| operation.risk != Risk::Unknown));
        for operation in &table.operations {
            // Path, query and body share the arguments of a tool.
            let parameters = operation.path_parameters.iter().chain(&operation.query_parameters);
            let mut names: Vec<&str> = parameters.map(|parameter| parameter.name.as_str()).collect();
            names.extend(operation.body_fields(&table).into_iter().flatten().map(|(name, _)| name.as_str()));
            names.extend(["idempotency_key", "if_match"]);
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", operation.id);
            let has_body = operation.body.as_ref().is_some_and(|body| body.schema.is_some());
            assert!(
                !has_body || !operation.fixed.is_empty() || operation.body_fields(&table).is_some(),
                "{}: the body is no object with fields",
                operation.id
            );
        }
    }
}
