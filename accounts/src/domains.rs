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
mod keys;
mod publish;
mod rows;
mod verification;

use std::sync::Arc;
use std::time::Duration;

use dns::domain_check::DomainChecker;
use dns::secrets::Vault;
use events::subsystems::EventSubsystems;
use futures_util::future::BoxFuture;
use message::address::{DomainName, NAME_BYTES_MAX};
use message::address_pattern::AddressPattern;
use model::domain::{DeliverySettings, SendingDomain};
use model::domain_setup::{DomainSetup, ServiceHosts};
use model::id::{AccountId, DomainId};
pub use provider::Publisher;
use queue::intake::sender_authorization::SenderAuthorization;
use queue::services::Services;
use store::engine::{Batch, CommitError, ReadError};
use thiserror::Error;

pub use claim::{ClaimError, ClaimResult, DomainClaims};
pub use inspection::DomainInspector;
pub use keys::{ImportedKey, KeyImportError};
pub use publish::{CredentialSource, DomainPublisher, PublishError, PublishResult};

use rows::DomainRows;

/// Commits tried when a row changes concurrently.
const COMMIT_TRIES_MAX: usize = 20;

/// Why a domain was not added or changed.
#[derive(Debug, Error)]
pub enum DomainError {
    #[error("{0} is already a domain of this account")]
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

/// The sending domains of all accounts.
pub struct SendingDomains {
    rows: Arc<DomainRows>,
    pub inspector: Arc<DomainInspector>,
    pub claims: DomainClaims,
    pub publisher: DomainPublisher,
}

impl SendingDomains {
    pub(crate) fn new(
        services: Services,
        events: &EventSubsystems,
        senders: Arc<SenderAuthorization>,
        parts: DomainsParts,
    ) -> Self {
        let DomainsParts { vault, inspector, publisher, facts, auto_verify } = parts;
        let inspector = Arc::new(DomainInspector::new(services.clone(), inspector));
        let rows = Arc::new(DomainRows { services, senders, vault, facts, auto_verify });
        Self {
            claims: DomainClaims::new(Arc::clone(&rows), Arc::clone(&inspector), events),
            publisher: DomainPublisher::new(Arc::clone(&rows), Arc::clone(&inspector), publisher),
            rows,
            inspector,
        }
    }

    /// Host names of this installation that records refer to.
    #[must_use]
    pub fn facts(&self) -> &ServiceHosts {
        &self.rows.facts
    }

    /// Returns whether domains are verified without DNS queries.
    #[must_use]
    pub fn auto_verifies(&self) -> bool {
        self.rows.auto_verify
    }

    /// Returns whether names outside the public DNS are allowed: in development and private networks.
    #[must_use]
    pub fn allows_private_names(&self) -> bool {
        self.rows.auto_verify || self.inspector.allows_private()
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
            let domain = self.rows.new_domain(account, new).await?;
            // RFC 1035 2.3.4: a record with a longer name cannot be published.
            let too_long = |name: &String| name.len() > NAME_BYTES_MAX;
            if let Some(name) = self.rows.facts.required_records(&domain).into_iter().map(|r| r.name).find(too_long) {
                return Err(DomainError::TooLong(name));
            }
            let setup = self.rows.initial_setup(domain);
            for _ in 0..COMMIT_TRIES_MAX {
                let count = self.check_can_add(account, &setup.domain.name, limit).await?;
                let mut batch = Batch::progress();
                store::domain::create(&mut batch, &setup.domain, &count);
                store::domain_setup::create(&mut batch, store::domain_setup::setup_key(&setup.domain), &setup.setup);
                self.rows.record_changes(&mut batch, None, &setup);
                if self.rows.commit_domain(batch, &setup.domain).await? {
                    return Ok(setup);
                }
            }
            Err(DomainError::Conflict)
        })
    }

    async fn check_can_add(
        &self,
        account: AccountId,
        name: &DomainName,
        limit: Option<u32>,
    ) -> Result<store::domain::DomainCount, DomainError> {
        if let Some(existing) = store::domain::find_by_name(self.rows.store(), name).await? {
            let is_own = existing.account == account;
            return Err(if is_own { DomainError::Exists(name.clone()) } else { DomainError::Taken(name.clone()) });
        }
        self.rows.check_domain_limit(account, limit).await
    }

    /// Reads a domain of an account with its setup.
    ///
    /// # Errors
    /// [`DomainError::Unknown`], or the store cannot be read.
    pub async fn get(&self, account: AccountId, id: DomainId) -> Result<DomainWithSetup, DomainError> {
        self.rows.get(account, id).await
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
            let before = store::domain::get(self.rows.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let mut after = before.clone();
            change(&mut after);
            let is_tracking_host_changed = after.delivery.tracking_host != before.delivery.tracking_host;
            // Without DNS checks, the tracking host is taken as configured.
            if is_tracking_host_changed
                && (self.rows.auto_verify || self.rows.load_setup(before.clone()).await?.0.setup.operator_verified)
            {
                after.delivery.tracking_seen.clone_from(&after.delivery.tracking_host);
            }
            if after != before {
                after.updated_at = self.rows.services.clock.now();
                let mut batch = Batch::progress();
                store::domain::update(&mut batch, &before, &after);
                if !self.rows.commit_domain(batch, &before).await? {
                    continue;
                }
            }
            if is_tracking_host_changed {
                // Links use the tracking host as soon as its record is found.
                return self.rows.schedule_check(account, id).await;
            }
            return Ok(self.rows.load_setup(after).await?.0);
        }
        Err(DomainError::Conflict)
    }

    /// Deletes a domain.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the domain is unknown or the commit fails.
    pub async fn delete(&self, account: AccountId, id: DomainId) -> Result<(), DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let domain = store::domain::get(self.rows.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let count = store::domain::count(self.rows.store(), account).await?;
            let (setup, found) = self.rows.load_setup(domain).await?;
            let mut batch = Batch::progress();
            store::domain::delete(&mut batch, &setup.domain, &count);
            if let Some(found) = found {
                store::domain_setup::delete(&mut batch, store::domain_setup::setup_key(&setup.domain), &found);
            }
            if self.rows.commit_domain(batch, &setup.domain).await? {
                return Ok(());
            }
        }
        Err(DomainError::Conflict)
    }
}
