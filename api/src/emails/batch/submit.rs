//! Sends a batch: submits all valid emails in one commit, together with the responses stored under their keys.
//!
//! ```text
//! batch key ─► completed? replay; partly completed? final entries are reused
//! each open item ─► own key: sent before? ─► template ─► draft ─┐
//! drafts ─► intake ─[ emails + response per key + batch response ]─► entries ◄─ earlier errors
//! ```
//!
//! An email with a transient error (429, 503) remains open under the batch's key. Repeating the batch with the same key
//! submits only the open emails and responds for all of them.

use model::approval::CONTENT_BYTES_MAX;
use model::draft::Draft;
use model::idempotency::{IdempotencyScope, IdempotentResult};
use net::limit::memory_budget::{BUDGET_WAIT_MAX, MemoryAllowance, MemoryHolder, MemoryShare};
use queue::intake::SubmitReceipt;
use queue::intake::idempotency::{IdempotencyGuard, InProgressHold};
use queue::intake::submit_error::SubmitError;
use tokio::time::Instant;

use super::BatchRequest;
use super::response::{BatchEntry, BatchResponse, batch_outcome};
use crate::emails::send::{SendRequest, SendResponse};
use crate::idempotency::{self, IdempotentResponse, RequestDecision, finish, store_unconfirmed, stored_outcome};
use crate::prelude::*;

/// An email of the batch before the intake's result.
enum BatchItem {
    /// The result is known without the intake: an error or a replay.
    Settled(Result<BatchEntry>),
    /// Submitted to the intake, with its warnings and the guard of its own key.
    Submitted(Vec<String>, Option<Box<IdempotencyGuard>>),
}

/// A batch in progress.
struct BatchSubmission<'a> {
    state: &'a AppState,
    strict: bool,
    slot: Option<Box<IdempotencyGuard>>,
    items: Vec<BatchItem>,
    now: Timestamp,
}

type SubmitResults = [Result<SubmitReceipt, SubmitError>];

impl BatchSubmission<'_> {
    /// The entries. Emails that the intake did not process because another one failed have none.
    fn entries(&self, outcomes: &SubmitResults) -> Vec<Result<BatchEntry>> {
        let mut outcomes = outcomes.iter();
        let entry = |(index, item): (usize, &BatchItem)| match item {
            BatchItem::Settled(result) => Some(result.clone()),
            BatchItem::Submitted(warnings, _) => outcomes.next().map(|outcome| match outcome {
                Ok(accepted) => Ok(BatchEntry::from_accepted(index, accepted, warnings)),
                Err(refusal) => Err(refusal.clone().into_problem(self.state)),
            }),
        };
        self.items.iter().enumerate().filter_map(entry).collect()
    }

    /// In strict mode, one problem with the errors of all emails; `None` if no email has failed.
    fn strict_refusal(&self, outcomes: &SubmitResults) -> Option<Problem> {
        let mut outcomes = outcomes.iter();
        let problem = |(index, item): (usize, &BatchItem)| match item {
            BatchItem::Settled(result) => Some((index, result.clone().err()?)),
            BatchItem::Submitted(..) => Some((index, outcomes.next()?.clone().err()?.into_problem(self.state))),
        };
        let problems: Vec<_> = self.items.iter().enumerate().filter_map(problem).collect();
        (self.strict && !problems.is_empty()).then(|| Problem::from_batch(&problems))
    }

    /// Adds the responses to the commit, under the batch's key and the emails' keys.
    fn store_outcomes(&self, outcomes: &SubmitResults, batch: &mut Batch) {
        let submitted = self.items.iter().filter_map(|item| match item {
            BatchItem::Submitted(warnings, guard) => Some((warnings, guard)),
            BatchItem::Settled(_) => None,
        });
        for ((warnings, guard), outcome) in submitted.zip(outcomes) {
            let stored = match outcome {
                Ok(accepted) => stored_outcome(&SendResponse::from_accepted(accepted, warnings)),
                Err(SubmitError::Unconfirmed { id }) => IdempotentResult::Unconfirmed(*id),
                Err(_) => continue,
            };
            if let Some(guard) = guard {
                guard.record_outcome(batch, stored, self.now);
            }
        }
        let Some(guard) = &self.slot else { return };
        let stored = match first_unconfirmed(outcomes) {
            // In strict mode the response reports only the unconfirmed email.
            Some(id) if self.strict => IdempotentResult::Unconfirmed(id),
            _ => batch_outcome(&self.entries(outcomes)),
        };
        guard.record_outcome(batch, stored, self.now);
    }

    /// The in-progress marks of all keys of the batch.
    fn held_keys(&self) -> Vec<InProgressHold> {
        let guards = self.items.iter().filter_map(|item| match item {
            BatchItem::Submitted(_, guard) => guard.as_ref(),
            BatchItem::Settled(_) => None,
        });
        guards.chain(&self.slot).map(|guard| guard.hold.clone()).collect()
    }
}

/// The first email whose commit could not be confirmed.
fn first_unconfirmed(outcomes: &SubmitResults) -> Option<model::id::EmailId> {
    outcomes.iter().find_map(|outcome| match outcome {
        Err(SubmitError::Unconfirmed { id }) => Some(*id),
        _ => None,
    })
}

/// The memory of rendered emails: a small request can name a large template a hundred times.
struct RenderedMemory {
    allowance: MemoryAllowance,
    share: MemoryShare,
    /// End of all waits for memory.
    deadline: Instant,
    is_refused: bool,
}

impl RenderedMemory {
    fn new(allowance: MemoryAllowance) -> Self {
        let deadline = Instant::now() + BUDGET_WAIT_MAX;
        Self { allowance, share: MemoryShare::default(), deadline, is_refused: false }
    }

    /// Charges an email to the account until the batch ends. A refusal ends the batch and releases its share, so that
    /// two batches do not wait for each other.
    async fn charge(&mut self, draft: &Draft) -> Result<()> {
        let is_charged = self.allowance.grow_until(&mut self.share, draft.text_bytes(), self.deadline).await;
        if !is_charged {
            self.share = MemoryShare::default();
            self.is_refused = true;
            return Err(Problem::busy());
        }
        Ok(())
    }
}

/// Prepares one email; returns its draft if it is to be submitted.
async fn prepare_item(
    state: &AppState,
    tenant: &Tenant,
    index: usize,
    item: Result<SendRequest>,
    memory: &mut RenderedMemory,
) -> (BatchItem, Option<Draft>) {
    let prepared = async {
        let SendRequest { email, mut warnings, claim } = item?;
        let guard = match idempotency::begin(state, tenant, IdempotencyScope::SendItem, claim).await? {
            RequestDecision::Replay(body) => {
                return BatchEntry::from_stored(index, &body).map(|entry| (BatchItem::Settled(Ok(entry)), None));
            }
            RequestDecision::Proceed(guard) => guard,
        };
        // The texts of other emails are charged with the body.
        let is_rendered = email.template.is_some();
        let draft = email.into_draft(state, tenant, &mut warnings).await?;
        if is_rendered {
            memory.charge(&draft).await?;
        }
        Ok((BatchItem::Submitted(warnings, guard), Some(draft)))
    };
    prepared.await.unwrap_or_else(|problem| (BatchItem::Settled(Err(problem)), None))
}

/// `POST /emails/batch`.
///
/// # Errors
/// Errors of the whole request; errors of single emails are in their entries.
pub async fn send_batch(
    state: State,
    tenant: Tenant,
    request: BatchRequest,
) -> Result<IdempotentResponse<BatchResponse>> {
    let BatchRequest { items, strict, claim } = request;
    let guard = match idempotency::begin(&state, &tenant, IdempotencyScope::SendBatch, claim).await? {
        RequestDecision::Replay(body) => return Ok(IdempotentResponse::replay(body)),
        RequestDecision::Proceed(guard) => guard,
    };
    let mut settled = match guard.as_ref().and_then(|guard| guard.partial.as_ref()) {
        Some(before) => BatchResponse::settled_entries(before)?.into_iter(),
        None => Vec::new().into_iter(),
    };
    let (mut prepared, mut drafts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    let holder = MemoryHolder::Account(tenant.account().id);
    let mut memory = RenderedMemory::new(state.memory_budget.allowance(holder));
    for (index, item) in items.into_iter().enumerate() {
        let (batch_item, draft) = match settled.next().flatten() {
            Some(entry) => (BatchItem::Settled(Ok(entry)), None),
            None => prepare_item(&state, &tenant, index, item, &mut memory).await,
        };
        if memory.is_refused {
            return Err(Problem::busy());
        }
        prepared.push(batch_item);
        drafts.extend(draft);
    }
    let run = BatchSubmission { state: &state, strict, slot: guard, items: prepared, now: state.services.clock.now() };
    if let Some(problem) = run.strict_refusal(&[]) {
        return Err(problem);
    }
    let extend_commit = |outcomes: &SubmitResults, batch: &mut Batch| run.store_outcomes(outcomes, batch);
    let result = state.accounts.intake.submit_batch(&tenant, drafts, strict, &extend_commit).await;
    if let Ok(outcomes) = &result {
        if first_unconfirmed(outcomes).is_some() {
            let mut batch = Batch::progress();
            run.store_outcomes(outcomes, &mut batch);
            store_unconfirmed(&state, batch, run.held_keys());
        }
        if let Some(problem) = run.strict_refusal(outcomes) {
            return Err(problem);
        }
    }
    // The lowest remaining quota: each email was counted after the one before.
    let remaining = result.iter().flatten().flatten().map(|accepted| accepted.remaining);
    let remaining = remaining.min_by_key(|remaining| (remaining.day, remaining.month)).unwrap_or_default();
    let sent = result.map(|outcomes| BatchResponse::from_results(&run.entries(&outcomes)));
    Ok(finish(run.slot.as_deref(), &state, sent).await?.with_quota(remaining))
}

/// The emails of a request of `POST /emails/batch`.
///
/// # Errors
/// The errors of all emails that are invalid or whose template cannot be rendered: a batch that waits for approval is
/// valid as a whole. 413 once they are larger than what an approval may hold.
pub async fn resolve_batch(state: State, tenant: Tenant, request: BatchRequest) -> Result<Vec<Draft>> {
    let mut bytes = 0;
    let (mut drafts, mut problems) = (Vec::with_capacity(request.items.len()), Vec::new());
    for (index, item) in request.items.into_iter().enumerate() {
        let resolved = match item {
            Ok(SendRequest { email, mut warnings, .. }) => email.into_draft(&state, &tenant, &mut warnings).await,
            Err(problem) => Err(problem),
        };
        match resolved {
            Ok(draft) => {
                bytes += draft.text_bytes();
                drafts.push(draft);
            }
            Err(problem) => problems.push((index, problem)),
        }
        if bytes > CONTENT_BYTES_MAX {
            return Err(Problem::held_content_too_large());
        }
    }
    if problems.is_empty() { Ok(drafts) } else { Err(Problem::from_batch(&problems)) }
}

#[cfg(test)]
mod tests {
    use message::address::Mailbox;
    use model::id::AccountId;
    use net::limit::memory_budget::MemoryBudget;

    use super::*;
    use crate::emails::send_email::SendEmail;

    #[tokio::test(start_paused = true)]
    async fn rendered_emails_are_charged_until_the_batch_ends() {
        let budget = MemoryBudget::new(10 << 20, 0);
        let allowance = budget.allowance(MemoryHolder::Account(AccountId::from_bytes([1; 16])));
        let (mut memory, begun_at) = (RenderedMemory::new(allowance), Instant::now());
        let email = || SendEmail {
            from: Some(Mailbox { name: None, address: "a@example.com".parse().unwrap() }),
            subject: Some("s".to_owned()),
            html: Some("x".repeat(1 << 20)),
            ..SendEmail::default()
        };
        let mut charged = 0;
        while memory.charge(&email().into_draft_without_template().unwrap()).await.is_ok() {
            charged += 1;
        }
        assert_eq!(charged, 3, "half of the pool for large requests");
        assert!(memory.is_refused && memory.charge(&email().into_draft_without_template().unwrap()).await.is_ok());
        assert!(begun_at.elapsed() < BUDGET_WAIT_MAX * 2, "one wait for all emails");
        drop(memory);
        assert_eq!(budget.available_bytes(), 10 << 20);
    }
}
