//! Managed unsubscribe: the link, the header fields, the token in the text (RFC 2369, RFC 8058).
//!
//! The link is a path `/u/{token}` on a host of ours or of the customer's; the token says, signed, who
//! unsubscribes (the first `to`), whose mail it was, which email, and from what: from a category, or,
//! where a transactional email asked for the link, from everything.

use std::borrow::Cow;

use crate::address::Address;
use crate::email::Category;
use crate::id::{AccountId, EmailId};
use crate::link::{LinkKey, Purpose};
use crate::suppression::OPTIONAL;

/// The path before the token.
pub const PATH: &str = "/u/";
/// What stands in a subject or a body for the link, inside its braces.
const TOKEN: &str = "unsubscribe_url";

/// From what a link unsubscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// From everything: a suppression.
    All,
    /// From a category: an opt-out.
    Category(Category),
}

impl Scope {
    /// What an email of this category is unsubscribed from.
    #[must_use]
    pub fn of(category: Category) -> Self {
        if OPTIONAL.contains(&category) { Self::Category(category) } else { Self::All }
    }

    fn byte(self) -> u8 {
        match self {
            Self::All | Self::Category(Category::Transactional) => 0,
            Self::Category(Category::Product) => 1,
            Self::Category(Category::Newsletter) => 2,
        }
    }

    fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::All),
            1 => Some(Self::Category(Category::Product)),
            2 => Some(Self::Category(Category::Newsletter)),
            _ => None,
        }
    }
}

/// What a link says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Whose mail it was.
    pub account: AccountId,
    /// Which.
    pub email: EmailId,
    /// From what.
    pub scope: Scope,
    /// Who unsubscribes.
    pub address: Address,
}

/// Makes unsubscribe links.
#[derive(Debug, Clone)]
pub struct Unsubscribe {
    /// Signs them.
    pub key: LinkKey,
    /// Where they lead, without a slash at its end.
    pub base_url: String,
}

impl Unsubscribe {
    /// The link of an email.
    #[must_use]
    pub fn link(&self, account: AccountId, email: EmailId, first_to: &Address, category: Category) -> String {
        let bound = Bound { account, email, scope: Scope::of(category), address: first_to.clone() };
        format!("{}{PATH}{}", self.base_url.trim_end_matches('/'), seal(&self.key, &bound))
    }
}

/// The token that says this.
#[must_use]
pub fn seal(key: &LinkKey, bound: &Bound) -> String {
    let mut payload = Vec::with_capacity(64);
    payload.extend_from_slice(&bound.account.to_bytes());
    payload.extend_from_slice(&bound.email.to_bytes());
    payload.push(bound.scope.byte());
    payload.extend_from_slice(bound.address.to_string().as_bytes());
    key.seal(Purpose::Unsubscribe, &payload)
}

/// What a token says; `None` when we did not make it.
#[must_use]
pub fn open(key: &LinkKey, token: &str) -> Option<Bound> {
    let payload = key.open(Purpose::Unsubscribe, token)?;
    let (account, rest) = payload.split_first_chunk::<16>()?;
    let (email, rest) = rest.split_first_chunk::<16>()?;
    let (scope, address) = rest.split_first()?;
    Some(Bound {
        account: AccountId::from_bytes(*account),
        email: EmailId::from_bytes(*email),
        scope: Scope::of_byte(*scope)?,
        address: std::str::from_utf8(address).ok()?.parse().ok()?,
    })
}

/// Whether a header field is one of those that say how to unsubscribe.
#[must_use]
pub fn is_its_header(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("list-unsubscribe")
}

/// The header fields of an email with this link: one click, by a POST (RFC 8058 3.1).
#[must_use]
pub fn headers(url: &str) -> [(&'static str, String); 2] {
    [
        ("List-Unsubscribe", format!("<{url}>")),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
    ]
}

/// Puts the link where a text says `{{unsubscribe_url}}` (spaces inside the braces, and three braces, do
/// not matter).
#[must_use]
pub fn replace<'a>(text: &'a str, url: &str) -> Cow<'a, str> {
    let mut out = String::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(found) = rest.get(from..).and_then(|later| later.find("{{")) {
        let start = from + found;
        match rest.get(start..).and_then(length_of_token) {
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

/// The link that the value of a `List-Unsubscribe` field of ours holds.
#[must_use]
pub fn link_in(value: &str) -> Option<&str> {
    value.trim().strip_prefix('<')?.strip_suffix('>')
}

/// Puts the token where a text has the link: another email made of it gets a link of its own.
#[must_use]
pub fn restore(text: &str, url: &str) -> String {
    text.replace(url, &format!("{{{{{TOKEN}}}}}"))
}

/// How long the token is that a text begins with.
fn length_of_token(text: &str) -> Option<usize> {
    let (open, close) = if text.starts_with("{{{") { (3, "}}}") } else { (2, "}}") };
    let inner = text.get(open..)?;
    let rest =
        inner.trim_start_matches(' ').strip_prefix(TOKEN)?.trim_start_matches(' ').strip_prefix(close)?;
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    fn unsubscribe() -> Unsubscribe {
        Unsubscribe { key: LinkKey::new([3; 32]), base_url: "https://api.example.test/".to_owned() }
    }

    #[test]
    fn a_link_says_who_and_from_what() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (account, email) = (AccountId::new(now, 1), EmailId::new(now, 2));
        let address: Address = "Ada.L@example.net".parse().unwrap();
        let makes = unsubscribe();
        for (category, scope) in [
            (Category::Transactional, Scope::All),
            (Category::Product, Scope::Category(Category::Product)),
            (Category::Newsletter, Scope::Category(Category::Newsletter)),
        ] {
            let url = makes.link(account, email, &address, category);
            let token = url.strip_prefix("https://api.example.test/u/").unwrap();
            let bound = Bound { account, email, scope, address: address.clone() };
            assert_eq!(open(&makes.key, token), Some(bound));
            assert_eq!(open(&LinkKey::new([4; 32]), token), None);
        }
        assert_eq!(open(&makes.key, &makes.key.seal(Purpose::Open, b"x")), None);
        assert_eq!(open(&makes.key, &makes.key.seal(Purpose::Unsubscribe, b"short")), None);
    }

    #[test]
    fn the_longest_address_makes_a_header_line_that_may_be_sent() {
        let label = "d".repeat(60);
        let domain = format!("{label}.{label}.{label}");
        let address: Address = format!("{}@{domain}", "l".repeat(64)).parse().unwrap();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let url =
            unsubscribe().link(AccountId::new(now, 1), EmailId::new(now, 2), &address, Category::Product);
        // RFC 5322 2.1.1.
        assert!(headers(&url)[0].1.len() + "List-Unsubscribe: ".len() < 998);
        assert!(url.is_ascii() && !url.contains(' '));
    }

    #[test]
    fn the_token_is_replaced_wherever_it_stands() {
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
            assert_eq!(replace(text, "URL"), replaced, "{text}");
        }
    }

    proptest! {
        #[test]
        fn texts_without_the_token_stay(text in "[{} a-z\u{e9}]{0,40}") {
            prop_assert_eq!(replace(&text, "URL"), text.as_str());
        }
    }
}
