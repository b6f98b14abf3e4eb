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

use crate::engine::{Batch, Key, Order, ReadError, Store};
use crate::key::{KeyReader, Space, end_of, key};
use crate::row;

/// Puts an event in the outbox of a partition.
pub(crate) fn put(batch: &mut Batch, partition: u16, event: &Event, row_key: &Key) {
    let untold = key(Space::Outbox).u16(partition).id(event.id.to_bytes()).build();
    batch.put_fresh(untold, row_key.clone());
}

/// An event that has not been told.
#[derive(Debug, Clone)]
pub struct Untold {
    key: Key,
    /// The partition that it lies in.
    pub partition: u16,
    /// The event; none when it was forgotten meanwhile, with its email.
    pub event: Option<Event>,
}

impl Untold {
    /// It was told.
    pub fn told(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

/// The events in the outboxes of these partitions, at most `limit`, each partition's oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn read(
    store: &Store,
    partitions: RangeInclusive<u16>,
    limit: usize,
) -> Result<Vec<Untold>, ReadError> {
    let start = key(Space::Outbox).u16(*partitions.start()).build();
    let end = end_of(&key(Space::Outbox).u16(*partitions.end()).build());
    let rows = store.scan(start..end, Order::Ascending, limit).await?;
    let keys: Vec<Key> = rows.iter().map(|(_, row_key)| row_key.clone()).collect();
    let events = store.get_many(&keys).await?;
    rows.into_iter()
        .zip(events)
        .map(|((untold, _), event)| {
            let mut reader = KeyReader::new(Space::Outbox, &untold).map_err(row::damaged)?;
            let partition = reader.u16().map_err(row::damaged)?;
            Ok(Untold { key: untold, partition, event: event.map(|row| row::decode(&row)).transpose()? })
        })
        .collect()
}
