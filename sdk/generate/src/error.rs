//! `GenerateError`: the reasons why nothing is generated.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug)]
pub enum GenerateError {
    /// A file or directory cannot be read or written.
    File { path: PathBuf, cause: std::io::Error },
    /// A JSON file has another form than expected.
    Json { path: PathBuf, cause: serde_json::Error },
    /// A template is invalid, or uses a value that the model does not have.
    Template { path: String, cause: minijinja::Error },
    /// The model cannot be built from the operations; the text says why.
    Model(String),
    /// An argument of the command line is unknown.
    Usage(String),
}

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Json { path, cause } => write!(f, "{}: {cause}", path.display()),
            // The alternate form has the lines of the template around the error.
            Self::Template { path, cause } => write!(f, "{path}: {cause:#}"),
            Self::Model(text) | Self::Usage(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for GenerateError {}
