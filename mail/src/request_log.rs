//! The request log: one entry per API request.
//!
//! Query, body and headers are not stored, and email addresses in the path are redacted. The entry is enough to find a
//! request and its result.

use jiff::Timestamp;

use crate::id::{AccountId, ApiKeyId, GrantId, RequestId, UserId};

/// Retention of entries: 30 days.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
/// Longer paths are truncated.
const PATH_CHARS_MAX: usize = 200;
/// Replacement for a redacted path segment.
const REDACTED: &str = "[redacted]";

/// An API request and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    pub id: RequestId,
    pub account: AccountId,
    pub api_key: Option<ApiKeyId>,
    /// The user of the session, if a session authenticated the request.
    pub user: Option<UserId>,
    /// The grant, if an access token authenticated the request.
    pub grant: Option<GrantId>,
    pub method: String,
    pub path: String,
    /// The operation id of the API.
    pub operation: String,
    /// HTTP status of the response.
    pub status: u16,
    pub error_code: Option<String>,
    pub duration_ms: u32,
    pub created_at: Timestamp,
}

/// Redacts path segments that contain an email address.
#[must_use]
pub fn redact_path(path: &str) -> String {
    let contains_address = |part: &str| part.contains('@') || part.to_ascii_lowercase().contains("%40");
    let parts: Vec<&str> = path.split('/').map(|part| if contains_address(part) { REDACTED } else { part }).collect();
    let whole = parts.join("/");
    whole.chars().filter(|c| !c.is_control()).take(PATH_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_redacted() {
        assert_eq!(redact_path("/emails/msg_1/raw"), "/emails/msg_1/raw");
        assert_eq!(redact_path("/suppressions/a@b.example"), "/suppressions/[redacted]");
        assert_eq!(redact_path("/suppressions/a%40b.example/x"), "/suppressions/[redacted]/x");
        assert_eq!(redact_path(&"/x".repeat(500)).len(), PATH_CHARS_MAX);
    }
}
