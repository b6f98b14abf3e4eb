//! The line: received emails on their way to disk, many in one commit.
//!
//! Places in an account's order are given out in the commit, so that of two commits for one account one
//! would have to read again. So all that comes in while a commit is under way waits, and goes with the
//! next: each waits for two commits at most, however many come at once. Between nodes that share a store
//! the check of the account's head decides.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::event::{Event, EventKind};
use mail::id::{AccountId, EventId, ReceivedId};
use mail::log_text;
use mail::received::{ReceivedEmail, received_event_data};

use store::engine::{Batch, Body, CommitError};
use store::received::{self, ReceivedSequence};
use store::task::PARTITIONS;
use tokio::sync::oneshot;

use super::InboundRejection;
use crate::worker::Worker;

/// Messages of one commit.
const MESSAGES_MAX: usize = 256;
/// Bytes of them, but for the first.
const BYTES_MAX: usize = 32 << 20;
/// How often other nodes may be quicker.
const COMMIT_TRIES_MAX: usize = 50;

/// What is to be kept of one message for one account.
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
    /// Somebody commits.
    has_writer: bool,
}

/// The line. Clones are the same one.
#[derive(Clone)]
pub(super) struct BatchWriter {
    worker: Arc<Worker>,
    queue: Arc<Mutex<WriteQueue>>,
}

impl BatchWriter {
    pub(super) fn new(worker: Arc<Worker>) -> Self {
        Self { worker, queue: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a message, for all of these or for none: returns when it is on disk.
    pub(super) async fn write(&self, intakes: Vec<InboundRecord>) -> Result<(), InboundRejection> {
        let (done, told) = oneshot::channel();
        let serve = {
            let mut queue = self.lock();
            queue.waiting.push_back(PendingWrite { intakes, done });
            !std::mem::replace(&mut queue.has_writer, true)
        };
        if serve {
            // Not in the session's own task: it may be cut off, and others wait.
            tokio::spawn(WriterGuard(self.clone()).serve());
        }
        told.await.unwrap_or(Err(InboundRejection::Unavailable))
    }

    /// The next that go together; none when nobody waits, and then nobody serves.
    fn next_group(&self) -> Vec<PendingWrite> {
        let mut queue = self.lock();
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
            let heads = received::get_sequences(&self.worker.store, &accounts).await.map_err(|error| {
                store::error_unless_away!(self.worker.store, %error, "received mail cannot be taken");
                InboundRejection::Unavailable
            })?;
            let (batch, events) = self.batch(intakes(), heads);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    intakes().for_each(log_received);
                    events.into_iter().for_each(|event| self.worker.recent_events.insert(event, None));
                    self.worker.outbox_wakeup.notify_one();
                    return Ok(());
                }
                Err(CommitError::Conflict { key }) if received::is_order_conflict(&key) => {}
                Err(CommitError::Full) => return Err(InboundRejection::InsufficientStorage),
                Err(error) => {
                    store::error_unless_away!(self.worker.store, %error, "received mail cannot be kept");
                    return Err(InboundRejection::Unavailable);
                }
            }
        }
        Err(InboundRejection::Unavailable)
    }

    /// Rows, events and bodies of all.
    fn batch<'a>(
        &self,
        intakes: impl Iterator<Item = &'a InboundRecord>,
        mut heads: Vec<ReceivedSequence>,
    ) -> (Batch, Vec<Event>) {
        let (mut batch, mut events) = (Batch::intake(), Vec::new());
        for intake in intakes {
            let Some(head) = heads.iter_mut().find(|head| head.account() == intake.account) else { continue };
            received::put_body(&mut batch, intake.account, intake.body_id, intake.body.clone());
            for one in &intake.received {
                let one = ReceivedEmail { sequence: head.next_sequence(), ..one.clone() };
                received::create(&mut batch, &one);
                events.push(self.record(&mut batch, &one));
            }
        }
        heads.iter().for_each(|head| head.put(&mut batch));
        (batch, events)
    }

    fn record(&self, batch: &mut Batch, received: &ReceivedEmail) -> Event {
        let event = Event {
            id: EventId::new(received.received_at, self.worker.entropy.unique_bits()),
            account: received.account,
            subject: received.id.into(),
            kind: EventKind::Received,
            recipient: Some(received.rcpt_to.clone()),
            created_at: received.received_at,
            detail: received_event_data(received).into(),
        };
        // Best one of ours, which is told at once; any other is told by its owner.
        let [.., last] = received.id.to_bytes();
        let partition = self.worker.leases.any().unwrap_or(u16::from(last) % PARTITIONS);
        store::event::record(batch, &event, partition);
        event
    }
}

/// Logs the emails that a message from the world became, one an account's mailbox.
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

/// Who serves the line.
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
                // Who has gone meanwhile is told nothing.
                let _ = waiting.done.send(result.clone());
            }
        }
    }
}

impl Drop for WriterGuard {
    /// Should serving end by a bug: the next who comes serves.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.lock();
            queue.has_writer = false;
            queue.waiting.clear();
        }
    }
}
