//! `BaseUrl`: the address of a server, from `POSTRIDER_BASE_URL` or a profile.

use std::fmt;
use std::net::IpAddr;

use crate::error::CliError;

/// An absolute http or https URL without query, user name and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    is_tls: bool,
    host: String,
    port: u16,
    /// Path before the API's paths, without a slash at its end.
    prefix: String,
}

impl BaseUrl {
    /// Reads a base URL. The key is sent with each request, so `http:` is accepted for this machine only.
    ///
    /// # Errors
    /// The text is no such URL.
    pub fn parse(text: &str, allow_insecure: bool) -> Result<Self, CliError> {
        let invalid = |why: &str| {
            CliError::usage(format!(
                "the base URL `{text}` {why}; set POSTRIDER_BASE_URL to a URL such as https://mail.example.com"
            ))
        };
        let url = url::Url::parse(text.trim()).map_err(|_| invalid("is not an https:// URL"))?;
        if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
            return Err(invalid("must begin with https://"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("must not have a user name, a query or a fragment"));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_tls = url.scheme() == "https";
        if !is_tls && !is_loopback(&host) && !allow_insecure {
            return Err(invalid("would send the API key unencrypted (POSTRIDER_ALLOW_INSECURE_HTTP=1 allows it)"));
        }
        let port = url.port_or_known_default().unwrap_or(443);
        Ok(Self { is_tls, host, port, prefix: url.path().trim_end_matches('/').to_owned() })
    }

    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns whether the server is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// The host as URLs have it.
    pub fn bracketed_host(&self) -> &str {
        &self.host
    }

    /// The host without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `Host` field.
    pub fn authority(&self) -> String {
        let default = if self.is_tls { 443 } else { 80 };
        if self.port == default { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// The request target of a path of the API.
    pub fn target(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_checked() {
        for (text, shown) in [
            ("https://mail.example.com/", Some("https://mail.example.com")),
            ("https://mail.example.com:8443/api/", Some("https://mail.example.com:8443/api")),
            ("http://127.0.0.1:8025", Some("http://127.0.0.1:8025")),
            ("http://[::1]:8025", Some("http://[::1]:8025")),
            ("http://localhost", Some("http://localhost")),
            ("http://mail.example.com", None),
            ("mail.example.com", None),
            ("ftp://mail.example.com", None),
            ("https://user@mail.example.com", None),
            ("https://mail.example.com/?x=1", None),
            ("", None),
        ] {
            let url = BaseUrl::parse(text, false);
            assert_eq!(url.ok().map(|url| url.to_string()).as_deref(), shown, "{text}");
        }
        assert!(BaseUrl::parse("http://mail.internal", true).is_ok());
    }
}
