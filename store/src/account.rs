//! Accounts: a row each, and a key by the owner's address.

use jiff::Timestamp;
use mail::account::{Account, Plan};
use mail::address::Address;
use mail::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Account")]
struct AccountRow {
    id: AccountId,
    email: Address,
    plan: Plan,
    production: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    payment_method: bool,
    suspended: bool,
    created_at: Timestamp,
}
stored!(Account as AccountRow);

/// The key of an account.
#[must_use]
pub fn key_of(id: AccountId) -> Key {
    key(Space::Account).account(id).build()
}

fn key_by_email(email: &str) -> Key {
    key(Space::AccountByEmail).text(&email.to_lowercase()).build()
}

/// Writes a new account; the commit conflicts when the owner's address has one already.
pub fn create(batch: &mut Batch, account: &Account) {
    let by_email = key_by_email(&account.email.to_string());
    batch.check(by_email.clone(), None);
    batch.put(by_email, account.id.to_string().into_bytes());
    batch.put(key_of(account.id), row::encode(account));
}

/// Changes an account that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &Account, after: &Account) {
    batch.check(key_of(before.id), Some(row::encode(before)));
    batch.put(key_of(after.id), row::encode(after));
}

/// An account.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, id: AccountId) -> Result<Option<Account>, ReadError> {
    store.get(&key_of(id)).await?.map(|row| row::decode(&row)).transpose()
}

pub(crate) fn from_row(row: &Value) -> Result<Account, ReadError> {
    row::decode(row)
}

/// An account by its id or its owner's address.
///
/// # Errors
/// The store cannot be read.
pub async fn find(store: &Store, id_or_email: &str) -> Result<Option<Account>, ReadError> {
    let id = match id_or_email.parse::<AccountId>() {
        Ok(id) => Some(id),
        Err(_) => store
            .get(&key_by_email(id_or_email))
            .await?
            .and_then(|row| std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok())),
    };
    match id {
        Some(id) => get(store, id).await,
        None => Ok(None),
    }
}

/// The ids of all accounts after one, in order, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_ids(store: &Store, after: Option<AccountId>, limit: usize) -> Result<Vec<AccountId>, ReadError> {
    Ok(list(store, after, limit).await?.iter().map(|account| account.id).collect())
}

/// The accounts after one, in order, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, after: Option<AccountId>, limit: usize) -> Result<Vec<Account>, ReadError> {
    let mut range = key(Space::Account).range();
    if let Some(after) = after {
        range.start = crate::key::successor(&key_of(after));
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}

/// The accounts that are suspended. Reads all accounts.
///
/// # Errors
/// The store cannot be read.
pub async fn list_suspended(store: &Store) -> Result<Vec<AccountId>, ReadError> {
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
