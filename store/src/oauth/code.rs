//! Authorization codes. A used code keeps its row for [`CODE_MEMORY`], so that its reuse is noticed.

use jiff::Timestamp;
use model::expiring_secret::ExpiringSecret;
use model::id::GrantId;
use model::oauth::{AuthorizationCode, CODE_MEMORY};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(AuthorizationCode);

fn key_of(secret: &ExpiringSecret) -> Key {
    key(Space::AuthorizationCode).time(secret.expires_at).fixed(*secret.hash().as_bytes()).build()
}

pub fn create(batch: &mut Batch, secret: &ExpiringSecret, code: &AuthorizationCode) {
    batch.put(key_of(secret), codec::encode(code));
}

/// Records that a code was used for a grant. Of two concurrent uses, one conflicts.
pub fn use_up(batch: &mut Batch, secret: &ExpiringSecret, code: &AuthorizationCode, grant: GrantId) {
    batch.check(key_of(secret), Some(codec::encode(code)));
    create(batch, secret, &AuthorizationCode { grant: Some(grant), ..code.clone() });
}

/// Reads a code, even if it was used or has expired.
pub async fn get(store: &Store, secret: &ExpiringSecret) -> Result<Option<AuthorizationCode>> {
    rows::get(store, &key_of(secret)).await
}

/// Deletes codes that expired more than [`CODE_MEMORY`] ago, at most `limit`. Returns their number.
pub async fn purge_expired(store: &Store, batch: &mut Batch, now: Timestamp, limit: usize) -> Result<usize> {
    let before = now.checked_sub(CODE_MEMORY).unwrap_or(Timestamp::MIN);
    super::purge_before(store, batch, Space::AuthorizationCode, before, limit).await
}
