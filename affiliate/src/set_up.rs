//! Setting a program up: enabled, its settings, the processor, live and paused.
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

use crate::asking::StripeAccount;
use crate::office::{AffiliateService, CommitResult, IfMatch, TRIES_MAX};
use crate::refusal::{AffiliateError, ConflictReason};

/// How the processor is to be connected; all of it takes the place of what was there.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessorConnection {
    /// One or two secrets that its events are signed with.
    pub webhook_secrets: Vec<String>,
    /// The address of its API.
    pub api_base: String,
    /// The key by which it is asked.
    pub restricted_key: Option<String>,
    /// The account there; a key tells it itself.
    pub account_id: Option<String>,
}

/// Checks the address of a page on the web: it has a host, and neither a user's name nor a password.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn check_page(text: &str) -> Result<(), String> {
    parse_page_url(text).map(drop)
}

fn parse_page_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is no address of a page: {error}"))?;
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none() {
        return Err("must begin with https:// (or http://) and name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must hold no user name and no password".to_owned());
    }
    Ok(url)
}

/// An origin of pages, as browsers write it: `https://shop.example`.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn parse_origin(text: &str) -> Result<String, String> {
    let url = parse_page_url(text)?;
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err("must be an origin, like https://shop.example, without a path".to_owned());
    }
    Ok(url.origin().ascii_serialization())
}

impl AffiliateService {
    /// Enables the program of an account: it is being set up from now on.
    ///
    /// # Errors
    /// There is one; [`Refusal`].
    pub async fn enable_program(
        &self,
        account: AccountId,
        (website_url, currency, mode): (String, Currency, ProcessorMode),
    ) -> Result<AffiliateProgram, AffiliateError> {
        let now = self.now();
        let program = AffiliateProgram {
            id: ProgramId::new(now, self.random()),
            account,
            status: ProgramStatus::Setup,
            settings: ProgramSettings::new(website_url, currency, mode),
            default_campaign: None,
            publishable_key: format!("pk_{:032x}", self.hall.entropy().u128()),
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

    /// Changes a program; the change says what is wrong, or makes it.
    async fn change_program(
        &self,
        account: AccountId,
        seen: Option<&IfMatch>,
        change: &(dyn Fn(&mut AffiliateProgram) -> Result<(), AffiliateError> + Send + Sync),
    ) -> Result<AffiliateProgram, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let before = self.get_program(account).await?;
            IfMatch::check(seen, before.rev, before.updated_at)?;
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
            let draft = self.ledger().mark_draft(&mut batch, (&before, &after)).await?;
            let host = after.settings.portal_domain.as_ref();
            match self.commit(batch).await? {
                CommitResult::Committed => {
                    if let Some(run) = draft {
                        self.ledger().filter_by_methods((account, run)).await;
                    }
                    return Ok(after);
                }
                CommitResult::Conflict(key) if host.is_some_and(|host| program::is_host_conflict(&key, host)) => {
                    return Err(AffiliateError::field("portal_domain", "is another program's"));
                }
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Judges a host for the portal of an account's program, and takes it from a program that has lost the domain.
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
            // Whoever was faster has ended it, or is told so by the commit that follows.
            self.commit(batch).await?;
        }
        Ok(())
    }

    /// Sets what the owner may set, all of it or nothing.
    ///
    /// # Errors
    /// The currency and the mode are settled once the program was live; [`Refusal`].
    pub async fn update_settings(
        &self,
        account: AccountId,
        seen: Option<&IfMatch>,
        change: &(dyn Fn(&mut ProgramSettings) -> Result<(), AffiliateError> + Send + Sync),
    ) -> Result<AffiliateProgram, AffiliateError> {
        self.change_program(account, seen, &|program| {
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

    /// What does not go together.
    fn check_settings(settings: &ProgramSettings) -> Result<(), AffiliateError> {
        if settings.metadata_key == settings.exclude_key {
            return Err(AffiliateError::field("exclude_key", "must be another one than `metadata_key`"));
        }
        Ok(())
    }

    /// Whether the program may write from an address: one on a verified domain of the account.
    ///
    /// # Errors
    /// It may not; the store cannot be read.
    pub async fn check_sender(&self, account: AccountId, sender: &Address) -> Result<(), AffiliateError> {
        if self.is_verified_for(account, sender.domain()).await? {
            return Ok(());
        }
        Err(AffiliateError::field("mail_from", "must be an address on a verified domain of the account"))
    }

    /// Connects the processor. With a key it is asked whose key that is; without one it is only listened to.
    ///
    /// # Errors
    /// There are too few or too many secrets; it is asked and does not answer as it must; [`Refusal`].
    pub async fn connect_processor(
        &self,
        account: AccountId,
        seen: Option<&IfMatch>,
        connection: &ProcessorConnection,
    ) -> Result<AffiliateProgram, AffiliateError> {
        // Nobody is asked for the sake of a program that is not there, or another one than was seen.
        let before = self.get_program(account).await?;
        IfMatch::check(seen, before.rev, before.updated_at)?;
        let id = before.id.to_bytes();
        if connection.webhook_secrets.is_empty() || connection.webhook_secrets.len() > WEBHOOK_SECRETS_MAX {
            let why = format!("must be one secret, or {WEBHOOK_SECRETS_MAX} while one takes the other's place");
            return Err(AffiliateError::field("webhook_secrets", why));
        }
        self.check_api_base(&connection.api_base)?;
        let told = match &connection.restricted_key {
            Some(key) => Some(self.fetch_account(account, (&connection.api_base, key)).await?),
            None => None,
        };
        let seal = |text: &String| self.seal(&id, text);
        let processor = PaymentProcessor {
            api_base: connection.api_base.clone(),
            restricted_key: connection.restricted_key.as_ref().map(seal).transpose()?,
            webhook_secrets: connection.webhook_secrets.iter().map(seal).collect::<Result<_, _>>()?,
            account_id: told.as_ref().map_or_else(|| connection.account_id.clone(), |told| Some(told.id.clone())),
            livemode: told.and_then(|told| told.livemode),
        };
        self.change_program(account, seen, &|program| {
            program.processor = Some(processor.clone());
            Ok(())
        })
        .await
    }

    /// Asks the connected processor whose key it was given. Where it is only listened to, there is nobody to ask: what
    /// the owner said of it stands.
    ///
    /// # Errors
    /// None is connected; it does not answer as it must; [`Refusal`].
    pub async fn test_processor(&self, account: AccountId) -> Result<StripeAccount, AffiliateError> {
        let program = self.get_program(account).await?;
        let processor = program.processor.as_ref().ok_or(ConflictReason::NotConnected)?;
        let Some(sealed) = &processor.restricted_key else {
            let id = processor.account_id.clone().unwrap_or_default();
            return Ok(StripeAccount { id, livemode: processor.livemode });
        };
        let key = self.open(&program.id.to_bytes(), sealed).ok_or(AffiliateError::Seal)?;
        self.fetch_account(account, (&processor.api_base, &key)).await
    }

    /// Makes the program live. It may be so already.
    ///
    /// # Errors
    /// Steps are missing; [`Refusal`].
    pub async fn go_live(
        &self,
        account: AccountId,
        seen: Option<&IfMatch>,
    ) -> Result<AffiliateProgram, AffiliateError> {
        self.change_program(account, seen, &|program| {
            let missing = program.missing_steps();
            if !missing.is_empty() {
                return Err(AffiliateError::MissingSteps(missing));
            }
            program.status = ProgramStatus::Live;
            Ok(())
        })
        .await
    }

    /// Pauses the program. It may be so already.
    ///
    /// # Errors
    /// It was never live; [`Refusal`].
    pub async fn pause(&self, account: AccountId, seen: Option<&IfMatch>) -> Result<AffiliateProgram, AffiliateError> {
        self.change_program(account, seen, &|program| {
            if program.status == ProgramStatus::Setup {
                return Err(ConflictReason::NotLive.into());
            }
            program.status = ProgramStatus::Paused;
            Ok(())
        })
        .await
    }
}
