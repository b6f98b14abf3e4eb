//! Receives message content, by DATA (RFC 5321 4.5.2) and by BDAT (RFC 3030).
//!
//! ```text
//! DATA ─► DotReceiver ───┐
//!                        ├─► ContentBuffer ─► (Bytes, MessageMemory)
//! BDAT ─► ChunkReceiver ─┘        └─► MessageMemory (budget of all sessions)
//! ```
//!
//! [`ContentBuffer`] is bounded by the size limit of one message and by the content budget. It allocates exactly as
//! much as the budget grants. [`DotReceiver`] finds line ends with memchr and copies whole runs between the dots that
//! it removes. Its state is one byte, so a chunk can end anywhere. [`ChunkReceiver`] checks line ends.
//!
//! Lines end only in CRLF, and DATA content ends only in CRLF.CRLF. Content with a bare CR or LF is read to its real
//! end, so that no part of it is read as commands (SMTP smuggling), and is then refused.

use bytes::Bytes;
use memchr::memchr2;

use crate::content_budget::MessageMemory;
use crate::limits::{CONTENT_BYTES_FIRST, DECLARED_BYTES_TRUSTED, OVERRUN_FACTOR};
use crate::replies;

/// A buffer of at least this size grows by this many bytes, or by a quarter of its capacity if that is more.
const GROW_BYTES: usize = 1 << 20;
/// Unused capacity that a finished message may keep, in addition to half its size.
const SLACK_BYTES_MAX: usize = 1024;

/// The reason why content is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    BareLineEnd,
    /// A NUL (RFC 6152 2). Some hosts drop it, and a dot after it could then end the message.
    Nul,
    /// Larger than the size limit of a message.
    TooLarge,
    /// The content budget is exhausted, or the message was aborted in favour of another.
    InsufficientMemory,
}

impl ContentError {
    /// The error with the higher precedence is reported.
    fn precedence(self) -> u8 {
        match self {
            Self::BareLineEnd => 2,
            Self::Nul => 1,
            Self::TooLarge | Self::InsufficientMemory => 0,
        }
    }

    pub(crate) fn reply(self) -> &'static str {
        match self {
            Self::BareLineEnd => replies::BARE_IN_CONTENT,
            Self::Nul => replies::NUL_IN_CONTENT,
            Self::TooLarge => replies::TOO_LARGE,
            Self::InsufficientMemory => replies::INSUFFICIENT_MEMORY,
        }
    }
}

/// The content received so far.
#[derive(Debug)]
pub struct ContentBuffer {
    /// Its capacity never exceeds the bytes that `memory` holds: it grows by exactly what the budget grants.
    bytes: Vec<u8>,
    bytes_max: u64,
    /// The expected size: SIZE if the client declared it, else `bytes_max`.
    expected: u64,
    memory: MessageMemory,
    pub(crate) received_bytes: u64,
    error: Option<ContentError>,
    /// False for BINARYMIME, which may contain NULs.
    is_text: bool,
}

impl ContentBuffer {
    /// Creates an empty buffer. `declared` is the SIZE parameter of MAIL.
    pub fn new(bytes_max: u64, declared: Option<u64>, mut memory: MessageMemory) -> Self {
        let first = declared.map_or(CONTENT_BYTES_FIRST, |size| {
            usize::try_from(size).unwrap_or(usize::MAX).clamp(1, DECLARED_BYTES_TRUSTED)
        });
        let fits = memory.grow(first);
        Self {
            bytes: if fits { Vec::with_capacity(first) } else { Vec::new() },
            bytes_max,
            expected: declared.unwrap_or(bytes_max),
            memory,
            received_bytes: 0,
            error: (!fits).then_some(ContentError::InsufficientMemory),
            is_text: true,
        }
    }

    /// The first or most significant error so far.
    pub fn error(&self) -> Option<ContentError> {
        self.error
    }

    /// Returns whether so much was received that reading to the end is no longer worthwhile.
    pub fn is_overrun(&self) -> bool {
        self.received_bytes > self.bytes_max.saturating_mul(OVERRUN_FACTOR)
    }

    /// Records the error, discards the content and releases its memory. Errors in the bytes take precedence over their
    /// number, so that the reply does not depend on how the network split the content.
    fn reject(&mut self, flaw: ContentError) {
        if self.error.is_none_or(|known| flaw.precedence() > known.precedence()) {
            self.error = Some(flaw);
        }
        self.bytes = Vec::new();
        self.memory.release();
    }

    fn append(&mut self, run: &[u8]) {
        self.received_bytes += run.len() as u64;
        if self.is_text && memchr::memchr(0, run).is_some() {
            return self.reject(ContentError::Nul);
        }
        if self.error.is_some() || run.is_empty() {
            return;
        }
        let size = self.bytes.len() + run.len();
        if size as u64 > self.bytes_max {
            return self.reject(ContentError::TooLarge);
        }

        if size > self.bytes.capacity() && !self.reserve(size) {
            return self.reject(ContentError::InsufficientMemory);
        }
        self.bytes.extend_from_slice(run);
    }

    /// Reserves capacity for `size` bytes and some more. The buffer doubles up to a mebibyte. From there it grows by a
    /// mebibyte or a quarter of its capacity, whichever is more. So there are few copies, and little memory is reserved
    /// without use. If the budget refuses a quarter, a mebibyte is tried.
    fn reserve(&mut self, size: usize) -> bool {
        let capacity = self.bytes.capacity();
        let expected = if size as u64 <= self.expected { self.expected } else { self.bytes_max };
        let left = usize::try_from(expected).unwrap_or(usize::MAX).saturating_sub(capacity);
        let step = |bytes: usize| bytes.min(capacity).min(left).max(size - capacity);
        let (needed, preferred) = (step(GROW_BYTES), step(GROW_BYTES.max(capacity / 4)));
        let Some(added) = self.memory.grow_between(needed, preferred) else { return false };
        self.bytes.reserve_exact(capacity + added - self.bytes.len());
        true
    }

    /// Returns the content and its memory, without another copy unless much capacity is unused.
    ///
    /// # Errors
    /// The [`ContentError`] of the content.
    pub fn finish(mut self) -> Result<(Bytes, MessageMemory), ContentError> {
        match self.error {
            Some(flaw) => Err(flaw),
            None if !self.memory.complete() => Err(ContentError::InsufficientMemory),
            // A small message in a large first allocation would hold all of it while it waits in the queue.
            None if self.bytes.capacity() > self.bytes.len() / 2 * 3 + SLACK_BYTES_MAX => {
                Ok((Bytes::copy_from_slice(&self.bytes), self.memory))
            }
            None => Ok((Bytes::from(self.bytes), self.memory)),
        }
    }
}

/// Position of the next byte within its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum DotState {
    #[default]
    LineStart,
    /// After a dot at the start of a line; the dot is removed.
    Dot,
    /// After the dot and a CR.
    DotCr,
    Middle,
    /// After a CR.
    Cr,
}

/// Reads content after DATA and removes dot-stuffing.
#[derive(Debug, Default)]
pub struct DotReceiver {
    state: DotState,
}

impl DotReceiver {
    /// Processes a chunk. `Some(n)` means that the content ended with the chunk's first `n` bytes. `None` means that
    /// the whole chunk was content.
    pub fn push(&mut self, chunk: &[u8], content: &mut ContentBuffer) -> Option<usize> {
        // chunk[run..next] is content that is not yet appended.
        let (mut run, mut next) = (0, 0);
        while let Some(&byte) = chunk.get(next) {
            match self.state {
                DotState::LineStart if byte == b'.' => {
                    content.append(&chunk[run..next]);
                    next += 1;
                    run = next;
                    self.state = DotState::Dot;
                }
                DotState::LineStart => self.state = DotState::Middle,
                DotState::Dot if byte == b'\r' => {
                    // Not appended: the CR either belongs to the end, or it is bare and the content is refused.
                    next += 1;
                    run = next;
                    self.state = DotState::DotCr;
                }
                DotState::Dot => self.state = DotState::Middle,
                DotState::DotCr if byte == b'\n' => return Some(next + 1),
                DotState::DotCr => {
                    content.reject(ContentError::BareLineEnd);
                    self.state = DotState::Cr;
                }
                DotState::Middle => match memchr2(b'\r', b'\n', &chunk[next..]) {
                    None => next = chunk.len(),
                    Some(n) => {
                        let is_cr = chunk[next + n] == b'\r';
                        next += n + 1;
                        if is_cr {
                            self.state = DotState::Cr;
                        } else {
                            content.reject(ContentError::BareLineEnd);
                        }
                    }
                },
                DotState::Cr => {
                    self.state = match byte {
                        b'\n' => DotState::LineStart,
                        b'\r' => DotState::Cr,
                        _ => DotState::Middle,
                    };
                    if byte != b'\n' {
                        content.reject(ContentError::BareLineEnd);
                    }
                    // The byte after a bare CR is processed again, as part of the line.
                    next += usize::from(self.state != DotState::Middle);
                }
            }
        }
        content.append(&chunk[run..next]);
        None
    }
}

/// Reads BDAT chunks. Lines must end in CRLF here too, except in the body of a BINARYMIME message: its header consists
/// of lines as in any message (RFC 3030 3). Parsers differ on a bare CR or LF: some would see header fields where
/// others see none.
#[derive(Debug, Default)]
pub struct ChunkReceiver {
    after_cr: bool,
    /// Bytes of the current line were received.
    in_line: bool,
    /// The empty line that ends the header was received.
    is_body: bool,
}

impl ChunkReceiver {
    /// Processes bytes of a chunk, all of which are content.
    pub fn push(&mut self, chunk: &[u8], binary: bool, content: &mut ContentBuffer) {
        let is_free = binary && self.is_body;
        if !is_free && !self.check_line_ends(chunk, binary) {
            content.reject(ContentError::BareLineEnd);
        }
        content.is_text = !binary;
        content.append(chunk);
    }

    fn check_line_ends(&mut self, chunk: &[u8], header_only: bool) -> bool {
        let mut next = 0;
        while next < chunk.len() {
            if self.after_cr {
                if chunk[next] != b'\n' {
                    return false;
                }
                self.after_cr = false;
                self.is_body |= !std::mem::take(&mut self.in_line);
                next += 1;
                if header_only && self.is_body {
                    return true;
                }
                continue;
            }
            match memchr2(b'\r', b'\n', &chunk[next..]) {
                None => {
                    self.in_line = true;
                    return true;
                }
                Some(n) if chunk[next + n] == b'\n' => return false,
                Some(n) => {
                    self.in_line |= n > 0;
                    self.after_cr = true;
                    next += n + 1;
                }
            }
        }
        true
    }

    /// Ends the content after the last chunk. A CR at the very end is bare. Text without a final CRLF gets one.
    pub fn finish(&mut self, binary: bool, content: &mut ContentBuffer) {
        if binary && (self.is_body || !self.after_cr) {
            return;
        }
        if self.after_cr {
            content.reject(ContentError::BareLineEnd);
        } else if !content.bytes.is_empty() && !content.bytes.ends_with(b"\r\n") {
            content.append(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_budget::{ContentBudget, MemoryReservation};
    use net::limit::fair_share::QuotaHolder;
    use proptest::prelude::*;
    use std::sync::Arc;
    use tokio::time::Instant;

    /// The result of a simple reference implementation: the content or its error, and the position of its end.
    type Read = Option<(Result<Vec<u8>, ContentError>, usize)>;

    fn reserve(budget: &Arc<ContentBudget>) -> Arc<MemoryReservation> {
        budget.reserve([QuotaHolder::for_site([192, 0, 2, 1].into())], Instant::now())
    }

    fn receive(chunks: &[&[u8]], bytes_max: u64) -> Read {
        let budget = ContentBudget::new(1 << 20);
        let mut content = ContentBuffer::new(bytes_max, Some(1), MessageMemory::new(&reserve(&budget)));
        let mut receiver = DotReceiver::default();
        let mut before = 0;
        for chunk in chunks {
            if let Some(n) = receiver.push(chunk, &mut content) {
                let read = content.finish().map(|(bytes, _)| bytes.to_vec());
                assert!(budget.free_bytes() == 1 << 20, "the budget is released");
                return Some((read, before + n));
            }
            before += chunk.len();
        }
        None
    }

    /// RFC 5321 4.5.2, literally: finds CRLF.CRLF (the CRLF before the content counts), then checks each line.
    fn reference(bytes: &[u8], bytes_max: u64) -> Read {
        let mut with_start = b"\r\n".to_vec();
        with_start.extend_from_slice(bytes);
        let end = with_start.windows(5).position(|w| w == b"\r\n.\r\n")?;
        let (content, used) = (&bytes[..end], end + 3);
        let mut unstuffed = Vec::new();
        let mut rest = content;
        while !rest.is_empty() {
            let line_end = rest.windows(2).position(|w| w == b"\r\n").map_or(rest.len(), |n| n + 2);
            let (line, after) = rest.split_at(line_end);
            unstuffed.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            rest = after;
        }
        let bare = content.iter().enumerate().any(|(n, b)| match b {
            b'\r' => content.get(n + 1) != Some(&b'\n'),
            b'\n' => n == 0 || content[n - 1] != b'\r',
            _ => false,
        });
        let too_large = unstuffed.len() as u64 > bytes_max;
        Some((
            if bare {
                Err(ContentError::BareLineEnd)
            } else if content.contains(&0) {
                Err(ContentError::Nul)
            } else if too_large {
                Err(ContentError::TooLarge)
            } else {
                Ok(unstuffed)
            },
            used,
        ))
    }

    #[test]
    fn the_end_is_found_and_dots_are_unstuffed() {
        for (wire, content) in [
            (&b".\r\n"[..], &b""[..]),
            (b"a\r\n.\r\n", b"a\r\n"),
            (b"..\r\n.\r\n", b".\r\n"),
            (b"..a\r\n...\r\n.\r\nQUIT\r\n", b".a\r\n..\r\n"),
            (b"\r\n.\r\n", b"\r\n"),
            (b".a\r\n.\r\n", b"a\r\n"),
        ] {
            let (read, used) = receive(&[wire], 100).unwrap();
            assert_eq!(read.as_deref(), Ok(content));
            assert!(wire[..used].ends_with(b".\r\n"));
        }
    }

    #[test]
    fn bare_line_ends_do_not_end_the_content() {
        for end in [
            "\n.\n",
            "\n.\r\n",
            "\r\n.\n",
            "\r.\r",
            "\r.\r\n",
            "\r\n.\r",
            "\n.\r",
            "\r.\n",
            "\r\n\0.\r\n",
            "\r\n.\0\r\n",
            "\n\n.\r\n",
            "\r\r\n.\r\r\n",
        ] {
            assert_eq!(receive(&[b"a", end.as_bytes(), b"MAIL FROM:<x@y.example>\r\n"], 100), None, "{end:?}");
        }
    }

    #[test]
    fn the_budget_bounds_all_messages() {
        let budget = ContentBudget::new(100);
        let mut content = ContentBuffer::new(1_000, Some(1), MessageMemory::new(&reserve(&budget)));
        assert_eq!(DotReceiver::default().push(&[b'a'; 200], &mut content), None);
        assert_eq!(content.finish().unwrap_err(), ContentError::InsufficientMemory);
        assert!(budget.free_bytes() == 100);
        assert_eq!(
            ContentBuffer::new(1_000, Some(101), MessageMemory::new(&reserve(&budget))).error(),
            Some(ContentError::InsufficientMemory)
        );
    }

    /// Regression: the buffer of a message of 24 MiB was doubled although only a quarter more was held for it.
    #[test]
    fn no_message_uses_more_memory_than_it_acquired() {
        for (declared, size) in [(None, 24 << 20), (Some(24 << 20), 24 << 20), (Some(1), 10 << 10)] {
            let budget = ContentBudget::new(64 << 20);
            let mut content = ContentBuffer::new(36 << 20, declared, MessageMemory::new(&reserve(&budget)));
            for _ in 0..size / 10_240 {
                content.append(&[b'a'; 10_240]);
                assert!(budget.used_bytes() >= content.bytes.capacity(), "{declared:?} {}", content.bytes.len());
            }
            assert!(budget.used_bytes() <= (size + size / 4).max(32 << 10), "{declared:?} {}", budget.used_bytes());
            let (bytes, memory) = content.finish().unwrap();
            assert!(budget.used_bytes() >= bytes.len());
            drop(memory);
        }
    }

    #[test]
    fn chunks_keep_their_line_ends() {
        let budget = ContentBudget::new(1 << 20);
        let read = |chunks: &[&[u8]], binary| {
            let mut content = ContentBuffer::new(100, None, MessageMemory::new(&reserve(&budget)));
            let mut receiver = ChunkReceiver::default();
            chunks.iter().for_each(|chunk| receiver.push(chunk, binary, &mut content));
            receiver.finish(binary, &mut content);
            content.finish().map(|(bytes, _)| bytes.to_vec())
        };
        assert_eq!(read(&[b"a\r", b"\nb"], false).as_deref(), Ok(&b"a\r\nb\r\n"[..]));
        assert_eq!(read(&[b".\r\n.\r\n"], false).as_deref(), Ok(&b".\r\n.\r\n"[..]));
        for bare in [&b"a\nb"[..], b"a\rb", b"a\r"] {
            assert_eq!(read(&[bare], false), Err(ContentError::BareLineEnd));
            // The header consists of lines, whatever the body is.
            assert_eq!(read(&[bare], true), Err(ContentError::BareLineEnd));
            let body = [b"A: b\r\n\r\n", bare].concat();
            assert_eq!(read(&[&body], true).as_deref(), Ok(&body[..]));
            for cut in 0..body.len() {
                let (one, two) = body.split_at(cut);
                assert_eq!(read(&[one, two], true).as_deref(), Ok(&body[..]), "{cut}");
                assert_eq!(read(&[one, two], false), Err(ContentError::BareLineEnd), "{cut}");
            }
        }
        assert_eq!(read(&[b"A: b"], true).as_deref(), Ok(&b"A: b"[..]));
    }

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(&b"\r\n"[..]), 4 => Just(&b"."[..]), 1 => Just(&b"\r"[..]), 1 => Just(&b"\n"[..]),
            3 => Just(&b"ab"[..]), 1 => Just(&b"\r\n.\r\n"[..]), 1 => Just(&b"\0"[..]),
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_chunks_give_the_same_content(bytes in hostile(), cuts in proptest::collection::vec(0usize..64, 0..6), max in 0u64..40) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|n| n.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let whole = reference(&bytes, max);
            prop_assert_eq!(receive(&chunks, max), whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(receive(&single, max), receive(&chunks, max));
        }
    }
}
