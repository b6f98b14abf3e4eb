//! The name of a sending domain, as people write it.

use thiserror::Error;

use crate::address::DomainName;

/// Why a text is no name to send from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendingDomainError {
    /// An address of a page, or of a mailbox.
    #[error("must be a domain name alone, like `{0}`")]
    NotBareDomain(DomainName),
    /// No name at all.
    #[error("must be a domain name, like `example.com` or `mail.example.com`")]
    Form,
    /// Numbers.
    #[error("must be a domain name, not an IP address")]
    Address,
    /// Everybody's.
    #[error("`{0}` is a public suffix, below which names are given to others: add a domain of your own")]
    PublicSuffix(DomainName),
}

/// Reads a name: in any case and any script (RFC 5891), with a dot at its end or not.
///
/// A suffix under which names are given out to others is nobody's to send from, whether a registry gives them out
/// (`co.uk`) or a company to its customers (`github.io`): who sends from it speaks for all of them.
///
/// # Errors
/// [`NameRefused`].
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

/// Whether the public DNS never has the name: those of RFC 6761, RFC 6762 (`local`), RFC 7686 (`onion`), and `internal`,
/// which ICANN has set aside for private networks.
#[must_use]
pub fn is_never_public(name: &DomainName) -> bool {
    const TOPS: [&str; 7] = ["test", "example", "invalid", "localhost", "local", "onion", "internal"];
    name.as_str().rsplit('.').next().is_some_and(|top| TOPS.contains(&top))
}

/// The domain of the organisation that a name belongs to (RFC 7489 3.2): the one below a public suffix; the name
/// itself where there is none.
#[must_use]
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
    fn names_are_read_as_people_write_them() {
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
    fn what_the_public_dns_never_has() {
        let never = |text: &str| is_never_public(&text.parse().unwrap());
        assert!(["a.test", "printer.local", "a.b.internal", "x.onion"].into_iter().all(never));
        assert!(!["test.com", "local.net", "example.org"].into_iter().any(never));
    }

    #[test]
    fn what_is_no_name_to_send_from_says_why() {
        for (text, why) in [
            ("https://acme.com/about", "must be a domain name alone, like `acme.com`"),
            ("me@acme.com", "must be a domain name alone, like `acme.com`"),
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
