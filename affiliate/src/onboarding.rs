//! Program setup: enable, settings, processor, go live, pause.
//!
//! ```text
//! enable ─► setup ─[ processor, default campaign ]─► go live ⇄ pause
//! ```

use mail::address::{Address, DomainName};
use mail::affiliate::money::Currency;
use mail::affiliate::program::{
    AffiliateProgram, PaymentProcessor, ProcessorMode, ProgramSettings, ProgramStatus, WEBHOOK_SECRETS_MAX,
};
use mail::id::{AccountId, ProgramId};
use store::affiliate::program;
use store::engine::Batch;
use url::Url;

use crate::error::{AffiliateError, ConflictReason};
use crate::service::{AffiliateService, CommitResult, IfMatch, TRIES_MAX};
use crate::stripe_client::StripeAccount;

/// Parameters of a processor connection; all of them replace the former ones.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessorConnection {
    /// One or two webhook signing secrets.
    pub webhook_secrets: Vec<String>,
    /// Base URL of the API.
    pub api_base: String,
    /// API key; without it the program only receives webhooks.
    pub restricted_key: Option<String>,
    /// The processor's account id; ignored with a key, which identifies its account.
    pub account_id: Option<String>,
}

/// Checks the URL of a web page: it has a host, and neither user name nor password.
///
/// # Errors
/// The reason why it is invalid, worded to follow the field's name.
pub fn check_page(text: &str) -> Result<(), String> {
    parse_page_url(text).map(drop)
}

fn parse_page_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none() {
        return Err("must begin with https:// (or http://) and name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".to_owned());
    }
    Ok(url)
}

/// Normalizes an origin as browsers write it, e.g. `https://shop.example`.
///
/// # Errors
/// The reason why it is invalid, worded to follow the field's name.
pub fn parse_origin(text: &str) -> Result<String, String> {
    let url = parse_page_url(text)?;
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err("must be an origin, like https://shop.example, without a path".to_owned());
    }
    Ok(url.origin().ascii_serialization())
}

impl AffiliateService {
    /// Creates the program of an account, in status `setup`.
    ///
    /// # Errors
    /// `ProgramExists`; the store failed.
    pub async fn enable_program(
        &self,
        account: AccountId,
        website_url: String,
        currency: Currency,
        mode: ProcessorMode,
    ) -> Result<AffiliateProgram, AffiliateError> {
        let now = self.now();
        let program = AffiliateProgram {
            id: ProgramId::new(now, self.random()),
            account,
            status: ProgramStatus::Setup,
            settings: ProgramSettings::new(website_url, currency, mode),
            default_campaign: None,
            publishable_key: format!("pk_{:032x}", self.intake.entropy().u128()),
            processor: None,
            rev: 1,
            created_at: now,
            updated_at: now,
        };
        let mut batch = Batch::intake();
        program::create(&mut batch, &program);
        match self.commit(batch).await? {
            CommitResult::Committed => Ok(program),
            CommitResult::Conflict(_) => Err(ConflictReason::ProgramExists.into()),
        }
    }

    /// Applies a change to a program and commits it.
    async fn change_program(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
        change: &(dyn Fn(&mut AffiliateProgram) -> Result<(), AffiliateError> + Send + Sync),
    ) -> Result<AffiliateProgram, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let before = self.get_program(account).await?;
            IfMatch::check(if_match, before.rev, before.updated_at)?;
            let mut after = before.clone();
            change(&mut after)?;
            if after == before {
                return Ok(before);
            }
            if let Some(host) = &after.settings.portal_domain
                && before.settings.portal_domain.as_ref() != Some(host)
            {
                self.claim_host(account, host).await?;
            }
            (after.rev, after.updated_at) = (before.rev.saturating_add(1), self.now());
            let mut batch = Batch::progress();
            program::update(&mut batch, &before, &after);
            let draft = self.ledger().mark_draft(&mut batch, &before, &after).await?;
            let host = after.settings.portal_domain.as_ref();
            match self.commit(batch).await? {
                CommitResult::Committed => {
                    if let Some(run) = draft {
                        self.ledger().filter_by_methods(account, run).await;
                    }
                    return Ok(after);
                }
                CommitResult::Conflict(key) if host.is_some_and(|host| program::is_host_conflict(&key, host)) => {
                    return Err(AffiliateError::field("portal_domain", "is used by another program"));
                }
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Checks a portal host, and takes it from another program that may no longer use it.
    async fn claim_host(&self, account: AccountId, host: &DomainName) -> Result<(), AffiliateError> {
        if let Err(fault) = self.check_portal_host(account, host).await? {
            return Err(AffiliateError::field("portal_domain", fault.to_string()));
        }
        if let Some(former) = self.former_program_of_host(account, host).await? {
            let mut after = former.clone();
            after.settings.portal_domain = None;
            (after.rev, after.updated_at) = (former.rev.saturating_add(1), self.now());
            let mut batch = Batch::progress();
            program::update(&mut batch, &former, &after);
            // If a concurrent change wins, the commit that follows reports the conflict.
            self.commit(batch).await?;
        }
        Ok(())
    }

    /// Changes the owner's settings, all or none.
    ///
    /// # Errors
    /// `NoMoreInSetup` if currency or mode change after the program was live; `Changed` if `if_match` is stale; field
    /// errors; the store failed.
    pub async fn update_settings(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
        change: &(dyn Fn(&mut ProgramSettings) -> Result<(), AffiliateError> + Send + Sync),
    ) -> Result<AffiliateProgram, AffiliateError> {
        self.change_program(account, if_match, &|program| {
            let before = (program.settings.currency, program.settings.mode);
            change(&mut program.settings)?;
            Self::check_settings(&program.settings)?;
            if program.status != ProgramStatus::Setup && before != (program.settings.currency, program.settings.mode) {
                return Err(ConflictReason::NoMoreInSetup.into());
            }
            Ok(())
        })
        .await
    }

    /// Checks constraints between settings.
    fn check_settings(settings: &ProgramSettings) -> Result<(), AffiliateError> {
        if settings.metadata_key == settings.exclude_key {
            return Err(AffiliateError::field("exclude_key", "must differ from `metadata_key`"));
        }
        Ok(())
    }

    /// Checks that the program may send from an address: it must be on a verified domain of the account.
    ///
    /// # Errors
    /// A field error on `mail_from`; the store cannot be read.
    pub async fn check_sender(&self, account: AccountId, sender: &Address) -> Result<(), AffiliateError> {
        if self.is_verified_for(account, sender.domain()).await? {
            return Ok(());
        }
        Err(AffiliateError::field("mail_from", "must be an address on a verified domain of the account"))
    }

    /// Connects the processor. With an API key, fetches the key's account; without one, only webhooks are received.
    ///
    /// # Errors
    /// A field error about the number of secrets or the base URL; `Upstream` if the processor does not answer as
    /// expected; `Changed` if `if_match` is stale; the store failed.
    pub async fn connect_processor(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
        connection: &ProcessorConnection,
    ) -> Result<AffiliateProgram, AffiliateError> {
        // Checked before the request is sent to the processor.
        let before = self.get_program(account).await?;
        IfMatch::check(if_match, before.rev, before.updated_at)?;
        let id = before.id.to_bytes();
        if connection.webhook_secrets.is_empty() || connection.webhook_secrets.len() > WEBHOOK_SECRETS_MAX {
            let reason = format!("must be one secret, or {WEBHOOK_SECRETS_MAX} during a rotation");
            return Err(AffiliateError::field("webhook_secrets", reason));
        }
        self.check_api_base(&connection.api_base)?;
        let fetched = match &connection.restricted_key {
            Some(key) => Some(self.fetch_account(account, &connection.api_base, key).await?),
            None => None,
        };
        let seal = |text: &String| self.seal(&id, text);
        let processor = PaymentProcessor {
            api_base: connection.api_base.clone(),
            restricted_key: connection.restricted_key.as_ref().map(seal).transpose()?,
            webhook_secrets: connection.webhook_secrets.iter().map(seal).collect::<Result<_, _>>()?,
            account_id: fetched
                .as_ref()
                .map_or_else(|| connection.account_id.clone(), |fetched| Some(fetched.id.clone())),
            livemode: fetched.and_then(|fetched| fetched.livemode),
        };
        self.change_program(account, if_match, &|program| {
            program.processor = Some(processor.clone());
            Ok(())
        })
        .await
    }

    /// Fetches the account of the connected processor's API key. Without a key, returns the account that the owner
    /// entered.
    ///
    /// # Errors
    /// `NotConnected`; `Upstream` if the processor does not answer as expected; the store failed.
    pub async fn test_processor(&self, account: AccountId) -> Result<StripeAccount, AffiliateError> {
        let program = self.get_program(account).await?;
        let processor = program.processor.as_ref().ok_or(ConflictReason::NotConnected)?;
        let Some(sealed) = &processor.restricted_key else {
            let id = processor.account_id.clone().unwrap_or_default();
            return Ok(StripeAccount { id, livemode: processor.livemode });
        };
        let key = self.open(&program.id.to_bytes(), sealed).ok_or(AffiliateError::Seal)?;
        self.fetch_account(account, &processor.api_base, &key).await
    }

    /// Sets the program live. Idempotent.
    ///
    /// # Errors
    /// `MissingSteps`; `Changed` if `if_match` is stale; the store failed.
    pub async fn go_live(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
    ) -> Result<AffiliateProgram, AffiliateError> {
        self.change_program(account, if_match, &|program| {
            let missing = program.missing_steps();
            if !missing.is_empty() {
                return Err(AffiliateError::MissingSteps(missing));
            }
            program.status = ProgramStatus::Live;
            Ok(())
        })
        .await
    }

    /// Pauses the program. Idempotent.
    ///
    /// # Errors
    /// `NotLive` if it was never live; `Changed` if `if_match` is stale; the store failed.
    pub async fn pause(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
    ) -> Result<AffiliateProgram, AffiliateError> {
        self.change_program(account, if_match, &|program| {
            if program.status == ProgramStatus::Setup {
                return Err(ConflictReason::NotLive.into());
            }
            program.status = ProgramStatus::Paused;
            Ok(())
        })
        .await
    }
}
