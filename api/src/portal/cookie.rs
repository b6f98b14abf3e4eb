//! The session cookie of the partner portal (RFC 6265): for this host only, `HttpOnly`, `SameSite=Lax`.
//!
//! Over TLS its name has the prefix `__Host-`, so browsers accept it only from this host. Without TLS, which is for
//! development, browsers refuse such a cookie: a second name is used there, and is ignored over TLS.

use http::HeaderMap;
use http::header::{COOKIE, HeaderValue};
use model::affiliate::portal::{PortalToken, SESSION_TTL};

use crate::state::AppState;

/// Name of the cookie over TLS.
pub const SECURE: &str = "__Host-postrider_portal";
const INSECURE: &str = "postrider_portal";

fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE } else { INSECURE }
}

/// The first well-formed session token among a request's cookies.
pub fn token(headers: &HeaderMap, is_secure: bool) -> Option<PortalToken> {
    values(headers, cookie_name(is_secure)).find_map(PortalToken::parse)
}

/// The values of all cookies with this name.
pub fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let fields = headers.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
    let pairs = fields.flat_map(|field| field.split(';'));
    pairs.filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The `Set-Cookie` value that stores the token.
pub fn set_cookie(token: &PortalToken, is_secure: bool) -> Option<HeaderValue> {
    set_cookie_field(&token.text(), SESSION_TTL.as_secs(), is_secure)
}

/// The `Set-Cookie` value that deletes the cookie.
pub fn clear_cookie(is_secure: bool) -> Option<HeaderValue> {
    set_cookie_field("", 0, is_secure)
}

fn set_cookie_field(value: &str, max_age_s: u64, is_secure: bool) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let name = cookie_name(is_secure);
    let text = format!("{name}={value}; Max-Age={max_age_s}; Path=/; HttpOnly{secure}; SameSite=Lax");
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// True if the public base URL uses TLS.
pub(super) fn is_secure(state: &AppState) -> bool {
    state.options.base_url.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::{AccountId, PartnerId, SessionId};

    #[test]
    fn cookie_is_found_by_its_exact_name() {
        let session_token = PortalToken::new(
            AccountId::from_bytes([1; 16]),
            PartnerId::from_bytes([2; 16]),
            SessionId::from_bytes([3; 16]),
            [4; 32],
        );
        let read = |fields: &[&str], is_secure| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(COOKIE, HeaderValue::from_bytes(field.as_bytes()).unwrap());
            }
            token(&headers, is_secure)
        };
        let set = set_cookie(&session_token, true).unwrap();
        let set = set.to_str().unwrap();
        assert!(set.ends_with("; Max-Age=43200; Path=/; HttpOnly; Secure; SameSite=Lax"), "{set}");
        let pair = set.split(';').next().unwrap();
        let clear = pair.replace("__Host-", "");
        assert_eq!(read(&["a=b", &format!("{SECURE}=x; {pair};c=d")], true), Some(session_token.clone()));
        assert_eq!(read(&[&clear], false), Some(session_token));
        assert_eq!((read(&[&clear], true), read(&[pair], false)), (None, None));
        assert_eq!(read(&["\u{e9}=1; ;;=;", "=", &format!("{SECURE}=")], true), None);
    }
}
