//! Sending a batch: each email that can be, in one commit with what is kept under its keys.
//!
//! ```text
//! the batch's key ─► done? replay; done in part? what was answered for good stays
//! each other item ─► its own key: sent before? ─► its template ─► draft ─┐
//! drafts ─► hall ─[ emails + each key's answer + the batch's answer ]─► entries ◄─ what was refused before
//! ```
//!
//! An email that was refused for the moment (429, 503) stays open under the batch's key: the same batch with the
//! same key sends what is open, and nothing else, and answers for all of them.

use std::sync::Arc;

use jiff::Timestamp;
use mail::draft::Draft;
use mail::idempotency::{IdempotencyScope, IdempotentResult};
use queue::accept::SubmitReceipt;
use queue::once::{IdempotencyGuard, InProgressHold};
use queue::refusal::SubmitError;
use store::access::Tenant;
use store::engine::Batch;

use super::BatchRequest;
use super::answer::{BatchEntry, BatchResponse, batch_outcome};
use crate::emails::send::{SendRequest, SendResponse};
use crate::idempotency::{self, IdempotentResponse, RequestDecision, finish, store_unconfirmed, stored_outcome};
use crate::problem::Problem;
use crate::room::AppState;

/// What is known of an email before the hall has seen it.
enum BatchItem {
    /// This came of it.
    Settled(Result<BatchEntry, Problem>),
    /// It is handed in: with these warnings, and under its own key if it has one.
    Submitted(Vec<String>, Option<Box<IdempotencyGuard>>),
}

/// A batch on its way.
struct BatchSubmission<'a> {
    room: &'a AppState,
    strict: bool,
    slot: Option<Box<IdempotencyGuard>>,
    items: Vec<BatchItem>,
    now: Timestamp,
}

type SubmitResults = [Result<SubmitReceipt, SubmitError>];

impl BatchSubmission<'_> {
    /// What came of each email. What the hall did not see, for another's sake, is not told of.
    fn entries(&self, outcomes: &SubmitResults) -> Vec<Result<BatchEntry, Problem>> {
        let mut outcomes = outcomes.iter();
        let told = |(index, fate): (usize, &BatchItem)| match fate {
            BatchItem::Settled(told) => Some(told.clone()),
            BatchItem::Submitted(warnings, _) => outcomes.next().map(|outcome| match outcome {
                Ok(accepted) => Ok(BatchEntry::from_accepted(index, accepted, warnings)),
                Err(refusal) => Err(Problem::from_refusal(refusal.clone(), self.room.upgrade_url())),
            }),
        };
        self.items.iter().enumerate().filter_map(told).collect()
    }

    /// Of a batch that is sent whole or not at all, why it is not.
    fn strict_refusal(&self, outcomes: &SubmitResults) -> Option<Problem> {
        let mut outcomes = outcomes.iter();
        let problem = |(index, fate): (usize, &BatchItem)| match fate {
            BatchItem::Settled(told) => Some((index, told.clone().err()?)),
            BatchItem::Submitted(..) => {
                let refusal = outcomes.next()?.clone().err()?;
                Some((index, Problem::from_refusal(refusal, self.room.upgrade_url())))
            }
        };
        let problems: Vec<_> = self.items.iter().enumerate().filter_map(problem).collect();
        (self.strict && !problems.is_empty()).then(|| Problem::from_batch(&problems))
    }

    /// Keeps what came of it, under the batch's key and those of its emails.
    fn store_outcomes(&self, outcomes: &SubmitResults, batch: &mut Batch) {
        let handed_in = self.items.iter().filter_map(|fate| match fate {
            BatchItem::Submitted(warnings, slot) => Some((warnings, slot)),
            BatchItem::Settled(_) => None,
        });
        for ((warnings, slot), outcome) in handed_in.zip(outcomes) {
            let kept = match outcome {
                Ok(accepted) => stored_outcome(&SendResponse::from_accepted(accepted, warnings)),
                Err(SubmitError::Unconfirmed { id }) => IdempotentResult::Unconfirmed(*id),
                Err(_) => continue,
            };
            if let Some(slot) = slot {
                slot.record_outcome(batch, kept, self.now);
            }
        }
        let Some(slot) = &self.slot else { return };
        let kept = match first_unconfirmed(outcomes) {
            // Nothing but the doubt is answered then.
            Some(id) if self.strict => IdempotentResult::Unconfirmed(id),
            _ => batch_outcome(&self.entries(outcomes)),
        };
        slot.record_outcome(batch, kept, self.now);
    }

    /// The keys that it has at work.
    fn held_keys(&self) -> Vec<InProgressHold> {
        let of_items = self.items.iter().filter_map(|fate| match fate {
            BatchItem::Submitted(_, slot) => slot.as_ref(),
            BatchItem::Settled(_) => None,
        });
        of_items.chain(&self.slot).map(|slot| slot.hold_key()).collect()
    }
}

/// The first email of which nobody knows whether it was accepted.
fn first_unconfirmed(outcomes: &SubmitResults) -> Option<mail::id::EmailId> {
    outcomes.iter().find_map(|outcome| match outcome {
        Err(SubmitError::Unconfirmed { id }) => Some(*id),
        _ => None,
    })
}

/// What is known of one email, and its draft if it is to be handed in.
async fn prepare_item(
    room: &AppState,
    tenant: &Tenant,
    (index, item): (usize, Result<SendRequest, Problem>),
) -> (BatchItem, Option<Draft>) {
    let prepared = async {
        let SendRequest { email: letter, mut warnings, claim } = item?;
        let slot = match idempotency::begin(room, tenant, IdempotencyScope::SendItem, claim).await? {
            RequestDecision::Replay(answer) => {
                return BatchEntry::from_stored(index, &answer).map(|entry| (BatchItem::Settled(Ok(entry)), None));
            }
            RequestDecision::Proceed(slot) => slot,
        };
        let draft = letter.into_draft(room, tenant, &mut warnings).await?;
        Ok((BatchItem::Submitted(warnings, slot), Some(draft)))
    };
    prepared.await.unwrap_or_else(|problem| (BatchItem::Settled(Err(problem)), None))
}

/// `POST /emails/batch`.
///
/// # Errors
/// What is wrong with the request as a whole; each email's own fate stands in its entry.
pub async fn send_batch(
    room: Arc<AppState>,
    tenant: Tenant,
    request: BatchRequest,
) -> Result<IdempotentResponse<BatchResponse>, Problem> {
    let BatchRequest { items, strict, claim } = request;
    let slot = match idempotency::begin(&room, &tenant, IdempotencyScope::SendBatch, claim).await? {
        RequestDecision::Replay(body) => return Ok(IdempotentResponse::replay(body)),
        RequestDecision::Proceed(slot) => slot,
    };
    let mut settled = match slot.as_ref().and_then(|slot| slot.partial_outcome()) {
        Some(before) => BatchResponse::settled_entries(before)?.into_iter(),
        None => Vec::new().into_iter(),
    };
    let (mut fates, mut drafts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items.into_iter().enumerate() {
        let (fate, draft) = match settled.next().flatten() {
            Some(entry) => (BatchItem::Settled(Ok(entry)), None),
            None => prepare_item(&room, &tenant, item).await,
        };
        fates.push(fate);
        drafts.extend(draft);
    }
    let run = BatchSubmission { room: &room, strict, slot, items: fates, now: room.intake.clock().now() };
    if let Some(problem) = run.strict_refusal(&[]) {
        return Err(problem);
    }
    let also = |outcomes: &SubmitResults, batch: &mut Batch| run.store_outcomes(outcomes, batch);
    let result = room.intake.submit_batch(&tenant, drafts, strict, &also).await;
    if let Ok(outcomes) = &result {
        if first_unconfirmed(outcomes).is_some() {
            let mut batch = Batch::progress();
            run.store_outcomes(outcomes, &mut batch);
            store_unconfirmed(&room, batch, run.held_keys());
        }
        if let Some(problem) = run.strict_refusal(outcomes) {
            return Err(problem);
        }
    }
    // Of several the least: each was counted after the one before.
    let left = result.iter().flatten().flatten().map(|accepted| accepted.remaining);
    let left = left.min_by_key(|left| (left.day, left.month)).unwrap_or_default();
    let sent = result.map(|outcomes| BatchResponse::from_results(&run.entries(&outcomes)));
    Ok(finish(run.slot.as_deref(), &room, sent).await?.with_quota(left))
}
