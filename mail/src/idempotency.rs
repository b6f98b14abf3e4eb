//! What an idempotency key stands for: a request that was carried out, and how it was answered.
//!
//! A key is its account's, for one operation, for [`KEPT`] (email-api.md, "Email endpoints").

use std::time::Duration;

use jiff::Timestamp;

use crate::id::EmailId;

/// For how long a key is kept.
pub const RETENTION: Duration = Duration::from_secs(24 * 3600);
/// The longest key, in characters.
pub const KEY_CHARS_MAX: usize = 256;

/// Checks a key.
///
/// # Errors
/// What is wrong with it.
pub fn check_key(key: &str) -> Result<(), String> {
    if !(1..=KEY_CHARS_MAX).contains(&key.chars().count()) || key.chars().any(char::is_control) {
        return Err(format!("is one text of 1 to {KEY_CHARS_MAX} printable characters"));
    }
    Ok(())
}

/// What the key was used for. The number is part of the stored key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IdempotencyScope {
    /// `POST /emails`.
    Send = 1,
    /// `POST /emails/batch`.
    SendBatch = 2,
    /// `POST /emails/{id}/resend`.
    Resend = 3,
    /// A message handed in by SMTP.
    Submit = 4,
    /// One email of `POST /emails/batch`, with a key of its own.
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
    /// What an owner does, each operation by its id.
    OwnerAction = 40,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotentResult {
    /// It was done; the answer's body, as it was given.
    Done(String),
    /// Some of it was done, and the rest may be asked for again with the same key.
    Partly(PartialResult),
    /// Whether it was done could not be learned; the email, should it exist.
    Unconfirmed(EmailId),
}

/// What was done in part: of a batch some emails were answered for good, others are to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialResult {
    /// The answer's body, as it was given.
    pub answer: String,
    /// The places of those that may be asked for again, from 0.
    pub open: Vec<u16>,
}

/// A key that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// What was asked: SHA-256 of the request in its canonical form, in hexadecimal.
    pub fingerprint: String,
    /// What came of it.
    pub outcome: IdempotentResult,
    /// When it was used.
    pub created_at: Timestamp,
}

impl IdempotencyRecord {
    /// Whether the key still stands for it.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.created_at.checked_add(RETENTION).is_ok_and(|until| now < until)
    }
}
