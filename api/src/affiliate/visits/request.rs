//! Reports of browsers: the client that sent one, and its fields.

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, HeaderValue, ORIGIN, USER_AGENT, VARY};
use model::affiliate::program::AffiliateProgram;
use model::affiliate::web_origin;
use model::product_event::site_visit::{VISITOR_CHARS_MAX, is_visitor_id};
use model::tracking::bot_detection;

use crate::prelude::*;

/// Maximum size of a reported visit.
pub(super) const REPORT_BYTES_MAX: usize = 8 << 10;

/// URLs are truncated to this many characters.
pub(super) const URL_CHARS_MAX: usize = 2_000;

/// Other texts are truncated to this many characters.
pub(super) const TEXT_CHARS_MAX: usize = 300;

const USER_AGENT_CHARS_MAX: usize = 512;

/// Properties of the client that decide whether a report is accepted.
#[derive(Debug, Clone)]
pub(super) struct BrowserClient {
    pub(super) origin: Option<String>,
    pub(super) client_ip: Option<IpAddr>,
    pub(super) user_agent: String,
    pub(super) is_prefetch: bool,
}

pub(super) fn header_text(headers: &HeaderMap, name: &HeaderName, chars_max: usize) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    value.unwrap_or_default().chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

impl BrowserClient {
    pub(super) fn from_request(call: &Request) -> Self {
        let text = |name: &HeaderName| header_text(&call.headers, name, USER_AGENT_CHARS_MAX);
        Self {
            origin: call.headers.contains_key(ORIGIN).then(|| text(&ORIGIN)),
            client_ip: call.client_ip,
            user_agent: text(&USER_AGENT),
            is_prefetch: call.is_prefetch(),
        }
    }

    /// Returns whether the request is a crawler's or a prefetch. Other programs count as used by a person.
    pub(super) fn is_bot(&self) -> bool {
        let from = self.client_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.is_prefetch || bot_detection::is_crawler(&self.user_agent, from)
    }

    /// Returns whether the request's origin belongs to the program. Clients other than browsers send no origin.
    pub(super) fn is_from_program_page(&self, program: &AffiliateProgram) -> bool {
        let settings = &program.settings;
        self.origin
            .as_ref()
            .is_none_or(|origin| web_origin::is_allowed(origin, &settings.allowed_origins, &settings.website_url))
    }

    /// CORS headers that let the page read the response.
    pub(super) fn cors_headers(&self, is_allowed: bool) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = vec![(VARY, HeaderValue::from_static("Origin"))];
        let origin = self.origin.as_deref().filter(|_| is_allowed);
        let value = origin.and_then(|origin| HeaderValue::from_str(origin).ok());
        headers.extend(value.map(|value| (ACCESS_CONTROL_ALLOW_ORIGIN, value)));
        headers
    }
}

/// Reads the text fields of a report, truncated to their maximum length.
pub(super) struct ReportReader<'a>(pub(super) ObjectFields<'a>, pub(super) FieldDiagnostics);

impl<'a> ReportReader<'a> {
    pub(super) fn from_request(call: &'a Request, names: &httpd::fields::FieldNames) -> Result<Self> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_body(&call.body)?, names, "", &mut notes);
        Ok(Self(fields, notes))
    }

    /// Reads a text; empty if absent or null.
    pub(super) fn read_text(&mut self, name: &'static str, chars_max: usize) -> String {
        if self.0.is_null(name) {
            return String::new();
        }
        let text = self.0.value(name).map(fields::parse_text).transpose();
        let text = text.map_err(|error| self.1.errors.add(name, error)).ok().flatten().unwrap_or_default();
        text.chars().take(chars_max).collect()
    }

    pub(super) fn read_visitor(&mut self) -> Option<String> {
        Some(self.read_text("visitor", VISITOR_CHARS_MAX + 1)).filter(|visitor| is_visitor_id(visitor))
    }

    pub(super) fn finish(self) -> Result<()> {
        if self.1.errors.is_empty() { Ok(()) } else { Err(self.1.errors.into()) }
    }
}

/// Schema of a nullable text that is truncated.
pub(super) fn truncated_text_schema(description: &str) -> Value {
    let mut schema = schema::string(description);
    schema::allow_null(&mut schema);
    schema
}
