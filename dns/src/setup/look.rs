//! A look at one name: aliases followed, what stands at their end, or why nobody can say.
//!
//! A name in the inspected domain's zone is asked of that zone's own servers; a name elsewhere (where an
//! alias leads, what an SPF record includes) of the configured ones. When none of a zone's servers can be
//! reached from here, or all are asked as much as they may be, the configured ones stand in for them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name as WireName, RData, RecordType};

use super::asker::{AuthoritativeResolver, QueryBudget, ZoneServers};
use super::exchange::QueryError;

/// Aliases followed, as many as resolvers commonly do.
const ALIASES_MAX: usize = 8;
/// The type that SPF records once had (RFC 4408 3.1.1); RFC 7208 3.1 took it away.
pub(super) const OBSOLETE_SPF: RecordType = RecordType::Unknown(99);

/// One record's data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordData {
    /// TXT, its strings joined.
    Text(String),
    /// CNAME: lower case, without the dot at the end.
    Alias(String),
    /// MX.
    MailHost {
        /// Its preference.
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

/// What stands at a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordSet {
    /// The aliases that were followed, the last one being where the data stand.
    pub aliases: Vec<String>,
    /// The records of the type that was asked for.
    pub data: Vec<RecordData>,
}

impl RecordSet {
    /// The texts among the data.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.data.iter().filter_map(|data| match data {
            RecordData::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether nothing stands there, not even an alias.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.data.is_empty()
    }
}

/// What a look came to.
pub type RecordSetResult = Result<RecordSet, QueryError>;

/// The looks of one inspection.
pub(super) struct RecordFetcher<'a> {
    pub(super) asker: &'a AuthoritativeResolver,
    domain: WireName,
    zone: Option<Arc<ZoneServers>>,
    registered: bool,
    bounds: QueryBudget<'a>,
}

impl<'a> RecordFetcher<'a> {
    pub(super) async fn new(asker: &'a AuthoritativeResolver, domain: WireName, asked: &'a AtomicU32) -> Self {
        let bounds = QueryBudget { until: asker.deadline(), asked };
        let zone = asker.find_zone(&domain, bounds).await;
        let registered = match &zone {
            // A top level that does not know the name: nobody has it.
            Some(zone) if zone.origin.num_labels() == 1 => {
                let asked = asker.query_authoritative(zone, &domain, RecordType::SOA, bounds).await;
                !asked.is_ok_and(|reply| reply.metadata.response_code == ResponseCode::NXDomain)
            }
            _ => true,
        };
        Self { asker, domain, zone, registered, bounds }
    }

    /// Whether the domain exists, as far as its top level says.
    pub(super) fn is_registered(&self) -> bool {
        self.registered
    }

    /// The zone that the domain is in, where it is known.
    pub(super) fn zone(&self) -> Option<String> {
        self.zone.as_ref().map(|zone| name_text(&zone.origin))
    }

    /// What stands at a name.
    pub(super) async fn fetch(&self, name: &str, kind: RecordType) -> RecordSetResult {
        let Some(mut name) = to_wire_name(name) else { return Ok(RecordSet::default()) };
        let mut look = RecordSet::default();
        loop {
            let (aliases, by_resolver) = (look.aliases.len(), !self.is_in_zone(&name));
            let reply = self.query(&name, kind).await?;
            self.read_reply(&reply, &mut name, kind, &mut look);
            if look.aliases.len() > ALIASES_MAX {
                return Err(QueryError::AliasLoop);
            }
            // A resolver went to the end of it; an authoritative server only to the end of its zone.
            let at_the_end = look.aliases.len() == aliases || (by_resolver && !self.is_in_zone(&name));
            if at_the_end || !look.data.is_empty() {
                return Ok(look);
            }
        }
    }

    /// Whether the configured servers, which check signatures, find those of a name bogus.
    pub(super) async fn is_bogus(&self, name: &str, kind: RecordType) -> bool {
        let Some(name) = to_wire_name(name) else { return false };
        self.asker.query_configured(&name, kind, self.bounds).await.err() == Some(QueryError::Bogus)
    }

    fn is_in_zone(&self, name: &WireName) -> bool {
        self.zone.as_ref().is_some_and(|zone| zone.origin.zone_of(name))
    }

    async fn query(&self, name: &WireName, kind: RecordType) -> Result<Message, QueryError> {
        let Some(zone) = self.zone.as_ref().filter(|zone| zone.origin.zone_of(name)) else {
            return self.asker.query_configured(name, kind, self.bounds).await;
        };
        match self.asker.query_authoritative(zone, name, kind, self.bounds).await {
            Err(
                trouble @ (QueryError::Unreachable | QueryError::RateLimited | QueryError::Lame | QueryError::TimedOut),
            ) => {
                if trouble != QueryError::RateLimited {
                    self.asker.evict_zone(&self.domain);
                }
                let instead = self.asker.query_configured(name, kind, self.bounds).await;
                instead.map_err(|other| other.max(trouble))
            }
            asked => asked,
        }
    }

    /// Takes from a reply what its sender may speak for; `name` moves along the aliases.
    fn read_reply(&self, reply: &Message, name: &mut WireName, kind: RecordType, look: &mut RecordSet) {
        let ours = self.is_in_zone(name);
        while ours == self.is_in_zone(name) && look.aliases.len() <= ALIASES_MAX {
            let at = |of: RecordType| {
                let name = name.clone();
                reply.answers.iter().filter(move |record| record.name == name && record.record_type() == of)
            };
            look.data = at(kind).filter_map(|record| record_data(&record.data)).collect();
            let alias = at(RecordType::CNAME).find_map(|record| match &record.data {
                RData::CNAME(target) => Some(target.0.clone()),
                _ => None,
            });
            let Some(target) = alias.filter(|_| look.data.is_empty() && kind != RecordType::CNAME) else {
                return;
            };
            look.aliases.push(name_text(&target));
            *name = target;
        }
    }
}

fn record_data(data: &RData) -> Option<RecordData> {
    match data {
        RData::TXT(txt) => Some(RecordData::Text(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned())),
        RData::CNAME(target) => Some(RecordData::Alias(name_text(&target.0))),
        RData::MX(mx) => Some(RecordData::MailHost { preference: mx.preference, host: name_text(&mx.exchange) }),
        RData::Unknown { code, rdata } if *code == OBSOLETE_SPF => {
            Some(RecordData::Text(join_strings(&rdata.anything)))
        }
        other => other.ip_addr().map(RecordData::Address),
    }
}

/// The strings of a TXT-like record, joined: each is a length and so many bytes (RFC 1035 3.3).
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

/// A name to ask for; `None` when no server could know it.
pub(super) fn to_wire_name(name: &str) -> Option<WireName> {
    let mut wire = WireName::from_ascii(name).ok()?;
    wire.set_fqdn(true);
    Some(wire)
}
