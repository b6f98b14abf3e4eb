//! Fetches the records at one name for a check: follows CNAMEs and returns the records at their end, or the error.
//!
//! A name in the checked domain's zone is queried from that zone's authoritative servers. A name in another zone (the
//! target of a CNAME, an SPF include) is queried from the configured servers. If none of a zone's servers can be
//! reached, or all are at their rate limit, the configured servers are used instead.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name as WireName, RData, RecordType};

use super::authoritative_resolver::{AuthoritativeResolver, QueryBudget, ZoneServers};
use super::query::QueryError;

/// Maximum CNAMEs followed, as in common resolvers.
const ALIASES_MAX: usize = 8;
/// The obsolete type of SPF records (RFC 4408 3.1.1), abolished by RFC 7208 3.1.
pub(super) const OBSOLETE_SPF: RecordType = RecordType::Unknown(99);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordData {
    /// TXT with its strings joined.
    Text(String),
    /// CNAME or PTR: the target in lower case without the trailing dot.
    Alias(String),
    /// MX.
    MailHost {
        preference: u16,
        /// The host; empty for a null MX (RFC 7505).
        host: String,
    },
    /// A or AAAA.
    Address(IpAddr),
}

impl fmt::Display for RecordData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Alias(host) => f.write_str(host),
            Self::MailHost { preference, host } if host.is_empty() => write!(f, "{preference} ."),
            Self::MailHost { preference, host } => write!(f, "{preference} {host}"),
            Self::Address(ip) => write!(f, "{ip}"),
        }
    }
}

/// The records of one type at a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordSet {
    /// The CNAMEs that were followed; the records are at the last one.
    pub aliases: Vec<String>,
    /// The records of the queried type.
    pub data: Vec<RecordData>,
}

impl RecordSet {
    /// The TXT records among the data.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.data.iter().filter_map(|data| match data {
            RecordData::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns whether there is neither a record nor a CNAME.
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.data.is_empty()
    }
}

/// The result of a fetch.
pub type RecordSetResult = Result<RecordSet, QueryError>;

/// The queries of one check.
pub(super) struct RecordFetcher<'a> {
    pub(super) resolver: &'a AuthoritativeResolver,
    domain: WireName,
    zone: Option<Arc<ZoneServers>>,
    /// False if the top-level domain answers that the domain does not exist.
    pub(super) registered: bool,
    bounds: QueryBudget<'a>,
}

impl<'a> RecordFetcher<'a> {
    pub(super) async fn new(resolver: &'a AuthoritativeResolver, domain: WireName, query_count: &'a AtomicU32) -> Self {
        let bounds = QueryBudget { until: resolver.deadline(), query_count };
        let zone = resolver.find_zone(&domain, bounds).await;
        let registered = match &zone {
            // The top-level domain answers that the name does not exist: it is not registered.
            Some(zone) if zone.origin.num_labels() == 1 => {
                let soa = resolver.query_authoritative(zone, &domain, RecordType::SOA, bounds).await;
                !soa.is_ok_and(|reply| reply.metadata.response_code == ResponseCode::NXDomain)
            }
            _ => true,
        };
        Self { resolver, domain, zone, registered, bounds }
    }

    /// The zone of the domain, if it is known.
    pub(super) fn zone(&self) -> Option<String> {
        self.zone.as_ref().map(|zone| name_text(&zone.origin))
    }

    /// Fetches the records of a type at a name.
    pub(super) async fn fetch(&self, name: &str, kind: RecordType) -> RecordSetResult {
        let Some(mut name) = to_wire_name(name) else { return Ok(RecordSet::default()) };
        let mut record_set = RecordSet::default();
        loop {
            let (aliases, by_resolver) = (record_set.aliases.len(), !self.is_in_zone(&name));
            let reply = self.query(&name, kind).await?;
            self.read_reply(&reply, &mut name, kind, &mut record_set);
            if record_set.aliases.len() > ALIASES_MAX {
                return Err(QueryError::AliasLoop);
            }
            // A recursive server follows all CNAMEs, an authoritative one only those within its zone.
            let at_the_end = record_set.aliases.len() == aliases || (by_resolver && !self.is_in_zone(&name));
            if at_the_end || !record_set.data.is_empty() {
                return Ok(record_set);
            }
        }
    }

    /// Returns whether DNSSEC validation by the configured servers fails for a name.
    pub(super) async fn is_bogus(&self, name: &str, kind: RecordType) -> bool {
        let Some(name) = to_wire_name(name) else { return false };
        self.resolver.query_configured(&name, kind, self.bounds).await.err() == Some(QueryError::Bogus)
    }

    fn is_in_zone(&self, name: &WireName) -> bool {
        self.zone.as_ref().is_some_and(|zone| zone.origin.zone_of(name))
    }

    async fn query(&self, name: &WireName, kind: RecordType) -> Result<Message, QueryError> {
        let Some(zone) = self.zone.as_ref().filter(|zone| zone.origin.zone_of(name)) else {
            return self.resolver.query_configured(name, kind, self.bounds).await;
        };
        match self.resolver.query_authoritative(zone, name, kind, self.bounds).await {
            Err(
                error @ (QueryError::Unreachable | QueryError::RateLimited | QueryError::Lame | QueryError::TimedOut),
            ) => {
                if error != QueryError::RateLimited {
                    self.resolver.evict_zone(&self.domain);
                }
                let retried = self.resolver.query_configured(name, kind, self.bounds).await;
                retried.map_err(|other| other.max(error))
            }
            result => result,
        }
    }

    /// Extracts the records for which the sender is responsible. `name` becomes the target of the CNAMEs followed.
    fn read_reply(&self, reply: &Message, name: &mut WireName, kind: RecordType, record_set: &mut RecordSet) {
        let was_in_zone = self.is_in_zone(name);
        while was_in_zone == self.is_in_zone(name) && record_set.aliases.len() <= ALIASES_MAX {
            let at = |of: RecordType| {
                let name = name.clone();
                reply.answers.iter().filter(move |record| record.name == name && record.record_type() == of)
            };
            record_set.data = at(kind).filter_map(|record| record_data(&record.data)).collect();
            let alias = at(RecordType::CNAME).find_map(|record| match &record.data {
                RData::CNAME(target) => Some(target.0.clone()),
                _ => None,
            });
            let Some(target) = alias.filter(|_| record_set.data.is_empty() && kind != RecordType::CNAME) else {
                return;
            };
            record_set.aliases.push(name_text(&target));
            *name = target;
        }
    }
}

fn record_data(data: &RData) -> Option<RecordData> {
    match data {
        RData::TXT(txt) => Some(RecordData::Text(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned())),
        RData::CNAME(target) => Some(RecordData::Alias(name_text(&target.0))),
        RData::PTR(target) => Some(RecordData::Alias(name_text(&target.0))),
        RData::MX(mx) => Some(RecordData::MailHost { preference: mx.preference, host: name_text(&mx.exchange) }),
        RData::Unknown { code, rdata } if *code == OBSOLETE_SPF => {
            Some(RecordData::Text(join_strings(&rdata.anything)))
        }
        other => other.ip_addr().map(RecordData::Address),
    }
}

/// Joins the strings of a TXT-like record, each a length and as many bytes (RFC 1035 3.3).
fn join_strings(mut bytes: &[u8]) -> String {
    let mut joined = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (string, rest) = rest.split_at(usize::from(length).min(rest.len()));
        joined.extend_from_slice(string);
        bytes = rest;
    }
    String::from_utf8_lossy(&joined).into_owned()
}

fn name_text(name: &WireName) -> String {
    let mut text = name.to_ascii();
    text.make_ascii_lowercase();
    text.trim_end_matches('.').to_owned()
}

/// Converts a name for a query; `None` if it is not a valid DNS name.
pub(super) fn to_wire_name(name: &str) -> Option<WireName> {
    let mut wire = WireName::from_ascii(name).ok()?;
    wire.set_fqdn(true);
    Some(wire)
}
