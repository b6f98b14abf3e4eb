//! Receiving a message's content, by DATA (RFC 5321 4.5.2) and by BDAT (RFC 3030).
//!
//! Both keep what comes in one [`Content`], which grows against the limit of one message and the
//! budget of all, and allocates what the budget granted, no more. [`DotReceiver`] looks for line ends with
//! memchr and copies whole runs between the dots that it takes out; its state is one byte, so a chunk may end
//! anywhere. [`ChunkReceiver`] counts.
//!
//! Lines end in CRLF and content ends in CRLF.CRLF, nothing else. A bare CR or LF is a flaw: the rest
//! is read to the real end, so that nothing of it can pass for commands, and then refused.

use bytes::Bytes;
use memchr::memchr2;

use crate::budget::MessageMemory;
use crate::limits::{CONTENT_BYTES_FIRST, DECLARED_BYTES_TRUSTED, OVERRUN_FACTOR};
use crate::replies;

/// Room for a message grows by so much, or by a quarter of it.
const GROW_BYTES: usize = 1 << 20;
/// Unused room that a message may keep beside half its size.
const SLACK_BYTES_MAX: usize = 1024;

/// Why content is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    /// A CR without LF, or an LF without CR.
    BareLineEnd,
    /// A NUL (RFC 6152 2): some hosts drop it, and then a dot that it stood before ends the message.
    Nul,
    /// Larger than a message may be.
    TooLarge,
    /// The budget has no more for it, or it was cut off for one that comes faster.
    InsufficientMemory,
}

impl ContentError {
    /// Which of two flaws is told.
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

/// Content on its way in.
#[derive(Debug)]
pub struct ContentBuffer {
    /// Its capacity is never more than `held` is: it grows by just so much as is granted.
    bytes: Vec<u8>,
    bytes_max: u64,
    /// So large it will be, as far as is known.
    expected: u64,
    memory: MessageMemory,
    received_bytes: u64,
    error: Option<ContentError>,
    /// Not BINARYMIME: a NUL has no place in it.
    is_text: bool,
}

impl ContentBuffer {
    /// Nothing yet. `declared` is SIZE, when it was given.
    #[must_use]
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

    /// What is wrong with it so far.
    #[must_use]
    pub fn error(&self) -> Option<ContentError> {
        self.error
    }

    /// Whether so much came that reading to its end is no longer worth while.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.received_bytes > self.bytes_max.saturating_mul(OVERRUN_FACTOR)
    }

    /// Bytes that came, kept or not.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Makes it worthless; the memory goes back at once. What is wrong with the bytes outweighs
    /// their number, so that the reply does not depend on how the network cut them.
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

    /// Makes room for so many bytes and some more: as many again, but from a mebibyte on no more than that or a quarter
    /// of what there is, so that the copies are few and what is reserved in vain is little. Where a quarter is refused
    /// a mebibyte does.
    fn reserve(&mut self, size: usize) -> bool {
        let capacity = self.bytes.capacity();
        let expected = if size as u64 <= self.expected { self.expected } else { self.bytes_max };
        let left = usize::try_from(expected).unwrap_or(usize::MAX).saturating_sub(capacity);
        let step = |bytes: usize| bytes.min(capacity).min(left).max(size - capacity);
        let (needed, wished) = (step(GROW_BYTES), step(GROW_BYTES.max(capacity / 4)));
        let Some(more) = self.memory.grow_between(needed, wished) else { return false };
        self.bytes.reserve_exact(capacity + more - self.bytes.len());
        true
    }

    /// The content, and its share of the budget; without another copy.
    ///
    /// # Errors
    /// The [`Flaw`].
    pub fn finish(mut self) -> Result<(Bytes, MessageMemory), ContentError> {
        match self.error {
            Some(flaw) => Err(flaw),
            None if !self.memory.complete() => Err(ContentError::InsufficientMemory),
            // A small message in a large first allocation would keep all of it while it waits in the queue.
            None if self.bytes.capacity() > self.bytes.len() / 2 * 3 + SLACK_BYTES_MAX => {
                Ok((Bytes::copy_from_slice(&self.bytes), self.memory))
            }
            None => Ok((Bytes::from(self.bytes), self.memory)),
        }
    }
}

/// Where in a line the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DotState {
    LineStart,
    /// Behind a dot at the start of a line; the dot is not kept.
    Dot,
    /// Behind dot and CR.
    DotCr,
    Middle,
    /// Behind a CR.
    Cr,
}

/// Reads what follows DATA.
#[derive(Debug)]
pub struct DotReceiver {
    state: DotState,
}

impl Default for DotReceiver {
    fn default() -> Self {
        Self { state: DotState::LineStart }
    }
}

impl DotReceiver {
    /// Takes a chunk. `Some(n)` says that the content ended with the chunk's first `n` bytes; `None`
    /// that all of it was content.
    pub fn push(&mut self, chunk: &[u8], content: &mut ContentBuffer) -> Option<usize> {
        // chunk[run..next] is content that is not yet kept.
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
                    // Not kept: either it belongs to the end, or it is bare and spoils all.
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
                    // The byte behind a bare CR is looked at again, as part of the line.
                    next += usize::from(self.state != DotState::Middle);
                }
            }
        }
        content.append(&chunk[run..next]);
        None
    }
}

/// Reads BDAT chunks: every byte counts, and, but for the body of BINARYMIME, lines end in CRLF here too (RFC 3030 3:
/// the header is lines as ever). Readers differ in what a bare CR or LF is: one would see fields where another sees none.
#[derive(Debug, Default)]
pub struct ChunkReceiver {
    after_cr: bool,
    /// Bytes of the line that has begun.
    in_line: bool,
    /// The empty line that ends the header has come.
    is_body: bool,
}

impl ChunkReceiver {
    /// Takes bytes of a chunk, all of them content.
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

    /// The last chunk has come: a CR at the very end is bare, and text gets the line end it lacks.
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
    use crate::budget::{ContentBudget, MemoryReservation};
    use crate::quota::QuotaHolder;
    use proptest::prelude::*;
    use std::sync::Arc;
    use tokio::time::Instant;

    /// What a slow reader makes of the same bytes: the content or its flaw, and where it ends.
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
                assert!(budget.free_bytes() == 1 << 20, "the budget is given back");
                return Some((read, before + n));
            }
            before += chunk.len();
        }
        None
    }

    /// RFC 5321 4.5.2, literally: find CRLF.CRLF (the CRLF before the content counts), then look at
    /// each line.
    fn reference(bytes: &[u8], bytes_max: u64) -> Read {
        let mut with_start = b"\r\n".to_vec();
        with_start.extend_from_slice(bytes);
        let end = with_start.windows(5).position(|w| w == b"\r\n.\r\n")?;
        let (content, used) = (&bytes[..end], end + 3);
        let mut kept = Vec::new();
        let mut rest = content;
        while !rest.is_empty() {
            let line_end = rest.windows(2).position(|w| w == b"\r\n").map_or(rest.len(), |n| n + 2);
            let (line, after) = rest.split_at(line_end);
            kept.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            rest = after;
        }
        let bare = content.iter().enumerate().any(|(n, b)| match b {
            b'\r' => content.get(n + 1) != Some(&b'\n'),
            b'\n' => n == 0 || content[n - 1] != b'\r',
            _ => false,
        });
        let too_large = kept.len() as u64 > bytes_max;
        Some((
            if bare {
                Err(ContentError::BareLineEnd)
            } else if content.contains(&0) {
                Err(ContentError::Nul)
            } else if too_large {
                Err(ContentError::TooLarge)
            } else {
                Ok(kept)
            },
            used,
        ))
    }

    #[test]
    fn ends_and_dots() {
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
    fn no_other_end_ends_it() {
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
    fn the_budget_bounds_all() {
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

    /// Room for a message of 24 MiB was doubled where a quarter more was held for it.
    #[test]
    fn no_message_takes_more_memory_than_it_holds() {
        for (declared, size) in [(None, 24 << 20), (Some(24 << 20), 24 << 20), (Some(1), 10 << 10)] {
            let budget = ContentBudget::new(64 << 20);
            let mut content = ContentBuffer::new(36 << 20, declared, MessageMemory::new(&reserve(&budget)));
            for _ in 0..size / 10_240 {
                content.append(&[b'a'; 10_240]);
                assert!(budget.used_bytes() >= content.bytes.capacity(), "{declared:?} {}", content.bytes.len());
            }
            assert!(budget.used_bytes() <= (size + size / 4).max(32 << 10), "{declared:?} {}", budget.used_bytes());
            let (bytes, held) = content.finish().unwrap();
            assert!(budget.used_bytes() >= bytes.len());
            drop(held);
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
            // The header is lines, whatever the body is.
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
        fn any_split_reads_the_same(bytes in hostile(), cuts in proptest::collection::vec(0usize..64, 0..6), max in 0u64..40) {
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
