//! What holds mail in the queue back: a hold of the whole queue, and one of each account that is suspended.
//!
//! ```text
//! QueueHold · 0               how often a hold was begun or lifted
//! QueueHold · 1               the whole queue: its store was restored
//! QueueHold · 2 · account     an account's mail: it is suspended
//! QueueHold · 3               accounts that were suspended before there were holds have theirs
//! ```
//!
//! A hold that is lifted keeps its row, which says when that was: what had expired by then is ended, and not sent.

use std::collections::HashMap;

use jiff::Timestamp;
use mail::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key, successor};
use crate::row::{self, stored};

const VERSION: u8 = 0;
const QUEUE: u8 = 1;
const ACCOUNT: u8 = 2;
const BACKFILLED: u8 = 3;
/// Rows read at once.
const PAGE: usize = 10_000;

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldScope {
    /// All that is in the queue.
    Queue,
    /// The mail of an account.
    Account(AccountId),
}

/// A hold, as long as it is not lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Since when.
    pub since: Timestamp,
    /// When it was lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_at: Option<Timestamp>,
}
stored!(Hold as Hold);

impl Hold {
    /// A hold that begins now.
    #[must_use]
    pub fn begin(now: Timestamp) -> Self {
        Self { since: now, lifted_at: None }
    }

    /// The same hold, lifted now.
    #[must_use]
    pub fn lift(self, now: Timestamp) -> Self {
        Self { lifted_at: Some(now), ..self }
    }

    /// Whether it is not lifted.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.lifted_at.is_none()
    }
}

/// Tells whether a hold was begun or lifted since: it is another one then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldsVersion(Option<Value>);

/// All holds, of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueHolds {
    /// Which version.
    pub version: HoldsVersion,
    /// The whole queue's.
    pub queue: Option<Hold>,
    /// Those of accounts.
    pub accounts: HashMap<AccountId, Hold>,
}

impl QueueHolds {
    /// The hold of this, if there is one or was.
    #[must_use]
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

/// The hold of the whole queue, if there is one or was.
///
/// # Errors
/// The store cannot be read.
pub async fn get_queue_hold(store: &Store) -> Result<Option<Hold>, ReadError> {
    let row = store.get(&key_of(HoldScope::Queue)).await?;
    row.map(|row| row::decode(&row)).transpose()
}

/// Whether accounts that were suspended before there were holds have theirs.
///
/// # Errors
/// The store cannot be read.
pub async fn is_backfilled(store: &Store) -> Result<bool, ReadError> {
    Ok(store.get(&backfilled_key()).await?.is_some())
}

/// They have; the commit conflicts when somebody else has said so.
pub fn mark_backfilled(batch: &mut Batch) {
    batch.check(backfilled_key(), None);
    batch.put(backfilled_key(), Value::new());
}

/// Which version there is.
///
/// # Errors
/// The store cannot be read.
pub async fn current_version(store: &Store) -> Result<HoldsVersion, ReadError> {
    Ok(HoldsVersion(store.get(&version_key()).await?))
}

/// All holds.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store) -> Result<QueueHolds, ReadError> {
    // The version first: what changes in between is read again at the next look.
    let version = current_version(store).await?;
    let queue = store.get(&key_of(HoldScope::Queue)).await?.map(|row| row::decode(&row)).transpose()?;
    let mut holds = QueueHolds { version, queue, accounts: HashMap::new() };
    let mut range = key(Space::QueueHold).u8(ACCOUNT).range();
    loop {
        let rows = store.scan(range.clone(), ScanOrder::Ascending, PAGE).await?;
        for (at, row) in &rows {
            let mut reader = crate::key::KeyReader::new(Space::QueueHold, at).map_err(row::damaged)?;
            reader.u8().map_err(row::damaged)?;
            holds.accounts.insert(reader.account().map_err(row::damaged)?, row::decode(row)?);
        }
        match rows.last().filter(|_| rows.len() == PAGE) {
            Some((last, _)) => range.start = successor(last),
            None => return Ok(holds),
        }
    }
}

/// Writes a hold; the commit conflicts when one was begun or lifted since `version`.
pub fn put(batch: &mut Batch, version: &HoldsVersion, holds: &[(HoldScope, Hold)]) {
    let count = version.0.as_deref().and_then(|row| std::str::from_utf8(row).ok()?.parse::<u64>().ok());
    batch.check(version_key(), version.0.clone());
    batch.put(version_key(), count.unwrap_or(0).saturating_add(1).to_string().into_bytes());
    for (scope, hold) in holds {
        batch.put(key_of(*scope), row::encode(hold));
    }
}

/// Holds the whole queue of a restored store that nobody has open, or does not, whatever was written about that before.
/// When it was restored stays known either way: payouts are compared with what was transferred after the backup.
pub fn restore_batch(now: Timestamp, is_held: bool) -> Batch {
    let mut batch = Batch::progress();
    batch.put(version_key(), now.as_millisecond().to_string().into_bytes());
    let hold = Hold::begin(now);
    batch.put(key_of(HoldScope::Queue), row::encode(&if is_held { hold } else { hold.lift(now) }));
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn holds_are_kept_one_after_the_other() {
        let store = Store::memory();
        let at = |second| Timestamp::from_second(second).unwrap();
        let account = AccountId::new(at(1), 1);
        let before = current_version(&store).await.unwrap();
        let held = (HoldScope::Account(account), Hold::begin(at(2)));
        let mut batch = Batch::progress();
        put(&mut batch, &before, &[held]);
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "something changed meanwhile");
        store.commit(restore_batch(at(3), true)).await.unwrap();
        let holds = list(&store).await.unwrap();
        assert_eq!((holds.get(held.0), holds.queue), (Some(held.1), Some(Hold::begin(at(3)))));
        let mut batch = Batch::progress();
        put(&mut batch, &holds.version, &[(HoldScope::Queue, Hold::begin(at(3)).lift(at(4)))]);
        store.commit(batch).await.unwrap();
        let after = list(&store).await.unwrap();
        assert!(after.queue.is_some_and(|hold| !hold.is_active()) && after.version != holds.version);
    }
}
