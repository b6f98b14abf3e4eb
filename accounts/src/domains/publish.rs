//! Publishing a domain's records at its DNS provider, with one-time or saved credentials.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::domain_setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus};
use model::id::{AccountId, DomainId};
use net::limit::keyed_semaphore::KeyedSemaphore;
use provider::{
    ApplyError, DomainConnectError, MergePolicy, Provider, ProviderCredentials, PublishReport, PublishRequest,
    Publisher,
};
use store::dns_credential::SealedDnsCredential;
use store::engine::Batch;
use thiserror::Error;
use tokio::sync::Semaphore;

use super::inspection::{DomainInspector, InspectionPriority, PROVIDER_QUERIES};
use super::rows::DomainRows;
use super::{DomainError, DomainWithSetup};

/// Domains whose records are published concurrently.
const PUBLISHING_MAX: usize = 16;
/// The limit for one account, so that others are not blocked.
const PUBLISHING_PER_ACCOUNT_MAX: usize = 3;

/// Why records were not published.
#[derive(Debug, Error)]
pub enum PublishError {
    #[error("no saved credentials for {0}")]
    NothingSaved(Provider),
    /// Too many publications are in progress.
    #[error("too many DNS changes are in progress; try again shortly")]
    Busy,
    /// The provider failed before anything was changed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// No Domain Connect page is available.
    #[error(transparent)]
    Connect(#[from] DomainConnectError),
    #[error(transparent)]
    Domain(#[from] DomainError),
}

/// The credentials to use.
#[derive(Debug)]
pub enum CredentialSource {
    /// Used once and not stored.
    OneTime(ProviderCredentials),
    /// The account's saved credentials for the provider.
    Saved(Provider),
}

#[derive(Debug)]
pub struct PublishResult {
    pub known: DomainWithSetup,
    /// Action taken for each record.
    pub report: PublishReport,
}

/// Associated data of sealed credentials: they can be opened in their own row only.
fn credential_seal_context(account: AccountId, provider: Provider) -> Vec<u8> {
    [b"dns credential ", account.to_string().as_bytes(), b" ", provider.as_str().as_bytes()].concat()
}

/// Publishes the records of domains at their DNS providers.
pub struct DomainPublisher {
    rows: Arc<DomainRows>,
    inspector: Arc<DomainInspector>,
    publisher: Publisher,
    publishing: Semaphore,
    /// Publications in progress, by account.
    publishing_by_account: KeyedSemaphore<AccountId>,
}

impl DomainPublisher {
    pub(super) fn new(rows: Arc<DomainRows>, inspector: Arc<DomainInspector>, publisher: Publisher) -> Self {
        let publishing_by_account = KeyedSemaphore::new(PUBLISHING_PER_ACCOUNT_MAX);
        Self { rows, inspector, publisher, publishing: Semaphore::new(PUBLISHING_MAX), publishing_by_account }
    }

    /// Publishes the records of a domain. An existing SPF record is merged if `merge_spf` is set.
    ///
    /// # Errors
    /// Returns a [`PublishError`] if credentials are missing, the provider refuses, or a limit is reached.
    pub fn publish(
        &self,
        account: AccountId,
        id: DomainId,
        source: CredentialSource,
        merge_spf: bool,
        dry_run: bool,
    ) -> BoxFuture<'_, Result<PublishResult, PublishError>> {
        Box::pin(async move {
            // A publication holds a connection to the provider for up to a minute.
            let _account_permit = self.publishing_by_account.try_acquire(account).ok_or(PublishError::Busy)?;
            let _permit = self.publishing.try_acquire().map_err(|_| PublishError::Busy)?;
            let domain = store::domain::get(self.rows.store(), account, id).await.map_err(DomainError::from)?;
            let domain = domain.ok_or(DomainError::Unknown)?;
            let credentials = match source {
                CredentialSource::OneTime(credentials) => credentials,
                CredentialSource::Saved(provider) => self.saved_credentials(account, provider).await?,
            };
            // Charges the queries to the customer's name servers, which also read the existing records.
            self.inspector.acquire_queries(account, PROVIDER_QUERIES, InspectionPriority::Interactive).await?;
            let wanted = self.rows.facts.required_records(&domain);
            let request = PublishRequest {
                domain: &domain.name,
                zone: None,
                records: &wanted,
                merge: MergePolicy { spf: merge_spf, mx: false },
                dry_run,
                now: self.rows.services.clock.now(),
            };
            let report = self.publisher.apply(&credentials, &request).await?;
            let domain_setup =
                if dry_run { self.rows.get(account, id).await? } else { self.rows.schedule_check(account, id).await? };
            Ok(PublishResult { known: domain_setup, report })
        })
    }

    /// URL of the page at the domain's DNS provider where the customer approves its records (Domain Connect). Of DKIM
    /// keys only the next ones are included, and a DMARC policy only if there is none: existing policies stay.
    ///
    /// # Errors
    /// Returns a [`PublishError`] if the provider has no such page or a limit is reached.
    pub fn domain_connect_url(&self, account: AccountId, id: DomainId) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(async move {
            let _account_permit = self.publishing_by_account.try_acquire(account).ok_or(PublishError::Busy)?;
            let _permit = self.publishing.try_acquire().map_err(|_| PublishError::Busy)?;
            let domain = store::domain::get(self.rows.store(), account, id).await.map_err(DomainError::from)?;
            let mut domain = domain.ok_or(DomainError::Unknown)?;
            domain.dkim = domain.next_dkim.take().unwrap_or(domain.dkim);
            domain.former_dkim = None;
            let mut records = self.rows.facts.required_records(&domain);
            let policies: Vec<DomainRecord> =
                records.extract_if(.., |record| record.purpose == RecordPurpose::Dmarc).collect();
            let found =
                self.inspector.inspect(account, &domain.name, policies, InspectionPriority::Interactive).await?;
            let is_missing = |finding: &RecordFinding| finding.status == RecordStatus::Missing;
            records.extend(found.findings.into_iter().filter(|(_, found)| is_missing(found)).map(|(record, _)| record));
            self.inspector.acquire_queries(account, PROVIDER_QUERIES, InspectionPriority::Interactive).await?;
            let _look = self.inspector.checks_by_account.acquire(account).await;
            Ok(self.publisher.domain_connect_url(&self.inspector.checker, &domain.name, &records).await?)
        })
    }

    /// Saves an account's credentials for a provider, sealed.
    ///
    /// # Errors
    /// The credentials cannot be sealed, or the store cannot be written.
    pub async fn save_credentials(
        &self,
        account: AccountId,
        credentials: &ProviderCredentials,
    ) -> Result<Timestamp, DomainError> {
        let (provider, saved_at) = (credentials.provider(), self.rows.services.clock.now());
        let secret = credentials.secret_json();
        let sealed = self.rows.vault.seal(&credential_seal_context(account, provider), secret.expose().as_bytes());
        let sealed = STANDARD.encode(sealed.map_err(|error| DomainError::Keys(error.to_string()))?);
        let mut batch = Batch::progress();
        store::dns_credential::put(&mut batch, account, provider.as_str(), &SealedDnsCredential { sealed, saved_at });
        self.rows.commit_unless_changed(batch).await?;
        Ok(saved_at)
    }

    /// Deletes an account's credentials for a provider.
    ///
    /// # Errors
    /// [`PublishError::NothingSaved`], or the store fails.
    pub async fn delete_credentials(&self, account: AccountId, provider: Provider) -> Result<(), PublishError> {
        let found = store::dns_credential::get(self.rows.store(), account, provider.as_str()).await;
        found.map_err(DomainError::from)?.ok_or(PublishError::NothingSaved(provider))?;
        let mut batch = Batch::progress();
        store::dns_credential::delete(&mut batch, account, provider.as_str());
        self.rows.commit_unless_changed(batch).await?;
        Ok(())
    }

    async fn saved_credentials(
        &self,
        account: AccountId,
        provider: Provider,
    ) -> Result<ProviderCredentials, PublishError> {
        let found = store::dns_credential::get(self.rows.store(), account, provider.as_str()).await;
        let saved = found.map_err(DomainError::from)?.ok_or(PublishError::NothingSaved(provider))?;
        let read_error = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, %account, "cannot unseal saved DNS credentials; check the key file");
            PublishError::NothingSaved(provider)
        };
        let blob = STANDARD.decode(&saved.sealed).map_err(|error| read_error(&error))?;
        let json = self
            .rows
            .vault
            .open(&credential_seal_context(account, provider), &blob)
            .map_err(|error| read_error(&error))?;
        let value = serde_json::from_slice(&json).map_err(|error| read_error(&error))?;
        ProviderCredentials::parse(provider, &value).map_err(|_| read_error(&"invalid credentials for this provider"))
    }
}
