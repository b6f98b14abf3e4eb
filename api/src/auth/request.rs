//! Common to the requests of signing in: where they come from, and readers of their fields.

use std::net::IpAddr;

use super::password_hashing;
use crate::prelude::*;

/// Where a request comes from.
pub struct SignInClient {
    pub(super) client_ip: Option<IpAddr>,
    pub(super) user_agent: Option<String>,
}

impl FromRequest for SignInClient {
    fn read(call: &Request) -> Result<Self> {
        let user_agent = call.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        Ok(Self { client_ip: call.client_ip, user_agent: user_agent.map(str::to_owned) })
    }
}

pub(crate) fn parse_email(value: &RawValue) -> Result<Address, String> {
    fields::parse_text(value)?.trim().parse().map_err(|_| "is not an email address".to_owned())
}

pub(crate) fn email_schema(_: &mut Schemas) -> Value {
    schema::address("")
}

/// Parses a password of at most [`password_hashing::BYTES_MAX`] bytes.
pub(super) fn parse_password(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    let error = || format!("is longer than {} bytes", password_hashing::BYTES_MAX);
    (text.len() <= password_hashing::BYTES_MAX).then(|| text.into_owned()).ok_or_else(error)
}
