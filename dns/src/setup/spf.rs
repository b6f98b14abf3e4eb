//! SPF records as text: which texts are one, and their terms (RFC 7208 4.5, 4.6, 12).
//!
//! [`Terms::parse`] says in words what is wrong with a record, [`walk`] counts what a receiver has to look
//! up for it, [`merge`] puts ours into what is there.

pub(crate) mod merge;
pub(crate) mod walk;

use std::net::{Ipv4Addr, Ipv6Addr};

/// RFC 7208 3.4 asks for 450 bytes, so that an answer fits a packet; what is much longer is not read.
const RECORD_BYTES_MAX: usize = 4_096;

/// Whether a text is an SPF record, to a receiver (RFC 7208 4.5).
pub(crate) fn is_record(text: &str) -> bool {
    let mut words = text.split(' ');
    words.next().is_some_and(|version| version.eq_ignore_ascii_case("v=spf1"))
}

/// What one of our own records passes mail by: its `include:` terms.
pub(crate) fn mechanisms(record: &str) -> Vec<String> {
    let words = record.split_whitespace().map(str::to_ascii_lowercase);
    words.filter(|word| word.starts_with("include:")).collect()
}

/// Whether a text is meant to be one, and is not.
pub(crate) fn is_nearly_record(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '=').take(16).collect();
    let bare = bare.to_ascii_lowercase();
    !is_record(text) && (bare.starts_with("v=spf") || bare.starts_with("vspf1") || bare.starts_with("spf1"))
}

/// One mechanism or modifier that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Term {
    /// `all`: nothing behind it counts.
    All { qualifier: char },
    /// `include`.
    Include { qualifier: char, host: String },
    /// `a` or `mx`, of a host or of the domain itself.
    Hosts { mail: bool, host: Option<String> },
    /// `ptr`.
    Ptr,
    /// `exists`.
    Exists { host: String },
    /// `ip4` or `ip6`.
    Network,
    /// `redirect=`.
    Redirect { host: String },
    /// `exp=` and modifiers that nobody knows: no matter.
    Other,
}

/// A record's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms(pub(crate) Vec<Term>);

impl Terms {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence.
    pub(crate) fn parse(record: &str) -> Result<Self, String> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(format!("it is {} bytes long, and receivers take some 450", record.len()));
        }
        let words = record.split_whitespace().skip(1);
        let terms = words.map(term).collect::<Result<Vec<Term>, String>>()?;
        let redirects = terms.iter().filter(|term| matches!(term, Term::Redirect { .. })).count();
        if redirects > 1 {
            return Err("it has \"redirect=\" twice, which may stand there once".to_owned());
        }
        Ok(Self(terms))
    }

    /// What a receiver reads: up to `all`; a `redirect=` only where there is no `all` (RFC 7208 5.1, 6.1).
    pub(crate) fn read(&self) -> impl Iterator<Item = &Term> {
        let all = self.0.iter().position(|term| matches!(term, Term::All { .. }));
        let end = all.map_or(self.0.len(), |at| at + 1);
        self.0
            .iter()
            .enumerate()
            .filter(move |(n, term)| match term {
                Term::Redirect { .. } => all.is_none(),
                _ => *n < end,
            })
            .map(|(_, term)| term)
    }

    /// Whether mail passes by this term itself: where it counts, and without another qualifier.
    pub(crate) fn passes(&self, include: &str) -> bool {
        let is =
            |host: &str| include.strip_prefix("include:").is_some_and(|our| our.eq_ignore_ascii_case(host));
        // The first that matches decides (RFC 7208 4.6.2).
        let first = self.read().find(|term| matches!(term, Term::Include { host, .. } if is(host)));
        matches!(first, Some(Term::Include { qualifier: '+', .. }))
    }

    /// How many of the terms that a receiver reads ask the DNS (RFC 7208 4.6.4); what they include asks further.
    pub(crate) fn lookups(&self) -> usize {
        let asks = |term: &&Term| !matches!(term, Term::All { .. } | Term::Network | Term::Other);
        self.read().filter(asks).count()
    }

    /// The qualifier of `all`.
    pub(crate) fn all(&self) -> Option<char> {
        self.0.iter().find_map(|term| match term {
            Term::All { qualifier } => Some(*qualifier),
            _ => None,
        })
    }

    /// Whether another record has the last word.
    pub(crate) fn redirects(&self) -> bool {
        self.read().any(|term| matches!(term, Term::Redirect { .. }))
    }
}

/// Whether a host is known only when mail comes (RFC 7208 7).
pub(crate) fn has_macro(host: &str) -> bool {
    host.contains('%')
}

fn term(word: &str) -> Result<Term, String> {
    let wrong = |why: &str| Err(format!("\"{}\" {why}", super::text::short(word)));
    if word.to_ascii_lowercase().starts_with("v=spf1") {
        return wrong("stands in the middle of it: two records were joined in one");
    }
    if word.ends_with([',', ';']) {
        return wrong("ends in a mark that does not belong there: terms are parted by spaces alone");
    }
    let mechanism = word.find([':', '/']).unwrap_or(word.len());
    if let Some(equals) = word.find('=').filter(|at| *at < mechanism) {
        return modifier(word, equals).map_or_else(wrong, Ok);
    }
    let (qualifier, word_bare) = match word.chars().next() {
        Some(sign @ ('+' | '-' | '~' | '?')) => (sign, word.get(1..).unwrap_or_default()),
        _ => ('+', word),
    };
    let at = word_bare.find([':', '/']).unwrap_or(word_bare.len());
    let (name, rest) = word_bare.split_at(at);
    let value = rest.strip_prefix(':');
    let host = || value.map(|host| host.trim_end_matches('.').to_ascii_lowercase()).filter(|h| !h.is_empty());
    match name.to_ascii_lowercase().as_str() {
        "all" if rest.is_empty() => Ok(Term::All { qualifier }),
        "all" => wrong("is wrong: \"all\" takes nothing behind it"),
        "include" => match host().filter(|host| !host.contains('/')) {
            Some(host) => Ok(Term::Include { qualifier, host }),
            None => wrong("names no domain: it is written \"include:example.com\""),
        },
        "exists" => match host() {
            Some(host) => Ok(Term::Exists { host }),
            None => wrong("names no domain"),
        },
        mechanism @ ("a" | "mx") => hosts(mechanism == "mx", rest).map_or_else(wrong, Ok),
        "ptr" => Ok(Term::Ptr),
        "ip4" if is_network(value, 32, |ip| ip.parse::<Ipv4Addr>().is_ok()) => Ok(Term::Network),
        "ip6" if is_network(value, 128, |ip| ip.parse::<Ipv6Addr>().is_ok()) => Ok(Term::Network),
        "ip4" => wrong("is no IPv4 address or network: it is written \"ip4:192.0.2.0/24\""),
        "ip6" => wrong("is no IPv6 address or network: it is written \"ip6:2001:db8::/32\""),
        "ip" | "ipv4" | "ipv6" => wrong("is nothing that SPF knows: write \"ip4:\" or \"ip6:\""),
        _ => wrong("is nothing that SPF knows"),
    }
}

fn modifier(word: &str, equals: usize) -> Result<Term, &'static str> {
    let (name, value) = word.split_at(equals);
    let host = value.trim_start_matches('=').trim_end_matches('.').to_ascii_lowercase();
    match name.to_ascii_lowercase().as_str() {
        "redirect" if host.is_empty() => Err("names no domain"),
        "redirect" => Ok(Term::Redirect { host }),
        "include" | "a" | "mx" | "ip4" | "ip6" | "exists" | "all" => {
            Err("has \"=\" where \":\" belongs, so that receivers pass over it")
        }
        _ => Ok(Term::Other),
    }
}

/// `a`, `a:host`, `a/24`, `a:host/24//64`.
fn hosts(mail: bool, rest: &str) -> Result<Term, &'static str> {
    let (host, prefixes) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.strip_prefix(':') {
        None => None,
        Some("") => return Err("names no domain"),
        Some(host) => Some(host.trim_end_matches('.').to_ascii_lowercase()),
    };
    let (four, six) = prefixes.split_once("//").unwrap_or((prefixes, ""));
    let is_prefix = |text: &str, max| text.is_empty() || text.parse::<u8>().is_ok_and(|bits| bits <= max);
    match is_prefix(four.trim_start_matches('/'), 32) && is_prefix(six, 128) {
        true => Ok(Term::Hosts { mail, host }),
        false => Err("has a prefix length that no network has"),
    }
}

fn is_network(value: Option<&str>, bits_max: u8, is_address: impl Fn(&str) -> bool) -> bool {
    let Some(value) = value else { return false };
    let (address, bits) = value.split_once('/').map_or((value, None), |(a, bits)| (a, Some(bits)));
    is_address(address) && bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_texts_are_records() {
        for (text, is, nearly) in [
            ("v=spf1 -all", true, false),
            ("V=SPF1 -all", true, false),
            ("v=spf1", true, false),
            ("v=spf1; -all", false, true),
            ("v=spf1include:a.example -all", false, true),
            ("\"v=spf1 -all\"", false, true),
            ("v = spf1 -all", false, true),
            ("spf1 -all", false, true),
            ("v=spf2.0/pra -all", false, true),
            ("v=DMARC1; p=none", false, false),
            ("", false, false),
        ] {
            assert_eq!((is_record(text), is_nearly_record(text)), (is, nearly), "{text}");
        }
    }

    #[test]
    fn terms_and_what_is_wrong_with_them() {
        for good in [
            "v=spf1 a mx a:h.example/24//64 mx:h.example/24 ptr ip4:192.0.2.1 ip4:192.0.2.0/24 -all",
            "v=spf1 ip6:2001:db8::/32 exists:%{i}._x.example ?include:a.example. redirect=b.example",
            "v=spf1   +A  ~All  exp=why.example unknown=thing",
        ] {
            assert!(Terms::parse(good).is_ok(), "{good}");
        }
        let long = format!("v=spf1 {}-all", "a ".repeat(20_000));
        for (bad, why) in [
            (long.as_str(), "it is 40011 bytes long"),
            ("v=spf1 ip4:192.0.2.0/33 -all", "no IPv4"),
            ("v=spf1 ip4 -all", "no IPv4"),
            ("v=spf1 ip4:2001:db8::1 -all", "no IPv4"),
            ("v=spf1 ip:192.0.2.1 -all", "write \"ip4:\""),
            ("v=spf1 include: -all", "names no domain"),
            ("v=spf1 include -all", "names no domain"),
            ("v=spf1 include=a.example -all", "\"=\" where \":\""),
            ("v=spf1 include:a.example, -all", "parted by spaces"),
            ("v=spf1 -all v=spf1 mx -all", "two records were joined"),
            ("v=spf1 a/99 -all", "prefix length"),
            ("v=spf1 all:x", "takes nothing"),
            ("v=spf1 everything", "nothing that SPF knows"),
            ("v=spf1 redirect=a.example redirect=b.example", "twice"),
        ] {
            let found = Terms::parse(bad).unwrap_err();
            assert!(found.contains(why), "{bad}: {found}");
        }
    }

    #[test]
    fn nothing_behind_all_is_read() {
        let terms = Terms::parse("v=spf1 mx -all include:a.example redirect=b.example").unwrap();
        assert_eq!(terms.read().count(), 2);
        let terms = Terms::parse("v=spf1 redirect=b.example mx").unwrap();
        assert_eq!(terms.read().count(), 2);
        assert!(terms.redirects());
    }
}
