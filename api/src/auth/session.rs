//! The session that a call comes with, shown and ended; and the other sessions of its user.

use std::sync::Arc;

use mail::id::SessionId;
use mail::user::Session;
use queue::people::People;
use serde::Serialize;
use serde_json::Value;
use store::access::SignedIn;
use store::engine::Batch;

use super::view::{OneSession, SessionView, WithCookie};
use super::{cookie, problem};
use crate::call::{Call, Input, Nothing, Takes};
use crate::done::Done;
use crate::emails::view::Moment;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// `POST /auth/sign-out`.
///
/// # Errors
/// The store cannot be written.
pub async fn sign_out(room: Arc<Room>, who: SignedIn, _: Nothing) -> Result<WithCookie<Done>, Problem> {
    let mut batch = Batch::progress();
    store::session::delete(&mut batch, who.session());
    room.hall.store().commit(batch).await.map_err(Problem::outage)?;
    Ok(WithCookie { reply: Done::OK, cookie: cookie::clear() })
}

/// `GET /auth/session`.
///
/// # Errors
/// None.
pub async fn session(_: Arc<Room>, who: SignedIn, _: Nothing) -> Result<OneSession, Problem> {
    Ok(OneSession { session: SessionView::of(who.session(), who.user(), who.token()) })
}

/// A session in the list of its user's.
#[derive(Debug, Serialize)]
struct ListedSession {
    id: SessionId,
    /// The one that asks.
    current: bool,
    method: Option<&'static str>,
    ip: Option<String>,
    user_agent: Option<String>,
    created_at: Moment,
    last_used_at: Option<Moment>,
    expires_at: Moment,
}

impl ListedSession {
    fn of(session: &Session, own: SessionId) -> Self {
        Self {
            id: session.id,
            current: session.id == own,
            method: session.method.map(mail::user::SignInMethod::word),
            ip: session.from.map(|address| address.to_string()),
            user_agent: session.user_agent.clone(),
            created_at: Moment(session.created_at),
            last_used_at: session.last_used_at.map(Moment),
            expires_at: Moment(session.expires_at.min(session.ends_at)),
        }
    }
}

/// A user's sessions: they are few.
#[derive(Debug, Serialize)]
pub struct SessionList {
    sessions: Vec<ListedSession>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl Describe for SessionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let session = schemas.named("ListedSession", |_| {
            let by = "By what they signed in: `password`, `link` or `operator`; null for sessions of older versions";
            schema::object(
                "A session of the user",
                [
                    ("id", schema::string("`ses_…`")),
                    ("current", schema::boolean("The session that asks")),
                    ("method", schema::nullable_string(by)),
                    ("ip", schema::nullable_string("From where they signed in")),
                    ("user_agent", schema::nullable_string("What the browser said it is, at most 200 characters")),
                    ("created_at", schema::time("When they signed in")),
                    ("last_used_at", schema::nullable_time("When it was last used, to the hour")),
                    ("expires_at", schema::time("When it ends unless it is used")),
                ],
            )
        });
        schema::page("sessions", session)
    }
}

/// `GET /auth/sessions`: newest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list(room: Arc<Room>, who: SignedIn, _: Nothing) -> Result<SessionList, Problem> {
    let (user, now) = (who.user(), room.hall.clock().now());
    let found = store::session::of_user(room.hall.store(), user.account, user.id).await?;
    let live = found.iter().rev().filter(|session| session.is_live(now));
    let sessions = live.map(|session| ListedSession::of(session, who.session().id)).collect();
    Ok(SessionList { sessions, has_more: false, next_cursor: None })
}

/// One of the user's sessions.
#[derive(Debug, Clone, Copy)]
pub struct OfSession(SessionId);

impl Input for OfSession {
    fn describe(_: &mut Schemas) -> Takes {
        let id = schema::path_parameter("id", "The session's id (`ses_…`)");
        Takes { parameters: vec![id], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter("id").parse().map(Self).map_err(|_| Problem::not_found("session"))
    }
}

/// `DELETE /auth/sessions/{id}`: one of the user's own.
///
/// # Errors
/// No such session of this user.
pub async fn end(room: Arc<Room>, who: SignedIn, OfSession(id): OfSession) -> Result<Done, Problem> {
    let (user, store) = (who.user(), room.hall.store());
    let found = store::session::of_user(store, user.account, user.id).await?;
    let session =
        found.iter().find(|session| session.id == id).ok_or_else(|| Problem::not_found("session"))?;
    let mut batch = Batch::progress();
    store::session::delete(&mut batch, session);
    store.commit(batch).await.map_err(Problem::outage)?;
    Ok(Done::OK)
}

/// How many sessions ended.
#[derive(Debug, Serialize)]
pub struct SessionsEnded {
    ok: bool,
    sessions_ended: usize,
}

impl Describe for SessionsEnded {
    fn schema(schemas: &mut Schemas) -> Value {
        let ok = serde_json::json!({"type": "boolean", "const": true});
        let ended = schema::count("Other sessions of the user that ended");
        schemas.named("SessionsEnded", |_| {
            schema::object("Other sessions ended", [("ok", ok), ("sessions_ended", ended)])
        })
    }
}

/// `DELETE /auth/sessions`: all of the user's but the one that asks.
///
/// # Errors
/// The store cannot be written.
pub async fn end_others(room: Arc<Room>, who: SignedIn, _: Nothing) -> Result<SessionsEnded, Problem> {
    let ended = People::of(&room.hall).end_other_sessions(who.user(), who.session().id).await;
    Ok(SessionsEnded { ok: true, sessions_ended: ended.map_err(problem)? })
}
