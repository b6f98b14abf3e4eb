//! JSON objects of users and sessions, and the response that sets the session cookie.

use bytes::Bytes;
use http::header::{HeaderValue, SET_COOKIE};
use mail::user::{SessionToken, User, UserRole, UserSession};
use serde::Serialize;
use serde_json::Value;

use crate::json_timestamp::JsonTimestamp;
use crate::problem::Problem;
use crate::response::{CookiePolicy, IntoResponse, Response};
use crate::schema::{self, Schemas, ToSchema};

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
                "A user who can sign in",
                [
                    ("id", schema::string("`user_…`")),
                    ("email", schema::string("The user's email address")),
                    ("role", schema::string_enum(&["owner", "member"], "The role")),
                    (
                        "status",
                        schema::string_enum(&["invited", "active"], "Whether the user has accepted the invitation"),
                    ),
                    (
                        "has_password",
                        schema::boolean("Whether a password is set; users without one sign in by a mailed link"),
                    ),
                    ("created_at", schema::time("When the user was invited")),
                ],
            )
        })
    }
}

/// The current session, with its CSRF token.
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

#[derive(Debug, Serialize)]
pub struct SessionResponse {
    pub(super) session: SessionView,
}

impl ToSchema for SessionResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        let session = schemas.component("Session", |_| {
            schema::object(
                "A session; its cookie is sent in `set-cookie`",
                [
                    ("id", schema::string("`ses_…`")),
                    ("account_id", schema::string("The account's id")),
                    ("user", user),
                    (
                        "csrf_token",
                        schema::string("The value of `x-csrf-token` that requests other than GET must send"),
                    ),
                    ("created_at", schema::time("When the user signed in")),
                    ("expires_at", schema::time("When the session ends unless it is used")),
                ],
            )
        });
        schema::object("A session", [("session", session)])
    }
}

/// A response that sets or clears the session cookie.
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
        let mut response = self.reply.into_response()?;
        response.headers.extend(self.cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }
}
