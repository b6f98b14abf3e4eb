//! Credential authentication by API key or SMTP password, for all listeners, and the writer of last-used times.
//!
//! ```text
//! secret + address ─► store::access ─► Tenant
//!                          └─► last use, in memory ─► written in batches once a minute and at shutdown
//! ```
//!
//! Authentication writes nothing, so a key used a thousand times a second is written once a minute. A node that crashes
//! loses the last minute's uses.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::credential::{LastUse, SecretHash};
use model::id::AccountId;
use model::oauth::OAuthResource;
use queue::services::Services;
use store::access::{self, AccessContext, AccessError, Tenant};
use store::engine::{Batch, CommitError, ReadError, Store};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Interval between writes of last uses.
const FLUSH_INTERVAL: Duration = Duration::from_secs(60);
/// Credentials with an unwritten use. Beyond this number new ones are dropped.
const CREDENTIALS_MAX: usize = 50_000;
/// Rows per commit.
const BATCH_ROWS: usize = 1_000;

/// Unwritten last uses, by credential id.
#[derive(Debug, Default)]
struct LastUses(Mutex<HashMap<[u8; 16], (AccountId, LastUse)>>);

impl LastUses {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], (AccountId, LastUse)>> {
        self.0.lock()
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

    /// Writes the uses. Entries that changed meanwhile, or whose commit failed, stay for the next flush.
    async fn flush(&self, store: &Store) -> Result<(), CommitError> {
        let all: Vec<_> = self.lock().iter().map(|(id, (account, used))| (*account, *id, *used)).collect();
        for rows in all.chunks(BATCH_ROWS) {
            let mut batch = Batch::intake();
            for (account, id, used) in rows {
                store::last_used::put(&mut batch, *account, *id, used);
            }
            store.commit(batch).await?;
            let mut uses = self.lock();
            for (_, id, used) in rows {
                if uses.get(id).is_some_and(|(_, now)| now == used) {
                    uses.remove(id);
                }
            }
        }
        Ok(())
    }
}

/// Revision counters, shared by all accounts. A collision only causes an unnecessary check.
const REVISION_SLOTS: usize = 1_024;

/// Counters of changes to accounts' credentials and users at this node. Open sessions compare them and check their
/// authorisation again.
#[derive(Debug)]
struct AccessRevisions {
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

/// Authenticates credentials for all listeners, and tells open sessions when to check their authorisation again.
pub struct CredentialAuthenticator {
    services: Services,
    last_uses: LastUses,
    revisions: AccessRevisions,
}

impl CredentialAuthenticator {
    pub(crate) fn new(services: Services) -> Self {
        Self { services, last_uses: LastUses::default(), revisions: AccessRevisions::default() }
    }

    /// Writes last uses periodically until shutdown, and once more at the end.
    pub async fn run(self: Arc<Self>) {
        let Services { store, stop, .. } = &self.services;
        loop {
            tokio::select! {
                () = tokio::time::sleep(FLUSH_INTERVAL) => {}
                () = stop.cancelled() => {}
            }
            if let Err(error) = self.last_uses.flush(store).await {
                store::warn_unless_away!(store, %error, "cannot write the last use of credentials; retrying");
            }
            if stop.is_cancelled() {
                return;
            }
        }
    }

    fn record_last_used(&self, tenant: Tenant, arrival: AccessContext) -> Tenant {
        if let Some(id) = tenant.actor().credential() {
            let used = LastUse { at: arrival.now, from: arrival.from };
            self.last_uses.record(tenant.account().id, id.to_bytes(), used);
        }
        tenant
    }

    fn access_context(&self, from: Option<IpAddr>) -> AccessContext {
        AccessContext { from: from.map(|address| address.to_canonical()), now: self.services.clock.now() }
    }

    /// Authenticates an API key and records its use.
    ///
    /// # Errors
    /// [`AccessError`] when the key is unknown or not accepted, or the store cannot be read.
    pub async fn authenticate_api_key(&self, secret: &str, from: Option<IpAddr>) -> Result<Tenant, AccessError> {
        let arrival = self.access_context(from);
        let tenant = access::authenticate_api_key(&self.services.store, secret, arrival).await?;
        Ok(self.record_last_used(tenant, arrival))
    }

    /// Authenticates an access token for a resource, and records the use of its grant.
    ///
    /// # Errors
    /// [`AccessError`] when the token is unknown, not accepted or for another resource, or the store cannot be read.
    pub async fn authenticate_access_token(
        &self,
        token: &str,
        resource: OAuthResource,
        from: Option<IpAddr>,
    ) -> Result<Tenant, AccessError> {
        let arrival = self.access_context(from);
        let tenant = access::authenticate_access_token(&self.services.store, token, resource, arrival.now).await?;
        Ok(self.record_last_used(tenant, arrival))
    }

    /// Authenticates the SMTP credential with this password hash and records its use.
    ///
    /// # Errors
    /// [`AccessError`] when the password is unknown or not accepted, or the store cannot be read.
    pub async fn authenticate_smtp_password(
        &self,
        hash: &SecretHash,
        from: Option<IpAddr>,
    ) -> Result<Tenant, AccessError> {
        let arrival = self.access_context(from);
        let tenant = access::authenticate_smtp_password(&self.services.store, hash, arrival).await?;
        Ok(self.record_last_used(tenant, arrival))
    }

    /// Returns the last use of an account's credentials, in the order of `ids`. Uses at other nodes appear up to a
    /// minute late.
    pub async fn last_used(&self, account: AccountId, ids: &[[u8; 16]]) -> Result<Vec<Option<LastUse>>, ReadError> {
        let written = store::last_used::list(&self.services.store, account, ids).await?;
        let latest = |(id, written): (&[u8; 16], Option<LastUse>)| {
            [self.last_uses.get(id), written].into_iter().flatten().max_by_key(|used| used.at)
        };
        Ok(ids.iter().zip(written).map(latest).collect())
    }

    /// Signals that an account's credentials, users or sessions changed, so that open sessions check their
    /// authorisation again. Other nodes notice within a second.
    pub fn notify_access_change(&self, account: AccountId) {
        let revisions = &self.revisions;
        if let Some(count) = revisions.slot_for(account) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        revisions.changed.notify_waiters();
    }

    /// Returns the account's revision, which changes with each [`Self::notify_access_change`] for it.
    #[must_use]
    pub fn access_revision(&self, account: AccountId) -> u64 {
        self.revisions.slot_for(account).map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Resolves at the next access change of any account.
    pub fn next_access_change(&self) -> Notified<'_> {
        self.revisions.changed.notified()
    }

    /// Discards the unwritten use of a deleted credential.
    pub fn forget_last_used(&self, id: [u8; 16]) {
        self.last_uses.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test]
    async fn uses_are_written_in_one_batch_with_the_latest_time() {
        let (store, uses) = (Store::memory(), LastUses::default());
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
