//! Prepared message: an email ready to be committed, with its rows, tasks and bytes. Pure.
//!
//! ```text
//! Deliver    email + recipients + body + tasks    + email.sent
//! Schedule   email + recipients + body + schedule + email.scheduled
//! Reject     email + recipients + body            + email.suppressed, or email.failed
//! ```

use bytes::Bytes;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::account::Plan;
use model::draft::OnSuppressed;
use model::email::{Email, Ingress};
use model::event::{Event, EventKind};
use model::id::EventId;
use model::recipient::{DsnOptions, Recipient, RecipientKind, RecipientState};
use model::schedule::{Schedule, ScheduleState};
use model::task::{Task, TaskId};
use model::{log_text, timestamp};
use serde_json::{Value, json};
use store::engine::{Batch, Body};
use store::schedule::StoredSchedule;

use crate::intake::quota_tracker::QuotaReservation;
use crate::intake::storage_quota;

/// A recipient of the envelope.
#[derive(Debug, Clone)]
pub(crate) struct EnvelopeRecipient {
    pub(crate) address: Address,
    /// Header field that names the recipient.
    pub(crate) kind: RecipientKind,
    /// DSN options requested by the client.
    pub(crate) notify: DsnOptions,
    /// Suppressed or opted out: no task is created.
    pub(crate) suppressed: bool,
}

/// Requirements of the message for its delivery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryRequirements {
    /// SMTPUTF8 is required (RFC 6531).
    pub(crate) smtputf8: bool,
    /// REQUIRETLS was requested (RFC 8689).
    pub(crate) require_tls: bool,
    /// The sending domain requires TLS.
    pub(crate) tls_enforced: bool,
    /// `TLS-Required: No`: all TLS policies are ignored (RFC 8689 5).
    pub(crate) tls_optional: bool,
    /// Time at which delivery is given up.
    pub(crate) expires_at: Timestamp,
    /// Plan of the account; `None` for system mail.
    pub(crate) plan: Option<Plan>,
}

#[derive(Debug)]
pub(crate) enum Disposition {
    /// Deliver now.
    Deliver,
    /// Deliver at this time, unless recipients are suppressed by then.
    Schedule(Timestamp, OnSuppressed),
    /// Do not deliver; record this event with these data.
    Reject(EventKind, Value),
}

/// Origin of a released scheduled email.
#[derive(Debug)]
pub(crate) struct ScheduledRef {
    /// Its stored schedule.
    pub(crate) schedule: StoredSchedule,
    /// Recipients counted to the plan when the email was scheduled.
    pub(crate) counted: usize,
}

/// An email about to be committed.
#[derive(Debug)]
pub(crate) struct PreparedMessage {
    pub(crate) email: Email,
    pub(crate) recipients: Vec<EnvelopeRecipient>,
    /// Message bytes, in chunks.
    pub(crate) chunks: Vec<Bytes>,
    /// The bytes to store in place of the chunks, for an email with a secret link.
    pub(crate) sealed_body: Option<Bytes>,
    pub(crate) requirements: DeliveryRequirements,
    pub(crate) disposition: Disposition,
    /// Schedule that released the email, if it was scheduled.
    pub(crate) scheduled: Option<ScheduledRef>,
    /// Plan quota reserved for it; `None` if it is not counted.
    pub(crate) plan_reservation: Option<QuotaReservation>,
    /// Storage quota reserved for it; `None` if it is not counted.
    pub(crate) storage_reservation: Option<storage_quota::StorageReservation>,
    /// Time of acceptance or release.
    pub(crate) now: Timestamp,
}

/// Partitions assigned to a message.
#[derive(Debug)]
pub(crate) struct PartitionAssignment {
    /// Partition of the event and, for a scheduled email, of its release.
    pub(crate) partition: u16,
    /// One task per recipient to deliver to now.
    pub(crate) tasks: Vec<Task>,
}

impl PartitionAssignment {
    /// Iterates over all partitions that the commit writes to.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = u16> + '_ {
        std::iter::once(self.partition).chain(self.tasks.iter().map(|task| task.partition))
    }
}

impl PreparedMessage {
    /// Logs the acceptance, or the release of a scheduled email.
    pub(crate) fn log(&self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let (word, scheduled_at) = match (&self.disposition, &self.scheduled) {
            (Disposition::Deliver, None) => ("accepted", None),
            (Disposition::Deliver, Some(_)) => ("released", None),
            (Disposition::Schedule(at, _), _) => ("scheduled", Some(*at)),
            (Disposition::Reject(..), _) => ("not sent", None),
        };
        let email = &self.email;
        tracing::info!(
            email.id = %email.id,
            account.id = %email.account,
            source = email.ingress.word(),
            bytes = email.size_bytes,
            recipients = self.recipients.len(),
            from = log_text::shows_addresses().then(|| tracing::field::display(&email.from.address)),
            scheduled_at = scheduled_at.map(tracing::field::display),
            "{word}"
        );
    }

    /// Assigns each task to the partition that `choose` returns for its domain. `None` if `choose` has none for one of
    /// them.
    pub(crate) fn assign_partitions(&self, choose: impl Fn(&DomainName) -> Option<u16>) -> Option<PartitionAssignment> {
        let first = self.recipients.first().and_then(|to| choose(to.address.domain()))?;
        let tasks = match self.disposition {
            Disposition::Deliver => self.build_tasks(choose)?,
            Disposition::Schedule(..) | Disposition::Reject(..) => Vec::new(),
        };
        Some(PartitionAssignment { partition: tasks.first().map_or(first, |task| task.partition), tasks })
    }

    fn build_tasks(&self, choose: impl Fn(&DomainName) -> Option<u16>) -> Option<Vec<Task>> {
        let eight_bit = !self.chunks.iter().all(|chunk| chunk.is_ascii());
        let email = &self.email;
        // For a scheduled email the deliver-by time starts at its scheduled time.
        let from = self.scheduled.as_ref().map_or(self.now, |due| due.schedule.schedule.scheduled_at);
        (0..)
            .zip(&self.recipients)
            .filter(|(_, addressee)| !addressee.suppressed)
            .map(|(index, addressee)| {
                let partition = choose(addressee.address.domain())?;
                Some(Task {
                    id: TaskId { email: email.id, recipient: index },
                    partition,
                    account: email.account,
                    class: email.class(),
                    due: self.now,
                    address: addressee.address.clone(),
                    kind: addressee.kind,
                    domain: email.domain.clone(),
                    attempts: 0,
                    replies: 0,
                    accepted_at: self.now,
                    expires_at: self.requirements.expires_at,
                    has_deadline: email.expires_in.is_some(),
                    size_bytes: email.size_bytes,
                    smtputf8: self.requirements.smtputf8,
                    require_tls: self.requirements.require_tls,
                    tls_enforced: self.requirements.tls_enforced,
                    tls_optional: self.requirements.tls_optional,
                    eight_bit,
                    notify: addressee.notify.clone(),
                    envelope_id: email.envelope_id.clone(),
                    return_full: email.return_full,
                    deliver_by: email.deliver_by_time(from),
                    priority: email.priority,
                    held: false,
                    route: None,
                    plan: self.requirements.plan,
                })
            })
            .collect()
    }

    /// Adds all rows to the batch. Returns the event, for the cache of recent events.
    pub(crate) fn write_rows(&self, batch: &mut Batch, placed: &PartitionAssignment, event: EventId) -> Event {
        let email = &self.email;
        let recipients: Vec<Recipient> =
            (0..).zip(&self.recipients).map(|(index, to)| self.recipient_row(index, to)).collect();
        let body: Body = match &self.sealed_body {
            Some(sealed) => sealed.clone().into(),
            None => self.chunks.iter().cloned().collect(),
        };
        store::email::create(batch, email, &recipients, body);
        for task in &placed.tasks {
            store::task::put_new(batch, task);
        }
        let key = (email.account, email.id);
        if let Disposition::Schedule(at, on_suppressed) = self.disposition {
            store::schedule::create(batch, key, &self.schedule_row(at, on_suppressed, placed.partition));
        }
        if let Some(ScheduledRef { schedule: found, .. }) = &self.scheduled {
            let state = match self.disposition {
                Disposition::Reject(..) => ScheduleState::Failed(self.now),
                _ => ScheduleState::Released(self.now),
            };
            store::schedule::update(batch, key, found, &Schedule { state, ..found.schedule.clone() });
        }
        let event = self.acceptance_event(event);
        store::event::record(batch, &event, placed.partition);
        event
    }

    fn schedule_row(&self, at: Timestamp, on_suppressed: OnSuppressed, partition: u16) -> Schedule {
        let has_notify = self.recipients.iter().any(|to| !to.notify.is_default());
        Schedule {
            scheduled_at: at,
            state: ScheduleState::Waiting,
            due: at,
            partition,
            smtputf8: self.requirements.smtputf8,
            require_tls: self.requirements.require_tls,
            fails_suppressed: on_suppressed == OnSuppressed::Fail,
            notify: if has_notify { self.recipients.iter().map(|to| to.notify.clone()).collect() } else { Vec::new() },
        }
    }

    fn acceptance_event(&self, id: EventId) -> Event {
        let count = self.recipients.iter().filter(|to| !to.suppressed).count();
        let (kind, detail) = match &self.disposition {
            // System mail that is not the account's is not counted to its plan.
            Disposition::Deliver if self.email.ingress == Ingress::System && self.plan_reservation.is_none() => {
                (EventKind::Sent, json!({"recipients_count": count, "uncounted": true}))
            }
            Disposition::Deliver => match &self.scheduled {
                None => (EventKind::Sent, json!({"recipients_count": count})),
                // Counted when it was scheduled.
                Some(ScheduledRef { schedule: found, .. }) => {
                    let at = timestamp::to_rfc3339(found.schedule.scheduled_at);
                    let detail = json!({"recipients_count": count, "uncounted": true, "scheduled_at": at});
                    (EventKind::Sent, detail)
                }
            },
            Disposition::Schedule(at, _) => {
                (EventKind::Scheduled, json!({"scheduled_at": timestamp::to_rfc3339(*at), "recipients_count": count}))
            }
            Disposition::Reject(kind, detail) => (*kind, detail.clone()),
        };
        let mut detail = detail;
        // Recipients counted when the email was scheduled but not sent to now are refunded.
        if let Some(ScheduledRef { counted, .. }) = &self.scheduled {
            let delivery_count = if matches!(self.disposition, Disposition::Reject(..)) { 0 } else { count };
            if *counted > delivery_count {
                detail["given_back"] = json!(counted - delivery_count);
                detail["accepted_at"] = json!(self.email.created_at);
            }
        }
        let email = &self.email;
        Event::new(id, email.account, email.id, kind, self.now, detail)
    }

    fn recipient_row(&self, index: u16, to: &EnvelopeRecipient) -> Recipient {
        let (state, event) = match &self.disposition {
            _ if to.suppressed => (RecipientState::Suppressed, EventKind::Suppressed),
            Disposition::Deliver => (RecipientState::Queued, EventKind::Sent),
            Disposition::Schedule(..) => (RecipientState::Scheduled, EventKind::Scheduled),
            Disposition::Reject(kind, _) => (RecipientState::Failed, *kind),
        };
        Recipient {
            index,
            address: to.address.clone(),
            kind: to.kind,
            state,
            attempts: 0,
            last_response: None,
            error: None,
            mx_host: None,
            last_event: (event, self.now),
            delivered_at: None,
            bounced_at: None,
            complained_at: None,
            next_attempt_at: (state == RecipientState::Queued).then_some(self.now),
            notify: to.notify.clone(),
        }
    }
}
