//! The evaluation of SPF, *check_host* (RFC 7208 4): fetches the record of a domain and processes its terms in order,
//! with includes and redirects.
//!
//! The limits are those of RFC 7208 4.6.4: [`LOOKUPS_MAX`] terms with lookups, [`VOIDS_MAX`] void lookups, and
//! [`HOSTS_MAX`] hosts of one `mx` or `ptr`. So a record can cause some hundred queries at most. The caller sets a
//! timeout.

use std::net::IpAddr;

use hickory_proto::rr::{Name as WireName, RData, RecordType};
use message::received::AuthResult;

use super::SpfQuery;
use super::domain_spec::{DomainSpec, MacroContext, MacroString};
use super::record::{PrefixLengths, SpfMechanism, SpfQualifier, SpfRecord, SpfTerm, is_record};
use crate::resolver::{Resolver, parse_wire_name, txt_strings};

/// Maximum terms with DNS lookups, in all records together.
pub(crate) const LOOKUPS_MAX: usize = 10;
/// Maximum void lookups: the name does not exist, or has no records of the type.
pub(crate) const VOIDS_MAX: usize = 2;
/// Maximum hosts of one `mx` or `ptr` whose addresses are looked up.
pub(crate) const HOSTS_MAX: usize = 10;
/// The value of `%{p}` if the client has no validated name (RFC 7208 7.3).
const NO_NAME: &str = "unknown";
/// The longest explanation that is parsed, before expansion.
const EXPLANATION_BYTES_MAX: usize = 1_024;
/// The longest explanation after expansion; a macro can be a thousand times as long as its letters.
const EXPLANATION_CHARS_MAX: usize = 300;
/// The sender's local part if there is none (RFC 7208 4.3).
const POSTMASTER: &str = "postmaster";

/// The error results.
enum SpfError {
    /// A DNS query failed temporarily.
    Temporary,
    /// The published record is invalid.
    Permanent,
}

/// The result of a record's terms.
enum SpfMatch {
    /// A mechanism matched: its qualifier, the domain of its record, and the target of `exp=`.
    Mechanism(SpfQualifier, String, Option<DomainSpec>),
    /// No mechanism matched.
    Nothing,
    NoRecord,
}

pub(super) struct SpfEvaluation<'a> {
    resolver: &'a Resolver,
    request: &'a SpfQuery<'a>,
    peer: IpAddr,
    lookups: usize,
    voids: usize,
    /// The names of the client's PTR records, once they are looked up.
    names: Option<Vec<String>>,
}

impl<'a> SpfEvaluation<'a> {
    pub(super) fn new(resolver: &'a Resolver, request: &'a SpfQuery<'a>) -> Self {
        let peer = request.peer.to_canonical();
        Self { resolver, request, peer, lookups: 0, voids: 0, names: None }
    }

    /// Returns the result, and for a fail the explanation of the domain's owner.
    pub(super) async fn evaluate(mut self) -> (AuthResult, Option<String>) {
        let domain = self.request.domain.strip_suffix('.').unwrap_or(self.request.domain);
        // An invalid name, an address literal, or a name with a single label has no record (RFC 7208 4.3).
        if !domain.contains('.') || domain.starts_with('[') || parse_wire_name(domain).is_none() {
            return (AuthResult::None, None);
        }
        match self.first_match(domain.to_owned()).await {
            Err(SpfError::Temporary) => (AuthResult::TempError, None),
            Err(SpfError::Permanent) => (AuthResult::PermError, None),
            Ok(SpfMatch::NoRecord) => (AuthResult::None, None),
            Ok(SpfMatch::Nothing) => (AuthResult::Neutral, None),
            Ok(SpfMatch::Mechanism(SpfQualifier::Pass, ..)) => (AuthResult::Pass, None),
            Ok(SpfMatch::Mechanism(SpfQualifier::SoftFail, ..)) => (AuthResult::SoftFail, None),
            Ok(SpfMatch::Mechanism(SpfQualifier::Neutral, ..)) => (AuthResult::Neutral, None),
            Ok(SpfMatch::Mechanism(SpfQualifier::Fail, domain, why)) => {
                let why = match why {
                    Some(target) => self.explanation(&target, &domain).await,
                    None => None,
                };
                (AuthResult::Fail, why)
            }
        }
    }

    /// Finds the first mechanism that matches, in the record of a domain or of its redirect.
    async fn first_match(&mut self, mut domain: String) -> Result<SpfMatch, SpfError> {
        let mut is_redirected = false;
        loop {
            let record = match self.fetch_record(&domain).await? {
                Some(record) => record,
                None if is_redirected => return Err(SpfError::Permanent),
                None => return Ok(SpfMatch::NoRecord),
            };
            for term in record.effective_terms() {
                let SpfTerm::Mechanism(qualifier, mechanism) = term else { continue };
                if term.costs_lookup() {
                    self.count_lookup()?;
                }
                if self.matches(mechanism, &domain).await? {
                    return Ok(SpfMatch::Mechanism(*qualifier, domain, record.explanation().cloned()));
                }
            }
            let Some(target) = record.redirect() else { return Ok(SpfMatch::Nothing) };
            self.count_lookup()?;
            domain = self.expand_name(target, &domain).await;
            is_redirected = true;
        }
    }

    /// Fetches the single record of a domain (RFC 7208 4.4, 4.5).
    async fn fetch_record(&self, domain: &str) -> Result<Option<SpfRecord>, SpfError> {
        let texts = self.query_txt(domain).await?;
        let mut records = texts.iter().filter(|text| is_record(text));
        match (records.next(), records.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(SpfError::Permanent),
            (Some(record_text), None) => SpfRecord::parse(record_text).map(Some).map_err(|_| SpfError::Permanent),
        }
    }

    async fn matches(&mut self, mechanism: &SpfMechanism, domain: &str) -> Result<bool, SpfError> {
        match mechanism {
            SpfMechanism::All => Ok(true),
            SpfMechanism::Network(network, bits) => Ok(bits.is_same_network(*network, self.peer)),
            SpfMechanism::Include(target) => {
                let name = self.expand_name(target, domain).await;
                match Box::pin(self.first_match(name)).await? {
                    SpfMatch::Mechanism(SpfQualifier::Pass, ..) => Ok(true),
                    SpfMatch::Mechanism(..) | SpfMatch::Nothing => Ok(false),
                    SpfMatch::NoRecord => Err(SpfError::Permanent),
                }
            }
            SpfMechanism::Exists(target) => {
                let name = self.expand_name(target, domain).await;
                let found = self.query(&name, RecordType::A).await?;
                self.count_void(found.is_empty())?;
                Ok(!found.is_empty())
            }
            SpfMechanism::Hosts { mail, host, bits } => {
                let name = self.name_or_domain(host.as_ref(), domain).await;
                if *mail { self.is_address_of_mx(&name, *bits).await } else { self.is_address_of(&name, *bits).await }
            }
            SpfMechanism::Ptr(target) => {
                let name = self.name_or_domain(target.as_ref(), domain).await;
                let is_void = self.peer_names().await.is_empty();
                self.count_void(is_void)?;
                Ok(self.validated_name(&name).await.is_some_and(|found| is_within(&found, &name)))
            }
        }
    }

    async fn is_address_of(&mut self, name: &str, bits: PrefixLengths) -> Result<bool, SpfError> {
        let addresses = self.query_addresses(name).await?;
        self.count_void(addresses.is_empty())?;
        Ok(addresses.into_iter().any(|address| bits.is_same_network(address, self.peer)))
    }

    async fn is_address_of_mx(&mut self, name: &str, bits: PrefixLengths) -> Result<bool, SpfError> {
        let found = self.query(name, RecordType::MX).await?;
        self.count_void(found.is_empty())?;
        let hosts: Vec<&WireName> = found
            .iter()
            .filter_map(|data| match data {
                RData::MX(mx) => Some(&mx.exchange),
                _ => None,
            })
            .collect();
        if hosts.len() > HOSTS_MAX {
            return Err(SpfError::Permanent);
        }
        for host in hosts.into_iter().filter(|host| !host.is_root()) {
            let found = self.query_wire(host.clone(), self.address_record_type()).await?;
            if found.iter().filter_map(address).any(|address| bits.is_same_network(address, self.peer)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts a term with a lookup.
    fn count_lookup(&mut self) -> Result<(), SpfError> {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX { Err(SpfError::Permanent) } else { Ok(()) }
    }

    /// Counts a void lookup.
    fn count_void(&mut self, is_void: bool) -> Result<(), SpfError> {
        self.voids += usize::from(is_void);
        if self.voids > VOIDS_MAX { Err(SpfError::Permanent) } else { Ok(()) }
    }

    // Names and macros

    async fn name_or_domain(&mut self, target: Option<&DomainSpec>, domain: &str) -> String {
        match target {
            Some(target) => self.expand_name(target, domain).await,
            None => domain.to_owned(),
        }
    }

    async fn expand_name(&mut self, target: &DomainSpec, domain: &str) -> String {
        let validated = self.validated_name_if_needed(target.uses_validated_name(), domain).await;
        target.expand_to_name(&self.macro_context(domain, &validated))
    }

    fn macro_context<'f>(&'f self, domain: &'f str, validated: &'f str) -> MacroContext<'f> {
        let request = self.request;
        MacroContext {
            peer: self.peer,
            hello: request.hello,
            local: if request.local.is_empty() { POSTMASTER } else { request.local },
            sender_domain: request.domain,
            domain,
            validated,
            receiver: request.receiver,
        }
    }

    async fn validated_name_if_needed(&mut self, is_wanted: bool, domain: &str) -> String {
        if !is_wanted {
            return String::new();
        }
        self.validated_name(domain).await.unwrap_or_else(|| NO_NAME.to_owned())
    }

    /// The names of the client's PTR records; empty if the lookup fails (RFC 7208 5.5).
    async fn peer_names(&mut self) -> &[String] {
        if self.names.is_none() {
            let found = self.query_wire(WireName::from(self.peer), RecordType::PTR).await.unwrap_or_default();
            let names = found.iter().filter_map(|data| match data {
                RData::PTR(ptr) => Some(ptr.0.to_ascii().trim_end_matches('.').to_owned()),
                _ => None,
            });
            self.names = Some(names.take(HOSTS_MAX).collect());
        }
        self.names.as_deref().unwrap_or_default()
    }

    /// A name of the client that resolves back to its address. The domain itself takes precedence over its subdomains,
    /// and these over other names (RFC 7208 7.3).
    async fn validated_name(&mut self, domain: &str) -> Option<String> {
        let mut names = self.peer_names().await.to_vec();
        names.sort_by_key(|name| (!name.eq_ignore_ascii_case(domain), !is_within(name, domain)));
        for name in names {
            if self.query_addresses(&name).await.is_ok_and(|found| found.contains(&self.peer)) {
                return Some(name);
            }
        }
        None
    }

    // DNS queries

    /// The address record type of the client's family.
    fn address_record_type(&self) -> RecordType {
        if self.peer.is_ipv4() { RecordType::A } else { RecordType::AAAA }
    }

    async fn query_addresses(&self, name: &str) -> Result<Vec<IpAddr>, SpfError> {
        Ok(self.query(name, self.address_record_type()).await?.iter().filter_map(address).collect())
    }

    async fn query_txt(&self, name: &str) -> Result<Vec<String>, SpfError> {
        let Some(name) = parse_wire_name(name) else { return Ok(Vec::new()) };
        let found = self.resolver.records(&name, RecordType::TXT).await.map_err(|_| SpfError::Temporary)?;
        Ok(txt_strings(found.as_deref()).collect())
    }

    /// The records at a name; none for an invalid name (RFC 7208 4.8).
    async fn query(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, SpfError> {
        match parse_wire_name(name) {
            Some(name) => self.query_wire(name, kind).await,
            None => Ok(Vec::new()),
        }
    }

    async fn query_wire(&self, name: WireName, kind: RecordType) -> Result<Vec<RData>, SpfError> {
        let found = self.resolver.records(&name, kind).await.map_err(|_| SpfError::Temporary)?;
        let answers = found.iter().flat_map(|lookup| lookup.answers());
        Ok(answers.filter(|record| record.record_type() == kind).map(|record| record.data.clone()).collect())
    }

    /// The explanation of a fail by the domain's owner: the single TXT record at `target`, with its macros expanded.
    /// Any error means that there is no explanation (RFC 7208 6.2).
    async fn explanation(&mut self, target: &DomainSpec, domain: &str) -> Option<String> {
        let name = self.expand_name(target, domain).await;
        let texts = self.query_txt(&name).await.ok()?;
        let [text] = texts.as_slice() else { return None };
        if text.len() > EXPLANATION_BYTES_MAX {
            return None;
        }
        let pieces = MacroString::parse_explanation(text)?;
        let validated = self.validated_name_if_needed(pieces.wants_validated_name(), domain).await;
        Some(pieces.expand(&self.macro_context(domain, &validated)).chars().take(EXPLANATION_CHARS_MAX).collect())
    }
}

fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(four) => Some(IpAddr::V4(four.0)),
        RData::AAAA(six) => Some(IpAddr::V6(six.0)),
        _ => None,
    }
}

/// Returns whether a name is a domain or below it.
fn is_within(name: &str, domain: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let prefix = name.strip_suffix(&domain.to_ascii_lowercase());
    prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
}
