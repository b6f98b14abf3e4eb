//! One request and what is answered to it.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::time::Instant;

use super::kept::HttpConnection;
use super::target::UrlTarget;
use super::{HttpClientError, HttpGet, HttpPost, HttpResponse, ResponseBudgetError, ResponsePermit};

/// What goes over the connection.
pub(super) type HttpRequest = hyper::Request<Full<Bytes>>;

/// An answer, and the connection if it can be used again.
pub(super) struct HttpExchange {
    pub(super) response: HttpResponse,
    pub(super) connection: Option<HttpConnection>,
}

/// There was no answer.
pub(super) struct NoResponse {
    /// What went wrong.
    pub(super) reason: String,
    /// Whether nothing at all was answered: the peer closed, as it may with a connection that waited.
    pub(super) was_idle_close: bool,
}

fn invalid_request(error: impl std::fmt::Display) -> HttpClientError {
    HttpClientError::Url(error.to_string())
}

/// The request of a post.
pub(super) fn post_request(
    target: &UrlTarget,
    post: &HttpPost,
    user_agent: &HeaderValue,
) -> Result<HttpRequest, HttpClientError> {
    let mut request = hyper::Request::post(&target.path).body(Full::new(post.body.clone())).map_err(invalid_request)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    add_headers(request, target, (&post.headers, user_agent))
}

/// The request of what is got.
pub(super) fn get_request(
    target: &UrlTarget,
    get: &HttpGet,
    user_agent: &HeaderValue,
) -> Result<HttpRequest, HttpClientError> {
    let request = hyper::Request::get(&target.path).body(Full::default()).map_err(invalid_request)?;
    add_headers(request, target, (&get.headers, user_agent))
}

/// Says in a request for whom it is, and from whom.
fn add_headers(
    mut request: HttpRequest,
    target: &UrlTarget,
    (more, user_agent): (&[(&'static str, String)], &HeaderValue),
) -> Result<HttpRequest, HttpClientError> {
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(&target.authority).map_err(invalid_request)?);
    headers.insert(USER_AGENT, user_agent.clone());
    for (name, value) in more {
        headers.insert(
            HeaderName::try_from(*name).map_err(invalid_request)?,
            HeaderValue::try_from(value).map_err(invalid_request)?,
        );
    }
    Ok(request)
}

/// An answer whose head has come.
pub(super) struct ResponseHead {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    connection: HttpConnection,
}

/// Sends a request, and reads the head of the answer.
pub(super) async fn send_request(
    mut connection: HttpConnection,
    request: HttpRequest,
) -> Result<ResponseHead, NoResponse> {
    let answered = connection
        .sender
        .send_request(request)
        .await
        .map_err(|error| NoResponse { was_idle_close: !error.is_parse(), reason: error_text(&error) })?;
    let (head, body) = answered.into_parts();
    Ok(ResponseHead { status: head.status, headers: head.headers, body, connection })
}

impl ResponseHead {
    /// Reads the beginning of the body, as far as it comes until then. A body that is longer is not read to its
    /// end: its connection is closed.
    ///
    /// # Errors
    /// The permit cannot pay for it.
    pub(super) async fn read_response(
        self,
        bounds: (Instant, usize),
        permit: Option<&mut ResponsePermit>,
    ) -> Result<HttpExchange, ResponseBudgetError> {
        let Self { status, headers, body, connection } = self;
        let (body, is_whole) = read_body(body, bounds, permit).await?;
        let (retry_after_s, at) = (retry_after(&headers), http_date(headers.get(DATE)));
        let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = said.map(str::to_owned);
        let answer = HttpResponse {
            status: status.as_u16(),
            retry_after_s,
            date: at,
            content_type,
            body,
            is_complete: is_whole,
        };
        // What switches to another protocol (101) is of no more use.
        let usable = is_whole && !status.is_informational();
        Ok(HttpExchange { response: answer, connection: usable.then_some(connection) })
    }
}

/// What is kept of a body, and whether that is all of it. One that breaks off, or does not come to its end in time,
/// is kept as far as it came: the status stands.
async fn read_body(
    mut body: Incoming,
    (until, bytes_max): (Instant, usize),
    mut permit: Option<&mut ResponsePermit>,
) -> Result<(Bytes, bool), ResponseBudgetError> {
    let mut kept = Vec::new();
    let is_whole = loop {
        match tokio::time::timeout_at(until, body.frame()).await {
            Ok(None) => break true,
            Ok(Some(Err(_))) | Err(_) => break false,
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = bytes_max.saturating_sub(kept.len());
                let piece = data.get(..room).unwrap_or(&data);
                if let Some(permit) = &mut permit {
                    permit.grow_until(piece.len(), until).await?;
                }
                append_piece(&mut kept, piece);
                if data.len() > room {
                    break false;
                }
            }
        }
    };
    // Not the room that it might have grown into.
    Ok((kept.into_boxed_slice().into(), is_whole))
}

/// Adds a piece. What is large grows by a quarter, so that it never has twice the memory that it needs.
fn append_piece(kept: &mut Vec<u8>, piece: &[u8]) {
    if kept.capacity() - kept.len() < piece.len() {
        kept.reserve_exact(piece.len().max(kept.len() / 4));
    }
    kept.extend_from_slice(piece);
}

/// Seconds, or a date (RFC 9110 10.2.3), which is read by the clock of who said it.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let said = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = said.parse() {
        return Some(seconds);
    }
    let (now, then) = (http_date(headers.get(DATE))?, http_date(headers.get(RETRY_AFTER))?);
    u64::try_from(then.as_second().saturating_sub(now.as_second())).ok()
}

/// A time as HTTP writes it (RFC 9110 5.6.7).
fn http_date(value: Option<&HeaderValue>) -> Option<Timestamp> {
    rfc2822::parse(value?.to_str().ok()?.trim()).ok().map(|zoned| zoned.timestamp())
}

/// hyper's errors say what they are about; what happened stands behind them.
fn error_text(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |fields: &[(HeaderName, &'static str)]| {
            retry_after(&fields.iter().map(|(n, v)| (n.clone(), HeaderValue::from_static(v))).collect::<HeaderMap>())
        };
        assert_eq!(read(&[(RETRY_AFTER, "120")]), Some(120));
        let date = (DATE, "Thu, 01 Jan 2026 10:00:00 GMT");
        assert_eq!(read(&[(RETRY_AFTER, "Thu, 01 Jan 2026 10:01:30 GMT"), date.clone()]), Some(90));
        assert_eq!(read(&[(RETRY_AFTER, "Thu, 01 Jan 2026 09:59:00 GMT"), date.clone()]), None);
        assert_eq!(read(&[(RETRY_AFTER, "Thu, 01 Jan 2026 10:01:30 GMT")]), None);
        assert_eq!(read(&[(RETRY_AFTER, "soon"), date]), None);
        assert_eq!(read(&[(RETRY_AFTER, "-5")]), None);
    }
}
