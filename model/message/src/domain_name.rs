//! Validation of the name of a sending domain, as entered by a person.

use thiserror::Error;

use crate::address::DomainName;

/// Reason why a text is not a valid sending domain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendingDomainError {
    /// A URL or an email address.
    #[error("must be only a domain name, like `{0}`")]
    NotBareDomain(DomainName),
    /// Not a domain name.
    #[error("must be a domain name, like `example.com` or `mail.example.com`")]
    Form,
    /// An IP address.
    #[error("must be a domain name, not an IP address")]
    Address,
    #[error("`{0}` is a public suffix, under which anyone can register names: add a domain of your own")]
    PublicSuffix(DomainName),
}

/// Parses a domain name in any case and script (RFC 5891), with or without a trailing dot.
///
/// Public suffixes are rejected, whether a registry assigns names under them (`co.uk`) or a company does for its
/// customers (`github.io`): their sender would speak for everybody below.
pub fn parse(text: &str) -> Result<DomainName, SendingDomainError> {
    let text = text.trim();
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.split(['/', '?', '#']).next().unwrap_or_default();
    let bare = bare.rsplit('@').next().unwrap_or_default();
    if bare.parse::<std::net::IpAddr>().is_ok() {
        return Err(SendingDomainError::Address);
    }
    let name: DomainName = bare.strip_suffix('.').unwrap_or(bare).parse().map_err(|_| SendingDomainError::Form)?;
    if is_all_numeric(&name) {
        return Err(SendingDomainError::Address);
    }
    if !name.as_str().contains('.') {
        return Err(SendingDomainError::Form);
    }
    let suffix = psl::suffix(name.as_str().as_bytes());
    if suffix.is_some_and(|suffix| suffix.as_bytes() == name.as_str().as_bytes()) {
        return Err(SendingDomainError::PublicSuffix(name));
    }
    if bare.len() != text.len() {
        return Err(SendingDomainError::NotBareDomain(name));
    }
    Ok(name)
}

/// Returns whether the name cannot exist in the public DNS: names of RFC 6761, RFC 6762 (`local`), RFC 7686 (`onion`),
/// and `internal`, which ICANN reserves for private networks.
pub fn is_never_public(name: &DomainName) -> bool {
    const TOPS: [&str; 7] = ["test", "example", "invalid", "localhost", "local", "onion", "internal"];
    name.as_str().rsplit('.').next().is_some_and(|top| TOPS.contains(&top))
}

/// The organizational domain of a name (RFC 7489 3.2): one label below a public suffix, or the name itself if there is
/// none.
pub fn organizational_domain(name: &DomainName) -> DomainName {
    let found = psl::domain(name.as_str().as_bytes());
    let found = found.and_then(|domain| std::str::from_utf8(domain.as_bytes()).ok()?.parse().ok());
    found.unwrap_or_else(|| name.clone())
}

/// RFC 3696 2: a top-level domain is not all numeric.
fn is_all_numeric(name: &DomainName) -> bool {
    name.as_str().rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_people_write_them() {
        for (text, name) in [
            ("Acme.COM", "acme.com"),
            (" mail.acme.co.uk. ", "mail.acme.co.uk"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("acme.test", "acme.test"),
            ("acme.github.io", "acme.github.io"),
        ] {
            assert_eq!(parse(text).map(|name| name.to_string()), Ok(name.to_owned()), "{text}");
        }
    }

    #[test]
    fn special_use_names_are_recognised() {
        let never = |text: &str| is_never_public(&text.parse().unwrap());
        assert!(["a.test", "printer.local", "a.b.internal", "x.onion"].into_iter().all(never));
        assert!(!["test.com", "local.net", "example.org"].into_iter().any(never));
    }

    #[test]
    fn invalid_sending_domains_are_explained() {
        for (text, why) in [
            ("https://acme.com/about", "must be only a domain name, like `acme.com`"),
            ("me@acme.com", "must be only a domain name, like `acme.com`"),
            ("", "must be a domain name, like"),
            ("acme", "must be a domain name, like"),
            ("a b.com", "must be a domain name, like"),
            ("192.0.2.1", "not an IP address"),
            ("2001:db8::1", "not an IP address"),
            ("com", "must be a domain name, like"),
            ("co.uk", "`co.uk` is a public suffix"),
            ("github.io", "`github.io` is a public suffix"),
            ("公司.cn", "`xn--55qx5d.cn` is a public suffix"),
        ] {
            let refused = parse(text).unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
