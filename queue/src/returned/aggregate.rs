//! DMARC aggregate reports: opened, parsed, counted (RFC 7489 7.2, RFC 9990).
//!
//! ```text
//! message ─► sent by whom it says? ─► gzip, zip or XML, bounded ─► mail-auth's parser ─► domains of ours?
//!         ─►[ report + sums by day and address ], for each of them
//! ```
//!
//! A report is about the domain whose policy was found, which for a part of it without a policy of its own is the
//! organization's (RFC 7489 6.6.3). Who has such a part here is shown the rows whose author is at it or below it;
//! who has the domain itself, all of them.
//!
//! Anybody may write to the address, so a report counts only when the domain of its author stands behind it (DKIM
//! or SPF, aligned); it is kept under that domain's name, and of each report number there once. What is none, or
//! is about a domain that is not verified here, is dropped: nobody is asked to send it again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use dns::sender_policy::{self, PolicyResult};
use jiff::Timestamp;
use mail::address::{Mailbox as Author, Name};
use mail::arrival::Arrival;
use mail::dmarc::{Policy, Report, Source, Tally, Wanted, told_apart};
use mail::domain::{Domain, DomainState};
use mail::returned::parts;
use mail::sending_name::organisation;
use mail::suppression::shortened;
use mail_auth::report::{self as wire, ActionDisposition, Alignment, Disposition, DmarcResult};
use store::engine::{Batch, CommitError};

use super::report_file::ReportFormat;
use super::{Returned, ReturnedError};

/// A message that is longer is no report: of the largest reporters they have some hundred kilobytes.
const MESSAGE_BYTES_MAX: usize = 12 << 20;
/// The files. A record of an honest report takes some 900 bytes and 36 tags.
const FORMAT: ReportFormat = ReportFormat {
    beginnings: &[b"<?xml", b"<feedback"],
    bytes_max: 16 << 20,
    marks: &[(b"<", 800_000), (b"record", 150_000)],
};
/// Names that are looked for in a report, beside its own: the parts of it that authors are at.
const NAMES_MAX: usize = 500;
/// How long it is looked which addresses are ours.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// How often is begun again when others count for the same day.
const TRIES_MAX: usize = 50;

/// A report as it was in the message.
struct Opened {
    domain: Name,
    org_name: String,
    report_id: String,
    begins_at: Timestamp,
    ends_at: Timestamp,
    policy: Policy,
    rows: Rows,
}

/// Sums by author's domain and address; an author that is not named is the report's domain.
type Rows = BTreeMap<(Name, IpAddr), Tally>;

/// What a report says of one domain of ours.
struct Part {
    domain: Domain,
    report: Report,
    sources: Vec<Source>,
}

impl Opened {
    /// The domains that it may be about: its own, and the parts of it that authors are at.
    fn names(&self) -> BTreeSet<Name> {
        let mut names = BTreeSet::from([self.domain.clone()]);
        for (author, _) in self.rows.keys() {
            let mut at = Some(author.clone());
            while let Some(name) = at.filter(|name| is_below(name, &self.domain) && !names.contains(name)) {
                if names.len() > NAMES_MAX {
                    return names;
                }
                at = name.parent();
                names.insert(name);
            }
        }
        names
    }

    /// What it says of this one.
    fn part(&self, domain: Domain, reporter: &Name, received_at: Timestamp) -> Part {
        let mut sums: BTreeMap<IpAddr, Tally> = BTreeMap::new();
        let about = self.rows.iter().filter(|((author, _), _)| is_below(author, &domain.name));
        about.for_each(|((_, ip), tally)| sums.entry(*ip).or_default().add(tally));
        let mut whole = Tally::default();
        sums.values().for_each(|tally| whole.add(tally));
        let sources = sums.into_iter().map(|(ip, tally)| Source { ip: Some(ip), ours: false, tally });
        let report = Report {
            reporter: reporter.clone(),
            org_name: self.org_name.clone(),
            report_id: self.report_id.clone(),
            begins_at: self.begins_at,
            ends_at: self.ends_at,
            policy: self.policy,
            tally: whole,
            received_at,
        };
        Part { domain, report, sources: told_apart(sources.collect()) }
    }
}

/// Whether a name is this one, or below it.
fn is_below(name: &Name, top: &Name) -> bool {
    let rest = name.as_str().strip_suffix(top.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl Returned {
    /// Counts a report that came in, and says what was made of it.
    pub(super) async fn count_aggregate(&self, arrival: &Arrival) -> Result<&'static str, ReturnedError> {
        let Some(reporter) = author_that_stands_behind(arrival) else { return Ok("untrusted") };
        let message = arrival.message.clone();
        let opened = {
            // Closed never.
            let _place = self.opening.acquire().await;
            tokio::task::spawn_blocking(move || open(&message)).await.ok().flatten()
        };
        let Some(opened) = opened else { return Ok("nothing") };
        let mut parts = Vec::new();
        let mut said = "unknown";
        for name in opened.names() {
            let Some(domain) = self.domain_of(&name).await? else { continue };
            let part = opened.part(domain, &reporter, arrival.received_at);
            if !part.report.is_of_a_sane_time(arrival.received_at) {
                return Ok("nothing");
            }
            let of = (part.domain.account, part.domain.id);
            if store::dmarc::knows(&self.worker.store, of, &part.report).await? {
                said = "changed_nothing";
            } else {
                parts.push(part);
            }
        }
        self.find_ours(&mut parts).await;
        for part in &parts {
            said = self.write_aggregate(part).await?;
        }
        Ok(said)
    }

    /// A domain of somebody's here that is verified.
    pub(super) async fn domain_of(&self, name: &Name) -> Result<Option<Domain>, ReturnedError> {
        let found = store::domain::by_name(&self.worker.store, name).await?;
        Ok(found.filter(|domain| domain.state == DomainState::Verified))
    }

    /// Says of the addresses which are ours: those that the SPF record passes that customers include.
    async fn find_ours(&self, parts: &mut [Part]) {
        let resolver = self.worker.planner.resolver();
        let (host, hello) = (&self.facts.spf_include_host, &self.worker.settings.hostname);
        let look = async {
            // The same address in another part is answered from the cache.
            for source in parts.iter_mut().flat_map(|part| &mut part.sources) {
                let Some(ip) = source.ip else { continue };
                match sender_policy::check(resolver, host, (ip, hello)).await {
                    PolicyResult::Pass => source.ours = true,
                    // Nobody answers, or nothing stands there: it will be the same for the next.
                    PolicyResult::TempError | PolicyResult::PermError | PolicyResult::None => return,
                    _ => {}
                }
            }
        };
        if tokio::time::timeout(LOOK_MAX, look).await.is_err() {
            tracing::debug!("which addresses of a DMARC report are ours could not be seen in time");
        }
    }

    async fn write_aggregate(
        &self,
        Part { domain, report, sources }: &Part,
    ) -> Result<&'static str, ReturnedError> {
        let (store, of) = (&self.worker.store, (domain.account, domain.id));
        for tries in 1.. {
            let mut batch = Batch::intake();
            if !store::dmarc::count(store, &mut batch, of, (report, sources.as_slice())).await? {
                return Ok("changed_nothing");
            }
            match store.commit(batch).await {
                Ok(()) => break,
                Err(CommitError::Conflict { key })
                    if tries < TRIES_MAX && store::dmarc::is_about_one(&key) => {}
                Err(error) => return Err(error.into()),
            }
        }
        tracing::info!(domain.name = %domain.name, reporter = %report.reporter, "a DMARC report was counted");
        Ok("counted")
    }
}

/// The organisation of the report's author, when it stands behind the message.
pub(super) fn author_that_stands_behind(arrival: &Arrival) -> Option<Name> {
    let from = parts::field(&arrival.message, "From")?;
    let author: Author = from.parse().ok()?;
    let author = organisation(author.address.domain());
    arrival.authenticated.iter().any(|name| organisation(name) == author).then_some(author)
}

/// Opens the first report in a message.
fn open(message: &Bytes) -> Option<Opened> {
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    FORMAT.find(&parts::of(message), parse)
}

fn parse(xml: &[u8]) -> Option<Opened> {
    let report = wire::Report::parse_xml(xml).ok()?;
    let about = &report.report_metadata;
    let domain: Name = report.policy_published.domain.trim().trim_end_matches('.').parse().ok()?;
    let time = |seconds: u64| i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok());
    let report_id = shortened(about.report_id.trim());
    if report_id.is_empty() {
        return None;
    }
    Some(Opened {
        org_name: shortened(about.org_name.trim()),
        report_id,
        begins_at: time(about.date_range.begin)?,
        ends_at: time(about.date_range.end)?,
        policy: policy(&report.policy_published),
        rows: rows(&report.record, &domain),
        domain,
    })
}

fn policy(published: &wire::PolicyPublished) -> Policy {
    let wanted = |disposition| match disposition {
        Disposition::Quarantine => Some(Wanted::Quarantine),
        Disposition::Reject => Some(Wanted::Reject),
        Disposition::None => Some(Wanted::None),
        Disposition::Unspecified => None,
    };
    Policy {
        p: wanted(published.p).unwrap_or(Wanted::None),
        sp: wanted(published.sp),
        strict_dkim: published.adkim == Alignment::Strict,
        strict_spf: published.aspf == Alignment::Strict,
    }
}

/// What names the domain, or one below it, as the author's.
fn rows(records: &[wire::Record], domain: &Name) -> Rows {
    let mut rows = Rows::new();
    for record in records {
        let Some(ip) = record.row.source_ip else { continue };
        let author = record.identifiers.header_from.trim().trim_end_matches('.');
        let author = if author.is_empty() { Some(domain.clone()) } else { author.parse().ok() };
        let Some(author) = author.filter(|author| is_below(author, domain)) else { continue };
        let (messages, judged) = (u64::from(record.row.count), &record.row.policy_evaluated);
        let of = |is_so: bool| if is_so { messages } else { 0 };
        let (dkim, spf) = (judged.dkim == DmarcResult::Pass, judged.spf == DmarcResult::Pass);
        rows.entry((author, ip.to_canonical())).or_default().add(&Tally {
            messages,
            passed: of(dkim || spf),
            dkim_aligned: of(dkim),
            spf_aligned: of(spf),
            quarantined: of(judged.disposition == ActionDisposition::Quarantine),
            rejected: of(judged.disposition == ActionDisposition::Reject),
        });
    }
    rows
}

#[cfg(test)]
pub(super) mod tests;
