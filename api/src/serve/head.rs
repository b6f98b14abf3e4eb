//! The head of a request: how large it may be.
//!
//! hyper has bounds of its own and answers what exceeds them with a bare 431, in HTTP/1 and HTTP/2. They
//! are set to twice ours, so that who exceeds ours a little is told in the words of all our errors.

use http::request::Parts;

use crate::problem::{Code, Problem};

/// Bytes of a request's target and header fields.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Header fields of a request.
pub const FIELDS_MAX: usize = 100;
/// What stands around a field's name and value on the wire.
const FIELD_EXTRA_BYTES: usize = 4;

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
