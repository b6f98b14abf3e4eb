//! Enrolment: new accounts and secrets.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::account::{Account, Plan};
use mail::address::Address;
use mail::credential::{
    API_KEY_PREFIX, ApiKey, SMTP_PASSWORD_PREFIX, Scope, Secret, SecretHash, SmtpCredential, Terms,
};
use mail::id::{AccountId, ApiKeyId, SmtpCredentialId};
use mail::user::Role;
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

use crate::accept::Hall;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::people::People;
use crate::sender::Senders;

/// Why an enrolment failed.
#[derive(Debug, Error)]
pub enum EnrolError {
    /// The address has one already.
    #[error("{0} is taken")]
    Taken(String),
    /// The account does not exist.
    #[error("{0} does not exist")]
    Unknown(String),
    /// It was changed by somebody else at the same moment.
    #[error("it was changed by somebody else meanwhile; try again")]
    Changed,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(CommitError),
}

/// A new account with its first secrets.
#[derive(Debug)]
pub struct Enrolled {
    /// The account.
    pub account: Account,
    /// The API key's secret: shown once.
    pub api_key: Secret,
    /// The SMTP password: shown once.
    pub smtp_password: Secret,
}

/// Enrols.
#[derive(Clone)]
pub struct Enrolment {
    /// Where everything lies.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
    senders: Arc<Senders>,
}

impl Hall {
    /// Enrols and changes accounts; the hall goes by what was changed at once.
    #[must_use]
    pub fn enrolment(&self) -> Enrolment {
        let (store, clock) = (self.store().clone(), self.clock().clone());
        Enrolment { store, clock, entropy: self.entropy().clone(), senders: Arc::clone(&self.senders) }
    }
}

impl Enrolment {
    /// The users of all accounts.
    #[must_use]
    pub fn people(&self) -> People {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        People { store, clock, entropy: self.entropy.clone() }
    }

    /// Creates an account with its owner, an API key and an SMTP credential.
    ///
    /// # Errors
    /// [`EnrolError`].
    pub fn account(
        &self,
        email: Address,
        plan: Plan,
        production: bool,
    ) -> BoxFuture<'_, Result<Enrolled, EnrolError>> {
        Box::pin(async move {
            let now = self.clock.now();
            let id = AccountId::new(now, self.entropy.id());
            let (payment_method, suspended) = (false, false);
            let account = Account { id, email, plan, production, payment_method, suspended, created_at: now };
            let mut batch = Batch::progress();
            store::account::create(&mut batch, &account);
            let owner = self.people().new_user(id, account.email.clone(), Role::Owner);
            store::user::create(&mut batch, &owner);
            let api_key = self.api_key(&mut batch, id, now);
            let smtp_password = self.smtp_credential(&mut batch, id, now);
            self.commit(batch, || account.email.to_string()).await?;
            Ok(Enrolled { account, api_key, smtp_password })
        })
    }

    /// Gives an account another API key and another SMTP credential.
    ///
    /// # Errors
    /// [`EnrolError`].
    pub async fn secrets(&self, id_or_email: &str) -> Result<Enrolled, EnrolError> {
        let account = store::account::find(&self.store, id_or_email)
            .await?
            .ok_or_else(|| EnrolError::Unknown(id_or_email.to_owned()))?;
        let now = self.clock.now();
        let mut batch = Batch::progress();
        let api_key = self.api_key(&mut batch, account.id, now);
        let smtp_password = self.smtp_credential(&mut batch, account.id, now);
        self.commit(batch, || account.email.to_string()).await?;
        Ok(Enrolled { account, api_key, smtp_password })
    }

    fn api_key(&self, batch: &mut Batch, account: AccountId, now: Timestamp) -> Secret {
        let secret = Secret::new(API_KEY_PREFIX, self.entropy.secret());
        let api_key = ApiKey {
            id: ApiKeyId::new(now, self.entropy.id()),
            account,
            name: "first".to_owned(),
            scope: Scope::Full,
            hint: secret.hint(),
            enabled: true,
            terms: Terms::default(),
            created_at: now,
        };
        if let Some(hash) = SecretHash::of_api_key(secret.expose()) {
            store::credential::create_api_key(batch, &api_key, &hash);
        }
        secret
    }

    fn smtp_credential(&self, batch: &mut Batch, account: AccountId, now: Timestamp) -> Secret {
        let secret = Secret::new(SMTP_PASSWORD_PREFIX, self.entropy.secret());
        let credential = SmtpCredential {
            id: SmtpCredentialId::new(now, self.entropy.id()),
            account,
            name: "first".to_owned(),
            hint: secret.hint(),
            enabled: true,
            terms: Terms::default(),
            created_at: now,
        };
        if let Some(hash) = SecretHash::of_smtp_password(secret.expose()) {
            store::credential::create_smtp(batch, &credential, &hash);
        }
        secret
    }

    /// Changes an account.
    ///
    /// # Errors
    /// [`EnrolError`].
    pub async fn change_account(
        &self,
        id_or_email: &str,
        change: impl FnOnce(&mut Account),
    ) -> Result<Account, EnrolError> {
        let before = store::account::find(&self.store, id_or_email)
            .await?
            .ok_or_else(|| EnrolError::Unknown(id_or_email.to_owned()))?;
        let mut after = before.clone();
        change(&mut after);
        let mut batch = Batch::progress();
        store::account::update(&mut batch, &before, &after);
        let committed = self.commit(batch, String::new).await.map_err(changed);
        self.senders.forget(after.id, None);
        committed?;
        Ok(after)
    }

    async fn commit(&self, batch: Batch, what: impl FnOnce() -> String) -> Result<(), EnrolError> {
        self.store.commit(batch).await.map_err(|error| match error {
            CommitError::Conflict { .. } => EnrolError::Taken(what()),
            error => EnrolError::Commit(error),
        })
    }
}

fn changed(error: EnrolError) -> EnrolError {
    match error {
        EnrolError::Taken(_) => EnrolError::Changed,
        error => error,
    }
}
