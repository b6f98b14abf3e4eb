//! Number of paying customers of each partner: one row, updated in the commits that change it.

use model::id::{AccountId, PartnerId};

use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};
use crate::rows;

/// A number with the row it was read from.
#[derive(Debug, Clone, Default)]
pub struct PayingCustomerCount {
    pub paying: u32,
    row: Option<Value>,
}

fn key_of(account: AccountId, partner: PartnerId) -> Key {
    key(Space::PartnerCustomerCount).account(account).id(partner.to_bytes()).build()
}

/// Reads a partner's number of paying customers.
pub async fn get(store: &Store, account: AccountId, partner: PartnerId) -> Result<PayingCustomerCount> {
    let row = store.get(&key_of(account, partner)).await?;
    let paying = rows::parse_number(row.as_ref(), "an invalid number of paying customers")?;
    Ok(PayingCustomerCount { paying, row })
}

/// Writes a new number. The commit conflicts if it has changed since it was read.
pub fn put(batch: &mut Batch, account: AccountId, partner: PartnerId, before: &PayingCustomerCount, paying: u32) {
    let at = key_of(account, partner);
    batch.replace(at, before.row.clone(), paying.to_string().into_bytes());
}

/// Makes the commit conflict if the number has changed since it was read.
pub fn check_unchanged(batch: &mut Batch, account: AccountId, partner: PartnerId, before: &PayingCustomerCount) {
    batch.check(key_of(account, partner), before.row.clone());
}
