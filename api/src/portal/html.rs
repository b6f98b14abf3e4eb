//! HTML fragments whose types keep text and markup apart: markup is a literal of the program ([`Html::raw`] takes
//! `&'static str`), and all other text is escaped.
//!
//! `push!(html, "<p>" (name) "</p>" [inner])`: literals are markup, `(…)` is text, `[…]` is another fragment.

use std::fmt::{self, Display, Write};

/// A fragment of a page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds markup without escaping.
    pub fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Adds escaped text, for element content and quoted attributes.
    pub fn text(&mut self, text: &dyn Display) {
        // Writing to a `String` does not fail.
        let _ = write!(EscapingWriter(&mut self.0), "{text}");
    }

    /// Adds another fragment.
    pub fn put(&mut self, fragment: &Self) {
        self.0.push_str(&fragment.0);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Escapes the text that is written through it.
struct EscapingWriter<'a>(&'a mut String);

impl Write for EscapingWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Bidirectional overrides and control characters that HTML forbids become U+FFFD.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('\u{fffd}'),
                c if c.is_control() && !matches!(c, '\n' | '\t' | '\r') => self.0.push('\u{fffd}'),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

/// Appends parts to a fragment; the `//!` page shows the syntax.
macro_rules! push {
    (@ $html:ident ($text:expr)) => { $html.text(&$text) };
    (@ $html:ident [$piece:expr]) => { $html.put(&$piece) };
    (@ $html:ident $markup:literal) => { $html.raw($markup) };
    ($html:ident, $($part:tt)*) => {{ $($crate::portal::html::push!(@ $html $part);)* }};
}
pub(crate) use push;

/// Makes a fragment of such parts.
macro_rules! html {
    ($($part:tt)*) => {{
        let mut html = $crate::portal::html::Html::new();
        $crate::portal::html::push!(html, $($part)*);
        html
    }};
}
pub(crate) use html;

#[cfg(test)]
mod tests {

    #[test]
    fn only_literals_are_markup() {
        let name = "<script>\"a\" & 'b'</script>\u{202e}\u{0}";
        let inner = html! { "<b>" (name) "</b>" };
        let all = html! { "<p title=\"" (name) "\">" [inner] (7) "</p>" }.into_string();
        let escaped = "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;\u{fffd}\u{fffd}";
        assert_eq!(all, format!("<p title=\"{escaped}\"><b>{escaped}</b>7</p>"));
    }
}
