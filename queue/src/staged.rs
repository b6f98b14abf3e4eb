//! An email that is about to be committed: its rows, its tasks, its bytes. Pure.
//!
//! ```text
//! Send     email + recipients + body + tasks    + email.sent
//! Later    email + recipients + body + schedule + email.scheduled
//! Refuse   email + recipients + body            + email.suppressed, or email.failed
//! ```

use bytes::Bytes;
use jiff::Timestamp;
use mail::account::Plan;
use mail::address::{Address, DomainName};
use mail::email::{Email, Ingress};
use mail::event::{Event, EventKind};
use mail::id::EventId;
use mail::log_text;
use mail::moment;
use mail::recipient::{DsnOptions, Recipient, RecipientKind, RecipientState};
use mail::schedule::{Schedule, ScheduleState};
use mail::task::{Task, TaskId};
use serde_json::{Value, json};
use store::engine::{Batch, Body};
use store::schedule::StoredSchedule;

use crate::meter::QuotaReservation;
use crate::quota;

/// Somebody who is to get it.
#[derive(Debug, Clone)]
pub(crate) struct EnvelopeRecipient {
    /// The envelope address.
    pub(crate) address: Address,
    /// In which header field it stands.
    pub(crate) kind: RecipientKind,
    /// What the client asked to be told.
    pub(crate) notify: DsnOptions,
    /// Nothing goes there: it is suppressed, or has opted out.
    pub(crate) suppressed: bool,
}

/// What the transport needs to know of the message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryRequirements {
    /// Needs SMTPUTF8.
    pub(crate) smtputf8: bool,
    /// REQUIRETLS was asked.
    pub(crate) require_tls: bool,
    /// The sending domain's mail never goes in the clear.
    pub(crate) tls_enforced: bool,
    /// Nobody's word about TLS counts (RFC 8689 5).
    pub(crate) tls_optional: bool,
    /// When delivery is given up.
    pub(crate) expires_at: Timestamp,
    /// What the account pays for; none of what the service writes itself.
    pub(crate) plan: Option<Plan>,
}

/// What is to become of it.
#[derive(Debug)]
pub(crate) enum Disposition {
    /// It goes out now.
    Deliver,
    /// It goes out at a time.
    Schedule(Timestamp),
    /// It goes to nobody: the event that says so, and its particulars.
    Reject(EventKind, Value),
}

/// What brings a scheduled email here.
#[derive(Debug)]
pub(crate) struct ScheduledRef {
    /// Its schedule.
    pub(crate) schedule: StoredSchedule,
    /// How many recipients were counted to the plan when it was scheduled.
    pub(crate) counted: usize,
}

/// An email about to be committed.
#[derive(Debug)]
pub(crate) struct PreparedMessage {
    /// What is accepted.
    pub(crate) email: Email,
    /// To whom.
    pub(crate) recipients: Vec<EnvelopeRecipient>,
    /// The message, in pieces.
    pub(crate) chunks: Vec<Bytes>,
    /// What the transport needs to know.
    pub(crate) requirements: DeliveryRequirements,
    /// What is to become of it.
    pub(crate) disposition: Disposition,
    /// The schedule that brought it here, if it was scheduled.
    pub(crate) scheduled: Option<ScheduledRef>,
    /// The emails of the plan that it uses up; none where nothing is counted.
    pub(crate) plan_reservation: Option<QuotaReservation>,
    /// The bytes of the plan's storage that it takes; none where nothing is counted.
    pub(crate) storage_reservation: Option<quota::StorageReservation>,
    /// When all this happens.
    pub(crate) now: Timestamp,
}

/// Where it goes in the task space.
#[derive(Debug)]
pub(crate) struct PartitionAssignment {
    /// Whose owner tells the event, and releases what is scheduled.
    pub(crate) partition: u16,
    /// One for each recipient that it goes to now.
    pub(crate) tasks: Vec<Task>,
}

impl PartitionAssignment {
    /// All partitions that are written to.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = u16> + '_ {
        std::iter::once(self.partition).chain(self.tasks.iter().map(|task| task.partition))
    }
}

impl PreparedMessage {
    /// Logs that it was accepted, or that a scheduled one was released.
    pub(crate) fn log(&self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let (word, scheduled_at) = match (&self.disposition, &self.scheduled) {
            (Disposition::Deliver, None) => ("accepted", None),
            (Disposition::Deliver, Some(_)) => ("released", None),
            (Disposition::Schedule(at), _) => ("scheduled", Some(*at)),
            (Disposition::Reject(..), _) => ("not sent", None),
        };
        let email = &self.email;
        tracing::info!(
            email.id = %email.id,
            account.id = %email.account,
            source = email.door.word(),
            bytes = email.size_bytes,
            recipients = self.recipients.len(),
            from = log_text::shows_addresses().then(|| tracing::field::display(&email.from.address)),
            scheduled_at = scheduled_at.map(tracing::field::display),
            "{word}"
        );
    }

    /// Finds places, each task's in the partition that `choose` says; none when it says of one that there is
    /// none.
    pub(crate) fn assign_partitions(&self, choose: impl Fn(&DomainName) -> Option<u16>) -> Option<PartitionAssignment> {
        let first = self.recipients.first().and_then(|to| choose(to.address.domain()))?;
        let tasks = match self.disposition {
            Disposition::Deliver => self.build_tasks(choose)?,
            Disposition::Schedule(_) | Disposition::Reject(..) => Vec::new(),
        };
        Some(PartitionAssignment { partition: tasks.first().map_or(first, |task| task.partition), tasks })
    }

    fn build_tasks(&self, choose: impl Fn(&DomainName) -> Option<u16>) -> Option<Vec<Task>> {
        let eight_bit = !self.chunks.iter().all(|chunk| chunk.is_ascii());
        let email = &self.email;
        // The time that it is to be delivered in begins when it was to go.
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
                    by: email.deliver_by_time(from),
                    priority: email.priority,
                    held: false,
                    way: None,
                    plan: self.requirements.plan,
                })
            })
            .collect()
    }

    /// Writes everything. Gives back the event, for who tells it.
    pub(crate) fn write_rows(&self, batch: &mut Batch, placed: &PartitionAssignment, event: EventId) -> Event {
        let email = &self.email;
        let recipients: Vec<Recipient> =
            (0..).zip(&self.recipients).map(|(index, to)| self.recipient_row(index, to)).collect();
        let body: Body = self.chunks.iter().cloned().collect();
        store::email::create(batch, email, &recipients, body);
        for task in &placed.tasks {
            store::task::put_new(batch, task);
        }
        let about = (email.account, email.id);
        if let Disposition::Schedule(at) = self.disposition {
            store::schedule::create(batch, about, &self.schedule_row(at, placed.partition));
        }
        if let Some(ScheduledRef { schedule: found, .. }) = &self.scheduled {
            let state = match self.disposition {
                Disposition::Reject(..) => ScheduleState::Failed(self.now),
                _ => ScheduleState::Released(self.now),
            };
            store::schedule::update(batch, about, found, &Schedule { state, ..found.schedule.clone() });
        }
        let event = self.acceptance_event(event);
        store::event::record(batch, &event, placed.partition);
        event
    }

    fn schedule_row(&self, at: Timestamp, partition: u16) -> Schedule {
        let asked = self.recipients.iter().any(|to| !to.notify.is_default());
        Schedule {
            scheduled_at: at,
            state: ScheduleState::Waiting,
            due: at,
            partition,
            smtputf8: self.requirements.smtputf8,
            require_tls: self.requirements.require_tls,
            notify: if asked { self.recipients.iter().map(|to| to.notify.clone()).collect() } else { Vec::new() },
        }
    }

    fn acceptance_event(&self, id: EventId) -> Event {
        let count = self.recipients.iter().filter(|to| !to.suppressed).count();
        let (kind, detail) = match &self.disposition {
            // What the service writes for itself is not counted to the account's plan.
            Disposition::Deliver if self.email.door == Ingress::System && self.plan_reservation.is_none() => {
                (EventKind::Sent, json!({"recipients_count": count, "uncounted": true}))
            }
            Disposition::Deliver => match &self.scheduled {
                None => (EventKind::Sent, json!({"recipients_count": count})),
                // Counted when it was scheduled.
                Some(ScheduledRef { schedule: found, .. }) => {
                    let at = moment::to_rfc3339(found.schedule.scheduled_at);
                    let detail = json!({"recipients_count": count, "uncounted": true, "scheduled_at": at});
                    (EventKind::Sent, detail)
                }
            },
            Disposition::Schedule(at) => {
                (EventKind::Scheduled, json!({"scheduled_at": moment::to_rfc3339(*at), "recipients_count": count}))
            }
            Disposition::Reject(kind, why) => (*kind, why.clone()),
        };
        let mut detail = detail;
        // What was counted when it was scheduled, and goes to nobody now, is given back to the plan.
        if let Some(ScheduledRef { counted, .. }) = &self.scheduled {
            let goes_to = if matches!(self.disposition, Disposition::Reject(..)) { 0 } else { count };
            if *counted > goes_to {
                detail["given_back"] = json!(counted - goes_to);
                detail["accepted_at"] = json!(self.email.created_at);
            }
        }
        let email = &self.email;
        Event {
            id,
            account: email.account,
            subject: email.id.into(),
            kind,
            recipient: None,
            created_at: self.now,
            detail,
        }
    }

    fn recipient_row(&self, index: u16, to: &EnvelopeRecipient) -> Recipient {
        let (state, event) = match &self.disposition {
            _ if to.suppressed => (RecipientState::Suppressed, EventKind::Suppressed),
            Disposition::Deliver => (RecipientState::Queued, EventKind::Sent),
            Disposition::Schedule(_) => (RecipientState::Scheduled, EventKind::Scheduled),
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
