//! Submit errors: why a draft was not accepted. Each listener maps them to its reply or problem in one place.

use message::address::{Address, DomainName};
use message::header::MessageError;
use model::client_policy::PolicyViolation;
use model::email::Category;
use model::id::EmailId;
use model::quota::QuotaExceeded;
use model::suppression::{BlockReason, BlockedRecipient};
use model::usage::ExceededCap;
use store::engine::{CommitError, ReadError};
use thiserror::Error;

/// Error of submitting a draft. Nothing is stored, except possibly for [`SubmitError::Unconfirmed`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The author's domain is not a verified domain of the account.
    #[error("the domain {domain} is not verified for this account; add it and publish its records")]
    DomainNotVerified { domain: DomainName },
    /// The sender is the sandbox sender, but the operator has not verified its domain. The customer cannot fix this.
    #[error("the sandbox is not set up on this server: its operator has not verified {domain}")]
    SandboxNotConfigured { domain: DomainName },
    /// The sandbox sender may send to the account's own address only.
    #[error("the sandbox sender can send only to {allowed}; verify a domain to send to others")]
    SandboxRestricted { allowed: Address },
    /// Without production access a verified domain may send to the account's own address only.
    #[error("this account can send only to its own address until production access is unlocked")]
    ProductionRequired,
    /// The API key or credential is restricted to another domain.
    #[error("this credential may not send from {domain}")]
    DomainNotAllowed { domain: DomainName },
    /// The policy of the API key or credential does not permit the email.
    #[error(transparent)]
    Policy(#[from] PolicyViolation),
    /// A person approved a request of the client, and this email is not one of those that they saw.
    #[error(
        "the email differs from the one that was approved: its template, or the email it is made from, has changed"
    )]
    NotApproved,
    #[error("this account is suspended; contact the operator")]
    AccountSuspended,
    /// Recipients are suppressed or opted out of the category.
    #[error("{}", blocked_text(blocked))]
    Suppressed {
        /// Id of the rejected email that was recorded; `None` if none was recorded.
        id: Option<EmailId>,
        /// Category of the email.
        category: Category,
        /// Blocked recipients with reasons.
        blocked: Vec<BlockedRecipient>,
    },
    /// A cap of the plan would be exceeded.
    #[error("the plan's {} limit of {} emails has been reached", .0.period.name(), .0.cap)]
    PlanLimit(ExceededCap),
    /// The plan's email storage is full. Emails are deleted at the end of their retention time.
    #[error("{0}; emails are deleted at the end of their retention period")]
    StorageFull(QuotaExceeded),
    /// The message is malformed.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A field of the draft is invalid.
    #[error("{field}: {message}")]
    Invalid { field: &'static str, message: String },
    /// The message exceeds the size limit.
    #[error("the message is larger than {bytes_max} bytes")]
    TooLarge {
        /// Size limit in bytes.
        bytes_max: u64,
    },
    /// The message exceeds the limit of recipients.
    #[error("more than {recipients_max} recipients")]
    TooManyRecipients {
        /// Limit of recipients.
        recipients_max: usize,
    },
    /// The domain's DKIM keys cannot be opened or do not sign. The operator has to fix this.
    #[error("the message could not be signed (DKIM keys unusable); contact the operator")]
    SigningFailed,
    /// The disk is full; retry later.
    #[error("disk full: not accepting mail; try again later")]
    InsufficientStorage,
    /// The store is fenced or closing, or cannot be read; retry later.
    #[error("not accepting mail now; try again later")]
    Unavailable,
    /// The idempotency key was used concurrently on another node.
    #[error("the same operation was executed concurrently")]
    DoneConcurrently,
    /// The commit may or may not have succeeded.
    #[error("it is unknown whether the message was accepted")]
    Unconfirmed {
        /// Id of the email if it was accepted.
        id: EmailId,
    },
}

impl SubmitError {
    /// True if a retry soon may succeed: nothing is wrong with the submission itself.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::InsufficientStorage | Self::Unavailable | Self::Unconfirmed { .. })
    }

    /// Returns the error without the id of a rejected email, where none was recorded.
    #[must_use]
    pub fn without_email(self) -> Self {
        match self {
            Self::Suppressed { category, blocked, .. } => Self::Suppressed { id: None, category, blocked },
            other => other,
        }
    }
}

fn blocked_text(blocked: &[BlockedRecipient]) -> String {
    let describe = |recipient: &BlockedRecipient| match recipient.reason {
        BlockReason::Suppressed { reason, .. } => {
            format!("{} is suppressed ({})", recipient.address, reason.word())
        }
        BlockReason::OptedOut { category, .. } => {
            format!("{} has opted out of {category:?} mail", recipient.address)
        }
    };
    blocked.iter().take(3).map(describe).collect::<Vec<_>>().join(", ")
}

impl From<ReadError> for SubmitError {
    fn from(error: ReadError) -> Self {
        if !error.is_away() {
            tracing::error!(%error, "cannot read the store");
        }
        Self::Unavailable
    }
}

impl From<CommitError> for SubmitError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Full => Self::InsufficientStorage,
            CommitError::TooLarge(too) => Self::TooLarge { bytes_max: too.size_bytes_max as u64 },
            // `Fenced` and `Away` are checked before anything is written; intake handles the others separately.
            CommitError::Conflict { .. }
            | CommitError::Fenced(_)
            | CommitError::Unknown(_)
            | CommitError::Away(_)
            | CommitError::Closed => Self::Unavailable,
        }
    }
}
