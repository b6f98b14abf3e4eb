//! Sign-in links and challenges: one row each, by expiry and hash of the secret. The link contains both, and expired rows are purged
//! in order.

use jiff::Timestamp;
use model::id::{AccountId, UserId};
use model::user::{SignInLink, SignInLinkKind, SignInLinkToken};
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SignInLink")]
struct SignInLinkRow {
    account: AccountId,
    user: UserId,
    #[serde(default)]
    series: u32,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "is_sign_in")]
    kind: SignInLinkKind,
}
stored!(SignInLink as SignInLinkRow);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_sign_in(kind: &SignInLinkKind) -> bool {
    *kind == SignInLinkKind::SignIn
}

fn key_of(token: &SignInLinkToken) -> Key {
    key(Space::SignInLink).time(token.expires_at).fixed(*token.hash().as_bytes()).build()
}

pub fn create(batch: &mut Batch, token: &SignInLinkToken, link: &SignInLink) {
    batch.put(key_of(token), codec::encode(link));
}

/// Reads an unused link.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, token: &SignInLinkToken) -> Result<Option<SignInLink>, ReadError> {
    store.get(&key_of(token)).await?.map(|row| codec::decode(&row)).transpose()
}

/// Deletes a link as used. Of two concurrent uses, one conflicts.
pub fn consume(batch: &mut Batch, token: &SignInLinkToken, link: &SignInLink) {
    batch.check(key_of(token), Some(codec::encode(link))).delete(key_of(token));
}

/// Deletes expired links, at most `limit`. Returns their number.
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
