//! Tools as the protocol knows them: definitions, calls and results.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

/// A tool as `tools/list` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// A JSON schema of type `object`.
    pub input_schema: Value,
    /// A JSON schema of type `object`, for `structuredContent`.
    pub output_schema: Option<Value>,
    pub annotations: Option<ToolAnnotations>,
}

/// Hints for clients, which decide by them whether to ask the person first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolAnnotations {
    pub read_only: bool,
    /// It may change or delete what is there.
    pub destructive: bool,
    /// A repeated call has no further effect.
    pub idempotent: bool,
    /// It has effects outside of the server, for example on people who receive mail.
    pub open_world: bool,
}

impl ToolAnnotations {
    fn to_json(self) -> Value {
        // The other two hints mean nothing for tools that only read.
        match self.read_only {
            true => json!({"readOnlyHint": true, "openWorldHint": self.open_world}),
            false => json!({
                "readOnlyHint": false, "destructiveHint": self.destructive, "idempotentHint": self.idempotent,
                "openWorldHint": self.open_world,
            }),
        }
    }
}

impl ToolDefinition {
    /// The entry of `tools/list`.
    pub fn to_json(&self) -> Value {
        let mut tool = json!({
            "name": self.name, "description": self.description, "inputSchema": self.input_schema,
        });
        if let Some(schema) = &self.output_schema {
            tool["outputSchema"] = schema.clone();
        }
        if let Some(annotations) = self.annotations {
            tool["annotations"] = annotations.to_json();
        }
        tool
    }
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    pub name: String,
    pub arguments: Map<String, Value>,
    pub client_capabilities: Map<String, Value>,
    /// Answers of the client to an [`InputRequired`]; empty for the first call.
    pub input_responses: Map<String, Value>,
    /// `request_state` of the [`InputRequired`]. It comes from the client: trust nothing in it.
    pub request_state: Option<String>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutcome {
    Complete(ToolResult),
    /// The client must ask its person first, and repeat the call with the answers (multi-round-trip requests, since
    /// 2026-07-28).
    InputRequired(InputRequired),
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// Content blocks.
    pub content: Vec<Value>,
    pub structured: Option<Value>,
    /// The call was refused or failed; the content says why and what to do.
    pub is_error: bool,
}

impl ToolResult {
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![json!({"type": "text", "text": text.into()})], ..Self::default() }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    #[must_use]
    pub fn with_structured(self, value: Value) -> Self {
        Self { structured: Some(value), ..self }
    }

    pub(crate) fn into_fields(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("content".into(), Value::Array(self.content));
        if let Some(structured) = self.structured {
            fields.insert("structuredContent".into(), structured);
        }
        if self.is_error {
            fields.insert("isError".into(), Value::Bool(true));
        }
        fields
    }
}

/// Questions for the person at the client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputRequired {
    /// Requests such as `elicitation/create`, by a key that the answers repeat.
    pub requests: Map<String, Value>,
    /// The client sends it back unchanged.
    pub request_state: Option<String>,
}

impl InputRequired {
    pub(crate) fn into_fields(self) -> Map<String, Value> {
        let mut fields = Map::new();
        if !self.requests.is_empty() {
            fields.insert("inputRequests".into(), Value::Object(self.requests));
        }
        if let Some(state) = self.request_state {
            fields.insert("requestState".into(), Value::String(state));
        }
        fields
    }
}

/// Why a call has no result that the model could see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    UnknownTool,
    /// The credentials are missing, unknown, revoked or expired.
    Unauthorized,
    /// The client lacks a capability, for example `elicitation`.
    MissingCapability(&'static str),
    /// The answers or the state of a repeated call are wrong.
    InvalidParams(String),
}

/// The tools of one caller.
pub trait ToolSet: Send + Sync {
    /// Facts about all tools together, for the model.
    fn instructions(&self) -> &str;

    /// The tools that the caller's credentials allow, in a fixed order.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Value>, ToolError>>;

    /// Checks the caller's credentials.
    fn check_access(&self) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Calls a tool.
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutcome, ToolError>>;
}
