//! Approval: a request of a client that a person decides before it is executed ([`crate::client_policy`]).
//!
//! ```text
//! pending ─► rejected
//!    │  └──► (expired)                        after 24 hours
//!    └─────► approved ─► executing ─► executed      the response is kept
//!                            └──────► interrupted   it may have been executed, and is not repeated
//! ```
//!
//! The decision names the hash of the request as the person saw it, so that nothing else can be approved.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::client_policy::ApprovalKind;
use crate::credential::CredentialId;
use crate::id::{AccountId, ApprovalId, UserId};

/// Time for a decision.
pub const DECISION_TIME: Duration = Duration::from_secs(24 * 3600);
/// Time after which another node may take over an execution. The executor waits less long for the handler.
pub const EXECUTION_LEASE: Duration = Duration::from_secs(120);
/// Retention of decided approvals.
pub const RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// Maximum length of the body of a request that waits for approval.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Maximum length of a stored response; longer ones are not stored.
pub const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of pending approvals of an account.
pub const PENDING_MAX: usize = 200;

/// The request as the client made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRequest {
    /// The operation id of the API.
    pub operation: String,
    pub method: String,
    /// The path, percent-encoded as it was sent.
    pub path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The `If-Match` header field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    /// The body: JSON, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl HeldRequest {
    /// SHA-256 over all parts, in hexadecimal. The decision names it.
    #[must_use]
    pub fn hash(&self) -> String {
        let Self { operation, method, path, query, idempotency_key, if_match, body } = self;
        let mut hash = Sha256::new();
        let parts = [
            Some(operation),
            Some(method),
            Some(path),
            Some(query),
            idempotency_key.as_ref(),
            if_match.as_ref(),
            Some(body),
        ];
        for part in parts {
            // The length keeps parts apart; an absent part differs from an empty one.
            hash.update(part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
            hash.update(part.map_or("", String::as_str).as_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A decision of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub by: UserId,
    pub at: Timestamp,
}

/// The response of an executed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionResult {
    pub at: Timestamp,
    /// HTTP status.
    pub status: u16,
    /// The JSON body; empty if it was too long or not JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ApprovalState {
    Pending,
    Rejected {
        rejected: Decision,
    },
    /// Approved; its execution has not begun.
    Approved {
        approved: Decision,
    },
    /// A node executes the request and holds it until `lease_until`.
    Executing {
        approved: Decision,
        lease_until: Timestamp,
    },
    Executed {
        approved: Decision,
        result: ExecutionResult,
    },
    /// The execution was interrupted, and the request cannot be repeated safely.
    Interrupted {
        approved: Decision,
        at: Timestamp,
    },
}

/// A request that waits for a decision, or was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    pub account: AccountId,
    /// The client that made the request.
    pub client: CredentialId,
    pub kind: ApprovalKind,
    pub request: HeldRequest,
    /// The response of the client's request contains it.
    pub created_at: Timestamp,
    pub state: ApprovalState,
}

/// The word of a state in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalStatus {
    Pending,
    Expired,
    Rejected,
    Approved,
    Executing,
    Executed,
    Interrupted,
}

impl ApprovalStatus {
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Expired,
        Self::Rejected,
        Self::Approved,
        Self::Executing,
        Self::Executed,
        Self::Interrupted,
    ];
    /// All words in the API.
    pub const WORDS: &'static [&'static str] =
        &["pending", "expired", "rejected", "approved", "executing", "executed", "interrupted"];

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Expired => "expired",
            Self::Rejected => "rejected",
            Self::Approved => "approved",
            Self::Executing => "executing",
            Self::Executed => "executed",
            Self::Interrupted => "interrupted",
        }
    }

    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

impl Approval {
    /// End of the time for a decision.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.checked_add(DECISION_TIME).unwrap_or(Timestamp::MAX)
    }

    #[must_use]
    pub fn status(&self, now: Timestamp) -> ApprovalStatus {
        match &self.state {
            ApprovalState::Pending if self.expires_at() <= now => ApprovalStatus::Expired,
            ApprovalState::Pending => ApprovalStatus::Pending,
            ApprovalState::Rejected { .. } => ApprovalStatus::Rejected,
            ApprovalState::Approved { .. } => ApprovalStatus::Approved,
            ApprovalState::Executing { .. } => ApprovalStatus::Executing,
            ApprovalState::Executed { .. } => ApprovalStatus::Executed,
            ApprovalState::Interrupted { .. } => ApprovalStatus::Interrupted,
        }
    }

    /// The decision, once there is one.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        match &self.state {
            ApprovalState::Pending => None,
            ApprovalState::Rejected { rejected } => Some(*rejected),
            ApprovalState::Approved { approved }
            | ApprovalState::Executing { approved, .. }
            | ApprovalState::Executed { approved, .. }
            | ApprovalState::Interrupted { approved, .. } => Some(*approved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> HeldRequest {
        HeldRequest {
            operation: "send_email".to_owned(),
            method: "POST".to_owned(),
            path: "/emails".to_owned(),
            query: String::new(),
            idempotency_key: None,
            if_match: None,
            body: r#"{"to":["ada@example.com"]}"#.to_owned(),
        }
    }

    #[test]
    fn the_hash_covers_every_part() {
        let hash = request().hash();
        assert_eq!(hash.len(), 64);
        assert_eq!(hash, request().hash());
        let edits: [fn(&mut HeldRequest); 8] = [
            |r| r.operation.push('x'),
            |r| r.method = "PUT".to_owned(),
            |r| r.path.push('/'),
            |r| r.query.push('a'),
            |r| r.idempotency_key = Some(String::new()),
            |r| r.if_match = Some(String::new()),
            |r| r.body.push(' '),
            |r| (r.path, r.query) = ("/email".to_owned(), "s".to_owned()),
        ];
        for edit in edits {
            let mut edited = request();
            edit(&mut edited);
            assert_ne!(edited.hash(), hash, "{edited:?}");
        }
    }

    #[test]
    fn a_pending_approval_expires() {
        let created_at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let approval = Approval {
            id: ApprovalId::new(created_at, 1),
            account: AccountId::new(created_at, 1),
            client: CredentialId::ApiKey(crate::id::ApiKeyId::new(created_at, 1)),
            kind: ApprovalKind::Send,
            request: request(),
            created_at,
            state: ApprovalState::Pending,
        };
        assert_eq!(approval.status(created_at), ApprovalStatus::Pending);
        assert_eq!(approval.status(approval.expires_at()), ApprovalStatus::Expired);
        assert_eq!(approval.expires_at().to_string(), "2026-01-02T00:00:00Z");
    }
}
