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
use store::queue_hold::{self, Hold, HoldScope};
use thiserror::Error;

use crate::accept::Hall;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::people::People;
use crate::sender::Senders;
use crate::worker::Worker;

/// Commits tried, when another hold changes meanwhile.
const TRIES_MAX: usize = 20;

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
    worker: Arc<Worker>,
}

impl Hall {
    /// Enrols and changes accounts; the hall goes by what was changed at once.
    #[must_use]
    pub fn enrolment(&self) -> Enrolment {
        let (store, clock) = (self.store().clone(), self.clock().clone());
        let (senders, worker) = (Arc::clone(&self.senders), Arc::clone(&self.worker));
        Enrolment { store, clock, entropy: self.entropy().clone(), senders, worker }
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
        let account = self.find(id_or_email).await?;
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

    /// Changes an account. One that is suspended by it has its mail in the queue held when this returns, here, and within
    /// a second at other nodes; one that is not suspended any more has it go on.
    ///
    /// # Errors
    /// [`EnrolError`].
    pub async fn change_account(
        &self,
        id_or_email: &str,
        change: impl FnOnce(&mut Account),
    ) -> Result<Account, EnrolError> {
        let before = self.find(id_or_email).await?;
        let mut after = before.clone();
        change(&mut after);
        for _ in 0..TRIES_MAX {
            let mut batch = Batch::progress();
            store::account::update(&mut batch, &before, &after);
            if after.suspended != before.suspended {
                self.hold(&mut batch, &after).await?;
            }
            let committed = self.store.commit(batch).await;
            self.senders.forget(after.id, None);
            match committed {
                Ok(()) => {
                    self.worker.look_at_holds().await?;
                    return Ok(after);
                }
                // Of somebody else's change of another hold this one is tried again.
                Err(CommitError::Conflict { .. }) if self.find(id_or_email).await? == before => {}
                Err(CommitError::Conflict { .. }) => return Err(EnrolError::Changed),
                Err(error) => return Err(EnrolError::Commit(error)),
            }
        }
        Err(EnrolError::Changed)
    }

    async fn find(&self, id_or_email: &str) -> Result<Account, EnrolError> {
        let found = store::account::find(&self.store, id_or_email).await?;
        found.ok_or_else(|| EnrolError::Unknown(id_or_email.to_owned()))
    }

    /// Holds the mail of an account that is suspended, or lifts that.
    async fn hold(&self, batch: &mut Batch, account: &Account) -> Result<(), EnrolError> {
        let (holds, now) = (queue_hold::all(&self.store).await?, self.clock.now());
        let scope = HoldScope::Account(account.id);
        let hold = match holds.of(scope) {
            _ if account.suspended => Hold::begin(now),
            Some(hold) => hold.lift(now),
            None => return Ok(()),
        };
        queue_hold::put(batch, &holds.version, &[(scope, hold)]);
        Ok(())
    }

    async fn commit(&self, batch: Batch, what: impl FnOnce() -> String) -> Result<(), EnrolError> {
        self.store.commit(batch).await.map_err(|error| match error {
            CommitError::Conflict { .. } => EnrolError::Taken(what()),
            error => EnrolError::Commit(error),
        })
    }
}
