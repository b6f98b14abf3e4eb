//! `PortalPage`: the response of all portal operations.

use html::document::RenderedPage;
use html::policy;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_FRAME_OPTIONS,
};
use httpd::response::{CookiePolicy, ExtraResponse, HTML_MEDIA_TYPE, IntoResponse, Response};

use super::layout;
use crate::prelude::*;

/// Keeps the pages out of search engines.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// The URL of the style sheet contains a hash of its text, so it may be cached indefinitely.
const STYLE_CACHE_CONTROL: &str = "public, max-age=31536000, immutable";

/// A page of the portal, a redirect, or the style sheet.
#[derive(Debug)]
pub struct PortalPage {
    pub(super) status: StatusCode,
    pub(super) media_type: &'static str,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
}

impl PortalPage {
    pub(super) fn new(status: StatusCode, page: RenderedPage) -> Self {
        Self { status, media_type: HTML_MEDIA_TYPE, headers: Vec::new(), body: page.into_string().into() }
    }

    pub(super) fn redirect(status: StatusCode, location: &str) -> Result<Self> {
        let location = HeaderValue::try_from(location).map_err(Problem::internal)?;
        let headers = vec![(LOCATION, location)];
        Ok(Self { status, media_type: "text/plain; charset=utf-8", headers, body: Bytes::new() })
    }

    pub(super) fn style_sheet() -> Self {
        let headers = vec![(CACHE_CONTROL, HeaderValue::from_static(STYLE_CACHE_CONTROL))];
        let body = Bytes::from_static(layout::style_sheet().as_bytes());
        Self { status: StatusCode::OK, media_type: "text/css; charset=utf-8", headers, body }
    }

    pub(super) fn with_cookie(mut self, cookie: Option<HeaderValue>) -> Self {
        self.headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        self
    }
}

impl IntoResponse for PortalPage {
    const MEDIA_TYPE: &'static str = HTML_MEDIA_TYPE;
    const COOKIES: CookiePolicy = CookiePolicy::Session;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[
        ExtraResponse { status: 200, media_type: Some("text/css; charset=utf-8"), description: "The style sheet" },
        ExtraResponse::empty(204, "A HEAD request or a browser's prefetch: the link is not used up"),
        ExtraResponse::empty(302, "Redirect to the portal"),
        ExtraResponse::empty(303, "Redirect to the page that shows the result of the form"),
        ExtraResponse::html(400, "A field is invalid"),
        ExtraResponse::html(401, "Not signed in"),
        ExtraResponse::html(403, "The partner may not make changes, or the CSRF token is invalid"),
        ExtraResponse::html(404, "Page not found"),
        ExtraResponse::html(409, "Already in use, or changed concurrently"),
        ExtraResponse::html(410, "The link has been used or has expired"),
        ExtraResponse::html(429, "Too many attempts"),
    ];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "An HTML page"})
    }

    fn into_response(self) -> Result<Response> {
        // A redirect from a login link must not send the link as referrer. From a page with `no-referrer`, browsers
        // would submit the forms with `Origin: null`.
        let referrer = if self.status.is_redirection() { "no-referrer" } else { "same-origin" };
        let mut headers = vec![
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy::WITHOUT_SCRIPTS)),
            (REFERRER_POLICY, HeaderValue::from_static(referrer)),
            (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            (ROBOTS, HeaderValue::from_static("noindex, nofollow")),
        ];
        headers.extend(self.headers);
        Ok(Response::new(self.status, self.media_type, headers, self.body))
    }
}
