//! Access: who is asking. Only what stands here makes a [`Tenant`] or a [`SignedIn`], so that whoever
//! holds one has been authenticated, and whoever holds none cannot name an account.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use mail::account::Account;
use mail::credential::{ApiKey, CredentialId, NotAdmitted, Scope, SecretHash, SmtpCredential, Terms};
use mail::id::{AccountId, ApiKeyId, DomainId, SmtpCredentialId, UserId};
use mail::suppression::Source;
use mail::user::{Session, SessionToken, User};
use thiserror::Error;

use crate::engine::{ReadError, Store};
use crate::{account, credential, session, user};

/// By what somebody has shown who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An API key.
    ApiKey(ApiKeyId),
    /// An SMTP credential.
    SmtpCredential(SmtpCredentialId),
    /// A user's session.
    User(UserId),
    /// The operator's word, or the service's own.
    Operator,
}

impl Actor {
    /// The credential; none where none was shown.
    #[must_use]
    pub fn credential(self) -> Option<CredentialId> {
        match self {
            Self::ApiKey(id) => Some(CredentialId::ApiKey(id)),
            Self::SmtpCredential(id) => Some(CredentialId::Smtp(id)),
            Self::User(_) | Self::Operator => None,
        }
    }

    /// Whose word it is when they say something of an address.
    #[must_use]
    pub fn source(self) -> Source {
        match self {
            Self::User(_) => Source::Dashboard,
            Self::ApiKey(_) | Self::SmtpCredential(_) | Self::Operator => Source::Api,
        }
    }
}

/// Somebody who has shown who they are: an account, and what they may do in it.
#[derive(Debug, Clone)]
pub struct Tenant {
    account: Arc<Account>,
    scope: Scope,
    actor: Actor,
    bound_to: Option<DomainId>,
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

    /// By what they have shown who they are.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// The credential whose emails alone they may read and change: their own, when all they may do is send.
    /// None when they see what everybody sent.
    #[must_use]
    pub fn confined_to(&self) -> Option<CredentialId> {
        self.actor.credential().filter(|_| self.scope == Scope::Sending)
    }

    /// The one domain that they may send from; none when it may be any of the account's.
    #[must_use]
    pub fn bound_to(&self) -> Option<DomainId> {
        self.bound_to
    }
}

/// A user who has signed in: a tenant with full scope, and who it is.
#[derive(Debug, Clone)]
pub struct SignedIn {
    tenant: Tenant,
    user: Arc<User>,
    session: Arc<Session>,
    token: SessionToken,
}

impl SignedIn {
    /// What they are to what keys may do as well.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The user, as of this request.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What they have shown.
    #[must_use]
    pub fn token(&self) -> &SessionToken {
        &self.token
    }
}

/// Why nobody was let in.
#[derive(Debug, Clone, Error)]
pub enum AccessError {
    /// No such secret, or it is switched off or over. Which of them is not said.
    #[error("unknown or disabled credential")]
    Denied,
    /// The credential may not be used from this address.
    #[error("the credential may not be used from this address")]
    Elsewhere,
    /// It could not be found out: ask again later.
    #[error(transparent)]
    Unavailable(#[from] ReadError),
}

impl From<NotAdmitted> for AccessError {
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::Over => Self::Denied,
            NotAdmitted::Elsewhere => Self::Elsewhere,
        }
    }
}

/// What a credential that lets in makes of who shows it.
struct Admitted {
    account: AccountId,
    scope: Scope,
    actor: Actor,
    terms: Terms,
}

impl Admitted {
    async fn tenant(self, store: &Store) -> Result<Tenant, AccessError> {
        let account = account::get(store, self.account).await?.ok_or(AccessError::Denied)?;
        let Self { scope, actor, terms, .. } = self;
        Ok(Tenant { account: Arc::new(account), scope, actor, bound_to: terms.domain })
    }
}

/// From where and when somebody comes.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Their address, when it is known.
    pub from: Option<IpAddr>,
    /// The time.
    pub now: Timestamp,
}

/// Lets in whoever holds an API key.
///
/// # Errors
/// [`AccessError`].
pub async fn by_api_key(store: &Store, secret: &str, arrival: Arrival) -> Result<Tenant, AccessError> {
    let hash = SecretHash::of_api_key(secret).ok_or(AccessError::Denied)?;
    let found = credential::by_hash::<ApiKey>(store, &hash).await?;
    let found = found.filter(|found| found.enabled).ok_or(AccessError::Denied)?;
    found.terms.admit(&hash, arrival.from, arrival.now)?;
    let ApiKey { id, account, scope, terms, .. } = found;
    Admitted { account, scope, actor: Actor::ApiKey(id), terms }.tenant(store).await
}

/// Lets in whoever holds the SMTP credential whose password has this hash. The user name is one for all
/// and checked by the door.
///
/// # Errors
/// [`AccessError`].
pub async fn by_smtp_password(
    store: &Store,
    hash: &SecretHash,
    arrival: Arrival,
) -> Result<Tenant, AccessError> {
    let found = credential::by_hash::<SmtpCredential>(store, hash).await?;
    let found = found.filter(|found| found.enabled).ok_or(AccessError::Denied)?;
    found.terms.admit(hash, arrival.from, arrival.now)?;
    let SmtpCredential { id, account, terms, .. } = found;
    let actor = Actor::SmtpCredential(id);
    Admitted { account, scope: Scope::Sending, actor, terms }.tenant(store).await
}

/// Lets in whoever holds a session's token. Session, user and account are one read.
///
/// # Errors
/// [`AccessError`].
pub async fn by_session(
    store: &Store,
    token: &SessionToken,
    now: Timestamp,
) -> Result<SignedIn, AccessError> {
    let keys = [
        session::key_of(token.account, token.who, token.session),
        user::key_of(token.account, token.who),
        account::key_of(token.account),
    ];
    let rows = store.get_many(&keys).await?;
    let [Some(session), Some(user), Some(account)] = rows.as_slice() else {
        return Err(AccessError::Denied);
    };
    let session = session::of_row(session)?;
    // Of 256 random bits only the hash is compared: there is no timing to watch.
    if session.secret != token.hash() || !session.is_live(now) {
        return Err(AccessError::Denied);
    }
    let (user, account) = (user::of_row(user)?, Arc::new(account::of_row(account)?));
    let tenant = Tenant { account, scope: Scope::Full, actor: Actor::User(user.id), bound_to: None };
    Ok(SignedIn { tenant, user: Arc::new(user), session: Arc::new(session), token: token.clone() })
}

/// Lets in the service itself, for an account whose work it took on earlier.
///
/// # Errors
/// [`AccessError`].
pub async fn by_service(store: &Store, account: AccountId) -> Result<Tenant, AccessError> {
    let admitted =
        Admitted { account, scope: Scope::Sending, actor: Actor::Operator, terms: Terms::default() };
    admitted.tenant(store).await
}

/// Lets in the operator in the stead of an account's owner, by the account's id or that owner's address.
///
/// # Errors
/// [`AccessError`].
pub async fn by_operator_as_owner(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let tenant = by_operator(store, id_or_email).await?;
    Ok(Tenant { scope: Scope::Full, ..tenant })
}

/// Lets in on the operator's word: a `[[relay]]` listener's account, by id or owner's address.
///
/// # Errors
/// [`AccessError`].
pub async fn by_operator(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let account = account::find(store, id_or_email).await?.ok_or(AccessError::Denied)?;
    let account = Arc::new(account);
    Ok(Tenant { account, scope: Scope::Sending, actor: Actor::Operator, bound_to: None })
}
