//! A letter to a partner that is to be written: decided with what it tells of, in one commit, and mailed after it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::partner::{PartnerSource, PartnerStatus};
use super::program::PayoutMethod;
use crate::id::{AccountId, EventId, PartnerId, PayoutId};

/// What a partner is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartnerEmailKind {
    /// It is a partner now, without having asked for it, or at once.
    Welcome,
    /// It is asked to join.
    Invited,
    /// What it sent was received, and waits for the owner.
    Received,
    /// The owner said yes.
    Approved,
    /// The owner said no.
    Rejected {
        /// Why, in the owner's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The link to sign in with, which it asked for.
    SignIn,
    /// A payout went out.
    PayoutPaid {
        /// Which.
        payout: PayoutId,
    },
    /// Payouts do not arrive at its destination.
    PayoutFailed {
        /// The last one.
        payout: PayoutId,
    },
    /// Somebody who has signed in wants payouts to go elsewhere: it is to say so by this letter.
    ConfirmPayout {
        /// In which way.
        method: PayoutMethod,
        /// To whom.
        destination: String,
    },
    /// Payouts go elsewhere from now on.
    PayoutChanged {
        /// Where they went before, if they did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<(PayoutMethod, String)>,
    },
}

impl PartnerEmailKind {
    /// Whether it is told to who wants no mail but what it asks for: what it asked for, and what concerns its money's
    /// safety.
    #[must_use]
    pub fn is_essential(&self) -> bool {
        match self {
            Self::SignIn | Self::PayoutFailed { .. } | Self::ConfirmPayout { .. } | Self::PayoutChanged { .. } => true,
            Self::Welcome
            | Self::Invited
            | Self::Received
            | Self::Approved
            | Self::Rejected { .. }
            | Self::PayoutPaid { .. } => false,
        }
    }

    /// Whether the person asked for it, by a form of the portal: then the service may write it, in words of its own. What
    /// the owner or the program decides by itself is asked for only by who applied by the form.
    #[must_use]
    pub fn is_requested(&self, source: PartnerSource) -> bool {
        match self {
            Self::SignIn | Self::ConfirmPayout { .. } => true,
            Self::Welcome | Self::Received | Self::Approved | Self::Rejected { .. } => source == PartnerSource::Portal,
            Self::Invited | Self::PayoutPaid { .. } | Self::PayoutFailed { .. } | Self::PayoutChanged { .. } => false,
        }
    }

    /// Whether it is still so when the letter is written: who was refused meanwhile is not welcomed.
    #[must_use]
    pub fn is_current(&self, status: PartnerStatus) -> bool {
        match self {
            Self::Welcome | Self::Approved => status == PartnerStatus::Active,
            Self::Invited => status == PartnerStatus::Invited,
            Self::Received => status == PartnerStatus::Pending,
            Self::Rejected { .. } => status == PartnerStatus::Rejected,
            Self::SignIn => status != PartnerStatus::Rejected,
            Self::PayoutPaid { .. }
            | Self::PayoutFailed { .. }
            | Self::ConfirmPayout { .. }
            | Self::PayoutChanged { .. } => true,
        }
    }
}

/// A letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerEmail {
    /// Its id.
    pub id: EventId,
    /// Whose program it is about.
    pub account: AccountId,
    /// Who is told.
    pub partner: PartnerId,
    /// What.
    pub tells: PartnerEmailKind,
    /// Since when it is true.
    pub since: Timestamp,
}
