//! Redirect URIs of clients: the forms that are accepted, and their comparison.
//!
//! A URI of a request must equal a registered one, byte by byte (RFC 9700 4.1.3). Only the port of a loopback address may
//! differ, because native programs listen on any free port (RFC 8252 7.3).

const URI_BYTES_MAX: usize = 512;
/// Hosts of this machine. `localhost` is discouraged (RFC 8252 8.3), but used by many.
const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];
/// Schemes that a browser acts on itself, or that belong to other protocols.
const REFUSED_SCHEMES: [&str; 16] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "http",
    "https",
    "javascript",
    "mailto",
    "sms",
    "tel",
    "vbscript",
    "view-source",
    "ws",
];

/// A redirect URI of an accepted form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectUri<'a> {
    /// `https://` with its authority.
    Web(&'a str),
    /// `http://` with a host of this machine; the port if it has one.
    Loopback { host: &'a str, port: Option<u16>, rest: &'a str },
    /// A scheme of a program (RFC 8252 7.1).
    App(&'a str),
}

impl<'a> RedirectUri<'a> {
    /// Reads a redirect URI.
    ///
    /// # Errors
    /// The fault as text for the client's developer.
    pub fn parse(uri: &'a str) -> Result<Self, &'static str> {
        if uri.len() > URI_BYTES_MAX {
            return Err("is longer than 512 bytes");
        }
        // Also no backslash, which browsers read as a slash.
        if !uri.bytes().all(|b| {
            b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>' | b'`' | b'^' | b'{' | b'|' | b'}')
        }) {
            return Err("has characters that must be percent-encoded");
        }
        if uri.contains('#') {
            return Err("has a fragment");
        }
        if let Some(rest) = uri.strip_prefix("https://") {
            return read_authority(rest).map(Self::Web);
        }
        if let Some(rest) = uri.strip_prefix("http://") {
            return read_loopback(rest)
                .ok_or("must begin with https://, unless its host is 127.0.0.1, [::1] or localhost");
        }
        let (scheme, rest) = uri.split_once(':').ok_or("is not an absolute URI")?;
        let is_scheme =
            scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.'))
                && scheme.starts_with(|c: char| c.is_ascii_lowercase());
        match is_scheme && !REFUSED_SCHEMES.contains(&scheme) && scheme != "wss" && !rest.is_empty() {
            true => Ok(Self::App(scheme)),
            false => Err("has a scheme that is not accepted"),
        }
    }

    /// Where the browser goes, for people: a host, or the scheme of a program.
    pub fn destination(self) -> &'a str {
        match self {
            Self::Web(authority) => authority,
            Self::Loopback { host, .. } => host,
            Self::App(scheme) => scheme,
        }
    }
}

/// The authority of an https URI: a host name or address, and a port.
fn read_authority(rest: &str) -> Result<&str, &'static str> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, _) = rest.split_at(end);
    if authority.contains('@') {
        return Err("has a user name");
    }
    let (host, port) = split_port(authority);
    let is_name = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    let is_address = host.starts_with('[')
        && host.ends_with(']')
        && host.get(1..host.len() - 1).is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    match (is_name || is_address, port) {
        (true, Ok(_)) => Ok(authority),
        _ => Err("has no valid host"),
    }
}

/// Host and port of an authority; `Err` for a port that is no number.
fn split_port(authority: &str) -> (&str, Result<Option<u16>, ()>) {
    let after_address = authority.find(']').map_or(0, |end| end + 1);
    let (address, rest) = authority.split_at(after_address);
    match rest.rsplit_once(':') {
        None => (authority, Ok(None)),
        Some((name, port)) => {
            let is_number = !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
            let port = port.parse().ok().filter(|_| is_number).map(Some).ok_or(());
            (authority.get(..address.len() + name.len()).unwrap_or(authority), port)
        }
    }
}

fn read_loopback(rest: &str) -> Option<RedirectUri<'_>> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (host, port) = split_port(authority);
    LOOPBACK_HOSTS.contains(&host).then_some(RedirectUri::Loopback { host, port: port.ok()?, rest })
}

pub fn matches(registered: &str, requested: &str) -> bool {
    if registered == requested {
        return true;
    }
    match (RedirectUri::parse(registered), RedirectUri::parse(requested)) {
        (
            Ok(RedirectUri::Loopback { host, rest, .. }),
            Ok(RedirectUri::Loopback { host: other_host, rest: other_rest, .. }),
        ) => host == other_host && rest == other_rest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (uri, destination) in [
            ("https://client.example/callback", "client.example"),
            ("https://client.example:8443/cb?x=1", "client.example:8443"),
            ("https://[2001:db8::1]/cb", "[2001:db8::1]"),
            ("http://127.0.0.1/callback", "127.0.0.1"),
            ("http://127.0.0.1:33418/", "127.0.0.1"),
            ("http://[::1]:1/cb", "[::1]"),
            ("http://localhost:3000/cb", "localhost"),
            ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor"),
            ("com.example.app:/cb", "com.example.app"),
        ] {
            assert_eq!(RedirectUri::parse(uri).map(RedirectUri::destination), Ok(destination), "{uri}");
        }
        let long = format!("https://a.example/{}", "x".repeat(600));
        for uri in [
            "",
            "/callback",
            "callback",
            "https://",
            "https:///cb",
            "https://a.example/#x",
            "https://me@a.example/",
            "https://a.example:port/",
            "https://a.example:/",
            "https://a.example:99999/",
            "https://a_b/",
            "https://a.example\\@b.example/",
            "http://a.example/",
            "http://127.0.0.1.evil.example/",
            "http://127.0.0.1@evil.example/",
            "http://localhost.evil.example/",
            "http://127.0.0.1:80:80/",
            "http://127.0.0.1:/",
            "javascript:alert(1)",
            "data:text/html,x",
            "JavaScript:alert(1)",
            "file:///etc",
            "vbscript:x",
            "https://a.example/\u{e9}",
            "https://a.example/ x",
            "https://a.example/\r\nx",
            "a b:/x",
            &long,
        ] {
            assert!(RedirectUri::parse(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn only_the_port_of_a_loopback_address_may_differ() {
        for (registered, requested, is_same) in [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://a.example/cb?x=1", false),
            ("https://a.example/cb", "https://a.example:443/cb", false),
            ("https://a.example/cb", "https://A.example/cb", false),
            ("https://a.example/cb", "https://a.example.evil.example/cb", false),
            ("https://a.example/cb", "https://a.example/cb#x", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", true),
            ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb2", false),
            ("http://127.0.0.1/cb", "http://localhost:5000/cb", false),
            ("http://127.0.0.1/cb", "https://127.0.0.1:5000/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb?x=1", false),
            ("cursor://a/cb", "cursor://a/cb2", false),
        ] {
            assert_eq!(matches(registered, requested), is_same, "{registered} {requested}");
        }
    }
}
