//! Response of an affiliate operation: it carries the object's version (`etag`) and is stored under the request's
//! idempotency key.
//!
//! ```text
//! begin (idempotency.rs) ─► IdempotencyGuard ─► `once` ─[ commit: change + stored response ]─► response
//! ```

use std::marker::PhantomData;

use ::affiliate::error::AffiliateError;
use http::header::{ETAG, HeaderValue};
use httpd::response::{IntoResponse, Response};
use model::idempotency::{IdempotencyScope, IdempotentResult};
use queue::intake::idempotency::IdempotencyKey;
use serde::Deserialize;

use crate::idempotency::{self, REPLAYED, RequestDecision};
use crate::prelude::*;
use crate::request_fingerprint::RequestFingerprint;

/// A rendered response with its version; `S` is its JSON object.
#[derive(Debug)]
pub struct VersionedResponse<S> {
    stored: StoredVersionedResponse,
    replayed: bool,
    object: PhantomData<fn() -> S>,
}

/// A response as stored under an idempotency key.
#[derive(Debug, Serialize, Deserialize)]
struct StoredVersionedResponse {
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rev: Option<u64>,
    body: String,
}

impl<S: ToSchema> VersionedResponse<S> {
    /// Renders a response with the object's success status.
    pub fn new(body: &impl Serialize) -> Self {
        // JSON serialization of plain structs into memory cannot fail.
        let body = serde_json::to_string(body).unwrap_or_default();
        let stored = StoredVersionedResponse { status: S::SUCCESS_STATUS.as_u16(), rev: None, body };
        Self { stored, replayed: false, object: PhantomData }
    }

    /// Sets the version that is sent as `etag`.
    #[must_use]
    pub fn with_etag(mut self, rev: u64) -> Self {
        self.stored.rev = Some(rev);
        self
    }

    /// Overrides the status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.stored.status = status.as_u16();
        self
    }

    /// Marks the response as replayed.
    #[must_use]
    pub fn as_replayed(mut self) -> Self {
        self.replayed = true;
        self
    }

    fn from_stored(stored: &[u8]) -> Result<Self> {
        let stored = serde_json::from_slice(stored).map_err(Problem::internal)?;
        Ok(Self { stored, replayed: true, object: PhantomData })
    }

    fn stored_outcome(&self) -> IdempotentResult {
        idempotency::stored_outcome(&self.stored)
    }
}

impl<S: ToSchema + 'static> IntoResponse for VersionedResponse<S> {
    const STATUS: StatusCode = S::SUCCESS_STATUS;

    fn describe(schemas: &mut Schemas) -> Value {
        S::schema(schemas)
    }

    fn into_response(self) -> Result<Response> {
        let status = StatusCode::from_u16(self.stored.status).map_err(Problem::internal)?;
        let mut headers = Vec::new();
        if let Some(rev) = self.stored.rev {
            headers.push((ETAG, HeaderValue::try_from(format!("\"{rev}\"")).map_err(Problem::internal)?));
        }
        headers.extend(self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true"))));
        Ok(Response::new(status, Self::MEDIA_TYPE, headers, self.stored.body.into()))
    }
}

/// The scope and the key of an owner's operation. The fingerprint has the operation's id, so that the key is valid for
/// this operation only.
pub(super) fn owner_claim(id: &str, claim: Option<IdempotencyKey>) -> (IdempotencyScope, Option<IdempotencyKey>) {
    let scoped = claim.map(|claim| {
        let mut fingerprint = RequestFingerprint::new();
        fingerprint.add(id);
        fingerprint.add(&claim.fingerprint);
        IdempotencyKey { fingerprint: fingerprint.finish(), ..claim }
    });
    (IdempotencyScope::OwnerAction, scoped)
}

/// Adds the response to the commit of a change.
pub type ResponseWriter<T> = Box<dyn Fn(&mut Batch, &T) + Send + Sync>;

/// Carries out a change once under the request's idempotency key, if it has one. `change` gives its argument to the
/// commit, which stores the response that `show` renders. A request whose key was completed before, here or on another
/// node, gets the stored response.
///
/// # Errors
/// The key is in progress or was used for another request; the change is refused; the store cannot be read.
pub async fn once<T: 'static, S: ToSchema + 'static, Run>(
    state: &AppState,
    tenant: &Tenant,
    (scope, claim): (IdempotencyScope, Option<IdempotencyKey>),
    show: fn(&T) -> VersionedResponse<S>,
    change: impl FnOnce(ResponseWriter<T>) -> Run,
) -> Result<VersionedResponse<S>>
where
    Run: Future<Output = Result<T, AffiliateError>>,
{
    let guard = match idempotency::begin(state, tenant, scope, claim).await? {
        RequestDecision::Proceed(guard) => guard.map(Arc::new),
        RequestDecision::Replay(stored) => return VersionedResponse::from_stored(&stored),
    };
    let (stored_under, now) = (guard.clone(), state.services.clock.now());
    let write_response = move |batch: &mut Batch, done: &T| {
        if let Some(guard) = &stored_under {
            guard.record_outcome(batch, show(done).stored_outcome(), now);
        }
    };
    let refusal = match change(Box::new(write_response)).await {
        Ok(done) => return Ok(show(&done)),
        Err(refusal) => refusal,
    };
    // Another node may have completed the same key first.
    if let Some(guard) = &guard
        && let Some(stored) = guard.concurrent_result(&state.services.store).await?
    {
        return VersionedResponse::from_stored(stored.as_bytes());
    }
    Err(refusal.into_problem(state))
}
