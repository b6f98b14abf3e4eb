//! A task: one piece of delivery work, one recipient of one email, due at a time.
//!
//! The task holds all that an attempt needs but the message's bytes, so that the queue reads one
//! row and one body. Tasks lie in queues, one for each (destination domain, class, account); the
//! order of their keys is queue by queue, then due time.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::account::Plan;
use crate::address::{Address, DomainName};
use crate::destination::RouteOverride;
use crate::email::{Category, Priority};
use crate::id::{AccountId, EmailId};
use crate::recipient::{DsnOptions, RecipientKind};

/// In which order ready tasks of one destination go: by class, weighted, so that a password reset
/// never waits behind a million newsletters and newsletters never starve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// Has `expires_in`: worthless soon.
    Expiring = 0,
    /// Transactional.
    Transactional = 1,
    /// Product news.
    Product = 2,
    /// Broadcasts.
    Newsletter = 3,
}

impl TaskClass {
    /// All, in order of weight.
    pub const ALL: [Self; 4] = [Self::Expiring, Self::Transactional, Self::Product, Self::Newsletter];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Expiring => "expiring",
            Self::Transactional => "transactional",
            Self::Product => "product",
            Self::Newsletter => "newsletter",
        }
    }

    /// Back from a storage key's byte.
    #[must_use]
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

/// The queue that a task lies in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName {
    /// The part of the task space that it lies in, which one node owns.
    pub partition: u16,
    /// The destination domain.
    pub domain: DomainName,
    /// The class.
    pub class: TaskClass,
    /// Whose mail it is.
    pub account: AccountId,
}

/// What names a task for ever: the recipient of an email.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// The email.
    pub email: EmailId,
    /// The recipient's place in it.
    pub recipient: u16,
}

/// What a task asks of TLS, beyond what the operator asks of all mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskTlsRequirement {
    /// Nothing.
    Opportunistic = 0,
    /// Never in the clear; any certificate.
    Enforced = 1,
    /// A certificate that holds.
    Verified = 2,
}

/// When its sender wants a message delivered by (RFC 2852).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliverByTime {
    /// Until then.
    pub at: Timestamp,
    /// After it, nobody is to have it any more; else the sender is told that it is late.
    pub returns: bool,
}

/// One recipient of one email, to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What names it.
    pub id: TaskId,
    /// The part of the task space that it lies in: chosen when it is accepted, for good.
    pub partition: u16,
    /// Whose mail it is.
    pub account: AccountId,
    /// Its class.
    pub class: TaskClass,
    /// When it is due.
    pub due: Timestamp,
    /// Where to.
    pub address: Address,
    /// In which header field the recipient stands.
    pub kind: RecipientKind,
    /// The sending domain, whose return path is used; none for mail of the service's own, which
    /// goes out with the null reverse path.
    pub domain: Option<DomainName>,
    /// How often it was tried.
    pub attempts: u32,
    /// How often a destination answered 4yz: tells a soft bounce from a failure when time is up.
    pub replies: u32,
    /// When the email was accepted.
    pub accepted_at: Timestamp,
    /// When delivery is given up.
    pub expires_at: Timestamp,
    /// The client said until when it is worth anything (`expires_in`, BY): it does not go later.
    pub has_deadline: bool,
    /// Size of the message in bytes.
    pub size_bytes: u64,
    /// The message or its envelope needs SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// REQUIRETLS was asked (RFC 8689).
    pub require_tls: bool,
    /// The sending domain's mail never goes in the clear.
    pub tls_enforced: bool,
    /// Neither the host's word nor the domain's about TLS counts (RFC 8689 5): the sender wants it to arrive.
    pub tls_optional: bool,
    /// The message has bytes above 127.
    pub eight_bit: bool,
    /// What the client asked to be told.
    pub notify: DsnOptions,
    /// ENVID, decoded.
    pub envelope_id: Option<String>,
    /// RET=FULL.
    pub return_full: bool,
    /// When it is to be delivered by, as the next host is told.
    pub by: Option<DeliverByTime>,
    /// How pressing its sender finds it, as the next host is told (RFC 6710).
    pub priority: Option<Priority>,
    /// Set by the operator: lies in the queue, is not tried.
    pub held: bool,
    /// Set by the operator: it goes this way, whatever goes for its destination.
    pub way: Option<RouteOverride>,
    /// The plan of the account when it was accepted, by which it leaves from a pool of addresses; none where it was not
    /// kept yet.
    pub plan: Option<Plan>,
}

/// How late the last attempt may begin, which is due when the time is up.
pub const LAST_ATTEMPT_GRACE: Duration = Duration::from_secs(5);
/// How old undelivered mail is when its sender hears of it who asked to (RFC 3461 4.1, NOTIFY=DELAY).
pub const DELAY_REPORT_AFTER: Duration = Duration::from_secs(4 * 3600);

impl Task {
    /// Whether its time is up: it is not tried any more, whatever it waited for.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.checked_add(LAST_ATTEMPT_GRACE).is_ok_and(|last| now > last)
    }

    /// When its sender is to hear that it is late, who asked to and has not heard yet.
    #[must_use]
    pub fn delay_report_at(&self) -> Option<Timestamp> {
        let at = self.accepted_at.checked_add(DELAY_REPORT_AFTER).unwrap_or(Timestamp::MAX);
        Some(at).filter(|at| self.notify.delay && *at < self.expires_at)
    }

    /// The queue that it lies in.
    #[must_use]
    pub fn queue_name(&self) -> QueueName {
        let domain = self.address.domain().clone();
        QueueName { partition: self.partition, domain, class: self.class, account: self.account }
    }

    /// What it asks of TLS.
    #[must_use]
    pub fn tls_requirement(&self) -> TaskTlsRequirement {
        match (self.require_tls, self.tls_enforced) {
            (true, _) => TaskTlsRequirement::Verified,
            (false, true) => TaskTlsRequirement::Enforced,
            (false, false) => TaskTlsRequirement::Opportunistic,
        }
    }
}
