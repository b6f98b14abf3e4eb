//! SPF records as text: which texts are one, and their terms (RFC 7208 4.5, 4.6, 12).
//!
//! The one reader of the house. A receiver reads by it ([`super::evaluate`]); the inspection of a customer's
//! domain ([`crate::setup`]) tells what is wrong by the sentences that it gives.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::target::{DomainSpec, MacroString};

/// RFC 7208 3.4 asks for 450 bytes, so that an answer fits a packet; what is much longer is not read.
const RECORD_BYTES_MAX: usize = 4_096;
/// How much of a word stands in a sentence.
const WORD_CHARS_MAX: usize = 100;

/// Whether a text is an SPF record, to a receiver (RFC 7208 4.5).
pub(crate) fn is_record(text: &str) -> bool {
    text.split(' ').next().is_some_and(|version| version.eq_ignore_ascii_case("v=spf1"))
}

/// The words of a record behind its version: one for each term. Blanks alone part them.
pub(crate) fn record_terms(record: &str) -> impl Iterator<Item = &str> {
    record.split(' ').skip(1).filter(|word| !word.is_empty())
}

/// What a mechanism's match means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpfQualifier {
    /// `+`, or nothing.
    Pass,
    /// `-`.
    Fail,
    /// `~`.
    SoftFail,
    /// `?`.
    Neutral,
}

/// One mechanism or modifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpfTerm {
    /// A mechanism: what it says of those that it matches.
    Mechanism(SpfQualifier, SpfMechanism),
    /// `redirect=`.
    Redirect(DomainSpec),
    /// `exp=`.
    Explanation(DomainSpec),
    /// A modifier that nobody knows: no matter.
    Unknown {
        /// Its name, in small letters.
        name: String,
    },
}

/// Whom a mechanism matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpfMechanism {
    /// `all`: nothing behind it counts.
    All,
    /// `include`.
    Include(DomainSpec),
    /// `a` or `mx`, of a host or of the domain itself, and the networks around the addresses.
    Hosts { mail: bool, host: Option<DomainSpec>, bits: PrefixLengths },
    /// `ptr`.
    Ptr(Option<DomainSpec>),
    /// `exists`.
    Exists(DomainSpec),
    /// `ip4` or `ip6`.
    Network(IpAddr, PrefixLengths),
}

/// How many bits of an address count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixLengths {
    ipv4: u8,
    ipv6: u8,
}

impl PrefixLengths {
    /// Whether two addresses are in one network.
    pub(super) fn is_same_network(self, one: IpAddr, other: IpAddr) -> bool {
        match (one, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                let differing = one.to_bits() ^ other.to_bits();
                differing.checked_shr(32 - u32::from(self.ipv4)).unwrap_or(0) == 0
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                let differing = one.to_bits() ^ other.to_bits();
                differing.checked_shr(128 - u32::from(self.ipv6)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// A record's terms, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpfRecord(pub(crate) Vec<SpfTerm>);

impl SpfRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence.
    pub(crate) fn parse(record: &str) -> Result<Self, String> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(format!("it is {} bytes long, and receivers take some 450", record.len()));
        }
        let terms = record_terms(record).map(parse_term).collect::<Result<Vec<SpfTerm>, String>>()?;
        for (name, is) in [("redirect", is_redirect as fn(&SpfTerm) -> bool), ("exp", is_explanation)] {
            if terms.iter().filter(|term| is(term)).count() > 1 {
                return Err(format!("it has \"{name}=\" twice, which may stand there once"));
            }
        }
        Ok(Self(terms))
    }

    /// What a receiver reads: up to `all`; a `redirect=` only where there is no `all` (RFC 7208 5.1, 6.1).
    pub(crate) fn effective_terms(&self) -> impl Iterator<Item = &SpfTerm> {
        let all = self.0.iter().position(|term| matches!(term, SpfTerm::Mechanism(_, SpfMechanism::All)));
        let end = all.map_or(self.0.len(), |at| at + 1);
        self.0
            .iter()
            .enumerate()
            .filter(move |(n, term)| match term {
                SpfTerm::Redirect(_) => all.is_none(),
                _ => *n < end,
            })
            .map(|(_, term)| term)
    }

    /// Where the record is that has the last word, if another one has.
    pub(crate) fn redirect(&self) -> Option<&DomainSpec> {
        self.effective_terms().find_map(|term| match term {
            SpfTerm::Redirect(target) => Some(target),
            _ => None,
        })
    }

    /// Where the text is that says why mail fails.
    pub(super) fn explanation(&self) -> Option<&DomainSpec> {
        self.0.iter().find_map(|term| match term {
            SpfTerm::Explanation(target) => Some(target),
            _ => None,
        })
    }

    /// The qualifier of `all`.
    pub(crate) fn all_qualifier(&self) -> Option<SpfQualifier> {
        self.0.iter().find_map(|term| match term {
            SpfTerm::Mechanism(qualifier, SpfMechanism::All) => Some(*qualifier),
            _ => None,
        })
    }

    /// How many of the terms that a receiver reads ask the DNS (RFC 7208 4.6.4); what they include asks further.
    pub(crate) fn lookups(&self) -> usize {
        self.effective_terms().filter(|term| term.costs_lookup()).count()
    }
}

impl SpfTerm {
    /// Whether it costs one of the lookups that a receiver makes (RFC 7208 4.6.4).
    pub(crate) fn costs_lookup(&self) -> bool {
        match self {
            Self::Mechanism(_, SpfMechanism::All | SpfMechanism::Network(..)) => false,
            Self::Mechanism(..) | Self::Redirect(_) => true,
            Self::Explanation(_) | Self::Unknown { .. } => false,
        }
    }
}

fn is_redirect(term: &SpfTerm) -> bool {
    matches!(term, SpfTerm::Redirect(_))
}

fn is_explanation(term: &SpfTerm) -> bool {
    matches!(term, SpfTerm::Explanation(_))
}

fn parse_term(word: &str) -> Result<SpfTerm, String> {
    let shown = || word.chars().take(WORD_CHARS_MAX).map(|c| if c.is_control() { '?' } else { c });
    let wrong = |why: &str| format!("\"{}\" {why}", shown().collect::<String>());
    if !word.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(wrong("has a character in it that may not stand there"));
    }
    let mechanism = word.find([':', '/']).unwrap_or(word.len());
    let read = match word.find('=').filter(|at| *at < mechanism) {
        Some(equals) => parse_modifier(word, equals),
        None => self::parse_mechanism(word),
    };
    read.map_err(|why| match word.ends_with([',', ';']) {
        true => wrong("ends in a mark that does not belong there: terms are parted by spaces alone"),
        false => wrong(why),
    })
}

fn parse_mechanism(word: &str) -> Result<SpfTerm, &'static str> {
    let qualifier = match word.as_bytes().first() {
        Some(b'-') => SpfQualifier::Fail,
        Some(b'~') => SpfQualifier::SoftFail,
        Some(b'?') => SpfQualifier::Neutral,
        _ => SpfQualifier::Pass,
    };
    let bare = word.strip_prefix(['+', '-', '~', '?']).unwrap_or(word);
    let (name, rest) = bare.split_at(bare.find([':', '/']).unwrap_or(bare.len()));
    let target = || rest.strip_prefix(':').and_then(DomainSpec::parse);
    let mechanism = match name.to_ascii_lowercase().as_str() {
        "all" if rest.is_empty() => SpfMechanism::All,
        "all" => return Err("is wrong: \"all\" takes nothing behind it"),
        "include" => SpfMechanism::Include(target().ok_or("names no domain: it is written \"include:example.com\"")?),
        "exists" => SpfMechanism::Exists(target().ok_or("names no domain")?),
        kind @ ("a" | "mx") => parse_hosts(kind == "mx", rest)?,
        "ptr" if rest.is_empty() => SpfMechanism::Ptr(None),
        "ptr" => SpfMechanism::Ptr(Some(target().ok_or("names no domain")?)),
        "ip4" => parse_network(rest, 32, |ip| ip.parse::<Ipv4Addr>().ok().map(IpAddr::V4))
            .ok_or("is no IPv4 address or network: it is written \"ip4:192.0.2.0/24\"")?,
        "ip6" => parse_network(rest, 128, |ip| ip.parse::<Ipv6Addr>().ok().map(IpAddr::V6))
            .ok_or("is no IPv6 address or network: it is written \"ip6:2001:db8::/32\"")?,
        "ip" | "ipv4" | "ipv6" => return Err("is nothing that SPF knows: write \"ip4:\" or \"ip6:\""),
        _ => return Err("is nothing that SPF knows"),
    };
    Ok(SpfTerm::Mechanism(qualifier, mechanism))
}

fn parse_modifier(word: &str, equals: usize) -> Result<SpfTerm, &'static str> {
    let (name, value) = word.split_at(equals);
    let value = value.get(1..).unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "redirect" => DomainSpec::parse(value).map(SpfTerm::Redirect).ok_or("names no domain"),
        "exp" => DomainSpec::parse(value).map(SpfTerm::Explanation).ok_or("names no domain"),
        name => {
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            match is_name && MacroString::is_valid_value(value) {
                true => Ok(SpfTerm::Unknown { name: name.to_owned() }),
                false => Err("is nothing that SPF knows"),
            }
        }
    }
}

/// `a`, `a:host`, `a/24`, `a:host/24//64`. A host may have a `/` in it, so lengths are looked for at the end.
fn parse_hosts(mail: bool, rest: &str) -> Result<SpfMechanism, &'static str> {
    let lengths = rest.len() - rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == '/').len();
    // Digits before the first slash are part of a host (`a:h.example1/24`).
    let end = rest.len() - lengths;
    let end = rest.get(end..).and_then(|tail| tail.find('/')).map_or(rest.len(), |at| end + at);
    let (host, lengths) = rest.split_at_checked(end).ok_or("names no domain")?;
    let host = match host.strip_prefix(':') {
        None if host.is_empty() => None,
        None => return Err("is nothing that SPF knows"),
        Some(host) => Some(DomainSpec::parse(host).ok_or("names no domain")?),
    };
    let (four, six) = match lengths.split_once("//") {
        Some((four, six)) => (four, Some(six)),
        None => (lengths, None),
    };
    let four =
        if four.is_empty() { Some(32) } else { four.strip_prefix('/').and_then(|bits| parse_prefix_length(bits, 32)) };
    let six = six.map_or(Some(128), |bits| parse_prefix_length(bits, 128));
    let (Some(four), Some(six)) = (four, six) else { return Err("has a prefix length that no network has") };
    Ok(SpfMechanism::Hosts { mail, host, bits: PrefixLengths { ipv4: four, ipv6: six } })
}

fn parse_network(rest: &str, bits_max: u8, address: impl Fn(&str) -> Option<IpAddr>) -> Option<SpfMechanism> {
    let value = rest.strip_prefix(':')?;
    let (ip, bits) = match value.split_once('/') {
        None => (value, bits_max),
        Some((ip, bits)) => (ip, parse_prefix_length(bits, bits_max)?),
    };
    Some(SpfMechanism::Network(address(ip)?, PrefixLengths { ipv4: bits.min(32), ipv6: bits }))
}

/// `"0" / %x31-39 0*2DIGIT`.
fn parse_prefix_length(digits: &str, max: u8) -> Option<u8> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'));
    digits.parse().ok().filter(|bits| plain && *bits <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_and_what_is_wrong_with_them() {
        for good in [
            "v=spf1 a mx a:h.example/24//64 mx:h.example/24 ptr ip4:192.0.2.1 ip4:192.0.2.0/24 -all",
            "v=spf1 ip6:2001:db8::/32 exists:%{i}._x.example ?include:a.example. redirect=b.example",
            "v=spf1   +A  ~All  exp=why.example unknown=thing default=+",
            "v=spf1 a//64 a/0 a:foo:bar/baz.example.com a:a.example1.b/8 mx:%{d}/24",
        ] {
            assert_eq!(SpfRecord::parse(good).err(), None, "{good}");
        }
        let long = format!("v=spf1 {}-all", "a ".repeat(20_000));
        for (bad, why) in [
            (long.as_str(), "it is 40011 bytes long"),
            ("v=spf1 ip4:192.0.2.0/33 -all", "no IPv4"),
            ("v=spf1 ip4:192.0.2.0/08 -all", "no IPv4"),
            ("v=spf1 ip4 -all", "no IPv4"),
            ("v=spf1 ip4:2001:db8::1 -all", "no IPv4"),
            ("v=spf1 ip:192.0.2.1 -all", "write \"ip4:\""),
            ("v=spf1 include: -all", "names no domain"),
            ("v=spf1 include -all", "names no domain"),
            ("v=spf1 include:a.example/24", "names no domain"),
            ("v=spf1 include:a.example, -all", "parted by spaces"),
            ("v=spf1 a/99 -all", "prefix length"),
            ("v=spf1 a/ -all", "prefix length"),
            ("v=spf1 a: -all", "names no domain"),
            ("v=spf1 all:x", "takes nothing"),
            ("v=spf1 everything", "nothing that SPF knows"),
            ("v=spf1 1up=foo", "nothing that SPF knows"),
            ("v=spf1 x=%a", "nothing that SPF knows"),
            ("v=spf1 a\tmx", "may not stand there"),
            ("v=spf1 redirect=a.example redirect=b.example", "twice"),
            ("v=spf1 exp=a.example exp=b.example", "twice"),
        ] {
            let found = SpfRecord::parse(bad).unwrap_err();
            assert!(found.contains(why), "{bad}: {found}");
        }
    }

    #[test]
    fn nothing_behind_all_is_read() {
        let record = SpfRecord::parse("v=spf1 mx -all include:a.example redirect=b.example").unwrap();
        assert_eq!((record.effective_terms().count(), record.redirect()), (2, None));
        let record = SpfRecord::parse("v=spf1 redirect=b.example mx").unwrap();
        assert_eq!(record.effective_terms().count(), 2);
        assert_eq!(record.redirect().map(DomainSpec::as_str), Some("b.example"));
    }

    #[test]
    fn bits_that_count() {
        let bits = |four, six| PrefixLengths { ipv4: four, ipv6: six };
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(bits(24, 128).is_same_network(ip("192.0.2.1"), ip("192.0.2.9")));
        assert!(!bits(32, 128).is_same_network(ip("192.0.2.1"), ip("192.0.2.9")));
        assert!(bits(0, 0).is_same_network(ip("192.0.2.1"), ip("10.0.0.1")));
        assert!(bits(0, 0).is_same_network(ip("::1"), ip("2001:db8::1")));
        assert!(!bits(0, 0).is_same_network(ip("::1"), ip("10.0.0.1")));
    }
}
