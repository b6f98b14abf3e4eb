//! Handles one request from its headers to its response.
//!
//! ```text
//! headers → route → authenticate → rate limit → authorize → body ─┬─ own task ───────────────────────────────┐
//!                                                                 │ policy → handler → response → request log │
//!                                                                 └───────────────────────────────────────────┘
//! ```
//!
//! Once the body was read, the request is handled in a task of its own: a client that disconnects can neither interrupt
//! a submission nor keep it out of the audit log. A panic of the handler ends only that handler, and
//! is answered 500. Every response carries `x-request-id`; responses to an authenticated account also carry the
//! `ratelimit-*` headers.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use httpd::body::{self, RequestBody, ResponseBody};
use httpd::response::{CookiePolicy, Response};
use httpd::{header_limits, origin};
use model::oauth::OAuthResource;
use net::limit::memory_budget::{MemoryAllowance, MemoryHolder, MemoryShare};
use net::limit::rate_limit::RateLimitStatus;
use queue::intake::storage_quota::{StorageQuotaError, StorageReservation};
use store::access::{Actor, Denial};
use tokio::time::Instant;

use crate::access::{self, Principal};
use crate::approvals::policy::{self, PolicyDecision};
use crate::handler::HandlerFuture;
use crate::oauth::{cross_origin, metadata};
use crate::operation::{Operation, OperationHandler};
use crate::prelude::*;
use crate::request_log::{self, RequestLogEntry};
use crate::serve::router::{MatchedOperation, RouteMatch};
use crate::server::ApiServer;
use crate::{approvals, idempotency, submit_problem, version};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
/// Larger responses take a share of the memory budget while they are sent.
const RESPONSE_UNBUDGETED_BYTES_MAX: usize = 64 << 10;

/// Changes to these nouns may revoke access of open streams.
const ACCESS_NOUNS: &[&str] = &["api_keys", "smtp_credentials", "users", "auth", "oauth", "grants"];

/// Name and risk of requests that match no operation.
const NO_OPERATION: (&str, Risk) = ("none", Risk::Read);

/// Facts learned while the request is handled that the response or the request log needs, also on errors.
#[derive(Debug, Default)]
struct RequestContext {
    /// Rate limit of the account.
    rate_limit: Option<RateLimitStatus>,
    /// The account and the authenticated actor.
    actor: Option<(AccountId, Actor)>,
    /// The audit log records the request.
    is_audited: bool,
}

/// A request whose handling can begin.
struct ReadyRequest {
    operation: &'static str,
    caller: Principal,
    call: Request,
    /// The memory that the body holds.
    share: MemoryShare,
}

/// A request with what its response needs, whether it is handled or refused.
struct Exchange {
    server: Arc<ApiServer>,
    id: RequestId,
    started: Instant,
    head: Parts,
    context: RequestContext,
}

/// Handles a request and returns its response.
pub async fn dispatch<B: RequestBody + Send + 'static>(
    server: Arc<ApiServer>,
    request: http::Request<B>,
) -> http::Response<ResponseBody> {
    let (started, id) = (Instant::now(), server.state.next_request_id());
    let (head, mut body) = request.into_parts();
    let mut exchange = Exchange { server: Arc::clone(&server), id, started, head, context: RequestContext::default() };
    let Exchange { head, context, .. } = &mut exchange;
    let (operation, outcome) = read_request(&server, head, &mut body, context).await;
    // The response may be sent before the body was read: drain the rest. A client that waits for `100 Continue`
    // (RFC 9110 10.1.1) sends no body after a final response.
    if !body.is_end_stream() && !head.headers.contains_key(EXPECT) {
        server.state.background.tasks.spawn(body::drain(body));
    }
    let ready = match outcome {
        Ok(RequestOutcome::Handle(ready)) => ready,
        Ok(RequestOutcome::Answer(response)) => {
            return exchange.answer(operation, Ok((response, MemoryShare::default()))).await;
        }
        Err(problem) => return exchange.answer(operation, Err(problem)).await,
    };
    let handled = server.state.background.tasks.spawn(async move {
        let outcome = handle(&exchange.server, &exchange.head, *ready).await;
        exchange.answer(operation, outcome).await
    });
    handled.await.unwrap_or_else(|error| {
        tracing::error!(request.id = %id, %error, "the task of a request failed");
        problem_response(&Problem::internal(error), id, &server.state.options.base_url)
    })
}

enum RequestOutcome {
    Handle(Box<ReadyRequest>),
    /// It needs no operation.
    Answer(Response),
}

/// Finds the operation of a request, and reads the request up to its handling. Returns the operation's name and risk.
async fn read_request<B: RequestBody + Send>(
    server: &ApiServer,
    head: &Parts,
    body: &mut B,
    context: &mut RequestContext,
) -> ((&'static str, Risk), Result<RequestOutcome>) {
    let state = &server.state;
    let route = header_limits::check_head(head).map(|()| server.router.find(&head.method, head.uri.path()));
    let preflight = (head.method == Method::OPTIONS).then(|| cross_origin::preflight(head.uri.path())).flatten();
    match (route, preflight) {
        (Ok(RouteMatch::MethodNotAllowed(_)), Some(response)) => (NO_OPERATION, Ok(RequestOutcome::Answer(response))),
        (Ok(RouteMatch::Found(found)), _) => {
            let operation = (found.operation.id, found.operation.risk);
            let ready = read_call(state, found, head, body, context).await;
            (operation, ready.map(|ready| RequestOutcome::Handle(Box::new(ready))))
        }
        (Ok(RouteMatch::MethodNotAllowed(allowed)), None) => {
            let text = format!("{} is not allowed here", head.method);
            let problem = Problem::new(ErrorCode::METHOD_NOT_ALLOWED, text).with_header(ALLOW, allowed);
            (NO_OPERATION, Err(not_found(state, head, context, problem).await))
        }
        (Ok(RouteMatch::NotFound), _) => {
            (NO_OPERATION, Err(not_found(state, head, context, Problem::not_found("path")).await))
        }
        (Err(problem), _) => (NO_OPERATION, Err(problem)),
    }
}

impl Exchange {
    /// Builds the response, and records the request in metrics and the request log.
    async fn answer(
        self,
        (operation, risk): (&'static str, Risk),
        outcome: Result<(Response, MemoryShare)>,
    ) -> http::Response<ResponseBody> {
        let Self { server, id, started, head, context } = self;
        let state = &server.state;
        let (mut content, mut error_code) = (Bytes::new(), None);
        let response = match outcome {
            Ok((success, share)) => {
                content = success.body.clone();
                success_response(success, share)
            }
            Err(problem) => {
                error_code = Some(problem.code().word);
                if let Some(cause) = problem.cause() {
                    store::error_unless_away!(&state.services.store, request.id = %id, operation, cause, "request failed");
                }
                problem_response(&problem, id, &state.options.base_url)
            }
        };
        let status = response.status().as_u16();
        record_metrics(operation, id, status, started);
        if let Some(actor) = context.actor {
            let entry = RequestLogEntry {
                id,
                actor,
                operation,
                status,
                error_code,
                duration: started.elapsed(),
                surface: access::surface(&head),
                address: access::client_ip(&head),
                is_audited: context.is_audited,
                approved: None,
            };
            state.request_log.record(entry, &head.method, head.uri.path(), &content);
            if request_log::is_written_first(risk) {
                state.request_log.flush(&state.services.store).await;
            }
        }
        finish_response(response, id, &head.method, &context)
    }
}

/// Counts a request of the account.
fn check_rate_limit(state: &AppState, tenant: &Tenant, context: &mut RequestContext) -> Result<()> {
    context.actor = Some((tenant.account().id, tenant.actor()));
    let counted = state.accounts.limits.requests.check(tenant.account());
    context.rate_limit = counted.unwrap_or_else(Some);
    counted.map(drop).map_err(Problem::rate_limited)
}

/// Counts a request of a mounted service that calls no operation.
pub(crate) fn count_request(state: &AppState, tenant: &Tenant) -> Result<()> {
    state.accounts.limits.requests.check(tenant.account()).map(drop).map_err(Problem::rate_limited)
}

/// Returns the problem for an unknown path or method. With a valid API key the request still counts against the rate
/// limit and the response has the `ratelimit-*` headers.
async fn not_found(state: &AppState, head: &Parts, context: &mut RequestContext, problem: Problem) -> Problem {
    match access::authenticate_bearer(state, &head.headers, access::client_ip(head), OAuthResource::Api).await {
        Ok(tenant) => check_rate_limit(state, &tenant, context).err().unwrap_or(problem),
        Err(_) => problem,
    }
}

/// Authenticates and authorizes a request, and reads its body.
async fn read_call<B: RequestBody + Send>(
    state: &State,
    found: MatchedOperation<'_>,
    head: &Parts,
    body: &mut B,
    context: &mut RequestContext,
) -> Result<ReadyRequest> {
    if found.operation.changes_session() {
        origin::check_same_site(&head.headers, &state.options.base_url)?;
    }
    let caller = access::authenticate(state, &found, head).await?;
    let MatchedOperation { operation, path, client: _ } = found;
    if let Some(tenant) = caller.tenant() {
        check_rate_limit(state, tenant, context)?;
        context.is_audited = request_log::is_audited(operation.id, operation.risk, tenant);
    }
    access::authorize(&caller, operation, head)?;
    version::check_version(&head.headers)?;
    if operation.body_bytes_max.is_some() {
        // A request with a body stores something: it is rejected before reading when the disk is full.
        state.accounts.intake.check_ready().or_problem(state)?;
    }
    let (body, share) = match operation.body_bytes_max {
        None => (Bytes::new(), MemoryShare::default()),
        Some(bytes_max) => {
            let allowance = state.memory_budget.allowance(memory_holder(&caller, head));
            body::read_body(body, &head.headers, bytes_max, operation.media, &allowance).await?
        }
    };
    let call = Request {
        path,
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers.clone(),
        body,
        client_ip: access::client_ip(head),
        is_head: head.method == Method::HEAD,
        ..Request::default()
    };
    Ok(ReadyRequest { operation: operation.id, caller, call, share })
}

fn memory_holder(caller: &Principal, head: &Parts) -> MemoryHolder {
    match caller.tenant() {
        Some(tenant) => MemoryHolder::Account(tenant.account().id),
        None => MemoryHolder::network(access::client_ip(head)),
    }
}

/// Holds a request for an approval, or calls its handler.
async fn handle(server: &ApiServer, head: &Parts, ready: ReadyRequest) -> Result<(Response, MemoryShare)> {
    let ReadyRequest { operation, caller, call, share } = ready;
    let state = &server.state;
    let operation = server.router.operation(operation).ok_or_else(|| Problem::not_found("operation"))?;
    let tenant = caller.tenant().cloned();
    if let Some(tenant) = &tenant
        && let PolicyDecision::Hold(kind) = policy::decide(tenant.policy(), operation)?
    {
        let held = approvals::hold(state, tenant, operation, kind, head, call).await?;
        return Ok((held, share));
    }
    let reserved = match &tenant {
        Some(tenant) => reserve_storage(state, tenant, operation, &call.body, &head.headers).await?,
        None => Vec::new(),
    };
    // Responses of public operations are small or static.
    let allowance = tenant.is_some().then(|| state.memory_budget.allowance(memory_holder(&caller, head)));
    let running = match (&operation.handler, caller) {
        (OperationHandler::Public(handler), _) => handler(Arc::clone(state), call),
        (OperationHandler::ApiKey(_, handler) | OperationHandler::ApiKeyOrSession(_, handler), caller) => {
            let tenant = caller.into_tenant().ok_or_else(|| Problem::unauthorized(Denial::Missing))?;
            handler(Arc::clone(state), tenant, call)
        }
        (OperationHandler::Session(_, handler), Principal::User(user)) => handler(Arc::clone(state), user, call),
        (OperationHandler::Owner(handler), Principal::User(user)) => {
            handler(Arc::clone(state), Owner::SignedIn(user), call)
        }
        (OperationHandler::Session(..) | OperationHandler::Owner(_), _) => {
            return Err(Problem::unauthorized(Denial::Missing));
        }
    };
    let response = run_handler(running, share, reserved).await?;
    let response = apply_response_policy(state, operation, tenant.as_ref(), response)?;
    let mut share = MemoryShare::default();
    let grows = |allowance: MemoryAllowance| allowance.try_grow(&mut share, response.body.len());
    let is_large = response.body.len() > RESPONSE_UNBUDGETED_BYTES_MAX;
    if !allowance.filter(|_| is_large).is_none_or(grows) {
        return Err(Problem::busy());
    }
    Ok((response, share))
}

/// Checks the cookie policy, announces access changes and guards a streaming response.
pub(crate) fn apply_response_policy(
    state: &State,
    operation: &Operation,
    tenant: Option<&Tenant>,
    mut response: Response,
) -> Result<Response> {
    let sets_cookie = response.headers.iter().any(|(name, _)| *name == SET_COOKIE);
    if sets_cookie && operation.response_spec.cookies == CookiePolicy::None {
        return Err(Problem::internal("operation sets a cookie but its cookie policy is `None`"));
    }
    let Some(tenant) = tenant else { return Ok(response) };
    if operation.method != Method::GET && ACCESS_NOUNS.contains(&operation.tag) {
        state.accounts.credentials.notify_access_change(tenant.account().id);
    }
    let is_event_stream = response.media_type == "text/event-stream";
    let proof = tenant.proof();
    if proof.is_revocable() {
        let guarded = |chunks| state.revalidator.revalidate_while_streaming(proof.clone(), chunks, is_event_stream);
        response.stream = response.stream.take().map(guarded);
    }
    Ok(response)
}

/// Reserves storage quota for what the operation stores.
pub(crate) async fn reserve_storage(
    state: &AppState,
    tenant: &Tenant,
    operation: &Operation,
    body: &Bytes,
    headers: &HeaderMap,
) -> Result<Vec<StorageReservation>> {
    let mut reserved = Vec::with_capacity(operation.storage_cost.len());
    for (noun, amount_max) in operation.storage_cost {
        let amount = if noun.is_bytes() { amount_max.saturating_add(body.len() as u64) } else { *amount_max };
        match state.accounts.limits.storage.reserve(tenant.account(), *noun, amount).await {
            Ok(reservation) => reserved.push(reservation),
            Err(StorageQuotaError::Full(_) | StorageQuotaError::Counting(_))
                if idempotency::is_replay(state, tenant, operation.idempotency_scope, headers).await? => {}
            Err(error) => return Err(submit_problem::from_quota_error(error, state.upgrade_url())),
        }
    }
    Ok(reserved)
}

/// Runs a handler to its end, in the task of its request. The memory of the request is released then. A panic is an
/// internal error.
pub(crate) async fn run_handler(
    running: HandlerFuture,
    share: MemoryShare,
    reserved: Vec<StorageReservation>,
) -> Result<Response> {
    let outcome = AssertUnwindSafe(running).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| Err(Problem::internal("the handler panicked")));
    drop(share);
    if outcome.is_ok() {
        reserved.into_iter().for_each(StorageReservation::confirm);
    }
    outcome
}

fn success_response(content: Response, share: MemoryShare) -> http::Response<ResponseBody> {
    // A status without content has no `Content-Length` (RFC 9110 8.6).
    let has_content = !matches!(content.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = (content.stream.is_none() && has_content).then_some(content.body.len());
    let mut response = http::Response::new(ResponseBody::with_stream(content.body, content.stream, share));
    *response.status_mut() = content.status;
    let headers = response.headers_mut();
    headers.extend(content.headers);
    headers.insert(CONTENT_TYPE, content.media_type);
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    response
}

pub(crate) fn problem_response(problem: &Problem, id: RequestId, base_url: &str) -> http::Response<ResponseBody> {
    let body = problem.body(id, base_url);
    let content = Response::new(problem.status(), "application/json", Vec::new(), body);
    let mut response = success_response(content, MemoryShare::default());
    if problem.code() == ErrorCode::UNAUTHORIZED {
        // RFC 9728 5.1: a client without a key learns where to get a token.
        let url = metadata::resource_metadata_url(base_url, OAuthResource::Api);
        if let Ok(value) = HeaderValue::try_from(format!("Bearer resource_metadata=\"{url}\"")) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
    }
    for (name, value) in problem.headers() {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn finish_response(
    mut response: http::Response<ResponseBody>,
    id: RequestId,
    method: &Method,
    context: &RequestContext,
) -> http::Response<ResponseBody> {
    let headers = response.headers_mut();
    if let Some(rate_limit) = context.rate_limit {
        headers.insert(RATE_LIMIT, rate_limit.limit.into());
        headers.insert(RATE_REMAINING, rate_limit.remaining.into());
        headers.insert(RATE_RESET, rate_limit.reset_s.into());
    }
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(REQUEST_ID, value);
    }
    // Cacheable responses set their own `Cache-Control`.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if method == Method::HEAD {
        // `Content-Length` remains that of the GET response (RFC 9110 9.3.2).
        *response.body_mut() = ResponseBody::new(Bytes::new(), MemoryShare::default());
    }
    response
}

fn record_metrics(operation: &'static str, id: RequestId, status: u16, started: Instant) {
    let took = started.elapsed();
    tracing::debug!(request.id = %id, operation, status, took_us = took.as_micros() as u64, "request");
    metrics::counter!(
        "postrider_api_requests_total", "operation" => operation, "status" => status_class(status)
    )
    .increment(1);
    metrics::histogram!("postrider_api_request_seconds", "operation" => operation).record(took.as_secs_f64());
}

fn status_class(status: u16) -> &'static str {
    match status {
        200..=299 => "2xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}
