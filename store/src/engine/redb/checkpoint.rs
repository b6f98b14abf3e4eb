//! The checkpoint thread: writes frozen memtables to redb, measures free disk space, and reclaims segments.
//!
//! It runs concurrently with the writer and never waits for it. Its requests go to the inbox if it has capacity, and
//! results come back as jobs. A checkpoint that finds the disk full is retried at every tick; one that finds the disk
//! broken fences the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::disk_space::DiskSpace;
use super::index::{CheckpointError, Index, IndexSnapshot, LiveBySegment, LogPosition};
use super::memtable::MemTable;
use super::reclaim::SegmentReclaimer;
use super::state::{CheckpointState, EngineState};
use super::writer::WriterCommand;

/// Job of the checkpoint thread.
#[derive(Debug)]
pub(crate) enum CheckpointerJob {
    Checkpoint(CheckpointJob),
    /// The writer has handled a slice of relocated bodies.
    RelocationDone {
        done: bool,
    },
}

/// A frozen memtable to be written to redb.
#[derive(Debug)]
pub(crate) struct CheckpointJob {
    pub(crate) table: Arc<MemTable>,
    /// Log position at which the memtable was frozen.
    pub(crate) position: LogPosition,
    /// Callers of `flush` that wait for this checkpoint.
    pub(crate) waiting: Vec<oneshot::Sender<()>>,
}

/// Free disk space that a checkpoint needs: its rows as leaf pages, as much again for branch pages, and some for the
/// allocator's state.
const CHECKPOINT_FREE_FACTOR: u64 = 3;
const CHECKPOINT_FREE_BYTES: u64 = 4 << 20;

/// State of the thread.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    pub(crate) shared: Arc<EngineState>,
    pub(crate) space: Arc<DiskSpace>,
    pub(crate) index: Index,
    pub(crate) live: LiveBySegment,
    pub(crate) position: LogPosition,
    pub(crate) reclaim: SegmentReclaimer,
    pub(crate) stuck: Option<CheckpointJob>,
    pub(crate) writer: mpsc::WeakSender<WriterCommand>,
    pub(crate) tick: Duration,
    /// Ticks between two checkpoints.
    pub(crate) interval_ticks: u32,
    pub(crate) ticks: u32,
}

impl Checkpointer {
    /// Runs until the writer has ended.
    pub(crate) fn run(mut self, jobs: &Receiver<CheckpointerJob>) {
        self.measure();
        loop {
            match jobs.recv_timeout(self.tick) {
                Ok(CheckpointerJob::Checkpoint(job)) => {
                    self.checkpoint(job);
                    self.measure();
                }
                Ok(CheckpointerJob::RelocationDone { done }) => self.reclaim.finish_slice(done),
                Err(RecvTimeoutError::Timeout) => self.tick(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.shared.fenced().is_none() {
                self.reclaim();
            }
        }
    }

    fn ask_writer(&self, command: WriterCommand) -> bool {
        // The inbox is full: the writer is busy and checks by itself after each group.
        self.writer.upgrade().is_some_and(|writer| writer.try_send(command).is_ok())
    }

    fn tick(&mut self) {
        if self.shared.fenced().is_some() {
            return;
        }
        self.measure();
        if let Some(job) = self.stuck.take() {
            return self.checkpoint(job);
        }
        self.ticks += 1;
        // On a full disk every checkpoint may free a segment.
        if self.ticks >= self.interval_ticks || self.shared.is_full() {
            self.ticks = 0;
            self.ask_writer(WriterCommand::Freeze);
        }
    }

    fn measure(&self) {
        let counters = &self.shared.counters;
        let (free_bytes, space_error) = match self.space.read_free_bytes() {
            Ok(free_bytes) => (free_bytes, None),
            Err(error) => (0, Some(error)),
        };
        counters.free_bytes.store(free_bytes, Ordering::Relaxed);
        self.shared.set_space_error(space_error);
        counters.index_bytes.store(self.index.size_bytes(), Ordering::Relaxed);
        let bodies = self.live.values().map(|live| live.bodies).sum();
        let bytes = self.live.values().map(|live| live.bytes).sum();
        counters.live_bodies.store(bodies, Ordering::Relaxed);
        counters.live_body_bytes.store(bytes, Ordering::Relaxed);
        let was_full = self.shared.is_full();
        let is_full = self.space.is_full(was_full);
        if is_full != was_full {
            self.shared.set_full(is_full);
        }
    }

    fn checkpoint(&mut self, job: CheckpointJob) {
        if self.shared.fenced().is_some() {
            // The writer may have submitted the job just before the store was fenced: no caller may wait for it.
            return self.shared.set_checkpointing(CheckpointState::Idle);
        }
        self.ticks = 0;
        let started = Instant::now();
        self.make_room(&job.table);
        let result = self.index.checkpoint(&job.table, job.position, &mut self.live);
        match result {
            Ok(base) => {
                self.position = job.position;
                self.finish(job, base);
                let took = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.shared.counters.checkpoint_us.store(took, Ordering::Relaxed);
                self.shared.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
            }
            Err(CheckpointError::Full) => self.postpone(job),
            Err(CheckpointError::Broken(reason)) => {
                self.shared.fence(&format!("writing the index failed: {reason}"));
            }
        }
    }

    /// Releases the reserve if the checkpoint may need it. The checkpoint is attempted in any case, because the index
    /// may have free pages and only checkpoints free segments.
    fn make_room(&self, table: &MemTable) {
        let needed = table.entry_bytes().saturating_mul(CHECKPOINT_FREE_FACTOR) + CHECKPOINT_FREE_BYTES;
        if self.space.free_bytes() < needed && self.space.release_reserve() {
            self.shared.set_full(true);
        }
    }

    fn finish(&mut self, job: CheckpointJob, base: IndexSnapshot) {
        let frozen = {
            let mut layers = self.shared.layers_mut();
            layers.base = Arc::new(base);
            layers.frozen.take()
        };
        self.shared.set_checkpointing(CheckpointState::Idle);
        // Drops about 100,000 rows here, without holding the lock.
        drop(frozen);
        for answer in job.waiting {
            let _ = answer.send(());
        }
        drop(job.table);
        self.ask_writer(WriterCommand::CheckpointDone);
    }

    /// Handles a full disk. Reopens the index at its last checkpoint, because redb accepts no more work after an I/O
    /// error. The memtable stays frozen and readable, and the next tick retries.
    fn postpone(&mut self, job: CheckpointJob) {
        self.shared.set_full(true);
        // The checkpoint needs more space than estimated, so release the reserve.
        self.space.release_reserve();
        let mut layers = self.shared.layers_mut();
        match self.index.reopen() {
            Ok(base) => {
                layers.base = Arc::new(base);
                drop(layers);
                self.stuck = Some(job);
                self.shared.set_checkpointing(CheckpointState::Stuck);
            }
            Err(fault) => {
                drop(layers);
                self.shared.fence(&format!("reopening the index failed: {fault:?}"));
            }
        }
    }

    /// Removes dead segments, and relocates the last live bodies of nearly empty ones.
    fn reclaim(&mut self) {
        if self.shared.pins.load(Ordering::SeqCst) > 0 {
            return;
        }
        if let Err(error) = self.reclaim.remove_dead(&self.shared.segments, &self.live, self.position) {
            tracing::warn!(%error, "cannot remove a dead log segment; retrying later");
        }
        if let Some(slice) = self.reclaim.next_slice(&self.shared, &self.live, self.position)
            && !self.ask_writer(WriterCommand::Relocate(slice))
        {
            self.reclaim.finish_slice(false);
        }
    }
}
