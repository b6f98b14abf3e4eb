//! Pages that share the API's port: the API reference, and the web inbox of `postrider dev`.
//!
//! ```text
//! request ─► Overlay::has? ─► Overlay::ready ─► Overlay::page (on a blocking thread) ─► response
//!                 └─ no ────► Overlay::observe ─► the API's dispatch ─► ResponseObserver
//! ```
//!
//! An overlay claims whole paths that no API operation has. HEAD is answered like GET, without the body; a request body
//! is not read.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    HeaderName, HeaderValue, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use httpd::body::ResponseBody;
use httpd::response::attachment_disposition;
use net::limit::memory_budget::MemoryShare;

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

    /// The methods of a page that it [`has`](Self::has). HEAD belongs to GET.
    fn methods(&self, uri: &Uri) -> &'static [Method] {
        let _ = uri;
        READ_METHODS
    }

    /// Answers a request that it [`has`](Self::has), with GET in place of HEAD. It may read files.
    fn page(&self, method: &Method, uri: &Uri) -> StaticPage;

    /// Called before the API answers a request. Returns what takes the status of the response, or `None` if nothing is
    /// to be done with it.
    fn observe(&self, method: &Method, uri: &Uri) -> Option<ResponseObserver> {
        let _ = (method, uri);
        None
    }
}

pub const READ_METHODS: &[Method] = &[Method::GET, Method::HEAD];

/// Takes the status of an API response.
pub type ResponseObserver = Box<dyn FnOnce(StatusCode) + Send>;

/// The Content-Security-Policy of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// A page of this program: scripts and styles in files of its own origin, no scripts from text (Trusted Types).
    Strict,
    /// A page of this program that is one file: its scripts, its styles, its frames, and requests to its own origin.
    Own,
    /// Foreign content: no scripts, nothing from other hosts. Links open in a new window.
    Foreign,
    /// Foreign content with its remote images, styles and fonts. No scripts.
    ForeignRemote,
}

impl Policy {
    /// The value of the header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Strict => html::policy::SCRIPTED,
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

/// How long clients and proxies may keep a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageCache {
    /// Not at all.
    NoStore,
    /// For five minutes; afterwards it is compared by its entity tag: the opaque part, without quotes.
    Revalidate(String),
    /// For a year: the path changes with the content.
    Immutable,
}

impl PageCache {
    const fn header(&self) -> &'static str {
        match self {
            Self::NoStore => "no-store",
            Self::Revalidate(_) => "public, max-age=300",
            Self::Immutable => "public, max-age=31536000, immutable",
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
    /// The body in gzip, for clients that accept it.
    pub gzip: Option<Bytes>,
    pub policy: Policy,
    pub cache: PageCache,
    /// File name for a download; `None` shows the page.
    pub file_name: Option<String>,
}

impl StaticPage {
    /// A page with status 200.
    pub fn new(media_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            media_type: media_type.into(),
            body: body.into(),
            gzip: None,
            policy: Policy::Own,
            cache: PageCache::NoStore,
            file_name: None,
        }
    }

    /// A page with foreign content, which is not trusted.
    pub fn untrusted(media_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self { policy: Policy::Foreign, ..Self::new(media_type, body) }
    }

    /// An error in plain text.
    pub fn error(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, ..Self::new("text/plain; charset=utf-8", text.into()) }
    }

    fn into_response(self, is_head: bool, request: &HeaderMap) -> Response<ResponseBody> {
        let gzip = self.gzip.as_ref().filter(|_| accepts_gzip(request));
        let (is_gzip, body) = (gzip.is_some(), gzip.unwrap_or(&self.body).clone());
        let entity_tag = self.entity_tag(is_gzip);
        let is_current = entity_tag.as_ref().is_some_and(|tag| has_entity_tag(request, tag));
        let (status, length) =
            if is_current { (StatusCode::NOT_MODIFIED, None) } else { (self.status, Some(body.len())) };
        let body = if is_head || is_current { Bytes::new() } else { body };
        let mut response = Response::new(ResponseBody::new(body, MemoryShare::default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if let Some(length) = length {
            let media_type =
                HeaderValue::from_str(&self.media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"));
            headers.insert(CONTENT_TYPE, media_type);
            headers.insert(CONTENT_LENGTH, length.into());
            if is_gzip {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        if self.gzip.is_some() {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(tag) = entity_tag {
            headers.insert(ETAG, tag);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(self.cache.header()));
        // The content may be an untrusted email: prevent MIME sniffing and framing.
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", self.policy.header()),
            ("referrer-policy", "no-referrer"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(name) = &self.file_name {
            headers.insert(CONTENT_DISPOSITION, attachment_disposition(name));
        }
        response
    }

    /// The strong entity tag, which differs by encoding (RFC 9110 8.8.3.3).
    fn entity_tag(&self, is_gzip: bool) -> Option<HeaderValue> {
        let PageCache::Revalidate(tag) = &self.cache else { return None };
        HeaderValue::from_str(&format!("\"{tag}{}\"", if is_gzip { "-gzip" } else { "" })).ok()
    }
}

/// Returns whether `Accept-Encoding` names gzip, with a weight above 0 (RFC 9110 12.5.3).
pub(super) fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().to_ascii_lowercase();
        let weight = weight.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

/// Returns whether `If-None-Match` has the tag; the comparison is weak (RFC 9110 13.1.2).
fn has_entity_tag(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let values = request.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

/// Answers a request for one of the overlay's pages.
pub(super) async fn answer<B>(overlay: Arc<dyn Overlay>, request: Request<B>) -> Response<ResponseBody> {
    let is_head = request.method() == Method::HEAD;
    let (head, _) = request.into_parts();
    let methods = overlay.methods(&head.uri);
    if !methods.contains(&head.method) {
        return method_not_allowed(methods, &head.headers);
    }
    let method = if is_head { Method::GET } else { head.method };
    Arc::clone(&overlay).ready(&head.uri).await;
    let uri = head.uri;
    let made = tokio::task::spawn_blocking(move || overlay.page(&method, &uri)).await;
    let page = made.unwrap_or_else(|error| {
        tracing::error!(%error, "rendering a page failed");
        StaticPage::error(StatusCode::INTERNAL_SERVER_ERROR, "The page failed; see the log\n")
    });
    page.into_response(is_head, &head.headers)
}

/// A 405, which must name the methods of the page (RFC 9110 15.5.6).
fn method_not_allowed(methods: &[Method], request: &HeaderMap) -> Response<ResponseBody> {
    let allowed = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let page = StaticPage::error(StatusCode::METHOD_NOT_ALLOWED, format!("This page has: {allowed}\n"));
    let mut response = page.into_response(false, request);
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One page that is read.
    #[derive(Debug)]
    struct OnePage;

    impl Overlay for OnePage {
        fn has(&self, _: &Uri, _: &HeaderMap) -> bool {
            true
        }

        fn page(&self, method: &Method, _: &Uri) -> StaticPage {
            assert_eq!(*method, Method::GET);
            StaticPage::new("text/plain", "page")
        }
    }

    #[tokio::test]
    async fn a_page_without_the_method_names_those_it_has() {
        let answer_to = async |method: Method| {
            let request = Request::builder().method(method).uri("/page").body(()).unwrap();
            answer(Arc::new(OnePage), request).await
        };
        for method in [Method::POST, Method::DELETE, Method::OPTIONS, Method::from_bytes(b"QUERY").unwrap()] {
            let refused = answer_to(method.clone()).await;
            assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
            assert_eq!(refused.headers()[ALLOW], "GET, HEAD", "{method}");
        }
        for method in READ_METHODS {
            let answered = answer_to(method.clone()).await;
            assert_eq!((answered.status(), answered.headers().get(ALLOW)), (StatusCode::OK, None), "{method}");
        }
    }

    #[test]
    fn a_media_type_that_is_no_header_value_is_replaced() {
        let response = StaticPage::untrusted("text/\r\nx", "x").into_response(true, &HeaderMap::new());
        assert_eq!(response.headers()[CONTENT_TYPE], "application/octet-stream");
        assert_eq!(response.headers()[CONTENT_LENGTH], "1");
    }

    #[test]
    fn pages_are_compressed_and_compared() {
        let page = StaticPage {
            gzip: Some(Bytes::from_static(b"z")),
            policy: Policy::Strict,
            cache: PageCache::Revalidate("a".into()),
            ..StaticPage::new("text/html", "page")
        };
        let answer = |fields: &[(HeaderName, &'static str)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            page.clone().into_response(false, &fields.collect())
        };
        let plain = answer(&[]);
        assert_eq!(plain.headers()[ETAG], "\"a\"");
        assert_eq!(plain.headers()[CONTENT_LENGTH], "4");
        assert_eq!(plain.headers()[VARY], "accept-encoding");
        let gzip = answer(&[(ACCEPT_ENCODING, "br;q=1, GZIP;q=0.5")]);
        assert_eq!(gzip.headers()[ETAG], "\"a-gzip\"");
        assert_eq!(gzip.headers()[CONTENT_ENCODING], "gzip");
        assert!(!answer(&[(ACCEPT_ENCODING, "gzip;q=0, br")]).headers().contains_key(CONTENT_ENCODING));
        let current = answer(&[(ACCEPT_ENCODING, "gzip"), (IF_NONE_MATCH, "\"b\", W/\"a-gzip\"")]);
        assert_eq!(current.status(), StatusCode::NOT_MODIFIED);
        assert!(!current.headers().contains_key(CONTENT_LENGTH));
        assert_eq!(answer(&[(IF_NONE_MATCH, "\"a-gzip\"")]).status(), StatusCode::OK);
    }
}
