//! Publishing a domain's records where its zone is kept, with credentials that were handed in for this once, or
//! that the account has saved.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::id::{AccountId, DomainId};
use mail::setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus, next_check};
use provider::{
    ApplyError, DomainConnectError, MergePolicy, Provider, ProviderCredentials, PublishReport, PublishRequest,
};
use store::dns_credential::SealedDnsCredential;
use store::engine::Batch;
use thiserror::Error;

use super::inspect::{InspectionPriority, PROVIDER_QUERIES};
use super::{COMMIT_TRIES_MAX, DomainError, DomainWithSetup, SendingDomains};

/// Why records could not be published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The account has saved no credentials for the provider.
    #[error("no credentials are saved for {0}")]
    NothingSaved(Provider),
    /// Too many are published at the moment.
    #[error("too many records are published at the moment; try again shortly")]
    Busy,
    /// The provider, before anything was changed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// There is no page of the provider's to send the customer to.
    #[error(transparent)]
    Connect(#[from] DomainConnectError),
    /// The rest.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

/// With which credentials.
#[derive(Debug)]
pub enum CredentialSource {
    /// With these, which are used once and kept nowhere.
    OneTime(ProviderCredentials),
    /// With those that the account has saved for the provider.
    Saved(Provider),
}

/// What was published.
#[derive(Debug)]
pub struct PublishResult {
    /// The domain.
    pub known: DomainWithSetup,
    /// What was done about each record.
    pub report: PublishReport,
}

/// What sealed credentials are bound to: they open in their own row only.
fn credential_seal_context(account: AccountId, provider: Provider) -> Vec<u8> {
    [b"dns credential ", account.to_string().as_bytes(), b" ", provider.as_str().as_bytes()].concat()
}

impl SendingDomains {
    /// Publishes the records of a domain; an SPF record that is there is merged if so wished.
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn publish(
        &self,
        (account, id): (AccountId, DomainId),
        by: CredentialSource,
        (merge_spf, dry_run): (bool, bool),
    ) -> BoxFuture<'_, Result<PublishResult, PublishError>> {
        Box::pin(async move {
            // Each holds a connection and a provider's patience for up to a minute.
            let _own = self.publishing_by_account.try_acquire(account).ok_or(PublishError::Busy)?;
            let _turn = self.publishing.try_acquire().map_err(|_| PublishError::Busy)?;
            let domain = store::domain::get(self.store(), account, id).await.map_err(DomainError::from)?;
            let domain = domain.ok_or(DomainError::Unknown)?;
            let credentials = match by {
                CredentialSource::OneTime(credentials) => credentials,
                CredentialSource::Saved(provider) => self.saved_credentials(account, provider).await?,
            };
            // What a server of the customer's is asked, and which records stand there.
            self.acquire_queries(account, PROVIDER_QUERIES, InspectionPriority::Interactive).await?;
            let wanted = self.parts.facts.required_records(&domain);
            let request = PublishRequest {
                domain: &domain.name,
                zone: None,
                records: &wanted,
                merge: MergePolicy { spf: merge_spf, mx: false },
                dry_run,
                now: self.worker.clock.now(),
            };
            let report = self.parts.publisher.apply(&credentials, &request).await?;
            let known = if dry_run { self.get(account, id).await? } else { self.schedule_check(account, id).await? };
            Ok(PublishResult { known, report })
        })
    }

    /// The page at the domain's DNS provider where the customer agrees to its records (Domain Connect). Of keys only
    /// those that are to be published next, and a DMARC policy only where there is none: what is the owner's stays.
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn domain_connect_url(
        &self,
        (account, id): (AccountId, DomainId),
    ) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(async move {
            let _own = self.publishing_by_account.try_acquire(account).ok_or(PublishError::Busy)?;
            let _turn = self.publishing.try_acquire().map_err(|_| PublishError::Busy)?;
            let domain = store::domain::get(self.store(), account, id).await.map_err(DomainError::from)?;
            let mut domain = domain.ok_or(DomainError::Unknown)?;
            domain.dkim = domain.next_dkim.take().unwrap_or(domain.dkim);
            domain.former_dkim = None;
            let mut records = self.parts.facts.required_records(&domain);
            let policies: Vec<DomainRecord> =
                records.extract_if(.., |record| record.purpose == RecordPurpose::Dmarc).collect();
            let found = self.inspect((account, &domain.name), policies, InspectionPriority::Interactive).await?;
            let is_missing = |finding: &RecordFinding| finding.status == RecordStatus::Missing;
            records.extend(found.findings.into_iter().filter(|(_, found)| is_missing(found)).map(|(record, _)| record));
            self.acquire_queries(account, PROVIDER_QUERIES, InspectionPriority::Interactive).await?;
            let _look = self.checks_by_account.acquire(account).await;
            Ok(self.parts.publisher.domain_connect_url(&self.parts.inspector, &domain.name, &records).await?)
        })
    }

    /// Looks at the domain from a minute on again: records have just been published, or are to be.
    pub(super) async fn schedule_check(
        &self,
        account: AccountId,
        id: DomainId,
    ) -> Result<DomainWithSetup, DomainError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let before = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let (mut after, found) = self.load_setup(before.clone()).await?;
            if self.parts.auto_verify || after.setup.vouched {
                return Ok(after);
            }
            let now = self.worker.clock.now();
            after.setup.since = now;
            after.setup.due = next_check(&after.domain, &after.setup, now, self.worker.entropy.u64());
            if self.save_domain(&before, found.as_ref(), &after).await? {
                return Ok(after);
            }
        }
        // Who was faster looks at it soon, too.
        self.get(account, id).await
    }

    /// Saves an account's credentials for a provider, sealed.
    ///
    /// # Errors
    /// They cannot be sealed; the store cannot be written.
    pub async fn save_credentials(
        &self,
        account: AccountId,
        credentials: &ProviderCredentials,
    ) -> Result<Timestamp, DomainError> {
        let (provider, saved_at) = (credentials.provider(), self.worker.clock.now());
        let secret = credentials.secret_json();
        let sealed = self.parts.vault.seal(&credential_seal_context(account, provider), secret.expose().as_bytes());
        let sealed = STANDARD.encode(sealed.map_err(|error| DomainError::Keys(error.to_string()))?);
        let mut batch = Batch::progress();
        store::dns_credential::put(&mut batch, account, provider.as_str(), &SealedDnsCredential { sealed, saved_at });
        self.commit_unless_changed(batch).await?;
        Ok(saved_at)
    }

    /// Forgets an account's credentials for a provider.
    ///
    /// # Errors
    /// [`PublishError::NothingSaved`]; the store cannot be used.
    pub async fn delete_credentials(&self, account: AccountId, provider: Provider) -> Result<(), PublishError> {
        let found = store::dns_credential::get(self.store(), account, provider.as_str()).await;
        found.map_err(DomainError::from)?.ok_or(PublishError::NothingSaved(provider))?;
        let mut batch = Batch::progress();
        store::dns_credential::delete(&mut batch, account, provider.as_str());
        self.commit_unless_changed(batch).await?;
        Ok(())
    }

    async fn saved_credentials(
        &self,
        account: AccountId,
        provider: Provider,
    ) -> Result<ProviderCredentials, PublishError> {
        let found = store::dns_credential::get(self.store(), account, provider.as_str()).await;
        let saved = found.map_err(DomainError::from)?.ok_or(PublishError::NothingSaved(provider))?;
        let lost = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, %account, "saved credentials cannot be opened; is the key file the right one?");
            PublishError::NothingSaved(provider)
        };
        let blob = STANDARD.decode(&saved.sealed).map_err(|error| lost(&error))?;
        let json =
            self.parts.vault.open(&credential_seal_context(account, provider), &blob).map_err(|error| lost(&error))?;
        let value = serde_json::from_slice(&json).map_err(|error| lost(&error))?;
        ProviderCredentials::parse(provider, &value).map_err(|_| lost(&"they are not as this provider takes them"))
    }
}
