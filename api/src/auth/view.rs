//! Users and sessions as they are shown, and the answer that carries a session's cookie.

use bytes::Bytes;
use http::header::{HeaderValue, SET_COOKIE};
use mail::user::{SessionToken, User, UserRole, UserSession};
use serde::Serialize;
use serde_json::Value;

use crate::call::{CookiePolicy, IntoResponse, Response};
use crate::emails::view::JsonTimestamp;
use crate::problem::Problem;
use crate::schema::{self, Schemas, ToSchema};

/// A user as they are shown.
#[derive(Debug, Serialize)]
pub struct UserView {
    id: mail::id::UserId,
    email: String,
    role: UserRole,
    status: &'static str,
    has_password: bool,
    created_at: JsonTimestamp,
}

impl UserView {
    /// What is shown of a user.
    #[must_use]
    pub fn from_user(user: &User) -> Self {
        Self {
            id: user.id,
            email: user.email.to_string(),
            role: user.role,
            status: if user.invited { "invited" } else { "active" },
            has_password: user.password.is_some(),
            created_at: JsonTimestamp(user.created_at),
        }
    }
}

impl ToSchema for UserView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("User", |_| {
            schema::object(
                "Somebody who may sign in",
                [
                    ("id", schema::string("`user_…`")),
                    ("email", schema::string("Their address")),
                    ("role", schema::string_enum(&["owner", "member"], "What they may do")),
                    (
                        "status",
                        schema::string_enum(&["invited", "active"], "Whether they have accepted the invitation"),
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
    created_at: JsonTimestamp,
    expires_at: JsonTimestamp,
}

impl SessionView {
    pub(super) fn from_session(session: &UserSession, user: &User, token: &SessionToken) -> Self {
        Self {
            id: session.id,
            account_id: session.account,
            user: UserView::from_user(user),
            csrf_token: token.csrf(),
            created_at: JsonTimestamp(session.created_at),
            expires_at: JsonTimestamp(session.expires_at),
        }
    }
}

/// One session.
#[derive(Debug, Serialize)]
pub struct SessionResponse {
    pub(super) session: SessionView,
}

impl ToSchema for SessionResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        let session = schemas.component("Session", |_| {
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
pub struct WithSessionCookie<T> {
    pub(super) reply: T,
    pub(super) cookie: Option<HeaderValue>,
}

impl<T: IntoResponse> IntoResponse for WithSessionCookie<T> {
    const COOKIES: CookiePolicy = CookiePolicy::Session;

    fn describe(schemas: &mut Schemas) -> Value {
        T::describe(schemas)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        self.reply.into_body()
    }

    fn into_response(self) -> Result<Response, Problem> {
        let mut answer = self.reply.into_response()?;
        answer.headers.extend(self.cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(answer)
    }
}
