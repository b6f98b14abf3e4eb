//! Deadline index: tasks by partition and the time at which each must be examined regardless of its due time, to send a
//! delay report or because it expires. [`crate::task`] maintains it in the commits that write and delete tasks.
//!
//! ```text
//! Deadline · partition · time · email · recipient  ─►  the key of the task
//! Deadline · 65535                                 ─►  (empty): tasks of older versions are indexed
//! ```
//!
//! Tasks held by the operator have no entry, unless the client set a deliver-by time.

use jiff::Timestamp;
use model::task::Task;

use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, read_time};
use crate::rows;

/// Pseudo partition of the marker that all tasks are indexed; no partition has this number.
const INDEXED: u16 = u16::MAX;

fn key_of(task: &Task) -> Key {
    key(Space::Deadline)
        .u16(task.partition)
        .time(task.delay_report_at().unwrap_or(task.expires_at))
        .id(task.id.email.to_bytes())
        .u16(task.id.recipient)
        .build()
}

/// Adds the entry of a new task with this key.
pub(crate) fn put_new(batch: &mut Batch, task: &Task, at: &Key) {
    batch.put_fresh(key_of(task), at.to_vec());
}

/// Writes the entry of a task with this key, unless it is held without a deliver-by time.
pub(crate) fn put(batch: &mut Batch, task: &Task, at: &Key) {
    if task.has_deadline || !task.held {
        batch.put(key_of(task), at.to_vec());
    }
}

/// Deletes the entry of a task.
pub(crate) fn remove(batch: &mut Batch, task: &Task) {
    batch.delete(key_of(task));
}

/// Returns whether the tasks of older versions are indexed.
pub async fn is_indexed(store: &Store) -> Result<bool> {
    Ok(store.get(&key(Space::Deadline).u16(INDEXED).build()).await?.is_some())
}

/// Adds entries for tasks that an older version wrote.
pub fn index(batch: &mut Batch, tasks: &[(Task, Value)]) {
    tasks.iter().for_each(|(task, _)| put(batch, task, &crate::task::key_of(task)));
}

/// Marks that the tasks of older versions are indexed.
pub fn finish_index(batch: &mut Batch) {
    batch.put(key(Space::Deadline).u16(INDEXED).build(), Value::new());
}

/// A page of overdue tasks of one partition.
#[derive(Debug, Default)]
pub struct OverdueTasks {
    /// The tasks with their rows, longest overdue first. Tasks that cannot be decoded are left out;
    /// [`crate::task::list`] reports them.
    pub tasks: Vec<(Task, Value)>,
    /// Entries whose task no longer exists.
    pub orphans: Vec<(Key, Value)>,
    /// Start of the next page, if there may be one.
    pub next_page: Option<Key>,
    /// The next deadline, if known.
    pub next: Option<Timestamp>,
}

/// Deletes entries whose task no longer exists. The commit conflicts if one was rewritten.
pub fn delete_orphans(batch: &mut Batch, orphans: &[(Key, Value)]) {
    for (at, row) in orphans {
        batch.remove(at.clone(), row.clone());
    }
}

/// Lists the tasks of a partition whose deadline is before `now`, at most `limit`, from a key on
/// ([`OverdueTasks::next_page`]).
pub async fn list_overdue(
    store: &Store,
    partition: u16,
    from: Option<Key>,
    now: Timestamp,
    limit: usize,
) -> Result<OverdueTasks> {
    let whole = key(Space::Deadline).u16(partition).range();
    let range = from.unwrap_or(whole.start)..whole.end;
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let next_page = rows::next_page(&rows, limit);
    let mut past = OverdueTasks { next_page, ..OverdueTasks::default() };
    let mut at = Vec::with_capacity(rows.len());
    for (deadline, task) in rows {
        match read_time(Space::Deadline, &deadline) {
            Ok(deadline) if deadline >= now => {
                (past.next_page, past.next) = (None, Some(deadline));
                break;
            }
            _ => at.push((deadline, task)),
        }
    }
    let tasks: Vec<Key> = at.iter().map(|(_, task)| task.clone()).collect();
    let found = store.get_many(&tasks).await?;
    for ((deadline, task_key), row) in at.into_iter().zip(found) {
        match row {
            None => past.orphans.push((deadline, task_key)),
            Some(row) => past.tasks.extend(crate::task::read(&task_key, &row).ok().map(|task| (task, row))),
        }
    }
    Ok(past)
}

#[cfg(test)]
mod tests {
    use model::task::{DELAY_REPORT_AFTER, LAST_ATTEMPT_GRACE};

    use super::*;
    use crate::task::tests::task;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn tasks_are_listed_once_their_deadline_has_passed() {
        let store = Store::memory();
        let with = |deadline, number| Task { expires_at: at(deadline), ..task("b.example", 10, number) };
        let (late, early, open) = (with(30, 1), with(20, 2), with(50, 3));
        let mut batch = Batch::intake();
        for task in [&late, &early, &open] {
            crate::task::put_new(&mut batch, task);
        }
        store.commit(batch).await.unwrap();
        // A retry changes the due time, not the deadline.
        let moved = Task { due: at(15), ..late.clone() };
        let mut batch = Batch::progress();
        crate::task::remove(&mut batch, &late, None);
        crate::task::put(&mut batch, &moved);
        store.commit(batch).await.unwrap();
        let found = list_overdue(&store, late.partition, None, at(40), 10).await.unwrap();
        let tasks: Vec<Task> = found.tasks.into_iter().map(|(task, _)| task).collect();
        assert_eq!(tasks, [early.clone(), moved.clone()]);
        assert_eq!((found.next_page, found.next), (None, Some(at(50))));
        // Page by page.
        let first = list_overdue(&store, late.partition, None, at(40), 1).await.unwrap();
        let second = list_overdue(&store, late.partition, first.next_page, at(40), 1).await.unwrap();
        assert_eq!((&first.tasks[0].0, &second.tasks[0].0), (&early, &moved));

        let mut batch = Batch::progress();
        for task in [&early, &moved, &open] {
            crate::task::remove(&mut batch, task, None);
        }
        store.commit(batch).await.unwrap();
        let found = list_overdue(&store, late.partition, None, at(90), 10).await.unwrap();
        assert!(found.tasks.is_empty() && found.next.is_none(), "{found:?}");
    }

    #[tokio::test]
    async fn a_requested_delay_report_is_due_before_expiry() {
        let store = Store::memory();
        let mut requested = task("b.example", 10, 1);
        requested.expires_at = at(100_000);
        requested.notify.delay = true;
        let mut batch = Batch::intake();
        crate::task::put_new(&mut batch, &requested);
        store.commit(batch).await.unwrap();
        let late = requested.accepted_at + DELAY_REPORT_AFTER;
        let found = async |now| list_overdue(&store, requested.partition, None, now, 10).await.unwrap();
        assert_eq!(found(late).await.next, Some(late));
        let [(_, row)]: [(Task, Value); 1] = found(late + LAST_ATTEMPT_GRACE).await.tasks.try_into().unwrap();
        let mut after = requested.clone();
        after.notify.delay = false;
        let mut batch = Batch::progress();
        crate::task::update(&mut batch, &requested, &row, &after);
        store.commit(batch).await.unwrap();
        assert_eq!(found(late + LAST_ATTEMPT_GRACE).await.next, Some(at(100_000)));
    }

    /// A held task has no deadline entry.
    #[tokio::test]
    async fn held_tasks_are_not_overdue() {
        let store = Store::memory();
        let task = Task { expires_at: at(20), ..task("b.example", 10, 1) };
        let mut batch = Batch::intake();
        crate::task::put_new(&mut batch, &task);
        store.commit(batch).await.unwrap();
        let change = async |before: &Task, after: &Task| {
            let row = crate::codec::encode(before);
            let mut batch = Batch::progress();
            crate::task::update(&mut batch, before, &row, after);
            store.commit(batch).await.unwrap();
            list_overdue(&store, before.partition, None, at(40), 10).await.unwrap().tasks.len()
        };
        let held = Task { held: true, ..task.clone() };
        assert_eq!(change(&task, &held).await, 0);
        assert_eq!(change(&held, &task).await, 1);
    }

    #[tokio::test]
    async fn entries_without_a_task_are_listed_as_orphans() {
        let store = Store::memory();
        let task = Task { expires_at: at(20), ..task("b.example", 10, 1) };
        let mut batch = Batch::progress();
        index(&mut batch, &[(task.clone(), Value::new())]);
        finish_index(&mut batch);
        store.commit(batch).await.unwrap();
        assert!(is_indexed(&store).await.unwrap());
        let found = list_overdue(&store, task.partition, None, at(40), 10).await.unwrap();
        assert_eq!((found.tasks.len(), found.orphans.len()), (0, 1));
        let mut batch = Batch::progress();
        delete_orphans(&mut batch, &found.orphans);
        store.commit(batch).await.unwrap();
        assert!(list_overdue(&store, task.partition, None, at(40), 10).await.unwrap().orphans.is_empty());
    }
}
