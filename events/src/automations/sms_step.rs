//! Text messages: posted to the operator's provider as `{to, from, body}` with a bearer token.
//!
//! ```text
//! due ─►[ next retry in a minute ]─► post ─► 2xx completed · 4xx failed · otherwise retried
//! ```
//!
//! A request can take seconds, so the attempt is committed first: after a crash during the request, the step is
//! retried. The provider sees one `idempotency-key` for all attempts of a step.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::automation::AutomationDefinition;
use model::automation::context::RunContext;
use model::automation::definition::SmsStep;
use model::automation::run::AutomationRun;
use net::http_client::{HttpClientError, HttpResponse};
use serde_json::json;
use store::automation_run::{RunKey, StoredRun};
use store::engine::ReadError;

use super::email_step::StepCommit;
use super::runner::AutomationRunner;
use super::sms_provider::SmsMessage;
use super::step::{self, RunUpdate};

/// Retry delay of an attempt whose result is unknown.
const UNCONFIRMED_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Retry delay when all request permits are taken.
const PERMIT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Commits tried when the run changes concurrently.
const TRIES_MAX: usize = 5;

/// Idempotency key of all attempts of a step.
fn step_idempotency_key(run: &AutomationRun) -> String {
    format!("{}-{}", run.id, run.index)
}

impl AutomationRunner {
    /// Executes a step that sends a text message: commits the attempt, then posts in the background.
    pub(super) async fn run_sms_step(
        &self,
        found: &StoredRun,
        definition: &Arc<AutomationDefinition>,
        sms: &SmsStep,
        run_context: &RunContext,
    ) -> Result<StepCommit, ReadError> {
        let now = self.services.clock.now();
        let run = &found.run;
        let text = match SmsMessage::render(sms, run_context) {
            Ok(text) => text,
            Err(reason) => return self.commit_run_update(found, step::fail_step(run.clone(), &reason, now)).await,
        };
        let Some(provider) = self.engine.0.sms_provider.get().cloned() else {
            let reason = "no SMS provider is configured (`[sms]`)";
            return self.commit_run_update(found, step::fail_step(run.clone(), reason, now)).await;
        };
        let permit = Arc::clone(&self.engine.0.sms_permits).try_acquire_owned();
        let wait = if permit.is_ok() { UNCONFIRMED_RETRY_DELAY } else { PERMIT_RETRY_DELAY };
        let update = self.defer_step(run, wait, now);
        let tries = update.run.tries;
        let committed = self.commit_run_update(found, update).await?;
        if let (StepCommit::Committed, Ok(permit)) = (&committed, permit) {
            let (runner, run_key, key) = (self.clone(), store::automation_run::run_key(run), step_idempotency_key(run));
            let (definition, run_context) = (Arc::clone(definition), run_context.clone());
            self.services.spawn(async move {
                let outcome = provider.post_message(&text, key).await;
                let committed = runner.commit_sms_result(run_key, tries, &outcome, &definition, &run_context).await;
                if let Err(error) = committed {
                    // The next attempt repeats the request with the same key.
                    store::warn_unless_away!(runner.services.store, %error, run.id = %run_key.2, "cannot commit the result of a text message; it will be retried");
                }
                drop(permit);
            });
        }
        Ok(committed)
    }

    fn defer_step(&self, run: &AutomationRun, wait: Duration, now: Timestamp) -> RunUpdate {
        let mut run = run.clone();
        let tries = run.tries;
        run.defer_step(now.checked_add(wait).unwrap_or(Timestamp::MAX), now);
        if wait == PERMIT_RETRY_DELAY {
            run.tries = tries;
        }
        RunUpdate { run, facts: Vec::new(), run_context: None }
    }

    /// Commits the provider's response to an attempt.
    async fn commit_sms_result(
        &self,
        run_key: RunKey,
        tries: u32,
        outcome: &Result<HttpResponse, HttpClientError>,
        definition: &AutomationDefinition,
        run_context: &RunContext,
    ) -> Result<(), ReadError> {
        for _ in 0..TRIES_MAX {
            let Some(found) = store::automation_run::get(&self.services.store, run_key).await? else { return Ok(()) };
            let run = &found.run;
            // Cancelled, or already retried as unconfirmed.
            if !run.status.is_active() || run.tries != tries {
                return Ok(());
            }
            let now = self.services.clock.now();
            let update = match outcome {
                Ok(answer) if (200..300).contains(&answer.status) => {
                    let update = step::complete_step(run.clone(), json!({"status": "sent"}), now);
                    // The automation may have been paused meanwhile; the runner then holds the run.
                    match self.engine.is_active(run, &mut HashMap::new()).await? {
                        true => update.with_next_steps(definition, run_context, now),
                        false => update,
                    }
                }
                Ok(answer) if (400..500).contains(&answer.status) && !is_transient_status(answer.status) => {
                    step::fail_step(
                        run.clone(),
                        &format!("the SMS provider responded with status {}", answer.status),
                        now,
                    )
                }
                other => {
                    let reason = match other {
                        Ok(answer) => format!("the SMS provider responded with status {}", answer.status),
                        Err(error) => format!("the SMS provider did not respond: {error}"),
                    };
                    let mut update = step::defer_step(run.clone(), &reason, now);
                    // This attempt was counted when it began.
                    update.run.tries = tries;
                    update
                }
            };
            match self.commit_run_update(&found, update).await? {
                StepCommit::Conflict => {}
                StepCommit::Committed | StepCommit::Retry => return Ok(()),
            }
        }
        Ok(())
    }
}

/// 4xx statuses that are worth a retry.
fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429)
}
