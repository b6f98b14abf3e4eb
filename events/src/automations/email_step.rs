//! The email of a step: submitted through intake like all mail, and the step completes in the commit that accepts it.
//!
//! Suppressed recipients do not fail the run: the step's output names them and the run continues. Transient refusals
//! (disk full, a plan's cap) are retried for a day; others fail the run.
//!
//! One automation answers an author at most once an hour, so that two auto-responders that do not declare themselves do
//! not loop (RFC 3834 2).

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use message::received::AutoReplyRefusal;
use model::automation::AutomationDefinition;
use model::automation::context::RunContext;
use model::automation::definition::SendEmailStep;
use model::automation::person_key::{self, PersonKey};
use model::automation::run::AutomationRun;
use model::received::AutoReplyContext;
use queue::intake::SubmitReceipt;
use queue::intake::submit_error::SubmitError;
use serde_json::{Value, json};
use store::access::{AccessError, Tenant};
use store::automation_run::StoredRun;
use store::automation_run::run_indexes::LastAnswer;
use store::engine::{Batch, ReadError};

use super::render_email::{self, RenderEmailError, StepEmail};
use super::runner::AutomationRunner;
use super::step::{self, RunUpdate};

/// Minimum time between two automatic replies to an author.
const ANSWER_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// Result of committing a step.
pub(super) enum StepCommit {
    Committed,
    /// The run changed since it was read.
    Conflict,
    /// The store refused the commit or its result is unknown: retry soon.
    Retry,
}

impl AutomationRunner {
    /// Executes a step that sends an email.
    pub(super) async fn run_email_step(
        &self,
        found: &StoredRun,
        definition: &AutomationDefinition,
        email: &SendEmailStep,
        run_context: &RunContext,
    ) -> Result<StepCommit, ReadError> {
        let now = self.services.clock.now();
        let run = &found.run;
        let (run_context, last_answer) = self.limit_answer_rate(run, run_context, now).await?;
        let rendered = match self.run_tenant(run).await {
            Ok(tenant) => render_email::render_email(&self.templates, &tenant, run, email, &run_context)
                .await
                .map(|rendered| (tenant, rendered)),
            Err(unwritten) => Err(unwritten),
        };
        let (tenant, StepEmail { draft, answers, withheld, .. }) = match rendered {
            Ok(rendered) => rendered,
            Err(RenderEmailError::Withheld(reason)) => {
                let update = step::complete_step(run.clone(), json!({"withheld": reason.word()}), now);
                return self.commit_run_update(found, update.with_next_steps(definition, &run_context, now)).await;
            }
            Err(RenderEmailError::Permanent(reason)) => {
                return self.commit_run_update(found, step::fail_step(run.clone(), &reason, now)).await;
            }
            Err(RenderEmailError::Transient(reason)) => {
                return self.commit_run_update(found, step::defer_step(run.clone(), &reason, now)).await;
            }
        };
        let extend_commit = |outcomes: &[Result<SubmitReceipt, SubmitError>], batch: &mut Batch| {
            if let Some(outcome) = outcomes.first() {
                let update = email_step_update(run, outcome, withheld, now);
                let update = update.with_next_steps(definition, &run_context, now);
                self.engine.write_run_update(found, &update, now, batch);
                if let (true, Ok(_), Some((author, previous))) = (answers, outcome, &last_answer) {
                    store::automation_run::run_indexes::put_last_answer(batch, run, *author, now, previous);
                }
            }
        };
        match self.intake.submit_batch(&tenant, vec![draft], false, &extend_commit).await {
            Ok(outcomes) if matches!(outcomes.first(), Some(Err(SubmitError::Unconfirmed { .. }))) => {
                Ok(StepCommit::Retry)
            }
            Ok(_) => Ok(StepCommit::Committed),
            Err(SubmitError::DoneConcurrently) => Ok(StepCommit::Conflict),
            Err(_) => Ok(StepCommit::Retry),
        }
    }

    /// Returns the run's context, with the reply withheld if another run answered the author within the interval; and
    /// the stored last reply to that author.
    async fn limit_answer_rate<'a>(
        &self,
        run: &AutomationRun,
        run_context: &'a RunContext,
        now: Timestamp,
    ) -> Result<(Cow<'a, RunContext>, Option<(PersonKey, LastAnswer)>), ReadError> {
        let open_reply = run_context.answering.as_ref().filter(|run_context| run_context.unanswerable.is_none());
        let Some(author) = open_reply.and_then(|run_context| run_context.author.as_ref()) else {
            return Ok((Cow::Borrowed(run_context), None));
        };
        let author = person_key::email_key(&author.to_canonical().to_string());
        let last_answer = store::automation_run::run_indexes::find_last_answer(
            &self.services.store,
            run.account,
            run.automation,
            author,
        )
        .await?;
        let is_recent = last_answer
            .last
            .is_some_and(|last| last.run != run.id && now.duration_since(last.at).abs() < ANSWER_INTERVAL);
        let run_context = match &run_context.answering {
            Some(answering) if is_recent => {
                let unanswerable = Some(AutoReplyRefusal::AnsweredLately);
                let answering = Some(AutoReplyContext { unanswerable, ..answering.clone() });
                Cow::Owned(RunContext { answering, ..run_context.clone() })
            }
            _ => Cow::Borrowed(run_context),
        };
        Ok((run_context, Some((author, last_answer))))
    }

    pub(super) async fn run_tenant(&self, run: &AutomationRun) -> Result<Tenant, RenderEmailError> {
        store::access::service_tenant(&self.services.store, run.account).await.map_err(|error| match error {
            AccessError::Unavailable(error) => RenderEmailError::Transient(error.to_string()),
            error => RenderEmailError::Permanent(error.to_string()),
        })
    }
}

/// State of the run after its email was accepted or refused.
fn email_step_update(
    run: &AutomationRun,
    outcome: &Result<SubmitReceipt, SubmitError>,
    withheld: Option<AutoReplyRefusal>,
    now: Timestamp,
) -> RunUpdate {
    let run = run.clone();
    let output = |mut output: Value| {
        if let Some(reason) = withheld {
            output["withheld"] = json!(reason.word());
        }
        output
    };
    match outcome {
        Ok(accepted) => step::complete_step(run, output(json!({"email_id": accepted.id})), now),
        Err(SubmitError::Suppressed { id, .. }) => {
            step::complete_step(run, output(json!({"suppressed": true, "email_id": id})), now)
        }
        Err(refusal) if is_transient(refusal) => step::defer_step(run, &refusal.to_string(), now),
        Err(refusal) => step::fail_step(run, &refusal.to_string(), now),
    }
}

fn is_transient(refusal: &SubmitError) -> bool {
    refusal.is_transient()
        || matches!(
            refusal,
            SubmitError::PlanLimit(_)
                | SubmitError::StorageFull(_)
                | SubmitError::SigningFailed
                | SubmitError::DoneConcurrently
        )
}
