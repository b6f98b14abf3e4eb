//! Sends of the current day (UTC) of clients whose policy limits them: one row each, replaced every day.
//!
//! The sends are counted in a commit of their own before the email is accepted. If the email is refused after that, its
//! sends stay counted. The sends of a request that waits for approval are counted when it is held, and given back if it
//! is not carried out.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use model::approval::ReservedSends;
use model::credential::CredentialId;
use model::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, SerdeRow};
use crate::engine::{Batch, CommitError, Key, Result, Store, StoreError};
use crate::key::{Space, key};

/// Retries after concurrent changes of the row.
const TRIES_MAX: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientSends {
    day: Date,
    sends: u32,
}

/// Result of [`reserve`] and [`add_reservation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendReservation {
    Reserved(ReservedSends),
    /// The sends would exceed the limit; this many are used today.
    LimitReached {
        used: u32,
    },
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

/// Adds sends of a client to a commit, if its day's sum stays within the limit. The commit conflicts if the sum has
/// changed since.
pub async fn add_reservation(
    store: &Store,
    batch: &mut Batch,
    client: LimitedClient,
    sends: u32,
    now: Timestamp,
) -> Result<SendReservation> {
    let (row_key, today) = (key_of(client.account, client.id.to_bytes()), day_of(now));
    let row = store.get(&row_key).await?;
    let stored: Option<SerdeRow<ClientSends>> = row.as_ref().map(|row| codec::decode(row)).transpose()?;
    let used = stored.filter(|stored| stored.0.day == today).map_or(0, |stored| stored.0.sends);
    let sum = used.saturating_add(sends);
    if sum > client.limit {
        return Ok(SendReservation::LimitReached { used });
    }
    batch.replace(row_key, row, codec::encode(&SerdeRow(ClientSends { day: today, sends: sum })));
    Ok(SendReservation::Reserved(ReservedSends { day: today, sends }))
}

/// Counts `sends` of a client, if its day's sum stays within the limit.
pub async fn reserve(
    store: &Store,
    client: LimitedClient,
    sends: u32,
    now: Timestamp,
) -> Result<SendReservation, StoreError> {
    let mut attempt = 1;
    loop {
        let mut batch = Batch::intake();
        let reservation = add_reservation(store, &mut batch, client, sends, now).await?;
        if matches!(reservation, SendReservation::LimitReached { .. }) {
            return Ok(reservation);
        }
        match store.commit(batch).await {
            Ok(()) => return Ok(reservation),
            Err(CommitError::Conflict { .. }) if attempt < TRIES_MAX => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Adds to a commit that sends of a client are given back. Does nothing once their day is over. The commit conflicts if
/// the sum has changed since.
pub async fn add_release(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    client: CredentialId,
    reserved: ReservedSends,
) -> Result<()> {
    let row_key = key_of(account, client.to_bytes());
    let Some(row) = store.get(&row_key).await? else { return Ok(()) };
    let SerdeRow(ClientSends { day, sends }) = codec::decode(&row)?;
    if day == reserved.day {
        batch.check(row_key.clone(), Some(row));
        let sends = sends.saturating_sub(reserved.sends);
        batch.put(row_key, codec::encode(&SerdeRow(ClientSends { day, sends })));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::id::ApiKeyId;

    use super::*;

    fn client(limit: u32) -> LimitedClient {
        let id = CredentialId::ApiKey(ApiKeyId::from_bytes([2; 16]));
        LimitedClient { account: AccountId::from_bytes([1; 16]), id, limit }
    }

    fn reserved(sends: u32, day: &str) -> SendReservation {
        SendReservation::Reserved(ReservedSends { day: day.parse().unwrap(), sends })
    }

    #[tokio::test]
    async fn sends_are_counted_by_day_up_to_the_limit() {
        let store = Store::memory();
        let reserve = async |sends, at: &str| reserve(&store, client(3), sends, at.parse().unwrap()).await.unwrap();
        assert_eq!(reserve(2, "2026-01-01T10:00:00Z").await, reserved(2, "2026-01-01"));
        assert_eq!(reserve(2, "2026-01-01T11:00:00Z").await, SendReservation::LimitReached { used: 2 });
        assert_eq!(reserve(1, "2026-01-01T23:59:59Z").await, reserved(1, "2026-01-01"));
        assert_eq!(reserve(1, "2026-01-01T23:59:59Z").await, SendReservation::LimitReached { used: 3 });
        assert_eq!(reserve(3, "2026-01-02T00:00:00Z").await, reserved(3, "2026-01-02"));
    }

    #[tokio::test]
    async fn sends_are_given_back_on_their_day_only() {
        let store = Store::memory();
        let reserve = async |sends, at: &str| reserve(&store, client(3), sends, at.parse().unwrap()).await.unwrap();
        let release = async |sends, day: &str| {
            let (mut batch, client) = (Batch::intake(), client(3));
            let reserved = ReservedSends { day: day.parse().unwrap(), sends };
            add_release(&store, &mut batch, client.account, client.id, reserved).await.unwrap();
            store.commit(batch).await.unwrap();
        };
        release(1, "2026-01-01").await;
        reserve(3, "2026-01-01T10:00:00Z").await;
        release(2, "2026-01-01").await;
        assert_eq!(reserve(3, "2026-01-01T11:00:00Z").await, SendReservation::LimitReached { used: 1 });
        reserve(3, "2026-01-02T00:00:00Z").await;
        release(1, "2026-01-01").await;
        assert_eq!(reserve(1, "2026-01-02T01:00:00Z").await, SendReservation::LimitReached { used: 3 });
    }

    #[tokio::test]
    async fn concurrent_sends_do_not_exceed_the_limit() {
        let store = Store::memory();
        let all = (0..10).map(|_| reserve(&store, client(4), 1, Timestamp::UNIX_EPOCH));
        let results = futures_util::future::join_all(all).await;
        let reserved = results.iter().filter(|result| matches!(result, Ok(SendReservation::Reserved(_)))).count();
        assert_eq!(reserved, 4);
    }
}
