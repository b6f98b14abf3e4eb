//! Publishing a domain's records where its zone is kept, with credentials that were handed in for this once, or
//! that the account has saved.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::id::{AccountId, DomainId};
use mail::setup::{Finding, Purpose, Record, RecordStatus, next_look};
use provider::{ApplyError, ConnectError, Credentials, Merge, Provider, Report, Request};
use store::dns_credential::Saved;
use store::engine::Batch;
use thiserror::Error;

use super::inspect::{QUESTIONS_OF_PROVIDER, Wish};
use super::{DomainError, Domains, Known, TRIES_MAX};

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
    Connect(#[from] ConnectError),
    /// The rest.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

/// With which credentials.
#[derive(Debug)]
pub enum By {
    /// With these, which are used once and kept nowhere.
    Once(Credentials),
    /// With those that the account has saved for the provider.
    Saved(Provider),
}

/// What was published.
#[derive(Debug)]
pub struct Published {
    /// The domain.
    pub known: Known,
    /// What was done about each record.
    pub report: Report,
}

/// What sealed credentials are bound to: they open in their own row only.
fn row_id(account: AccountId, provider: Provider) -> Vec<u8> {
    [b"dns credential ", account.to_string().as_bytes(), b" ", provider.as_str().as_bytes()].concat()
}

impl Domains {
    /// Publishes the records of a domain; an SPF record that is there is merged if so wished.
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn publish(
        &self,
        (account, id): (AccountId, DomainId),
        by: By,
        (merge_spf, dry_run): (bool, bool),
    ) -> BoxFuture<'_, Result<Published, PublishError>> {
        Box::pin(async move {
            // Each holds a connection and a provider's patience for up to a minute.
            let _own = self.publishing_of.take_now(account).ok_or(PublishError::Busy)?;
            let _turn = self.publishing.try_acquire().map_err(|_| PublishError::Busy)?;
            let domain = store::domain::get(self.store(), account, id).await.map_err(DomainError::from)?;
            let domain = domain.ok_or(DomainError::Unknown)?;
            let credentials = match by {
                By::Once(credentials) => credentials,
                By::Saved(provider) => self.saved(account, provider).await?,
            };
            // What a server of the customer's is asked, and which records stand there.
            self.ask(account, QUESTIONS_OF_PROVIDER, Wish::Asked).await?;
            let wanted = self.parts.facts.records(&domain);
            let request = Request {
                domain: &domain.name,
                zone: None,
                wanted: &wanted,
                merge: Merge { spf: merge_spf, mx: false },
                dry_run,
                now: self.worker.clock.now(),
            };
            let report = self.parts.publisher.apply(&credentials, &request).await?;
            let known =
                if dry_run { self.get(account, id).await? } else { self.look_soon(account, id).await? };
            Ok(Published { known, report })
        })
    }

    /// The page at the domain's DNS provider where the customer agrees to its records (Domain Connect). Of keys only
    /// those that are to be published next, and a DMARC policy only where there is none: what is the owner's stays.
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn connect(
        &self,
        (account, id): (AccountId, DomainId),
    ) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(async move {
            let _own = self.publishing_of.take_now(account).ok_or(PublishError::Busy)?;
            let _turn = self.publishing.try_acquire().map_err(|_| PublishError::Busy)?;
            let domain = store::domain::get(self.store(), account, id).await.map_err(DomainError::from)?;
            let mut domain = domain.ok_or(DomainError::Unknown)?;
            domain.dkim = domain.next_dkim.take().unwrap_or(domain.dkim);
            domain.former_dkim = None;
            let mut records = self.parts.facts.records(&domain);
            let policies: Vec<Record> =
                records.extract_if(.., |record| record.purpose == Purpose::Dmarc).collect();
            let found = self.inspect((account, &domain.name), policies, Wish::Asked).await?;
            let is_missing = |finding: &Finding| finding.status == RecordStatus::Missing;
            records.extend(
                found.findings.into_iter().filter(|(_, found)| is_missing(found)).map(|(record, _)| record),
            );
            self.ask(account, QUESTIONS_OF_PROVIDER, Wish::Asked).await?;
            let _look = self.looks.take(account).await;
            Ok(self.parts.publisher.connect(&self.parts.inspector, &domain.name, &records).await?)
        })
    }

    /// Looks at the domain from a minute on again: records have just been published, or are to be.
    pub(super) async fn look_soon(&self, account: AccountId, id: DomainId) -> Result<Known, DomainError> {
        for _ in 0..TRIES_MAX {
            let before = store::domain::get(self.store(), account, id).await?.ok_or(DomainError::Unknown)?;
            let (mut after, found) = self.know(before.clone()).await?;
            if self.parts.auto_verify || after.setup.vouched {
                return Ok(after);
            }
            let now = self.worker.clock.now();
            after.setup.since = now;
            after.setup.due = next_look(&after.domain, &after.setup, now, self.worker.entropy.u64());
            if self.settle(&before, found.as_ref(), &after).await? {
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
    pub async fn save(
        &self,
        account: AccountId,
        credentials: &Credentials,
    ) -> Result<Timestamp, DomainError> {
        let (provider, saved_at) = (credentials.provider(), self.worker.clock.now());
        let secret = credentials.secret_json();
        let sealed = self.parts.vault.seal(&row_id(account, provider), secret.expose().as_bytes());
        let sealed = STANDARD.encode(sealed.map_err(|error| DomainError::Keys(error.to_string()))?);
        let mut batch = Batch::progress();
        store::dns_credential::put(&mut batch, account, provider.as_str(), &Saved { sealed, saved_at });
        self.write(batch).await?;
        Ok(saved_at)
    }

    /// Forgets an account's credentials for a provider.
    ///
    /// # Errors
    /// [`PublishError::NothingSaved`]; the store cannot be used.
    pub async fn forget(&self, account: AccountId, provider: Provider) -> Result<(), PublishError> {
        let found = store::dns_credential::get(self.store(), account, provider.as_str()).await;
        found.map_err(DomainError::from)?.ok_or(PublishError::NothingSaved(provider))?;
        let mut batch = Batch::progress();
        store::dns_credential::delete(&mut batch, account, provider.as_str());
        self.write(batch).await?;
        Ok(())
    }

    async fn saved(&self, account: AccountId, provider: Provider) -> Result<Credentials, PublishError> {
        let found = store::dns_credential::get(self.store(), account, provider.as_str()).await;
        let saved = found.map_err(DomainError::from)?.ok_or(PublishError::NothingSaved(provider))?;
        let lost = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, %account, "saved credentials cannot be opened; is the key file the right one?");
            PublishError::NothingSaved(provider)
        };
        let blob = STANDARD.decode(&saved.sealed).map_err(|error| lost(&error))?;
        let json = self.parts.vault.open(&row_id(account, provider), &blob).map_err(|error| lost(&error))?;
        let value = serde_json::from_slice(&json).map_err(|error| lost(&error))?;
        Credentials::read(provider, &value).map_err(|_| lost(&"they are not as this provider takes them"))
    }
}
