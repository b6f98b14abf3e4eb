//! Sending once: the one way from a request for one email to its answer, for `POST /emails`, resend and the
//! test of a template.
//!
//! ```text
//! key ─► done before? replay ─► draft ─► hall ─[ email + answer under the key ]─► {id, status} + quota
//! ```

use mail::draft::Draft;
use mail::idempotency::{Operation, Outcome};
use queue::accept::Accepted;
use queue::once::Claim;
use queue::refusal::Refusal;
use store::access::Tenant;
use store::engine::Batch;

use super::send::Sent;
use crate::idempotency::{self, Once, Turn, conclude, done, keep_doubt};
use crate::problem::Problem;
use crate::room::Room;

/// Hands a draft in, once if the request has a key. The draft comes with what was ignored of the request, and
/// is made only if it is to be sent.
///
/// # Errors
/// What is wrong with the key or the draft; what the hall refuses.
pub async fn send_once(
    room: &Room,
    tenant: &Tenant,
    (operation, claim): (Operation, Option<Claim>),
    draft: impl Future<Output = Result<(Draft, Vec<String>), Problem>>,
) -> Result<Once<Sent>, Problem> {
    let slot = match idempotency::look(room, tenant, operation, claim).await? {
        Turn::Done(body) => return Ok(Once::again(body)),
        Turn::Go(slot) => slot,
    };
    let (draft, warnings) = draft.await?;
    let now = room.hall.clock().now();
    let keep = |outcome: Outcome, batch: &mut Batch| {
        if let Some(slot) = &slot {
            slot.keep(batch, outcome, now);
        }
    };
    let sent = |accepted: &Accepted| Sent::of(accepted, &warnings);
    let also = |accepted: &Accepted, batch: &mut Batch| keep(done(&sent(accepted)), batch);
    let result = room.hall.accept_with(tenant, draft, &also).await;
    if let Err(Refusal::Unconfirmed { id }) = &result {
        keep_doubt(room, |batch| keep(Outcome::Unconfirmed(*id), batch)).await;
    }
    let left = result.as_ref().map(|accepted| accepted.left).unwrap_or_default();
    let answer = conclude(slot.as_deref(), room, result.map(|accepted| sent(&accepted))).await?;
    Ok(answer.with_quota(left))
}
