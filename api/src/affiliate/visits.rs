//! The affiliate program in browsers: the script, the visits that it tells of, and links that are followed without it
//! (affiliate-api.md, completions-affiliate.md 2.8).
//!
//! ```text
//! GET  /stx.js ─► [script]
//! POST /affiliate/visits ─► who may, how often, a machine? ─► affiliate::visits ─► which visit stands, cookies perhaps
//! POST /affiliate/signups, /affiliate/identify ─► 202, whatever it is ─► behind the answer: affiliate::visits::people
//! GET  /r/{token} ─► [redirect]
//! ```
//!
//! Anybody can call these, from any page: what they cost is bounded (bodies, rates by address and by program), pages of
//! other origins than the program's get nothing, and machines leave nothing behind. The program's key is no secret.

pub mod people;
pub mod redirect;
pub mod script;
mod standing;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ::affiliate::refusal::{AffiliateError, ConflictReason};
use ::affiliate::visits::{HANDED_OVER, VisitRequest, VisitSource};
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, USER_AGENT, VARY,
};
use http::{HeaderMap, Method, StatusCode};
use mail::affiliate::origin;
use mail::affiliate::partner::PartnerLinkToken;
use mail::affiliate::program::AffiliateProgram;
use mail::product_event::visit::{VISITOR_CHARS_MAX, is_visitor_id};
use mail::tracking::machine;
use queue::rate::RateLimitStatus;
use serde_json::{Value, json};

use self::standing::VisitResponse;
use super::refusal_problem;
use crate::call::{FromRequest, IntoResponse, Media, Request, RequestSpec, Response};
use crate::fields::{self, FieldDiagnostics, ObjectFields};
use crate::operations::{Operation, OperationBuilder, operation};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The largest report of a visit.
const REPORT_BYTES_MAX: usize = 8 << 10;
/// Addresses of pages are looked at so far.
const URL_CHARS_MAX: usize = 2_000;
/// The longest of the other texts.
const TEXT_CHARS_MAX: usize = 300;
/// A user agent longer than this is cut.
const USER_AGENT_CHARS_MAX: usize = 512;
/// For how long a browser need not ask again whether it may tell, in seconds.
const PREFLIGHT_MAX_AGE_S: &str = "86400";

/// What browsers can ask.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| -> OperationBuilder {
        operation(method, path, id).about("affiliate_visits", summary)
    };
    let (get, post) = (Method::GET, Method::POST);
    let mut all = vec![
        of(get.clone(), "/stx.js", "get_affiliate_script", "The browser script of affiliate programs")
            .public(script::get),
        of(post.clone(), "/affiliate/visits", "tell_affiliate_visit", "Tell of a visit; the script does")
            .errors(&[ErrorCode::FORBIDDEN, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(record_visit),
        of(post.clone(), "/affiliate/signups", "tell_affiliate_signup", "Tell that a referred visitor signed up")
            .public(people::report_sign_up),
        of(post, "/affiliate/identify", "tell_affiliate_person", "Tell who a referred visitor is")
            .public(people::report_identity),
        of(get, "/r/{token}", "follow_affiliate_link", "A partner's link without a script: 302 to where it leads")
            .public(redirect::follow),
    ];
    for (path, id) in [
        ("/affiliate/visits", "may_tell_affiliate_visit"),
        ("/affiliate/signups", "may_tell_affiliate_signup"),
        ("/affiliate/identify", "may_tell_affiliate_person"),
    ] {
        let asks = of(Method::OPTIONS, path, id, "What a browser asks before it sends JSON from another site");
        all.push(asks.public(answer_preflight));
    }
    all
}

/// Who asks, as far as that matters to what browsers tell.
#[derive(Debug, Clone)]
struct BrowserClient {
    origin: Option<String>,
    client_ip: Option<IpAddr>,
    user_agent: String,
    is_prefetch: bool,
}

fn header_text(headers: &HeaderMap, name: &HeaderName, chars_max: usize) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    value.unwrap_or_default().chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

impl BrowserClient {
    fn from_request(call: &Request) -> Self {
        let text = |name: &HeaderName| header_text(&call.headers, name, USER_AGENT_CHARS_MAX);
        Self {
            origin: call.headers.contains_key(ORIGIN).then(|| text(&ORIGIN)),
            client_ip: call.client_ip,
            user_agent: text(&USER_AGENT),
            is_prefetch: call.is_head || crate::tracking::says_prefetch(&call.headers),
        }
    }

    /// Whether it is none of a person's: a crawler, or a page that is fetched before anybody looks at it. A program that
    /// somebody runs is theirs.
    fn is_bot(&self) -> bool {
        let from = self.client_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.is_prefetch || machine::is_crawler(&self.user_agent, from)
    }

    /// Whether a page of the program asks. What is no page has no origin.
    fn is_from_program_page(&self, program: &AffiliateProgram) -> bool {
        let settings = &program.settings;
        self.origin
            .as_ref()
            .is_none_or(|origin| origin::is_allowed(origin, &settings.allowed_origins, &settings.website_url))
    }

    /// The header fields by which a browser lets the page see the answer.
    fn cors_headers(&self, is_allowed: bool) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = vec![(VARY, HeaderValue::from_static("Origin"))];
        let origin = self.origin.as_deref().filter(|_| is_allowed);
        let value = origin.and_then(|origin| HeaderValue::from_str(origin).ok());
        headers.extend(value.map(|value| (ACCESS_CONTROL_ALLOW_ORIGIN, value)));
        headers
    }
}

/// The fields of a report: texts, cut to what is looked at.
struct ReportReader<'a>(ObjectFields<'a>, FieldDiagnostics);

impl<'a> ReportReader<'a> {
    fn from_request(call: &'a Request, names: &crate::fields::FieldNames) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let given = ObjectFields::from_object(fields::parse_body(&call.body)?, names, "", &mut notes);
        Ok(Self(given, notes))
    }

    /// A text; empty when it is left out.
    fn read_text(&mut self, name: &'static str, chars_max: usize) -> String {
        if self.0.is_null(name) {
            return String::new();
        }
        let text = self.0.value(name).map(fields::parse_text).transpose();
        let text = text.map_err(|error| self.1.errors.add(name, error)).ok().flatten().unwrap_or_default();
        text.chars().take(chars_max).collect()
    }

    fn read_visitor(&mut self) -> Option<String> {
        Some(self.read_text("visitor", VISITOR_CHARS_MAX + 1)).filter(|visitor| is_visitor_id(visitor))
    }

    fn finish(self) -> Result<(), Problem> {
        if self.1.errors.is_empty() { Ok(()) } else { Err(self.1.errors.into()) }
    }
}

/// The schema of a text that browsers send, cut where it is too long.
fn truncated_text_schema(description: &str) -> Value {
    let mut schema = schema::string(description);
    schema::allow_null(&mut schema);
    schema
}

/// A visit that is told.
#[derive(Debug)]
pub struct ReportReferralVisit {
    caller: BrowserClient,
    key: String,
    hint: Option<VisitSource>,
    visitor: Option<String>,
    url: String,
    referrer: String,
    sub_id: String,
    /// For which domain the server is to set cookies: it is asked below the site's own address.
    domain: String,
}

impl FromRequest for ReportReferralVisit {
    const BODY_BYTES_MAX: Option<usize> = Some(REPORT_BYTES_MAX);
    const MEDIA: Media = Media::Beacon;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("TellAffiliateVisit", |_| {
            let fields = [
                ("key", schema::string("The program's publishable key (`pk_…`)")),
                ("token", schema::string("What the link brought: its token, or a visit's id (`vis_…`)")),
                ("param", truncated_text_schema("The query parameter that brought it; `stx_ref` hands a visit over")),
                ("visitor", truncated_text_schema("The cookie `stx_vid`: 8 to 64 letters, digits, `.`, `_` and `-`")),
                ("url", truncated_text_schema("The page's address")),
                ("referrer", truncated_text_schema("The address of the page before")),
                ("sub_id", truncated_text_schema("The partner's own tag; 100 characters count")),
                (
                    "domain",
                    truncated_text_schema("For which domain cookies are to be set; only below the site's address"),
                ),
            ];
            let mut visit =
                schema::object_with("A visit by a partner's link; without `key` and `token` it is none", &[], fields);
            visit["examples"] = json!([{
                "key": "pk_5f1d2c3b4a5968778695a4b3c2d1e0f0", "token": "ada", "param": "via",
                "visitor": "5f1d2c3b4a5968778695a4b3c2d1e0f0", "url": "https://shop.example/?via=ada",
                "referrer": "https://blog.example/", "sub_id": "june",
            }]);
            visit
        });
        let origin = schema::header_parameter("Origin", "Where the page comes from; browsers say it");
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, parameters: vec![origin] }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let names = names!("key", "visitor", "token", "param", "url", "referrer", "sub_id", "domain");
        let mut report = ReportReader::from_request(call, &names)?;
        let (token, param) = (report.read_text("token", TEXT_CHARS_MAX), report.read_text("param", TEXT_CHARS_MAX));
        let brought = if param == HANDED_OVER {
            token.parse().ok().map(VisitSource::HandedOver)
        } else {
            PartnerLinkToken::parse(&token).ok().map(VisitSource::Link)
        };
        let told = Self {
            caller: BrowserClient::from_request(call),
            key: report.read_text("key", TEXT_CHARS_MAX),
            hint: brought,
            visitor: report.read_visitor(),
            url: report.read_text("url", URL_CHARS_MAX),
            referrer: report.read_text("referrer", URL_CHARS_MAX),
            sub_id: report.read_text("sub_id", URL_CHARS_MAX),
            domain: report.read_text("domain", TEXT_CHARS_MAX),
        };
        report.finish()?;
        Ok(told)
    }
}

fn rate_limited_problem(standing: RateLimitStatus) -> Problem {
    let problem = Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Too many visits; tell of them later");
    problem.with_header(RETRY_AFTER, standing.reset_s.max(1).to_string())
}

/// `POST /affiliate/visits`.
///
/// # Errors
/// It is another site's page; too often; the store cannot be used.
pub async fn record_visit(room: Arc<AppState>, told: ReportReferralVisit) -> Result<VisitResponse, Problem> {
    let ReportReferralVisit { caller, key, hint: brought, visitor, url, referrer, sub_id, domain } = told;
    let now = room.intake.clock().now();
    room.click_limits.check_address(caller.client_ip, now).map_err(rate_limited_problem)?;
    let found = room.affiliate.find_program_by_key(&key).await;
    let Some(program) = found.map_err(|refusal| refusal_problem(&room, refusal))? else {
        return Ok(VisitResponse::none(caller.cors_headers(false)));
    };
    if !caller.is_from_program_page(&program) {
        let text = "Visits are told by pages of the program's `allowed_origins`";
        return Err(Problem::new(ErrorCode::FORBIDDEN, text).with_header(VARY, "Origin".to_owned()));
    }
    let headers = caller.cors_headers(true);
    let Some(brought) = brought.filter(|_| !caller.is_bot()) else {
        return Ok(VisitResponse::none(headers));
    };
    room.click_limits.check_site(program.account, now).map_err(rate_limited_problem)?;
    let arrival = VisitRequest { brought, visitor, url, referrer, sub_id: Some(sub_id), from: caller.client_ip };
    match room.affiliate.capture(program.account, &arrival).await {
        Ok(Some(captured)) => {
            let for_cookies = caller.origin.as_deref().filter(|origin| origin::can_set_cookie(&domain, origin));
            let cookies = for_cookies.map(|origin| (domain.as_str(), origin.starts_with("https:")));
            Ok(VisitResponse::from_capture(&captured, headers).with_cookies(cookies, arrival.visitor.as_deref(), now))
        }
        Ok(None) => Ok(VisitResponse::none(headers)),
        Err(AffiliateError::Conflict(ConflictReason::TooManyClicks)) => {
            Err(Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Too many visits today")
                .with_header(RETRY_AFTER, "3600".to_owned()))
        }
        Err(refusal) => Err(refusal_problem(&room, refusal)),
    }
}

/// What a browser asks before it sends JSON (Fetch, "CORS-preflight"). Whose the page is, is judged with what it sends.
#[derive(Debug)]
pub struct CorsPreflight(BrowserClient);

impl FromRequest for CorsPreflight {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec::default()
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(BrowserClient::from_request(call)))
    }
}

/// It may be sent.
#[derive(Debug)]
pub struct PreflightResponse(Vec<(HeaderName, HeaderValue)>);

impl IntoResponse for PreflightResponse {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";
    const STATUS: StatusCode = StatusCode::NO_CONTENT;

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "maxLength": 0, "examples": [""], "description": "Nothing"})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(Bytes::new())
    }

    fn into_response(self) -> Result<Response, Problem> {
        let mut headers = self.0;
        headers.extend([
            (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST")),
            (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type")),
            (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_MAX_AGE_S)),
        ]);
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Response { status: Self::STATUS, media_type, headers, body: Bytes::new(), stream: None })
    }
}

/// `OPTIONS /affiliate/…`.
///
/// # Errors
/// None.
pub async fn answer_preflight(
    _: Arc<AppState>,
    CorsPreflight(caller): CorsPreflight,
) -> Result<PreflightResponse, Problem> {
    let has_origin = caller.origin.as_deref().is_some_and(|one| origin::normalize(one).is_some());
    Ok(PreflightResponse(caller.cors_headers(has_origin)))
}
