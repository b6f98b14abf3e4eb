//! The operations of the API, read from `sdk/operations.json`, which is compiled in.
//!
//! Only the names are read at the start; an operation is read when its command runs, so that the start is fast.

use std::collections::BTreeMap;

use mcp::operation_table::OPERATIONS_JSON;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

const SNIPPETS: &str = include_str!("../../sdk/snippets.json");

/// All operations.
#[derive(Debug, Deserialize)]
pub struct OperationTable<'a> {
    pub service_version: &'a str,
    #[serde(borrow)]
    operations: Vec<&'a RawValue>,
    #[serde(borrow)]
    schemas: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    webhook_events: Vec<&'a RawValue>,
}

/// The name of an operation.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OperationHead<'a> {
    /// The words of the command, for example `webhooks deliveries list`.
    pub command: &'a str,
    #[serde(borrow)]
    summary: &'a RawValue,
}

impl OperationHead<'_> {
    pub fn summary(&self) -> String {
        serde_json::from_str(self.summary.get()).unwrap_or_default()
    }
}

/// The most serious effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Read,
    Write,
    Send,
    Delete,
    Secret,
    Money,
    /// An effect that this program does not know.
    #[serde(other)]
    Unknown,
}

/// A parameter of the path or of the query.
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
    pub schema: Option<Value>,
}

/// The success response of an operation.
#[derive(Debug, Clone, Deserialize)]
pub struct SuccessResponse {
    pub media_type: String,
}

/// An operation, as far as the command line needs it.
#[derive(Debug, Clone, Deserialize)]
pub struct Operation {
    pub id: String,
    pub name: String,
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
    /// The field of a list's entries, if the operation has pages.
    pub pages: Option<String>,
    pub idempotent: bool,
    /// True if the operation may be repeated when its response was lost.
    pub retry: bool,
    pub risk: Risk,
    /// Fields of the body that each call sends; the command has no flags for the body then.
    #[serde(default)]
    pub fixed: Map<String, Value>,
}

impl Operation {
    /// Returns whether it takes `If-Match`.
    pub fn takes_if_match(&self) -> bool {
        self.headers.iter().any(|header| header.name == "If-Match")
    }

    /// An example command. Ids are named in capitals, for example `EMAIL_ID`.
    pub fn example(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Snippets {
            cli: String,
        }
        let all: BTreeMap<&str, &RawValue> = serde_json::from_str(SNIPPETS).ok()?;
        let snippets: Snippets = serde_json::from_str(all.get(self.id.as_str())?.get()).ok()?;
        Some(name_placeholders(&snippets.cli))
    }

    /// Returns whether a call may change something.
    pub fn writes(&self) -> bool {
        self.risk != Risk::Read
    }
}

/// Replaces `{{email_id}}` by `EMAIL_ID`. Variables of templates, which are within quotes, stay.
fn name_placeholders(command: &str) -> String {
    let (mut named, mut rest) = (String::new(), command);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        named.push_str(before);
        let is_quoted = named.matches('\'').count() % 2 == 1;
        if is_quoted {
            named.push_str(&format!("{{{{{name}}}}}"))
        } else {
            named.push_str(&name.to_uppercase())
        }
        rest = tail;
    }
    named + rest
}

impl OperationTable<'static> {
    /// Reads the table.
    ///
    /// # Panics
    /// Never: a test reads the file that is compiled in.
    pub fn load() -> Self {
        serde_json::from_str(OPERATIONS_JSON).unwrap_or_else(|error| panic!("sdk/operations.json: {error}"))
    }
}

impl OperationTable<'_> {
    /// The names of all operations, in the order of the table.
    pub fn heads(&self) -> impl Iterator<Item = OperationHead<'_>> {
        self.operations.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// The operation of a command.
    pub fn find(&self, command: &str) -> Option<Operation> {
        let position = self.heads().position(|head| head.command == command)?;
        self.operations.get(position).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// All operations.
    pub fn all(&self) -> impl Iterator<Item = Operation> {
        self.operations.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// Resolves references to the schemas of the table, one level deep.
    pub fn resolve(&self, schema: &Value) -> Value {
        let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/components/schemas/"));
        let component = name.and_then(|name| self.schemas.get(name));
        component.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_else(|| schema.clone())
    }

    /// Names and example payloads of the webhook events.
    pub fn webhook_events(&self) -> impl Iterator<Item = WebhookEvent> {
        self.webhook_events.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok())
    }
}

/// A webhook event.
#[derive(Debug, Clone, Deserialize)]
pub struct WebhookEvent {
    #[serde(rename = "type")]
    pub kind: String,
    pub example: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_templates_stay_in_examples() {
        let command = "postrider templates update {{template_id}} --html 'Hi {{name}}, {{name}}' --id={{id}}";
        let expected = "postrider templates update TEMPLATE_ID --html 'Hi {{name}}, {{name}}' --id=ID";
        assert_eq!(name_placeholders(command), expected);
    }

    #[test]
    fn every_operation_is_read() {
        let table = OperationTable::load();
        assert_eq!(table.heads().count(), table.operations.len());
        assert_eq!(table.all().count(), table.operations.len());
        assert!(table.all().all(|operation| operation.risk != Risk::Unknown));
        assert!(table.all().all(|operation| operation.example().is_some_and(|one| one.starts_with("postrider "))));
        assert_eq!(table.find("emails get").unwrap().example().as_deref(), Some("postrider emails get EMAIL_ID"));
        assert_eq!(table.find("emails send").unwrap().path, "/emails");
        assert!(table.webhook_events().count() >= 34);
    }
}
