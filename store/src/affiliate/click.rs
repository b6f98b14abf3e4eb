//! Clicks that have not been counted yet: a row each, which nobody else writes, in a partition of the node that took it.
//!
//! Who counts them takes them away in the commit that adds them to what is counted ([`super::click_count`]), and checks
//! there that they are still there: so each is counted once.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use mail::id::{AccountId, PartnerId, PartnerLinkId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key, prefix_end};
use crate::row::{self, stored};

/// A click on a partner's link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkClick {
    /// Whose program it is of.
    pub account: AccountId,
    /// Whose link it is.
    pub partner: PartnerId,
    /// The link.
    pub link: PartnerLinkId,
    /// The partner's own tag.
    pub sub_id: Option<String>,
    /// When.
    pub at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LinkClick")]
struct LinkClickRow {
    account: AccountId,
    partner: PartnerId,
    link: PartnerLinkId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub_id: Option<String>,
    at: Timestamp,
}
stored!(LinkClick as LinkClickRow);

/// A click that is to be counted.
#[derive(Debug, Clone)]
pub struct PendingClick {
    key: Key,
    seen: Value,
    /// The click.
    pub click: LinkClick,
}

impl PendingClick {
    /// It is counted; the commit conflicts when it was before.
    pub fn remove(&self, batch: &mut Batch) {
        batch.check(self.key.clone(), Some(self.seen.clone()));
        batch.delete(self.key.clone());
    }
}

/// Puts a click down; the id is its own.
pub fn enqueue(batch: &mut Batch, partition: u16, id: [u8; 16], click: &LinkClick) {
    batch.put_fresh(key(Space::Click).u16(partition).id(id).build(), row::encode(click));
}

/// Clicks in these partitions that are not counted, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_pending(
    store: &Store,
    partitions: RangeInclusive<u16>,
    limit: usize,
) -> Result<Vec<PendingClick>, ReadError> {
    let start = key(Space::Click).u16(*partitions.start()).build();
    let end = prefix_end(&key(Space::Click).u16(*partitions.end()).build());
    let rows = store.scan(start..end, ScanOrder::Ascending, limit).await?;
    let read = |(key, seen): (Key, Value)| Ok(PendingClick { click: row::decode(&seen)?, key, seen });
    rows.into_iter().map(read).collect()
}
