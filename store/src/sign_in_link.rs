//! Sign-in links and challenges: one row each, by expiry and hash of the secret. The link contains both, and expired rows are purged
//! in order.

use jiff::Timestamp;
use model::expiring_secret::ExpiringSecret;
use model::user::SignInLink;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(SignInLink);

fn key_of(token: &ExpiringSecret) -> Key {
    key(Space::SignInLink).time(token.expires_at).fixed(*token.hash().as_bytes()).build()
}

pub fn create(batch: &mut Batch, token: &ExpiringSecret, link: &SignInLink) {
    batch.put(key_of(token), codec::encode(link));
}

/// Reads an unused link.
pub async fn get(store: &Store, token: &ExpiringSecret) -> Result<Option<SignInLink>> {
    rows::get(store, &key_of(token)).await
}

/// Deletes a link as used. Of two concurrent uses, one conflicts.
pub fn consume(batch: &mut Batch, token: &ExpiringSecret, link: &SignInLink) {
    rows::delete(batch, key_of(token), link);
}

/// Deletes expired links, at most `limit`. Returns their number.
pub async fn purge_expired(store: &Store, batch: &mut Batch, now: Timestamp, limit: usize) -> Result<usize> {
    let range = key(Space::SignInLink).build()..key(Space::SignInLink).time(now).build();
    rows::delete_range(store, batch, range, limit).await
}
