//! `GET /domains/{id_or_name}/dmarc`: what receivers reported of mail that names the domain as its author's,
//! beside what was sent from it here.
//!
//! Days are those of UTC, as in metrics; a report counts on the day that its time begins.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use mail::address::Name;
use mail::dmarc::{Policy, Report, Source, Tally, Wanted};
use mail::domain::Domain;
use mail::metric::{Counter, Dimension, Hour};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use super::request::Which;
use crate::call::{Call, Input, Takes};
use crate::emails::view::Moment;
use crate::page;
use crate::period::{time, time_parameter};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};
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
const TOLD_WITHIN: Duration = Duration::from_millis(50);

/// What it takes.
#[derive(Debug)]
pub struct AskDmarc {
    which: Which,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Input for AskDmarc {
    fn describe(_: &mut Schemas) -> Takes {
        let from = time_parameter(
            "from",
            "The day that this time lies in is the first: a time, or a date of UTC. Left out: 30 days before `to`; \
             at most 92 days, and thirteen months are kept",
        );
        let to = time_parameter(
            "to",
            "The range ends before this time; left out: now, with the day that is going on",
        );
        Takes { parameters: vec![Which::parameter(), from, to], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        Ok(Self { which: Which::of(call)?, from: time(&given, "from")?, to: time(&given, "to")? })
    }
}

impl AskDmarc {
    /// The hours that are asked for: whole days.
    fn hours(&self, now: Timestamp) -> Result<Range<Hour>, Problem> {
        let to = self.to.unwrap_or(now);
        let ago = SignedDuration::from_hours(DAYS * 24);
        let from = self.from.unwrap_or_else(|| to.checked_sub(ago).unwrap_or(Timestamp::MIN));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        let last = to.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(to);
        let (start, end) = (Hour::of(from).day(), Hour(Hour::of(last).day().0 + 24));
        if end.0 - start.0 > (DAYS_MAX + 1) * 24 {
            return Err(Problem::field("from", format!("is more than {DAYS_MAX} days before `to`")));
        }
        Ok(start..end)
    }
}

/// The policy that the last reporter found.
#[derive(Debug, Serialize)]
struct PolicyView {
    p: Wanted,
    sp: Option<Wanted>,
    adkim: &'static str,
    aspf: &'static str,
}

impl PolicyView {
    fn of(policy: Policy) -> Self {
        let word = |strict| if strict { "strict" } else { "relaxed" };
        let Policy { p, sp, strict_dkim, strict_spf } = policy;
        Self { p, sp, adkim: word(strict_dkim), aspf: word(strict_spf) }
    }
}

/// Messages, and what became of them.
#[derive(Debug, Serialize)]
struct TallyView {
    messages: u64,
    passed: u64,
    failed: u64,
    dkim_aligned: u64,
    spf_aligned: u64,
    quarantined: u64,
    rejected: u64,
}

impl TallyView {
    fn of(tally: &Tally) -> Self {
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
struct SourceView {
    ip: Option<IpAddr>,
    host: Option<Name>,
    ours: bool,
    #[serde(flatten)]
    tally: TallyView,
}

impl SourceView {
    fn of(source: Source, hosts: &HashMap<IpAddr, Name>) -> Self {
        let host = source.ip.and_then(|ip| hosts.get(&ip).cloned());
        Self { ip: source.ip, host, ours: source.ours, tally: TallyView::of(&source.tally) }
    }
}

/// Who reported.
#[derive(Debug, Serialize)]
struct ReporterView {
    domain: Name,
    name: String,
    reports: u64,
    messages: u64,
    last_report_at: Moment,
}

/// A day.
#[derive(Debug, Serialize)]
struct DayView {
    date: String,
    sent: Option<u64>,
    reported: u64,
    passed: u64,
    failed: u64,
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct DmarcView {
    domain: Name,
    policy: Option<PolicyView>,
    totals: TallyView,
    sources: Vec<SourceView>,
    reporters: Vec<ReporterView>,
    days: Vec<DayView>,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct DomainDmarc {
    dmarc: DmarcView,
}

/// `GET /domains/{id_or_name}/dmarc`.
///
/// # Errors
/// No such domain; the range is too long; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, asked: AskDmarc) -> Result<DomainDmarc, Problem> {
    let hours = asked.hours(room.hall.clock().now())?;
    let domain = super::find(&room, &tenant, &asked.which).await?;
    let (store, of) = (room.hall.store(), (domain.account, domain.id));
    let reports = store::dmarc::reports(store, of, hours.clone()).await?;
    let (sources, by_day) = store::dmarc::sums(store, of, hours.clone()).await?;
    let sent = sent_by_day(&room, &domain, hours.clone()).await?;
    let mut totals = Tally::default();
    sources.iter().for_each(|source| totals.add(&source.tally));
    let sources = shown_sources(sources);
    let addresses: Vec<IpAddr> = sources.iter().filter_map(|source| source.ip).collect();
    // Strangers name the addresses in their reports, and with them whom we ask for the names.
    let hosts = match room.hall.domains().ask_now(domain.account, addresses.len()) {
        true => room.hall.returned().hosts(addresses).await,
        false => HashMap::new(),
    };
    let latest = reports.iter().max_by_key(|report| report.ends_at);
    Ok(DomainDmarc {
        dmarc: DmarcView {
            domain: domain.name,
            policy: latest.map(|report| PolicyView::of(report.policy)),
            totals: TallyView::of(&totals),
            sources: sources.into_iter().map(|source| SourceView::of(source, &hosts)).collect(),
            reporters: reporters(&reports),
            days: days(hours, &by_day, sent.as_ref()),
        },
    })
}

/// Those with the most messages, and the rest together.
fn shown_sources(mut sources: Vec<Source>) -> Vec<Source> {
    // What has no address is the rest of its day.
    sources.sort_unstable_by_key(|one| (one.ip.is_none(), std::cmp::Reverse(one.tally.messages), one.ip));
    let mut rest = Tally::default();
    let apart = sources.iter().take(SOURCES_MAX).filter(|one| one.ip.is_some()).count();
    sources.drain(apart..).for_each(|one| rest.add(&one.tally));
    let rest = (rest.messages > 0).then_some(Source { ip: None, ours: false, tally: rest });
    sources.into_iter().chain(rest).collect()
}

fn reporters(reports: &[Report]) -> Vec<ReporterView> {
    let mut by_domain: BTreeMap<&Name, ReporterView> = BTreeMap::new();
    for report in reports {
        let view = by_domain.entry(&report.reporter).or_insert_with(|| ReporterView {
            domain: report.reporter.clone(),
            name: report.org_name.clone(),
            reports: 0,
            messages: 0,
            last_report_at: Moment(report.received_at),
        });
        view.reports += 1;
        view.messages = view.messages.saturating_add(report.tally.messages);
        view.last_report_at = Moment(view.last_report_at.0.max(report.received_at));
    }
    let mut all: Vec<ReporterView> = by_domain.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.messages));
    all.truncate(REPORTERS_MAX);
    all
}

fn days(
    hours: Range<Hour>,
    by_day: &BTreeMap<Hour, Tally>,
    sent: Option<&BTreeMap<Hour, u64>>,
) -> Vec<DayView> {
    let mut days = Vec::new();
    let mut day = hours.start;
    while day < hours.end {
        let tally = by_day.get(&day).copied().unwrap_or_default();
        days.push(DayView {
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
    room: &Room,
    domain: &Domain,
    hours: Range<Hour>,
) -> Result<Option<BTreeMap<Hour, u64>>, Problem> {
    room.hall.tell_within(TOLD_WITHIN).await;
    let (store, by_domain) = (room.hall.store(), Some(Dimension::Domain));
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

impl Describe for DomainDmarc {
    fn schema(schemas: &mut Schemas) -> Value {
        let dmarc = schemas.named("DomainDmarc", |_| {
            let wanted: &[&str] = &["none", "quarantine", "reject"];
            let mut sp = schema::words(wanted, "Of the domains under it, where that is another");
            schema::or_null(&mut sp);
            let modes: &[&str] = &["relaxed", "strict"];
            let policy = schema::object(
                "The policy that the last reporter found",
                [
                    ("p", schema::words(wanted, "What is to be done with mail that fails")),
                    ("sp", sp),
                    ("adkim", schema::words(modes, "How DKIM is aligned")),
                    ("aspf", schema::words(modes, "How SPF is aligned")),
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
                    ("date", json!({"type": "string", "format": "date", "examples": ["2026-01-01"], "description": "Which"})),
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
