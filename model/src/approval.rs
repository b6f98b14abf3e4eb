//! Approval: a request of a client that a person decides before it is executed ([`crate::client_policy`]).
//!
//! ```text
//! pending ─► rejected
//!    │  └──► expired                                after 24 hours
//!    └─────► approved ─► executing ─► executed      or failed, if the response is an error
//!                            └──────► interrupted   it may have been executed, and is not repeated
//! ```
//!
//! An execution that fails for now before anything was done is approved again, and is begun anew.
//!
//! The decision names the hash of what the person saw: the request, and the emails that it sends with their recipients
//! and content. Nothing else is carried out. The content ([`HeldContent`]) is deleted long before the rest, and with it what the
//! request tells about people ([`HeldRequest::without_content`]).

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use message::{hexadecimal, words};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::client_policy::ApprovalKind;
use crate::credential::CredentialId;
use crate::held_email::HeldEmail;
use crate::id::{AccountId, ApprovalId, UserId};
use crate::request_log::redact_path;

pub const DECISION_TIME: Duration = Duration::from_secs(24 * 3600);
/// Time after which another node may take over an execution. The executor waits less long for the handler.
pub const EXECUTION_LEASE: Duration = Duration::from_secs(120);
/// Retention of decided approvals.
pub const RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// Time after the execution in which the content and the response are kept.
pub const EXECUTED_CONTENT_TIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of the body of a request that waits for approval.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Maximum length of the content of a request that waits for approval, with the emails that it sends.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;
/// Maximum length of a stored response; longer ones are not stored.
pub const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of pending approvals of an account.
pub const PENDING_MAX: usize = 200;
/// Maximum length of the contents of all pending approvals of an account.
pub const PENDING_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of requests of an account that are held on one day (UTC).
pub const HELD_PER_DAY_MAX: u32 = 1_000;
/// Maximum number of pending approvals of one client: a quarter, so that it cannot keep others from asking.
pub const CLIENT_PENDING_MAX: usize = PENDING_MAX / 4;
/// Maximum length of the contents of all pending approvals of one client.
pub const CLIENT_PENDING_BYTES_MAX: u64 = PENDING_BYTES_MAX / 4;
/// Maximum number of requests of one client that are held on one day (UTC).
pub const CLIENT_HELD_PER_DAY_MAX: u32 = HELD_PER_DAY_MAX / 4;

/// The request as the client made it, without its body.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRequest {
    /// The operation id of the API.
    pub operation: String,
    pub method: String,
    /// The path, percent-encoded as it was sent.
    pub path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    pub idempotency_key: Option<String>,
    /// The other header fields that the operation reads, by name and value.
    pub headers: Vec<(String, String)>,
}

/// The content of a held request. It is stored encrypted, and deleted once it is not needed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeldContent {
    /// The body: JSON, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The emails that the request sends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<HeldEmail>,
    /// The JSON body of the response once the request was executed; empty if it was too long or not JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub response: String,
}

impl HeldRequest {
    /// SHA-256 over the request and its body as they were sent, in hexadecimal.
    pub fn hash(&self, body: &str) -> String {
        self.hash_with(body, &[])
    }

    /// SHA-256 over the request, its body and the emails that it sends, in hexadecimal. The decision names it.
    pub fn content_hash(&self, content: &HeldContent) -> String {
        self.hash_with(&content.body, &content.emails)
    }

    fn hash_with(&self, body: &str, emails: &[HeldEmail]) -> String {
        let Self { operation, method, path, query, idempotency_key, headers } = self;
        let emails: Vec<String> = emails.iter().map(HeldEmail::hash).collect();
        let key = idempotency_key.as_deref();
        let mut parts = vec![Some(operation.as_str()), Some(method), Some(path), Some(query), key, Some(body)];
        parts.extend(headers.iter().flat_map(|(name, value)| [Some(name.as_str()), Some(value)]));
        // Keeps header fields and emails apart.
        parts.push(None);
        parts.extend(emails.iter().map(|hash| Some(hash.as_str())));
        let mut hash = Sha256::new();
        for part in parts {
            // The length keeps parts apart; an absent part differs from an empty one.
            hash.update(part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
            hash.update(part.unwrap_or_default().as_bytes());
        }
        hexadecimal::encode(hash.finalize())
    }

    /// The request as it is kept once its content was deleted: without query, header fields, and addresses in the path.
    pub fn without_content(&self) -> Self {
        let Self { operation, method, path, query: _, idempotency_key, headers: _ } = self;
        Self {
            operation: operation.clone(),
            method: method.clone(),
            path: redact_path(path),
            query: String::new(),
            idempotency_key: idempotency_key.clone(),
            headers: Vec::new(),
        }
    }

    /// The value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Sends of a client that were counted against its daily limit when a request was held. They are given back if the
/// request is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedSends {
    /// The day in UTC.
    pub day: Date,
    pub sends: u32,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ApprovalState {
    Pending,
    Rejected {
        rejected: Decision,
    },
    /// The time for a decision is over, and the content was deleted.
    Expired,
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
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub account: AccountId,
    /// The client that made the request.
    pub client: CredentialId,
    pub kind: ApprovalKind,
    /// True if it changes what partners are paid: those decide who may do that.
    pub moves_money: bool,
    pub request: HeldRequest,
    /// [`HeldRequest::hash`]; approvals without a fingerprint compare it.
    pub request_hash: String,
    /// The content of the request without its formatting: a request with the same idempotency key must have it. Earlier
    /// versions stored none.
    pub fingerprint: Option<String>,
    /// [`HeldRequest::content_hash`].
    pub hash: String,
    /// The sends that are counted, if the client's policy limits them; `None` once they cannot be given back, because an
    /// attempt that was interrupted may have used them.
    pub reserved_sends: Option<ReservedSends>,
    /// The response of the client's request contains it.
    pub created_at: Timestamp,
    #[serde(flatten)]
    pub state: ApprovalState,
}

words! {
    /// The word of a state in the API.
    ApprovalStatus {
        Pending = "pending",
        Expired = "expired",
        Rejected = "rejected",
        Approved = "approved",
        Executing = "executing",
        Executed = "executed",
        /// Executed, and the response is an error.
        Failed = "failed",
        Interrupted = "interrupted",
    }
}

impl Approval {
    /// End of the time for a decision.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.checked_add(DECISION_TIME).unwrap_or(Timestamp::MAX)
    }

    pub fn status(&self, now: Timestamp) -> ApprovalStatus {
        match &self.state {
            ApprovalState::Expired => ApprovalStatus::Expired,
            ApprovalState::Pending if self.expires_at() <= now => ApprovalStatus::Expired,
            ApprovalState::Pending => ApprovalStatus::Pending,
            ApprovalState::Rejected { .. } => ApprovalStatus::Rejected,
            ApprovalState::Approved { .. } => ApprovalStatus::Approved,
            ApprovalState::Executing { .. } => ApprovalStatus::Executing,
            ApprovalState::Executed { result, .. } if result.status >= 400 => ApprovalStatus::Failed,
            ApprovalState::Executed { .. } => ApprovalStatus::Executed,
            ApprovalState::Interrupted { .. } => ApprovalStatus::Interrupted,
        }
    }

    /// Returns whether a request that uses the same idempotency key again is the held one.
    pub fn is_same_request(&self, fingerprint: &str, request_hash: &str) -> bool {
        match &self.fingerprint {
            Some(held) => held == fingerprint,
            None => self.request_hash == request_hash,
        }
    }

    /// When the content is deleted; `None` while it is needed, and once it was deleted with the decision.
    pub fn content_ends_at(&self) -> Option<Timestamp> {
        let kept_until = |at: Timestamp| at.checked_add(EXECUTED_CONTENT_TIME).unwrap_or(Timestamp::MAX);
        match &self.state {
            ApprovalState::Pending => Some(self.expires_at()),
            ApprovalState::Executed { result, .. } => Some(kept_until(result.at)),
            ApprovalState::Interrupted { at, .. } => Some(kept_until(*at)),
            ApprovalState::Rejected { .. }
            | ApprovalState::Expired
            | ApprovalState::Approved { .. }
            | ApprovalState::Executing { .. } => None,
        }
    }

    /// When its idempotency key may be used for another request; `None` while it is not decided or being executed.
    pub fn key_ends_at(&self) -> Option<Timestamp> {
        let ended_at = match &self.state {
            ApprovalState::Pending | ApprovalState::Expired => self.expires_at(),
            ApprovalState::Rejected { rejected } => rejected.at,
            ApprovalState::Executed { result, .. } => result.at,
            ApprovalState::Interrupted { at, .. } => *at,
            ApprovalState::Approved { .. } | ApprovalState::Executing { .. } => return None,
        };
        Some(ended_at.checked_add(crate::idempotency::RETENTION).unwrap_or(Timestamp::MAX))
    }

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<Decision> {
        match &self.state {
            ApprovalState::Pending | ApprovalState::Expired => None,
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

    const BODY: &str = r#"{"to":["ada@example.com"]}"#;

    fn request() -> HeldRequest {
        HeldRequest {
            operation: "send_email".to_owned(),
            method: "POST".to_owned(),
            path: "/emails".to_owned(),
            query: String::new(),
            idempotency_key: None,
            headers: Vec::new(),
        }
    }

    #[test]
    fn the_hash_covers_every_part() {
        let hash = request().hash(BODY);
        assert_eq!(hash.len(), 64);
        assert_eq!(hash, request().hash(BODY));
        assert_ne!(hash, request().hash("{}"));
        let edits: [fn(&mut HeldRequest); 7] = [
            |r| r.operation.push('x'),
            |r| r.method = "PUT".to_owned(),
            |r| r.path.push('/'),
            |r| r.query.push('a'),
            |r| r.idempotency_key = Some(String::new()),
            |r| r.headers = vec![("if-match".to_owned(), String::new())],
            |r| (r.path, r.query) = ("/email".to_owned(), "s".to_owned()),
        ];
        for edit in edits {
            let mut edited = request();
            edit(&mut edited);
            assert_ne!(edited.hash(BODY), hash, "{edited:?}");
        }
    }

    #[test]
    fn a_pending_approval_expires_and_content_is_kept_for_a_day() {
        let created_at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut approval = Approval {
            id: ApprovalId::new(created_at, 1),
            account: AccountId::new(created_at, 1),
            client: CredentialId::ApiKey(crate::id::ApiKeyId::new(created_at, 1)),
            kind: ApprovalKind::Send,
            moves_money: false,
            request: request(),
            request_hash: request().hash(BODY),
            fingerprint: None,
            hash: request().hash(BODY),
            reserved_sends: None,
            created_at,
            state: ApprovalState::Pending,
        };
        assert!(approval.is_same_request("other", &request().hash(BODY)), "a row of an earlier version");
        approval.fingerprint = Some("same".to_owned());
        assert!(approval.is_same_request("same", "") && !approval.is_same_request("other", &request().hash(BODY)));
        assert_eq!(approval.status(created_at), ApprovalStatus::Pending);
        assert_eq!(approval.status(approval.expires_at()), ApprovalStatus::Expired);
        assert_eq!(approval.expires_at().to_string(), "2026-01-02T00:00:00Z");
        assert_eq!(approval.content_ends_at(), Some(approval.expires_at()));
        assert_eq!(approval.key_ends_at().unwrap().to_string(), "2026-01-03T00:00:00Z");
        let approved = Decision { by: UserId::new(created_at, 1), at: created_at };
        approval.state = ApprovalState::Approved { approved };
        assert_eq!((approval.content_ends_at(), approval.key_ends_at()), (None, None));
        for (status, expected) in [(200, ApprovalStatus::Executed), (409, ApprovalStatus::Failed)] {
            let result = ExecutionResult { at: created_at, status, error_code: None };
            approval.state = ApprovalState::Executed { approved, result };
            assert_eq!(approval.status(created_at), expected);
            assert_eq!(approval.content_ends_at().unwrap().to_string(), "2026-01-02T00:00:00Z");
        }
    }
}
