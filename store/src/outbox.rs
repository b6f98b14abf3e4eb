//! The outbox: a key for each event that has not been told yet, in the commit that made it true.
//!
//! ```text
//! Outbox · partition · event  ─►  the key of the event's row
//! ```
//!
//! The owner of the partition tells it (counts it, indexes it, notifies of it) and takes the key away in
//! one commit, so that everything that follows from an event follows exactly once, and nothing stands on
//! the way of accepting and settling.

use std::ops::RangeInclusive;

use mail::event::Event;
use mail::id::EventId;

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, prefix_end};
use crate::row;

/// Puts an event in the outbox of a partition.
pub(crate) fn put(batch: &mut Batch, partition: u16, event: &Event, row_key: &Key) {
    let untold = key(Space::Outbox).u16(partition).id(event.id.to_bytes()).build();
    batch.put_fresh(untold, row_key.clone());
}

/// An event that has not been told.
#[derive(Debug, Clone)]
pub struct OutboxEntry {
    key: Key,
    /// The partition that it lies in.
    pub partition: u16,
    /// The event; none when it was forgotten meanwhile, with its email.
    pub event: Option<Event>,
}

impl OutboxEntry {
    /// After which the next ones lie.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// It was told.
    pub fn remove(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

/// The events in the outboxes of these partitions, after one of them, at most `limit`, each partition's oldest first.
/// Those that are `known` are not read.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    partitions: RangeInclusive<u16>,
    (after, limit): (Option<&Key>, usize),
    known: &(dyn Fn(EventId) -> Option<Event> + Send + Sync),
) -> Result<Vec<OutboxEntry>, ReadError> {
    let first = || key(Space::Outbox).u16(*partitions.start()).build();
    let start = after.map_or_else(first, |after| crate::key::successor(after));
    let end = prefix_end(&key(Space::Outbox).u16(*partitions.end()).build());
    let rows = store.scan(start..end, ScanOrder::Ascending, limit).await?;
    let mut untold = Vec::with_capacity(rows.len());
    let mut unknown = Vec::new();
    for (untold_key, row_key) in rows {
        let mut reader = KeyReader::new(Space::Outbox, &untold_key).map_err(row::damaged)?;
        let partition = reader.u16().map_err(row::damaged)?;
        let event = known(EventId::from_bytes(reader.id().map_err(row::damaged)?));
        if event.is_none() {
            unknown.push((untold.len(), row_key));
        }
        untold.push(OutboxEntry { key: untold_key, partition, event });
    }
    let (places, keys): (Vec<usize>, Vec<Key>) = unknown.into_iter().unzip();
    for (place, row) in places.into_iter().zip(store.get_many(&keys).await?) {
        if let (Some(one), Some(row)) = (untold.get_mut(place), row) {
            one.event = Some(row::decode(&row)?);
        }
    }
    Ok(untold)
}
