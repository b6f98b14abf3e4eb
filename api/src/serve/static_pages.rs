//! Pages that share the API's port: the web inbox of `postrider dev`.
//!
//! ```text
//! request ─► Overlay::has? ─► Overlay::ready ─► Overlay::page (on a blocking thread) ─► response
//!                 └─ no ────► the API's dispatch ─► Overlay::answered
//! ```
//!
//! An overlay claims whole paths that no API operation has. GET, HEAD (answered like GET, without the body) and DELETE
//! reach it; a request body is not read.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::body::ResponseBody;
use super::memory_budget::MemoryShare;

/// Pages next to the API, and an observer of the API's responses.
pub trait Overlay: Debug + Send + Sync + 'static {
    /// Returns whether a request is for one of its pages. All others belong to the API.
    fn has(&self, uri: &Uri, headers: &HeaderMap) -> bool;

    /// Waits until the page of a request has what the request asks to wait for, or its time is up. The wait ends with
    /// the connection.
    fn ready(self: Arc<Self>, uri: &Uri) -> BoxFuture<'static, ()> {
        let _ = uri;
        Box::pin(std::future::ready(()))
    }

    /// Answers a request that it [`has`](Self::has). It may read files.
    fn page(&self, method: &Method, uri: &Uri) -> StaticPage;

    /// Called after each response of the API.
    fn answered(&self, answered: &AnsweredRequest);
}

/// A request that the API answered.
#[derive(Debug, Clone)]
pub struct AnsweredRequest {
    pub method: Method,
    /// The request target.
    pub uri: Uri,
    pub status: StatusCode,
    /// Time from the header section of the request to that of the response.
    pub duration: Duration,
}

/// The Content-Security-Policy of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// A page of this program: its scripts, its styles, its frames, and requests to its own origin.
    Own,
    /// Foreign content: no scripts, nothing from other hosts. Links open in a new window.
    Foreign,
    /// Foreign content with its remote images, styles and fonts. No scripts.
    ForeignRemote,
}

impl Policy {
    const fn header(self) -> &'static str {
        match self {
            Self::Own => {
                "default-src 'none'; connect-src 'self'; frame-src 'self'; img-src 'self' data:; \
                 script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'self'; form-action 'none'"
            }
            Self::Foreign => {
                "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; \
                 style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'self'"
            }
            Self::ForeignRemote => {
                "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
                 img-src data: http: https:; style-src 'unsafe-inline' http: https:; font-src data: http: https:; \
                 form-action 'none'; frame-ancestors 'self'"
            }
        }
    }
}

/// A response page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticPage {
    pub status: StatusCode,
    /// The media type; an invalid header value becomes `application/octet-stream`.
    pub media_type: Cow<'static, str>,
    pub body: Bytes,
    pub policy: Policy,
    /// File name for a download; `None` shows the page.
    pub file_name: Option<String>,
}

impl StaticPage {
    /// A page with status 200.
    #[must_use]
    pub fn new(media_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            media_type: media_type.into(),
            body: body.into(),
            policy: Policy::Own,
            file_name: None,
        }
    }

    /// A page with foreign content, which is not trusted.
    #[must_use]
    pub fn untrusted(media_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self { policy: Policy::Foreign, ..Self::new(media_type, body) }
    }

    /// An error in plain text.
    #[must_use]
    pub fn error(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, ..Self::new("text/plain; charset=utf-8", text.into()) }
    }

    fn into_response(self, is_head: bool) -> Response<ResponseBody> {
        let length = self.body.len();
        let body = if is_head { Bytes::new() } else { self.body };
        let mut response = Response::new(ResponseBody::new(body, MemoryShare::default()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let media_type =
            HeaderValue::from_str(&self.media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"));
        headers.insert(CONTENT_TYPE, media_type);
        headers.insert(CONTENT_LENGTH, length.into());
        // The content is an untrusted email: prevent MIME sniffing and framing.
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("content-security-policy", self.policy.header()),
            ("referrer-policy", "no-referrer"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(disposition) = self.file_name.as_deref().and_then(attachment) {
            headers.insert(CONTENT_DISPOSITION, disposition);
        }
        response
    }
}

/// `Content-Disposition: attachment` with a name in UTF-8 (RFC 6266 5, RFC 8187 3.2).
fn attachment(name: &str) -> Option<HeaderValue> {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{encoded}")).ok()
}

/// Answers a request for one of the overlay's pages.
pub(super) async fn answer<B>(overlay: Arc<dyn Overlay>, request: Request<B>) -> Response<ResponseBody> {
    let is_head = request.method() == Method::HEAD;
    let (head, _) = request.into_parts();
    if ![Method::GET, Method::HEAD, Method::DELETE].contains(&head.method) {
        let page = StaticPage::error(StatusCode::METHOD_NOT_ALLOWED, "Use GET, HEAD or DELETE\n");
        return page.into_response(false);
    }
    let method = if is_head { Method::GET } else { head.method };
    Arc::clone(&overlay).ready(&head.uri).await;
    let made = tokio::task::spawn_blocking(move || overlay.page(&method, &head.uri)).await;
    let page = made.unwrap_or_else(|error| {
        tracing::error!(%error, "rendering a page failed");
        StaticPage::error(StatusCode::INTERNAL_SERVER_ERROR, "The page failed; see the log\n")
    });
    page.into_response(is_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_encoded() {
        let header = |name: &str| attachment(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(header("a b.pdf"), "attachment; filename*=UTF-8''a%20b.pdf");
        assert_eq!(header("ä\"\r\n.txt"), "attachment; filename*=UTF-8''%C3%A4%22%0D%0A.txt");
    }

    #[test]
    fn a_media_type_that_is_no_header_value_is_replaced() {
        let response = StaticPage::untrusted("text/\r\nx", "x").into_response(true);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/octet-stream");
        assert_eq!(response.headers()[CONTENT_LENGTH], "1");
    }
}
