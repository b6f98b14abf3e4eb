//! Why the hall does not take a draft. The doors turn it into a reply or a problem, each in one place.

use mail::address::{Address, DomainName};
use mail::email::Category;
use mail::id::EmailId;
use mail::message::MessageError;
use mail::quota::QuotaExceeded;
use mail::suppression::{BlockReason, BlockedRecipient};
use mail::usage::ExceededCap;
use store::engine::{CommitError, ReadError};
use thiserror::Error;

/// Why a draft was not accepted. Nothing of it is kept, but for [`Refusal::Unconfirmed`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The author's domain is not a verified domain of the account.
    #[error("the domain {domain} is not verified for this account; add it and publish its records")]
    DomainNotVerified {
        /// The domain.
        domain: DomainName,
    },
    /// The address is the sandbox sender's, and the operator has not verified its domain: the customer can do nothing.
    #[error("the sandbox is not set up on this server: its operator has not verified {domain}")]
    SandboxNotConfigured {
        /// The domain of the sandbox sender.
        domain: DomainName,
    },
    /// The sandbox sender reaches only the account's own address.
    #[error("the sandbox sender reaches only {allowed}; verify a domain to reach others")]
    SandboxRestricted {
        /// The account's own address.
        allowed: Address,
    },
    /// A verified domain without a payment method reaches only the account's own address.
    #[error("this account reaches only its own address until production access is unlocked")]
    ProductionRequired,
    /// The key or credential may send from one domain only, and this is another.
    #[error("this key may not send from {domain}")]
    DomainNotAllowed {
        /// The domain.
        domain: DomainName,
    },
    /// The account is suspended.
    #[error("this account is suspended; write to the operator")]
    AccountSuspended,
    /// Recipients are suppressed, or opted out of the category.
    #[error("{}", blocked_text(blocked))]
    Suppressed {
        /// The email that says so; none where nothing was handed in yet.
        id: Option<EmailId>,
        /// What the email was for.
        category: Category,
        /// Who, and why.
        blocked: Vec<BlockedRecipient>,
    },
    /// The plan has no room for it: a cap is in the way.
    #[error("the plan's {} limit of {} emails is reached", .0.period.name(), .0.cap)]
    PlanLimit(ExceededCap),
    /// The plan's storage is full: emails leave it when their retention time is over.
    #[error("{0}; emails leave when their retention time is over")]
    StorageFull(QuotaExceeded),
    /// The message will not do.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A part of the draft will not do.
    #[error("{field}: {message}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// Why.
        message: String,
    },
    /// Larger than is taken.
    #[error("the message is larger than {bytes_max} bytes")]
    TooLarge {
        /// The most that is taken.
        bytes_max: u64,
    },
    /// More recipients than are taken.
    #[error("more than {recipients_max} recipients")]
    TooManyRecipients {
        /// The most that are taken.
        recipients_max: usize,
    },
    /// The domain's keys do not sign: they cannot be opened, or do not work. It needs the operator.
    #[error("the message could not be signed; the operator is told")]
    SigningFailed,
    /// The disk is full. Try again later.
    #[error("no room for more mail at the moment; try again later")]
    InsufficientStorage,
    /// The store is fenced or closing, or cannot be read. Try again later.
    #[error("mail cannot be taken at the moment; try again later")]
    Unavailable,
    /// Somebody else was quicker to do what was to be done once: an idempotency key was used meanwhile.
    #[error("the same was done at the same time")]
    DoneConcurrently,
    /// Whether it is on disk cannot be known.
    #[error("whether the message was taken is not known")]
    Unconfirmed {
        /// The email's id, should it exist.
        id: EmailId,
    },
}

impl SubmitError {
    /// Whether it passes by itself, and soon: nothing is wrong with what was handed in.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::InsufficientStorage | Self::Unavailable | Self::Unconfirmed { .. })
    }

    /// The same, of what leaves no email that says so.
    #[must_use]
    pub fn without_email(self) -> Self {
        match self {
            Self::Suppressed { category, blocked, .. } => Self::Suppressed { id: None, category, blocked },
            other => other,
        }
    }
}

fn blocked_text(blocked: &[BlockedRecipient]) -> String {
    let one = |one: &BlockedRecipient| match one.reason {
        BlockReason::Suppressed { reason, .. } => {
            format!("{} is suppressed ({})", one.address, reason.word())
        }
        BlockReason::OptedOut { category, .. } => {
            format!("{} has opted out of {category:?} mail", one.address)
        }
    };
    blocked.iter().take(3).map(one).collect::<Vec<_>>().join(", ")
}

impl From<ReadError> for SubmitError {
    fn from(error: ReadError) -> Self {
        if !error.is_away() {
            tracing::error!(%error, "the store cannot be read");
        }
        Self::Unavailable
    }
}

impl From<CommitError> for SubmitError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Full => Self::InsufficientStorage,
            CommitError::TooLarge(too) => Self::TooLarge { bytes_max: too.size_bytes_max as u64 },
            // Fenced and Away are seen before anything is sent on its way; the hall tells the rest apart.
            CommitError::Conflict { .. }
            | CommitError::Fenced(_)
            | CommitError::Unknown(_)
            | CommitError::Away(_)
            | CommitError::Closed => Self::Unavailable,
        }
    }
}
