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
use mail::product_event::context::AdClickIds;
use mail::product_event::visit::SiteVisit;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, prefix_end};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "AdClickIds")]
pub(crate) struct AdClickIdsRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gclid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gbraid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wbraid: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SiteVisit")]
struct SiteVisitRow {
    visitor_id: String,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    medium: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    campaign: Option<String>,
    landing: String,
    #[serde(with = "AdClickIdsRow")]
    clicks: AdClickIds,
    at: Timestamp,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum AnalyticsEvent {
    /// A product event, which has a row of its own.
    Event(ProductEventId),
    /// A visit.
    Visit(SiteVisit),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AnalyticsEvent", rename_all = "snake_case")]
enum AnalyticsEventRow {
    Event(ProductEventId),
    Visit(#[serde(with = "SiteVisitRow")] SiteVisit),
}

/// The row.
pub(crate) struct AnalyticsEntry {
    account: AccountId,
    happened: AnalyticsEvent,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AnalyticsEntry")]
struct AnalyticsEntryRow {
    account: AccountId,
    #[serde(with = "AnalyticsEventRow")]
    happened: AnalyticsEvent,
}
stored!(AnalyticsEntry as AnalyticsEntryRow);

/// Puts down what is to be counted; the id is its own.
pub fn enqueue(batch: &mut Batch, partition: u16, id: [u8; 16], (account, happened): (AccountId, AnalyticsEvent)) {
    let row_key = key(Space::PendingAnalytics).u16(partition).id(id).build();
    batch.put_fresh(row_key, row::encode(&AnalyticsEntry { account, happened }));
}

/// What is to be counted.
#[derive(Debug, Clone)]
pub struct PendingAnalyticsEvent {
    key: Key,
    /// The partition that it lies in.
    pub partition: u16,
    /// Whose it is.
    pub account: AccountId,
    /// What happened.
    pub happened: AnalyticsEvent,
}

impl PendingAnalyticsEvent {
    /// It was counted.
    pub fn remove(&self, batch: &mut Batch) {
        batch.delete(self.key.clone());
    }
}

/// What is to be counted in these partitions, at most `limit`, each partition's oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    partitions: RangeInclusive<u16>,
    limit: usize,
) -> Result<Vec<PendingAnalyticsEvent>, ReadError> {
    let start = key(Space::PendingAnalytics).u16(*partitions.start()).build();
    let end = prefix_end(&key(Space::PendingAnalytics).u16(*partitions.end()).build());
    let rows = store.scan(start..end, ScanOrder::Ascending, limit).await?;
    let mut uncounted = Vec::with_capacity(rows.len());
    for (row_key, row) in rows {
        let partition = KeyReader::new(Space::PendingAnalytics, &row_key)
            .and_then(|mut reader| reader.u16())
            .map_err(row::damaged)?;
        let AnalyticsEntry { account, happened } = row::decode(&row)?;
        uncounted.push(PendingAnalyticsEvent { key: row_key, partition, account, happened });
    }
    Ok(uncounted)
}
