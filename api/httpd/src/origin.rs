//! Refuses requests from other sites that would begin or end a session.
//!
//! A request that begins a session has no session yet, so the CSRF token cannot protect it: a form of another site
//! could sign a visitor in to an account of that site's choice. Browsers send the origin of a request in
//! `Sec-Fetch-Site` (Fetch Metadata 2.3) or `Origin` (RFC 6454 7). Programs send neither, and are accepted.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

use crate::problem::{ErrorCode, Problem};

const FETCH_SITE: &str = "sec-fetch-site";

/// Refuses a request that a page of another site made the browser send.
///
/// # Errors
/// 403 `forbidden`.
pub fn check_same_site(headers: &HeaderMap, base_url: &str) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_own = match (text(FETCH_SITE), text(ORIGIN.as_str())) {
        // The browser compared the origins itself, or the request was not made by a page.
        (Some("same-origin" | "none"), _) | (None, None) => true,
        // Another host of the same domain may belong to another party.
        (Some("same-site") | None, Some(origin)) => is_same_origin(origin, text(HOST.as_str()), base_url),
        (Some(_), _) => false,
    };
    if is_own {
        return Ok(());
    }
    let text = "This form was sent from another site: open it on this site and submit it there";
    Err(Problem::new(ErrorCode::FORBIDDEN, text))
}

/// True if an origin is the request's host or the base URL. The scheme is ignored: a proxy that terminates TLS
/// connects with plain HTTP.
fn is_same_origin(origin: &str, host: Option<&str>, base_url: &str) -> bool {
    let Some(origin) = authority(origin) else { return false };
    let base = authority(base_url);
    [host.map(without_port), base].into_iter().flatten().any(|own_origin| own_origin == origin)
}

/// Host and port of an `http` or `https` URL.
fn authority(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty()).map(without_port)
}

/// In lower case, without a default port.
fn without_port(authority: &str) -> String {
    let authority_lower = authority.to_ascii_lowercase();
    let short = authority_lower.strip_suffix(":443").or_else(|| authority_lower.strip_suffix(":80"));
    short.map_or_else(|| authority_lower.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites() {
        let accepts = |fields: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "go.shop.example".parse().unwrap());
            for (name, value) in fields {
                headers.insert(*name, value.parse().unwrap());
            }
            check_same_site(&headers, "https://api.example:8443/").is_ok()
        };
        for (site, origin, is_accepted) in [
            (None, None, true),
            (None, Some("https://go.shop.example"), true),
            (None, Some("http://GO.shop.example:80"), true),
            (None, Some("https://api.example:8443"), true),
            (None, Some("https://api.example"), false),
            (None, Some("https://go.shop.example.evil.example"), false),
            (None, Some("null"), false),
            (Some("same-origin"), Some("null"), true),
            (Some("none"), None, true),
            (Some("same-site"), Some("https://www.shop.example"), false),
            (Some("same-site"), Some("https://go.shop.example"), true),
            (Some("same-site"), None, false),
            (Some("cross-site"), Some("https://go.shop.example"), false),
            (Some("anything"), None, false),
        ] {
            let site = site.map(|site| (FETCH_SITE, site));
            let origin = origin.map(|origin| ("origin", origin));
            let fields: Vec<_> = site.into_iter().chain(origin).collect();
            assert_eq!(accepts(&fields), is_accepted, "{fields:?}");
        }
    }
}
