//! Pending analytics: product events and visits that are not counted yet, one row each, written in the commit that
//! accepts them.
//!
//! ```text
//! PendingAnalytics · partition · id  ─►  an event's account, or a visit
//! ```
//!
//! The partition's owner counts them and deletes the rows in one commit, so each is counted once, and accepting them
//! writes no common row.

use std::ops::RangeInclusive;

use model::id::{AccountId, ProductEventId};
use model::product_event::site_visit::SiteVisit;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, partitions_range};

/// An occurrence to count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnalyticsEvent {
    /// A product event, which has a row of its own.
    Event(ProductEventId),
    Visit(SiteVisit),
}

/// The stored row of an occurrence.
#[derive(Serialize, Deserialize)]
pub(crate) struct AnalyticsEntry {
    account: AccountId,
    happened: AnalyticsEvent,
}

stored!(AnalyticsEntry);

/// Writes an occurrence to be counted. `id` must be unique in the partition.
pub fn enqueue(batch: &mut Batch, partition: u16, id: [u8; 16], account: AccountId, happened: AnalyticsEvent) {
    let row_key = key(Space::PendingAnalytics).u16(partition).id(id).build();
    batch.put_fresh(row_key, codec::encode(&AnalyticsEntry { account, happened }));
}

/// An occurrence that is not counted yet.
#[derive(Debug, Clone)]
pub struct PendingAnalyticsEvent {
    key: Key,
    pub partition: u16,
    pub account: AccountId,
    pub happened: AnalyticsEvent,
}

impl PendingAnalyticsEvent {
    /// Deletes the row of a counted occurrence.
    pub fn remove(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

/// Lists pending occurrences of these partitions, at most `limit`, each partition's oldest first.
pub async fn list(store: &Store, partitions: RangeInclusive<u16>, limit: usize) -> Result<Vec<PendingAnalyticsEvent>> {
    let range = partitions_range(Space::PendingAnalytics, &partitions);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let mut uncounted = Vec::with_capacity(rows.len());
    for (row_key, row) in rows {
        let partition = KeyReader::new(Space::PendingAnalytics, &row_key)?.u16()?;
        let AnalyticsEntry { account, happened } = codec::decode(&row)?;
        uncounted.push(PendingAnalyticsEvent { key: row_key, partition, account, happened });
    }
    Ok(uncounted)
}
