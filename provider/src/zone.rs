//! A domain's zone at its provider, open for reading and writing.
//!
//! Writing adds one record or replaces one text; nothing else that stands is touched. How a text is replaced differs:
//! in one step where the provider can; elsewhere the new one is put there first, the old one is taken away, and
//! if that did not come about, the new one is taken back, so that the domain is left with the record it had.

use std::collections::BTreeSet;
use std::time::Duration;

use dns_update::{DnsRecord, DnsRecordType, DnsUpdater, Error, MXRecord};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use mail::address::Name;
use mail::setup::{Record, RecordType};
use tokio::time::{Instant, timeout_at};

use super::cloudflare::CloudflareZone;
use super::credentials::{Credentials, Login};
use super::fault::{ApplyError, Fault, UpstreamError, told, upstream};
use super::rfc2136::UpdateServer;
use super::route53::HostedZone;
use super::{Provider, Publisher, RECORDS_MAX, Request};
use dns::plan::{Kind, Standing};

/// How long one step may take.
const STEP: Duration = Duration::from_secs(15);
/// Questions under way at once.
const AT_ONCE: usize = 4;

/// An open zone.
pub(super) struct Zone<'a> {
    steps: Steps<'a>,
    origin: String,
    client: Client,
}

/// How the zone is spoken to.
enum Client {
    /// By dns-update alone.
    Plain(DnsUpdater),
    /// By dns-update, and by ourselves where a text is replaced.
    Update(DnsUpdater, UpdateServer),
    /// The same.
    Cloudflare(DnsUpdater, CloudflareZone),
    /// By ourselves where it is read.
    Route53(HostedZone),
}

/// Keeps steps within their time, and makes their errors ours.
#[derive(Clone, Copy)]
struct Steps<'a> {
    credentials: &'a Credentials,
    deadline: Instant,
}

impl Steps<'_> {
    async fn step<T>(self, step: impl Future<Output = dns_update::Result<T>>) -> Result<T, UpstreamError> {
        let until = self.deadline.min(Instant::now() + STEP);
        match timeout_at(until, step).await {
            Ok(done) => done.map_err(|error| upstream(self.credentials, error)),
            Err(_) => Err(self.told(Fault::Timeout, "")),
        }
    }

    fn told(self, fault: Fault, text: &str) -> UpstreamError {
        told(self.credentials, fault, text)
    }
}

impl<'a> Zone<'a> {
    /// Finds the zone that a domain is in.
    pub(super) async fn open(
        publisher: &Publisher,
        credentials: &'a Credentials,
        request: &Request<'a>,
        deadline: Instant,
    ) -> Result<Self, ApplyError> {
        let steps = Steps { credentials, deadline };
        let domain = request.domain;
        let within = |zone: &str, name: &str| {
            name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if !request.wanted.iter().all(|record| within(domain.as_str(), &record.name)) {
            return Err(steps.told(Fault::NoZone, "a record is not of the domain").into());
        }
        if request.wanted.len() > RECORDS_MAX {
            return Err(steps.told(Fault::Refused, "there are too many records").into());
        }
        let known = request.zone.map(|zone| zone.as_str().to_owned());
        if known.as_ref().is_some_and(|zone| !within(zone, domain.as_str())) {
            return Err(steps.told(Fault::NoZone, "the domain is not in the zone").into());
        }
        let (origin, client) = match &credentials.login {
            Login::Tsig(key) => {
                let address = key.server.find(&publisher.resolver, publisher.allow_private).await?;
                let server = UpdateServer::new(address, key);
                let updater = server.updater().map_err(|error| upstream(credentials, error))?;
                let origin = match known {
                    Some(known) => known,
                    None => steps.step(find_at(&updater, domain)).await?,
                };
                if request.dry_run {
                    steps.step(server.prove(&origin)).await?;
                }
                (origin, Client::Update(updater, server))
            }
            Login::Aws(keys) => {
                let hosted = steps.step(HostedZone::open(keys, domain, request.now)).await?;
                (domain.as_str().to_owned(), Client::Route53(hosted))
            }
            Login::Token(token) if credentials.provider() == Provider::Cloudflare => {
                let updater = updater(credentials).map_err(|error| upstream(credentials, error))?;
                let zone = steps.step(CloudflareZone::open(token, domain.as_str())).await?;
                (zone.name.clone(), Client::Cloudflare(updater, zone))
            }
            Login::Token(_) | Login::Pair(..) => {
                let updater = updater(credentials).map_err(|error| upstream(credentials, error))?;
                let origin = match known {
                    Some(known) => known,
                    None if finds_itself(credentials.provider()) => domain.as_str().to_owned(),
                    None => match publisher.resolver.zone(domain).await {
                        Ok(Some(origin)) => origin.as_str().to_owned(),
                        Ok(None) => {
                            return Err(steps.told(Fault::NoZone, "the DNS knows no zone of it").into());
                        }
                        Err(error) => return Err(steps.told(Fault::NoZone, &error.to_string()).into()),
                    },
                };
                (origin, Client::Plain(updater))
            }
        };
        Ok(Self { steps, origin, client })
    }

    /// What stands at the names of the wanted records, as far as it can be in their way.
    pub(super) async fn standing(&self, wanted: &[Record]) -> Result<Vec<Standing>, UpstreamError> {
        if let Client::Route53(zone) = &self.client {
            let names: BTreeSet<&str> = wanted.iter().map(|record| record.name.as_str()).collect();
            let mut sets = Vec::with_capacity(names.len());
            for name in names {
                sets.push(self.steps.step(zone.standing(name)));
            }
            let sets = stream::iter(sets).buffered(AT_ONCE);
            return Ok(sets.try_collect::<Vec<_>>().await?.concat());
        }
        let mut questions = Vec::new();
        for record in wanted {
            for &kind in in_the_way(record.record_type) {
                let question = (record.name.as_str(), kind);
                // At a zone's own name Cloudflare makes addresses of an alias, which is in nobody's way.
                let flat = matches!(self.client, Client::Cloudflare(..))
                    && kind == DnsRecordType::CNAME
                    && record.name == self.origin;
                if !flat && !questions.contains(&question) {
                    questions.push(question);
                }
            }
        }
        let mut answers = Vec::with_capacity(questions.len());
        for (name, kind) in questions {
            answers.push(self.standing_of(name, kind));
        }
        Ok(stream::iter(answers).buffered(AT_ONCE).try_collect::<Vec<_>>().await?.concat())
    }

    async fn standing_of(&self, name: &str, kind: DnsRecordType) -> Result<Vec<Standing>, UpstreamError> {
        let records = self.list(name, kind).await?;
        Ok(records.into_iter().filter_map(|record| standing(name, record)).collect())
    }

    /// Adds a record beside what stands.
    pub(super) async fn create(&mut self, record: &Record) -> Result<(), UpstreamError> {
        let data = data(record);
        match &self.client {
            Client::Route53(zone) => self.steps.step(zone.put(record, None)).await,
            Client::Plain(updater) | Client::Update(updater, _) | Client::Cloudflare(updater, _) => {
                let kind = data.as_type();
                self.steps
                    .step(updater.add_to_rrset(&record.name, kind, record.ttl_s, vec![data], &self.origin))
                    .await
            }
        }
    }

    /// Puts a text in the place of another.
    pub(super) async fn replace(&mut self, record: &Record, old: &str) -> Result<(), UpstreamError> {
        match &self.client {
            Client::Route53(zone) => self.steps.step(zone.put(record, Some(old))).await,
            Client::Update(_, server) => self.steps.step(server.swap(&self.origin, record, old)).await,
            Client::Cloudflare(_, zone) => self.steps.step(zone.replace(record, old)).await,
            Client::Plain(updater) => self.exchange(updater, record, old).await,
        }
    }

    /// New first, then the old one away: a refusal leaves the domain with the record it had.
    async fn exchange(&self, updater: &DnsUpdater, record: &Record, old: &str) -> Result<(), UpstreamError> {
        let (name, origin) = (&record.name, &self.origin);
        let text = |value: &str| vec![DnsRecord::TXT(value.to_owned())];
        self.steps
            .step(updater.add_to_rrset(name, DnsRecordType::TXT, record.ttl_s, text(&record.value), origin))
            .await?;
        let removed =
            self.steps.step(updater.remove_from_rrset(name, DnsRecordType::TXT, text(old), origin)).await;
        // A provider that writes the old one in another way than dns-update does removes nothing and says nothing.
        let left = match removed {
            Ok(()) => self.list(name, DnsRecordType::TXT).await.map(|records| {
                records.iter().any(|there| matches!(there, DnsRecord::TXT(there) if there == old))
            }),
            Err(error) => Err(error),
        };
        let error = match left {
            Ok(false) => return Ok(()),
            Ok(true) => {
                self.steps.told(Fault::Refused, "the record that is there cannot be changed from here")
            }
            Err(error) => error,
        };
        let back = updater.remove_from_rrset(name, DnsRecordType::TXT, text(&record.value), origin);
        match self.steps.step(back).await {
            Ok(()) => Err(error),
            Err(_) => Err(self.steps.told(
                error.fault,
                &format!(
                    "{} has the old text and the new one now, take the old one away by hand; {}",
                    record.name, error.message
                ),
            )),
        }
    }

    async fn list(&self, name: &str, kind: DnsRecordType) -> Result<Vec<DnsRecord>, UpstreamError> {
        match &self.client {
            Client::Route53(_) => Ok(Vec::new()),
            Client::Plain(updater) | Client::Update(updater, _) | Client::Cloudflare(updater, _) => {
                self.steps.step(updater.list_rrset(name, kind, &self.origin)).await
            }
        }
    }
}

/// What can keep a record from being put there.
fn in_the_way(record_type: RecordType) -> &'static [DnsRecordType] {
    use DnsRecordType::{A, AAAA, CNAME, MX, TXT};
    match record_type {
        RecordType::Txt => &[TXT, CNAME],
        RecordType::Mx => &[MX, CNAME],
        RecordType::Cname => &[CNAME, A, AAAA, TXT, MX],
    }
}

fn standing(name: &str, record: DnsRecord) -> Option<Standing> {
    let host = |text: &str| text.trim_end_matches('.').to_ascii_lowercase();
    let (kind, value) = match record {
        DnsRecord::TXT(text) => (Kind::Txt, text),
        DnsRecord::CNAME(target) => (Kind::Cname, host(&target)),
        DnsRecord::MX(mx) => (Kind::Mx, host(&mx.exchange)),
        DnsRecord::A(address) => (Kind::Address, address.to_string()),
        DnsRecord::AAAA(address) => (Kind::Address, address.to_string()),
        _ => return None,
    };
    Some(Standing { name: name.to_owned(), kind, value })
}

/// A record as dns-update has it.
pub(super) fn data(record: &Record) -> DnsRecord {
    match record.record_type {
        RecordType::Txt => DnsRecord::TXT(record.value.clone()),
        RecordType::Cname => DnsRecord::CNAME(record.value.clone()),
        RecordType::Mx => DnsRecord::MX(MXRecord {
            exchange: record.value.clone(),
            priority: record.priority.unwrap_or(10),
        }),
    }
}

/// Those that look for the zone themselves, upwards from any name in it.
fn finds_itself(provider: Provider) -> bool {
    matches!(provider, Provider::Desec | Provider::Gcore | Provider::Infomaniak)
}

/// The zone that a server for dynamic updates has the domain in.
async fn find_at(updater: &DnsUpdater, domain: &Name) -> dns_update::Result<String> {
    let mut candidate = Some(domain.clone());
    while let Some(name) = candidate {
        let found = updater.list_rrset(name.as_str(), DnsRecordType::NS, name.as_str()).await;
        let found = found.map_err(|error| match error {
            // A server refuses to speak of zones that are not its own.
            Error::Response(code) => Error::Api(format!("no zone found: {code}")),
            other => other,
        })?;
        if !found.is_empty() {
            return Ok(name.as_str().to_owned());
        }
        candidate = name.parent();
    }
    Err(Error::NotFound)
}

/// dns-update's client for a provider. The two that need to look around first come with their own ([`Client`]).
fn updater(credentials: &Credentials) -> dns_update::Result<DnsUpdater> {
    // Ours is up first, and says what it is.
    let timeout = Some(STEP * 2);
    match (&credentials.login, credentials.provider()) {
        (Login::Token(token), provider) => {
            let token = token.expose();
            match provider {
                Provider::Cloudflare => DnsUpdater::new_cloudflare(token, timeout),
                Provider::Digitalocean => DnsUpdater::new_digitalocean(token, timeout),
                Provider::Hetzner => DnsUpdater::new_hetzner(token, timeout),
                Provider::Gandi => DnsUpdater::new_gandiv5(token, timeout),
                Provider::Bunny => DnsUpdater::new_bunny(token, timeout),
                Provider::Desec => DnsUpdater::new_desec(token, timeout),
                Provider::Gcore => DnsUpdater::new_gcore(token, timeout),
                Provider::Hostinger => DnsUpdater::new_hostinger(token, timeout),
                Provider::Infomaniak => DnsUpdater::new_infomaniak(token, timeout),
                Provider::Ionos => DnsUpdater::new_ionos(token, timeout),
                Provider::Linode => DnsUpdater::new_linode(token, timeout),
                Provider::Netlify => DnsUpdater::new_netlify(token, timeout),
                Provider::Ns1 => DnsUpdater::new_ns1(token, timeout),
                Provider::Scaleway => DnsUpdater::new_scaleway(token, timeout),
                Provider::Vercel => DnsUpdater::new_vercel(token, None::<&str>, timeout),
                Provider::Vultr => DnsUpdater::new_vultr(token, timeout),
                _ => Err(unsupported()),
            }
        }
        (Login::Pair(first, second), provider) => {
            let (first, second) = (first.expose(), second.expose());
            match provider {
                Provider::Dnsimple => DnsUpdater::new_dnsimple(first, second, timeout),
                Provider::Godaddy => DnsUpdater::new_godaddy(first, second, timeout),
                Provider::NameCom => DnsUpdater::new_namedotcom(first, second, timeout),
                Provider::Porkbun => DnsUpdater::new_porkbun(first, second, timeout),
                _ => Err(unsupported()),
            }
        }
        (Login::Aws(_) | Login::Tsig(_), _) => Err(unsupported()),
    }
}

fn unsupported() -> Error {
    Error::Unsupported("no client for this provider".to_owned())
}
