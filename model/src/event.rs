//! Event: a fact in the past tense, stored in the commit that made it true.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use message::address::Address;
use serde::{Deserialize, Serialize};

/// How long events and their webhook deliveries are stored.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
use crate::id::{
    AccountId, CommissionId, DomainId, EmailId, EventId, IdError, PartnerId, PayoutId, ReceivedId, ReferralId, RunId,
    SuppressionId, WebhookId,
};

/// Whether a subscription to all events (an empty list) includes a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefaultSubscription {
    Included,
    /// An endpoint must list the kind. Every new kind is excluded.
    Excluded,
}

/// Defines one kind per row: when it is sent (a sentence of the API's documentation), its variant, its name in the API,
/// whether a subscription to all events includes it.
macro_rules! event_kinds {
    ($(#[doc = $description:literal] $variant:ident $name:literal $default:ident,)*) => {
        /// Kind of an event. The names are part of the API contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum EventKind {
            $(#[doc = $description] #[serde(rename = $name)] $variant,)*
        }

        impl EventKind {
            /// All kinds, in the order of the contract; later additions follow.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// When the event is sent, as a sentence.
            pub fn description(self) -> &'static str {
                let comment = match self { $(Self::$variant => $description,)* };
                comment.trim_start()
            }

            const fn default_subscription(self) -> DefaultSubscription {
                match self { $(Self::$variant => DefaultSubscription::$default,)* }
            }
        }
    };
}

event_kinds! {
    /// An email arrived at a receiving domain.
    Received "email.received" Included,
    /// An email was accepted and stored for delivery.
    Sent "email.sent" Included,
    /// A recipient's mail host accepted the email.
    Delivered "email.delivered" Included,
    /// A delivery failed temporarily, or the destination cannot be reached. It will be retried.
    DeliveryDelayed "email.delivery_delayed" Included,
    /// A recipient's mail host permanently refused the email. The recipient is suppressed.
    Bounced "email.bounced" Included,
    /// A recipient reported the email as spam. The recipient is suppressed.
    Complained "email.complained" Included,
    /// The tracking image of an email was loaded.
    Opened "email.opened" Included,
    /// A tracked link in an email was clicked.
    Clicked "email.clicked" Included,
    /// Delivery was given up for a reason other than the recipient, for example because the email expired.
    Failed "email.failed" Included,
    /// An email was not sent because a recipient is suppressed or has opted out.
    Suppressed "email.suppressed" Included,
    /// An email was accepted for a later time.
    Scheduled "email.scheduled" Included,
    /// A recipient unsubscribed with a link or with the unsubscribe button of an email program.
    Unsubscribed "contact.unsubscribed" Included,
    /// A product event started a run of an automation.
    AutomationStarted "automation.started" Included,
    /// A run completed a step.
    AutomationStepCompleted "automation.step_completed" Included,
    /// A run ended after its last step or at a condition.
    AutomationCompleted "automation.completed" Included,
    /// A run failed.
    AutomationFailed "automation.failed" Included,
    /// A scheduled email was cancelled.
    Cancelled "email.cancelled" Excluded,
    /// A sending domain was verified.
    DomainVerified "domain.verified" Excluded,
    /// A DNS record of a verified domain is missing or wrong.
    DomainDegraded "domain.degraded" Excluded,
    /// An address or a domain was suppressed.
    SuppressionCreated "suppression.created" Excluded,
    /// A suppression was removed.
    SuppressionDeleted "suppression.deleted" Excluded,
    /// A webhook endpoint was disabled.
    WebhookDisabled "webhook.disabled" Excluded,
    /// A partner applied, was invited, was imported or was created.
    AffiliateCreated "affiliate.created" Included,
    /// A partner became active.
    AffiliateApproved "affiliate.approved" Included,
    /// The profile, campaign, payout method or status of a partner changed.
    AffiliateUpdated "affiliate.updated" Included,
    /// A referred person was recorded as a lead.
    ReferralCreated "referral.created" Included,
    /// A referred person paid for the first time.
    ReferralConverted "referral.converted" Included,
    /// A commission was recorded.
    CommissionCreated "commission.created" Included,
    /// The hold of a commission ended.
    CommissionEarned "commission.earned" Included,
    /// A commission was reversed by a refund, by a dispute or by hand.
    CommissionReversed "commission.reversed" Included,
    /// A commission was paid in a payout.
    CommissionPaid "commission.paid" Included,
    /// A payout was drafted in a run.
    PayoutCreated "payout.created" Included,
    /// A payout was paid.
    PayoutPaid "payout.paid" Included,
    /// A payout failed. Its commissions return to the next run.
    PayoutFailed "payout.failed" Included,
}

impl EventKind {
    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kind whose name is reserved: a customer's own product event cannot use it, in any case.
    pub fn from_name_ignoring_case(name: &str) -> Option<Self> {
        // Names of affiliate events are not reserved, because a product can have partners and payouts of its own.
        let is_reserved = |kind: &Self| !kind.is_affiliate_event() && kind.name().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(is_reserved)
    }

    /// True for events of the affiliate program.
    pub fn is_affiliate_event(self) -> bool {
        let nouns = ["affiliate.", "referral.", "commission.", "payout."];
        nouns.iter().any(|noun| self.name().starts_with(noun))
    }

    /// True for events that can trigger automations: email events and unsubscribes.
    pub fn can_trigger_automations(self) -> bool {
        self == Self::Unsubscribed || self.name().starts_with("email.")
    }

    /// True for kinds that an endpoint must list: a subscription to all events does not include them.
    pub fn requires_explicit_subscription(self) -> bool {
        self.default_subscription() == DefaultSubscription::Excluded
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

message::stored_as_text!(Subject);

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Id by which receivers deduplicate.
    pub id: EventId,
    pub account: AccountId,
    // Named when all events were about emails.
    #[serde(rename = "email")]
    pub subject: Subject,
    pub kind: EventKind,
    /// The recipient concerned; `None` if the event concerns all or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Address>,
    pub created_at: Timestamp,
    /// Payload as a JSON object, by kind. For a subject other than a sent email it is the
    /// complete webhook payload without the id.
    pub detail: serde_json::Value,
}

impl Event {
    /// An event that concerns no single recipient.
    pub fn new(
        id: EventId,
        account: AccountId,
        subject: impl Into<Subject>,
        kind: EventKind,
        created_at: Timestamp,
        detail: serde_json::Value,
    ) -> Self {
        Self { id, account, subject: subject.into(), kind, recipient: None, created_at, detail }
    }

    /// The sent email that the event is about, if it is one.
    pub fn email(&self) -> Option<EmailId> {
        match self.subject {
            Subject::Email(id) => Some(id),
            _ => None,
        }
    }
}
