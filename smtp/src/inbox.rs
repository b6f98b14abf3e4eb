//! Bytes between the socket and the session: cut into lines while commands are expected, handed on as
//! they are while content is.
//!
//! A line ends in CRLF and holds no other CR, LF or NUL (RFC 5321 2.3.8). What is longer than the
//! session allows is dropped as it comes; memory is held only for the start of a line that is not yet
//! complete, and for what came behind a command whose answer is awaited.

use bytes::{Buf as _, BytesMut};
use memchr::memchr;

use crate::command;
use crate::limits::{LINE_BYTES_SKIPPED_MAX, REPLIES_BYTES_FLUSH};
use crate::replies::Replies;
use crate::session::{Expect, Input, Next, Session};

/// What came in place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// An LF without CR, or a CR without LF.
    BareLineEnd,
    /// A NUL byte.
    Nul,
    /// More than the limit; dropped up to its end.
    TooLong,
    /// So much more that its end is not waited for.
    Endless,
    /// The first byte of a TLS handshake where none is due.
    ClientHello,
    /// More than QUIT or RSET in one piece with a DATA that was refused: it is content, no commands.
    Content,
}

/// RFC 8446 5.1: the record type of a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// Bytes that wait for their turn.
#[derive(Debug, Default)]
pub struct Inbox {
    held: BytesMut,
    /// So much of it holds no LF.
    searched: usize,
    /// The line is too long, its end has not come, and so much of it was dropped.
    skipped: Option<usize>,
    /// The last drive stopped for the replies to be sent.
    paused: bool,
}

enum Frame {
    Line(usize),
    Malformed(usize, Malformed),
    Partial,
}

impl Inbox {
    /// Takes what came from the socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Whether there is something to [`Self::drive`] with before the socket is read again.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Bytes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Drops all bytes: what was sent in the clear does not cross a handshake (RFC 3207 4.2).
    pub fn discard(&mut self) {
        *self = Self::default();
    }

    /// Gives the memory back when nothing is held.
    pub fn rest(&mut self) {
        if self.held.is_empty() {
            self.held = BytesMut::new();
        }
    }

    /// Steps the session until it needs more bytes, asks, or ends; or until the replies are so many
    /// that they should be sent first ([`Self::is_paused`]).
    pub fn drive(&mut self, session: &mut Session, replies: &mut Replies) -> Next {
        self.paused = false;
        loop {
            if replies.wire().len() >= REPLIES_BYTES_FLUSH {
                self.paused = true;
                return Next::Listen;
            }
            let (used, step) = match session.expects() {
                Expect::Nothing => return Next::Listen,
                Expect::Bytes if self.held.is_empty() => return Next::Listen,
                Expect::Bytes => {
                    let step = session.step(Input::Bytes(&self.held), replies);
                    (step.used, step)
                }
                Expect::Line { bytes_max, auth_bytes_max } => match self.frame(bytes_max, auth_bytes_max) {
                    Frame::Partial => return Next::Listen,
                    Frame::Line(end) => {
                        (end, session.step(Input::Line(self.held.get(..end).unwrap_or_default()), replies))
                    }
                    Frame::Malformed(end, malformed) => {
                        (end, session.step(Input::Malformed(malformed), replies))
                    }
                },
            };
            self.held.advance(used.min(self.held.len()));
            self.searched = 0;
            if !matches!(step.next, Next::Listen) {
                return step.next;
            }
            if session.has_refused_data() && !self.holds_at_most_an_end() {
                return session.step(Input::Malformed(Malformed::Content), replies).next;
            }
        }
    }

    /// Whether what came behind a refused DATA is nothing, or QUIT or RSET, or the start of one of them.
    fn holds_at_most_an_end(&self) -> bool {
        let is_start =
            |end: &[u8]| end.get(..self.held.len()).is_some_and(|s| s.eq_ignore_ascii_case(&self.held));
        is_start(b"QUIT\r\n") || is_start(b"RSET\r\n")
    }

    fn frame(&mut self, bytes_max: usize, auth_bytes_max: usize) -> Frame {
        if self.held.first() == Some(&TLS_HANDSHAKE) && self.skipped.is_none() {
            return Frame::Malformed(self.held.len(), Malformed::ClientHello);
        }
        let bytes_max = if command::is_auth(&self.held) { auth_bytes_max } else { bytes_max };
        let Some(found) = memchr(b'\n', self.held.get(self.searched..).unwrap_or_default()) else {
            self.searched = self.held.len();
            if self.searched > bytes_max || self.skipped.is_some() {
                let skipped = self.skipped.unwrap_or(0) + self.searched;
                if skipped > LINE_BYTES_SKIPPED_MAX {
                    return Frame::Malformed(self.held.len(), Malformed::Endless);
                }
                self.skipped = Some(skipped);
                self.held.clear();
                self.searched = 0;
            }
            return Frame::Partial;
        };
        let end = self.searched + found + 1;
        let line = self.held.get(..end).unwrap_or_default();
        let skipped = self.skipped.take();
        if skipped.unwrap_or(0) + end > LINE_BYTES_SKIPPED_MAX {
            return Frame::Malformed(end, Malformed::Endless);
        }
        if skipped.is_some() || end > bytes_max {
            return Frame::Malformed(end, Malformed::TooLong);
        }
        match line.strip_suffix(b"\r\n") {
            Some(text) if memchr(b'\r', text).is_some() => Frame::Malformed(end, Malformed::BareLineEnd),
            Some(text) if memchr(0, text).is_some() => Frame::Malformed(end, Malformed::Nul),
            Some(_) => Frame::Line(end),
            None => Frame::Malformed(end, Malformed::BareLineEnd),
        }
    }
}
