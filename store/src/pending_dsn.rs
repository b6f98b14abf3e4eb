//! Pending DSNs: per recipient, what a delivery status notification (RFC 3464) must report.
//!
//! ```text
//! PendingDsn · partition · account · email · recipient  ─►  the entry
//! ```
//!
//! An entry is written in the commit that settles its recipient, in the partition of the recipient's task. A later
//! entry of the same recipient replaces it. The commit of the DSN deletes the entries that it reports, each as it was
//! read, so each is reported once.

use jiff::Timestamp;
use message::pending_dsn::PendingDsn;
use model::id::{AccountId, EmailId};

use crate::codec::{self, stored};
use crate::email::RECIPIENTS_MAX;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};

stored!(PendingDsn);

pub type PendingDsnKey = (AccountId, EmailId);

fn prefix(partition: u16, (account, email): PendingDsnKey) -> KeyBuilder {
    key(Space::PendingDsn).u16(partition).account(account).id(email.to_bytes())
}

/// Writes an entry; replaces an earlier one of the recipient.
pub fn put(batch: &mut Batch, partition: u16, about: PendingDsnKey, notice: &PendingDsn) {
    batch.put(prefix(partition, about).u16(notice.recipient).build(), codec::encode(notice));
}

/// An entry with the row it was read from.
#[derive(Debug, Clone)]
pub struct StoredPendingDsn {
    pub notice: PendingDsn,
    row: (Key, Value),
}

impl StoredPendingDsn {
    /// Deletes a reported entry. The commit conflicts if the row has changed since it was read.
    pub fn remove(&self, batch: &mut Batch) {
        batch.remove(self.row.0.clone(), self.row.1.clone());
    }
}

/// Lists the entries of an email in one partition, by recipient.
pub async fn list_by_email(store: &Store, partition: u16, about: PendingDsnKey) -> Result<Vec<StoredPendingDsn>> {
    let rows = store.scan(prefix(partition, about).range(), ScanOrder::Ascending, RECIPIENTS_MAX).await?;
    rows.into_iter().map(|row| Ok(StoredPendingDsn { notice: codec::decode(&row.1)?, row })).collect()
}

/// Finds the first email of a partition, from a key on, that has entries. Returns its key, the time of its first
/// recipient's entry, and the key from which to search for the next email.
pub async fn next_email(
    store: &Store,
    partition: u16,
    from: Option<Key>,
) -> Result<Option<(PendingDsnKey, Timestamp, Key)>> {
    let whole = key(Space::PendingDsn).u16(partition).range();
    let from = from.unwrap_or(whole.start);
    let Some((found, row)) = store.scan(from..whole.end, ScanOrder::Ascending, 1).await?.pop() else {
        return Ok(None);
    };
    let notice: PendingDsn = codec::decode(&row)?;
    let mut reader = KeyReader::new(Space::PendingDsn, &found)?;
    reader.u16()?;
    let account = reader.account()?;
    let about = (account, EmailId::from_bytes(reader.id()?));
    Ok(Some((about, notice.last_attempt_at, prefix(partition, about).range().end)))
}

#[cfg(test)]
mod tests {
    use message::pending_dsn::DsnAction;

    use super::*;

    fn notice(recipient: u16, action: DsnAction) -> PendingDsn {
        PendingDsn {
            recipient,
            address: "one@example.net".parse().unwrap(),
            action,
            original_recipient: None,
            expired: false,
            reply: None,
            remote_host: None,
            explanation: "gone".to_owned(),
            accepted_at: Timestamp::UNIX_EPOCH,
            last_attempt_at: Timestamp::UNIX_EPOCH,
            smtputf8: false,
        }
    }

    #[tokio::test]
    async fn emails_are_found_in_turn_and_entries_are_removed_once() {
        let store = Store::memory();
        let about = |email| {
            let at = Timestamp::UNIX_EPOCH;
            (AccountId::new(at, 1), EmailId::new(at, email))
        };
        let mut batch = Batch::progress();
        for (partition, email, recipient) in [(3, 1, 0), (3, 1, 1), (3, 2, 0), (4, 1, 2)] {
            put(&mut batch, partition, about(email), &notice(recipient, DsnAction::Relayed));
        }
        store.commit(batch).await.unwrap();
        let (first, _, next) = next_email(&store, 3, None).await.unwrap().unwrap();
        let (second, _, end) = next_email(&store, 3, Some(next)).await.unwrap().unwrap();
        assert_eq!((first, second), (about(1), about(2)));
        assert!(next_email(&store, 3, Some(end)).await.unwrap().is_none());

        let found = list_by_email(&store, 3, about(1)).await.unwrap();
        assert_eq!(found.len(), 2);
        let mut taking = Batch::progress();
        found.iter().for_each(|entry| entry.remove(&mut taking));
        // A newer entry of a recipient is not lost.
        let mut newer = Batch::progress();
        put(&mut newer, 3, about(1), &notice(1, DsnAction::Failed));
        store.commit(newer).await.unwrap();
        assert!(store.commit(taking).await.is_err());
        let found = list_by_email(&store, 3, about(1)).await.unwrap();
        assert_eq!(found[1].notice.action, DsnAction::Failed);
        let mut taking = Batch::progress();
        found.iter().for_each(|entry| entry.remove(&mut taking));
        store.commit(taking.clone()).await.unwrap();
        assert!(store.commit(taking).await.is_err(), "reported once");
    }
}
