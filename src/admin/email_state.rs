//! Where an email stands, in the operator's words.

use mail::email::{EmailRollup, EmailStatus};
use mail::recipient::Recipient;
use serde::{Deserialize, Serialize};

/// Where an email stands. What the API calls `sent`, since it was taken on, is queued before the first attempt and deferred
/// after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailState {
    /// To be sent later.
    Scheduled,
    /// Not attempted yet.
    Queued,
    /// Attempted, and to be tried again.
    Deferred,
    /// At least one recipient delivered.
    Delivered,
    /// Ended, none delivered, at least one bounced.
    Bounced,
    /// Ended, none delivered, none bounced.
    Failed,
    /// Taken out of the queue before anything else happened.
    Cancelled,
}

impl EmailState {
    /// Of an email with these recipients.
    #[must_use]
    pub fn of(recipients: &[Recipient]) -> Self {
        match EmailRollup::from_recipients(recipients).status {
            EmailStatus::Scheduled => Self::Scheduled,
            EmailStatus::Queued => Self::Queued,
            EmailStatus::Sent if recipients.iter().any(|recipient| recipient.attempts > 0) => Self::Deferred,
            EmailStatus::Sent => Self::Queued,
            EmailStatus::Delivered => Self::Delivered,
            EmailStatus::Bounced => Self::Bounced,
            EmailStatus::Failed => Self::Failed,
            EmailStatus::Cancelled => Self::Cancelled,
        }
    }

    /// The API's words for it: an email in this state has one of these, and others may have it, too.
    #[must_use]
    pub fn statuses(self) -> Vec<EmailStatus> {
        match self {
            Self::Scheduled => vec![EmailStatus::Scheduled],
            Self::Queued => vec![EmailStatus::Queued, EmailStatus::Sent],
            Self::Deferred => vec![EmailStatus::Sent],
            Self::Delivered => vec![EmailStatus::Delivered],
            Self::Bounced => vec![EmailStatus::Bounced],
            Self::Failed => vec![EmailStatus::Failed],
            Self::Cancelled => vec![EmailStatus::Cancelled],
        }
    }
}
