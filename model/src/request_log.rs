//! The request log: one entry per API request. The audit log: the entries of requests that changed something, sent email
//! or revealed a secret, which are kept longer and say more.
//!
//! Query, body and headers are not stored, and email addresses in the path are redacted. The entry is enough to find a
//! request and its result.

use std::net::IpAddr;

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, ApiKeyId, ApprovalId, GrantId, RequestId, UserId};

/// Retention of entries: 30 days.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
/// Retention of entries of the audit log: 90 days.
pub const AUDIT_RETENTION: std::time::Duration = std::time::Duration::from_secs(90 * 24 * 3600);
/// Longer paths are truncated.
const PATH_CHARS_MAX: usize = 200;
/// Replacement for a redacted path segment.
const REDACTED: &str = "[redacted]";

words! {
    /// The way by which a request came.
    RequestSurface {
        /// HTTP: an SDK, the CLI or another program.
        Api = "api",
        Dashboard = "dashboard",
        /// The Model Context Protocol.
        Mcp = "mcp",
        /// A request of a client that a person approved.
        Approval = "approval",
    }
}

/// The fields of the audit log besides those of the request log.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub surface: RequestSurface,
    /// The client's address, if known.
    pub address: Option<IpAddr>,
    /// Id of the object that the request created, changed or deleted, if it names one.
    pub object: Option<String>,
    /// The approval that the request waits for, or after which it was carried out.
    pub approval: Option<ApprovalId>,
    pub approved_by: Option<UserId>,
}

/// An API request and its result.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// `None` for requests that only read.
    pub audit: Option<AuditRecord>,
}

/// Redacts path segments that contain an email address.
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
