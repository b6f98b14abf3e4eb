//! Folded sums: sums of a partner that many commits change concurrently without writing a common row.
//!
//! ```text
//! space · account · partner · 0             ─►  the sums
//!                           · 1 · id · rev  ─►  the change that this version of a row makes
//! ```
//!
//! Each change is a key of its own in the commit that makes it. Changes sort after the sums, so one scan reads both
//! from one snapshot. A background job folds changes into the sums and deletes them in the same commit, which checks
//! them, so each is folded exactly once.

use std::future::Future;

use model::id::{AccountId, PartnerId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{self, SerdeRow};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};

/// Maximum number of changes read and folded at once.
const FOLDED_MAX: usize = 5_000;
const SUMS: u8 = 0;
const CHANGE: u8 = 1;

pub type PartnerKey = (AccountId, PartnerId);

/// Sums and the changes that apply to them.
pub trait FoldedSums: Default + Serialize + DeserializeOwned + Send {
    /// Key space of the sums and changes.
    const SPACE: Space;
    /// Change made by one version of a row.
    type Change: Serialize + DeserializeOwned + Send;

    /// Applies a change. Changes may be applied in any order, so intermediate sums can be wrong, but final sums are
    /// exact.
    fn add(&mut self, change: Self::Change);

    /// Merges parts of the sums that are no longer needed separately. The total must not change.
    fn compact(&mut self, _: &Store, _: PartnerKey) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

fn sums_prefix<S: FoldedSums>((account, partner): PartnerKey, kind: u8) -> KeyBuilder {
    key(S::SPACE).account(account).id(partner.to_bytes()).u8(kind)
}

/// Records the change that a row's new version makes, by the row's id and version.
pub(super) fn record_change<S: FoldedSums>(
    batch: &mut Batch,
    partner_key: PartnerKey,
    id: [u8; 16],
    rev: u64,
    change: S::Change,
) {
    let at = sums_prefix::<S>(partner_key, CHANGE).id(id).bytes(&rev.to_be_bytes()).build();
    batch.put_fresh(at, codec::encode(&SerdeRow(change)));
}

/// Sums with the rows they were read from.
#[derive(Debug)]
pub struct StoredSums<S> {
    /// The sums including the changes that were read.
    pub sums: S,
    /// True if there may be changes that were not read.
    pub has_more: bool,
    row: Option<Value>,
    changes: Vec<(Key, Value)>,
}

impl<S: FoldedSums> StoredSums<S> {
    /// Number of changes not folded yet.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Writes the sums and deletes the changes that were read. The commit conflicts if another fold did so first.
    pub fn fold(self, batch: &mut Batch, partner_key: PartnerKey) -> S {
        let sums = sums_prefix::<S>(partner_key, SUMS).build();
        batch.check(sums.clone(), self.row);
        let row = SerdeRow(self.sums);
        batch.put(sums, codec::encode(&row));
        for (change, row) in self.changes {
            batch.remove(change, row);
        }
        row.0
    }
}

/// Reads a partner's sums with up to [`FOLDED_MAX`] rows.
pub async fn read<S: FoldedSums>(store: &Store, partner_key: PartnerKey) -> Result<StoredSums<S>> {
    let range = sums_prefix::<S>(partner_key, SUMS).build()..sums_prefix::<S>(partner_key, CHANGE).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, FOLDED_MAX).await?;
    let has_more = rows.len() == FOLDED_MAX;
    let mut stored = StoredSums { sums: S::default(), has_more, row: None, changes: Vec::new() };
    for (row_key, value) in rows {
        let mut reader = KeyReader::new(S::SPACE, &row_key)?;
        reader.account().and_then(|_| reader.id())?;
        if reader.u8()? == SUMS {
            stored.sums = codec::decode::<SerdeRow<S>>(&value)?.0;
            stored.row = Some(value);
            continue;
        }
        stored.sums.add(codec::decode::<SerdeRow<S::Change>>(&value)?.0);
        stored.changes.push((row_key, value));
    }
    // Compact after reading the changes: every link that they name was created before them and is visible now.
    stored.sums.compact(store, partner_key).await?;
    Ok(stored)
}
