//! Email trace: the history of an email, what each of its recipients waits for, and until when.

use std::fmt;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::attempt::Attempt;
use model::destination::Destination;
use model::event::Event;
use model::id::EmailId;
use model::recipient::{Recipient, RecipientState};
use model::slug::PoolName;
use model::task::Task;
use store::email::EmailWithRecipients;
use store::engine::ReadError;

use super::{QueueAdmin, QueueAdminError};
use crate::scheduler::ready_queue::{ConnectionUsage, ReadyQueueStatus, ThrottleStatus};

/// Largest number of attempts, and of events, listed for one email.
const SHOWN_MAX: usize = 1_000;
/// Largest number of stored tasks counted ahead of another one.
const COUNTED_AHEAD_MAX: usize = 1_000;

/// State of a waiting recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitStatus {
    /// Index of the recipient in the email.
    pub recipient: u16,
    pub cause: WaitCause,
    /// Name of the ready queue (its mail hosts), if the route is known.
    pub destination: Option<String>,
    /// Number of tasks ahead of this one, if known.
    pub position: Option<usize>,
    /// Time of the next attempt or check, if known.
    pub until: Option<Timestamp>,
    /// Last error reply of the destination's hosts to any message, or last connection error.
    pub destination_error: Option<String>,
}

impl WaitStatus {
    /// Time of the next attempt of a recipient whose task is due at `due`. `None` during an attempt, and while the
    /// operator or a suspended account holds it without an end.
    pub fn next_attempt_at(&self, due: Option<Timestamp>) -> Option<Timestamp> {
        let is_unknown = match self.cause {
            WaitCause::Reply => true,
            WaitCause::Held
            | WaitCause::AccountSuspended
            | WaitCause::QueueHeld
            | WaitCause::Paused
            | WaitCause::Suspended { .. } => self.until.is_none(),
            _ => false,
        };
        due.filter(|_| !is_unknown).map(|due| self.until.map_or(due, |until| until.max(due)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitCause {
    /// The customer scheduled the email for later.
    ScheduledAt,
    /// The email is due but may not be sent yet: its domain is no longer verified, or the plan quota is used up.
    NotAllowed,
    /// The operator holds the recipient.
    Held,
    AccountSuspended,
    /// The whole queue is held because its store was restored.
    QueueHeld,
    /// The configuration pauses all delivery.
    Paused,
    /// The operator suspended the destination.
    Suspended {
        destination: Destination,
        /// Reason given by the operator.
        because: Option<String>,
    },
    /// The recipient waits for its next attempt by the retry schedule.
    Schedule {
        /// Number of the next attempt, from 1.
        attempt: u32,
    },
    /// Another node owns the task.
    OtherNode,
    /// The destination is in backoff because of a reply.
    BackingOff {
        /// Description of the backoff: kind, end and reply.
        reason: String,
    },
    /// None of the mail hosts can be reached; they are probed later.
    Unreachable {
        /// Last connection error.
        reason: String,
    },
    /// The destination's limit of messages per second is reached.
    Rate,
    /// The warm-up limit of the source pool for this provider is reached for today.
    WarmUp {
        pool: PoolName,
        /// Messages a day allowed to the provider.
        per_day: u64,
    },
    /// All allowed connections to the destination are busy.
    Connections {
        /// Largest number of connections allowed now.
        max: u32,
        /// Number of connections before the last reduction, and its cause.
        slowed: Option<String>,
    },
    /// The recipient is next for a connection that is free or being opened.
    Turn,
    /// An attempt is in progress.
    Reply,
    /// The MX lookup is in progress.
    LookUp,
    /// No free memory: the task is on disk behind others of its queue.
    Memory,
}

impl WaitCause {
    /// Stable name of the cause for JSON output.
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

    /// All names that a queued recipient's cause can have.
    pub const WORDS: &[&str] = &[
        "scheduled_at",
        "not_allowed",
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
            Self::ScheduledAt => f.write_str("its scheduled send time"),
            Self::NotAllowed => {
                f.write_str("permission to send: the domain is not verified, or the plan quota is used up")
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
            Self::Schedule { attempt } => write!(f, "the next attempt (number {attempt})"),
            Self::OtherNode => f.write_str("another node that owns it: run the trace there"),
            Self::BackingOff { reason } => write!(f, "the destination is {reason}"),
            Self::Unreachable { reason } if reason.is_empty() => {
                f.write_str("the destination is unreachable until the next probe")
            }
            Self::Unreachable { reason } => {
                write!(f, "the destination is unreachable ({reason}) until the next probe")
            }
            Self::Rate => f.write_str("the rate limit of the destination"),
            Self::WarmUp { pool, per_day } => {
                write!(f, "the warm-up of the pool {pool}, which allows {per_day} messages a day to this provider")
            }
            Self::Connections { max, slowed: None } => {
                write!(f, "a free connection: all {max} allowed connections are busy")
            }
            Self::Connections { max, slowed: Some(slowed) } => {
                write!(f, "a free connection: all {max} allowed connections are busy ({slowed})")
            }
            Self::Turn => f.write_str("the next free connection"),
            Self::Reply => f.write_str("the reply: an attempt is in progress"),
            Self::LookUp => f.write_str("the lookup of the mail hosts"),
            Self::Memory => f.write_str("free memory: it is due, and queued on disk behind others"),
        }
    }
}

/// The recorded history of an email and its waiting recipients.
#[derive(Debug, Clone)]
pub struct EmailTrace {
    pub email: EmailWithRecipients,
    /// Events, oldest first.
    pub events: Vec<Event>,
    pub attempts: Vec<Attempt>,
    /// Unfinished recipients and what they wait for.
    pub waits: Vec<WaitStatus>,
}

impl QueueAdmin {
    /// Returns the events, attempts and waiting recipients of an email.
    ///
    /// # Errors
    /// `Unknown` when the email does not exist; the store cannot be read.
    pub fn trace_email(&self, id: EmailId) -> BoxFuture<'_, Result<EmailTrace, QueueAdminError>> {
        Box::pin(async move {
            let email = store::email::find_in_any_account(&self.services.store, id)
                .await?
                .ok_or(QueueAdminError::Unknown(id))?;
            let account = email.email.account;
            let events = store::event::list(&self.services.store, account, id, SHOWN_MAX).await?;
            let attempts = store::attempt::list(&self.services.store, account, id, SHOWN_MAX).await?;
            let waiting = self.explain_waits(&email).await?;
            Ok(EmailTrace { email, events, attempts, waits: waiting })
        })
    }

    /// Returns what the unfinished recipients of an email wait for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn explain_waits(&self, email: &EmailWithRecipients) -> Result<Vec<WaitStatus>, ReadError> {
        if email.recipients.iter().all(|recipient| recipient.state.is_terminal()) {
            return Ok(Vec::new());
        }
        let mut waiting = self.unreleased_waits(email).await?;
        for open in self.queued_recipients(email).await? {
            waiting.push(self.wait_status(open.recipient.index, &open.task).await?);
        }
        Ok(waiting)
    }

    /// Returns the state of scheduled and held recipients, which are not in the queue yet.
    async fn unreleased_waits(&self, email: &EmailWithRecipients) -> Result<Vec<WaitStatus>, ReadError> {
        let retry_wait =
            |recipient: &&Recipient| matches!(recipient.state, RecipientState::Scheduled | RecipientState::Held);
        if !email.recipients.iter().any(|recipient| retry_wait(&recipient)) {
            return Ok(Vec::new());
        }
        let found = store::schedule::get(&self.services.store, (email.email.account, email.email.id)).await?;
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
        Ok(email.recipients.iter().filter(retry_wait).map(waiting).collect())
    }

    async fn wait_status(&self, recipient: u16, task: &Task) -> Result<WaitStatus, ReadError> {
        let now = self.services.clock.now();
        let route = self.queues.routes.last_route(task);
        let destination = route.as_ref().map(|route| route.queue_name.clone());
        let site = route.as_ref().and_then(|route| self.queues.ready_queue_of(task, route));
        let status = site.as_ref().map(|site| site.status(now));
        let (cause, until) = self.wait_cause(task, status.as_ref(), now);
        let position = match cause {
            WaitCause::Rate | WaitCause::WarmUp { .. } | WaitCause::Connections { .. } | WaitCause::Turn => {
                site.and_then(|site| site.position(task))
            }
            WaitCause::Memory => {
                Some(store::task::count_due_before(&self.services.store, task, COUNTED_AHEAD_MAX).await?)
            }
            _ => None,
        };
        let destination_error = self.queues.last_error(task);
        Ok(WaitStatus { recipient, cause, destination, position, until, destination_error })
    }

    fn wait_cause(
        &self,
        task: &Task,
        site: Option<&ReadyQueueStatus>,
        now: Timestamp,
    ) -> (WaitCause, Option<Timestamp>) {
        let next = WaitCause::Schedule { attempt: task.attempts.saturating_add(1) };
        if task.held {
            return (WaitCause::Held, None);
        }
        if self.scheduler.in_flight.is_attempting(task.id) {
            return (WaitCause::Reply, None);
        }
        if self.scheduler.holds.is_account_held(task.account) {
            return (WaitCause::AccountSuspended, None);
        }
        if self.scheduler.holds.is_queue_held() {
            return (WaitCause::QueueHeld, None);
        }
        if self.pause.is_paused() {
            return (WaitCause::Paused, None);
        }
        if !self.services.leases.is_active(task.partition) {
            return if task.due > now { (next, Some(task.due)) } else { (WaitCause::OtherNode, None) };
        }
        let route = self.queues.routes.last_route(task);
        if let Some((destination, suspension)) = self.queues.routes.suspension(task, route.as_deref()) {
            return (WaitCause::Suspended { destination, because: suspension.because }, suspension.until);
        }
        if let Some((error, until)) = site.and_then(|site| site.throttle.backoff_description(now)) {
            return (WaitCause::BackingOff { reason: error }, Some(until.max(task.due)));
        }
        if let Some(site) = site
            && let Some(until) = site.throttle.dead_until.filter(|until| *until > now)
        {
            let error = site.throttle.last_error.clone().unwrap_or_default();
            return (WaitCause::Unreachable { reason: error }, Some(until.max(task.due)));
        }
        match (self.scheduler.in_flight.contains(task.id), site) {
            (false, _) if task.due > now => (next, Some(task.due)),
            (
                _,
                Some(ReadyQueueStatus {
                    throttle: ThrottleStatus { warm_up: Some((until, per_day)), .. }, pool, ..
                }),
            ) => (WaitCause::WarmUp { pool: pool.clone(), per_day: *per_day }, Some(*until)),
            (false, _) => (WaitCause::Memory, None),
            (true, _) if self.dispatcher.awaits_lookup(task) => (WaitCause::LookUp, None),
            (true, None) => (WaitCause::LookUp, None),
            (true, Some(site)) if site.throttle.rate_until.is_some() => (WaitCause::Rate, site.throttle.rate_until),
            (true, Some(ReadyQueueStatus { connections: ConnectionUsage { provider_busy: Some(max), .. }, .. })) => {
                (WaitCause::Connections { max: *max, slowed: None }, None)
            }
            // Fewer than three dials failed in a row, and another one is in progress.
            (true, Some(site)) if site.throttle.is_unreachable => {
                let error = site.throttle.last_error.clone().unwrap_or_default();
                (WaitCause::Unreachable { reason: error }, None)
            }
            (true, Some(site)) if site.connections.is_at_limit() => {
                (WaitCause::Connections { max: site.connections.max, slowed: site.connections.slowed() }, None)
            }
            (true, Some(_)) => (WaitCause::Turn, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_recipient_has_no_next_attempt_and_a_suspended_one_waits_for_the_end() {
        let at = |second| Timestamp::from_second(second).ok();
        let next = |cause, until| {
            let wait =
                WaitStatus { recipient: 0, cause, destination: None, position: None, until, destination_error: None };
            wait.next_attempt_at(at(10))
        };
        let suspended = || WaitCause::Suspended {
            destination: Destination::Domain("dest.example".parse().unwrap()),
            because: None,
        };
        let backing_off = || WaitCause::BackingOff { reason: String::new() };
        for held in [WaitCause::Held, WaitCause::AccountSuspended, WaitCause::QueueHeld, WaitCause::Paused, suspended()]
        {
            assert_eq!(next(held.clone(), None), None, "{held:?}");
        }
        assert_eq!(next(WaitCause::Reply, None), None, "its attempt is in progress");
        assert_eq!((next(suspended(), at(3_600)), next(suspended(), at(5))), (at(3_600), at(10)));
        assert_eq!((next(backing_off(), at(60)), next(WaitCause::Turn, None)), (at(60), at(10)));
    }
}
