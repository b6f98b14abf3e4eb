//! Alert to an account's owner: a webhook endpoint is failing or was disabled, another account claims a domain,
//! a person applied to the partner program, or a request waits for approval. The component that detects the cause mails it after its commit.

use std::fmt;

use jiff::Timestamp;
use message::address::{Address, DomainName};
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, ApprovalId, EventId, PartnerId, WebhookId};
use crate::webhook::DisabledReason;

/// State of a webhook endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookAlert {
    /// Deliveries are failing.
    Failing,
    /// The endpoint responded 410 and was disabled.
    Gone,
    /// Deliveries failed for five days, and the endpoint was disabled.
    Disabled,
}

impl WebhookAlert {
    /// The alert for an endpoint that was disabled.
    pub fn from_disabled_reason(reason: DisabledReason) -> Self {
        match reason {
            DisabledReason::Gone => Self::Gone,
            DisabledReason::Failing | DisabledReason::Customer => Self::Disabled,
        }
    }
}

/// The cause of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AlertSubject {
    /// A failing or disabled webhook endpoint.
    Endpoint {
        webhook: WebhookId,
        /// The endpoint's URL at that time.
        url: String,
        what: WebhookAlert,
    },
    /// Another account proved control of a domain's DNS.
    Claim {
        claimed: DomainName,
        /// End of the grace period for objections.
        grace_ends_at: Timestamp,
    },
    /// A pending application to the partner program.
    Application { affiliate: PartnerId, applicant: Address },
    /// A request of a client that waits for approval.
    Approval {
        approval: ApprovalId,
        /// The operation id of the API.
        operation: String,
        /// The page on which a person decides.
        approval_url: String,
    },
}

impl fmt::Display for AlertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint { webhook, .. } => write!(f, "the endpoint {webhook}"),
            Self::Claim { claimed, .. } => write!(f, "the claim to {claimed}"),
            Self::Application { affiliate, .. } => write!(f, "the application of {affiliate}"),
            Self::Approval { approval, .. } => write!(f, "the approval {approval}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerAlert {
    pub id: EventId,
    /// The account whose owner is notified.
    pub account: AccountId,
    #[serde(flatten)]
    pub about: AlertSubject,
    /// Time since which the condition holds.
    pub since: Timestamp,
}
