//! Grants: one row each under the account. Without its row, all tokens of a grant are invalid.

use jiff::Timestamp;
use model::client_policy::ClientPolicy;
use model::id::{AccountId, GrantId, UserId};
use model::oauth::{ClientReference, GRANTS_MAX, Grantor, OAuthGrant};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows::{self, RowPages};

const SCAN_ROWS: usize = 500;

stored!(OAuthGrant);

pub(crate) fn key_of(account: AccountId, id: GrantId) -> Key {
    key(Space::OAuthGrant).account(account).id(id.to_bytes()).build()
}

pub fn create(batch: &mut Batch, grant: &OAuthGrant) {
    batch.put(key_of(grant.grantor.account, grant.id), codec::encode(grant));
}

/// Updates a grant that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &OAuthGrant, after: &OAuthGrant) {
    batch.check(key_of(before.grantor.account, before.id), Some(codec::encode(before)));
    create(batch, after);
}

/// Deletes a grant with its last-used row, unchecked.
pub fn delete(batch: &mut Batch, account: AccountId, id: GrantId) {
    batch.delete(crate::last_used::key_of(account, id.to_bytes()));
    crate::client_sends::forget(batch, account, id.to_bytes());
    batch.delete(key_of(account, id));
}

pub async fn get(store: &Store, account: AccountId, id: GrantId) -> Result<Option<OAuthGrant>> {
    rows::get(store, &key_of(account, id)).await
}

/// Lists an account's grants before `before`, newest first, at most `limit`, expired ones included.
pub async fn list(store: &Store, account: AccountId, before: Option<GrantId>, limit: usize) -> Result<Vec<OAuthGrant>> {
    let range = key(Space::OAuthGrant).account(account).range_before(before.map(GrantId::to_bytes));
    rows::scan(store, range, ScanOrder::Descending, limit).await
}

/// All grants of a user, oldest first.
async fn list_of_user(store: &Store, account: AccountId, user: UserId) -> Result<Vec<OAuthGrant>> {
    let mut pages = RowPages::new(store, key(Space::OAuthGrant).account(account).range(), SCAN_ROWS);
    let mut found = Vec::new();
    while let Some(page) = pages.next_page().await? {
        for (_, row) in &page {
            let grant: OAuthGrant = codec::decode(row)?;
            if grant.grantor.user == user {
                found.push(grant);
            }
        }
    }
    Ok(found)
}

/// Deletes all grants of a user, because the user is removed or has a lower role. A grant that is created at the same
/// time stays, and is refused at its use.
pub async fn delete_of_user(store: &Store, batch: &mut Batch, account: AccountId, user: UserId) -> Result<()> {
    for grant in list_of_user(store, account, user).await? {
        delete(batch, account, grant.id);
    }
    Ok(())
}

/// Deletes the oldest grants of a user, so that one more fits in [`GRANTS_MAX`].
pub async fn evict_oldest(store: &Store, batch: &mut Batch, grantor: Grantor) -> Result<()> {
    let grants = list_of_user(store, grantor.account, grantor.user).await?;
    let too_many = (grants.len() + 1).saturating_sub(GRANTS_MAX);
    grants.iter().take(too_many).for_each(|grant| delete(batch, grantor.account, grant.id));
    Ok(())
}

/// The policy of the user's newest grant to a client; without rules if there is none. A new grant keeps it unless the
/// user decides otherwise, so that asking for consent again lifts nothing. A client that registers again has a new id, so
/// a grant to one of the same name counts, too: rules only take away.
pub async fn latest_policy(store: &Store, grantor: Grantor, client: &ClientReference) -> Result<ClientPolicy> {
    let grants = list_of_user(store, grantor.account, grantor.user).await?;
    let by_id = grants.iter().rev().find(|grant| grant.client.id == client.id);
    let latest = by_id.or_else(|| grants.iter().rev().find(|grant| grant.client.name == client.name));
    Ok(latest.map(|grant| grant.policy.clone()).unwrap_or_default())
}

/// Deletes an account's expired grants, scanning at most `limit` rows from a key on. Returns the key to continue from
/// if rows may remain.
pub async fn purge_expired(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    from: Option<Key>,
    now: Timestamp,
    limit: usize,
) -> Result<Option<Key>> {
    let mut range = key(Space::OAuthGrant).account(account).range();
    range.start = from.unwrap_or(range.start);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    for (_, row) in &rows {
        let grant: OAuthGrant = codec::decode(row)?;
        if grant.expires_at <= now {
            delete(batch, account, grant.id);
        }
    }
    Ok(rows::next_page(&rows, limit))
}
