//! An event: a fact in the past tense, recorded in the commit that made it true.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::address::Address;

/// How long events and their deliveries are kept (completions-email.md 2.11).
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
use crate::id::{
    AccountId, CommissionId, DomainId, EmailId, EventId, IdError, PartnerId, PayoutId, ReceivedId, ReferralId, RunId,
    SuppressionId, WebhookId,
};

/// What happened. The names are the contract's (email-api.md, "Webhook events").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// Accepted for delivery: it is on disk.
    #[serde(rename = "email.sent")]
    Sent,
    /// Accepted, to be sent at a time.
    #[serde(rename = "email.scheduled")]
    Scheduled,
    /// Not sent: a recipient is suppressed or opted out.
    #[serde(rename = "email.suppressed")]
    Suppressed,
    /// A destination took it.
    #[serde(rename = "email.delivered")]
    Delivered,
    /// Put off: a destination said "not now", or could not be reached.
    #[serde(rename = "email.delivery_delayed")]
    DeliveryDelayed,
    /// Refused by, or undeliverable at, the recipient's server.
    #[serde(rename = "email.bounced")]
    Bounced,
    /// Given up for a reason that is not the recipient's.
    #[serde(rename = "email.failed")]
    Failed,
    /// Taken out of the queue.
    #[serde(rename = "email.cancelled")]
    Cancelled,
    /// A recipient completed a managed unsubscribe.
    #[serde(rename = "contact.unsubscribed")]
    Unsubscribed,
    /// The pixel was fetched.
    #[serde(rename = "email.opened")]
    Opened,
    /// A tracked link was followed.
    #[serde(rename = "email.clicked")]
    Clicked,
    /// A recipient marked it as spam.
    #[serde(rename = "email.complained")]
    Complained,
    /// An email came in for a domain that receives.
    #[serde(rename = "email.received")]
    Received,
    /// An automation matched an event: there is a run.
    #[serde(rename = "automation.started")]
    AutomationStarted,
    /// One step of a run was completed.
    #[serde(rename = "automation.step_completed")]
    AutomationStepCompleted,
    /// A run finished, or ended early at a condition.
    #[serde(rename = "automation.completed")]
    AutomationCompleted,
    /// A run failed.
    #[serde(rename = "automation.failed")]
    AutomationFailed,
    /// A sending domain may be sent from.
    #[serde(rename = "domain.verified")]
    DomainVerified,
    /// A record of a verified domain is gone.
    #[serde(rename = "domain.degraded")]
    DomainDegraded,
    /// An address is suppressed from now on.
    #[serde(rename = "suppression.created")]
    SuppressionCreated,
    /// An address is not suppressed any more.
    #[serde(rename = "suppression.deleted")]
    SuppressionDeleted,
    /// A webhook endpoint gets nothing more.
    #[serde(rename = "webhook.disabled")]
    WebhookDisabled,
    /// A partner joined, was invited, imported or created.
    #[serde(rename = "affiliate.created")]
    AffiliateCreated,
    /// A partner became active.
    #[serde(rename = "affiliate.approved")]
    AffiliateApproved,
    /// What is known of a partner changed, or where it stands.
    #[serde(rename = "affiliate.updated")]
    AffiliateUpdated,
    /// A person whom a partner brought was recorded.
    #[serde(rename = "referral.created")]
    ReferralCreated,
    /// A person whom a partner brought paid for the first time.
    #[serde(rename = "referral.converted")]
    ReferralConverted,
    /// A commission was written.
    #[serde(rename = "commission.created")]
    CommissionCreated,
    /// A commission's hold ended.
    #[serde(rename = "commission.earned")]
    CommissionEarned,
    /// A commission was taken back.
    #[serde(rename = "commission.reversed")]
    CommissionReversed,
    /// A commission was paid out.
    #[serde(rename = "commission.paid")]
    CommissionPaid,
    /// A payout was drafted in a run.
    #[serde(rename = "payout.created")]
    PayoutCreated,
    /// A payout went out.
    #[serde(rename = "payout.paid")]
    PayoutPaid,
    /// A payout failed; its commissions return to the next run.
    #[serde(rename = "payout.failed")]
    PayoutFailed,
}

impl EventKind {
    /// All of them, those first that the contract lists.
    pub const ALL: [Self; 34] = [
        Self::Received,
        Self::Sent,
        Self::Delivered,
        Self::DeliveryDelayed,
        Self::Bounced,
        Self::Complained,
        Self::Opened,
        Self::Clicked,
        Self::Failed,
        Self::Suppressed,
        Self::Scheduled,
        Self::Unsubscribed,
        Self::AutomationStarted,
        Self::AutomationStepCompleted,
        Self::AutomationCompleted,
        Self::AutomationFailed,
        Self::Cancelled,
        Self::DomainVerified,
        Self::DomainDegraded,
        Self::SuppressionCreated,
        Self::SuppressionDeleted,
        Self::WebhookDisabled,
        Self::AffiliateCreated,
        Self::AffiliateApproved,
        Self::AffiliateUpdated,
        Self::ReferralCreated,
        Self::ReferralConverted,
        Self::CommissionCreated,
        Self::CommissionEarned,
        Self::CommissionReversed,
        Self::CommissionPaid,
        Self::PayoutCreated,
        Self::PayoutPaid,
        Self::PayoutFailed,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "email.sent",
            Self::Scheduled => "email.scheduled",
            Self::Suppressed => "email.suppressed",
            Self::Delivered => "email.delivered",
            Self::DeliveryDelayed => "email.delivery_delayed",
            Self::Bounced => "email.bounced",
            Self::Complained => "email.complained",
            Self::Failed => "email.failed",
            Self::Cancelled => "email.cancelled",
            Self::Unsubscribed => "contact.unsubscribed",
            Self::Opened => "email.opened",
            Self::Clicked => "email.clicked",
            Self::Received => "email.received",
            Self::AutomationStarted => "automation.started",
            Self::AutomationStepCompleted => "automation.step_completed",
            Self::AutomationCompleted => "automation.completed",
            Self::AutomationFailed => "automation.failed",
            Self::DomainVerified => "domain.verified",
            Self::DomainDegraded => "domain.degraded",
            Self::SuppressionCreated => "suppression.created",
            Self::SuppressionDeleted => "suppression.deleted",
            Self::WebhookDisabled => "webhook.disabled",
            Self::AffiliateCreated => "affiliate.created",
            Self::AffiliateApproved => "affiliate.approved",
            Self::AffiliateUpdated => "affiliate.updated",
            Self::ReferralCreated => "referral.created",
            Self::ReferralConverted => "referral.converted",
            Self::CommissionCreated => "commission.created",
            Self::CommissionEarned => "commission.earned",
            Self::CommissionReversed => "commission.reversed",
            Self::CommissionPaid => "commission.paid",
            Self::PayoutCreated => "payout.created",
            Self::PayoutPaid => "payout.paid",
            Self::PayoutFailed => "payout.failed",
        }
    }

    /// By its name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The one that a name means, however its letters are written: nobody else tells of an event that is called so.
    #[must_use]
    pub fn from_name_ignoring_case(name: &str) -> Option<Self> {
        // A product may have partners and payouts of its own, and nothing here hears those names.
        let is_reserved = |kind: &Self| !kind.is_affiliate_event() && kind.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_reserved)
    }

    /// Whether it is about the affiliate program.
    #[must_use]
    pub fn is_affiliate_event(self) -> bool {
        let nouns = ["affiliate.", "referral.", "commission.", "payout."];
        nouns.iter().any(|noun| self.name().starts_with(noun))
    }

    /// Whether automations hear it: those about emails, and that somebody left.
    #[must_use]
    pub fn can_trigger_automations(self) -> bool {
        self == Self::Unsubscribed || self.name().starts_with("email.")
    }

    /// Whether only who names it is told of it: it came after the contract's list, and who asked for all
    /// events asked for that list (completions-email.md 2.10, "Later events").
    #[must_use]
    pub fn requires_explicit_subscription(self) -> bool {
        matches!(
            self,
            Self::Cancelled
                | Self::DomainVerified
                | Self::DomainDegraded
                | Self::SuppressionCreated
                | Self::SuppressionDeleted
                | Self::WebhookDisabled
        )
    }
}

macro_rules! subjects {
    ($($(#[$doc:meta])* $name:ident($id:ty),)*) => {
        /// What an event is about. Written as its id, whose prefix says what it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Subject {
            $($(#[$doc])* $name($id),)*
        }

        impl Subject {
            /// The 16 bytes that stand in a storage key.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                match self {
                    $(Self::$name(id) => id.to_bytes(),)*
                }
            }
        }

        impl fmt::Display for Subject {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name(id) => id.fmt(f),)*
                }
            }
        }

        impl FromStr for Subject {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                $(if text.starts_with(<$id>::PREFIX) {
                    return text.parse().map(Self::$name);
                })*
                // What is nothing else should have been an email, which most subjects are.
                text.parse().map(Self::Email)
            }
        }

        $(impl From<$id> for Subject {
            fn from(id: $id) -> Self {
                Self::$name(id)
            }
        })*
    };
}

subjects! {
    /// An email that was sent, or is to be.
    Email(EmailId),
    /// A received email.
    Received(ReceivedId),
    /// A run of an automation.
    Run(RunId),
    /// A sending domain.
    Domain(DomainId),
    /// A suppression.
    Suppression(SuppressionId),
    /// A webhook endpoint.
    Webhook(WebhookId),
    /// A partner of the affiliate program.
    Partner(PartnerId),
    /// A person whom a partner brought.
    Referral(ReferralId),
    /// A commission.
    Commission(CommissionId),
    /// A payout.
    Payout(PayoutId),
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id: the key by which receivers drop what they have seen.
    pub id: EventId,
    /// Whose it is.
    pub account: AccountId,
    /// What it is about.
    pub subject: Subject,
    /// What happened.
    pub kind: EventKind,
    /// The recipient that it is about; none when it is about all of them.
    pub recipient: Option<Address>,
    /// When it happened.
    pub created_at: Timestamp,
    /// Particulars by kind: a JSON object (completions-email.md 2.10). Of an event that is not about an
    /// email that was sent, all that its webhooks say but its id.
    pub detail: serde_json::Value,
}

impl Event {
    /// The email that it is about, if it is about one that was sent.
    #[must_use]
    pub fn email(&self) -> Option<EmailId> {
        match self.subject {
            Subject::Email(id) => Some(id),
            _ => None,
        }
    }
}
