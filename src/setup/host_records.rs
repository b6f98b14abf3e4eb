//! DNS records of the server's own names, and of the MTA-STS policy that it serves. The records of the sending domain
//! come from the server, which has its DKIM keys.
//!
//! ```text
//! mx1.example.net                      A, AAAA   public addresses        and their PTR records
//! rp.mx1.example.net                   MX, TXT   bounces come here; SPF of the envelope sender
//! spf.mx1.example.net                  TXT       addresses that the SPF records of sending domains include
//! *._report._dmarc.rp.mx1.example.net  TXT       permits DMARC reports about other domains (RFC 7489 7.1)
//! mta-sts, _mta-sts, _smtp._tls        of a domain that receives mail (RFC 8461, RFC 8460)
//! ```

use std::net::IpAddr;

use dns::domain_check::{DomainChecker, LookupType, RecordData, RecordSet};
use message::address::DomainName;
use message::domain_name::organizational_domain;

use crate::config::Config;
use crate::doctor::zone_lines;

/// Name that the wildcard record of DMARC reports must match.
const REPORT_PROBE: &str = "customer.example._report._dmarc";

/// A property that the records at a name must have.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expectation {
    /// The address is among them.
    Address(IpAddr),
    /// The mail host is among them.
    MailHost(DomainName),
    /// The SPF record has these terms, and may have more.
    SpfTerms(Vec<String>),
    /// A TXT record begins with this version tag.
    Version(&'static str),
    /// A PTR record has this name.
    Pointer(DomainName),
    /// The name is an alias of this host, or has one of its addresses.
    SameHost(DomainName, Vec<IpAddr>),
}

/// A record of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostRecord {
    /// Type and name, for the table.
    pub(super) label: String,
    /// Line of a zone file.
    pub(super) line: String,
    /// True: mail or the certificate depends on it.
    pub(super) required: bool,
    /// The address of a PTR record, which the provider of the address publishes.
    pub(super) reverse_of: Option<IpAddr>,
    query: HostQuery,
    expectation: Expectation,
}

/// A query whose answer shows whether a record is published.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostQuery {
    /// Name whose zone is asked.
    below: String,
    name: String,
    kind: LookupType,
}

/// State of a record in the DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RecordState {
    Published,
    Missing,
    /// Other records are published, with what to change.
    Differs(String),
    /// No name server answered, with the reason.
    Unanswered(String),
}

impl HostRecord {
    fn new(kind: &str, owner: &str, line: String, expectation: Expectation, below: &DomainName) -> Self {
        let query_kind = match &expectation {
            Expectation::Address(IpAddr::V6(_)) => LookupType::Aaaa,
            Expectation::SameHost(_, addresses) if !addresses.iter().any(IpAddr::is_ipv4) => LookupType::Aaaa,
            Expectation::Address(_) | Expectation::SameHost(..) => LookupType::A,
            Expectation::MailHost(_) => LookupType::Mx,
            Expectation::Pointer(_) => LookupType::Ptr,
            Expectation::SpfTerms(_) | Expectation::Version(_) => LookupType::Txt,
        };
        let query = HostQuery { below: below.to_string(), name: owner.to_owned(), kind: query_kind };
        Self { label: format!("{kind:<5} {owner}"), line, required: true, reverse_of: None, query, expectation }
    }

    fn optional(self) -> Self {
        Self { required: false, ..self }
    }
}

/// Name at which the MTA-STS policy of a domain is served (RFC 8461 3.3).
pub(super) fn policy_name(domain: &DomainName) -> String {
    format!("mta-sts.{domain}")
}

/// Returns whether the server's certificate is also for the policy's name, so that the policy can be published.
pub(super) fn has_policy_name(config: &Config, domain: &DomainName) -> bool {
    let name = policy_name(domain);
    config.tls.acme.iter().flat_map(|acme| &acme.names).any(|other| other.as_str() == name)
}

/// The records of the server's names.
pub(super) fn host_records(config: &Config, addresses: &[IpAddr]) -> Vec<HostRecord> {
    let hostname = &config.hostname;
    let (return_path, spf) = (config.return_path_host(), config.spf_include_host());
    let mut records = Vec::new();
    for address in addresses {
        let kind = if address.is_ipv4() { "A" } else { "AAAA" };
        let line = zone_lines::address_record(hostname, *address);
        records.push(HostRecord::new(
            kind,
            hostname.as_str(),
            line,
            Expectation::Address(*address),
            &zone_of(hostname),
        ));
    }
    let zone = zone_of(&return_path);
    let line = zone_lines::mx_record(&return_path, hostname);
    records.push(HostRecord::new("MX", return_path.as_str(), line, Expectation::MailHost(hostname.clone()), &zone));
    let policy = format!("v=spf1 include:{spf} -all");
    records.push(spf_record(&return_path, &policy));
    // The provider of a smarthost documents which addresses or names to list.
    if config.delivery.default_smarthost().is_none() {
        records.push(spf_record(&spf, &zone_lines::spf_value(addresses)));
    }
    let owner = format!("_report._dmarc.{return_path}");
    let line = zone_lines::wildcard_txt_record(&owner, "v=DMARC1");
    let mut record =
        HostRecord::new("TXT", &format!("*.{owner}"), line, Expectation::Version("v=DMARC1"), &zone).optional();
    record.query.name = format!("{REPORT_PROBE}.{return_path}");
    records.push(record);
    if config.delivery.default_smarthost().is_none() {
        records.extend(addresses.iter().map(|address| reverse_record(*address, hostname)));
    }
    records
}

/// The records of the MTA-STS policy of a domain, and of TLS reports about it.
pub(super) fn policy_records(config: &Config, domain: &DomainName, addresses: &[IpAddr]) -> Vec<HostRecord> {
    let (hostname, zone) = (&config.hostname, zone_of(domain));
    let txt = |owner: String, value: &str, version| {
        let line = format!("{owner}. {} IN TXT \"{value}\"", zone_lines::TTL_S);
        HostRecord::new("TXT", &owner, line, Expectation::Version(version), &zone).optional()
    };
    let policy = policy_name(domain);
    let line = format!("{policy}. {} IN CNAME {hostname}.", zone_lines::TTL_S);
    let same_host = Expectation::SameHost(hostname.clone(), addresses.to_vec());
    let reports = format!("v=TLSRPTv1; rua=mailto:tls-reports@{}", config.return_path_host());
    vec![
        HostRecord::new("CNAME", &policy, line, same_host, &zone),
        txt(format!("_mta-sts.{domain}"), "v=STSv1; id=1", "v=STSv1"),
        txt(format!("_smtp._tls.{domain}"), &reports, "v=TLSRPTv1"),
    ]
}

/// A name in the zone that surely exists, unlike the names to publish.
fn zone_of(name: &DomainName) -> DomainName {
    organizational_domain(name)
}

fn spf_record(owner: &DomainName, policy: &str) -> HostRecord {
    let terms = policy.split_whitespace().filter(|term| !term.ends_with("all")).map(str::to_owned).collect();
    let line = zone_lines::txt_record(owner, policy);
    HostRecord::new("TXT", owner.as_str(), line, Expectation::SpfTerms(terms), &zone_of(owner))
}

fn reverse_record(address: IpAddr, hostname: &DomainName) -> HostRecord {
    let line = zone_lines::ptr_record(address, hostname);
    let query = reverse_query(address);
    let expectation = Expectation::Pointer(hostname.clone());
    let label = format!("PTR   {address}");
    HostRecord { label, line, required: true, reverse_of: Some(address), query, expectation }
}

/// Query for the PTR record of an address. The zone is that of its network: a /24 of IPv4, a /64 of IPv6.
fn reverse_query(address: IpAddr) -> HostQuery {
    let (zone, host_labels) = if address.is_ipv4() { ("in-addr.arpa", 1) } else { ("ip6.arpa", 16) };
    let name = format!("{}.{zone}", zone_lines::reversed_address(address));
    let below = name.splitn(host_labels + 1, '.').last().unwrap_or(zone).to_owned();
    HostQuery { below, name, kind: LookupType::Ptr }
}

/// Addresses among records.
pub(super) fn addresses_of(records: &RecordSet) -> impl Iterator<Item = IpAddr> {
    records.data.iter().filter_map(|data| match data {
        RecordData::Address(address) => Some(*address),
        _ => None,
    })
}

/// Looks up records of the server, from the authoritative name servers.
pub(super) struct HostLookup<'a>(&'a DomainChecker);

impl<'a> HostLookup<'a> {
    pub(super) fn new(checker: &'a DomainChecker) -> Self {
        Self(checker)
    }

    /// Names in the PTR records of an address.
    pub(super) async fn reverse_names(&self, address: IpAddr) -> Result<Vec<String>, String> {
        let query = reverse_query(address);
        let found = self.0.lookup(&query.below, &query.name, query.kind).await.map_err(|error| error.to_string())?;
        Ok(found.data.iter().map(ToString::to_string).collect())
    }

    pub(super) async fn state(&self, record: &HostRecord) -> RecordState {
        let HostQuery { below, name, kind } = &record.query;
        match self.0.lookup(below, name, *kind).await {
            Ok(found) => evaluate(&record.expectation, &found),
            Err(error) => RecordState::Unanswered(error.to_string()),
        }
    }
}

fn evaluate(expectation: &Expectation, found: &RecordSet) -> RecordState {
    let texts = || found.texts();
    let is_met = match expectation {
        Expectation::Address(address) => addresses_of(found).any(|other| other == *address),
        Expectation::MailHost(host) => found
            .data
            .iter()
            .any(|data| matches!(data, RecordData::MailHost { host: other, .. } if other == host.as_str())),
        Expectation::SpfTerms(terms) => texts().any(|text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            terms.iter().all(|term| words.iter().any(|word| word.eq_ignore_ascii_case(term)))
        }),
        Expectation::Version(version) => {
            texts().any(|text| text.get(..version.len()).is_some_and(|start| start.eq_ignore_ascii_case(version)))
        }
        Expectation::Pointer(name) => {
            found.data.iter().any(|data| matches!(data, RecordData::Alias(other) if other == name.as_str()))
        }
        Expectation::SameHost(host, addresses) => {
            found.aliases.iter().any(|alias| alias == host.as_str())
                || addresses_of(found).any(|address| addresses.contains(&address))
        }
    };
    if is_met {
        return RecordState::Published;
    }
    // Other TXT records may be there for other purposes.
    let others: Vec<String> = match expectation {
        Expectation::SpfTerms(_) => texts().filter(|text| text.starts_with("v=spf1")).map(str::to_owned).collect(),
        Expectation::Version(_) => Vec::new(),
        _ => found.aliases.iter().cloned().chain(found.data.iter().map(ToString::to_string)).collect(),
    };
    match others.as_slice() {
        [] => RecordState::Missing,
        others => RecordState::Differs(format!("the DNS has {}", others.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration with further keys in `[tls.acme]`, and further sections.
    fn config(keys: &str) -> Config {
        let api = "[api]\nlisten = \"127.0.0.1:443\"\ntls = true\n";
        let text = format!("hostname = \"mx1.example.net\"\n{api}[tls.acme]\n{keys}");
        crate::config::from_text(&text, []).unwrap()
    }

    fn addresses() -> Vec<IpAddr> {
        vec!["203.0.113.5".parse().unwrap(), "2001:db8::5".parse().unwrap()]
    }

    #[test]
    fn the_records_are_lines_of_a_zone_file() {
        let lines: Vec<String> =
            host_records(&config(""), &addresses()).into_iter().map(|record| record.line).collect();
        assert_eq!(
            lines[..6],
            [
                "mx1.example.net. 3600 IN A 203.0.113.5",
                "mx1.example.net. 3600 IN AAAA 2001:db8::5",
                "rp.mx1.example.net. 3600 IN MX 10 mx1.example.net.",
                "rp.mx1.example.net. 3600 IN TXT \"v=spf1 include:spf.mx1.example.net -all\"",
                "spf.mx1.example.net. 3600 IN TXT \"v=spf1 ip4:203.0.113.5 ip6:2001:db8::5 -all\"",
                "*._report._dmarc.rp.mx1.example.net. 3600 IN TXT \"v=DMARC1\"",
            ]
        );
        assert_eq!(lines[6], "5.113.0.203.in-addr.arpa. 3600 IN PTR mx1.example.net.");
        assert_eq!(lines.len(), 8);
        let relayed = host_records(&config("[delivery]\nsmarthost = \"relay.example.org:587\"\n"), &addresses());
        assert!(relayed.iter().all(|record| record.reverse_of.is_none()), "the smarthost's address counts");
    }

    #[test]
    fn the_policy_needs_a_certificate_for_its_name() {
        let domain: DomainName = "example.net".parse().unwrap();
        assert!(!has_policy_name(&config(""), &domain));
        assert!(has_policy_name(&config("names = \"mta-sts.example.net\"\n"), &domain));
        let lines: Vec<String> =
            policy_records(&config(""), &domain, &addresses()).into_iter().map(|record| record.line).collect();
        assert_eq!(
            lines,
            [
                "mta-sts.example.net. 3600 IN CNAME mx1.example.net.",
                "_mta-sts.example.net. 3600 IN TXT \"v=STSv1; id=1\"",
                "_smtp._tls.example.net. 3600 IN TXT \"v=TLSRPTv1; rua=mailto:tls-reports@rp.mx1.example.net\"",
            ]
        );
        let kind = |addresses: &[IpAddr]| policy_records(&config(""), &domain, addresses)[0].query.kind;
        assert_eq!((kind(&addresses()), kind(&addresses()[1..])), (LookupType::A, LookupType::Aaaa));
    }

    #[test]
    fn queries_ask_about_the_zone_first() {
        let query = reverse_query("203.0.113.5".parse().unwrap());
        assert_eq!((query.below.as_str(), query.name.as_str()), ("113.0.203.in-addr.arpa", "5.113.0.203.in-addr.arpa"));
        let query = reverse_query("2001:db8::5".parse().unwrap());
        assert!(query.below.starts_with("0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"), "{}", query.below);
        let records = host_records(&config(""), &addresses());
        assert!(
            records
                .iter()
                .filter(|record| record.reverse_of.is_none())
                .all(|record| record.query.below == "example.net")
        );
    }

    #[test]
    fn records_are_compared_by_meaning() {
        let text = |text: &str| RecordSet { aliases: Vec::new(), data: vec![RecordData::Text(text.to_owned())] };
        let terms = Expectation::SpfTerms(vec!["v=spf1".to_owned(), "ip4:203.0.113.5".to_owned()]);
        assert_eq!(evaluate(&terms, &text("v=spf1 ip4:192.0.2.1 ip4:203.0.113.5 ~all")), RecordState::Published);
        assert!(matches!(evaluate(&terms, &text("v=spf1 -all")), RecordState::Differs(_)));
        assert_eq!(evaluate(&terms, &text("google-site-verification=x")), RecordState::Missing);
        assert_eq!(evaluate(&Expectation::Version("v=STSv1"), &text("v=STSv1; id=7")), RecordState::Published);
        let host: DomainName = "mx1.example.net".parse().unwrap();
        let same_host = Expectation::SameHost(host.clone(), addresses());
        let alias = RecordSet { aliases: vec![host.to_string()], data: Vec::new() };
        assert_eq!(evaluate(&same_host, &alias), RecordState::Published);
        assert_eq!(evaluate(&same_host, &RecordSet::default()), RecordState::Missing);
        let other = RecordSet { aliases: Vec::new(), data: vec![RecordData::Alias("static.isp.example".to_owned())] };
        let state = evaluate(&Expectation::Pointer(host), &other);
        assert_eq!(state, RecordState::Differs("the DNS has static.isp.example".to_owned()));
    }
}
