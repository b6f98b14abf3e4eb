//! Managed unsubscribe: the link, the header fields, the placeholder in texts (RFC 2369, RFC 8058).
//!
//! The link is a path `/u/{token}` on a host of the service or the customer. The signed token names the address that
//! unsubscribes (the first `to`), the account, the email, and the scope: a category, or everything if a transactional
//! email contained the link.

use std::borrow::Cow;

use message::address::Address;

use crate::email::Category;
use crate::id::{AccountId, EmailId};
use crate::signed_token::{TokenKey, TokenPurpose};
use crate::suppression::OPTIONAL_CATEGORIES;

/// Path before the token.
pub const PATH: &str = "/u/";
/// Name of the placeholder in a subject or body.
const PLACEHOLDER: &str = "unsubscribe_url";

/// Scope of an unsubscribe link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsubscribeScope {
    /// All email: creates a suppression.
    All,
    /// One category: creates an opt-out.
    Category(Category),
}

impl UnsubscribeScope {
    /// The scope for emails of a category.
    pub fn for_category(category: Category) -> Self {
        if OPTIONAL_CATEGORIES.contains(&category) { Self::Category(category) } else { Self::All }
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::All | Self::Category(Category::Transactional) => 0,
            Self::Category(Category::Product) => 1,
            Self::Category(Category::Newsletter) => 2,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::All),
            1 => Some(Self::Category(Category::Product)),
            2 => Some(Self::Category(Category::Newsletter)),
            _ => None,
        }
    }
}

/// Contents of an unsubscribe token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsubscribeToken {
    pub account: AccountId,
    pub email: EmailId,
    pub scope: UnsubscribeScope,
    pub address: Address,
}

#[derive(Debug, Clone)]
pub struct UnsubscribeLinks {
    /// Key that signs the tokens.
    pub key: TokenKey,
    /// Base URL without a trailing slash.
    pub base_url: String,
}

impl UnsubscribeLinks {
    pub fn link(&self, account: AccountId, email: EmailId, first_to: &Address, category: Category) -> String {
        let contents = UnsubscribeToken {
            account,
            email,
            scope: UnsubscribeScope::for_category(category),
            address: first_to.clone(),
        };
        format!("{}{PATH}{}", self.base_url.trim_end_matches('/'), sign_token(&self.key, &contents))
    }
}

pub fn sign_token(key: &TokenKey, contents: &UnsubscribeToken) -> String {
    let mut payload = Vec::with_capacity(64);
    payload.extend_from_slice(&contents.account.to_bytes());
    payload.extend_from_slice(&contents.email.to_bytes());
    payload.push(contents.scope.to_byte());
    payload.extend_from_slice(contents.address.to_string().as_bytes());
    key.sign(TokenPurpose::Unsubscribe, &payload)
}

/// Verifies and parses a token; `None` if its signature is invalid.
pub fn verify_token(key: &TokenKey, token: &str) -> Option<UnsubscribeToken> {
    let payload = key.verify(TokenPurpose::Unsubscribe, token)?;
    let (account, rest) = payload.split_first_chunk::<16>()?;
    let (email, rest) = rest.split_first_chunk::<16>()?;
    let (scope, address) = rest.split_first()?;
    Some(UnsubscribeToken {
        account: AccountId::from_bytes(*account),
        email: EmailId::from_bytes(*email),
        scope: UnsubscribeScope::from_byte(*scope)?,
        address: std::str::from_utf8(address).ok()?.parse().ok()?,
    })
}

/// Returns whether a header field is `List-Unsubscribe` or `List-Unsubscribe-Post`.
pub fn is_unsubscribe_header(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("list-unsubscribe")
}

/// Header fields with this link, for one-click unsubscribe by POST (RFC 8058 3.1).
pub fn headers(url: &str) -> [(&'static str, String); 2] {
    [("List-Unsubscribe", format!("<{url}>")), ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned())]
}

/// Replaces `{{unsubscribe_url}}` in a text by the link. Spaces inside the braces, and triple braces, are accepted.
pub fn insert_link<'a>(text: &'a str, url: &str) -> Cow<'a, str> {
    let mut out = String::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(found) = rest.get(from..).and_then(|later| later.find("{{")) {
        let start = from + found;
        match rest.get(start..).and_then(placeholder_length) {
            Some(length) => {
                out.push_str(&rest[..start]);
                out.push_str(url);
                rest = &rest[start + length..];
                from = 0;
            }
            None => from = start + 1,
        }
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The link in a `List-Unsubscribe` field created by [`headers`].
pub fn link_from_header(value: &str) -> Option<&str> {
    value.trim().strip_prefix('<')?.strip_suffix('>')
}

/// Replaces the link in a text by the placeholder, so that a copy of the email gets its own link.
pub fn restore_placeholder(text: &str, url: &str) -> String {
    text.replace(url, &format!("{{{{{PLACEHOLDER}}}}}"))
}

/// Length of the placeholder at the start of a text.
fn placeholder_length(text: &str) -> Option<usize> {
    let (open, close) = if text.starts_with("{{{") { (3, "}}}") } else { (2, "}}") };
    let inner = text.get(open..)?;
    let rest = inner.trim_start_matches(' ').strip_prefix(PLACEHOLDER)?.trim_start_matches(' ').strip_prefix(close)?;
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    fn unsubscribe() -> UnsubscribeLinks {
        UnsubscribeLinks { key: TokenKey::new([3; 32]), base_url: "https://api.example.test/".to_owned() }
    }

    #[test]
    fn a_link_identifies_recipient_and_category() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (account, email) = (AccountId::new(now, 1), EmailId::new(now, 2));
        let address: Address = "Ada.L@example.net".parse().unwrap();
        let makes = unsubscribe();
        for (category, scope) in [
            (Category::Transactional, UnsubscribeScope::All),
            (Category::Product, UnsubscribeScope::Category(Category::Product)),
            (Category::Newsletter, UnsubscribeScope::Category(Category::Newsletter)),
        ] {
            let url = makes.link(account, email, &address, category);
            let token = url.strip_prefix("https://api.example.test/u/").unwrap();
            let bound = UnsubscribeToken { account, email, scope, address: address.clone() };
            assert_eq!(verify_token(&makes.key, token), Some(bound));
            assert_eq!(verify_token(&TokenKey::new([4; 32]), token), None);
        }
        assert_eq!(verify_token(&makes.key, &makes.key.sign(TokenPurpose::Open, b"x")), None);
        assert_eq!(verify_token(&makes.key, &makes.key.sign(TokenPurpose::Unsubscribe, b"short")), None);
    }

    #[test]
    fn the_longest_address_fits_a_header_line() {
        let label = "d".repeat(60);
        let domain = format!("{label}.{label}.{label}");
        let address: Address = format!("{}@{domain}", "l".repeat(64)).parse().unwrap();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let url = unsubscribe().link(AccountId::new(now, 1), EmailId::new(now, 2), &address, Category::Product);
        // RFC 5322 2.1.1.
        assert!(headers(&url)[0].1.len() + "List-Unsubscribe: ".len() < 998);
        assert!(url.is_ascii() && !url.contains(' '));
    }

    #[test]
    fn the_token_is_replaced_everywhere() {
        for (text, replaced) in [
            ("", ""),
            ("plain {{name}}", "plain {{name}}"),
            ("{{unsubscribe_url}}", "URL"),
            ("<a href=\"{{unsubscribe_url}}\">x</a> {{ unsubscribe_url }}", "<a href=\"URL\">x</a> URL"),
            ("{{{unsubscribe_url}}}!", "URL!"),
            ("{{{{unsubscribe_url}}}}", "{URL}"),
            ("{{unsubscribe_url}", "{{unsubscribe_url}"),
            ("{{unsubscribe_urls}}", "{{unsubscribe_urls}}"),
            ("{{ {{unsubscribe_url}} }}", "{{ URL }}"),
        ] {
            assert_eq!(insert_link(text, "URL"), replaced, "{text}");
        }
    }

    proptest! {
        #[test]
        fn texts_without_the_token_are_unchanged(text in "[{} a-z\u{e9}]{0,40}") {
            prop_assert_eq!(insert_link(&text, "URL"), text.as_str());
        }
    }
}
