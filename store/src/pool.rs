//! What the operator has ordered about pools of source addresses, and a row that tells when any of it has changed.
//!
//! ```text
//! Pool · 0               how often something was ordered
//! Pool · 1 · account     the pool that its mail leaves from
//! Pool · 2 · name        since when it is warmed up
//! ```

use mail::given_name::PoolName;
use mail::id::AccountId;
use mail::pool::OrderedWarmUp;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyError, KeyReader, Space, key};
use crate::row::{self, stored};

/// Orders at most.
pub const ORDERS_MAX: usize = 100_000;

const VERSION: u8 = 0;
const ACCOUNT: u8 = 1;
const WARM_UP: u8 = 2;

/// Something that is ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolOrder {
    /// An account's mail leaves from a pool.
    Account(AccountId, PoolName),
    /// A pool is warmed up from another time on than configured.
    WarmUp(PoolName, OrderedWarmUp),
}

/// What an order is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// An account's mail.
    Account(AccountId),
    /// The warm-up of a pool.
    WarmUp(PoolName),
}

pub(crate) struct Assigned {
    pool: PoolName,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Assigned")]
struct AssignedRow {
    pool: PoolName,
}
stored!(Assigned as AssignedRow);

pub(crate) struct Warming {
    warm_up: OrderedWarmUp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Warming")]
struct WarmingRow {
    warm_up: OrderedWarmUp,
}
stored!(Warming as WarmingRow);

fn key_of(about: &About) -> Key {
    match about {
        About::Account(account) => key(Space::Pool).u8(ACCOUNT).account(*account).build(),
        About::WarmUp(pool) => key(Space::Pool).u8(WARM_UP).text(pool.as_str()).build(),
    }
}

fn version_key() -> Key {
    key(Space::Pool).u8(VERSION).build()
}

/// Tells whether something was ordered since: it is another one then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version(Option<Value>);

/// Which version there is.
///
/// # Errors
/// The store cannot be read.
pub async fn version(store: &Store) -> Result<Version, ReadError> {
    Ok(Version(store.get(&version_key()).await?))
}

/// Everything that is ordered, at most [`ORDERS_MAX`].
///
/// # Errors
/// The store cannot be read.
pub async fn all(store: &Store) -> Result<Vec<PoolOrder>, ReadError> {
    let from = key(Space::Pool).u8(ACCOUNT).build();
    let range = from..key(Space::Pool).range().end;
    let rows = store.scan(range, Order::Ascending, ORDERS_MAX).await?;
    rows.iter()
        .map(|(at, row)| {
            Ok(match read_key(at).map_err(row::damaged)? {
                About::Account(account) => PoolOrder::Account(account, row::decode::<Assigned>(row)?.pool),
                About::WarmUp(pool) => PoolOrder::WarmUp(pool, row::decode::<Warming>(row)?.warm_up),
            })
        })
        .collect()
}

fn read_key(at: &Key) -> Result<About, KeyError> {
    let wrong = KeyError { part: "pool" };
    let mut reader = KeyReader::new(Space::Pool, at)?;
    match reader.u8()? {
        ACCOUNT => Ok(About::Account(reader.account()?)),
        WARM_UP => Ok(About::WarmUp(reader.text()?.parse().map_err(|_| wrong)?)),
        _ => Err(wrong),
    }
}

/// Something was ordered: the commit conflicts when something else was since `version`.
fn changed(batch: &mut Batch, version: &Version) {
    let count = version.0.as_deref().and_then(|row| std::str::from_utf8(row).ok()?.parse::<u64>().ok());
    batch.check(version_key(), version.0.clone());
    batch.put(version_key(), (count.unwrap_or(0) + 1).to_string().into_bytes());
}

/// Orders something.
pub fn put(batch: &mut Batch, version: &Version, order: PoolOrder) {
    changed(batch, version);
    match order {
        PoolOrder::Account(account, pool) => {
            batch.put(key_of(&About::Account(account)), row::encode(&Assigned { pool }));
        }
        PoolOrder::WarmUp(pool, warm_up) => {
            batch.put(key_of(&About::WarmUp(pool)), row::encode(&Warming { warm_up }));
        }
    }
}

/// Takes an order back.
pub fn take_back(batch: &mut Batch, version: &Version, about: &About) {
    changed(batch, version);
    batch.delete(key_of(about));
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jiff::civil::date;

    #[tokio::test]
    async fn orders_are_kept_and_taken_back_one_after_the_other() {
        let store = Store::memory();
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        let pool: PoolName = "new".parse().unwrap();
        let orders = [
            PoolOrder::Account(account, pool.clone()),
            PoolOrder::WarmUp(pool.clone(), OrderedWarmUp::Since(date(2026, 11, 23))),
        ];
        for order in orders.clone() {
            let before = version(&store).await.unwrap();
            let mut batch = Batch::progress();
            put(&mut batch, &before, order);
            store.commit(batch.clone()).await.unwrap();
            assert!(store.commit(batch).await.is_err(), "something was ordered meanwhile");
        }
        assert_eq!(all(&store).await.unwrap(), orders);
        let mut batch = Batch::progress();
        take_back(&mut batch, &version(&store).await.unwrap(), &About::Account(account));
        store.commit(batch).await.unwrap();
        assert_eq!(all(&store).await.unwrap(), orders[1..]);
    }
}
