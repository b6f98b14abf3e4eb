//! Setups: how far the records of a domain are, beside the domain, which is read for every email.
//!
//! ```text
//! DomainSetup · account · domain                              ─►  the setup
//! DomainSetupByTime · partition · due · account · domain      ─►  (nothing)
//! ```

use jiff::Timestamp;
use mail::domain::Domain;
use mail::id::{AccountId, DomainId};
use mail::setup::{Checked, Setup};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyError, KeyReader, Space, key};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Setup")]
struct SetupRow {
    checked: Vec<Checked>,
    last_checked_at: Option<Timestamp>,
    degraded_since: Option<Timestamp>,
    since: Timestamp,
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    vouched: bool,
    keys_open: bool,
}
stored!(Setup as SetupRow);

/// Whose setup.
pub type About = (AccountId, DomainId);

/// Whose the setup of a domain is.
#[must_use]
pub fn about(domain: &Domain) -> About {
    (domain.account, domain.id)
}

fn key_of((account, domain): About) -> Key {
    key(Space::DomainSetup).account(account).id(domain.to_bytes()).build()
}

/// The partition that a domain is looked at in: ids are in order of time, their ends are chance.
fn partition((_, domain): About) -> u16 {
    let bytes = domain.to_bytes();
    u16::from_be_bytes([bytes[14], bytes[15]]) % PARTITIONS
}

fn by_time(about: About, due: Timestamp) -> Key {
    let (account, domain) = about;
    let at = key(Space::DomainSetupByTime).u16(partition(about)).time(due);
    at.account(account).id(domain.to_bytes()).build()
}

/// A setup as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The setup.
    pub setup: Setup,
    row: Value,
}

/// Writes the setup of a new domain.
pub fn create(batch: &mut Batch, about: About, setup: &Setup) {
    batch.put(key_of(about), row::encode(setup));
    if let Some(due) = setup.due {
        batch.put(by_time(about, due), Value::new());
    }
}

/// Changes a setup; the commit conflicts when it is no more as it was read.
pub fn change(batch: &mut Batch, about: About, before: &Found, after: &Setup) {
    batch.check(key_of(about), Some(before.row.clone()));
    if let Some(due) = before.setup.due {
        batch.delete(by_time(about, due));
    }
    create(batch, about, after);
}

/// Forgets the setup of a domain that is deleted.
pub fn delete(batch: &mut Batch, about: About, before: &Found) {
    batch.check(key_of(about), Some(before.row.clone()));
    batch.delete(key_of(about));
    if let Some(due) = before.setup.due {
        batch.delete(by_time(about, due));
    }
}

/// The setup of a domain.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, about: About) -> Result<Option<Found>, ReadError> {
    let row = store.get(&key_of(about)).await?;
    row.map(|row| Ok(Found { setup: row::decode(&row)?, row })).transpose()
}

/// The setups of several domains, in their order.
///
/// # Errors
/// The store cannot be read.
pub async fn get_many(
    store: &Store,
    about: impl Iterator<Item = About>,
) -> Result<Vec<Option<Setup>>, ReadError> {
    let keys: Vec<Key> = about.map(key_of).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().map(|row| row.map(|row| row::decode(&row)).transpose()).collect()
}

/// What of a partition is due, at most `limit`, the longest due first; and when the next one is, if it is known
/// that none of now is left.
///
/// # Errors
/// The store cannot be read.
pub async fn first_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<(Vec<About>, Option<Timestamp>), ReadError> {
    let range = key(Space::DomainSetupByTime).u16(partition).range();
    let rows = store.scan(range, Order::Ascending, limit).await?;
    let mut due = Vec::new();
    for (at, _) in &rows {
        let (moment, about) = read(at).map_err(row::damaged)?;
        if moment > now {
            return Ok((due, Some(moment)));
        }
        due.push(about);
    }
    Ok((due, None))
}

fn read(row_key: &[u8]) -> Result<(Timestamp, About), KeyError> {
    let mut parts = KeyReader::new(Space::DomainSetupByTime, row_key)?;
    let _partition = parts.u16()?;
    Ok((parts.time()?, (parts.account()?, DomainId::from_bytes(parts.id()?))))
}
