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
use crate::replies::ReplyBuffer;
use crate::session::{ExpectedInput, Input, SessionAction, SmtpSession};

/// What came in place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedLine {
    /// An LF without CR, or a CR without LF.
    BareLineEnd,
    /// A NUL byte.
    Nul,
    /// More than the limit; dropped up to its end.
    TooLong,
    /// So much more that its end is not waited for.
    Unterminated,
    /// The first byte of a TLS handshake where none is due.
    ClientHello,
    /// More than QUIT or RSET in one piece with a DATA that was refused: it is content, no commands.
    ContentAfterRefusedData,
}

/// RFC 8446 5.1: the record type of a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// Bytes that wait for their turn.
#[derive(Debug, Default)]
pub struct LineFramer {
    buffer: BytesMut,
    /// So much of it holds no LF.
    searched: usize,
    /// The line is too long, its end has not come, and so much of it was dropped.
    skipped: Option<usize>,
    /// The last drive stopped for the replies to be sent.
    paused: bool,
}

enum LineFrame {
    Line(usize),
    Malformed(usize, MalformedLine),
    Partial,
}

impl LineFramer {
    /// Takes what came from the socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether there is something to [`Self::drive`] with before the socket is read again.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Bytes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Drops all bytes: what was sent in the clear does not cross a handshake (RFC 3207 4.2).
    pub fn discard(&mut self) {
        *self = Self::default();
    }

    /// Gives the memory back when nothing is held.
    pub fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// Steps the session until it needs more bytes, asks, or ends; or until the replies are so many
    /// that they should be sent first ([`Self::is_paused`]).
    pub fn drive_session(&mut self, session: &mut SmtpSession, replies: &mut ReplyBuffer) -> SessionAction {
        self.paused = false;
        loop {
            if replies.wire().len() >= REPLIES_BYTES_FLUSH {
                self.paused = true;
                return SessionAction::Read;
            }
            let (used, step) = match session.expected_input() {
                ExpectedInput::Nothing => return SessionAction::Read,
                ExpectedInput::Bytes if self.buffer.is_empty() => return SessionAction::Read,
                ExpectedInput::Bytes => {
                    let step = session.step(Input::Bytes(&self.buffer), replies);
                    (step.consumed, step)
                }
                ExpectedInput::Line { bytes_max, auth_bytes_max } => match self.next_frame(bytes_max, auth_bytes_max) {
                    LineFrame::Partial => return SessionAction::Read,
                    LineFrame::Line(end) => {
                        (end, session.step(Input::Line(self.buffer.get(..end).unwrap_or_default()), replies))
                    }
                    LineFrame::Malformed(end, malformed) => (end, session.step(Input::Malformed(malformed), replies)),
                },
            };
            self.buffer.advance(used.min(self.buffer.len()));
            self.searched = 0;
            if !matches!(step.action, SessionAction::Read) {
                return step.action;
            }
            if session.has_refused_data() && !self.holds_only_quit_or_rset() {
                return session.step(Input::Malformed(MalformedLine::ContentAfterRefusedData), replies).action;
            }
        }
    }

    /// Whether what came behind a refused DATA is nothing, or QUIT or RSET, or the start of one of them.
    fn holds_only_quit_or_rset(&self) -> bool {
        let is_start = |end: &[u8]| end.get(..self.buffer.len()).is_some_and(|s| s.eq_ignore_ascii_case(&self.buffer));
        is_start(b"QUIT\r\n") || is_start(b"RSET\r\n")
    }

    fn next_frame(&mut self, bytes_max: usize, auth_bytes_max: usize) -> LineFrame {
        if self.buffer.first() == Some(&TLS_HANDSHAKE) && self.skipped.is_none() {
            return LineFrame::Malformed(self.buffer.len(), MalformedLine::ClientHello);
        }
        let bytes_max = if command::is_auth_command(&self.buffer) { auth_bytes_max } else { bytes_max };
        let Some(found) = memchr(b'\n', self.buffer.get(self.searched..).unwrap_or_default()) else {
            self.searched = self.buffer.len();
            if self.searched > bytes_max || self.skipped.is_some() {
                let skipped = self.skipped.unwrap_or(0) + self.searched;
                if skipped > LINE_BYTES_SKIPPED_MAX {
                    return LineFrame::Malformed(self.buffer.len(), MalformedLine::Unterminated);
                }
                self.skipped = Some(skipped);
                self.buffer.clear();
                self.searched = 0;
            }
            return LineFrame::Partial;
        };
        let end = self.searched + found + 1;
        let line = self.buffer.get(..end).unwrap_or_default();
        let skipped = self.skipped.take();
        if skipped.unwrap_or(0) + end > LINE_BYTES_SKIPPED_MAX {
            return LineFrame::Malformed(end, MalformedLine::Unterminated);
        }
        if skipped.is_some() || end > bytes_max {
            return LineFrame::Malformed(end, MalformedLine::TooLong);
        }
        match line.strip_suffix(b"\r\n") {
            Some(text) if memchr(b'\r', text).is_some() => LineFrame::Malformed(end, MalformedLine::BareLineEnd),
            Some(text) if memchr(0, text).is_some() => LineFrame::Malformed(end, MalformedLine::Nul),
            Some(_) => LineFrame::Line(end),
            None => LineFrame::Malformed(end, MalformedLine::BareLineEnd),
        }
    }
}
