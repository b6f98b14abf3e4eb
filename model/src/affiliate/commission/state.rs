//! States of a commission. Each variant holds only the fields that are valid in it: only `InPayout` and `Paid` have a
//! payout, and only `Pending` and `Earned` can be frozen.

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::PayoutId;

words! {
    /// The cause of a reversal.
    ReversalReason {
        /// The payment was refunded, in full or so far that the commission is zero.
        Refund = "refund",
        /// The customer's bank charged the payment back.
        Dispute = "dispute",
        /// The owner marked the customer as fraudulent.
        Fraud = "fraud",
        /// The owner reversed it manually.
        Manual = "manual",
        PartnerDeleted = "partner_deleted",
        /// The referral is not valid: a self-referral or an existing customer.
        Blocked = "blocked",
        /// The lead expired without a purchase.
        Expired = "expired",
        /// The owner excluded the sale by a metadata flag.
        Excluded = "excluded",
    }
}

impl ReversalReason {
    /// True if the reason is derived from the processor's data about the sale, and ends when that data changes.
    pub fn follows_from_sale(self) -> bool {
        matches!(self, Self::Refund | Self::Dispute | Self::Excluded)
    }
}

/// Reasons for which a commission is temporarily neither earned nor paid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeReasons {
    /// The customer's bank has opened an inquiry about the charge.
    pub inquiry: bool,
    /// The referral is held for review by the owner.
    pub review: bool,
}

impl FreezeReasons {
    /// True if at least one reason is set.
    pub fn is_frozen(self) -> bool {
        self.inquiry || self.review
    }
}

/// State of the query for the charge at the payment processor, which is made before the commission is earned. The query
/// makes up for lost webhook events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReconciliationState {
    /// No query: the commission has no charge, there is no processor API key, or the processor did not answer for too
    /// long.
    #[default]
    Needless,
    /// Query at this time; the commission is not earned before it is done.
    Due(Timestamp),
    /// Queried at this time.
    Done(Timestamp),
}

impl ReconciliationState {
    /// True if no query is needed; used to skip the field in serialization.
    pub fn is_not_needed(&self) -> bool {
        matches!(self, Self::Needless)
    }
}

/// State of a commission; the module page of `commission` shows the transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionState {
    /// In the refund hold period.
    Pending {
        /// Reasons that prevent the line from being earned.
        frozen: FreezeReasons,
    },
    /// Past the hold period, and in no payout.
    Earned {
        earned_at: Timestamp,
        /// Reasons that keep the line out of payouts.
        frozen: FreezeReasons,
    },
    /// In a payout that is not paid yet.
    InPayout {
        earned_at: Timestamp,
        payout: PayoutId,
    },
    Paid {
        earned_at: Timestamp,
        payout: PayoutId,
        paid_at: Timestamp,
    },
    Reversed {
        reversed_at: Timestamp,
        reason: ReversalReason,
        /// `None` if it was reversed before it was earned.
        earned_at: Option<Timestamp>,
    },
}

impl CommissionState {
    /// The status in the API. A line in a payout is still `earned` there.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Earned { .. } | Self::InPayout { .. } => "earned",
            Self::Paid { .. } => "paid",
            Self::Reversed { .. } => "reversed",
        }
    }

    pub fn earned_at(self) -> Option<Timestamp> {
        match self {
            Self::Pending { .. } => None,
            Self::Earned { earned_at, .. } | Self::InPayout { earned_at, .. } | Self::Paid { earned_at, .. } => {
                Some(earned_at)
            }
            Self::Reversed { earned_at, .. } => earned_at,
        }
    }

    pub fn paid_at(self) -> Option<Timestamp> {
        if let Self::Paid { paid_at, .. } = self { Some(paid_at) } else { None }
    }

    /// Time and reason of the reversal.
    pub fn reversed(self) -> Option<(Timestamp, ReversalReason)> {
        if let Self::Reversed { reversed_at, reason, .. } = self { Some((reversed_at, reason)) } else { None }
    }

    /// The payout that includes or paid this commission.
    pub fn payout(self) -> Option<PayoutId> {
        match self {
            Self::InPayout { payout, .. } | Self::Paid { payout, .. } => Some(payout),
            Self::Pending { .. } | Self::Earned { .. } | Self::Reversed { .. } => None,
        }
    }

    /// The freeze reasons; none in states that cannot be frozen.
    pub fn frozen(self) -> FreezeReasons {
        match self {
            Self::Pending { frozen } | Self::Earned { frozen, .. } => frozen,
            Self::InPayout { .. } | Self::Paid { .. } | Self::Reversed { .. } => FreezeReasons::default(),
        }
    }
}

/// A transition is not possible in the current state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommissionError {
    /// Paid commissions cannot be reversed.
    #[error("the commission is already paid")]
    Paid,
    #[error("the commission is already in payout {0}")]
    InPayout(PayoutId),
    #[error("the commission is not in this payout")]
    NotInPayout,
    #[error("the commission is not pending")]
    NotPending,
    #[error("the commission is not earned")]
    NotEarned,
    /// It is not reversed, or not for the reason that the transition requires.
    #[error("the commission is not reversed")]
    NotReversed,
    #[error("the commission is frozen during a review or a bank inquiry")]
    Frozen,
    /// The charge has to be queried at the processor first.
    #[error("the commission's charge has not been reconciled with the payment processor yet")]
    Uncompared,
    /// The hold period has not ended.
    #[error("the commission is not earned before {earns_at}")]
    NotYet { earns_at: Timestamp },
}

impl CommissionError {
    /// True for errors that the API answers with 403: the line is paid or in a payout. Other errors can pass with time.
    pub fn is_forbidden(self) -> bool {
        matches!(self, Self::Paid | Self::InPayout(_))
    }
}
