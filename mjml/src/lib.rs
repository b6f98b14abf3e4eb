//! Compiles the MJML source of a template to the HTML that emails are rendered from.
//!
//! ```text
//! source ─► preprocessed source (placeholders for contents, tags and unusual text) ─► mrml ─► placeholders replaced
//! ```
//!
//! mrml lays the elements out. It gets the preprocessed source: the elements of [`grammar`] with short attribute values
//! of plain ASCII, and a placeholder for everything else. So the content of `<mj-text>` and of the other elements that
//! hold HTML is in the result byte for byte, a tag of the template language can stand in it anywhere, and mrml sees
//! nothing that it could misread.
//!
//! The source may be hostile. The grammar has no recursion, so it bounds the depth, which the preprocessor checks without
//! recursion; the numbers of elements and of bytes that mrml repeats are bounded; nothing is read from files or hosts.
//! A tag that the layout loses is an error: what is stored has every tag of its source.

mod compile;
mod grammar;
mod placeholders;
mod preprocess;

pub use self::compile::{CompiledMjml, compile, warnings};
pub use self::preprocess::{CAROUSEL_IMAGES_MAX, ELEMENTS_MAX};
