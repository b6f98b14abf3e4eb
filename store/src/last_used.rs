//! When a credential was last used: a row each, written now and then (see the queue's porter), so that
//! the credential's own row stays as it is.

use std::net::IpAddr;

use jiff::Timestamp;
use mail::credential::LastUse;
use mail::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "LastUse")]
struct LastUsedRow {
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<IpAddr>,
}
stored!(LastUse as LastUsedRow);

pub(crate) fn key_of(account: AccountId, id: [u8; 16]) -> Key {
    key(Space::LastUsed).account(account).id(id).build()
}

/// Writes when a credential was last used.
pub fn put(batch: &mut Batch, account: AccountId, id: [u8; 16], used: &LastUse) {
    batch.put(key_of(account, id), row::encode(used));
}

/// When these credentials of an account were last used, in their order.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId, ids: &[[u8; 16]]) -> Result<Vec<Option<LastUse>>, ReadError> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    let rows = store.get_many(&keys).await?;
    rows.iter().map(|row| row.as_ref().map(|row| row::decode(row)).transpose()).collect()
}
