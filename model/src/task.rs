//! A task: the delivery of one email to one recipient, due at a time.
//!
//! A task holds all data of an attempt except the message's bytes, so the queue reads one row and one body. Each
//! (destination domain, class, account) has its own queue; task keys sort by queue, then by due time.

use std::time::Duration;

use jiff::Timestamp;
use message::address::{Address, DomainName};
use message::words;
use serde::{Deserialize, Serialize};

use crate::account::Plan;
use crate::destination::RouteOverride;
use crate::email::{Category, Priority};
use crate::id::{AccountId, EmailId};
use crate::recipient::{DsnOptions, RecipientKind};

words! {
    /// Priority class of a task. Ready tasks of one destination are sent by weighted class: a password reset never
    /// waits behind a million newsletters, and newsletters are never starved.
    TaskClass {
        /// Has `expires_in`, so it must be delivered soon.
        Expiring = "expiring" as 0,
        Transactional = "transactional" as 1,
        /// Product updates.
        Product = "product" as 2,
        Newsletter = "newsletter" as 3,
    }
}

impl TaskClass {
    /// Parses the byte of a storage key.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

impl From<Category> for TaskClass {
    fn from(category: Category) -> Self {
        match category {
            Category::Transactional => Self::Transactional,
            Category::Product => Self::Product,
            Category::Newsletter => Self::Newsletter,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName {
    /// The task partition, which one node owns.
    pub partition: u16,
    pub domain: DomainName,
    pub class: TaskClass,
    pub account: AccountId,
}

/// Permanent identity of a task: the recipient of an email.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    pub email: EmailId,
    /// Index of the recipient in the email.
    pub recipient: u16,
}

/// TLS requirement of a task, in addition to the operator's requirement for all mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskTlsRequirement {
    Opportunistic = 0,
    /// TLS with any certificate.
    Enforced = 1,
    /// TLS with a valid certificate.
    Verified = 2,
}

/// Deliver-by time of a message (RFC 2852).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliverByTime {
    pub at: Timestamp,
    /// After `at`, the message is returned (BY mode R); otherwise the sender receives a delay DSN (mode N).
    pub returns: bool,
}

/// The delivery of one email to one recipient.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    /// The task partition, assigned when the email is accepted and never changed.
    pub partition: u16,
    pub account: AccountId,
    pub class: TaskClass,
    /// Time of the next attempt.
    pub due: Timestamp,
    /// The recipient's address.
    pub address: Address,
    /// The header field that names the recipient.
    pub kind: RecipientKind,
    /// The sending domain, whose return path is used; `None` for mail of the service itself, which is sent with the
    /// null reverse path.
    #[row(always)]
    pub domain: Option<DomainName>,
    pub attempts: u32,
    /// Number of 4yz replies: at expiry they distinguish a soft bounce from a failure.
    pub replies: u32,
    pub accepted_at: Timestamp,
    /// End of the delivery period.
    pub expires_at: Timestamp,
    /// The client set a deadline (`expires_in`, BY), after which the email is not sent.
    pub has_deadline: bool,
    /// Size of the message in bytes.
    pub size_bytes: u64,
    /// The message or its envelope needs SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// The client requested REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// The sending domain requires TLS for its mail.
    pub tls_enforced: bool,
    /// The sender overrides TLS policies of the destination (`TLS-Required: No`, RFC 8689 5).
    pub tls_optional: bool,
    /// The message has bytes above 127.
    pub eight_bit: bool,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub notify: DsnOptions,
    /// ENVID, decoded.
    pub envelope_id: Option<String>,
    /// RET=FULL.
    pub return_full: bool,
    /// Deliver-by time, passed on to the next host.
    #[serde(rename = "by", skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<DeliverByTime>,
    /// Priority, passed on to the next host (RFC 6710).
    pub priority: Option<Priority>,
    /// Held by the operator: stays in the queue without attempts.
    pub held: bool,
    /// Route set by the operator for this task; it overrides the destination's route.
    #[serde(rename = "way", skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteOverride>,
    /// The account's plan at acceptance, which selects the pool of source addresses; `None` for tasks older than this
    /// field.
    pub plan: Option<Plan>,
}

/// How long after `expires_at` the last attempt, due at that time, may still begin.
pub const LAST_ATTEMPT_GRACE: Duration = Duration::from_secs(5);
/// Age of undelivered mail at which a requested delay DSN is sent (RFC 3461 4.1, NOTIFY=DELAY).
pub const DELAY_REPORT_AFTER: Duration = Duration::from_secs(4 * 3600);

impl Task {
    /// Returns whether the delivery period has ended, so that no further attempt is made.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.checked_add(LAST_ATTEMPT_GRACE).is_ok_and(|last| now > last)
    }

    /// Time of the delay DSN, if the client requested one and the delivery period does not end earlier.
    pub fn delay_report_at(&self) -> Option<Timestamp> {
        let at = self.accepted_at.checked_add(DELAY_REPORT_AFTER).unwrap_or(Timestamp::MAX);
        Some(at).filter(|at| self.notify.delay && *at < self.expires_at)
    }

    pub fn queue_name(&self) -> QueueName {
        let domain = self.address.domain().clone();
        QueueName { partition: self.partition, domain, class: self.class, account: self.account }
    }

    pub fn tls_requirement(&self) -> TaskTlsRequirement {
        match (self.require_tls, self.tls_enforced) {
            (true, _) => TaskTlsRequirement::Verified,
            (false, true) => TaskTlsRequirement::Enforced,
            (false, false) => TaskTlsRequirement::Opportunistic,
        }
    }
}
