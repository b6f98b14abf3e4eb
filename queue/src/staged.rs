//! An email that is about to be committed: its rows, its tasks, its bytes. Pure.

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::{Address, Name};
use mail::email::Email;
use mail::event::{Event, EventKind};
use mail::id::EventId;
use mail::recipient::{Notify, Recipient, RecipientKind, RecipientState};
use mail::task::{Class, Task, TaskId};
use serde_json::json;
use store::engine::{Batch, Body};

/// Somebody who is to get it.
#[derive(Debug, Clone)]
pub(crate) struct Addressee {
    /// The envelope address.
    pub(crate) address: Address,
    /// In which header field it stands.
    pub(crate) kind: RecipientKind,
    /// What the client asked to be told.
    pub(crate) notify: Notify,
}

/// What the transport needs to know of the message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transport {
    /// Needs SMTPUTF8.
    pub(crate) smtputf8: bool,
    /// REQUIRETLS was asked.
    pub(crate) require_tls: bool,
    /// When delivery is given up.
    pub(crate) expires_at: Timestamp,
}

/// An email about to be committed.
#[derive(Debug)]
pub(crate) struct Staged {
    /// What is accepted.
    pub(crate) email: Email,
    /// To whom.
    pub(crate) addressees: Vec<Addressee>,
    /// The message, in pieces.
    pub(crate) chunks: Vec<Bytes>,
    /// What the transport needs to know.
    pub(crate) transport: Transport,
}

impl Staged {
    /// One task for each recipient, due at once, each in the partition that `choose` says; none when it says
    /// of one that there is none.
    pub(crate) fn tasks(&self, choose: impl Fn(&Name) -> Option<u16>) -> Option<Vec<Task>> {
        let eight_bit = !self.chunks.iter().all(|chunk| chunk.is_ascii());
        let email = &self.email;
        (0..)
            .zip(&self.addressees)
            .map(|(index, addressee)| {
                let partition = choose(addressee.address.domain())?;
                Some(Task {
                    id: TaskId { email: email.id, recipient: index },
                    partition,
                    account: email.account,
                    class: Class::from(email.category),
                    due: email.created_at,
                    address: addressee.address.clone(),
                    kind: addressee.kind,
                    domain: email.domain.clone(),
                    attempts: 0,
                    replies: 0,
                    accepted_at: email.created_at,
                    expires_at: self.transport.expires_at,
                    size_bytes: email.size_bytes,
                    smtputf8: self.transport.smtputf8,
                    require_tls: self.transport.require_tls,
                    eight_bit,
                    notify: addressee.notify.clone(),
                    envelope_id: email.envelope_id.clone(),
                    return_full: email.return_full,
                    held: false,
                })
            })
            .collect()
    }

    /// Writes everything: email, recipients, tasks, the event that it was accepted, the body.
    pub(crate) fn write(&self, batch: &mut Batch, tasks: &[Task], event: EventId) {
        let email = &self.email;
        let recipients: Vec<Recipient> = tasks.iter().map(|task| queued(task, email.created_at)).collect();
        let body: Body = self.chunks.iter().cloned().collect();
        store::email::create(batch, email, &recipients, body);
        for task in tasks {
            store::task::put(batch, task);
        }
        let event = Event {
            id: event,
            account: email.account,
            email: email.id,
            kind: EventKind::Sent,
            recipient: None,
            created_at: email.created_at,
            detail: json!({"recipients_count": tasks.len()}),
        };
        store::event::record(batch, &event);
    }
}

fn queued(task: &Task, now: Timestamp) -> Recipient {
    Recipient {
        index: task.id.recipient,
        address: task.address.clone(),
        kind: task.kind,
        state: RecipientState::Queued,
        attempts: 0,
        last_response: None,
        mx_host: None,
        last_event: (EventKind::Sent, now),
        delivered_at: None,
        bounced_at: None,
        next_attempt_at: Some(task.due),
    }
}
