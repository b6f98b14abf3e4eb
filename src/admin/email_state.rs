//! State of an email as the admin socket shows it.

use model::email::{EmailRollup, EmailStatus};
use model::recipient::Recipient;
use serde::{Deserialize, Serialize};

/// State of an email. It divides the API's `sent` (accepted) into queued, before the first attempt, and deferred, after
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailState {
    /// Will be sent later.
    Scheduled,
    /// Waits for its first attempt.
    Queued,
    /// Attempted; a retry is pending.
    Deferred,
    /// At least one recipient delivered.
    Delivered,
    /// Finished: none delivered, at least one bounced.
    Bounced,
    /// Finished: none delivered, none bounced.
    Failed,
    /// Removed from the queue before anything else happened.
    Cancelled,
}

impl EmailState {
    /// Derives the state from the recipients of an email.
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

    /// The API's statuses that an email in this state can have. Emails in other states can have them too.
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
