//! What became of a commission. Each state has what belongs to it, and nothing else: what waits is in no payout, what is
//! reversed neither, what is paid has one, and what is in a payout is not frozen.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::super::word::words;
use crate::id::PayoutId;

words! {
    /// Why a commission was taken back.
    ReversalReason {
        /// The customer got all of the money back, or so much of it that the commission comes to nothing.
        Refund = "refund",
        /// The customer's bank took the money back.
        Dispute = "dispute",
        /// The owner says that the customer was no honest one.
        Fraud = "fraud",
        /// The owner wants it so.
        Manual = "manual",
        /// Its partner is gone.
        PartnerDeleted = "partner_deleted",
        /// The customer cannot be a referral: a partner's own self, or one that was there before.
        Blocked = "blocked",
        /// The lead lapsed without having bought anything.
        Expired = "expired",
    }
}

impl ReversalReason {
    /// Whether it follows from what the processor says of the sale, and goes when that does.
    #[must_use]
    pub fn follows_from_sale(self) -> bool {
        matches!(self, Self::Refund | Self::Dispute)
    }
}

/// Why a commission neither earns nor is paid for the time being.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeReasons {
    /// The customer's bank asks about the charge.
    pub inquiry: bool,
    /// The owner is to look at the referral.
    pub review: bool,
}

impl FreezeReasons {
    /// Whether it is.
    #[must_use]
    pub fn is_frozen(self) -> bool {
        self.inquiry || self.review
    }
}

/// Whether the processor was asked what became of the charge by now: an event that was lost is made up for so, before the
/// commission is its partner's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReconciliationState {
    /// It is not to be asked: there is no charge, or nobody to ask.
    #[default]
    Needless,
    /// It is to be asked at this time, and the commission waits for that.
    Due(Timestamp),
    /// It was asked then.
    Done(Timestamp),
}

impl ReconciliationState {
    /// Whether there is nothing to ask.
    #[must_use]
    pub fn is_not_needed(&self) -> bool {
        matches!(self, Self::Needless)
    }
}

/// What became of a commission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionState {
    /// Waits for the end of the hold.
    Pending {
        /// Whether it may not earn for now.
        frozen: FreezeReasons,
    },
    /// Its partner's, and in no payout.
    Earned {
        /// Since when.
        earned_at: Timestamp,
        /// Whether no payout may take it for now.
        frozen: FreezeReasons,
    },
    /// Its partner's, and in a payout that did not go out yet.
    InPayout {
        /// Since when it is its partner's.
        earned_at: Timestamp,
        /// The payout.
        payout: PayoutId,
    },
    /// Paid.
    Paid {
        /// Since when it was its partner's.
        earned_at: Timestamp,
        /// The payout.
        payout: PayoutId,
        /// When that went out.
        paid_at: Timestamp,
    },
    /// Taken back.
    Reversed {
        /// When.
        reversed_at: Timestamp,
        /// Why.
        reason: ReversalReason,
        /// Since when it had been its partner's, if it was.
        earned_at: Option<Timestamp>,
    },
}

impl CommissionState {
    /// The word on the wire: in a payout it still is `earned`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Earned { .. } | Self::InPayout { .. } => "earned",
            Self::Paid { .. } => "paid",
            Self::Reversed { .. } => "reversed",
        }
    }

    /// Since when it is, or was, its partner's.
    #[must_use]
    pub fn earned_at(self) -> Option<Timestamp> {
        match self {
            Self::Pending { .. } => None,
            Self::Earned { earned_at, .. } | Self::InPayout { earned_at, .. } | Self::Paid { earned_at, .. } => {
                Some(earned_at)
            }
            Self::Reversed { earned_at, .. } => earned_at,
        }
    }

    /// When it was paid.
    #[must_use]
    pub fn paid_at(self) -> Option<Timestamp> {
        if let Self::Paid { paid_at, .. } = self { Some(paid_at) } else { None }
    }

    /// When and why it was taken back.
    #[must_use]
    pub fn reversed(self) -> Option<(Timestamp, ReversalReason)> {
        if let Self::Reversed { reversed_at, reason, .. } = self { Some((reversed_at, reason)) } else { None }
    }

    /// The payout that it is in, or was paid by.
    #[must_use]
    pub fn payout(self) -> Option<PayoutId> {
        match self {
            Self::InPayout { payout, .. } | Self::Paid { payout, .. } => Some(payout),
            Self::Pending { .. } | Self::Earned { .. } | Self::Reversed { .. } => None,
        }
    }

    /// Why it neither earns nor is paid for the time being.
    #[must_use]
    pub fn frozen(self) -> FreezeReasons {
        match self {
            Self::Pending { frozen } | Self::Earned { frozen, .. } => frozen,
            Self::InPayout { .. } | Self::Paid { .. } | Self::Reversed { .. } => FreezeReasons::default(),
        }
    }
}

/// Why a commission does not move so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommissionError {
    /// It is paid: nothing takes it back.
    #[error("the commission is paid already")]
    Paid,
    /// It is in a payout.
    #[error("the commission is in payout {0} already")]
    InPayout(PayoutId),
    /// It is not in the payout that is spoken of.
    #[error("the commission is not in that payout")]
    NotInPayout,
    /// It waits for nothing.
    #[error("the commission is not pending")]
    NotPending,
    /// It is not its partner's.
    #[error("the commission is not earned")]
    NotEarned,
    /// It was not taken back, or not for what is spoken of.
    #[error("the commission is not reversed")]
    NotReversed,
    /// It is frozen.
    #[error("the commission is frozen while somebody looks at it")]
    Frozen,
    /// The processor is to be asked first what became of the charge.
    #[error("the commission waits for the processor's word about its charge")]
    Uncompared,
    /// Its hold goes on.
    #[error("the commission is not earned before {earns_at}")]
    NotYet {
        /// Until then.
        earns_at: Timestamp,
    },
}

impl CommissionError {
    /// Whether it can never be asked for in that state, rather than not now: the API's 403 for a line that is paid or
    /// promised.
    #[must_use]
    pub fn is_forbidden(self) -> bool {
        matches!(self, Self::Paid | Self::InPayout(_))
    }
}
