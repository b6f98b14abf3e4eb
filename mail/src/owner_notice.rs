//! A notice for an account's owner: an endpoint of theirs begins to fail, or was disabled; another account claims a
//! domain of theirs; somebody applies to their partner program. It is mailed after the commit that made it true, by who finds it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::{Address, DomainName};
use crate::id::{AccountId, EventId, PartnerId, WebhookId};
use crate::webhook::DisabledReason;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookAlert {
    /// Nothing arrives.
    Failing,
    /// It answered 410: nothing is sent any more.
    Gone,
    /// Nothing arrived for five days: nothing is sent any more.
    Disabled,
}

impl WebhookAlert {
    /// What is told of an endpoint that was disabled.
    #[must_use]
    pub fn from_disabled_reason(reason: DisabledReason) -> Self {
        match reason {
            DisabledReason::Gone => Self::Gone,
            DisabledReason::Failing | DisabledReason::Customer => Self::Disabled,
        }
    }
}

/// What an owner is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AlertSubject {
    /// What has come of an endpoint.
    Endpoint {
        /// Which.
        webhook: WebhookId,
        /// Where it was then.
        url: String,
        /// What.
        what: WebhookAlert,
    },
    /// Another account has proven that it rules the DNS of a domain (completions-email.md 2.4).
    Claim {
        /// The domain.
        claimed: DomainName,
        /// Until when they may object.
        grace_ends_at: Timestamp,
    },
    /// Somebody applied to their partner program by its form, and waits for an answer.
    Application {
        /// The partner who it would be.
        affiliate: PartnerId,
        /// Their address.
        applicant: Address,
    },
}

impl fmt::Display for AlertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint { webhook, .. } => write!(f, "the endpoint {webhook}"),
            Self::Claim { claimed, .. } => write!(f, "the claim to {claimed}"),
            Self::Application { affiliate, .. } => write!(f, "the application of {affiliate}"),
        }
    }
}

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerAlert {
    /// Its id.
    pub id: EventId,
    /// Whose owner is told.
    pub account: AccountId,
    /// What they are told.
    pub about: AlertSubject,
    /// Since when it is true.
    pub since: Timestamp,
}
