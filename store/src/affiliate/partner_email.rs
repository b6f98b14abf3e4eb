//! Emails to partners that wait to be sent: one row each, by partition and due time.
//!
//! The row is written in the commit that causes the email and deleted in the commit that accepts its message, so each
//! email is sent once.
//!
//! ```text
//! PartnerLetter · partition · due · id  ─►  the email
//! ```

use std::ops::RangeInclusive;

use jiff::Timestamp;
use model::affiliate::partner_email::PartnerEmail;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, prefix_end, read_time, successor};
use crate::task::PARTITIONS;

stored!(PartnerEmail);

/// Rows per read.
const SCAN_ROWS: usize = 200;
/// Maximum number of rows per call. Deferred rows of one partition precede the due rows of the next.
const SCANNED_MAX: usize = 20_000;

/// A stored email with the row it was read from.
#[derive(Debug, Clone)]
pub struct QueuedPartnerEmail {
    pub email: PartnerEmail,
    row: (Key, Value),
}

/// Spreads emails over the partitions by the last byte of their id.
fn partition_of(email: &PartnerEmail) -> u16 {
    let [.., last] = email.id.to_bytes();
    u16::from(last) % PARTITIONS
}

fn key_of(due: Timestamp, email: &PartnerEmail) -> Key {
    key(Space::PartnerEmail).u16(partition_of(email)).time(due).id(email.id.to_bytes()).build()
}

/// Writes a new email in the commit that causes it; it is due immediately.
pub fn enqueue(batch: &mut Batch, email: &PartnerEmail) {
    batch.put(key_of(email.since, email), codec::encode(email));
}

impl QueuedPartnerEmail {
    /// Deletes the row, because the email was accepted or is dropped. The commit conflicts if the row has changed since
    /// it was read.
    pub fn remove(&self, batch: &mut Batch) {
        batch.remove(self.row.0.clone(), self.row.1.clone());
    }

    /// Moves the email to a later due time. The commit conflicts if the row has changed since it was read.
    pub fn defer(&self, batch: &mut Batch, due: Timestamp) {
        self.remove(batch);
        batch.put(key_of(due, &self.email), self.row.1.clone());
    }
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::PartnerEmail.holds(conflict)
}

/// Lists the emails of these partitions that are due at `now`, at most `limit`. Rows that cannot be decoded are logged,
/// skipped and left in place.
pub async fn list_due(
    store: &Store,
    partitions: RangeInclusive<u16>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<QueuedPartnerEmail>> {
    let mut from = key(Space::PartnerEmail).u16(*partitions.start()).build();
    let end = prefix_end(&key(Space::PartnerEmail).u16(*partitions.end()).build());
    let mut found = Vec::new();
    for _ in 0..SCANNED_MAX / SCAN_ROWS {
        let rows = store.scan(from.clone()..end.clone(), ScanOrder::Ascending, SCAN_ROWS).await?;
        let is_end = rows.len() < SCAN_ROWS;
        for (at, row) in rows {
            from = successor(&at);
            if !read_time(Space::PartnerEmail, &at).is_ok_and(|due| due <= now) {
                continue;
            }
            match codec::decode(&row) {
                Ok(email) => found.push(QueuedPartnerEmail { email, row: (at, row) }),
                Err(error) => {
                    tracing::error!(%error, "cannot decode a queued partner email; skipped");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CommitError;
    use model::affiliate::partner_email::PartnerEmailKind;
    use model::id::{AccountId, EventId, PartnerId};

    #[tokio::test]
    async fn a_queued_email_is_removed_once_and_can_be_deferred() {
        let (store, at) = (Store::memory(), |second| Timestamp::from_second(second).unwrap());
        let email = |n: u128, tells| PartnerEmail {
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
        let rejected = email(2, PartnerEmailKind::Rejected { reason: Some("no".to_owned()) });
        commit(&|batch| {
            enqueue(batch, &email(1, PartnerEmailKind::Welcome));
            enqueue(batch, &rejected);
            batch.put(key(Space::PartnerEmail).u16(1).time(at(1)).id([9; 16]).build(), Value::from_static(b"[9,{}]"));
        })
        .await
        .unwrap();
        let found = async |now| list_due(&store, 0..=63, at(now), 9).await.unwrap();
        let (none, both) = (found(0).await, found(1).await);
        assert_eq!((none.len(), both.len()), (0, 2));
        assert!(both.iter().any(|found| found.email == rejected));
        commit(&|batch| both[0].remove(batch)).await.unwrap();
        let conflict = commit(&|batch| both[0].remove(batch)).await;
        assert!(matches!(conflict, Err(CommitError::Conflict { key }) if caused_conflict(&key)));
        commit(&|batch| both[1].defer(batch, at(60))).await.unwrap();
        assert_eq!((found(59).await.len(), found(60).await.len()), (0, 1));
    }
}
