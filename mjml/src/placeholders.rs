//! Placeholders: they stand for text that mrml must not read, and are replaced in what it renders.

use std::borrow::Cow;
use std::ops::Range;

use model::template::{MARKUP_BYTES_MAX, MarkupError};

/// Begins a placeholder; digits follow. A placeholder also stands for text with these letters, so that nothing else is
/// taken for one.
pub(crate) const MARK: &str = "qzx";
/// Digits of a placeholder.
const DIGITS: usize = 6;

/// The replaced texts, by the numbers of their placeholders.
#[derive(Debug, Default)]
pub(crate) struct Placeholders<'s>(Vec<PlaceholderText<'s>>);

#[derive(Debug)]
struct PlaceholderText<'s> {
    text: Cow<'s, str>,
    required: Option<RequiredTag>,
    is_used: bool,
}

/// A tag that must not get lost.
#[derive(Debug)]
pub(crate) struct RequiredTag {
    /// Byte offsets in the source.
    pub(crate) range: Range<usize>,
    /// The element or attribute that it stands in.
    pub(crate) place: String,
}

impl RequiredTag {
    fn lost(&self, source: &str) -> MarkupError {
        let shown: String = source.get(self.range.clone()).unwrap_or_default().chars().take(60).collect();
        let message = format!(
            "`{shown}` in {} would be lost: the layout is computed from this value or ignores it, so it cannot be a \
             variable",
            self.place
        );
        MarkupError::at_byte(source, self.range.start, message)
    }
}

impl<'s> Placeholders<'s> {
    /// Stores a text and returns its placeholder: letters and digits, which mrml takes for neither a size nor a
    /// color.
    pub(crate) fn add(&mut self, text: impl Into<Cow<'s, str>>, required: Option<RequiredTag>) -> String {
        let placeholder = format!("{MARK}{:0DIGITS$}", self.0.len());
        self.0.push(PlaceholderText { text: text.into(), required, is_used: false });
        placeholder
    }

    /// Puts the texts back.
    ///
    /// # Errors
    /// The result is too long; a tag of the source was lost.
    pub(crate) fn restore(mut self, source: &str, rendered: &str) -> Result<String, MarkupError> {
        let mut html = String::with_capacity(rendered.len());
        let mut rest = rendered;
        while let Some(at) = rest.find(MARK) {
            let (before, after) = rest.split_at(at);
            html.push_str(before);
            let digits = after.get(MARK.len()..MARK.len() + DIGITS);
            let entry = digits.and_then(|digits| digits.parse().ok()).and_then(|n: usize| self.0.get_mut(n));
            match entry {
                Some(entry) => {
                    html.push_str(&entry.text);
                    entry.is_used = true;
                    rest = after.get(MARK.len() + DIGITS..).unwrap_or_default();
                }
                None => {
                    html.push_str(MARK);
                    rest = after.get(MARK.len()..).unwrap_or_default();
                }
            }
            check_size(&html)?;
        }
        html.push_str(rest);
        check_size(&html)?;
        let mut lost = self.0.iter().filter(|entry| !entry.is_used).filter_map(|entry| entry.required.as_ref());
        lost.next().map_or(Ok(html), |tag| Err(tag.lost(source)))
    }
}

fn check_size(html: &str) -> Result<(), MarkupError> {
    if html.len() > MARKUP_BYTES_MAX {
        let message = format!("the HTML that it compiles to is longer than {MARKUP_BYTES_MAX} bytes");
        return Err(MarkupError { line: 1, column: 1, message });
    }
    Ok(())
}
