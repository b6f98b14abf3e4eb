//! Site visits: the browser script, the endpoint that it reports to, and the counts.
//!
//! ```text
//! GET /visits.js ─► browser: cookies stx_vid, rnl_ad ─► POST /visits ─► counted (events/src/product_events.rs)
//! ```
//!
//! The script is the same for all customers; `site` is the account's id, which is public. A client can report forged
//! visits, as with every such script. So their cost is bounded: rate limits by address and by site, and a limit of
//! stored visitors. Bots, and visitors whose browser sends Global Privacy Control or DNT, are not counted.

pub mod limits;

use std::net::{IpAddr, Ipv4Addr};

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, HeaderName, HeaderValue, USER_AGENT};
use httpd::request_object::FieldReader;
use httpd::request_value::AnyText;
use httpd::response::{IntoResponse, Response};
use model::product_event::site_visit::{VISITOR_CHARS_MAX, from_page, is_visitor_id};
use model::tracking::bot_detection;
use net::limit::rate_limit::RateLimitStatus;
use store::product_event_count::{self, ProductEventCounts};

use crate::events::counts::{day_start, sum_by_key};
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;
use crate::time_range::TimeRange;

/// The browser script.
const SCRIPT: &str = include_str!("visits/script.js");
/// Browsers cache the script for one hour.
const SCRIPT_CACHE_CONTROL: &str = "public, max-age=3600";
/// Longest report of a visit.
const REPORT_BYTES_MAX: usize = 8 << 10;
/// A longer User-Agent is truncated.
const USER_AGENT_CHARS_MAX: usize = 512;
/// Most rows of a response.
const ROWS_MAX: usize = 10_000;
/// The time since delivery for bot detection: long enough that no visit is taken for a mail client's prefetch.
const TIME_SINCE_DELIVERY: Duration = Duration::from_secs(3600);

/// The operations on visits.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("visits");
    vec![
        tag.get("/visits.js", "Get the script that reports site visits").public("get_visits_script", get_script),
        tag.post("/visits", "Record a site visit")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public("tell_visit", record_visit),
        tag.get("/visits", "Count visits and conversions by day and source")
            .full_key_or_session(("count_visits", "visits.counts"), get),
    ]
}

/// The response of `GET /visits.js`.
#[derive(Debug)]
pub struct VisitScript;

impl IntoResponse for VisitScript {
    const MEDIA_TYPE: &'static str = "text/javascript; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The script"})
    }

    fn into_response(self) -> Result<Response> {
        let headers = vec![
            (CACHE_CONTROL, HeaderValue::from_static(SCRIPT_CACHE_CONTROL)),
            (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
        ];
        Ok(Response::new(StatusCode::OK, Self::MEDIA_TYPE, headers, Bytes::from_static(SCRIPT.as_bytes())))
    }
}

/// `GET /visits.js`.
pub async fn get_script(_: State, _: NoInput) -> Result<VisitScript> {
    Ok(VisitScript)
}

/// The request body of `POST /visits`.
#[derive(Debug)]
pub struct ReportSiteVisit {
    site: AccountId,
    visitor_id: String,
    url: String,
    referrer: String,
    client_ip: Option<IpAddr>,
    user_agent: String,
    /// The browser sent Global Privacy Control or DNT.
    opted_out: bool,
}

/// A visit
#[derive(Debug, RequestObject)]
#[schema(name = "TellVisit", examples = [{
    "site": "acct_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "visitor_id": "5f1d2c3b4a5968778695a4b3c2d1e0f0",
    "url": "https://example.com/?utm_source=newsletter", "referrer": "https://search.example/",
}])]
struct VisitFields {
    /// Id of the account (`acct_…`)
    #[field(parse = parse_site, schema = schema::id(AccountId::PREFIX, ""))]
    site: AccountId,
    /// The cookie `stx_vid`
    #[field(
        parse = parse_visitor_id,
        schema = json!({"type": "string", "minLength": 8, "maxLength": VISITOR_CHARS_MAX, "pattern": "^[A-Za-z0-9._-]+$"}),
    )]
    visitor_id: String,
    /// URL of the page; ignored if longer than 2048 bytes
    #[field(reader = AnyText)]
    url: Option<String>,
    /// URL of the previous page; ignored if longer than 2048 bytes
    #[field(reader = AnyText)]
    referrer: Option<String>,
}

fn parse_site(value: &RawValue) -> Result<AccountId, String> {
    fields::parse_text(value)?.parse().map_err(|_| "must be the id of an account (`acct_…`)".to_owned())
}

fn parse_visitor_id(value: &RawValue) -> Result<String, String> {
    let id = fields::parse_text(value)?.into_owned();
    if is_visitor_id(&id) { Ok(id) } else { Err("must be 8 to 64 letters, digits, `.`, `_` and `-`".to_owned()) }
}

impl FromRequest for ReportSiteVisit {
    const BODY_BYTES_MAX: Option<usize> = Some(REPORT_BYTES_MAX);
    const MEDIA: Media = Media::Beacon;
    const BODY: Option<BodySchema> = Some(VisitFields::schema);

    fn read(call: &Request) -> Result<Self> {
        // Warnings about ignored fields are not sent: nobody reads the response.
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_body(&call.body)?, &VisitFields::FIELDS, "", &mut notes);
        let visit = VisitFields::read_fields(&mut FieldReader::new(&fields, &mut notes));
        let visit = visit.filter(|_| notes.errors.is_empty()).ok_or_else(|| Problem::from(notes.errors))?;
        let VisitFields { site, visitor_id, url, referrer } = visit;
        let header = |name: HeaderName| {
            let value = call.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().chars().take(USER_AGENT_CHARS_MAX).collect::<String>()
        };
        let is_opted_out = |name: &'static str| header(HeaderName::from_static(name)).trim() == "1";
        let opted_out = is_opted_out("sec-gpc") || is_opted_out("dnt");
        Ok(Self {
            site,
            visitor_id,
            url: url.unwrap_or_default(),
            referrer: referrer.unwrap_or_default(),
            client_ip: call.client_ip,
            user_agent: header(USER_AGENT),
            opted_out,
        })
    }
}

/// The response to a report; it does not reveal whether the visit is counted.
#[derive(Debug)]
pub struct VisitReportAccepted;

impl IntoResponse for VisitReportAccepted {
    const STATUS: StatusCode = StatusCode::ACCEPTED;

    fn describe(_: &mut Schemas) -> Value {
        schema::object("The report was received", [("ok", json!({"type": "boolean", "const": true}))])
    }

    fn into_response(self) -> Result<Response> {
        // The script runs on the customers' sites.
        let headers = vec![(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))];
        Ok(Response::new(Self::STATUS, Self::MEDIA_TYPE, headers, Bytes::from_static(b"{\"ok\":true}")))
    }
}

/// `POST /visits`. The response does not reveal whether the visit is counted.
///
/// # Errors
/// The rate limit is exceeded; the site does not exist; the store cannot be read or written.
pub async fn record_visit(state: State, report: ReportSiteVisit) -> Result<VisitReportAccepted> {
    let now = state.services.clock.now();
    let rate_limited = |standing: RateLimitStatus| {
        let problem = Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Too many visits; try again later");
        problem.with_header(http::header::RETRY_AFTER, standing.reset_s.max(1).to_string())
    };
    state.visits.pages.check_address(report.client_ip, now).map_err(rate_limited)?;
    if report.opted_out || is_bot(&report) {
        return Ok(VisitReportAccepted);
    }
    let Some(account) = store::account::get(&state.services.store, report.site).await? else {
        return Err(Problem::not_found("site"));
    };
    state.visits.pages.check_site(account.id, now).map_err(rate_limited)?;
    if let Some(visit) = from_page(&report.visitor_id, &report.url, &report.referrer, now) {
        state.accounts.product_events.ingest_visit(account.id, visit).await.or_problem(&state)?;
    }
    Ok(VisitReportAccepted)
}

fn is_bot(report: &ReportSiteVisit) -> bool {
    let request = bot_detection::FetchSignals {
        ip: report.client_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        user_agent: &report.user_agent,
        is_prefetch: false,
        is_click: true,
        since_delivery: Some(TIME_SINCE_DELIVERY),
    };
    bot_detection::detect_visitor(&request).machine
}

/// Parameters of `GET /visits`.
#[derive(Debug)]
pub struct VisitCountsQuery(TimeRange);

impl RequestQuery for VisitCountsQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let from = "Start: a timestamp, or a date in UTC. The first day is the one that contains it. Default: 30 days \
                    before `to`";
        TimeRange::of_days(query, from, "End, exclusive. Default: now, including today").map(Self)
    }
}

/// A source
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitSourceRow {
    /// Source: `utm_source`, the host of the previous page, `ad`, or `(direct)`
    source: String,
    /// Visits
    visits: u64,
    /// First-time visitors
    visitors: u64,
    /// Sign-ups, each user counted once
    sign_ups: u64,
    /// Subscriptions, each counted once
    subscriptions: u64,
}

impl VisitSourceRow {
    fn from_counts(source: String, counts: ProductEventCounts) -> Self {
        let ProductEventCounts { count: visits, visitors, sign_ups, subscriptions, .. } = counts;
        Self { source, visits, visitors, sign_ups, subscriptions }
    }
}

/// A source on a day
#[derive(Debug, Serialize, ToSchema)]
pub struct DailyVisitSourceRow {
    /// Start of the day
    period_start: JsonTimestamp,
    #[serde(flatten)]
    counts: VisitSourceRow,
}

/// Visits, and sign-ups and subscriptions of people whose first visit had the source
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "VisitCounts")]
pub struct VisitCountsResponse {
    /// The whole range, by source
    totals: Vec<VisitSourceRow>,
    /// By day and source, oldest first; at most 200 sources per day, the others as `(other)`
    visits: Vec<DailyVisitSourceRow>,
}

/// `GET /visits`.
///
/// # Errors
/// The range is too long, or has more rows than a response may have; the store cannot be read.
pub async fn get(
    state: State,
    tenant: Tenant,
    VisitCountsQuery(period): VisitCountsQuery,
) -> Result<VisitCountsResponse> {
    let days = period.hour_range(state.services.clock.now())?;
    crate::events::aggregation::wait_until_counted(&state).await;
    let (store, account) = (&state.services.store, tenant.account().id);
    let rows = product_event_count::source_counts(store, account, days, ROWS_MAX + 1).await?;
    if rows.len() > ROWS_MAX {
        let text = format!("yields more than {ROWS_MAX} rows; request a shorter range");
        return Err(Problem::field("from", text));
    }
    let totals = sum_by_key(rows.iter().map(|(_, source, counts)| (source.clone(), *counts)));
    Ok(VisitCountsResponse {
        totals: totals.into_iter().map(|(source, counts)| VisitSourceRow::from_counts(source, counts)).collect(),
        visits: rows
            .into_iter()
            .map(|(day, source, counts)| DailyVisitSourceRow {
                period_start: day_start(day),
                counts: VisitSourceRow::from_counts(source, counts),
            })
            .collect(),
    })
}
