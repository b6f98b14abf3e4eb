//! Group writer: collects waiting batches, checks them, writes them as one group, and answers all.
//!
//! ```text
//! collect  ► check             ► append       ► publish           ► answer
//! inbox      against rows and    one write,     active memtable,    all batches
//!            the group's own     one fdatasync  then visible        of the group
//!            changes
//! ```
//!
//! A batch whose check fails is answered only when the group is durable, because its caller must then be able to read
//! what caused the conflict. Between two groups the active memtable may be frozen and handed to the checkpoint thread.
//! The first failed write or sync fences the store: this and every later batch is answered with the reason.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::{CheckpointJob, CheckpointerJob};
use super::disk_space::DiskSpace;
use super::log::{AppendError, GroupLocation, LogAppender, LogGroup};
use super::memtable::{BodyLocation, MemTableRow};
use super::prepared_batch::{PendingBatch, PreparedBatch, RelocatedBody};
use super::state::{CheckpointState, EngineState, Layers};
use crate::engine::{BatchPurpose, CommitError, Key, Value};

/// Maximum number of batches in a group; more would only delay the first of them.
const GROUP_BATCHES_MAX: usize = 1024;
/// Maximum size of a group, before compression: about ten milliseconds of disk writes. It bounds also what a group adds
/// to the memtable.
const GROUP_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) enum WriterCommand {
    Commit(PendingBatch),
    /// Relocate live bodies of an old segment.
    Relocate(Vec<RelocatedBody>),
    /// Answer when everything committed before is in the index.
    Flush(oneshot::Sender<()>),
    /// Freeze the active memtable if it is not empty, because the checkpoint interval has elapsed.
    Freeze,
    /// A checkpoint has completed.
    CheckpointDone,
    /// Flush, stop and release the directory.
    Close(oneshot::Sender<()>),
}

/// Limits at which the active memtable is frozen; see `RedbOptions`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreezeLimits {
    pub(crate) table_bytes: u64,
    pub(crate) replay_bytes: u64,
}

/// State of the writer thread.
#[derive(Debug)]
pub(crate) struct GroupWriter {
    pub(crate) shared: Arc<EngineState>,
    pub(crate) space: Arc<DiskSpace>,
    pub(crate) log: LogAppender,
    pub(crate) limits: FreezeLimits,
    pub(crate) jobs: SyncSender<CheckpointerJob>,
    /// Log written since the last freeze, which a crash would make replay read.
    pub(crate) unfrozen_bytes: u64,
    pub(crate) waiting: Vec<oneshot::Sender<()>>,
}

/// Newest state of the keys that batches of this group change.
type Overlay<'a> = HashMap<&'a [u8], Option<&'a Value>>;

impl GroupWriter {
    /// Runs until the store is closed or all its handles are dropped; then writes a last checkpoint.
    pub(crate) fn run(mut self, mut inbox: mpsc::Receiver<WriterCommand>) -> Option<oneshot::Sender<()>> {
        let mut closer = None;
        let mut before = 0;
        while let Some(first) = inbox.blocking_recv() {
            let (group, other) = collect_group(first, &mut inbox, before);
            before = group.len();
            if !group.is_empty() {
                self.write_group(group);
            }
            match other {
                None | Some(WriterCommand::CheckpointDone | WriterCommand::Commit(_)) => {}
                Some(WriterCommand::Relocate(moved)) => self.relocate(moved),
                Some(WriterCommand::Flush(answer)) => self.waiting.push(answer),
                Some(WriterCommand::Freeze) => self.freeze(),
                Some(WriterCommand::Close(answer)) => {
                    closer = Some(answer);
                    inbox.close();
                    break;
                }
            }
            self.freeze_if_due();
        }
        // Accept batches that were sent before the close.
        while let Ok(command) = inbox.try_recv() {
            if let WriterCommand::Commit(pending) = command {
                self.write_group(vec![pending]);
            }
        }
        self.shared.wait_checkpoint();
        self.freeze();
        self.shared.wait_checkpoint();
        closer
    }

    /// Freezes the active memtable if a limit is reached or a caller waits for a flush.
    fn freeze_if_due(&mut self) {
        if self.shared.fenced().is_some() || self.shared.checkpointing() == CheckpointState::Stuck {
            // Dropping the senders reports that the flush failed.
            self.waiting.clear();
            return;
        }
        if self.shared.checkpointing() == CheckpointState::Running {
            return;
        }
        let active_bytes = self.shared.layers().active.bytes();
        let is_due = active_bytes >= self.limits.table_bytes || self.unfrozen_bytes >= self.limits.replay_bytes;
        if is_due || !self.waiting.is_empty() {
            self.freeze();
        }
        if self.shared.checkpointing() == CheckpointState::Idle {
            // Nothing to freeze: everything is in the index.
            for answer in self.waiting.drain(..) {
                let _ = answer.send(());
            }
        }
    }

    /// Hands the active memtable to the checkpoint thread, unless it is empty or a checkpoint is running.
    fn freeze(&mut self) {
        let is_idle = self.shared.checkpointing() == CheckpointState::Idle;
        if !is_idle || self.shared.fenced().is_some() {
            return;
        }
        let table = {
            let mut layers = self.shared.layers_mut();
            if layers.active.is_empty() && self.unfrozen_bytes == 0 {
                return;
            }
            let table = Arc::new(std::mem::take(&mut layers.active));
            layers.frozen = Some(Arc::clone(&table));
            table
        };
        self.unfrozen_bytes = 0;
        self.shared.set_checkpointing(CheckpointState::Running);
        let waiting = std::mem::take(&mut self.waiting);
        let job = CheckpointJob { table, position: self.log.position(), waiting };
        if self.jobs.send(CheckpointerJob::Checkpoint(job)).is_err() {
            self.shared.fence("the checkpoint thread has ended");
        }
    }

    fn write_group(&mut self, mut group: Vec<PendingBatch>) {
        if let Some(reason) = self.shared.fenced() {
            return answer_all(group, &CommitError::Fenced(reason));
        }
        if self.shared.is_full() {
            group = refuse_intake(group);
        }
        if !self.has_memory() {
            return answer_all(group, &CommitError::Full);
        }
        if let Some(reason) = self.shared.fenced() {
            return answer_all(group, &CommitError::Fenced(reason));
        }
        while !group.is_empty() {
            let (refused, result) = self.append(&group);
            match result {
                Ok(written) => return self.publish(group, refused, written),
                Err(AppendError::Full) => {
                    self.shared.set_full(true);
                    let is_intake = |pending: &PendingBatch| pending.batch.purpose == BatchPurpose::Intake;
                    if group.iter().any(is_intake) {
                        group = refuse_intake(group);
                    } else if !self.space.release_reserve() {
                        return answer_all(group, &CommitError::Full);
                    }
                }
                Err(AppendError::Broken(broken)) => {
                    let reason = self.shared.fence(&broken);
                    return answer_all(group, &CommitError::Fenced(reason));
                }
            }
        }
    }

    /// Waits while the memtables have reached their maximum size. Returns false if no checkpoint can complete now.
    fn has_memory(&mut self) -> bool {
        let bytes_max = self.limits.table_bytes.saturating_mul(2);
        while self.shared.layers().active.bytes() >= bytes_max {
            match self.shared.wait_checkpoint() {
                CheckpointState::Stuck => return false,
                _ if self.shared.fenced().is_some() => return true,
                _ => self.freeze(),
            }
        }
        true
    }

    /// Checks and writes a group. Returns the failed key for each refused batch, by its index in the group.
    fn append(&mut self, group: &[PendingBatch]) -> (Vec<Option<Key>>, Result<Option<GroupLocation>, AppendError>) {
        let refused = match self.check_group(group) {
            Ok(refused) => refused,
            Err(reason) => return (Vec::new(), Err(AppendError::Broken(reason))),
        };
        let admitted =
            || group.iter().zip(&refused).filter(|(_, key)| key.is_none()).map(|(pending, _)| &pending.batch);
        let mut bytes = LogGroup::default();
        for batch in admitted().filter(|batch| !batch.encoded.is_empty()) {
            bytes.rows.push(&batch.encoded);
            bytes.bodies.extend(&batch.chunks);
            bytes.batches += 1;
        }
        if bytes.batches == 0 {
            return (refused, Ok(None));
        }
        let written = self.log.append(&self.shared.segments, &bytes);
        (refused, written.map(Some))
    }

    /// Returns the first failed check of each batch. Each batch sees the changes of the accepted batches before it.
    fn check_group(&self, group: &[PendingBatch]) -> Result<Vec<Option<Key>>, String> {
        let mut refused = Vec::with_capacity(group.len());
        if group.iter().all(|pending| pending.batch.checks.is_empty()) {
            refused.resize(group.len(), None);
            return Ok(refused);
        }
        // Changes within the group matter only for keys that a later batch checks, which are few.
        let mut checked_keys: Vec<&[u8]> = Vec::new();
        for pending in group.iter().skip(1) {
            checked_keys.extend(pending.batch.checks.iter().map(|(key, _)| key.as_ref()));
        }
        checked_keys.sort_unstable();
        checked_keys.dedup();
        let layers = self.shared.layers();
        let mut overlay = Overlay::new();
        for (number, pending) in group.iter().enumerate() {
            let mut failed = None;
            for (key, holds) in &pending.batch.checks {
                if !check_holds(&overlay, &layers, key, holds.as_ref())? {
                    failed = Some(key.clone());
                    break;
                }
            }
            if failed.is_none() && number + 1 < group.len() {
                let changes = pending.batch.rows.iter().map(|row| (row.key.as_ref(), row.value.as_ref()));
                overlay.extend(changes.filter(|(key, _)| checked_keys.binary_search(key).is_ok()));
            }
            refused.push(failed);
        }
        Ok(refused)
    }

    /// Makes a durable group visible and answers its batches.
    fn publish(&mut self, group: Vec<PendingBatch>, refused: Vec<Option<Key>>, written: Option<GroupLocation>) {
        let mut answers = Vec::with_capacity(group.len());
        let mut spent = Vec::with_capacity(group.len());
        let counters = &self.shared.counters;
        {
            let mut layers = self.shared.layers_mut();
            let mut body_at = written.map_or(0, |written| written.bodies_at);
            let segment = written.map_or(0, |written| written.segment);
            for (pending, refused) in group.into_iter().zip(refused) {
                let PendingBatch { batch, answer } = pending;
                let result = match refused {
                    Some(key) => Err(CommitError::Conflict { key }),
                    None => {
                        spent.push(apply(batch, &mut layers, segment, &mut body_at));
                        Ok(())
                    }
                };
                answers.push((answer, result));
            }
        }
        if let Some(written) = written {
            self.unfrozen_bytes += written.size_bytes;
            counters.groups.fetch_add(1, Ordering::Relaxed);
            counters.log_bytes.fetch_add(written.size_bytes, Ordering::Relaxed);
        }
        let commits = spent.len() as u64;
        counters.commits.fetch_add(commits, Ordering::Relaxed);
        counters.conflicts.fetch_add(answers.len() as u64 - commits, Ordering::Relaxed);
        for (answer, result) in answers {
            if let Some(answer) = answer {
                // The caller may have dropped the receiver; the batch is committed in any case.
                drop(answer.send(result));
            }
        }
    }

    /// Rewrites those bodies to the newest segment whose location has not changed since they were read.
    fn relocate(&mut self, moved: Vec<RelocatedBody>) {
        let total = moved.len();
        let mut unchanged = Vec::with_capacity(total);
        for body in moved {
            match self.shared.body_location(&body.key) {
                Ok(Some(location)) if location == body.from => unchanged.push(body),
                Ok(_) => {}
                Err(error) => {
                    self.shared.fence(&error.to_string());
                    return;
                }
            }
        }
        let pending = PendingBatch { batch: PreparedBatch::from_relocated(unchanged), answer: None };
        let before = self.shared.counters.commits.load(Ordering::Relaxed);
        self.write_group(vec![pending]);
        let done = self.shared.counters.commits.load(Ordering::Relaxed) > before;
        drop(self.jobs.send(CheckpointerJob::RelocationDone { done }));
    }
}

fn check_holds(overlay: &Overlay<'_>, layers: &Layers, key: &Key, holds: Option<&Value>) -> Result<bool, String> {
    let in_memory = overlay
        .get(key.as_ref())
        .copied()
        .or_else(|| layers.active.get(key))
        .or_else(|| layers.frozen.as_ref().and_then(|table| table.get(key)));
    match in_memory {
        Some(value) => Ok(value == holds),
        None => layers.base.holds(key, holds).map_err(|error| error.to_string()),
    }
}

/// Applies a batch to the active memtable. Returns what is to be freed outside the lock.
fn apply(batch: PreparedBatch, layers: &mut Layers, segment: u64, body_at: &mut u64) -> (Bytes, Vec<Bytes>) {
    layers.active.add_bytes(batch.rows_bytes);
    for row in batch.rows {
        layers.active.set(row.key, MemTableRow { value: row.value, fresh: row.fresh });
    }
    for (key, body) in batch.bodies {
        let location = body.map(|(size_bytes, checksum)| {
            let location = BodyLocation { segment, offset: *body_at, size_bytes, checksum };
            *body_at += u64::from(size_bytes);
            location
        });
        layers.active.set_body(key, location);
    }
    (batch.encoded, batch.chunks)
}

/// Collects waiting commits up to the limits of a group, and the first other command.
///
/// Committers that were just answered are about to submit their next batch. As long as yielding the processor once
/// brings another batch, the group grows. It never waits for a timer, and a lone committer never waits at all.
fn collect_group(
    first: WriterCommand,
    inbox: &mut mpsc::Receiver<WriterCommand>,
    before: usize,
) -> (Vec<PendingBatch>, Option<WriterCommand>) {
    let mut group = Vec::with_capacity(before.min(GROUP_BATCHES_MAX));
    let mut size_bytes = 0;
    let mut next = Some(first);
    while let Some(command) = next {
        let WriterCommand::Commit(pending) = command else { return (group, Some(command)) };
        size_bytes += pending.batch.size_bytes;
        group.push(pending);
        if group.len() >= GROUP_BATCHES_MAX || size_bytes >= GROUP_BYTES_MAX {
            break;
        }
        next = inbox.try_recv().ok();
        if next.is_none() && before > 1 && group.len() < before * 2 {
            std::thread::yield_now();
            next = inbox.try_recv().ok();
        }
    }
    (group, None)
}

fn answer_all(group: Vec<PendingBatch>, error: &CommitError) {
    for answer in group.into_iter().filter_map(|pending| pending.answer) {
        drop(answer.send(Err(error.clone())));
    }
}

/// Answers intake batches with `Full` and returns the others.
fn refuse_intake(group: Vec<PendingBatch>) -> Vec<PendingBatch> {
    let (intake, progress): (Vec<_>, Vec<_>) =
        group.into_iter().partition(|pending| pending.batch.purpose == BatchPurpose::Intake);
    answer_all(intake, &CommitError::Full);
    progress
}
