//! The porter: lets programs in by key or password, at both doors alike, and remembers when.
//!
//! ```text
//! secret + address ─► store::access ─► Tenant
//!                          └─► last use, in memory ─► once a minute, and at the end: written in batches
//! ```
//!
//! So letting in writes nothing, and a key that is used a thousand times a second is written once a
//! minute. Of a node that dies, the last minute's uses are forgotten.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mail::credential::{LastUse, SecretHash};
use mail::id::AccountId;
use store::access::{self, AccessContext, AccessError, Tenant};
use store::engine::{Batch, CommitError, ReadError, Store};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::accept::Intake;
use crate::worker::Worker;

/// How often uses are written.
const FLUSH_INTERVAL: Duration = Duration::from_secs(60);
/// Credentials whose use is remembered until it is written; beyond it uses are not remembered.
const CREDENTIALS_MAX: usize = 50_000;
/// Rows of one commit.
const BATCH_ROWS: usize = 1_000;

/// Uses that are not written yet, by the credential's id.
#[derive(Debug, Default)]
pub(crate) struct LastUsedWriter(Mutex<HashMap<[u8; 16], (AccountId, LastUse)>>);

impl LastUsedWriter {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], (AccountId, LastUse)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, account: AccountId, id: [u8; 16], used: LastUse) {
        let mut uses = self.lock();
        if uses.len() < CREDENTIALS_MAX || uses.contains_key(&id) {
            uses.insert(id, (account, used));
        } else {
            metrics::counter!("postrider_last_uses_dropped_total").increment(1);
        }
    }

    fn get(&self, id: &[u8; 16]) -> Option<LastUse> {
        self.lock().get(id).map(|(_, used)| *used)
    }

    fn remove(&self, id: &[u8; 16]) {
        self.lock().remove(id);
    }

    /// Writes them. What was used again meanwhile stays for the next time, as does what could not be
    /// written.
    async fn flush(&self, store: &Store) -> Result<(), CommitError> {
        let all: Vec<_> = self.lock().iter().map(|(id, (account, used))| (*account, *id, *used)).collect();
        for some in all.chunks(BATCH_ROWS) {
            let mut batch = Batch::intake();
            for (account, id, used) in some {
                store::last_used::put(&mut batch, *account, *id, used);
            }
            store.commit(batch).await?;
            let mut uses = self.lock();
            for (_, id, used) in some {
                if uses.get(id).is_some_and(|(_, now)| now == used) {
                    uses.remove(id);
                }
            }
        }
        Ok(())
    }
}

/// Places for the revisions of all accounts. Two accounts in one place only look again once too often.
const REVISION_SLOTS: usize = 1_024;

/// How often the credentials and users of accounts were changed at this node: whoever was let in for longer than one
/// request compares, and looks again.
#[derive(Debug)]
pub(crate) struct AccessRevisions {
    counts: Vec<AtomicU64>,
    changed: Notify,
}

impl Default for AccessRevisions {
    fn default() -> Self {
        let counts = std::iter::repeat_with(AtomicU64::default).take(REVISION_SLOTS).collect();
        Self { counts, changed: Notify::new() }
    }
}

impl AccessRevisions {
    fn slot_for(&self, account: AccountId) -> Option<&AtomicU64> {
        let bytes = account.to_bytes();
        let [.., high, low] = bytes;
        self.counts.get(usize::from(u16::from_be_bytes([high, low])) % REVISION_SLOTS)
    }
}

impl Worker {
    /// Keeps writing when credentials were last used, until the worker stops, and once more.
    pub(crate) async fn run_last_used_writer(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(FLUSH_INTERVAL) => {}
                () = self.stop.cancelled() => {}
            }
            if let Err(error) = self.last_used.flush(&self.store).await {
                store::warn_unless_away!(self.store, %error, "when keys were last used could not be written");
            }
            if self.stop.is_cancelled() {
                return;
            }
        }
    }
}

impl Intake {
    fn record_last_used(&self, tenant: Tenant, arrival: AccessContext) -> Tenant {
        if let Some(id) = tenant.actor().credential() {
            let used = LastUse { at: arrival.now, from: arrival.from };
            self.worker.last_used.record(tenant.account().id, id.to_bytes(), used);
        }
        tenant
    }

    fn access_context(&self, from: Option<IpAddr>) -> AccessContext {
        AccessContext { from: from.map(|address| address.to_canonical()), now: self.clock().now() }
    }

    /// Lets in whoever holds an API key.
    ///
    /// # Errors
    /// [`AccessError`].
    pub async fn authenticate_api_key(&self, secret: &str, from: Option<IpAddr>) -> Result<Tenant, AccessError> {
        let arrival = self.access_context(from);
        let tenant = access::authenticate_api_key(self.store(), secret, arrival).await?;
        Ok(self.record_last_used(tenant, arrival))
    }

    /// Lets in whoever holds the SMTP credential whose password has this hash.
    ///
    /// # Errors
    /// [`AccessError`].
    pub async fn authenticate_smtp_password(
        &self,
        hash: &SecretHash,
        from: Option<IpAddr>,
    ) -> Result<Tenant, AccessError> {
        let arrival = self.access_context(from);
        let tenant = access::authenticate_smtp_password(self.store(), hash, arrival).await?;
        Ok(self.record_last_used(tenant, arrival))
    }

    /// When these credentials of an account were last used, in their order; at another node up to a
    /// minute late.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn last_used(&self, account: AccountId, ids: &[[u8; 16]]) -> Result<Vec<Option<LastUse>>, ReadError> {
        let written = store::last_used::list(self.store(), account, ids).await?;
        let latest = |(id, written): (&[u8; 16], Option<LastUse>)| {
            [self.worker.last_used.get(id), written].into_iter().flatten().max_by_key(|used| used.at)
        };
        Ok(ids.iter().zip(written).map(latest).collect())
    }

    /// The credentials, users or sessions of an account were changed here: what was authorised by them looks again
    /// before it goes on. Other nodes look within a second.
    pub fn notify_access_change(&self, account: AccountId) {
        let revisions = &self.worker.access_revisions;
        if let Some(count) = revisions.slot_for(account) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        revisions.changed.notify_waiters();
    }

    /// A number that is another after each change of who an account lets in.
    #[must_use]
    pub fn access_revision(&self, account: AccountId) -> u64 {
        self.worker.access_revisions.slot_for(account).map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Ends with the next change, of whatever account.
    pub fn next_access_change(&self) -> Notified<'_> {
        self.worker.access_revisions.changed.notified()
    }

    /// A credential was deleted: its use is written no more.
    pub fn forget_last_used(&self, id: [u8; 16]) {
        self.worker.last_used.remove(&id);
    }

    /// How long an email is kept.
    #[must_use]
    pub fn retention(&self) -> Duration {
        self.worker.delivery_policy().retention
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test]
    async fn uses_are_written_once_and_the_last_counts() {
        let (store, uses) = (Store::memory(), LastUsedWriter::default());
        let account = AccountId::from_bytes([1; 16]);
        let at =
            |second| LastUse { at: Timestamp::from_second(second).unwrap(), from: Some("192.0.2.1".parse().unwrap()) };
        for second in 1..=5 {
            uses.record(account, [7; 16], at(second));
        }
        assert_eq!(uses.get(&[7; 16]), Some(at(5)));
        uses.flush(&store).await.unwrap();
        assert_eq!(uses.get(&[7; 16]), None);
        let written = store::last_used::list(&store, account, &[[7; 16], [8; 16]]).await.unwrap();
        assert_eq!(written, [Some(at(5)), None]);
        uses.record(account, [7; 16], at(6));
        uses.remove(&[7; 16]);
        uses.flush(&store).await.unwrap();
        assert_eq!(store::last_used::list(&store, account, &[[7; 16]]).await.unwrap(), [Some(at(5))]);
    }
}
