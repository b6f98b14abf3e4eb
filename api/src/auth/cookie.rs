//! The session cookie (RFC 6265).
//!
//! The prefix `__Host-` makes browsers accept the cookie only from this host, for this host, and over TLS (or on
//! localhost). Scripts cannot read it (`HttpOnly`). Browsers do not send it with state-changing requests from other
//! sites (`SameSite=Lax`).

use http::HeaderMap;
use http::header::{COOKIE, HeaderValue};
use model::user::{SESSION_AGE_MAX, SessionToken};

pub const NAME: &str = "__Host-postrider_session";

/// The session token in the request's cookies; `None` if no cookie has a well-formed token.
pub fn token(headers: &HeaderMap) -> Option<SessionToken> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))
        .find_map(SessionToken::parse)
}

pub fn cookie_pair(token: &SessionToken) -> String {
    format!("{NAME}={}", token.text())
}

/// The `Set-Cookie` header of a new session. The server enforces the session's end; `Max-Age` is only an upper bound.
pub fn set_cookie(token: &SessionToken) -> Option<HeaderValue> {
    set_cookie_field(&token.text(), SESSION_AGE_MAX.as_secs())
}

/// The `Set-Cookie` header that removes the cookie.
pub fn clear_cookie() -> Option<HeaderValue> {
    set_cookie_field("", 0)
}

fn set_cookie_field(value: &str, max_age_s: u64) -> Option<HeaderValue> {
    let text = format!("{NAME}={value}; Max-Age={max_age_s}; Path=/; HttpOnly; Secure; SameSite=Lax");
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::{AccountId, SessionId, UserId};
    use model::user::{User, UserRole};

    #[test]
    fn the_session_cookie_is_found_among_others() {
        let user = User {
            id: UserId::from_bytes([1; 16]),
            account: AccountId::from_bytes([2; 16]),
            email: "a@b.example".parse().unwrap(),
            role: UserRole::Owner,
            password: None,
            invited: false,
            link_series: 0,
            totp: None,
            created_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let session_token = SessionToken::new(user.account, user.id, SessionId::from_bytes([3; 16]), [4; 32]);
        let read = |fields: &[&str]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(COOKIE, field.parse().unwrap());
            }
            token(&headers)
        };
        let pair = cookie_pair(&session_token);
        assert_eq!(read(&[&pair]), Some(session_token.clone()));
        assert_eq!(read(&["a=b", &format!("{NAME}=x; {pair};c=d")]), Some(session_token.clone()));
        assert_eq!(read(&[&pair.replace("__Host-", "")]), None);
        assert_eq!(read(&[]), None);
        let set = set_cookie(&session_token).unwrap();
        assert!(set.to_str().unwrap().ends_with("; Path=/; HttpOnly; Secure; SameSite=Lax"));
    }
}
