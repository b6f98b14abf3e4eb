//! Accounts: one row each, and a unique key by the owner's address.
//!
//! ```text
//! Account        · id     ─►  the account
//! AccountByEmail · email  ─►  its id
//! ```

use model::account::Account;
use model::id::AccountId;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(Account);

pub fn key_of(id: AccountId) -> Key {
    key(Space::Account).account(id).build()
}

fn key_by_email(email: &str) -> Key {
    key(Space::AccountByEmail).text(&email.to_lowercase()).build()
}

/// Writes a new account. The commit conflicts if an account with the owner's address exists.
pub fn create(batch: &mut Batch, account: &Account) {
    let by_email = key_by_email(&account.email.to_string());
    batch.replace(by_email, None, account.id.to_string().into_bytes());
    batch.put(key_of(account.id), codec::encode(account));
}

/// Updates an account that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &Account, after: &Account) {
    rows::update(batch, key_of(before.id), before, after);
}

pub async fn get(store: &Store, id: AccountId) -> Result<Option<Account>> {
    rows::get(store, &key_of(id)).await
}

/// Finds an account by its id or its owner's address.
pub async fn find(store: &Store, id_or_email: &str) -> Result<Option<Account>> {
    if let Ok(id) = id_or_email.parse() {
        return get(store, id).await;
    }
    let row = store.get(&key_by_email(id_or_email)).await?;
    match row.and_then(|row| std::str::from_utf8(&row).ok()?.parse().ok()) {
        Some(id) => get(store, id).await,
        None => Ok(None),
    }
}

/// Lists the ids of accounts after `after`, in id order, at most `limit`.
pub async fn list_ids(store: &Store, after: Option<AccountId>, limit: usize) -> Result<Vec<AccountId>> {
    Ok(list(store, after, limit).await?.iter().map(|account| account.id).collect())
}

/// Lists the accounts after `after`, in id order, at most `limit`.
pub async fn list(store: &Store, after: Option<AccountId>, limit: usize) -> Result<Vec<Account>> {
    let range = key(Space::Account).range_after(after.map(AccountId::to_bytes));
    rows::scan(store, range, ScanOrder::Ascending, limit).await
}

/// Lists all suspended accounts. Reads every account row.
pub async fn list_suspended(store: &Store) -> Result<Vec<AccountId>> {
    const PAGE: usize = 1_000;
    let (mut suspended, mut after) = (Vec::new(), None);
    loop {
        let accounts = list(store, after, PAGE).await?;
        suspended.extend(accounts.iter().filter(|account| account.suspended).map(|account| account.id));
        match accounts.last().filter(|_| accounts.len() == PAGE) {
            Some(last) => after = Some(last.id),
            None => return Ok(suspended),
        }
    }
}
