//! One HTTP request and its response.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::time::Instant;

use super::connection_pool::HttpConnection;
use super::url_target::UrlTarget;
use super::{HttpClientError, HttpGet, HttpPost, HttpResponse, ResponseBudgetError, ResponsePermit};

pub(super) type HttpRequest = hyper::Request<Full<Bytes>>;

/// A response, and its connection if it can be reused.
pub(super) struct HttpExchange {
    pub(super) response: HttpResponse,
    pub(super) connection: Option<HttpConnection>,
}

/// The request got no response.
pub(super) struct NoResponse {
    pub(super) reason: String,
    /// True if the peer closed the connection before it sent anything, as it may with an idle one.
    pub(super) was_idle_close: bool,
}

fn invalid_request(error: impl std::fmt::Display) -> HttpClientError {
    HttpClientError::Url(error.to_string())
}

/// Builds the request of a POST.
pub(super) fn post_request(
    target: &UrlTarget,
    post: &HttpPost,
    user_agent: &HeaderValue,
) -> Result<HttpRequest, HttpClientError> {
    let mut request = hyper::Request::post(&target.path).body(Full::new(post.body.clone())).map_err(invalid_request)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    add_headers(request, target, &post.headers, user_agent)
}

/// Builds the request of a GET.
pub(super) fn get_request(
    target: &UrlTarget,
    get: &HttpGet,
    user_agent: &HeaderValue,
) -> Result<HttpRequest, HttpClientError> {
    let request = hyper::Request::get(&target.path).body(Full::default()).map_err(invalid_request)?;
    add_headers(request, target, &get.headers, user_agent)
}

/// Sets `Host`, `User-Agent` and the caller's header fields. These replace fields of the same name; a name that the
/// caller repeats is sent once for each value.
fn add_headers(
    mut request: HttpRequest,
    target: &UrlTarget,
    extra_headers: &[(&'static str, String)],
    user_agent: &HeaderValue,
) -> Result<HttpRequest, HttpClientError> {
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(&target.authority).map_err(invalid_request)?);
    headers.insert(USER_AGENT, user_agent.clone());
    let mut extra = HeaderMap::with_capacity(extra_headers.len());
    for (name, value) in extra_headers {
        extra.append(
            HeaderName::try_from(*name).map_err(invalid_request)?,
            HeaderValue::try_from(value).map_err(invalid_request)?,
        );
    }
    headers.extend(extra);
    Ok(request)
}

/// A response whose head was received.
pub(super) struct ResponseHead {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    connection: HttpConnection,
}

/// Sends a request and reads the head of the response.
pub(super) async fn send_request(
    mut connection: HttpConnection,
    request: HttpRequest,
) -> Result<ResponseHead, NoResponse> {
    let result = connection
        .sender
        .send_request(request)
        .await
        .map_err(|error| NoResponse { was_idle_close: !error.is_parse(), reason: error_text(&error) })?;
    let (head, body) = result.into_parts();
    Ok(ResponseHead { status: head.status, headers: head.headers, body, connection })
}

impl ResponseHead {
    /// Reads the start of the body, as far as it arrives in time. The connection of a longer body is closed, not
    /// drained.
    ///
    /// # Errors
    /// The permit cannot grow.
    pub(super) async fn read_response(
        self,
        until: Instant,
        bytes_max: usize,
        permit: Option<&mut ResponsePermit>,
    ) -> Result<HttpExchange, ResponseBudgetError> {
        let Self { status, headers, body, connection } = self;
        let (body, is_complete) = read_body(body, until, bytes_max, permit).await?;
        let (retry_after_s, at) = (retry_after(&headers), http_date(headers.get(DATE)));
        let header_text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = header_text.map(str::to_owned);
        let answer = HttpResponse { status: status.as_u16(), retry_after_s, date: at, content_type, body, is_complete };
        // A connection that switched protocols (101) cannot be reused.
        let usable = is_complete && !status.is_informational();
        Ok(HttpExchange { response: answer, connection: usable.then_some(connection) })
    }
}

/// Returns the start of a body, and whether that is all of it. A body that breaks off or is late is returned as far as
/// it arrived: the status is still valid.
async fn read_body(
    mut body: Incoming,
    until: Instant,
    bytes_max: usize,
    mut permit: Option<&mut ResponsePermit>,
) -> Result<(Bytes, bool), ResponseBudgetError> {
    let mut buffer = Vec::new();
    let is_complete = loop {
        match tokio::time::timeout_at(until, body.frame()).await {
            Ok(None) => break true,
            Ok(Some(Err(_))) | Err(_) => break false,
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                let free_bytes = bytes_max.saturating_sub(buffer.len());
                let piece = data.get(..free_bytes).unwrap_or(&data);
                if let Some(permit) = &mut permit {
                    permit.grow_until(piece.len(), until).await?;
                }
                append_piece(&mut buffer, piece);
                if data.len() > free_bytes {
                    break false;
                }
            }
        }
    };
    // Drop the spare capacity.
    Ok((buffer.into_boxed_slice().into(), is_complete))
}

/// Appends a piece. Capacity grows by a quarter, so that a large body never holds twice its size.
fn append_piece(buffer: &mut Vec<u8>, piece: &[u8]) {
    if buffer.capacity() - buffer.len() < piece.len() {
        buffer.reserve_exact(piece.len().max(buffer.len() / 4));
    }
    buffer.extend_from_slice(piece);
}

/// `Retry-After` as seconds, or as a date (RFC 9110 10.2.3) relative to the server's `Date`.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let header_text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = header_text.parse() {
        return Some(seconds);
    }
    let (now, retry_at) = (http_date(headers.get(DATE))?, http_date(headers.get(RETRY_AFTER))?);
    u64::try_from(retry_at.as_second().saturating_sub(now.as_second())).ok()
}

/// Parses an HTTP date (RFC 9110 5.6.7).
fn http_date(value: Option<&HeaderValue>) -> Option<Timestamp> {
    rfc2822::parse(value?.to_str().ok()?.trim()).ok().map(|zoned| zoned.timestamp())
}

/// hyper's errors name the operation; the cause is in their source.
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
    fn repeated_header_fields_are_all_sent() {
        let rules = super::super::UrlRules { allow_private: true, allow_http: true };
        let target = UrlTarget::parse("http://127.0.0.1:11333/checkv2", rules).unwrap();
        let agent = HeaderValue::from_static("postrider");
        let post = HttpPost {
            url: String::new(),
            headers: vec![
                ("rcpt", "a@dest.example".to_owned()),
                ("content-type", "message/rfc822".to_owned()),
                ("rcpt", "b@dest.example".to_owned()),
            ],
            body: Bytes::new(),
            timeout: std::time::Duration::from_secs(1),
            idempotency: super::super::RequestIdempotency::Idempotent,
        };
        let request = post_request(&target, &post, &agent).unwrap();
        let values = |name: &str| request.headers().get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(values("rcpt"), ["a@dest.example", "b@dest.example"]);
        assert_eq!(values("content-type"), ["message/rfc822"], "the caller's field replaces the default");
        assert_eq!((values("host").len(), values("user-agent").len()), (1, 1));
    }

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
