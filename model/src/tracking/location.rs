//! The redirect URL of a click, in the ASCII form of a `Location` field (RFC 9110 10.2.2).
//!
//! A URL in HTML may hold any character. Like a browser, this converts the host to A-labels (RFC 5890) and
//! percent-encodes everything else that is not visible ASCII, as UTF-8. ASCII characters are unchanged.

use message::address::DomainName;
use message::percent::encode_invisible;

/// Converts a URL to ASCII.
pub fn location_value(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        _ => (host, None),
    };
    let mut out = String::with_capacity(url.len() + 16);
    out.push_str(&encode_invisible(scheme));
    out.push_str("://");
    if let Some(user) = user {
        out.push_str(&encode_invisible(user));
        out.push('@');
    }
    match host.parse::<DomainName>() {
        Ok(name) if !host.is_ascii() => out.push_str(name.as_str()),
        _ => out.push_str(&encode_invisible(host)),
    }
    if let Some(port) = port {
        out.push(':');
        out.push_str(port);
    }
    out.push_str(&encode_invisible(path));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_become_ascii_and_keep_their_target() {
        for (url, expected) in [
            ("https://a.example/?a=1&b=%20#c", "https://a.example/?a=1&b=%20#c"),
            ("HTTPS://A.example:8443/x", "HTTPS://A.example:8443/x"),
            ("https://münchen.example/straße?ü#ö", "https://xn--mnchen-3ya.example/stra%C3%9Fe?%C3%BC#%C3%B6"),
            ("https://münchen.example:81", "https://xn--mnchen-3ya.example:81"),
            ("https://a.example/a b\"<>", "https://a.example/a%20b\"<>"),
            ("https://user:pä@a.example@b.example/", "https://user:p%C3%A4@a.example@b.example/"),
            ("http://[2001:db8::1]:80/", "http://[2001:db8::1]:80/"),
            ("http://[2001:db8::1]/", "http://[2001:db8::1]/"),
            ("https://a.example\\ü", "https://a.example\\%C3%BC"),
            ("https://a..ü/x", "https://a..%C3%BC/x"),
        ] {
            assert_eq!(location_value(url), expected);
        }
    }

    proptest! {
        #[test]
        fn locations_are_visible_ascii(url in "\\PC{0,60}") {
            prop_assert!(location_value(&url).bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
