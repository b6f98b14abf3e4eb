//! What was said on a connection, for the record of an attempt.
//!
//! Written on every message and read on few, so writing is two appends into buffers that are made
//! once per attempt; text is made visible and dressed only when it is shown. The content stands as
//! its length, secrets are masked before they come here.

use std::fmt;

use super::replies::escape_text;

/// The bytes kept of one attempt; what comes later is left out and said to be.
pub const TRANSCRIPT_BYTES_MAX: usize = 16 * 1024;
/// An ordinary attempt on a kept connection: two commands, four replies.
const TYPICAL_BYTES: usize = 512;
/// Entries of an ordinary attempt.
const TYPICAL_ENTRIES: usize = 12;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TranscriptKind {
    /// Commands, as sent.
    Sent,
    /// Commands that went out behind the message before.
    SentAhead,
    /// A reply, as received.
    Received,
    /// Content: its length.
    Content(u64),
    /// A remark of ours.
    Note,
}

#[derive(Debug, Clone, Copy)]
struct TranscriptEntry {
    at_ms: u32,
    kind: TranscriptKind,
    /// Where its text ends in the buffer; it begins where the one before ends.
    end: u32,
}

/// The commands and replies of one attempt, with milliseconds since its start.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    text: Vec<u8>,
    entries: Vec<TranscriptEntry>,
    is_truncated: bool,
}

impl Transcript {
    /// An empty one with room for an ordinary attempt.
    pub(super) fn with_typical_capacity() -> Self {
        Self {
            text: Vec::with_capacity(TYPICAL_BYTES),
            entries: Vec::with_capacity(TYPICAL_ENTRIES),
            is_truncated: false,
        }
    }

    pub(super) fn sent(&mut self, at_ms: u32, commands: &[u8]) {
        self.push(at_ms, TranscriptKind::Sent, commands);
    }

    pub(super) fn sent_ahead(&mut self, commands: &[u8]) {
        self.push(0, TranscriptKind::SentAhead, commands);
    }

    pub(super) fn received(&mut self, at_ms: u32, raw: &[u8]) {
        self.push(at_ms, TranscriptKind::Received, raw);
    }

    pub(super) fn content(&mut self, at_ms: u32, size_bytes: u64) {
        self.push(at_ms, TranscriptKind::Content(size_bytes), b"");
    }

    pub(super) fn note(&mut self, at_ms: u32, remark: &str) {
        self.push(at_ms, TranscriptKind::Note, remark.as_bytes());
    }

    fn push(&mut self, at_ms: u32, kind: TranscriptKind, text: &[u8]) {
        // An entry costs as much as a short line, so that empty ones are bounded as well.
        let used = self.text.len() + self.entries.len() * size_of::<TranscriptEntry>();
        if self.is_truncated || used + text.len() + size_of::<TranscriptEntry>() > TRANSCRIPT_BYTES_MAX {
            self.is_truncated = true;
            return;
        }
        self.text.extend_from_slice(text);
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.entries.push(TranscriptEntry { at_ms, kind, end });
    }

    /// Whether nothing was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Display for Transcript {
    /// One line each: milliseconds, `>` for what we sent, `<` for what we received, `*` for remarks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut start = 0;
        for &TranscriptEntry { at_ms, kind, end } in &self.entries {
            let end = end as usize;
            let text = self.text.get(start..end).unwrap_or_default();
            start = end;
            let (sign, after) = match kind {
                TranscriptKind::Sent => ('>', ""),
                TranscriptKind::SentAhead => ('>', " (sent ahead)"),
                TranscriptKind::Received => ('<', ""),
                TranscriptKind::Note => ('*', ""),
                TranscriptKind::Content(size_bytes) => {
                    writeln!(f, "{at_ms:>6} > [{size_bytes} bytes]")?;
                    continue;
                }
            };
            for line in text.split_inclusive(|&b| b == b'\n') {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                writeln!(f, "{at_ms:>6} {sign} {}{after}", escape_text(line))?;
            }
        }
        if self.is_truncated { writeln!(f, "       * the rest is left out") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_line_by_line_and_made_visible() {
        let mut transcript = Transcript::with_typical_capacity();
        transcript.note(0, "connected");
        transcript.sent_ahead(b"MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\n");
        transcript.received(12, b"250-a\x1b\r\n250 b\r\n");
        transcript.content(13, 10_240);
        transcript.sent(13, b".\r\n");
        assert_eq!(
            transcript.to_string(),
            "     0 * connected\n     0 > MAIL FROM:<> (sent ahead)\n     0 > RCPT TO:<a@b.example> (sent ahead)\n\
             \x20   12 < 250-a\\x1B\n    12 < 250 b\n    13 > [10240 bytes]\n    13 > .\n"
        );
    }

    #[test]
    fn bounded() {
        let mut transcript = Transcript::default();
        for _ in 0..10_000 {
            transcript.received(1, b"250 ok\r\n");
            transcript.note(1, "");
        }
        assert!(
            transcript.text.len() + transcript.entries.len() * size_of::<TranscriptEntry>() <= TRANSCRIPT_BYTES_MAX
        );
        assert!(transcript.to_string().ends_with("the rest is left out\n"));
    }
}
