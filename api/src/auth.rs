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
use queue::people::PeopleError;

use crate::call::Call;
use crate::fields::{self, Given, Notes};
use crate::problem::{Code, Problem};

/// What goes wrong about users, on the wire.
#[must_use]
pub fn problem(error: PeopleError) -> Problem {
    match error {
        PeopleError::Unknown => Problem::not_found("user"),
        PeopleError::Taken(_) | PeopleError::LastOwner | PeopleError::TooMany | PeopleError::Changed => {
            Problem::new(Code::CONFLICT, error.to_string())
        }
        PeopleError::Read(error) => Problem::outage(error),
        PeopleError::Commit(error) => Problem::outage(error),
    }
}

/// What the browser of a call says it is.
fn user_agent(call: &Call) -> Option<String> {
    call.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

const EMAIL: &str = "email";
const PASSWORD: &str = "password";

fn email(given: &Given<'_>, notes: &mut Notes) -> Option<Address> {
    let Some(value) = given.value(EMAIL) else {
        notes.errors.add(EMAIL, "is required");
        return None;
    };
    let read = fields::text(value)
        .and_then(|text| text.trim().parse::<Address>().map_err(|_| "is not an address".to_owned()));
    read.map_err(|text| notes.errors.add(EMAIL, text)).ok()
}

/// A password's text, of any length that may be one.
fn password(given: &Given<'_>, name: &'static str, notes: &mut Notes) -> Option<String> {
    let value = given.value(name)?;
    let read = fields::text(value).and_then(|text| {
        let length = text.len();
        (length <= passwords::BYTES_MAX)
            .then(|| text.into_owned())
            .ok_or_else(|| format!("is longer than {} bytes", passwords::BYTES_MAX))
    });
    read.map_err(|text| notes.errors.add(name, text)).ok()
}
