//! The transport over HTTP: one POST, one JSON answer.
//!
//! ```text
//! head ─► method ─► Host, Origin ─► Authorization ─► Accept, Content-Type ─► body ─► era
//!   2026-07-28: _meta, Mcp-Method and Mcp-Name must agree ─┐
//!   before:     MCP-Protocol-Version, if sent, is known   ─┴─► server::answer ─► status and JSON
//! ```
//!
//! A page of another site cannot use the server through a browser (DNS rebinding): it is answered only at its own host
//! name and at loopback addresses, and an `Origin` must be one of these too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use http::header::{WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::Value;

use crate::json_rpc::{self, Message, RpcError, RpcRequest, error_code};
use crate::protocol_version::ProtocolVersion;
use crate::request_meta::{self, RequestMeta};
use crate::server::{ServerResponse, answer};
use crate::tool::ToolSet;

/// Largest message: the largest request of the API is 40 MB, but a model writes no such arguments.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Settings of the endpoint.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// The public base URL of the server; its host may be named by `Host` and `Origin`.
    pub base_url: String,
    /// The URL of the protected resource metadata (RFC 9728), for clients that sign in; `None` without an authorization
    /// server.
    pub resource_metadata: Option<String>,
}

/// A request whose head was accepted.
#[derive(Debug)]
pub struct AcceptedHead<'a> {
    headers: &'a HeaderMap,
    options: &'a HttpOptions,
}

/// Checks everything but the body.
///
/// # Errors
/// The response that refuses the request.
pub fn accept_head<'a>(head: &'a Parts, options: &'a HttpOptions) -> Result<AcceptedHead<'a>, Box<Response<Bytes>>> {
    check_site(head, options)?;
    if head.method != Method::POST {
        let mut response =
            refused(StatusCode::METHOD_NOT_ALLOWED, "Send messages by POST: this server has no sessions");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Err(Box::new(response));
    }
    if !head.headers.contains_key(AUTHORIZATION) {
        return Err(Box::new(unauthorized(options, false)));
    }
    if !accepts_json(&head.headers) {
        return Err(Box::new(refused(
            StatusCode::NOT_ACCEPTABLE,
            "The response is application/json, which `Accept` does not list",
        )));
    }
    if !is_json(&head.headers) {
        return Err(Box::new(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The message must be application/json")));
    }
    Ok(AcceptedHead { headers: &head.headers, options })
}

impl AcceptedHead<'_> {
    /// Answers the message of the body.
    pub async fn answer(self, body: &[u8], tools: &dyn ToolSet) -> Response<Bytes> {
        if body.len() > MESSAGE_BYTES_MAX {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "The message is larger than 4 MB");
        }
        let request = match json_rpc::parse(body) {
            Ok(Message::Request(request)) => request,
            Ok(Message::Notification { .. }) => return self.accept_notification(),
            Err(malformed) => return json(StatusCode::BAD_REQUEST, &malformed.response()),
        };
        let meta = match self.read_meta(&request) {
            Ok(meta) => meta,
            Err(error) => return error_response(StatusCode::BAD_REQUEST, Some(&request.id), &error),
        };
        match answer(&request, &meta, tools).await {
            ServerResponse::Result(value) => json(StatusCode::OK, &value),
            ServerResponse::Unauthorized => unauthorized(self.options, true),
            ServerResponse::Error(error) => {
                let status = if meta.is_stateless { stateless_status(error.code) } else { StatusCode::OK };
                error_response(status, Some(&request.id), &error)
            }
        }
    }

    /// Without sessions a notification has nothing to act on; clients before 2026-07-28 send some all the same.
    fn accept_notification(&self) -> Response<Bytes> {
        match self.text(&PROTOCOL_VERSION) {
            Ok(Some(version)) if ProtocolVersion::parse(version).is_none() => {
                let error = request_meta::check_stateless(version).err();
                let error = error.unwrap_or_else(|| RpcError::new(error_code::INVALID_REQUEST, "Unknown version"));
                error_response(StatusCode::BAD_REQUEST, None, &error)
            }
            Ok(_) => {
                let mut response = Response::new(Bytes::new());
                *response.status_mut() = StatusCode::ACCEPTED;
                response
            }
            Err(error) => error_response(StatusCode::BAD_REQUEST, None, &error),
        }
    }

    /// Finds the era of a request, and checks that its headers agree with it.
    fn read_meta(&self, request: &RpcRequest) -> Result<RequestMeta, RpcError> {
        let header_version = self.text(&PROTOCOL_VERSION)?;
        let header_era = header_version.map(ProtocolVersion::parse);
        let named = RequestMeta::version(&request.params);
        let is_before = match header_era {
            _ if request.method == "initialize" => named.is_none(),
            Some(Some(version)) if !version.is_stateless() => named.is_none(),
            None => named.is_none() && request.method != "server/discover",
            _ => false,
        };
        if is_before {
            return Ok(RequestMeta::default());
        }
        let mismatch = |text: String| RpcError::new(error_code::HEADER_MISMATCH, text);
        // A request that lacks `_meta` altogether is told so first.
        let read = RequestMeta::read(&request.params);
        let version = named.and_then(Value::as_str);
        if version.is_some() && header_version != version {
            return Err(mismatch("The header MCP-Protocol-Version must be the version of `_meta`".into()));
        }
        if version.is_some() && self.text(&MCP_METHOD)? != Some(request.method.as_str()) {
            return Err(mismatch("The header Mcp-Method must be the method of the message".into()));
        }
        let name = request.params.get("name").and_then(Value::as_str);
        if version.is_some() && request.method == "tools/call" && name.is_some() {
            let header = self.text(&MCP_NAME)?.and_then(decode_value);
            if header.as_deref() != name {
                return Err(mismatch("The header Mcp-Name must be the name of the tool".into()));
            }
        }
        read
    }

    /// A header that must not occur twice: the first and the last reader would disagree.
    fn text(&self, name: &HeaderName) -> Result<Option<&str>, RpcError> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next();
        if values.next().is_some() {
            return Err(RpcError::new(error_code::HEADER_MISMATCH, format!("The header {name} occurs twice")));
        }
        first
            .map(|value| value.to_str().map(str::trim))
            .transpose()
            .map_err(|_| RpcError::new(error_code::HEADER_MISMATCH, format!("The header {name} is not ASCII text")))
    }
}

/// A header value that may be `=?base64?…?=`, for texts that no header can carry.
fn decode_value(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn stateless_status(code: i64) -> StatusCode {
    match code {
        error_code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        error_code::INTERNAL_ERROR => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Refuses other hosts and origins than the server's own and loopback.
fn check_site(head: &Parts, options: &HttpOptions) -> Result<(), Box<Response<Bytes>>> {
    let own = authority(&options.base_url);
    let host = match head.headers.get(HOST) {
        Some(value) => value.to_str().ok().map(str::to_ascii_lowercase),
        // HTTP/2 has it in the target.
        None => head.uri.authority().map(|authority| authority.as_str().to_ascii_lowercase()),
    };
    // A proxy may listen on another port.
    let is_own_host = |name: &str| own.as_deref().map(without_port) == Some(without_port(name));
    if !host.as_deref().is_some_and(|host| is_loopback(host) || is_own_host(host)) {
        let text = "This is not the server's host name: connect to its base URL";
        return Err(Box::new(refused(StatusCode::FORBIDDEN, text)));
    }
    let Some(origin) = head.headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().ok().and_then(authority);
    match origin.as_deref().is_some_and(|origin| is_loopback(origin) || own.as_deref() == Some(origin)) {
        true => Ok(()),
        false => Err(Box::new(refused(StatusCode::FORBIDDEN, "Pages from other sites cannot use this server"))),
    }
}

/// Host and port of an `http` or `https` URL, without a default port.
fn authority(url: &str) -> Option<String> {
    let url = url.to_ascii_lowercase();
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    Some(without_default_port(authority).to_owned())
}

fn without_default_port(authority: &str) -> &str {
    authority.strip_suffix(":443").or_else(|| authority.strip_suffix(":80")).unwrap_or(authority)
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// No name that an attacker's DNS could point here.
fn is_loopback(authority: &str) -> bool {
    let host = without_port(authority);
    matches!(host, "localhost" | "[::1]") || host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// True unless `Accept` leaves JSON out.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    values.peek().is_none()
        || values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
            let essence = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            matches!(essence.as_str(), "application/json" | "application/*" | "*/*")
        })
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// 401 with the challenge of RFC 6750 3 and RFC 9728 5.1.
pub fn unauthorized(options: &HttpOptions, is_invalid: bool) -> Response<Bytes> {
    let text = match is_invalid {
        true => "The API key or access token is unknown, revoked or expired",
        false => "Authenticate with `Authorization: Bearer` and an API key or an access token",
    };
    let mut response = refused(StatusCode::UNAUTHORIZED, text);
    let mut challenge = vec![];
    if is_invalid {
        challenge.push("error=\"invalid_token\"".to_owned());
    }
    challenge.extend(options.resource_metadata.as_ref().map(|url| format!("resource_metadata=\"{url}\"")));
    let challenge = format!("Bearer {}", challenge.join(", "));
    let challenge = HeaderValue::try_from(challenge.trim()).unwrap_or(HeaderValue::from_static("Bearer"));
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn error_response(status: StatusCode, id: Option<&Value>, error: &RpcError) -> Response<Bytes> {
    json(status, &error.response(id))
}

fn json(status: StatusCode, value: &Value) -> Response<Bytes> {
    with_type(status, "application/json", value.to_string().into())
}

/// A refusal before there is a message to answer, in plain text.
pub fn refused(status: StatusCode, text: &str) -> Response<Bytes> {
    with_type(status, "text/plain; charset=utf-8", format!("{text}\n").into())
}

fn with_type(status: StatusCode, media_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests;
