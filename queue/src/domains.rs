//! Sending domains: create, verify, rotate keys, claim, delete.
//!
//! ```text
//! create ─► unverified ─► check: DNS queries ─► assess ─►[ domain + setup ]
//!                            ▲ on request, and periodically
//! ```
//!
//! A domain and its setup are one commit. Of two concurrent changes, the second reads again and retries.

mod check_queue;
mod claim;
mod inspection;
mod keyed_semaphore;
mod keys;
mod publish;
mod verification;

use std::sync::Arc;
use std::time::Duration;

use dns::domain_check::DomainChecker;
use dns::query_limiter::QueryLimiter;
use dns::secrets::Vault;
use futures_util::future::BoxFuture;
use mail::address::{DomainName, NAME_BYTES_MAX};
use mail::address_pattern::AddressPattern;
use mail::domain::{DeliverySettings, DomainState, SendingDomain};
use mail::domain_setup::{DomainSetup, ServiceHosts, next_check};
use mail::event::{Event, EventKind};
use mail::id::{AccountId, DomainId, EventId};
use mail::timestamp;
pub use provider::Publisher;
use serde_json::json;
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::outbox::OutboxDispatcher;
use crate::partition_timers::PartitionTimers;
use crate::sender_authorization::SenderAuthorization;
use crate::services::Services;
use crate::subsystems::EventSubsystems;

pub use claim::{ClaimError, ClaimResult};
pub use keys::{ImportedKey, KeyImportError};
pub use publish::{CredentialSource, PublishError, PublishResult};

/// Domains whose records are published concurrently.
const PUBLISHING_MAX: usize = 16;
/// The limit for one account, so that others are not blocked.
const PUBLISHING_PER_ACCOUNT_MAX: usize = 3;
/// Concurrent checks of one account: the periodic ones ([`check_queue`]), and some on request.
const CHECKS_PER_ACCOUNT_MAX: usize = 6;
/// Commits tried when a row changes concurrently.
const COMMIT_TRIES_MAX: usize = 20;

/// Why a domain was not added or changed.
#[derive(Debug, Error)]
pub enum DomainError {
    #[error("{0} is a domain of this account already")]
    Exists(DomainName),
    #[error("{0} is a domain of another account")]
    Taken(DomainName),
    /// The plan's limit is reached.
    #[error("the plan includes {limit} domains")]
    Limit {
        /// The limit.
        limit: u32,
        /// Domains that the account has.
        used: u32,
    },
    /// A required record would have a name longer than DNS allows.
    #[error("is too long: {0} would be longer than the 253 bytes that a DNS name may have")]
    TooLong(String),
    #[error("domain not found")]
    Unknown,
    /// Concurrent changes did not end.
    #[error("the domain was changed at the same time; try again")]
    Conflict,
    /// The account's limit of DNS queries is reached.
    #[error(
        "too many DNS queries for this account; try again in {} s",
        retry_after.as_secs_f64().ceil()
    )]
    TooManyDnsQueries { retry_after: Duration },
    /// Keys cannot be generated or sealed.
    #[error("cannot generate DKIM keys: {0}")]
    Keys(String),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(CommitError),
}

/// A domain to be added.
#[derive(Debug)]
pub struct NewDomain {
    pub name: DomainName,
    pub delivery: DeliverySettings,
    /// True to accept mail for the domain.
    pub inbound_enabled: bool,
    /// Addresses to accept mail for; empty accepts all.
    pub inbound_addresses: Vec<AddressPattern>,
    /// Selector of its RSA key; generated if `None`.
    pub selector: Option<String>,
    /// Its RSA key; generated if `None`.
    pub rsa: Option<ImportedKey>,
}

impl NewDomain {
    /// A domain with default settings.
    #[must_use]
    pub fn with_name(name: DomainName) -> Self {
        Self {
            name,
            delivery: DeliverySettings::default(),
            inbound_enabled: false,
            inbound_addresses: Vec::new(),
            selector: None,
            rsa: None,
        }
    }
}

/// A domain and the check results of its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainWithSetup {
    pub domain: SendingDomain,
    pub setup: DomainSetup,
}

/// Parameters of [`SendingDomains::new`] besides the shared handles.
pub struct DomainsParts {
    /// Seals DKIM keys.
    pub vault: Arc<Vault>,
    /// Queries DNS records.
    pub inspector: DomainChecker,
    /// Publishes records at DNS providers.
    pub publisher: Publisher,
    /// Host names of this installation that records refer to.
    pub facts: ServiceHosts,
    /// For development: domains are verified when they are added, without DNS queries.
    pub auto_verify: bool,
}

pub struct SendingDomains {
    services: Services,
    outbox: Arc<OutboxDispatcher>,
    owner_alert_timers: Arc<PartitionTimers>,
    sender_authorization: Arc<SenderAuthorization>,
    publishing: Semaphore,
    /// Publications in progress, by account.
    publishing_by_account: keyed_semaphore::KeyedSemaphore<AccountId>,
    /// Checks in progress, by account.
    checks_by_account: keyed_semaphore::KeyedSemaphore<AccountId>,
    /// Checks in progress, by account and domain.
    checks_by_domain: keyed_semaphore::KeyedSemaphore<(AccountId, DomainName)>,
    recent_inspections: inspection::RecentInspections,
    /// Rate limiter of DNS queries, by account.
    dns_query_limiter: QueryLimiter<AccountId>,
    parts: DomainsParts,
}

impl SendingDomains {
    pub(crate) fn new(
        services: Services,
        events: &EventSubsystems,
        sender_authorization: Arc<SenderAuthorization>,
        parts: DomainsParts,
    ) -> Self {
        Self {
            services,
            outbox: Arc::clone(&events.outbox),
            owner_alert_timers: Arc::clone(&events.owner_alert_timers),
            sender_authorization,
            publishing: Semaphore::new(PUBLISHING_MAX),
            publishing_by_account: keyed_semaphore::KeyedSemaphore::new(PUBLISHING_PER_ACCOUNT_MAX),
            checks_by_account: keyed_semaphore::KeyedSemaphore::new(CHECKS_PER_ACCOUNT_MAX),
            checks_by_domain: keyed_semaphore::KeyedSemaphore::new(1),
            recent_inspections: inspection::RecentInspections::default(),
            dns_query_limiter: QueryLimiter::default(),
            parts,
        }
    }

    /// Host names of this installation that records refer to.
    #[must_use]
    pub fn facts(&self) -> &ServiceHosts {
        &self.parts.facts
    }

    /// Returns whether domains are verified without DNS queries.
    #[must_use]
    pub fn auto_verifies(&self) -> bool {
        self.parts.auto_verify
    }

    /// Returns whether names outside the public DNS are allowed: in development and private networks.
    #[must_use]
    pub fn allows_private_names(&self) -> bool {
        self.parts.auto_verify || self.parts.inspector.allows_private()
    }

    fn store(&self) -> &Store {
        &self.services.store
    }

    /// Adds a domain with its keys, if the account has fewer than `limit`.
    ///
    /// # Errors
    /// Returns a [`DomainError`], for example `Exists`, `Taken` or `Limit`.
    pub fn create(
        &self,
        account: AccountId,
        new: NewDomain,
        limit: Option<u32>,
    ) -> BoxFuture<'_, Result<DomainWithSetup, DomainError>> {
        Box::pin(async move {
            self.check_can_add(account, &new.name, limit).await?;
            let now = self.services.clock.now();
            let id = DomainId::new(now, self.services.entropy.unique_bits());
            let dkim = self.make_keys(id, new.selector, new.rsa).await?;
            let domain = SendingDomain {
                id,
                account,
                name: new.name,
                state: DomainState::Unverified,
                dkim,
                next_dkim: None,
                former_dkim: None,
                delivery: new.delivery,
                inbound_enabled: new.inbound_enabled,
                inbound_addresses: new.inbound_addresses,
                created_at: now,
                verified_at: None,
                updated_at: now,
            };
            // RFC 1035 2.3.4: a record with a longer name cannot be published.
            let too_long = |name: &String| name.len() > NAME_BYTES_MAX;
            if let Some(name) = self.parts.facts.required_records(&domain).into_iter().map(|r| r.name).find(too_long) {
                return Err(DomainError::TooLong(name));
            }
            let setup = self.initial_setup(domain);
            for _ in 0..COMMIT_TRIES_MAX {
                let count = self.check_can_add(account, &setup.domain.name, limit).await?;
                let mut batch = Batch::progress();
                store::domain::create(&mut batch, &setup.domain, &count);
                store::domain_setup::create(&mut batch, store::domain_setup::setup_key(&setup.domain), &setup.setup);
                self.record_changes(&mut batch, None, &setup);
                if self.commit_domain(batch, &setup.domain).await? {
                    return Ok(setup);
                }
            }
            Err(DomainError::Conflict)
        })
    }

    /// A new domain and its first setup; verified at once if domains are verified automatically.
    fn initial_setup(&self, mut domain: SendingDomain) -> DomainWithSetup {
        let now = domain.created_at;
        let mut setup = DomainSetup::new(now);
        if self.parts.auto_verify {
            domain.state = DomainState::Verified;
            domain.verified_at = Some(now);
            domain.dkim.ed25519_published = true;
            domain.delivery.tracking_seen.clone_from(&domain.delivery.tracking_host);
        } else {
            setup.due = next_check(&domain, &setup, now, self.services.entropy.u64());
        }
        DomainWithSetup { domain, setup }
    }

    async fn check_can_add(
        &self,
        account: AccountId,
        name: &DomainName,
        limit: Option<u32>,
    ) -> Result<store::domain::DomainCount, DomainError> {
        if let Some(existing) = store::domain::find_by_name(self.store(), name).await? {
            let is_own = existing.account == account;
            return Err(if is_own { DomainError::Exists(name.clone()) } else { DomainError::Taken(name.clone()) });
        }
        self.check_domain_limit(account, limit).await
    }

    async fn check_domain_limit(
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

    /// Reads a domain of an account with its setup.
    ///
    /// # Errors
    /// [`DomainError::Unknown`], or the store cannot be read.
    pub async fn get(&self, account: AccountId, id: DomainId) -> Result<DomainWithSetup, DomainError> {
        let domain = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
        Ok(self.load_setup(domain).await?.0)
    }

    /// Reads the setup of a domain. Returns it with the stored row, if there is one.
    async fn load_setup(
        &self,
        domain: SendingDomain,
    ) -> Result<(DomainWithSetup, Option<store::domain_setup::StoredDomainSetup>), DomainError> {
        let found = store::domain_setup::get(self.store(), store::domain_setup::setup_key(&domain)).await?;
        let setup = found.as_ref().map_or_else(|| DomainSetup::new(domain.created_at), |found| found.setup.clone());
        Ok((DomainWithSetup { domain, setup }, found))
    }

    /// Changes a domain's settings.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the domain is unknown or the commit fails.
    pub async fn change(
        &self,
        account: AccountId,
        id: DomainId,
        change: impl Fn(&mut SendingDomain),
    ) -> Result<DomainWithSetup, DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let mut after = before.clone();
            change(&mut after);
            let is_tracking_host_changed = after.delivery.tracking_host != before.delivery.tracking_host;
            // Without DNS checks, the tracking host is taken as configured.
            if is_tracking_host_changed
                && (self.parts.auto_verify || self.load_setup(before.clone()).await?.0.setup.operator_verified)
            {
                after.delivery.tracking_seen.clone_from(&after.delivery.tracking_host);
            }
            if after != before {
                after.updated_at = self.services.clock.now();
                let mut batch = Batch::progress();
                store::domain::update(&mut batch, &before, &after);
                if !self.commit_domain(batch, &before).await? {
                    continue;
                }
            }
            if is_tracking_host_changed {
                // Links use the tracking host as soon as its record is found.
                return self.schedule_check(account, id).await;
            }
            return Ok(self.load_setup(after).await?.0);
        }
        Err(DomainError::Conflict)
    }

    /// Deletes a domain.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the domain is unknown or the commit fails.
    pub async fn delete(&self, account: AccountId, id: DomainId) -> Result<(), DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let domain = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let count = store::domain::count(self.store(), account).await?;
            let (setup, found) = self.load_setup(domain).await?;
            let mut batch = Batch::progress();
            store::domain::delete(&mut batch, &setup.domain, &count);
            if let Some(found) = found {
                store::domain_setup::delete(&mut batch, store::domain_setup::setup_key(&setup.domain), &found);
            }
            if self.commit_domain(batch, &setup.domain).await? {
                return Ok(());
            }
        }
        Err(DomainError::Conflict)
    }

    /// Replaces a domain and its setup. Returns false if they changed concurrently.
    async fn save_domain(
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
    fn record_changes(
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
        let event = Event {
            id: EventId::new(now, self.services.entropy.unique_bits()),
            account: domain.account,
            subject: domain.id.into(),
            kind,
            recipient: None,
            created_at: now,
            detail: json!({
                "domain_id": domain.id, "domain": domain.name, "status": domain.state,
                "verified_at": domain.verified_at.map(timestamp::to_rfc3339),
                "degraded_since": after.setup.degraded_since.map(timestamp::to_rfc3339),
            }),
        };
        store::event::record_in_any_partition(batch, &event);
    }

    /// Commits a change of a domain and invalidates cached sender authorizations. Returns false on a conflict.
    async fn commit_domain(&self, batch: Batch, domain: &SendingDomain) -> Result<bool, DomainError> {
        let committed = self.commit_unless_changed(batch).await;
        self.sender_authorization.invalidate(domain.account, Some(&domain.name));
        committed
    }

    /// Commits. Returns false on a conflict.
    async fn commit_unless_changed(&self, batch: Batch) -> Result<bool, DomainError> {
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
