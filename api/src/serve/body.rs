//! Bodies: reading a request's within its limits, and the answer's that holds its share of memory.
//!
//! Limits: the operation's own size, the budget of bytes in flight (paid as they come, whatever was
//! announced), a pause between two pieces, and a slowest rate over all, so that a client that trickles does
//! not hold memory for long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, timeout_at};

use super::budget::{MemoryAllowance, MemoryShare};
use super::encoding::{CompressedBody, ContentEncoding};
use crate::call::{BodyStream, BodyStreamError, Media};
use crate::problem::{ErrorCode, Problem};

/// The longest pause between two pieces of a body.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// What a body may take when it is small …
const SMALL_BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// … and the slowest rate at which a large one may come (a poor mobile uplink).
const RATE_BYTES_PER_S_MIN: u64 = 64 << 10;
/// The rest of a refused body is read and thrown away for so long …
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);
/// … and so far.
const DISCARD_BYTES_MAX: usize = 256 << 20;
/// How long a body waits, in all, for others to give back what it needs of the budget.
const BUDGET_WAIT_MAX: Duration = Duration::from_secs(5);
/// The buffer is this large at first when more was announced: that is only an announcement.
const FIRST_BYTES_MAX: usize = 256 << 10;
/// Without `Content-Length` the buffer grows from here.
const FIRST_BYTES: usize = 8 << 10;

/// Reads on although the answer is given: a client that sends all before it reads anything would find the
/// connection broken, and never read why (RFC 9112 9.6).
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

/// Reads a body whole, and unpacks it. Where there is none its type does not matter.
///
/// # Errors
/// 400, 413, 415, 408, or 503 when too much is in flight. Of [`Media::Whatever`], which is as nothing when it cannot be
/// taken, the last two alone.
pub async fn read_body<B>(
    body: B,
    headers: &HeaderMap,
    wanted: (usize, Media),
    allowance: &MemoryAllowance,
) -> Result<(Bytes, MemoryShare), Problem>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let of_its_bytes = [400, 413, 415];
    match read_and_decode(body, headers, wanted, allowance).await {
        Err(problem) if wanted.1 == Media::Any && of_its_bytes.contains(&problem.status().as_u16()) => {
            Ok((Bytes::new(), MemoryShare::default()))
        }
        taken => taken,
    }
}

async fn read_and_decode<B>(
    body: B,
    headers: &HeaderMap,
    (bytes_max, media): (usize, Media),
    allowance: &MemoryAllowance,
) -> Result<(Bytes, MemoryShare), Problem>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok((Bytes::new(), MemoryShare::default()));
    }
    let media_type = media_type(headers, media)?;
    let encoding = ContentEncoding::from_headers(headers)?;
    let said = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<u64>().ok())
        .map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    if said.is_some_and(|n| n > bytes_max) {
        return Err(too_large(bytes_max));
    }
    let reading = BodyReader {
        body,
        bytes_max,
        allowance,
        share: MemoryShare::with_expected(said.unwrap_or_default()),
        content_length: said,
        begun: Instant::now(),
        waited: Duration::ZERO,
    };
    let read = match encoding {
        None => reading.read_all().await?,
        Some(encoding) => encoding.decompress(reading.read_compressed().await?, bytes_max, allowance).await?,
    };
    if media_type == BodyMediaType::Form && !looks_like_json(&read.0) {
        return Err(unsupported_media_type(media));
    }
    Ok(read)
}

struct BodyReader<'a, B> {
    body: B,
    bytes_max: usize,
    allowance: &'a MemoryAllowance,
    share: MemoryShare,
    content_length: Option<usize>,
    begun: Instant,
    /// For the budget: that is not the client's slowness.
    waited: Duration,
}

impl<B> BodyReader<'_, B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    async fn read_all(mut self) -> Result<(Bytes, MemoryShare), Problem> {
        // A body that came in one piece is not copied.
        let Some(first) = self.next_chunk(0).await? else { return Ok((Bytes::new(), self.share)) };
        if self.content_length == Some(first.len()) {
            return Ok((first, self.share));
        }
        let expected = self.content_length.unwrap_or(FIRST_BYTES).min(FIRST_BYTES_MAX);
        let mut whole = BytesMut::with_capacity(expected.max(first.len()));
        whole.extend_from_slice(&first);
        while let Some(piece) = self.next_chunk(whole.len()).await? {
            whole.extend_from_slice(&piece);
        }
        Ok((whole.freeze(), self.share))
    }

    /// All of a compressed body, in pieces that are given back while it is unpacked.
    async fn read_compressed(mut self) -> Result<CompressedBody, Problem> {
        let mut packed = CompressedBody::default();
        while let Some(piece) = self.next_chunk(packed.remaining_bytes()).await? {
            packed.push(&piece);
        }
        Ok(packed.with_share(self.share))
    }

    /// The next piece of data; `None` at the end.
    async fn next_chunk(&mut self, so_far: usize) -> Result<Option<Bytes>, Problem> {
        let allowed = SMALL_BODY_TIMEOUT + Duration::from_secs(so_far as u64 / RATE_BYTES_PER_S_MIN);
        let deadline = (self.begun + self.waited + allowed).min(Instant::now() + READ_TIMEOUT);
        loop {
            let slow = |_| Problem::new(ErrorCode::REQUEST_TIMEOUT, "The body came too slowly");
            let frame = match timeout_at(deadline, self.body.frame()).await.map_err(slow)? {
                None => return Ok(None),
                Some(Ok(frame)) => frame,
                // The connection broke: nobody will read this.
                Some(Err(error)) => {
                    return Err(Problem::new(ErrorCode::INVALID_JSON, format!("The body broke off: {error}")));
                }
            };
            // Trailers say nothing to us.
            let Ok(data) = frame.into_data() else { continue };
            if so_far + data.len() > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            self.reserve_memory(data.len()).await?;
            return Ok(Some(data));
        }
    }

    /// Pays for what has come; what cannot be paid for in time is thrown away with all that came before it.
    async fn reserve_memory(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.allowance.try_grow(&mut self.share, bytes) {
            return Ok(());
        }
        let begun = Instant::now();
        let until = begun + BUDGET_WAIT_MAX.saturating_sub(self.waited);
        // What was asked for is noted in the share already.
        let paid = self.allowance.grow_until(&mut self.share, 0, until).await;
        self.waited += begun.elapsed();
        if paid { Ok(()) } else { Err(Problem::busy()) }
    }
}

pub(super) fn too_large(bytes_max: usize) -> Problem {
    Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {bytes_max} bytes"))
        .with_details(serde_json::json!({"bytes_max": bytes_max}))
}

/// What a body is said to be.
#[derive(Debug, PartialEq, Eq)]
enum BodyMediaType {
    /// What the operation takes, in UTF-8 (RFC 8259 8.1). No type at all is taken for it.
    Expected,
    /// What `curl -d` says of everything: taken when it is JSON after all.
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
    let (message, taken) = match media {
        Media::JsonOrCsv => (
            "The body must be JSON or CSV in UTF-8: send it with Content-Type: application/json or text/csv",
            "application/json, text/csv",
        ),
        _ => ("The body must be JSON in UTF-8: send it with Content-Type: application/json", "application/json"),
    };
    Problem::new(ErrorCode::UNSUPPORTED_MEDIA_TYPE, message).with_header(http::header::ACCEPT, taken)
}

/// An answer's body: bytes, perhaps more that are made meanwhile, and the share of memory that they hold
/// until they are gone.
#[derive(Debug)]
pub struct ResponseBody {
    bytes: Option<Bytes>,
    stream: Option<BodyStream>,
    _share: MemoryShare,
}

impl ResponseBody {
    /// These bytes, holding this share.
    #[must_use]
    pub fn new(bytes: Bytes, share: MemoryShare) -> Self {
        Self::with_stream(bytes, None, share)
    }

    /// These bytes and then more, holding this share.
    #[must_use]
    pub fn with_stream(bytes: Bytes, stream: Option<BodyStream>, share: MemoryShare) -> Self {
        Self { bytes: Some(bytes).filter(|b| !b.is_empty()), stream, _share: share }
    }
}

/// A small answer of a door that is not the API's.
pub(super) fn text_response(status: StatusCode, media_type: &'static str, body: String) -> Response<ResponseBody> {
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
        let Some(more) = &mut self.stream else { return Poll::Ready(None) };
        more.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
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
        let of = |kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            media_type(&headers, Media::Json).ok()
        };
        for good in ["application/json", "Application/JSON; charset=UTF-8", "application/vnd.x+json"] {
            assert_eq!(of(good), Some(BodyMediaType::Expected), "{good}");
        }
        for bad in ["text/plain", "multipart/form-data", "application/json; charset=latin1", ""] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(media_type(&HeaderMap::new(), Media::Json), Ok(BodyMediaType::Expected));
        assert_eq!(of("application/x-www-form-urlencoded"), Some(BodyMediaType::Form));
        assert!(looks_like_json(b" {") && looks_like_json(b"[") && !looks_like_json(b"from=a&to=b"));
        assert_eq!(of("text/csv"), None);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/csv; charset=utf-8".parse().unwrap());
        assert!(media_type(&headers, Media::JsonOrCsv).is_ok());
        assert!(media_type(&headers, Media::Form).is_ok());
    }
}
