//! Why something is not done with a program, in the words of who asked for it.

use mail::affiliate::commission::CommissionError;
use mail::affiliate::partner::{LINKS_MAX, PartnerTransitionError};
use mail::affiliate::program::MissingStep;
use mail::quota::{Noun as Quota, QuotaExceeded};
use queue::quota::StorageQuotaError;
use store::affiliate::campaign::CAMPAIGNS_MAX;
use store::engine::{CommitError, ReadError};
use thiserror::Error;

use crate::ledger::LedgerError;

/// What one looks for and does not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AffiliateNoun {
    /// A partner.
    Partner,
    /// A link.
    Link,
    /// A campaign.
    Campaign,
    /// A referral.
    Referral,
    /// A commission.
    Commission,
    /// A payout.
    Payout,
    /// A payout run.
    Run,
    /// A back-fill.
    Backfill,
}

impl AffiliateNoun {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Partner => "affiliate",
            Self::Link => "link",
            Self::Campaign => "campaign",
            Self::Referral => "referral",
            Self::Commission => "commission",
            Self::Payout => "payout",
            Self::Run => "payout run",
            Self::Backfill => "back-fill",
        }
    }
}

/// What is in the way, though nothing is wrong with what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConflictReason {
    /// The account has a program.
    #[error("the account has an affiliate program already")]
    ProgramExists,
    /// The program's currency and mode are settled.
    #[error("`currency` and `mode` can be changed only while the program is being set up")]
    NoMoreInSetup,
    /// The program takes no referrals.
    #[error("the affiliate program is not live")]
    NotLive,
    /// The address is a partner's.
    #[error("a partner with this email exists already")]
    EmailTaken,
    /// The token is another link's.
    #[error("this token is taken")]
    TokenTaken,
    /// The name is another campaign's.
    #[error("another campaign has this name")]
    NameTaken,
    /// There are as many campaigns as there may be.
    #[error("a program has at most {CAMPAIGNS_MAX} campaigns; archived ones count")]
    TooManyCampaigns,
    /// The default campaign takes new partners.
    #[error("the default campaign cannot be archived: make another one the default first")]
    DefaultStays,
    /// No processor is connected.
    #[error("no payment processor is connected")]
    NotConnected,
    /// The processor is only listened to.
    #[error("the payment processor is connected without a key: it cannot be asked")]
    NoApiKey,
    /// The past is being read already.
    #[error("a back-fill goes on already; wait for its end")]
    BackfillRunning,
    /// The partner is in a payout that is under way.
    #[error("the partner is in a payout that is under way")]
    InPayout,
    /// The commission was not taken back.
    #[error("the commission is not reversed")]
    NotReversed,
    /// The commission's referral earns nothing.
    #[error("the commission's referral is blocked or rejected")]
    ReferralBarred,
    /// The commission's partner is there no more.
    #[error("the commission's partner was deleted: there is nobody whom it could be paid to")]
    PartnerGone,
    /// The link that was made with the same key does not work any more.
    #[error("the link that was made with this key was used, replaced, or is over; ask with another key")]
    LoginLinkExpired,
    /// The referral lapsed, and another one has its place.
    #[error("the referral lapsed, and another partner brought the same person")]
    ReferralLapsed,
    /// A run is drafted, and waits for the owner.
    #[error("a payout run is being drafted, or waits to be approved or cancelled")]
    DraftOpen,
    /// The run is no draft.
    #[error("the payout run is not a draft")]
    NoDraft,
    /// The draft is another one than was seen.
    #[error("the payout run changed meanwhile: its `rev` or its totals are others; look at it again")]
    OtherRun,
    /// The processor is asked about the charges of the draft.
    #[error("the processor is still asked about the charges in the payout run; try again when `comparing` is false")]
    RunCompared,
    /// Nobody is left in the draft.
    #[error("nobody is left in the payout run; cancel it")]
    NobodyInRun,
    /// The run is not approved.
    #[error("the payout run is not approved yet")]
    RunNotApproved,
    /// The payout was paid with another reference.
    #[error("the payout was marked paid with another reference")]
    PaidOtherwise,
    /// The payout is not under way.
    #[error("the payout is not under way")]
    PayoutSettled,
    /// The processor may be transferring it.
    #[error("the processor was asked for the transfer and has not answered yet")]
    TransferUnderWay,
    /// There were more clicks today than are kept.
    #[error("there were too many clicks today")]
    TooManyClicks,
    /// Nobody can be mailed what they ask for.
    #[error("the partner program cannot send you mail at the moment; ask who runs it")]
    NoMail,
    /// The link was used, or is too old.
    #[error("the link was used, or is too old: ask for another")]
    PortalLinkExpired,
    /// Somebody else changed it since it was read.
    #[error("it was changed meanwhile; get it and try again")]
    Changed,
}

/// What nobody may do with it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ForbiddenReason {
    /// The primary link stays.
    #[error("the primary link cannot be deleted; rename it with `token` of the partner")]
    PrimaryLink,
    /// A partner who was refused has no portal.
    #[error("a partner who was rejected cannot sign in")]
    RejectedPartner,
    /// A partner who was paid stays.
    #[error("a partner who has been paid cannot be deleted; suspend it instead")]
    PaidPartner,
    /// The processor pays it, and says so itself.
    #[error("the processor pays this payout, and says itself when it is paid")]
    ProcessorPays,
}

/// Why something is not done.
#[derive(Debug, Error)]
pub enum AffiliateError {
    /// There is no program, or steps are missing to set it up.
    #[error("the affiliate program is not set up")]
    NotSetUp,
    /// There is no such thing.
    #[error("no such {}", .0.as_str())]
    NotFound(AffiliateNoun),
    /// Fields will not do: their names, and what is wrong with each.
    #[error("fields will not do")]
    Fields(Vec<(String, String)>),
    /// The partner stands where this does not fit.
    #[error(transparent)]
    WrongMove(#[from] PartnerTransitionError),
    /// Something is in the way.
    #[error(transparent)]
    Conflict(#[from] ConflictReason),
    /// Steps are missing before it can go live.
    #[error("steps are missing before the program can go live")]
    MissingSteps(Vec<MissingStep>),
    /// It may not be done any more.
    #[error(transparent)]
    Forbidden(#[from] ForbiddenReason),
    /// The commission is paid, or in a payout.
    #[error(transparent)]
    Commission(#[from] CommissionError),
    /// The books cannot be kept: figures that nothing can be computed from.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The plan of the account includes no more.
    #[error("{0}")]
    Quota(QuotaExceeded),
    /// The account's rows are being counted: the request may be tried again in a moment.
    #[error("{}", StorageQuotaError::Counting(*.0))]
    Counting(Quota),
    /// The processor was asked, and did not answer as it must.
    #[error("the processor {0}")]
    Upstream(String),
    /// A secret cannot be sealed.
    #[error("the secret cannot be sealed")]
    Seal,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl AffiliateError {
    /// One field will not do.
    #[must_use]
    pub fn field(name: &str, why: impl Into<String>) -> Self {
        Self::Fields(vec![(name.to_owned(), why.into())])
    }

    /// A partner has as many links as it may have.
    #[must_use]
    pub fn too_many_links() -> Self {
        Self::field("token", format!("a partner has at most {LINKS_MAX} links; delete one"))
    }
}

impl From<StorageQuotaError> for AffiliateError {
    fn from(error: StorageQuotaError) -> Self {
        match error {
            StorageQuotaError::Full(full) => Self::Quota(full),
            StorageQuotaError::Counting(noun) => Self::Counting(noun),
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
            LedgerError::Contended => Self::Conflict(ConflictReason::Changed),
            fault => Self::Ledger(fault),
        }
    }
}
