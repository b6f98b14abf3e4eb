//! Texts of strangers.

use std::fmt::Write as _;

use hypertext::context::AttributeValue;
use hypertext::{Buffer, Raw, prelude::*};

use crate::display_text::is_deceptive;

/// The value of a control. Invisible characters and direction overrides are written as character references: so the
/// person's text comes back unchanged, though [`display_text`](crate::display_text) replaces them in the rest of the
/// page.
pub fn input_value(text: &str) -> InputValue<'_> {
    InputValue(text)
}

/// See [`input_value`].
#[derive(Debug, Clone, Copy)]
pub struct InputValue<'a>(&'a str);

impl InputValue<'_> {
    fn escaped(&self) -> String {
        let mut escaped = String::with_capacity(self.0.len() + self.0.len() / 16);
        for one in self.0.chars() {
            match one {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '"' => escaped.push_str("&quot;"),
                // A reference to a control character is a parse error (HTML, "numeric character reference end state").
                one if one.is_control() && is_deceptive(one) => escaped.push('\u{fffd}'),
                one if is_deceptive(one) => {
                    // Writing to a `String` does not fail.
                    let _ = write!(escaped, "&#x{:X};", u32::from(one));
                }
                one => escaped.push(one),
            }
        }
        escaped
    }
}

impl Renderable for InputValue<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        Raw::<_>::dangerously_create(self.escaped()).render_to(buffer);
    }
}

impl Renderable<AttributeValue> for InputValue<'_> {
    fn render_to(&self, buffer: &mut Buffer<AttributeValue>) {
        Raw::<_, AttributeValue>::dangerously_create(self.escaped()).render_to(buffer);
    }
}

/// An address in a cell of a table: it breaks only if it is long.
pub fn address_cell(address: &str) -> impl Renderable + use<'_> {
    maud! { span.address { (address) } }
}

/// The number with thousands separated by narrow spaces: `12 345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// The number with its noun: `1 email`, `12 345 emails`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A word of the API as people write it: `hard_bounce` is "Hard bounce".
pub fn sentence_case(word: &str) -> String {
    let words = word.split(['_', '.']).map(|word| match word {
        "api" => "API",
        "dns" => "DNS",
        "ip" => "IP",
        "smtp" => "SMTP",
        "sms" => "SMS",
        "url" => "URL",
        word => word,
    });
    let text = words.collect::<Vec<_>>().join(" ");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// A size in bytes: `1.4 MB`.
pub fn file_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_controls_survive() {
        assert_eq!(input_value("a<\"&\u{202e}\u{1}").escaped(), "a&lt;&quot;&amp;&#x202E;\u{fffd}");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!([0, 1, 1_000].map(|n| counted(n, "email")), ["0 emails", "1 email", "1\u{202f}000 emails"]);
        assert_eq!(
            (sentence_case("hard_bounce"), sentence_case("api_keys")),
            ("Hard bounce".into(), "API keys".into())
        );
        assert_eq!(file_size(1_400_000), "1.4 MB");
    }
}
