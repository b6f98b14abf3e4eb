//! Code, sources and SMTP transcripts, with a button that copies them.

use hypertext::{Buffer, prelude::*};

use super::copy_button::copy_button;

/// Longest text that the button copies: the button holds a copy of the text.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// A text in a fixed-width font.
#[derive(Debug, Clone, Copy)]
pub struct Code<'a> {
    text: &'a str,
    /// Describes it to screen readers.
    label: &'a str,
    /// Long lines are broken.
    is_wrapped: bool,
}

impl<'a> Code<'a> {
    pub fn new(label: &'a str, text: &'a str) -> Self {
        Self { text, label, is_wrapped: false }
    }

    /// Breaks long lines.
    #[must_use]
    pub fn wrapped(mut self) -> Self {
        self.is_wrapped = true;
        self
    }
}

impl Renderable for Code<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        // The parser drops a line feed after the start tag, so one precedes the text (HTML, "pre").
        maud! {
            div.copyable {
                @if self.text.len() <= COPIED_BYTES_MAX { (copy_button(self.text, self.label)) }
                pre.wrap[self.is_wrapped] tabindex="0" role="group" aria-label=(self.label) { "\n" (self.text) }
            }
        }
        .render_to(buffer);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct TranscriptLine<'a> {
    milliseconds: &'a str,
    /// The style class and the words for screen readers.
    side: Option<(&'static str, &'static str)>,
    text: &'a str,
}

impl<'a> TranscriptLine<'a> {
    fn parse(line: &'a str) -> Self {
        let trimmed = line.trim_start();
        let split = trimmed.split_once(' ').and_then(|(milliseconds, rest)| {
            let side = match rest.get(..1)? {
                ">" => ("out", "sent: "),
                "<" => ("in", "received: "),
                "*" => ("remark", "remark: "),
                _ => return None,
            };
            milliseconds.bytes().all(|byte| byte.is_ascii_digit()).then_some((
                milliseconds,
                side,
                rest.get(1..)?.trim_start(),
            ))
        });
        match split {
            Some((milliseconds, side, text)) => Self { milliseconds, side: Some(side), text },
            None => Self { milliseconds: "", side: None, text: line },
        }
    }

    /// The tone of a reply: 4 and 5 refuse.
    fn is_refusal(&self) -> bool {
        matches!(self.side, Some(("in", _))) && self.text.starts_with(['4', '5'])
    }
}

/// The conversation of a delivery attempt: one line `milliseconds direction text`. `>` was sent, `<` was received, `*`
/// is a remark.
pub fn transcript_view(text: &str) -> impl Renderable {
    maud! {
        div.copyable {
            @if text.len() <= COPIED_BYTES_MAX { (copy_button(text, "the transcript")) }
            pre.transcript tabindex="0" role="group" aria-label="Conversation with the mail host" {
                @for line in text.lines().map(TranscriptLine::parse) {
                    @let side = line.side.unwrap_or(("remark", ""));
                    span class=(side.0) {
                        span.ms { (line.milliseconds) }
                        span.hidden { (side.1) }
                        span.text.refusal[line.is_refusal()] { (line.text) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn transcript_lines_are_split() {
        let line = TranscriptLine::parse("    19 < 550 5.1.1 No < such");
        assert_eq!((line.milliseconds, line.text, line.is_refusal()), ("19", "550 5.1.1 No < such", true));
        for odd in ["", "x", "12", "12 é", "ab > c", "   7 >"] {
            let line = TranscriptLine::parse(odd);
            assert!(!line.is_refusal(), "{odd}");
        }
    }

    #[test]
    fn foreign_text_is_escaped() {
        let html = render(transcript_view("  1 < 220 <script>\n")) + &render(Code::new("Source", "<b>"));
        assert!(html.contains("220 &lt;script&gt;") && html.contains("\n&lt;b&gt;"));
    }
}
