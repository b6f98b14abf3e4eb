//! Compiles a source.

use std::collections::HashMap;

use model::template::{MARKUP_BYTES_MAX, MarkupError};
use mrml::prelude::parser::{Error, ParserOptions};
use mrml::prelude::render::RenderOptions;

use crate::preprocess::{PreprocessedSource, preprocess};

/// A compiled source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledMjml {
    /// The HTML, with the tags of the template language.
    pub html: String,
    /// Advice about the source.
    pub warnings: Vec<String>,
}

/// Compiles a source. The same source gives the same HTML.
///
/// No fonts of other hosts are loaded, unless the source names them with `<mj-font>`: mrml's own list is not used.
///
/// # Errors
/// Returns the first place of the source that cannot be compiled.
pub fn compile(source: &str) -> Result<CompiledMjml, MarkupError> {
    if source.len() > MARKUP_BYTES_MAX {
        return Err(MarkupError::at_byte(source, 0, format!("is longer than {MARKUP_BYTES_MAX} bytes")));
    }
    let preprocessed = preprocess(source)?;
    let parsed = mrml::parse_with_options(&preprocessed.text, &ParserOptions::default())
        .map_err(|error| parse_error(source, &preprocessed, &error))?;
    let options = RenderOptions { disable_comments: true, social_icon_origin: None, fonts: HashMap::new() };
    let rendered = parsed.element.render(&options);
    let rendered = rendered.map_err(|_| MarkupError::at_byte(source, 0, "the elements cannot be laid out"))?;
    let PreprocessedSource { placeholders, warnings, .. } = preprocessed;
    Ok(CompiledMjml { html: placeholders.restore(source, &rendered)?, warnings })
}

/// Advice about a source, which is not compiled.
pub fn warnings(source: &str) -> Vec<String> {
    preprocess(source).map(|source| source.warnings).unwrap_or_default()
}

/// The error of mrml, at its place in the source.
fn parse_error(source: &str, preprocessed: &PreprocessedSource<'_>, error: &Error) -> MarkupError {
    let position = match error {
        Error::UnexpectedElement { position, .. }
        | Error::UnexpectedToken { position, .. }
        | Error::MissingAttribute { position, .. }
        | Error::InvalidAttribute { position, .. }
        | Error::InvalidFormat { position, .. }
        | Error::IncludeLoaderError { position, .. } => Some(position.start),
        Error::EndOfStream { .. } | Error::SizeLimit { .. } | Error::ParserError { .. } | Error::NoRootNode => None,
    };
    let places = &preprocessed.places;
    let before = |position: usize| places.partition_point(|(written, _)| *written <= position).checked_sub(1);
    let place = position.and_then(before).and_then(|n| places.get(n)).map_or(0, |(_, read)| *read);
    let message = match error {
        Error::MissingAttribute { name, .. } => format!("the attribute `{name}` is missing"),
        Error::InvalidAttribute { .. } => "this attribute has an unknown value".to_owned(),
        _ => "this is not allowed here".to_owned(),
    };
    MarkupError::at_byte(source, place, message)
}

#[cfg(test)]
mod tests;
