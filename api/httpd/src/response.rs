//! Responses of operations.
//!
//! An [`IntoResponse`] type renders itself and describes itself for the OpenAPI document. Every type that serializes
//! and has a schema is one.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use message::percent;
use schema::{Schemas, ToSchema};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::problem::Problem;

/// A response before it is converted to HTTP.
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub media_type: HeaderValue,
    /// Headers other than `Content-Type`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, or its beginning if `stream` is set.
    pub body: Bytes,
    /// The rest of the body, produced while it is sent.
    pub stream: Option<BodyStream>,
}

impl Response {
    /// A response whose body is complete.
    pub fn new(
        status: StatusCode,
        media_type: &'static str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Self {
        Self { status, media_type: HeaderValue::from_static(media_type), headers, body, stream: None }
    }
}

/// The rest of a response that is too large to buffer. The bounded channel applies back-pressure from the client.
pub type BodyStream = mpsc::Receiver<Result<Bytes, BodyStreamError>>;

/// The rest of a response cannot be produced: the connection is aborted, so that the client notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response stream was aborted")]
pub struct BodyStreamError;

/// Default media type of responses.
pub const JSON_MEDIA_TYPE: &str = "application/json";
pub const HTML_MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// A further response of an operation, for the OpenAPI document.
#[derive(Debug, Clone, Copy)]
pub struct ExtraResponse {
    pub status: u16,
    /// `None` if the response has no body.
    pub media_type: Option<&'static str>,
    /// Description in the OpenAPI document.
    pub description: &'static str,
}

impl ExtraResponse {
    /// A response without a body.
    pub const fn empty(status: u16, description: &'static str) -> Self {
        Self { status, media_type: None, description }
    }

    /// A page.
    pub const fn html(status: u16, description: &'static str) -> Self {
        Self { status, media_type: Some(HTML_MEDIA_TYPE), description }
    }

    pub const fn json(status: u16, description: &'static str) -> Self {
        Self { status, media_type: Some(JSON_MEDIA_TYPE), description }
    }
}

/// The cookies that an operation may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookiePolicy {
    /// None; setting one is an internal error.
    None,
    /// Session cookies. Requests from other sites are rejected ([`crate::origin`]).
    Session,
    /// Visitor cookies of customers' sites; requests from these sites are allowed.
    Visitor,
}

/// The output of a handler, rendered to a response.
pub trait IntoResponse: Send + 'static {
    const MEDIA_TYPE: &'static str = JSON_MEDIA_TYPE;
    /// Status on success.
    const STATUS: StatusCode = StatusCode::OK;
    const COOKIES: CookiePolicy = CookiePolicy::None;
    /// Further responses, for the OpenAPI document.
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[];

    /// The schema of the response body.
    fn describe(schemas: &mut Schemas) -> Value;

    fn into_response(self) -> Result<Response, Problem>;

    /// A successful response without headers of its own.
    fn with_body(body: impl Into<Bytes>) -> Response {
        Response::new(Self::STATUS, Self::MEDIA_TYPE, Vec::new(), body.into())
    }
}

impl<T: Serialize + ToSchema + Send + 'static> IntoResponse for T {
    const STATUS: StatusCode = T::SUCCESS_STATUS;

    fn describe(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }

    fn into_response(self) -> Result<Response, Problem> {
        serde_json::to_vec(&self).map(Self::with_body).map_err(Problem::internal)
    }
}

/// `Content-Disposition: attachment` with a name in UTF-8 (RFC 6266 5, RFC 8187 3.2). Percent-encoding allows any script
/// and keeps the name inside the field.
pub fn attachment_disposition(file_name: &str) -> HeaderValue {
    let value = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{}", percent::encode(file_name)));
    value.unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_encoded() {
        assert_eq!(attachment_disposition("a b.pdf"), "attachment; filename*=UTF-8''a%20b.pdf");
        assert_eq!(attachment_disposition("ä\"\r\n.txt"), "attachment; filename*=UTF-8''%C3%A4%22%0D%0A.txt");
    }
}
