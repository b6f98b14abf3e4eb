//! `Operations`: the content of `sdk/operations.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::schema::Schema;

#[derive(Debug, Deserialize)]
pub struct Operations {
    pub version: String,
    pub service_version: String,
    pub operations: Vec<Operation>,
    pub schemas: BTreeMap<String, Schema>,
    pub webhook_events: Vec<WebhookEvent>,
    /// By name: a code that has two statuses has two names.
    pub error_codes: BTreeMap<String, ErrorCode>,
}

#[derive(Debug, Deserialize)]
pub struct Operation {
    pub id: String,
    /// Path of resources and the method, for example `emails.attempts.list`.
    pub name: String,
    /// Words of the CLI, for example `emails attempts list`.
    pub command: String,
    pub http_method: String,
    pub path: String,
    pub summary: String,
    #[serde(default)]
    pub description: Option<String>,
    pub path_parameters: Vec<Parameter>,
    pub query_parameters: Vec<Parameter>,
    pub headers: Vec<Parameter>,
    pub body: Option<Body>,
    pub response: Response,
    pub streams: bool,
    #[serde(default)]
    pub scope: Value,
    #[serde(default)]
    pub domain_scoped: bool,
    pub errors: Vec<String>,
    /// Field of the response with the items of a page.
    pub pages: Option<String>,
    pub idempotent: bool,
    pub retry: bool,
    pub risk: String,
    /// Fields of the body that each call sends, for a method that calls another method's operation.
    #[serde(default)]
    pub fixed: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct Parameter {
    pub name: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub schema: Schema,
    /// Whether values of an array are repeated parameters; else one parameter has them separated by commas.
    #[serde(default = "repeated")]
    pub explode: bool,
}

/// OpenAPI's default.
fn repeated() -> bool {
    true
}

#[derive(Debug, Deserialize)]
pub struct Body {
    #[serde(default)]
    pub required: Option<bool>,
    pub media_types: Vec<String>,
    pub schema: Option<Schema>,
}

#[derive(Debug, Deserialize)]
pub struct Response {
    pub media_type: String,
    pub schema: Option<Schema>,
}

#[derive(Debug, Deserialize)]
pub struct WebhookEvent {
    #[serde(rename = "type")]
    pub kind: String,
    pub schema: Schema,
    #[serde(default)]
    pub example: Value,
}

#[derive(Debug, Deserialize)]
pub struct ErrorCode {
    /// `always`, `safe` or `never`.
    pub retry: String,
    pub code: String,
    pub status: u16,
    pub description: String,
}
