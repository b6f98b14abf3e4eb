//! Access and refresh tokens. A used refresh token keeps its row until it expires, so that its reuse is noticed.

use jiff::Timestamp;
use model::expiring_secret::ExpiringSecret;
use model::oauth::OAuthToken;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(OAuthToken);

pub(crate) fn key_of(secret: &ExpiringSecret) -> Key {
    key(Space::OAuthToken).time(secret.expires_at).fixed(*secret.hash().as_bytes()).build()
}

pub fn create(batch: &mut Batch, secret: &ExpiringSecret, token: &OAuthToken) {
    batch.put(key_of(secret), codec::encode(token));
}

pub fn delete(batch: &mut Batch, secret: &ExpiringSecret) {
    batch.delete(key_of(secret));
}

/// Reads a token, even if it has expired.
pub async fn get(store: &Store, secret: &ExpiringSecret) -> Result<Option<OAuthToken>> {
    rows::get(store, &key_of(secret)).await
}

/// Deletes expired tokens, at most `limit`. Returns their number.
pub async fn purge_expired(store: &Store, batch: &mut Batch, now: Timestamp, limit: usize) -> Result<usize> {
    super::purge_before(store, batch, Space::OAuthToken, now, limit).await
}
