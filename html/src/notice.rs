//! Notices: what was done, and what needs attention.

use hypertext::{Buffer, prelude::*};

use crate::badge::Tone;

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

/// The reason why a form was refused.
pub fn alert(text: &str) -> impl Renderable {
    maud! { div.notice.bad role="alert" { p { (text) } } }
}
