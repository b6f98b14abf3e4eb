//! Queue counts: queued recipients by state, class and domain. They are maintained in memory while tasks are written,
//! so that no reader has to scan the queue.
//!
//! ```text
//! batch with task changes ─► begin ─[commit]─► end ─► counts of the partition
//! partition acquired ─► track ─► its tasks are read once, in slices, in the background ─► counts are complete
//! ```
//!
//! A partition has one owner, and all changes of its tasks are that owner's commits. During the first read of a
//! partition, changes at keys that were already read are counted. Changes at later keys are left to the reader. The
//! reader may or may not see a commit that is open while it passes the commit's keys. What it counted at those keys is
//! remembered until the commit ends.
//!
//! A commit with an unknown result makes its partitions doubtful: they are read again immediately. They are read once
//! more after [`SETTLED_AFTER`], because the commit may become visible after the reader has passed.

mod partition_reader;

use message::words;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::task::{Task, TaskClass};

use crate::engine::Key;
use crate::key::{KeyReader, Space, key};

/// Time between the first complete read of a partition after a commit with an unknown result, and its last read. No
/// commit stays open that long: the writers settle each within 30 s once the store answers. The server ends an idle
/// transaction after 5 s, and a wait for a lock after 10 s.
const SETTLED_AFTER: SignedDuration = SignedDuration::from_secs(60);

words! {
    /// State of a queued recipient.
    QueuedState {
        /// Waits for its first attempt.
        Queued = "queued" as 0,
        /// Waits for another attempt.
        Deferred = "deferred" as 1,
        /// Held by the operator.
        Held = "held" as 2,
    }
}

/// The counted properties of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedTask {
    state: QueuedState,
    class: TaskClass,
    /// Time of acceptance, in minutes since 1970.
    minute: i64,
}

impl CountedTask {
    pub(crate) fn from_task(task: &Task) -> Self {
        let state = match task {
            Task { held: true, .. } => QueuedState::Held,
            Task { attempts: 0, .. } => QueuedState::Queued,
            _ => QueuedState::Deferred,
        };
        Self { state, class: task.class, minute: task.accepted_at.as_second().div_euclid(60) }
    }
}

/// A task that a batch writes or deletes.
#[derive(Debug, Clone)]
pub(crate) struct TaskChange {
    pub(crate) key: Key,
    pub(crate) task: CountedTask,
    pub(crate) is_put: bool,
}

/// Counts of one partition, as far as its tasks were read.
#[derive(Debug, Default)]
struct PartitionCounts {
    by_state: [[i64; TaskClass::ALL.len()]; QueuedState::ALL.len()],
    by_minute: BTreeMap<i64, i64>,
    /// By state, keyed by the domain's bytes in the key.
    by_domain: HashMap<Box<[u8]>, [i64; QueuedState::ALL.len()]>,
    /// Number of counts (states, minutes, domains) below zero. Two commits that end in another order than they became
    /// visible cause some temporarily; any that remain are errors.
    negatives: usize,
    reader: Reader,
    settling: UnknownCommits,
}

/// Whether a commit with an unknown result may still become visible.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum UnknownCommits {
    #[default]
    No,
    /// Such a commit may exist, and the partition was not read completely since.
    Unread,
    /// Such a commit may exist until this time; then the partition is read a last time.
    Until(Timestamp),
}

/// Progress of reading a partition's tasks.
#[derive(Debug, Default)]
enum Reader {
    /// Read up to `next`. `meanwhile` collects commits during the read of the next slice.
    At { next: Key, meanwhile: Option<Vec<(Key, Option<CountedTask>)>> },
    /// Read completely.
    Done,
    /// Not read, or a commit's result is unknown: read from the start.
    #[default]
    Doubtful,
}

impl PartitionCounts {
    fn add(&mut self, key: &Key, task: Option<CountedTask>, by: i64) {
        let Some(task) = task else { return };
        let negatives = &mut self.negatives;
        if let Some(count) = self.by_state.get_mut(task.state as usize).and_then(|by| by.get_mut(task.class as usize)) {
            change(count, by, negatives);
        }
        if change(self.by_minute.entry(task.minute).or_default(), by, negatives) == 0 {
            self.by_minute.remove(&task.minute);
        }
        let Some(domain) = domain_of(key) else { return };
        let mut change_state = |counts: &mut [i64; QueuedState::ALL.len()]| {
            if let Some(count) = counts.get_mut(task.state as usize) {
                change(count, by, negatives);
            }
        };
        match self.by_domain.get_mut(domain) {
            Some(counts) => {
                change_state(counts);
                if counts.iter().all(|count| *count == 0) {
                    self.by_domain.remove(domain);
                }
            }
            None => {
                let mut counts = Default::default();
                change_state(&mut counts);
                self.by_domain.insert(domain.into(), counts);
            }
        }
    }

    /// Returns whether the partition was read completely and its counts are reliable.
    fn is_whole(&self) -> bool {
        matches!(self.reader, Reader::Done) && self.settling == UnknownCommits::No && self.negatives == 0
    }

    /// Decides whether to read the partition again. While the store is unavailable (`is_away`), it settles no commit.
    fn review(&mut self, now: Timestamp, is_away: bool) {
        match self.settling {
            UnknownCommits::Until(_) if is_away => self.settling = UnknownCommits::Unread,
            UnknownCommits::Until(settled_at) if now >= settled_at => {
                self.settling = UnknownCommits::No;
                self.reader = Reader::Doubtful;
            }
            UnknownCommits::Unread if matches!(self.reader, Reader::Done) => self.reader = Reader::Doubtful,
            _ if matches!(self.reader, Reader::Done) && self.negatives > 0 => self.reader = Reader::Doubtful,
            _ => {}
        }
    }

    /// Applies a stored change of the task at a key. `before` is what was counted there.
    fn settle(&mut self, key: &Key, before: Option<CountedTask>, after: Option<CountedTask>) {
        self.add(key, before, -1);
        self.add(key, after, 1);
    }
}

/// Changes a count and updates the number of negative ones. Returns the new count.
fn change(count: &mut i64, by: i64, negatives: &mut usize) -> i64 {
    let was_negative = *count < 0;
    *count += by;
    match (was_negative, *count < 0) {
        (false, true) => *negatives += 1,
        (true, false) => *negatives = negatives.saturating_sub(1),
        _ => {}
    }
    *count
}

/// The domain in a task's key; its bytes never need an escape.
fn domain_of(key: &Key) -> Option<&[u8]> {
    let mut reader = KeyReader::new(Space::Task, key).ok()?;
    reader.u16().ok()?;
    let rest = reader.rest();
    rest.get(..memchr::memchr(0, rest)?)
}

fn partition_of(key: &Key) -> Option<u16> {
    KeyReader::new(Space::Task, key).ok()?.u16().ok()
}

/// A commit in progress.
#[derive(Debug)]
struct OpenCommit {
    changes: Vec<TaskChange>,
    /// Tasks that a reader counted at the commit's keys meanwhile.
    counted: Vec<(Key, Option<CountedTask>)>,
}

impl OpenCommit {
    /// Each key once, with the task before and after.
    fn tasks(&self) -> Vec<(&Key, Option<CountedTask>, Option<CountedTask>)> {
        let mut indexes: HashMap<&Key, usize> = HashMap::with_capacity(self.changes.len());
        let mut tasks: Vec<(&Key, Option<CountedTask>, Option<CountedTask>)> = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            let after = change.is_put.then_some(change.task);
            let index = *indexes.entry(&change.key).or_insert(tasks.len());
            match tasks.get_mut(index) {
                Some((.., known)) => *known = after,
                None => tasks.push((&change.key, (!change.is_put).then_some(change.task), after)),
            }
        }
        tasks
    }
}

#[derive(Debug, Default)]
struct State {
    commits: u64,
    open: HashMap<u64, OpenCommit>,
    partitions: HashMap<u16, PartitionCounts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitResult {
    Stored,
    Refused,
    Unknown,
}

/// Queued recipients in this node's partitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueSummary {
    /// Recipients for each pair of state and class, including zeros.
    pub recipients: Vec<(QueuedState, TaskClass, u64)>,
    /// Time of acceptance of the oldest, with a precision of one minute.
    pub oldest_accepted_at: Option<Timestamp>,
    /// Recipient domains with the most recipients, in descending order.
    pub top_domains: Vec<(String, u64)>,
}

/// Queued recipients of a domain in a partition, by state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCounts {
    pub domain: String,
    pub queued: u64,
    pub deferred: u64,
    pub held: u64,
}

/// The queue counts of this node's partitions.
#[derive(Debug, Default)]
pub struct QueueCounts {
    state: Mutex<State>,
}

impl QueueCounts {
    /// Registers a commit that changes tasks. Call [`CommitCount::end`] with its result; dropping the guard means an
    /// unknown result.
    pub(crate) fn begin(self: &Arc<Self>, changes: Vec<TaskChange>) -> CommitCount {
        if changes.is_empty() {
            return CommitCount(None);
        }
        let mut state = self.state.lock();
        state.commits += 1;
        let number = state.commits;
        state.open.insert(number, OpenCommit { changes, counted: Vec::new() });
        drop(state);
        CommitCount(Some((Arc::clone(self), number)))
    }

    fn end(&self, number: u64, ended: CommitResult) {
        let mut state = self.state.lock();
        let State { open, partitions, .. } = &mut *state;
        let Some(commit) = open.remove(&number) else { return };
        if ended == CommitResult::Refused {
            return;
        }
        for (key, before, after) in commit.tasks() {
            let Some(partition) = partition_of(key).and_then(|number| partitions.get_mut(&number)) else {
                continue;
            };
            if ended == CommitResult::Unknown {
                (partition.reader, partition.settling) = (Reader::Doubtful, UnknownCommits::Unread);
                continue;
            }
            if let Some((_, counted)) = commit.counted.iter().find(|(counted, _)| counted == key) {
                partition.settle(key, *counted, after);
                continue;
            }
            match &mut partition.reader {
                Reader::At { next, meanwhile } if *key >= *next => {
                    meanwhile.iter_mut().for_each(|meanwhile| meanwhile.push((key.clone(), after)));
                }
                Reader::At { .. } | Reader::Done => partition.settle(key, before, after),
                // The partition will be read again.
                Reader::Doubtful => {}
            }
        }
    }

    /// Sets the partitions to count. New and doubtful ones must be read with [`QueueCounts::read`].
    pub fn track(&self, partitions: &[u16]) {
        let mut state = self.state.lock();
        state.partitions.retain(|number, _| partitions.contains(number));
        for number in partitions {
            state.partitions.entry(*number).or_default();
        }
    }

    /// Discards the counts of a partition that another node owned meanwhile, so that it is read again.
    pub fn invalidate(&self, partition: u16) {
        if let Some(counts) = self.state.lock().partitions.get_mut(&partition) {
            counts.reader = Reader::Doubtful;
        }
    }

    /// Returns whether a partition must be read.
    pub fn is_incomplete(&self) -> bool {
        self.state.lock().partitions.values().any(|counts| !counts.is_whole())
    }

    fn slice_begins(&self, now: Timestamp, is_away: bool) -> Option<(u16, Key)> {
        let mut state = self.state.lock();
        let State { open, partitions, .. } = &mut *state;
        partitions.values_mut().for_each(|counts| counts.review(now, is_away));
        let found = partitions.iter_mut().find(|(_, counts)| !matches!(counts.reader, Reader::Done));
        let (number, counts) = found?;
        if matches!(counts.reader, Reader::Doubtful) {
            let next = key(Space::Task).u16(*number).range().start;
            let (reader, settling) = (Reader::At { next, meanwhile: None }, counts.settling);
            *counts = PartitionCounts { reader, settling, ..Default::default() };
            for commit in open.values_mut() {
                commit.counted.retain(|(counted, _)| partition_of(counted) != Some(*number));
            }
        }
        let Reader::At { next, meanwhile } = &mut counts.reader else { return None };
        *meanwhile = Some(Vec::new());
        Some((*number, next.clone()))
    }

    /// Records a slice that was read, starting at `now`: tasks up to `to`, or to the end of the partition.
    fn slice_read(&self, partition: u16, now: Timestamp, tasks: Vec<(Key, CountedTask)>, to: Option<Key>) {
        let mut state = self.state.lock();
        let State { open, partitions, .. } = &mut *state;
        let Some(counts) = partitions.get_mut(&partition) else { return };
        // The partition became doubtful, or was read concurrently: it will be read again.
        let Reader::At { next, meanwhile: Some(meanwhile) } = &mut counts.reader else { return };
        let (from, meanwhile) = (next.clone(), std::mem::take(meanwhile));
        let is_inside = |key: &Key| *key >= from && to.as_ref().is_none_or(|to| key < to);
        let mut tasks: HashMap<Key, CountedTask> = tasks.into_iter().collect();
        for (key, after) in meanwhile.into_iter().filter(|(key, _)| is_inside(key)) {
            match after {
                Some(task) => _ = tasks.insert(key, task),
                None => _ = tasks.remove(&key),
            }
        }
        for commit in open.values_mut() {
            let OpenCommit { changes, counted } = commit;
            let passed = changes.iter().map(|change| &change.key);
            let passed = passed.filter(|key| partition_of(key) == Some(partition) && is_inside(key));
            counted.extend(passed.map(|key| (key.clone(), tasks.get(key).copied())));
        }
        counts.reader = to.map_or(Reader::Done, |next| Reader::At { next, meanwhile: None });
        if matches!((&counts.reader, counts.settling), (Reader::Done, UnknownCommits::Unread)) {
            counts.settling = UnknownCommits::Until(now.checked_add(SETTLED_AFTER).unwrap_or(Timestamp::MAX));
        }
        for (key, task) in &tasks {
            counts.add(key, Some(*task), 1);
        }
    }

    /// Returns the counts of all domains in a partition.
    pub fn domains(&self, partition: u16) -> Vec<DomainCounts> {
        let state = self.state.lock();
        let Some(counts) = state.partitions.get(&partition) else { return Vec::new() };
        let unsigned = |count: i64| u64::try_from(count).unwrap_or(0);
        let found = counts.by_domain.iter().map(|(domain, [queued, deferred, held])| DomainCounts {
            domain: String::from_utf8_lossy(domain).into_owned(),
            queued: unsigned(*queued),
            deferred: unsigned(*deferred),
            held: unsigned(*held),
        });
        found.collect()
    }

    /// Returns the counts of a domain by state, over all partitions of this node.
    pub fn domain(&self, domain: &str) -> DomainCounts {
        let state = self.state.lock();
        let found = state.partitions.values().filter_map(|counts| counts.by_domain.get(domain.as_bytes()));
        let sums = found.fold([0_i64; QueuedState::ALL.len()], |[a, b, c], [x, y, z]| [a + x, b + y, c + z]);
        let [queued, deferred, held] = sums.map(|count| u64::try_from(count).unwrap_or(0));
        DomainCounts { domain: domain.to_owned(), queued, deferred, held }
    }

    /// Summarises the counts, with the `top` domains with the most recipients.
    pub fn summary(&self, top: usize) -> QueueSummary {
        let state = self.state.lock();
        let sum = |queued: QueuedState, class: TaskClass| {
            let count = |counts: &PartitionCounts| {
                counts.by_state.get(queued as usize).and_then(|by| by.get(class as usize)).copied().unwrap_or(0)
            };
            u64::try_from(state.partitions.values().map(count).sum::<i64>()).unwrap_or(0)
        };
        let recipients = QueuedState::ALL
            .iter()
            .flat_map(|queued| TaskClass::ALL.map(|class| (*queued, class, sum(*queued, class))))
            .collect();
        let oldest_of = |counts: &PartitionCounts| {
            counts.by_minute.iter().find(|(_, count)| **count > 0).map(|(minute, _)| *minute)
        };
        let oldest = state.partitions.values().filter_map(oldest_of);
        let oldest_accepted_at = oldest.min().and_then(|minute| Timestamp::from_second(minute * 60).ok());
        drop(state);
        QueueSummary { recipients, oldest_accepted_at, top_domains: self.top_domains(top) }
    }

    /// The domains with the most recipients. All tasks of a domain that one node accepted are in one partition, so the
    /// overall top domains are among the top domains of the partitions. Commits wait for one partition at most.
    fn top_domains(&self, top: usize) -> Vec<(String, u64)> {
        if top == 0 {
            return Vec::new();
        }
        let partitions: Vec<u16> = self.state.lock().partitions.keys().copied().collect();
        let longest = partitions.into_iter().flat_map(|partition| self.longest_of(partition, top));
        let longest: HashSet<Box<[u8]>> = longest.collect();
        let state = self.state.lock();
        let sum = |domain: Box<[u8]>| {
            let everywhere = state.partitions.values().filter_map(|counts| counts.by_domain.get(&domain));
            let count: i64 = everywhere.flatten().sum();
            (domain, count)
        };
        let mut found: Vec<_> = longest.into_iter().map(sum).filter(|(_, count)| *count > 0).collect();
        drop(state);
        found.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        found.truncate(top);
        let to_text =
            |(domain, count): (Box<[u8]>, i64)| (String::from_utf8_lossy(&domain).into_owned(), count.unsigned_abs());
        found.into_iter().map(to_text).collect()
    }

    /// The domains with the most recipients in a partition, in no order.
    fn longest_of(&self, partition: u16, top: usize) -> Vec<Box<[u8]>> {
        let state = self.state.lock();
        let Some(counts) = state.partitions.get(&partition) else { return Vec::new() };
        // Min-heap of the largest counts.
        let mut longest = BinaryHeap::new();
        for (domain, counts) in &counts.by_domain {
            let count: i64 = counts.iter().sum();
            if longest.len() < top {
                longest.push(Reverse((count, domain)));
            } else if let Some(mut least) = longest.peek_mut()
                && count > least.0.0
            {
                *least = Reverse((count, domain));
            }
        }
        longest.into_iter().map(|Reverse((_, domain))| domain.clone()).collect()
    }
}

/// Guard for the count of a commit in progress.
#[derive(Debug)]
pub(crate) struct CommitCount(Option<(Arc<QueueCounts>, u64)>);

impl CommitCount {
    pub(crate) fn end(mut self, ended: CommitResult) {
        if let Some((counts, number)) = self.0.take() {
            counts.end(number, ended);
        }
    }
}

impl Drop for CommitCount {
    fn drop(&mut self) {
        if let Some((counts, number)) = self.0.take() {
            counts.end(number, CommitResult::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Store};
    use crate::task::{self, tests::task};
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn total(summary: &QueueSummary) -> u64 {
        summary.recipients.iter().map(|(.., count)| count).sum()
    }

    fn count(summary: &QueueSummary, state: QueuedState) -> u64 {
        summary.recipients.iter().filter(|(of, ..)| *of == state).map(|(.., count)| count).sum()
    }

    async fn write(store: &Store, write: impl FnOnce(&mut Batch)) {
        let mut batch = Batch::progress();
        write(&mut batch);
        store.commit(batch).await.unwrap();
    }

    #[tokio::test]
    async fn counts_follow_commits() {
        let store = Store::memory();
        let (first, second) = (task("b.example", 10, 1), task("c.example", 20, 2));
        write(&store, |batch| task::put_new(batch, &first)).await;
        store.queue_counts().track(&[7]);
        while store.queue_counts().read(&store, at(0)).await.unwrap() {}
        write(&store, |batch| task::put_new(batch, &second)).await;
        let summary = store.queue_counts().summary(10);
        assert_eq!((total(&summary), count(&summary, QueuedState::Queued)), (2, 2));
        assert_eq!(summary.top_domains, [("b.example".to_owned(), 1), ("c.example".to_owned(), 1)]);
        assert_eq!(summary.oldest_accepted_at, Some(Timestamp::UNIX_EPOCH));

        let later = Task { attempts: 1, due: Timestamp::from_second(99).unwrap(), ..first.clone() };
        write(&store, |batch| {
            task::remove(batch, &first, None);
            task::put(batch, &later);
        })
        .await;
        let held = Task { held: true, ..second.clone() };
        let row = crate::codec::encode(&second);
        write(&store, |batch| task::update(batch, &second, &row, &held)).await;
        let summary = store.queue_counts().summary(10);
        assert_eq!(count(&summary, QueuedState::Deferred), 1);
        assert_eq!((count(&summary, QueuedState::Held), total(&summary)), (1, 2));
        let (b, c) = (store.queue_counts().domain("b.example"), store.queue_counts().domain("c.example"));
        assert_eq!((b.queued, b.deferred, b.held, c.queued, c.held), (0, 1, 0, 0, 1));
        assert_eq!(store.queue_counts().domains(7).len(), 2);

        // A refused commit changes no counts.
        let mut batch = Batch::progress();
        task::remove(&mut batch, &first, None);
        assert!(store.commit(batch).await.is_err());
        assert_eq!(total(&store.queue_counts().summary(10)), 2);
        write(&store, |batch| task::remove(batch, &later, None)).await;
        write(&store, |batch| task::remove(batch, &held, None)).await;
        let summary = store.queue_counts().summary(10);
        assert_eq!((total(&summary), summary.oldest_accepted_at), (0, None));
        assert!(summary.top_domains.is_empty());
        // A partition of another node does not count here.
        store.queue_counts().track(&[]);
        write(&store, |batch| task::put_new(batch, &task("d.example", 1, 9))).await;
        assert_eq!(total(&store.queue_counts().summary(10)), 0);
    }

    #[tokio::test]
    async fn a_commit_with_an_unknown_result_causes_a_reread() {
        let (store, queued) = (Store::memory(), task("b.example", 10, 1));
        store.queue_counts().track(&[7]);
        while store.queue_counts().read(&store, at(0)).await.unwrap() {}
        let mut batch = Batch::progress();
        task::put_new(&mut batch, &queued);
        // The caller is dropped during the commit.
        drop(store.queue_counts().begin(batch.tasks.clone()));
        batch.tasks.clear();
        store.commit(batch).await.unwrap();
        assert!(store.queue_counts().is_incomplete());
        while store.queue_counts().read(&store, at(0)).await.unwrap() {}
        assert_eq!(total(&store.queue_counts().summary(10)), 1);
    }

    #[tokio::test]
    async fn a_commit_visible_after_the_reader_passed_is_counted_eventually() {
        let (store, queued) = (Store::memory(), task("b.example", 10, 1));
        let counts = store.queue_counts();
        counts.track(&[7]);
        while counts.read(&store, at(0)).await.unwrap() {}
        let mut batch = Batch::progress();
        task::put_new(&mut batch, &queued);
        drop(counts.begin(std::mem::take(&mut batch.tasks)));
        while counts.read(&store, at(0)).await.unwrap() {}
        store.commit(batch).await.unwrap();
        assert!(!counts.read(&store, at(59)).await.unwrap());
        assert!(counts.is_incomplete());
        while counts.read(&store, at(60)).await.unwrap() {}
        assert!(!counts.is_incomplete());
        assert_eq!(total(&counts.summary(10)), 1);
    }

    #[tokio::test]
    async fn a_negative_count_causes_a_reread() {
        let (store, queued) = (Store::memory(), task("b.example", 10, 1));
        let counts = store.queue_counts();
        counts.track(&[7]);
        while counts.read(&store, at(0)).await.unwrap() {}
        // Written without being counted.
        let mut batch = Batch::progress();
        task::put_new(&mut batch, &queued);
        batch.tasks.clear();
        store.commit(batch).await.unwrap();
        write(&store, |batch| task::remove(batch, &queued, None)).await;
        assert!(counts.is_incomplete());
        assert_eq!(counts.summary(10).oldest_accepted_at, None);
        while counts.read(&store, at(0)).await.unwrap() {}
        assert!(!counts.is_incomplete());
        write(&store, |batch| task::put_new(batch, &queued)).await;
        assert_eq!(total(&counts.summary(10)), 1);
        assert!(counts.summary(0).top_domains.is_empty());
        assert_eq!(counts.summary(1).top_domains, [("b.example".to_owned(), 1)]);
    }

    /// A step of a commit or of the reader, in any order.
    #[derive(Debug, Clone, Copy)]
    enum CountStep {
        Begin(u8),
        Visible(u8),
        End(u8),
        SliceBegins,
        SliceSeen,
        SliceRead,
    }

    fn steps() -> impl Strategy<Value = Vec<CountStep>> {
        let step = prop_oneof![
            (0..8_u8).prop_map(CountStep::Begin),
            (0..8_u8).prop_map(CountStep::Visible),
            (0..8_u8).prop_map(CountStep::End),
            Just(CountStep::SliceBegins),
            Just(CountStep::SliceSeen),
            Just(CountStep::SliceRead),
        ];
        proptest::collection::vec(step, 0..80)
    }

    /// Model: eight tasks, written and deleted repeatedly by commits that become visible at some time between begin and
    /// end, while a reader passes two tasks per slice.
    struct Model {
        counts: Arc<QueueCounts>,
        rows: BTreeMap<Key, CountedTask>,
        open: HashMap<u8, (CommitCount, TaskChange, bool)>,
        slice: Option<(u16, Key, Option<SeenSlice>)>,
    }

    /// Tasks that the reader saw, and the position where it continues.
    type SeenSlice = (Vec<(Key, CountedTask)>, Option<Key>);

    impl Model {
        fn take(&mut self, step: CountStep) {
            match step {
                CountStep::Begin(n) if !self.open.contains_key(&n) => {
                    let task = task(&format!("{n}.example"), 10, u128::from(n));
                    let key = task::key_of(&task);
                    let is_put = !self.rows.contains_key(&key);
                    let change = TaskChange { key, task: CountedTask::from_task(&task), is_put };
                    let count = self.counts.begin(vec![change.clone()]);
                    self.open.insert(n, (count, change, false));
                }
                CountStep::Visible(n) => {
                    if let Some((_, change, is_visible @ false)) = self.open.get_mut(&n) {
                        *is_visible = true;
                        match change.is_put {
                            true => _ = self.rows.insert(change.key.clone(), change.task),
                            false => _ = self.rows.remove(&change.key),
                        }
                    }
                }
                CountStep::End(n) => {
                    if let Some((count, _, is_visible)) = self.open.remove(&n) {
                        count.end(if is_visible { CommitResult::Stored } else { CommitResult::Refused });
                    }
                }
                CountStep::SliceBegins if self.slice.is_none() => {
                    self.slice = self.counts.slice_begins(at(0), false).map(|(number, from)| (number, from, None));
                }
                CountStep::SliceSeen => {
                    if let Some((_, from, seen @ None)) = &mut self.slice {
                        let rows = self.rows.range(from.clone()..).take(2);
                        let rows: Vec<_> = rows.map(|(key, task)| (key.clone(), *task)).collect();
                        let next = rows.get(1).map(|(last, _)| crate::key::successor(last));
                        *seen = Some((rows, next));
                    }
                }
                CountStep::SliceRead => {
                    if let Some((number, from, seen)) = self.slice.take() {
                        match seen {
                            Some((rows, next)) => self.counts.slice_read(number, at(0), rows, next),
                            None => self.slice = Some((number, from, None)),
                        }
                    }
                }
                CountStep::Begin(_) | CountStep::SliceBegins => {}
            }
        }
    }

    proptest! {
        #[test]
        fn counts_are_right_for_any_interleaving_of_commits_and_reader(steps in steps()) {
            let counts = Arc::new(QueueCounts::default());
            counts.track(&[7]);
            let mut model =
                Model { counts: Arc::clone(&counts), rows: BTreeMap::new(), open: HashMap::new(), slice: None };
            steps.into_iter().for_each(|step| model.take(step));
            (0..8).for_each(|n| model.take(CountStep::End(n)));
            for _ in 0..20 {
                [CountStep::SliceBegins, CountStep::SliceSeen, CountStep::SliceRead].into_iter().for_each(|step| model.take(step));
            }
            prop_assert!(!counts.is_incomplete());
            prop_assert_eq!(total(&counts.summary(10)), model.rows.len() as u64);
            let domains: u64 = counts.summary(10).top_domains.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(domains, model.rows.len() as u64);
        }
    }
}
