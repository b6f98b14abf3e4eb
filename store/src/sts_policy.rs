//! Cached MTA-STS policies (RFC 8461): one row for each domain that has one.

use message::address::DomainName;
use message::mta_sts::CachedMtaStsPolicy;

use crate::codec::{self, stored};
use crate::engine::{Batch, CommitError, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(CachedMtaStsPolicy);

fn key_of(domain: &DomainName) -> Key {
    key(Space::StsPolicy).text(domain.as_str()).build()
}

/// Reads the cached policy of a domain, which may have expired.
pub async fn get(store: &Store, domain: &DomainName) -> Result<Option<CachedMtaStsPolicy>> {
    rows::get(store, &key_of(domain)).await
}

/// Stores the policy of a domain, replacing an earlier one.
pub async fn put(store: &Store, domain: &DomainName, policy: &CachedMtaStsPolicy) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.put(key_of(domain), codec::encode(policy));
    store.commit(batch).await
}

/// Deletes the cached policy of a domain.
pub async fn delete(store: &Store, domain: &DomainName) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.delete(key_of(domain));
    store.commit(batch).await
}
