//! A small listener of plain pages beside the API: the operator's, or the development inbox.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::body::Payload;
use super::budget::Share;
use super::connection::answering;
use super::{Terms, listen};

/// Connections at once.
const CONNECTIONS_MAX: usize = 64;
/// How long a stop waits for answers that have begun.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status.
    pub status: StatusCode,
    /// What the bytes are.
    pub media_type: &'static str,
    /// The bytes.
    pub body: Bytes,
    /// What the page may do (Content-Security-Policy).
    pub policy: &'static str,
}

/// A page of our own: its own scripts and styles, its own frames, nothing from elsewhere.
const OWN: &str = "default-src 'none'; connect-src 'self'; frame-src 'self'; img-src 'self' data:; \
                   script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'self'; form-action 'none'";
/// What somebody sent: no scripts, no remote content, no navigation.
const FOREIGN: &str = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; \
                       frame-ancestors 'self'";

impl Page {
    /// A page with status 200.
    #[must_use]
    pub fn of(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, media_type, body: body.into(), policy: OWN }
    }

    /// A page that somebody else wrote: it can do nothing.
    #[must_use]
    pub fn foreign(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { policy: FOREIGN, ..Self::of(media_type, body) }
    }

    /// No such page.
    #[must_use]
    pub fn not_found(hint: &'static str) -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::of("text/plain; charset=utf-8", hint) }
    }
}

/// Serves pages until `stop`: GET, HEAD (made of GET) and DELETE; `answer` is given the method and the
/// path, and does not wait.
///
/// # Errors
/// The listener itself cannot be used.
pub async fn pages(
    listener: TcpListener,
    answer: impl Fn(&Method, &str) -> Page + Send + Sync + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let answer = Arc::new(answer);
    let respond = answering(move |request| {
        let head = request.method() == Method::HEAD;
        let method = if head { &Method::GET } else { request.method() };
        ready(response(answer(method, request.uri().path()), head))
    });
    listen(listener, Terms::plain(CONNECTIONS_MAX, DRAIN_MAX), respond, stop).await
}

fn response(page: Page, head: bool) -> Response<Payload> {
    let length = page.body.len();
    let body = if head { Bytes::new() } else { page.body };
    let mut response = Response::new(Payload::new(body, Share::default()));
    *response.status_mut() = page.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.media_type));
    headers.insert(CONTENT_LENGTH, length.into());
    // What is shown came from anybody's mail: it is not to be guessed at, framed by others or kept.
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert("content-security-policy", HeaderValue::from_static(page.policy));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    response
}
