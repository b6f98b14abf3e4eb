//! Bulk queue commands: a command for all tasks that match a filter.
//!
//! ```text
//! command ─►[ one row per partition ]─► the partition's owner scans its queues, executes the command, deletes the row
//! ```
//!
//! The rows survive restarts, so every node completes its part. A command applies to the mail that is queued when it is
//! given; mail accepted later is not affected, unless the filter has a later time. During a rolling upgrade, a command
//! of the newer release waits for a node that understands it; it expires after [`UNKNOWN_COMMAND_RETENTION`].

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::id::EventId;
use model::task::{QueueName, Task, TaskId};
use model::task_filter::TaskFilter;
use store::engine::{Batch, CommitError, ReadError, Value};
use store::queue_command::{self, BulkQueueCommand, PendingQueueCommand};

use super::{QueueAdmin, QueueAdminError, QueuedRecipient};
use crate::admin::queue_command::QueueCommand;

/// Pending commands read in one pass.
const PENDING_MAX: usize = 10_000;
/// Tasks read per page.
const PAGE_TASKS: usize = 256;
/// Tasks changed concurrently, so that their commits can be grouped.
const CONCURRENCY: usize = 64;
/// Delay before tasks with an attempt in progress are checked again.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Mail that was accepted this long after the present is of a clock that ran ahead; clocks of nodes differ less.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(60);
/// Age at which a command expires that this node does not understand.
const UNKNOWN_COMMAND_RETENTION: Duration = Duration::from_hours(7 * 24);

/// Progress of a command at this node.
#[derive(Debug, Clone, Default)]
struct LocalProgress {
    is_watched: bool,
    done: u64,
    /// Tasks that had an attempt in progress, by partition. All other tasks of such a partition are done.
    busy: HashMap<u16, HashSet<TaskId>>,
    failure: Option<CommandFailure>,
    /// Set once this node has logged that it does not understand the command: true if it was logged as expired.
    unknown_logged: Option<bool>,
}

/// Progress of commands that run at this node or have a live [`BulkCommandHandle`].
#[derive(Debug, Default)]
pub(crate) struct WatchedCommands(Mutex<HashMap<[u8; 16], LocalProgress>>);

impl WatchedCommands {
    fn with<T>(&self, access: impl FnOnce(&mut HashMap<[u8; 16], LocalProgress>) -> T) -> T {
        access(&mut self.0.lock())
    }
}

/// The last passes of a command at this node ended with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFailure {
    /// Passes in succession that failed.
    pub passes: u32,
    /// Error of the last one.
    pub error: String,
}

/// Progress of a bulk command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandProgress {
    /// Tasks changed by this node.
    pub done: u64,
    /// Tasks with an attempt in progress; they are changed when it ends.
    pub busy: usize,
    /// Partitions that are not scanned completely yet.
    pub partitions_left: usize,
    /// The command stays stored and is carried out later.
    pub failure: Option<CommandFailure>,
}

/// Handle of a submitted bulk command. The command runs to its end even if the handle is dropped.
pub struct BulkCommandHandle {
    admin: Arc<QueueAdmin>,
    id: [u8; 16],
}

impl BulkCommandHandle {
    /// Returns the current progress.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn progress(&self) -> Result<CommandProgress, ReadError> {
        let left = queue_command::count_pending(&self.admin.services.store, self.id).await?;
        let progress = self.admin.watched_commands.with(|watched| watched.get(&self.id).cloned()).unwrap_or_default();
        let busy = progress.busy.values().map(HashSet::len).sum();
        Ok(CommandProgress {
            done: progress.done,
            busy,
            partitions_left: left.saturating_sub(progress.busy.len()),
            failure: progress.failure,
        })
    }

    /// Waits for progress, or for `BUSY_RETRY_DELAY` at most.
    pub async fn wait_for_progress(&self) {
        let _ = tokio::time::timeout(BUSY_RETRY_DELAY, self.admin.command_progressed.notified()).await;
    }
}

impl Drop for BulkCommandHandle {
    fn drop(&mut self) {
        self.admin.watched_commands.with(|watched| {
            watched.entry(self.id).and_modify(|progress| progress.is_watched = false);
        });
    }
}

/// Result of executing a command in one partition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartitionProgress {
    Done,
    /// Some tasks had an attempt in progress or changed concurrently.
    Busy,
    /// This node does not understand the command.
    Unknown,
}

/// First moment after the submission of the command with this id.
fn submission_end(id: [u8; 16]) -> Timestamp {
    EventId::from_bytes(id).born_at().checked_add(Duration::from_millis(1)).unwrap_or(Timestamp::MAX)
}

impl QueueAdmin {
    /// Submits a command for all tasks that match a filter.
    ///
    /// # Errors
    /// `NoSmarthost` for an unknown smarthost; the store cannot be written.
    pub fn command_matching<'a>(
        self: &'a Arc<Self>,
        filter: TaskFilter,
        order: &'a QueueCommand,
    ) -> BoxFuture<'a, Result<BulkCommandHandle, QueueAdminError>> {
        Box::pin(async move {
            self.validate_command(order)?;
            // The id starts with the time, so commands are executed in the order in which they were given.
            let id = EventId::new(self.services.clock.now(), self.services.entropy.unique_bits()).to_bytes();
            // Without a time, mail that is accepted while the command runs is left alone.
            let accepted_before = filter.accepted_before.or_else(|| Some(submission_end(id)));
            let filter = TaskFilter { accepted_before, ..filter };
            let mut batch = Batch::progress();
            queue_command::put(&mut batch, id, &BulkQueueCommand { order: order.word(), filter });
            self.watched_commands
                .with(|watched| watched.insert(id, LocalProgress { is_watched: true, ..LocalProgress::default() }));
            let handle = BulkCommandHandle { admin: Arc::clone(self), id };
            self.services.store.commit(batch).await?;
            self.command_wakeup.notify_one();
            Ok(handle)
        })
    }

    /// Executes pending bulk commands until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let delay = match self.execute_pending_commands().await {
                Ok(PartitionProgress::Busy) => BUSY_RETRY_DELAY,
                Ok(_) if self.services.store.is_shared() => BUSY_RETRY_DELAY,
                Ok(_) => Duration::MAX,
                Err(error) => {
                    store::warn_unless_away!(self.services.store, %error, "cannot execute a queue command; retrying");
                    BUSY_RETRY_DELAY
                }
            };
            tokio::select! {
                () = self.command_wakeup.notified() => {}
                () = tokio::time::sleep(delay) => {}
                () = self.services.stop.cancelled() => return,
            }
        }
    }

    async fn execute_pending_commands(self: &Arc<Self>) -> Result<PartitionProgress, QueueAdminError> {
        let pending = queue_command::list_pending(&self.services.store, PENDING_MAX).await?;
        let is_pending = |id| pending.iter().any(|pending| pending.id == id);
        self.watched_commands.with(|watched| watched.retain(|id, progress| progress.is_watched || is_pending(*id)));
        let (mut total, mut failed) = (PartitionProgress::Done, None);
        let mut failures: HashMap<[u8; 16], String> = HashMap::new();
        let ids: HashSet<_> = pending.iter().map(|pending| pending.id).collect();
        for (index, command) in pending.iter().enumerate() {
            if self.services.stop.is_cancelled() {
                return Ok(PartitionProgress::Busy);
            }
            if !self.services.leases.is_active(command.partition) {
                continue;
            }
            match self.execute_and_complete(command).await {
                Ok(PartitionProgress::Done) => {}
                Ok(PartitionProgress::Busy) => total = PartitionProgress::Busy,
                Ok(PartitionProgress::Unknown) => {}
                // An error in one partition must not block the others, but all of them share the store.
                Err(error) => {
                    let (is_store_unavailable, text) = (error.is_store_unavailable(), error.to_string());
                    failed = Some(error);
                    if is_store_unavailable {
                        // The commands behind it wait for the same store.
                        let rest = pending.get(index..).unwrap_or_default().iter();
                        let own = rest.filter(|command| self.services.leases.is_active(command.partition));
                        failures.extend(own.map(|command| (command.id, text.clone())));
                        break;
                    }
                    failures.insert(command.id, text);
                }
            }
            self.command_progressed.notify_waiters();
        }
        self.note_failures(&ids, failures);
        failed.map_or(Ok(total), Err)
    }

    /// Executes a command in one partition. Deletes its row if nothing is left to do.
    async fn execute_and_complete(
        self: &Arc<Self>,
        pending: &PendingQueueCommand,
    ) -> Result<PartitionProgress, QueueAdminError> {
        let progress = self.execute_in_partition(pending).await?;
        if progress == PartitionProgress::Done {
            let mut batch = Batch::progress();
            queue_command::complete(&mut batch, pending.partition, pending.id);
            self.services.store.commit(batch).await?;
        }
        Ok(progress)
    }

    /// Notes which of the pending commands failed in a pass.
    fn note_failures(&self, ids: &HashSet<[u8; 16]>, mut failures: HashMap<[u8; 16], String>) {
        self.watched_commands.with(|watched| {
            for (id, progress) in watched.iter_mut().filter(|(id, _)| ids.contains(*id)) {
                let passes = progress.failure.as_ref().map_or(1, |before| before.passes + 1);
                progress.failure = failures.remove(id).map(|error| CommandFailure { passes, error });
            }
        });
        self.command_progressed.notify_waiters();
    }

    async fn execute_in_partition(
        self: &Arc<Self>,
        pending: &PendingQueueCommand,
    ) -> Result<PartitionProgress, QueueAdminError> {
        let (Some(order), Ok(filter)) = (QueueCommand::from_word(&pending.order), &pending.filter) else {
            return Ok(self.keep_unknown_command(pending));
        };
        // A clock that ran ahead and was set back has dated mail after the command: it is not accepted meanwhile.
        let ahead = (filter.accepted_before == Some(submission_end(pending.id))).then(|| {
            (self.services.clock.after(CLOCK_DIFFERENCE_MAX), TaskFilter { accepted_before: None, ..filter.clone() })
        });
        let is_ahead =
            |task: &Task| ahead.as_ref().is_some_and(|(from, filter)| task.accepted_at > *from && filter.matches(task));
        let before =
            self.watched_commands.with(|watched| watched.get(&pending.id)?.busy.get(&pending.partition).cloned());
        let (mut busy, mut from) = (HashSet::new(), None);
        while let Some((queue, _, next)) =
            store::task::next_queue(&self.services.store, pending.partition, from).await?
        {
            if filter.may_match_queue(&queue) {
                let is_match = |task: &Task| {
                    // Skip tasks that were changed in an earlier pass: a later command may have changed them again.
                    let is_remaining = before.as_ref().is_none_or(|before| before.contains(&task.id));
                    is_remaining && (filter.matches(task) || is_ahead(task))
                };
                busy.extend(self.execute_in_queue(&queue, pending.id, &order, &is_match).await?);
            }
            from = Some(next);
        }
        if self.services.stop.is_cancelled() {
            return Ok(PartitionProgress::Busy);
        }
        self.watched_commands.with(|watched| {
            let progress = watched.entry(pending.id).or_default();
            if busy.is_empty() {
                progress.busy.remove(&pending.partition);
                Ok(PartitionProgress::Done)
            } else {
                progress.busy.insert(pending.partition, busy);
                Ok(PartitionProgress::Busy)
            }
        })
    }

    /// Keeps a command of a newer release, with an action or a filter that this one does not know, for a node that understands it, until it expires. Logs each once.
    fn keep_unknown_command(&self, pending: &PendingQueueCommand) -> PartitionProgress {
        let age = self.services.clock.now().duration_since(EventId::from_bytes(pending.id).born_at());
        let is_expired = Duration::try_from(age).is_ok_and(|age| age > UNKNOWN_COMMAND_RETENTION);
        let logged = self
            .watched_commands
            .with(|watched| watched.entry(pending.id).or_default().unknown_logged.replace(is_expired));
        let command = pending.order.as_str();
        let filter = pending.filter.as_ref().map_or_else(ToString::to_string, |_| "known".to_owned());
        match is_expired {
            _ if logged == Some(is_expired) => {}
            false => {
                tracing::warn!(%command, filter, "this release does not know a queue command or its filter; it waits for a newer node")
            }
            true => tracing::warn!(%command, filter, "a queue command that no node has understood has expired"),
        }
        if is_expired { PartitionProgress::Done } else { PartitionProgress::Unknown }
    }

    /// Executes a command for one queue. Returns the tasks that had an attempt in progress or changed concurrently.
    async fn execute_in_queue(
        self: &Arc<Self>,
        queue: &QueueName,
        id: [u8; 16],
        order: &QueueCommand,
        is_match: &(dyn Fn(&Task) -> bool + Sync),
    ) -> Result<HashSet<TaskId>, QueueAdminError> {
        let mut busy = HashSet::new();
        let mut from = Some(store::task::due_start(queue, Timestamp::UNIX_EPOCH));
        while let Some(start) = from.filter(|_| !self.services.stop.is_cancelled()) {
            let slice = store::task::list(&self.services.store, queue, start, PAGE_TASKS).await?;
            from = slice.next;
            let matching = slice.tasks.into_iter().filter(|(task, _)| is_match(task));
            let changed: Vec<(TaskId, Result<(), QueueAdminError>)> = futures_util::stream::iter(matching)
                .map(async |(task, row)| (task.id, self.execute_for_task(task, row, order).await))
                .buffer_unordered(CONCURRENCY)
                .collect()
                .await;
            let done = changed.iter().filter(|(_, done)| done.is_ok()).count();
            self.watched_commands.with(|watched| watched.entry(id).or_default().done += done as u64);
            self.command_progressed.notify_waiters();
            for (task, done) in changed {
                match done {
                    Ok(()) => {}
                    // An attempt is in progress, or the row has just changed: retry in the next pass.
                    Err(QueueAdminError::Busy(_) | QueueAdminError::Commit(CommitError::Conflict { .. })) => {
                        busy.insert(task);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(busy)
    }

    async fn execute_for_task(
        self: &Arc<Self>,
        task: Task,
        row: Value,
        order: &QueueCommand,
    ) -> Result<(), QueueAdminError> {
        let found = store::email::get_stored_recipient(&self.services.store, task.account, task.id).await?;
        // The email was purged meanwhile, and its task with it.
        let Some(found) = found else { return Ok(()) };
        self.execute_for_recipient(&QueuedRecipient { recipient: found.recipient, task, row }, order).await
    }
}

#[cfg(test)]
mod tests {
    use store::engine::fault_injection::FaultInjector;
    use store::engine::{RedbOptions, Store};
    use store::task::PARTITIONS;

    use super::*;
    use crate::delivery::outcome::tests::{queued_recipient, task};
    use crate::subsystems::tests::idle;

    /// A queued task with its recipient.
    fn queued(batch: &mut Batch) -> Task {
        let task = task();
        store::email::put_recipient(batch, task.account, task.id.email, &queued_recipient(&task));
        store::task::put_new(batch, &task);
        task
    }

    /// Writes until the reserve is used up.
    async fn fill(store: &Store, faults: &FaultInjector) {
        faults.set_free_bytes(Some(1 << 20));
        let mut number = 0_u8;
        loop {
            let mut batch = Batch::progress();
            batch.put(vec![250, number].into(), vec![number; 6_000]);
            match store.commit(batch).await {
                Ok(()) => number = (number + 1) % 50,
                Err(CommitError::Full) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_on_a_full_store_ends_its_tries_and_goes_on_later() {
        let directory = tempfile::tempdir().unwrap();
        let faults = FaultInjector::new();
        let options = RedbOptions {
            reserve_bytes: 1 << 20,
            segment_bytes: 64 << 10,
            tick: Duration::from_millis(5),
            faults: Some(faults.clone()),
            ..RedbOptions::new(directory.path())
        };
        let queue = idle(Store::open(&options).unwrap());
        queue.cluster.poll().await.unwrap();
        let mut batch = Batch::intake();
        let task = queued(&mut batch);
        queue.services.store.commit(batch).await.unwrap();
        let command = queue.delivery.admin.command_matching(TaskFilter::default(), &QueueCommand::Fail).await.unwrap();
        let behind =
            queue.delivery.admin.command_matching(TaskFilter::default(), &QueueCommand::Release).await.unwrap();
        fill(&queue.services.store, &faults).await;

        for passes in 1..=2 {
            let error = queue.delivery.admin.execute_pending_commands().await.err().unwrap();
            assert!(error.is_store_unavailable(), "{error}");
            let progress = command.progress().await.unwrap();
            assert_eq!((progress.done, progress.failure.unwrap().passes), (0, passes));
            let progress = behind.progress().await.unwrap();
            assert_eq!(progress.failure.unwrap().passes, passes, "the command behind it waits for the same store");
        }
        let open = store::task::list_all(&queue.services.store, None, 10).await.unwrap().tasks;
        assert_eq!(open[0].0, task, "the task stays as it is");

        faults.set_free_bytes(None);
        while !matches!(queue.delivery.admin.execute_pending_commands().await, Ok(PartitionProgress::Done)) {
            tokio::task::yield_now().await;
        }
        let progress = command.progress().await.unwrap();
        assert_eq!((progress.done, progress.partitions_left, progress.failure), (1, 0, None));
        let progress = behind.progress().await.unwrap();
        assert_eq!((progress.partitions_left, progress.failure), (0, None));
        assert!(store::task::list_all(&queue.services.store, None, 10).await.unwrap().tasks.is_empty());
    }

    #[tokio::test]
    async fn a_command_also_changes_mail_of_a_clock_that_ran_ahead() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        for (before, changed) in [(None, 1), (Some(1), 0), (Some(3), 1)] {
            let queue = idle(Store::memory());
            queue.cluster.poll().await.unwrap();
            let clock = &queue.services.clock;
            let task = Task { accepted_at: clock.after(hours(2)), ..task() };
            let mut batch = Batch::intake();
            store::email::put_recipient(&mut batch, task.account, task.id.email, &queued_recipient(&task));
            store::task::put_new(&mut batch, &task);
            queue.services.store.commit(batch).await.unwrap();
            let accepted_before = before.map(|before| clock.after(hours(before)));
            let filter = TaskFilter { accepted_before, ..TaskFilter::default() };
            let command = queue.delivery.admin.command_matching(filter, &QueueCommand::Fail).await.unwrap();
            while !matches!(queue.delivery.admin.execute_pending_commands().await, Ok(PartitionProgress::Done)) {
                tokio::task::yield_now().await;
            }
            assert_eq!(command.progress().await.unwrap().done, changed, "{before:?}");
        }
    }

    #[tokio::test]
    async fn a_command_of_a_newer_release_stays_until_it_expires() {
        let queue = idle(Store::memory());
        queue.cluster.poll().await.unwrap();
        let id = EventId::new(queue.services.clock.now(), 1).to_bytes();
        let mut batch = Batch::progress();
        let order = BulkQueueCommand { order: "quarantine".to_owned(), filter: TaskFilter::default() };
        queue_command::put(&mut batch, id, &order);
        queue.services.store.commit(batch).await.unwrap();
        let logged = || {
            queue
                .delivery
                .admin
                .watched_commands
                .with(|watched| watched.get(&id).and_then(|state| state.unknown_logged))
        };

        for _ in 0..2 {
            assert!(queue.delivery.admin.execute_pending_commands().await.is_ok());
            let pending = queue_command::count_pending(&queue.services.store, id).await.unwrap();
            assert_eq!((pending, logged()), (usize::from(PARTITIONS), Some(false)));
        }
        // Other commands are executed meanwhile.
        let hold = queue.delivery.admin.command_matching(TaskFilter::default(), &QueueCommand::Hold).await.unwrap();
        assert!(queue.delivery.admin.execute_pending_commands().await.is_ok());
        assert_eq!(hold.progress().await.unwrap().partitions_left, 0);

        queue.services.clock.advance(UNKNOWN_COMMAND_RETENTION + Duration::from_secs(1));
        assert!(queue.delivery.admin.execute_pending_commands().await.is_ok());
        assert_eq!(logged(), Some(true));
        assert_eq!(queue_command::count_pending(&queue.services.store, id).await.unwrap(), 0);
    }
}
