//! One answer of the affiliate program: with the version of what it shows (`etag`), and kept under the key of who asked
//! for it to be done once.
//!
//! ```text
//! look (idempotency.rs) ─► Slot ─[ what is done + the answer ]─► end
//! ```

use std::marker::PhantomData;

use ::affiliate::refusal::AffiliateError;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, HeaderName, HeaderValue};
use jiff::Timestamp;
use mail::idempotency::{IdempotencyScope, IdempotentResult};
use queue::once::{IdempotencyGuard, IdempotencyKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::access::Tenant;
use store::engine::Batch;

use super::refusal_problem;
use crate::call::{ExtraResponse, IntoResponse, Owner, Response};
use crate::emails::fingerprint::RequestFingerprint;
use crate::idempotency::{self, RequestDecision};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{Schemas, ToSchema};

/// Says that an answer was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What an answer shows.
pub trait ResponseObject: ToSchema + Send + 'static {
    /// What else it may be.
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[];
}

/// One answer, written.
#[derive(Debug)]
pub struct VersionedResponse<S> {
    stored: StoredVersionedResponse,
    replayed: bool,
    object: PhantomData<fn() -> S>,
}

/// What is kept of an answer.
#[derive(Debug, Serialize, Deserialize)]
struct StoredVersionedResponse {
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rev: Option<u64>,
    body: String,
}

impl<S: ResponseObject> VersionedResponse<S> {
    /// An answer with the status that its shape has.
    pub fn new(body: &impl Serialize) -> Self {
        // Into memory, and of types that JSON has: this does not fail.
        let body = serde_json::to_string(body).unwrap_or_default();
        let stored = StoredVersionedResponse { status: S::SUCCESS_STATUS.as_u16(), rev: None, body };
        Self { stored, replayed: false, object: PhantomData }
    }

    /// With the version of what it shows.
    #[must_use]
    pub fn with_etag(mut self, rev: u64) -> Self {
        self.stored.rev = Some(rev);
        self
    }

    /// With another status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.stored.status = status.as_u16();
        self
    }

    /// Given before.
    #[must_use]
    pub fn as_replayed(mut self) -> Self {
        self.replayed = true;
        self
    }

    fn from_stored(kept: &[u8]) -> Result<Self, Problem> {
        let kept = serde_json::from_slice(kept).map_err(Problem::internal)?;
        Ok(Self { stored: kept, replayed: true, object: PhantomData })
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

/// What is to be done now, under its key if it came with one.
pub struct OperationInProgress {
    slot: Option<Box<IdempotencyGuard>>,
    now: Timestamp,
}

/// Whether something is to be done.
pub enum BeginDecision<S> {
    /// It is.
    Proceed(OperationInProgress),
    /// It was: this was answered.
    Replay(VersionedResponse<S>),
}

/// Looks at the key of a request.
///
/// # Errors
/// It is at work, or was used for something else; the store cannot be read.
pub async fn begin_for_tenant<S: ResponseObject>(
    room: &AppState,
    tenant: &Tenant,
    operation: IdempotencyScope,
    claim: Option<IdempotencyKey>,
) -> Result<BeginDecision<S>, Problem> {
    Ok(match idempotency::begin(room, tenant, operation, claim).await? {
        RequestDecision::Proceed(slot) => {
            BeginDecision::Proceed(OperationInProgress { slot, now: room.intake.clock().now() })
        }
        RequestDecision::Replay(kept) => BeginDecision::Replay(VersionedResponse::from_stored(&kept)?),
    })
}

/// The same of what an owner does: there a key is of one operation, by its id.
///
/// # Errors
/// As [`begin`].
pub async fn begin_for_owner<S: ResponseObject>(
    room: &AppState,
    owner: &Owner,
    id: &'static str,
    claim: Option<IdempotencyKey>,
) -> Result<BeginDecision<S>, Problem> {
    begin_for_tenant(room, owner.tenant(), IdempotencyScope::OwnerAction, claim.map(|claim| scope_claim(id, claim)))
        .await
}

/// A claim that is about one operation alone.
pub(super) fn scope_claim(id: &str, claim: IdempotencyKey) -> IdempotencyKey {
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add(id);
    fingerprint.add(&claim.fingerprint);
    IdempotencyKey { fingerprint: fingerprint.finish(), ..claim }
}

impl OperationInProgress {
    /// Puts the answer into the commit of what is done.
    pub fn response_writer<'a, T, S: ResponseObject>(
        &'a self,
        show: fn(&T) -> VersionedResponse<S>,
    ) -> impl Fn(&mut Batch, &T) + Send + Sync + use<'a, T, S> {
        move |batch, done| {
            if let Some(slot) = &self.slot {
                slot.record_outcome(batch, show(done).stored_outcome(), self.now);
            }
        }
    }

    /// The answer: that of another node, where that one was quicker with the same key.
    ///
    /// # Errors
    /// What was refused.
    pub async fn finish<T, S: ResponseObject>(
        self,
        room: &AppState,
        done: Result<T, AffiliateError>,
        show: fn(&T) -> VersionedResponse<S>,
    ) -> Result<VersionedResponse<S>, Problem> {
        let refusal = match done {
            Ok(done) => return Ok(show(&done)),
            Err(refusal) => refusal,
        };
        if let Some(slot) = &self.slot
            && let Some(kept) = slot.concurrent_result(room.intake.store()).await?
        {
            return VersionedResponse::from_stored(kept.as_bytes());
        }
        Err(refusal_problem(room, refusal))
    }
}
