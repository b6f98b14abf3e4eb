//! What owners do, done once with an idempotency key: whatever it is, by what it answered.
//!
//! ```text
//! key ─► at work? 409 ─► used before? the same answer, or 409 ─► do it ─► its answer, kept under the key
//! ```
//!
//! What moves money or begins something keeps its answer in its own commit (`affiliate/answer.rs`,
//! [`crate::operations::Entry::owner_keeps`]); here it is kept after what it answers. What is done so is such that a
//! crash between the two does it no second time, whatever is asked again with the same key:
//!
//! - a program is enabled once, and asking the processor changes nothing;
//! - `go-live`, `pause`, what is said of a referral and the file of results change nothing when they are said again;
//! - an import passes over partners who are there: who asks again is told of them as `already_partner`;
//! - an event that was replayed is done.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, HeaderName, HeaderValue};
use mail::idempotency::IdempotencyScope;
use queue::once::IdempotencyGuard;
use serde::{Deserialize, Serialize};
use store::engine::Batch;

use crate::call::{FromRequest, OwnerHandler, Request, RequestSpec, Response};
use crate::idempotency::{self, REPLAYED, RequestDecision};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::Schemas;

/// The largest answer that is kept.
const STORED_RESPONSE_BYTES_MAX: usize = 1 << 20;

/// What is kept of an answer.
#[derive(Serialize, Deserialize)]
struct StoredOwnerResponse {
    status: u16,
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    body: String,
}

/// Puts what owners do under the key that it may come with.
pub(crate) fn make_idempotent(id: &'static str, act: OwnerHandler) -> OwnerHandler {
    let act = Arc::new(act);
    Box::new(move |room, who, call| {
        let act = Arc::clone(&act);
        Box::pin(async move {
            let claim = idempotency::parse_claim(&call.headers, || request_fingerprint(id, &call))?;
            let slot = match idempotency::begin(&room, who.tenant(), IdempotencyScope::OwnerAction, claim).await? {
                RequestDecision::Proceed(None) => return act(room, who, call).await,
                RequestDecision::Proceed(Some(slot)) => slot,
                RequestDecision::Replay(kept) => return replay(&kept),
            };
            let answer = act(Arc::clone(&room), who, call).await?;
            store_response(&room, &slot, &answer).await;
            Ok(answer)
        })
    })
}

/// What such an operation takes.
pub(crate) fn describe<I: FromRequest>(schemas: &mut Schemas) -> RequestSpec {
    let mut takes = I::describe(schemas);
    takes.parameters.push(idempotency::header_parameter());
    takes
}

/// What a request says: which operation, of what, how, and the body.
fn request_fingerprint(id: &str, call: &Request) -> String {
    let mut fingerprint = idempotency::request_fingerprint(call);
    fingerprint.add(id);
    fingerprint.add(&call.query);
    fingerprint.finish()
}

fn replay(kept: &[u8]) -> Result<Response, Problem> {
    let StoredOwnerResponse { status, media_type, etag, body } =
        serde_json::from_slice(kept).map_err(Problem::internal)?;
    let value = |text: String| HeaderValue::try_from(text).map_err(Problem::internal);
    let mut headers: Vec<(HeaderName, HeaderValue)> = vec![(REPLAYED, HeaderValue::from_static("true"))];
    if let Some(etag) = etag {
        headers.push((ETAG, value(etag)?));
    }
    let status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    Ok(Response { status, media_type: value(media_type)?, headers, body: Bytes::from(body), stream: None })
}

/// Keeps an answer. Where that fails, it was done and answered all the same.
async fn store_response(room: &AppState, slot: &IdempotencyGuard, answer: &Response) {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
    let body = std::str::from_utf8(&answer.body).ok().filter(|body| body.len() <= STORED_RESPONSE_BYTES_MAX);
    let (Some(body), Some(media_type), None) = (body, text(&answer.media_type), &answer.stream) else {
        return;
    };
    let etag = answer.headers.iter().find(|(name, _)| *name == ETAG).and_then(|(_, value)| text(value));
    let kept = StoredOwnerResponse { status: answer.status.as_u16(), media_type, etag, body: body.to_owned() };
    let mut batch = Batch::intake();
    slot.record_outcome(&mut batch, idempotency::stored_outcome(&kept), room.intake.clock().now());
    if let Err(error) = room.intake.store().commit(batch).await {
        tracing::warn!(%error, "what an owner did keeps no idempotency key");
    }
}
