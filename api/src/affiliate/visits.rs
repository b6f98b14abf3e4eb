//! Endpoints of the affiliate program for browsers: the script, reported visits, and links followed without the script
//! (docs/STX.md).
//!
//! ```text
//! GET  /stx.js ─► [script]
//! POST /affiliate/visits ─► origin allowed? rate limit? crawler? ─► affiliate::visits ─► credited visit, cookies
//! POST /affiliate/signups, /affiliate/identify ─► always 202 ─► after the response: affiliate::visits::people
//! GET  /r/{token} ─► [redirect]
//! ```
//!
//! Anyone can call these endpoints from any page, and the program's key is public. The cost of a call is bounded by
//! body size and by rate limits per address and per program. Pages of other origins receive nothing; crawlers record
//! nothing.

pub mod redirect;
mod request;
mod response;
pub mod script;
pub mod signups;

use ::affiliate::error::{AffiliateError, ConflictReason};
use ::affiliate::visits::{HANDED_OVER, VisitRequest, VisitSource};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE, HeaderName, HeaderValue,
    RETRY_AFTER, VARY,
};
use httpd::response::{IntoResponse, Response};
use model::affiliate::partner::PartnerLinkToken;
use model::affiliate::web_origin;
use net::limit::rate_limit::RateLimitStatus;

use self::request::{
    BrowserClient, REPORT_BYTES_MAX, ReportReader, TEXT_CHARS_MAX, URL_CHARS_MAX, truncated_text_schema,
};
use self::response::VisitResponse;
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Cache lifetime of the preflight response in browsers, in seconds.
const PREFLIGHT_MAX_AGE_S: &str = "86400";

/// The operations for browsers.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("affiliate_visits");
    let mut all = vec![
        tag.get("/stx.js", "The browser script of affiliate programs").public("get_affiliate_script", script::get),
        tag.post("/affiliate/visits", "Record a visit (called by the script)")
            .errors(&[ErrorCode::FORBIDDEN, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public("tell_affiliate_visit", record_visit),
        tag.post("/affiliate/signups", "Record the sign-up of a referred visitor")
            .public("tell_affiliate_signup", signups::report_sign_up),
        tag.post("/affiliate/identify", "Record the identity of a referred visitor")
            .public("tell_affiliate_person", signups::report_identity),
        tag.get("/r/{token}", "Follow a partner's link without the script (302 to its destination)")
            .public("follow_affiliate_link", redirect::follow),
    ];
    for (path, id) in [
        ("/affiliate/visits", "may_tell_affiliate_visit"),
        ("/affiliate/signups", "may_tell_affiliate_signup"),
        ("/affiliate/identify", "may_tell_affiliate_person"),
    ] {
        all.push(tag.operation(Method::OPTIONS, path, "CORS preflight").public(id, answer_preflight));
    }
    all
}

/// Body of `POST /affiliate/visits`.
#[derive(Debug)]
pub struct ReportReferralVisit {
    caller: BrowserClient,
    key: String,
    hint: Option<VisitSource>,
    visitor: Option<String>,
    url: String,
    referrer: String,
    sub_id: String,
    /// Domain for which the server sets cookies. Requires that the endpoint is called below the website's own host.
    domain: String,
}

impl FromRequest for ReportReferralVisit {
    const BODY_BYTES_MAX: Option<usize> = Some(REPORT_BYTES_MAX);
    const MEDIA: Media = Media::Beacon;
    const BODY: Option<BodySchema> = Some(|schemas| {
        schemas.component("TellAffiliateVisit", |_| {
            let fields = [
                ("key", schema::string("The program's publishable key (`pk_…`)")),
                ("token", schema::string("The link's token, or a visit's id (`vis_…`)")),
                (
                    "param",
                    truncated_text_schema(
                        "The query parameter that carried the token; `stx_ref` carries a visit's id from another site",
                    ),
                ),
                ("visitor", truncated_text_schema("The cookie `stx_vid`: 8 to 64 letters, digits, `.`, `_` and `-`")),
                ("url", truncated_text_schema("The page's URL")),
                ("referrer", truncated_text_schema("The URL of the referring page")),
                ("sub_id", truncated_text_schema("The partner's own tag; at most 100 characters are stored")),
                (
                    "domain",
                    truncated_text_schema(
                        "The domain to set cookies for; only if this endpoint is called below the site's host",
                    ),
                ),
            ];
            let mut visit =
                schema::object_with("A visit by a partner's link; ignored without `key` and `token`", &[], fields);
            visit["examples"] = json!([{
                "key": "pk_5f1d2c3b4a5968778695a4b3c2d1e0f0", "token": "ada", "param": "via",
                "visitor": "5f1d2c3b4a5968778695a4b3c2d1e0f0", "url": "https://shop.example/?via=ada",
                "referrer": "https://blog.example/", "sub_id": "june",
            }]);
            visit
        })
    });

    fn parameters() -> Vec<Value> {
        vec![schema::header_parameter("Origin", "The page's origin; set by browsers")]
    }

    fn read(call: &Request) -> Result<Self> {
        let names = names!("key", "visitor", "token", "param", "url", "referrer", "sub_id", "domain");
        let mut report = ReportReader::from_request(call, &names)?;
        let (token, param) = (report.read_text("token", TEXT_CHARS_MAX), report.read_text("param", TEXT_CHARS_MAX));
        let source = if param == HANDED_OVER {
            token.parse().ok().map(VisitSource::HandedOver)
        } else {
            PartnerLinkToken::parse(&token).ok().map(VisitSource::Link)
        };
        let parsed = Self {
            caller: BrowserClient::from_request(call),
            key: report.read_text("key", TEXT_CHARS_MAX),
            hint: source,
            visitor: report.read_visitor(),
            url: report.read_text("url", URL_CHARS_MAX),
            referrer: report.read_text("referrer", URL_CHARS_MAX),
            sub_id: report.read_text("sub_id", URL_CHARS_MAX),
            domain: report.read_text("domain", TEXT_CHARS_MAX),
        };
        report.finish()?;
        Ok(parsed)
    }
}

fn rate_limited_problem(status: RateLimitStatus) -> Problem {
    let problem = Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Too many visits; retry later");
    problem.with_header(RETRY_AFTER, status.reset_s.max(1).to_string())
}

/// `POST /affiliate/visits`.
///
/// # Errors
/// The page's origin is not allowed; a rate limit is exceeded; the store cannot be used.
pub async fn record_visit(state: State, report: ReportReferralVisit) -> Result<VisitResponse> {
    let ReportReferralVisit { caller, key, hint: source, visitor, url, referrer, sub_id, domain } = report;
    let now = state.services.clock.now();
    state.visits.referrals.check_address(caller.client_ip, now).map_err(rate_limited_problem)?;
    let Some(program) = state.affiliate.context.find_program_by_key(&key).await.or_problem(&state)? else {
        return Ok(VisitResponse::none(caller.cors_headers(false)));
    };
    if !caller.is_from_program_page(&program) {
        let text = "The page's origin is not in the program's `allowed_origins`";
        return Err(Problem::new(ErrorCode::FORBIDDEN, text).with_header(VARY, "Origin".to_owned()));
    }
    let headers = caller.cors_headers(true);
    let Some(source) = source.filter(|_| !caller.is_bot()) else {
        return Ok(VisitResponse::none(headers));
    };
    state.visits.referrals.check_site(program.account, now).map_err(rate_limited_problem)?;
    let arrival =
        VisitRequest { brought: source, visitor, url, referrer, sub_id: Some(sub_id), from: caller.client_ip };
    match state.affiliate.ledger.capture_visit(program.account, &arrival).await {
        Ok(Some(captured)) => {
            let for_cookies = caller.origin.as_deref().filter(|origin| web_origin::can_set_cookie(&domain, origin));
            let cookies = for_cookies.map(|origin| (domain.as_str(), origin.starts_with("https:")));
            Ok(VisitResponse::from_capture(&captured, headers).with_cookies(cookies, arrival.visitor.as_deref(), now))
        }
        Ok(None) => Ok(VisitResponse::none(headers)),
        Err(AffiliateError::Conflict(ConflictReason::TooManyClicks)) => {
            Err(Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Too many visits today; retry later")
                .with_header(RETRY_AFTER, "3600".to_owned()))
        }
        Err(refusal) => Err(refusal.into_problem(&state)),
    }
}

/// A CORS preflight request (Fetch, "CORS-preflight fetch"). The origin itself is checked with the actual request.
#[derive(Debug)]
pub struct CorsPreflight(BrowserClient);

impl FromRequest for CorsPreflight {
    fn read(call: &Request) -> Result<Self> {
        Ok(Self(BrowserClient::from_request(call)))
    }
}

#[derive(Debug)]
pub struct PreflightResponse(Vec<(HeaderName, HeaderValue)>);

impl IntoResponse for PreflightResponse {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";
    const STATUS: StatusCode = StatusCode::NO_CONTENT;

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "maxLength": 0, "examples": [""], "description": "An empty body"})
    }

    fn into_response(self) -> Result<Response> {
        let mut headers = self.0;
        headers.extend([
            (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST")),
            (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type")),
            (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_MAX_AGE_S)),
        ]);
        Ok(Response::new(Self::STATUS, Self::MEDIA_TYPE, headers, Bytes::new()))
    }
}

/// `OPTIONS /affiliate/…`.
pub async fn answer_preflight(_: State, CorsPreflight(caller): CorsPreflight) -> Result<PreflightResponse> {
    let has_origin = caller.origin.as_deref().is_some_and(|origin| web_origin::normalize(origin).is_some());
    Ok(PreflightResponse(caller.cors_headers(has_origin)))
}
