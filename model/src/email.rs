//! Email: one accepted message of an account to up to 1,000 recipients, and the status derived from them.
//!
//! The status of an email is not stored. [`EmailRollup`] derives it from the states of the
//! recipients, so that the deliveries of two recipients never write the same row.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use message::address::{Address, DomainName, Mailbox};
use message::header::HeaderSummary;
use message::words;
use serde::{Deserialize, Serialize};

use crate::credential::CredentialId;
use crate::event::EventKind;
use crate::id::{AccountId, AutomationId, EmailId, RunId, TemplateId};
use crate::recipient::{Recipient, RecipientState};
use crate::task::{DeliverByTime, TaskClass};

/// The way by which an email was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ingress {
    Api,
    /// SMTP submission with AUTH.
    Submission,
    /// A `[[relay]]` listener for trusted hosts.
    Relay,
    /// Created by the service itself, for example a DSN.
    System,
}

impl Ingress {
    /// The word in the log and in the trace output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Submission => "smtp",
            Self::Relay => "relay",
            Self::System => "system",
        }
    }
}

words! {
    /// The purpose of an email. It decides the order in the queue and whether recipients can opt out.
    #[derive(Default)]
    Category {
        /// Receipts, password resets, alerts.
        #[default]
        Transactional = "transactional",
        /// News about the product.
        Product = "product",
        Newsletter = "newsletter",
    }
}

/// A tag that the customer adds to an email.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    pub name: String,
    pub value: String,
}

/// The template that an email was rendered from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTemplate {
    pub id: TemplateId,
    /// Its alias at that time.
    pub alias: Option<String>,
    pub version: u32,
}

/// Handling of an email that has suppressed or opted-out recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnSuppressed {
    /// No recipient gets the email.
    #[default]
    Fail,
    /// The other recipients get the email.
    Skip,
}

/// Options of a send, as the API, SMTP header fields and automations set them. [`Email::with_options`] decides which of
/// them the email keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendOptions {
    /// Send at this time instead of now.
    pub scheduled_at: Option<Timestamp>,
    /// Lifetime: the email fails after this time. By default it gets the highest priority class.
    pub expires_in: Option<Duration>,
    /// Priority; derived from the category if `None`.
    pub priority: Option<Priority>,
    pub on_suppressed: OnSuppressed,
    /// Managed unsubscribe; derived from the category if `None`.
    pub unsubscribe: Option<bool>,
    /// The email that this one resends.
    pub resent_from: Option<EmailId>,
    pub template: Option<SourceTemplate>,
    /// The automation run that sends the email.
    pub run: Option<(AutomationId, RunId)>,
    /// True for an email of the service that counts against the account's plan, because the account caused it.
    pub metered: bool,
    /// True for an email of the service with a link that only its recipient may use.
    pub has_secret_link: bool,
}

/// An accepted email. It is immutable.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Email {
    pub id: EmailId,
    pub account: AccountId,
    /// The way by which it was submitted.
    #[serde(rename = "door")]
    pub ingress: Ingress,
    pub from: Mailbox,
    /// MAIL FROM of the SMTP client, which receives DSNs; `None` for the null reverse-path and for the API.
    pub reverse_path: Option<Address>,
    /// The sending domain that provides the return path; `None` if there is none, as for a DSN.
    #[row(always)]
    pub domain: Option<DomainName>,
    #[serde(rename = "facts")]
    pub header: HeaderSummary,
    pub tags: Vec<Tag>,
    pub category: Category,
    /// Size of the outgoing message in bytes.
    pub size_bytes: u64,
    /// ENVID, decoded (RFC 3461 4.4).
    pub envelope_id: Option<String>,
    /// RET=FULL (RFC 3461 4.3).
    pub return_full: bool,
    /// REQUIRETLS (RFC 8689). False in rows of earlier versions.
    pub require_tls: bool,
    /// True if managed unsubscribe is enabled, so that the message has an unsubscribe link.
    pub unsubscribe: bool,
    /// True for an email of the service with a link that only its recipient may use: its body is sealed in the store, and
    /// withheld if this server receives it. False in rows of earlier versions.
    pub has_secret_link: bool,
    /// True if it was accepted for a later time and has a [`crate::schedule::Schedule`].
    pub scheduled: bool,
    /// Lifetime, after which it fails.
    pub expires_in: Option<Duration>,
    /// Seconds after which the sender gets a DSN about a delay (RFC 2852); negative if the time had passed.
    pub late_in_s: Option<i64>,
    pub priority: Option<Priority>,
    /// The email that this one resends.
    pub resent_from: Option<EmailId>,
    pub template: Option<SourceTemplate>,
    /// The automation run that sent it.
    pub run: Option<(AutomationId, RunId)>,
    /// The credential of the submission; `None` without a credential and in rows of earlier versions.
    pub sent_by: Option<CredentialId>,
    pub created_at: Timestamp,
}

impl Email {
    /// An email without content, options and an author's domain.
    pub fn new(id: EmailId, account: AccountId, ingress: Ingress, from: Mailbox, created_at: Timestamp) -> Self {
        Self {
            id,
            account,
            ingress,
            from,
            reverse_path: None,
            domain: None,
            header: HeaderSummary::default(),
            tags: Vec::new(),
            category: Category::default(),
            size_bytes: 0,
            envelope_id: None,
            return_full: false,
            require_tls: false,
            unsubscribe: false,
            has_secret_link: false,
            scheduled: false,
            expires_in: None,
            late_in_s: None,
            priority: None,
            resent_from: None,
            template: None,
            run: None,
            sent_by: None,
            created_at,
        }
    }

    /// The email with the options of its sender. Options that only decide how it is accepted are not kept.
    pub fn with_options(self, options: SendOptions) -> Self {
        let SendOptions {
            scheduled_at: _,
            expires_in,
            priority,
            on_suppressed: _,
            unsubscribe: _,
            resent_from,
            template,
            run,
            metered: _,
            has_secret_link,
        } = options;
        Self { expires_in, priority, resent_from, template, run, has_secret_link, ..self }
    }

    /// True if the content must not be shown to the account: the service's own email with sign-in links. A DSN, which
    /// has no domain, is not confidential.
    pub fn is_confidential(&self) -> bool {
        self.ingress == Ingress::System && self.domain.is_some()
    }

    /// The deliver-by time of an email that is sent at `now` (RFC 2852).
    pub fn deliver_by_time(&self, now: Timestamp) -> Option<DeliverByTime> {
        let (within, returns) = match (self.expires_in, self.late_in_s) {
            (Some(within), _) => (SignedDuration::try_from(within).ok()?, true),
            (None, late_in_s) => (SignedDuration::from_secs(late_in_s?), false),
        };
        Some(DeliverByTime { at: now.checked_add(within).ok()?, returns })
    }

    /// The priority class of its tasks.
    pub fn class(&self) -> TaskClass {
        let usual = if self.expires_in.is_some() { TaskClass::Expiring } else { TaskClass::from(self.category) };
        self.priority.map_or(usual, |priority| priority.class(usual))
    }
}

/// MT-PRIORITY (RFC 6710): -9 to 9, default 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i8", into = "i8")]
pub struct Priority(i8);

impl Priority {
    /// `None` if the number is out of range.
    pub fn new(priority: i8) -> Option<Self> {
        (-9..=9).contains(&priority).then_some(Self(priority))
    }

    /// The class for this priority: highest from 5, at least transactional from 1, lowest below 0.
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
        Self::new(priority).ok_or("a priority must be -9 to 9")
    }
}

impl From<Priority> for i8 {
    fn from(priority: Priority) -> i8 {
        priority.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailStatus {
    /// Accepted for a later time.
    Scheduled,
    /// Its scheduled time has passed, but sending has not started.
    Queued,
    /// In the queue: no recipient is delivered, and at least one is not terminal.
    Sent,
    /// At least one recipient is delivered.
    Delivered,
    /// All recipients are terminal, none is delivered, at least one bounced.
    Bounced,
    /// All recipients are terminal, none is delivered or bounced.
    Failed,
    /// Cancelled before anything was sent.
    Cancelled,
}

/// Number of recipients by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RecipientCounts {
    /// Not terminal.
    pub queued: u32,
    pub delivered: u32,
    pub bounced: u32,
    /// Given up for a reason that does not concern the recipient.
    pub failed: u32,
    /// Not sent because of a suppression. This field and the next are omitted if zero.
    #[serde(skip_serializing_if = "message::row::is_default")]
    pub suppressed: u32,
    /// Cancelled before anything was sent to them.
    #[serde(skip_serializing_if = "message::row::is_default")]
    pub cancelled: u32,
}

/// The status of an email, derived from its recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailRollup {
    pub status: EmailStatus,
    pub counts: RecipientCounts,
    /// The most recent event of any recipient.
    pub last_event: EventKind,
    /// When the first recipient was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When the first recipient bounced.
    pub bounced_at: Option<Timestamp>,
    /// The SMTP reply or the error of the first bounce.
    pub bounce_reason: Option<String>,
}

impl EmailRollup {
    /// Derives the status from the recipients.
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
            // The recipients of a scheduled email change from scheduled to held and to queued together.
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
    use message::reply::{Enhanced, SmtpReply};

    use super::*;
    use crate::recipient::{DsnOptions, RecipientKind};

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

    /// Worked examples: the states of the recipients and the status of the email.
    #[test]
    fn the_rollup_follows_the_worked_examples() {
        use RecipientState as S;
        let rollup = |states: &[S]| {
            let recipients: Vec<_> =
                states.iter().enumerate().map(|(n, s)| recipient(n as u16, *s, n as i64)).collect();
            EmailRollup::from_recipients(&recipients)
        };
        let mixed = rollup(&[S::Delivered, S::Bounced]);
        assert_eq!(mixed.status, EmailStatus::Delivered);
        assert_eq!(mixed.counts, RecipientCounts { delivered: 1, bounced: 1, ..RecipientCounts::default() });
        assert!(mixed.delivered_at.is_some() && mixed.bounced_at.is_some());
        assert_eq!(mixed.bounce_reason.as_deref(), Some("550 5.1.1 user unknown"));
        assert_eq!(mixed.last_event, EventKind::Bounced);
        let waiting = rollup(&[S::Bounced, S::Deferred]);
        assert_eq!((waiting.status, waiting.last_event), (EmailStatus::Sent, EventKind::DeliveryDelayed));
        assert_eq!(rollup(&[S::Bounced, S::Failed]).status, EmailStatus::Bounced);
        assert_eq!(rollup(&[S::Failed, S::Cancelled]).status, EmailStatus::Failed);
        assert_eq!(rollup(&[S::Cancelled]).status, EmailStatus::Cancelled);
        assert_eq!(rollup(&[S::Suppressed, S::Cancelled]).status, EmailStatus::Cancelled);
        let ended = rollup(&[S::Failed, S::Suppressed, S::Suppressed, S::Cancelled]).counts;
        assert_eq!(ended, RecipientCounts { failed: 1, suppressed: 2, cancelled: 1, ..RecipientCounts::default() });
        assert_eq!(rollup(&[S::Queued]).status, EmailStatus::Sent);
        assert_eq!(rollup(&[S::Queued, S::Suppressed]).status, EmailStatus::Sent);
        assert_eq!(rollup(&[S::Failed, S::Suppressed]).status, EmailStatus::Failed);
        assert_eq!(rollup(&[S::Scheduled, S::Scheduled]).status, EmailStatus::Scheduled);
        assert_eq!(rollup(&[S::Held]).status, EmailStatus::Queued);
    }
}
