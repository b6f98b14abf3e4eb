//! How many recipients are queued, by state, class and domain: kept in memory while tasks are written, so that nobody
//! has to scan the queue to know.
//!
//! ```text
//! batch with task changes ─► begin ─[commit]─► end ─► counts of the partition
//! partition taken ─► track ─► slices of its tasks are read once, beside the work ─► counts are whole
//! ```
//!
//! A partition has one owner, and all changes to its tasks are the owner's commits. While its tasks are read for the
//! first time, a change behind the reader is added, and one before it is left to the reader. A commit that is open while
//! the reader passes its keys may be seen by it or not: what was counted of those keys is remembered until the commit
//! ends. A commit whose end is unknown makes its partitions doubtful: they are read again at once, and once more
//! [`SETTLED_AFTER`] later, since that commit may become visible behind the reader.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use mail::task::{Task, TaskClass};

use crate::engine::{Key, ReadError, Store};
use crate::key::{KeyReader, Space, key};
use crate::task;

/// Tasks read at once.
const SLICE_TASKS: usize = 1_000;
/// After a commit whose end is unknown, a partition is read a last time so long after the store has answered a whole
/// read. No commit is on its way for so long: the writers settle each within 30 s of an answering store, and the
/// server ends a transaction that waits after 5 s, a wait for a lock after 10 s.
const SETTLED_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// What a queued recipient waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueuedState {
    /// Its first attempt.
    Queued = 0,
    /// Another attempt.
    Deferred = 1,
    /// The operator, who holds it.
    Held = 2,
}

impl QueuedState {
    /// All.
    pub const ALL: [Self; 3] = [Self::Queued, Self::Deferred, Self::Held];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Deferred => "deferred",
            Self::Held => "held",
        }
    }
}

/// What is counted of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedTask {
    state: QueuedState,
    class: TaskClass,
    /// When it was accepted, in minutes since 1970.
    minute: i64,
}

impl CountedTask {
    pub(crate) fn of(task: &Task) -> Self {
        let state = match task {
            Task { held: true, .. } => QueuedState::Held,
            Task { attempts: 0, .. } => QueuedState::Queued,
            _ => QueuedState::Deferred,
        };
        Self { state, class: task.class, minute: task.accepted_at.as_second().div_euclid(60) }
    }
}

/// A task that a batch writes or takes away.
#[derive(Debug, Clone)]
pub(crate) struct TaskChange {
    pub(crate) key: Key,
    pub(crate) task: CountedTask,
    pub(crate) is_put: bool,
}

/// The counts of one partition, as far as its tasks were read.
#[derive(Debug, Default)]
struct PartitionCounts {
    by_state: [[i64; TaskClass::ALL.len()]; QueuedState::ALL.len()],
    by_minute: BTreeMap<i64, i64>,
    /// By the domain as it stands in the keys.
    by_domain: HashMap<Box<[u8]>, i64>,
    /// Counts of states, minutes and domains that are below zero. Two commits that end in the other order than they
    /// became visible cause some for a moment; any that stay are a mistake.
    negatives: usize,
    reader: Reader,
    settling: Settling,
}

/// Whether a commit whose end is unknown may still become visible.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Settling {
    #[default]
    No,
    /// It may, and the partition was not read whole since.
    Unread,
    /// It may until then; then the partition is read a last time.
    Until(Timestamp),
}

/// How far the tasks of a partition were read.
#[derive(Debug, Default)]
enum Reader {
    /// Up to this key; and what was committed while the next slice is being read.
    At { next: Key, meanwhile: Option<Vec<(Key, Option<CountedTask>)>> },
    /// All.
    Done,
    /// Not at all, or a commit's end is not known: from the start.
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
        match self.by_domain.get_mut(domain) {
            Some(count) => {
                if change(count, by, negatives) == 0 {
                    self.by_domain.remove(domain);
                }
            }
            None => {
                let mut count = 0;
                change(&mut count, by, negatives);
                self.by_domain.insert(domain.into(), count);
            }
        }
    }

    /// Whether it is read whole, and what was read stands.
    fn is_whole(&self) -> bool {
        matches!(self.reader, Reader::Done) && self.settling == Settling::No && self.negatives == 0
    }

    /// Decides whether it is to be read anew. `is_away`: the store does not answer, and settles nothing.
    fn review(&mut self, now: Timestamp, is_away: bool) {
        match self.settling {
            Settling::Until(_) if is_away => self.settling = Settling::Unread,
            Settling::Until(settled_at) if now >= settled_at => {
                self.settling = Settling::No;
                self.reader = Reader::Doubtful;
            }
            Settling::Unread if matches!(self.reader, Reader::Done) => self.reader = Reader::Doubtful,
            _ if matches!(self.reader, Reader::Done) && self.negatives > 0 => self.reader = Reader::Doubtful,
            _ => {}
        }
    }

    /// A commit has ended: this is the task at a key now. `before` is what was counted of it.
    fn settle(&mut self, key: &Key, before: Option<CountedTask>, after: Option<CountedTask>) {
        self.add(key, before, -1);
        self.add(key, after, 1);
    }
}

/// Adds to a count, and keeps the number of those below zero. Returns the count.
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

/// The domain as it stands in a task's key: nothing in it needs an escape.
fn domain_of(key: &Key) -> Option<&[u8]> {
    let mut reader = KeyReader::new(Space::Task, key).ok()?;
    reader.u16().ok()?;
    let rest = reader.rest();
    rest.get(..memchr::memchr(0, rest)?)
}

fn partition_of(key: &Key) -> Option<u16> {
    KeyReader::new(Space::Task, key).ok()?.u16().ok()
}

/// A commit on its way.
#[derive(Debug)]
struct OpenCommit {
    changes: Vec<TaskChange>,
    /// What a reader counted of its keys meanwhile.
    counted: Vec<(Key, Option<CountedTask>)>,
}

impl OpenCommit {
    /// Each key once, with the task at it before and after.
    fn tasks(&self) -> Vec<(&Key, Option<CountedTask>, Option<CountedTask>)> {
        let mut places: HashMap<&Key, usize> = HashMap::with_capacity(self.changes.len());
        let mut tasks: Vec<(&Key, Option<CountedTask>, Option<CountedTask>)> = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            let after = change.is_put.then_some(change.task);
            let place = *places.entry(&change.key).or_insert(tasks.len());
            match tasks.get_mut(place) {
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

/// How a commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Stored,
    Refused,
    Unknown,
}

/// What is queued in the partitions of this node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueSummary {
    /// Recipients by state and class, none left out.
    pub recipients: Vec<(QueuedState, TaskClass, u64)>,
    /// When the oldest was accepted, to the minute.
    pub oldest_accepted_at: Option<Timestamp>,
    /// The recipient domains that most waits for, the most first.
    pub top_domains: Vec<(String, u64)>,
}

/// The counts of all partitions of this node.
#[derive(Debug, Default)]
pub struct QueueCounts {
    state: Mutex<State>,
}

impl QueueCounts {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit that changes tasks begins. It ends with [`CommitCount::end`]; dropped before, its end is unknown.
    pub(crate) fn begin(self: &Arc<Self>, changes: Vec<TaskChange>) -> CommitCount {
        if changes.is_empty() {
            return CommitCount(None);
        }
        let mut state = self.lock();
        state.commits += 1;
        let number = state.commits;
        state.open.insert(number, OpenCommit { changes, counted: Vec::new() });
        drop(state);
        CommitCount(Some((Arc::clone(self), number)))
    }

    fn end(&self, number: u64, ended: Ended) {
        let mut state = self.lock();
        let State { open, partitions, .. } = &mut *state;
        let Some(commit) = open.remove(&number) else { return };
        if ended == Ended::Refused {
            return;
        }
        for (key, before, after) in commit.tasks() {
            let Some(partition) = partition_of(key).and_then(|number| partitions.get_mut(&number)) else {
                continue;
            };
            if ended == Ended::Unknown {
                (partition.reader, partition.settling) = (Reader::Doubtful, Settling::Unread);
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
                // It is read anew.
                Reader::Doubtful => {}
            }
        }
    }

    /// Counts these partitions from now on, and no others. Those that are new, or in doubt, are to be read:
    /// [`QueueCounts::read`].
    pub fn track(&self, partitions: &[u16]) {
        let mut state = self.lock();
        state.partitions.retain(|number, _| partitions.contains(number));
        for number in partitions {
            state.partitions.entry(*number).or_default();
        }
    }

    /// A partition was another node's for a while: it is read anew.
    pub fn doubt(&self, partition: u16) {
        if let Some(counts) = self.lock().partitions.get_mut(&partition) {
            counts.reader = Reader::Doubtful;
        }
    }

    /// Whether some partition is to be read.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.lock().partitions.values().any(|counts| !counts.is_whole())
    }

    /// Reads the next slice of a partition that is not counted whole. False: there is none, or it is not time yet for
    /// the last read of some.
    ///
    /// # Errors
    /// The store cannot be read; the slice is read again.
    pub async fn read(&self, store: &Store, now: Timestamp) -> Result<bool, ReadError> {
        let Some((partition, from)) = self.slice_begins(now, store.is_away()) else { return Ok(false) };
        let slice = task::list_partition(store, partition, from, SLICE_TASKS).await?;
        let next = slice.next.clone();
        let tasks = slice.tasks.iter().map(|(task, _)| (task::key_of(task), CountedTask::of(task)));
        self.slice_read((partition, now), tasks.collect(), next);
        Ok(true)
    }

    fn slice_begins(&self, now: Timestamp, is_away: bool) -> Option<(u16, Key)> {
        let mut state = self.lock();
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

    /// A slice was read, begun at `now`: these tasks, up to `to`, or to the partition's end.
    fn slice_read(&self, (partition, now): (u16, Timestamp), tasks: Vec<(Key, CountedTask)>, to: Option<Key>) {
        let mut state = self.lock();
        let State { open, partitions, .. } = &mut *state;
        let Some(counts) = partitions.get_mut(&partition) else { return };
        // In doubt since, or read by somebody else: then it is read again.
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
        if matches!((&counts.reader, counts.settling), (Reader::Done, Settling::Unread)) {
            counts.settling = Settling::Until(now.checked_add(SETTLED_AFTER).unwrap_or(Timestamp::MAX));
        }
        for (key, task) in &tasks {
            counts.add(key, Some(*task), 1);
        }
    }

    /// What is queued, with the `top` domains that most waits for.
    #[must_use]
    pub fn summary(&self, top: usize) -> QueueSummary {
        let state = self.lock();
        let sum = |of: QueuedState, class: TaskClass| {
            let count = |counts: &PartitionCounts| {
                counts.by_state.get(of as usize).and_then(|by| by.get(class as usize)).copied().unwrap_or(0)
            };
            u64::try_from(state.partitions.values().map(count).sum::<i64>()).unwrap_or(0)
        };
        let recipients =
            QueuedState::ALL.iter().flat_map(|of| TaskClass::ALL.map(|class| (*of, class, sum(*of, class)))).collect();
        let oldest_of = |counts: &PartitionCounts| {
            counts.by_minute.iter().find(|(_, count)| **count > 0).map(|(minute, _)| *minute)
        };
        let oldest = state.partitions.values().filter_map(oldest_of);
        let oldest_accepted_at = oldest.min().and_then(|minute| Timestamp::from_second(minute * 60).ok());
        QueueSummary { recipients, oldest_accepted_at, top_domains: top_domains(&state, top) }
    }
}

/// The domains that most waits for. All tasks of a domain that one node accepted lie in one partition, so the first of
/// all are among the first of each.
fn top_domains(state: &State, top: usize) -> Vec<(String, u64)> {
    if top == 0 {
        return Vec::new();
    }
    let mut found: HashMap<&[u8], i64> = HashMap::new();
    for counts in state.partitions.values() {
        // The shortest of the longest is on top.
        let mut longest = BinaryHeap::new();
        for (domain, count) in &counts.by_domain {
            if longest.len() < top {
                longest.push(Reverse((*count, &**domain)));
            } else if let Some(mut least) = longest.peek_mut()
                && *count > least.0.0
            {
                *least = Reverse((*count, &**domain));
            }
        }
        for Reverse((_, domain)) in longest {
            let everywhere = state.partitions.values().filter_map(|counts| counts.by_domain.get(domain));
            found.entry(domain).or_insert_with(|| everywhere.sum());
        }
    }
    let mut found: Vec<(&[u8], i64)> = found.into_iter().filter(|(_, count)| *count > 0).collect();
    found.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    found.truncate(top);
    let shown = |(domain, count): (&[u8], i64)| (String::from_utf8_lossy(domain).into_owned(), count.unsigned_abs());
    found.into_iter().map(shown).collect()
}

/// The count of a commit that is on its way.
#[derive(Debug)]
pub(crate) struct CommitCount(Option<(Arc<QueueCounts>, u64)>);

impl CommitCount {
    pub(crate) fn end(mut self, ended: Ended) {
        if let Some((counts, number)) = self.0.take() {
            counts.end(number, ended);
        }
    }
}

impl Drop for CommitCount {
    fn drop(&mut self) {
        if let Some((counts, number)) = self.0.take() {
            counts.end(number, Ended::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Batch;
    use crate::task::tests::task;
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
    async fn counts_follow_what_is_written() {
        let store = Store::memory();
        let (one, two) = (task("b.example", 10, 1), task("c.example", 20, 2));
        write(&store, |batch| task::put_new(batch, &one)).await;
        store.queue_counts().track(&[7]);
        while store.queue_counts().read(&store, at(0)).await.unwrap() {}
        write(&store, |batch| task::put_new(batch, &two)).await;
        let summary = store.queue_counts().summary(10);
        assert_eq!((total(&summary), count(&summary, QueuedState::Queued)), (2, 2));
        assert_eq!(summary.top_domains, [("b.example".to_owned(), 1), ("c.example".to_owned(), 1)]);
        assert_eq!(summary.oldest_accepted_at, Some(Timestamp::UNIX_EPOCH));

        let later = Task { attempts: 1, due: Timestamp::from_second(99).unwrap(), ..one.clone() };
        write(&store, |batch| {
            task::remove(batch, &one, None);
            task::put(batch, &later);
        })
        .await;
        let held = Task { held: true, ..two.clone() };
        let row = crate::row::encode(&two);
        write(&store, |batch| task::update(batch, (&two, &row), &held)).await;
        let summary = store.queue_counts().summary(10);
        assert_eq!(count(&summary, QueuedState::Deferred), 1);
        assert_eq!((count(&summary, QueuedState::Held), total(&summary)), (1, 2));

        // What is refused counts nothing.
        let mut batch = Batch::progress();
        task::remove(&mut batch, &one, None);
        assert!(store.commit(batch).await.is_err());
        assert_eq!(total(&store.queue_counts().summary(10)), 2);
        write(&store, |batch| task::remove(batch, &later, None)).await;
        write(&store, |batch| task::remove(batch, &held, None)).await;
        let summary = store.queue_counts().summary(10);
        assert_eq!((total(&summary), summary.oldest_accepted_at), (0, None));
        assert!(summary.top_domains.is_empty());
        // A partition that went to another node counts here no more.
        store.queue_counts().track(&[]);
        write(&store, |batch| task::put_new(batch, &task("d.example", 1, 9))).await;
        assert_eq!(total(&store.queue_counts().summary(10)), 0);
    }

    #[tokio::test]
    async fn a_commit_whose_end_is_unknown_is_counted_by_reading_again() {
        let (store, one) = (Store::memory(), task("b.example", 10, 1));
        store.queue_counts().track(&[7]);
        while store.queue_counts().read(&store, at(0)).await.unwrap() {}
        let mut batch = Batch::progress();
        task::put_new(&mut batch, &one);
        // The caller is dropped while it commits.
        drop(store.queue_counts().begin(batch.tasks.clone()));
        batch.tasks.clear();
        store.commit(batch).await.unwrap();
        assert!(store.queue_counts().is_incomplete());
        while store.queue_counts().read(&store, at(0)).await.unwrap() {}
        assert_eq!(total(&store.queue_counts().summary(10)), 1);
    }

    #[tokio::test]
    async fn a_commit_that_becomes_visible_behind_the_reader_is_counted_in_the_end() {
        let (store, one) = (Store::memory(), task("b.example", 10, 1));
        let counts = store.queue_counts();
        counts.track(&[7]);
        while counts.read(&store, at(0)).await.unwrap() {}
        let mut batch = Batch::progress();
        task::put_new(&mut batch, &one);
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
    async fn a_count_below_zero_is_read_again() {
        let (store, one) = (Store::memory(), task("b.example", 10, 1));
        let counts = store.queue_counts();
        counts.track(&[7]);
        while counts.read(&store, at(0)).await.unwrap() {}
        // Written without being counted.
        let mut batch = Batch::progress();
        task::put_new(&mut batch, &one);
        batch.tasks.clear();
        store.commit(batch).await.unwrap();
        write(&store, |batch| task::remove(batch, &one, None)).await;
        assert!(counts.is_incomplete());
        assert_eq!(counts.summary(10).oldest_accepted_at, None);
        while counts.read(&store, at(0)).await.unwrap() {}
        assert!(!counts.is_incomplete());
        write(&store, |batch| task::put_new(batch, &one)).await;
        assert_eq!(total(&counts.summary(10)), 1);
        assert!(counts.summary(0).top_domains.is_empty());
        assert_eq!(counts.summary(1).top_domains, [("b.example".to_owned(), 1)]);
    }

    /// A step of a commit, or of the reader, in any order.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Begin(u8),
        Visible(u8),
        End(u8),
        SliceBegins,
        SliceSeen,
        SliceRead,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..8_u8).prop_map(Step::Begin),
            (0..8_u8).prop_map(Step::Visible),
            (0..8_u8).prop_map(Step::End),
            Just(Step::SliceBegins),
            Just(Step::SliceSeen),
            Just(Step::SliceRead),
        ];
        proptest::collection::vec(step, 0..80)
    }

    /// A model: eight tasks, each written and taken away again and again, by commits that become visible some time
    /// between their begin and their end, while a reader goes through them two at a time.
    struct Model {
        counts: Arc<QueueCounts>,
        rows: BTreeMap<Key, CountedTask>,
        open: HashMap<u8, (CommitCount, TaskChange, bool)>,
        slice: Option<(u16, Key, Option<SeenSlice>)>,
    }

    /// What the reader saw, and where it goes on.
    type SeenSlice = (Vec<(Key, CountedTask)>, Option<Key>);

    impl Model {
        fn take(&mut self, step: Step) {
            match step {
                Step::Begin(n) if !self.open.contains_key(&n) => {
                    let task = task(&format!("{n}.example"), 10, u128::from(n));
                    let key = task::key_of(&task);
                    let is_put = !self.rows.contains_key(&key);
                    let change = TaskChange { key, task: CountedTask::of(&task), is_put };
                    let count = self.counts.begin(vec![change.clone()]);
                    self.open.insert(n, (count, change, false));
                }
                Step::Visible(n) => {
                    if let Some((_, change, is_visible @ false)) = self.open.get_mut(&n) {
                        *is_visible = true;
                        match change.is_put {
                            true => _ = self.rows.insert(change.key.clone(), change.task),
                            false => _ = self.rows.remove(&change.key),
                        }
                    }
                }
                Step::End(n) => {
                    if let Some((count, _, is_visible)) = self.open.remove(&n) {
                        count.end(if is_visible { Ended::Stored } else { Ended::Refused });
                    }
                }
                Step::SliceBegins if self.slice.is_none() => {
                    self.slice = self.counts.slice_begins(at(0), false).map(|(number, from)| (number, from, None));
                }
                Step::SliceSeen => {
                    if let Some((_, from, seen @ None)) = &mut self.slice {
                        let rows = self.rows.range(from.clone()..).take(2);
                        let rows: Vec<_> = rows.map(|(key, task)| (key.clone(), *task)).collect();
                        let next = rows.get(1).map(|(last, _)| crate::key::successor(last));
                        *seen = Some((rows, next));
                    }
                }
                Step::SliceRead => {
                    if let Some((number, from, seen)) = self.slice.take() {
                        match seen {
                            Some((rows, next)) => self.counts.slice_read((number, at(0)), rows, next),
                            None => self.slice = Some((number, from, None)),
                        }
                    }
                }
                Step::Begin(_) | Step::SliceBegins => {}
            }
        }
    }

    proptest! {
        #[test]
        fn counts_are_right_however_commits_and_the_reader_meet(steps in steps()) {
            let counts = Arc::new(QueueCounts::default());
            counts.track(&[7]);
            let mut model =
                Model { counts: Arc::clone(&counts), rows: BTreeMap::new(), open: HashMap::new(), slice: None };
            steps.into_iter().for_each(|step| model.take(step));
            (0..8).for_each(|n| model.take(Step::End(n)));
            for _ in 0..20 {
                [Step::SliceBegins, Step::SliceSeen, Step::SliceRead].into_iter().for_each(|step| model.take(step));
            }
            prop_assert!(!counts.is_incomplete());
            prop_assert_eq!(total(&counts.summary(10)), model.rows.len() as u64);
            let domains: u64 = counts.summary(10).top_domains.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(domains, model.rows.len() as u64);
        }
    }
}
