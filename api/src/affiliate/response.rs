//! Response of an affiliate operation: it carries the object's version (`etag`) and is stored under the request's
//! idempotency key.
//!
//! ```text
//! begin (idempotency.rs) ─► IdempotencyGuard ─[ commit: change + stored response ]─► finish
//! ```

use std::marker::PhantomData;

use ::affiliate::error::AffiliateError;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, HeaderName, HeaderValue};
use httpd::response::{ExtraResponse, IntoResponse, Response};
use jiff::Timestamp;
use model::idempotency::{IdempotencyScope, IdempotentResult};
use queue::intake::idempotency::{IdempotencyGuard, IdempotencyKey};
use serde::Deserialize;
use store::engine::Batch;

use super::refusal::refusal_problem;
use crate::handler::Owner;
use crate::idempotency::{self, RequestDecision};
use crate::prelude::*;
use crate::request_fingerprint::RequestFingerprint;

/// Marks a response that is replayed for a repeated idempotency key.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The JSON object of a response.
pub trait ResponseObject: ToSchema + Send + 'static {
    /// Further responses of the operation, for the OpenAPI document.
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[];
}

/// A rendered response with its version.
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

impl<S: ResponseObject> VersionedResponse<S> {
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

    fn from_stored(stored: &[u8]) -> Result<Self, Problem> {
        let stored = serde_json::from_slice(stored).map_err(Problem::internal)?;
        Ok(Self { stored, replayed: true, object: PhantomData })
    }

    fn stored_outcome(&self) -> IdempotentResult {
        idempotency::stored_outcome(&self.stored)
    }
}

impl<S: ResponseObject> IntoResponse for VersionedResponse<S> {
    const STATUS: StatusCode = S::SUCCESS_STATUS;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = S::EXTRA_RESPONSES;

    fn describe(schemas: &mut Schemas) -> Value {
        S::schema(schemas)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.stored.body.into())
    }

    fn into_response(self) -> Result<Response, Problem> {
        let status = StatusCode::from_u16(self.stored.status).map_err(Problem::internal)?;
        let mut headers = Vec::new();
        if let Some(rev) = self.stored.rev {
            headers.push((ETAG, HeaderValue::try_from(format!("\"{rev}\"")).map_err(Problem::internal)?));
        }
        headers.extend(self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true"))));
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Response { status, media_type, headers, body: self.stored.body.into(), stream: None })
    }
}

/// A mutation in progress, with its idempotency guard if the request had a key.
pub struct OperationInProgress {
    slot: Option<Box<IdempotencyGuard>>,
    now: Timestamp,
}

/// Result of the idempotency check.
pub enum BeginDecision<S> {
    /// The request is new: carry it out.
    Proceed(OperationInProgress),
    /// The request was completed before: send its stored response.
    Replay(VersionedResponse<S>),
}

/// Checks the request's idempotency key.
///
/// # Errors
/// The key is in progress or was used for another request; the store cannot be read.
pub async fn begin_for_tenant<S: ResponseObject>(
    state: &AppState,
    tenant: &Tenant,
    operation: IdempotencyScope,
    claim: Option<IdempotencyKey>,
) -> Result<BeginDecision<S>, Problem> {
    Ok(match idempotency::begin(state, tenant, operation, claim).await? {
        RequestDecision::Proceed(guard) => {
            BeginDecision::Proceed(OperationInProgress { slot: guard, now: state.services.clock.now() })
        }
        RequestDecision::Replay(stored) => BeginDecision::Replay(VersionedResponse::from_stored(&stored)?),
    })
}

/// Like [`begin_for_tenant`], for an owner's operation. There a key belongs to one operation, named by `id`.
pub async fn begin_for_owner<S: ResponseObject>(
    state: &AppState,
    owner: &Owner,
    id: &'static str,
    claim: Option<IdempotencyKey>,
) -> Result<BeginDecision<S>, Problem> {
    begin_for_tenant(state, owner.tenant(), IdempotencyScope::OwnerAction, claim.map(|claim| scope_claim(id, claim)))
        .await
}

/// Adds the operation's id to the fingerprint, so that the key is valid for this operation only.
pub(super) fn scope_claim(id: &str, claim: IdempotencyKey) -> IdempotencyKey {
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add(id);
    fingerprint.add(&claim.fingerprint);
    IdempotencyKey { fingerprint: fingerprint.finish(), ..claim }
}

impl OperationInProgress {
    /// Returns a function that adds the response to the commit of the change.
    pub fn response_writer<'a, T, S: ResponseObject>(
        &'a self,
        show: fn(&T) -> VersionedResponse<S>,
    ) -> impl Fn(&mut Batch, &T) + Send + Sync + use<'a, T, S> {
        move |batch, done| {
            if let Some(guard) = &self.slot {
                guard.record_outcome(batch, show(done).stored_outcome(), self.now);
            }
        }
    }

    /// The response. If another node completed the same key first, its stored response is replayed.
    ///
    /// # Errors
    /// The affiliate error; the stored response cannot be read.
    pub async fn finish<T, S: ResponseObject>(
        self,
        state: &AppState,
        done: Result<T, AffiliateError>,
        show: fn(&T) -> VersionedResponse<S>,
    ) -> Result<VersionedResponse<S>, Problem> {
        let refusal = match done {
            Ok(done) => return Ok(show(&done)),
            Err(refusal) => refusal,
        };
        if let Some(guard) = &self.slot
            && let Some(stored) = guard.concurrent_result(&state.services.store).await?
        {
            return VersionedResponse::from_stored(stored.as_bytes());
        }
        Err(refusal_problem(state, refusal))
    }
}
