//! The body writer: yields a body as it is transferred, in slices that point into the body itself.
//!
//! First, [`CheckedBody::check`] reads every chunk once. Each LF must follow a CR and each CR must precede an LF,
//! across chunk borders too, so that no lax receiver sees a forged end of data (SMTP smuggling; RFC 5321 2.3.8,
//! 4.1.1.4). The same pass finds lines that begin with a dot (RFC 5321 4.5.2) and whether the last line is terminated.
//! Then [`CheckedBody::slices`] yields the body with a one-byte slice before each such line. Nothing is copied; most
//! bodies have no such line and are sent in their original chunks.

use std::ops::Range;

use bytes::Bytes;
use thiserror::Error;

/// A body that could be used for SMTP smuggling and is never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageBodyError {
    #[error("the body has a bare LF at byte {0}")]
    BareLf(u64),
    #[error("the body has a bare CR")]
    BareCr,
    /// A NUL byte (RFC 6152 2).
    #[error("the body has a NUL")]
    Nul,
}

/// Facts about a checked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckedBody {
    /// Positions of dots that begin a line: chunk and offset, in order.
    dots: Vec<(usize, usize)>,
    /// Size as RFC 1870 counts it, with the final CRLF.
    size_bytes: u64,
    /// The CRLF that the last line lacks, or empty.
    ending: &'static [u8],
}

impl CheckedBody {
    /// Checks a body.
    ///
    /// # Errors
    /// A bare CR, a bare LF or a NUL anywhere in it.
    pub(super) fn check(body: &[Bytes]) -> Result<Self, MessageBodyError> {
        let mut dots = Vec::new();
        let mut size_bytes = 0_u64;
        // The body starts as if after a CRLF, so that a dot in its first byte begins a line.
        let (mut before, mut last) = (b'\r', b'\n');
        let (mut line_ends, mut returns) = (0_usize, 0_usize);
        for (at, chunk) in body.iter().enumerate() {
            let Some((&first, &end)) = chunk.first().zip(chunk.last()) else { continue };
            // A host that drops NULs could then see a line with a lone dot.
            if memchr::memchr(0, chunk).is_some() {
                return Err(MessageBodyError::Nul);
            }
            if first == b'.' && last == b'\n' {
                dots.push((at, 0));
            }
            for lf in memchr::memchr_iter(b'\n', chunk) {
                line_ends += 1;
                let previous = lf.checked_sub(1).and_then(|i| chunk.get(i)).copied().unwrap_or(last);
                if previous != b'\r' {
                    return Err(MessageBodyError::BareLf(size_bytes + lf as u64));
                }
                if chunk.get(lf + 1) == Some(&b'.') {
                    dots.push((at, lf + 1));
                }
            }
            // Every LF has its CR, so equal counts mean that every CR has its LF.
            returns += memchr::memchr_iter(b'\r', chunk).count();
            size_bytes += chunk.len() as u64;
            let second_last = chunk.len().checked_sub(2).and_then(|i| chunk.get(i)).copied();
            (before, last) = (second_last.unwrap_or(last), end);
        }
        if returns != line_ends {
            return Err(MessageBodyError::BareCr);
        }
        let ending: &[u8] = if (before, last) == (b'\r', b'\n') { b"" } else { b"\r\n" };
        Ok(Self { dots, size_bytes: size_bytes + ending.len() as u64, ending })
    }

    /// Bytes without dot-stuffing and final dot, for SIZE and BDAT.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Bytes that [`CheckedBody::slices`] yields with dot-stuffing.
    pub(super) fn stuffed_bytes(&self) -> u64 {
        self.size_bytes + self.dots.len() as u64
    }

    /// Slices of the body for DATA (`stuffed`) or BDAT, which needs no stuffing. Ends in CRLF.
    pub(super) fn slices<'a>(&'a self, body: &'a [Bytes], stuffed: bool) -> impl Iterator<Item = &'a [u8]> {
        let mut dots: &[(usize, usize)] = if stuffed { &self.dots } else { &[] };
        let chunks = body.iter().enumerate().flat_map(move |(at, chunk)| {
            let count = dots.iter().take_while(|(chunk_at, _)| *chunk_at == at).count();
            let (chunk_dots, rest) = dots.split_at_checked(count).unwrap_or((dots, &[]));
            dots = rest;
            DotStuffedSlices { chunk, dots: chunk_dots, offset: 0, dot_due: false }
        });
        chunks.chain(std::iter::once(self.ending)).filter(|slice| !slice.is_empty())
    }
}

/// One chunk, split before each dot that must be doubled.
struct DotStuffedSlices<'a> {
    chunk: &'a [u8],
    dots: &'a [(usize, usize)],
    offset: usize,
    dot_due: bool,
}

impl<'a> Iterator for DotStuffedSlices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if std::mem::take(&mut self.dot_due) {
            return Some(b".");
        }
        if self.offset >= self.chunk.len() {
            return None;
        }
        let end = match self.dots.split_first() {
            Some((&(_, dot), rest)) => {
                self.dots = rest;
                self.dot_due = true;
                dot
            }
            None => self.chunk.len(),
        };
        let piece: Range<usize> = self.offset..end;
        self.offset = end;
        self.chunk.get(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunks(parts: &[&'static str]) -> Vec<Bytes> {
        parts.iter().map(|&part| Bytes::from_static(part.as_bytes())).collect()
    }

    fn wire(parts: &[&'static str]) -> String {
        let body = chunks(parts);
        let content = CheckedBody::check(&body).unwrap();
        let bytes = content.slices(&body, true).collect::<Vec<_>>().concat();
        assert_eq!(bytes.len() as u64, content.stuffed_bytes());
        let plain = content.slices(&body, false).collect::<Vec<_>>().concat();
        assert_eq!(plain.len() as u64, content.size_bytes());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn dots_are_doubled_at_the_start_of_lines_only() {
        for (input, sent) in [
            (&["a\r\n"][..], "a\r\n"),
            (&["a"], "a\r\n"),
            (&[""], ""),
            (&[], ""),
            (&["", "."], "..\r\n"),
            (&[".\r\n"], "..\r\n"),
            (&["a.b\r\n.c\r\n..\r\n"], "a.b\r\n..c\r\n...\r\n"),
            (&["a\r\n", ".b\r\n"], "a\r\n..b\r\n"),
            (&["a\r", "\n", ".", "b\r\n"], "a\r\n..b\r\n"),
            (&["a\r\n", "", ".", ".\r\n"], "a\r\n...\r\n"),
            (&["a", ".b"], "a.b\r\n"),
            (&["a\r\n."], "a\r\n..\r\n"),
            (&["\r\n"], "\r\n"),
        ] {
            assert_eq!(wire(input), sent, "{input:?}");
        }
    }

    #[test]
    fn bodies_that_allow_smtp_smuggling_are_rejected() {
        for input in [
            &["a\n.\r\n"][..],
            &["a\r.\r\n"],
            &["a\r\n.\n"],
            &["a\r\n.\r"],
            &["\n"],
            &["\r"],
            &["a\r\r\n"],
            &["a\r", "b\n"],
            &["a\r", "\r\n"],
            &["a", "\n"],
            &["a\r", "", "b\r\n"],
            &["a\r\n\r\n\n.\r\n"],
            &["\r\n.\rx"],
        ] {
            assert!(CheckedBody::check(&chunks(input)).is_err(), "{input:?}");
        }
        assert_eq!(CheckedBody::check(&chunks(&["ab", "c\n"])), Err(MessageBodyError::BareLf(3)));
    }

    /// Decodes dot-stuffed lines like a strict receiver.
    fn unstuff(wire: &str) -> String {
        wire.split_inclusive("\r\n").map(|line| line.strip_prefix('.').unwrap_or(line)).collect()
    }

    proptest! {
        #[test]
        fn any_body_in_any_chunks_is_sent_unchanged_or_rejected(
            parts in prop::collection::vec("(\r\n|\\.|a|\r|\n){0,6}", 0..6)
        ) {
            let body: Vec<Bytes> = parts.iter().map(|part| Bytes::from(part.clone())).collect();
            let joined = parts.concat();
            let clean = !joined.replace("\r\n", "").contains(['\r', '\n']);
            match CheckedBody::check(&body) {
                Err(_) => prop_assert!(!clean),
                Ok(content) => {
                    prop_assert!(clean);
                    let bytes = content.slices(&body, true).collect::<Vec<_>>().concat();
                    let sent = String::from_utf8(bytes).unwrap();
                    let expected = if joined.is_empty() || joined.ends_with("\r\n") { joined } else { joined + "\r\n" };
                    prop_assert_eq!(unstuff(&sent), expected);
                    prop_assert!(!sent.starts_with(".\r\n") && !sent.contains("\r\n.\r\n"));
                }
            }
        }
    }
}
