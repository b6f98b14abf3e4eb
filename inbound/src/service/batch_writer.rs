//! Group commit of received emails: many messages in one commit.
//!
//! Sequence numbers of an account are assigned in the commit, so concurrent commits for one account would conflict.
//! Therefore messages that arrive during a commit wait for the next one. Each waits for two commits at most, however
//! many arrive at once. Between nodes that share a store, the check of the account's sequence row decides.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

use model::event::{Event, EventKind};
use model::id::{AccountId, EventId, ReceivedId};
use model::log_text;
use model::received::{ReceivedEmail, received_event_data};

use queue::services::Services;
use store::engine::{Batch, Body, CommitError};
use store::received_email::{self, ReceivedSequence};
use store::task::PARTITIONS;
use tokio::sync::oneshot;

use super::InboundRejection;

/// Messages in one commit.
const MESSAGES_MAX: usize = 256;
/// Bytes in one commit; a larger message is committed alone.
const BYTES_MAX: usize = 32 << 20;
/// Commits tried when other nodes change the sequence.
const COMMIT_TRIES_MAX: usize = 50;

/// One message as stored for one account.
#[derive(Debug, Clone)]
pub(super) struct InboundRecord {
    pub(super) account: AccountId,
    pub(super) body_id: ReceivedId,
    pub(super) body: Body,
    pub(super) received: Vec<ReceivedEmail>,
}

struct PendingWrite {
    intakes: Vec<InboundRecord>,
    done: oneshot::Sender<Result<(), InboundRejection>>,
}

#[derive(Default)]
struct WriteQueue {
    waiting: VecDeque<PendingWrite>,
    /// True while a task commits.
    has_writer: bool,
}

/// The group-commit writer. Clones share one queue.
#[derive(Clone)]
pub(super) struct BatchWriter {
    services: Services,
    queue: Arc<Mutex<WriteQueue>>,
}

impl BatchWriter {
    pub(super) fn new(services: Services) -> Self {
        Self { services, queue: Arc::default() }
    }

    /// Stores a message for all accounts or none. Returns when it is committed.
    pub(super) async fn write(&self, intakes: Vec<InboundRecord>) -> Result<(), InboundRejection> {
        let (done, result_receiver) = oneshot::channel();
        let serve = {
            let mut queue = self.queue.lock();
            queue.waiting.push_back(PendingWrite { intakes, done });
            !std::mem::replace(&mut queue.has_writer, true)
        };
        if serve {
            // A separate task: the session may be cancelled while others wait for the commit.
            tokio::spawn(WriterGuard(self.clone()).serve());
        }
        result_receiver.await.unwrap_or(Err(InboundRejection::Unavailable))
    }

    /// Takes the next group. An empty group ends the writer.
    fn next_group(&self) -> Vec<PendingWrite> {
        let mut queue = self.queue.lock();
        let (mut bytes, mut group) = (0, Vec::new());
        while let Some(first) = queue.waiting.front() {
            bytes += first.intakes.iter().map(|intake| intake.body.size_bytes()).sum::<usize>();
            if !group.is_empty() && (group.len() == MESSAGES_MAX || bytes > BYTES_MAX) {
                break;
            }
            group.extend(queue.waiting.pop_front());
        }
        queue.has_writer = !group.is_empty();
        group
    }

    async fn commit(&self, group: &[PendingWrite]) -> Result<(), InboundRejection> {
        let intakes = || group.iter().flat_map(|waiting| &waiting.intakes);
        let mut accounts: Vec<AccountId> = intakes().map(|intake| intake.account).collect();
        accounts.sort_unstable();
        accounts.dedup();
        for _ in 0..COMMIT_TRIES_MAX {
            let sequences = received_email::get_sequences(&self.services.store, &accounts).await.map_err(|error| {
                store::error_unless_away!(self.services.store, %error, "cannot accept received mail: reading sequence numbers failed");
                InboundRejection::Unavailable
            })?;
            let (batch, events) = self.batch(intakes(), sequences);
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    intakes().for_each(log_received);
                    events.into_iter().for_each(|event| self.services.recent_events.insert(event, None));
                    self.services.outbox_wakeup.notify_one();
                    return Ok(());
                }
                Err(CommitError::Conflict { key }) if received_email::is_order_conflict(&key) => {}
                Err(CommitError::Full) => return Err(InboundRejection::InsufficientStorage),
                Err(error) => {
                    store::error_unless_away!(self.services.store, %error, "cannot commit received mail");
                    return Err(InboundRejection::Unavailable);
                }
            }
        }
        Err(InboundRejection::Unavailable)
    }

    /// Builds the batch: rows, events and bodies.
    fn batch<'a>(
        &self,
        intakes: impl Iterator<Item = &'a InboundRecord>,
        mut sequences: Vec<ReceivedSequence>,
    ) -> (Batch, Vec<Event>) {
        let (mut batch, mut events) = (Batch::intake(), Vec::new());
        for intake in intakes {
            let Some(sequence) = sequences.iter_mut().find(|sequence| sequence.account() == intake.account) else {
                continue;
            };
            received_email::put_body(&mut batch, intake.account, intake.body_id, intake.body.clone());
            for email in &intake.received {
                let email = ReceivedEmail { sequence: sequence.next_sequence(), ..email.clone() };
                received_email::create(&mut batch, &email);
                events.push(self.record(&mut batch, &email));
            }
        }
        sequences.iter().for_each(|sequence| sequence.put(&mut batch));
        (batch, events)
    }

    fn record(&self, batch: &mut Batch, received: &ReceivedEmail) -> Event {
        let (at, detail) = (received.received_at, received_event_data(received).into());
        let id = EventId::new(at, self.services.entropy.unique_bits());
        let event = Event::new(id, received.account, received.id, EventKind::Received, at, detail);
        let event = Event { recipient: Some(received.rcpt_to.clone()), ..event };
        // Prefer a partition of this node, which dispatches the event at once; any other is dispatched by its owner.
        let [.., last] = received.id.to_bytes();
        let partition = self.services.leases.any().unwrap_or(u16::from(last) % PARTITIONS);
        store::event::record(batch, &event, partition);
        event
    }
}

/// Logs each received email of a message.
fn log_received(intake: &InboundRecord) {
    for received in &intake.received {
        tracing::info!(
            email.id = %received.id,
            account.id = %received.account,
            source = "mx",
            bytes = received.size_bytes,
            recipients = 1,
            domain = received.rcpt_to.domain().as_str(),
            to = log_text::shows_addresses().then(|| tracing::field::display(&received.rcpt_to)),
            "accepted"
        );
    }
}

/// Owner of the writer task; resets the queue if the task panics.
struct WriterGuard(BatchWriter);

impl WriterGuard {
    async fn serve(self) {
        loop {
            let group = self.0.next_group();
            if group.is_empty() {
                return;
            }
            let result = self.0.commit(&group).await;
            for waiting in group {
                // Callers that were cancelled do not receive the result.
                let _ = waiting.done.send(result.clone());
            }
        }
    }
}

impl Drop for WriterGuard {
    /// After a panic, lets the next message start a new writer.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.queue.lock();
            queue.has_writer = false;
            queue.waiting.clear();
        }
    }
}
