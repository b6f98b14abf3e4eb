//! Notices: what was done, and what needs attention.

use hypertext::{Buffer, prelude::*};

use super::badge::Tone;

/// A notice.
#[derive(Debug, Clone)]
pub struct Notice<'a> {
    pub tone: Tone,
    pub text: &'a str,
}

impl Renderable for Notice<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let class = match self.tone {
            Tone::Good => "notice good",
            Tone::Bad => "notice bad",
            Tone::Warning => "notice warning",
            Tone::Neutral | Tone::Active => "notice",
        };
        maud! { div class=(class) role="status" { p { (self.text) } } }.render_to(buffer);
    }
}

/// The sentence of a code in the query field `done`; `None` for unknown codes, which anybody can write into a link.
#[must_use]
pub fn done_text(code: &str) -> Option<&'static str> {
    Some(match code {
        "activated" => "It is active now.",
        "added" => "It was added.",
        "approved" => "It was approved.",
        "archived" => "It was archived.",
        "canceled" => "It was canceled.",
        "changed" => "The change was saved.",
        "created" => "It was created.",
        "deleted" => "It was deleted.",
        "ended" => "The session was ended.",
        "imported" => "The import was started.",
        "invited" => "The invitation was sent.",
        "mailed" => "If the address has an account here, a link is on its way to it.",
        "paused" => "It is paused.",
        "published" => "The version is published.",
        "queued" => "It is on its way: the list shows it as soon as it is stored.",
        "replayed" => "It will be sent again.",
        "resumed" => "It goes on.",
        "rolled_back" => "The earlier version is published again.",
        "sent" => "The email was accepted.",
        "signed_out" => "You are signed out.",
        "tested" => "The test was sent.",
        "verified" => "The records were looked up.",
        _ => return None,
    })
}
