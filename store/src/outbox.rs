//! Outbox: a key for each event that is not dispatched yet, written in the commit that causes the event.
//!
//! ```text
//! Outbox · partition · event  ─►  the key of the event's row
//! ```
//!
//! The partition's owner dispatches the event (counts, indexes and delivers it) and deletes the key in one commit, so
//! each event takes effect exactly once. Accepting and settling do not wait for it (transactional outbox).

use std::ops::RangeInclusive;

use mail::event::Event;
use mail::id::EventId;

use crate::codec;
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, prefix_end};

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
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Deletes the entry of a dispatched event.
    pub fn remove(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

/// Lists the outboxes of these partitions, after one entry, at most `limit`, each partition's oldest events first.
/// `known` supplies events from a cache, which are not read again.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    partitions: RangeInclusive<u16>,
    after: Option<&Key>,
    limit: usize,
    known: &(dyn Fn(EventId) -> Option<Event> + Send + Sync),
) -> Result<Vec<OutboxEntry>, ReadError> {
    let first = || key(Space::Outbox).u16(*partitions.start()).build();
    let start = after.map_or_else(first, |after| crate::key::successor(after));
    let end = prefix_end(&key(Space::Outbox).u16(*partitions.end()).build());
    let rows = store.scan(start..end, ScanOrder::Ascending, limit).await?;
    let mut entries = Vec::with_capacity(rows.len());
    let mut unknown = Vec::new();
    for (entry_key, row_key) in rows {
        let mut reader = KeyReader::new(Space::Outbox, &entry_key).map_err(codec::damaged)?;
        let partition = reader.u16().map_err(codec::damaged)?;
        let event = known(EventId::from_bytes(reader.id().map_err(codec::damaged)?));
        if event.is_none() {
            unknown.push((entries.len(), row_key));
        }
        entries.push(OutboxEntry { key: entry_key, partition, event });
    }
    let (indexes, keys): (Vec<usize>, Vec<Key>) = unknown.into_iter().unzip();
    for (index, row) in indexes.into_iter().zip(store.get_many(&keys).await?) {
        if let (Some(entry), Some(row)) = (entries.get_mut(index), row) {
            entry.event = Some(codec::decode(&row)?);
        }
    }
    Ok(entries)
}
