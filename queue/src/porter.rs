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

use mail::credential::{LastUsed, SecretHash};
use mail::id::AccountId;
use store::access::{self, AccessError, Arrival, Tenant};
use store::engine::{Batch, CommitError, ReadError, Store};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::accept::Hall;
use crate::worker::Worker;

/// How often uses are written.
const INTERVAL: Duration = Duration::from_secs(60);
/// Credentials whose use is remembered until it is written; beyond it uses are not remembered.
const CREDENTIALS_MAX: usize = 50_000;
/// Rows of one commit.
const BATCH_ROWS: usize = 1_000;

/// Uses that are not written yet, by the credential's id.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<HashMap<[u8; 16], (AccountId, LastUsed)>>);

impl Uses {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], (AccountId, LastUsed)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, account: AccountId, id: [u8; 16], used: LastUsed) {
        let mut uses = self.lock();
        if uses.len() < CREDENTIALS_MAX || uses.contains_key(&id) {
            uses.insert(id, (account, used));
        } else {
            metrics::counter!("postrider_last_uses_dropped_total").increment(1);
        }
    }

    fn of(&self, id: &[u8; 16]) -> Option<LastUsed> {
        self.lock().get(id).map(|(_, used)| *used)
    }

    fn forget(&self, id: &[u8; 16]) {
        self.lock().remove(id);
    }

    /// Writes them. What was used again meanwhile stays for the next time, as does what could not be
    /// written.
    async fn write(&self, store: &Store) -> Result<(), CommitError> {
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
const REVISIONS: usize = 1_024;

/// How often the credentials and users of accounts were changed at this node: whoever was let in for longer than one
/// request compares, and looks again.
#[derive(Debug)]
pub(crate) struct Revisions {
    counts: Vec<AtomicU64>,
    changed: Notify,
}

impl Default for Revisions {
    fn default() -> Self {
        let counts = std::iter::repeat_with(AtomicU64::default).take(REVISIONS).collect();
        Self { counts, changed: Notify::new() }
    }
}

impl Revisions {
    fn of(&self, account: AccountId) -> Option<&AtomicU64> {
        let bytes = account.to_bytes();
        let [.., high, low] = bytes;
        self.counts.get(usize::from(u16::from_be_bytes([high, low])) % REVISIONS)
    }
}

impl Worker {
    /// Keeps writing when credentials were last used, until the worker stops, and once more.
    pub(crate) async fn write_uses(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.stop.cancelled() => {}
            }
            if let Err(error) = self.uses.write(&self.store).await {
                store::warn_unless_away!(self.store, %error, "when keys were last used could not be written");
            }
            if self.stop.is_cancelled() {
                return;
            }
        }
    }
}

impl Hall {
    fn let_in(&self, tenant: Tenant, arrival: Arrival) -> Tenant {
        if let Some(id) = tenant.actor().credential() {
            let used = LastUsed { at: arrival.now, from: arrival.from };
            self.worker.uses.note(tenant.account().id, id.to_bytes(), used);
        }
        tenant
    }

    fn arrival(&self, from: Option<IpAddr>) -> Arrival {
        Arrival { from: from.map(|address| address.to_canonical()), now: self.clock().now() }
    }

    /// Lets in whoever holds an API key.
    ///
    /// # Errors
    /// [`AccessError`].
    pub async fn by_api_key(&self, secret: &str, from: Option<IpAddr>) -> Result<Tenant, AccessError> {
        let arrival = self.arrival(from);
        let tenant = access::by_api_key(self.store(), secret, arrival).await?;
        Ok(self.let_in(tenant, arrival))
    }

    /// Lets in whoever holds the SMTP credential whose password has this hash.
    ///
    /// # Errors
    /// [`AccessError`].
    pub async fn by_smtp_password(
        &self,
        hash: &SecretHash,
        from: Option<IpAddr>,
    ) -> Result<Tenant, AccessError> {
        let arrival = self.arrival(from);
        let tenant = access::by_smtp_password(self.store(), hash, arrival).await?;
        Ok(self.let_in(tenant, arrival))
    }

    /// When these credentials of an account were last used, in their order; at another node up to a
    /// minute late.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn last_used(
        &self,
        account: AccountId,
        ids: &[[u8; 16]],
    ) -> Result<Vec<Option<LastUsed>>, ReadError> {
        let written = store::last_used::of(self.store(), account, ids).await?;
        let latest = |(id, written): (&[u8; 16], Option<LastUsed>)| {
            [self.worker.uses.of(id), written].into_iter().flatten().max_by_key(|used| used.at)
        };
        Ok(ids.iter().zip(written).map(latest).collect())
    }

    /// The credentials, users or sessions of an account were changed here: what was authorised by them looks again
    /// before it goes on. Other nodes look within a second.
    pub fn access_changed(&self, account: AccountId) {
        let revisions = &self.worker.revisions;
        if let Some(count) = revisions.of(account) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        revisions.changed.notify_waiters();
    }

    /// A number that is another after each change of who an account lets in.
    #[must_use]
    pub fn access_revision(&self, account: AccountId) -> u64 {
        self.worker.revisions.of(account).map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Ends with the next change, of whatever account.
    pub fn next_access_change(&self) -> Notified<'_> {
        self.worker.revisions.changed.notified()
    }

    /// A credential was deleted: its use is written no more.
    pub fn forget_use(&self, id: [u8; 16]) {
        self.worker.uses.forget(&id);
    }

    /// How long an email is kept.
    #[must_use]
    pub fn retention(&self) -> Duration {
        self.worker.manners().retention
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test]
    async fn uses_are_written_once_and_the_last_counts() {
        let (store, uses) = (Store::memory(), Uses::default());
        let account = AccountId::from_bytes([1; 16]);
        let at = |second| LastUsed {
            at: Timestamp::from_second(second).unwrap(),
            from: Some("192.0.2.1".parse().unwrap()),
        };
        for second in 1..=5 {
            uses.note(account, [7; 16], at(second));
        }
        assert_eq!(uses.of(&[7; 16]), Some(at(5)));
        uses.write(&store).await.unwrap();
        assert_eq!(uses.of(&[7; 16]), None);
        let written = store::last_used::of(&store, account, &[[7; 16], [8; 16]]).await.unwrap();
        assert_eq!(written, [Some(at(5)), None]);
        uses.note(account, [7; 16], at(6));
        uses.forget(&[7; 16]);
        uses.write(&store).await.unwrap();
        assert_eq!(store::last_used::of(&store, account, &[[7; 16]]).await.unwrap(), [Some(at(5))]);
    }
}
