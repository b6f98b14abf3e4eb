//! `GET /r/{token}`: a partner's link that works without the script. It redirects to the link's destination with the
//! visit in `stx_ref`. HEAD requests, prefetches and crawlers are redirected without a visit.

use ::affiliate::visits::{LinkTarget, VisitRequest, VisitSource};
use ::message::address::DomainName;
use html::document::RenderedPage;
use html::message::{self, MessagePage, Sentence};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, LOCATION, REFERER};
use httpd::response::{ExtraResponse, HTML_MEDIA_TYPE, IntoResponse, Response};
use model::affiliate::partner::PartnerLinkToken;
use model::affiliate::program::AffiliateProgram;

use super::request::{BrowserClient, TEXT_CHARS_MAX, URL_CHARS_MAX, header_text};
use crate::prelude::*;

/// Page for browsers if the link belongs to no program.
fn no_such_link_page() -> RenderedPage {
    let text = "This link is not valid. It may be incomplete: open it again where you found it, or ask the person who \
                gave it to you.";
    MessagePage { title: "No such link", is_branded: false, content: Sentence(text) }.render()
}

/// Path, query and headers of a followed link.
#[derive(Debug)]
pub struct FollowLink {
    caller: BrowserClient,
    token: Option<PartnerLinkToken>,
    key: Option<String>,
    host: Option<DomainName>,
    query: String,
    referrer: String,
    sub_id: Option<String>,
    wants_page: bool,
}

impl FromRequest for FollowLink {
    fn parameters() -> Vec<Value> {
        let text = || json!({"type": "string"});
        vec![
            schema::path_parameter("token", "The token of a partner's link"),
            schema::query_parameter("key", "The program's publishable key; not needed on the portal's host", text()),
            schema::query_parameter("sub_id", "The partner's own tag", text()),
        ]
    }

    fn read(call: &Request) -> Result<Self> {
        // A malformed query does not prevent the redirect.
        let parameters = paging::parse_query(&call.query).unwrap_or_default();
        let first = |name: &str| {
            let value = parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            value.map(|value| value.chars().take(TEXT_CHARS_MAX).collect::<String>())
        };
        let host = header_text(&call.headers, &HOST, TEXT_CHARS_MAX);
        let host = host.rsplit_once(':').map_or(host.as_str(), |(host, _)| host);
        Ok(Self {
            caller: BrowserClient::from_request(call),
            token: call.path_text("token").and_then(|token| PartnerLinkToken::parse(&token).ok()),
            key: first("key"),
            host: host.to_ascii_lowercase().parse().ok(),
            query: format!("?{}", call.query.chars().take(URL_CHARS_MAX).collect::<String>()),
            referrer: header_text(&call.headers, &REFERER, URL_CHARS_MAX),
            sub_id: first("sub_id"),
            wants_page: header_text(&call.headers, &ACCEPT, TEXT_CHARS_MAX).contains("text/html"),
        })
    }
}

/// Result of following a link.
#[derive(Debug)]
pub enum LinkRedirect {
    Location(HeaderValue),
    /// The link belongs to no program.
    NotFound,
}

impl IntoResponse for LinkRedirect {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";
    const STATUS: StatusCode = StatusCode::FOUND;
    const EXTRA_RESPONSES: &'static [ExtraResponse] =
        &[ExtraResponse::html(404, "For browsers: the link belongs to no program")];

    fn describe(_: &mut Schemas) -> Value {
        let description = "An empty body; `Location` is the destination";
        json!({"type": "string", "maxLength": 0, "examples": [""], "description": description})
    }

    fn into_response(self) -> Result<Response> {
        let mut headers = vec![
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow")),
        ];
        let (status, media_type, body) = match self {
            Self::Location(location) => {
                headers.push((LOCATION, location));
                (StatusCode::FOUND, Self::MEDIA_TYPE, Bytes::new())
            }
            Self::NotFound => {
                let policy = message::content_security_policy();
                headers.push((CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)));
                (StatusCode::NOT_FOUND, HTML_MEDIA_TYPE, no_such_link_page().into_string().into())
            }
        };
        Ok(Response::new(status, media_type, headers, body))
    }
}

async fn find_program(state: &AppState, request: &FollowLink) -> Result<Option<AffiliateProgram>> {
    let found = match (&request.key, &request.host) {
        (Some(key), _) => state.affiliate.context.find_program_by_key(key).await,
        (None, Some(host)) => state.affiliate.hosts.find_program_by_host(host).await,
        (None, None) => Ok(None),
    };
    found.or_problem(state)
}

/// `GET /r/{token}`.
///
/// # Errors
/// The link belongs to no program; the store cannot be read.
pub async fn follow(state: State, request: FollowLink) -> Result<LinkRedirect> {
    let Some(program) = find_program(&state, &request).await? else {
        return if request.wants_page {
            Ok(LinkRedirect::NotFound)
        } else {
            Err(Problem::new(ErrorCode::NOT_FOUND, "No such link"))
        };
    };
    let now = state.services.clock.now();
    // Above the rate limit the client is redirected, but no visit is recorded.
    let counts = !request.caller.is_bot()
        && state.visits.referrals.check_address(request.caller.client_ip, now).is_ok()
        && state.visits.referrals.check_site(program.account, now).is_ok();
    let arrival = request.token.clone().filter(|_| counts).map(|token| VisitRequest {
        brought: VisitSource::Link(token),
        visitor: None,
        url: request.query,
        referrer: request.referrer,
        sub_id: request.sub_id,
        from: request.caller.client_ip,
    });
    let found = state.affiliate.ledger.follow_link(&program, request.token.as_ref(), arrival.as_ref()).await;
    let LinkTarget { location, .. } = found.or_problem(&state)?;
    Ok(LinkRedirect::Location(HeaderValue::from_str(&location).map_err(Problem::internal)?))
}
