//! DMARC aggregate reports: opened, parsed and counted (RFC 7489 7.2, RFC 9990).
//!
//! ```text
//! message ─► author authenticated? ─► gzip, zip or XML, bounded ─► mail-auth's parser ─► verified domains?
//!         ─►[ report + sums by day and address ], for each of them
//! ```
//!
//! A report is about the domain whose policy was applied. For a subdomain without a policy of its own that is the
//! organizational domain (RFC 7489 6.6.3). The account of such a subdomain sees the rows whose author is at or below
//! it; the account of the report's domain sees all rows.
//!
//! Every host can send to the address, so a report counts only if its author's domain is authenticated (DKIM or SPF,
//! aligned). It is stored under that domain, once per report id. A message that is no report, or about a domain not
//! verified here, is dropped without an error.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use dns::spf;
use jiff::Timestamp;
use mail_auth::report::{self as wire, ActionDisposition, Alignment, Disposition, DmarcResult};
use message::address::{DomainName, Mailbox as Author};
use message::bounce::report_parts;
use message::dmarc::{DmarcMessageCounts, DmarcPolicy, DmarcPolicyPublished, DmarcReport, DmarcSource, cap_sources};
use message::domain_name::organizational_domain;
use message::inbound_message::InboundMessage;
use message::received::AuthResult;
use message::reply::truncate_diagnostic;
use model::domain::{DomainState, SendingDomain};
use store::engine::{Batch, CommitError};

use super::report_file::ReportFormat;
use super::{BounceError, BounceProcessor};

/// Longer messages are no reports: those of the largest reporters have some hundred kilobytes.
const MESSAGE_BYTES_MAX: usize = 12 << 20;
/// Format of the files. A record of a genuine report takes some 900 bytes and 36 tags.
const FORMAT: ReportFormat = ReportFormat {
    prefixes: &[b"<?xml", b"<feedback"],
    bytes_max: 16 << 20,
    marks: &[(b"<", 800_000), (b"record", 150_000)],
};
/// Author domains looked up for a report, besides its own domain.
const NAMES_MAX: usize = 500;
/// Longest time for finding out which addresses belong to this service.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Commit tries when other reports are counted for the same day.
const COMMIT_TRIES_MAX: usize = 50;

/// A parsed report file.
struct DmarcReportFile {
    domain: DomainName,
    org_name: String,
    report_id: String,
    begins_at: Timestamp,
    ends_at: Timestamp,
    policy: DmarcPolicyPublished,
    rows: DmarcSourceCounts,
}

/// Counts by author domain and source address. Rows without an author count for the report's domain.
type DmarcSourceCounts = BTreeMap<(DomainName, IpAddr), DmarcMessageCounts>;

/// The part of a report that is about one verified domain.
struct DomainDmarcReport {
    domain: SendingDomain,
    report: DmarcReport,
    sources: Vec<DmarcSource>,
}

impl DmarcReportFile {
    /// Returns the domains that the report may be about: its own, and the authors' domains at or below it.
    fn author_domains(&self) -> BTreeSet<DomainName> {
        let mut names = BTreeSet::from([self.domain.clone()]);
        for (author, _) in self.rows.keys() {
            let mut at = Some(author.clone());
            while let Some(name) = at.filter(|name| name.is_within(&self.domain) && !names.contains(name)) {
                if names.len() > NAMES_MAX {
                    return names;
                }
                at = name.parent();
                names.insert(name);
            }
        }
        names
    }

    /// Returns the part of the report about `domain`.
    fn for_domain(&self, domain: SendingDomain, reporter: &DomainName, received_at: Timestamp) -> DomainDmarcReport {
        let mut sums: BTreeMap<IpAddr, DmarcMessageCounts> = BTreeMap::new();
        let own_rows = self.rows.iter().filter(|((author, _), _)| author.is_within(&domain.name));
        own_rows.for_each(|((_, ip), tally)| sums.entry(*ip).or_default().add(tally));
        let mut totals = DmarcMessageCounts::default();
        sums.values().for_each(|tally| totals.add(tally));
        let sources = sums.into_iter().map(|(ip, tally)| DmarcSource { ip: Some(ip), ours: false, tally });
        let report = DmarcReport {
            reporter: reporter.clone(),
            org_name: self.org_name.clone(),
            report_id: self.report_id.clone(),
            begins_at: self.begins_at,
            ends_at: self.ends_at,
            policy: self.policy,
            tally: totals,
            received_at,
        };
        DomainDmarcReport { domain, report, sources: cap_sources(sources.collect()) }
    }
}

impl BounceProcessor {
    /// Stores a received report and returns the result for metrics.
    pub(super) async fn store_dmarc_report(&self, arrival: &InboundMessage) -> Result<&'static str, BounceError> {
        let Some(reporter) = authenticated_author(arrival) else { return Ok("untrusted") };
        let message = arrival.message.clone();
        let opened = {
            // The semaphore is never closed.
            let _permit = self.report_permits.acquire().await;
            tokio::task::spawn_blocking(move || open_report(&message)).await.ok().flatten()
        };
        let Some(opened) = opened else { return Ok("nothing") };
        let mut parts = Vec::new();
        let mut result = "unknown";
        for name in opened.author_domains() {
            let Some(domain) = self.verified_domain(&name).await? else { continue };
            let part = opened.for_domain(domain, &reporter, arrival.received_at);
            if !part.report.has_plausible_range(arrival.received_at) {
                return Ok("nothing");
            }
            let domain_key = (part.domain.account, part.domain.id);
            if store::dmarc::is_counted(&self.services.store, domain_key, &part.report).await? {
                result = "changed_nothing";
            } else {
                parts.push(part);
            }
        }
        self.mark_own_sources(&mut parts).await;
        for part in &parts {
            result = self.write_dmarc_report(part).await?;
        }
        Ok(result)
    }

    /// Returns the domain of this name if an account has verified it.
    pub(super) async fn verified_domain(&self, name: &DomainName) -> Result<Option<SendingDomain>, BounceError> {
        let found = store::domain::find_by_name(&self.services.store, name).await?;
        Ok(found.filter(|domain| domain.state == DomainState::Verified))
    }

    /// Marks the addresses of this service: those that pass the SPF record which customers include.
    async fn mark_own_sources(&self, parts: &mut [DomainDmarcReport]) {
        let resolver = &self.resolver;
        let (host, hello) = (&self.facts.spf_include_host, &self.hostname);
        let look = async {
            // The resolver caches the result for the same address in another part.
            for source in parts.iter_mut().flat_map(|part| &mut part.sources) {
                let Some(ip) = source.ip else { continue };
                match spf::check_domain(resolver, host, ip, hello).await {
                    AuthResult::Pass => source.ours = true,
                    // The lookup fails or the record is missing: that applies to all other addresses, too.
                    AuthResult::TempError | AuthResult::PermError | AuthResult::None => return,
                    _ => {}
                }
            }
        };
        if tokio::time::timeout(LOOKUP_TIMEOUT, look).await.is_err() {
            tracing::debug!("timeout checking which addresses of a DMARC report belong to this service");
        }
    }

    async fn write_dmarc_report(
        &self,
        DomainDmarcReport { domain, report, sources }: &DomainDmarcReport,
    ) -> Result<&'static str, BounceError> {
        let (store, domain_key) = (&self.services.store, (domain.account, domain.id));
        for tries in 1.. {
            let mut batch = Batch::intake();
            if !store::dmarc::record_report(store, &mut batch, domain_key, report, sources.as_slice()).await? {
                return Ok("changed_nothing");
            }
            match store.commit(batch).await {
                Ok(()) => break,
                Err(CommitError::Conflict { key })
                    if tries < COMMIT_TRIES_MAX && store::dmarc::caused_conflict(&key) => {}
                Err(error) => return Err(error.into()),
            }
        }
        tracing::info!(domain.name = %domain.name, reporter = %report.reporter, "DMARC report counted");
        Ok("counted")
    }
}

/// Returns the organizational domain of the message's author, if it is authenticated.
pub(super) fn authenticated_author(arrival: &InboundMessage) -> Option<DomainName> {
    let from = report_parts::header_field(&arrival.message, "From")?;
    let author: Author = from.parse().ok()?;
    let author = organizational_domain(author.address.domain());
    arrival.authenticated.iter().any(|name| organizational_domain(name) == author).then_some(author)
}

/// Opens and parses the first report in a message.
fn open_report(message: &Bytes) -> Option<DmarcReportFile> {
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    FORMAT.find(&report_parts::parse_parts(message), parse_report)
}

fn parse_report(xml: &[u8]) -> Option<DmarcReportFile> {
    let report = wire::Report::parse_xml(xml).ok()?;
    let metadata = &report.report_metadata;
    let domain: DomainName = report.policy_published.domain.trim().trim_end_matches('.').parse().ok()?;
    let time = |seconds: u64| i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok());
    let report_id = truncate_diagnostic(metadata.report_id.trim());
    if report_id.is_empty() {
        return None;
    }
    Some(DmarcReportFile {
        org_name: truncate_diagnostic(metadata.org_name.trim()),
        report_id,
        begins_at: time(metadata.date_range.begin)?,
        ends_at: time(metadata.date_range.end)?,
        policy: published_policy(&report.policy_published),
        rows: count_records(&report.record, &domain),
        domain,
    })
}

fn published_policy(published: &wire::PolicyPublished) -> DmarcPolicyPublished {
    let wanted = |disposition| match disposition {
        Disposition::Quarantine => Some(DmarcPolicy::Quarantine),
        Disposition::Reject => Some(DmarcPolicy::Reject),
        Disposition::None => Some(DmarcPolicy::None),
        Disposition::Unspecified => None,
    };
    DmarcPolicyPublished {
        p: wanted(published.p).unwrap_or(DmarcPolicy::None),
        sp: wanted(published.sp),
        strict_dkim: published.adkim == Alignment::Strict,
        strict_spf: published.aspf == Alignment::Strict,
    }
}

/// Sums the records whose author is at or below the report's domain.
fn count_records(records: &[wire::Record], domain: &DomainName) -> DmarcSourceCounts {
    let mut rows = DmarcSourceCounts::new();
    for record in records {
        let Some(ip) = record.row.source_ip else { continue };
        let author = record.identifiers.header_from.trim().trim_end_matches('.');
        let author = if author.is_empty() { Some(domain.clone()) } else { author.parse().ok() };
        let Some(author) = author.filter(|author| author.is_within(domain)) else { continue };
        let (messages, judged) = (u64::from(record.row.count), &record.row.policy_evaluated);
        let count_if = |condition: bool| if condition { messages } else { 0 };
        let (dkim, spf) = (judged.dkim == DmarcResult::Pass, judged.spf == DmarcResult::Pass);
        rows.entry((author, ip.to_canonical())).or_default().add(&DmarcMessageCounts {
            messages,
            passed: count_if(dkim || spf),
            dkim_aligned: count_if(dkim),
            spf_aligned: count_if(spf),
            quarantined: count_if(judged.disposition == ActionDisposition::Quarantine),
            rejected: count_if(judged.disposition == ActionDisposition::Reject),
        });
    }
    rows
}

#[cfg(test)]
pub(super) mod tests;
