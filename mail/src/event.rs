//! Event: a fact in the past tense, stored in the commit that made it true.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::address::Address;

/// How long events and their webhook deliveries are stored (completions-email.md 2.11).
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
use crate::id::{
    AccountId, CommissionId, DomainId, EmailId, EventId, IdError, PartnerId, PayoutId, ReceivedId, ReferralId, RunId,
    SuppressionId, WebhookId,
};

/// Kind of an event. The names are part of the API contract (email-api.md, "Webhook events").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// Accepted for delivery and stored.
    #[serde(rename = "email.sent")]
    Sent,
    /// Accepted for a later time.
    #[serde(rename = "email.scheduled")]
    Scheduled,
    /// Not sent because the recipient is suppressed or opted out.
    #[serde(rename = "email.suppressed")]
    Suppressed,
    /// The destination accepted the email.
    #[serde(rename = "email.delivered")]
    Delivered,
    /// Deferred: a temporary failure, or the destination could not be reached.
    #[serde(rename = "email.delivery_delayed")]
    DeliveryDelayed,
    /// Refused by the recipient's server, or undeliverable there.
    #[serde(rename = "email.bounced")]
    Bounced,
    /// Given up for a reason that does not concern the recipient.
    #[serde(rename = "email.failed")]
    Failed,
    /// Removed from the queue.
    #[serde(rename = "email.cancelled")]
    Cancelled,
    /// A recipient completed a managed unsubscribe.
    #[serde(rename = "contact.unsubscribed")]
    Unsubscribed,
    /// The tracking pixel was fetched.
    #[serde(rename = "email.opened")]
    Opened,
    /// A tracked link was followed.
    #[serde(rename = "email.clicked")]
    Clicked,
    /// A recipient marked it as spam.
    #[serde(rename = "email.complained")]
    Complained,
    /// An email was received for a receiving domain.
    #[serde(rename = "email.received")]
    Received,
    /// A run was created because an event matched a trigger.
    #[serde(rename = "automation.started")]
    AutomationStarted,
    /// A step of a run was completed.
    #[serde(rename = "automation.step_completed")]
    AutomationStepCompleted,
    /// A run was completed, by its last step or by a condition.
    #[serde(rename = "automation.completed")]
    AutomationCompleted,
    /// A run failed.
    #[serde(rename = "automation.failed")]
    AutomationFailed,
    /// A sending domain was verified.
    #[serde(rename = "domain.verified")]
    DomainVerified,
    /// A DNS record of a verified domain is missing.
    #[serde(rename = "domain.degraded")]
    DomainDegraded,
    /// An address or domain was suppressed.
    #[serde(rename = "suppression.created")]
    SuppressionCreated,
    /// A suppression was removed.
    #[serde(rename = "suppression.deleted")]
    SuppressionDeleted,
    /// A webhook endpoint was disabled.
    #[serde(rename = "webhook.disabled")]
    WebhookDisabled,
    /// A partner applied, was invited, imported or created.
    #[serde(rename = "affiliate.created")]
    AffiliateCreated,
    /// A partner became active.
    #[serde(rename = "affiliate.approved")]
    AffiliateApproved,
    /// A partner's data or status changed.
    #[serde(rename = "affiliate.updated")]
    AffiliateUpdated,
    /// A referred person was recorded.
    #[serde(rename = "referral.created")]
    ReferralCreated,
    /// A referred person paid for the first time.
    #[serde(rename = "referral.converted")]
    ReferralConverted,
    /// A commission was written.
    #[serde(rename = "commission.created")]
    CommissionCreated,
    /// A commission's hold ended.
    #[serde(rename = "commission.earned")]
    CommissionEarned,
    /// A commission was reversed.
    #[serde(rename = "commission.reversed")]
    CommissionReversed,
    /// A commission was paid out.
    #[serde(rename = "commission.paid")]
    CommissionPaid,
    /// A payout was drafted in a run.
    #[serde(rename = "payout.created")]
    PayoutCreated,
    /// A payout was paid.
    #[serde(rename = "payout.paid")]
    PayoutPaid,
    /// A payout failed; its commissions return to the next run.
    #[serde(rename = "payout.failed")]
    PayoutFailed,
}

impl EventKind {
    /// All kinds, in the order of the contract; later additions follow.
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

    /// The name in the API.
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

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind whose name is reserved: a customer's own product event cannot use it, in any case.
    #[must_use]
    pub fn from_name_ignoring_case(name: &str) -> Option<Self> {
        // Names of affiliate events are not reserved, because a product can have partners and payouts of its own.
        let is_reserved = |kind: &Self| !kind.is_affiliate_event() && kind.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_reserved)
    }

    /// True for events of the affiliate program.
    #[must_use]
    pub fn is_affiliate_event(self) -> bool {
        let nouns = ["affiliate.", "referral.", "commission.", "payout."];
        nouns.iter().any(|noun| self.name().starts_with(noun))
    }

    /// True for events that can trigger automations: email events and unsubscribes.
    #[must_use]
    pub fn can_trigger_automations(self) -> bool {
        self == Self::Unsubscribed || self.name().starts_with("email.")
    }

    /// True for kinds that an endpoint must list explicitly (completions-email.md 2.10, "Later events"). They were
    /// added after the contract's list, so a subscription to all events does not include them.
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
        /// The object that an event is about. Serialized as its id, whose prefix names the type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Subject {
            $($(#[$doc])* $name($id),)*
        }

        impl Subject {
            /// The 16 bytes for a storage key.
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
                // An unknown prefix gives the error of an email id, the most common subject.
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
    /// A sent or scheduled email.
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
    /// A referred person.
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

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Id by which receivers deduplicate.
    pub id: EventId,
    pub account: AccountId,
    pub subject: Subject,
    pub kind: EventKind,
    /// The recipient concerned; `None` if the event concerns all or none.
    pub recipient: Option<Address>,
    pub created_at: Timestamp,
    /// Payload as a JSON object, by kind (completions-email.md 2.10). For a subject other than a sent email it is the
    /// complete webhook payload without the id.
    pub detail: serde_json::Value,
}

impl Event {
    /// The sent email that the event is about, if it is one.
    #[must_use]
    pub fn email(&self) -> Option<EmailId> {
        match self.subject {
            Subject::Email(id) => Some(id),
            _ => None,
        }
    }
}
