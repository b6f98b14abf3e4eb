//! User sessions: one row each under account and user, at the key that the cookie names.

use jiff::Timestamp;
use model::id::{AccountId, SessionId, UserId};
use model::user::UserSession;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

/// Maximum number of sessions of a user; a new one ends the oldest.
pub const SESSIONS_MAX: usize = 50;

stored!(UserSession);

pub(crate) fn key_of(account: AccountId, user: UserId, id: SessionId) -> Key {
    key(Space::Session).account(account).id(user.to_bytes()).id(id.to_bytes()).build()
}

pub async fn get(store: &Store, account: AccountId, user: UserId, id: SessionId) -> Result<Option<UserSession>> {
    rows::get(store, &key_of(account, user, id)).await
}

pub fn create(batch: &mut Batch, session: &UserSession) {
    batch.put(key_of(session.account, session.user, session.id), codec::encode(session));
}

/// Updates a session that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &UserSession, after: &UserSession) {
    let row_key = key_of(before.account, before.user, before.id);
    rows::update(batch, row_key, before, after);
}

pub fn delete(batch: &mut Batch, session: &UserSession) {
    batch.delete(key_of(session.account, session.user, session.id));
}

/// Lists a user's sessions, oldest first, including expired ones.
pub async fn list_by_user(store: &Store, account: AccountId, user: UserId) -> Result<Vec<UserSession>> {
    let range = key(Space::Session).account(account).id(user.to_bytes()).range();
    // Nodes can create sessions concurrently and exceed the maximum, so read beyond it.
    rows::scan(store, range, ScanOrder::Ascending, 2 * SESSIONS_MAX).await
}

/// Deletes a user's expired sessions, and the oldest ones so that one more fits in [`SESSIONS_MAX`].
pub async fn evict_oldest(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    user: UserId,
    now: Timestamp,
) -> Result<()> {
    let (live, ended): (Vec<_>, Vec<_>) =
        list_by_user(store, account, user).await?.into_iter().partition(|session| session.is_live(now));
    let too_many = (live.len() + 1).saturating_sub(SESSIONS_MAX);
    ended.iter().chain(live.iter().take(too_many)).for_each(|session| delete(batch, session));
    Ok(())
}

/// Deletes an account's expired sessions, scanning at most `limit` rows from a key on. Returns the key to continue from
/// if rows may remain.
pub async fn purge_expired(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    from: Option<Key>,
    now: Timestamp,
    limit: usize,
) -> Result<Option<Key>> {
    let mut range = key(Space::Session).account(account).range();
    range.start = from.unwrap_or(range.start);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    for (row_key, row) in &rows {
        let session: UserSession = codec::decode(row)?;
        if !session.is_live(now) {
            batch.delete(row_key.clone());
        }
    }
    Ok(rows::next_page(&rows, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_first_version_are_read() {
        let row = br#"[1,{"id":"ses_01ARZ3NDEKTSV4RRFFQ69G5FAV","account":"acct_01ARZ3NDEKTSV4RRFFQ69G5FAV","user":"user_01ARZ3NDEKTSV4RRFFQ69G5FAV","secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","created_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-15T00:00:00Z","ends_at":"2026-04-01T00:00:00Z"}]"#;
        let session: UserSession = codec::decode(row).unwrap();
        assert_eq!((session.method, session.from, session.last_used_at), (None, None, None));
        // Extending a session checks that the row is as it was read.
        assert_eq!(&codec::encode(&session)[..], &row[..]);
    }
}
