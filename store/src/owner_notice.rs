//! Notices for owners that are to be mailed: a row each, by partition and due time. It is written in the commit that
//! makes true what it says, and taken away in the one that accepts its mail: so it is mailed once.
//!
//! ```text
//! OwnerNotice · partition · due · id  ─►  the notice
//! ```

use jiff::Timestamp;
use mail::id::{AccountId, EventId};
use mail::owner_notice::{AlertSubject, OwnerAlert};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, successor};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "OwnerAlert")]
struct OwnerAlertRow {
    id: EventId,
    account: AccountId,
    #[serde(flatten)]
    about: AlertSubject,
    since: Timestamp,
}
stored!(OwnerAlert as OwnerAlertRow);

/// Damaged rows of a partition that are passed over: a disk that has more of them has other needs.
const DAMAGED_MAX: usize = 10_000;

/// A notice as it was found.
#[derive(Debug, Clone)]
pub struct QueuedOwnerAlert {
    /// The notice.
    pub notice: OwnerAlert,
    partition: u16,
    row: (Key, Value),
}

fn key_of(partition: u16, due: Timestamp, notice: &OwnerAlert) -> Key {
    key(Space::OwnerAlert).u16(partition).time(due).id(notice.id.to_bytes()).build()
}

/// Writes a new notice, to be mailed at once.
pub fn enqueue(batch: &mut Batch, partition: u16, notice: &OwnerAlert) {
    batch.put(key_of(partition, notice.since, notice), row::encode(notice));
}

impl QueuedOwnerAlert {
    /// It is mailed, or cannot be; the commit conflicts when it is no more as it was found.
    pub fn remove(&self, batch: &mut Batch) {
        batch.check(self.row.0.clone(), Some(self.row.1.clone()));
        batch.delete(self.row.0.clone());
    }

    /// It is tried again at this time; the commit conflicts as with [`Found::take`].
    pub fn defer(&self, batch: &mut Batch, due: Timestamp) {
        self.remove(batch);
        batch.put(key_of(self.partition, due, &self.notice), self.row.1.clone());
    }
}

/// Whether a conflict was about a notice.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::OwnerAlert as u8))
}

/// What of a partition is due.
#[derive(Debug, Default)]
pub struct DueOwnerAlerts {
    /// The notices, the longest due first.
    pub found: Vec<QueuedOwnerAlert>,
    /// Rows between them that are none, and stay where they lie for whoever can make sense of them.
    pub damaged: Vec<(Key, ReadError)>,
    /// When the next is due, if it is known.
    pub next: Option<Timestamp>,
}

/// What of a partition is due by now, at most `limit` notices.
///
/// # Errors
/// The store cannot be read.
pub async fn list_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<DueOwnerAlerts, ReadError> {
    let mut range = key(Space::OwnerAlert).u16(partition).range();
    let mut all = DueOwnerAlerts::default();
    loop {
        let rows = store.scan(range.clone(), ScanOrder::Ascending, limit).await?;
        let is_end = rows.len() < limit;
        for (at, row) in rows {
            range.start = successor(&at);
            match read_time(&at) {
                Ok(due) if due > now => return Ok(DueOwnerAlerts { next: Some(due), ..all }),
                Ok(_) => {}
                Err(error) => {
                    all.damaged.push((at, error));
                    continue;
                }
            }
            match row::decode(&row) {
                Ok(notice) => all.found.push(QueuedOwnerAlert { notice, partition, row: (at, row) }),
                Err(error) => all.damaged.push((at, error)),
            }
            if all.found.len() == limit {
                return Ok(all);
            }
        }
        if is_end || all.damaged.len() >= DAMAGED_MAX {
            return Ok(all);
        }
    }
}

fn read_time(at: &Key) -> Result<Timestamp, ReadError> {
    let mut reader = KeyReader::new(Space::OwnerAlert, at).map_err(row::damaged)?;
    reader.u16().and_then(|_| reader.time()).map_err(row::damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::WebhookId;
    use mail::owner_notice::WebhookAlert;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let id = EventId::new(Timestamp::UNIX_EPOCH, 1);
        let (account, webhook) = (AccountId::new(Timestamp::UNIX_EPOCH, 1), WebhookId::new(Timestamp::UNIX_EPOCH, 1));
        let old = format!(
            r#"[1,{{"id":"{id}","account":"{account}","webhook":"{webhook}","url":"https://a.example/","what":"gone","since":"1970-01-01T00:00:00Z"}}]"#
        );
        let read: OwnerAlert = row::decode(old.as_bytes()).unwrap();
        assert!(matches!(&read.about, AlertSubject::Endpoint { what: WebhookAlert::Gone, .. }));
        assert_eq!(String::from_utf8_lossy(&row::encode(&read)), old);
        let about = AlertSubject::Claim { claimed: "a.example".parse().unwrap(), grace_ends_at: Timestamp::UNIX_EPOCH };
        let claim = OwnerAlert { about, ..read };
        assert_eq!(row::decode::<OwnerAlert>(&row::encode(&claim)).unwrap(), claim);
    }

    #[tokio::test]
    async fn a_notice_is_taken_once_and_may_be_put_off() {
        let (store, at) = (Store::memory(), |second| Timestamp::from_second(second).unwrap());
        let notice = OwnerAlert {
            id: EventId::new(at(1), 1),
            account: AccountId::new(at(0), 1),
            about: AlertSubject::Endpoint {
                webhook: WebhookId::new(at(0), 1),
                url: "https://a.example/".to_owned(),
                what: WebhookAlert::Gone,
            },
            since: at(1),
        };
        let commit = async |write: &dyn Fn(&mut Batch)| {
            let mut batch = Batch::progress();
            write(&mut batch);
            store.commit(batch).await
        };
        commit(&|batch| enqueue(batch, 7, &notice)).await.unwrap();
        let found = async |now| list_due(&store, 7, at(now), 9).await.unwrap();
        let (first, none) = (found(1).await, found(0).await);
        assert_eq!((first.found.len(), first.next, none.found.len(), none.next), (1, None, 0, Some(at(1))));
        assert_eq!(first.found[0].notice, notice);
        commit(&|batch| first.found[0].defer(batch, at(5))).await.unwrap();
        let conflict = commit(&|batch| first.found[0].remove(batch)).await;
        assert!(matches!(conflict, Err(crate::engine::CommitError::Conflict { key }) if caused_conflict(&key)));
        assert!(found(4).await.found.is_empty());
        // Rows that nobody can read are in nobody's way, however many.
        let damaged = |n| key(Space::OwnerAlert).u16(7).time(at(2)).id(EventId::new(at(2), n).to_bytes()).build();
        let spoil = |batch: &mut Batch| {
            for n in 0..20 {
                batch.put(damaged(n), Value::from_static(b"[9,{}]"));
            }
        };
        commit(&spoil).await.unwrap();
        let again = list_due(&store, 7, at(5), 3).await.unwrap();
        assert_eq!((again.found.len(), again.damaged.len()), (1, 20));
        commit(&|batch| again.found[0].remove(batch)).await.unwrap();
        assert!(found(9).await.found.is_empty());
    }
}
