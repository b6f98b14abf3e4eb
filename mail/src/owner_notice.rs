//! A notice for an account's owner, about an endpoint of theirs: it begins to fail, or was disabled. It is mailed
//! after the commit that made it true, by who finds it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, EventId, WebhookId};
use crate::webhook::DisabledReason;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Nothing arrives.
    Failing,
    /// It answered 410: nothing is sent any more.
    Gone,
    /// Nothing arrived for five days: nothing is sent any more.
    Disabled,
}

impl What {
    /// What is told of an endpoint that was disabled.
    #[must_use]
    pub fn disabled(reason: DisabledReason) -> Self {
        match reason {
            DisabledReason::Gone => Self::Gone,
            DisabledReason::Failing | DisabledReason::Customer => Self::Disabled,
        }
    }
}

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerNotice {
    /// Its id.
    pub id: EventId,
    /// Whose owner is told.
    pub account: AccountId,
    /// About which endpoint …
    pub webhook: WebhookId,
    /// … and where that was then.
    pub url: String,
    /// What.
    pub what: What,
    /// Since when.
    pub since: Timestamp,
}
