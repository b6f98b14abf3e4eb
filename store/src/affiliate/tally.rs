//! How many paying customers partners have: a number each, changed in the commits that change it.

use mail::id::{AccountId, PartnerId};

use crate::engine::{Batch, Key, ReadError, Store, Value};
use crate::key::{Space, key};
use crate::row;

/// A number as it was read.
#[derive(Debug, Clone, Default)]
pub struct PayingCustomerCount {
    /// The number.
    pub paying: u32,
    seen: Option<Value>,
}

fn key_of(account: AccountId, partner: PartnerId) -> Key {
    key(Space::PartnerCustomerCount).account(account).id(partner.to_bytes()).build()
}

/// A partner's number.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, partner: PartnerId) -> Result<PayingCustomerCount, ReadError> {
    let seen = store.get(&key_of(account, partner)).await?;
    let number = |row: &Value| std::str::from_utf8(row).ok()?.parse().ok();
    let paying = match &seen {
        None => 0,
        Some(row) => number(row).ok_or_else(|| row::damaged("a number of customers"))?,
    };
    Ok(PayingCustomerCount { paying, seen })
}

/// Writes a number; the commit conflicts when it is no more as it was read.
pub fn put(batch: &mut Batch, (account, partner): (AccountId, PartnerId), before: &PayingCustomerCount, paying: u32) {
    let at = key_of(account, partner);
    batch.check(at.clone(), before.seen.clone());
    batch.put(at, paying.to_string().into_bytes());
}

/// What is committed holds only while the number is as it was read.
pub fn check_unchanged(batch: &mut Batch, (account, partner): (AccountId, PartnerId), before: &PayingCustomerCount) {
    batch.check(key_of(account, partner), before.seen.clone());
}
