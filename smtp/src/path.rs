//! Splits the path behind `FROM:` and `TO:` from the command line (RFC 5321 4.1.2).
//!
//! smtp-proto is not used here: it strips the quotes of a quoted local part, drops a CR inside an address, and cannot
//! distinguish `<postmaster>` from `<>` or from a missing path. Instead the text between the angle brackets is passed
//! unchanged to [`message::address::Address`], which alone validates it.

use message::address::{Address, AddressError, DomainName};
use message::reply::{Enhanced, SmtpReply};

/// A parsed reverse path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReversePath {
    /// `<>`
    Null,
    /// `<local@domain>`
    Address(Address),
}

/// The reason why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// No `FROM:<…>` or `TO:<…>`.
    Syntax,
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The address needs SMTPUTF8. It is not validated further.
    NotAscii,
    /// The address is invalid.
    Address(AddressError),
}

/// A path and the bytes behind it.
#[derive(Debug, PartialEq, Eq)]
pub struct PathText<'a> {
    /// The text between the angle brackets, without a source route.
    pub text: &'a str,
    /// The bytes behind the closing bracket.
    pub parameters: &'a [u8],
}

/// Splits `keyword:<path>` from the start of `arguments`. Blanks after the colon are accepted, since many clients send
/// them.
///
/// # Errors
/// [`PathError::Syntax`] or [`PathError::NotUtf8`].
pub fn split_path<'a>(arguments: &'a [u8], keyword: &str) -> Result<PathText<'a>, PathError> {
    let (word, rest) = arguments.split_at_checked(keyword.len()).ok_or(PathError::Syntax)?;
    if !word.eq_ignore_ascii_case(keyword.as_bytes()) {
        return Err(PathError::Syntax);
    }
    let rest = rest.strip_prefix(b":").ok_or(PathError::Syntax)?.trim_ascii_start();
    let inner = rest.strip_prefix(b"<").ok_or(PathError::Syntax)?;
    let end = closing_bracket(inner).ok_or(PathError::Syntax)?;
    let (text, rest) = inner.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    if !matches!(rest.first(), None | Some(b' ' | b'\r' | b'\n')) {
        return Err(PathError::Syntax);
    }
    let text = std::str::from_utf8(text).map_err(|_| PathError::NotUtf8)?;
    Ok(PathText { text: strip_source_route(text), parameters: rest })
}

/// Position of the first `>` outside quotes.
fn closing_bracket(inner: &[u8]) -> Option<usize> {
    let mut quoted = false;
    let mut at = 0;
    while let Some(byte) = inner.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'>' if !quoted => return Some(at),
            b'\r' | b'\n' => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Strips a source route: it is accepted and ignored (RFC 5321 4.1.2 and appendix C).
fn strip_source_route(text: &str) -> &str {
    if text.starts_with('@') { text.split_once(':').map_or(text, |(_, rest)| rest) } else { text }
}

/// Parses the text of a reverse path.
///
/// # Errors
/// Any [`PathError`] except [`PathError::Syntax`].
pub fn parse_reverse_path(text: &str, smtputf8: bool) -> Result<ReversePath, PathError> {
    if text.is_empty() {
        return Ok(ReversePath::Null);
    }
    check_ascii(text, smtputf8)?;
    Address::parse_lenient(text).map(ReversePath::Address).map_err(PathError::Address)
}

/// Parses the text of a forward path. `postmaster` without a domain is the local postmaster (RFC 5321 4.5.1).
///
/// # Errors
/// Any [`PathError`] except [`PathError::Syntax`].
pub fn parse_forward_path(text: &str, smtputf8: bool, hostname: &DomainName) -> Result<Address, PathError> {
    if text.eq_ignore_ascii_case("postmaster") {
        return Address::new("postmaster", hostname.clone()).map_err(PathError::Address);
    }
    check_ascii(text, smtputf8)?;
    text.parse().map_err(PathError::Address)
}

fn check_ascii(text: &str, smtputf8: bool) -> Result<(), PathError> {
    if smtputf8 || text.is_ascii() { Ok(()) } else { Err(PathError::NotAscii) }
}

impl PathError {
    /// The reply to the client. `form` is the text for a syntax error. `detail` is 7 for a sender's address and 3 for a
    /// recipient's (RFC 3463 3.2).
    pub fn reply(self, form: &'static str, detail: u16) -> SmtpReply {
        let bad = |code: u16, enhanced: (u16, u16), text: String| {
            SmtpReply::new(code, Enhanced::new(5, enhanced.0, enhanced.1), text)
        };
        match self {
            Self::Syntax => bad(501, (5, 4), form.to_owned()),
            Self::NotUtf8 => bad(501, (5, 2), "The address is not UTF-8".to_owned()),
            Self::NotAscii => bad(553, (6, 7), "An address outside ASCII needs the SMTPUTF8 parameter".to_owned()),
            Self::Address(error) => bad(501, (1, detail), capitalize(error)),
        }
    }
}

fn capitalize(error: AddressError) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward_of(line: &str) -> Result<String, PathError> {
        let cut = split_path(line.as_bytes(), "TO")?;
        Ok(parse_forward_path(cut.text, true, &"mx.example".parse().unwrap())?.to_string())
    }

    #[test]
    fn valid_paths_are_parsed() {
        for (line, address) in [
            ("TO:<a@b.example>", "a@b.example"),
            ("to: <a@b.example> NOTIFY=NEVER", "a@b.example"),
            ("TO:<\"a>b\"@b.example>", "\"a>b\"@b.example"),
            ("TO:<\"a\\\">\"@b.example>", "\"a\\\">\"@b.example"),
            ("TO:<@x.example,@y.example:a@b.example>", "a@b.example"),
            ("TO:<Postmaster>", "postmaster@mx.example"),
            ("TO:<j\u{f6}@b.example>", "j\u{f6}@b.example"),
        ] {
            assert_eq!(forward_of(line).as_deref(), Ok(address), "{line}");
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        for line in [
            "TO",
            "TO:",
            "TO:a@b.example",
            "TO:<a@b.example",
            "TO<a@b.example>",
            "TO:<a@b.example>x",
            "FROM:<a@b>",
            "TO:<\"a@b.example>",
            "",
            "TO :<a@b.example>",
        ] {
            assert_eq!(forward_of(line), Err(PathError::Syntax), "{line}");
        }
        for line in ["TO:<>", "TO:<a>", "TO:<a@b@c>", "TO:<a@[127.0.0.1]>", "TO:<a b@c.example>", "TO:<a\rb@c.example>"]
        {
            assert!(forward_of(line).is_err(), "{line}");
        }
    }
}
