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
pub mod session;
pub mod sign_in_limiter;
pub mod totp;
pub mod view;

use accounts::users::UserError;
use httpd::fields::{self, FieldDiagnostics, ObjectFields};
use httpd::problem::{ErrorCode, Problem};
use httpd::request::Request;
use message::address::Address;

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
        UserError::Read(error) => Problem::outage(error),
        UserError::Commit(error) => Problem::outage(error),
    }
}

/// The `User-Agent` header of the request.
fn user_agent(call: &Request) -> Option<String> {
    call.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

const EMAIL: &str = "email";
const PASSWORD: &str = "password";

fn read_email(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Address> {
    let Some(value) = fields.value(EMAIL) else {
        notes.errors.add(EMAIL, "is required");
        return None;
    };
    let parsed = fields::parse_text(value)
        .and_then(|text| text.trim().parse::<Address>().map_err(|_| "is not an email address".to_owned()));
    parsed.map_err(|text| notes.errors.add(EMAIL, text)).ok()
}

/// Reads a password of at most [`password_hashing::BYTES_MAX`] bytes.
fn read_password(fields: &ObjectFields<'_>, name: &'static str, notes: &mut FieldDiagnostics) -> Option<String> {
    let value = fields.value(name)?;
    let parsed = fields::parse_text(value).and_then(|text| {
        let length = text.len();
        (length <= password_hashing::BYTES_MAX)
            .then(|| text.into_owned())
            .ok_or_else(|| format!("is longer than {} bytes", password_hashing::BYTES_MAX))
    });
    parsed.map_err(|text| notes.errors.add(name, text)).ok()
}
