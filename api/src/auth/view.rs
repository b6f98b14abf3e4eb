//! JSON objects of users and sessions, and the response that sets the session cookie.

use http::header::{HeaderValue, SET_COOKIE};
use httpd::response::{CookiePolicy, IntoResponse, Response};
use model::user::{SessionToken, User, UserSession};

use crate::prelude::*;

/// A user who can sign in
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "User")]
pub struct UserView {
    /// `user_…`
    id: model::id::UserId,
    /// The user's email address
    email: String,
    /// The role
    #[schema(enum = ["owner", "admin", "developer", "viewer"])]
    role: &'static str,
    /// Whether the user has accepted the invitation
    #[schema(enum = ["invited", "active"])]
    status: &'static str,
    /// Whether a password is set; users without one sign in with an emailed link
    has_password: bool,
    /// Whether sign-in asks for a one-time password
    has_totp: bool,
    /// When the user was invited
    created_at: JsonTimestamp,
}

impl UserView {
    pub fn from_user(user: &User) -> Self {
        Self {
            id: user.id,
            email: user.email.to_string(),
            role: user.role.word(),
            status: if user.invited { "invited" } else { "active" },
            has_password: user.password.is_some(),
            has_totp: user.has_totp(),
            created_at: JsonTimestamp(user.created_at),
        }
    }
}

/// A session; its cookie is sent in `set-cookie`
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Session")]
pub struct SessionView {
    /// `ses_…`
    id: model::id::SessionId,
    /// The account's id
    account_id: model::id::AccountId,
    user: UserView,
    /// The value of `x-csrf-token` that requests other than GET must send
    csrf_token: String,
    /// Number of unused recovery codes; null if one-time passwords are not set up
    recovery_codes_left: Option<usize>,
    /// When the user signed in
    created_at: JsonTimestamp,
    /// When the user last proved their identity, by signing in or by `POST /auth/reauthenticate`
    authenticated_at: JsonTimestamp,
    /// When the session ends unless it is used
    expires_at: JsonTimestamp,
}

impl SessionView {
    pub(super) fn from_session(session: &UserSession, user: &User, token: &SessionToken) -> Self {
        Self {
            id: session.id,
            account_id: session.account,
            user: UserView::from_user(user),
            csrf_token: token.csrf(),
            recovery_codes_left: user.recovery_codes_left(),
            created_at: JsonTimestamp(session.created_at),
            authenticated_at: JsonTimestamp(session.authenticated_at()),
            expires_at: JsonTimestamp(session.expires_at),
        }
    }
}

object_response! { "A session", pub SessionResponse { session: SessionView } }

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

    fn into_response(self) -> Result<Response> {
        let mut response = self.reply.into_response()?;
        response.headers.extend(self.cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }
}
