//! Notices: what was done, and what needs attention.

use hypertext::{Buffer, prelude::*};

use crate::badge::Tone;

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

/// The reason why a form was refused.
#[derive(Debug, Clone, Copy)]
pub struct Alert<'a>(pub &'a str);

impl Renderable for Alert<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! { div.notice.bad role="alert" { p { (self.0) } } }.render_to(buffer);
    }
}
