//! Provisioning of accounts: creates accounts with their first credentials, and changes accounts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::Address;
use model::account::{Account, Plan};
use model::credential::{
    API_KEY_PREFIX, ApiKey, ApiKeyScope, CredentialPolicy, CredentialSecret, SMTP_PASSWORD_PREFIX, SecretHash,
    SmtpCredential,
};
use model::expiring_secret::ExpiringSecret;
use model::id::{AccountId, ApiKeyId, SmtpCredentialId};
use model::user::{SignInLinkKind, UserRole};
use net::clock::Clock;
use net::entropy::Entropy;
use queue::intake::sender_authorization::SenderAuthorization;
use queue::scheduler::destination_queues::DestinationQueues;
use queue::services::Services;
use store::engine::{Batch, CommitError, ReadError, Store};
use store::queue_hold::{self, Hold, HoldScope};
use thiserror::Error;

use crate::users::UserService;

/// Maximum commit attempts while other holds change concurrently.
const COMMIT_TRIES_MAX: usize = 20;

/// Why an account was not created or changed.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// An account with this address exists.
    #[error("an account for {0} already exists")]
    Taken(String),
    #[error("there is no account {0}")]
    Unknown(String),
    #[error("the account was changed at the same time; try again")]
    Conflict,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(CommitError),
}

/// Lifetime of the link that signs the owner of a new account in.
const FIRST_LINK_TTL: Duration = Duration::from_secs(24 * 3600);

/// A new account with its first credentials.
#[derive(Debug)]
pub struct ProvisionedAccount {
    pub account: Account,
    /// The API key; shown once.
    pub api_key: CredentialSecret,
    /// The SMTP password; shown once.
    pub smtp_password: CredentialSecret,
    /// A link that signs the new account's owner in once.
    pub sign_in_link: Option<ExpiringSecret>,
}

/// Creates and changes accounts.
#[derive(Clone)]
pub struct AccountProvisioning {
    pub users: UserService,
    store: Store,
    clock: Clock,
    entropy: Entropy,
    senders: Arc<SenderAuthorization>,
    queues: Arc<DestinationQueues>,
}

impl AccountProvisioning {
    /// Creates the service. Changes invalidate cached sender authorizations at once.
    #[must_use]
    pub fn new(services: &Services, senders: Arc<SenderAuthorization>, queues: Arc<DestinationQueues>) -> Self {
        let Services { store, clock, entropy, .. } = services.clone();
        Self { users: UserService::new(services), store, clock, entropy, senders, queues }
    }

    /// Creates an account with its owner, the owner's first sign-in link, an API key and an SMTP credential.
    ///
    /// # Errors
    /// Returns a [`ProvisionError`] if the address has an account or the store fails.
    pub fn create_account(
        &self,
        email: Address,
        plan: Plan,
        production: bool,
    ) -> BoxFuture<'_, Result<ProvisionedAccount, ProvisionError>> {
        Box::pin(async move {
            let now = self.clock.now();
            let id = AccountId::new(now, self.entropy.unique_bits());
            let (payment_method, suspended) = (false, false);
            let account = Account { id, email, plan, production, payment_method, suspended, created_at: now };
            let mut batch = Batch::progress();
            store::account::create(&mut batch, &account);
            let owner = self.users.new_user(id, account.email.clone(), UserRole::Owner);
            store::user::create(&mut batch, &owner);
            let link = self.users.create_link(&mut batch, &owner, SignInLinkKind::SignIn, FIRST_LINK_TTL);
            let api_key = self.create_api_key(&mut batch, id, now);
            let smtp_password = self.create_smtp_credential(&mut batch, id, now);
            self.commit(batch, || account.email.to_string()).await?;
            Ok(ProvisionedAccount { account, api_key, smtp_password, sign_in_link: Some(link) })
        })
    }

    /// Creates another API key and SMTP credential for an account.
    ///
    /// # Errors
    /// Returns a [`ProvisionError`] if the account does not exist or the store fails.
    pub async fn create_credentials(&self, id_or_email: &str) -> Result<ProvisionedAccount, ProvisionError> {
        let account = self.find(id_or_email).await?;
        let now = self.clock.now();
        let mut batch = Batch::progress();
        let api_key = self.create_api_key(&mut batch, account.id, now);
        let smtp_password = self.create_smtp_credential(&mut batch, account.id, now);
        self.commit(batch, || account.email.to_string()).await?;
        Ok(ProvisionedAccount { account, api_key, smtp_password, sign_in_link: None })
    }

    fn create_api_key(&self, batch: &mut Batch, account: AccountId, now: Timestamp) -> CredentialSecret {
        let secret = CredentialSecret::new(API_KEY_PREFIX, self.entropy.secret());
        let api_key = ApiKey {
            id: ApiKeyId::new(now, self.entropy.unique_bits()),
            account,
            name: "first".to_owned(),
            scope: ApiKeyScope::Full,
            hint: secret.hint(),
            enabled: true,
            terms: CredentialPolicy::default(),
            created_at: now,
        };
        if let Some(hash) = SecretHash::from_api_key(secret.expose()) {
            store::credential::create_api_key(batch, &api_key, &hash);
        }
        secret
    }

    fn create_smtp_credential(&self, batch: &mut Batch, account: AccountId, now: Timestamp) -> CredentialSecret {
        let secret = CredentialSecret::new(SMTP_PASSWORD_PREFIX, self.entropy.secret());
        let credential = SmtpCredential {
            id: SmtpCredentialId::new(now, self.entropy.unique_bits()),
            account,
            name: "first".to_owned(),
            hint: secret.hint(),
            enabled: true,
            terms: CredentialPolicy::default(),
            created_at: now,
        };
        if let Some(hash) = SecretHash::from_smtp_password(secret.expose()) {
            store::credential::create_smtp(batch, &credential, &hash);
        }
        secret
    }

    /// Changes an account. If the change suspends the account, its queued mail is held on this node when this returns,
    /// and on other nodes within a second. If it lifts a suspension, the mail is released.
    ///
    /// # Errors
    /// Returns a [`ProvisionError`] if the account does not exist, was changed concurrently, or the store fails.
    pub async fn change_account(
        &self,
        id_or_email: &str,
        change: impl FnOnce(&mut Account),
    ) -> Result<Account, ProvisionError> {
        let before = self.find(id_or_email).await?;
        let mut after = before.clone();
        change(&mut after);
        for _ in 0..COMMIT_TRIES_MAX {
            let mut batch = Batch::progress();
            store::account::update(&mut batch, &before, &after);
            if after.suspended != before.suspended {
                self.update_account_hold(&mut batch, &after).await?;
            }
            let committed = self.store.commit(batch).await;
            self.senders.invalidate(after.id, None);
            match committed {
                Ok(()) => {
                    self.queues.reload_holds().await?;
                    return Ok(after);
                }
                // Only another hold changed: try again.
                Err(CommitError::Conflict { .. }) if self.find(id_or_email).await? == before => {}
                Err(CommitError::Conflict { .. }) => return Err(ProvisionError::Conflict),
                Err(error) => return Err(ProvisionError::Commit(error)),
            }
        }
        Err(ProvisionError::Conflict)
    }

    async fn find(&self, id_or_email: &str) -> Result<Account, ProvisionError> {
        let found = store::account::find(&self.store, id_or_email).await?;
        found.ok_or_else(|| ProvisionError::Unknown(id_or_email.to_owned()))
    }

    /// Holds the queued mail of a suspended account, or releases the hold.
    async fn update_account_hold(&self, batch: &mut Batch, account: &Account) -> Result<(), ProvisionError> {
        let (holds, now) = (queue_hold::list(&self.store).await?, self.clock.now());
        let scope = HoldScope::Account(account.id);
        let hold = match holds.get(scope) {
            _ if account.suspended => Hold::begin(now),
            Some(hold) => hold.lift(now),
            None => return Ok(()),
        };
        queue_hold::put(batch, &holds.version, &[(scope, hold)]);
        Ok(())
    }

    async fn commit(&self, batch: Batch, address: impl FnOnce() -> String) -> Result<(), ProvisionError> {
        self.store.commit(batch).await.map_err(|error| match error {
            CommitError::Conflict { .. } => ProvisionError::Taken(address()),
            error => ProvisionError::Commit(error),
        })
    }
}
