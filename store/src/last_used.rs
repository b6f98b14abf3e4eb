//! Last use of credentials: one row each, written periodically by the queue's credential authentication, so that the
//! credential's own row does not change.

use model::credential::LastUse;
use model::id::AccountId;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(LastUse);

pub(crate) fn key_of(account: AccountId, id: [u8; 16]) -> Key {
    key(Space::LastUsed).account(account).id(id).build()
}

/// Writes the last use of a credential, unchecked.
pub fn put(batch: &mut Batch, account: AccountId, id: [u8; 16], used: &LastUse) {
    batch.put(key_of(account, id), codec::encode(used));
}

/// Reads the last use of several credentials of an account, in the order of `ids`.
pub async fn list(store: &Store, account: AccountId, ids: &[[u8; 16]]) -> Result<Vec<Option<LastUse>>> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    rows::get_each(store, &keys).await
}
