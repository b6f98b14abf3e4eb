//! Errors of the affiliate service, worded for the caller.

use model::affiliate::arithmetic::ArithmeticError;
use model::affiliate::commission::CommissionError;
use model::affiliate::partner::{LINKS_MAX, PartnerTransitionError};
use model::affiliate::program::MissingStep;
use model::quota::{Noun as Quota, QuotaExceeded};
use net::http_client::ResponseBudgetError;
use queue::intake::storage_quota::StorageQuotaError;
use store::RetriesExhausted;
use store::affiliate::campaign::CAMPAIGNS_MAX;
use store::engine::{CommitError, ReadError};
use thiserror::Error;

use crate::ledger::processor_state::TooManyEntries;
use crate::processor::JsonReadError;

/// Result of an operation of the affiliate service.
pub type Result<T, E = AffiliateError> = std::result::Result<T, E>;

/// Result of an operation of the ledger.
pub(crate) type LedgerResult<T, E = LedgerError> = std::result::Result<T, E>;

message::words! {
    /// Kind of object in a "not found" error, by its name in the message.
    AffiliateNoun {
        Partner = "partner",
        Link = "link",
        Campaign = "campaign",
        Referral = "referral",
        Commission = "commission",
        Payout = "payout",
        Run = "payout run",
        Backfill = "backfill",
    }
}

/// Why a valid request conflicts with the current state (409).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConflictReason {
    #[error("the account already has an affiliate program")]
    ProgramExists,
    /// Currency and mode are fixed once the program has been live.
    #[error("`currency` and `mode` can be changed only while the program is being set up")]
    NoMoreInSetup,
    #[error("the affiliate program is not live")]
    NotLive,
    #[error("a partner with this email already exists")]
    EmailTaken,
    #[error("another link has this token")]
    TokenTaken,
    #[error("another campaign has this name")]
    NameTaken,
    #[error("a program can have at most {CAMPAIGNS_MAX} campaigns, including archived ones")]
    TooManyCampaigns,
    /// New partners need a default campaign.
    #[error("the default campaign cannot be archived: make another one the default first")]
    DefaultStays,
    #[error("no payment processor is connected")]
    NotConnected,
    /// The processor is connected for webhooks only.
    #[error("the payment processor is connected without an API key; add one to query it")]
    NoApiKey,
    #[error("a backfill is already running; wait until it finishes")]
    BackfillRunning,
    #[error("the partner has a payout in progress")]
    InPayout,
    #[error("the commission is not reversed")]
    NotReversed,
    #[error("the commission's referral is blocked or rejected")]
    ReferralBarred,
    #[error("the commission's partner was deleted, so it cannot be paid")]
    PartnerGone,
    /// The link created earlier with this idempotency key is no longer valid.
    #[error("the link created with this idempotency key has been used or replaced, or has expired; use another key")]
    LoginLinkExpired,
    #[error("the referral has lapsed, and another partner has referred the same person")]
    ReferralLapsed,
    #[error("a payout run is being drafted, or is waiting to be approved or cancelled")]
    DraftOpen,
    #[error("the payout run is not a draft")]
    NoDraft,
    /// The owner saw an earlier version of the draft.
    #[error("the payout run has changed: its `rev` or totals differ; get it again")]
    OtherRun,
    /// The draft's charges are still being reconciled.
    #[error(
        "the charges in the payout run are still being compared with the processor; try again when `comparing` is false"
    )]
    RunCompared,
    #[error("the payout run has no payouts left; cancel it")]
    NobodyInRun,
    #[error("the payout run is not approved yet")]
    RunNotApproved,
    #[error("the payout has already been marked as paid with a different reference")]
    PaidOtherwise,
    /// The payout is a draft, or already paid or failed.
    #[error("the payout is not in progress")]
    PayoutSettled,
    /// The processor may be creating the transfer.
    #[error("the transfer has been requested from the processor, which has not answered yet")]
    TransferUnderWay,
    /// The program has reached its daily limit of clicks.
    #[error("the program has reached its limit of clicks per day")]
    TooManyClicks,
    /// Neither the program nor the service can send the requested email.
    #[error("the partner program cannot send you email at the moment; contact its owner")]
    NoMail,
    #[error("the link has been used or has expired; request another one")]
    PortalLinkExpired,
    /// The method was disallowed after the partner chose it.
    #[error("the partner program no longer offers this payout method; choose another one in the portal")]
    MethodNotOffered,
    /// A concurrent request changed the row.
    #[error("the object has changed since it was read; get it and try again")]
    Changed,
}

/// Why an operation is permanently not allowed (403).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ForbiddenReason {
    #[error("the primary link cannot be deleted; rename it with `token` of the partner")]
    PrimaryLink,
    #[error("a partner who was rejected cannot sign in")]
    RejectedPartner,
    #[error("a partner who has been paid cannot be deleted; suspend it instead")]
    PaidPartner,
    #[error("the processor pays this payout and reports when it is paid")]
    ProcessorPays,
}

/// Why a host cannot be the portal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PortalHostError {
    /// No verified domain of the account covers the host.
    #[error("must be at or below a verified domain of the account; verify the domain first")]
    Unverified,
    /// The host belongs to the service.
    #[error("is a host of this service; choose a host of your own")]
    Service,
    /// Tracking links use this host.
    #[error("is a tracking host; choose another host below your domain")]
    Tracking,
    /// Bounces are sent to this host.
    #[error("is a return path (`rp`); choose another host below your domain")]
    ReturnPath,
    /// MTA-STS policies are served there.
    #[error("is the host of an MTA-STS policy; choose another host below your domain")]
    Policy,
    /// The host receives mail.
    #[error("receives mail; choose another host below your domain")]
    Inbound,
    /// The host cannot be a website's.
    #[error("is not a valid website host; use up to 12 labels of letters, digits and hyphens")]
    Malformed,
}

/// Why an email cannot be sent, with what the owner can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MailBlockReason {
    /// The program has no `mail_from` on a verified domain.
    #[error("not emailed: set the affiliate program's `mail_from` to an address on a verified domain of the account")]
    NoSender,
    /// The account may not write to people who did not request the email.
    #[error("not emailed: the account needs production access to email people who did not ask for it")]
    NoProduction,
    #[error("not emailed: the account was deleted")]
    NoAccount,
}

/// Warning to the owner that a partner was not mailed as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MailWarning {
    #[error("the partner was {0}")]
    NotMailed(MailBlockReason),
    /// The service writes instead of the program, with a fixed text.
    #[error("the partner is emailed without the reason: to include it, `mail_from` and production access are required")]
    WithoutReason,
}

/// Why the ledger cannot apply a fact or perform an operation.
#[derive(Debug, Clone, Error)]
pub enum LedgerError {
    /// The processor's JSON is invalid.
    #[error(transparent)]
    Unreadable(#[from] JsonReadError),
    /// The amounts cannot be computed, e.g. because they overflow.
    #[error(transparent)]
    Arithmetic(#[from] ArithmeticError),
    /// An object has more entries than are stored.
    #[error(transparent)]
    TooMany(#[from] TooManyEntries),
    /// The processor did not answer the request that an event needs.
    #[error("the processor {0}")]
    Unanswered(String),
    /// The program's key lacks the permission for the request that an event needs.
    #[error("the processor {0}")]
    Barred(String),
    /// The memory budget for responses is used up.
    #[error(transparent)]
    Budget(#[from] ResponseBudgetError),
    /// The account has no program, or it is incomplete.
    #[error("the affiliate program is not set up")]
    NotSetUp,
    /// Concurrent changes to the same rows made every commit attempt conflict.
    #[error("the same rows are being changed concurrently; try again later")]
    RetriesExhausted,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Error of an operation of the affiliate service.
#[derive(Debug, Error)]
pub enum AffiliateError {
    /// The account has no program, or its setup is incomplete.
    #[error("the affiliate program is not set up")]
    NotSetUp,
    #[error("no such {0}")]
    NotFound(AffiliateNoun),
    /// Invalid fields: name and error of each, worded to follow the name.
    #[error("invalid fields")]
    Fields(Vec<(String, String)>),
    /// The partner's status does not allow the transition.
    #[error(transparent)]
    WrongMove(#[from] PartnerTransitionError),
    #[error(transparent)]
    Conflict(#[from] ConflictReason),
    #[error("the program cannot go live until the missing steps are done")]
    MissingSteps(Vec<MissingStep>),
    #[error(transparent)]
    Forbidden(#[from] ForbiddenReason),
    /// The commission is paid, or in a payout.
    #[error(transparent)]
    Commission(#[from] CommissionError),
    /// The ledger cannot apply the operation, e.g. because amounts overflow.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The plan's quota is used up.
    #[error("{0}")]
    Quota(QuotaExceeded),
    /// The account's usage is still being counted; retry in a moment.
    #[error("{}", StorageQuotaError::Counting(*.0))]
    Counting(Quota),
    /// The processor's API did not answer as expected; the text follows "the processor".
    #[error("the processor {0}")]
    Upstream(String),
    /// A secret cannot be sealed or unsealed.
    #[error("the secret cannot be encrypted or decrypted")]
    Seal,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl AffiliateError {
    /// Returns an error about one field.
    pub fn field(name: &str, reason: impl Into<String>) -> Self {
        Self::Fields(vec![(name.to_owned(), reason.into())])
    }

    /// Returns the error of a partner with the maximum number of links.
    pub fn too_many_links() -> Self {
        Self::field("token", format!("a partner can have at most {LINKS_MAX} links; delete one"))
    }
}

impl From<StorageQuotaError> for AffiliateError {
    fn from(error: StorageQuotaError) -> Self {
        match error {
            StorageQuotaError::Full(full) => Self::Quota(full),
            StorageQuotaError::Counting(quota) => Self::Counting(quota),
            StorageQuotaError::Read(error) => Self::Read(error),
        }
    }
}

impl From<LedgerError> for AffiliateError {
    fn from(fault: LedgerError) -> Self {
        match fault {
            LedgerError::Read(error) => Self::Read(error),
            LedgerError::Commit(error) => Self::Commit(error),
            LedgerError::NotSetUp => Self::NotSetUp,
            LedgerError::RetriesExhausted => Self::Conflict(ConflictReason::Changed),
            fault => Self::Ledger(fault),
        }
    }
}

impl From<RetriesExhausted> for LedgerError {
    fn from(_: RetriesExhausted) -> Self {
        Self::RetriesExhausted
    }
}

impl From<RetriesExhausted> for AffiliateError {
    fn from(_: RetriesExhausted) -> Self {
        ConflictReason::Changed.into()
    }
}
