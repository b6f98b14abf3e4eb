//! Explaining: what happened to an email, what each of its recipients waits for now, and when it goes on.

use std::fmt;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::attempt::Attempt;
use mail::destination::Destination;
use mail::event::Event;
use mail::given_name::PoolName;
use mail::id::EmailId;
use mail::recipient::{Recipient, RecipientState};
use mail::task::Task;
use store::email::EmailWithRecipients;
use store::engine::ReadError;

use super::QueueAdminError;
use crate::accept::Intake;
use crate::site::SiteStanding;
use crate::worker::Worker;

/// Attempts and events shown of one email.
const SHOWN_MAX: usize = 1_000;
/// Tasks counted that lie before another one on disk.
const COUNTED_AHEAD_MAX: usize = 1_000;

/// What a recipient waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitStatus {
    /// The recipient's place in the email.
    pub recipient: u16,
    /// Which limit, or which schedule.
    pub cause: WaitCause,
    /// The mail hosts that its mail goes to, as far as they are known.
    pub destination: Option<String>,
    /// How many go before it there; as far as is known.
    pub position: Option<usize>,
    /// When it goes on, or is looked at again, as far as is known.
    pub until: Option<Timestamp>,
    /// The last refusal of the destination's hosts, of whatever message, or error on the way to them.
    pub destination_error: Option<String>,
}

/// Why a recipient waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitCause {
    /// It is to be sent later, as the customer asked.
    ScheduledAt,
    /// It is due, and may not be sent yet: its domain is not verified any more, or the plan is used up.
    NotAllowed,
    /// The operator holds it.
    Held,
    /// Its account is suspended.
    AccountSuspended,
    /// The whole queue is held: its store was restored.
    QueueHeld,
    /// The configuration pauses all delivery.
    Paused,
    /// The operator has suspended its destination.
    Suspended {
        /// What was suspended.
        destination: Destination,
        /// Why, in the operator's words.
        because: Option<String>,
    },
    /// It was tried, and is tried again.
    Schedule {
        /// The number of the next attempt, from 1 on.
        attempt: u32,
    },
    /// Another node has it.
    OtherNode,
    /// The mail hosts asked to be left alone.
    BackingOff {
        /// How, until when and in which words.
        why: String,
    },
    /// None of the mail hosts can be reached: they are probed then.
    Unreachable {
        /// The last error.
        why: String,
    },
    /// So many messages a second are sent there, and no more.
    Rate,
    /// The addresses that it leaves from are warmed up, and send the provider no more now.
    WarmUp {
        /// The pool of these addresses.
        pool: PoolName,
        /// How many messages they send the provider today.
        per_day: u64,
    },
    /// So many connections are open there, and no more may be.
    Connections {
        /// At most.
        max: u32,
        /// From how many connections it was slowed, and what for.
        slowed: Option<String>,
    },
    /// A connection that is about to be opened, or free.
    Turn,
    /// The host's reply: it is being tried.
    Reply,
    /// The look-up of the mail hosts.
    LookUp,
    /// Room in memory: it lies on disk behind others of its queue.
    Memory,
}

impl WaitCause {
    /// The word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::ScheduledAt => "scheduled_at",
            Self::NotAllowed => "not_allowed",
            Self::Held => "held",
            Self::AccountSuspended => "account_suspended",
            Self::QueueHeld => "queue_held",
            Self::Paused => "paused",
            Self::Suspended { .. } => "suspended",
            Self::Schedule { .. } => "schedule",
            Self::OtherNode => "other_node",
            Self::BackingOff { .. } => "resting",
            Self::Unreachable { .. } => "unreachable",
            Self::Rate => "rate",
            Self::WarmUp { .. } => "warm_up",
            Self::Connections { .. } => "connections",
            Self::Turn => "turn",
            Self::Reply => "reply",
            Self::LookUp => "look_up",
            Self::Memory => "memory",
        }
    }

    /// The words for them all.
    pub const WORDS: &[&str] = &[
        "held",
        "account_suspended",
        "queue_held",
        "paused",
        "suspended",
        "schedule",
        "other_node",
        "resting",
        "unreachable",
        "rate",
        "warm_up",
        "connections",
        "turn",
        "reply",
        "look_up",
        "memory",
    ];
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScheduledAt => f.write_str("the time that it is to be sent at"),
            Self::NotAllowed => {
                f.write_str("a verified domain, or room in the plan: it is due, and may not be sent yet")
            }
            Self::Held => f.write_str("held by the operator until it is released"),
            Self::AccountSuspended => f.write_str("account suspended: it waits until the suspension is lifted"),
            Self::QueueHeld => f.write_str("the queue is held after a restore until the operator releases it"),
            Self::Paused => f.write_str("delivery is paused by the configuration"),
            Self::Suspended { destination, because: None } => {
                write!(f, "the operator has suspended {destination}")
            }
            Self::Suspended { destination, because: Some(because) } => {
                write!(f, "the operator has suspended {destination}: {because}")
            }
            Self::Schedule { attempt } => write!(f, "its next attempt (number {attempt})"),
            Self::OtherNode => f.write_str("its turn at another node: ask there what for"),
            Self::BackingOff { why } => write!(f, "the destination is {why}"),
            Self::Unreachable { why } if why.is_empty() => {
                f.write_str("the mail hosts cannot be reached, and are probed next then")
            }
            Self::Unreachable { why } => {
                write!(f, "the mail hosts cannot be reached, and are probed next then; the last error: {why}")
            }
            Self::Rate => f.write_str("the rate at which mail is sent there"),
            Self::WarmUp { pool, per_day } => {
                write!(f, "the warm-up of the pool {pool}, which sends {per_day} messages a day to this provider")
            }
            Self::Connections { max, slowed: None } => {
                write!(f, "a free connection: the {max} that may be open there are busy")
            }
            Self::Connections { max, slowed: Some(slowed) } => {
                write!(f, "a free connection: the {max} that may be open there are busy ({slowed})")
            }
            Self::Turn => f.write_str("its turn at the next connection"),
            Self::Reply => f.write_str("the reply: it is being tried this moment"),
            Self::LookUp => f.write_str("the look-up of the mail hosts"),
            Self::Memory => f.write_str("room in memory: it is due, and lies on disk behind others of its queue"),
        }
    }
}

/// Everything known about an email.
#[derive(Debug, Clone)]
pub struct EmailTrace {
    /// The email and its recipients.
    pub email: EmailWithRecipients,
    /// What happened, oldest first.
    pub events: Vec<Event>,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// What the recipients that are not finished wait for.
    pub waits: Vec<WaitStatus>,
}

impl Worker {
    /// Explains an email: what happened, what it waits for, when it goes next.
    ///
    /// # Errors
    /// [`OperateError`].
    pub fn trace_email(&self, id: EmailId) -> BoxFuture<'_, Result<EmailTrace, QueueAdminError>> {
        Box::pin(async move {
            let email =
                store::email::find_in_any_account(&self.store, id).await?.ok_or(QueueAdminError::Unknown(id))?;
            let account = email.email.account;
            let events = store::event::list(&self.store, account, id, SHOWN_MAX).await?;
            let attempts = store::attempt::list(&self.store, account, id, SHOWN_MAX).await?;
            let waiting = self.explain_waits(&email).await?;
            Ok(EmailTrace { email, events, attempts, waits: waiting })
        })
    }

    /// What the recipients of an email that are not finished wait for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn explain_waits(&self, email: &EmailWithRecipients) -> Result<Vec<WaitStatus>, ReadError> {
        let mut waiting = self.unreleased_waits(email).await?;
        for open in self.queued_recipients(email).await? {
            waiting.push(self.wait_status(open.recipient.index, &open.task).await?);
        }
        Ok(waiting)
    }

    /// Recipients that are not in the queue yet.
    async fn unreleased_waits(&self, email: &EmailWithRecipients) -> Result<Vec<WaitStatus>, ReadError> {
        let later =
            |recipient: &&Recipient| matches!(recipient.state, RecipientState::Scheduled | RecipientState::Held);
        if !email.recipients.iter().any(|recipient| later(&recipient)) {
            return Ok(Vec::new());
        }
        let found = store::schedule::get(&self.store, (email.email.account, email.email.id)).await?;
        let until = found.map(|found| found.schedule.due);
        let waiting = |recipient: &Recipient| WaitStatus {
            recipient: recipient.index,
            cause: match recipient.state {
                RecipientState::Scheduled => WaitCause::ScheduledAt,
                _ => WaitCause::NotAllowed,
            },
            destination: None,
            position: None,
            until,
            destination_error: None,
        };
        Ok(email.recipients.iter().filter(later).map(waiting).collect())
    }

    async fn wait_status(&self, recipient: u16, task: &Task) -> Result<WaitStatus, ReadError> {
        let now = self.clock.now();
        let route = self.last_route(task);
        let destination = route.as_ref().map(|route| route.queue_name.clone());
        let site = route.as_ref().and_then(|route| self.ready_queue_of(task, route));
        let standing = site.as_ref().map(|site| site.status(now));
        let (cause, until) = self.wait_cause(task, standing.as_ref(), now);
        let place = match cause {
            WaitCause::Rate | WaitCause::WarmUp { .. } | WaitCause::Connections { .. } | WaitCause::Turn => {
                site.and_then(|site| site.position(task))
            }
            WaitCause::Memory => Some(store::task::count_due_before(&self.store, task, COUNTED_AHEAD_MAX).await?),
            _ => None,
        };
        let destination_error = self.last_error(task);
        Ok(WaitStatus { recipient, cause, destination, position: place, until, destination_error })
    }

    fn wait_cause(&self, task: &Task, site: Option<&SiteStanding>, now: Timestamp) -> (WaitCause, Option<Timestamp>) {
        let next = WaitCause::Schedule { attempt: task.attempts.saturating_add(1) };
        if task.held {
            return (WaitCause::Held, None);
        }
        if self.in_flight.is_attempting(task.id) {
            return (WaitCause::Reply, None);
        }
        if self.holds.is_account_held(task.account) {
            return (WaitCause::AccountSuspended, None);
        }
        if self.holds.is_queue_held() {
            return (WaitCause::QueueHeld, None);
        }
        if self.is_paused() {
            return (WaitCause::Paused, None);
        }
        if !self.leases.is_active(task.partition) {
            return if task.due > now { (next, Some(task.due)) } else { (WaitCause::OtherNode, None) };
        }
        let route = self.last_route(task);
        if let Some((destination, suspension)) = self.suspension(task, route.as_deref()) {
            return (WaitCause::Suspended { destination, because: suspension.because }, suspension.until);
        }
        if let Some((why, until)) = site.and_then(|site| site.rests(now)) {
            return (WaitCause::BackingOff { why }, Some(until.max(task.due)));
        }
        if let Some(site) = site
            && let Some(until) = site.dead_until.filter(|until| *until > now)
        {
            let why = site.last_error.clone().unwrap_or_default();
            return (WaitCause::Unreachable { why }, Some(until.max(task.due)));
        }
        match (self.in_flight.contains(task.id), site) {
            (false, _) if task.due > now => (next, Some(task.due)),
            (_, Some(SiteStanding { warm_up: Some((until, per_day)), pool, .. })) => {
                (WaitCause::WarmUp { pool: pool.clone(), per_day: *per_day }, Some(*until))
            }
            (false, _) => (WaitCause::Memory, None),
            (true, _) if self.awaits_lookup(task) => (WaitCause::LookUp, None),
            (true, None) => (WaitCause::LookUp, None),
            (true, Some(site)) if site.rate_until.is_some() => (WaitCause::Rate, site.rate_until),
            (true, Some(SiteStanding { provider_busy: Some(max), .. })) => {
                (WaitCause::Connections { max: *max, slowed: None }, None)
            }
            // Fewer than three connections in a row could not be opened, and another one is tried now.
            (true, Some(site)) if site.is_unreachable => {
                let why = site.last_error.clone().unwrap_or_default();
                (WaitCause::Unreachable { why }, None)
            }
            (true, Some(site)) if site.connections >= site.connections_max => {
                let slowed = site.slowed();
                (WaitCause::Connections { max: site.connections_max, slowed }, None)
            }
            (true, Some(_)) => (WaitCause::Turn, None),
        }
    }
}

impl Intake {
    /// What the recipients of an email that are not finished wait for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn explain_waits(&self, email: &EmailWithRecipients) -> Result<Vec<WaitStatus>, ReadError> {
        if email.recipients.iter().all(|recipient| recipient.state.is_terminal()) {
            return Ok(Vec::new());
        }
        self.worker.explain_waits(email).await
    }
}
