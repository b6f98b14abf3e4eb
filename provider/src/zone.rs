//! A domain's zone at its provider, open for reading and writing.
//!
//! A write adds one record or replaces one text, and leaves all other records unchanged. A text is replaced atomically
//! if the provider supports it. Otherwise the new text is added first and then the old one is deleted. If the deletion
//! fails, the new text is removed, so that the domain keeps its previous record.

use std::collections::BTreeSet;
use std::time::Duration;

use dns_update::{DnsRecord, DnsRecordType, DnsUpdater, Error, MXRecord};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use message::address::DomainName;
use model::domain_setup::{DomainRecord, RecordType};
use tokio::time::{Instant, timeout_at};

use super::cloudflare::CloudflareZone;
use super::credentials::{ProviderCredentials, ProviderLogin};
use super::rfc2136::UpdateServer;
use super::route53::HostedZone;
use super::upstream_error::{ApplyError, UpstreamError, UpstreamFault, upstream_error, upstream_error_with_text};
use super::{Provider, PublishRequest, Publisher, RECORDS_MAX};
use dns::record_changes::{ExistingRecord, ExistingRecordType};

/// Timeout of one step.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum concurrent reads.
const CONCURRENT_READS_MAX: usize = 4;

/// An open zone at a provider.
pub(super) struct ProviderZone<'a> {
    steps: StepTimer<'a>,
    origin: String,
    client: ZoneClient,
}

/// The client for the zone.
enum ZoneClient {
    /// dns-update for everything.
    Plain(DnsUpdater),
    /// dns-update, and [`UpdateServer`] for replacing texts.
    Update(DnsUpdater, UpdateServer),
    /// dns-update, and [`CloudflareZone`] for replacing texts.
    Cloudflare(DnsUpdater, CloudflareZone),
    /// [`HostedZone`] for everything: it reads itself and writes with dns-update.
    Route53(HostedZone),
}

/// Limits the time of each step and converts errors.
#[derive(Clone, Copy)]
struct StepTimer<'a> {
    credentials: &'a ProviderCredentials,
    deadline: Instant,
}

impl StepTimer<'_> {
    async fn run<T>(self, step: impl Future<Output = dns_update::Result<T>>) -> Result<T, UpstreamError> {
        let until = self.deadline.min(Instant::now() + STEP_TIMEOUT);
        match timeout_at(until, step).await {
            Ok(result) => result.map_err(|error| upstream_error(self.credentials, error)),
            Err(_) => Err(self.error(UpstreamFault::Timeout, "")),
        }
    }

    fn error(self, fault: UpstreamFault, text: &str) -> UpstreamError {
        upstream_error_with_text(self.credentials, fault, text)
    }
}

impl<'a> ProviderZone<'a> {
    /// Finds the zone of a domain and opens it.
    pub(super) async fn open(
        publisher: &Publisher,
        credentials: &'a ProviderCredentials,
        request: &PublishRequest<'a>,
        deadline: Instant,
    ) -> Result<Self, ApplyError> {
        let steps = StepTimer { credentials, deadline };
        let domain = request.domain;
        let within =
            |zone: &str, name: &str| name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if !request.records.iter().all(|record| within(domain.as_str(), &record.name)) {
            return Err(steps.error(UpstreamFault::NoZone, "a record is not within the domain").into());
        }
        if request.records.len() > RECORDS_MAX {
            return Err(steps.error(UpstreamFault::Refused, "there are too many records").into());
        }
        let known_zone = request.zone.map(|zone| zone.as_str().to_owned());
        if known_zone.as_ref().is_some_and(|zone| !within(zone, domain.as_str())) {
            return Err(steps.error(UpstreamFault::NoZone, "the domain is not in the zone").into());
        }
        let (origin, client) = match &credentials.login {
            ProviderLogin::Tsig(key) => {
                let address = key.server.resolve(&publisher.resolver, publisher.allow_private).await?;
                let server = UpdateServer::new(address, key);
                let updater = server.updater().map_err(|error| upstream_error(credentials, error))?;
                let origin = match known_zone {
                    Some(known_zone) => known_zone,
                    None => steps.run(find_zone(&updater, domain)).await?,
                };
                if request.dry_run {
                    steps.run(server.check_access(&origin)).await?;
                }
                (origin, ZoneClient::Update(updater, server))
            }
            ProviderLogin::Aws(keys) => {
                let hosted = steps.run(HostedZone::open(keys, domain, request.now)).await?;
                (domain.as_str().to_owned(), ZoneClient::Route53(hosted))
            }
            ProviderLogin::Token(token) if credentials.provider() == Provider::Cloudflare => {
                let updater = provider_client(credentials).map_err(|error| upstream_error(credentials, error))?;
                let zone = steps.run(CloudflareZone::open(token, domain.as_str())).await?;
                (zone.name.clone(), ZoneClient::Cloudflare(updater, zone))
            }
            ProviderLogin::Token(_) | ProviderLogin::Pair(..) => {
                let updater = provider_client(credentials).map_err(|error| upstream_error(credentials, error))?;
                let origin = match known_zone {
                    Some(known_zone) => known_zone,
                    None if finds_zone_itself(credentials.provider()) => domain.as_str().to_owned(),
                    None => match publisher.resolver.find_zone(domain).await {
                        Ok(Some(origin)) => origin.as_str().to_owned(),
                        Ok(None) => {
                            return Err(steps.error(UpstreamFault::NoZone, "its zone was not found in the DNS").into());
                        }
                        Err(error) => {
                            return Err(steps.error(UpstreamFault::NoZone, &error.to_string()).into());
                        }
                    },
                };
                (origin, ZoneClient::Plain(updater))
            }
        };
        Ok(Self { steps, origin, client })
    }

    /// Reads the existing records that may conflict with the wanted ones, at their names.
    pub(super) async fn existing_records(&self, wanted: &[DomainRecord]) -> Result<Vec<ExistingRecord>, UpstreamError> {
        if let ZoneClient::Route53(zone) = &self.client {
            let names: BTreeSet<&str> = wanted.iter().map(|record| record.name.as_str()).collect();
            let mut sets = Vec::with_capacity(names.len());
            for name in names {
                sets.push(self.steps.run(zone.existing_records(name)));
            }
            let sets = stream::iter(sets).buffered(CONCURRENT_READS_MAX);
            return Ok(sets.try_collect::<Vec<_>>().await?.concat());
        }
        let mut questions = Vec::new();
        for record in wanted {
            for &kind in conflicting_types(record.record_type) {
                let question = (record.name.as_str(), kind);
                // At the zone's apex Cloudflare resolves a CNAME to addresses (flattening), so it does not conflict.
                let flat = matches!(self.client, ZoneClient::Cloudflare(..))
                    && kind == DnsRecordType::CNAME
                    && record.name == self.origin;
                if !flat && !questions.contains(&question) {
                    questions.push(question);
                }
            }
        }
        let mut answers = Vec::with_capacity(questions.len());
        for (name, kind) in questions {
            answers.push(self.existing_records_of_type(name, kind));
        }
        Ok(stream::iter(answers).buffered(CONCURRENT_READS_MAX).try_collect::<Vec<_>>().await?.concat())
    }

    async fn existing_records_of_type(
        &self,
        name: &str,
        kind: DnsRecordType,
    ) -> Result<Vec<ExistingRecord>, UpstreamError> {
        let records = self.list(name, kind).await?;
        Ok(records.into_iter().filter_map(|record| existing_record(name, record)).collect())
    }

    /// Adds a record, leaving existing ones unchanged.
    pub(super) async fn create(&mut self, record: &DomainRecord) -> Result<(), UpstreamError> {
        let data = record_data(record);
        match &self.client {
            ZoneClient::Route53(zone) => self.steps.run(zone.write_record_set(record, None)).await,
            ZoneClient::Plain(updater) | ZoneClient::Update(updater, _) | ZoneClient::Cloudflare(updater, _) => {
                let kind = data.as_type();
                self.steps.run(updater.add_to_rrset(&record.name, kind, record.ttl_s, vec![data], &self.origin)).await
            }
        }
    }

    /// Replaces the text `old` with the record's value.
    pub(super) async fn replace(&mut self, record: &DomainRecord, old: &str) -> Result<(), UpstreamError> {
        match &self.client {
            ZoneClient::Route53(zone) => self.steps.run(zone.write_record_set(record, Some(old))).await,
            ZoneClient::Update(_, server) => self.steps.run(server.replace(&self.origin, record, old)).await,
            ZoneClient::Cloudflare(_, zone) => self.steps.run(zone.replace(record, old)).await,
            ZoneClient::Plain(updater) => self.add_then_delete(updater, record, old).await,
        }
    }

    /// Adds the new text, then deletes the old one: if the provider refuses, the domain keeps its previous record.
    async fn add_then_delete(
        &self,
        updater: &DnsUpdater,
        record: &DomainRecord,
        old: &str,
    ) -> Result<(), UpstreamError> {
        let (name, origin) = (&record.name, &self.origin);
        let text = |value: &str| vec![DnsRecord::TXT(value.to_owned())];
        self.steps
            .run(updater.add_to_rrset(name, DnsRecordType::TXT, record.ttl_s, text(&record.value), origin))
            .await?;
        let removed = self.steps.run(updater.remove_from_rrset(name, DnsRecordType::TXT, text(old), origin)).await;
        // A provider that formats the old text differently than dns-update deletes nothing and returns no error.
        let left = match removed {
            Ok(()) => self
                .list(name, DnsRecordType::TXT)
                .await
                .map(|records| records.iter().any(|found| matches!(found, DnsRecord::TXT(found) if found == old))),
            Err(error) => Err(error),
        };
        let error = match left {
            Ok(false) => return Ok(()),
            Ok(true) => {
                self.steps.error(UpstreamFault::Refused, "the provider does not allow changing the existing record")
            }
            Err(error) => error,
        };
        let rollback = updater.remove_from_rrset(name, DnsRecordType::TXT, text(&record.value), origin);
        match self.steps.run(rollback).await {
            Ok(()) => Err(error),
            Err(_) => Err(self.steps.error(
                error.fault,
                &format!(
                    "{} has both the old and the new text now; delete the old one manually; {}",
                    record.name, error.message
                ),
            )),
        }
    }

    async fn list(&self, name: &str, kind: DnsRecordType) -> Result<Vec<DnsRecord>, UpstreamError> {
        match &self.client {
            ZoneClient::Route53(_) => Ok(Vec::new()),
            ZoneClient::Plain(updater) | ZoneClient::Update(updater, _) | ZoneClient::Cloudflare(updater, _) => {
                self.steps.run(updater.list_rrset(name, kind, self.origin.as_str())).await
            }
        }
    }
}

/// Types of existing records that can conflict with a record of this type.
fn conflicting_types(record_type: RecordType) -> &'static [DnsRecordType] {
    use DnsRecordType::{A, AAAA, CNAME, MX, TXT};
    match record_type {
        RecordType::Txt => &[TXT, CNAME],
        RecordType::Mx => &[MX, CNAME],
        RecordType::Cname => &[CNAME, A, AAAA, TXT, MX],
    }
}

fn existing_record(name: &str, record: DnsRecord) -> Option<ExistingRecord> {
    let host = |text: &str| text.trim_end_matches('.').to_ascii_lowercase();
    let (kind, value) = match record {
        DnsRecord::TXT(text) => (ExistingRecordType::Txt, text),
        DnsRecord::CNAME(target) => (ExistingRecordType::Cname, host(&target)),
        DnsRecord::MX(mx) => (ExistingRecordType::Mx, host(&mx.exchange)),
        DnsRecord::A(address) => (ExistingRecordType::Address, address.to_string()),
        DnsRecord::AAAA(address) => (ExistingRecordType::Address, address.to_string()),
        _ => return None,
    };
    Some(ExistingRecord { name: name.to_owned(), kind, value })
}

/// Converts a record for dns-update.
pub(super) fn record_data(record: &DomainRecord) -> DnsRecord {
    match record.record_type {
        RecordType::Txt => DnsRecord::TXT(record.value.clone()),
        RecordType::Cname => DnsRecord::CNAME(record.value.clone()),
        RecordType::Mx => {
            DnsRecord::MX(MXRecord { exchange: record.value.clone(), priority: record.priority.unwrap_or(10) })
        }
    }
}

/// Returns whether the provider finds the zone of any name in it.
fn finds_zone_itself(provider: Provider) -> bool {
    matches!(provider, Provider::Desec | Provider::Gcore | Provider::Infomaniak)
}

/// Finds the zone of a domain on a server for dynamic updates.
async fn find_zone(updater: &DnsUpdater, domain: &DomainName) -> dns_update::Result<String> {
    let mut candidate = Some(domain.clone());
    while let Some(name) = candidate {
        let found = updater.list_rrset(name.as_str(), DnsRecordType::NS, name.as_str()).await;
        let found = found.map_err(|error| match error {
            // A server refuses queries for zones that it does not serve.
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

/// Creates dns-update's client for a provider. Route 53 and RFC 2136 have their own ([`ZoneClient`]).
pub(super) fn provider_client(credentials: &ProviderCredentials) -> dns_update::Result<DnsUpdater> {
    // Longer than the timeout of a step, which therefore ends first with a more precise error.
    let timeout = Some(STEP_TIMEOUT * 2);
    match (&credentials.login, credentials.provider()) {
        (ProviderLogin::Token(token), provider) => {
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
        (ProviderLogin::Pair(first, second), provider) => {
            let (first, second) = (first.expose(), second.expose());
            match provider {
                Provider::Dnsimple => DnsUpdater::new_dnsimple(second, first, timeout),
                Provider::Godaddy => DnsUpdater::new_godaddy(first, second, timeout),
                Provider::NameCom => DnsUpdater::new_namedotcom(first, second, timeout),
                Provider::Porkbun => DnsUpdater::new_porkbun(first, second, timeout),
                _ => Err(unsupported()),
            }
        }
        (ProviderLogin::Aws(_) | ProviderLogin::Tsig(_), _) => Err(unsupported()),
    }
}

fn unsupported() -> Error {
    Error::Unsupported("no client for this provider".to_owned())
}
