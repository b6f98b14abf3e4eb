//! One request, from its head to its answer.
//!
//! ```text
//! head → route → authenticate → rate → scope → body → handler (a task of its own) → answer → request log
//! ```
//!
//! The handler runs in a task of its own: a client that hangs up does not stop an acceptance half
//! way, and a panic ends that task alone and is answered 500. Every answer carries `x-request-id`,
//! and each that knows its account the `ratelimit-*` fields.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Body;
use mail::id::{AccountId, RequestId};
use queue::quota::{QuotaError, Reserved};
use queue::rate::Standing;
use store::access::{Actor, Denial, Tenant};
use tokio::time::Instant;

use crate::access::{self, Caller};
use crate::call::{Answer, Call, Cookies, Owner, Running};
use crate::idempotency;
use crate::journal::Entry;
use crate::operations::{Action, Operation};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::serve::body::{self, Payload};
use crate::serve::budget::{Holder, Share};
use crate::serve::connection::Place;
use crate::serve::head;
use crate::serve::origin;
use crate::serve::router::{Found, Route};
use crate::version;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
/// An answer larger than this takes a share of the budget of bytes in flight while it is written.
const ANSWER_FREE_BYTES_MAX: usize = 64 << 10;

/// What these nouns change may end what somebody else is still doing.
const CHANGES_ACCESS: &[&str] = &["api_keys", "smtp_credentials", "users", "auth"];

/// What becomes known of a request while it is worked on, and is told with the answer, whatever that is.
#[derive(Debug, Default)]
struct Known {
    /// Where the account stands.
    standing: Option<Standing>,
    /// Whose it is, and by what.
    who: Option<(AccountId, Actor)>,
}

/// Answers a request.
pub async fn dispatch<B>(room: Arc<Room>, request: Request<B>) -> Response<Payload>
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    let begun = Instant::now();
    let id = room.request_id();
    let (head, mut body) = request.into_parts();
    let (mut known, mut error_code) = (Known::default(), None);
    let route = head::check(&head).map(|()| room.router.find(&head.method, head.uri.path()));
    let (operation, outcome) = match route {
        Ok(Route::Found(found)) => {
            (found.operation.id, run(&room, found, &head, &mut body, &mut known).await)
        }
        Ok(Route::WrongMethod(allowed)) => {
            let text = format!("{} is not allowed here", head.method);
            let problem = Problem::new(Code::METHOD_NOT_ALLOWED, text).header(ALLOW, allowed);
            ("none", Err(nowhere(&room, &head, &mut known, problem).await))
        }
        Ok(Route::Unknown) => {
            ("none", Err(nowhere(&room, &head, &mut known, Problem::not_found("path")).await))
        }
        Err(problem) => ("none", Err(problem)),
    };
    // What is answered before it was read whole. Who waits for 100 (RFC 9110 10.1.1) sends nothing when it gets this
    // answer instead.
    if !body.is_end_stream() && !head.headers.contains_key(EXPECT) {
        room.tasks.spawn(body::discard(body));
    }
    let response = match outcome {
        Ok((answer, share)) => success(answer, share),
        Err(problem) => {
            error_code = Some(problem.code().word);
            if let Some(cause) = problem.cause() {
                store::error_unless_away!(room.hall.store(), request.id = %id, operation, cause, "a request failed by our fault");
            }
            failure(&problem, id, &room.options.base_url)
        }
    };
    let status = response.status().as_u16();
    record(operation, id, status, begun);
    if let Some(who) = known.who {
        room.journal.note(Entry { id, who, operation, status, error_code, took: begun.elapsed() }, &head);
    }
    finish(response, id, &head.method, &known)
}

/// Counts a request of an account.
fn count(room: &Room, tenant: &Tenant, known: &mut Known) -> Result<(), Problem> {
    known.who = Some((tenant.account().id, tenant.actor()));
    let counted = room.hall.rate(tenant.account());
    known.standing = counted.unwrap_or_else(Some);
    counted.map(drop).map_err(Problem::too_often)
}

/// What is asked for is not there, whoever asks. A request with a key counts all the same, and says where the
/// account stands.
async fn nowhere(room: &Room, head: &Parts, known: &mut Known, problem: Problem) -> Problem {
    match access::by_key(room, head).await {
        Ok(tenant) => count(room, &tenant, known).err().unwrap_or(problem),
        Err(_) => problem,
    }
}

async fn run<B>(
    room: &Arc<Room>,
    found: Found<'_>,
    head: &Parts,
    body: &mut B,
    known: &mut Known,
) -> Result<(Answer, Share), Problem>
where
    B: Body<Data = Bytes> + Unpin + Send,
    B::Error: std::fmt::Display,
{
    if found.operation.changes_session() {
        origin::check(&head.headers, &room.options.base_url)?;
    }
    let caller = access::authenticate(room, &found, head).await?;
    let Found { operation, path, side: _ } = found;
    if let Some(tenant) = caller.tenant() {
        count(room, tenant, known)?;
    }
    access::permit(&caller, operation, head)?;
    version::check(&head.headers)?;
    if operation.body_bytes_max.is_some() {
        // What has a body takes something on: it is not even read when there is no room.
        room.hall.ready().map_err(|refusal| Problem::of_refusal(refusal, room.upgrade_url()))?;
    }
    let from = access::peer(head);
    let holder = caller.tenant().map(|tenant| Holder::Account(tenant.account().id));
    let is_known = holder.is_some();
    let tenant = caller.tenant().cloned();
    let allowance = room.budget.allowance(holder.unwrap_or_else(|| Holder::network(from)));
    let (body, share) = match operation.body_bytes_max {
        None => (Bytes::new(), Share::default()),
        Some(bytes_max) => body::read(body, &head.headers, (bytes_max, operation.media), &allowance).await?,
    };
    let reserved = match caller.tenant() {
        Some(tenant) => reserve(room, tenant, operation, (&body, &head.headers)).await?,
        None => Vec::new(),
    };
    let query = head.uri.query().unwrap_or_default().to_owned();
    let is_head = head.method == Method::HEAD;
    let headers = head.headers.clone();
    let call = Call { path, query, headers, body, from, is_head, ..Call::default() };
    let running = match (&operation.action, caller) {
        (Action::Public(handler), _) => handler(Arc::clone(room), call),
        (Action::Keyed(_, handler) | Action::Either(_, handler), caller) => {
            let tenant = caller.into_tenant().ok_or_else(|| Problem::unauthorized(Denial::Missing))?;
            handler(Arc::clone(room), tenant, call)
        }
        (Action::SignedIn(_, handler), Caller::SignedIn(who)) => handler(Arc::clone(room), who, call),
        (Action::Owner(handler), Caller::SignedIn(who)) => {
            handler(Arc::clone(room), Owner::SignedIn(who), call)
        }
        (Action::SignedIn(..) | Action::Owner(_), _) => return Err(Problem::unauthorized(Denial::Missing)),
    };
    let answer = apart(room, running, (share, head.extensions.get::<Place>().cloned(), reserved)).await?;
    let answer = authorised(room, operation, tenant.as_ref(), answer)?;
    let mut share = Share::default();
    // What anybody may have is small, or the same bytes for all.
    let large = is_known && answer.body.len() > ANSWER_FREE_BYTES_MAX;
    if large && !allowance.enlarge(&mut share, answer.body.len()) {
        return Err(Problem::busy());
    }
    Ok((answer, share))
}

/// What follows from an answer for who may have it and what comes after it.
fn authorised(
    room: &Arc<Room>,
    operation: &Operation,
    tenant: Option<&Tenant>,
    mut answer: Answer,
) -> Result<Answer, Problem> {
    let sets_cookie = answer.headers.iter().any(|(name, _)| *name == SET_COOKIE);
    if sets_cookie && operation.gives.cookies == Cookies::None {
        return Err(Problem::internal("an operation that sets a cookie does not say so in the table"));
    }
    let Some(tenant) = tenant else { return Ok(answer) };
    if operation.method != Method::GET && CHANGES_ACCESS.contains(&operation.noun) {
        room.hall.access_changed(tenant.account().id);
    }
    let is_event_stream = answer.media_type == "text/event-stream";
    let proof = tenant.proof();
    if proof.is_revocable() {
        let guarded = |more| access::watch::guarded(room, proof.clone(), more, is_event_stream);
        answer.more = answer.more.take().map(guarded);
    }
    Ok(answer)
}

/// Reserves room for what an operation stores.
async fn reserve(
    room: &Room,
    tenant: &Tenant,
    operation: &Operation,
    (body, headers): (&Bytes, &HeaderMap),
) -> Result<Vec<Reserved>, Problem> {
    let mut reserved = Vec::with_capacity(operation.stores.len());
    for (noun, most) in operation.stores {
        let more = if noun.is_bytes() { most.saturating_add(body.len() as u64) } else { *most };
        match room.hall.quotas().reserve(tenant.account(), *noun, more).await {
            Ok(one) => reserved.push(one),
            Err(QuotaError::Full(_) | QuotaError::Counting(_))
                if idempotency::is_replay(room, tenant, operation.keys, headers).await? => {}
            Err(error) => return Err(Problem::of_quota(error, room.upgrade_url())),
        }
    }
    Ok(reserved)
}

/// Runs a handler in a task of its own, which holds the request's share of memory and its place on the
/// connection to its end.
async fn apart(
    room: &Arc<Room>,
    running: Running,
    held: (Share, Option<Place>, Vec<Reserved>),
) -> Result<Answer, Problem> {
    let task = room.tasks.spawn(async move {
        let outcome = running.await;
        let (_share, _place, reserved) = held;
        if outcome.is_ok() {
            reserved.into_iter().for_each(Reserved::keep);
        }
        outcome
    });
    task.await.map_err(|error| Problem::internal(format!("the handler ended: {error}")))?
}

fn success(answer: Answer, share: Share) -> Response<Payload> {
    // What has no content by its status has no length either (RFC 9110 8.6).
    let has_content = !matches!(answer.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = (answer.more.is_none() && has_content).then_some(answer.body.len());
    let mut response = Response::new(Payload::with(answer.body, answer.more, share));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.extend(answer.headers);
    headers.insert(CONTENT_TYPE, answer.media_type);
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    response
}

fn failure(problem: &Problem, id: RequestId, base_url: &str) -> Response<Payload> {
    let body = problem.body(id, base_url);
    let answer = Answer {
        status: problem.status(),
        media_type: HeaderValue::from_static("application/json"),
        headers: Vec::new(),
        body,
        more: None,
    };
    let mut response = success(answer, Share::default());
    for (name, value) in problem.headers() {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn finish(
    mut response: Response<Payload>,
    id: RequestId,
    method: &Method,
    known: &Known,
) -> Response<Payload> {
    let headers = response.headers_mut();
    if let Some(standing) = known.standing {
        headers.insert(RATE_LIMIT, standing.limit.into());
        headers.insert(RATE_REMAINING, standing.remaining.into());
        headers.insert(RATE_RESET, standing.reset_s.into());
    }
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(REQUEST_ID, value);
    }
    // What is the same for everybody says itself how long it may be kept.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if method == Method::HEAD {
        // The length stays: it is that of the GET (RFC 9110 9.3.2).
        *response.body_mut() = Payload::new(Bytes::new(), Share::default());
    }
    response
}

fn record(operation: &'static str, id: RequestId, status: u16, begun: Instant) {
    let took = begun.elapsed();
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
