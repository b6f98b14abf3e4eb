//! A QR code as a picture (ISO/IEC 18004).

use hypertext::{Buffer, prelude::*};
use qrcodegen::{QrCode as Modules, QrCodeEcc};

use crate::dashboard::context::raw;

/// Modules around the code that stay light.
const BORDER: i32 = 4;

/// A QR code of a text; nothing if the text is too long for one.
#[derive(Debug, Clone, Copy)]
pub struct QrCode<'a> {
    pub text: &'a str,
    /// The name for screen readers.
    pub label: &'a str,
}

impl Renderable for QrCode<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        use std::fmt::Write as _;
        let Ok(modules) = Modules::encode_text(self.text, QrCodeEcc::Medium) else { return };
        let size = modules.size();
        let mut path = String::new();
        for (y, x) in (0..size).flat_map(|y| (0..size).map(move |x| (y, x))).filter(|(y, x)| modules.get_module(*x, *y))
        {
            // Writing to a `String` does not fail.
            let _ = write!(path, "M{} {}h1v1h-1z", x + BORDER, y + BORDER);
        }
        let side = size + 2 * BORDER;
        let picture = format!(
            "<svg viewBox=\"0 0 {side} {side}\" width=\"220\" height=\"220\" aria-hidden=\"true\" focusable=\"false\">\
             <path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\"{path}\"/></svg>"
        );
        maud! { div.qr role="img" aria-label=(self.label) { (raw(&picture)) } }.render_to(buffer);
    }
}
