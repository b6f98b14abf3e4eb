//! Delivery tasks: rows by queue and due time, one queue for each combination of destination domain, class and account.
//!
//! ```text
//! Task · partition · domain · class · account · due · email · recipient  ─►  the task
//! ```
//!
//! A node owns whole partitions by lease, so a queue has one owner. A new task is written to a partition of the node
//! that accepts it, the same one for all tasks of a domain. New mail is thus delivered from memory where it was
//! accepted, and a domain has few queues. Deferring a task moves it to another key; the old row is deleted in the same
//! commit. Tasks are also indexed by deadline ([`crate::deadline`]).

use std::ops::Range;

use jiff::Timestamp;
use message::address::DomainName;
use message::hexadecimal;
use model::id::{AccountId, EmailId};
use model::task::{QueueName, Task, TaskClass, TaskId};

use crate::codec::{self, stored};
use crate::deadline;
use crate::engine::{Batch, Key, ReadError, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key, successor};
use crate::queue_counts::{CountedTask, TaskChange};
use crate::rows;

/// Number of partitions of the task space. Never change it: the partition is part of every task's key.
pub const PARTITIONS: u16 = 64;

stored!(Task);

/// Maps a domain to one of `count` slots, always the same: folded FNV-1a.
pub fn slot_for_domain(domain: &DomainName, count: usize) -> usize {
    let hash = domain
        .as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let folded = (hash >> 32) ^ (hash & 0xffff_ffff);
    usize::try_from(folded % count.max(1) as u64).unwrap_or(0)
}

fn queue_prefix(queue: &QueueName) -> KeyBuilder {
    key(Space::Task).u16(queue.partition).text(queue.domain.as_str()).u8(queue.class as u8).account(queue.account)
}

pub fn key_of(task: &Task) -> Key {
    queue_prefix(&task.queue_name()).time(task.due).id(task.id.email.to_bytes()).u16(task.id.recipient).build()
}

/// The key at which a queue's tasks due at `due` or later begin.
pub fn due_start(queue: &QueueName, due: Timestamp) -> Key {
    queue_prefix(queue).time(due).build()
}

/// Registers a task change, to be counted when the batch is committed.
fn count(batch: &mut Batch, task: &Task, task_key: &Key, is_put: bool) {
    batch.tasks.push(TaskChange { key: task_key.clone(), task: CountedTask::from_task(task), is_put });
}

/// Writes the task of a newly accepted email.
pub fn put_new(batch: &mut Batch, task: &Task) {
    let task_key = key_of(task);
    deadline::put_new(batch, task, &task_key);
    count(batch, task, &task_key, true);
    batch.put_fresh(task_key, codec::encode(task));
}

/// Writes a task to a new key, after its due time or queue changed.
pub fn put(batch: &mut Batch, task: &Task) {
    let task_key = key_of(task);
    deadline::put(batch, task, &task_key);
    count(batch, task, &task_key, true);
    batch.put_fresh(task_key, codec::encode(task));
}

/// Deletes a task. The commit conflicts if its row has changed. `row` is the row as read, which an older version may
/// have encoded differently; `None` for a task that was just written.
pub fn remove(batch: &mut Batch, task: &Task, row: Option<&Value>) {
    let task_key = key_of(task);
    count(batch, task, &task_key, false);
    batch.remove(task_key, row.cloned().unwrap_or_else(|| codec::encode(task)));
    deadline::remove(batch, task);
}

/// Updates a task in place, to hold or release it. The commit conflicts if the row has changed since it was read.
pub fn update(batch: &mut Batch, before: &Task, row: &Value, after: &Task) {
    remove(batch, before, Some(row));
    let task_key = key_of(after);
    deadline::put(batch, after, &task_key);
    count(batch, after, &task_key, true);
    batch.put(task_key, codec::encode(after));
}

/// Finds the task of a recipient by its due time, in any partition, with its row.
pub async fn find(
    store: &Store,
    domain: &DomainName,
    class: TaskClass,
    account: AccountId,
    due: Timestamp,
    id: TaskId,
) -> Result<Option<(Task, Value)>> {
    let keys: Vec<Key> = (0..PARTITIONS)
        .map(|partition| {
            let queue = QueueName { partition, domain: domain.clone(), class, account };
            queue_prefix(&queue).time(due).id(id.email.to_bytes()).u16(id.recipient).build()
        })
        .collect();
    let row = store.get_many(&keys).await?.into_iter().flatten().next();
    row.map(|row| Ok((codec::decode(&row)?, row))).transpose()
}

/// Leaves a hint with an operator's order about an email, for the node that owns the partition. A newer hint about the
/// same email replaces it.
pub fn put_hint(batch: &mut Batch, partition: u16, account: AccountId, email: EmailId, order: &str) {
    let hint = key(Space::Hint).u16(partition).account(account).id(email.to_bytes()).build();
    batch.put(hint, order.as_bytes().to_vec());
}

/// An operator's order for the owner of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionHint {
    pub partition: u16,
    pub account: AccountId,
    pub email: EmailId,
    /// The order, as named by the queue.
    pub order: String,
    row: (Key, Value),
}

impl PartitionHint {
    /// Deletes a hint that was carried out. The commit conflicts if a newer one has replaced it.
    pub fn remove_hint(&self, batch: &mut Batch) {
        batch.remove(self.row.0.clone(), self.row.1.clone());
    }
}

/// Lists the hints of all partitions that follow `after`, at most `limit`.
pub async fn list_hints(store: &Store, after: Option<&PartitionHint>, limit: usize) -> Result<Vec<PartitionHint>> {
    let mut range = key(Space::Hint).range();
    if let Some(PartitionHint { row: (last, _), .. }) = after {
        range.start = successor(last);
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(hint_key, row): (Key, Value)| {
        let mut reader = KeyReader::new(Space::Hint, &hint_key)?;
        let (partition, account) = (reader.u16()?, reader.account()?);
        let email = EmailId::from_bytes(reader.id()?);
        let order = String::from_utf8_lossy(&row).into_owned();
        Ok(PartitionHint { partition, account, email, order, row: (hint_key, row) })
    };
    rows.into_iter().map(read).collect()
}

/// A page of tasks in key order.
#[derive(Debug, Default)]
pub struct TaskPage {
    /// Tasks with their rows.
    pub tasks: Vec<(Task, Value)>,
    /// Rows that cannot be decoded, with the error. They do not block other tasks.
    pub damaged: Vec<(Key, ReadError)>,
    /// Start of the next page, if there may be one.
    pub next: Option<Key>,
}

impl TaskPage {
    pub(crate) fn from_rows(rows: Vec<(Key, Value)>, limit: usize) -> Self {
        let next = rows::next_page(&rows, limit);
        let mut slice = Self { next, ..Self::default() };
        for (at, row) in rows {
            match read(&at, &row) {
                Ok(task) => slice.tasks.push((task, row)),
                Err(error) => slice.damaged.push((at, error)),
            }
        }
        slice
    }
}

/// Decodes a task. A task stored at another task's key is an error, because it could never be removed.
pub(crate) fn read(at: &Key, row: &Value) -> Result<Task> {
    let task = codec::decode(row)?;
    if key_of(&task) == *at { Ok(task) } else { Err(codec::damaged("the row is stored at the key of another task")) }
}

/// For the integrity check: describes the task and its fault, if the row is a damaged task.
pub(crate) fn describe_damage(at: &Key, row: &Value) -> Option<(String, String)> {
    if !Space::Task.holds(at) {
        return None;
    }
    let named = match read_key(at) {
        Ok((queue, due)) => format!("for {} of {}, due {due}", queue.domain, queue.account),
        Err(error) => {
            let key = hexadecimal::encode(at);
            return Some((key, format!("invalid task key: {error}")));
        }
    };
    read(at, row).err().map(|error| (named, error.to_string()))
}

/// Lists a queue's tasks from a key on, by due time, at most `limit`.
pub async fn list(store: &Store, queue: &QueueName, from: Key, limit: usize) -> Result<TaskPage> {
    let range = from..queue_prefix(queue).range().end;
    Ok(TaskPage::from_rows(store.scan(range, ScanOrder::Ascending, limit).await?, limit))
}

/// Counts the tasks that are due before this one in its queue, up to `limit`.
pub async fn count_due_before(store: &Store, task: &Task, limit: usize) -> Result<usize> {
    let range = queue_prefix(&task.queue_name()).range().start..key_of(task);
    rows::count(store, range, limit).await
}

/// Finds the first queue of a partition from a key on. Returns its name, the due time of its first task, and the key
/// from which to search for the next queue. Iterating over the queues costs one read each, regardless of the number of
/// tasks. Invalid keys are skipped.
pub async fn next_queue(
    store: &Store,
    partition: u16,
    from: Option<Key>,
) -> Result<Option<(QueueName, Timestamp, Key)>> {
    let whole = partition_range(partition);
    let mut from = from.unwrap_or(whole.start);
    while let Some((found, _)) = store.scan(from..whole.end.clone(), ScanOrder::Ascending, 1).await?.pop() {
        if let Ok((queue, due)) = read_key(&found) {
            let next = queue_prefix(&queue).range().end;
            return Ok(Some((queue, due, next)));
        }
        from = successor(&found);
    }
    Ok(None)
}

/// The keys of a domain's tasks in a partition.
pub(crate) fn domain_range(partition: u16, domain: &DomainName) -> Range<Key> {
    key(Space::Task).u16(partition).text(domain.as_str()).range()
}

/// The keys of all tasks.
pub(crate) fn all_range() -> Range<Key> {
    key(Space::Task).range()
}

/// The key at which to read on after a row: within its queue, or at the next one if the queue is not `wanted`.
pub(crate) fn after_row(row: &Key, wanted: impl FnOnce(&QueueName) -> bool) -> Key {
    match read_key(row) {
        Ok((queue, _)) if !wanted(&queue) => queue_prefix(&queue).range().end,
        _ => successor(row),
    }
}

/// Lists the first tasks of a domain in a partition, queue by queue, at most `limit`.
pub async fn list_domain(store: &Store, partition: u16, domain: &DomainName, limit: usize) -> Result<TaskPage> {
    let range = domain_range(partition, domain);
    Ok(TaskPage::from_rows(store.scan(range, ScanOrder::Ascending, limit).await?, limit))
}

fn partition_range(partition: u16) -> Range<Key> {
    key(Space::Task).u16(partition).range()
}

/// The partition of a task's key or key prefix; `None` for other keys.
pub fn partition_of_key(task_key: &[u8]) -> Option<u16> {
    let partition = KeyReader::new(Space::Task, task_key).ok()?.u16().ok()?;
    (partition < PARTITIONS).then_some(partition)
}

fn read_key(task_key: &[u8]) -> Result<(QueueName, Timestamp), crate::key::KeyDecodeError> {
    let wrong = |_| crate::key::KeyDecodeError { part: "queue" };
    let mut reader = KeyReader::new(Space::Task, task_key)?;
    let partition = reader.u16()?;
    let domain = reader.text()?.parse().map_err(wrong)?;
    let class = TaskClass::from_byte(reader.u8()?).ok_or(crate::key::KeyDecodeError { part: "class" })?;
    let account = reader.account()?;
    Ok((QueueName { partition, domain, class, account }, reader.time()?))
}

/// Lists the tasks of a partition from a key on, at most `limit`.
pub(crate) async fn list_partition(store: &Store, partition: u16, from: Key, limit: usize) -> Result<TaskPage> {
    let range = from..partition_range(partition).end;
    Ok(TaskPage::from_rows(store.scan(range, ScanOrder::Ascending, limit).await?, limit))
}

/// Lists all tasks, queue by queue, one page at a time, for the operator.
pub async fn list_all(store: &Store, from: Option<Key>, limit: usize) -> Result<TaskPage> {
    let whole = all_range();
    let range = from.unwrap_or(whole.start)..whole.end;
    Ok(TaskPage::from_rows(store.scan(range, ScanOrder::Ascending, limit).await?, limit))
}

#[cfg(test)]
pub(crate) mod tests {
    use model::recipient::{DsnOptions, RecipientKind};

    use super::*;

    /// First attempt of a transactional email.
    pub(crate) fn task(domain: &str, due: i64, number: u128) -> Task {
        let at = |s| Timestamp::from_second(s).unwrap();
        Task {
            id: TaskId { email: EmailId::new(at(1), number), recipient: 0 },
            partition: 7,
            account: AccountId::new(at(1), 1),
            class: TaskClass::Transactional,
            due: at(due),
            address: format!("a@{domain}").parse().unwrap(),
            kind: RecipientKind::To,
            domain: Some("example.com".parse().unwrap()),
            attempts: 0,
            replies: 0,
            accepted_at: at(1),
            expires_at: at(1_000),
            has_deadline: false,
            size_bytes: 1,
            smtputf8: false,
            require_tls: false,
            tls_optional: false,
            tls_enforced: false,
            eight_bit: false,
            notify: DsnOptions::default(),
            envelope_id: None,
            return_full: false,
            deliver_by: None,
            priority: None,
            held: false,
            route: None,
            plan: None,
        }
    }

    #[tokio::test]
    async fn queues_are_found_in_turn_and_tasks_by_due_time() {
        let store = Store::memory();
        let (late, early, other) = (task("b.example", 20, 1), task("b.example", 10, 2), task("c.example", 5, 3));
        let mut batch = Batch::intake();
        for task in [&late, &early, &other] {
            put(&mut batch, task);
        }
        store.commit(batch).await.unwrap();
        let mut queues = Vec::new();
        for partition in 0..PARTITIONS {
            let mut from = None;
            while let Some((queue, due, next)) = next_queue(&store, partition, from).await.unwrap() {
                queues.push((queue.domain.to_string(), due.as_second()));
                from = Some(next);
            }
        }
        queues.sort();
        assert_eq!(queues, [("b.example".to_owned(), 10), ("c.example".to_owned(), 5)]);
        let start = due_start(&late.queue_name(), Timestamp::UNIX_EPOCH);
        let tasks = |listed: TaskPage| listed.tasks.into_iter().map(|(task, _)| task).collect::<Vec<_>>();
        let listed = list(&store, &late.queue_name(), start, 10).await.unwrap();
        assert_eq!(tasks(listed), [early.clone(), late.clone()]);
        let start = due_start(&late.queue_name(), late.due);
        assert_eq!(tasks(list(&store, &late.queue_name(), start, 10).await.unwrap()), std::slice::from_ref(&late));

        let mut batch = Batch::progress();
        remove(&mut batch, &early, None);
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "removed twice");
    }

    #[tokio::test]
    async fn a_damaged_task_row_does_not_block_others() {
        let store = Store::memory();
        let (broken, misplaced, good) = (task("b.example", 1, 1), task("b.example", 2, 2), task("b.example", 3, 3));
        let mut batch = Batch::intake();
        batch.put(key_of(&broken), Value::from_static(b"[1,{\"id\":"));
        batch.put(key_of(&misplaced), codec::encode(&good));
        batch.put(key(Space::Task).u16(broken.partition).build(), Value::new());
        put(&mut batch, &good);
        store.commit(batch).await.unwrap();
        let start = due_start(&good.queue_name(), Timestamp::UNIX_EPOCH);
        let slice = list(&store, &good.queue_name(), start, 10).await.unwrap();
        assert_eq!((slice.tasks.len(), slice.damaged.len()), (1, 2));
        let slice = list_all(&store, None, 10).await.unwrap();
        assert_eq!((slice.tasks.len(), slice.damaged.len()), (1, 3));
        let partition = good.partition;
        let (queue, _, _) = next_queue(&store, partition, None).await.unwrap().unwrap();
        assert_eq!(queue, good.queue_name());
        let faults: Vec<_> = slice.damaged.iter().filter_map(|(at, _)| describe_damage(at, &Value::new())).collect();
        assert_eq!(faults.len(), 3);
        assert!(faults[1].0.contains("b.example"), "{faults:?}");
        assert_eq!(describe_damage(&key_of(&good), &codec::encode(&good)), None);
    }
}
