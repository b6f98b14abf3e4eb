//! Users: one row each under the account, and a key by email address that is unique across accounts.
//!
//! An invited user does not own the address yet. An invitation has a key by address and account, so that an account can
//! invite an address once, and invitations can be found by address. Accepting one claims the address, or conflicts.

use model::id::{AccountId, UserId};
use model::user::User;

use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

/// Maximum number of users of an account.
pub const USERS_MAX: usize = 100;

// An update must not change the address.
account_rows!(User, UserId, User, update);

fn key_by_email(email: &str) -> Key {
    key(Space::UserByEmail).text(&email.to_lowercase()).build()
}

/// Writes a new user. The commit conflicts if the address belongs to a user.
pub fn create(batch: &mut Batch, user: &User) {
    let row_key = key_of(user.account, user.id);
    let by_email = key_by_email(&user.email.to_string());
    batch.replace(by_email, None, row_key.clone());
    batch.put(row_key, codec::encode(user));
}

fn key_invited(email: &str, account: AccountId) -> Key {
    key(Space::UserByEmail).text(&email.to_lowercase()).id(account.to_bytes()).build()
}

/// Writes an invited user. The commit conflicts if the account has already invited the address.
pub fn invite(batch: &mut Batch, user: &User) {
    let row_key = key_of(user.account, user.id);
    let invited = key_invited(&user.email.to_string(), user.account);
    batch.replace(invited, None, row_key.clone());
    batch.put(row_key, codec::encode(user));
}

/// Turns an invited user into a full user. The commit conflicts if the address belongs to a user by now, or if the
/// stored row has changed since it was read.
pub fn accept(batch: &mut Batch, invited: &User, after: &User) {
    let (row_key, email) = (key_of(invited.account, invited.id), invited.email.to_string());
    update(batch, invited, after);
    batch.replace(key_by_email(&email), None, row_key);
    batch.delete(key_invited(&email, invited.account));
}

/// Deletes a user. The commit conflicts if the stored row has changed since it was read.
pub fn delete(batch: &mut Batch, user: &User) {
    check_unchanged(batch, user);
    let email = user.email.to_string();
    batch.delete(if user.invited { key_invited(&email, user.account) } else { key_by_email(&email) });
    batch.delete(key_of(user.account, user.id));
}

/// Finds the user with an address.
pub async fn find_by_email(store: &Store, email: &str) -> Result<Option<User>> {
    rows::get_by_index(store, &key_by_email(email)).await
}

/// Lists the invitations of an address, at most `limit`.
pub async fn list_invitations(store: &Store, email: &str, limit: usize) -> Result<Vec<User>> {
    let by_email = key_by_email(email);
    // The key of the address's user is the first of the range.
    let range = key(Space::UserByEmail).text(&email.to_lowercase()).range();
    let entries = store.scan(range, ScanOrder::Ascending, limit + 1).await?;
    let rows: Vec<Key> =
        entries.into_iter().filter(|(entry, _)| *entry != by_email).take(limit).map(|(_, row_key)| row_key).collect();
    rows::get_existing(store, &rows).await
}

/// Lists all users of an account, oldest first.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<User>> {
    let range = key(Space::User).account(account).range();
    rows::scan(store, range, ScanOrder::Ascending, USERS_MAX + 1).await
}
