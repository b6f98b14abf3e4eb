//! A call, and how typed handlers are put behind it.
//!
//! An [`Input`] reads itself from a call (path, query, body) and describes itself for the OpenAPI
//! document; a [`Reply`] does the same for the answer. [`keyed`], [`signed_in`], [`owner`] and [`public`] wrap a free
//! async function of such types, so that the document cannot say anything else than the code does.
//!
//! What a reader ignores of a body ([`Call::given`]) is told in the answer's `warnings`, here for all.

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
use crate::page;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{Schemas, ToSchema};
use crate::unparsed;
use store::access::{SignedInUser, Tenant};

/// Reading a body larger than this is work for a thread of its own: at about 1 GB/s it would keep
/// a thread of the runtime longer than 250 µs.
pub(crate) const READ_INLINE_BYTES_MAX: usize = 256 << 10;

/// The largest body of a request that holds no mail.
pub const SMALL_BYTES_MAX: usize = 64 << 10;

/// A request that has been routed, authenticated and read.
#[derive(Debug, Default)]
pub struct Request {
    /// The parameters of the path, in their order.
    pub path: Vec<(String, String)>,
    /// The query, as it came.
    pub query: String,
    /// The header.
    pub headers: http::HeaderMap,
    /// The body, whole; empty where the operation has none.
    pub body: Bytes,
    /// From where it came, when that is known.
    pub client_ip: Option<IpAddr>,
    /// HEAD, which is answered like GET (RFC 9110 9.3.2).
    pub is_head: bool,
    /// What was ignored of it while it was read.
    pub warnings: RefCell<Vec<String>>,
}

impl Request {
    /// A parameter of the path; empty when the path has none of that name.
    #[must_use]
    pub fn path_parameter(&self, name: &str) -> &str {
        self.path.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// A parameter of the path, percent-decoded (RFC 3986 2.1); none when it is no text.
    #[must_use]
    pub fn path_text(&self, name: &str) -> Option<String> {
        page::percent_decode(self.path_parameter(name), false)
    }

    /// The fields of the body, sorted by their names. Those that nobody knows are told in the answer's
    /// `warnings` (completions-email.md 2.2).
    ///
    /// # Errors
    /// The body is no JSON object.
    pub fn body_fields(&self, names: &FieldNames, notes: &mut FieldDiagnostics) -> Result<ObjectFields<'_>, Problem> {
        Ok(self.collect_fields(fields::parse_body(&self.body)?, names, notes))
    }

    /// As [`Call::given`], of a body that may be left out ([`Media::JsonOrNothing`]).
    ///
    /// # Errors
    /// As there.
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

/// What kinds of body an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// JSON; no type at all is taken for it.
    #[default]
    Json,
    /// The same; and no body at all is an object without fields.
    OptionalJson,
    /// JSON, or `text/csv`.
    JsonOrCsv,
    /// JSON that calls itself text, as what browsers may send to another site without asking (Fetch, "CORS-safelisted").
    Beacon,
    /// The same, where whatever comes is answered alike: what cannot be read, of whatever kind or size, is as nothing.
    Any,
    /// What forms send, and who cannot be asked for anything better: any.
    Form,
    /// CSV, whatever it calls itself: what reads it says what is wrong with it.
    Csv,
    /// JSON, whatever it calls itself: its signature tells whose it is.
    Signed,
}

impl Media {
    /// The media types, for the document.
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

/// What an operation takes, for the document.
#[derive(Debug, Default, Clone)]
pub struct RequestSpec {
    /// Parameter objects of path, query and header.
    pub parameters: Vec<Value>,
    /// The schema of the body.
    pub body: Option<Value>,
    /// The largest body; none where there is none.
    pub body_bytes_max: Option<usize>,
}

/// What a handler is given.
pub trait FromRequest: Sized + Send + 'static {
    /// The largest body; none where there is none.
    const BODY_BYTES_MAX: Option<usize> = None;
    /// What the body may be.
    const MEDIA: Media = Media::Json;

    /// Its part of the document.
    fn describe(schemas: &mut Schemas) -> RequestSpec;

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with the call.
    fn read(call: &Request) -> Result<Self, Problem>;
}

/// Nothing is given.
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

/// An answer before it becomes HTTP.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// What the bytes are.
    pub media_type: HeaderValue,
    /// Further header fields.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The bytes, or their beginning.
    pub body: Bytes,
    /// More bytes, made while they are sent.
    pub stream: Option<BodyStream>,
}

/// The rest of an answer that is too large to be held whole. Making it waits for the client to read.
pub type BodyStream = mpsc::Receiver<Result<Bytes, BodyStreamError>>;

/// The rest of an answer could not be made: the client sees it break off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub struct BodyStreamError;

/// What almost every answer is.
const JSON: &str = "application/json";
/// The field of an answer that tells what was ignored.
const WARNINGS: &str = "warnings";

/// What the pages for people are.
pub const HTML_MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// An answer beside the usual ones, for the document.
#[derive(Debug, Clone, Copy)]
pub struct ExtraResponse {
    /// The status.
    pub status: u16,
    /// What the bytes are; none where there are none.
    pub media_type: Option<&'static str>,
    /// When it comes.
    pub about: &'static str,
}

/// Which cookies an answer may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookiePolicy {
    /// None: an answer that sets one all the same is an error of ours.
    None,
    /// Those of somebody who signs in or out: pages of other sites may not ask for it ([`crate::serve::origin`]).
    Session,
    /// Those by which customers' own sites know a visitor: these sites ask for it.
    Visitor,
}

/// What a handler gives.
pub trait IntoResponse: Send + 'static {
    /// What the bytes are.
    const MEDIA_TYPE: &'static str = JSON;
    /// The status when it was done.
    const STATUS: StatusCode = StatusCode::OK;
    /// The cookies that it may set.
    const COOKIES: CookiePolicy = CookiePolicy::None;
    /// What else an answer may be.
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[];

    /// Its part of the document.
    fn describe(schemas: &mut Schemas) -> Value;

    /// Writes it.
    ///
    /// # Errors
    /// A fault of our own.
    fn into_body(self) -> Result<Bytes, Problem>;

    /// The whole answer.
    ///
    /// # Errors
    /// A fault of our own.
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

/// A handler at work.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;
/// A handler that anybody may call.
pub type PublicHandler = Box<dyn Fn(Arc<AppState>, Request) -> HandlerFuture + Send + Sync>;
/// A handler that needs a tenant.
pub type ApiKeyHandler = Box<dyn Fn(Arc<AppState>, Tenant, Request) -> HandlerFuture + Send + Sync>;

/// A handler that needs a user who has signed in.
pub type UserHandler = Box<dyn Fn(Arc<AppState>, SignedInUser, Request) -> HandlerFuture + Send + Sync>;
/// A handler that needs an owner.
pub type OwnerHandler = Box<dyn Fn(Arc<AppState>, Owner, Request) -> HandlerFuture + Send + Sync>;

/// An owner of an account.
#[derive(Debug, Clone)]
pub enum Owner {
    /// Who has signed in.
    SignedIn(SignedInUser),
    /// The operator, in the owner's stead.
    Operator(Tenant),
}

impl Owner {
    /// What they are to what keys may do as well.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        match self {
            Self::SignedIn(who) => who.tenant(),
            Self::Operator(tenant) => tenant,
        }
    }
}

/// Puts a handler behind a call that anybody may make.
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

/// Puts a handler behind a call that needs a tenant.
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

/// Puts a handler behind a call that needs a user who has signed in.
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

/// Puts a handler behind a call that needs an owner.
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

/// Reads a call; and what was ignored of it.
async fn extract<I: FromRequest>(call: Request) -> Result<(I, Vec<String>), Problem> {
    if call.body.len() <= READ_INLINE_BYTES_MAX {
        return extract_inline(call);
    }
    // One type for all inputs: a task of its own type each would be a sixth of what this crate has to compile.
    let read: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> =
        Box::new(move || Box::new(extract_inline::<I>(call)) as Box<dyn Any + Send>);
    let done = tokio::task::spawn_blocking(read).await.map_err(Problem::internal)?;
    let done = done.downcast::<Result<(I, Vec<String>), Problem>>();
    *done.map_err(|_| Problem::internal("what was read is of another type"))?
}

fn extract_inline<I: FromRequest>(mut call: Request) -> Result<(I, Vec<String>), Problem> {
    match unparsed::check_limits(&call.body) {
        Err(_) if I::MEDIA == Media::Any => call.body = Bytes::new(),
        checked => checked?,
    }
    let input = I::read(&call)?;
    Ok((input, call.warnings.into_inner()))
}

/// An answer, with what was ignored of the request before its own `warnings`.
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
