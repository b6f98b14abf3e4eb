//! `_meta` of a request: the version and the capabilities of the client, on each request since 2026-07-28.

use serde_json::{Map, Value, json};

use crate::json_rpc::{RpcError, error_code};
use crate::protocol_version::ProtocolVersion;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` of results names the server.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The protocol in which a request is answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestMeta {
    /// True since 2026-07-28.
    pub is_stateless: bool,
    pub client_capabilities: Map<String, Value>,
}

impl RequestMeta {
    /// The version that `_meta` names, if it names one.
    pub(crate) fn version(params: &Map<String, Value>) -> Option<&Value> {
        params.get("_meta")?.get(VERSION)
    }

    /// Reads `_meta` of a request since 2026-07-28.
    ///
    /// # Errors
    /// A field is missing or wrong, or the version is not supported.
    pub(crate) fn read(params: &Map<String, Value>) -> Result<Self, RpcError> {
        let meta = params.get("_meta").and_then(Value::as_object);
        let field = |name: &str| meta.and_then(|meta| meta.get(name));
        let missing: Vec<&str> = [VERSION, CAPABILITIES].into_iter().filter(|name| field(name).is_none()).collect();
        if !missing.is_empty() {
            return Err(RpcError::invalid_params(format!("the request's `_meta` lacks {}", missing.join(", "))));
        }
        let Some(Value::String(version)) = field(VERSION) else {
            return Err(RpcError::invalid_params(format!("`_meta.{VERSION}` must be a string")));
        };
        let Some(Value::Object(client_capabilities)) = field(CAPABILITIES) else {
            return Err(RpcError::invalid_params(format!("`_meta.{CAPABILITIES}` must be an object")));
        };
        check_stateless(version)?;
        Ok(Self { is_stateless: true, client_capabilities: client_capabilities.clone() })
    }
}

/// Checks the version of a request that stands alone.
///
/// # Errors
/// The version is not supported; the error names those that are.
pub(crate) fn check_stateless(version: &str) -> Result<(), RpcError> {
    match ProtocolVersion::parse(version) {
        Some(known) if known.is_stateless() => Ok(()),
        _ => Err(unsupported(version)),
    }
}

fn unsupported(requested: &str) -> RpcError {
    let supported = ProtocolVersion::ALL.map(ProtocolVersion::word);
    let requested: String = requested.chars().take(100).collect();
    RpcError::new(error_code::UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version")
        .with_data(json!({"supported": supported, "requested": requested}))
}
