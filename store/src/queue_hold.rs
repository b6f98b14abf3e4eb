//! Queue holds: one for the whole queue, and one for each suspended account.
//!
//! ```text
//! QueueHold · 0            ─►  number of changes so far (version)
//! QueueHold · 1            ─►  hold of the whole queue, after a restore
//! QueueHold · 2 · account  ─►  hold of an account's mail, while it is suspended
//! QueueHold · 3            ─►  (empty): accounts suspended by older versions have their holds
//! ```
//!
//! A lifted hold keeps its row with the time it was lifted. Mail that had expired by then is ended instead of sent.

use std::collections::HashMap;

use jiff::Timestamp;
use model::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};
use crate::rows::{self, RowPages};

const VERSION: u8 = 0;
const QUEUE: u8 = 1;
const ACCOUNT: u8 = 2;
const BACKFILLED: u8 = 3;
/// Rows per read.
const PAGE: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldScope {
    /// The whole queue.
    Queue,
    Account(AccountId),
}

/// A hold, active until it is lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_at: Option<Timestamp>,
}
stored!(Hold);

impl Hold {
    pub fn begin(now: Timestamp) -> Self {
        Self { since: now, lifted_at: None }
    }

    /// Returns the hold, lifted now.
    pub fn lift(self, now: Timestamp) -> Self {
        Self { lifted_at: Some(now), ..self }
    }

    /// Returns whether the hold is not lifted.
    pub fn is_active(&self) -> bool {
        self.lifted_at.is_none()
    }
}

/// Value of the version row; differs after each change of a hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldsVersion(Option<Value>);

/// All holds, with the version at which they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueHolds {
    pub version: HoldsVersion,
    /// Hold of the whole queue.
    pub queue: Option<Hold>,
    pub accounts: HashMap<AccountId, Hold>,
}

impl QueueHolds {
    /// The hold with this scope, active or lifted.
    pub fn get(&self, scope: HoldScope) -> Option<Hold> {
        match scope {
            HoldScope::Queue => self.queue,
            HoldScope::Account(account) => self.accounts.get(&account).copied(),
        }
    }
}

fn key_of(scope: HoldScope) -> Key {
    match scope {
        HoldScope::Queue => key(Space::QueueHold).u8(QUEUE).build(),
        HoldScope::Account(account) => key(Space::QueueHold).u8(ACCOUNT).account(account).build(),
    }
}

fn version_key() -> Key {
    key(Space::QueueHold).u8(VERSION).build()
}

fn backfilled_key() -> Key {
    key(Space::QueueHold).u8(BACKFILLED).build()
}

/// Reads the hold of the whole queue, active or lifted.
pub async fn get_queue_hold(store: &Store) -> Result<Option<Hold>> {
    rows::get(store, &key_of(HoldScope::Queue)).await
}

/// Returns whether accounts suspended by older versions have their holds.
pub async fn is_backfilled(store: &Store) -> Result<bool> {
    Ok(store.get(&backfilled_key()).await?.is_some())
}

/// Marks that they have. The commit conflicts if another node marked it first.
pub fn mark_backfilled(batch: &mut Batch) {
    batch.replace(backfilled_key(), None, Value::new());
}

pub async fn current_version(store: &Store) -> Result<HoldsVersion> {
    Ok(HoldsVersion(store.get(&version_key()).await?))
}

/// Lists all holds.
pub async fn list(store: &Store) -> Result<QueueHolds> {
    // Read the version first: a change in between makes the next poll read again.
    let version = current_version(store).await?;
    let queue = rows::get(store, &key_of(HoldScope::Queue)).await?;
    let mut holds = QueueHolds { version, queue, accounts: HashMap::new() };
    let mut pages = RowPages::new(store, key(Space::QueueHold).u8(ACCOUNT).range(), PAGE);
    while let Some(page) = pages.next_page().await? {
        for (at, row) in &page {
            let mut reader = crate::key::KeyReader::new(Space::QueueHold, at)?;
            reader.u8()?;
            holds.accounts.insert(reader.account()?, codec::decode(row)?);
        }
    }
    Ok(holds)
}

/// Writes holds. The commit conflicts if any hold changed since `version`.
pub fn put(batch: &mut Batch, version: &HoldsVersion, holds: &[(HoldScope, Hold)]) {
    rows::bump_version(batch, version_key(), version.0.as_ref());
    for (scope, hold) in holds {
        batch.put(key_of(*scope), codec::encode(hold));
    }
}

/// Returns a batch that holds, or does not hold, the whole queue of a restored store, replacing any earlier hold. The
/// row records the time of the restore in both cases, because payouts are compared with transfers made after the
/// backup.
pub fn restore_batch(now: Timestamp, is_held: bool) -> Batch {
    let mut batch = Batch::progress();
    batch.put(version_key(), now.as_millisecond().to_string().into_bytes());
    let hold = Hold::begin(now);
    batch.put(key_of(HoldScope::Queue), codec::encode(&if is_held { hold } else { hold.lift(now) }));
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn holds_are_written_by_version() {
        let store = Store::memory();
        let at = |second| Timestamp::from_second(second).unwrap();
        let account = AccountId::new(at(1), 1);
        let before = current_version(&store).await.unwrap();
        let account_hold = (HoldScope::Account(account), Hold::begin(at(2)));
        let mut batch = Batch::progress();
        put(&mut batch, &before, &[account_hold]);
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "the version is outdated");
        store.commit(restore_batch(at(3), true)).await.unwrap();
        let holds = list(&store).await.unwrap();
        assert_eq!((holds.get(account_hold.0), holds.queue), (Some(account_hold.1), Some(Hold::begin(at(3)))));
        let mut batch = Batch::progress();
        put(&mut batch, &holds.version, &[(HoldScope::Queue, Hold::begin(at(3)).lift(at(4)))]);
        store.commit(batch).await.unwrap();
        let after = list(&store).await.unwrap();
        assert!(after.queue.is_some_and(|hold| !hold.is_active()) && after.version != holds.version);
    }
}
