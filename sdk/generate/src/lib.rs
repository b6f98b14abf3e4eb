//! Writes the generated files of the SDKs from `sdk/operations.json` and the templates of each language.

pub mod case;
pub mod error;
pub mod error_classes;
pub mod filters;
pub mod generator;
pub mod manifest;
pub mod model;
pub mod operations;
pub mod output;
pub mod quote;
pub mod render;
mod reserved_words;
pub mod schema;
pub mod types;
pub mod words;
