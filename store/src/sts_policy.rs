//! Policies of MTA-STS that domains have (RFC 8461): a row for each domain, until it has no more.

use jiff::Timestamp;
use mail::address::DomainName;
use mail::mta_sts::{CachedMtaStsPolicy, MtaStsPolicy};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, CommitError, Key, ReadError, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

/// A policy as it lies in the store.
#[derive(Serialize, Deserialize)]
#[serde(remote = "CachedMtaStsPolicy")]
struct StsPolicyRow {
    id: String,
    fetched_at: Timestamp,
    policy: MtaStsPolicy,
    lines: Vec<String>,
}
stored!(CachedMtaStsPolicy as StsPolicyRow);

fn key_of(domain: &DomainName) -> Key {
    key(Space::StsPolicy).text(domain.as_str()).build()
}

/// The policy of a domain that was kept, whether it still holds or not.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, domain: &DomainName) -> Result<Option<CachedMtaStsPolicy>, ReadError> {
    store.get(&key_of(domain)).await?.map(|row| row::decode(&row)).transpose()
}

/// Keeps the policy of a domain, in place of the one before it.
///
/// # Errors
/// The store cannot be written.
pub async fn put(store: &Store, domain: &DomainName, policy: &CachedMtaStsPolicy) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.put(key_of(domain), row::encode(policy));
    store.commit(batch).await
}

/// Forgets the policy of a domain.
///
/// # Errors
/// The store cannot be written.
pub async fn delete(store: &Store, domain: &DomainName) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.delete(key_of(domain));
    store.commit(batch).await
}
