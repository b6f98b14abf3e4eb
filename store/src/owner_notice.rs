//! Notices for owners that are to be mailed: a row each, by partition and due time. It is written in the commit that
//! makes true what it says, and taken away in the one that accepts its mail: so it is mailed once.
//!
//! ```text
//! OwnerNotice · partition · due · id  ─►  the notice
//! ```

use jiff::Timestamp;
use mail::id::{AccountId, EventId, WebhookId};
use mail::owner_notice::{OwnerNotice, What};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "OwnerNotice")]
struct OwnerNoticeRow {
    id: EventId,
    account: AccountId,
    webhook: WebhookId,
    url: String,
    what: What,
    since: Timestamp,
}
stored!(OwnerNotice as OwnerNoticeRow);

/// A notice as it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The notice.
    pub notice: OwnerNotice,
    partition: u16,
    row: (Key, Value),
}

fn key_of(partition: u16, due: Timestamp, notice: &OwnerNotice) -> Key {
    key(Space::OwnerNotice).u16(partition).time(due).id(notice.id.to_bytes()).build()
}

/// Writes a new notice, to be mailed at once.
pub fn put(batch: &mut Batch, partition: u16, notice: &OwnerNotice) {
    batch.put(key_of(partition, notice.since, notice), row::encode(notice));
}

impl Found {
    /// It is mailed, or cannot be; the commit conflicts when it is no more as it was found.
    pub fn take(&self, batch: &mut Batch) {
        batch.check(self.row.0.clone(), Some(self.row.1.clone()));
        batch.delete(self.row.0.clone());
    }

    /// It is tried again at this time; the commit conflicts as with [`Found::take`].
    pub fn put_off(&self, batch: &mut Batch, due: Timestamp) {
        self.take(batch);
        batch.put(key_of(self.partition, due, &self.notice), self.row.1.clone());
    }
}

/// Whether a conflict was about a notice.
#[must_use]
pub fn is_about_one(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::OwnerNotice as u8))
}

/// What of a partition is due by now, at most `limit`, the longest due first; and when the next is, if it is known.
///
/// # Errors
/// The store cannot be read.
pub async fn due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<(Vec<Found>, Option<Timestamp>), ReadError> {
    let range = key(Space::OwnerNotice).u16(partition).range();
    let mut found = Vec::new();
    for (at, row) in store.scan(range, Order::Ascending, limit).await? {
        let mut reader = KeyReader::new(Space::OwnerNotice, &at).map_err(row::damaged)?;
        let due = reader.u16().and_then(|_| reader.time()).map_err(row::damaged)?;
        if due > now {
            return Ok((found, Some(due)));
        }
        found.push(Found { notice: row::decode(&row)?, partition, row: (at, row) });
    }
    Ok((found, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_notice_is_taken_once_and_may_be_put_off() {
        let (store, at) = (Store::memory(), |second| Timestamp::from_second(second).unwrap());
        let notice = OwnerNotice {
            id: EventId::new(at(1), 1),
            account: AccountId::new(at(0), 1),
            webhook: WebhookId::new(at(0), 1),
            url: "https://a.example/".to_owned(),
            what: What::Gone,
            since: at(1),
        };
        let commit = async |write: &dyn Fn(&mut Batch)| {
            let mut batch = Batch::progress();
            write(&mut batch);
            store.commit(batch).await
        };
        commit(&|batch| put(batch, 7, &notice)).await.unwrap();
        let found = async |now| due(&store, 7, at(now), 9).await.unwrap();
        let (first, none) = (found(1).await, found(0).await);
        assert_eq!((first.0.len(), first.1, none.0.len(), none.1), (1, None, 0, Some(at(1))));
        assert_eq!(first.0[0].notice, notice);
        commit(&|batch| first.0[0].put_off(batch, at(5))).await.unwrap();
        let conflict = commit(&|batch| first.0[0].take(batch)).await;
        assert!(matches!(conflict, Err(crate::engine::CommitError::Conflict { key }) if is_about_one(&key)));
        assert!(found(4).await.0.is_empty());
        let again = found(5).await.0;
        commit(&|batch| again[0].take(batch)).await.unwrap();
        assert!(found(9).await.0.is_empty());
    }
}
