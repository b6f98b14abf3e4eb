//! Outbox: a key for each event that is not dispatched yet, written in the commit that causes the event.
//!
//! ```text
//! Outbox · partition · event  ─►  the key of the event's row
//! ```
//!
//! The partition's owner dispatches the event (counts, indexes and delivers it) and deletes the key in one commit, so
//! each event takes effect exactly once. Accepting and settling do not wait for it (transactional outbox).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use model::event::Event;
use model::id::EventId;

use crate::codec;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, prefix_end, successor};

/// Adds an event to a partition's outbox.
pub(crate) fn put(batch: &mut Batch, partition: u16, event: &Event, row_key: &Key) {
    let entry_key = key(Space::Outbox).u16(partition).id(event.id.to_bytes()).build();
    batch.put_fresh(entry_key, row_key.clone());
}

/// An event that is not dispatched yet.
#[derive(Debug, Clone)]
pub struct OutboxEntry {
    key: Key,
    /// The partition whose outbox contains it.
    pub partition: u16,
    /// `None` if the event was deleted with its email.
    pub event: Option<Event>,
}

impl OutboxEntry {
    /// Position of this entry, for the next page.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Deletes the entry of a dispatched event.
    pub fn remove(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

#[derive(Debug, Default)]
pub struct OutboxPage {
    pub entries: Vec<OutboxEntry>,
    /// True if there may be more entries after these.
    pub has_more: bool,
}

/// Lists the outboxes of these partitions, after one entry, at most `limit`, each partition's oldest events first.
/// `known` supplies events from a cache, which are not read again. Events that this release cannot decode stay in the
/// outbox for a newer node, and are not listed, so a page may have fewer entries than `limit` although there are more;
/// an empty page is the end.
pub async fn list(
    store: &Store,
    partitions: RangeInclusive<u16>,
    after: Option<&Key>,
    limit: usize,
    known: &(dyn Fn(EventId) -> Option<Event> + Send + Sync),
) -> Result<OutboxPage> {
    let first = || key(Space::Outbox).u16(*partitions.start()).build();
    let mut start = after.map_or_else(first, |after| successor(after));
    let end = prefix_end(&key(Space::Outbox).u16(*partitions.end()).build());
    loop {
        let rows = store.scan(start.clone()..end.clone(), ScanOrder::Ascending, limit).await?;
        let has_more = rows.len() == limit;
        if let Some((last, _)) = rows.last() {
            start = successor(last);
        }
        let entries = read_events(store, rows, known).await?;
        if !entries.is_empty() || !has_more {
            return Ok(OutboxPage { entries, has_more });
        }
    }
}

/// Reads the events of a page, without those that cannot be decoded.
async fn read_events(
    store: &Store,
    rows: Vec<(Key, Value)>,
    known: &(dyn Fn(EventId) -> Option<Event> + Send + Sync),
) -> Result<Vec<OutboxEntry>> {
    let mut entries = Vec::with_capacity(rows.len());
    let mut unknown = Vec::new();
    for (entry_key, row_key) in rows {
        let mut reader = KeyReader::new(Space::Outbox, &entry_key)?;
        let partition = reader.u16()?;
        let event = known(EventId::from_bytes(reader.id()?));
        if event.is_none() {
            unknown.push((entries.len(), row_key));
        }
        entries.push(OutboxEntry { key: entry_key, partition, event });
    }
    let (indexes, keys): (Vec<usize>, Vec<Key>) = unknown.into_iter().unzip();
    let mut left = BTreeSet::new();
    for ((index, at), row) in indexes.into_iter().zip(&keys).zip(store.get_many(&keys).await?) {
        if let (Some(entry), Some(row)) = (entries.get_mut(index), row) {
            entry.event = codec::decode_or_leave(at, &row);
            if entry.event.is_none() {
                left.insert(entry.key.clone());
            }
        }
    }
    entries.retain(|entry| !left.contains(&entry.key));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::event::EventKind;
    use model::id::{AccountId, WebhookId};
    use serde_json::json;

    use super::*;

    fn event(n: u128) -> Event {
        let at = Timestamp::UNIX_EPOCH;
        Event {
            id: EventId::new(at, n),
            account: AccountId::new(at, 1),
            subject: WebhookId::new(at, n).into(),
            kind: EventKind::WebhookDisabled,
            recipient: None,
            created_at: at,
            detail: json!({}),
        }
    }

    #[tokio::test]
    async fn an_event_of_a_newer_release_waits_and_the_others_do_not() {
        let store = Store::memory();
        let mut batch = Batch::progress();
        for n in 0..9 {
            crate::event::record(&mut batch, &event(n), 7);
        }
        store.commit(batch).await.unwrap();
        let mut batch = Batch::progress();
        for (row_key, row) in store.scan(key(Space::Event).range(), ScanOrder::Ascending, 6).await.unwrap() {
            let text = String::from_utf8(row.to_vec()).unwrap().replace("webhook.disabled", "webhook.replaced");
            batch.put(row_key, text.into_bytes());
        }
        store.commit(batch).await.unwrap();
        let nothing_cached = |_| None;
        // The page of the first two entries has only events that are left.
        let first = list(&store, 0..=63, None, 2, &nothing_cached).await.unwrap();
        let events: Vec<_> = first.entries.iter().map(|entry| entry.event.clone()).collect();
        assert_eq!((events, first.has_more), (vec![Some(event(6)), Some(event(7))], true));
        // A page with some events that are left has fewer entries, though more follow.
        let short = list(&store, 0..=63, None, 7, &nothing_cached).await.unwrap();
        assert_eq!((short.entries.len(), short.has_more), (1, true));
        let after = short.entries.first().map(|entry| entry.key().clone());
        let rest = list(&store, 0..=63, after.as_ref(), 7, &nothing_cached).await.unwrap();
        assert_eq!((rest.entries.len(), rest.has_more), (2, false));
        let all = list(&store, 0..=63, None, 10, &nothing_cached).await.unwrap().entries;
        assert_eq!(all.len(), 3);
        let mut batch = Batch::progress();
        all.iter().for_each(|entry| entry.remove(&mut batch));
        store.commit(batch).await.unwrap();
        let kept = store.scan(key(Space::Outbox).range(), ScanOrder::Ascending, 9).await.unwrap();
        assert_eq!(kept.len(), 6, "the entries of unknown events remain");
    }
}
