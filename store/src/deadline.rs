//! Deadlines: which tasks are worth nothing after a time, by partition and that time. Kept by [`crate::task`], in the
//! commits that write tasks and take them away.
//!
//! ```text
//! Deadline · partition · deadline · email · recipient  ─►  the key of the task
//! ```

use jiff::Timestamp;
use mail::task::Task;

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row;

fn key_of(task: &Task) -> Key {
    key(Space::Deadline)
        .u16(task.partition)
        .time(task.expires_at)
        .id(task.id.email.to_bytes())
        .u16(task.id.recipient)
        .build()
}

/// The task lies at this key.
pub(crate) fn put(batch: &mut Batch, task: &Task, at: &Key) {
    if task.has_deadline {
        batch.put(key_of(task), at.to_vec());
    }
}

/// The task is taken away.
pub(crate) fn take(batch: &mut Batch, task: &Task) {
    if task.has_deadline {
        batch.delete(key_of(task));
    }
}

/// What of a partition is worth nothing any more.
#[derive(Debug, Default)]
pub struct Past {
    /// The tasks with their rows, the longest past first. One that cannot be read is left out: where it lies,
    /// [`crate::task::list`] says so.
    pub tasks: Vec<(Task, Value)>,
    /// Where to go on, when there may be more.
    pub more: Option<Key>,
    /// The next deadline, if it is known.
    pub next: Option<Timestamp>,
}

/// What of a partition had its deadline before `now`, at most `limit` of it, from a key on ([`Past::more`]).
///
/// # Errors
/// The store cannot be read.
pub async fn past(
    store: &Store,
    partition: u16,
    from: Option<Key>,
    now: Timestamp,
    limit: usize,
) -> Result<Past, ReadError> {
    let whole = key(Space::Deadline).u16(partition).range();
    let range = from.unwrap_or(whole.start)..whole.end;
    let rows = store.scan(range, Order::Ascending, limit).await?;
    let more = rows.last().filter(|_| rows.len() == limit).map(|(last, _)| crate::key::after(last));
    let mut past = Past { more, ..Past::default() };
    let mut at = Vec::with_capacity(rows.len());
    for (deadline, task) in rows {
        match read_time(&deadline) {
            Ok(deadline) if deadline >= now => {
                (past.more, past.next) = (None, Some(deadline));
                break;
            }
            _ => at.push(task),
        }
    }
    let found = store.get_many(&at).await?;
    for (at, row) in at.iter().zip(found) {
        if let Some(row) = row
            && let Ok(task) = crate::task::read(at, &row)
        {
            past.tasks.push((task, row));
        }
    }
    Ok(past)
}

fn read_time(deadline: &Key) -> Result<Timestamp, ReadError> {
    let mut reader = KeyReader::new(Space::Deadline, deadline).map_err(row::damaged)?;
    reader.u16().and_then(|_| reader.time()).map_err(row::damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::tests::task;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn tasks_are_found_once_their_deadline_has_passed() {
        let store = Store::memory();
        let with = |deadline, number| Task {
            has_deadline: true,
            expires_at: at(deadline),
            ..task("b.example", 10, number)
        };
        let (late, early, open) = (with(30, 1), with(20, 2), with(50, 3));
        let patient = task("b.example", 10, 4);
        let mut batch = Batch::intake();
        for task in [&late, &early, &open, &patient] {
            crate::task::put(&mut batch, task);
        }
        store.commit(batch).await.unwrap();
        // Tried again later: its deadline is as it was.
        let moved = Task { due: at(15), ..late.clone() };
        let mut batch = Batch::progress();
        crate::task::take(&mut batch, &late, None);
        crate::task::put(&mut batch, &moved);
        store.commit(batch).await.unwrap();
        let found = past(&store, late.partition, None, at(40), 10).await.unwrap();
        let tasks: Vec<Task> = found.tasks.into_iter().map(|(task, _)| task).collect();
        assert_eq!(tasks, [early.clone(), moved.clone()]);
        assert_eq!((found.more, found.next), (None, Some(at(50))));
        // A page at a time.
        let first = past(&store, late.partition, None, at(40), 1).await.unwrap();
        let second = past(&store, late.partition, first.more, at(40), 1).await.unwrap();
        assert_eq!((&first.tasks[0].0, &second.tasks[0].0), (&early, &moved));

        let mut batch = Batch::progress();
        for task in [&early, &moved, &open] {
            crate::task::take(&mut batch, task, None);
        }
        store.commit(batch).await.unwrap();
        let found = past(&store, late.partition, None, at(90), 10).await.unwrap();
        assert!(found.tasks.is_empty() && found.next.is_none(), "{found:?}");
    }
}
