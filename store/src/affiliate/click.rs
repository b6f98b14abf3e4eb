//! Clicks that are not counted yet: one row each, in a partition of the node that received the click.
//!
//! The counting job deletes the rows in the commit that adds them to the totals ([`super::click_count`]), and checks
//! there that they still exist. Each click is therefore counted exactly once.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use model::id::{AccountId, PartnerId, PartnerLinkId};
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, partitions_range};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkClick {
    pub account: AccountId,
    pub partner: PartnerId,
    pub link: PartnerLinkId,
    /// The sub-id that the partner added to the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_id: Option<String>,
    pub at: Timestamp,
}

stored!(LinkClick);

/// A stored click that is not counted yet.
#[derive(Debug, Clone)]
pub struct PendingClick {
    key: Key,
    row: Value,
    pub click: LinkClick,
}

impl PendingClick {
    /// Deletes the row of a counted click. The commit conflicts if it was counted before.
    pub fn remove(&self, batch: &mut Batch) {
        batch.remove(self.key.clone(), self.row.clone());
    }
}

/// Writes a click. `id` must be unique in the partition.
pub fn enqueue(batch: &mut Batch, partition: u16, id: [u8; 16], click: &LinkClick) {
    batch.put_fresh(key(Space::Click).u16(partition).id(id).build(), codec::encode(click));
}

/// Lists uncounted clicks in these partitions, at most `limit`.
pub async fn list_pending(store: &Store, partitions: RangeInclusive<u16>, limit: usize) -> Result<Vec<PendingClick>> {
    let range = partitions_range(Space::Click, &partitions);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(key, row): (Key, Value)| Ok(PendingClick { click: codec::decode(&row)?, key, row });
    rows.into_iter().map(read).collect()
}
