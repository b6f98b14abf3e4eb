//! JSON-RPC 2.0 messages, one a time: batches left the protocol with the revision 2025-06-18.

use serde_json::{Map, Value, json};

/// Codes of errors (JSON-RPC 2.0 5.1, and those of MCP).
pub mod error_code {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A header of the HTTP request contradicts the message.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The tool needs a capability that the client does not have.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
}

/// Longest text of an id.
const ID_BYTES_MAX: usize = 256;

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Request(RpcRequest),
    /// It gets no answer.
    Notification {
        method: String,
    },
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// A string or an integer.
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(error_code::INVALID_PARAMS, message)
    }

    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The response; `id` is null if the request could not be read (JSON-RPC 2.0 5).
    pub fn response(&self, id: Option<&Value>) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}

/// A success response.
pub fn success(id: &Value, result: Map<String, Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A message that is none.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedMessage {
    /// The id, where it could be read.
    pub id: Option<Value>,
    pub error: RpcError,
}

impl MalformedMessage {
    fn new(id: Option<Value>, error: RpcError) -> Box<Self> {
        Box::new(Self { id, error })
    }

    /// The response.
    pub fn response(&self) -> Value {
        self.error.response(self.id.as_ref())
    }
}

/// Reads a message. JSON that is nested deeper than 127 levels is refused.
///
/// # Errors
/// It is no JSON, or no request or notification.
pub fn parse(text: &[u8]) -> Result<Message, Box<MalformedMessage>> {
    let value: Value = serde_json::from_slice(text).map_err(|_| {
        MalformedMessage::new(None, RpcError::new(error_code::PARSE_ERROR, "The message is not valid JSON"))
    })?;
    let invalid =
        |id: Option<Value>, text: &str| MalformedMessage::new(id, RpcError::new(error_code::INVALID_REQUEST, text));
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => return Err(invalid(None, "Batches are not supported: send one message at a time")),
        _ => return Err(invalid(None, "The message is not a JSON object")),
    };
    let id = fields.remove("id");
    let known_id = id.clone().filter(is_id);
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(known_id, "`jsonrpc` must be \"2.0\""));
    }
    if id.is_some() && known_id.is_none() {
        return Err(invalid(None, "`id` must be a string or an integer"));
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return Err(invalid(known_id, "`method` is missing: this server waits for no responses"));
    };
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let error = RpcError::invalid_params("`params` must be an object");
            return Err(MalformedMessage::new(known_id, error));
        }
    };
    Ok(match known_id {
        Some(id) => Message::Request(RpcRequest { id, method, params }),
        None => Message::Notification { method },
    })
}

fn is_id(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= ID_BYTES_MAX,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_notifications_are_read() {
        let request = parse(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).unwrap();
        assert_eq!(request, Message::Request(RpcRequest { id: json!(7), method: "ping".into(), params: Map::new() }));
        let notification = parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#).unwrap();
        assert_eq!(notification, Message::Notification { method: "notifications/initialized".into() });
    }

    #[test]
    fn other_messages_are_refused() {
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}1{}}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        for (text, code) in [
            ("", error_code::PARSE_ERROR),
            ("{", error_code::PARSE_ERROR),
            (deep.as_str(), error_code::PARSE_ERROR),
            ("[]", error_code::INVALID_REQUEST),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, error_code::INVALID_REQUEST),
            ("null", error_code::INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, error_code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, error_code::INVALID_PARAMS),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().error.code, code, "{text}");
        }
    }
}
