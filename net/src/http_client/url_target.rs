//! Parsing a URL and checking whether it may be requested.
//!
//! It is parsed as browsers do (WHATWG URL Standard), so a host such as `0x7f.1` or `2130706433` becomes the IP address
//! that it means before it is checked.

use std::net::{IpAddr, Ipv4Addr};

use message::address::DomainName;
use model::public_ip;
use url::{Host, Url};

pub const URL_BYTES_MAX: usize = 2_048;

/// URLs that may be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UrlRules {
    /// Also allows private addresses, and any port.
    pub allow_private: bool,
    /// Also allows `http://`.
    pub allow_http: bool,
}

/// A parsed and permitted URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTarget {
    pub(super) is_https: bool,
    pub(super) host: UrlHost,
    pub(super) port: u16,
    /// Value of the `Host` field.
    pub(super) authority: String,
    /// Path and query.
    pub(super) path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum UrlHost {
    Name(DomainName),
    Address(IpAddr),
}

impl UrlTarget {
    /// Parses and checks a URL.
    ///
    /// # Errors
    /// Returns what is wrong with it, as text for the person who entered it.
    pub fn parse(text: &str, rules: UrlRules) -> Result<Self, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("the URL is longer than {URL_BYTES_MAX} bytes"));
        }
        let url = Url::parse(text).map_err(|error| format!("invalid URL: {error}"))?;
        let secure = match url.scheme() {
            "https" => true,
            "http" if rules.allow_http => false,
            "http" => return Err("the URL must begin with https://".to_owned()),
            other => return Err(format!("the URL must begin with https://, not {other}:")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL must not contain a user name or password".to_owned());
        }
        let parsed_host = url_host(&url)?;
        if let UrlHost::Address(address) = parsed_host
            && !rules.allow_private
            && !public_ip::is_public(address)
        {
            return Err(format!("{address} is not a public address"));
        }
        let port = url.port_or_known_default().unwrap_or(443);
        // Ports below 1024 belong to other services, which a request could be abused to talk to.
        let usual = port >= 1024 || matches!(port, 80 | 443);
        if port == 0 || !(usual || rules.allow_private) {
            return Err(format!("port {port} is not allowed; use 443, 80 or a port above 1023"));
        }
        let host = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        Ok(Self { is_https: secure, host: parsed_host, port, authority, path })
    }

    /// Key of the connection pool.
    pub(super) fn pool_key(&self) -> (bool, UrlHost, u16) {
        (self.is_https, self.host.clone(), self.port)
    }
}

fn url_host(url: &Url) -> Result<UrlHost, String> {
    match url.host() {
        None => Err("the URL has no host".to_owned()),
        Some(Host::Ipv4(address)) => Ok(UrlHost::Address(address.into())),
        Some(Host::Ipv6(address)) => Ok(UrlHost::Address(address.into())),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            // RFC 6761 6.3: `localhost` must not be resolved through DNS.
            if name == "localhost" || name.ends_with(".localhost") {
                return Ok(UrlHost::Address(Ipv4Addr::LOCALHOST.into()));
            }
            let name = name.parse().map_err(|_| format!("{name} is not a host name"))?;
            Ok(UrlHost::Name(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: UrlRules = UrlRules { allow_private: true, allow_http: true };

    #[test]
    fn numeric_hosts_are_checked_as_addresses() {
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://0x7f.1/",
            "https://127.1/",
            "https://①②⑦.0.0.1/",
            "https://127。0。0。1/",
            "https://127.0.0.1./",
            "https://%31%32%37.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:a9fe:a9fe]/",
            "https://[64:ff9b::a9fe:a9fe]/",
            "https://169.254.169.254/latest/meta-data/",
            "https://100.100.100.200/",
            "https://[fd00:ec2::254]/",
            "https://0/",
            "https://10.1.2.3/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
        ] {
            let refused = UrlTarget::parse(url, UrlRules::default());
            match &refused {
                Ok(UrlTarget { host: UrlHost::Address(address), .. }) => {
                    assert!(!public_ip::is_public(*address), "{url}: {refused:?}");
                }
                Ok(_) => panic!("{url}: {refused:?}"),
                Err(reason) => assert!(reason.ends_with("is not a public address"), "{url}: {reason}"),
            }
            assert!(UrlTarget::parse(url, OPEN).is_ok(), "{url}");
        }
    }

    #[test]
    fn unusable_urls_are_rejected() {
        for url in [
            "",
            "hooks",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com:70/",
            "http://example.com/",
            "https://",
            "https://user@example.com/",
            "https://user:secret@example.com/",
            "https://a@b@example.com/",
            "https://example.com:25/",
            "https://example.com:22/",
            "https://example.com:0/",
            "https://example.com:99999/",
            "https://exa mple.com/",
            "https://256.1.1.1/",
            "https://0x100000000/",
            "https://[::1",
            "javascript:alert(1)",
            "data:text/plain,x",
        ] {
            assert!(UrlTarget::parse(url, UrlRules::default()).is_err(), "{url}");
        }
        assert!(UrlTarget::parse(&format!("https://example.com/{}", "a".repeat(3000)), OPEN).is_err());
    }

    #[test]
    fn a_url_is_parsed_into_authority_path_and_port() {
        let target = UrlTarget::parse("https://Hooks.Example.com:8443/a/b?c=d#e", UrlRules::default()).unwrap();
        assert_eq!(target.authority, "hooks.example.com:8443");
        assert_eq!(target.path, "/a/b?c=d");
        assert_eq!(target.port, 8443);
        let target = UrlTarget::parse("https://bücher.example", UrlRules::default()).unwrap();
        assert_eq!(target.authority, "xn--bcher-kva.example");
        assert_eq!((target.path.as_str(), target.port), ("/", 443));
        assert!(!UrlTarget::parse("http://hooks.example.com/", OPEN).unwrap().is_https);
    }
}
