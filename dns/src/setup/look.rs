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

use super::asker::{Asker, Bounds, Zone};
use super::exchange::Trouble;

/// Aliases followed, as many as resolvers commonly do.
const ALIASES_MAX: usize = 8;
/// The type that SPF records once had (RFC 4408 3.1.1); RFC 7208 3.1 took it away.
pub(super) const OBSOLETE_SPF: RecordType = RecordType::Unknown(99);

/// One record's data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
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

impl fmt::Display for Data {
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
pub struct Look {
    /// The aliases that were followed, the last one being where the data stand.
    pub aliases: Vec<String>,
    /// The records of the type that was asked for.
    pub data: Vec<Data>,
}

impl Look {
    /// The texts among the data.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.data.iter().filter_map(|data| match data {
            Data::Text(text) => Some(text.as_str()),
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
pub type Seen = Result<Look, Trouble>;

/// The looks of one inspection.
pub(super) struct Looker<'a> {
    pub(super) asker: &'a Asker,
    domain: WireName,
    zone: Option<Arc<Zone>>,
    registered: bool,
    bounds: Bounds<'a>,
}

impl<'a> Looker<'a> {
    pub(super) async fn new(asker: &'a Asker, domain: WireName, asked: &'a AtomicU32) -> Self {
        let bounds = Bounds { until: asker.deadline(), asked };
        let zone = asker.zone_of(&domain, bounds).await;
        let registered = match &zone {
            // A top level that does not know the name: nobody has it.
            Some(zone) if zone.origin.num_labels() == 1 => {
                let asked = asker.authoritative(zone, &domain, RecordType::SOA, bounds).await;
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
        self.zone.as_ref().map(|zone| text_of(&zone.origin))
    }

    /// What stands at a name.
    pub(super) async fn look(&self, name: &str, kind: RecordType) -> Seen {
        let Some(mut name) = wire(name) else { return Ok(Look::default()) };
        let mut look = Look::default();
        loop {
            let (aliases, by_resolver) = (look.aliases.len(), !self.is_ours(&name));
            let reply = self.ask(&name, kind).await?;
            self.read(&reply, &mut name, kind, &mut look);
            if look.aliases.len() > ALIASES_MAX {
                return Err(Trouble::AliasLoop);
            }
            // A resolver went to the end of it; an authoritative server only to the end of its zone.
            let at_the_end = look.aliases.len() == aliases || (by_resolver && !self.is_ours(&name));
            if at_the_end || !look.data.is_empty() {
                return Ok(look);
            }
        }
    }

    /// Whether the configured servers, which check signatures, find those of a name bogus.
    pub(super) async fn is_bogus(&self, name: &str, kind: RecordType) -> bool {
        let Some(name) = wire(name) else { return false };
        self.asker.configured(&name, kind, self.bounds).await.err() == Some(Trouble::Bogus)
    }

    fn is_ours(&self, name: &WireName) -> bool {
        self.zone.as_ref().is_some_and(|zone| zone.origin.zone_of(name))
    }

    async fn ask(&self, name: &WireName, kind: RecordType) -> Result<Message, Trouble> {
        let Some(zone) = self.zone.as_ref().filter(|zone| zone.origin.zone_of(name)) else {
            return self.asker.configured(name, kind, self.bounds).await;
        };
        match self.asker.authoritative(zone, name, kind, self.bounds).await {
            Err(trouble @ (Trouble::Unreachable | Trouble::Spent | Trouble::Lame | Trouble::TimedOut)) => {
                if trouble != Trouble::Spent {
                    self.asker.lost(&self.domain);
                }
                let instead = self.asker.configured(name, kind, self.bounds).await;
                instead.map_err(|other| other.max(trouble))
            }
            asked => asked,
        }
    }

    /// Takes from a reply what its sender may speak for; `name` moves along the aliases.
    fn read(&self, reply: &Message, name: &mut WireName, kind: RecordType, look: &mut Look) {
        let ours = self.is_ours(name);
        while ours == self.is_ours(name) && look.aliases.len() <= ALIASES_MAX {
            let at = |of: RecordType| {
                let name = name.clone();
                reply.answers.iter().filter(move |record| record.name == name && record.record_type() == of)
            };
            look.data = at(kind).filter_map(|record| data(&record.data)).collect();
            let alias = at(RecordType::CNAME).find_map(|record| match &record.data {
                RData::CNAME(target) => Some(target.0.clone()),
                _ => None,
            });
            let Some(target) = alias.filter(|_| look.data.is_empty() && kind != RecordType::CNAME) else {
                return;
            };
            look.aliases.push(text_of(&target));
            *name = target;
        }
    }
}

fn data(data: &RData) -> Option<Data> {
    match data {
        RData::TXT(txt) => Some(Data::Text(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned())),
        RData::CNAME(target) => Some(Data::Alias(text_of(&target.0))),
        RData::MX(mx) => Some(Data::MailHost { preference: mx.preference, host: text_of(&mx.exchange) }),
        RData::Unknown { code, rdata } if *code == OBSOLETE_SPF => Some(Data::Text(strings(&rdata.anything))),
        other => other.ip_addr().map(Data::Address),
    }
}

/// The strings of a TXT-like record, joined: each is a length and so many bytes (RFC 1035 3.3).
fn strings(mut bytes: &[u8]) -> String {
    let mut joined = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (string, rest) = rest.split_at(usize::from(length).min(rest.len()));
        joined.extend_from_slice(string);
        bytes = rest;
    }
    String::from_utf8_lossy(&joined).into_owned()
}

fn text_of(name: &WireName) -> String {
    let mut text = name.to_ascii();
    text.make_ascii_lowercase();
    text.trim_end_matches('.').to_owned()
}

/// A name to ask for; `None` when no server could know it.
pub(super) fn wire(name: &str) -> Option<WireName> {
    let mut wire = WireName::from_ascii(name).ok()?;
    wire.set_fqdn(true);
    Some(wire)
}
