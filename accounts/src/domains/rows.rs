//! The rows of domains: a domain and its setup are read, changed and committed together.

use std::sync::Arc;

use dns::secrets::Vault;
use model::domain::{DomainState, SendingDomain};
use model::domain_setup::{DomainSetup, ServiceHosts, next_check};
use model::event::{Event, EventKind};
use model::id::{AccountId, DomainId, EventId};
use model::timestamp;
use queue::intake::sender_authorization::SenderAuthorization;
use queue::services::Services;
use serde_json::json;
use store::engine::{Batch, CommitError, Store};

use super::{COMMIT_TRIES_MAX, DomainError, DomainWithSetup, NewDomain};

/// Reads and commits domains.
pub(super) struct DomainRows {
    pub(super) services: Services,
    pub(super) senders: Arc<SenderAuthorization>,
    /// Seals DKIM keys and the credentials of DNS providers.
    pub(super) vault: Arc<Vault>,
    /// Host names of this installation that records refer to.
    pub(super) facts: ServiceHosts,
    /// Domains are verified when they are added, without DNS queries.
    pub(super) auto_verify: bool,
}

impl DomainRows {
    pub(super) fn store(&self) -> &Store {
        &self.services.store
    }

    /// Reads a domain of an account with its setup.
    pub(super) async fn get(&self, account: AccountId, id: DomainId) -> Result<DomainWithSetup, DomainError> {
        let domain = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
        Ok(self.load_setup(domain).await?.0)
    }

    /// Reads the setup of a domain. Returns it with the stored row, if there is one.
    pub(super) async fn load_setup(
        &self,
        domain: SendingDomain,
    ) -> Result<(DomainWithSetup, Option<store::domain_setup::StoredDomainSetup>), DomainError> {
        let found = store::domain_setup::get(self.store(), store::domain_setup::setup_key(&domain)).await?;
        let setup = found.as_ref().map_or_else(|| DomainSetup::new(domain.created_at), |found| found.setup.clone());
        Ok((DomainWithSetup { domain, setup }, found))
    }

    pub(super) async fn check_domain_limit(
        &self,
        account: AccountId,
        limit: Option<u32>,
    ) -> Result<store::domain::DomainCount, DomainError> {
        let count = store::domain::count(self.store(), account).await?;
        match limit.filter(|limit| count.number >= *limit) {
            Some(limit) => Err(DomainError::Limit { limit, used: count.number }),
            None => Ok(count),
        }
    }

    /// A new domain with its keys; nothing is stored.
    pub(super) async fn new_domain(&self, account: AccountId, new: NewDomain) -> Result<SendingDomain, DomainError> {
        let now = self.services.clock.now();
        let id = DomainId::new(now, self.services.entropy.unique_bits());
        Ok(SendingDomain {
            id,
            account,
            name: new.name,
            state: DomainState::Unverified,
            dkim: self.make_keys(id, new.selector, new.rsa).await?,
            next_dkim: None,
            former_dkim: None,
            delivery: new.delivery,
            inbound_enabled: new.inbound_enabled,
            inbound_addresses: new.inbound_addresses,
            created_at: now,
            verified_at: None,
            updated_at: now,
        })
    }

    /// A new domain and its first setup; verified at once if domains are verified automatically.
    pub(super) fn initial_setup(&self, mut domain: SendingDomain) -> DomainWithSetup {
        let now = domain.created_at;
        let mut setup = DomainSetup::new(now);
        if self.auto_verify {
            domain.state = DomainState::Verified;
            domain.verified_at = Some(now);
            domain.dkim.ed25519_published = true;
            domain.delivery.tracking_seen.clone_from(&domain.delivery.tracking_host);
        } else {
            setup.due = next_check(&domain, &setup, now, self.services.entropy.u64());
        }
        DomainWithSetup { domain, setup }
    }

    /// Schedules frequent checks from a minute on: records were, or will be, published.
    pub(super) async fn schedule_check(
        &self,
        account: AccountId,
        id: DomainId,
    ) -> Result<DomainWithSetup, DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let (mut after, found) = self.load_setup(before.clone()).await?;
            if self.auto_verify || after.setup.operator_verified {
                return Ok(after);
            }
            let now = self.services.clock.now();
            after.setup.since = now;
            after.setup.due = next_check(&after.domain, &after.setup, now, self.services.entropy.u64());
            if self.save_domain(&before, found.as_ref(), &after).await? {
                return Ok(after);
            }
        }
        // The concurrent change schedules a check too.
        self.get(account, id).await
    }

    /// Replaces a domain and its setup. Returns false if they changed concurrently.
    pub(super) async fn save_domain(
        &self,
        before: &SendingDomain,
        found: Option<&store::domain_setup::StoredDomainSetup>,
        after: &DomainWithSetup,
    ) -> Result<bool, DomainError> {
        let key = store::domain_setup::setup_key(before);
        let mut batch = Batch::progress();
        store::domain::update(&mut batch, before, &after.domain);
        match found {
            Some(found) => store::domain_setup::update(&mut batch, key, found, &after.setup),
            None => store::domain_setup::create(&mut batch, key, &after.setup),
        }
        let setup = found.map(|found| &found.setup);
        self.record_changes(&mut batch, Some((before, setup)), after);
        self.commit_domain(batch, before).await
    }

    /// Records the event if the change verifies or degrades the domain.
    pub(super) fn record_changes(
        &self,
        batch: &mut Batch,
        before: Option<(&SendingDomain, Option<&DomainSetup>)>,
        after: &DomainWithSetup,
    ) {
        let (domain, now) = (&after.domain, self.services.clock.now());
        let is_verified = domain.state == DomainState::Verified;
        let was_verified = before.is_some_and(|(before, _)| before.state == DomainState::Verified);
        let was_degraded = before.and_then(|(_, setup)| setup?.degraded_since).is_some();
        let kind = match (was_verified, is_verified, after.setup.degraded_since) {
            (false, true, _) => EventKind::DomainVerified,
            (true, true, Some(_)) if !was_degraded => EventKind::DomainDegraded,
            _ => return,
        };
        let detail = json!({
            "domain_id": domain.id, "domain": domain.name, "status": domain.state,
            "verified_at": domain.verified_at.map(timestamp::to_rfc3339),
            "degraded_since": after.setup.degraded_since.map(timestamp::to_rfc3339),
        });
        let id = EventId::new(now, self.services.entropy.unique_bits());
        let event = Event::new(id, domain.account, domain.id, kind, now, detail);
        store::event::record_in_any_partition(batch, &event);
    }

    /// Commits a change of a domain and invalidates cached sender authorizations. Returns false on a conflict.
    pub(super) async fn commit_domain(&self, batch: Batch, domain: &SendingDomain) -> Result<bool, DomainError> {
        let committed = self.commit_unless_changed(batch).await;
        self.senders.invalidate(domain.account, Some(&domain.name));
        committed
    }

    /// Commits. Returns false on a conflict.
    pub(super) async fn commit_unless_changed(&self, batch: Batch) -> Result<bool, DomainError> {
        match self.store().commit(batch).await {
            Ok(()) => {
                // The commit may contain events.
                self.services.outbox_wakeup.notify_one();
                Ok(true)
            }
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(DomainError::Commit(error)),
        }
    }
}
