//! Conversion exports: conversions that wait to be exported, one row each by partition and due time. The partition's
//! owner exports them, and reschedules or deletes the row in a commit that checks it.
//!
//! ```text
//! ConversionExport · partition · due · event  ─►  the conversion's kind and id, attempts so far
//! ```

use jiff::Timestamp;
use model::id::{AccountId, ProductEventId};
use model::product_event::conversion::{Conversion, ConversionKind};
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::conversion;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, read_time};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionExport {
    /// The conversion's first event; also the id of the export.
    pub event: ProductEventId,
    pub account: AccountId,
    pub kind: u8,
    pub subject: String,
    /// Number of attempts so far.
    pub tries: u32,
    /// Creation time.
    pub since: Timestamp,
}

stored!(ConversionExport);

/// A stored export.
#[derive(Debug, Clone)]
pub struct QueuedConversionExport {
    key: Key,
    row: Value,
    pub partition: u16,
    pub due: Timestamp,
    pub export: ConversionExport,
}

fn key_of(partition: u16, due: Timestamp, event: ProductEventId) -> Key {
    key(Space::ConversionExport).u16(partition).time(due).id(event.to_bytes()).build()
}

/// Schedules the export of a conversion, due immediately.
pub fn enqueue(batch: &mut Batch, partition: u16, conversion: &Conversion, now: Timestamp) {
    let export = ConversionExport {
        event: conversion.event,
        account: conversion.account,
        kind: conversion.kind as u8,
        subject: conversion.subject.clone(),
        tries: 0,
        since: now,
    };
    batch.put(key_of(partition, now, export.event), codec::encode(&export));
}

impl QueuedConversionExport {
    /// Deletes the row of an export that succeeded or is given up. The commit conflicts if the row has changed since it
    /// was read.
    pub fn complete(&self, batch: &mut Batch) {
        batch.remove(self.key.clone(), self.row.clone());
    }

    /// Moves the export to a later due time and counts the attempt. The commit conflicts like that of
    /// [`Self::complete`].
    pub fn retry(&self, batch: &mut Batch, due: Timestamp) {
        self.complete(batch);
        let export = ConversionExport { tries: self.export.tries.saturating_add(1), ..self.export.clone() };
        batch.put(key_of(self.partition, due, export.event), codec::encode(&export));
    }

    /// Reads the conversion; `None` if it was deleted.
    pub async fn conversion(&self, store: &Store) -> Result<Option<Conversion>> {
        let kind = ConversionKind::ALL.into_iter().find(|kind| *kind as u8 == self.export.kind);
        let Some(kind) = kind else { return Ok(None) };
        conversion::get(store, &conversion::key_of(self.export.account, kind, &self.export.subject)).await
    }
}

/// Lists the exports of a partition by due time, including future ones, at most `limit`.
pub async fn list_first(store: &Store, partition: u16, limit: usize) -> Result<Vec<QueuedConversionExport>> {
    let range = key(Space::ConversionExport).u16(partition).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(row_key, row): (Key, Value)| {
        let due = read_time(Space::ConversionExport, &row_key)?;
        Ok(QueuedConversionExport { export: codec::decode(&row)?, partition, due, row, key: row_key })
    };
    rows.into_iter().map(read).collect()
}
