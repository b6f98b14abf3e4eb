//! Transcript of an SMTP session, for the attempt's record.
//!
//! It is written for every message and read for few. So writing is two appends into buffers allocated once for each
//! attempt, and text is escaped and formatted only for display. Content appears as its length; secrets are masked by
//! the caller.

use std::fmt;

use super::reply_reader::escape_text;

/// Size limit for one attempt; the rest is dropped and marked as omitted.
pub const TRANSCRIPT_BYTES_MAX: usize = 16 * 1024;
/// Text of an ordinary attempt on a reused connection: two commands, four replies.
const TYPICAL_BYTES: usize = 512;
/// Entries of an ordinary attempt.
const TYPICAL_ENTRIES: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TranscriptKind {
    /// Commands, as sent.
    Sent,
    /// Commands that were pipelined behind the message before.
    SentAhead,
    /// A reply, as received.
    Received,
    /// Content, by its length in bytes.
    Content(u64),
    /// A remark by the client.
    Note,
}

#[derive(Debug, Clone, Copy)]
struct TranscriptEntry {
    at_ms: u32,
    kind: TranscriptKind,
    /// End of its text in the buffer; it begins where the previous entry ends.
    end: u32,
}

/// Commands and replies of one attempt, with milliseconds since its start.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    text: Vec<u8>,
    entries: Vec<TranscriptEntry>,
    is_truncated: bool,
}

impl Transcript {
    /// Creates an empty transcript with capacity for an ordinary attempt.
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

    pub(super) fn note(&mut self, at_ms: u32, note_text: &str) {
        self.push(at_ms, TranscriptKind::Note, note_text.as_bytes());
    }

    fn push(&mut self, at_ms: u32, kind: TranscriptKind, text: &[u8]) {
        // Count the entry itself, so that empty entries are bounded too.
        let used = self.text.len() + self.entries.len() * size_of::<TranscriptEntry>();
        if self.is_truncated || used + text.len() + size_of::<TranscriptEntry>() > TRANSCRIPT_BYTES_MAX {
            self.is_truncated = true;
            return;
        }
        self.text.extend_from_slice(text);
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.entries.push(TranscriptEntry { at_ms, kind, end });
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Display for Transcript {
    /// One line for each line of text: milliseconds, then `>` for sent, `<` for received, `*` for remarks.
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
        if self.is_truncated { writeln!(f, "       * transcript truncated") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_separated_and_control_characters_escaped() {
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
        assert!(transcript.to_string().ends_with("transcript truncated\n"));
    }
}
