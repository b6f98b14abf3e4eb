//! Addresses: [`Address`] (`local@domain`), [`DomainName`] (the part after the `@`) and [`Mailbox`] (an address with a
//! display name).
//!
//! An [`Address`] is an envelope address (RFC 5321 4.1.2, with the UTF-8 of RFC 6531). It is parsed once, at the edge
//! of the program. A parsed address holds no CR, no LF, no angle bracket outside quotes, and nothing else that could
//! end an SMTP command early. The domain is stored in lower case with A-labels. The local part is stored as it was
//! written, quotes included.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use unicode_normalization::UnicodeNormalization as _;

/// Longest local part in bytes (RFC 5321 4.5.3.1.1). [`Address::parse_lenient`] does not apply this limit.
pub const LOCAL_PART_BYTES_MAX: usize = 64;
/// Longest domain name in bytes, without the final dot (RFC 5321 4.5.3.1.2, RFC 1035 2.3.4).
pub const NAME_BYTES_MAX: usize = 253;
/// Longest domain name that is mapped from U-labels: each of its characters has at most four bytes.
pub const NAME_TEXT_BYTES_MAX: usize = 4 * NAME_BYTES_MAX;
/// Longest address in bytes: RFC 5321 4.5.3.1.3 allows 256 with the angle brackets.
pub const ADDRESS_BYTES_MAX: usize = 254;

/// A text is not a valid address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddressError {
    /// There is no `@`, or the local part or the display name is malformed.
    #[error("an address has the form local@domain")]
    Form,
    #[error("the address is too long (64 bytes before the @, 254 in all)")]
    TooLong,
    /// The local part has a character that needs quotes, or a control character.
    #[error("the part before the @ contains an invalid character")]
    Local,
    #[error("the part after the @ is not a domain name")]
    Domain,
    /// An address literal such as `user@[192.0.2.1]`.
    #[error("an address literal is not accepted; use a domain name")]
    Literal,
}

/// A DNS name: lower case, A-labels (RFC 5890), no final dot, at least one label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(Arc<str>);

impl DomainName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Prepends labels to this name: `rp` and `example.com` make `rp.example.com`.
    pub fn child(&self, labels: &str) -> Result<Self, AddressError> {
        format!("{labels}.{}", self.0).parse()
    }

    /// The name for display, with U-labels in place of A-labels (RFC 5890 2.3.2.1). Labels that cannot be decoded are
    /// left as they are.
    pub fn to_unicode(&self) -> String {
        idna::domain_to_unicode(&self.0).0
    }

    /// The name without its first label; `None` for a single label.
    pub fn parent(&self) -> Option<Self> {
        self.0.split_once('.').map(|(_, rest)| Self(rest.into()))
    }

    /// True if this name is `top` or below it.
    pub fn is_within(&self, top: &Self) -> bool {
        self.0.strip_suffix(&*top.0).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    }

    fn is_ascii_name(text: &str) -> bool {
        !text.is_empty()
            && text.len() <= NAME_BYTES_MAX
            && text.split('.').all(|label| {
                (1..=63).contains(&label.len())
                    && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                    && !label.starts_with('-')
                    && !label.ends_with('-')
            })
            // An all-numeric last label is an IP address, not a name (RFC 3696 2).
            && !text.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
    }
}

impl FromStr for DomainName {
    type Err = AddressError;

    /// Accepts U-labels too and maps them by IDNA (UTS 46), as browsers do.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if Self::is_ascii_name(text) && !text.contains("xn--") {
            return Ok(if text.bytes().any(|b| b.is_ascii_uppercase()) {
                Self(text.to_ascii_lowercase().into())
            } else {
                Self(text.into())
            });
        }
        if text.len() > NAME_TEXT_BYTES_MAX {
            return Err(AddressError::Domain);
        }
        let ascii = idna::domain_to_ascii(text).map_err(|_| AddressError::Domain)?;
        if Self::is_ascii_name(&ascii) { Ok(Self(ascii.into())) } else { Err(AddressError::Domain) }
    }
}

crate::stored_as_text!(DomainName);

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An envelope address: `local@domain`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Address {
    local: Box<str>,
    domain: DomainName,
}

impl Address {
    /// Builds an address from a local part, quoted where quotes are needed, and a domain.
    ///
    /// # Errors
    /// [`AddressError::Form`] for an empty local part, [`AddressError::Local`] or [`AddressError::TooLong`].
    pub fn new(local: &str, domain: DomainName) -> Result<Self, AddressError> {
        if local.len() > LOCAL_PART_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        Self::without_length_limit(local, domain)
    }

    /// Parses an address from a foreign return path or from the store, without the limit of 64 bytes for the local
    /// part. Some senders use longer local parts in VERP return paths, and RFC 5321 4.5.3.1 advises to impose as few
    /// limits as possible.
    ///
    /// # Errors
    /// [`AddressError`]; [`AddressError::TooLong`] for more than 254 bytes in all.
    pub fn parse_lenient(text: &str) -> Result<Self, AddressError> {
        let (local, domain) = Self::split_at_sign(text)?;
        Self::without_length_limit(local, domain)
    }

    fn without_length_limit(local: &str, domain: DomainName) -> Result<Self, AddressError> {
        if local.is_empty() {
            return Err(AddressError::Form);
        }
        if local.len() + 1 + domain.0.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        if !is_dot_string(local) && !is_quoted_string(local) {
            return Err(AddressError::Local);
        }
        Ok(Self { local: local.into(), domain })
    }

    fn split_at_sign(text: &str) -> Result<(&str, DomainName), AddressError> {
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::Form)?;
        if domain.starts_with('[') {
            return Err(AddressError::Literal);
        }
        if domain.is_empty() || domain.ends_with('.') {
            return Err(AddressError::Domain);
        }
        if text.len() > 4 * ADDRESS_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        Ok((local, domain.parse()?))
    }

    /// The part before the `@` as it was written, quotes included.
    pub fn local_part(&self) -> &str {
        &self.local
    }

    /// The local part without quotes and backslashes. Quoting changes the spelling of a mailbox, not its identity (RFC
    /// 5321 4.1.2).
    pub fn unquoted_local_part(&self) -> Cow<'_, str> {
        let quoted = self.local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        quoted.map_or(Cow::Borrowed(&*self.local), |quoted| Cow::Owned(unquote(quoted)))
    }

    /// The canonical form of the mailbox: as [`fold_spelling`] returns it, and quoted only where quotes are required.
    ///
    /// The receiving domain may define its local parts as case-insensitive (RFC 5321 2.4), so this form is used for
    /// local domains. It also serves to recognise one person, because mailboxes that differ in case alone are rare.
    pub fn to_canonical(&self) -> Self {
        let plain = fold_spelling(&self.unquoted_local_part());
        let local = if is_dot_string(&plain) && !plain.is_empty() { plain } else { fold_spelling(&self.local) };
        Self::without_length_limit(&local, self.domain.clone()).unwrap_or_else(|_| self.clone())
    }

    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// True if the next hop must offer SMTPUTF8 for this address (RFC 6531 3.2).
    pub fn needs_smtputf8(&self) -> bool {
        !self.local.is_ascii()
    }
}

/// Folds differences of spelling: lower case in composed form (NFC, which RFC 6532 3.1 recommends), so that `É` is equal
/// to `e` with a combining accent.
pub fn fold_spelling(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        // Lower-casing can leave a letter and an accent that compose.
        false => text.to_lowercase().nfc().collect(),
    }
}

/// Returns true for `atom *("." atom)` with the UTF-8 of RFC 6531. Misplaced dots (`a..b@`, `a.@`) are accepted: large
/// providers issue such addresses and they are harmless.
pub(crate) fn is_dot_string(local: &str) -> bool {
    local.chars().all(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => true,
        '!' | '#' | '$' | '%' | '&' | '\'' | '*' | '+' | '-' | '/' | '=' | '?' | '^' | '_' | '`' | '{' | '|' | '}'
        | '~' | '.' => true,
        other => !other.is_ascii() && !other.is_control() && !other.is_whitespace(),
    })
}

/// Returns true for a quoted string: printable characters between double quotes, with `"` and `\` escaped by a
/// backslash.
fn is_quoted_string(local: &str) -> bool {
    let Some(inner) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return false,
            '\\' if !chars.next().is_some_and(|quoted| matches!(quoted, ' '..='~')) => return false,
            c if c.is_control() => return false,
            _ => {}
        }
    }
    true
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (local, domain) = Self::split_at_sign(text)?;
        Self::new(local, domain)
    }
}

/// Parses a stored address, which may have a long local part.
impl TryFrom<String> for Address {
    type Error = AddressError;
    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse_lenient(&text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.local, self.domain)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address with an optional display name, as in From and To (RFC 5322 3.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    /// The decoded display name, without quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub address: Address,
}

impl From<Address> for Mailbox {
    fn from(address: Address) -> Self {
        Self { name: None, address }
    }
}

impl FromStr for Mailbox {
    type Err = AddressError;

    /// Parses `ada@example.com`, `<ada@example.com>`, `Ada <ada@example.com>` or `"Ada L." <ada@example.com>`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse_with(text, str::parse)
    }
}

impl Mailbox {
    /// Parses a mailbox that a foreign sender wrote, whose local part may be longer than 64 bytes
    /// ([`Address::parse_lenient`]).
    pub fn foreign(text: &str) -> Result<Self, AddressError> {
        Self::parse_with(text, Address::parse_lenient)
    }

    fn parse_with(
        text: &str,
        address_of: impl Fn(&str) -> Result<Address, AddressError>,
    ) -> Result<Self, AddressError> {
        let text = text.trim();
        let Some(inner) = text.strip_suffix('>') else { return Ok(address_of(text)?.into()) };
        let (name, address) = inner.rsplit_once('<').ok_or(AddressError::Form)?;
        let name = name.trim();
        let name = match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(quoted) => unquote(quoted),
            None => name.to_owned(),
        };
        if name.chars().any(char::is_control) {
            return Err(AddressError::Form);
        }
        Ok(Self { name: Some(name).filter(|n| !n.is_empty()), address: address_of(address.trim())? })
    }
}

/// Resolves the quoted pairs of a quoted string (RFC 5322 3.2.1).
fn unquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => self.address.fmt(f),
            Some(name) => {
                let plain = name.chars().all(|c| c.is_alphanumeric() || c == ' ' || !c.is_ascii());
                if plain {
                    write!(f, "{name} <{}>", self.address)
                } else {
                    write!(f, "\"{}\" <{}>", name.replace('\\', "\\\\").replace('"', "\\\""), self.address)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_addresses_are_parsed() {
        for (given, expected) in [
            ("ada@example.com", "ada@example.com"),
            ("Ada.L@EXAMPLE.com", "Ada.L@example.com"),
            ("o'hara+tag@ex.co", "o'hara+tag@ex.co"),
            ("\"a b\"@example.com", "\"a b\"@example.com"),
            ("\"a@b\"@example.com", "\"a@b\"@example.com"),
            ("jos\u{e9}@example.com", "jos\u{e9}@example.com"),
            ("x@b\u{fc}cher.example", "x@xn--bcher-kva.example"),
            ("a..b@example.com", "a..b@example.com"),
            ("_x@_y.example", "_x@_y.example"),
        ] {
            assert_eq!(given.parse::<Address>().map(|a| a.to_string()).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn spellings_of_one_mailbox_have_one_canonical_form() {
        for (given, folded) in [
            ("Help@Example.com", "help@example.com"),
            ("\"He\\lp\"@example.com", "help@example.com"),
            ("\"John Doe\"@example.com", "\"john doe\"@example.com"),
            ("\"\"@example.com", "\"\"@example.com"),
            ("a+Tag@example.com", "a+tag@example.com"),
            ("Jose\u{301}@example.com", "jos\u{e9}@example.com"),
            ("\"JOSE\u{301} X\"@example.com", "\"jos\u{e9} x\"@example.com"),
            // Its composed form is `;`, which needs quotes.
            ("a\u{37e}@example.com", "a\u{37e}@example.com"),
        ] {
            assert_eq!(given.parse::<Address>().unwrap().to_canonical().to_string(), folded, "{given}");
        }
    }

    #[test]
    fn composed_and_decomposed_letters_have_one_spelling() {
        for c in char::MIN..=char::MAX {
            let (folded, decomposed) = (fold_spelling(&c.to_string()), c.nfd().collect::<String>());
            assert_eq!(fold_spelling(&decomposed), folded, "{c:?}");
            assert_eq!(fold_spelling(&folded), folded, "{c:?}");
        }
        assert_eq!(fold_spelling("J\u{30c}"), fold_spelling("\u{1f0}"), "only the lower case is one character");
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for given in [
            "",
            "@",
            "a@",
            "@b",
            "a",
            "a b@example.com",
            "a\r\n@example.com",
            "a@exa mple.com",
            "<a@b.example>",
            "a@b.example\r\nRCPT TO:<c@d>",
            "a>@example.com",
            "\"a\"b\"@example.com",
            "\"a\\\"@example.com",
            "a@127.0.0.1",
            "a@[127.0.0.1]",
            "a@-x.example",
            "a@x..example",
            "a@example.com.",
            "a\u{0}@example.com",
        ] {
            assert!(given.parse::<Address>().is_err(), "{given:?}");
        }
        assert!(format!("{}@example.com", "a".repeat(65)).parse::<Address>().is_err());
    }

    #[test]
    fn lenient_parsing_accepts_a_long_local_part() {
        let long = format!("{}@example.com", "a".repeat(200));
        let foreign = Address::parse_lenient(&long).unwrap();
        assert_eq!(foreign.to_string(), long);
        assert_eq!(foreign.to_canonical(), foreign);
        assert_eq!(serde_json::from_value::<Address>(long.into()).unwrap(), foreign);
        assert_eq!(Address::parse_lenient(&format!("{}@example.com", "a".repeat(243))), Err(AddressError::TooLong));
    }

    #[test]
    fn mailboxes_round_trip() {
        for given in ["ada@example.com", "Ada <ada@example.com>", "\"Ada \\\"L\\\", x\" <ada@example.com>"] {
            assert_eq!(given.parse::<Mailbox>().unwrap().to_string(), given);
        }
        assert_eq!("<ada@example.com>".parse::<Mailbox>().unwrap().to_string(), "ada@example.com");
        assert!("Ada\r\nBcc: x <ada@example.com>".parse::<Mailbox>().is_err());
    }
}
