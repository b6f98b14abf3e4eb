//! Answers requests of the protocol. Both transports call it.
//!
//! ```text
//! before 2026-07-28   initialize · notifications/initialized · ping · tools/list · tools/call
//! since 2026-07-28    server/discover · tools/list · tools/call, each with `_meta`
//! ```

use serde_json::{Map, Value, json};

use crate::json_rpc::{RpcError, RpcRequest, error_code, success};
use crate::protocol_version::ProtocolVersion;
use crate::request_meta::{RequestMeta, SERVER_INFO};
use crate::tool::{ToolCall, ToolError, ToolOutcome, ToolSet};

/// Time in which clients may cache lists, in milliseconds.
const LIST_TTL_MS: u64 = 300_000;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerResponse {
    Result(Value),
    Error(RpcError),
    /// The caller must authenticate.
    Unauthorized,
}

/// Answers a request.
pub async fn answer(request: &RpcRequest, meta: &RequestMeta, tools: &dyn ToolSet) -> ServerResponse {
    let result = match (request.method.as_str(), meta.is_stateless) {
        ("initialize", false) => initialize(&request.params, tools).await,
        ("ping", false) => Ok(Map::new()),
        ("server/discover", true) => discover(tools).await,
        ("tools/list", _) => list_tools(&request.params, meta, tools).await,
        ("tools/call", _) => call_tool(&request.params, meta, tools).await,
        _ => Err(RpcError::new(error_code::METHOD_NOT_FOUND, "Method not found").into()),
    };
    match result {
        Ok(mut fields) => {
            if meta.is_stateless {
                fields.entry("resultType").or_insert_with(|| "complete".into());
                fields.insert("_meta".into(), json!({SERVER_INFO: server_info()}));
            }
            ServerResponse::Result(success(&request.id, fields))
        }
        Err(Rejection::Unauthorized) => ServerResponse::Unauthorized,
        Err(Rejection::Rpc(error)) => ServerResponse::Error(error),
    }
}

enum Rejection {
    Unauthorized,
    Rpc(RpcError),
}

impl From<RpcError> for Rejection {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl From<ToolError> for Rejection {
    fn from(error: ToolError) -> Self {
        Self::Rpc(match error {
            ToolError::Unauthorized => return Self::Unauthorized,
            ToolError::UnknownTool => RpcError::invalid_params("There is no such tool"),
            ToolError::InvalidParams(text) => RpcError::invalid_params(text),
            ToolError::MissingCapability(name) => RpcError::new(
                error_code::MISSING_CLIENT_CAPABILITY,
                format!("The client lacks the capability `{name}`, which this tool requires"),
            )
            .with_data(json!({"requiredCapabilities": {name: {}}})),
        })
    }
}

fn server_info() -> Value {
    json!({"name": "postrider", "title": "Postrider", "version": env!("CARGO_PKG_VERSION")})
}

async fn initialize(params: &Map<String, Value>, tools: &dyn ToolSet) -> Result<Map<String, Value>, Rejection> {
    let Some(offer) = params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(RpcError::invalid_params("`protocolVersion` must be a string").into());
    };
    tools.check_access().await?;
    let mut fields = Map::new();
    fields.insert("protocolVersion".into(), ProtocolVersion::negotiate(offer).word().into());
    fields.insert("capabilities".into(), json!({"tools": {}}));
    fields.insert("serverInfo".into(), server_info());
    fields.insert("instructions".into(), tools.instructions().into());
    Ok(fields)
}

async fn discover(tools: &dyn ToolSet) -> Result<Map<String, Value>, Rejection> {
    tools.check_access().await?;
    let versions = ProtocolVersion::ALL.map(ProtocolVersion::word);
    let mut fields = Map::new();
    fields.insert("supportedVersions".into(), json!(versions));
    fields.insert("capabilities".into(), json!({"tools": {}}));
    fields.insert("instructions".into(), tools.instructions().into());
    cacheable(&mut fields);
    Ok(fields)
}

/// The list of tools depends on what the caller's credentials allow, so no shared cache may keep it.
fn cacheable(fields: &mut Map<String, Value>) {
    fields.insert("ttlMs".into(), LIST_TTL_MS.into());
    fields.insert("cacheScope".into(), "private".into());
}

async fn list_tools(
    params: &Map<String, Value>,
    meta: &RequestMeta,
    tools: &dyn ToolSet,
) -> Result<Map<String, Value>, Rejection> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(RpcError::invalid_params("Invalid cursor: the list has only one page").into());
    }
    let mut fields = Map::new();
    fields.insert("tools".into(), Value::Array(tools.list().await?));
    if meta.is_stateless {
        cacheable(&mut fields);
    }
    Ok(fields)
}

async fn call_tool(
    params: &Map<String, Value>,
    meta: &RequestMeta,
    tools: &dyn ToolSet,
) -> Result<Map<String, Value>, Rejection> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(RpcError::invalid_params("`name` must be a string").into());
    };
    let object = |field: &str| match params.get(field) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(_) => Err(RpcError::invalid_params(format!("`{field}` must be an object"))),
    };
    let call = ToolCall {
        name: name.to_owned(),
        arguments: object("arguments")?,
        client_capabilities: meta.client_capabilities.clone(),
        input_responses: object("inputResponses")?,
        request_state: params.get("requestState").and_then(Value::as_str).map(str::to_owned),
    };
    match tools.call(call).await? {
        ToolOutcome::Complete(result) => Ok(result.into_fields()),
        ToolOutcome::InputRequired(required) if meta.is_stateless => {
            let mut fields = required.into_fields();
            fields.insert("resultType".into(), "input_required".into());
            Ok(fields)
        }
        ToolOutcome::InputRequired(_) => Err(RpcError::new(
            error_code::INVALID_REQUEST,
            "The tool must ask the person, which requires a client that supports revision 2026-07-28",
        )
        .into()),
    }
}
