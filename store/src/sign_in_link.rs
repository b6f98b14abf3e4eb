//! Links that sign a user in: a row each, by the time of their end and the hash of their secret, so that
//! they are found by what the link carries and forgotten in the order of time.

use jiff::Timestamp;
use mail::id::{AccountId, UserId};
use mail::user::{SignInLink, SignInLinkToken};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SignInLink")]
struct SignInLinkRow {
    account: AccountId,
    user: UserId,
    #[serde(default)]
    series: u32,
    expires_at: Timestamp,
}
stored!(SignInLink as SignInLinkRow);

fn key_of(token: &SignInLinkToken) -> Key {
    key(Space::SignInLink).time(token.expires_at).fixed(*token.hash().as_bytes()).build()
}

/// Writes a new link.
pub fn create(batch: &mut Batch, token: &SignInLinkToken, link: &SignInLink) {
    batch.put(key_of(token), row::encode(link));
}

/// A link that was not used.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, token: &SignInLinkToken) -> Result<Option<SignInLink>, ReadError> {
    store.get(&key_of(token)).await?.map(|row| row::decode(&row)).transpose()
}

/// Uses a link up; of two who do it at once, one conflicts.
pub fn consume(batch: &mut Batch, token: &SignInLinkToken, link: &SignInLink) {
    batch.check(key_of(token), Some(row::encode(link))).delete(key_of(token));
}

/// Forgets links that have ended, at most `limit`. Says how many.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_expired(store: &Store, batch: &mut Batch, now: Timestamp, limit: usize) -> Result<usize, ReadError> {
    let range = key(Space::SignInLink).build()..key(Space::SignInLink).time(now).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, _) in rows {
        batch.delete(row_key);
    }
    Ok(count)
}
