//! Letters to partners that are to be written: a row each, by partition and due time. It is written in the commit that
//! makes true what the letter tells, and taken away in the one that accepts its mail: so it is mailed once.
//!
//! ```text
//! PartnerLetter · partition · due · id  ─►  the letter
//! ```

use std::ops::RangeInclusive;

use jiff::Timestamp;
use mail::affiliate::partner_letter::PartnerEmail;
use serde::{Deserialize as _, Serialize as _};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, prefix_end, successor};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

stored!(PartnerEmail as PartnerEmail);

/// Rows read at once.
const SCAN_ROWS: usize = 200;
/// Rows that one look goes through: what is put off lies between what is due.
const SCANNED_MAX: usize = 20_000;

/// A letter as it was found.
#[derive(Debug, Clone)]
pub struct QueuedPartnerEmail {
    /// The letter.
    pub letter: PartnerEmail,
    row: (Key, Value),
}

/// Letters are spread, so that not one node writes all.
fn partition_of(letter: &PartnerEmail) -> u16 {
    let [.., last] = letter.id.to_bytes();
    u16::from(last) % PARTITIONS
}

fn key_of(due: Timestamp, letter: &PartnerEmail) -> Key {
    key(Space::PartnerEmail).u16(partition_of(letter)).time(due).id(letter.id.to_bytes()).build()
}

/// Puts a new letter into the commit that makes true what it tells; it is to be written at once.
pub fn enqueue(batch: &mut Batch, letter: &PartnerEmail) {
    batch.put(key_of(letter.since, letter), row::encode(letter));
}

impl QueuedPartnerEmail {
    /// It is written, or never will be; the commit conflicts when it is no more as it was found.
    pub fn remove(&self, batch: &mut Batch) {
        batch.check(self.row.0.clone(), Some(self.row.1.clone()));
        batch.delete(self.row.0.clone());
    }

    /// It is tried again at this time; the commit conflicts as with [`Found::take`].
    pub fn defer(&self, batch: &mut Batch, due: Timestamp) {
        self.remove(batch);
        batch.put(key_of(due, &self.letter), self.row.1.clone());
    }
}

/// Whether a conflict was about a letter.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::PartnerEmail as u8))
}

/// What of these partitions is due by now, at most `limit` letters. Rows that nobody can read are passed over, and stay
/// where they lie for whoever can make sense of them.
///
/// # Errors
/// The store cannot be read.
pub async fn list_due(
    store: &Store,
    partitions: RangeInclusive<u16>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<QueuedPartnerEmail>, ReadError> {
    let mut from = key(Space::PartnerEmail).u16(*partitions.start()).build();
    let end = prefix_end(&key(Space::PartnerEmail).u16(*partitions.end()).build());
    let mut found = Vec::new();
    for _ in 0..SCANNED_MAX / SCAN_ROWS {
        let rows = store.scan(from.clone()..end.clone(), ScanOrder::Ascending, SCAN_ROWS).await?;
        let is_end = rows.len() < SCAN_ROWS;
        for (at, row) in rows {
            from = successor(&at);
            if !read_time(&at).is_ok_and(|due| due <= now) {
                continue;
            }
            match row::decode(&row) {
                Ok(letter) => found.push(QueuedPartnerEmail { letter, row: (at, row) }),
                Err(error) => {
                    tracing::error!(%error, "a letter to a partner cannot be read and is passed over");
                }
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
        if is_end {
            break;
        }
    }
    Ok(found)
}

fn read_time(at: &Key) -> Result<Timestamp, ReadError> {
    let mut reader = KeyReader::new(Space::PartnerEmail, at).map_err(row::damaged)?;
    reader.u16().and_then(|_| reader.time()).map_err(row::damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CommitError;
    use mail::affiliate::partner_letter::PartnerEmailKind;
    use mail::id::{AccountId, EventId, PartnerId};

    #[tokio::test]
    async fn a_letter_is_taken_once_and_may_be_put_off() {
        let (store, at) = (Store::memory(), |second| Timestamp::from_second(second).unwrap());
        let letter = |n: u128, tells| PartnerEmail {
            id: EventId::new(at(1), n),
            account: AccountId::new(at(0), 1),
            partner: PartnerId::new(at(0), 1),
            tells,
            since: at(1),
        };
        let commit = async |write: &dyn Fn(&mut Batch)| {
            let mut batch = Batch::progress();
            write(&mut batch);
            store.commit(batch).await
        };
        let rejected = letter(2, PartnerEmailKind::Rejected { reason: Some("no".to_owned()) });
        commit(&|batch| {
            enqueue(batch, &letter(1, PartnerEmailKind::Welcome));
            enqueue(batch, &rejected);
            batch.put(key(Space::PartnerEmail).u16(1).time(at(1)).id([9; 16]).build(), Value::from_static(b"[9,{}]"));
        })
        .await
        .unwrap();
        let found = async |now| list_due(&store, 0..=63, at(now), 9).await.unwrap();
        let (none, both) = (found(0).await, found(1).await);
        assert_eq!((none.len(), both.len()), (0, 2));
        assert!(both.iter().any(|found| found.letter == rejected));
        commit(&|batch| both[0].remove(batch)).await.unwrap();
        let conflict = commit(&|batch| both[0].remove(batch)).await;
        assert!(matches!(conflict, Err(CommitError::Conflict { key }) if caused_conflict(&key)));
        commit(&|batch| both[1].defer(batch, at(60))).await.unwrap();
        assert_eq!((found(59).await.len(), found(60).await.len()), (0, 1));
    }
}
