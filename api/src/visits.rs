//! Visits: the script that tells of them, where it tells, and how many there were.
//!
//! ```text
//! GET /visits.js ─► browser: cookies stx_vid, rnl_ad ─► POST /visits ─► counted (queue/src/product_events.rs)
//! ```
//!
//! The script is the same for all; whose site it stands on says `site`, an account's id, which is no secret:
//! anybody can tell of visits that were none, as with every such script. So what they cost is bounded: their
//! rate, by address and by site, and the visitors that are remembered. Machines, and people whose browser says
//! that they do not want to be followed (Global Privacy Control, DNT), are not counted.

mod limits;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, StatusCode};
use mail::credential::Scope;
use mail::id::AccountId;
use mail::product_event::visit::{VISITOR_CHARS_MAX, is_visitor_id, visit};
use mail::tracking::machine;
use queue::rate::Standing;
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;
use store::product_event_count::{self, Counts};

use crate::call::{Answer, Call, Input, Media, Nothing, Reply, Takes};
use crate::emails::view::Moment;
use crate::events::counts::{CountsView, begins, summed};
use crate::fields::{self, Given, Names, Notes};
use crate::operations::{Operation, operation};
use crate::period::{Period, time_parameter};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

pub use limits::Limits;

/// What browsers run.
const SCRIPT: &str = include_str!("visits/script.js");
/// For how long browsers may keep it.
const SCRIPT_KEPT: &str = "public, max-age=3600";
/// The largest report of a visit.
const REPORT_BYTES_MAX: usize = 8 << 10;
/// A user agent longer than this is cut.
const USER_AGENT_CHARS_MAX: usize = 512;
/// Rows of an answer.
const ROWS_MAX: usize = 10_000;
/// What a page that is read looks like: no proxy of a mail client, and long after anything was delivered.
const LONG_AFTER: Duration = Duration::from_secs(3600);

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| operation(method, path, id).about("visits", summary);
    vec![
        of(Method::GET, "/visits.js", "get_visits_script", "The script that tells of visits to a site")
            .public(script),
        of(Method::POST, "/visits", "tell_visit", "Tell of a visit; the script does")
            .fails(&[Code::NOT_FOUND, Code::RATE_LIMIT_EXCEEDED])
            .public(tell),
        of(Method::GET, "/visits", "count_visits", "Count visits, and what they led to, by day and source")
            .either(Scope::Full, get),
    ]
}

/// The script.
#[derive(Debug)]
pub struct Script;

impl Reply for Script {
    const MEDIA_TYPE: &'static str = "text/javascript; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The script"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from_static(SCRIPT.as_bytes()))
    }

    fn answer(self) -> Result<Answer, Problem> {
        let headers = vec![
            (CACHE_CONTROL, HeaderValue::from_static(SCRIPT_KEPT)),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                HeaderValue::from_static("cross-origin"),
            ),
        ];
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Answer { status: StatusCode::OK, media_type, headers, body: self.write()?, more: None })
    }
}

/// `GET /visits.js`.
///
/// # Errors
/// None.
pub async fn script(_: Arc<Room>, _: Nothing) -> Result<Script, Problem> {
    Ok(Script)
}

/// A visit that is told.
#[derive(Debug)]
pub struct TellVisit {
    site: AccountId,
    visitor_id: String,
    url: String,
    referrer: String,
    from: Option<IpAddr>,
    user_agent: String,
    /// They do not want to be followed.
    opted_out: bool,
}

const NAMES: Names = Names {
    known: &[("site", "site"), ("visitor_id", "visitor_id"), ("url", "url"), ("referrer", "referrer")],
    foreign: &[],
};

impl Input for TellVisit {
    const BODY_BYTES_MAX: Option<usize> = Some(REPORT_BYTES_MAX);
    const MEDIA: Media = Media::Beacon;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("TellVisit", |_| {
            let address = |about: &str| json!({"type": "string", "description": about});
            let id = json!({"type": "string", "minLength": 8, "maxLength": VISITOR_CHARS_MAX,
                "pattern": "^[A-Za-z0-9._-]+$", "description": "The cookie `stx_vid`"});
            let mut visit = schema::object_with(
                "A visit",
                &["site", "visitor_id"],
                [
                    ("site", schema::string("Whose site it is: the account's id (`acct_…`)")),
                    ("visitor_id", id),
                    ("url", address("The page's address; one longer than 2048 bytes is as good as none")),
                    ("referrer", address("The address of the page before, likewise")),
                ],
            );
            visit["examples"] = json!([{
                "site": "acct_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "visitor_id": "5f1d2c3b4a5968778695a4b3c2d1e0f0",
                "url": "https://example.com/?utm_source=newsletter", "referrer": "https://search.example/",
            }]);
            visit
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = Given::sort(fields::body(&call.body)?, &NAMES, "", &mut notes);
        let mut text = |name: &str| {
            let text = given.value(name).map(fields::text).transpose();
            text.map_err(|error| notes.errors.add(name, error))
                .ok()
                .flatten()
                .unwrap_or_default()
                .into_owned()
        };
        let (site, visitor_id, url, referrer) =
            (text("site"), text("visitor_id"), text("url"), text("referrer"));
        if !is_visitor_id(&visitor_id) {
            notes.errors.add("visitor_id", "is 8 to 64 letters, digits, `.`, `_` and `-`");
        }
        let site =
            site.parse().map_err(|_| notes.errors.add("site", "is the id of an account (`acct_…`)")).ok();
        let Some(site) = site.filter(|_| notes.errors.is_empty()) else { return Err(notes.errors.into()) };
        let header = |name: HeaderName| {
            let value = call.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().chars().take(USER_AGENT_CHARS_MAX).collect::<String>()
        };
        let says_no = |name: &'static str| header(HeaderName::from_static(name)).trim() == "1";
        let opted_out = says_no("sec-gpc") || says_no("dnt");
        Ok(Self {
            site,
            visitor_id,
            url,
            referrer,
            from: call.from,
            user_agent: header(USER_AGENT),
            opted_out,
        })
    }
}

/// It was heard.
#[derive(Debug)]
pub struct Heard;

impl Reply for Heard {
    const STATUS: StatusCode = StatusCode::ACCEPTED;

    fn describe(_: &mut Schemas) -> Value {
        schema::object("It was heard", [("ok", json!({"type": "boolean", "const": true}))])
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from_static(b"{\"ok\":true}"))
    }

    fn answer(self) -> Result<Answer, Problem> {
        // The script runs on other sites than ours.
        let headers = vec![(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))];
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Answer { status: Self::STATUS, media_type, headers, body: self.write()?, more: None })
    }
}

/// `POST /visits`. Whether it is counted is not told.
///
/// # Errors
/// Too often; no such site; the store cannot be used.
pub async fn tell(room: Arc<Room>, told: TellVisit) -> Result<Heard, Problem> {
    let now = room.hall.clock().now();
    let often = |standing: Standing| {
        let problem = Problem::new(Code::RATE_LIMIT_EXCEEDED, "Too many visits; tell of them later");
        problem.header(http::header::RETRY_AFTER, standing.reset_s.max(1).to_string())
    };
    room.visit_limits.address(told.from, now).map_err(often)?;
    if told.opted_out || is_machine(&told) {
        return Ok(Heard);
    }
    let Some(account) = store::account::get(room.hall.store(), told.site).await? else {
        return Err(Problem::not_found("site"));
    };
    room.visit_limits.site(account.id, now).map_err(often)?;
    if let Some(visit) = visit(&told.visitor_id, &told.url, &told.referrer, now) {
        let taken = room.hall.product_events().visited(account.id, visit).await;
        taken.map_err(|refusal| Problem::of_refusal(refusal, room.upgrade_url()))?;
    }
    Ok(Heard)
}

fn is_machine(told: &TellVisit) -> bool {
    let request = machine::Request {
        ip: told.from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        user_agent: &told.user_agent,
        in_advance: false,
        is_click: true,
        since_delivery: Some(LONG_AFTER),
    };
    machine::judge(&request).machine
}

/// What `GET /visits` takes.
#[derive(Debug)]
pub struct AskVisits(Period);

impl Input for AskVisits {
    fn describe(_: &mut Schemas) -> Takes {
        let parameters = vec![
            time_parameter(
                "from",
                "The day that this time lies in is the first: a time, or a date of UTC. Left out: 30 days before `to`",
            ),
            time_parameter("to", "The range ends before this time; left out: now, with today"),
        ];
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Period::read(&call.query).map(|period| Self(period.by_day()))
    }
}

/// A source, on a day or in all.
#[derive(Debug, Serialize)]
pub struct SourceRow {
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_start: Option<Moment>,
    visits: u64,
    visitors: u64,
    sign_ups: u64,
    subscriptions: u64,
}

impl SourceRow {
    fn of(source: String, period_start: Option<Moment>, counts: Counts) -> Self {
        let Counts { count: visits, visitors, sign_ups, subscriptions, .. } = counts;
        Self { source, period_start, visits, visitors, sign_ups, subscriptions }
    }

    fn fields() -> Vec<(&'static str, Value)> {
        let rest = CountsView::fields()
            .into_iter()
            .filter(|(name, _)| ["visitors", "sign_ups", "subscriptions"].contains(name));
        [
            (
                "source",
                schema::string(
                    "Where they came from: `utm_source`, the host of the page before, `ad`, or `(direct)`",
                ),
            ),
            ("visits", schema::count("Visits")),
        ]
        .into_iter()
        .chain(rest)
        .collect()
    }
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct VisitCounts {
    totals: Vec<SourceRow>,
    visits: Vec<SourceRow>,
}

impl Describe for VisitCounts {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("VisitCounts", |_| {
            let total = schema::object("A source", SourceRow::fields());
            let day = ("period_start", schema::time("When the day begins"));
            let row = schema::object("A source on a day", [vec![day], SourceRow::fields()].concat());
            schema::object(
                "Visits, and the sign-ups and subscriptions of people who first came from there",
                [
                    ("totals", schema::list(total, "All of the range, by source")),
                    (
                        "visits",
                        schema::list(
                            row,
                            "By day and source, oldest first; of a day 200 sources, the others as `(other)`",
                        ),
                    ),
                ],
            )
        })
    }
}

/// `GET /visits`.
///
/// # Errors
/// The range is too long, or there is more in it than an answer holds; the store cannot be read.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    AskVisits(period): AskVisits,
) -> Result<VisitCounts, Problem> {
    let days = period.hours(room.hall.clock().now())?;
    crate::events::counted(&room).await;
    let (store, account) = (room.hall.store(), tenant.account().id);
    let rows = product_event_count::of_sources(store, account, days, ROWS_MAX + 1).await?;
    if rows.len() > ROWS_MAX {
        let text = format!("asks for more than {ROWS_MAX} rows; ask for a shorter range");
        return Err(Problem::field("from", text));
    }
    let totals = summed(rows.iter().map(|(_, source, counts)| (source.clone(), *counts)));
    Ok(VisitCounts {
        totals: totals.into_iter().map(|(source, counts)| SourceRow::of(source, None, counts)).collect(),
        visits: rows
            .into_iter()
            .map(|(day, source, counts)| SourceRow::of(source, Some(begins(day)), counts))
            .collect(),
    })
}
