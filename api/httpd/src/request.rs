//! Requests of operations.
//!
//! A [`FromRequest`] type parses itself from a request (path, query, body) and describes itself for the OpenAPI
//! document. Unknown body fields ([`Request::body_fields`]) are collected as warnings, which the response carries.

use std::cell::RefCell;
use std::net::IpAddr;

use bytes::Bytes;
use http::HeaderValue;
use message::percent;
use schema::Schemas;
use serde_json::Value;

use crate::fields::{self, FieldDiagnostics, FieldLookup, JsonObject, ObjectFields};
use crate::problem::Problem;

/// Larger bodies are parsed on a blocking thread: at about 1 GB/s they would occupy a runtime thread for more than
/// 250 µs.
pub const READ_INLINE_BYTES_MAX: usize = 256 << 10;

/// Body limit of operations that carry no email.
pub const SMALL_BYTES_MAX: usize = 64 << 10;

/// Body limit of operations that send email: ten attachments of 10 MB in base64, and the texts
/// of the email.
pub const SEND_BYTES_MAX: usize = 144 << 20;

/// A request that was routed and authenticated and whose body was read.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Path parameters in order, not percent-decoded.
    pub path: Vec<(String, String)>,
    /// The raw query string.
    pub query: String,
    pub headers: http::HeaderMap,
    /// The complete body; empty if the operation takes none.
    pub body: Bytes,
    /// `None` if the connection's address is unknown.
    pub client_ip: Option<IpAddr>,
    /// Whether this is a HEAD request, which is answered like GET (RFC 9110 9.3.2).
    pub is_head: bool,
    /// Warnings about ignored fields, collected while parsing.
    pub warnings: RefCell<Vec<String>>,
}

impl Request {
    /// The raw path parameter; empty if the path has none of that name.
    pub fn path_parameter(&self, name: &str) -> &str {
        self.path.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// True if nobody sees the response yet: a HEAD request, or a header field marks a prefetch, preview or prerender.
    /// Such a request counts as no open, click or visit, and uses no link up.
    pub fn is_prefetch(&self) -> bool {
        let is_marked = |value: &HeaderValue| {
            let value = value.as_bytes().to_ascii_lowercase();
            let contains = |word: &str| value.windows(word.len()).any(|part| part == word.as_bytes());
            ["prefetch", "preview", "prerender"].into_iter().any(contains)
        };
        let names = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
        self.is_head || names.iter().any(|name| self.headers.get_all(*name).iter().any(is_marked))
    }

    /// The path parameter, percent-decoded (RFC 3986 2.1); `None` if it is not UTF-8.
    pub fn path_text(&self, name: &str) -> Option<String> {
        percent::decode(self.path_parameter(name))
    }

    /// The fields of the body, sorted by name. Unknown fields are reported as warnings
    /// in the response.
    ///
    /// # Errors
    /// The body is not a JSON object.
    pub fn body_fields(
        &self,
        names: &dyn FieldLookup,
        notes: &mut FieldDiagnostics,
    ) -> Result<ObjectFields<'_>, Problem> {
        Ok(self.collect_fields(fields::parse_body(&self.body)?, names, notes))
    }

    /// As [`Request::body_fields`], for an optional body ([`Media::OptionalJson`]).
    ///
    /// # Errors
    /// The body is neither empty nor a JSON object.
    pub fn optional_body_fields(
        &self,
        names: &dyn FieldLookup,
        notes: &mut FieldDiagnostics,
    ) -> Result<ObjectFields<'_>, Problem> {
        Ok(self.collect_fields(fields::parse_optional_body(&self.body)?, names, notes))
    }

    fn collect_fields<'a>(
        &'a self,
        object: JsonObject<'a>,
        names: &dyn FieldLookup,
        notes: &mut FieldDiagnostics,
    ) -> ObjectFields<'a> {
        let fields = ObjectFields::from_object(object, names, "", notes);
        self.warnings.borrow_mut().append(&mut notes.warnings);
        fields
    }
}

/// The media types of a request body that an operation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// JSON; a missing `Content-Type` counts as JSON.
    #[default]
    Json,
    /// JSON; an empty body counts as an object without fields.
    OptionalJson,
    JsonOrCsv,
    /// JSON that may be labelled as text, which browsers send cross-origin without a preflight (Fetch,
    /// "CORS-safelisted").
    Beacon,
    /// Like `Beacon`, but any body is accepted; an unreadable one counts as empty.
    Any,
    /// Form data. Any `Content-Type` is accepted, because the senders cannot be changed.
    Form,
    /// CSV with any `Content-Type`; the parser reports errors.
    Csv,
    /// JSON with any `Content-Type`; the body's signature authenticates it.
    Signed,
}

impl Media {
    /// The media types for the OpenAPI document.
    pub fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Json | Self::OptionalJson | Self::Signed => &["application/json"],
            Self::JsonOrCsv => &["application/json", "text/csv"],
            Self::Beacon | Self::Any => &["text/plain", "application/json"],
            Self::Csv => &["text/csv"],
            Self::Form => &["application/x-www-form-urlencoded", "multipart/form-data"],
        }
    }
}

/// The parameters and body of an operation, for the OpenAPI document.
#[derive(Debug, Default, Clone)]
pub struct RequestSpec {
    /// OpenAPI parameter objects of path, query and headers.
    pub parameters: Vec<Value>,
    pub body: Option<Value>,
    /// `None` if the operation takes no body.
    pub body_bytes_max: Option<usize>,
}

impl RequestSpec {
    /// Returns whether a parameter with this name is at a location of the request (`path`, `query`, `header`).
    pub fn has_parameter(&self, location: &str, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter["in"] == location && parameter["name"] == name)
    }

    pub fn takes_idempotency_key(&self) -> bool {
        self.has_parameter("header", "Idempotency-Key")
    }
}

/// Writes the schema of a body.
pub type BodySchema = fn(&mut Schemas) -> Value;

/// The input of a handler, parsed from a request.
pub trait FromRequest: Sized + Send + 'static {
    /// Maximum body size; `None` if the operation takes no body.
    const BODY_BYTES_MAX: Option<usize> = None;
    /// Accepted media types.
    const MEDIA: Media = Media::Json;
    /// The body in the OpenAPI document; `None` if the operation takes none.
    const BODY: Option<BodySchema> = None;

    /// The parameters of path, query and headers, for the OpenAPI document.
    fn parameters() -> Vec<Value> {
        Vec::new()
    }

    /// The input's part of the OpenAPI document.
    fn describe(schemas: &mut Schemas) -> RequestSpec {
        RequestSpec {
            parameters: Self::parameters(),
            body: Self::BODY.map(|schema| schema(schemas)),
            body_bytes_max: Self::BODY_BYTES_MAX,
        }
    }

    /// Parses the input.
    fn read(call: &Request) -> Result<Self, Problem>;

    /// An error that the handler reports later, because others take precedence.
    fn deferred_error(&self) -> Option<&Problem> {
        None
    }
}

/// The path that names an object, and the rest of the input. The rest is parsed first, so its errors take precedence.
impl<P: FromRequest, T: FromRequest> FromRequest for (P, T) {
    const BODY_BYTES_MAX: Option<usize> = T::BODY_BYTES_MAX;
    const MEDIA: Media = T::MEDIA;
    const BODY: Option<BodySchema> = T::BODY;

    fn parameters() -> Vec<Value> {
        [P::parameters(), T::parameters()].concat()
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let rest = T::read(call)?;
        Ok((P::read(call)?, rest))
    }
}

/// Input of handlers without parameters or body.
#[derive(Debug, Clone, Copy)]
pub struct NoInput;

impl FromRequest for NoInput {
    fn read(_: &Request) -> Result<Self, Problem> {
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName};

    use super::*;

    #[test]
    fn prefetches_are_recognized_in_every_spelling() {
        let is_prefetch = |name: &'static str, value: &'static str| {
            let headers: HeaderMap =
                [(HeaderName::from_static(name), HeaderValue::from_static(value))].into_iter().collect();
            Request { headers, ..Request::default() }.is_prefetch()
        };
        assert!(is_prefetch("purpose", "prefetch") && is_prefetch("purpose", "Prefetch"));
        assert!(is_prefetch("sec-purpose", "prefetch;prerender") && is_prefetch("sec-purpose", "prerender"));
        assert!(is_prefetch("x-moz", "PREFETCH") && is_prefetch("x-purpose", "Preview"));
        assert!(!is_prefetch("purpose", "navigate") && !is_prefetch("x-other", "prefetch"));
        assert!(Request { is_head: true, ..Request::default() }.is_prefetch());
        assert!(!Request::default().is_prefetch());
    }
}
