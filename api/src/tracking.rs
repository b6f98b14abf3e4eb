//! Open and click tracking: the pixel and the redirecting links of tracked emails.
//!
//! ```text
//! GET /o/{token} ─► pixel, always          ┐
//! GET /c/{token} ─► 302 to the link target ┴─► recorded in the background (events::email_tracking)
//! ```
//!
//! Readers get the pixel or the page even if recording fails: it runs in the background, and the response waits for
//! it at most [`RECORD_WAIT_MAX`]. A token without a valid signature is answered 404. The link target is part of the
//! signed token, so a redirect cannot be forged to another site.

use std::net::{IpAddr, Ipv4Addr};

use events::email_tracking::{TrackedFetch, TrackingError};
use html::document::RenderedPage;
use html::message::{self, MessagePage, Sentence};
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, USER_AGENT};
use httpd::response::{ExtraResponse, HTML_MEDIA_TYPE, IntoResponse, Response};
use model::tracking::location::location_value;
use model::tracking::{TrackedLink, TrackingTarget, verify_pixel_token};

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Longest wait of the response for the commit; a healthy disk has it stored by then.
pub const RECORD_WAIT_MAX: Duration = Duration::from_millis(300);
/// A longer User-Agent is truncated.
const USER_AGENT_CHARS_MAX: usize = 512;

/// A GIF of one transparent pixel.
const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\
    \x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x01D\x00;";

/// The page for an invalid or truncated link.
fn no_such_link_page() -> RenderedPage {
    let text = "This link is not valid. It may be incomplete: open it again from the email, or ask the sender.";
    MessagePage { title: "Invalid link", is_branded: false, content: Sentence(text) }.render()
}

const TOKEN: &str = "token";

/// The public operations of tracking.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("tracking");
    vec![
        tag.get("/o/{token}", "Record an open and return the tracking pixel").public("open_pixel", track_open),
        tag.get("/c/{token}", "Record a click and redirect to the link target").public("follow_link", track_click),
    ]
}

/// A request for a pixel or link.
#[derive(Debug)]
pub struct TrackedRequest {
    token: String,
    ip: IpAddr,
    user_agent: String,
    is_prefetch: bool,
    wants_page: bool,
}

impl FromRequest for TrackedRequest {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter(TOKEN, "Signed token: the recipient and, for a link, its target")]
    }

    fn read(call: &Request) -> Result<Self> {
        let text = |name: HeaderName| {
            let value = call.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().chars().filter(|c| !c.is_control()).take(USER_AGENT_CHARS_MAX).collect()
        };
        let accepts: String = text(ACCEPT);
        Ok(Self {
            token: call.path_parameter(TOKEN).to_owned(),
            ip: call.client_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            user_agent: text(USER_AGENT),
            is_prefetch: call.is_prefetch(),
            wants_page: accepts.contains("text/html"),
        })
    }
}

impl TrackedRequest {
    fn into_tracked_event(self, target: TrackingTarget, link: Option<(u16, String)>) -> TrackedFetch {
        let Self { ip, user_agent, is_prefetch: in_advance, .. } = self;
        TrackedFetch { tracked: target, link, ip, user_agent, is_prefetch: in_advance }
    }

    fn unknown_link_response(self) -> Result<TrackingResponse> {
        if self.wants_page {
            Ok(TrackingResponse::NoSuchLink)
        } else {
            Err(Problem::new(ErrorCode::NOT_FOUND, "No such link"))
        }
    }
}

/// The response to a pixel or link.
#[derive(Debug)]
pub enum TrackingResponse {
    Pixel,
    /// 302 to the link target.
    Redirect(HeaderValue),
    /// 404 with a page for browsers.
    NoSuchLink,
}

impl IntoResponse for TrackingResponse {
    const MEDIA_TYPE: &'static str = "image/gif";
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[
        ExtraResponse::empty(302, "Redirect to the link target"),
        ExtraResponse::html(404, "The page for browsers: invalid link"),
    ];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "binary", "description": "The pixel; a link is answered with 302"})
    }

    fn into_response(self) -> Result<Response> {
        let mut headers = vec![
            // The target site must not see the tracking URL.
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow")),
        ];
        let (status, media_type, body) = match self {
            Self::Pixel => (StatusCode::OK, Self::MEDIA_TYPE, Bytes::from_static(PIXEL)),
            Self::Redirect(location) => {
                headers.push((LOCATION, location));
                (StatusCode::FOUND, "text/plain; charset=utf-8", Bytes::new())
            }
            Self::NoSuchLink => {
                let policy = message::content_security_policy();
                headers.push((CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)));
                (StatusCode::NOT_FOUND, HTML_MEDIA_TYPE, no_such_link_page().into_string().into())
            }
        };
        Ok(Response::new(status, media_type, headers, body))
    }
}

/// `GET /o/{token}`.
///
/// # Errors
/// The token is invalid.
pub async fn track_open(state: State, fetch: TrackedRequest) -> Result<TrackingResponse> {
    let Some(target) = verify_pixel_token(&state.accounts.links.key, &fetch.token) else {
        return fetch.unknown_link_response();
    };
    record_in_background(&state, fetch.into_tracked_event(target, None)).await;
    Ok(TrackingResponse::Pixel)
}

/// `GET /c/{token}`.
///
/// # Errors
/// The token is invalid.
pub async fn track_click(state: State, fetch: TrackedRequest) -> Result<TrackingResponse> {
    let Some(click) = TrackedLink::read(&state.accounts.links.key, &fetch.token) else {
        return fetch.unknown_link_response();
    };
    let Ok(to) = HeaderValue::from_str(&location_value(&click.url)) else {
        return fetch.unknown_link_response();
    };
    record_in_background(&state, fetch.into_tracked_event(click.target, Some((click.link, click.url)))).await;
    Ok(TrackingResponse::Redirect(to))
}

/// Records the open or click in the background, and waits for it at most [`RECORD_WAIT_MAX`].
async fn record_in_background(state: &State, fetched: TrackedFetch) {
    let task_state = Arc::clone(state);
    let recording = state.background.tasks.spawn(async move {
        let outcome = match task_state.visits.emails.record(&fetched).await {
            Ok(Some(counted)) if counted.machine => "machine",
            Ok(Some(_)) => "person",
            Ok(None) => "uncounted",
            Err(TrackingError::Busy) => "crowded",
            Err(error) => {
                tracing::warn!(%error, email.id = %fetched.tracked.email, "an open or click was not recorded");
                "failed"
            }
        };
        let kind = if fetched.link.is_some() { "click" } else { "open" };
        metrics::counter!("postrider_visits_total", "kind" => kind, "outcome" => outcome).increment(1);
    });
    let _ = tokio::time::timeout(RECORD_WAIT_MAX, recording).await;
}
