//! Parsing SMTP replies from a byte stream (RFC 5321 4.2.1).
//!
//! Received bytes are appended to a buffer. [`ReplyReader::next_reply`] returns a reply as soon as its last line is
//! complete, and leaves the rest for the next call, since one read may contain many replies to a pipelined group. A
//! line may end in a bare LF, as a few old hosts send it. All sizes are bounded, and a host that does not speak SMTP
//! causes an error at once. A reply with two codes is read to its last line, because that line may refuse the message.

use std::borrow::Cow;
use std::fmt::Write as _;

use message::reply::{Enhanced, SmtpReply};
use thiserror::Error;

/// RFC 5321 4.5.3.1.5 permits 512; some hosts send longer explanations.
pub(super) const LINE_BYTES_MAX: usize = 4_096;
/// The longest known EHLO replies have about 30 lines.
pub(super) const LINES_MAX: usize = 128;
/// Limit over all lines of one reply.
pub(super) const REPLY_BYTES_MAX: usize = 32 * 1024;
/// Buffer size between replies: more than an ordinary group of replies needs.
const BUFFER_BYTES_IDLE: usize = 1_024;

/// Why bytes are not a valid reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplyParseError {
    /// A line does not begin with a code from 200 to 599, followed by a space, a hyphen or the line's end.
    #[error("the host sent a line that is not an SMTP reply")]
    NoCode,
    #[error("the host sent a reply with two different codes")]
    TwoCodes,
    /// More than [`LINE_BYTES_MAX`], [`LINES_MAX`] or [`REPLY_BYTES_MAX`].
    #[error("the host sent a reply that is too long")]
    TooLong,
}

/// One reply and its bytes as received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawReply<'a> {
    pub reply: SmtpReply,
    /// The bytes, including line ends.
    pub raw: &'a [u8],
}

/// Buffer between the socket and the parsed replies.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    buffer: Vec<u8>,
    /// Start of the first reply not returned yet.
    start: usize,
}

impl ReplyReader {
    /// Buffer to read into; bytes of returned replies are discarded.
    pub(super) fn read_buffer(&mut self) -> &mut Vec<u8> {
        if self.start >= self.buffer.len() {
            self.buffer.clear();
            // Free the memory of a long reply: an idle connection must stay small.
            self.buffer.shrink_to(BUFFER_BYTES_IDLE);
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
        self.buffer.reserve(BUFFER_BYTES_IDLE);
        &mut self.buffer
    }

    /// Returns whether no unread bytes are left.
    pub(super) fn is_empty(&self) -> bool {
        self.start >= self.buffer.len()
    }

    /// The first unread bytes, at most `limit`, to show them if they are not a reply.
    pub(super) fn unread(&self, limit: usize) -> &[u8] {
        let end = self.buffer.len().min(self.start + limit);
        self.buffer.get(self.start..end).unwrap_or_default()
    }

    /// The beginning of a malformed reply, with at most `limit` bytes of its first line, if the codes of its lines are
    /// all positive (2yz). The code may be followed by any byte that is no digit.
    pub(super) fn positive_reply(&self, limit: usize) -> Option<SmtpReply> {
        let waiting = self.buffer.get(self.start..).unwrap_or_default();
        let mut first_code = None;
        for line in waiting.split_inclusive(|&b| b == b'\n') {
            let is_arriving = !line.ends_with(b"\n") && line.len() <= LINE_BYTES_MAX;
            if is_arriving {
                break;
            }
            let (code, rest) = split_code(line)?;
            if code / 100 != 2 || rest.first().is_some_and(u8::is_ascii_digit) {
                return None;
            }
            first_code = first_code.or(Some(code));
            if rest.first() != Some(&b'-') {
                break;
            }
        }
        let line = self.unread(limit).split_inclusive(|&b| b == b'\n').next()?;
        Some(parse_reply(first_code?, line))
    }

    /// Returns the next complete reply; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns a [`ReplyParseError`]; the connection cannot be used any more.
    pub(super) fn next_reply(&mut self) -> Result<Option<RawReply<'_>>, ReplyParseError> {
        let waiting = self.buffer.get(self.start..).unwrap_or_default();
        let (mut code, mut has_two_codes) = (None, false);
        let (mut line_start, mut lines) = (0, 0);
        for lf in memchr::memchr_iter(b'\n', waiting) {
            let line = waiting.get(line_start..=lf).unwrap_or_default();
            lines += 1;
            if line.len() > LINE_BYTES_MAX || lines > LINES_MAX || lf >= REPLY_BYTES_MAX {
                return Err(ReplyParseError::TooLong);
            }
            let (line_code, is_continued) = parse_code(line)?;
            has_two_codes |= *code.get_or_insert(line_code) != line_code;
            line_start = lf + 1;
            if !is_continued {
                if has_two_codes {
                    return Err(ReplyParseError::TwoCodes);
                }
                self.start += line_start;
                let raw = self.buffer.get(self.start - line_start..self.start).unwrap_or_default();
                return Ok(Some(RawReply { reply: parse_reply(line_code, raw), raw }));
            }
        }
        let is_endless = waiting.len() - line_start > LINE_BYTES_MAX || waiting.len() > REPLY_BYTES_MAX;
        if is_endless { Err(ReplyParseError::TooLong) } else { Ok(None) }
    }
}

/// Strips the line end.
fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Parses the code of a line, and whether another line follows.
fn parse_code(line: &[u8]) -> Result<(u16, bool), ReplyParseError> {
    let (code, rest) = split_code(line).ok_or(ReplyParseError::NoCode)?;
    match rest.first() {
        None | Some(b' ') => Ok((code, false)),
        Some(b'-') => Ok((code, true)),
        Some(_) => Err(ReplyParseError::NoCode),
    }
}

/// Splits a line, without its end, behind its code from 200 to 599.
fn split_code(line: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = trim_line_end(line).split_at_checked(3)?;
    let is_code = matches!(digits.first(), Some(b'2'..=b'5')) && digits.iter().all(u8::is_ascii_digit);
    is_code.then(|| (digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0')), rest))
}

/// The text of a line behind its code and the separator.
fn line_text(line: &[u8]) -> &[u8] {
    match trim_line_end(line).get(3..).unwrap_or_default() {
        [b' ' | b'-' | b'\t', text @ ..] => text,
        text => text,
    }
}

/// Builds a reply from lines that begin with a code. The enhanced status code of the first line is removed from every
/// line that repeats it (RFC 2034 4).
fn parse_reply(code: u16, raw: &[u8]) -> SmtpReply {
    let mut enhanced = None;
    let mut lines = Vec::with_capacity(1);
    for line in raw.split_inclusive(|&b| b == b'\n') {
        let text = escape_text(line_text(line));
        let found = Enhanced::split_prefix(&text).filter(|(found, _)| u16::from(found.class) == code / 100);
        if lines.is_empty() {
            enhanced = found.map(|(found, _)| found);
        }
        lines.push(match found {
            Some((found, rest)) if Some(found) == enhanced => rest.trim_start().to_owned().into(),
            _ => text.into_owned().into(),
        });
    }
    SmtpReply { code, enhanced, lines }
}

/// Escapes bytes from outside that could act on a terminal, a log or a header: `\x1B`, `\xE9`.
pub(super) fn escape_text(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.iter().all(|b| matches!(b, b' '..=b'~')) {
        return String::from_utf8_lossy(bytes);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            // Bidirectional and invisible characters, and separators that some readers treat as line ends.
            let acts = matches!(u32::from(c), 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff);
            if c.is_control() || acts {
                let _ = write!(out, "\\x{:02X}", u32::from(c));
            } else {
                out.push(c);
            }
        }
        for byte in part.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds the pieces one by one. Returns the replies in order, and whether a fault ended them.
    fn run(pieces: &[&[u8]]) -> (Vec<SmtpReply>, bool) {
        let mut replies = ReplyReader::default();
        let mut found = Vec::new();
        for piece in pieces {
            replies.read_buffer().extend_from_slice(piece);
            loop {
                match replies.next_reply() {
                    Ok(Some(raw_reply)) => found.push(raw_reply.reply),
                    Ok(None) => break,
                    Err(_) => return (found, true),
                }
            }
        }
        (found, false)
    }

    fn parse_single(bytes: &[u8]) -> Option<String> {
        match run(&[bytes]) {
            (replies, false) if replies.len() == 1 => replies.first().map(|reply| {
                let enhanced = reply.enhanced.map(|code| code.to_string()).unwrap_or_default();
                format!("{}|{enhanced}|{}", reply.code, reply.lines.join("|"))
            }),
            _ => None,
        }
    }

    #[test]
    fn good_replies() {
        for (input, expected) in [
            (&b"250 ok\r\n"[..], "250||ok"),
            (b"250\r\n", "250||"),
            (b"250 \r\n", "250||"),
            (b"250 ok\n", "250||ok"),
            (b"250 2.1.0 Sender ok\r\n", "250|2.1.0|Sender ok"),
            (b"550 5.7.509 no\r\n", "550|5.7.509|no"),
            (b"550-5.1.1 one\r\n550 5.1.1 two\r\n", "550|5.1.1|one|two"),
            (b"550-5.1.1 one\r\n550 two\r\n", "550|5.1.1|one|two"),
            (b"550-one\r\n550 5.1.1 two\r\n", "550||one|5.1.1 two"),
            (b"550-5.1.1 one\r\n550 5.2.2 two\r\n", "550|5.1.1|one|5.2.2 two"),
            (b"250-\r\n250-a\r\n250\r\n", "250|||a|"),
            (b"550 4.1.1 two minds\r\n", "550||4.1.1 two minds"),
            (b"421 4.3.2\r\n", "421|4.3.2|"),
            (b"550 5.1 users\r\n", "550||5.1 users"),
            (b"250 a\tb\x1b[2J\0\r\r\n", "250||a\\x09b\\x1B[2J\\x00\\x0D"),
            (b"250 caf\xc3\xa9 \xe9\r\n", "250||caf\u{e9} \\xE9"),
            ("250 a\u{202e}b\u{2028}\r\n".as_bytes(), "250||a\\x202Eb\\x2028"),
            (b"599 x\r\n", "599||x"),
        ] {
            assert_eq!(parse_single(input).as_deref(), Some(expected), "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn bad_replies() {
        for input in [
            &b"\r\n"[..],
            b"ok\r\n",
            b"25 ok\r\n",
            b"2500 ok\r\n",
            b"250ok\r\n",
            b"250_ok\r\n",
            b"100 ok\r\n",
            b"600 ok\r\n",
            b"000 ok\r\n",
            b" 250 ok\r\n",
            b"250-a\r\n550 b\r\n",
            b"250-a\r\nb\r\n250 c\r\n",
            b"\xb2\xb5\xb0 ok\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
        ] {
            assert!(run(&[input]).1, "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn the_code_of_a_malformed_reply() {
        let positive = |bytes: &[u8]| {
            let mut replies = ReplyReader::default();
            replies.read_buffer().extend_from_slice(bytes);
            assert!(replies.next_reply().is_err(), "{}", String::from_utf8_lossy(bytes));
            replies.positive_reply(20).map(|reply| reply.to_string())
        };
        let long = [b"250 2.0.0 ".as_slice(), &vec![b'x'; LINE_BYTES_MAX]].concat();
        for (input, expected) in [
            (&b"250\tqueued\r\n"[..], "250 queued"),
            (b"250ok\r\n550 the next reply\r\n", "250 ok"),
            (b"250-queued\r\n251 ok\r\n550 the next reply\r\n", "250 queued"),
            (b"250-queued\r\n251-more\r\n252 ok\r\n", "250 queued"),
            (long.as_slice(), "250 2.0.0 xxxxxxxxxx"),
        ] {
            assert_eq!(positive(input).as_deref(), Some(expected), "{}", String::from_utf8_lossy(input));
        }
        for input in
            [&b"999 what\r\n"[..], b"what?\r\n", b"2500 ok\r\n", b"550no\r\n", b"250-a\r\n550 b\r\n", b"250-a\r\nb\r\n"]
        {
            assert_eq!(positive(input), None, "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn a_reply_with_two_codes_is_read_to_its_last_line() {
        for (last, expected) in [(&b"550 no\r\n"[..], None), (b"251 ok\r\n", Some("250 a".to_owned()))] {
            let mut replies = ReplyReader::default();
            for line in [&b"250-a\r\n"[..], b"251-b\r\n"] {
                replies.read_buffer().extend_from_slice(line);
                assert_eq!(replies.next_reply(), Ok(None));
            }
            replies.read_buffer().extend_from_slice(last);
            assert_eq!(replies.next_reply(), Err(ReplyParseError::TwoCodes));
            assert_eq!(replies.positive_reply(20).map(|reply| reply.to_string()), expected);
        }
    }

    #[test]
    fn limits() {
        let line = |text: usize| [b"250 ".as_slice(), &vec![b'x'; text], b"\r\n"].concat();
        assert!(!run(&[&line(LINE_BYTES_MAX - 6)]).1);
        assert!(run(&[&line(LINE_BYTES_MAX - 5)]).1);
        assert!(run(&[&vec![b'x'; LINE_BYTES_MAX + 1]]).1);
        let with_lines = |lines: usize| [b"250-a\r\n".repeat(lines - 1), b"250 a\r\n".to_vec()].concat();
        assert_eq!(run(&[&with_lines(LINES_MAX)]).0.len(), 1);
        assert!(run(&[&with_lines(LINES_MAX + 1)]).1);
        let wide_reply = [b"250-".as_slice(), &vec![b'x'; 1_000], b"\r\n"].concat().repeat(33);
        assert!(run(&[&wide_reply]).1);
    }

    #[test]
    fn several_replies_in_one_read_and_non_utf8_bytes() {
        let mut replies = ReplyReader::default();
        replies.read_buffer().extend_from_slice(b"250-a\r\n250 b\r\n354 go\r\n250 rest");
        assert_eq!(replies.next_reply().unwrap().unwrap().raw, b"250-a\r\n250 b\r\n");
        assert_eq!(replies.next_reply().unwrap().unwrap().reply.code, 354);
        assert_eq!(replies.next_reply(), Ok(None));
        assert!(!replies.is_empty());
        replies.read_buffer().extend_from_slice(b"\r\n");
        assert_eq!(replies.next_reply().unwrap().unwrap().raw, b"250 rest\r\n");
        assert!(replies.is_empty());
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_replies(
            parts in prop::collection::vec("(250|550|354|2x0|)[- x]?[a-c. \u{e9}]{0,4}(\r\n|\n|\r)?", 0..8),
            cuts in prop::collection::vec(0_usize..64, 0..8),
        ) {
            let bytes = parts.concat().into_bytes();
            let expected = run(&[&bytes]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&run(&single), &expected);
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                pieces.push(head);
                rest = tail;
            }
            pieces.push(rest);
            prop_assert_eq!(&run(&pieces), &expected);
        }
    }
}
