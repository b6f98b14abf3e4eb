//! `Idempotency-Key`: what was done with a key is done once, and answered the same (email-api.md, "Email
//! endpoints"; completions-email.md 2.3).
//!
//! ```text
//! key + fingerprint ─► at work? 409 ─► used before? replay, or 409 ─► do it ─[ what was done + the answer ]
//! ```
//!
//! `queue::once` does it for both doors; here a key is read and answered over HTTP. The fingerprint is taken of
//! what a request says, not of how it is written (`emails/fingerprint.rs`).

use std::marker::PhantomData;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use mail::idempotency::{IdempotencyScope, IdempotentResult, KEY_CHARS_MAX, check_key};
use mail::usage::PlanRemaining;
use queue::once::{self, IdempotencyError, IdempotencyGuard, IdempotencyKey, InProgressHold};
use queue::refusal::SubmitError;
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use crate::call::{IntoResponse, Request, Response};
use crate::emails::fingerprint::RequestFingerprint;
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The request's header field.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Says that an answer was given before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// How many emails the plan has left today.
const QUOTA_DAILY: HeaderName = HeaderName::from_static("x-quota-daily-remaining");
/// How many emails the plan has left this month.
const QUOTA_MONTHLY: HeaderName = HeaderName::from_static("x-quota-monthly-remaining");
/// When a request whose key is at work may be sent again.
const IN_PROGRESS_RETRY_S: u32 = 1;

/// The parameter of operations that take a key.
#[must_use]
pub fn header_parameter() -> Value {
    schema::header_parameter(
        "Idempotency-Key",
        "What is sent with a key is sent once: for 24 hours the same request with the same key gets the \
         same answer",
    )
}

/// The claim of a request, if it makes one.
///
/// # Errors
/// `invalid_idempotency_key`.
pub fn parse_claim(
    headers: &http::HeaderMap,
    fingerprint: impl FnOnce() -> String,
) -> Result<Option<IdempotencyKey>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = std::str::from_utf8(value.as_bytes()).ok().filter(|_| values.next().is_none());
    let key = key.and_then(validate_key).ok_or_else(|| invalid_key("Idempotency-Key"))?;
    Ok(Some(IdempotencyKey { key, fingerprint: fingerprint() }))
}

/// What a request says, however it is written: of what, and the body.
pub(crate) fn request_fingerprint(call: &Request) -> RequestFingerprint {
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add_count(call.path.len());
    for (name, value) in &call.path {
        fingerprint.add(name);
        fingerprint.add(value);
    }
    match serde_json::from_slice::<Value>(&call.body) {
        Ok(body) => fingerprint.add_json(&body),
        // Nothing, or nothing that can be read, which is refused.
        Err(_) => fingerprint.add(call.body.trim_ascii()),
    }
    fingerprint
}

/// Whether the operation with these keys stored something with the key of a request: then it is answered as it was, though
/// there is no room for more. Keys of other operations do not count.
///
/// # Errors
/// The store cannot be read.
pub async fn is_replay(
    room: &AppState,
    tenant: &Tenant,
    keys: Option<IdempotencyScope>,
    headers: &http::HeaderMap,
) -> Result<bool, Problem> {
    let Some(operation) = keys else { return Ok(false) };
    let Ok(Some(IdempotencyKey { key, .. })) = parse_claim(headers, String::new) else { return Ok(false) };
    let name = store::idempotency::ScopedIdempotencyKey { account: tenant.account().id, operation, key };
    Ok(store::idempotency::get(room.intake.store(), &name).await?.is_some())
}

/// A text that will do as a key.
#[must_use]
pub fn validate_key(text: &str) -> Option<String> {
    let key = text.trim();
    check_key(key).is_ok().then(|| key.to_owned())
}

/// What was given as a key, by this name, will not do.
#[must_use]
pub fn invalid_key(name: &str) -> Problem {
    let text = format!("`{name}` is one text of 1 to {KEY_CHARS_MAX} printable characters");
    Problem::new(ErrorCode::INVALID_IDEMPOTENCY_KEY, text)
}

/// Whether a request is to be carried out.
pub enum RequestDecision {
    /// Carry it out, and keep the answer in the slot, if it came with a key.
    Proceed(Option<Box<IdempotencyGuard>>),
    /// It was: this was answered.
    Replay(Bytes),
}

/// Looks at the key of a request, if it has one.
///
/// # Errors
/// It is at work, was used for something else, or the store cannot be read; or it stands for a send that
/// could not be confirmed.
pub async fn begin(
    room: &AppState,
    tenant: &Tenant,
    operation: IdempotencyScope,
    claim: Option<IdempotencyKey>,
) -> Result<RequestDecision, Problem> {
    let Some(claim) = claim else { return Ok(RequestDecision::Proceed(None)) };
    match IdempotencyGuard::begin(&room.intake, tenant, operation, claim).await {
        Ok(once::IdempotencyDecision::Proceed(slot)) => Ok(RequestDecision::Proceed(Some(slot))),
        Ok(once::IdempotencyDecision::Replay(body)) => Ok(RequestDecision::Replay(Bytes::from(body))),
        Ok(once::IdempotencyDecision::Unconfirmed(id)) => Err(Problem::unconfirmed(id).with_header(REPLAYED, "true")),
        Err(IdempotencyError::InProgress) => {
            let text = "A request with this `Idempotency-Key` is being carried out";
            let problem = Problem::new(ErrorCode::IDEMPOTENCY_IN_PROGRESS, text);
            Err(problem.with_header(http::header::RETRY_AFTER, IN_PROGRESS_RETRY_S.to_string()))
        }
        Err(IdempotencyError::KeyReused) => {
            let text = "This `Idempotency-Key` was used for another request; take a new one";
            Err(Problem::new(ErrorCode::IDEMPOTENCY_CONFLICT, text))
        }
        Err(IdempotencyError::Read(error)) => Err(error.into()),
    }
}

/// Brings a claimed request to its end: what was done at the same time elsewhere is replayed.
///
/// # Errors
/// What the hall refused.
pub async fn finish<T: IntoResponse>(
    slot: Option<&IdempotencyGuard>,
    room: &AppState,
    result: Result<T, SubmitError>,
) -> Result<IdempotentResponse<T>, Problem> {
    let refusal = match result {
        Ok(reply) => return IdempotentResponse::fresh(reply),
        Err(refusal) => refusal,
    };
    // Another node was quicker with this key: its answer counts.
    if let (SubmitError::DoneConcurrently, Some(slot)) = (&refusal, slot)
        && let Some(body) = slot.concurrent_result(room.intake.store()).await?
    {
        return Ok(IdempotentResponse::replay(Bytes::from(body)));
    }
    Err(Problem::from_refusal(refusal, room.upgrade_url()))
}

/// Keeps under keys that nobody knows what came of what was asked with them, as soon as the store is there
/// again: who asked is not kept waiting for it, but their keys stay at work until then. Should it have been
/// done after all, so is its answer there, and this conflicts: then that counts.
pub fn store_unconfirmed(room: &AppState, batch: Batch, held: Vec<InProgressHold>) {
    if held.is_empty() {
        return;
    }
    let store = room.intake.store().clone();
    room.tasks.spawn(async move {
        if let Err(error) = store.commit(batch).await {
            tracing::warn!(%error, "a send that was not confirmed keeps no idempotency key");
        }
        drop(held);
    });
}

/// What is kept of an answer.
#[must_use]
pub fn stored_outcome(answer: &impl serde::Serialize) -> IdempotentResult {
    // Into memory, and of types that JSON has: this does not fail.
    IdempotentResult::Done(serde_json::to_string(answer).unwrap_or_default())
}

/// An answer that may have been given before.
#[derive(Debug)]
pub struct IdempotentResponse<T> {
    body: Bytes,
    replayed: bool,
    headers: Vec<(HeaderName, HeaderValue)>,
    kind: PhantomData<fn() -> T>,
}

impl<T: IntoResponse> IdempotentResponse<T> {
    /// Given for the first time.
    ///
    /// # Errors
    /// A fault of our own.
    pub fn fresh(reply: T) -> Result<Self, Problem> {
        Ok(Self { body: reply.into_body()?, replayed: false, headers: Vec::new(), kind: PhantomData })
    }

    /// Given before.
    #[must_use]
    pub fn replay(body: Bytes) -> Self {
        Self { body, replayed: true, headers: Vec::new(), kind: PhantomData }
    }

    /// With what is left of the plan, where it has caps (completions-email.md 2.2).
    #[must_use]
    pub fn with_quota(mut self, left: PlanRemaining) -> Self {
        for (name, left) in [(QUOTA_DAILY, left.day), (QUOTA_MONTHLY, left.month)] {
            self.headers.extend(left.filter(|_| !self.replayed).map(|left| (name, left.into())));
        }
        self
    }
}

impl<T: IntoResponse> IntoResponse for IdempotentResponse<T> {
    const STATUS: StatusCode = T::STATUS;

    fn describe(schemas: &mut Schemas) -> Value {
        T::describe(schemas)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.body)
    }

    fn into_response(self) -> Result<Response, Problem> {
        let mut headers = self.headers;
        headers.extend(self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true"))));
        let media_type = HeaderValue::from_static(T::MEDIA_TYPE);
        Ok(Response { status: T::STATUS, media_type, headers, body: self.body, stream: None })
    }
}
