//! Signing in by password.

use std::net::IpAddr;
use std::sync::Arc;

use mail::address::Address;
use mail::user::{SessionStart, SignInMethod, User};
use queue::people::People;
use store::engine::Batch;

use super::view::{OneSession, SessionView, WithCookie};
use super::{EMAIL, PASSWORD, cookie, email, login_log, password, problem, user_agent};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::fields::{Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What `POST /auth/sign-in` takes.
pub struct SignIn {
    email: Address,
    password: String,
    from: Option<IpAddr>,
    user_agent: Option<String>,
}

impl Input for SignIn {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object(
            "Who signs in",
            [("email", schema::string("Their address")), ("password", schema::string("Their password"))],
        );
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[(EMAIL, EMAIL), (PASSWORD, PASSWORD)], foreign: &[] };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let email = email(&given, &mut notes);
        let password = password(&given, PASSWORD, &mut notes);
        if !given.is_meant(PASSWORD) {
            notes.errors.add(PASSWORD, "is required");
        }
        match (email, password) {
            (Some(email), Some(password)) if notes.errors.is_empty() => {
                Ok(Self { email, password, from: call.from, user_agent: user_agent(call) })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/sign-in`.
///
/// # Errors
/// 401 whatever is wrong with the two; 429 after too many tries; 503 when too many sign in at once.
pub async fn sign_in(room: Arc<Room>, asked: SignIn) -> Result<WithCookie<OneSession>, Problem> {
    let SignIn { email, password, from, user_agent } = asked;
    let text = email.to_string();
    let now = room.hall.clock().now();
    let tried = room.throttle.password(from, &text, now)?;
    let people = People::of(&room.hall);
    let user = match who_signs_in(&room, &people, (&email, password)).await {
        Ok(user) => user,
        Err(problem) => {
            tried.void();
            return Err(problem);
        }
    };
    let Some(user) = user else {
        login_log::wrong_password(from, &text);
        return Err(Problem::new(Code::UNAUTHORIZED, "The address or the password is wrong"));
    };
    tried.right();
    room.throttle.signed_in(from, &text, now);
    let start = SessionStart::new(SignInMethod::Password, from, user_agent.as_deref());
    begin(&people, &user, start, Batch::progress()).await
}

/// The user of this address, if the password is theirs.
async fn who_signs_in(
    room: &Room,
    people: &People,
    (email, password): (&Address, String),
) -> Result<Option<User>, Problem> {
    let user = people.by_email(email).await.map_err(problem)?;
    let hash = user.as_ref().and_then(|user| user.password.clone());
    let right = room.passwords.check(password, hash).await?;
    Ok(user.filter(|_| right))
}

/// Begins a session of a user, and commits what is in the batch with it.
pub(super) async fn begin(
    people: &People,
    user: &User,
    start: SessionStart,
    batch: Batch,
) -> Result<WithCookie<OneSession>, Problem> {
    let begun = people.begin_session(user, start, batch).await;
    let (token, session) = begun.map_err(problem)?;
    let reply = OneSession { session: SessionView::of(&session, user, &token) };
    Ok(WithCookie { reply, cookie: cookie::set(&token) })
}
