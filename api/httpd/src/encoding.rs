//! Decompresses request bodies (`Content-Encoding: gzip` or `zstd`).
//!
//! The decompressed size has the same limit as a plain body, and is charged to the same memory budget in steps: a
//! decompression bomb ends at the limit. The work runs on a blocking thread, because a kilobyte can become a
//! megabyte. Chunks of a large compressed body are freed as they are read, so both forms together take hardly more
//! memory than the larger one.
//!
//! A batch of similar emails may expand a thousandfold, like a zip bomb; only the size differs. Bodies that
//! expand that far are accepted up to the operation's limit, but only one of them, over all accounts, is decompressed
//! at a time. So many small bombs occupy one thread.

use std::collections::VecDeque;
use std::io::{self, BufRead, Cursor, ErrorKind, Read};
use std::time::Duration;

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use net::limit::memory_budget::{MemoryAllowance, MemoryShare};
use ruzstd::decoding::StreamingDecoder;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::problem::{ErrorCode, Problem};

/// The `Accept-Encoding` of a 415 response (RFC 9110 12.5.3).
const SUPPORTED_ENCODINGS: &str = "gzip, zstd";
/// Every body may expand to this size at once …
const DECOMPRESSED_FREE_BYTES: usize = 4 << 20;
/// … and beyond it to this many bytes for each compressed byte. One email compresses to a tenth at best; attachments,
/// which make bodies large, hardly compress.
const EXPANSION_FREE: usize = 64;
/// A body that expands further waits for this permit …
static EXPANSION_TURN: Semaphore = Semaphore::const_new(1);
/// … at most this long.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// First size of the buffer for the decompressed body …
const FIRST_BYTES: usize = 16 << 10;
/// … which doubles, but grows at most by this much at once.
const GROWTH_BYTES_MAX: usize = 8 << 20;
/// Size of a chunk of a compressed body.
const PIECE_BYTES: usize = 1 << 20;
/// Largest window of zstd (RFC 9659 3).
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// The content encoding of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    /// gzip, RFC 1952.
    Gzip,
    /// zstd, RFC 8878.
    Zstd,
}

impl ContentEncoding {
    /// The encoding of a request; `None` for a plain body.
    ///
    /// # Errors
    /// 415 for an unsupported encoding, or for several.
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut fields = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(only), second) = (fields.next(), fields.next()) else { return Ok(None) };
        let word = only.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        match (word.as_str(), second) {
            ("" | "identity", None) => Ok(None),
            ("gzip" | "x-gzip", None) => Ok(Some(Self::Gzip)),
            ("zstd", None) => Ok(Some(Self::Zstd)),
            _ => {
                let message = "Content-Encoding must be gzip or zstd, or be omitted";
                Err(Problem::new(ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
                    .with_header(ACCEPT_ENCODING, SUPPORTED_ENCODINGS))
            }
        }
    }

    /// Decompresses a body, up to `bytes_max` decompressed bytes.
    ///
    /// # Errors
    /// 400 for a corrupt body, 413 for a larger one, 503 when the memory budget is exhausted.
    pub async fn decompress(
        self,
        packed: CompressedBody,
        bytes_max: usize,
        allowance: &MemoryAllowance,
    ) -> Result<(Bytes, MemoryShare), Problem> {
        let refused = |error| match error {
            DecompressError::Rejected(problem) => problem,
            DecompressError::NeedsTurn => too_large(bytes_max),
        };
        if packed.remaining_bytes() == 0 {
            return Ok((Bytes::new(), packed.share));
        }
        if free_bytes(packed.remaining_bytes()) >= bytes_max {
            let into = DecompressionBuffer::new(bytes_max, allowance.clone());
            return self.decompress_blocking(packed, into).await.map_err(refused);
        }
        // Keep the small compressed body: a second try starts from its beginning.
        let (packed, _share) = packed.into_bytes();
        let buffer = DecompressionBuffer {
            free_bytes: Some(free_bytes(packed.len())),
            ..DecompressionBuffer::new(bytes_max, allowance.clone())
        };
        match self.decompress_blocking(Cursor::new(packed.clone()), buffer).await {
            Err(DecompressError::NeedsTurn) => {}
            Err(DecompressError::Rejected(problem)) => return Err(problem),
            Ok(unpacked) => return Ok(unpacked),
        }
        let permit = timeout(TURN_WAIT_MAX, EXPANSION_TURN.acquire()).await;
        let _turn = permit.map_err(|_| Problem::busy())?.map_err(Problem::internal)?;
        let into = DecompressionBuffer::new(bytes_max, allowance.clone());
        self.decompress_blocking(Cursor::new(packed), into).await.map_err(refused)
    }

    async fn decompress_blocking(
        self,
        packed: impl BufRead + Send + 'static,
        into: DecompressionBuffer,
    ) -> Result<(Bytes, MemoryShare), DecompressError> {
        let unpacking = tokio::task::spawn_blocking(move || self.decompress_inline(packed, into));
        unpacking.await.map_err(|error| DecompressError::Rejected(Problem::internal(error)))?
    }

    fn decompress_inline(
        self,
        mut packed: impl BufRead,
        mut into: DecompressionBuffer,
    ) -> Result<(Bytes, MemoryShare), DecompressError> {
        match self {
            Self::Gzip => into.read_all(MultiGzDecoder::new(packed))?,
            Self::Zstd => {
                // A zstd body may have several frames (RFC 8878 3).
                while packed.fill_buf().is_ok_and(|rest| !rest.is_empty()) {
                    let frame = StreamingDecoder::new_with_max_window_size(&mut packed, WINDOW_BYTES_MAX);
                    let mut frame = frame.map_err(|error| corrupt_body(&error))?;
                    into.read_all(&mut frame)?;
                    let decoder = frame.into_frame_decoder();
                    let expected = decoder.get_checksum_from_data();
                    if expected.is_some() && expected != decoder.get_calculated_checksum() {
                        return Err(corrupt_body(&"wrong checksum").into());
                    }
                }
            }
        }
        Ok((into.bytes.into(), into.share))
    }
}

/// A compressed body. Chunks that have been read are freed, and their memory is released to the budget.
#[derive(Debug, Default)]
pub struct CompressedBody {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes read of the first chunk.
    read: usize,
    share: MemoryShare,
}

impl CompressedBody {
    /// Bytes that have not been read yet.
    pub fn remaining_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() - self.read
    }

    /// Appends received bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.chunks.back().is_none_or(|chunk| chunk.len() == PIECE_BYTES) {
                self.chunks.push_back(Vec::new());
            }
            let Some(last) = self.chunks.back_mut() else { return };
            let (head, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - last.len()));
            last.extend_from_slice(head);
            bytes = rest;
        }
    }

    /// Attaches the memory share that the bytes were charged to.
    #[must_use]
    pub fn with_share(self, share: MemoryShare) -> Self {
        Self { share, ..self }
    }

    fn into_bytes(self) -> (Bytes, MemoryShare) {
        (self.chunks.into_iter().flatten().collect::<Vec<u8>>().into(), self.share)
    }
}

impl Read for CompressedBody {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for CompressedBody {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.chunks.front().and_then(|chunk| chunk.get(self.read..)).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.read += bytes;
        let Some(done) = self.chunks.pop_front_if(|chunk| chunk.len() <= self.read) else { return };
        self.read = 0;
        self.share.shrink(done.len());
    }
}

/// The decompressed part of a body.
struct DecompressionBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Limit before the body must wait for [`EXPANSION_TURN`]; `None` once it holds the permit.
    free_bytes: Option<usize>,
    allowance: MemoryAllowance,
    share: MemoryShare,
}

/// Why decompression stopped.
#[derive(Debug)]
enum DecompressError {
    /// The body expands so far that it needs [`EXPANSION_TURN`].
    NeedsTurn,
    /// The body is refused.
    Rejected(Problem),
}

impl From<Problem> for DecompressError {
    fn from(problem: Problem) -> Self {
        Self::Rejected(problem)
    }
}

fn free_bytes(packed: usize) -> usize {
    DECOMPRESSED_FREE_BYTES.saturating_add(packed.saturating_mul(EXPANSION_FREE))
}

impl DecompressionBuffer {
    fn new(bytes_max: usize, allowance: MemoryAllowance) -> Self {
        Self { bytes: Vec::new(), bytes_max, free_bytes: None, allowance, share: MemoryShare::default() }
    }

    /// Reads everything, and charges memory to the budget before it allocates.
    fn read_all(&mut self, mut from: impl Read) -> Result<(), DecompressError> {
        let limit = self.free_bytes.map_or(self.bytes_max, |free| free.min(self.bytes_max));
        let mut chunk = vec![0; FIRST_BYTES];
        loop {
            let length = match from.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(corrupt_body(&error).into()),
            };
            let needed = self.bytes.len() + length;
            if needed > self.bytes_max {
                return Err(too_large(self.bytes_max).into());
            }
            if needed > limit {
                return Err(DecompressError::NeedsTurn);
            }
            let capacity = self.bytes.capacity();
            if needed > capacity {
                let larger =
                    (capacity + capacity.min(GROWTH_BYTES_MAX)).clamp(FIRST_BYTES, limit.max(FIRST_BYTES)).max(needed);
                if !self.allowance.try_grow(&mut self.share, larger - capacity) {
                    return Err(Problem::busy().into());
                }
                self.bytes.reserve_exact(larger - self.bytes.len());
            }
            self.bytes.extend_from_slice(chunk.get(..length).unwrap_or_default());
        }
    }
}

fn corrupt_body(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::INVALID_JSON, format!("The body does not match its Content-Encoding: {error}"))
}

/// 413: the body exceeds the operation's limit.
pub(super) fn too_large(bytes_max: usize) -> Problem {
    Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {bytes_max} bytes"))
        .with_details(serde_json::json!({"bytes_max": bytes_max}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::limit::memory_budget::{MemoryBudget, MemoryHolder};
    use proptest::prelude::*;
    use std::io::Write as _;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    /// A zstd bomb: blocks that repeat one byte 128 KiB times.
    fn zstd_bomb(blocks: usize) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
        for n in 1..=blocks {
            let header: u32 = (128 << 10) << 3 | 1 << 1 | u32::from(n == blocks);
            frame.extend_from_slice(&header.to_le_bytes()[..3]);
            frame.push(b' ');
        }
        frame
    }

    fn unpack(encoding: ContentEncoding, packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Problem> {
        let budget = MemoryBudget::new(64 << 20, 0);
        let left_bytes = budget.available_bytes();
        let allowance = budget.allowance(MemoryHolder::Account(model::id::AccountId::from_bytes([1; 16])));
        let outcome = match encoding.decompress_inline(packed, DecompressionBuffer::new(bytes_max, allowance)) {
            Ok((bytes, _)) => Ok(bytes.to_vec()),
            Err(DecompressError::Rejected(problem)) => Err(problem),
            Err(DecompressError::NeedsTurn) => panic!("the permit is held"),
        };
        assert_eq!(budget.available_bytes(), left_bytes, "the share is released");
        outcome
    }

    #[test]
    fn both_encodings_and_multiple_frames() {
        let text = b"{\"a\": 1}".repeat(10_000);
        for (encoding, packed) in [(ContentEncoding::Gzip, gzip(&text)), (ContentEncoding::Zstd, zstd(&text))] {
            assert_eq!(unpack(encoding, &packed, text.len()).unwrap(), text);
            assert_eq!(unpack(encoding, &packed.repeat(2), 2 * text.len()).unwrap(), text.repeat(2));
            assert_eq!(unpack(encoding, &packed, text.len() - 1).unwrap_err().code(), ErrorCode::PAYLOAD_TOO_LARGE);
            let cut = &packed[..packed.len() - 1];
            assert_eq!(unpack(encoding, cut, text.len()).unwrap_err().code(), ErrorCode::INVALID_JSON);
            assert_eq!(unpack(encoding, b"{}", 10).unwrap_err().code(), ErrorCode::INVALID_JSON);
            assert_eq!(unpack(encoding, b"", 10).is_err(), encoding == ContentEncoding::Gzip);
        }
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let bomb = gzip(&vec![b' '; 32 << 20]);
        assert_eq!(unpack(ContentEncoding::Gzip, &bomb, 1 << 20).unwrap_err().code(), ErrorCode::PAYLOAD_TOO_LARGE);
        let bomb = zstd_bomb(1_000);
        assert_eq!(unpack(ContentEncoding::Zstd, &bomb, 1 << 20).unwrap_err().code(), ErrorCode::PAYLOAD_TOO_LARGE);
        assert_eq!(unpack(ContentEncoding::Zstd, &zstd_bomb(2), 1 << 20).unwrap().len(), 256 << 10);
        // More than the budget has left.
        let plain = gzip(&noise(80 << 20));
        assert_eq!(unpack(ContentEncoding::Gzip, &plain, 1 << 30).unwrap_err().code(), ErrorCode::SERVICE_UNAVAILABLE);
        // A window of one gigabyte.
        let mut frame = zstd_bomb(1);
        frame[5] = 20 << 3;
        assert_eq!(unpack(ContentEncoding::Zstd, &frame, 1 << 20).unwrap_err().code(), ErrorCode::INVALID_JSON);
    }

    /// Incompressible bytes.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        std::iter::repeat_with(&mut next).take(bytes).collect()
    }

    async fn unpack_in_turn(budget: &MemoryBudget, packed: Vec<u8>) -> Result<usize, ErrorCode> {
        let allowance = budget.allowance(MemoryHolder::Account(model::id::AccountId::from_bytes([1; 16])));
        let encoding = if packed.starts_with(&[0x1f, 0x8b]) { ContentEncoding::Gzip } else { ContentEncoding::Zstd };
        let mut share = MemoryShare::default();
        assert!(allowance.try_grow(&mut share, packed.len()));
        let mut compressed = CompressedBody::default();
        packed.chunks(100_000).for_each(|chunk| compressed.push(chunk));
        let unpacked = encoding.decompress(compressed.with_share(share), 144 << 20, &allowance).await;
        unpacked.map(|(bytes, _)| bytes.len()).map_err(|problem| problem.code())
    }

    /// A hundred nearly equal emails compress like a bomb and are accepted.
    #[tokio::test]
    async fn batch_of_similar_emails_is_accepted() {
        let budget = MemoryBudget::new(360 << 20, 0);
        let page = noise(300 << 10);
        let batch = gzip(&[page.as_slice(), &vec![b' '; 60 << 20]].concat());
        assert!(batch.len() < 400 << 10, "{}", batch.len());
        assert_eq!(unpack_in_turn(&budget, batch).await, Ok((300 << 10) + (60 << 20)));
        // Attachments hardly compress, so they do not wait for the permit.
        let permit = EXPANSION_TURN.acquire().await.unwrap();
        assert_eq!(unpack_in_turn(&budget, gzip(&noise(13 << 20))).await, Ok(13 << 20));
        drop(permit);
        assert_eq!(
            budget.available_bytes(),
            MemoryBudget::new(360 << 20, 0).available_bytes(),
            "the share is released"
        );
    }

    /// The largest request, ten files of 10 MiB in base64, is accepted from an account without other requests. One
    /// more byte is too large: 413, not a retryable error.
    #[tokio::test]
    async fn largest_request_is_accepted_compressed() {
        let chunk = noise(1 << 20);
        let stored = |bytes: usize| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            let mut remaining = bytes;
            while remaining > 0 {
                let length = remaining.min(chunk.len());
                encoder.write_all(&chunk[..length]).unwrap();
                remaining -= length;
            }
            encoder.finish().unwrap()
        };
        let budget = MemoryBudget::new(400 << 20, 160 << 20);
        let left_bytes = budget.available_bytes();
        let files = 10 * (10 << 20) / 3 * 4;
        assert_eq!(unpack_in_turn(&budget, stored(files)).await, Ok(files));
        assert_eq!(budget.available_bytes(), left_bytes, "the share is released");
        let (limit, bomb) = (144 << 20, gzip(&vec![b' '; (144 << 20) + 1]));
        assert!(bomb.len() < 1 << 20);
        assert_eq!(unpack_in_turn(&budget, bomb).await, Err(ErrorCode::PAYLOAD_TOO_LARGE));
        // The compressed body is just within the limit, the decompressed one beyond it.
        let frames = [stored(limit - (1 << 20)), gzip(&vec![b' '; 2 << 20])].concat();
        assert!(frames.len() <= limit);
        assert_eq!(unpack_in_turn(&budget, frames).await, Err(ErrorCode::PAYLOAD_TOO_LARGE));
        assert_eq!(budget.available_bytes(), left_bytes);
    }

    /// Many small bodies that expand far use one thread, one after the other, and little memory while they wait.
    #[tokio::test(start_paused = true)]
    async fn high_expansion_needs_the_permit() {
        let budget = MemoryBudget::new(32 << 20, 0);
        let bomb = gzip(&vec![b' '; 58 << 20]);
        assert!(bomb.len() < 64 << 10, "{}", bomb.len());
        let allowance = budget.allowance(MemoryHolder::Account(model::id::AccountId::from_bytes([1; 16])));
        let buffer = DecompressionBuffer {
            free_bytes: Some(free_bytes(bomb.len())),
            ..DecompressionBuffer::new(144 << 20, allowance)
        };
        assert!(
            matches!(ContentEncoding::Gzip.decompress_inline(&bomb[..], buffer), Err(DecompressError::NeedsTurn)),
            "within 8 MiB"
        );
        let permit = EXPANSION_TURN.acquire().await.unwrap();
        assert_eq!(
            unpack_in_turn(&budget, bomb.clone()).await,
            Err(ErrorCode::SERVICE_UNAVAILABLE),
            "the permit is taken"
        );
        drop(permit);
        assert_eq!(
            unpack_in_turn(&budget, bomb).await,
            Err(ErrorCode::SERVICE_UNAVAILABLE),
            "memory is charged in steps"
        );
    }

    proptest! {
        #[test]
        fn corrupt_bodies_never_exceed_the_limit(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let text: Vec<u8> = (0..2_000u32).flat_map(|n| (n * n).to_le_bytes()).collect();
            for (encoding, mut packed) in [(ContentEncoding::Gzip, gzip(&text)), (ContentEncoding::Zstd, zstd(&text))] {
                let at = at % packed.len();
                packed[at] = byte;
                packed.truncate(packed.len() - cut % packed.len());
                let _ = unpack(encoding, &packed, 1 << 20);
            }
        }
    }
}
