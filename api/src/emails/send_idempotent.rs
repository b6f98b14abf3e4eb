//! Submits a single email idempotently, for `POST /emails`, resend and template tests.
//!
//! ```text
//! key ─► completed before? replay ─► draft ─► intake ─[ email + response stored under the key ]─► {id, status} + quota
//! ```

use model::draft::Draft;
use model::idempotency::{IdempotencyScope, IdempotentResult};
use queue::intake::SubmitReceipt;
use queue::intake::idempotency::IdempotencyKey;
use queue::intake::submit_error::SubmitError;

use super::send::SendResponse;
use crate::idempotency::{self, IdempotentResponse, RequestDecision, finish, store_unconfirmed, stored_outcome};
use crate::prelude::*;

/// Submits a draft, at most once per idempotency key. The future yields the draft and the warnings; it is awaited only
/// if the request is not a replay.
///
/// # Errors
/// The key is in progress or was used for another request; the draft is invalid; the intake rejects the email.
pub async fn send_idempotent(
    state: &AppState,
    tenant: &Tenant,
    operation: IdempotencyScope,
    claim: Option<IdempotencyKey>,
    draft: impl Future<Output = Result<(Draft, Vec<String>)>>,
) -> Result<IdempotentResponse<SendResponse>> {
    let guard = match idempotency::begin(state, tenant, operation, claim).await? {
        RequestDecision::Replay(body) => return Ok(IdempotentResponse::replay(body)),
        RequestDecision::Proceed(guard) => guard,
    };
    let (draft, warnings) = draft.await?;
    let now = state.services.clock.now();
    let store_response = |outcome: IdempotentResult, batch: &mut Batch| {
        if let Some(guard) = &guard {
            guard.record_outcome(batch, outcome, now);
        }
    };
    let sent = |accepted: &SubmitReceipt| SendResponse::from_accepted(accepted, &warnings);
    let record_outcome =
        |accepted: &SubmitReceipt, batch: &mut Batch| store_response(stored_outcome(&sent(accepted)), batch);
    let result = state.accounts.intake.submit_with(tenant, draft, &record_outcome).await;
    if let Err(SubmitError::Unconfirmed { id }) = &result {
        let mut batch = Batch::progress();
        store_response(IdempotentResult::Unconfirmed(*id), &mut batch);
        store_unconfirmed(state, batch, guard.iter().map(|guard| guard.hold.clone()).collect());
    }
    let remaining = result.as_ref().map(|accepted| accepted.remaining).unwrap_or_default();
    let response = finish(guard.as_deref(), state, result.map(|accepted| sent(&accepted))).await?;
    Ok(response.with_quota(remaining))
}
