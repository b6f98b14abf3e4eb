//! `GET /stx.js`: the browser script, built from `web/stx.src.js`. The bytes are the same for every site. Usage is
//! documented in `docs/STX.md`.

use std::sync::LazyLock;

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use httpd::response::{ExtraResponse, IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use super::request::header_text;
use crate::prelude::*;

const SCRIPT: &str = include_str!("../../../../web/stx.js");
/// Cacheable for an hour; for one more day while it is revalidated.
const SCRIPT_CACHE_CONTROL: &str = "public, max-age=3600, stale-while-revalidate=86400";
/// `If-None-Match` is truncated to this length; a match is expected within it.
const IF_NONE_MATCH_CHARS_MAX: usize = 1_000;

/// `ETag` of the script: a prefix of its SHA-256 (RFC 9110 8.8.3).
static SCRIPT_ETAG: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::digest(SCRIPT.as_bytes());
    let digits = digest.iter().take(8).flat_map(|byte| [byte >> 4, byte & 15]);
    let hex: String = digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
    format!("\"{hex}\"")
});

/// A request for the script.
#[derive(Debug)]
pub struct GetReferralScript {
    etag_matches: bool,
}

impl FromRequest for GetReferralScript {
    fn parameters() -> Vec<Value> {
        vec![schema::header_parameter("If-None-Match", "The `ETag` of the cached script")]
    }

    fn read(call: &Request) -> Result<Self> {
        let if_none_match = header_text(&call.headers, &IF_NONE_MATCH, IF_NONE_MATCH_CHARS_MAX);
        let is_current = |tag: &str| tag.trim().trim_start_matches("W/") == *SCRIPT_ETAG || tag.trim() == "*";
        Ok(Self { etag_matches: if_none_match.split(',').any(is_current) })
    }
}

/// The script, or 304 if the client has it.
#[derive(Debug)]
pub struct ReferralScript {
    not_modified: bool,
}

impl IntoResponse for ReferralScript {
    const MEDIA_TYPE: &'static str = "text/javascript; charset=utf-8";
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[ExtraResponse::empty(304, "Not modified")];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The script"})
    }

    fn into_response(self) -> Result<Response> {
        let tag = HeaderValue::from_str(&SCRIPT_ETAG).map_err(Problem::internal)?;
        let headers = vec![
            (ETAG, tag),
            (CACHE_CONTROL, HeaderValue::from_static(SCRIPT_CACHE_CONTROL)),
            // Any site may load it, also with CORS or under a cross-origin embedder policy (COEP).
            (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
            (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
        ];
        let (status, body) = match self.not_modified {
            true => (StatusCode::NOT_MODIFIED, Bytes::new()),
            false => (StatusCode::OK, Bytes::from_static(SCRIPT.as_bytes())),
        };
        Ok(Response::new(status, Self::MEDIA_TYPE, headers, body))
    }
}

/// `GET /stx.js`.
pub async fn get(_: State, request: GetReferralScript) -> Result<ReferralScript> {
    Ok(ReferralScript { not_modified: request.etag_matches })
}
