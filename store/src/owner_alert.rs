//! Owner alerts: emails to account owners that wait to be sent, one row each by partition and due time.
//!
//! The row is written in the commit that causes the alert and deleted in the commit that accepts its email, so each
//! alert is sent once.
//!
//! ```text
//! OwnerAlert · partition · due · id  ─►  the alert
//! ```

use jiff::Timestamp;
use model::owner_alert::OwnerAlert;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, read_time, successor};

stored!(OwnerAlert);

/// Maximum number of damaged rows of a partition that one call skips.
const DAMAGED_MAX: usize = 10_000;

/// An alert with the row it was read from.
#[derive(Debug, Clone)]
pub struct QueuedOwnerAlert {
    pub notice: OwnerAlert,
    partition: u16,
    row: (Key, Value),
}

fn key_of(partition: u16, due: Timestamp, notice: &OwnerAlert) -> Key {
    key(Space::OwnerAlert).u16(partition).time(due).id(notice.id.to_bytes()).build()
}

/// Writes a new alert, due immediately.
pub fn enqueue(batch: &mut Batch, partition: u16, notice: &OwnerAlert) {
    batch.put(key_of(partition, notice.since, notice), codec::encode(notice));
}

impl QueuedOwnerAlert {
    /// Deletes the row of an alert that was sent or cannot be. The commit conflicts if the row has changed since it was
    /// read.
    pub fn remove(&self, batch: &mut Batch) {
        batch.remove(self.row.0.clone(), self.row.1.clone());
    }

    /// Moves the alert to a later due time. The commit conflicts like that of [`Self::remove`].
    pub fn defer(&self, batch: &mut Batch, due: Timestamp) {
        self.remove(batch);
        batch.put(key_of(self.partition, due, &self.notice), self.row.1.clone());
    }
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::OwnerAlert.holds(conflict)
}

/// Due alerts of a partition.
#[derive(Debug, Default)]
pub struct DueOwnerAlerts {
    /// Longest due first.
    pub found: Vec<QueuedOwnerAlert>,
    /// Rows that cannot be decoded; they remain stored.
    pub damaged: Vec<(Key, ReadError)>,
    /// The next due time, if known.
    pub next: Option<Timestamp>,
}

/// Lists the alerts of a partition that are due at `now`, at most `limit`.
pub async fn list_due(store: &Store, partition: u16, now: Timestamp, limit: usize) -> Result<DueOwnerAlerts> {
    let mut range = key(Space::OwnerAlert).u16(partition).range();
    let mut all = DueOwnerAlerts::default();
    loop {
        let rows = store.scan(range.clone(), ScanOrder::Ascending, limit).await?;
        let is_end = rows.len() < limit;
        for (at, row) in rows {
            range.start = successor(&at);
            match read_time(Space::OwnerAlert, &at) {
                Ok(due) if due > now => return Ok(DueOwnerAlerts { next: Some(due), ..all }),
                Ok(_) => {}
                Err(error) => {
                    all.damaged.push((at, error.into()));
                    continue;
                }
            }
            match codec::decode(&row) {
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

#[cfg(test)]
mod tests {
    use model::id::{AccountId, EventId};
    use model::owner_alert::AlertSubject;

    use super::*;
    use model::id::WebhookId;
    use model::owner_alert::WebhookAlert;

    #[test]
    fn rows_round_trip() {
        let id = EventId::new(Timestamp::UNIX_EPOCH, 1);
        let (account, webhook) = (AccountId::new(Timestamp::UNIX_EPOCH, 1), WebhookId::new(Timestamp::UNIX_EPOCH, 1));
        let old = format!(
            r#"[1,{{"id":"{id}","account":"{account}","webhook":"{webhook}","url":"https://a.example/","what":"gone","since":"1970-01-01T00:00:00Z"}}]"#
        );
        let read: OwnerAlert = codec::decode(old.as_bytes()).unwrap();
        assert!(matches!(&read.about, AlertSubject::Endpoint { what: WebhookAlert::Gone, .. }));
        assert_eq!(String::from_utf8_lossy(&codec::encode(&read)), old);
        let about = AlertSubject::Claim { claimed: "a.example".parse().unwrap(), grace_ends_at: Timestamp::UNIX_EPOCH };
        let claim = OwnerAlert { about, ..read };
        assert_eq!(codec::decode::<OwnerAlert>(&codec::encode(&claim)).unwrap(), claim);
    }

    #[tokio::test]
    async fn an_alert_is_removed_once_and_can_be_deferred() {
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
        // Damaged rows block nothing, however many there are.
        let damaged = |n| key(Space::OwnerAlert).u16(7).time(at(2)).id(EventId::new(at(2), n).to_bytes()).build();
        let add_damaged_rows = |batch: &mut Batch| {
            for n in 0..20 {
                batch.put(damaged(n), Value::from_static(b"[9,{}]"));
            }
        };
        commit(&add_damaged_rows).await.unwrap();
        let again = list_due(&store, 7, at(5), 3).await.unwrap();
        assert_eq!((again.found.len(), again.damaged.len()), (1, 20));
        commit(&|batch| again.found[0].remove(batch)).await.unwrap();
        assert!(found(9).await.found.is_empty());
    }
}
