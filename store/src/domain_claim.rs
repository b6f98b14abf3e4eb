//! Domain claims: one row each under the claimant's account, and a unique key by domain name and account while the
//! claim is open.

use message::address::DomainName;
use model::domain_claim::DomainClaim;
use model::id::{AccountId, ClaimId};

use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

account_rows!(DomainClaim, ClaimId, DomainClaim, list);

fn key_by_name(account: AccountId, name: &DomainName) -> Key {
    key(Space::DomainClaimByName).text(name.as_str()).account(account).build()
}

/// Writes a new claim. The commit conflicts if the account has an open claim to the name.
pub fn create(batch: &mut Batch, claim: &DomainClaim) {
    let by_name = key_by_name(claim.account, &claim.name);
    batch.check(by_name.clone(), None);
    let row_key = key_of(claim.account, claim.id);
    batch.put(by_name, row_key.clone());
    batch.put(row_key, codec::encode(claim));
}

/// Updates a claim that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &DomainClaim, after: &DomainClaim) {
    rows::update(batch, key_of(before.account, before.id), before, after);
    if !after.is_open() {
        batch.delete(key_by_name(after.account, &after.name));
    }
}

/// Finds an account's open claim to a name.
pub async fn find_open(store: &Store, account: AccountId, name: &DomainName) -> Result<Option<DomainClaim>> {
    rows::get_by_index(store, &key_by_name(account, name)).await
}

/// Lists open claims by name, and returns the position of the next page.
pub async fn list_open(store: &Store, after: Option<Key>, limit: usize) -> Result<(Vec<DomainClaim>, Option<Key>)> {
    let mut range = key(Space::DomainClaimByName).range();
    if let Some(after) = after {
        range.start = crate::key::successor(&after);
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|(at, _)| at.clone());
    let keys: Vec<Key> = rows.into_iter().map(|(_, row_key)| row_key).collect();
    Ok((rows::get_existing(store, &keys).await?, next))
}
