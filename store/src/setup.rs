//! Setups: how far the records of a domain are, beside the domain, which is read for every email.
//!
//! ```text
//! DomainSetup · account · domain                              ─►  the setup
//! DomainSetupByTime · partition · due · account · domain      ─►  (nothing)
//! ```

use jiff::Timestamp;
use mail::domain::SendingDomain;
use mail::id::{AccountId, DomainId};
use mail::setup::{CheckedRecord, DomainSetup};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

#[derive(Serialize, Deserialize)]
#[serde(remote = "DomainSetup")]
struct DomainSetupRow {
    checked: Vec<CheckedRecord>,
    last_checked_at: Option<Timestamp>,
    degraded_since: Option<Timestamp>,
    since: Timestamp,
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    vouched: bool,
    keys_open: bool,
}
stored!(DomainSetup as DomainSetupRow);

/// Whose setup.
pub type DomainSetupKey = (AccountId, DomainId);

/// Whose the setup of a domain is.
#[must_use]
pub fn setup_key(domain: &SendingDomain) -> DomainSetupKey {
    (domain.account, domain.id)
}

fn key_of((account, domain): DomainSetupKey) -> Key {
    key(Space::DomainSetup).account(account).id(domain.to_bytes()).build()
}

/// The partition that a domain is looked at in: ids are in order of time, their ends are chance.
fn partition((_, domain): DomainSetupKey) -> u16 {
    let bytes = domain.to_bytes();
    u16::from_be_bytes([bytes[14], bytes[15]]) % PARTITIONS
}

fn by_time(about: DomainSetupKey, due: Timestamp) -> Key {
    let (account, domain) = about;
    let at = key(Space::DomainSetupByTime).u16(partition(about)).time(due);
    at.account(account).id(domain.to_bytes()).build()
}

/// A setup as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDomainSetup {
    /// The setup.
    pub setup: DomainSetup,
    row: Value,
}

/// Writes the setup of a new domain.
pub fn create(batch: &mut Batch, about: DomainSetupKey, setup: &DomainSetup) {
    batch.put(key_of(about), row::encode(setup));
    if let Some(due) = setup.due {
        batch.put(by_time(about, due), Value::new());
    }
}

/// Changes a setup; the commit conflicts when it is no more as it was read.
pub fn update(batch: &mut Batch, about: DomainSetupKey, before: &StoredDomainSetup, after: &DomainSetup) {
    batch.check(key_of(about), Some(before.row.clone()));
    if let Some(due) = before.setup.due {
        batch.delete(by_time(about, due));
    }
    create(batch, about, after);
}

/// Forgets the setup of a domain that is deleted.
pub fn delete(batch: &mut Batch, about: DomainSetupKey, before: &StoredDomainSetup) {
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
pub async fn get(store: &Store, about: DomainSetupKey) -> Result<Option<StoredDomainSetup>, ReadError> {
    let row = store.get(&key_of(about)).await?;
    row.map(|row| Ok(StoredDomainSetup { setup: row::decode(&row)?, row })).transpose()
}

/// The setups of several domains, in their order.
///
/// # Errors
/// The store cannot be read.
pub async fn get_many(
    store: &Store,
    about: impl Iterator<Item = DomainSetupKey>,
) -> Result<Vec<Option<DomainSetup>>, ReadError> {
    let keys: Vec<Key> = about.map(key_of).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().map(|row| row.map(|row| row::decode(&row)).transpose()).collect()
}

/// What of a partition is due, at most `limit`, the longest due first; and when the next one is, if it is known
/// that none of now is left.
///
/// # Errors
/// The store cannot be read.
pub async fn list_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<(Vec<DomainSetupKey>, Option<Timestamp>), ReadError> {
    let range = key(Space::DomainSetupByTime).u16(partition).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let mut due = Vec::new();
    for (at, _) in &rows {
        let (moment, about) = read_key(at).map_err(row::damaged)?;
        if moment > now {
            return Ok((due, Some(moment)));
        }
        due.push(about);
    }
    Ok((due, None))
}

fn read_key(row_key: &[u8]) -> Result<(Timestamp, DomainSetupKey), KeyDecodeError> {
    let mut parts = KeyReader::new(Space::DomainSetupByTime, row_key)?;
    let _partition = parts.u16()?;
    Ok((parts.time()?, (parts.account()?, DomainId::from_bytes(parts.id()?))))
}
