//! Users and sessions as they are shown, and the answer that carries a session's cookie.

use bytes::Bytes;
use http::header::{HeaderValue, SET_COOKIE};
use mail::user::{Role, Session, SessionToken, User};
use serde::Serialize;
use serde_json::Value;

use crate::call::{Answer, Cookies, Reply};
use crate::emails::view::Moment;
use crate::problem::Problem;
use crate::schema::{self, Describe, Schemas};

/// A user as they are shown.
#[derive(Debug, Serialize)]
pub struct UserView {
    id: mail::id::UserId,
    email: String,
    role: Role,
    status: &'static str,
    has_password: bool,
    created_at: Moment,
}

impl UserView {
    /// What is shown of a user.
    #[must_use]
    pub fn of(user: &User) -> Self {
        Self {
            id: user.id,
            email: user.email.to_string(),
            role: user.role,
            status: if user.invited { "invited" } else { "active" },
            has_password: user.password.is_some(),
            created_at: Moment(user.created_at),
        }
    }
}

impl Describe for UserView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("User", |_| {
            schema::object(
                "Somebody who may sign in",
                [
                    ("id", schema::string("`user_…`")),
                    ("email", schema::string("Their address")),
                    ("role", schema::words(&["owner", "member"], "What they may do")),
                    (
                        "status",
                        schema::words(&["invited", "active"], "Whether they have accepted the invitation"),
                    ),
                    ("has_password", schema::boolean("Else they sign in by a mailed link")),
                    ("created_at", schema::time("When they were invited")),
                ],
            )
        })
    }
}

/// A session as its user sees it.
#[derive(Debug, Serialize)]
pub struct SessionView {
    id: mail::id::SessionId,
    account_id: mail::id::AccountId,
    user: UserView,
    csrf_token: String,
    created_at: Moment,
    expires_at: Moment,
}

impl SessionView {
    pub(super) fn of(session: &Session, user: &User, token: &SessionToken) -> Self {
        Self {
            id: session.id,
            account_id: session.account,
            user: UserView::of(user),
            csrf_token: token.csrf(),
            created_at: Moment(session.created_at),
            expires_at: Moment(session.expires_at),
        }
    }
}

/// One session.
#[derive(Debug, Serialize)]
pub struct OneSession {
    pub(super) session: SessionView,
}

impl Describe for OneSession {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        let session = schemas.named("Session", |_| {
            schema::object(
                "A session; its cookie comes in `set-cookie`",
                [
                    ("id", schema::string("`ses_…`")),
                    ("account_id", schema::string("To which account")),
                    ("user", user),
                    ("csrf_token", schema::string("For `x-csrf-token` of all calls other than GET")),
                    ("created_at", schema::time("When they signed in")),
                    ("expires_at", schema::time("When it ends unless it is used")),
                ],
            )
        });
        schema::object("A session", [("session", session)])
    }
}

/// An answer that changes the session's cookie.
#[derive(Debug)]
pub struct WithCookie<T> {
    pub(super) reply: T,
    pub(super) cookie: Option<HeaderValue>,
}

impl<T: Reply> Reply for WithCookie<T> {
    const COOKIES: Cookies = Cookies::Session;

    fn describe(schemas: &mut Schemas) -> Value {
        T::describe(schemas)
    }

    fn write(self) -> Result<Bytes, Problem> {
        self.reply.write()
    }

    fn answer(self) -> Result<Answer, Problem> {
        let mut answer = self.reply.answer()?;
        answer.headers.extend(self.cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(answer)
    }
}
