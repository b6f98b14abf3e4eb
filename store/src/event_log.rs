//! Event log of an account: its events in dispatch order, numbered from 1 without a gap.
//!
//! ```text
//! EventLogHead · account               ─►  the last number
//! EventLog     · account · last number ─►  a chunk: the events dispatched by one commit, with id, subject and kind
//! ```
//!
//! Appending checks the head row. Of two nodes that dispatch events of one account concurrently, one conflicts and
//! retries. A reader therefore never finds a new event before a number it has read. A chunk is one row; the details are
//! in the events' own rows.

use std::collections::HashMap;

use jiff::Timestamp;
use model::event::{Event, EventKind, Subject};
use model::id::{AccountId, EventId};
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows;

/// Most chunks per read: a chunk may have hundreds of events.
pub const CHUNKS_MAX: usize = 64;

/// An event's entry in its account's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLogEntry {
    pub number: u64,
    pub event: EventId,
    pub subject: Subject,
    pub kind: EventKind,
}

/// The events that one commit dispatched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventLogChunk {
    first: u64,
    told_at: Timestamp,
    entries: Vec<(EventId, Subject, EventKind)>,
}

stored!(EventLogChunk);

impl EventLogChunk {
    fn entries(&self) -> impl DoubleEndedIterator<Item = EventLogEntry> + '_ {
        let numbered = (0..self.entries.len()).map(|n| self.first.saturating_add(n as u64));
        let entries: Vec<EventLogEntry> = numbered
            .zip(&self.entries)
            .map(|(number, (event, subject, kind))| EventLogEntry {
                number,
                event: *event,
                subject: *subject,
                kind: *kind,
            })
            .collect();
        entries.into_iter()
    }
}

fn head_key(account: AccountId) -> Key {
    key(Space::EventLogHead).account(account).build()
}

fn decode_number(row: Option<&Value>) -> Result<u64> {
    rows::parse_number(row, "an invalid last number of an event log")
}

/// Appends events to their accounts' logs, in the given order. The commit conflicts if another commit appended to one
/// of them.
pub async fn append(
    store: &Store,
    batch: &mut Batch,
    told_at: Timestamp,
    events: impl Iterator<Item = &Event>,
) -> Result<()> {
    let mut runs: HashMap<AccountId, Vec<(EventId, Subject, EventKind)>> = HashMap::new();
    for event in events {
        runs.entry(event.account).or_default().push((event.id, event.subject, event.kind));
    }
    let runs: Vec<_> = runs.into_iter().collect();
    let heads: Vec<Key> = runs.iter().map(|(account, _)| head_key(*account)).collect();
    let rows = store.get_many(&heads).await?;
    for (((account, entries), head), row) in runs.into_iter().zip(heads).zip(rows) {
        let before = decode_number(row.as_ref())?;
        let last = before.saturating_add(entries.len() as u64);
        let run = EventLogChunk { first: before.saturating_add(1), told_at, entries };
        batch.replace(head, row, last.to_string().into_bytes());
        batch.put_fresh(key(Space::EventLog).account(account).u64(last).build(), codec::encode(&run));
    }
    Ok(())
}

/// Reads the number of the last dispatched event.
pub async fn last_number(store: &Store, account: AccountId) -> Result<u64> {
    decode_number(store.get(&head_key(account)).await?.as_ref())
}

/// Reads entries after a number, in order, from at most `chunks` chunks; at least one entry if any exists.
pub async fn list_after(store: &Store, account: AccountId, number: u64, chunks: usize) -> Result<Vec<EventLogEntry>> {
    let all = key(Space::EventLog).account(account);
    let range = all.clone().u64(number.saturating_add(1)).build()..all.range().end;
    let rows = store.scan(range, ScanOrder::Ascending, chunks).await?;
    let mut entries = Vec::new();
    for (_, row) in rows {
        let run: EventLogChunk = codec::decode(&row)?;
        entries.extend(run.entries().filter(|entry| entry.number > number));
    }
    Ok(entries)
}

/// Reads entries before a number, newest first, from the chunk that has it and at most `chunks` others; at least one
/// entry if any exists.
pub async fn list_before(store: &Store, account: AccountId, number: u64, chunks: usize) -> Result<Vec<EventLogEntry>> {
    let all = key(Space::EventLog).account(account);
    // The chunk that contains the number has it as its last number, or a larger one.
    let from = all.clone().u64(number).build();
    let around = store.scan(from.clone()..all.clone().range().end, ScanOrder::Ascending, 1).await?;
    let rows = store.scan(all.range().start..from, ScanOrder::Descending, chunks).await?;
    let mut entries = Vec::new();
    for (_, row) in around.into_iter().chain(rows) {
        let run: EventLogChunk = codec::decode(&row)?;
        entries.extend(run.entries().rev().filter(|entry| entry.number < number));
    }
    Ok(entries)
}

/// Deletes chunks that were dispatched before a time, oldest first, at most `limit`. Their events are deleted too,
/// except those about an email, which are deleted with the email. Returns the number of chunks.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: Timestamp,
    limit: usize,
) -> Result<usize> {
    let rows = store.scan(key(Space::EventLog).account(account).range(), ScanOrder::Ascending, limit).await?;
    let mut forgotten = 0;
    for (at, row) in rows {
        let run: EventLogChunk = codec::decode(&row)?;
        if run.told_at >= before {
            break;
        }
        batch.delete(at);
        for (event, subject, _) in run.entries {
            if !matches!(subject, Subject::Email(_)) {
                crate::event::delete(batch, account, subject, event);
            }
        }
        forgotten += 1;
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::EmailId;

    fn event(account: u128, number: u128) -> Event {
        let at = Timestamp::UNIX_EPOCH;
        Event {
            id: EventId::new(at, number),
            account: AccountId::new(at, account),
            subject: EmailId::new(at, number).into(),
            kind: EventKind::Sent,
            recipient: None,
            created_at: at,
            detail: serde_json::Value::Null,
        }
    }

    async fn append_events(store: &Store, numbers: std::ops::Range<u128>) {
        let events: Vec<Event> = numbers.flat_map(|number| [event(1, number), event(2, number)]).collect();
        let mut batch = Batch::progress();
        append(store, &mut batch, Timestamp::UNIX_EPOCH, events.iter()).await.unwrap();
        store.commit(batch).await.unwrap();
    }

    #[tokio::test]
    async fn events_are_numbered_without_a_gap_and_listed_both_ways() {
        let store = Store::memory();
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        append_events(&store, 0..3).await;
        append_events(&store, 3..4).await;
        append_events(&store, 4..10).await;
        assert_eq!(last_number(&store, account).await.unwrap(), 10);
        let numbers = |entries: Vec<EventLogEntry>| entries.iter().map(|entry| entry.number).collect::<Vec<_>>();
        for number in 0..=10 {
            let up: Vec<u64> = (number + 1..=10).collect();
            assert_eq!(numbers(list_after(&store, account, number, CHUNKS_MAX).await.unwrap()), up);
            let down: Vec<u64> = (1..number).rev().collect();
            assert_eq!(numbers(list_before(&store, account, number, CHUNKS_MAX).await.unwrap()), down);
        }
        let fifth = list_after(&store, account, 4, CHUNKS_MAX).await.unwrap();
        assert_eq!(fifth.first().map(|entry| entry.event), Some(event(1, 4).id));
    }

    #[tokio::test]
    async fn concurrent_appends_conflict() {
        let store = Store::memory();
        let events = [event(1, 1), event(1, 2)];
        let mut batches = [Batch::progress(), Batch::progress()];
        for (batch, event) in batches.iter_mut().zip(&events) {
            append(&store, batch, Timestamp::UNIX_EPOCH, std::iter::once(event)).await.unwrap();
        }
        let [one, other] = batches;
        store.commit(one).await.unwrap();
        assert!(store.commit(other).await.is_err());
    }

    #[tokio::test]
    async fn old_chunks_are_purged() {
        let store = Store::memory();
        append_events(&store, 0..3).await;
        append_events(&store, 3..6).await;
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        let mut batch = Batch::progress();
        let before = Timestamp::from_second(1).unwrap();
        assert_eq!(purge_before(&store, &mut batch, account, before, 1).await.unwrap(), 1);
        store.commit(batch).await.unwrap();
        assert_eq!(list_after(&store, account, 0, 1).await.unwrap().first().map(|entry| entry.number), Some(4));
        assert_eq!(last_number(&store, account).await.unwrap(), 6);
    }
}
