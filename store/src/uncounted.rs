//! What has not been counted yet: a key for each product event, and a row for each visit, in the commit that
//! took it in.
//!
//! ```text
//! Uncounted · partition · id  ─►  an event's account, or a visit
//! ```
//!
//! The owner of the partition counts them and takes the keys away in one commit: each is counted once, and
//! nothing that all have in common is written when they come in.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use mail::id::{AccountId, ProductEventId};
use mail::product_event::context::Clicks;
use mail::product_event::visit::Visit;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store};
use crate::key::{KeyReader, Space, end_of, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Clicks")]
pub(crate) struct ClicksRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gclid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gbraid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wbraid: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Visit")]
struct VisitRow {
    visitor_id: String,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    medium: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    campaign: Option<String>,
    landing: String,
    #[serde(with = "ClicksRow")]
    clicks: Clicks,
    at: Timestamp,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// A product event, which has a row of its own.
    Event(ProductEventId),
    /// A visit.
    Visit(Visit),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Happened", rename_all = "snake_case")]
enum HappenedRow {
    Event(ProductEventId),
    Visit(#[serde(with = "VisitRow")] Visit),
}

/// The row.
pub(crate) struct Entry {
    account: AccountId,
    happened: Happened,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Entry")]
struct EntryRow {
    account: AccountId,
    #[serde(with = "HappenedRow")]
    happened: Happened,
}
stored!(Entry as EntryRow);

/// Puts down what is to be counted; the id is its own.
pub fn put(batch: &mut Batch, partition: u16, id: [u8; 16], (account, happened): (AccountId, Happened)) {
    let row_key = key(Space::Uncounted).u16(partition).id(id).build();
    batch.put_fresh(row_key, row::encode(&Entry { account, happened }));
}

/// What is to be counted.
#[derive(Debug, Clone)]
pub struct Uncounted {
    key: Key,
    /// The partition that it lies in.
    pub partition: u16,
    /// Whose it is.
    pub account: AccountId,
    /// What happened.
    pub happened: Happened,
}

impl Uncounted {
    /// It was counted.
    pub fn counted(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

/// What is to be counted in these partitions, at most `limit`, each partition's oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn read(
    store: &Store,
    partitions: RangeInclusive<u16>,
    limit: usize,
) -> Result<Vec<Uncounted>, ReadError> {
    let start = key(Space::Uncounted).u16(*partitions.start()).build();
    let end = end_of(&key(Space::Uncounted).u16(*partitions.end()).build());
    let rows = store.scan(start..end, Order::Ascending, limit).await?;
    let mut uncounted = Vec::with_capacity(rows.len());
    for (row_key, row) in rows {
        let partition = KeyReader::new(Space::Uncounted, &row_key)
            .and_then(|mut reader| reader.u16())
            .map_err(row::damaged)?;
        let Entry { account, happened } = row::decode(&row)?;
        uncounted.push(Uncounted { key: row_key, partition, account, happened });
    }
    Ok(uncounted)
}
