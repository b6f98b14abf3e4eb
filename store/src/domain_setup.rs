//! Domain setups: verification state of a domain's DNS records. Separate from the domain's row, which is read for every
//! email.
//!
//! ```text
//! DomainSetup · account · domain                              ─►  the setup
//! DomainSetupByTime · partition · due · account · domain      ─►  (empty)
//! ```

use jiff::Timestamp;
use model::domain::SendingDomain;
use model::domain_setup::DomainSetup;
use model::id::{AccountId, DomainId};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::rows;
use crate::task::PARTITIONS;

stored!(DomainSetup);

pub type DomainSetupKey = (AccountId, DomainId);

/// The key of a domain's setup.
pub fn setup_key(domain: &SendingDomain) -> DomainSetupKey {
    (domain.account, domain.id)
}

fn key_of((account, domain): DomainSetupKey) -> Key {
    key(Space::DomainSetup).account(account).id(domain.to_bytes()).build()
}

/// The partition in which a domain is checked, from the random end of its id.
fn partition((_, domain): DomainSetupKey) -> u16 {
    let bytes = domain.to_bytes();
    u16::from_be_bytes([bytes[14], bytes[15]]) % PARTITIONS
}

fn by_time(about: DomainSetupKey, due: Timestamp) -> Key {
    let (account, domain) = about;
    let at = key(Space::DomainSetupByTime).u16(partition(about)).time(due);
    at.account(account).id(domain.to_bytes()).build()
}

/// A setup with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDomainSetup {
    pub setup: DomainSetup,
    row: Value,
}

/// Writes the setup of a new domain.
pub fn create(batch: &mut Batch, about: DomainSetupKey, setup: &DomainSetup) {
    batch.put(key_of(about), codec::encode(setup));
    if let Some(due) = setup.due {
        batch.put(by_time(about, due), Value::new());
    }
}

/// Updates a setup. The commit conflicts if the row has changed since it was read.
pub fn update(batch: &mut Batch, about: DomainSetupKey, before: &StoredDomainSetup, after: &DomainSetup) {
    batch.check(key_of(about), Some(before.row.clone()));
    if let Some(due) = before.setup.due {
        batch.delete(by_time(about, due));
    }
    create(batch, about, after);
}

/// Deletes the setup of a domain that is deleted. The commit conflicts if the row has changed since it was read.
pub fn delete(batch: &mut Batch, about: DomainSetupKey, before: &StoredDomainSetup) {
    batch.remove(key_of(about), before.row.clone());
    if let Some(due) = before.setup.due {
        batch.delete(by_time(about, due));
    }
}

pub async fn get(store: &Store, about: DomainSetupKey) -> Result<Option<StoredDomainSetup>> {
    let row = store.get(&key_of(about)).await?;
    row.map(|row| Ok(StoredDomainSetup { setup: codec::decode(&row)?, row })).transpose()
}

/// Reads the setups of several domains, in order.
pub async fn get_many(store: &Store, about: impl Iterator<Item = DomainSetupKey>) -> Result<Vec<Option<DomainSetup>>> {
    let keys: Vec<Key> = about.map(key_of).collect();
    rows::get_each(store, &keys).await
}

/// Lists the domains of a partition that are due for a check, longest due first, at most `limit`. Also returns the next
/// due time, if all due domains are listed.
pub async fn list_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<(Vec<DomainSetupKey>, Option<Timestamp>)> {
    let range = key(Space::DomainSetupByTime).u16(partition).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let mut due = Vec::new();
    for (at, _) in &rows {
        let (due_at, about) = read_key(at)?;
        if due_at > now {
            return Ok((due, Some(due_at)));
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
