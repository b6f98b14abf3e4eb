//! Outbox entry for an email to a partner: stored in the commit of the change that it reports, rendered and sent
//! afterwards.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::partner::{PartnerSource, PartnerStatus};
use super::program::PayoutMethod;
use crate::id::{AccountId, EventId, PartnerId, PayoutId};

/// The content of an email to a partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartnerEmailKind {
    /// Became a partner without an approval: added by the owner, or approved automatically.
    Welcome,
    Invited,
    /// The application was received and waits for approval.
    Received,
    Approved,
    Rejected {
        /// The owner's text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A requested sign-in link.
    SignIn,
    PayoutPaid {
        payout: PayoutId,
    },
    /// Payouts to the partner's destination fail.
    PayoutFailed {
        /// The latest failed payout.
        payout: PayoutId,
    },
    /// A signed-in user entered a new payout destination; the partner must confirm it by a link in this email.
    ConfirmPayout {
        method: PayoutMethod,
        destination: String,
    },
    /// The payout destination has changed.
    PayoutChanged {
        /// The former destination, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<(PayoutMethod, String)>,
    },
}

impl PartnerEmailKind {
    /// True if the email is sent even after an opt-out: requested email, and security notices about payouts.
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

    /// True if the recipient requested the email by a form of the portal. The service may then send it with its own
    /// texts. Decisions of the owner or the program count as requested only if the partner applied by the form.
    pub fn is_requested(&self, source: PartnerSource) -> bool {
        match self {
            Self::SignIn | Self::ConfirmPayout { .. } => true,
            Self::Welcome | Self::Received | Self::Approved | Self::Rejected { .. } => source == PartnerSource::Portal,
            Self::Invited | Self::PayoutPaid { .. } | Self::PayoutFailed { .. } | Self::PayoutChanged { .. } => false,
        }
    }

    /// True if the content still fits the partner's status when the email is rendered. A partner rejected meanwhile
    /// gets no welcome email, for example.
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

/// An email to a partner that is waiting to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerEmail {
    pub id: EventId,
    pub account: AccountId,
    /// The recipient.
    pub partner: PartnerId,
    pub tells: PartnerEmailKind,
    /// Time of the change that the email reports.
    pub since: Timestamp,
}
