//! Web origins (RFC 6454): which pages may report visits, and for which domains their cookies can be set (RFC 6265).

use message::address::DomainName;

/// Longest accepted origin in bytes: scheme, host and port.
const ORIGIN_BYTES_MAX: usize = 300;

/// Normalizes an origin for comparison: lower case, without the default port of its scheme. Returns `None` for anything
/// else than an http or https origin, including the opaque origin `null`.
pub fn normalize(origin: &str) -> Option<String> {
    let origin = origin.trim().to_ascii_lowercase();
    if origin.len() > ORIGIN_BYTES_MAX {
        return None;
    }
    let (scheme, rest) = origin.split_once("://")?;
    let usual = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return None;
    }
    Some(format!("{scheme}://{}", authority.strip_suffix(usual).unwrap_or(authority)))
}

/// The host of an origin or of an http or https URL, without port.
pub fn host_of(url: &str) -> Option<String> {
    let origin = normalize(url)?;
    let (_, authority) = origin.split_once("://")?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    (!host.is_empty()).then(|| host.to_owned())
}

/// True if the origin is one of `allowed`, or the website's origin if `allowed` is empty.
pub fn is_allowed(origin: &str, allowed: &[String], website_url: &str) -> bool {
    let Some(origin) = normalize(origin) else { return false };
    let is_same = |other: &str| normalize(other).is_some_and(|other| other == origin);
    if allowed.is_empty() { is_same(website_url) } else { allowed.iter().any(|other| is_same(other)) }
}

/// True if a page of this origin can set cookies for a domain. Possible are the host itself and its parent domains, but
/// no IP address and no public suffix.
pub fn can_set_cookie(domain: &str, origin: &str) -> bool {
    let domain = domain.trim_start_matches('.').to_ascii_lowercase();
    let (Some(host), Ok(name)) = (host_of(origin), domain.parse::<DomainName>()) else { return false };
    let within = host == domain || host.ends_with(&format!(".{domain}"));
    let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
    // Other parties own the domains below a public suffix.
    within && !is_address && !is_suffix(&name)
}

fn is_suffix(name: &DomainName) -> bool {
    psl::suffix(name.as_str().as_bytes()).is_some_and(|suffix| suffix.as_bytes() == name.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_as_browsers_do() {
        let own = "https://Shop.example/welcome?x";
        for (origin, expected) in [
            ("https://shop.example", true),
            ("https://shop.example:443", true),
            ("http://shop.example", false),
            ("https://www.shop.example", false),
            ("https://shop.example:8443", false),
            ("https://shop.example.evil.test", false),
            ("https://evil.test/https://shop.example", false),
            ("https://shop.example@evil.test", false),
            ("null", false),
            ("", false),
            ("file://", false),
        ] {
            assert_eq!(is_allowed(origin, &[], own), expected, "{origin}");
        }
        let allowed = ["http://localhost:3000/".to_owned()];
        assert!(is_allowed("http://localhost:3000", &allowed, own));
        assert!(!is_allowed("https://shop.example", &allowed, own), "allowed origins replace the website's origin");
    }

    #[test]
    fn cookie_domains_are_limited_to_the_site() {
        for (domain, origin, may) in [
            ("shop.example", "https://www.shop.example", true),
            (".shop.example", "https://www.shop.example", true),
            ("www.shop.example", "https://www.shop.example", true),
            ("shop.co.uk", "https://www.shop.co.uk:8443", true),
            ("co.uk", "https://www.shop.co.uk", false),
            ("example", "https://www.shop.example", false),
            ("github.io", "https://shop.github.io", false),
            ("shop.github.io", "https://shop.github.io", true),
            ("other.example", "https://www.shop.example", false),
            ("hop.example", "https://www.shop.example", false),
            ("shop.localhost", "http://www.shop.localhost:4000", true),
            ("localhost", "http://www.shop.localhost:4000", false),
            ("0.0.1", "http://127.0.0.1", false),
            ("127.0.0.1", "http://127.0.0.1", false),
            ("", "https://www.shop.example", false),
            ("shop.example; Secure", "https://www.shop.example", false),
        ] {
            assert_eq!(can_set_cookie(domain, origin), may, "{domain} of {origin}");
        }
    }

    #[test]
    fn the_port_is_removed_from_the_host() {
        for (url, found) in
            [("https://a.example:8443/x", Some("a.example")), ("http://[::1]:80/", Some("[::1]")), ("https://", None)]
        {
            assert_eq!(host_of(url).as_deref(), found, "{url}");
        }
    }
}
