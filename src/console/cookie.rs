//! The cookie of the console's session (RFC 6265).
//!
//! Cookies are not separated by port. The path keeps this one from most other services of the same host, `HttpOnly`
//! from scripts, and `SameSite=Strict` from requests that other sites cause.

use http::HeaderMap;
use http::header::COOKIE;

use crate::admin::console_access::SESSION_AGE_MAX;

const NAME: &str = "postrider_console";

/// The tokens in a request's cookies.
pub(super) fn tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let fields = headers.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
    let pairs = fields.flat_map(|field| field.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('=')).filter(|token| !token.is_empty())
}

/// Writes `Set-Cookie`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CookieWriter {
    /// The browser uses TLS.
    pub(super) is_secure: bool,
}

impl CookieWriter {
    pub(super) fn set(self, token: &str) -> String {
        self.field(token, SESSION_AGE_MAX.as_secs())
    }

    /// Removes the cookie.
    pub(super) fn clear(self) -> String {
        self.field("", 0)
    }

    fn field(self, value: &str, max_age_s: u64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{NAME}={value}; Max-Age={max_age_s}; Path={}; HttpOnly; SameSite=Strict{secure}", pages::console::PATH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; postrider_console=one;postrider_consoles=x".parse().unwrap());
        headers.append(COOKIE, "postrider_console=; postrider_console=two".parse().unwrap());
        assert_eq!(tokens(&headers).collect::<Vec<_>>(), ["one", "two"]);
        assert!(CookieWriter { is_secure: true }.set("x").ends_with("HttpOnly; SameSite=Strict; Secure"));
        assert!(CookieWriter { is_secure: false }.clear().starts_with("postrider_console=; Max-Age=0; Path=/console;"));
    }
}
