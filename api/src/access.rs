//! Authentication and authorization of API requests.
//!
//! An API key or an access token (`Authorization: Bearer`, RFC 6750 2.1) authenticates a [`Tenant`]; a session cookie
//! authenticates a [`SignedInUser`]. An access token is bounded by its scopes and by the role of its user
//! ([`token_scopes`]).
//!
//! The key is looked up by the SHA-256 of its random part. No secret is compared, so timing reveals nothing.
//! `details.reason` distinguishes a missing, malformed, unknown, revoked or expired key. Only a client that has the
//! secret is informed of more than that the key is unknown.
//!
//! CSRF: a browser sends the session cookie with every request, whichever page made it. Requests other than GET must
//! also carry the session's `x-csrf-token`, which only the dashboard's own pages can read.

pub mod revalidation;
pub mod role_table;
pub mod token_scopes;

use std::net::IpAddr;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use httpd::peer_address::PeerAddress;
use model::credential::SecretHash;
use model::expiring_secret::SecretKind;
use model::oauth::OAuthResource;
use model::request_log::RequestSurface;
use model::user::SessionToken;
use store::access::{AccessError, Denial};

use crate::auth::cookie;
use crate::auth::login_log::LoginKind;
use crate::operation::{Operation, OperationHandler};
use crate::prelude::*;
use crate::serve::router::{ClientKind, MatchedOperation};

/// Header of session requests that change something.
pub const CSRF_TOKEN: &str = "x-csrf-token";

/// The authenticated caller of a request.
#[derive(Debug)]
pub enum Principal {
    /// The operation needs no authentication.
    Anonymous,
    /// Authenticated by an API key or an access token.
    ApiKey(Tenant),
    /// Authenticated by a session cookie.
    User(SignedInUser),
}

impl Principal {
    /// The tenant; `None` for an anonymous request.
    pub fn tenant(&self) -> Option<&Tenant> {
        match self {
            Self::Anonymous => None,
            Self::ApiKey(tenant) => Some(tenant),
            Self::User(user) => Some(user.tenant()),
        }
    }

    /// Consumes the principal and returns its tenant.
    pub fn into_tenant(self) -> Option<Tenant> {
        match self {
            Self::Anonymous => None,
            Self::ApiKey(tenant) => Some(tenant),
            Self::User(user) => Some(user.tenant().clone()),
        }
    }
}

/// The client's IP address; `None` if the connection's address is unknown.
pub fn client_ip(head: &Parts) -> Option<IpAddr> {
    head.extensions.get::<PeerAddress>().map(|peer| peer.0)
}

/// The way by which the request came. A service of this process that calls operations for its own clients says it in an
/// extension of the request, which no client can set.
pub fn surface(head: &Parts) -> RequestSurface {
    head.extensions.get::<RequestSurface>().copied().unwrap_or(RequestSurface::Api)
}

/// Authenticates the request as its operation requires.
///
/// # Errors
/// 401 for a missing or invalid key or session, 403 for a key used from an address that is not allowed, 503 when
/// the store cannot be read.
pub async fn authenticate(state: &State, found: &MatchedOperation<'_>, head: &Parts) -> Result<Principal> {
    match (&found.operation.handler, found.client) {
        (OperationHandler::Public(_), _) => Ok(Principal::Anonymous),
        (OperationHandler::ApiKey(..), _) | (OperationHandler::ApiKeyOrSession(..), ClientKind::Program) => {
            authenticate_program(state, head).await.map(Principal::ApiKey)
        }
        (OperationHandler::ApiKeyOrSession(..), ClientKind::Browser) => {
            let token = cookie::token(&head.headers).ok_or_else(|| Problem::unauthorized(Denial::Missing))?;
            authenticate_session(state, &token, client_ip(head)).await
        }
        (OperationHandler::Session(..) | OperationHandler::Owner(_), _) => match cookie::token(&head.headers) {
            Some(token) => authenticate_session(state, &token, client_ip(head)).await,
            // A valid API key is answered 403 by `authorize` instead of 401: the key is not what is wrong.
            None => authenticate_program(state, head).await.map(Principal::ApiKey),
        },
    }
}

/// The resource that an access token must be for.
fn resource(head: &Parts) -> OAuthResource {
    match surface(head) {
        RequestSurface::Mcp => OAuthResource::Mcp,
        RequestSurface::Api | RequestSurface::Dashboard | RequestSurface::Approval => OAuthResource::Api,
    }
}

/// Authenticates the API key or the access token of a program's request.
pub(crate) async fn authenticate_program(state: &AppState, head: &Parts) -> Result<Tenant> {
    authenticate_bearer(state, &head.headers, client_ip(head), resource(head)).await
}

/// Authenticates the API key or the access token of a request. The token must be for this resource; a key is for all.
pub async fn authenticate_bearer(
    state: &AppState,
    headers: &HeaderMap,
    from: Option<IpAddr>,
    resource: OAuthResource,
) -> Result<Tenant> {
    let secret = bearer_token(headers).map_err(Problem::unauthorized)?;
    let (kind, authenticated) = if secret.starts_with(SecretKind::AccessToken.prefix()) {
        (LoginKind::AccessToken, state.accounts.credentials.authenticate_access_token(secret, resource, from).await)
    } else {
        (LoginKind::ApiKey, state.accounts.credentials.authenticate_api_key(secret, from).await)
    };
    authenticated.map_err(|error| {
        log_refused(state, kind, from, &error);
        access_error_problem(error)
    })
}

async fn authenticate_session(state: &State, token: &SessionToken, from: Option<IpAddr>) -> Result<Principal> {
    let (store, now) = (&state.services.store, state.services.clock.now());
    let user = store::access::authenticate_session(store, token, now).await.map_err(|error| {
        log_refused(state, LoginKind::Session, from, &error);
        access_error_problem(error)
    })?;
    if let Some(later) = user.session().extended(now) {
        let (store, before) = (store.clone(), user.session().clone());
        state.background.tasks.spawn(async move {
            let mut batch = Batch::progress();
            store::session::update(&mut batch, &before, &later);
            // A conflict is harmless: another request has extended the session, or the next one will.
            let _ = store.commit(batch).await;
        });
    }
    Ok(Principal::User(user))
}

/// The user of a session, for pages; `None` if the session is unknown or has ended.
///
/// # Errors
/// 503 when the store cannot be read.
pub(crate) async fn session_user(
    state: &State,
    token: &SessionToken,
    from: Option<IpAddr>,
) -> Result<Option<SignedInUser>> {
    match authenticate_session(state, token, from).await {
        Ok(Principal::User(user)) => Ok(Some(user)),
        Ok(_) => Ok(None),
        Err(problem) if problem.code() == ErrorCode::UNAUTHORIZED => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Logs a failed authentication. An expired session is not logged: the browser merely sends an old cookie.
fn log_refused(state: &AppState, kind: LoginKind, from: Option<IpAddr>, error: &AccessError) {
    let reason = match error {
        // Nor is an access token, which its client refreshes.
        AccessError::Denied(Denial::Expired) if matches!(kind, LoginKind::Session | LoginKind::AccessToken) => return,
        AccessError::Denied(denial) => denial.word(),
        AccessError::AddressNotAllowed => "ip_not_allowed",
        AccessError::Unavailable(_) => return,
    };
    state.sign_in.log.failed(kind, from, reason, state.services.clock.now());
}

pub(crate) fn access_error_problem(error: AccessError) -> Problem {
    match error {
        AccessError::Denied(denial) => Problem::unauthorized(denial),
        AccessError::AddressNotAllowed => {
            Problem::new(ErrorCode::IP_NOT_ALLOWED, "This API key may not be used from your address")
        }
        AccessError::Unavailable(error) => error.into(),
    }
}

/// Checks that the principal may call the operation.
///
/// # Errors
/// 403 `reauthentication_required`; 403 `forbidden` when the scope, domain binding, CSRF token or role
/// ([`role_table`]) does not allow it.
pub fn authorize(caller: &Principal, operation: &Operation, head: &Parts) -> Result<()> {
    let forbidden = |text: &str| Err(Problem::new(ErrorCode::FORBIDDEN, text));
    match (caller, &operation.handler) {
        (Principal::ApiKey(_), OperationHandler::Session(..) | OperationHandler::Owner(_)) => {
            forbidden("This operation requires a signed-in user, not an API key or access token")
        }
        (Principal::ApiKey(tenant), _) => authorize_program(tenant, operation),
        (Principal::User(user), _) => {
            let reads = matches!(head.method, Method::GET | Method::HEAD);
            if !reads && !csrf_token_matches(&head.headers, user.token()) {
                return forbidden("`x-csrf-token` is missing or does not match the session");
            }
            authorize_user(user, operation)
        }
        (Principal::Anonymous, _) => Ok(()),
    }
}

/// Checks that an API key or an access token may call an operation that accepts them.
///
/// # Errors
/// 403 `forbidden`: the scope, the domain binding or the role of the grant's user does not allow it.
pub fn authorize_program(tenant: &Tenant, operation: &Operation) -> Result<()> {
    check_scope(tenant.scope(), operation.scope())?;
    if let Some(delegation) = tenant.delegation() {
        token_scopes::check(delegation, operation)?;
    }
    if tenant.bound_to().is_some() && !operation.domain_scoped {
        let text = "This API key is restricted to one domain; the operation requires an unrestricted key";
        return Err(Problem::new(ErrorCode::FORBIDDEN, text));
    }
    Ok(())
}

/// Checks that a signed-in user may call the operation: by role ([`role_table`]) and, for secrets and money, by a
/// recent proof of identity.
///
/// # Errors
/// 403 `forbidden` or `reauthentication_required`.
pub fn authorize_user(user: &SignedInUser, operation: &Operation) -> Result<()> {
    let role = user.user().role;
    if !role_table::role_allows(role, operation) {
        let text = format!("The role `{}` does not permit this operation", role.word());
        return Err(Problem::new(ErrorCode::FORBIDDEN, text));
    }
    match role_table::needs_recent_authentication(operation) {
        true => require_recent_authentication(user.tenant()),
        false => Ok(()),
    }
}

/// Requires that the user of a session signed in or proved their identity again within
/// [`REAUTHENTICATION_AGE_MAX`](model::user::REAUTHENTICATION_AGE_MAX). Callers without a session need no proof.
///
/// # Errors
/// 403 `reauthentication_required`.
pub fn require_recent_authentication(tenant: &Tenant) -> Result<()> {
    if tenant.is_recently_authenticated() {
        return Ok(());
    }
    let text = "Confirm your password or a one-time password (`POST /auth/reauthenticate`), or sign in again: this \
        operation is then available for 15 minutes";
    Err(Problem::new(ErrorCode::REAUTHENTICATION_REQUIRED, text))
}

/// Checks that a key with scope `held` may call an operation that needs `needed`.
fn check_scope(key_scope: ApiKeyScope, needed: Option<ApiKeyScope>) -> Result<()> {
    match (key_scope, needed) {
        (ApiKeyScope::Sending, Some(ApiKeyScope::Full)) => Err(Problem::new(
            ErrorCode::FORBIDDEN,
            "This API key can only send email; the operation requires a key with full access",
        )
        .with_detail("required_key_scope", "full".into())),
        _ => Ok(()),
    }
}

/// Returns whether the request carries its session's CSRF token. Hashes are compared, so timing reveals nothing
/// about the token.
fn csrf_token_matches(headers: &HeaderMap, token: &SessionToken) -> bool {
    let csrf_hash = headers.get(CSRF_TOKEN).map(|value| SecretHash::from_bytes(value.as_bytes()));
    csrf_hash == Some(SecretHash::from_bytes(token.csrf().as_bytes()))
}

/// The token of the `Authorization` header. Two such headers are rejected: it is ambiguous which one counts.
fn bearer_token(headers: &HeaderMap) -> Result<&str, Denial> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let only = fields.next().ok_or(Denial::Missing)?;
    let text = only.to_str().ok().filter(|_| fields.next().is_none());
    let (scheme, token) = text.and_then(|text| text.split_once(' ')).ok_or(Denial::Malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Denial::Malformed);
    }
    Ok(token.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens() {
        let parse_token = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer_token(&headers).map(str::to_owned)
        };
        assert_eq!(parse_token(&["Bearer rnl_a"]).as_deref(), Ok("rnl_a"));
        assert_eq!(parse_token(&["bearer  rnl_a "]).as_deref(), Ok("rnl_a"));
        assert_eq!(parse_token(&[]), Err(Denial::Missing));
        for none in [&["rnl_a"][..], &["Basic rnl_a"], &["Bearer"], &["Bearer a", "Bearer a"]] {
            assert_eq!(parse_token(none), Err(Denial::Malformed), "{none:?}");
        }
    }

    #[test]
    fn a_sending_key_cannot_call_full_access_operations() {
        for needed in [None, Some(ApiKeyScope::Full), Some(ApiKeyScope::Sending)] {
            assert!(check_scope(ApiKeyScope::Full, needed).is_ok());
        }
        assert!(check_scope(ApiKeyScope::Sending, Some(ApiKeyScope::Sending)).is_ok());
        assert_eq!(
            check_scope(ApiKeyScope::Sending, Some(ApiKeyScope::Full)).unwrap_err().code(),
            ErrorCode::FORBIDDEN
        );
    }
}
