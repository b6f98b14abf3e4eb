//! Sends of the current day (UTC) of clients whose policy limits them: one row each, replaced every day.
//!
//! The sends are counted in a commit of their own before the email is accepted. If the email is refused after that, its
//! sends stay counted.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use mail::credential::CredentialId;
use mail::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, SerdeRow};
use crate::engine::{Batch, CommitError, Key, ReadError, Store};
use crate::key::{Space, key};

/// Retries after concurrent changes of the row.
const TRIES_MAX: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientSends {
    day: Date,
    sends: u32,
}

/// Result of [`reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendReservation {
    Reserved,
    /// The sends would exceed the limit; this many are used today.
    LimitReached {
        used: u32,
    },
}

/// Why sends could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum ReserveSendsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A client whose policy limits its sends.
#[derive(Debug, Clone, Copy)]
pub struct LimitedClient {
    pub account: AccountId,
    pub id: CredentialId,
    /// Maximum number of sends a day.
    pub limit: u32,
}

fn key_of(account: AccountId, client: [u8; 16]) -> Key {
    key(Space::ClientSends).account(account).id(client).build()
}

fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// Deletes the row of a deleted client.
pub(crate) fn forget(batch: &mut Batch, account: AccountId, client: [u8; 16]) {
    batch.delete(key_of(account, client));
}

/// Counts `sends` of a client, if its day's sum stays within the limit.
///
/// # Errors
/// The store cannot be read or written.
pub async fn reserve(
    store: &Store,
    client: LimitedClient,
    sends: u32,
    now: Timestamp,
) -> Result<SendReservation, ReserveSendsError> {
    let (row_key, today) = (key_of(client.account, client.id.to_bytes()), day_of(now));
    for attempt in 1.. {
        let row = store.get(&row_key).await?;
        let stored: Option<SerdeRow<ClientSends>> = row.as_ref().map(|row| codec::decode(row)).transpose()?;
        let used = stored.filter(|stored| stored.0.day == today).map_or(0, |stored| stored.0.sends);
        let sum = used.saturating_add(sends);
        if sum > client.limit {
            return Ok(SendReservation::LimitReached { used });
        }
        let mut batch = Batch::intake();
        batch.check(row_key.clone(), row);
        batch.put(row_key.clone(), codec::encode(&SerdeRow(ClientSends { day: today, sends: sum })));
        match store.commit(batch).await {
            Ok(()) => break,
            Err(CommitError::Conflict { .. }) if attempt < TRIES_MAX => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(SendReservation::Reserved)
}

#[cfg(test)]
mod tests {
    use mail::id::ApiKeyId;

    use super::*;

    fn client(limit: u32) -> LimitedClient {
        let id = CredentialId::ApiKey(ApiKeyId::from_bytes([2; 16]));
        LimitedClient { account: AccountId::from_bytes([1; 16]), id, limit }
    }

    #[tokio::test]
    async fn sends_are_counted_by_day_up_to_the_limit() {
        let store = Store::memory();
        let reserve = async |sends, at: &str| reserve(&store, client(3), sends, at.parse().unwrap()).await.unwrap();
        assert_eq!(reserve(2, "2026-01-01T10:00:00Z").await, SendReservation::Reserved);
        assert_eq!(reserve(2, "2026-01-01T11:00:00Z").await, SendReservation::LimitReached { used: 2 });
        assert_eq!(reserve(1, "2026-01-01T23:59:59Z").await, SendReservation::Reserved);
        assert_eq!(reserve(1, "2026-01-01T23:59:59Z").await, SendReservation::LimitReached { used: 3 });
        assert_eq!(reserve(3, "2026-01-02T00:00:00Z").await, SendReservation::Reserved);
    }

    #[tokio::test]
    async fn concurrent_sends_do_not_exceed_the_limit() {
        let store = Store::memory();
        let all = (0..10).map(|_| reserve(&store, client(4), 1, Timestamp::UNIX_EPOCH));
        let results = futures_util::future::join_all(all).await;
        let reserved = results.iter().filter(|result| matches!(result, Ok(SendReservation::Reserved))).count();
        assert_eq!(reserved, 4);
    }
}
