//! Requests and responses of operations, and the adapters that turn typed handlers into operations.
//!
//! A [`FromRequest`] type parses itself from a request (path, query, body) and describes itself for the OpenAPI
//! document. An [`IntoResponse`] type does the same for the response. [`api_key_handler`], [`user_handler`],
//! [`owner_handler`] and [`public_handler`] wrap a free async function over such types, so the document always matches
//! the code.
//!
//! Unknown body fields ([`Request::body_fields`]) are reported in the response's `warnings`; this module adds them.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde::{Serialize, Serializer as _};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::fields::{self, FieldDiagnostics, FieldNames, JsonObject, ObjectFields};
use crate::json_limits;
use crate::paging;
use crate::problem::Problem;
use crate::schema::{Schemas, ToSchema};
use crate::state::AppState;
use store::access::{SignedInUser, Tenant};

/// Larger bodies are parsed on a blocking thread: at about 1 GB/s they would occupy a runtime thread for more than
/// 250 µs.
pub(crate) const READ_INLINE_BYTES_MAX: usize = 256 << 10;

/// Body limit of operations that carry no email.
pub const SMALL_BYTES_MAX: usize = 64 << 10;

/// A request that was routed and authenticated and whose body was read.
#[derive(Debug, Default)]
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
    #[must_use]
    pub fn path_parameter(&self, name: &str) -> &str {
        self.path.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// The path parameter, percent-decoded (RFC 3986 2.1); `None` if it is not UTF-8.
    #[must_use]
    pub fn path_text(&self, name: &str) -> Option<String> {
        paging::percent_decode(self.path_parameter(name), false)
    }

    /// The fields of the body, sorted by name. Unknown fields are reported in the response's `warnings`
    /// (completions-email.md 2.2).
    ///
    /// # Errors
    /// The body is not a JSON object.
    pub fn body_fields(&self, names: &FieldNames, notes: &mut FieldDiagnostics) -> Result<ObjectFields<'_>, Problem> {
        Ok(self.collect_fields(fields::parse_body(&self.body)?, names, notes))
    }

    /// As [`Request::body_fields`], for an optional body ([`Media::OptionalJson`]).
    ///
    /// # Errors
    /// The body is neither empty nor a JSON object.
    pub fn optional_body_fields(
        &self,
        names: &FieldNames,
        notes: &mut FieldDiagnostics,
    ) -> Result<ObjectFields<'_>, Problem> {
        Ok(self.collect_fields(fields::parse_optional_body(&self.body)?, names, notes))
    }

    fn collect_fields<'a>(
        &'a self,
        object: JsonObject<'a>,
        names: &FieldNames,
        notes: &mut FieldDiagnostics,
    ) -> ObjectFields<'a> {
        let given = ObjectFields::from_object(object, names, "", notes);
        self.warnings.borrow_mut().append(&mut notes.warnings);
        given
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
    #[must_use]
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

/// The input of a handler, parsed from a request.
pub trait FromRequest: Sized + Send + 'static {
    /// Maximum body size; `None` if the operation takes no body.
    const BODY_BYTES_MAX: Option<usize> = None;
    /// Accepted media types.
    const MEDIA: Media = Media::Json;

    /// The input's part of the OpenAPI document.
    fn describe(schemas: &mut Schemas) -> RequestSpec;

    /// Parses the input.
    ///
    /// # Errors
    /// The problem response for an invalid request.
    fn read(call: &Request) -> Result<Self, Problem>;
}

/// Input of handlers without parameters or body.
#[derive(Debug, Clone, Copy)]
pub struct NoInput;

impl FromRequest for NoInput {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec::default()
    }
    fn read(_: &Request) -> Result<Self, Problem> {
        Ok(Self)
    }
}

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

/// The rest of a response that is too large to buffer. The bounded channel applies back-pressure from the client.
pub type BodyStream = mpsc::Receiver<Result<Bytes, BodyStreamError>>;

/// The rest of a response cannot be produced: the connection is aborted, so that the client notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response stream was aborted")]
pub struct BodyStreamError;

/// Default media type of responses.
const JSON: &str = "application/json";
/// Response field that reports ignored request fields.
const WARNINGS: &str = "warnings";

/// Media type of HTML pages.
pub const HTML_MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// A further response of an operation, for the OpenAPI document.
#[derive(Debug, Clone, Copy)]
pub struct ExtraResponse {
    pub status: u16,
    /// `None` if the response has no body.
    pub media_type: Option<&'static str>,
    /// Description in the OpenAPI document.
    pub about: &'static str,
}

/// The cookies that an operation may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookiePolicy {
    /// None; setting one is an internal error.
    None,
    /// Session cookies. Requests from other sites are rejected ([`crate::serve::origin`]).
    Session,
    /// Visitor cookies of customers' sites; requests from these sites are allowed.
    Visitor,
}

/// The output of a handler, rendered to a response.
pub trait IntoResponse: Send + 'static {
    const MEDIA_TYPE: &'static str = JSON;
    /// Status on success.
    const STATUS: StatusCode = StatusCode::OK;
    const COOKIES: CookiePolicy = CookiePolicy::None;
    /// Further responses, for the OpenAPI document.
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[];

    /// The schema of the response body.
    fn describe(schemas: &mut Schemas) -> Value;

    /// Renders the body.
    ///
    /// # Errors
    /// An internal error.
    fn into_body(self) -> Result<Bytes, Problem>;

    /// Renders the complete response.
    ///
    /// # Errors
    /// An internal error.
    fn into_response(self) -> Result<Response, Problem>
    where
        Self: Sized,
    {
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Response { status: Self::STATUS, media_type, headers: Vec::new(), body: self.into_body()?, stream: None })
    }
}

impl<T: Serialize + ToSchema + Send + 'static> IntoResponse for T {
    const STATUS: StatusCode = T::SUCCESS_STATUS;

    fn describe(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }
    fn into_body(self) -> Result<Bytes, Problem> {
        serde_json::to_vec(&self).map(Bytes::from).map_err(Problem::internal)
    }
}

/// The future of a running handler.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;
/// Handler of an operation without authentication.
pub type PublicHandler = Box<dyn Fn(Arc<AppState>, Request) -> HandlerFuture + Send + Sync>;
/// Handler of an operation for API keys (or sessions).
pub type ApiKeyHandler = Box<dyn Fn(Arc<AppState>, Tenant, Request) -> HandlerFuture + Send + Sync>;

/// Handler of an operation for a signed-in user.
pub type UserHandler = Box<dyn Fn(Arc<AppState>, SignedInUser, Request) -> HandlerFuture + Send + Sync>;
/// Handler of an operation for an owner.
pub type OwnerHandler = Box<dyn Fn(Arc<AppState>, Owner, Request) -> HandlerFuture + Send + Sync>;

/// An owner of an account, or the operator on the owner's behalf.
#[derive(Debug, Clone)]
pub enum Owner {
    SignedIn(SignedInUser),
    /// The operator, by the admin command line.
    Operator(Tenant),
}

impl Owner {
    /// The account's tenant, for code shared with API keys.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        match self {
            Self::SignedIn(who) => who.tenant(),
            Self::Operator(tenant) => tenant,
        }
    }
}

/// Wraps a handler of an operation without authentication.
pub fn public_handler<I: FromRequest, O: IntoResponse, F, Run>(handler: F) -> PublicHandler
where
    F: Fn(Arc<AppState>, I) -> Run + Send + Sync + Copy + 'static,
    Run: Future<Output = Result<O, Problem>> + Send + 'static,
{
    Box::new(move |room, call| {
        Box::pin(async move {
            let (input, ignored) = extract::<I>(call).await?;
            with_warnings(handler(room, input).await?.into_response()?, ignored)
        })
    })
}

/// Wraps a handler of an operation for API keys.
pub fn api_key_handler<I: FromRequest, O: IntoResponse, F, Run>(handler: F) -> ApiKeyHandler
where
    F: Fn(Arc<AppState>, Tenant, I) -> Run + Send + Sync + Copy + 'static,
    Run: Future<Output = Result<O, Problem>> + Send + 'static,
{
    Box::new(move |room, tenant, call| {
        Box::pin(async move {
            let (input, ignored) = extract::<I>(call).await?;
            with_warnings(handler(room, tenant, input).await?.into_response()?, ignored)
        })
    })
}

/// Wraps a handler of an operation for signed-in users.
pub fn user_handler<I: FromRequest, O: IntoResponse, F, Run>(handler: F) -> UserHandler
where
    F: Fn(Arc<AppState>, SignedInUser, I) -> Run + Send + Sync + Copy + 'static,
    Run: Future<Output = Result<O, Problem>> + Send + 'static,
{
    Box::new(move |room, who, call| {
        Box::pin(async move {
            let (input, ignored) = extract::<I>(call).await?;
            with_warnings(handler(room, who, input).await?.into_response()?, ignored)
        })
    })
}

/// Wraps a handler of an operation for owners.
pub fn owner_handler<I: FromRequest, O: IntoResponse, F, Run>(handler: F) -> OwnerHandler
where
    F: Fn(Arc<AppState>, Owner, I) -> Run + Send + Sync + Copy + 'static,
    Run: Future<Output = Result<O, Problem>> + Send + 'static,
{
    Box::new(move |room, who, call| {
        Box::pin(async move {
            let (input, ignored) = extract::<I>(call).await?;
            with_warnings(handler(room, who, input).await?.into_response()?, ignored)
        })
    })
}

/// Parses the input. Also returns the warnings about ignored fields.
async fn extract<I: FromRequest>(call: Request) -> Result<(I, Vec<String>), Problem> {
    if call.body.len() <= READ_INLINE_BYTES_MAX {
        return extract_inline(call);
    }
    // Type-erased, because a separate task type per input would be a sixth of the crate's compile time.
    let read: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> =
        Box::new(move || Box::new(extract_inline::<I>(call)) as Box<dyn Any + Send>);
    let done = tokio::task::spawn_blocking(read).await.map_err(Problem::internal)?;
    let done = done.downcast::<Result<(I, Vec<String>), Problem>>();
    *done.map_err(|_| Problem::internal("parsed input has an unexpected type"))?
}

fn extract_inline<I: FromRequest>(mut call: Request) -> Result<(I, Vec<String>), Problem> {
    match json_limits::check_limits(&call.body) {
        Err(_) if I::MEDIA == Media::Any => call.body = Bytes::new(),
        checked => checked?,
    }
    let input = I::read(&call)?;
    Ok((input, call.warnings.into_inner()))
}

/// Adds the warnings to the response, before the response's own `warnings`.
fn with_warnings(mut answer: Response, mut ignored: Vec<String>) -> Result<Response, Problem> {
    if ignored.is_empty() || answer.stream.is_some() || answer.media_type != JSON {
        return Ok(answer);
    }
    let JsonObject(mut fields) = serde_json::from_slice(&answer.body).map_err(Problem::internal)?;
    if let Some(place) = fields.iter().position(|(name, _)| name == WARNINGS) {
        let (_, own) = fields.remove(place);
        ignored.extend(serde_json::from_str::<Vec<String>>(own.get()).map_err(Problem::internal)?);
    }
    let all = serde_json::value::to_raw_value(&ignored).map_err(Problem::internal)?;
    fields.push((WARNINGS.into(), &all));
    let mut body = Vec::with_capacity(answer.body.len() + all.get().len() + WARNINGS.len() + 4);
    let written = serde_json::Serializer::new(&mut body).collect_map(fields);
    written.map_err(Problem::internal)?;
    answer.body = body.into();
    Ok(answer)
}
