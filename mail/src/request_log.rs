//! The request log: what is kept of an API request (completions-email.md 2.7).
//!
//! Neither query nor body nor header is kept, and of the path no address: what remains finds a request
//! and tells what became of it.

use jiff::Timestamp;

use crate::id::{AccountId, ApiKeyId, RequestId, UserId};

/// How long a request is kept.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
/// A path longer than this is cut.
const PATH_CHARS_MAX: usize = 200;
/// Stands for what is not kept.
const REDACTED: &str = "[redacted]";

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Its id.
    pub id: RequestId,
    /// Whose.
    pub account: AccountId,
    /// The key it came with.
    pub api_key: Option<ApiKeyId>,
    /// The user whose session it came with.
    pub user: Option<UserId>,
    /// The method.
    pub method: String,
    /// The path, redacted.
    pub path: String,
    /// What was asked for: the operation's id.
    pub operation: String,
    /// The answer's status.
    pub status: u16,
    /// The error's code.
    pub error_code: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
    /// When it came.
    pub created_at: Timestamp,
}

/// A path without what it may say of people: a part with an address in it is left out.
#[must_use]
pub fn redact_path(path: &str) -> String {
    let says_much = |part: &str| part.contains('@') || part.to_ascii_lowercase().contains("%40");
    let parts: Vec<&str> = path.split('/').map(|part| if says_much(part) { REDACTED } else { part }).collect();
    let whole = parts.join("/");
    whole.chars().filter(|c| !c.is_control()).take(PATH_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_left_out() {
        assert_eq!(redact_path("/emails/msg_1/raw"), "/emails/msg_1/raw");
        assert_eq!(redact_path("/suppressions/a@b.example"), "/suppressions/[redacted]");
        assert_eq!(redact_path("/suppressions/a%40b.example/x"), "/suppressions/[redacted]/x");
        assert_eq!(redact_path(&"/x".repeat(500)).len(), PATH_CHARS_MAX);
    }
}
