//! Reads request bodies within their limits; response bodies that hold their share of the memory budget.
//!
//! Limits: the operation's maximum size, the memory budget (charged for received bytes, not for `Content-Length`),
//! the pause between two chunks, and a minimum rate, so that a slow client does not hold memory for long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use net::limit::memory_budget::{BUDGET_WAIT_MAX, MemoryAllowance, MemoryShare};
use tokio::time::{Instant, timeout_at};

use super::encoding::{CompressedBody, ContentEncoding, too_large};
use crate::problem::{ErrorCode, Problem};
use crate::request::Media;
use crate::response::{BodyStream, BodyStreamError};

/// Longest pause between two chunks of a body.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// Time allowed for a small body …
const SMALL_BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// … and the minimum rate of a large one (a poor mobile uplink).
const RATE_BYTES_PER_S_MIN: u64 = 64 << 10;
/// The rest of a refused body is read and discarded for at most this time …
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);
/// … and at most this many bytes.
const DISCARD_BYTES_MAX: usize = 256 << 20;
/// Largest initial buffer, whatever `Content-Length` announces.
const FIRST_BYTES_MAX: usize = 256 << 10;
/// Initial buffer without `Content-Length`.
const FIRST_BYTES: usize = 8 << 10;

/// Reads and discards the rest of a body after the response. A client that sends everything before it reads would
/// otherwise see a broken connection instead of the response (RFC 9112 9.6).
pub async fn drain<B: Body<Data = Bytes> + Unpin>(mut body: B) {
    let deadline = Instant::now() + DISCARD_TIME_MAX;
    let mut discarded = 0;
    while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
        discarded += frame.data_ref().map_or(0, Bytes::len);
        if discarded > DISCARD_BYTES_MAX {
            return;
        }
    }
}

/// The body of a request.
pub trait RequestBody: Body<Data = Bytes, Error: std::fmt::Display> + Unpin {}

impl<B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin> RequestBody for B {}

/// Reads and decompresses a body. The media type of an empty body is not checked.
///
/// # Errors
/// 400, 413, 415, 408, or 503 when the memory budget is exhausted. With [`Media::Any`] an unreadable body counts as
/// empty, so only 408 and 503 remain.
pub async fn read_body<B: RequestBody>(
    body: B,
    headers: &HeaderMap,
    bytes_max: usize,
    media: Media,
    allowance: &MemoryAllowance,
) -> Result<(Bytes, MemoryShare), Problem> {
    let body_errors = [400, 413, 415];
    match read_and_decode(body, headers, bytes_max, media, allowance).await {
        Err(problem) if media == Media::Any && body_errors.contains(&problem.status().as_u16()) => {
            Ok((Bytes::new(), MemoryShare::default()))
        }
        accepted => accepted,
    }
}

/// Reads the body of a form, whatever its media type.
///
/// # Errors
/// 413, 408, or 503 when the memory budget is exhausted.
pub async fn read_form<B: RequestBody>(
    body: B,
    headers: &HeaderMap,
    bytes_max: usize,
    allowance: &MemoryAllowance,
) -> Result<(Bytes, MemoryShare), Problem> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), MemoryShare::default()));
    }
    BodyReader::new(body, headers, bytes_max, allowance)?.read_all().await
}

async fn read_and_decode<B: RequestBody>(
    body: B,
    headers: &HeaderMap,
    bytes_max: usize,
    media: Media,
    allowance: &MemoryAllowance,
) -> Result<(Bytes, MemoryShare), Problem> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), MemoryShare::default()));
    }
    let media_type = media_type(headers, media)?;
    let encoding = ContentEncoding::from_headers(headers)?;
    let reader = BodyReader::new(body, headers, bytes_max, allowance)?;
    let parsed = match encoding {
        None => reader.read_all().await?,
        Some(encoding) => encoding.decompress(reader.read_compressed().await?, bytes_max, allowance).await?,
    };
    if media_type == BodyMediaType::Form && !looks_like_json(&parsed.0) {
        return Err(unsupported_media_type(media));
    }
    Ok(parsed)
}

struct BodyReader<'a, B> {
    body: B,
    bytes_max: usize,
    allowance: &'a MemoryAllowance,
    share: MemoryShare,
    content_length: Option<usize>,
    started_at: Instant,
    /// Time spent waiting for the memory budget; it does not count against the client's rate.
    waited: Duration,
}

impl<'a, B: RequestBody> BodyReader<'a, B> {
    fn new(body: B, headers: &HeaderMap, bytes_max: usize, allowance: &'a MemoryAllowance) -> Result<Self, Problem> {
        let content_length = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse::<u64>().ok())
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        if content_length.is_some_and(|n| n > bytes_max) {
            return Err(too_large(bytes_max));
        }
        Ok(Self {
            body,
            bytes_max,
            allowance,
            share: MemoryShare::with_expected(content_length.unwrap_or_default()),
            content_length,
            started_at: Instant::now(),
            waited: Duration::ZERO,
        })
    }

    async fn read_all(mut self) -> Result<(Bytes, MemoryShare), Problem> {
        // A body in one chunk is not copied.
        let Some(first) = self.next_chunk(0).await? else { return Ok((Bytes::new(), self.share)) };
        if self.content_length == Some(first.len()) {
            return Ok((first, self.share));
        }
        let expected = self.content_length.unwrap_or(FIRST_BYTES).min(FIRST_BYTES_MAX);
        let mut bytes = BytesMut::with_capacity(expected.max(first.len()));
        bytes.extend_from_slice(&first);
        while let Some(chunk) = self.next_chunk(bytes.len()).await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok((bytes.freeze(), self.share))
    }

    /// Reads a compressed body in chunks, whose memory is freed during decompression.
    async fn read_compressed(mut self) -> Result<CompressedBody, Problem> {
        let mut packed = CompressedBody::default();
        while let Some(chunk) = self.next_chunk(packed.remaining_bytes()).await? {
            packed.push(&chunk);
        }
        Ok(packed.with_share(self.share))
    }

    /// The next chunk; `None` at the end.
    async fn next_chunk(&mut self, so_far: usize) -> Result<Option<Bytes>, Problem> {
        let allowed = SMALL_BODY_TIMEOUT + Duration::from_secs(so_far as u64 / RATE_BYTES_PER_S_MIN);
        let deadline = (self.started_at + self.waited + allowed).min(Instant::now() + READ_TIMEOUT);
        loop {
            let slow = |_| Problem::new(ErrorCode::REQUEST_TIMEOUT, "The body arrived too slowly");
            let frame = match timeout_at(deadline, self.body.frame()).await.map_err(slow)? {
                None => return Ok(None),
                Some(Ok(frame)) => frame,
                // The connection is broken: no client reads this response.
                Some(Err(error)) => {
                    return Err(Problem::new(ErrorCode::INVALID_JSON, format!("The body is incomplete: {error}")));
                }
            };
            // Trailers are ignored.
            let Ok(data) = frame.into_data() else { continue };
            if so_far + data.len() > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            self.reserve_memory(data.len()).await?;
            return Ok(Some(data));
        }
    }

    /// Charges received bytes to the budget. If the budget stays exhausted, the whole body is dropped.
    async fn reserve_memory(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.allowance.try_grow(&mut self.share, bytes) {
            return Ok(());
        }
        let started_at = Instant::now();
        let until = started_at + BUDGET_WAIT_MAX.saturating_sub(self.waited);
        // `try_grow` has added the bytes to the share already, so nothing is added here.
        let paid = self.allowance.grow_until(&mut self.share, 0, until).await;
        self.waited += started_at.elapsed();
        if paid { Ok(()) } else { Err(Problem::busy()) }
    }
}

/// The class of a `Content-Type`.
#[derive(Debug, PartialEq, Eq)]
enum BodyMediaType {
    /// A type that the operation accepts, in UTF-8 (RFC 8259 8.1), or no type at all.
    Expected,
    /// `curl -d` sends this type for everything: accepted if the body looks like JSON.
    Form,
}

fn media_type(headers: &HeaderMap, media: Media) -> Result<BodyMediaType, Problem> {
    let is_any = matches!(media, Media::Form | Media::Signed | Media::Csv);
    let Some(value) = headers.get(CONTENT_TYPE).filter(|_| !is_any) else {
        return Ok(BodyMediaType::Expected);
    };
    let text = value.to_str().unwrap_or_default();
    let (kind, parameters) = text.split_once(';').unwrap_or((text, ""));
    let kind = kind.trim().to_ascii_lowercase();
    let utf8 = parameters.split(';').filter_map(|p| p.split_once('=')).all(|(name, value)| {
        !name.trim().eq_ignore_ascii_case("charset")
            || ["utf-8", "utf8"].iter().any(|c| value.trim().trim_matches('"').eq_ignore_ascii_case(c))
    });
    match kind.as_str() {
        "application/x-www-form-urlencoded" if utf8 => Ok(BodyMediaType::Form),
        "application/json" if utf8 => Ok(BodyMediaType::Expected),
        "text/csv" if utf8 && media == Media::JsonOrCsv => Ok(BodyMediaType::Expected),
        "text/plain" if utf8 && matches!(media, Media::Beacon | Media::Any) => Ok(BodyMediaType::Expected),
        kind if kind.ends_with("+json") && utf8 => Ok(BodyMediaType::Expected),
        _ => Err(unsupported_media_type(media)),
    }
}

fn looks_like_json(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|first| b"[{".contains(first))
}

fn unsupported_media_type(media: Media) -> Problem {
    let (message, accepted) = match media {
        Media::JsonOrCsv => (
            "The body must be JSON or CSV in UTF-8: send it with Content-Type: application/json or text/csv",
            "application/json, text/csv",
        ),
        _ => ("The body must be JSON in UTF-8: send it with Content-Type: application/json", "application/json"),
    };
    Problem::new(ErrorCode::UNSUPPORTED_MEDIA_TYPE, message).with_header(http::header::ACCEPT, accepted)
}

/// The body of a response: bytes, an optional stream of further chunks, and the share of the memory budget that it
/// holds until it is sent.
#[derive(Debug)]
pub struct ResponseBody {
    bytes: Option<Bytes>,
    stream: Option<BodyStream>,
    _share: MemoryShare,
}

impl ResponseBody {
    /// A body of these bytes.
    pub fn new(bytes: Bytes, share: MemoryShare) -> Self {
        Self::with_stream(bytes, None, share)
    }

    /// A body of these bytes, followed by a stream.
    pub fn with_stream(bytes: Bytes, stream: Option<BodyStream>, share: MemoryShare) -> Self {
        Self { bytes: Some(bytes).filter(|b| !b.is_empty()), stream, _share: share }
    }
}

/// A short response of a listener other than the API's.
pub fn text_response(status: StatusCode, media_type: &'static str, body: String) -> Response<ResponseBody> {
    let length = body.len();
    let mut response = Response::new(ResponseBody::new(body.into(), MemoryShare::default()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyStreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyStreamError>>> {
        if let Some(bytes) = self.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(chunks) = &mut self.stream else { return Poll::Ready(None) };
        chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.stream.is_some() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |b| b.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let parse = |kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            media_type(&headers, Media::Json).ok()
        };
        for good in ["application/json", "Application/JSON; charset=UTF-8", "application/vnd.x+json"] {
            assert_eq!(parse(good), Some(BodyMediaType::Expected), "{good}");
        }
        for bad in ["text/plain", "multipart/form-data", "application/json; charset=latin1", ""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(media_type(&HeaderMap::new(), Media::Json), Ok(BodyMediaType::Expected));
        assert_eq!(parse("application/x-www-form-urlencoded"), Some(BodyMediaType::Form));
        assert!(looks_like_json(b" {") && looks_like_json(b"[") && !looks_like_json(b"from=a&to=b"));
        assert_eq!(parse("text/csv"), None);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/csv; charset=utf-8".parse().unwrap());
        assert!(media_type(&headers, Media::JsonOrCsv).is_ok());
        assert!(media_type(&headers, Media::Form).is_ok());
    }
}
