//! Sending once: the one way from a request for one email to its answer, for `POST /emails`, resend and the
//! test of a template.
//!
//! ```text
//! key ─► done before? replay ─► draft ─► hall ─[ email + answer under the key ]─► {id, status} + quota
//! ```

use mail::draft::Draft;
use mail::idempotency::{IdempotencyScope, IdempotentResult};
use queue::accept::SubmitReceipt;
use queue::once::IdempotencyKey;
use queue::refusal::SubmitError;
use store::access::Tenant;
use store::engine::Batch;

use super::send::SendResponse;
use crate::idempotency::{self, IdempotentResponse, RequestDecision, finish, store_unconfirmed, stored_outcome};
use crate::problem::Problem;
use crate::room::AppState;

/// Hands a draft in, once if the request has a key. The draft comes with what was ignored of the request, and
/// is made only if it is to be sent.
///
/// # Errors
/// What is wrong with the key or the draft; what the hall refuses.
pub async fn send_idempotent(
    room: &AppState,
    tenant: &Tenant,
    (operation, claim): (IdempotencyScope, Option<IdempotencyKey>),
    draft: impl Future<Output = Result<(Draft, Vec<String>), Problem>>,
) -> Result<IdempotentResponse<SendResponse>, Problem> {
    let slot = match idempotency::begin(room, tenant, operation, claim).await? {
        RequestDecision::Replay(body) => return Ok(IdempotentResponse::replay(body)),
        RequestDecision::Proceed(slot) => slot,
    };
    let (draft, warnings) = draft.await?;
    let now = room.intake.clock().now();
    let keep = |outcome: IdempotentResult, batch: &mut Batch| {
        if let Some(slot) = &slot {
            slot.record_outcome(batch, outcome, now);
        }
    };
    let sent = |accepted: &SubmitReceipt| SendResponse::from_accepted(accepted, &warnings);
    let also = |accepted: &SubmitReceipt, batch: &mut Batch| keep(stored_outcome(&sent(accepted)), batch);
    let result = room.intake.submit_with(tenant, draft, &also).await;
    if let Err(SubmitError::Unconfirmed { id }) = &result {
        let mut batch = Batch::progress();
        keep(IdempotentResult::Unconfirmed(*id), &mut batch);
        store_unconfirmed(room, batch, slot.iter().map(|slot| slot.hold_key()).collect());
    }
    let left = result.as_ref().map(|accepted| accepted.remaining).unwrap_or_default();
    let answer = finish(slot.as_deref(), room, result.map(|accepted| sent(&accepted))).await?;
    Ok(answer.with_quota(left))
}
