//! Sending: the email of a step goes the way of all mail, and the step is done in the commit that accepts it.
//!
//! Suppressed recipients are no error of the run: the step says so and the run goes on. What passes by itself (no
//! room, a plan's cap) is tried again for a day; what does not ends the run.
//!
//! A received email is answered once in an hour for each author and automation, whatever comes meanwhile: two machines
//! that answer one another, and say nothing of it, stay at that (RFC 3834 2).

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use mail::automation::context::RunContext;
use mail::automation::definition::SendEmailStep;
use mail::automation::person::{self, PersonKey};
use mail::automation::run::AutomationRun;
use mail::received::{AutoReplyContext, AutoReplyRefusal};
use serde_json::{Value, json};
use store::access::{AccessError, Tenant};
use store::engine::{Batch, ReadError};
use store::run::StoredRun;
use store::run::by::LastAnswer;

use super::letter::{self, RenderEmailError, StepEmail};
use super::step::{self, RunUpdate};
use crate::accept::{Intake, SubmitReceipt};
use crate::refusal::SubmitError;

/// How long an author is not answered again.
const ANSWER_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// What came of a step that was tried.
pub(super) enum StepCommit {
    /// It is committed.
    Committed,
    /// The run is not as it was read.
    Conflict,
    /// The store takes nothing, or nobody knows whether it did: it is looked at again soon.
    Retry,
}

impl Intake {
    /// Does a step that sends an email.
    pub(super) async fn run_email_step(
        &self,
        found: &StoredRun,
        email: &SendEmailStep,
        known: &RunContext,
    ) -> Result<StepCommit, ReadError> {
        let now = self.clock().now();
        let run = &found.run;
        let (known, answered) = self.limit_answer_rate(run, known, now).await?;
        let written = match self.run_tenant(run).await {
            Ok(tenant) => {
                letter::render_email(self, &tenant, (run, email), &known).await.map(|written| (tenant, written))
            }
            Err(unwritten) => Err(unwritten),
        };
        let (tenant, StepEmail { draft, answers, withheld, .. }) = match written {
            Ok(written) => written,
            Err(RenderEmailError::Withheld(why)) => {
                let output = json!({"withheld": why.word()});
                return self.commit_run_update(found, step::complete_step(run.clone(), output, now)).await;
            }
            Err(RenderEmailError::Permanent(why)) => {
                return self.commit_run_update(found, step::fail_step(run.clone(), &why, now)).await;
            }
            Err(RenderEmailError::Transient(why)) => {
                return self.commit_run_update(found, step::defer_step(run.clone(), &why, now)).await;
            }
        };
        let also = |outcomes: &[Result<SubmitReceipt, SubmitError>], batch: &mut Batch| {
            if let Some(outcome) = outcomes.first() {
                self.automations().write_run_update(
                    found,
                    &email_step_update(run, (outcome, withheld), now),
                    now,
                    batch,
                );
                if let (true, Ok(_), Some((author, before))) = (answers, outcome, &answered) {
                    store::run::by::put_last_answer(batch, run, (*author, now), before);
                }
            }
        };
        match self.submit_batch(&tenant, vec![draft], false, &also).await {
            Ok(outcomes) if matches!(outcomes.first(), Some(Err(SubmitError::Unconfirmed { .. }))) => {
                Ok(StepCommit::Retry)
            }
            Ok(_) => Ok(StepCommit::Committed),
            Err(SubmitError::DoneConcurrently) => Ok(StepCommit::Conflict),
            Err(_) => Ok(StepCommit::Retry),
        }
    }

    /// What a run knows, with the answer to its author held back that would follow another run's too soon; and the
    /// last answer to that author.
    async fn limit_answer_rate<'a>(
        &self,
        run: &AutomationRun,
        known: &'a RunContext,
        now: Timestamp,
    ) -> Result<(Cow<'a, RunContext>, Option<(PersonKey, LastAnswer)>), ReadError> {
        let open = known.answering.as_ref().filter(|known| known.unanswerable.is_none());
        let Some(author) = open.and_then(|known| known.author.as_ref()) else {
            return Ok((Cow::Borrowed(known), None));
        };
        let author = person::email_key(&author.to_canonical().to_string());
        let before = store::run::by::find_last_answer(self.store(), (run.account, run.automation), author).await?;
        let lately =
            before.last.is_some_and(|last| last.run != run.id && now.duration_since(last.at).abs() < ANSWER_INTERVAL);
        let known = match &known.answering {
            Some(answering) if lately => {
                let unanswerable = Some(AutoReplyRefusal::AnsweredLately);
                let answering = Some(AutoReplyContext { unanswerable, ..answering.clone() });
                Cow::Owned(RunContext { answering, ..known.clone() })
            }
            _ => Cow::Borrowed(known),
        };
        Ok((known, Some((author, before))))
    }

    pub(super) async fn run_tenant(&self, run: &AutomationRun) -> Result<Tenant, RenderEmailError> {
        store::access::service_tenant(self.store(), run.account).await.map_err(|error| match error {
            AccessError::Unavailable(error) => RenderEmailError::Transient(error.to_string()),
            error => RenderEmailError::Permanent(error.to_string()),
        })
    }
}

/// What a run comes to when its email was accepted, or was not.
fn email_step_update(
    run: &AutomationRun,
    (outcome, withheld): (&Result<SubmitReceipt, SubmitError>, Option<AutoReplyRefusal>),
    now: Timestamp,
) -> RunUpdate {
    let run = run.clone();
    let output = |mut output: Value| {
        if let Some(why) = withheld {
            output["withheld"] = json!(why.word());
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
