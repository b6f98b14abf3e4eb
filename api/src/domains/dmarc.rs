//! `GET /domains/{id_or_name}/dmarc`: what receivers reported of mail that names the domain as its author's,
//! beside what was sent from it here.
//!
//! Days are those of UTC, as in metrics; a report counts on the day that its time begins.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use mail::address::DomainName;
use mail::dmarc::{DmarcDisposition, DmarcMessageCounts, DmarcPolicyPublished, DmarcReport, DmarcSource};
use mail::domain::SendingDomain;
use mail::metric::{Counter, Dimension, Hour};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use super::request::DomainKey;
use crate::call::{FromRequest, Request, RequestSpec};
use crate::emails::view::JsonTimestamp;
use crate::page;
use crate::period::{parse_time_or_date, time_parameter};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};
use jiff::{SignedDuration, Timestamp};

/// The longest range, and the one where none is asked for.
const DAYS_MAX: i64 = 92;
const DAYS: i64 = 30;
/// Sources and reporters that are told apart.
const SOURCES_MAX: usize = 200;
const REPORTERS_MAX: usize = 100;
/// Rows of metrics read for what was sent: an hour has a hundred domains at most.
const READ_MAX: usize = 60_000;
/// How long is waited for what was just sent to be counted.
const OUTBOX_WAIT_MAX: Duration = Duration::from_millis(50);

/// What it takes.
#[derive(Debug)]
pub struct DmarcQuery {
    which: DomainKey,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl FromRequest for DmarcQuery {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let from = time_parameter(
            "from",
            "The day that this time lies in is the first: a time, or a date of UTC. Left out: 30 days before `to`; \
             at most 92 days, and thirteen months are kept",
        );
        let to = time_parameter("to", "The range ends before this time; left out: now, with the day that is going on");
        RequestSpec { parameters: vec![DomainKey::parameter(), from, to], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        Ok(Self {
            which: DomainKey::from_request(call)?,
            from: parse_time_or_date(&given, "from")?,
            to: parse_time_or_date(&given, "to")?,
        })
    }
}

impl DmarcQuery {
    /// The hours that are asked for: whole days.
    fn hour_range(&self, now: Timestamp) -> Result<Range<Hour>, Problem> {
        let to = self.to.unwrap_or(now);
        let ago = SignedDuration::from_hours(DAYS * 24);
        let from = self.from.unwrap_or_else(|| to.checked_sub(ago).unwrap_or(Timestamp::MIN));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        let last = to.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(to);
        let (start, end) = (Hour::containing(from).day(), Hour(Hour::containing(last).day().0 + 24));
        if end.0 - start.0 > (DAYS_MAX + 1) * 24 {
            return Err(Problem::field("from", format!("is more than {DAYS_MAX} days before `to`")));
        }
        Ok(start..end)
    }
}

/// The policy that the last reporter found.
#[derive(Debug, Serialize)]
struct DmarcPolicyView {
    p: DmarcDisposition,
    sp: Option<DmarcDisposition>,
    adkim: &'static str,
    aspf: &'static str,
}

impl DmarcPolicyView {
    fn from_policy(policy: DmarcPolicyPublished) -> Self {
        let word = |strict| if strict { "strict" } else { "relaxed" };
        let DmarcPolicyPublished { p, sp, strict_dkim, strict_spf } = policy;
        Self { p, sp, adkim: word(strict_dkim), aspf: word(strict_spf) }
    }
}

/// Messages, and what became of them.
#[derive(Debug, Serialize)]
struct DmarcTallyView {
    messages: u64,
    passed: u64,
    failed: u64,
    dkim_aligned: u64,
    spf_aligned: u64,
    quarantined: u64,
    rejected: u64,
}

impl DmarcTallyView {
    fn from_tally(tally: &DmarcMessageCounts) -> Self {
        Self {
            messages: tally.messages,
            passed: tally.passed,
            failed: tally.failed(),
            dkim_aligned: tally.dkim_aligned,
            spf_aligned: tally.spf_aligned,
            quarantined: tally.quarantined,
            rejected: tally.rejected,
        }
    }
}

/// What came from one address.
#[derive(Debug, Serialize)]
struct DmarcSourceView {
    ip: Option<IpAddr>,
    host: Option<DomainName>,
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

/// Who reported.
#[derive(Debug, Serialize)]
struct DmarcReporterView {
    domain: DomainName,
    name: String,
    reports: u64,
    messages: u64,
    last_report_at: JsonTimestamp,
}

/// A day.
#[derive(Debug, Serialize)]
struct DmarcDayView {
    date: String,
    sent: Option<u64>,
    reported: u64,
    passed: u64,
    failed: u64,
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct DmarcView {
    domain: DomainName,
    policy: Option<DmarcPolicyView>,
    totals: DmarcTallyView,
    sources: Vec<DmarcSourceView>,
    reporters: Vec<DmarcReporterView>,
    days: Vec<DmarcDayView>,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct DmarcResponse {
    dmarc: DmarcView,
}

/// `GET /domains/{id_or_name}/dmarc`.
///
/// # Errors
/// No such domain; the range is too long; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, asked: DmarcQuery) -> Result<DmarcResponse, Problem> {
    let hours = asked.hour_range(room.intake.clock().now())?;
    let domain = super::find(&room, &tenant, &asked.which).await?;
    let (store, of) = (room.intake.store(), (domain.account, domain.id));
    let reports = store::dmarc::list_reports(store, of, hours.clone()).await?;
    let (sources, by_day) = store::dmarc::source_totals(store, of, hours.clone()).await?;
    let sent = sent_by_day(&room, &domain, hours.clone()).await?;
    let mut totals = DmarcMessageCounts::default();
    sources.iter().for_each(|source| totals.add(&source.tally));
    let sources = top_sources(sources);
    let addresses: Vec<IpAddr> = sources.iter().filter_map(|source| source.ip).collect();
    // Strangers name the addresses in their reports, and with them whom we ask for the names.
    let hosts = match room.intake.domains().try_acquire_queries(domain.account, addresses.len()) {
        true => room.intake.bounces().verified_host_names(addresses).await,
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

/// Those with the most messages, and the rest together.
fn top_sources(mut sources: Vec<DmarcSource>) -> Vec<DmarcSource> {
    // What has no address is the rest of its day.
    sources.sort_unstable_by_key(|one| (one.ip.is_none(), std::cmp::Reverse(one.tally.messages), one.ip));
    let mut rest = DmarcMessageCounts::default();
    let apart = sources.iter().take(SOURCES_MAX).filter(|one| one.ip.is_some()).count();
    sources.drain(apart..).for_each(|one| rest.add(&one.tally));
    let rest = (rest.messages > 0).then_some(DmarcSource { ip: None, ours: false, tally: rest });
    sources.into_iter().chain(rest).collect()
}

fn reporter_views(reports: &[DmarcReport]) -> Vec<DmarcReporterView> {
    let mut by_domain: BTreeMap<&DomainName, DmarcReporterView> = BTreeMap::new();
    for report in reports {
        let view = by_domain.entry(&report.reporter).or_insert_with(|| DmarcReporterView {
            domain: report.reporter.clone(),
            name: report.org_name.clone(),
            reports: 0,
            messages: 0,
            last_report_at: JsonTimestamp(report.received_at),
        });
        view.reports += 1;
        view.messages = view.messages.saturating_add(report.tally.messages);
        view.last_report_at = JsonTimestamp(view.last_report_at.0.max(report.received_at));
    }
    let mut all: Vec<DmarcReporterView> = by_domain.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.messages));
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
        days.push(DmarcDayView {
            date: day.begins_at().to_zoned(jiff::tz::TimeZone::UTC).date().to_string(),
            sent: sent.map(|sent| sent.get(&day).copied().unwrap_or_default()),
            reported: tally.messages,
            passed: tally.passed,
            failed: tally.failed(),
        });
        day = Hour(day.0 + 24);
    }
    days
}

/// Recipients that mail of the domain was accepted for; none when the account has too many domains to look.
async fn sent_by_day(
    room: &AppState,
    domain: &SendingDomain,
    hours: Range<Hour>,
) -> Result<Option<BTreeMap<Hour, u64>>, Problem> {
    room.intake.dispatch_outbox_within(OUTBOX_WAIT_MAX).await;
    let (store, by_domain) = (room.intake.store(), Some(Dimension::Domain));
    let rows = store::metric::read(store, domain.account, by_domain, hours, READ_MAX).await?;
    Ok(rows.map(|rows| {
        let mut sent: BTreeMap<Hour, u64> = BTreeMap::new();
        for (hour, _, counts) in rows.into_iter().filter(|(_, name, _)| name == domain.name.as_str()) {
            *sent.entry(hour.day()).or_default() += counts.get(Counter::Sent);
        }
        sent
    }))
}

fn tally_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("messages", schema::count("Messages")),
        ("passed", schema::count("Of those, passed DMARC: by DKIM or by SPF, aligned")),
        ("failed", schema::count("Did not")),
        ("dkim_aligned", schema::count("Passed by DKIM")),
        ("spf_aligned", schema::count("Passed by SPF")),
        ("quarantined", schema::count("Put with spam, for the policy's sake")),
        ("rejected", schema::count("Refused, for the policy's sake")),
    ]
}

impl ToSchema for DmarcResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let dmarc = schemas.component("DomainDmarc", |_| {
            let wanted: &[&str] = &["none", "quarantine", "reject"];
            let mut sp = schema::string_enum(wanted, "Of the domains under it, where that is another");
            schema::allow_null(&mut sp);
            let modes: &[&str] = &["relaxed", "strict"];
            let policy = schema::object(
                "The policy that the last reporter found",
                [
                    ("p", schema::string_enum(wanted, "What is to be done with mail that fails")),
                    ("sp", sp),
                    ("adkim", schema::string_enum(modes, "How DKIM is aligned")),
                    ("aspf", schema::string_enum(modes, "How SPF is aligned")),
                ],
            );
            let source = schema::object(
                "What came from one address",
                [
                    ("ip", schema::nullable_string("The address; null is all those that are not told apart")),
                    (
                        "host",
                        schema::nullable_string(
                            "The host's name, if it leads back to the address; null where it was not found in a moment",
                        ),
                    ),
                    ("ours", schema::boolean("It is one that this service sends from")),
                ]
                .into_iter()
                .chain(tally_fields()),
            );
            let reporter = schema::object(
                "Who reported",
                [
                    ("domain", schema::string("The domain that stands behind the reports")),
                    ("name", schema::string("What the reporter calls itself")),
                    ("reports", schema::count("How many")),
                    ("messages", schema::count("Messages in them")),
                    ("last_report_at", schema::time("When the last came in")),
                ],
            );
            let day = schema::object(
                "A day of UTC",
                [
                    (
                        "date",
                        json!({"type": "string", "format": "date", "examples": ["2026-01-01"], "description": "Which"}),
                    ),
                    ("sent", schema::nullable_count("Recipients that mail was accepted for here")),
                    ("reported", schema::count("Messages in reports")),
                    ("passed", schema::count("Of those, passed")),
                    ("failed", schema::count("Did not")),
                ],
            );
            schema::object(
                "What receivers reported",
                [
                    ("domain", schema::string("The domain")),
                    ("policy", json!({"description": "The policy", "oneOf": [{"type": "null"}, policy]})),
                    ("totals", schema::object("All of it", tally_fields())),
                    ("sources", schema::list(source, "Where it came from, most messages first")),
                    ("reporters", schema::list(reporter, "Who reported, most messages first")),
                    ("days", schema::list(day, "Every day of the range")),
                ],
            )
        });
        schema::object("What receivers reported", [("dmarc", dmarc)])
    }
}
