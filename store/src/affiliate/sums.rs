//! Sums of a partner's that many change at once, and no row that all of them write.
//!
//! ```text
//! space · account · partner · 0               ─►  the sums
//!                           · 1 · what · rev  ─►  what a row, in this version, has added to them and taken from them
//! ```
//!
//! What comes or changes leaves a key of its own in the commit that does it; they lie behind the sums, so that one scan
//! sees both as of one moment. Now and then somebody folds them into the sums: each is there when it is, and so folded once.

use std::future::Future;

use mail::id::{AccountId, PartnerId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::row::{self, SerdeRow};

/// Changes that are read, and folded, at once.
const FOLDED_MAX: usize = 5_000;
const SUMS: u8 = 0;
const CHANGE: u8 = 1;

/// A partner, and whose.
pub type PartnerKey = (AccountId, PartnerId);

/// Sums, and what changes them.
pub trait FoldedSums: Default + Serialize + DeserializeOwned + Send {
    /// Where they are.
    const SPACE: Space;
    /// What a row does to them.
    type Change: Serialize + DeserializeOwned + Send;

    /// Adds a change. Sums come out whole in the end: a change may lie before the one that it follows.
    fn add(&mut self, change: Self::Change);

    /// Puts together what nobody asks for apart any more. It comes to the same.
    fn compact(&mut self, _: &Store, _: PartnerKey) -> impl Future<Output = Result<(), ReadError>> + Send {
        std::future::ready(Ok(()))
    }
}

fn sums_prefix<S: FoldedSums>((account, partner): PartnerKey, kind: u8) -> KeyBuilder {
    key(S::SPACE).account(account).id(partner.to_bytes()).u8(kind)
}

/// A row of a partner's does this to its sums, by its id and the version that it has from now on.
pub(super) fn record_change<S: FoldedSums>(
    batch: &mut Batch,
    whose: PartnerKey,
    (id, rev): ([u8; 16], u64),
    change: S::Change,
) {
    let at = sums_prefix::<S>(whose, CHANGE).id(id).bytes(&rev.to_be_bytes()).build();
    batch.put_fresh(at, row::encode(&SerdeRow(change)));
}

/// Sums as they were read.
#[derive(Debug)]
pub struct StoredSums<S> {
    /// The sums.
    pub sums: S,
    /// There may be changes that were not read.
    pub more: bool,
    seen: Option<Value>,
    changes: Vec<(Key, Value)>,
}

impl<S: FoldedSums> StoredSums<S> {
    /// How many changes lie beside the sums.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Makes the changes that were read part of the sums; the commit conflicts when somebody else did.
    pub fn fold(self, batch: &mut Batch, whose: PartnerKey) -> S {
        let sums = sums_prefix::<S>(whose, SUMS).build();
        batch.check(sums.clone(), self.seen);
        let row = SerdeRow(self.sums);
        batch.put(sums, row::encode(&row));
        for (change, seen) in self.changes {
            batch.check(change.clone(), Some(seen));
            batch.delete(change);
        }
        row.0
    }
}

/// The sums of a partner.
///
/// # Errors
/// The store cannot be read.
pub async fn read<S: FoldedSums>(store: &Store, whose: PartnerKey) -> Result<StoredSums<S>, ReadError> {
    let range = sums_prefix::<S>(whose, SUMS).build()..sums_prefix::<S>(whose, CHANGE).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, FOLDED_MAX).await?;
    let more = rows.len() == FOLDED_MAX;
    let mut kept = StoredSums { sums: S::default(), more, seen: None, changes: Vec::new() };
    for (row_key, value) in rows {
        let mut reader = KeyReader::new(S::SPACE, &row_key).map_err(row::damaged)?;
        reader.account().and_then(|_| reader.id()).map_err(row::damaged)?;
        if reader.u8().map_err(row::damaged)? == SUMS {
            kept.sums = row::decode::<SerdeRow<S>>(&value)?.0;
            kept.seen = Some(value);
            continue;
        }
        kept.sums.add(row::decode::<SerdeRow<S::Change>>(&value)?.0);
        kept.changes.push((row_key, value));
    }
    // Afterwards: what is known by now of what the changes are about was known when they were made.
    kept.sums.compact(store, whose).await?;
    Ok(kept)
}
