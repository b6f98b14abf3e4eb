//! Signing in and out: by password or by mailed link, to a session in a cookie.
//!
//! ```text
//! POST /auth/sign-in {email, password} ─┐
//! POST /auth/link {email} ─► mail ─► GET (a page) ─► POST /auth/link/{token} ─┴─► session ─► cookie + csrf token
//! ```
//!
//! Whether an address signs in to anything is not told: a wrong password and an unknown address are
//! answered alike and take the same time, and a link is promised in any case. How often one may fail is
//! bounded where the failures come from ([`throttle`]).

pub mod cookie;
pub mod link;
pub(crate) mod login_log;
pub mod mailed;
pub mod password;
pub mod passwords;
pub mod session;
pub mod sign_in;
pub mod throttle;
pub mod view;

use mail::address::Address;
use queue::people::UserError;

use crate::call::Request;
use crate::fields::{self, FieldDiagnostics, ObjectFields};
use crate::problem::{ErrorCode, Problem};

/// What goes wrong about users, on the wire.
#[must_use]
pub fn user_error_problem(error: UserError) -> Problem {
    match error {
        UserError::Unknown => Problem::not_found("user"),
        UserError::Taken(_) | UserError::LastOwner | UserError::TooMany | UserError::Conflict => {
            Problem::new(ErrorCode::CONFLICT, error.to_string())
        }
        UserError::Read(error) => Problem::outage(error),
        UserError::Commit(error) => Problem::outage(error),
    }
}

/// What the browser of a call says it is.
fn user_agent(call: &Request) -> Option<String> {
    call.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

const EMAIL: &str = "email";
const PASSWORD: &str = "password";

fn read_email(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Address> {
    let Some(value) = given.value(EMAIL) else {
        notes.errors.add(EMAIL, "is required");
        return None;
    };
    let read = fields::parse_text(value)
        .and_then(|text| text.trim().parse::<Address>().map_err(|_| "is not an address".to_owned()));
    read.map_err(|text| notes.errors.add(EMAIL, text)).ok()
}

/// A password's text, of any length that may be one.
fn read_password(given: &ObjectFields<'_>, name: &'static str, notes: &mut FieldDiagnostics) -> Option<String> {
    let value = given.value(name)?;
    let read = fields::parse_text(value).and_then(|text| {
        let length = text.len();
        (length <= passwords::BYTES_MAX)
            .then(|| text.into_owned())
            .ok_or_else(|| format!("is longer than {} bytes", passwords::BYTES_MAX))
    });
    read.map_err(|text| notes.errors.add(name, text)).ok()
}
