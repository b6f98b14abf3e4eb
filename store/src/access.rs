//! Access: who is asking. Only what stands here makes a [`Tenant`] or a [`SignedIn`], so that whoever
//! holds one has been authenticated, and whoever holds none cannot name an account.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use mail::account::Account;
use mail::credential::{
    ApiKey, ApiKeyScope, CredentialId, CredentialPolicy, CredentialRejection, SecretHash, SmtpCredential,
};
use mail::id::{AccountId, ApiKeyId, DomainId, SmtpCredentialId, UserId};
use mail::suppression::SuppressionSource;
use mail::user::{SessionToken, User, UserSession};
use thiserror::Error;

use crate::credential::Credential as _;
use crate::engine::{Key, ReadError, Store, Value};
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
    pub fn source(self) -> SuppressionSource {
        match self {
            Self::User(_) => SuppressionSource::Dashboard,
            Self::ApiKey(_) | Self::SmtpCredential(_) | Self::Operator => SuppressionSource::Api,
        }
    }
}

/// What somebody was let in by: enough to check again whether it still lets in.
#[derive(Debug, Clone)]
pub enum AuthProof {
    /// An API key: which, the hash of the secret that was shown, and from where.
    ApiKey(AccountId, ApiKeyId, SecretHash, Option<IpAddr>),
    /// A user's session.
    Session(SessionToken),
    /// Nothing that can be taken away while it is used: the operator's word, the service's own, or a login that the
    /// SMTP session checks again by itself.
    Irrevocable,
}

impl AuthProof {
    /// Whether it can be taken away while it is used.
    #[must_use]
    pub fn is_revocable(&self) -> bool {
        !matches!(self, Self::Irrevocable)
    }

    /// The rows that it rests on.
    fn keys(&self) -> Vec<Key> {
        match self {
            Self::ApiKey(account, id, ..) => {
                vec![credential::key_of::<ApiKey>(*account, id.to_bytes()), account::key_of(*account)]
            }
            Self::Session(token) => vec![
                session::key_of(token.account, token.who, token.session),
                user::key_of(token.account, token.who),
                account::key_of(token.account),
            ],
            Self::Irrevocable => Vec::new(),
        }
    }

    /// Whether it still lets in, as these rows are.
    fn is_valid(&self, rows: &[Option<Value>], now: Timestamp) -> Result<bool, ReadError> {
        Ok(match (self, rows) {
            (Self::ApiKey(_, _, shown, from), [Some(key), Some(_)]) => {
                let key = ApiKey::from_row(key)?;
                key.enabled && key.terms.authorize(shown, *from, now).is_ok()
            }
            (Self::Session(token), [Some(row), Some(_), Some(_)]) => {
                let session = session::from_row(row)?;
                session.secret == token.hash() && session.is_live(now)
            }
            (Self::Irrevocable, _) => true,
            _ => false,
        })
    }
}

/// Which of these proofs still let in: one read for all of them.
///
/// # Errors
/// The store cannot be read.
pub async fn revalidate_proofs(store: &Store, proofs: &[AuthProof], now: Timestamp) -> Result<Vec<bool>, ReadError> {
    let keys: Vec<Vec<Key>> = proofs.iter().map(AuthProof::keys).collect();
    let rows = store.get_many(&keys.concat()).await?;
    let mut rows = rows.as_slice();
    let mut hold = Vec::with_capacity(proofs.len());
    for (proof, keys) in proofs.iter().zip(keys) {
        let (its, others) = rows.split_at_checked(keys.len()).unwrap_or((rows, &[]));
        hold.push(proof.is_valid(its, now)?);
        rows = others;
    }
    Ok(hold)
}

/// Somebody who has shown who they are: an account, and what they may do in it.
#[derive(Debug, Clone)]
pub struct Tenant {
    account: Arc<Account>,
    scope: ApiKeyScope,
    actor: Actor,
    bound_to: Option<DomainId>,
    proof: AuthProof,
    for_service: bool,
}

impl Tenant {
    /// The account.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What they may do.
    #[must_use]
    pub fn scope(&self) -> ApiKeyScope {
        self.scope
    }

    /// By what they have shown who they are.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// What they were let in by, for what goes on after their request.
    #[must_use]
    pub fn proof(&self) -> &AuthProof {
        &self.proof
    }

    /// The credential whose emails alone they may read and change: their own, when all they may do is send.
    /// None when they see what everybody sent.
    #[must_use]
    pub fn confined_to(&self) -> Option<CredentialId> {
        self.actor.credential().filter(|_| self.scope == ApiKeyScope::Sending)
    }

    /// The one domain that they may send from; none when it may be any of the account's.
    #[must_use]
    pub fn bound_to(&self) -> Option<DomainId> {
        self.bound_to
    }

    /// Whether it is the service that writes, from its own domain, to people who asked for the mail ([`for_service`]).
    #[must_use]
    pub fn is_system_mail(&self) -> bool {
        self.for_service
    }
}

/// A user who has signed in: a tenant with full scope, and who it is.
#[derive(Debug, Clone)]
pub struct SignedInUser {
    tenant: Tenant,
    user: Arc<User>,
    session: Arc<UserSession>,
    token: SessionToken,
}

impl SignedInUser {
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
    pub fn session(&self) -> &UserSession {
        &self.session
    }

    /// What they have shown.
    #[must_use]
    pub fn token(&self) -> &SessionToken {
        &self.token
    }
}

/// Why a credential or a session does not let in. Whoever is told this has shown the secret itself, or one that belongs to
/// nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// None was shown.
    Missing,
    /// What was shown has not the form of one.
    Malformed,
    /// It is not known: it never was one, or it was deleted.
    Unknown,
    /// It is switched off.
    Revoked,
    /// It is over.
    Expired,
}

impl Denial {
    /// All of them, as the API says them.
    pub const WORDS: [&str; 5] = ["missing", "malformed", "unknown", "revoked", "expired"];

    /// As the API says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }
}

/// Why nobody was let in.
#[derive(Debug, Clone, Error)]
pub enum AccessError {
    /// No such secret, or it is switched off or over.
    #[error("unknown or disabled credential")]
    Denied(Denial),
    /// The credential may not be used from this address.
    #[error("the credential may not be used from this address")]
    AddressNotAllowed,
    /// It could not be found out: ask again later.
    #[error(transparent)]
    Unavailable(#[from] ReadError),
}

impl From<CredentialRejection> for AccessError {
    fn from(why: CredentialRejection) -> Self {
        match why {
            CredentialRejection::Expired => Self::Denied(Denial::Expired),
            CredentialRejection::AddressNotAllowed => Self::AddressNotAllowed,
        }
    }
}

/// What a credential that lets in makes of who shows it.
struct TenantBuilder {
    account: AccountId,
    scope: ApiKeyScope,
    actor: Actor,
    terms: CredentialPolicy,
    proof: AuthProof,
}

impl TenantBuilder {
    async fn build(self, store: &Store) -> Result<Tenant, AccessError> {
        let account = account::get(store, self.account).await?.ok_or(AccessError::Denied(Denial::Unknown))?;
        let Self { scope, actor, terms, proof, .. } = self;
        Ok(Tenant { account: Arc::new(account), scope, actor, bound_to: terms.domain, proof, for_service: false })
    }
}

/// From where and when somebody comes.
#[derive(Debug, Clone, Copy)]
pub struct AccessContext {
    /// Their address, when it is known.
    pub from: Option<IpAddr>,
    /// The time.
    pub now: Timestamp,
}

/// Lets in whoever holds an API key.
///
/// # Errors
/// [`AccessError`].
pub async fn authenticate_api_key(store: &Store, secret: &str, arrival: AccessContext) -> Result<Tenant, AccessError> {
    let hash = SecretHash::from_api_key(secret).ok_or(AccessError::Denied(Denial::Malformed))?;
    let found = credential::find_by_hash::<ApiKey>(store, &hash).await?;
    let found = found.ok_or(AccessError::Denied(Denial::Unknown))?;
    if !found.enabled {
        return Err(AccessError::Denied(Denial::Revoked));
    }
    found.terms.authorize(&hash, arrival.from, arrival.now)?;
    let ApiKey { id, account, scope, terms, .. } = found;
    let proof = AuthProof::ApiKey(account, id, hash, arrival.from);
    TenantBuilder { account, scope, actor: Actor::ApiKey(id), terms, proof }.build(store).await
}

/// Lets in whoever holds the SMTP credential whose password has this hash. The user name is one for all
/// and checked by the door.
///
/// # Errors
/// [`AccessError`].
pub async fn authenticate_smtp_password(
    store: &Store,
    hash: &SecretHash,
    arrival: AccessContext,
) -> Result<Tenant, AccessError> {
    let found = credential::find_by_hash::<SmtpCredential>(store, hash).await?;
    let found = found.ok_or(AccessError::Denied(Denial::Unknown))?;
    if !found.enabled {
        return Err(AccessError::Denied(Denial::Revoked));
    }
    found.terms.authorize(hash, arrival.from, arrival.now)?;
    let SmtpCredential { id, account, terms, .. } = found;
    let actor = Actor::SmtpCredential(id);
    TenantBuilder { account, scope: ApiKeyScope::Sending, actor, terms, proof: AuthProof::Irrevocable }
        .build(store)
        .await
}

/// Lets in whoever holds a session's token. Session, user and account are one read.
///
/// # Errors
/// [`AccessError`].
pub async fn authenticate_session(
    store: &Store,
    token: &SessionToken,
    now: Timestamp,
) -> Result<SignedInUser, AccessError> {
    let keys = [
        session::key_of(token.account, token.who, token.session),
        user::key_of(token.account, token.who),
        account::key_of(token.account),
    ];
    let rows = store.get_many(&keys).await?;
    let [Some(session), Some(user), Some(account)] = rows.as_slice() else {
        return Err(AccessError::Denied(Denial::Unknown));
    };
    let session = session::from_row(session)?;
    // Of 256 random bits only the hash is compared: there is no timing to watch.
    if session.secret != token.hash() {
        return Err(AccessError::Denied(Denial::Unknown));
    }
    if !session.is_live(now) {
        return Err(AccessError::Denied(Denial::Expired));
    }
    let (user, account) = (user::from_row(user)?, Arc::new(account::from_row(account)?));
    let (actor, proof) = (Actor::User(user.id), AuthProof::Session(token.clone()));
    let tenant = Tenant { account, scope: ApiKeyScope::Full, actor, bound_to: None, proof, for_service: false };
    Ok(SignedInUser { tenant, user: Arc::new(user), session: Arc::new(session), token: token.clone() })
}

/// Lets in the service itself, for an account whose work it took on earlier.
///
/// # Errors
/// [`AccessError`].
pub async fn service_tenant(store: &Store, account: AccountId) -> Result<Tenant, AccessError> {
    let (actor, terms, proof) = (Actor::Operator, CredentialPolicy::default(), AuthProof::Irrevocable);
    TenantBuilder { account, scope: ApiKeyScope::Sending, actor, terms, proof }.build(store).await
}

/// Lets in the service itself, to write an account's mail in the service's own words and from its own domain. The access
/// level does not bind it, for the person asked for the mail; the account's caps, suppressions and suspension do, and the
/// mail is the account's. Whoever takes this must write nothing that the account's owner was free to choose.
///
/// # Errors
/// [`AccessError`].
pub async fn system_mail_tenant(store: &Store, account: AccountId) -> Result<Tenant, AccessError> {
    Ok(Tenant { for_service: true, ..service_tenant(store, account).await? })
}

/// Lets in the operator in the stead of an account's owner, by the account's id or that owner's address.
///
/// # Errors
/// [`AccessError`].
pub async fn operator_tenant_as_owner(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let tenant = operator_tenant(store, id_or_email).await?;
    Ok(Tenant { scope: ApiKeyScope::Full, ..tenant })
}

/// Lets in on the operator's word: a `[[relay]]` listener's account, by id or owner's address.
///
/// # Errors
/// [`AccessError`].
pub async fn operator_tenant(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let account = account::find(store, id_or_email).await?.ok_or(AccessError::Denied(Denial::Unknown))?;
    let account = Arc::new(account);
    let (scope, actor) = (ApiKeyScope::Sending, Actor::Operator);
    Ok(Tenant { account, scope, actor, bound_to: None, proof: AuthProof::Irrevocable, for_service: false })
}
