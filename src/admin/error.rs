//! Refusals and failures of requests.

use std::borrow::Cow;
use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Result of a request as JSON, or its error.
pub(crate) type AdminResult = Result<Value, AdminError>;

pub(super) fn error_text(error: impl Display) -> String {
    error.to_string()
}

/// A refused or failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct AdminError {
    /// Text for the operator.
    pub message: String,
    /// Machine-readable code.
    pub code: Cow<'static, str>,
}

impl AdminError {
    /// Creates an error with a code other than `refused`.
    pub fn with_code(code: &'static str, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: code.into() }
    }
}

impl From<String> for AdminError {
    fn from(message: String) -> Self {
        Self::with_code("refused", message)
    }
}

impl From<&str> for AdminError {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}
