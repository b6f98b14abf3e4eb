//! A QR code as a picture (ISO/IEC 18004).

use std::fmt::Write as _;

use hypertext::prelude::*;
use qrcodegen::{QrCode, QrCodeEcc};

use crate::dashboard::context::raw;
use crate::dashboard::page::Fragment;

/// Modules around the code that stay light.
const BORDER: i32 = 4;

/// A QR code of a text; nothing if the text is too long for one. `label` is the name for screen readers.
pub fn qr_code(text: &str, label: &str) -> Fragment {
    let Ok(modules) = QrCode::encode_text(text, QrCodeEcc::Medium) else { return Fragment::default() };
    let size = modules.size();
    let mut path = String::new();
    for (y, x) in (0..size).flat_map(|y| (0..size).map(move |x| (y, x))).filter(|(y, x)| modules.get_module(*x, *y)) {
        // Writing to a `String` does not fail.
        let _ = write!(path, "M{} {}h1v1h-1z", x + BORDER, y + BORDER);
    }
    let side = size + 2 * BORDER;
    let picture = format!(
        "<svg viewBox=\"0 0 {side} {side}\" width=\"220\" height=\"220\" aria-hidden=\"true\" focusable=\"false\">\
         <path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\"{path}\"/></svg>"
    );
    Fragment::new(maud! { div.qr role="img" aria-label=(label) { (raw(&picture)) } })
}
