//! Authentication: turns a verified secret into a [`Tenant`] or a [`SignedInUser`].
//!
//! Only this module constructs them, so code that holds one acts for an authenticated caller, and code without one
//! cannot name an account.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use message::words;
use model::account::Account;
use model::client_policy::ClientPolicy;
use model::credential::{
    ApiKey, ApiKeyScope, CredentialId, CredentialPolicy, CredentialRejection, SecretHash, SmtpCredential,
};
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::held_email::ApprovedEmails;
use model::id::{AccountId, ApiKeyId, DomainId, GrantId, SmtpCredentialId, UserId};
use model::oauth::scope::ScopeSet;
use model::oauth::{OAuthGrant, OAuthResource, OAuthToken, TokenKind};
use model::suppression::SuppressionSource;
use model::user::{SessionToken, User, UserRole, UserSession};
use thiserror::Error;

use crate::codec;
use crate::credential::Credential as _;
use crate::engine::{Key, ReadError, Result, Store, Value};
use crate::{account, credential, oauth, session, user};

/// The credential or authority that authenticated the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    ApiKey(ApiKeyId),
    SmtpCredential(SmtpCredentialId),
    User(UserId),
    /// An access token of this grant.
    Grant(GrantId),
    /// The operator, or the service itself.
    Operator,
}

impl Actor {
    /// The credential; `None` for a user session, the operator and the service.
    pub fn credential(self) -> Option<CredentialId> {
        match self {
            Self::ApiKey(id) => Some(CredentialId::ApiKey(id)),
            Self::SmtpCredential(id) => Some(CredentialId::Smtp(id)),
            Self::Grant(id) => Some(CredentialId::Grant(id)),
            Self::User(_) | Self::Operator => None,
        }
    }

    /// The source recorded for a suppression that this actor creates.
    pub fn source(self) -> SuppressionSource {
        match self {
            Self::User(_) => SuppressionSource::Dashboard,
            Self::ApiKey(_) | Self::SmtpCredential(_) | Self::Grant(_) | Self::Operator => SuppressionSource::Api,
        }
    }
}

/// Proof of how a caller was authenticated, in enough detail to check later that it is still valid.
#[derive(Debug, Clone)]
pub enum AuthProof {
    /// Account, key id, hash of the presented secret, and client address.
    ApiKey(AccountId, ApiKeyId, SecretHash, Option<IpAddr>),
    Session(SessionToken),
    /// The access token, with the account, grant and user to whom it belongs.
    AccessToken(ExpiringSecret, AccountId, GrantId, UserId),
    /// Nothing that can be revoked in use: the operator, the service, or an SMTP login, which the SMTP session
    /// revalidates itself.
    Irrevocable,
}

impl AuthProof {
    /// Returns whether the credential can be revoked while it is in use.
    pub fn is_revocable(&self) -> bool {
        !matches!(self, Self::Irrevocable)
    }

    /// The rows that decide whether the proof is valid.
    fn keys(&self) -> Vec<Key> {
        match self {
            Self::ApiKey(account, id, ..) => {
                vec![credential::key_of::<ApiKey>(*account, id.to_bytes()), account::key_of(*account)]
            }
            Self::Session(token) => vec![
                session::key_of(token.account, token.owner, token.session),
                user::key_of(token.account, token.owner),
                account::key_of(token.account),
            ],
            Self::AccessToken(secret, account, grant, user) => vec![
                oauth::token::key_of(secret),
                oauth::grant::key_of(*account, *grant),
                user::key_of(*account, *user),
                account::key_of(*account),
            ],
            Self::Irrevocable => Vec::new(),
        }
    }

    /// Returns whether the proof is still valid according to these rows.
    fn is_valid(&self, rows: &[Option<Value>], now: Timestamp) -> Result<bool> {
        Ok(match (self, rows) {
            (Self::ApiKey(_, _, secret, from), [Some(key), Some(_)]) => {
                let key = ApiKey::from_row(key)?;
                key.enabled && key.terms.authorize(secret, *from, now).is_ok()
            }
            (Self::Session(token), [Some(row), Some(_), Some(_)]) => {
                let session: UserSession = codec::decode(row)?;
                session.secret == token.hash() && session.is_live(now)
            }
            (Self::AccessToken(secret, ..), [Some(_), Some(grant), Some(user), Some(_)]) => {
                let (grant, user): (OAuthGrant, User) = (codec::decode(grant)?, codec::decode(user)?);
                now < secret.expires_at && grant.is_live(user.role, now)
            }
            (Self::Irrevocable, _) => true,
            _ => false,
        })
    }
}

/// Checks which of these proofs are still valid, with one read for all of them.
pub async fn revalidate_proofs(store: &Store, proofs: &[AuthProof], now: Timestamp) -> Result<Vec<bool>> {
    let keys: Vec<Vec<Key>> = proofs.iter().map(AuthProof::keys).collect();
    let rows = store.get_many(&keys.concat()).await?;
    let mut rows = rows.as_slice();
    let mut are_valid = Vec::with_capacity(proofs.len());
    for (proof, keys) in proofs.iter().zip(keys) {
        let (own_rows, other_rows) = rows.split_at_checked(keys.len()).unwrap_or((rows, &[]));
        are_valid.push(proof.is_valid(own_rows, now)?);
        rows = other_rows;
    }
    Ok(are_valid)
}

/// An authenticated account with the scope and actor of the request.
#[derive(Debug, Clone)]
pub struct Tenant {
    account: Arc<Account>,
    scope: ApiKeyScope,
    actor: Actor,
    bound_to: Option<DomainId>,
    policy: Arc<ClientPolicy>,
    proof: AuthProof,
    for_service: bool,
    delegation: Option<Delegation>,
    approved: Option<Arc<ApprovedEmails>>,
    recently_authenticated: bool,
}

/// The bounds of a caller with an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delegation {
    pub grant: GrantId,
    /// The user who gave the grant.
    pub user: UserId,
    /// The user's role, as read for this request.
    pub role: UserRole,
    pub scopes: ScopeSet,
}

impl Tenant {
    /// A tenant without bounds.
    fn new(account: Arc<Account>, scope: ApiKeyScope, actor: Actor, proof: AuthProof) -> Self {
        Self {
            account,
            scope,
            actor,
            bound_to: None,
            policy: Arc::default(),
            proof,
            for_service: false,
            delegation: None,
            approved: None,
            recently_authenticated: true,
        }
    }

    pub fn account(&self) -> &Account {
        &self.account
    }

    pub fn scope(&self) -> ApiKeyScope {
        self.scope
    }

    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// The proof of authentication, for work that continues after the request.
    pub fn proof(&self) -> &AuthProof {
        &self.proof
    }

    /// The credential to whose own emails a caller with sending scope is restricted. `None` if the caller may read and
    /// change all of the account's emails.
    pub fn confined_to(&self) -> Option<CredentialId> {
        self.actor.credential().filter(|_| self.scope == ApiKeyScope::Sending)
    }

    /// The only domain that the caller may send from; `None` if any of the account's domains is allowed.
    pub fn bound_to(&self) -> Option<DomainId> {
        self.bound_to
    }

    /// The bounds of an access token; `None` for every other caller.
    pub fn delegation(&self) -> Option<Delegation> {
        self.delegation
    }

    /// The rules for the client below its scope.
    pub fn policy(&self) -> &ClientPolicy {
        &self.policy
    }

    /// Returns whether it acts on a recent proof of identity, which operations about secrets and money need in a
    /// session. Callers without a session need none.
    pub fn is_recently_authenticated(&self) -> bool {
        self.recently_authenticated
    }

    /// The only emails that it may send: those that a person approved. `None` unless it carries out a request that
    /// waited for approval.
    pub fn approved_emails(&self) -> Option<&ApprovedEmails> {
        self.approved.as_deref()
    }

    /// Restricts it to the emails that a person approved.
    pub fn restricted_to_emails(self, approved: ApprovedEmails) -> Self {
        Self { approved: Some(Arc::new(approved)), ..self }
    }

    /// True for mail that the service sends from its own domain to people who requested it ([`system_mail_tenant`]).
    pub fn is_system_mail(&self) -> bool {
        self.for_service
    }
}

/// A signed-in user: a tenant with full scope, and the user, session and token.
#[derive(Debug, Clone)]
pub struct SignedInUser {
    tenant: Tenant,
    user: Arc<User>,
    session: Arc<UserSession>,
    token: SessionToken,
}

impl SignedInUser {
    /// The tenant, for operations that API keys can do too.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The user as read for this request.
    pub fn user(&self) -> &User {
        &self.user
    }

    pub fn session(&self) -> &UserSession {
        &self.session
    }

    pub fn token(&self) -> &SessionToken {
        &self.token
    }

    /// Returns whether the user proved their identity within [`model::user::REAUTHENTICATION_AGE_MAX`] before this
    /// request.
    pub fn is_recently_authenticated(&self) -> bool {
        self.tenant.recently_authenticated
    }
}

words! {
    /// Why a credential or a session was not accepted. Safe to reveal: whoever receives it presented the secret itself, or
    /// a secret that no account owns.
    Denial {
        /// No credential was presented.
        Missing = "missing",
        /// The presented secret does not have the form of one.
        Malformed = "malformed",
        /// The secret never existed or was deleted.
        Unknown = "unknown",
        /// The credential is disabled.
        Revoked = "revoked",
        Expired = "expired",
        /// The access token is for another resource of the service (RFC 8707).
        WrongResource = "wrong_resource",
    }
}

/// Why authentication failed.
#[derive(Debug, Clone, Error)]
pub enum AccessError {
    /// The secret is missing, malformed, unknown, revoked or expired.
    #[error("unknown or disabled credential")]
    Denied(Denial),
    #[error("the credential may not be used from this address")]
    AddressNotAllowed,
    /// The store could not be read; retry later.
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

/// The parts of a [`Tenant`] that a valid credential determines, before the account is read.
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
        let (account, bound_to, policy) = (Arc::new(account), terms.domain, Arc::new(terms.client));
        Ok(Tenant { bound_to, policy, ..Tenant::new(account, scope, actor, proof) })
    }
}

/// Client address and time of an authentication attempt.
#[derive(Debug, Clone, Copy)]
pub struct AccessContext {
    /// The client's address, if known.
    pub from: Option<IpAddr>,
    pub now: Timestamp,
}

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

/// Authenticates the SMTP credential whose password has this hash. All credentials share one user name, which the
/// listener checks.
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

/// Authenticates a session token. Reads session, user and account in one call.
pub async fn authenticate_session(
    store: &Store,
    token: &SessionToken,
    now: Timestamp,
) -> Result<SignedInUser, AccessError> {
    let keys = [
        session::key_of(token.account, token.owner, token.session),
        user::key_of(token.account, token.owner),
        account::key_of(token.account),
    ];
    let rows = store.get_many(&keys).await?;
    let [Some(session), Some(user), Some(account)] = rows.as_slice() else {
        return Err(AccessError::Denied(Denial::Unknown));
    };
    let session: UserSession = codec::decode(session)?;
    // Only the hash of 256 random bits is compared, so the comparison leaks no useful timing.
    if session.secret != token.hash() {
        return Err(AccessError::Denied(Denial::Unknown));
    }
    if !session.is_live(now) {
        return Err(AccessError::Denied(Denial::Expired));
    }
    let (user, account): (User, Account) = (codec::decode(user)?, codec::decode(account)?);
    let (actor, proof) = (Actor::User(user.id), AuthProof::Session(token.clone()));
    let recently_authenticated = session.is_recently_authenticated(now);
    let tenant = Tenant { recently_authenticated, ..Tenant::new(Arc::new(account), ApiKeyScope::Full, actor, proof) };
    let (user, session) = (Arc::new(user), Arc::new(session));
    Ok(SignedInUser { tenant, user, session, token: token.clone() })
}

/// Authenticates an access token for a resource of the service. Reads the token, and then its grant, user and account
/// in one call: a grant ends with its user, and with the role that the user had.
pub async fn authenticate_access_token(
    store: &Store,
    token: &str,
    resource: OAuthResource,
    now: Timestamp,
) -> Result<Tenant, AccessError> {
    let denied = |why| Err(AccessError::Denied(why));
    let Some(secret) = ExpiringSecret::parse(SecretKind::AccessToken, token) else {
        return denied(Denial::Malformed);
    };
    let Some(row) = oauth::token::get(store, &secret).await? else {
        return denied(if secret.expires_at <= now { Denial::Expired } else { Denial::Unknown });
    };
    let OAuthToken { kind, account, grant, scopes, audience } = row;
    if kind != TokenKind::Access {
        return denied(Denial::Unknown);
    }
    if secret.expires_at <= now {
        return denied(Denial::Expired);
    }
    if !audience.includes(resource) {
        return denied(Denial::WrongResource);
    }
    let Some(found) = oauth::grant::get(store, account, grant).await? else { return denied(Denial::Revoked) };
    let keys = [user::key_of(account, found.grantor.user), account::key_of(account)];
    let rows = store.get_many(&keys).await?;
    let [Some(user), Some(account)] = rows.as_slice() else { return denied(Denial::Revoked) };
    let (user, account): (User, Account) = (codec::decode(user)?, codec::decode(account)?);
    if !found.is_live(user.role, now) {
        return denied(Denial::Revoked);
    }
    let delegation = Some(Delegation { grant, user: user.id, role: user.role, scopes });
    let proof = AuthProof::AccessToken(secret, account.id, grant, user.id);
    let policy = Arc::new(found.policy);
    Ok(Tenant { policy, delegation, ..Tenant::new(Arc::new(account), ApiKeyScope::Full, Actor::Grant(grant), proof) })
}

/// Creates a tenant for the service itself, to continue work that it accepted for this account earlier.
pub async fn service_tenant(store: &Store, account: AccountId) -> Result<Tenant, AccessError> {
    let (actor, terms, proof) = (Actor::Operator, CredentialPolicy::default(), AuthProof::Irrevocable);
    TenantBuilder { account, scope: ApiKeyScope::Sending, actor, terms, proof }.build(store).await
}

/// Creates the tenant of a client for a request that it made earlier and that was approved since.
///
/// # Errors
/// [`AccessError`], also if the key or grant has ended.
pub async fn client_tenant(
    store: &Store,
    account: AccountId,
    client: CredentialId,
    now: Timestamp,
) -> Result<Tenant, AccessError> {
    match client {
        CredentialId::ApiKey(id) => api_key_tenant(store, account, id, now).await,
        CredentialId::Grant(id) => grant_tenant(store, account, id, now).await,
        // SMTP has no requests that wait for an approval.
        CredentialId::Smtp(_) => Err(AccessError::Denied(Denial::Unknown)),
    }
}

async fn grant_tenant(store: &Store, account: AccountId, id: GrantId, now: Timestamp) -> Result<Tenant, AccessError> {
    let revoked = || AccessError::Denied(Denial::Revoked);
    let found = oauth::grant::get(store, account, id).await?.ok_or_else(revoked)?;
    let user = user::get(store, account, found.grantor.user).await?.ok_or_else(revoked)?;
    if !found.is_live(user.role, now) {
        return Err(revoked());
    }
    let delegation = Delegation { grant: id, user: user.id, role: user.role, scopes: found.scopes };
    let terms = CredentialPolicy { client: found.policy, ..CredentialPolicy::default() };
    let (scope, actor, proof) = (ApiKeyScope::Full, Actor::Grant(id), AuthProof::Irrevocable);
    let tenant = TenantBuilder { account, scope, actor, terms, proof }.build(store).await?;
    Ok(Tenant { delegation: Some(delegation), ..tenant })
}

async fn api_key_tenant(
    store: &Store,
    account: AccountId,
    id: ApiKeyId,
    now: Timestamp,
) -> Result<Tenant, AccessError> {
    let found = credential::get::<ApiKey>(store, account, id.to_bytes()).await?;
    let ApiKey { scope, enabled, terms, .. } = found.ok_or(AccessError::Denied(Denial::Unknown))?;
    if !enabled {
        return Err(AccessError::Denied(Denial::Revoked));
    }
    if terms.expires_at.is_some_and(|end| end <= now) {
        return Err(AccessError::Denied(Denial::Expired));
    }
    let (actor, proof) = (Actor::ApiKey(id), AuthProof::Irrevocable);
    TenantBuilder { account, scope, actor, terms, proof }.build(store).await
}

/// Creates a tenant for mail that the service writes for an account, from the service's own domain. The access level
/// does not apply, because the recipient requested the mail; the account's caps, suppressions and suspension do.
/// Callers must not include any content that the account's owner could choose freely.
pub async fn system_mail_tenant(store: &Store, account: AccountId) -> Result<Tenant, AccessError> {
    Ok(Tenant { for_service: true, ..service_tenant(store, account).await? })
}

/// Creates a tenant with full scope for the operator, acting for an account by its id or its owner's address.
pub async fn operator_tenant_as_owner(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let tenant = operator_tenant(store, id_or_email).await?;
    Ok(Tenant { scope: ApiKeyScope::Full, ..tenant })
}

/// Creates a tenant for a `[[relay]]` listener's account, by the account's id or its owner's address, on the operator's
/// authority.
pub async fn operator_tenant(store: &Store, id_or_email: &str) -> Result<Tenant, AccessError> {
    let account = account::find(store, id_or_email).await?.ok_or(AccessError::Denied(Denial::Unknown))?;
    Ok(Tenant::new(Arc::new(account), ApiKeyScope::Sending, Actor::Operator, AuthProof::Irrevocable))
}
