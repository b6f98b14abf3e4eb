//! `GET /domains/{id_or_name}/dmarc`: a summary of the DMARC aggregate reports about the domain, compared with the
//! email that this service sent from it.
//!
//! Days are UTC days, as in metrics. A report counts on the day on which its period begins.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Range;

use message::address::DomainName;
use message::dmarc::{DmarcMessageCounts, DmarcPolicy, DmarcPolicyPublished, DmarcReport, DmarcSource};
use model::domain::SendingDomain;
use model::metric::{Counter, Dimension, Hour};

use super::request::DomainKey;
use crate::prelude::*;
use crate::time_range::time_or_date;
use jiff::SignedDuration;

/// Longest and default range.
const DAYS_MAX: i64 = 92;
const DAYS: i64 = 30;
/// Maximum number of sources and reporters listed individually.
const SOURCES_MAX: usize = 200;
const REPORTERS_MAX: usize = 100;
/// Maximum number of metric rows read for sent email: an hour has at most a hundred domains.
const READ_MAX: usize = 60_000;
/// Maximum wait for recent sends to be counted.
const OUTBOX_WAIT_MAX: Duration = Duration::from_millis(50);

/// Query of `GET /domains/{id_or_name}/dmarc`.
#[derive(Debug)]
pub struct DmarcQuery {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl RequestQuery for DmarcQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let from = "Start of the range, a time or a UTC date; extended to the start of its day. Default: 30 days before \
                    `to`. At most 92 days; reports are retained for thirteen months";
        let to = "End of the range (exclusive), extended to the end of its day. Default: now";
        Ok(Self { from: time_or_date(query, "from", from)?, to: time_or_date(query, "to", to)? })
    }
}

impl DmarcQuery {
    /// The requested range, extended to whole days.
    fn hour_range(&self, now: Timestamp) -> Result<Range<Hour>> {
        let to = self.to.unwrap_or(now);
        let ago = SignedDuration::from_hours(DAYS * 24);
        let from = self.from.unwrap_or_else(|| to.checked_sub(ago).unwrap_or(Timestamp::MIN));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        let last = to.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(to);
        let (start, end) = (Hour::containing(from).day(), Hour(Hour::containing(last).day().0 + 24));
        if end.0 - start.0 > (DAYS_MAX + 1) * 24 {
            return Err(Problem::field("from", format!("must be at most {DAYS_MAX} days before `to`")));
        }
        Ok(start..end)
    }
}

/// The published policy, according to the latest report
#[derive(Debug, Serialize, ToSchema)]
struct DmarcPolicyView {
    /// The policy for mail that fails
    #[schema(as = String, enum = ["none", "quarantine", "reject"])]
    p: DmarcPolicy,
    /// The policy for subdomains, if it differs
    #[schema(as = Option<String>, enum = ["none", "quarantine", "reject", null])]
    sp: Option<DmarcPolicy>,
    /// DKIM alignment mode
    #[schema(enum = ["relaxed", "strict"])]
    adkim: &'static str,
    /// SPF alignment mode
    #[schema(enum = ["relaxed", "strict"])]
    aspf: &'static str,
}

impl DmarcPolicyView {
    fn from_policy(policy: DmarcPolicyPublished) -> Self {
        let word = |strict| if strict { "strict" } else { "relaxed" };
        let DmarcPolicyPublished { p, sp, strict_dkim, strict_spf } = policy;
        Self { p, sp, adkim: word(strict_dkim), aspf: word(strict_spf) }
    }
}

object_view! {
    /// Totals of all sources
    struct DmarcTallyView, fn from_tally(tally: &DmarcMessageCounts) {
        /// Messages
        messages: u64 = tally.messages,
        /// Messages that passed DMARC, by aligned DKIM or SPF
        passed: u64 = tally.passed,
        /// Messages that failed
        failed: u64 = tally.failed(),
        /// Messages with aligned DKIM
        dkim_aligned: u64 = tally.dkim_aligned,
        /// Messages with aligned SPF
        spf_aligned: u64 = tally.spf_aligned,
        /// Messages quarantined by the policy
        quarantined: u64 = tally.quarantined,
        /// Messages rejected by the policy
        rejected: u64 = tally.rejected,
    }
}

/// Messages from one source address
#[derive(Debug, Serialize, ToSchema)]
struct DmarcSourceView {
    /// The source address; null for the sum of all others
    ip: Option<IpAddr>,
    /// The forward-confirmed host name; null if it was not found in time
    host: Option<DomainName>,
    /// Whether this service sends from the address
    ours: bool,
    #[serde(flatten)]
    tally: DmarcTallyView,
}

impl DmarcSourceView {
    fn from_source(source: DmarcSource, hosts: &HashMap<IpAddr, DomainName>) -> Self {
        let host = source.ip.and_then(|ip| hosts.get(&ip).cloned());
        Self { ip: source.ip, host, ours: source.ours, tally: DmarcTallyView::from_tally(&source.tally) }
    }
}

object_view! {
    /// A reporting organization
    struct DmarcReporterView, fn from_report(report: &DmarcReport) {
        /// The domain that sent the reports
        domain: DomainName = report.reporter.clone(),
        /// The organization's name in its reports
        name: String = report.org_name.clone(),
        /// Number of reports
        reports: u64 = 1,
        /// Messages in these reports
        messages: u64 = report.tally.messages,
        /// When the last report was received
        last_report_at: JsonTimestamp = JsonTimestamp(report.received_at),
    }
}

object_view! {
    /// A UTC day
    struct DmarcDayView, fn from_tally(day: Hour, tally: &DmarcMessageCounts, sent: Option<u64>) {
        /// Date
        #[schema(format = "date", examples = ["2026-01-01"])]
        date: String = day.begins_at().to_zoned(jiff::tz::TimeZone::UTC).date().to_string(),
        /// Recipients of email that this service accepted
        sent: Option<u64> = sent,
        /// Messages in reports
        reported: u64 = tally.messages,
        /// Messages that passed
        passed: u64 = tally.passed,
        /// Messages that failed
        failed: u64 = tally.failed(),
    }
}

/// A summary of DMARC reports
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "DomainDmarc")]
pub struct DmarcView {
    /// The domain
    domain: DomainName,
    /// The policy
    policy: Option<DmarcPolicyView>,
    totals: DmarcTallyView,
    /// Sources, most messages first
    sources: Vec<DmarcSourceView>,
    /// Reporting organizations, most messages first
    reporters: Vec<DmarcReporterView>,
    /// All days of the range
    days: Vec<DmarcDayView>,
}

object_response! { "A summary of DMARC reports", pub DmarcResponse { dmarc: DmarcView } }

/// `GET /domains/{id_or_name}/dmarc`.
///
/// # Errors
/// The domain does not exist; the range is too long; the store cannot be read.
pub async fn get(
    state: State,
    tenant: Tenant,
    (domain_key, request): (DomainKey, DmarcQuery),
) -> Result<DmarcResponse> {
    let hours = request.hour_range(state.services.clock.now())?;
    let domain = super::lookup::find(&state, &tenant, &domain_key).await?;
    let (store, id) = (&state.services.store, (domain.account, domain.id));
    let reports = store::dmarc::list_reports(store, id, hours.clone()).await?;
    let (sources, by_day) = store::dmarc::source_totals(store, id, hours.clone()).await?;
    let sent = sent_by_day(&state, &domain, hours.clone()).await?;
    let mut totals = DmarcMessageCounts::default();
    sources.iter().for_each(|source| totals.add(&source.tally));
    let sources = top_sources(sources);
    let addresses: Vec<IpAddr> = sources.iter().filter_map(|source| source.ip).collect();
    // Reverse lookups are rate-limited: reports from third parties choose the addresses and thus the name servers
    // asked.
    let hosts = match state.accounts.domains.inspector.try_acquire_queries(domain.account, addresses.len()) {
        true => state.accounts.bounces.verified_host_names(addresses).await,
        false => HashMap::new(),
    };
    let latest = reports.iter().max_by_key(|report| report.ends_at);
    Ok(DmarcResponse {
        dmarc: DmarcView {
            domain: domain.name,
            policy: latest.map(|report| DmarcPolicyView::from_policy(report.policy)),
            totals: DmarcTallyView::from_tally(&totals),
            sources: sources.into_iter().map(|source| DmarcSourceView::from_source(source, &hosts)).collect(),
            reporters: reporter_views(&reports),
            days: day_views(hours, &by_day, sent.as_ref()),
        },
    })
}

/// The sources with the most messages; all others are summed up.
fn top_sources(mut sources: Vec<DmarcSource>) -> Vec<DmarcSource> {
    // A source without an address is the sum of the remaining sources of a day.
    sources.sort_unstable_by_key(|source| (source.ip.is_none(), std::cmp::Reverse(source.tally.messages), source.ip));
    let mut rest = DmarcMessageCounts::default();
    let listed_count = sources.iter().take(SOURCES_MAX).filter(|source| source.ip.is_some()).count();
    sources.drain(listed_count..).for_each(|source| rest.add(&source.tally));
    let rest = (rest.messages > 0).then_some(DmarcSource { ip: None, ours: false, tally: rest });
    sources.into_iter().chain(rest).collect()
}

fn reporter_views(reports: &[DmarcReport]) -> Vec<DmarcReporterView> {
    let mut by_domain: BTreeMap<&DomainName, DmarcReporterView> = BTreeMap::new();
    for report in reports {
        by_domain
            .entry(&report.reporter)
            .and_modify(|view| {
                view.reports += 1;
                view.messages = view.messages.saturating_add(report.tally.messages);
                view.last_report_at = JsonTimestamp(view.last_report_at.0.max(report.received_at));
            })
            .or_insert_with(|| DmarcReporterView::from_report(report));
    }
    let mut all: Vec<DmarcReporterView> = by_domain.into_values().collect();
    all.sort_by_key(|source| std::cmp::Reverse(source.messages));
    all.truncate(REPORTERS_MAX);
    all
}

fn day_views(
    hours: Range<Hour>,
    by_day: &BTreeMap<Hour, DmarcMessageCounts>,
    sent: Option<&BTreeMap<Hour, u64>>,
) -> Vec<DmarcDayView> {
    let mut days = Vec::new();
    let mut day = hours.start;
    while day < hours.end {
        let tally = by_day.get(&day).copied().unwrap_or_default();
        let sent = sent.map(|sent| sent.get(&day).copied().unwrap_or_default());
        days.push(DmarcDayView::from_tally(day, &tally, sent));
        day = Hour(day.0 + 24);
    }
    days
}

/// Accepted recipients of the domain's email per day; `None` if the account has too many domains to read.
async fn sent_by_day(
    state: &AppState,
    domain: &SendingDomain,
    hours: Range<Hour>,
) -> Result<Option<BTreeMap<Hour, u64>>> {
    state.queue.events.outbox.dispatch_within(OUTBOX_WAIT_MAX).await;
    let (store, by_domain) = (&state.services.store, Some(Dimension::Domain));
    let rows = store::metric::read(store, domain.account, by_domain, hours, READ_MAX).await?;
    Ok(rows.map(|rows| {
        let mut sent: BTreeMap<Hour, u64> = BTreeMap::new();
        for (hour, _, counts) in rows.into_iter().filter(|(_, name, _)| name == domain.name.as_str()) {
            *sent.entry(hour.day()).or_default() += counts.get(Counter::Sent);
        }
        sent
    }))
}
