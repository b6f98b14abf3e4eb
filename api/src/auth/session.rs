//! The current session and the user's other sessions: begin, show, list and end them.

use accounts::users::UserService;
use model::user::{SessionStart, User, UserSession};

use super::view::{SessionResponse, SessionView, WithSessionCookie};
use super::{cookie, user_error_problem};
use crate::prelude::*;

/// Starts a session of a user that was read as `before`, and commits `batch` with it. `after` is the user as the batch
/// stores it.
pub(super) async fn begin_session(
    users: &UserService,
    before: &User,
    after: &User,
    start: SessionStart,
    batch: Batch,
) -> Result<WithSessionCookie<SessionResponse>> {
    let started = users.begin_session(before, start, batch).await;
    let (token, session) = started.map_err(user_error_problem)?;
    let reply = SessionResponse { session: SessionView::from_session(&session, after, &token) };
    Ok(WithSessionCookie { reply, cookie: cookie::set_cookie(&token) })
}

/// `POST /auth/sign-out`.
pub async fn sign_out(state: State, user: SignedInUser, _: NoInput) -> Result<WithSessionCookie<OkResponse>> {
    let mut batch = Batch::progress();
    store::session::delete(&mut batch, user.session());
    state.services.store.commit(batch).await.map_err(Problem::outage)?;
    Ok(WithSessionCookie { reply: OkResponse::OK, cookie: cookie::clear_cookie() })
}

/// `GET /auth/session`.
pub async fn get(_: State, user: SignedInUser, _: NoInput) -> Result<SessionResponse> {
    Ok(SessionResponse { session: SessionView::from_session(user.session(), user.user(), user.token()) })
}

object_view! {
    /// A session of the user
    #[schema(name = "ListedSession")]
    pub struct SessionListItem, fn from_session(session: &UserSession, own_id: SessionId) {
        /// `ses_…`
        id: SessionId = session.id,
        /// Whether this is the session of the request
        current: bool = session.id == own_id,
        /// How the user signed in: `password`, `link` or `operator`; null for sessions of older versions
        method: Option<&'static str> = session.method.map(model::user::SignInMethod::word),
        /// The IP address at sign-in
        ip: Option<String> = session.from.map(|address| address.to_string()),
        /// The browser's `User-Agent`, at most 200 characters
        user_agent: Option<String> = session.user_agent.clone(),
        /// When the user signed in
        created_at: JsonTimestamp = JsonTimestamp(session.created_at),
        /// When it was last used, to the hour
        last_used_at: Option<JsonTimestamp> = session.last_used_at.map(JsonTimestamp),
        /// When the session ends unless it is used
        expires_at: JsonTimestamp = JsonTimestamp(session.expires_at.min(session.ends_at)),
    }
}

list_response! { pub SessionList { sessions: SessionListItem } }

/// `GET /auth/sessions`: newest first.
pub async fn list(state: State, signed_in: SignedInUser, _: NoInput) -> Result<SessionList> {
    let (user, now) = (signed_in.user(), state.services.clock.now());
    let found = store::session::list_by_user(&state.services.store, user.account, user.id).await?;
    let live_sessions = found.iter().rev().filter(|session| session.is_live(now));
    let sessions =
        live_sessions.map(|session| SessionListItem::from_session(session, signed_in.session().id)).collect();
    Ok(SessionList::new(sessions, None))
}

id_path! { pub SessionPath(SessionId), "The session's id (`ses_…`)", "session" }

/// `DELETE /auth/sessions/{id}`: ends one of the user's own sessions.
///
/// # Errors
/// The user has no such session.
pub async fn end(state: State, signed_in: SignedInUser, SessionPath(id): SessionPath) -> Result<OkResponse> {
    let (user, store) = (signed_in.user(), &state.services.store);
    let found = store::session::list_by_user(store, user.account, user.id).await?;
    let session = found.iter().find(|session| session.id == id).ok_or_else(|| Problem::not_found("session"))?;
    let mut batch = Batch::progress();
    store::session::delete(&mut batch, session);
    store.commit(batch).await.map_err(Problem::outage)?;
    Ok(OkResponse::OK)
}

/// Other sessions were ended
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SessionsEnded")]
pub struct EndSessionsResponse {
    #[schema(const = true)]
    ok: bool,
    /// Number of other sessions of the user that were ended
    sessions_ended: usize,
}

/// `DELETE /auth/sessions`: ends all sessions of the user except the current one.
pub async fn end_others(state: State, user: SignedInUser, _: NoInput) -> Result<EndSessionsResponse> {
    let ended = UserService::new(&state.services).end_other_sessions(user.user(), user.session().id).await;
    Ok(EndSessionsResponse { ok: true, sessions_ended: ended.map_err(user_error_problem)? })
}
