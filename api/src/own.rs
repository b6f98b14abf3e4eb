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
use mail::idempotency::Operation;
use queue::once::Slot;
use serde::{Deserialize, Serialize};
use store::engine::Batch;

use crate::call::{Answer, Call, Input, OwnerAction, Takes};
use crate::idempotency::{self, REPLAYED, Turn};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::Schemas;

/// The largest answer that is kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// What is kept of an answer.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    body: String,
}

/// Puts what owners do under the key that it may come with.
pub(crate) fn once(id: &'static str, act: OwnerAction) -> OwnerAction {
    let act = Arc::new(act);
    Box::new(move |room, who, call| {
        let act = Arc::clone(&act);
        Box::pin(async move {
            let claim = idempotency::claim(&call.headers, || said(id, &call))?;
            let slot = match idempotency::look(&room, who.tenant(), Operation::Own, claim).await? {
                Turn::Go(None) => return act(room, who, call).await,
                Turn::Go(Some(slot)) => slot,
                Turn::Done(kept) => return again(&kept),
            };
            let answer = act(Arc::clone(&room), who, call).await?;
            keep(&room, &slot, &answer).await;
            Ok(answer)
        })
    })
}

/// What such an operation takes.
pub(crate) fn describe<I: Input>(schemas: &mut Schemas) -> Takes {
    let mut takes = I::describe(schemas);
    takes.parameters.push(idempotency::parameter());
    takes
}

/// What a request says: which operation, of what, how, and the body.
fn said(id: &str, call: &Call) -> String {
    let mut fingerprint = idempotency::fingerprint(call);
    fingerprint.add(id);
    fingerprint.add(&call.query);
    fingerprint.finish()
}

fn again(kept: &[u8]) -> Result<Answer, Problem> {
    let Kept { status, media_type, etag, body } = serde_json::from_slice(kept).map_err(Problem::internal)?;
    let value = |text: String| HeaderValue::try_from(text).map_err(Problem::internal);
    let mut headers: Vec<(HeaderName, HeaderValue)> = vec![(REPLAYED, HeaderValue::from_static("true"))];
    if let Some(etag) = etag {
        headers.push((ETAG, value(etag)?));
    }
    let status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    Ok(Answer { status, media_type: value(media_type)?, headers, body: Bytes::from(body), more: None })
}

/// Keeps an answer. Where that fails, it was done and answered all the same.
async fn keep(room: &Room, slot: &Slot, answer: &Answer) {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
    let body = std::str::from_utf8(&answer.body).ok().filter(|body| body.len() <= KEPT_BYTES_MAX);
    let (Some(body), Some(media_type), None) = (body, text(&answer.media_type), &answer.more) else { return };
    let etag = answer.headers.iter().find(|(name, _)| *name == ETAG).and_then(|(_, value)| text(value));
    let kept = Kept { status: answer.status.as_u16(), media_type, etag, body: body.to_owned() };
    let mut batch = Batch::intake();
    slot.keep(&mut batch, idempotency::done(&kept), room.hall.clock().now());
    if let Err(error) = room.hall.store().commit(batch).await {
        tracing::warn!(%error, "what an owner did keeps no idempotency key");
    }
}
