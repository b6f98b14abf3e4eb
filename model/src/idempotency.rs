//! Idempotency keys: the request that used a key, and the stored response to replay.
//!
//! A key is scoped to one account and one operation, and is valid for [`RETENTION`].

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::EmailId;

/// Validity of a key after its first use.
pub const RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of a key, in characters.
pub const KEY_CHARS_MAX: usize = 256;

/// Validates a key.
///
/// # Errors
/// Returns the reason, to be appended to the field's name.
pub fn check_key(key: &str) -> Result<(), String> {
    if !(1..=KEY_CHARS_MAX).contains(&key.chars().count()) || key.chars().any(char::is_control) {
        return Err(format!("must be 1 to {KEY_CHARS_MAX} printable characters"));
    }
    Ok(())
}

/// The operation of a key. The number is part of the stored key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IdempotencyScope {
    /// `POST /emails`.
    Send = 1,
    /// `POST /emails/batch`.
    SendBatch = 2,
    /// `POST /emails/{id}/resend`.
    Resend = 3,
    /// A message submitted by SMTP.
    Submit = 4,
    /// One email of `POST /emails/batch` with a key of its own.
    SendItem = 5,
    /// `POST /events`.
    SendEvent = 6,
    /// `POST /received-emails/{id}/reply`.
    Reply = 20,
    /// `POST /received-emails/{id}/forward`.
    Forward = 21,
    /// `POST /affiliates`.
    CreatePartner = 30,
    /// `POST /affiliates/{id}/approve`, `…/reject`, `…/suspend`.
    MovePartner = 31,
    /// `POST /affiliates/{id}/links`.
    CreateLink = 32,
    /// `POST /affiliate-campaigns`.
    CreateCampaign = 33,
    /// `POST /affiliate-referrals`.
    CreateReferral = 34,
    /// `POST /affiliate-payouts/{id}/mark-paid`.
    MarkPaid = 38,
    /// `POST /affiliates/{id}/login-link`.
    MintLoginLink = 39,
    /// An operation of the account's owner; the key contains the operation id.
    OwnerAction = 40,
}

/// The result of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdempotentResult {
    /// Completed; the response body as it was sent.
    Done(String),
    /// Partly completed; the same key may retry the rest.
    Partly(PartialResult),
    /// Unknown: the commit could not be confirmed. The id is the email's, if it was stored.
    Unconfirmed(EmailId),
}

/// The result of a batch in which some emails are final and the others may be retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialResult {
    /// The response body as it was sent.
    pub answer: String,
    /// Indexes of the batch items that may be retried, from 0.
    pub open: Vec<u16>,
}

/// A used key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// SHA-256 of the request in its canonical form, in hexadecimal.
    pub fingerprint: String,
    pub outcome: IdempotentResult,
    pub created_at: Timestamp,
}

impl IdempotencyRecord {
    /// Returns whether the key is within its [`RETENTION`].
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.created_at.checked_add(RETENTION).is_ok_and(|until| now < until)
    }
}
