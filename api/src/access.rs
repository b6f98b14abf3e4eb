//! Who is asking: `Authorization: Bearer <API_KEY>` (RFC 6750 2.1) to a [`Tenant`].
//!
//! The key is looked up by the SHA-256 of its random part, so there is no secret to compare with
//! and no timing to watch. A missing, malformed, unknown or revoked key gets one and the same answer.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mail::credential::Scope;
use queue::accept::Hall;
use store::access::{AccessError, Tenant};

use crate::problem::{Code, Problem};

/// Makes the tenant of a request, or says why not.
///
/// # Errors
/// 401 for a key that is none, 503 when the store cannot be read.
pub async fn authenticate(hall: &Hall, headers: &HeaderMap) -> Result<Tenant, Problem> {
    let secret = bearer(headers).ok_or_else(Problem::unauthorized)?;
    match store::access::by_api_key(hall.store(), secret).await {
        Ok(tenant) => Ok(tenant),
        Err(AccessError::Denied) => Err(Problem::unauthorized()),
        Err(AccessError::Unavailable(error)) => Err(Problem::outage(error)),
    }
}

/// May a key of this scope call an operation that needs `needed`?
///
/// # Errors
/// 403 `forbidden`.
pub fn permit(held: Scope, needed: Scope) -> Result<(), Problem> {
    match (held, needed) {
        (Scope::Full, _) | (Scope::Sending, Scope::Sending) => Ok(()),
        (Scope::Sending, Scope::Full) => {
            Err(Problem::new(Code::FORBIDDEN, "This API key may only send; the call needs a full key"))
        }
    }
}

/// The token of the one `Authorization` field. Two fields are none: which of them counts?
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (fields.next(), fields.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["Bearer rnl_a"]).as_deref(), Some("rnl_a"));
        assert_eq!(of(&["bearer  rnl_a "]).as_deref(), Some("rnl_a"));
        for none in [&[][..], &["rnl_a"], &["Basic rnl_a"], &["Bearer"], &["Bearer a", "Bearer a"]] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_sending_key_may_not_do_what_needs_a_full_one() {
        assert!(permit(Scope::Full, Scope::Full).is_ok() && permit(Scope::Full, Scope::Sending).is_ok());
        assert!(permit(Scope::Sending, Scope::Sending).is_ok());
        assert_eq!(permit(Scope::Sending, Scope::Full).unwrap_err().code(), Code::FORBIDDEN);
    }
}
