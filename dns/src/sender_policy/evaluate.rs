//! The evaluation itself, *check_host* (RFC 7208 4): the record of a domain, its terms one after the other, what
//! they include and where they redirect.
//!
//! Its bounds (RFC 7208 4.6.4): [`LOOKUPS_MAX`] terms that ask, [`VOIDS_MAX`] of them that find nothing, and
//! [`HOSTS_MAX`] hosts of one `mx` or `ptr`. So whoever writes a record makes us ask some hundred questions
//! at most; the time for them is the caller's to bound.

use std::net::IpAddr;

use hickory_proto::rr::{Name as WireName, RData, RecordType};

use super::record::{Bits, Mechanism, Qualifier, Record, Term, is_record};
use super::target::{Facts, Pieces, Target};
use super::{Asked, PolicyResult};
use crate::lookup::{Resolver, any_name, texts};

/// Terms that ask the DNS, in all records together.
pub(crate) const LOOKUPS_MAX: usize = 10;
/// Of them, those whose name is not there, or has nothing of the kind.
pub(crate) const VOIDS_MAX: usize = 2;
/// Hosts of one `mx` or `ptr` whose addresses are asked for.
pub(crate) const HOSTS_MAX: usize = 10;
/// What `%{p}` is where the peer has no name (RFC 7208 7.3).
const NO_NAME: &str = "unknown";
/// Who wrote, where nobody says (RFC 7208 4.3).
/// The longest explanation that is read, unexpanded, …
const EXPLANATION_BYTES_MAX: usize = 1_024;
/// … and how much of it is kept, expanded: a macro may be a thousand times its letters.
const EXPLANATION_CHARS_MAX: usize = 300;
const POSTMASTER: &str = "postmaster";

/// Why there is no result other than an error.
enum Fault {
    /// The DNS gives no answer.
    Temporary,
    /// What is published cannot be evaluated.
    Permanent,
}

/// What the terms of a record came to.
enum Matched {
    /// A mechanism matched; the domain whose record it stands in, and where it says why.
    Mechanism(Qualifier, String, Option<Target>),
    /// None did.
    Nothing,
    /// There is no record.
    NoRecord,
}

pub(super) struct Check<'a> {
    resolver: &'a Resolver,
    asked: &'a Asked<'a>,
    peer: IpAddr,
    lookups: usize,
    voids: usize,
    /// The names that the peer says it has, once they were asked for.
    names: Option<Vec<String>>,
}

impl<'a> Check<'a> {
    pub(super) fn new(resolver: &'a Resolver, asked: &'a Asked<'a>) -> Self {
        let peer = asked.peer.to_canonical();
        Self { resolver, asked, peer, lookups: 0, voids: 0, names: None }
    }

    /// The result, and for a fail what the domain's owner says of it.
    pub(super) async fn run(mut self) -> (PolicyResult, Option<String>) {
        let domain = self.asked.domain.strip_suffix('.').unwrap_or(self.asked.domain);
        // What is no name, an address, or a name of a single label, has no record (RFC 7208 4.3).
        if !domain.contains('.') || domain.starts_with('[') || any_name(domain).is_none() {
            return (PolicyResult::None, None);
        }
        match self.matched(domain.to_owned()).await {
            Err(Fault::Temporary) => (PolicyResult::TempError, None),
            Err(Fault::Permanent) => (PolicyResult::PermError, None),
            Ok(Matched::NoRecord) => (PolicyResult::None, None),
            Ok(Matched::Nothing) => (PolicyResult::Neutral, None),
            Ok(Matched::Mechanism(Qualifier::Pass, ..)) => (PolicyResult::Pass, None),
            Ok(Matched::Mechanism(Qualifier::SoftFail, ..)) => (PolicyResult::SoftFail, None),
            Ok(Matched::Mechanism(Qualifier::Neutral, ..)) => (PolicyResult::Neutral, None),
            Ok(Matched::Mechanism(Qualifier::Fail, domain, why)) => {
                let why = match why {
                    Some(target) => self.explanation(&target, &domain).await,
                    None => None,
                };
                (PolicyResult::Fail, why)
            }
        }
    }

    /// The first mechanism that matches, in the record of a domain or of those that it redirects to.
    async fn matched(&mut self, mut domain: String) -> Result<Matched, Fault> {
        let mut is_redirected = false;
        loop {
            let record = match self.record(&domain).await? {
                Some(record) => record,
                None if is_redirected => return Err(Fault::Permanent),
                None => return Ok(Matched::NoRecord),
            };
            for term in record.read() {
                let Term::Mechanism(qualifier, mechanism) = term else { continue };
                if term.asks() {
                    self.count()?;
                }
                if self.matches(mechanism, &domain).await? {
                    return Ok(Matched::Mechanism(*qualifier, domain, record.explanation().cloned()));
                }
            }
            let Some(target) = record.redirect() else { return Ok(Matched::Nothing) };
            self.count()?;
            domain = self.name(target, &domain).await;
            is_redirected = true;
        }
    }

    /// The one record of a domain (RFC 7208 4.4, 4.5).
    async fn record(&self, domain: &str) -> Result<Option<Record>, Fault> {
        let texts = self.texts(domain).await?;
        let mut records = texts.iter().filter(|text| is_record(text));
        match (records.next(), records.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(Fault::Permanent),
            (Some(one), None) => Record::parse(one).map(Some).map_err(|_| Fault::Permanent),
        }
    }

    async fn matches(&mut self, mechanism: &Mechanism, domain: &str) -> Result<bool, Fault> {
        match mechanism {
            Mechanism::All => Ok(true),
            Mechanism::Network(network, bits) => Ok(bits.are_alike(*network, self.peer)),
            Mechanism::Include(target) => {
                let name = self.name(target, domain).await;
                match Box::pin(self.matched(name)).await? {
                    Matched::Mechanism(Qualifier::Pass, ..) => Ok(true),
                    Matched::Mechanism(..) | Matched::Nothing => Ok(false),
                    Matched::NoRecord => Err(Fault::Permanent),
                }
            }
            Mechanism::Exists(target) => {
                let name = self.name(target, domain).await;
                let found = self.ask(&name, RecordType::A).await?;
                self.note(found.is_empty())?;
                Ok(!found.is_empty())
            }
            Mechanism::Hosts { mail, host, bits } => {
                let name = self.name_or(host.as_ref(), domain).await;
                if *mail { self.is_mail_host(&name, *bits).await } else { self.is_host(&name, *bits).await }
            }
            Mechanism::Ptr(target) => {
                let name = self.name_or(target.as_ref(), domain).await;
                let is_void = self.names().await.is_empty();
                self.note(is_void)?;
                Ok(self.validated(&name).await.is_some_and(|found| is_within(&found, &name)))
            }
        }
    }

    async fn is_host(&mut self, name: &str, bits: Bits) -> Result<bool, Fault> {
        let addresses = self.addresses(name).await?;
        self.note(addresses.is_empty())?;
        Ok(addresses.into_iter().any(|address| bits.are_alike(address, self.peer)))
    }

    async fn is_mail_host(&mut self, name: &str, bits: Bits) -> Result<bool, Fault> {
        let found = self.ask(name, RecordType::MX).await?;
        self.note(found.is_empty())?;
        let hosts: Vec<&WireName> = found
            .iter()
            .filter_map(|data| match data {
                RData::MX(mx) => Some(&mx.exchange),
                _ => None,
            })
            .collect();
        if hosts.len() > HOSTS_MAX {
            return Err(Fault::Permanent);
        }
        for host in hosts.into_iter().filter(|host| !host.is_root()) {
            let found = self.ask_wire(host.clone(), self.kind()).await?;
            if found.iter().filter_map(address).any(|address| bits.are_alike(address, self.peer)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts a term that asks.
    fn count(&mut self) -> Result<(), Fault> {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX { Err(Fault::Permanent) } else { Ok(()) }
    }

    /// Counts a term that found nothing.
    fn note(&mut self, is_void: bool) -> Result<(), Fault> {
        self.voids += usize::from(is_void);
        if self.voids > VOIDS_MAX { Err(Fault::Permanent) } else { Ok(()) }
    }

    // Names

    async fn name_or(&mut self, target: Option<&Target>, domain: &str) -> String {
        match target {
            Some(target) => self.name(target, domain).await,
            None => domain.to_owned(),
        }
    }

    async fn name(&mut self, target: &Target, domain: &str) -> String {
        let validated = self.validated_for(target.wants_validated_name(), domain).await;
        target.name(&self.facts(domain, &validated))
    }

    fn facts<'f>(&'f self, domain: &'f str, validated: &'f str) -> Facts<'f> {
        let asked = self.asked;
        Facts {
            peer: self.peer,
            hello: asked.hello,
            local: if asked.local.is_empty() { POSTMASTER } else { asked.local },
            sender_domain: asked.domain,
            domain,
            validated,
            receiver: asked.receiver,
        }
    }

    async fn validated_for(&mut self, is_wanted: bool, domain: &str) -> String {
        if !is_wanted {
            return String::new();
        }
        self.validated(domain).await.unwrap_or_else(|| NO_NAME.to_owned())
    }

    /// The names of the peer, as they stand in the DNS; none when it gives no answer (RFC 7208 5.5).
    async fn names(&mut self) -> &[String] {
        if self.names.is_none() {
            let found = self.ask_wire(WireName::from(self.peer), RecordType::PTR).await.unwrap_or_default();
            let names = found.iter().filter_map(|data| match data {
                RData::PTR(ptr) => Some(ptr.0.to_ascii().trim_end_matches('.').to_owned()),
                _ => None,
            });
            self.names = Some(names.take(HOSTS_MAX).collect());
        }
        self.names.as_deref().unwrap_or_default()
    }

    /// A name of the peer that leads back to it: the domain itself before one below it, that before any other
    /// (RFC 7208 7.3).
    async fn validated(&mut self, domain: &str) -> Option<String> {
        let mut names = self.names().await.to_vec();
        names.sort_by_key(|name| (!name.eq_ignore_ascii_case(domain), !is_within(name, domain)));
        for name in names {
            if self.addresses(&name).await.is_ok_and(|found| found.contains(&self.peer)) {
                return Some(name);
            }
        }
        None
    }

    // Questions

    /// The kind of address that the peer has.
    fn kind(&self) -> RecordType {
        if self.peer.is_ipv4() { RecordType::A } else { RecordType::AAAA }
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Fault> {
        Ok(self.ask(name, self.kind()).await?.iter().filter_map(address).collect())
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, Fault> {
        let Some(name) = any_name(name) else { return Ok(Vec::new()) };
        let found = self.resolver.records(&name, RecordType::TXT).await.map_err(|_| Fault::Temporary)?;
        Ok(texts(found.as_deref()).collect())
    }

    /// What stands at a name; nothing at what can be no name (RFC 7208 4.8).
    async fn ask(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, Fault> {
        match any_name(name) {
            Some(name) => self.ask_wire(name, kind).await,
            None => Ok(Vec::new()),
        }
    }

    async fn ask_wire(&self, name: WireName, kind: RecordType) -> Result<Vec<RData>, Fault> {
        let found = self.resolver.records(&name, kind).await.map_err(|_| Fault::Temporary)?;
        let answers = found.iter().flat_map(|lookup| lookup.answers());
        Ok(answers.filter(|record| record.record_type() == kind).map(|record| record.data.clone()).collect())
    }

    /// What the owner of a domain says of a fail: the one text at a name, with its macros filled in. Whatever is
    /// wrong with it, it is as if it were not there (RFC 7208 6.2).
    async fn explanation(&mut self, target: &Target, domain: &str) -> Option<String> {
        let name = self.name(target, domain).await;
        let texts = self.texts(&name).await.ok()?;
        let [text] = texts.as_slice() else { return None };
        if text.len() > EXPLANATION_BYTES_MAX {
            return None;
        }
        let pieces = Pieces::of_explanation(text)?;
        let validated = self.validated_for(pieces.wants_validated_name(), domain).await;
        Some(pieces.expand(&self.facts(domain, &validated)).chars().take(EXPLANATION_CHARS_MAX).collect())
    }
}

fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(four) => Some(IpAddr::V4(four.0)),
        RData::AAAA(six) => Some(IpAddr::V6(six.0)),
        _ => None,
    }
}

/// Whether a name is a domain, or below it.
fn is_within(name: &str, domain: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let above = name.strip_suffix(&domain.to_ascii_lowercase());
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}
