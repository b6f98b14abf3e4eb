//! JSON objects of users and sessions, and the response that sets the session cookie.

use http::header::{HeaderValue, SET_COOKIE};
use httpd::response::{CookiePolicy, IntoResponse, Response};
use model::user::{SessionToken, User, UserSession};

use crate::prelude::*;

object_view! {
    /// A user who can sign in
    #[schema(name = "User")]
    pub struct UserView, pub fn from_user(user: &User) {
        /// `user_…`
        id: model::id::UserId = user.id,
        /// The user's email address
        email: String = user.email.to_string(),
        /// The role
        #[schema(enum = ["owner", "admin", "developer", "viewer"])]
        role: &'static str = user.role.word(),
        /// Whether the user has accepted the invitation
        #[schema(enum = ["invited", "active"])]
        status: &'static str = if user.invited { "invited" } else { "active" },
        /// Whether a password is set; users without one sign in with an emailed link
        has_password: bool = user.password.is_some(),
        /// Whether sign-in asks for a one-time password
        has_totp: bool = user.has_totp(),
        /// When the user was invited
        created_at: JsonTimestamp = JsonTimestamp(user.created_at),
    }
}

object_view! {
    /// A session; its cookie is sent in `set-cookie`
    #[schema(name = "Session")]
    pub struct SessionView, pub(super) fn from_session(session: &UserSession, user: &User, token: &SessionToken) {
        /// `ses_…`
        id: model::id::SessionId = session.id,
        /// The account's id
        account_id: model::id::AccountId = session.account,
        user: UserView = UserView::from_user(user),
        /// The value of `x-csrf-token` that requests other than GET must send
        csrf_token: String = token.csrf(),
        /// Number of unused recovery codes; null if one-time passwords are not set up
        recovery_codes_left: Option<usize> = user.recovery_codes_left(),
        /// When the user signed in
        created_at: JsonTimestamp = JsonTimestamp(session.created_at),
        /// When the user last proved their identity, by signing in or by `POST /auth/reauthenticate`
        authenticated_at: JsonTimestamp = JsonTimestamp(session.authenticated_at()),
        /// When the session ends unless it is used
        expires_at: JsonTimestamp = JsonTimestamp(session.expires_at),
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
