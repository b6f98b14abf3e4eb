//! Sending domains: added, looked at, given new keys, claimed, deleted.
//!
//! ```text
//! create ─► unverified ─► [check]: the DNS is asked ─► assess ─►[ domain + setup ]
//!                            ▲ by whoever asks, and by itself when it is due
//! ```
//!
//! A domain and its setup are one commit; of two that change one at the same time, one reads again.

mod check;
mod claim;
mod inspect;
mod keys;
mod line;
mod publish;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use dns::limiter::QueryLimiter;
use dns::seal::Vault;
use dns::setup::DomainChecker;
use futures_util::future::BoxFuture;
use mail::address::{DomainName, NAME_BYTES_MAX};
use mail::address_pattern::AddressPattern;
use mail::domain::{DeliverySettings, DomainState, SendingDomain};
use mail::event::{Event, EventKind};
use mail::id::{AccountId, DomainId, EventId};
use mail::moment;
use mail::setup::{DomainSetup, ServiceHosts, next_check};
pub use provider::Publisher;
use serde_json::json;
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::sender::SenderAuthorization;
use crate::worker::Worker;

pub use claim::{ClaimError, ClaimResult};
pub use keys::{ImportedKey, KeyImportError};
pub use publish::{CredentialSource, PublishError, PublishResult};

/// Domains whose records are published at once.
const PUBLISHING_MAX: usize = 16;
/// Of one account: others find a place whatever it does.
const PUBLISHING_PER_ACCOUNT_MAX: usize = 3;
/// How often something is tried again that somebody else changed meanwhile.
const COMMIT_TRIES_MAX: usize = 20;

/// Why a domain could not be added or changed.
#[derive(Debug, Error)]
pub enum DomainError {
    /// The name is a domain of the same account already.
    #[error("{0} is a domain of this account already")]
    Exists(DomainName),
    /// The name is a domain of another account.
    #[error("{0} is a domain of another account")]
    Taken(DomainName),
    /// The plan includes no more.
    #[error("the plan includes {limit} domains")]
    Limit {
        /// How many it includes.
        limit: u32,
        /// How many there are.
        used: u32,
    },
    /// Its records would have names that the DNS does not allow.
    #[error("is too long: {0} would be longer than the 253 bytes that a DNS name may have")]
    TooLong(String),
    /// There is no such domain.
    #[error("no such domain")]
    Unknown,
    /// It was changed by others again and again.
    #[error("the domain was changed by somebody else meanwhile; try again")]
    Conflict,
    /// The account has had too many questions asked of name servers.
    #[error(
        "too many questions were asked of name servers for this account; try again in {} s",
        retry_after.as_secs_f64().ceil()
    )]
    TooManyDnsQueries {
        /// After how long it may have more asked.
        retry_after: Duration,
    },
    /// Keys could not be made or sealed.
    #[error("making keys failed: {0}")]
    Keys(String),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(CommitError),
}

/// A domain to add.
#[derive(Debug)]
pub struct NewDomain {
    /// Its name.
    pub name: DomainName,
    /// How its mail is treated.
    pub delivery: DeliverySettings,
    /// Mail to it is taken in.
    pub inbound_enabled: bool,
    /// For these addresses only, if there are any.
    pub inbound_addresses: Vec<AddressPattern>,
    /// The selector of its RSA key; one of our own, if not given.
    pub selector: Option<String>,
    /// Its RSA key; a new one, if not given.
    pub rsa: Option<ImportedKey>,
}

impl NewDomain {
    /// A domain with nothing said but its name.
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

/// A domain and how far its records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainWithSetup {
    /// The domain.
    pub domain: SendingDomain,
    /// Its setup.
    pub setup: DomainSetup,
}

/// What the domains need beside the worker.
pub struct DomainsParts {
    /// Seals keys.
    pub vault: Arc<Vault>,
    /// Looks at the DNS.
    pub inspector: DomainChecker,
    /// Publishes records where zones are kept.
    pub publisher: Publisher,
    /// What of the installation stands in the records.
    pub facts: ServiceHosts,
    /// Domains are verified when they are added, and nobody looks at the DNS: for development.
    pub auto_verify: bool,
}

/// The sending domains of all accounts.
pub struct SendingDomains {
    worker: Arc<Worker>,
    sender_authorization: Arc<SenderAuthorization>,
    publishing: Semaphore,
    /// Domains whose records are published, by account.
    publishing_by_account: turns::KeyedSemaphore<AccountId>,
    /// Looks under way, by account.
    checks_by_account: turns::KeyedSemaphore<AccountId>,
    /// Looks under way, by what is looked at for whom.
    checks_by_domain: turns::KeyedSemaphore<(AccountId, DomainName)>,
    recent_inspections: inspect::RecentInspections,
    /// What accounts have had asked of name servers.
    dns_query_limiter: QueryLimiter<AccountId>,
    parts: DomainsParts,
}

impl SendingDomains {
    pub(crate) fn new(
        worker: Arc<Worker>,
        sender_authorization: Arc<SenderAuthorization>,
        parts: DomainsParts,
    ) -> Self {
        Self {
            worker,
            sender_authorization,
            publishing: Semaphore::new(PUBLISHING_MAX),
            publishing_by_account: turns::KeyedSemaphore::new(PUBLISHING_PER_ACCOUNT_MAX),
            checks_by_account: turns::KeyedSemaphore::new(turns::CHECKS_PER_ACCOUNT_MAX),
            checks_by_domain: turns::KeyedSemaphore::new(1),
            recent_inspections: inspect::RecentInspections::default(),
            dns_query_limiter: QueryLimiter::default(),
            parts,
        }
    }

    /// What of the installation stands in the records.
    #[must_use]
    pub fn facts(&self) -> &ServiceHosts {
        &self.parts.facts
    }

    /// Whether domains are verified without a look at the DNS.
    #[must_use]
    pub fn auto_verifies(&self) -> bool {
        self.parts.auto_verify
    }

    /// Whether names that the public DNS never has may be had here: for development, and in private networks.
    #[must_use]
    pub fn allows_private_names(&self) -> bool {
        self.parts.auto_verify || self.parts.inspector.allows_private()
    }

    fn store(&self) -> &Store {
        &self.worker.store
    }

    /// Adds a domain with its keys; of `limit` domains at most.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn create(
        &self,
        account: AccountId,
        new: NewDomain,
        limit: Option<u32>,
    ) -> BoxFuture<'_, Result<DomainWithSetup, DomainError>> {
        Box::pin(async move {
            self.check_can_add(account, &new.name, limit).await?;
            let now = self.worker.clock.now();
            let id = DomainId::new(now, self.worker.entropy.unique_bits());
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
            // RFC 1035 2.3.4: what cannot be published is never found.
            let too_long = |name: &String| name.len() > NAME_BYTES_MAX;
            if let Some(name) = self.parts.facts.required_records(&domain).into_iter().map(|r| r.name).find(too_long) {
                return Err(DomainError::TooLong(name));
            }
            let known = self.initial_setup(domain);
            for _ in 0..COMMIT_TRIES_MAX {
                let count = self.check_can_add(account, &known.domain.name, limit).await?;
                let mut batch = Batch::progress();
                store::domain::create(&mut batch, &known.domain, &count);
                store::setup::create(&mut batch, store::setup::setup_key(&known.domain), &known.setup);
                self.record_changes(&mut batch, None, &known);
                if self.commit_domain(batch, &known.domain).await? {
                    return Ok(known);
                }
            }
            Err(DomainError::Conflict)
        })
    }

    /// A new domain and its first setup; verified, where they verify themselves.
    fn initial_setup(&self, mut domain: SendingDomain) -> DomainWithSetup {
        let now = domain.created_at;
        let mut setup = DomainSetup::new(now);
        if self.parts.auto_verify {
            domain.state = DomainState::Verified;
            domain.verified_at = Some(now);
            domain.dkim.ed25519_published = true;
            domain.delivery.tracking_seen.clone_from(&domain.delivery.tracking_host);
        } else {
            setup.due = next_check(&domain, &setup, now, self.worker.entropy.u64());
        }
        DomainWithSetup { domain, setup }
    }

    async fn check_can_add(
        &self,
        account: AccountId,
        name: &DomainName,
        limit: Option<u32>,
    ) -> Result<store::domain::DomainCount, DomainError> {
        if let Some(holder) = store::domain::find_by_name(self.store(), name).await? {
            let is_own = holder.account == account;
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

    /// A domain of an account, and how far its records are.
    ///
    /// # Errors
    /// [`DomainError::Unknown`], or the store cannot be read.
    pub async fn get(&self, account: AccountId, id: DomainId) -> Result<DomainWithSetup, DomainError> {
        let domain = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
        Ok(self.load_setup(domain).await?.0)
    }

    /// The domain with its setup, and the setup as it lies in the store.
    async fn load_setup(
        &self,
        domain: SendingDomain,
    ) -> Result<(DomainWithSetup, Option<store::setup::StoredDomainSetup>), DomainError> {
        let found = store::setup::get(self.store(), store::setup::setup_key(&domain)).await?;
        let setup = found.as_ref().map_or_else(|| DomainSetup::new(domain.created_at), |found| found.setup.clone());
        Ok((DomainWithSetup { domain, setup }, found))
    }

    /// Changes a domain's settings.
    ///
    /// # Errors
    /// [`DomainError`].
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
            let moved = after.delivery.tracking_host != before.delivery.tracking_host;
            // Where nobody looks, the host is taken as it is said.
            if moved && (self.parts.auto_verify || self.load_setup(before.clone()).await?.0.setup.vouched) {
                after.delivery.tracking_seen.clone_from(&after.delivery.tracking_host);
            }
            if after != before {
                after.updated_at = self.worker.clock.now();
                let mut batch = Batch::progress();
                store::domain::update(&mut batch, &before, &after);
                if !self.commit_domain(batch, &before).await? {
                    continue;
                }
            }
            if moved {
                // Links lead through it as soon as its record is seen.
                return self.schedule_check(account, id).await;
            }
            return Ok(self.load_setup(after).await?.0);
        }
        Err(DomainError::Conflict)
    }

    /// Deletes a domain.
    ///
    /// # Errors
    /// [`DomainError`].
    pub async fn delete(&self, account: AccountId, id: DomainId) -> Result<(), DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let domain = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let count = store::domain::count(self.store(), account).await?;
            let (known, found) = self.load_setup(domain).await?;
            let mut batch = Batch::progress();
            store::domain::delete(&mut batch, &known.domain, &count);
            if let Some(found) = found {
                store::setup::delete(&mut batch, store::setup::setup_key(&known.domain), &found);
            }
            if self.commit_domain(batch, &known.domain).await? {
                return Ok(());
            }
        }
        Err(DomainError::Conflict)
    }

    /// Writes a domain and its setup in place of what was read; `false` when somebody else was faster.
    async fn save_domain(
        &self,
        before: &SendingDomain,
        found: Option<&store::setup::StoredDomainSetup>,
        after: &DomainWithSetup,
    ) -> Result<bool, DomainError> {
        let about = store::setup::setup_key(before);
        let mut batch = Batch::progress();
        store::domain::update(&mut batch, before, &after.domain);
        match found {
            Some(found) => store::setup::update(&mut batch, about, found, &after.setup),
            None => store::setup::create(&mut batch, about, &after.setup),
        }
        let setup = found.map(|found| &found.setup);
        self.record_changes(&mut batch, Some((before, setup)), after);
        self.commit_domain(batch, before).await
    }

    /// Records what becomes of a domain in a commit: it is verified, or a record of it is gone.
    fn record_changes(
        &self,
        batch: &mut Batch,
        before: Option<(&SendingDomain, Option<&DomainSetup>)>,
        after: &DomainWithSetup,
    ) {
        let (domain, now) = (&after.domain, self.worker.clock.now());
        let is_verified = domain.state == DomainState::Verified;
        let was_verified = before.is_some_and(|(before, _)| before.state == DomainState::Verified);
        let was_degraded = before.and_then(|(_, setup)| setup?.degraded_since).is_some();
        let kind = match (was_verified, is_verified, after.setup.degraded_since) {
            (false, true, _) => EventKind::DomainVerified,
            (true, true, Some(_)) if !was_degraded => EventKind::DomainDegraded,
            _ => return,
        };
        let event = Event {
            id: EventId::new(now, self.worker.entropy.unique_bits()),
            account: domain.account,
            subject: domain.id.into(),
            kind,
            recipient: None,
            created_at: now,
            detail: json!({
                "domain_id": domain.id, "domain": domain.name, "status": domain.state,
                "verified_at": domain.verified_at.map(moment::to_rfc3339),
                "degraded_since": after.setup.degraded_since.map(moment::to_rfc3339),
            }),
        };
        store::event::record_in_any_partition(batch, &event);
    }

    /// Whether what is about a domain was committed; not when something was changed meanwhile. What senders know
    /// of the domain is found anew.
    async fn commit_domain(&self, batch: Batch, domain: &SendingDomain) -> Result<bool, DomainError> {
        let committed = self.commit_unless_changed(batch).await;
        self.sender_authorization.invalidate(domain.account, Some(&domain.name));
        committed
    }

    /// Whether it was committed; not when something was changed meanwhile.
    async fn commit_unless_changed(&self, batch: Batch) -> Result<bool, DomainError> {
        match self.store().commit(batch).await {
            Ok(()) => {
                // There may be something to tell.
                self.worker.outbox_wakeup.notify_one();
                Ok(true)
            }
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(DomainError::Commit(error)),
        }
    }
}
