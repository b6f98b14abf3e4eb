//! Text that is held back from mrml, and put back into what it renders.

use std::borrow::Cow;

use mail::template::{MARKUP_BYTES_MAX, MarkupError};

/// Begins a placeholder; digits follow. Text with these letters is held back too, so each one found is a placeholder.
pub(crate) const MARK: &str = "qzx";
/// Digits of a placeholder.
const DIGITS: usize = 6;

/// Texts that are held back, by the numbers of their placeholders.
#[derive(Debug, Default)]
pub(crate) struct HeldTexts<'s>(Vec<HeldText<'s>>);

#[derive(Debug)]
struct HeldText<'s> {
    text: Cow<'s, str>,
    /// The place of a tag that must not get lost, and the error if it is.
    required: Option<MarkupError>,
    is_used: bool,
}

impl<'s> HeldTexts<'s> {
    /// Holds a text back and returns its placeholder: letters and digits, which mrml takes for neither a size nor a
    /// color.
    pub(crate) fn hold(&mut self, text: impl Into<Cow<'s, str>>, required: Option<MarkupError>) -> String {
        let placeholder = format!("{MARK}{:0DIGITS$}", self.0.len());
        self.0.push(HeldText { text: text.into(), required, is_used: false });
        placeholder
    }

    /// Puts the texts back.
    ///
    /// # Errors
    /// The result is too long; a tag was lost.
    pub(crate) fn restore(mut self, rendered: &str) -> Result<String, MarkupError> {
        let mut html = String::with_capacity(rendered.len());
        let mut rest = rendered;
        while let Some(at) = rest.find(MARK) {
            let (before, after) = rest.split_at(at);
            html.push_str(before);
            let digits = after.get(MARK.len()..MARK.len() + DIGITS);
            let held = digits.and_then(|digits| digits.parse().ok()).and_then(|n: usize| self.0.get_mut(n));
            match held {
                Some(held) => {
                    html.push_str(&held.text);
                    held.is_used = true;
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
        match self.0.into_iter().find(|held| !held.is_used && held.required.is_some()) {
            Some(HeldText { required: Some(error), .. }) => Err(error),
            _ => Ok(html),
        }
    }
}

fn check_size(html: &str) -> Result<(), MarkupError> {
    if html.len() > MARKUP_BYTES_MAX {
        let message = format!("the HTML that it compiles to is longer than {MARKUP_BYTES_MAX} bytes");
        return Err(MarkupError { line: 1, column: 1, message });
    }
    Ok(())
}
