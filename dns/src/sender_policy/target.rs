//! Where a term of an SPF record leads: a name that may have macros in it (RFC 7208 7).
//!
//! [`Target::parse`] holds the grammar (a *domain-spec*), [`expand`] fills the macros in with what is known of
//! the mail. Pure: the one macro that needs the DNS, `%{p}`, is given its value ([`Facts::validated`]).

use std::fmt::Write as _;
use std::net::IpAddr;

use jiff::Timestamp;

/// What a name may have (RFC 1035 2.3.4, RFC 7208 7.3).
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

/// `%{ir.-}`: a letter, how much of its value is wanted, and where that is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MacroExpand {
    letter: u8,
    /// The letter is a capital: what may not stand in a URL is written as in one.
    is_for_url: bool,
    /// Parts that are kept, from the right.
    keep: Option<usize>,
    is_reversed: bool,
    delimiters: String,
}

/// What macros stand for.
#[derive(Debug, Clone, Copy)]
pub(super) struct MacroContext<'a> {
    /// Who hands the mail in.
    pub(super) peer: IpAddr,
    /// What that host calls itself.
    pub(super) hello: &'a str,
    /// The sender's local part.
    pub(super) local: &'a str,
    /// The sender's domain.
    pub(super) sender_domain: &'a str,
    /// The domain whose record is read.
    pub(super) domain: &'a str,
    /// The peer's name as it was found to be true.
    pub(super) validated: &'a str,
    /// Who asks, and when.
    pub(super) receiver: (&'a str, Timestamp),
}

impl DomainSpec {
    /// Reads one, as it stands behind a mechanism's `:` or a modifier's `=`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (pieces, literal_end) = parse_macro_string(text, MacroUse::Name)?;
        if !literal_end.is_none_or(ends_in_top_label) {
            return None;
        }
        let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        Some(Self { text, pieces })
    }

    /// As it is written, in small letters and without a dot at its end.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is known only when mail comes.
    pub(crate) fn has_macro(&self) -> bool {
        self.text.contains('%')
    }

    /// Whether `%{p}` is in it.
    pub(super) fn uses_validated_name(&self) -> bool {
        self.pieces.wants_validated_name()
    }

    /// The name that it comes to. What is too long loses labels from its left (RFC 7208 7.3).
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
    /// Reads the text that an `exp=` leads to: blanks and three letters more may stand in it.
    pub(super) fn parse_explanation(text: &str) -> Option<Self> {
        parse_macro_string(text, MacroUse::Explanation).map(|(pieces, _)| pieces)
    }

    /// Whether a text may be the value of a modifier that nobody knows.
    pub(super) fn is_valid_value(text: &str) -> bool {
        parse_macro_string(text, MacroUse::Name).is_some()
    }

    pub(super) fn wants_validated_name(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, MacroPiece::Macro(one) if one.letter == b'p'))
    }

    pub(super) fn expand(&self, facts: &MacroContext<'_>) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                MacroPiece::Text(literal) => text.push_str(literal),
                MacroPiece::Macro(one) => text.push_str(&one.value(facts)),
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

/// The pieces of a macro-string, and the literal text that it ends in, unless it ends in a macro.
fn parse_macro_string(text: &str, purpose: MacroUse) -> Option<(MacroString, Option<&str>)> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    loop {
        let (literal, behind) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
        let is_plain = |b: u8| b.is_ascii_graphic() || (b == b' ' && purpose == MacroUse::Explanation);
        if !literal.bytes().all(is_plain) {
            return None;
        }
        if !literal.is_empty() {
            pieces.push(MacroPiece::Text(literal.to_owned()));
        }
        let Some(behind) = behind.strip_prefix('%') else {
            let ends_in_macro = literal.is_empty() && !pieces.is_empty();
            return Some((MacroString(pieces), (!ends_in_macro).then_some(literal)));
        };
        let sign = behind.chars().next()?;
        rest = behind.get(sign.len_utf8()..)?;
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

/// `"." toplabel [ "." ]` (RFC 7208 7.1): a dot, and a label that is no number.
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
        let small = letter.to_ascii_lowercase();
        let is_known = b"slodiphv".contains(&small);
        if !(is_known || (purpose == MacroUse::Explanation && b"crt".contains(&small))) {
            return None;
        }
        let rest = inner.get(1..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = rest.split_at(digits);
        let keep = match digits {
            "" => None,
            // More than a name has labels is all of them.
            digits => Some(digits.parse::<usize>().unwrap_or(usize::MAX)).filter(|keep| *keep > 0),
        };
        if keep.is_none() && !digits.is_empty() {
            return None;
        }
        let delimiters = rest.strip_prefix(['r', 'R']);
        let is_reversed = delimiters.is_some();
        let delimiters = delimiters.unwrap_or(rest);
        delimiters.bytes().all(|b| b".-+,/_=".contains(&b)).then(|| Self {
            letter: small,
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
        if self.is_for_url { percent_encode(&value) } else { value }
    }
}

/// An address as a row of labels (RFC 7208 7.3): of IPv6, its nibbles.
fn dotted_address(peer: IpAddr) -> String {
    match peer {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => {
            let nibbles = six.octets().into_iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
            nibbles.map(|nibble| format!("{nibble:x}")).collect::<Vec<String>>().join(".")
        }
    }
}

fn percent_encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => text.push(char::from(b)),
            // Writing to a String does not fail.
            b => {
                let _ = write!(text, "%{b:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7208 7.4.
    #[test]
    fn macros_are_filled_in() {
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
    fn what_is_no_target() {
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
