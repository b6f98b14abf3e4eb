//! An email: one message of an account to up to a thousand recipients, and what has become of it.
//!
//! The state of an email is not stored: [`Rollup`] derives it from the recipients' states
//! (completions-email.md 2.9), so that two recipients settle without touching a common row.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::{Address, DomainName, Mailbox};
use crate::credential::CredentialId;
use crate::event::EventKind;
use crate::id::{AccountId, AutomationId, EmailId, RunId, TemplateId};
use crate::recipient::{Recipient, RecipientState};
use crate::task::{DeliverByTime, TaskClass};

/// By which door an email came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ingress {
    /// The HTTP API.
    Api,
    /// SMTP submission with AUTH.
    Submission,
    /// A `[[relay]]` listener: a trusted host.
    Relay,
    /// Made by the service itself: a delivery status notification.
    System,
}

impl Ingress {
    /// The word for it in the log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Submission => "smtp",
            Self::Relay => "relay",
            Self::System => "system",
        }
    }
}

/// What an email is for: decides its order in the queue (and, later, who may opt out of it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Receipts, password resets, alerts.
    #[default]
    Transactional,
    /// News about the product.
    Product,
    /// Broadcasts.
    Newsletter,
}

impl Category {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["transactional", "product", "newsletter"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "transactional" => Some(Self::Transactional),
            "product" => Some(Self::Product),
            "newsletter" => Some(Self::Newsletter),
            _ => None,
        }
    }
}

/// A name and a value that the customer hangs on an email.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The template that an email was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTemplate {
    /// Which.
    pub id: TemplateId,
    /// Its alias then.
    pub alias: Option<String>,
    /// Its version.
    pub version: u32,
}

/// What stands in the header: kept for lists and events. Empty where the message has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderSummary {
    /// `To`.
    pub to: Vec<Mailbox>,
    /// `Cc`.
    pub cc: Vec<Mailbox>,
    /// Blind recipients, as far as the door knows them.
    pub bcc: Vec<Mailbox>,
    /// `Reply-To`.
    pub reply_to: Vec<Mailbox>,
    /// `Subject`, decoded.
    pub subject: String,
    /// `Message-ID`, without angle brackets.
    pub message_id: String,
}

/// An email as it was accepted. It does not change afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// Its id.
    pub id: EmailId,
    /// Whose it is.
    pub account: AccountId,
    /// By which door it came.
    pub door: Ingress,
    /// The author: `From`.
    pub from: Mailbox,
    /// The reverse path that an SMTP client gave (where a DSN would go); none for the null path and for the API.
    pub reverse_path: Option<Address>,
    /// The sending domain whose return path it uses; none for mail of the service's own.
    pub domain: Option<DomainName>,
    /// What stands in the header.
    pub facts: HeaderSummary,
    /// What the customer hung on it.
    pub tags: Vec<Tag>,
    /// What it is for.
    pub category: Category,
    /// Size of the message as it goes out, in bytes.
    pub size_bytes: u64,
    /// ENVID as it was given, decoded (RFC 3461 4.4).
    pub envelope_id: Option<String>,
    /// RET=FULL was asked (RFC 3461 4.3).
    pub return_full: bool,
    /// Managed unsubscribe is on: it has a link of ours.
    pub unsubscribe: bool,
    /// It was taken on to be sent later: it has a [`crate::schedule::Schedule`].
    pub scheduled: bool,
    /// It is worthless after so long.
    pub expires_in: Option<Duration>,
    /// Its sender wants to hear that it is late after so many seconds, which may be over (RFC 2852).
    pub late_in_s: Option<i64>,
    /// How pressing its sender finds it.
    pub priority: Option<Priority>,
    /// The email that it is sent again of.
    pub resent_from: Option<EmailId>,
    /// The template that it was made from.
    pub template: Option<SourceTemplate>,
    /// The run of an automation that sent it.
    pub run: Option<(AutomationId, RunId)>,
    /// The credential that it was handed in with; none where it was none, and in rows of earlier versions.
    pub sent_by: Option<CredentialId>,
    /// When it was accepted.
    pub created_at: Timestamp,
}

impl Email {
    /// Whether what it says is for its recipient alone: the service's own mail with links that sign in. A
    /// delivery report, which has no domain, says nothing that its account may not know.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        self.door == Ingress::System && self.domain.is_some()
    }

    /// When it is to be delivered by, where it goes out now (RFC 2852).
    #[must_use]
    pub fn deliver_by_time(&self, now: Timestamp) -> Option<DeliverByTime> {
        let (within, returns) = match (self.expires_in, self.late_in_s) {
            (Some(within), _) => (SignedDuration::try_from(within).ok()?, true),
            (None, late_in_s) => (SignedDuration::from_secs(late_in_s?), false),
        };
        Some(DeliverByTime { at: now.checked_add(within).ok()?, returns })
    }

    /// In which order its tasks go.
    #[must_use]
    pub fn class(&self) -> TaskClass {
        let usual = if self.expires_in.is_some() { TaskClass::Expiring } else { TaskClass::from(self.category) };
        self.priority.map_or(usual, |priority| priority.class(usual))
    }
}

/// How pressing a message is beside others (RFC 6710): -9 to 9, 0 for most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i8", into = "i8")]
pub struct Priority(i8);

impl Priority {
    /// None where it is out of bounds.
    #[must_use]
    pub fn new(priority: i8) -> Option<Self> {
        (-9..=9).contains(&priority).then_some(Self(priority))
    }

    /// In which order such mail goes: before all else from 5 on, as transactional mail from 1 on, after all else below 0.
    #[must_use]
    fn class(self, usual: TaskClass) -> TaskClass {
        match self.0 {
            5.. => TaskClass::Expiring,
            1..=4 => usual.min(TaskClass::Transactional),
            0 => usual,
            _ => TaskClass::Newsletter,
        }
    }
}

impl TryFrom<i8> for Priority {
    type Error = &'static str;

    fn try_from(priority: i8) -> Result<Self, Self::Error> {
        Self::new(priority).ok_or("a priority is -9 to 9")
    }
}

impl From<Priority> for i8 {
    fn from(priority: Priority) -> i8 {
        priority.0
    }
}

/// The state of an email (email-api.md, completions-email.md 2.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailStatus {
    /// To be sent later.
    Scheduled,
    /// Due, and not to be sent yet.
    Queued,
    /// In our spool, at least one recipient not terminal, none delivered.
    Sent,
    /// At least one recipient delivered.
    Delivered,
    /// All terminal, none delivered, at least one bounced.
    Bounced,
    /// All terminal, none delivered, none bounced.
    Failed,
    /// Taken out of the queue before anything else happened.
    Cancelled,
}

/// How many recipients are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RecipientCounts {
    /// Not terminal.
    pub queued: u32,
    /// Delivered.
    pub delivered: u32,
    /// Bounced.
    pub bounced: u32,
    /// Failed: given up without a word of their server about them.
    pub failed: u32,
    /// Suppressed: nothing was sent there. Told when there are any, as those below.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressed: u32,
    /// Cancelled before anything was sent there.
    #[serde(skip_serializing_if = "is_zero")]
    pub cancelled: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What an email has come to, derived from its recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailRollup {
    /// The state.
    pub status: EmailStatus,
    /// How many recipients are where.
    pub counts: RecipientCounts,
    /// The last thing that happened.
    pub last_event: EventKind,
    /// When the first recipient was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When the first recipient bounced.
    pub bounced_at: Option<Timestamp>,
    /// What the first refusing server said, or why it was not asked.
    pub bounce_reason: Option<String>,
}

impl EmailRollup {
    /// Derives the state of an email from its recipients.
    #[must_use]
    pub fn from_recipients(recipients: &[Recipient]) -> Self {
        let mut counts = RecipientCounts::default();
        let (mut scheduled, mut held) = (0, 0);
        for recipient in recipients {
            match recipient.state {
                RecipientState::Scheduled => {
                    counts.queued += 1;
                    scheduled += 1;
                }
                RecipientState::Held => {
                    counts.queued += 1;
                    held += 1;
                }
                RecipientState::Queued | RecipientState::Deferred => counts.queued += 1,
                RecipientState::Delivered => counts.delivered += 1,
                RecipientState::Bounced => counts.bounced += 1,
                RecipientState::Failed => counts.failed += 1,
                RecipientState::Suppressed => counts.suppressed += 1,
                RecipientState::Cancelled => counts.cancelled += 1,
            }
        }
        let status = match counts {
            RecipientCounts { delivered: 1.., .. } => EmailStatus::Delivered,
            // The recipients of a scheduled email are scheduled, held and released together.
            RecipientCounts { queued: 1.., .. } if scheduled > 0 => EmailStatus::Scheduled,
            RecipientCounts { queued: 1.., .. } if held > 0 => EmailStatus::Queued,
            RecipientCounts { queued: 1.., .. } => EmailStatus::Sent,
            RecipientCounts { bounced: 1.., .. } => EmailStatus::Bounced,
            RecipientCounts { cancelled: 1.., failed: 0, .. } => EmailStatus::Cancelled,
            _ => EmailStatus::Failed,
        };
        let first_bounce = recipients
            .iter()
            .filter(|r| r.state == RecipientState::Bounced)
            .min_by_key(|r| r.bounced_at.unwrap_or(Timestamp::MAX));
        Self {
            status,
            counts,
            last_event: recipients.iter().map(|r| r.last_event).max_by_key(|e| e.1).map_or(EventKind::Sent, |e| e.0),
            delivered_at: recipients.iter().filter_map(|r| r.delivered_at).min(),
            bounced_at: first_bounce.and_then(|r| r.bounced_at),
            bounce_reason: first_bounce
                .and_then(|r| r.error.clone().or_else(|| r.last_response.as_ref().map(ToString::to_string))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::{DsnOptions, RecipientKind};
    use crate::reply::{Enhanced, SmtpReply};

    fn recipient(index: u16, state: RecipientState, second: i64) -> Recipient {
        let at = Timestamp::from_second(second).unwrap();
        let event = match state {
            RecipientState::Scheduled | RecipientState::Held => EventKind::Scheduled,
            RecipientState::Suppressed => EventKind::Suppressed,
            RecipientState::Queued => EventKind::Sent,
            RecipientState::Deferred => EventKind::DeliveryDelayed,
            RecipientState::Delivered => EventKind::Delivered,
            RecipientState::Bounced => EventKind::Bounced,
            RecipientState::Failed => EventKind::Failed,
            RecipientState::Cancelled => EventKind::Cancelled,
        };
        Recipient {
            index,
            address: "a@example.com".parse().unwrap(),
            kind: RecipientKind::To,
            state,
            attempts: 1,
            last_response: Some(SmtpReply::new(550, Enhanced::new(5, 1, 1), "user unknown")),
            error: None,
            mx_host: None,
            last_event: (event, at),
            delivered_at: (state == RecipientState::Delivered).then_some(at),
            bounced_at: (state == RecipientState::Bounced).then_some(at),
            complained_at: None,
            next_attempt_at: None,
            notify: DsnOptions::default(),
        }
    }

    /// The worked examples of completions-email.md 2.13.
    #[test]
    fn the_roll_up_follows_the_worked_examples() {
        use RecipientState as S;
        let of = |states: &[S]| {
            let recipients: Vec<_> =
                states.iter().enumerate().map(|(n, s)| recipient(n as u16, *s, n as i64)).collect();
            EmailRollup::from_recipients(&recipients)
        };
        let mixed = of(&[S::Delivered, S::Bounced]);
        assert_eq!(mixed.status, EmailStatus::Delivered);
        assert_eq!(mixed.counts, RecipientCounts { delivered: 1, bounced: 1, ..RecipientCounts::default() });
        assert!(mixed.delivered_at.is_some() && mixed.bounced_at.is_some());
        assert_eq!(mixed.bounce_reason.as_deref(), Some("550 5.1.1 user unknown"));
        assert_eq!(mixed.last_event, EventKind::Bounced);
        let waiting = of(&[S::Bounced, S::Deferred]);
        assert_eq!((waiting.status, waiting.last_event), (EmailStatus::Sent, EventKind::DeliveryDelayed));
        assert_eq!(of(&[S::Bounced, S::Failed]).status, EmailStatus::Bounced);
        assert_eq!(of(&[S::Failed, S::Cancelled]).status, EmailStatus::Failed);
        assert_eq!(of(&[S::Cancelled]).status, EmailStatus::Cancelled);
        assert_eq!(of(&[S::Suppressed, S::Cancelled]).status, EmailStatus::Cancelled);
        let ended = of(&[S::Failed, S::Suppressed, S::Suppressed, S::Cancelled]).counts;
        assert_eq!(ended, RecipientCounts { failed: 1, suppressed: 2, cancelled: 1, ..RecipientCounts::default() });
        assert_eq!(of(&[S::Queued]).status, EmailStatus::Sent);
        assert_eq!(of(&[S::Queued, S::Suppressed]).status, EmailStatus::Sent);
        assert_eq!(of(&[S::Failed, S::Suppressed]).status, EmailStatus::Failed);
        assert_eq!(of(&[S::Scheduled, S::Scheduled]).status, EmailStatus::Scheduled);
        assert_eq!(of(&[S::Held]).status, EmailStatus::Queued);
    }
}
