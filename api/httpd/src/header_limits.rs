//! Limits of the header section, and the check of `Host`.
//!
//! hyper has limits of its own, and answers what exceeds them with a bare 431, in HTTP/1 and HTTP/2. They are twice
//! as large, so that a request slightly over the limit gets the API's error envelope.

use std::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Uri, Version};

use crate::problem::{ErrorCode, Problem};

/// Most bytes of a request's target and header fields.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Most header fields of a request.
pub const FIELDS_MAX: usize = 100;
/// Bytes around a field's name and value on the wire (`: ` and CRLF).
const FIELD_EXTRA_BYTES: usize = 4;

/// Puts the host of a request into `Host`: HTTP/2 sends it in `:authority` (RFC 9113 8.3.1), and an absolute-form
/// target overrides the field (RFC 9112 3.2.2).
///
/// An HTTP/1.1 request with no `Host` field, or with several, is left unchanged: [`check_head`] refuses it.
pub fn normalize_host<B>(request: &mut Request<B>) {
    if request.version() == Version::HTTP_11 && request.headers().get_all(HOST).iter().count() != 1 {
        return;
    }
    let Some(authority) = request.uri().authority().map(http::uri::Authority::as_str) else { return };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Ok(host) = HeaderValue::from_str(host) {
        request.headers_mut().insert(HOST, host);
    }
}

/// Returns whether a request is for the host of this URL.
pub fn is_for(url: &str, headers: &HeaderMap) -> bool {
    let url: Option<Uri> = url.parse().ok();
    match (url.as_ref().and_then(Uri::host), &named_host(headers)) {
        (Some(authority), Some(named)) => authority.eq_ignore_ascii_case(named.host()),
        _ => false,
    }
}

/// Returns whether a request is for the host of this URL, or for this machine by a loopback name.
pub fn is_own_host(url: &str, headers: &HeaderMap) -> bool {
    let is_loopback = named_host(headers).is_some_and(|named| {
        let host = named.host().trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    });
    is_loopback || is_for(url, headers)
}

/// Refuses a request without exactly one valid `Host` (RFC 9112 3.2): intermediaries might choose different hosts.
fn check_host(head: &Parts) -> Result<(), Problem> {
    let refused = |text: &str| Err(Problem::new(ErrorCode::BAD_REQUEST, text));
    let mut hosts = head.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if head.version != Version::HTTP_11 => Ok(()),
        (Some(host), None) if is_host(host) => Ok(()),
        (Some(_), None) => refused("`Host` is not a host with an optional port"),
        _ => refused("HTTP/1.1 requires exactly one `Host` field (RFC 9112 3.2)"),
    }
}

/// `uri-host [":" port]` (RFC 9110 7.2), or empty.
fn is_host(host: &HeaderValue) -> bool {
    host.is_empty() || parse_host(host).is_some()
}

/// The host that a request names, with its port.
pub fn named_host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(HOST).and_then(parse_host)
}

/// Parses `uri-host [":" port]`. The parser of URIs accepts any text as a port, and leaves it out of the host.
fn parse_host(host: &HeaderValue) -> Option<Authority> {
    let named: Authority = host.to_str().ok()?.parse().ok()?;
    let port = named.as_str().strip_prefix(named.host()).filter(|_| !named.host().is_empty())?;
    let digits = if port.is_empty() { port } else { port.strip_prefix(':')? };
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(named)
}

/// Refuses a header section that is too large or has no valid `Host`.
///
/// # Errors
/// 431 `headers_too_large`, or 400.
pub fn check_head(head: &Parts) -> Result<(), Problem> {
    check_host(head)?;
    let too_large = |message: String| Err(Problem::new(ErrorCode::HEADERS_TOO_LARGE, message));
    if head.headers.len() > FIELDS_MAX {
        return too_large(format!("The request has more than {FIELDS_MAX} header fields"));
    }
    let target = head.uri.path().len() + head.uri.query().map_or(0, str::len);
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_EXTRA_BYTES);
    if target + fields.sum::<usize>() > HEAD_BYTES_MAX {
        return too_large(format!("The header section of the request is larger than {HEAD_BYTES_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_number_as_port() {
        for (host, expected) in [
            ("localhost", true),
            ("localhost:22080", true),
            ("[::1]:22080", true),
            ("localhost:22080.evil.test", false),
            ("[::1]:evil.test", false),
            ("localhost:+80", false),
            ("me@localhost", false),
            ("evil.test", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            assert_eq!(is_own_host("https://a.example", &headers), expected, "{host}");
        }
        assert!(is_host(&HeaderValue::from_static("")) && !is_host(&HeaderValue::from_static("a.example:b")));
    }

    #[test]
    fn a_request_names_one_host() {
        let host = |target: &str, field: Option<&str>| {
            let version = if field.is_some() { Version::HTTP_11 } else { Version::HTTP_2 };
            let mut request = Request::get(target).version(version).body(()).unwrap();
            if let Some(field) = field {
                request.headers_mut().insert(HOST, field.parse().unwrap());
            }
            normalize_host(&mut request);
            let hosts: Vec<_> = request.headers().get_all(HOST).iter().collect();
            hosts.into_iter().map(|host| host.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(host("/r/ada", Some("a.example")), ["a.example"]);
        assert_eq!(host("https://a.example:8443/r/ada", None), ["a.example:8443"]);
        assert_eq!(host("http://me@a.example/", Some("b.example")), ["a.example"]);
        assert!(host("/", None).is_empty());
    }
}
