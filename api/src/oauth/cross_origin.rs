//! Preflight requests for the OAuth endpoints (Fetch, "CORS-preflight fetch"): programs in browsers call them, with a
//! JSON body and header fields of their own. The endpoints read no cookie, so every origin may.

use http::StatusCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    HeaderValue,
};
use httpd::response::Response;

use super::{DEVICE_PATH, REGISTER_PATH, REVOKE_PATH, TOKEN_PATH};

/// The response to `OPTIONS`; `None` for other paths.
pub fn preflight(path: &str) -> Option<Response> {
    let is_endpoint = [TOKEN_PATH, REVOKE_PATH, REGISTER_PATH, DEVICE_PATH].contains(&path);
    let is_metadata = path.starts_with("/.well-known/oauth-");
    (is_endpoint || is_metadata).then(|| {
        Response::new(
            StatusCode::NO_CONTENT,
            "text/plain",
            vec![
                (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
                (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST")),
                (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, mcp-protocol-version")),
                (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200")),
            ],
            bytes::Bytes::new(),
        )
    })
}
