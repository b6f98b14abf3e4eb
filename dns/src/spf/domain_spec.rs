//! The *domain-spec* of an SPF term: a name that can contain macros (RFC 7208 7).
//!
//! [`DomainSpec::parse`] implements the grammar, and [`DomainSpec::expand_to_name`] expands the macros from the facts
//! of a message. All functions are pure: the caller looks up the only macro that needs the DNS, `%{p}`
//! ([`MacroContext::validated`]).

use std::net::IpAddr;

use jiff::Timestamp;
use message::percent;

/// Maximum length of a name (RFC 1035 2.3.4, RFC 7208 7.3).
const NAME_BYTES_MAX: usize = 253;

/// A *domain-spec*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainSpec {
    text: String,
    pieces: MacroString,
}

/// A *macro-string*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MacroString(Vec<MacroPiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum MacroPiece {
    Text(String),
    Macro(MacroExpand),
}

/// `%{ir.-}`: a letter, the wanted parts of its value, and the delimiters between parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MacroExpand {
    letter: u8,
    /// The letter is upper-case: the value is URL-escaped.
    is_for_url: bool,
    /// Number of parts that remain, counted from the right.
    keep: Option<usize>,
    is_reversed: bool,
    delimiters: String,
}

/// The values of macros.
#[derive(Debug, Clone, Copy)]
pub(super) struct MacroContext<'a> {
    /// The client's address.
    pub(super) peer: IpAddr,
    /// The client's HELO or EHLO name.
    pub(super) hello: &'a str,
    pub(super) local: &'a str,
    pub(super) sender_domain: &'a str,
    /// The domain whose record is evaluated.
    pub(super) domain: &'a str,
    /// The client's validated name.
    pub(super) validated: &'a str,
    /// The receiver's host name and the time.
    pub(super) receiver: (&'a str, Timestamp),
}

impl DomainSpec {
    /// Parses the text after a mechanism's `:` or a modifier's `=`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (pieces, literal_end) = parse_macro_string(text, MacroUse::Name)?;
        if !literal_end.is_none_or(ends_in_top_label) {
            return None;
        }
        let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        Some(Self { text, pieces })
    }

    /// The text in lower case, without a trailing dot.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the name depends on the message.
    pub(crate) fn has_macro(&self) -> bool {
        self.text.contains('%')
    }

    /// Returns whether it contains `%{p}`.
    pub(super) fn uses_validated_name(&self) -> bool {
        self.pieces.wants_validated_name()
    }

    /// Expands the macros to a name. Labels are removed from the left of a name that is too long (RFC 7208 7.3).
    pub(super) fn expand_to_name(&self, facts: &MacroContext<'_>) -> String {
        let expanded = self.pieces.expand(facts);
        let mut name = expanded.strip_suffix('.').unwrap_or(&expanded);
        while name.len() > NAME_BYTES_MAX {
            name = name.split_once('.').map_or("", |(_, rest)| rest);
        }
        name.to_owned()
    }
}

impl MacroString {
    /// Parses the text of an `exp=`, which can also contain blanks and three more macro letters.
    pub(super) fn parse_explanation(text: &str) -> Option<Self> {
        parse_macro_string(text, MacroUse::Explanation).map(|(pieces, _)| pieces)
    }

    /// Returns whether a text is a valid value of an unknown modifier.
    pub(super) fn is_valid_value(text: &str) -> bool {
        parse_macro_string(text, MacroUse::Name).is_some()
    }

    pub(super) fn wants_validated_name(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, MacroPiece::Macro(expand) if expand.letter == b'p'))
    }

    pub(super) fn expand(&self, facts: &MacroContext<'_>) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                MacroPiece::Text(literal) => text.push_str(literal),
                MacroPiece::Macro(macro_expand) => text.push_str(&macro_expand.value(facts)),
            }
        }
        text
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MacroUse {
    Name,
    Explanation,
}

/// Parses a macro-string. Also returns the literal text at its end, unless it ends in a macro.
fn parse_macro_string(text: &str, purpose: MacroUse) -> Option<(MacroString, Option<&str>)> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    loop {
        let (literal, tail) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
        let is_plain = |b: u8| b.is_ascii_graphic() || (b == b' ' && purpose == MacroUse::Explanation);
        if !literal.bytes().all(is_plain) {
            return None;
        }
        if !literal.is_empty() {
            pieces.push(MacroPiece::Text(literal.to_owned()));
        }
        let Some(tail) = tail.strip_prefix('%') else {
            let ends_in_macro = literal.is_empty() && !pieces.is_empty();
            return Some((MacroString(pieces), (!ends_in_macro).then_some(literal)));
        };
        let sign = tail.chars().next()?;
        rest = tail.get(sign.len_utf8()..)?;
        match sign {
            '%' => pieces.push(MacroPiece::Text("%".to_owned())),
            '_' => pieces.push(MacroPiece::Text(" ".to_owned())),
            '-' => pieces.push(MacroPiece::Text("%20".to_owned())),
            '{' => {
                let (inner, after) = rest.split_once('}')?;
                pieces.push(MacroPiece::Macro(MacroExpand::parse(inner, purpose)?));
                rest = after;
            }
            _ => return None,
        }
    }
}

/// `"." toplabel [ "." ]` (RFC 7208 7.1): a dot and a label that is not a number.
fn ends_in_top_label(literal: &str) -> bool {
    let bare = literal.strip_suffix('.').unwrap_or(literal);
    bare.rsplit_once('.').is_some_and(|(_, label)| {
        label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().any(|b| !b.is_ascii_digit())
    })
}

impl MacroExpand {
    fn parse(inner: &str, purpose: MacroUse) -> Option<Self> {
        let letter = *inner.as_bytes().first()?;
        let lower = letter.to_ascii_lowercase();
        let is_known = b"slodiphv".contains(&lower);
        if !(is_known || (purpose == MacroUse::Explanation && b"crt".contains(&lower))) {
            return None;
        }
        let rest = inner.get(1..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = rest.split_at(digits);
        let keep = match digits {
            "" => None,
            // A count beyond the number of labels means all of them.
            digits => Some(digits.parse::<usize>().unwrap_or(usize::MAX)).filter(|keep| *keep > 0),
        };
        if keep.is_none() && !digits.is_empty() {
            return None;
        }
        let delimiters = rest.strip_prefix(['r', 'R']);
        let is_reversed = delimiters.is_some();
        let delimiters = delimiters.unwrap_or(rest);
        delimiters.bytes().all(|b| b".-+,/_=".contains(&b)).then(|| Self {
            letter: lower,
            is_for_url: letter.is_ascii_uppercase(),
            keep,
            is_reversed,
            delimiters: if delimiters.is_empty() { ".".to_owned() } else { delimiters.to_owned() },
        })
    }

    fn value(&self, facts: &MacroContext<'_>) -> String {
        let whole = match self.letter {
            b's' => format!("{}@{}", facts.local, facts.sender_domain),
            b'l' => facts.local.to_owned(),
            b'o' => facts.sender_domain.to_owned(),
            b'd' => facts.domain.to_owned(),
            b'i' => dotted_address(facts.peer),
            b'p' => facts.validated.to_owned(),
            b'h' => facts.hello.to_owned(),
            b'v' => if facts.peer.is_ipv4() { "in-addr" } else { "ip6" }.to_owned(),
            b'c' => facts.peer.to_string(),
            b'r' => facts.receiver.0.to_owned(),
            _ => facts.receiver.1.as_second().to_string(),
        };
        let mut parts: Vec<&str> = whole.split(|c| self.delimiters.contains(c)).collect();
        if self.is_reversed {
            parts.reverse();
        }
        let skipped = self.keep.map_or(0, |keep| parts.len().saturating_sub(keep));
        let value = parts.get(skipped..).unwrap_or_default().join(".");
        if self.is_for_url { percent::encode(&value) } else { value }
    }
}

/// An address as labels (RFC 7208 7.3); for IPv6, its nibbles.
fn dotted_address(peer: IpAddr) -> String {
    match peer {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => {
            let nibbles = six.octets().into_iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
            nibbles.map(|nibble| format!("{nibble:x}")).collect::<Vec<String>>().join(".")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7208 7.4.
    #[test]
    fn macros_are_expanded() {
        let six = "2001:db8::cb01".parse().unwrap();
        for (text, peer, name) in [
            ("%{d4}.a", "192.0.2.3".parse().unwrap(), "email.example.com.a"),
            ("%{dr}.a", "192.0.2.3".parse().unwrap(), "com.example.email.a"),
            ("%{d2r}.a", "192.0.2.3".parse().unwrap(), "example.email.a"),
            ("%{l-}.a", "192.0.2.3".parse().unwrap(), "strong.bad.a"),
            ("%{lr-}.a", "192.0.2.3".parse().unwrap(), "bad.strong.a"),
            ("%{l1r-}.a", "192.0.2.3".parse().unwrap(), "strong.a"),
            ("%{ir}.%{v}._spf.%{d2}", "192.0.2.3".parse().unwrap(), "3.2.0.192.in-addr._spf.example.com"),
            ("%{S}.%%%_%-.a", "192.0.2.3".parse().unwrap(), "strong-bad%40email.example.com.% %20.a"),
            (
                "%{ir}.%{v}._spf.%{d2}",
                six,
                "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6._spf.example.com",
            ),
        ] {
            let facts = MacroContext {
                peer,
                hello: "h.example",
                local: "strong-bad",
                sender_domain: "email.example.com",
                domain: "email.example.com",
                validated: "unknown",
                receiver: ("mx.example", Timestamp::UNIX_EPOCH),
            };
            assert_eq!(DomainSpec::parse(text).unwrap().expand_to_name(&facts), name, "{text}");
        }
    }

    #[test]
    fn invalid_domain_specs_are_refused() {
        for bad in [
            "",
            "museum",
            "museum.",
            "a.1",
            "a.b-",
            "%",
            "%a",
            "%{",
            "%{x}",
            "%{c}",
            "%{d0}",
            "%{d}com",
            "%{d!}.a",
            "a b.c",
            "ü.example",
            "a.example,",
        ] {
            assert_eq!(DomainSpec::parse(bad), None, "{bad}");
        }
        for good in ["a.b", "a.b.", "a.b-c", "%{d}", "a:b/c.example", "%{i}.%{p}", "a%%"] {
            assert!(DomainSpec::parse(good).is_some(), "{good}");
        }
    }
}
