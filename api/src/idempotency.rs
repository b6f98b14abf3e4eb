//! `Idempotency-Key`: an operation with a key is carried out once, and repeated requests with that key get the
//! same response.
//!
//! ```text
//! key + fingerprint ─► in progress? 409 ─► used before? replay, or 409 ─► carry out ─[ change + response ]
//! ```
//!
//! `queue::intake::idempotency` implements it for SMTP and HTTP; this module reads keys and renders responses. The fingerprint covers
//! the content of a request, not its formatting (`request_fingerprint.rs`).

use std::marker::PhantomData;

use http::header::{HeaderName, HeaderValue};
use httpd::response::{IntoResponse, Response};
use model::idempotency::{IdempotencyScope, IdempotentResult, KEY_CHARS_MAX, check_key};
use model::usage::PlanRemaining;
use queue::intake::idempotency::{self, IdempotencyError, IdempotencyGuard, IdempotencyKey, InProgressHold};
use queue::intake::submit_error::SubmitError;

use crate::prelude::*;
use crate::request_fingerprint::RequestFingerprint;
use crate::submit_problem;

pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Marks a replayed response.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Remaining emails of the plan's daily quota.
const QUOTA_DAILY: HeaderName = HeaderName::from_static("x-quota-daily-remaining");
/// Remaining emails of the plan's monthly quota.
const QUOTA_MONTHLY: HeaderName = HeaderName::from_static("x-quota-monthly-remaining");
/// `Retry-After` for a key in progress.
const IN_PROGRESS_RETRY_S: u32 = 1;

/// The header parameter of operations that accept a key.
pub fn header_parameter() -> Value {
    schema::header_parameter(
        "Idempotency-Key",
        "Makes the request idempotent: for 24 hours the same request with the same key is carried out once and gets \
         the same response",
    )
}

/// Parses the idempotency key of a request; computes the fingerprint only if there is one.
///
/// # Errors
/// `invalid_idempotency_key`.
pub fn parse_claim(headers: &http::HeaderMap, fingerprint: impl FnOnce() -> String) -> Result<Option<IdempotencyKey>> {
    Ok(parse_key(headers)?.map(|key| IdempotencyKey { key, fingerprint: fingerprint() }))
}

/// The idempotency key of a request whose handler knows the fingerprint.
#[derive(Debug)]
pub struct GivenKey(Option<String>);

impl GivenKey {
    /// The key with its fingerprint, which is computed only if there is a key.
    pub fn claim(self, fingerprint: impl FnOnce() -> String) -> Option<IdempotencyKey> {
        self.0.map(|key| IdempotencyKey { key, fingerprint: fingerprint() })
    }
}

impl FromRequest for GivenKey {
    fn parameters() -> Vec<Value> {
        vec![header_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        parse_key(&call.headers).map(Self)
    }
}

/// Parses the idempotency key of a request without its fingerprint.
///
/// # Errors
/// `invalid_idempotency_key`.
pub fn parse_key(headers: &http::HeaderMap) -> Result<Option<String>> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = std::str::from_utf8(value.as_bytes()).ok().filter(|_| values.next().is_none());
    key.and_then(validate_key).map(Some).ok_or_else(|| invalid_key("Idempotency-Key"))
}

/// Fingerprint of the path and the body, independent of JSON formatting.
pub(crate) fn request_fingerprint(call: &Request) -> RequestFingerprint {
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add_count(call.path.len());
    for (name, value) in &call.path {
        fingerprint.add(name);
        fingerprint.add(value);
    }
    match serde_json::from_slice::<Value>(&call.body) {
        Ok(body) => fingerprint.add_json(&body),
        // An empty body, or an unreadable one, which is rejected later.
        Err(_) => fingerprint.add(call.body.trim_ascii()),
    }
    fingerprint
}

/// Returns whether the request's key was completed before for this operation. Such a request is replayed even if the
/// storage quota is exhausted. Keys of other operations do not count.
pub async fn is_replay(
    state: &AppState,
    tenant: &Tenant,
    keys: Option<IdempotencyScope>,
    headers: &http::HeaderMap,
) -> Result<bool> {
    let Some(operation) = keys else { return Ok(false) };
    let Ok(Some(IdempotencyKey { key, .. })) = parse_claim(headers, String::new) else { return Ok(false) };
    let name = store::idempotency::ScopedIdempotencyKey { account: tenant.account().id, operation, key };
    Ok(store::idempotency::get(&state.services.store, &name).await?.is_some())
}

/// Returns the trimmed key if it is valid.
pub fn validate_key(text: &str) -> Option<String> {
    let key = text.trim();
    check_key(key).is_ok().then(|| key.to_owned())
}

/// The problem for an invalid key in the header or field `name`.
pub fn invalid_key(name: &str) -> Problem {
    let text = format!("`{name}` must be a single value of 1 to {KEY_CHARS_MAX} printable characters");
    Problem::new(ErrorCode::INVALID_IDEMPOTENCY_KEY, text)
}

/// Result of the idempotency check.
pub enum RequestDecision {
    /// Carry it out; record the response in the guard if there is one.
    Proceed(Option<Box<IdempotencyGuard>>),
    /// The key was completed before: send this stored response.
    Replay(Bytes),
}

/// Checks the request's key, if it has one.
///
/// # Errors
/// The key is in progress, was used for another request, or belongs to a send whose commit could not be confirmed; the
/// store cannot be read.
pub async fn begin(
    state: &AppState,
    tenant: &Tenant,
    operation: IdempotencyScope,
    claim: Option<IdempotencyKey>,
) -> Result<RequestDecision> {
    let Some(claim) = claim else { return Ok(RequestDecision::Proceed(None)) };
    match state.accounts.idempotency.begin(tenant, operation, claim).await {
        Ok(idempotency::IdempotencyDecision::Proceed(guard)) => Ok(RequestDecision::Proceed(Some(guard))),
        Ok(idempotency::IdempotencyDecision::Replay(body)) => Ok(RequestDecision::Replay(Bytes::from(body))),
        Ok(idempotency::IdempotencyDecision::Unconfirmed(id)) => {
            Err(submit_problem::unconfirmed(id).with_header(REPLAYED, "true"))
        }
        Err(IdempotencyError::InProgress) => {
            let text = "A request with this `Idempotency-Key` is in progress";
            let problem = Problem::new(ErrorCode::IDEMPOTENCY_IN_PROGRESS, text);
            Err(problem.with_header(http::header::RETRY_AFTER, IN_PROGRESS_RETRY_S.to_string()))
        }
        Err(IdempotencyError::KeyReused) => {
            let text = "This `Idempotency-Key` was used for another request; use a new key";
            Err(Problem::new(ErrorCode::IDEMPOTENCY_CONFLICT, text))
        }
        Err(IdempotencyError::Read(error)) => Err(error.into()),
    }
}

/// Converts the result to a response. If another node completed the same key first, its response is replayed.
pub async fn finish<T: IntoResponse>(
    guard: Option<&IdempotencyGuard>,
    state: &AppState,
    result: Result<T, SubmitError>,
) -> Result<IdempotentResponse<T>> {
    let refusal = match result {
        Ok(reply) => return IdempotentResponse::fresh(reply),
        Err(refusal) => refusal,
    };
    // Another node completed this key first: its response is the valid one.
    if let (SubmitError::DoneConcurrently, Some(guard)) = (&refusal, guard)
        && let Some(body) = guard.concurrent_result(&state.services.store).await?
    {
        return Ok(IdempotentResponse::replay(Bytes::from(body)));
    }
    Err(refusal.into_problem(state))
}

/// Records that the result of these keys is unconfirmed, as soon as the store is available again. The client does not
/// wait for it, but its keys stay in progress until then. If the original commit did succeed, this one conflicts, and
/// the stored response remains valid.
pub fn store_unconfirmed(state: &AppState, batch: Batch, holds: Vec<InProgressHold>) {
    if holds.is_empty() {
        return;
    }
    let store = state.services.store.clone();
    state.background.tasks.spawn(async move {
        if let Err(error) = store.commit(batch).await {
            tracing::warn!(%error, "cannot store the idempotency key of an unconfirmed send");
        }
        drop(holds);
    });
}

/// The outcome to store for a response.
pub fn stored_outcome(response: &impl serde::Serialize) -> IdempotentResult {
    // JSON serialization of plain structs into memory cannot fail.
    IdempotentResult::Done(serde_json::to_string(response).unwrap_or_default())
}

/// A response that may be a replay.
#[derive(Debug)]
pub struct IdempotentResponse<T> {
    body: Bytes,
    replayed: bool,
    headers: Vec<(HeaderName, HeaderValue)>,
    kind: PhantomData<fn() -> T>,
}

impl<T: IntoResponse> IdempotentResponse<T> {
    /// The response of a request that was carried out now.
    pub fn fresh(reply: T) -> Result<Self> {
        Ok(Self { body: reply.into_response()?.body, replayed: false, headers: Vec::new(), kind: PhantomData })
    }

    /// A stored response.
    pub fn replay(body: Bytes) -> Self {
        Self { body, replayed: true, headers: Vec::new(), kind: PhantomData }
    }

    /// Adds the remaining quota if the plan has caps.
    #[must_use]
    pub fn with_quota(mut self, remaining: PlanRemaining) -> Self {
        for (name, remaining) in [(QUOTA_DAILY, remaining.day), (QUOTA_MONTHLY, remaining.month)] {
            self.headers.extend(remaining.filter(|_| !self.replayed).map(|remaining| (name, remaining.into())));
        }
        self
    }
}

impl<T: IntoResponse> IntoResponse for IdempotentResponse<T> {
    const STATUS: StatusCode = T::STATUS;

    fn describe(schemas: &mut Schemas) -> Value {
        T::describe(schemas)
    }

    fn into_response(self) -> Result<Response> {
        let mut headers = self.headers;
        headers.extend(self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true"))));
        Ok(Response::new(T::STATUS, T::MEDIA_TYPE, headers, self.body))
    }
}
