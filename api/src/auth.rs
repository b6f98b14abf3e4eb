//! Signing in and out: by password or by mailed link, and then by a one-time password for users who have set them up. A
//! session is a cookie and a CSRF token.
//!
//! ```text
//! POST /auth/sign-in {email, password} ──────────────────────────────────────┐
//! POST /auth/link {email} ─► email ─► GET (page) ─► POST /auth/link/{token} ─┤
//!                     without one-time passwords: session cookie + CSRF token ◄┤
//!                       with them: challenge ─► POST /auth/code/{challenge} ◄┘
//! ```
//!
//! Responses do not reveal whether an address has a user. A wrong password and an unknown address get the same response
//! after the same time, and requesting a link always succeeds. Failures are rate-limited where they occur
//! ([`sign_in_limiter`]).

pub mod code_sign_in;
pub mod confirmation;
pub mod cookie;
mod link_page;
pub mod link_sign_in;
pub mod login_links;
pub(crate) mod login_log;
pub mod own_password;
pub mod password_hashing;
pub mod password_sign_in;
pub mod reauthentication;
pub(crate) mod request;
pub mod session;
pub mod sign_in_limiter;
pub mod totp;
pub mod view;

use accounts::users::UserError;
use httpd::problem::{ErrorCode, Problem};

use self::login_log::LoginLog;
use self::password_hashing::PasswordHasher;
use self::sign_in_limiter::SignInRateLimiter;

/// Protects signing in against guessing and exhaustion.
#[derive(Debug, Default)]
pub(crate) struct SignInGuards {
    pub(crate) passwords: PasswordHasher,
    pub(crate) limiter: SignInRateLimiter,
    /// Bounds how many failed logins are logged.
    pub(crate) log: LoginLog,
}

/// Maps a user error to its problem response.
pub fn user_error_problem(error: UserError) -> Problem {
    match error {
        UserError::Unknown => Problem::not_found("user"),
        UserError::NotPermitted => {
            Problem::new(ErrorCode::FORBIDDEN, "Only an owner can create, change or remove owners and admins")
        }
        UserError::WrongCode => Problem::new(ErrorCode::FORBIDDEN, "The code is wrong or has already been used"),
        UserError::Seal => Problem::internal(error),
        UserError::Taken(_)
        | UserError::LastOwner
        | UserError::TotpActive
        | UserError::TotpNotPending
        | UserError::TotpNotActive
        | UserError::TooMany
        | UserError::Conflict => Problem::new(ErrorCode::CONFLICT, error.to_string()),
        UserError::Read(error) => error.into(),
        UserError::Commit(error) => Problem::outage(error),
    }
}
