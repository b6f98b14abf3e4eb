//! Program setup: enable, settings, processor, go live, pause.
//!
//! ```text
//! enable ─► setup ─[ processor, default campaign ]─► go live ⇄ pause
//! ```

use std::sync::Arc;

use dns::secrets::Vault;
use message::address::{Address, DomainName};
use model::affiliate::money::Currency;
use model::affiliate::program::{
    AffiliateProgram, PaymentProcessor, ProcessorMode, ProgramSettings, ProgramStatus, WEBHOOK_SECRETS_MAX,
};
use model::id::{AccountId, ProgramId};
use store::affiliate::program;
use store::engine::{Batch, Key};
use store::retry_on_conflict;
use url::Url;

use crate::context::Context;
use crate::error::{AffiliateError, ConflictReason, Result};
use crate::if_match::IfMatch;
use crate::partner_emails::sender::is_verified_for;
use crate::payouts::filter_methods::{filter_by_methods, mark_draft};
use crate::portal::host::PortalHosts;
use crate::secrets;
use crate::stripe::client::{StripeAccount, StripeProcessor};

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

/// Sets programs up and changes their settings.
#[derive(Clone)]
pub struct Onboarding {
    pub(crate) context: Context,
    pub(crate) vault: Arc<Vault>,
    pub(crate) hosts: PortalHosts,
    pub(crate) processor: StripeProcessor,
}

impl Onboarding {
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
    ) -> Result<AffiliateProgram> {
        let now = self.context.now();
        let program = AffiliateProgram {
            id: ProgramId::new(now, self.context.random()),
            account,
            status: ProgramStatus::Setup,
            settings: ProgramSettings::new(website_url, currency, mode),
            default_campaign: None,
            publishable_key: format!("pk_{:032x}", self.context.entropy.u128()),
            processor: None,
            rev: 1,
            created_at: now,
            updated_at: now,
        };
        let mut batch = Batch::intake();
        program::create(&mut batch, &program);
        self.context.commit_unless(batch, |_| Some(ConflictReason::ProgramExists)).await.map(|_| program)
    }

    /// Applies a change to a program and commits it.
    async fn change_program(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
        change: &(dyn Fn(&mut AffiliateProgram) -> Result<()> + Send + Sync),
    ) -> Result<AffiliateProgram> {
        retry_on_conflict(|| async {
            let before = self.context.get_program(account).await?;
            IfMatch::check(if_match, before.rev, before.updated_at)?;
            let mut after = before.clone();
            change(&mut after)?;
            if after == before {
                return Ok(Some(before));
            }
            if let Some(host) = &after.settings.portal_domain
                && before.settings.portal_domain.as_ref() != Some(host)
            {
                self.claim_host(account, host).await?;
            }
            (after.rev, after.updated_at) = (before.rev.saturating_add(1), self.context.now());
            let mut batch = Batch::progress();
            program::update(&mut batch, &before, &after);
            let draft = mark_draft(&self.context, &mut batch, &before, &after).await?;
            let host = after.settings.portal_domain.as_ref();
            let is_taken = |key: &Key| host.is_some_and(|host| program::is_host_conflict(key, host));
            let refusal =
                |key: &Key| is_taken(key).then(|| AffiliateError::field("portal_domain", "is used by another program"));
            if self.context.commit_unless(batch, refusal).await? {
                if let Some(run) = draft {
                    filter_by_methods(&self.context, account, run).await;
                }
                return Ok(Some(after));
            }
            Ok(None)
        })
        .await
    }

    /// Checks a portal host, and takes it from another program that may no longer use it.
    async fn claim_host(&self, account: AccountId, host: &DomainName) -> Result<()> {
        if let Err(fault) = self.hosts.check_portal_host(account, host).await? {
            return Err(AffiliateError::field("portal_domain", fault.to_string()));
        }
        if let Some(former) = self.hosts.former_program_of_host(account, host).await? {
            let mut after = former.clone();
            after.settings.portal_domain = None;
            (after.rev, after.updated_at) = (former.rev.saturating_add(1), self.context.now());
            let mut batch = Batch::progress();
            program::update(&mut batch, &former, &after);
            // If a concurrent change wins, the commit that follows reports the conflict.
            self.context.commit(batch).await?;
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
        change: &(dyn Fn(&mut ProgramSettings) -> Result<()> + Send + Sync),
    ) -> Result<AffiliateProgram> {
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
    fn check_settings(settings: &ProgramSettings) -> Result<()> {
        if settings.metadata_key == settings.exclude_key {
            return Err(AffiliateError::field("exclude_key", "must differ from `metadata_key`"));
        }
        Ok(())
    }

    /// Checks that the program may send from an address: it must be on a verified domain of the account.
    ///
    /// # Errors
    /// A field error on `mail_from`; the store cannot be read.
    pub async fn check_sender(&self, account: AccountId, sender: &Address) -> Result<()> {
        if is_verified_for(&self.context, account, sender.domain()).await? {
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
    ) -> Result<AffiliateProgram> {
        // Checked before the request is sent to the processor.
        let before = self.context.get_program(account).await?;
        IfMatch::check(if_match, before.rev, before.updated_at)?;
        let id = before.id.to_bytes();
        if connection.webhook_secrets.is_empty() || connection.webhook_secrets.len() > WEBHOOK_SECRETS_MAX {
            let reason = format!("must be one secret, or {WEBHOOK_SECRETS_MAX} during a rotation");
            return Err(AffiliateError::field("webhook_secrets", reason));
        }
        self.processor.check_api_base(&connection.api_base)?;
        let fetched = match &connection.restricted_key {
            Some(key) => Some(self.processor.fetch_account(account, &connection.api_base, key).await?),
            None => None,
        };
        let seal = |text: &String| secrets::seal(&self.vault, &id, text);
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
    pub async fn test_processor(&self, account: AccountId) -> Result<StripeAccount> {
        let program = self.context.get_program(account).await?;
        let processor = program.processor.as_ref().ok_or(ConflictReason::NotConnected)?;
        let Some(sealed) = &processor.restricted_key else {
            let id = processor.account_id.clone().unwrap_or_default();
            return Ok(StripeAccount { id, livemode: processor.livemode });
        };
        let key = secrets::open(&self.vault, &program.id.to_bytes(), sealed).ok_or(AffiliateError::Seal)?;
        self.processor.fetch_account(account, &processor.api_base, &key).await
    }

    /// Sets the program live. Idempotent.
    ///
    /// # Errors
    /// `MissingSteps`; `Changed` if `if_match` is stale; the store failed.
    pub async fn go_live(&self, account: AccountId, if_match: Option<&IfMatch>) -> Result<AffiliateProgram> {
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
    pub async fn pause(&self, account: AccountId, if_match: Option<&IfMatch>) -> Result<AffiliateProgram> {
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
