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
use mail::credential::{Scope, SecretHash};
use mail::user::{Role, SessionToken};
use store::access::{AccessError, Denial, SignedIn, Tenant};
use store::engine::Batch;

use crate::auth::cookie;
use crate::auth::login_log::LoginKind;
use crate::operations::{Action, Operation};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::serve::Peer;
use crate::serve::router::{Found, Side};

/// The header field that calls of a session bring, unless they only read.
pub const CSRF_TOKEN: &str = "x-csrf-token";

/// Who called.
#[derive(Debug)]
pub enum Caller {
    /// Nobody was asked who they are.
    Anybody,
    /// Whoever has a key.
    Program(Tenant),
    /// Whoever has signed in.
    SignedIn(SignedIn),
}

impl Caller {
    /// The tenant, if there is one.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        match self {
            Self::Anybody => None,
            Self::Program(tenant) => Some(tenant),
            Self::SignedIn(who) => Some(who.tenant()),
        }
    }

    /// The tenant alone.
    #[must_use]
    pub fn into_tenant(self) -> Option<Tenant> {
        match self {
            Self::Anybody => None,
            Self::Program(tenant) => Some(tenant),
            Self::SignedIn(who) => Some(who.tenant().clone()),
        }
    }
}

/// From where a request came, when that is known.
#[must_use]
pub fn peer(head: &Parts) -> Option<IpAddr> {
    head.extensions.get::<Peer>().map(|peer| peer.0)
}

/// Finds out who called, or says why not.
///
/// # Errors
/// 401 for a key or session that is none, 403 for a key that is not used from here, 503 when the store
/// cannot be read.
pub async fn authenticate(room: &Arc<Room>, found: &Found<'_>, head: &Parts) -> Result<Caller, Problem> {
    match (&found.operation.action, found.side) {
        (Action::Public(_), _) => Ok(Caller::Anybody),
        (Action::Keyed(..), _) | (Action::Either(..), Side::Program) => {
            by_key(room, head).await.map(Caller::Program)
        }
        (Action::Either(..), Side::Browser) => {
            let token = cookie::token(&head.headers).ok_or_else(|| Problem::unauthorized(Denial::Missing))?;
            by_session(room, &token, peer(head)).await
        }
        (Action::SignedIn(..) | Action::Owner(_), _) => match cookie::token(&head.headers) {
            Some(token) => by_session(room, &token, peer(head)).await,
            // Who has a key instead hears that it is not the key that is wrong (see `permit`).
            None => by_key(room, head).await.map(Caller::Program),
        },
    }
}

/// The tenant that a request's key makes.
///
/// # Errors
/// As [`authenticate`].
pub async fn by_key(room: &Room, head: &Parts) -> Result<Tenant, Problem> {
    let secret = bearer(&head.headers).map_err(Problem::unauthorized)?;
    let from = peer(head);
    room.hall.by_api_key(secret, from).await.map_err(|error| {
        log_refused(room, LoginKind::ApiKey, from, &error);
        refused(error)
    })
}

async fn by_session(room: &Arc<Room>, token: &SessionToken, from: Option<IpAddr>) -> Result<Caller, Problem> {
    let (store, now) = (room.hall.store(), room.hall.clock().now());
    let who = store::access::by_session(store, token, now).await.map_err(|error| {
        log_refused(room, LoginKind::Session, from, &error);
        refused(error)
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
    Ok(Caller::SignedIn(who))
}

/// Logs who was not let in. A session that has ended is no attack: its browser asks once more.
fn log_refused(room: &Room, kind: LoginKind, from: Option<IpAddr>, error: &AccessError) {
    let reason = match error {
        AccessError::Denied(Denial::Expired) if kind == LoginKind::Session => return,
        AccessError::Denied(why) => why.word(),
        AccessError::Elsewhere => "ip_not_allowed",
        AccessError::Unavailable(_) => return,
    };
    room.login_log.failed(kind, from, reason, room.hall.clock().now());
}

fn refused(error: AccessError) -> Problem {
    match error {
        AccessError::Denied(why) => Problem::unauthorized(why),
        AccessError::Elsewhere => {
            Problem::new(Code::IP_NOT_ALLOWED, "This API key may not be used from your address")
        }
        AccessError::Unavailable(error) => Problem::outage(error),
    }
}

/// May whoever called call this?
///
/// # Errors
/// 403 `forbidden`.
pub fn permit(caller: &Caller, operation: &Operation, head: &Parts) -> Result<(), Problem> {
    let forbidden = |text: &str| Err(Problem::new(Code::FORBIDDEN, text));
    match (caller, &operation.action) {
        (Caller::Program(_), Action::SignedIn(..) | Action::Owner(_)) => {
            forbidden("This call needs somebody who has signed in, not an API key")
        }
        (Caller::Program(tenant), _) => {
            covers(tenant.scope(), operation.scope())?;
            match tenant.bound_to() {
                Some(_) if !operation.of_a_domain => {
                    forbidden("This API key is bound to a domain; the call needs one that is not")
                }
                _ => Ok(()),
            }
        }
        (Caller::SignedIn(who), action) => {
            let reads = matches!(head.method, Method::GET | Method::HEAD);
            if !reads && !is_own(&head.headers, who.token()) {
                return forbidden("`x-csrf-token` is missing or not the session's");
            }
            let needed = match action {
                Action::SignedIn(needed, _) => Some(*needed),
                Action::Owner(_) => Some(Role::Owner),
                Action::Public(_) | Action::Keyed(..) | Action::Either(..) => None,
            };
            if needed.is_some_and(|needed| who.user().role < needed) {
                return forbidden("This call needs an owner of the account");
            }
            Ok(())
        }
        (Caller::Anybody, _) => Ok(()),
    }
}

/// May a key of this scope call an operation that needs `needed`?
fn covers(held: Scope, needed: Option<Scope>) -> Result<(), Problem> {
    match (held, needed) {
        (Scope::Sending, Some(Scope::Full)) => {
            Err(Problem::new(Code::FORBIDDEN, "This API key may only send; the call needs a full key"))
        }
        _ => Ok(()),
    }
}

/// Whether a call brings the token that its session was given. Hashes are compared: how much of two of
/// them is the same tells nothing.
fn is_own(headers: &HeaderMap, token: &SessionToken) -> bool {
    let given = headers.get(CSRF_TOKEN).map(|value| SecretHash::of_bytes(value.as_bytes()));
    given == Some(SecretHash::of_bytes(token.csrf().as_bytes()))
}

/// The token of the one `Authorization` field. Two fields are none: which of them counts?
fn bearer(headers: &HeaderMap) -> Result<&str, Denial> {
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
            bearer(&headers).map(str::to_owned)
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
        for needed in [None, Some(Scope::Full), Some(Scope::Sending)] {
            assert!(covers(Scope::Full, needed).is_ok());
        }
        assert!(covers(Scope::Sending, Some(Scope::Sending)).is_ok());
        assert_eq!(covers(Scope::Sending, Some(Scope::Full)).unwrap_err().code(), Code::FORBIDDEN);
        assert!(Role::Member < Role::Owner);
    }
}
