//! Who is asking: a key (`Authorization: Bearer <API_KEY>`, RFC 6750 2.1) to a [`Tenant`], a session's
//! cookie to a [`SignedIn`].
//!
//! The key is looked up by the SHA-256 of its random part, so there is no secret to compare with
//! and no timing to watch. Whether a key is missing, malformed, unknown, revoked or expired is told in
//! `details.reason`: only who has the secret learns more than that there is no such key. A browser sends a session's cookie by itself, whoever made it call: calls other than GET must
//! bring the session's `x-csrf-token` as well, which only its own pages know.

pub mod watch;

use std::net::IpAddr;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method};
use mail::credential::{ApiKeyScope, SecretHash};
use mail::user::{SessionToken, UserRole};
use store::access::{AccessError, Denial, SignedInUser, Tenant};
use store::engine::Batch;

use crate::auth::cookie;
use crate::auth::login_log::LoginKind;
use crate::operations::{Operation, OperationHandler};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::serve::PeerAddress;
use crate::serve::router::{ClientKind, MatchedOperation};

/// The header field that calls of a session bring, unless they only read.
pub const CSRF_TOKEN: &str = "x-csrf-token";

/// Who called.
#[derive(Debug)]
pub enum Principal {
    /// Nobody was asked who they are.
    Anonymous,
    /// Whoever has a key.
    ApiKey(Tenant),
    /// Whoever has signed in.
    User(SignedInUser),
}

impl Principal {
    /// The tenant, if there is one.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        match self {
            Self::Anonymous => None,
            Self::ApiKey(tenant) => Some(tenant),
            Self::User(who) => Some(who.tenant()),
        }
    }

    /// The tenant alone.
    #[must_use]
    pub fn into_tenant(self) -> Option<Tenant> {
        match self {
            Self::Anonymous => None,
            Self::ApiKey(tenant) => Some(tenant),
            Self::User(who) => Some(who.tenant().clone()),
        }
    }
}

/// From where a request came, when that is known.
#[must_use]
pub fn client_ip(head: &Parts) -> Option<IpAddr> {
    head.extensions.get::<PeerAddress>().map(|peer| peer.0)
}

/// Finds out who called, or says why not.
///
/// # Errors
/// 401 for a key or session that is none, 403 for a key that is not used from here, 503 when the store
/// cannot be read.
pub async fn authenticate(
    room: &Arc<AppState>,
    found: &MatchedOperation<'_>,
    head: &Parts,
) -> Result<Principal, Problem> {
    match (&found.operation.handler, found.client) {
        (OperationHandler::Public(_), _) => Ok(Principal::Anonymous),
        (OperationHandler::ApiKey(..), _) | (OperationHandler::ApiKeyOrSession(..), ClientKind::Program) => {
            authenticate_api_key(room, head).await.map(Principal::ApiKey)
        }
        (OperationHandler::ApiKeyOrSession(..), ClientKind::Browser) => {
            let token = cookie::token(&head.headers).ok_or_else(|| Problem::unauthorized(Denial::Missing))?;
            authenticate_session(room, &token, client_ip(head)).await
        }
        (OperationHandler::Session(..) | OperationHandler::Owner(_), _) => match cookie::token(&head.headers) {
            Some(token) => authenticate_session(room, &token, client_ip(head)).await,
            // Who has a key instead hears that it is not the key that is wrong (see `permit`).
            None => authenticate_api_key(room, head).await.map(Principal::ApiKey),
        },
    }
}

/// The tenant that a request's key makes.
///
/// # Errors
/// As [`authenticate`].
pub async fn authenticate_api_key(room: &AppState, head: &Parts) -> Result<Tenant, Problem> {
    let secret = bearer_token(&head.headers).map_err(Problem::unauthorized)?;
    let from = client_ip(head);
    room.intake.authenticate_api_key(secret, from).await.map_err(|error| {
        log_refused(room, LoginKind::ApiKey, from, &error);
        access_error_problem(error)
    })
}

async fn authenticate_session(
    room: &Arc<AppState>,
    token: &SessionToken,
    from: Option<IpAddr>,
) -> Result<Principal, Problem> {
    let (store, now) = (room.intake.store(), room.intake.clock().now());
    let who = store::access::authenticate_session(store, token, now).await.map_err(|error| {
        log_refused(room, LoginKind::Session, from, &error);
        access_error_problem(error)
    })?;
    if let Some(later) = who.session().extended(now) {
        let (store, before) = (store.clone(), who.session().clone());
        room.tasks.spawn(async move {
            let mut batch = Batch::progress();
            store::session::update(&mut batch, &before, &later);
            // Somebody else was quicker, or the next call does it.
            let _ = store.commit(batch).await;
        });
    }
    Ok(Principal::User(who))
}

/// Logs who was not let in. A session that has ended is no attack: its browser asks once more.
fn log_refused(room: &AppState, kind: LoginKind, from: Option<IpAddr>, error: &AccessError) {
    let reason = match error {
        AccessError::Denied(Denial::Expired) if kind == LoginKind::Session => return,
        AccessError::Denied(why) => why.word(),
        AccessError::AddressNotAllowed => "ip_not_allowed",
        AccessError::Unavailable(_) => return,
    };
    room.login_log.failed(kind, from, reason, room.intake.clock().now());
}

fn access_error_problem(error: AccessError) -> Problem {
    match error {
        AccessError::Denied(why) => Problem::unauthorized(why),
        AccessError::AddressNotAllowed => {
            Problem::new(ErrorCode::IP_NOT_ALLOWED, "This API key may not be used from your address")
        }
        AccessError::Unavailable(error) => Problem::outage(error),
    }
}

/// May whoever called call this?
///
/// # Errors
/// 403 `forbidden`.
pub fn authorize(caller: &Principal, operation: &Operation, head: &Parts) -> Result<(), Problem> {
    let forbidden = |text: &str| Err(Problem::new(ErrorCode::FORBIDDEN, text));
    match (caller, &operation.handler) {
        (Principal::ApiKey(_), OperationHandler::Session(..) | OperationHandler::Owner(_)) => {
            forbidden("This call needs somebody who has signed in, not an API key")
        }
        (Principal::ApiKey(tenant), _) => {
            check_scope(tenant.scope(), operation.scope())?;
            match tenant.bound_to() {
                Some(_) if !operation.domain_scoped => {
                    forbidden("This API key is bound to a domain; the call needs one that is not")
                }
                _ => Ok(()),
            }
        }
        (Principal::User(who), action) => {
            let reads = matches!(head.method, Method::GET | Method::HEAD);
            if !reads && !csrf_token_matches(&head.headers, who.token()) {
                return forbidden("`x-csrf-token` is missing or not the session's");
            }
            let needed = match action {
                OperationHandler::Session(needed, _) => Some(*needed),
                OperationHandler::Owner(_) => Some(UserRole::Owner),
                OperationHandler::Public(_) | OperationHandler::ApiKey(..) | OperationHandler::ApiKeyOrSession(..) => {
                    None
                }
            };
            if needed.is_some_and(|needed| who.user().role < needed) {
                return forbidden("This call needs an owner of the account");
            }
            Ok(())
        }
        (Principal::Anonymous, _) => Ok(()),
    }
}

/// May a key of this scope call an operation that needs `needed`?
fn check_scope(held: ApiKeyScope, needed: Option<ApiKeyScope>) -> Result<(), Problem> {
    match (held, needed) {
        (ApiKeyScope::Sending, Some(ApiKeyScope::Full)) => {
            Err(Problem::new(ErrorCode::FORBIDDEN, "This API key may only send; the call needs a full key"))
        }
        _ => Ok(()),
    }
}

/// Whether a call brings the token that its session was given. Hashes are compared: how much of two of
/// them is the same tells nothing.
fn csrf_token_matches(headers: &HeaderMap, token: &SessionToken) -> bool {
    let given = headers.get(CSRF_TOKEN).map(|value| SecretHash::from_bytes(value.as_bytes()));
    given == Some(SecretHash::from_bytes(token.csrf().as_bytes()))
}

/// The token of the one `Authorization` field. Two fields are none: which of them counts?
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
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer_token(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["Bearer rnl_a"]).as_deref(), Ok("rnl_a"));
        assert_eq!(of(&["bearer  rnl_a "]).as_deref(), Ok("rnl_a"));
        assert_eq!(of(&[]), Err(Denial::Missing));
        for none in [&["rnl_a"][..], &["Basic rnl_a"], &["Bearer"], &["Bearer a", "Bearer a"]] {
            assert_eq!(of(none), Err(Denial::Malformed), "{none:?}");
        }
    }

    #[test]
    fn a_sending_key_may_not_do_what_needs_a_full_one() {
        for needed in [None, Some(ApiKeyScope::Full), Some(ApiKeyScope::Sending)] {
            assert!(check_scope(ApiKeyScope::Full, needed).is_ok());
        }
        assert!(check_scope(ApiKeyScope::Sending, Some(ApiKeyScope::Sending)).is_ok());
        assert_eq!(
            check_scope(ApiKeyScope::Sending, Some(ApiKeyScope::Full)).unwrap_err().code(),
            ErrorCode::FORBIDDEN
        );
        assert!(UserRole::Member < UserRole::Owner);
    }
}
