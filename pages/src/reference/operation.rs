//! The operations of the API, read from the files of `sdk/`, which are compiled in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

const OPERATIONS: &str = include_str!("../../../sdk/operations.json");
const SNIPPETS: &str = include_str!("../../../sdk/snippets.json");
const ANSWERS: &str = include_str!("../../../sdk/answers.json");
const WORDS: &str = include_str!("../../../sdk/generate/words.json");

/// All that the reference describes.
#[derive(Debug, Deserialize)]
pub struct ApiTable {
    /// The value of the header `Service-Version`.
    pub service_version: String,
    pub operations: Vec<ApiOperation>,
    pub schemas: Map<String, Value>,
    pub webhook_events: Vec<WebhookEvent>,
    /// By name; two names may have one code.
    pub error_codes: Map<String, Value>,
    /// Examples by operation and language, with placeholders (`{{email_id}}`).
    #[serde(skip)]
    pub snippets: BTreeMap<String, BTreeMap<String, String>>,
    /// Recorded answers by operation.
    #[serde(skip)]
    pub answers: BTreeMap<String, Value>,
    /// A sentence for each resource.
    #[serde(skip)]
    pub resource_texts: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct ApiOperation {
    pub id: String,
    /// `emails.send`.
    pub name: String,
    /// `emails send`.
    pub command: String,
    pub http_method: String,
    pub path: String,
    pub summary: String,
    #[serde(default)]
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
    /// `emails`, `emails.events`.
    pub resource: String,
    /// The field of an answer with the entries of a page.
    pub pages: Option<String>,
    /// Whether it takes `Idempotency-Key`.
    pub idempotent: bool,
    /// Whether it may be repeated when the answer was lost.
    pub retry: bool,
}

/// The least scope of a key that may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    Sending,
    Full,
}

/// A parameter of the path, of the query or of the header section.
#[derive(Debug, Deserialize)]
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

#[derive(Debug, Deserialize)]
pub struct RequestBody {
    pub media_types: Vec<String>,
    pub schema: Value,
}

/// The response to a request that succeeded.
#[derive(Debug, Deserialize)]
pub struct SuccessResponse {
    pub status: u16,
    pub media_type: String,
    #[serde(default)]
    pub schema: Value,
}

#[derive(Debug, Deserialize)]
pub struct WebhookEvent {
    #[serde(rename = "type")]
    pub kind: String,
    pub schema: Value,
    pub example: Value,
}

#[derive(Debug, Deserialize)]
pub struct ApiErrorCode {
    pub code: String,
    pub status: u16,
    pub description: String,
}

impl ApiOperation {
    /// The resource at the top: `emails` of `emails.events`.
    pub fn top_resource(&self) -> &str {
        self.resource.split('.').next().unwrap_or(&self.resource)
    }

    /// The anchor of the operation.
    pub fn anchor(&self) -> String {
        self.id.replace('_', "-")
    }
}

impl ApiTable {
    /// The table that is compiled in.
    ///
    /// # Panics
    /// Never: a test reads the files.
    pub fn load() -> &'static Self {
        static TABLE: LazyLock<ApiTable> = LazyLock::new(|| {
            ApiTable::parse().unwrap_or_else(|error| panic!("a file of sdk/ has another form: {error}"))
        });
        &TABLE
    }

    fn parse() -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Words {
            resources: BTreeMap<String, String>,
        }
        let mut table: Self = serde_json::from_str(OPERATIONS)?;
        table.snippets = serde_json::from_str(SNIPPETS)?;
        table.answers = serde_json::from_str(ANSWERS)?;
        table.resource_texts = serde_json::from_str::<Words>(WORDS)?.resources;
        Ok(table)
    }

    pub fn operation(&self, id: &str) -> Option<&ApiOperation> {
        self.operations.iter().find(|operation| operation.id == id)
    }

    /// The errors by name, in the order of their status.
    pub fn errors(&self) -> Vec<(&str, ApiErrorCode)> {
        let parsed = self.error_codes.iter().filter_map(|(name, code)| {
            let code = ApiErrorCode::deserialize(code).ok()?;
            Some((name.as_str(), code))
        });
        let mut errors: Vec<_> = parsed.collect();
        errors.sort_by_key(|(_, code)| code.status);
        errors
    }

    /// The schema that a reference names.
    pub fn referenced<'t>(&'t self, schema: &Value) -> Option<(&'t str, &'t Value)> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")?;
        self.schemas.get_key_value(name).map(|(name, schema)| (name.as_str(), schema))
    }
}

/// Replaces `{{email_id}}` by `EMAIL_ID`. `{{name}}`, a variable of templates, stays.
pub fn name_placeholders(code: &str) -> String {
    let (mut named, mut rest) = (String::new(), code);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        named.push_str(before);
        let is_placeholder = name != "name" && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if is_placeholder {
            named.push_str(&name.to_uppercase());
            rest = tail;
        } else {
            named.push_str("{{");
            rest = after;
        }
    }
    named + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_read() {
        let table = ApiTable::load();
        assert_eq!(table.errors().len(), table.error_codes.len());
        assert!(table.operations.iter().all(|operation| table.snippets.contains_key(&operation.id)));
        for recorded in table.answers.keys() {
            assert!(table.operations.iter().any(|operation| operation.id == *recorded), "{recorded}");
        }
    }

    #[test]
    fn placeholders_are_named() {
        assert_eq!(name_placeholders("get {{email_id}} {{}"), "get EMAIL_ID {{}");
        assert_eq!(name_placeholders("'Hi {{name}} {{tomorrow}}' => [{{\n}}]"), "'Hi {{name}} TOMORROW' => [{{\n}}]");
    }
}
