//! Access: who is asking. Only what stands here makes a [`Tenant`], so that whoever holds one has
//! been authenticated, and whoever holds none cannot name an account.

use std::sync::Arc;

use mail::account::Account;
use mail::credential::{Scope, SecretHash};
use thiserror::Error;

use crate::engine::{ReadError, Store};
use crate::{account, credential};

/// Somebody who has shown who they are: an account, and what they may do in it.
#[derive(Debug, Clone)]
pub struct Tenant {
    account: Arc<Account>,
    scope: Scope,
}

impl Tenant {
    /// The account.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What they may do.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }
}

/// Why nobody was let in.
#[derive(Debug, Clone, Error)]
pub enum AccessError {
    /// No such secret, or it is switched off. Which of them is not said.
    #[error("unknown or disabled credential")]
    Denied,
    /// It could not be found out: ask again later.
    #[error(transparent)]
    Unavailable(#[from] ReadError),
}

async fn tenant(store: &Store, id: mail::id::AccountId, scope: Scope) -> Result<Tenant, AccessError> {
    let account = account::get(store, id).await?.ok_or(AccessError::Denied)?;
    Ok(Tenant { account: Arc::new(account), scope })
}

/// Lets in whoever holds an API key.
///
/// # Errors
/// [`AccessError`].
pub async fn by_api_key(store: &Store, secret: &str) -> Result<Tenant, AccessError> {
    let hash = SecretHash::of_api_key(secret).ok_or(AccessError::Denied)?;
    match credential::api_key_by_hash(store, &hash).await? {
        Some(found) if found.enabled => tenant(store, found.account, found.scope).await,
        _ => Err(AccessError::Denied),
    }
}

/// Lets in whoever holds an SMTP credential. The user name is one for all and checked by the door.
///
/// # Errors
/// [`AccessError`].
pub async fn by_smtp_password(store: &Store, password: &str) -> Result<Tenant, AccessError> {
    let hash = SecretHash::of_smtp_password(password).ok_or(AccessError::Denied)?;
    match credential::smtp_by_hash(store, &hash).await? {
        Some(found) if found.enabled => tenant(store, found.account, Scope::Sending).await,
        _ => Err(AccessError::Denied),
    }
}

/// Lets in the service itself, for an account whose work it took on earlier.
///
/// # Errors
/// [`AccessError`].
pub async fn by_service(store: &Store, account: mail::id::AccountId) -> Result<Tenant, AccessError> {
    tenant(store, account, Scope::Sending).await
}

/// Lets in on the operator's word: a `[[relay]]` listener's account, by id or owner's address.
///
/// # Errors
/// [`AccessError`].
pub async fn by_operator(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let account = account::find(store, id_or_email).await?.ok_or(AccessError::Denied)?;
    Ok(Tenant { account: Arc::new(account), scope: Scope::Sending })
}
