//! What goes wrong at a provider.
//!
//! An [`UpstreamError`] is the provider's word, cut short and cleared of secrets: it becomes 422 `upstream_error`. What
//! is the customer's to mend in the request itself is a [`ServerError`].

use std::fmt;

use thiserror::Error;

use super::Provider;
use super::credentials::ProviderCredentials;
use super::server::ServerError;

/// What is told of a provider's message.
const MESSAGE_CHARS_MAX: usize = 300;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpstreamFault {
    /// The credentials are refused, or do not allow this.
    Credentials,
    /// The provider does not keep the domain's zone, or the credentials do not reach it.
    NoZone,
    /// No answer in time: what was asked may have been done.
    Timeout,
    /// Refused for another reason, or answered what makes no sense.
    Refused,
}

impl UpstreamFault {
    /// The fault as one word, for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::NoZone => "no_zone",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
        }
    }
}

/// A provider refused or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamError {
    /// Which one.
    pub provider: Provider,
    /// What kind of failure.
    pub fault: UpstreamFault,
    /// What it said, cut short, without secrets.
    pub message: String,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = self.provider;
        match self.fault {
            UpstreamFault::Credentials => write!(f, "{provider} does not accept the credentials for this")?,
            UpstreamFault::NoZone => write!(f, "{provider} keeps no zone of the domain that the credentials reach")?,
            UpstreamFault::Timeout => {
                write!(f, "{provider} did not answer in time; look at what stands there and try again")?
            }
            UpstreamFault::Refused => write!(f, "{provider} refused")?,
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl std::error::Error for UpstreamError {}

/// Why nothing could be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// The provider's word.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The field `server` of the credentials will not do.
    #[error("the server {0}")]
    Server(#[from] ServerError),
}

/// Makes the one error out of what a client says.
pub(super) fn upstream_error(credentials: &ProviderCredentials, error: dns_update::Error) -> UpstreamError {
    use dns_update::Error;
    let (fault, text) = match error {
        Error::Unauthorized => (UpstreamFault::Credentials, String::new()),
        Error::NotFound => (UpstreamFault::NoZone, String::new()),
        Error::BadRequest => (UpstreamFault::Refused, "bad request".to_owned()),
        Error::InvalidRegion => (UpstreamFault::Refused, "no such region".to_owned()),
        Error::Protocol(text)
        | Error::Parse(text)
        | Error::Client(text)
        | Error::Response(text)
        | Error::Api(text)
        | Error::Serialize(text)
        | Error::Unsupported(text) => (classify_text(&text), text),
        _ => (UpstreamFault::Refused, String::new()),
    };
    upstream_error_with_text(credentials, fault, &text)
}

/// An error of ours about a provider, in our words or in its own.
pub(super) fn upstream_error_with_text(
    credentials: &ProviderCredentials,
    fault: UpstreamFault,
    text: &str,
) -> UpstreamError {
    // What the client says of a key that is refused there is about the client.
    let of_itself = fault == UpstreamFault::Credentials && credentials.provider() == Provider::Rfc2136;
    let text = if of_itself { "" } else { text };
    let covered = credentials.redact(text);
    let plain = covered.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut message: String = plain.clone().take(MESSAGE_CHARS_MAX).collect();
    if plain.count() > MESSAGE_CHARS_MAX {
        message.push('…');
    }
    UpstreamError { provider: credentials.provider(), fault, message: message.trim().to_owned() }
}

/// The clients have no word of their own for these.
fn classify_text(text: &str) -> UpstreamFault {
    let text = text.to_ascii_lowercase();
    if text.contains("zone found") {
        return UpstreamFault::NoZone;
    }
    let refused = ["http 403", "403 forbidden", "not authorized", "key not recognized", "tsig", "query refused"];
    if refused.iter().any(|sign| text.contains(sign)) {
        return UpstreamFault::Credentials;
    }
    if text.contains("timed out") || text.contains("timeout") {
        return UpstreamFault::Timeout;
    }
    UpstreamFault::Refused
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_provider_says_is_told_short_and_without_secrets() {
        let credentials =
            ProviderCredentials::parse(Provider::Cloudflare, &json!({"api_token": "t0k3n-of-mine"})).unwrap();
        let say = |error| upstream_error(&credentials, error).to_string();
        let denied = "Cloudflare does not accept the credentials for this";
        assert_eq!(say(dns_update::Error::Unauthorized), denied);
        assert_eq!(
            say(dns_update::Error::Api("HTTP 403: t0k3n-of-mine may not\r\n".to_owned())),
            format!("{denied}: HTTP 403: *** may not")
        );
        assert_eq!(
            say(dns_update::Error::Api("No Cloudflare zone found for a.example".to_owned())),
            "Cloudflare keeps no zone of the domain that the credentials reach: \
             No Cloudflare zone found for a.example"
        );
        let long = say(dns_update::Error::Api("x".repeat(10_000)));
        assert!(long.chars().count() < 400 && long.ends_with('…'));
    }
}
