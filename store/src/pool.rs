//! The operator's orders about pools of source addresses: one row each, and a version row that every change rewrites.
//!
//! ```text
//! Pool · 0            ─►  number of changes so far
//! Pool · 1 · account  ─►  the pool from which the account's mail is sent
//! Pool · 2 · name     ─►  the warm-up override
//! ```

use model::id::AccountId;
use model::pool::WarmUpOverride;
use model::slug::PoolName;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::rows;

pub const ORDERS_MAX: usize = 100_000;

const VERSION: u8 = 0;
const ACCOUNT: u8 = 1;
const WARM_UP: u8 = 2;

/// An order with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolOrder {
    /// An account's mail is sent from this pool.
    Account(AccountId, PoolName),
    /// A pool's warm-up starts at another time than configured.
    WarmUp(PoolName, WarmUpOverride),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolOrderKey {
    Account(AccountId),
    WarmUp(PoolName),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct AccountPool {
    pool: PoolName,
}

stored!(AccountPool);

#[derive(Serialize, Deserialize)]
pub(crate) struct PoolWarmUp {
    warm_up: WarmUpOverride,
}

stored!(PoolWarmUp);

fn key_of(about: &PoolOrderKey) -> Key {
    match about {
        PoolOrderKey::Account(account) => key(Space::Pool).u8(ACCOUNT).account(*account).build(),
        PoolOrderKey::WarmUp(pool) => key(Space::Pool).u8(WARM_UP).text(pool.as_str()).build(),
    }
}

fn version_key() -> Key {
    key(Space::Pool).u8(VERSION).build()
}

/// Value of the version row; differs after each change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolOrdersVersion(Option<Value>);

pub async fn current_version(store: &Store) -> Result<PoolOrdersVersion> {
    Ok(PoolOrdersVersion(store.get(&version_key()).await?))
}

/// Lists all orders, at most [`ORDERS_MAX`].
pub async fn list(store: &Store) -> Result<Vec<PoolOrder>> {
    let from = key(Space::Pool).u8(ACCOUNT).build();
    let range = from..key(Space::Pool).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, ORDERS_MAX).await?;
    rows.iter()
        .map(|(at, row)| {
            Ok(match read_key(at)? {
                PoolOrderKey::Account(account) => PoolOrder::Account(account, codec::decode::<AccountPool>(row)?.pool),
                PoolOrderKey::WarmUp(pool) => PoolOrder::WarmUp(pool, codec::decode::<PoolWarmUp>(row)?.warm_up),
            })
        })
        .collect()
}

fn read_key(at: &Key) -> Result<PoolOrderKey, KeyDecodeError> {
    let wrong = KeyDecodeError { part: "pool" };
    let mut reader = KeyReader::new(Space::Pool, at)?;
    match reader.u8()? {
        ACCOUNT => Ok(PoolOrderKey::Account(reader.account()?)),
        WARM_UP => Ok(PoolOrderKey::WarmUp(reader.text()?.parse().map_err(|_| wrong)?)),
        _ => Err(wrong),
    }
}

/// Writes an order. The commit conflicts if any order changed since `version`.
pub fn put(batch: &mut Batch, version: &PoolOrdersVersion, order: PoolOrder) {
    rows::bump_version(batch, version_key(), version.0.as_ref());
    match order {
        PoolOrder::Account(account, pool) => {
            batch.put(key_of(&PoolOrderKey::Account(account)), codec::encode(&AccountPool { pool }));
        }
        PoolOrder::WarmUp(pool, warm_up) => {
            batch.put(key_of(&PoolOrderKey::WarmUp(pool)), codec::encode(&PoolWarmUp { warm_up }));
        }
    }
}

/// Deletes an order. The commit conflicts if any order changed since `version`.
pub fn delete(batch: &mut Batch, version: &PoolOrdersVersion, about: &PoolOrderKey) {
    rows::bump_version(batch, version_key(), version.0.as_ref());
    batch.delete(key_of(about));
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jiff::civil::date;

    #[tokio::test]
    async fn overrides_are_written_and_deleted_by_version() {
        let store = Store::memory();
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        let pool: PoolName = "new".parse().unwrap();
        let orders = [
            PoolOrder::Account(account, pool.clone()),
            PoolOrder::WarmUp(pool.clone(), WarmUpOverride::Since(date(2026, 11, 23))),
        ];
        for order in orders.clone() {
            let before = current_version(&store).await.unwrap();
            let mut batch = Batch::progress();
            put(&mut batch, &before, order);
            store.commit(batch.clone()).await.unwrap();
            assert!(store.commit(batch).await.is_err(), "the version is outdated");
        }
        assert_eq!(list(&store).await.unwrap(), orders);
        let mut batch = Batch::progress();
        delete(&mut batch, &current_version(&store).await.unwrap(), &PoolOrderKey::Account(account));
        store.commit(batch).await.unwrap();
        assert_eq!(list(&store).await.unwrap(), orders[1..]);
    }
}
