//! Rehearsing: one run of one automation, whatever its state, gone through at once for who tries it out.
//!
//! Delays and waits are passed over (nothing was received); conditions are asked. A dry run writes emails and
//! text messages and sends none; a test sends them. The run is shown and not kept, and nobody is told of it.

use mail::automation::AutomationDefinition;
use mail::automation::context::{EventFacts, RunContext, WaitResult};
use mail::automation::definition::{SendEmailStep, StepAction};
use mail::automation::run::{AutomationRun, NextStep, RunMode, RunStart};
use mail::id::{AutomationId, ProductEventId, RunId};
use mail::signal::TriggerEvent;
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::ReadError;
use thiserror::Error;

use super::letter::{self, RenderEmailError};
use super::sms::SmsMessage;
use super::step;
use crate::accept::Intake;
use crate::refusal::SubmitError;

/// Why nothing was rehearsed.
#[derive(Debug, Error)]
pub enum DryRunError {
    /// There is no such automation.
    #[error("no such automation")]
    NotFound,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Intake {
    /// Goes through a run that this signal would start, to its end.
    ///
    /// # Errors
    /// [`RehearseError`].
    pub async fn dry_run(
        &self,
        tenant: &Tenant,
        automation: AutomationId,
        signal: &TriggerEvent<'_>,
        mode: RunMode,
    ) -> Result<AutomationRun, DryRunError> {
        let account = tenant.account().id;
        let found = store::automation::get(self.store(), account, automation).await?;
        let automation = found.ok_or(DryRunError::NotFound)?.automation;
        // A draft's version may change: it is read anew.
        let version = store::automation::get_version(self.store(), account, automation.id, automation.version);
        let definition = version.await?.ok_or(DryRunError::NotFound)?.definition;
        let now = self.clock().now();
        let beginning = RunStart {
            id: RunId::new(now, self.entropy().unique_bits()),
            partition: 0,
            source: ProductEventId::from_bytes(signal.id).to_string(),
            event_name: signal.name,
            user_id: signal.user_id,
            email: signal.email,
            lineage: Vec::new(),
            at: now,
        };
        let (mut run, _) = AutomationRun::begin(&automation, &definition, beginning);
        let mut known = RunContext::new(EventFacts::from(signal));
        while run.status.is_active() {
            self.dry_run_step(tenant, (&mut run, &definition), &mut known, mode).await;
        }
        Ok(run)
    }

    async fn dry_run_step(
        &self,
        tenant: &Tenant,
        (run, definition): (&mut AutomationRun, &AutomationDefinition),
        known: &mut RunContext,
        mode: RunMode,
    ) {
        let now = self.clock().now();
        let Some(action) = definition.steps.get(run.index).map(|step| &step.action) else {
            drop(run.fail_step("there are no steps", now));
            return;
        };
        let outcome = match action {
            StepAction::Delay(delay) => step::delay_until(delay, known, now)
                .map(|until| (json!({"skipped": true, "until": mail::moment::to_rfc3339(until)}), NextStep::Next)),
            StepAction::WaitForEvent(_) => {
                known.wait = Some(WaitResult { received: false, facts: None });
                Ok((json!({"skipped": true, "received": false}), NextStep::Next))
            }
            StepAction::Condition(gate) => {
                let holds = step::condition_holds(&gate.condition, known);
                Ok((json!({"result": holds}), step::next_step_after(gate, holds)))
            }
            StepAction::SendEmail(email) => {
                self.dry_run_email(tenant, (run, email), known, mode).await.map(|shown| (shown, NextStep::Next))
            }
            StepAction::Sms(_) => match Self::render_sms(action, known) {
                Some(Ok(text)) => self.dry_run_sms(run, &text, mode).await.map(|shown| (shown, NextStep::Next)),
                Some(Err(error)) => Err(error),
                None => Err("there is no text".to_owned()),
            },
        };
        let now = self.clock().now();
        match outcome {
            Ok((output, then)) => drop(run.complete_step(output, then, now)),
            Err(error) => drop(run.fail_step(&error, now)),
        }
    }

    async fn dry_run_email(
        &self,
        tenant: &Tenant,
        (run, email): (&AutomationRun, &SendEmailStep),
        known: &RunContext,
        mode: RunMode,
    ) -> Result<Value, String> {
        let written = letter::render_email(self, tenant, (run, email), known).await;
        let mut written = written.map_err(|error| match error {
            RenderEmailError::Permanent(error) | RenderEmailError::Transient(error) => error,
            // A rehearsal answers nothing that was received.
            RenderEmailError::Withheld(why) => why.word().to_owned(),
        })?;
        let mut shown = written.preview;
        if mode != RunMode::TestSend {
            return Ok(shown);
        }
        // There is no run that it could be found by.
        written.draft.options.run = None;
        match self.submit(tenant, written.draft).await {
            Ok(accepted) => shown["email_id"] = json!(accepted.id),
            Err(SubmitError::Suppressed { id, .. }) => {
                shown["suppressed"] = json!(true);
                shown["email_id"] = json!(id);
            }
            Err(refusal) => return Err(refusal.to_string()),
        }
        Ok(shown)
    }

    async fn dry_run_sms(&self, run: &AutomationRun, text: &SmsMessage, mode: RunMode) -> Result<Value, String> {
        let mut shown = text.preview();
        if mode != RunMode::TestSend {
            return Ok(shown);
        }
        let gate = self.automations().0.sms_provider.get().ok_or("no provider of text messages is configured")?;
        let answer = gate.post_message(text, format!("{}-{}", run.id, run.index)).await;
        let answer = answer.map_err(|error| format!("the provider did not answer: {error}"))?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("the provider answered {}", answer.status));
        }
        shown["status"] = json!("sent");
        Ok(shown)
    }
}
