//! Buffers bytes between the socket and the session. It splits them into lines while the session expects commands and
//! passes them on unchanged while it expects content.
//!
//! A line ends in CRLF and has no other CR, LF or NUL (smuggling; RFC 5321 2.3.8). Bytes beyond the session's line limit are
//! dropped as they arrive. Memory is held only for the start of an incomplete line, and for bytes that were sent behind
//! a command whose reply is pending.

use bytes::{Buf as _, BytesMut};
use memchr::memchr;

use crate::command;
use crate::limits::{LINE_BYTES_SKIPPED_MAX, REPLIES_BYTES_FLUSH};
use crate::replies::ReplyBuffer;
use crate::session::{ExpectedInput, Input, SessionAction, SmtpSession};

/// An input that is not a valid command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedLine {
    BareLineEnd,
    Nul,
    /// Longer than the limit; dropped up to its end.
    TooLong,
    /// So long that its end is not awaited.
    Unterminated,
    /// The first byte of a TLS handshake where none is expected.
    ClientHello,
    /// More than QUIT or RSET in one piece with a refused DATA. It is content and must not be run as commands.
    ContentAfterRefusedData,
}

/// RFC 8446 5.1: the record type of a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// Received bytes that are not processed yet.
#[derive(Debug, Default)]
pub struct LineFramer {
    buffer: BytesMut,
    /// The number of bytes at the start that contain no LF.
    searched: usize,
    /// Set while a line that is too long is skipped: the bytes dropped so far.
    skipped: Option<usize>,
    /// The last drive stopped so that the replies can be sent.
    paused: bool,
}

enum LineFrame {
    Line(usize),
    Malformed(usize, MalformedLine),
    Partial,
}

impl LineFramer {
    /// Appends bytes read from the socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns whether [`Self::drive_session`] has to be called again before the socket is read.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Number of buffered bytes.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Drops all bytes: bytes sent before a TLS handshake are not processed after it (RFC 3207 4.2).
    pub fn discard(&mut self) {
        *self = Self::default();
    }

    /// Frees the buffer if it is empty.
    pub fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// Steps the session until it needs more bytes, calls a hook or ends. It also stops when so many replies are
    /// pending that they should be sent first ([`Self::is_paused`]).
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

    /// Returns whether the bytes behind a refused DATA are none, QUIT, RSET, or the start of one of them.
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
