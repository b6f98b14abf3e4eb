//! Sending domains: a row each under the account, and a key by name that only one account can hold.

use jiff::Timestamp;
use mail::address::Name;
use mail::domain::{DeliverySettings, Dkim, Domain, DomainState, SealedKey};
use mail::id::{AccountId, DomainId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Dkim")]
struct DkimRow {
    selector: String,
    rsa_record: String,
    rsa: SealedKey,
    ed25519_record: String,
    ed25519: SealedKey,
    ed25519_published: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Domain")]
struct DomainRow {
    id: DomainId,
    account: AccountId,
    name: Name,
    state: DomainState,
    #[serde(with = "DkimRow")]
    dkim: Dkim,
    #[serde(default, skip_serializing_if = "DeliverySettings::is_default")]
    delivery: DeliverySettings,
    created_at: Timestamp,
    verified_at: Option<Timestamp>,
}
stored!(Domain as DomainRow);

fn key_of(account: AccountId, id: DomainId) -> Key {
    key(Space::Domain).account(account).id(id.to_bytes()).build()
}

fn key_by_name(name: &Name) -> Key {
    key(Space::DomainByName).text(name.as_str()).build()
}

/// Writes a new domain; the commit conflicts when the name is taken, by whomever.
pub fn create(batch: &mut Batch, domain: &Domain) {
    let row_key = key_of(domain.account, domain.id);
    batch.check(key_by_name(&domain.name), None);
    batch.put(key_by_name(&domain.name), row_key.clone());
    batch.put(row_key, row::encode(domain));
}

/// Changes a domain that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &Domain, after: &Domain) {
    batch.check(key_of(before.account, before.id), Some(row::encode(before)));
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// The domain of a name, whoever's it is. The caller compares the account.
///
/// # Errors
/// The store cannot be read.
pub async fn by_name(store: &Store, name: &Name) -> Result<Option<Domain>, ReadError> {
    let Some(row_key) = store.get(&key_by_name(name)).await? else { return Ok(None) };
    store.get(&row_key).await?.map(|row| row::decode(&row)).transpose()
}

/// A domain of an account.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: DomainId) -> Result<Option<Domain>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// An account's domains, oldest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId, limit: usize) -> Result<Vec<Domain>, ReadError> {
    let range = key(Space::Domain).account(account).range();
    let rows = store.scan(range, Order::Ascending, limit).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}
