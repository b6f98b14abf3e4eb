//! Parses SPF records (RFC 7208 4.5, 4.6, 12).
//!
//! The evaluation ([`super::evaluate`]) and the check of a customer's domain ([`crate::domain_check`]) use the same parser.
//! The check shows its error messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::domain_spec::{DomainSpec, MacroString};

/// RFC 7208 3.4 recommends at most 450 bytes, so that an answer fits into a packet. Much longer records are refused.
const RECORD_BYTES_MAX: usize = 4_096;
/// Characters of a term that an error message shows.
const WORD_CHARS_MAX: usize = 100;

/// Returns whether a text is an SPF record for receivers (RFC 7208 4.5).
pub(crate) fn is_record(text: &str) -> bool {
    text.split(' ').next().is_some_and(|version| version.eq_ignore_ascii_case("v=spf1"))
}

/// The terms of a record after its version, separated by spaces.
pub(crate) fn record_terms(record: &str) -> impl Iterator<Item = &str> {
    record.split(' ').skip(1).filter(|word| !word.is_empty())
}

/// The result of a mechanism that matches.
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

/// A mechanism or a modifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpfTerm {
    Mechanism(SpfQualifier, SpfMechanism),
    /// `redirect=`.
    Redirect(DomainSpec),
    /// `exp=`.
    Explanation(DomainSpec),
    /// An unknown modifier, which receivers ignore.
    Unknown {
        /// Its name in lower case.
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpfMechanism {
    /// `all`: later terms are ignored.
    All,
    /// `include`.
    Include(DomainSpec),
    /// `a` or `mx`, of a host or of the domain itself, with the prefix lengths of the networks.
    Hosts { mail: bool, host: Option<DomainSpec>, bits: PrefixLengths },
    /// `ptr`.
    Ptr(Option<DomainSpec>),
    /// `exists`.
    Exists(DomainSpec),
    /// `ip4` or `ip6`.
    Network(IpAddr, PrefixLengths),
}

/// Prefix lengths: the leading bits of an address that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixLengths {
    ipv4: u8,
    ipv6: u8,
}

impl PrefixLengths {
    /// Returns whether two addresses are in the same network.
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

/// The terms of a record, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpfRecord(pub(crate) Vec<SpfTerm>);

impl SpfRecord {
    /// Parses a record.
    ///
    /// # Errors
    /// The error, as the end of a sentence.
    pub(crate) fn parse(record: &str) -> Result<Self, String> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(format!("it is {} bytes long, and receivers accept about 450", record.len()));
        }
        let terms = record_terms(record).map(parse_term).collect::<Result<Vec<SpfTerm>, String>>()?;
        for (name, is_modifier) in [("redirect", is_redirect as fn(&SpfTerm) -> bool), ("exp", is_explanation)] {
            if terms.iter().filter(|term| is_modifier(term)).count() > 1 {
                return Err(format!("it has \"{name}=\" twice, but it is allowed only once"));
            }
        }
        Ok(Self(terms))
    }

    /// The terms that a receiver evaluates: those up to `all`. `redirect=` is ignored if there is an `all` (RFC 7208
    /// 5.1, 6.1).
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

    /// The target of `redirect=`, if it is effective.
    pub(crate) fn redirect(&self) -> Option<&DomainSpec> {
        self.effective_terms().find_map(|term| match term {
            SpfTerm::Redirect(target) => Some(target),
            _ => None,
        })
    }

    /// The target of `exp=`.
    pub(super) fn explanation(&self) -> Option<&DomainSpec> {
        self.0.iter().find_map(|term| match term {
            SpfTerm::Explanation(target) => Some(target),
            _ => None,
        })
    }

    pub(crate) fn all_qualifier(&self) -> Option<SpfQualifier> {
        self.0.iter().find_map(|term| match term {
            SpfTerm::Mechanism(qualifier, SpfMechanism::All) => Some(*qualifier),
            _ => None,
        })
    }

    /// The number of effective terms with a DNS lookup (RFC 7208 4.6.4), without those of included records.
    pub(crate) fn lookups(&self) -> usize {
        self.effective_terms().filter(|term| term.costs_lookup()).count()
    }
}

impl SpfTerm {
    /// Returns whether the term counts as a DNS lookup (RFC 7208 4.6.4).
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
    let printable = || word.chars().take(WORD_CHARS_MAX).map(|c| if c.is_control() { '?' } else { c });
    let wrong = |why: &str| format!("\"{}\" {why}", printable().collect::<String>());
    if !word.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(wrong("contains an invalid character"));
    }
    let mechanism = word.find([':', '/']).unwrap_or(word.len());
    let read = match word.find('=').filter(|at| *at < mechanism) {
        Some(equals) => parse_modifier(word, equals),
        None => self::parse_mechanism(word),
    };
    read.map_err(|why| match word.ends_with([',', ';']) {
        true => wrong("ends in an invalid character: terms are separated by spaces only"),
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
        "all" => return Err("is invalid: \"all\" takes no argument"),
        "include" => SpfMechanism::Include(target().ok_or("has no valid domain: write \"include:example.com\"")?),
        "exists" => SpfMechanism::Exists(target().ok_or("has no valid domain")?),
        kind @ ("a" | "mx") => parse_hosts(kind == "mx", rest)?,
        "ptr" if rest.is_empty() => SpfMechanism::Ptr(None),
        "ptr" => SpfMechanism::Ptr(Some(target().ok_or("has no valid domain")?)),
        "ip4" => parse_network(rest, 32, |ip| ip.parse::<Ipv4Addr>().ok().map(IpAddr::V4))
            .ok_or("is not an IPv4 address or network: write \"ip4:192.0.2.0/24\"")?,
        "ip6" => parse_network(rest, 128, |ip| ip.parse::<Ipv6Addr>().ok().map(IpAddr::V6))
            .ok_or("is not an IPv6 address or network: write \"ip6:2001:db8::/32\"")?,
        "ip" | "ipv4" | "ipv6" => return Err("is not an SPF term: write \"ip4:\" or \"ip6:\""),
        _ => return Err("is not an SPF term"),
    };
    Ok(SpfTerm::Mechanism(qualifier, mechanism))
}

fn parse_modifier(word: &str, equals: usize) -> Result<SpfTerm, &'static str> {
    let (name, value) = word.split_at(equals);
    let value = value.get(1..).unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "redirect" => DomainSpec::parse(value).map(SpfTerm::Redirect).ok_or("has no valid domain"),
        "exp" => DomainSpec::parse(value).map(SpfTerm::Explanation).ok_or("has no valid domain"),
        name => {
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            match is_name && MacroString::is_valid_value(value) {
                true => Ok(SpfTerm::Unknown { name: name.to_owned() }),
                false => Err("is not an SPF term"),
            }
        }
    }
}

/// Parses `a`, `a:host`, `a/24`, `a:host/24//64`. A host can contain a `/`, so prefix lengths are searched from the
/// end.
fn parse_hosts(mail: bool, rest: &str) -> Result<SpfMechanism, &'static str> {
    let lengths = rest.len() - rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == '/').len();
    // Digits before the first slash belong to the host (`a:h.example1/24`).
    let end = rest.len() - lengths;
    let end = rest.get(end..).and_then(|tail| tail.find('/')).map_or(rest.len(), |at| end + at);
    let (host, lengths) = rest.split_at_checked(end).ok_or("has no valid domain")?;
    let host = match host.strip_prefix(':') {
        None if host.is_empty() => None,
        None => return Err("is not an SPF term"),
        Some(host) => Some(DomainSpec::parse(host).ok_or("has no valid domain")?),
    };
    let (ipv4, ipv6) = match lengths.split_once("//") {
        Some((ipv4, ipv6)) => (ipv4, Some(ipv6)),
        None => (lengths, None),
    };
    let ipv4 =
        if ipv4.is_empty() { Some(32) } else { ipv4.strip_prefix('/').and_then(|bits| parse_prefix_length(bits, 32)) };
    let ipv6 = ipv6.map_or(Some(128), |bits| parse_prefix_length(bits, 128));
    let (Some(ipv4), Some(ipv6)) = (ipv4, ipv6) else { return Err("has an invalid prefix length") };
    Ok(SpfMechanism::Hosts { mail, host, bits: PrefixLengths { ipv4, ipv6 } })
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
    fn terms_are_parsed_and_errors_are_explained() {
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
            ("v=spf1 ip4:192.0.2.0/33 -all", "not an IPv4"),
            ("v=spf1 ip4:192.0.2.0/08 -all", "not an IPv4"),
            ("v=spf1 ip4 -all", "not an IPv4"),
            ("v=spf1 ip4:2001:db8::1 -all", "not an IPv4"),
            ("v=spf1 ip:192.0.2.1 -all", "write \"ip4:\""),
            ("v=spf1 include: -all", "has no valid domain"),
            ("v=spf1 include -all", "has no valid domain"),
            ("v=spf1 include:a.example/24", "has no valid domain"),
            ("v=spf1 include:a.example, -all", "separated by spaces"),
            ("v=spf1 a/99 -all", "prefix length"),
            ("v=spf1 a/ -all", "prefix length"),
            ("v=spf1 a: -all", "has no valid domain"),
            ("v=spf1 all:x", "takes no argument"),
            ("v=spf1 everything", "is not an SPF term"),
            ("v=spf1 1up=foo", "is not an SPF term"),
            ("v=spf1 x=%a", "is not an SPF term"),
            ("v=spf1 a\tmx", "invalid character"),
            ("v=spf1 redirect=a.example redirect=b.example", "twice"),
            ("v=spf1 exp=a.example exp=b.example", "twice"),
        ] {
            let found = SpfRecord::parse(bad).unwrap_err();
            assert!(found.contains(why), "{bad}: {found}");
        }
    }

    #[test]
    fn terms_after_all_are_ignored() {
        let record = SpfRecord::parse("v=spf1 mx -all include:a.example redirect=b.example").unwrap();
        assert_eq!((record.effective_terms().count(), record.redirect()), (2, None));
        let record = SpfRecord::parse("v=spf1 redirect=b.example mx").unwrap();
        assert_eq!(record.effective_terms().count(), 2);
        assert_eq!(record.redirect().map(DomainSpec::as_str), Some("b.example"));
    }

    #[test]
    fn networks_are_compared_by_their_prefix() {
        let bits = |four, six| PrefixLengths { ipv4: four, ipv6: six };
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(bits(24, 128).is_same_network(ip("192.0.2.1"), ip("192.0.2.9")));
        assert!(!bits(32, 128).is_same_network(ip("192.0.2.1"), ip("192.0.2.9")));
        assert!(bits(0, 0).is_same_network(ip("192.0.2.1"), ip("10.0.0.1")));
        assert!(bits(0, 0).is_same_network(ip("::1"), ip("2001:db8::1")));
        assert!(!bits(0, 0).is_same_network(ip("::1"), ip("10.0.0.1")));
    }
}
