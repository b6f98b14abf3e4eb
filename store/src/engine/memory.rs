//! The memory engine: the model of what every other engine must do.
//!
//! Two ordered maps behind one lock; nothing is durable. Property tests compare each engine with it, and tests of other
//! crates use it as a store without a directory.

use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use super::{Batch, Body, CommitError, Health, Key, ScanOrder, Value};

#[derive(Debug, Default)]
pub(crate) struct MemoryEngine {
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    rows: BTreeMap<Key, Value>,
    bodies: BTreeMap<Key, Bytes>,
    commits: u64,
    conflicts: u64,
}

/// Keys with their rows or bodies, in key order.
pub(crate) type KeyedRows = Vec<(Key, Bytes)>;

impl Tables {
    fn scan(&self, range: &Range<Key>, order: ScanOrder, limit: usize) -> Vec<(Key, Value)> {
        if range.start >= range.end {
            return Vec::new();
        }
        let rows = self.rows.range(range.clone()).map(|(key, value)| (key.clone(), value.clone()));
        match order {
            ScanOrder::Ascending => rows.take(limit).collect(),
            ScanOrder::Descending => rows.rev().take(limit).collect(),
        }
    }
}

impl MemoryEngine {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        // Only inserts and removes run under the lock, so a poisoned lock guards no half-applied batch.
        self.tables.read()
    }

    pub(crate) fn get_many(&self, keys: &[Key]) -> Vec<Option<Value>> {
        let tables = self.read();
        keys.iter().map(|key| tables.rows.get(key).cloned()).collect()
    }

    pub(crate) fn scan(&self, range: &Range<Key>, order: ScanOrder, limit: usize) -> Vec<(Key, Value)> {
        self.read().scan(range, order, limit)
    }

    /// Reads the rows of several ranges from one snapshot.
    pub(crate) fn scan_each(&self, ranges: &[Range<Key>], order: ScanOrder, limit: usize) -> Vec<Vec<(Key, Value)>> {
        let tables = self.read();
        ranges.iter().map(|range| tables.scan(range, order, limit)).collect()
    }

    pub(crate) fn body(&self, key: &Key) -> Option<Bytes> {
        self.read().bodies.get(key).cloned()
    }

    /// Copies all rows and bodies, for a backup or a check.
    pub(crate) fn read_all(&self) -> (KeyedRows, KeyedRows) {
        let tables = self.read();
        let copy = |map: &BTreeMap<Key, Bytes>| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        (copy(&tables.rows), copy(&tables.bodies))
    }

    pub(crate) fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        batch.check_size()?;
        let mut tables = self.tables.write();
        let failed = batch.checks.iter().find(|(key, holds)| tables.rows.get(key) != holds.as_ref());
        let stale = batch.rows.iter().find(|row| row.fresh && tables.rows.contains_key(&row.key));
        if let Some(key) = failed.map(|(key, _)| key).or(stale.map(|row| &row.key)) {
            tables.conflicts += 1;
            return Err(CommitError::Conflict { key: key.clone() });
        }
        for row in batch.rows {
            match row.value {
                Some(value) => tables.rows.insert(row.key, value),
                None => tables.rows.remove(&row.key),
            };
        }
        for change in batch.bodies {
            match change.body.as_ref().map(Body::to_bytes) {
                Some(bytes) => tables.bodies.insert(change.key, bytes),
                None => tables.bodies.remove(&change.key),
            };
        }
        tables.commits += 1;
        Ok(())
    }

    pub(crate) fn health(&self) -> Health {
        let tables = self.read();
        Health {
            commits: tables.commits,
            conflicts: tables.conflicts,
            live_bodies: tables.bodies.len() as u64,
            live_body_bytes: tables.bodies.values().map(|body| body.len() as u64).sum(),
            pending_rows: tables.rows.len() as u64,
            ..Health::default()
        }
    }
}
