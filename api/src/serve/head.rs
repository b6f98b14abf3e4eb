//! The head of a request: how large it may be, and whose host it names.
//!
//! hyper has bounds of its own and answers what exceeds them with a bare 431, in HTTP/1 and HTTP/2. They
//! are set to twice ours, so that who exceeds ours a little is told in the words of all our errors.

use http::header::HOST;
use http::request::Parts;
use http::{HeaderValue, Request};

use crate::problem::{Code, Problem};

/// Bytes of a request's target and header fields.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Header fields of a request.
pub const FIELDS_MAX: usize = 100;
/// What stands around a field's name and value on the wire.
const FIELD_EXTRA_BYTES: usize = 4;

/// Has the one host that a request names stand in `Host`, where HTTP/1 has it: HTTP/2 names it in `:authority` (RFC 9113
/// 8.3.1), and a target that is a whole address counts before the field (RFC 9112 3.2.2).
pub(super) fn settle_host<B>(request: &mut Request<B>) {
    let Some(authority) = request.uri().authority().map(http::uri::Authority::as_str) else { return };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Ok(host) = HeaderValue::from_str(host) {
        request.headers_mut().insert(HOST, host);
    }
}

/// Refuses a head that is too large.
///
/// # Errors
/// 431 `headers_too_large`.
pub fn check(head: &Parts) -> Result<(), Problem> {
    let too_large = |what: String| Err(Problem::new(Code::HEADERS_TOO_LARGE, what));
    if head.headers.len() > FIELDS_MAX {
        return too_large(format!("The request has more than {FIELDS_MAX} header fields"));
    }
    let target = head.uri.path().len() + head.uri.query().map_or(0, str::len);
    let fields =
        head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_EXTRA_BYTES);
    if target + fields.sum::<usize>() > HEAD_BYTES_MAX {
        return too_large(format!("The head of the request is larger than {HEAD_BYTES_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_host() {
        let host = |target: &str, field: Option<&str>| {
            let mut request = Request::get(target).body(()).unwrap();
            if let Some(field) = field {
                request.headers_mut().insert(HOST, field.parse().unwrap());
            }
            settle_host(&mut request);
            let hosts: Vec<_> = request.headers().get_all(HOST).iter().collect();
            hosts.into_iter().map(|host| host.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(host("/r/ada", Some("a.example")), ["a.example"]);
        assert_eq!(host("https://a.example:8443/r/ada", None), ["a.example:8443"]);
        assert_eq!(host("http://me@a.example/", Some("b.example")), ["a.example"]);
        assert!(host("/", None).is_empty());
    }
}
