//! Conversions that are to be exported: a row each, by partition and due time. Its partition's owner tries it,
//! and moves or deletes it by a commit that checks the row.
//!
//! ```text
//! ConversionExport · partition · due · event  ─►  the conversion's key, tries so far
//! ```

use jiff::Timestamp;
use mail::id::{AccountId, ProductEventId};
use mail::product_event::conversion::{Conversion, ConversionKind};
use serde::{Deserialize, Serialize};

use crate::conversion;
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

/// An export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionExport {
    /// The conversion's first event: the export's id wherever it goes.
    pub event: ProductEventId,
    /// Whose it is.
    pub account: AccountId,
    /// The conversion's kind.
    pub kind: u8,
    /// The conversion's id.
    pub subject: String,
    /// Tries so far.
    pub tries: u32,
    /// Since when.
    pub since: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ConversionExport")]
struct ConversionExportRow {
    event: ProductEventId,
    account: AccountId,
    kind: u8,
    subject: String,
    tries: u32,
    since: Timestamp,
}
stored!(ConversionExport as ConversionExportRow);

/// An export as it was found.
#[derive(Debug, Clone)]
pub struct QueuedConversionExport {
    key: Key,
    row: Value,
    /// The partition that it lies in.
    pub partition: u16,
    /// When it is due.
    pub due: Timestamp,
    /// What it is.
    pub export: ConversionExport,
}

fn key_of(partition: u16, due: Timestamp, event: ProductEventId) -> Key {
    key(Space::ConversionExport).u16(partition).time(due).id(event.to_bytes()).build()
}

/// Has a conversion exported.
pub fn enqueue(batch: &mut Batch, partition: u16, conversion: &Conversion, now: Timestamp) {
    let export = ConversionExport {
        event: conversion.event,
        account: conversion.account,
        kind: conversion.kind as u8,
        subject: conversion.subject.clone(),
        tries: 0,
        since: now,
    };
    batch.put(key_of(partition, now, export.event), row::encode(&export));
}

impl QueuedConversionExport {
    /// It is over, one way or the other; the commit conflicts when the row is no more as it was found.
    pub fn complete(&self, batch: &mut Batch) {
        batch.check(self.key.clone(), Some(self.row.clone()));
        batch.delete(self.key.clone());
    }

    /// It is tried again at this time; the commit conflicts as with [`Found::done`].
    pub fn retry(&self, batch: &mut Batch, due: Timestamp) {
        self.complete(batch);
        let export = ConversionExport { tries: self.export.tries.saturating_add(1), ..self.export.clone() };
        batch.put(key_of(self.partition, due, export.event), row::encode(&export));
    }

    /// The conversion; none when it is forgotten.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn conversion(&self, store: &Store) -> Result<Option<Conversion>, ReadError> {
        let kind = ConversionKind::ALL.into_iter().find(|kind| *kind as u8 == self.export.kind);
        let Some(kind) = kind else { return Ok(None) };
        conversion::get(store, &conversion::key_of(self.export.account, kind, &self.export.subject)).await
    }
}

/// The exports of a partition, those due first, at most `limit`; due or not.
///
/// # Errors
/// The store cannot be read.
pub async fn list_first(store: &Store, partition: u16, limit: usize) -> Result<Vec<QueuedConversionExport>, ReadError> {
    let range = key(Space::ConversionExport).u16(partition).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(row_key, row): (Key, Value)| {
        let mut reader = KeyReader::new(Space::ConversionExport, &row_key).map_err(row::damaged)?;
        let due = reader.u16().and_then(|_| reader.time()).map_err(row::damaged)?;
        Ok(QueuedConversionExport { export: row::decode(&row)?, partition, due, row, key: row_key })
    };
    rows.into_iter().map(read).collect()
}
