//! The adapters that turn typed handlers into operations.
//!
//! [`caller_handler`] and [`public_handler`] wrap a free async function from a [`FromRequest`] type to an
//! [`IntoResponse`] type. Both types describe themselves, so the OpenAPI document always matches the code. Warnings
//! about unknown body fields are added to the response here.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use httpd::fields::JsonObject;
use httpd::json_limits;
use httpd::problem::Problem;
use httpd::request::{FromRequest, Media, READ_INLINE_BYTES_MAX, Request};
use httpd::response::{IntoResponse, JSON_MEDIA_TYPE, Response};
use model::draft::Draft;
use serde::Serializer as _;
use store::access::{SignedInUser, Tenant};

use crate::state::AppState;

/// Response field that reports ignored request fields.
const WARNINGS: &str = "warnings";

/// The future of a running handler.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;
/// Handler of an operation without authentication.
pub type PublicHandler = Box<dyn Fn(Arc<AppState>, Request) -> HandlerFuture + Send + Sync>;
/// Handler of an operation whose caller is authenticated: a tenant, a signed-in user or an owner.
pub type CallerHandler<P> = Box<dyn Fn(Arc<AppState>, P, Request) -> HandlerFuture + Send + Sync>;

/// The future of [`check_request`].
pub type RequestCheck = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send>>;
/// Builds the emails that a request of an operation would send.
pub type SendResolver = Box<dyn Fn(Arc<AppState>, Tenant, Request) -> ResolvedSends + Send + Sync>;
/// The future of a [`SendResolver`].
pub type ResolvedSends = Pin<Box<dyn Future<Output = Result<Vec<Draft>, Problem>> + Send>>;

/// An owner of an account, or the operator on the owner's behalf.
#[derive(Debug, Clone)]
pub enum Owner {
    SignedIn(SignedInUser),
    /// The operator, by the admin command line.
    Operator(Tenant),
}

impl Owner {
    /// The account's tenant, for code shared with API keys.
    pub fn tenant(&self) -> &Tenant {
        match self {
            Self::SignedIn(user) => user.tenant(),
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
    Box::new(move |state, call| {
        Box::pin(async move {
            let (input, ignored) = extract::<I>(call).await?;
            with_warnings(handler(state, input).await?.into_response()?, ignored)
        })
    })
}

/// An async function that handles the input of an authenticated caller.
pub trait Handler<P, I, O>: Copy + Send + Sync + 'static {
    fn call(self, state: Arc<AppState>, caller: P, input: I) -> impl Future<Output = Result<O, Problem>> + Send;
}

impl<P, I, O, F, Run> Handler<P, I, O> for F
where
    F: Fn(Arc<AppState>, P, I) -> Run + Send + Sync + Copy + 'static,
    Run: Future<Output = Result<O, Problem>> + Send,
{
    fn call(self, state: Arc<AppState>, caller: P, input: I) -> impl Future<Output = Result<O, Problem>> + Send {
        self(state, caller, input)
    }
}

/// Wraps a handler of an operation whose caller is authenticated.
pub fn caller_handler<P, I, O>(handler: impl Handler<P, I, O>) -> CallerHandler<P>
where
    P: Send + 'static,
    I: FromRequest,
    O: IntoResponse,
{
    Box::new(move |state, caller, call| {
        Box::pin(async move {
            let (input, ignored) = extract::<I>(call).await?;
            with_warnings(handler.call(state, caller, input).await?.into_response()?, ignored)
        })
    })
}

/// Checks that a request can be parsed, without handling it.
pub fn check_request<I: FromRequest>(call: Request) -> RequestCheck {
    Box::pin(async move {
        let (input, _) = extract::<I>(call).await?;
        input.deferred_error().cloned().map_or(Ok(()), Err)
    })
}

/// Wraps a function that builds the emails of a request.
pub fn send_resolver<I: FromRequest>(resolve: impl Handler<Tenant, I, Vec<Draft>>) -> SendResolver {
    Box::new(move |state, tenant, call| {
        Box::pin(async move {
            let (input, _) = extract::<I>(call).await?;
            resolve.call(state, tenant, input).await
        })
    })
}

/// Parses the input. Also returns the warnings about ignored fields.
async fn extract<I: FromRequest>(call: Request) -> Result<(I, Vec<String>), Problem> {
    if call.body.len() <= READ_INLINE_BYTES_MAX {
        return extract_inline(call);
    }
    // Type-erased, because a separate task type per input would be a sixth of the crate's compile time.
    let parse: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> =
        Box::new(move || Box::new(extract_inline::<I>(call)) as Box<dyn Any + Send>);
    let done = tokio::task::spawn_blocking(parse).await.map_err(Problem::internal)?;
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
fn with_warnings(mut response: Response, mut ignored: Vec<String>) -> Result<Response, Problem> {
    if ignored.is_empty() || response.stream.is_some() || response.media_type != JSON_MEDIA_TYPE {
        return Ok(response);
    }
    let JsonObject(mut fields) = serde_json::from_slice(&response.body).map_err(Problem::internal)?;
    if let Some(index) = fields.iter().position(|(name, _)| name == WARNINGS) {
        let (_, own_warnings) = fields.remove(index);
        ignored.extend(serde_json::from_str::<Vec<String>>(own_warnings.get()).map_err(Problem::internal)?);
    }
    let all = serde_json::value::to_raw_value(&ignored).map_err(Problem::internal)?;
    fields.push((WARNINGS.into(), &all));
    let mut body = Vec::with_capacity(response.body.len() + all.get().len() + WARNINGS.len() + 4);
    let written = serde_json::Serializer::new(&mut body).collect_map(fields);
    written.map_err(Problem::internal)?;
    response.body = body.into();
    Ok(response)
}
