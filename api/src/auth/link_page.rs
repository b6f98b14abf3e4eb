//! Pages without scripts for browsers that sign in by a link or a code, and the redirect after it.

use bytes::Bytes;
use http::header::{ACCEPT, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::response::{HTML_MEDIA_TYPE, IntoResponse, Response};
use crate::schema::Schemas;

/// Returns whether the client accepts HTML: a browser.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"))
}

/// A page of constant HTML.
#[derive(Debug)]
pub struct LoginPage(pub(super) &'static str);

/// Shown for a link or challenge that was used or has expired.
pub(super) const EXPIRED_PAGE: &str = include_str!("expired.html");

/// The page loads nothing, posts only to this host, and does not leak the token in a referrer. `no-referrer` would not
/// work: browsers then send `Origin: null` with the form (Fetch, "append a request `Origin` header"), which is
/// rejected.
const PAGE_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        http::header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
        ),
    ),
    (http::header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (http::header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

impl IntoResponse for LoginPage {
    const MEDIA_TYPE: &'static str = HTML_MEDIA_TYPE;

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "An HTML page"})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from_static(self.0.as_bytes()))
    }

    fn into_response(self) -> Result<Response, Problem> {
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        let headers = PAGE_HEADERS.to_vec();
        Ok(Response { status: StatusCode::OK, media_type, headers, body: self.into_body()?, stream: None })
    }
}

/// Turns a response into a redirect that keeps its cookies.
pub(super) fn redirect(response: Response, path: &str) -> Result<Response, Problem> {
    let location = HeaderValue::try_from(path).map_err(Problem::internal)?;
    let mut headers = response.headers;
    headers.extend([(LOCATION, location), (http::header::REFERRER_POLICY, HeaderValue::from_static("same-origin"))]);
    Ok(Response { status: StatusCode::SEE_OTHER, headers, body: Bytes::new(), ..response })
}
