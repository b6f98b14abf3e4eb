//! Request bodies that come compressed (`Content-Encoding: gzip` or `zstd`).
//!
//! What is unpacked is bounded by the same size and paid from the same budget as what comes as it is, step
//! by step: a bomb ends at the bound. It is work for a thread of its own: a kilobyte can become a megabyte.
//! What was unpacked of a large body is given back as it goes, so that both forms of it together take hardly more memory
//! than the larger one.
//!
//! A batch of similar emails may unpack to a thousand times what came, as a bomb does; only the size tells them apart. So
//! what expands that far is taken up to the size that the operation says, but one such body at a time is unpacked, of all
//! accounts: however many small ones come, they take one thread.

use std::collections::VecDeque;
use std::io::{self, BufRead, Cursor, ErrorKind, Read};
use std::time::Duration;

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use ruzstd::decoding::StreamingDecoder;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::body::too_large;
use super::budget::{MemoryAllowance, MemoryShare};
use crate::problem::{ErrorCode, Problem};

/// What may stand in `Content-Encoding`, for those who used something else.
const SUPPORTED_ENCODINGS: &str = "gzip, zstd";
/// A body is unpacked at once up to so much, whatever its size …
const DECOMPRESSED_FREE_BYTES: usize = 4 << 20;
/// … and beyond it to so many bytes for each that came. One email compresses to a tenth at best, and attachments, which
/// make bodies large, hardly at all.
const EXPANSION_FREE: usize = 64;
/// A body that expands further waits for its turn …
static EXPANSION_TURN: Semaphore = Semaphore::const_new(1);
/// … and for so long.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// Where the unpacked body begins to grow …
const FIRST_BYTES: usize = 16 << 10;
/// … by doubling, and at most by so much at once.
const GROWTH_BYTES_MAX: usize = 8 << 20;
/// Bytes of a piece of a compressed body.
const PIECE_BYTES: usize = 1 << 20;
/// The largest window of zstd (RFC 9659 3).
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl ContentEncoding {
    /// What a header says; none when the body comes as it is.
    ///
    /// # Errors
    /// 415: an encoding that is not taken, or several.
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut fields = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(only), another) = (fields.next(), fields.next()) else { return Ok(None) };
        let word = only.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        match (word.as_str(), another) {
            ("" | "identity", None) => Ok(None),
            ("gzip" | "x-gzip", None) => Ok(Some(Self::Gzip)),
            ("zstd", None) => Ok(Some(Self::Zstd)),
            _ => {
                let message = "Content-Encoding may be gzip or zstd, one of them, or be left away";
                Err(Problem::new(ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
                    .with_header(ACCEPT_ENCODING, SUPPORTED_ENCODINGS))
            }
        }
    }

    /// Unpacks a body of at most so many bytes, unpacked.
    ///
    /// # Errors
    /// 400 for what is not compressed so, 413, or 503 when too much is in flight.
    pub async fn decompress(
        self,
        packed: CompressedBody,
        bytes_max: usize,
        allowance: &MemoryAllowance,
    ) -> Result<(Bytes, MemoryShare), Problem> {
        let refused = |halt| match halt {
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
        // It is small, and may have to be unpacked from its beginning again.
        let (packed, _share) = packed.into_bytes();
        let near = DecompressionBuffer {
            free_bytes: Some(free_bytes(packed.len())),
            ..DecompressionBuffer::new(bytes_max, allowance.clone())
        };
        match self.decompress_blocking(Cursor::new(packed.clone()), near).await {
            Err(DecompressError::NeedsTurn) => {}
            Err(DecompressError::Rejected(problem)) => return Err(problem),
            Ok(whole) => return Ok(whole),
        }
        let turn = timeout(TURN_WAIT_MAX, EXPANSION_TURN.acquire()).await;
        let _turn = turn.map_err(|_| Problem::busy())?.map_err(Problem::internal)?;
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
                // A body of several frames is all of them (RFC 8878 3).
                while packed.fill_buf().is_ok_and(|rest| !rest.is_empty()) {
                    let frame = StreamingDecoder::new_with_max_window_size(&mut packed, WINDOW_BYTES_MAX);
                    let mut frame = frame.map_err(|error| corrupt_body(&error))?;
                    into.read_all(&mut frame)?;
                    let decoder = frame.into_frame_decoder();
                    let told = decoder.get_checksum_from_data();
                    if told.is_some() && told != decoder.get_calculated_checksum() {
                        return Err(corrupt_body(&"a wrong checksum").into());
                    }
                }
            }
        }
        Ok((into.bytes.into(), into.share))
    }
}

/// A compressed body. What is read of it is freed and given back, piece by piece.
#[derive(Debug, Default)]
pub struct CompressedBody {
    chunks: VecDeque<Vec<u8>>,
    /// What was read of the first piece.
    read: usize,
    share: MemoryShare,
}

impl CompressedBody {
    /// Bytes that are not read yet.
    #[must_use]
    pub fn remaining_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() - self.read
    }

    /// Adds bytes that have come.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.chunks.back().is_none_or(|piece| piece.len() == PIECE_BYTES) {
                self.chunks.push_back(Vec::new());
            }
            let Some(last) = self.chunks.back_mut() else { return };
            let (fits, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - last.len()));
            last.extend_from_slice(fits);
            bytes = rest;
        }
    }

    /// The share that it was paid by.
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
        Ok(self.chunks.front().and_then(|piece| piece.get(self.read..)).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.read += bytes;
        let Some(done) = self.chunks.pop_front_if(|piece| piece.len() <= self.read) else { return };
        self.read = 0;
        self.share.shrink(done.len());
    }
}

/// A body that is being unpacked.
struct DecompressionBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Bytes that are unpacked before the body has its turn.
    free_bytes: Option<usize>,
    allowance: MemoryAllowance,
    share: MemoryShare,
}

/// Why a body is not unpacked.
#[derive(Debug)]
enum DecompressError {
    /// It expands so far that it waits for its turn.
    NeedsTurn,
    /// It is not taken.
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

    /// Takes all that there is, and pays for the room before it is there.
    fn read_all(&mut self, mut from: impl Read) -> Result<(), DecompressError> {
        let most = self.free_bytes.map_or(self.bytes_max, |free| free.min(self.bytes_max));
        let mut piece = vec![0; FIRST_BYTES];
        loop {
            let length = match from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(corrupt_body(&error).into()),
            };
            let wanted = self.bytes.len() + length;
            if wanted > self.bytes_max {
                return Err(too_large(self.bytes_max).into());
            }
            if wanted > most {
                return Err(DecompressError::NeedsTurn);
            }
            let room = self.bytes.capacity();
            if wanted > room {
                let larger = (room + room.min(GROWTH_BYTES_MAX)).clamp(FIRST_BYTES, most.max(FIRST_BYTES)).max(wanted);
                if !self.allowance.try_grow(&mut self.share, larger - room) {
                    return Err(Problem::busy().into());
                }
                self.bytes.reserve_exact(larger - self.bytes.len());
            }
            self.bytes.extend_from_slice(piece.get(..length).unwrap_or_default());
        }
    }
}

fn corrupt_body(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::INVALID_JSON, format!("The body is not compressed as Content-Encoding says: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::budget::{MemoryBudget, MemoryHolder};
    use super::*;
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

    /// A bomb of zstd: blocks that say one byte 128 KiB times.
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
        let allowance = budget.allowance(MemoryHolder::Account(mail::id::AccountId::from_bytes([1; 16])));
        let outcome = match encoding.decompress_inline(packed, DecompressionBuffer::new(bytes_max, allowance)) {
            Ok((bytes, _)) => Ok(bytes.to_vec()),
            Err(DecompressError::Rejected(problem)) => Err(problem),
            Err(DecompressError::NeedsTurn) => panic!("it has its turn"),
        };
        assert_eq!(budget.available_bytes(), left_bytes, "the share goes back");
        outcome
    }

    #[test]
    fn both_ways_and_in_parts() {
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
    fn bombs_end_at_the_bound() {
        let bomb = gzip(&vec![b' '; 32 << 20]);
        assert_eq!(unpack(ContentEncoding::Gzip, &bomb, 1 << 20).unwrap_err().code(), ErrorCode::PAYLOAD_TOO_LARGE);
        let bomb = zstd_bomb(1_000);
        assert_eq!(unpack(ContentEncoding::Zstd, &bomb, 1 << 20).unwrap_err().code(), ErrorCode::PAYLOAD_TOO_LARGE);
        assert_eq!(unpack(ContentEncoding::Zstd, &zstd_bomb(2), 1 << 20).unwrap().len(), 256 << 10);
        // More than is left in the budget.
        let plain = gzip(&noise(80 << 20));
        assert_eq!(unpack(ContentEncoding::Gzip, &plain, 1 << 30).unwrap_err().code(), ErrorCode::SERVICE_UNAVAILABLE);
        // A window of a gigabyte.
        let mut wide = zstd_bomb(1);
        wide[5] = 20 << 3;
        assert_eq!(unpack(ContentEncoding::Zstd, &wide, 1 << 20).unwrap_err().code(), ErrorCode::INVALID_JSON);
    }

    /// What does not compress.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        std::iter::repeat_with(&mut next).take(bytes).collect()
    }

    async fn unpack_in_turn(budget: &MemoryBudget, packed: Vec<u8>) -> Result<usize, ErrorCode> {
        let allowance = budget.allowance(MemoryHolder::Account(mail::id::AccountId::from_bytes([1; 16])));
        let encoding = if packed.starts_with(&[0x1f, 0x8b]) { ContentEncoding::Gzip } else { ContentEncoding::Zstd };
        let mut share = MemoryShare::default();
        assert!(allowance.try_grow(&mut share, packed.len()));
        let mut pieces = CompressedBody::default();
        packed.chunks(100_000).for_each(|piece| pieces.push(piece));
        let unpacked = encoding.decompress(pieces.with_share(share), 144 << 20, &allowance).await;
        unpacked.map(|(bytes, _)| bytes.len()).map_err(|problem| problem.code())
    }

    /// A hundred emails that are nearly the same compress as a bomb does, and are taken.
    #[tokio::test]
    async fn a_batch_of_similar_emails_is_taken() {
        let budget = MemoryBudget::new(360 << 20, 0);
        let page = noise(300 << 10);
        let batch = gzip(&[page.as_slice(), &vec![b' '; 60 << 20]].concat());
        assert!(batch.len() < 400 << 10, "{}", batch.len());
        assert_eq!(unpack_in_turn(&budget, batch).await, Ok((300 << 10) + (60 << 20)));
        // Attachments, which hardly compress, wait for no turn.
        let turn = EXPANSION_TURN.acquire().await.unwrap();
        assert_eq!(unpack_in_turn(&budget, gzip(&noise(13 << 20))).await, Ok(13 << 20));
        drop(turn);
        assert_eq!(budget.available_bytes(), MemoryBudget::new(360 << 20, 0).available_bytes(), "the share goes back");
    }

    /// The largest request that there is, ten files of 10 MiB in base64, is taken by an account that has nothing else in
    /// flight; one byte more than the bound is too large, and no reason to come back.
    #[tokio::test]
    async fn the_largest_request_is_taken_compressed() {
        let piece = noise(1 << 20);
        let stored = |bytes: usize| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            let mut left = bytes;
            while left > 0 {
                let length = left.min(piece.len());
                encoder.write_all(&piece[..length]).unwrap();
                left -= length;
            }
            encoder.finish().unwrap()
        };
        let budget = MemoryBudget::new(crate::room::BYTES_IN_FLIGHT_MAX, crate::room::ACCOUNT_BYTES_MIN);
        let left_bytes = budget.available_bytes();
        let files = 10 * (10 << 20) / 3 * 4;
        assert_eq!(unpack_in_turn(&budget, stored(files)).await, Ok(files));
        assert_eq!(budget.available_bytes(), left_bytes, "the share goes back");
        let (most, bomb) = (144 << 20, gzip(&vec![b' '; (144 << 20) + 1]));
        assert!(bomb.len() < 1 << 20);
        assert_eq!(unpack_in_turn(&budget, bomb).await, Err(ErrorCode::PAYLOAD_TOO_LARGE));
        // Compressed it is just within the bound, unpacked beyond it.
        let two = [stored(most - (1 << 20)), gzip(&vec![b' '; 2 << 20])].concat();
        assert!(two.len() <= most);
        assert_eq!(unpack_in_turn(&budget, two).await, Err(ErrorCode::PAYLOAD_TOO_LARGE));
        assert_eq!(budget.available_bytes(), left_bytes);
    }

    /// Many small bodies that unpack to much take a thread, one after the other, and little memory before their turn.
    #[tokio::test(start_paused = true)]
    async fn what_expands_far_waits_for_its_turn() {
        let budget = MemoryBudget::new(32 << 20, 0);
        let bomb = gzip(&vec![b' '; 58 << 20]);
        assert!(bomb.len() < 64 << 10, "{}", bomb.len());
        let near = budget.allowance(MemoryHolder::Account(mail::id::AccountId::from_bytes([1; 16])));
        let near = DecompressionBuffer {
            free_bytes: Some(free_bytes(bomb.len())),
            ..DecompressionBuffer::new(144 << 20, near)
        };
        assert!(
            matches!(ContentEncoding::Gzip.decompress_inline(&bomb[..], near), Err(DecompressError::NeedsTurn)),
            "within 8 MiB"
        );
        let turn = EXPANSION_TURN.acquire().await.unwrap();
        assert_eq!(unpack_in_turn(&budget, bomb.clone()).await, Err(ErrorCode::SERVICE_UNAVAILABLE), "not its turn");
        drop(turn);
        assert_eq!(unpack_in_turn(&budget, bomb).await, Err(ErrorCode::SERVICE_UNAVAILABLE), "it is paid as it comes");
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_a_body_never_more(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
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
