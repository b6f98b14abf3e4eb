//! Errors of a DNS provider.
//!
//! An [`UpstreamError`] has the provider's message, truncated and without secrets. The API returns it as 422
//! `upstream_error`. A [`ServerError`] is an error in the customer's request.

use std::fmt;

use thiserror::Error;

use super::Provider;
use super::credentials::ProviderCredentials;
use super::server::ServerError;

/// Maximum characters of a provider's message.
const MESSAGE_CHARS_MAX: usize = 300;

message::words! {
    /// The kind of failure at a provider, by its error code for programs.
    UpstreamFault {
        /// The credentials are invalid or lack a permission.
        Credentials = "credentials",
        /// The provider does not host the domain's zone, or the credentials have no access to it.
        NoZone = "no_zone",
        /// There was no response in time, so the change may have been made.
        Timeout = "timeout",
        /// The provider refused for another reason, or its response is invalid.
        Refused = "refused",
    }
}

/// An error of a DNS provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamError {
    pub provider: Provider,
    pub fault: UpstreamFault,
    /// The provider's message, truncated and without secrets.
    pub message: String,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = self.provider;
        match self.fault {
            UpstreamFault::Credentials => write!(f, "{provider} rejected the credentials")?,
            UpstreamFault::NoZone => write!(f, "{provider} has no zone of the domain that the credentials can access")?,
            UpstreamFault::Timeout => {
                write!(f, "{provider} did not respond in time; check the existing records and try again")?
            }
            UpstreamFault::Refused => write!(f, "{provider} refused the request")?,
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl std::error::Error for UpstreamError {}

/// The reason why a publication ended before any change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApplyError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The field `server` of the credentials is invalid or unusable.
    #[error("the server {0}")]
    Server(#[from] ServerError),
}

/// Converts an error of dns-update.
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

/// Creates an error with a message of this crate or of the provider.
pub(super) fn upstream_error_with_text(
    credentials: &ProviderCredentials,
    fault: UpstreamFault,
    text: &str,
) -> UpstreamError {
    // dns-update's message about a refused TSIG key describes the client and not the server.
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

/// Derives the fault from a message, for errors that dns-update does not distinguish.
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
    fn provider_errors_are_shortened_and_redacted() {
        let credentials =
            ProviderCredentials::parse(Provider::Cloudflare, &json!({"api_token": "t0k3n-of-mine"})).unwrap();
        let say = |error| upstream_error(&credentials, error).to_string();
        let denied = "Cloudflare rejected the credentials";
        assert_eq!(say(dns_update::Error::Unauthorized), denied);
        assert_eq!(
            say(dns_update::Error::Api("HTTP 403: t0k3n-of-mine may not\r\n".to_owned())),
            format!("{denied}: HTTP 403: *** may not")
        );
        assert_eq!(
            say(dns_update::Error::Api("No Cloudflare zone found for a.example".to_owned())),
            "Cloudflare has no zone of the domain that the credentials can access: \
             No Cloudflare zone found for a.example"
        );
        let long = say(dns_update::Error::Api("x".repeat(10_000)));
        assert!(long.chars().count() < 400 && long.ends_with('…'));
    }
}
