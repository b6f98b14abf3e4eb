//! Dry run: executes one run of an automation at once, whatever the automation's status, so that users can test it.
//!
//! Delays and waits are skipped (a wait counts as timed out); conditions are evaluated. A dry run renders emails and
//! text messages without sending them, and says whether an email would be suppressed; a test sends them. The run is
//! returned, not stored, and records no events. The whole run has one time.

use jiff::Timestamp;
use model::automation::context::{EventFacts, RunContext, WaitResult};
use model::automation::definition::{SendEmailStep, StepAction};
use model::automation::run::{AutomationRun, NextStep, RunMode, RunStart};
use model::automation::{Automation, AutomationDefinition};
use model::id::{AutomationId, ProductEventId, RunId};
use model::trigger_event::TriggerEvent;
use queue::intake::submit_error::SubmitError;
use queue::intake::would_be_suppressed;
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::ReadError;
use thiserror::Error;

use super::render_email::{self, RenderEmailError};
use super::runner::AutomationRunner;
use super::sms_provider::SmsMessage;
use super::step;

/// Why no dry run was made.
#[derive(Debug, Error)]
pub enum DryRunError {
    #[error("automation not found")]
    NotFound,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The circumstances of a dry run.
#[derive(Debug, Clone, Copy)]
pub struct DryRun<'a> {
    pub tenant: &'a Tenant,
    pub mode: RunMode,
    /// The time of the run and of all its steps.
    pub now: Timestamp,
}

impl AutomationRunner {
    /// Executes a run that this signal would start, to its end.
    ///
    /// # Errors
    /// The automation does not exist, or the store cannot be read.
    pub async fn dry_run(
        &self,
        tenant: &Tenant,
        automation: AutomationId,
        signal: &TriggerEvent<'_>,
        mode: RunMode,
    ) -> Result<AutomationRun, DryRunError> {
        let account = tenant.account().id;
        let found = store::automation::get(&self.services.store, account, automation).await?;
        let automation = found.ok_or(DryRunError::NotFound)?.automation;
        // The version of a draft can change: bypass the cache.
        let version = store::automation::get_version(&self.services.store, account, automation.id, automation.version);
        let definition = version.await?.ok_or(DryRunError::NotFound)?.definition;
        let dry_run = DryRun { tenant, mode, now: self.services.clock.now() };
        Ok(self.dry_run_definition(&dry_run, &automation, &definition, signal).await)
    }

    /// Executes a run of a definition, which need not be stored, to its end.
    pub async fn dry_run_definition(
        &self,
        dry_run: &DryRun<'_>,
        automation: &Automation,
        definition: &AutomationDefinition,
        signal: &TriggerEvent<'_>,
    ) -> AutomationRun {
        let now = dry_run.now;
        let start = RunStart {
            id: RunId::new(now, self.services.entropy.unique_bits()),
            partition: 0,
            source: ProductEventId::from_bytes(signal.id).to_string(),
            event_name: signal.name,
            user_id: signal.user_id,
            email: signal.email,
            lineage: Vec::new(),
            at: now,
        };
        let (mut run, _) = AutomationRun::begin(automation, definition, start);
        let mut run_context = RunContext::new(EventFacts::from(signal));
        while run.status.is_active() {
            self.dry_run_step(dry_run, &mut run, definition, &mut run_context).await;
        }
        run
    }

    async fn dry_run_step(
        &self,
        dry_run: &DryRun<'_>,
        run: &mut AutomationRun,
        definition: &AutomationDefinition,
        run_context: &mut RunContext,
    ) {
        let DryRun { mode, now, .. } = *dry_run;
        let Some(action) = definition.steps.get(run.index).map(|step| &step.action) else {
            drop(run.fail_step("the step does not exist", now));
            return;
        };
        let outcome = match action {
            StepAction::Delay(delay) => step::delay_until(delay, run_context, now)
                .map(|until| (json!({"skipped": true, "until": model::timestamp::to_rfc3339(until)}), NextStep::Next)),
            StepAction::WaitForEvent(_) => {
                run_context.wait = Some(WaitResult { received: false, facts: None });
                Ok((json!({"skipped": true, "received": false}), NextStep::Next))
            }
            StepAction::Condition(condition) => {
                let holds = step::condition_holds(&condition.condition, run_context);
                Ok((json!({"result": holds}), step::next_step_after(condition, holds)))
            }
            StepAction::SendEmail(email) => {
                self.dry_run_email(dry_run, run, email, run_context).await.map(|output| (output, NextStep::Next))
            }
            StepAction::Sms(sms) => match SmsMessage::render(sms, run_context) {
                Ok(text) => self.dry_run_sms(run, &text, mode).await.map(|output| (output, NextStep::Next)),
                Err(error) => Err(error),
            },
        };
        match outcome {
            Ok((output, next_step)) => drop(run.complete_step(output, next_step, now)),
            Err(error) => drop(run.fail_step(&error, now)),
        }
    }

    async fn dry_run_email(
        &self,
        dry_run: &DryRun<'_>,
        run: &AutomationRun,
        email: &SendEmailStep,
        run_context: &RunContext,
    ) -> Result<Value, String> {
        let DryRun { tenant, mode, now } = *dry_run;
        let rendered = render_email::render_email(&self.templates, tenant, run, email, run_context).await;
        let mut rendered = rendered.map_err(|error| match error {
            RenderEmailError::Permanent(error) | RenderEmailError::Transient(error) => error,
            // A dry run answers no received email.
            RenderEmailError::Withheld(reason) => reason.word().to_owned(),
        })?;
        let mut preview = rendered.preview;
        if mode != RunMode::TestSend {
            let suppressed = would_be_suppressed(&self.services.store, run.account, &rendered.draft, now).await;
            if suppressed.map_err(|error| error.to_string())? {
                preview["suppressed"] = json!(true);
            }
            return Ok(preview);
        }
        // The run is not stored, so the email cannot refer to it.
        rendered.draft.options.run = None;
        match self.intake.submit(tenant, rendered.draft).await {
            Ok(accepted) => preview["email_id"] = json!(accepted.id),
            Err(SubmitError::Suppressed { id, .. }) => {
                preview["suppressed"] = json!(true);
                preview["email_id"] = json!(id);
            }
            Err(refusal) => return Err(refusal.to_string()),
        }
        Ok(preview)
    }

    async fn dry_run_sms(&self, run: &AutomationRun, text: &SmsMessage, mode: RunMode) -> Result<Value, String> {
        let mut preview = text.preview();
        if mode != RunMode::TestSend {
            return Ok(preview);
        }
        let provider = self.engine.0.sms_provider.get().ok_or("no SMS provider is configured (`[sms]`)")?;
        let answer = provider.post_message(text, format!("{}-{}", run.id, run.index)).await;
        let answer = answer.map_err(|error| format!("the SMS provider did not respond: {error}"))?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("the SMS provider responded with status {}", answer.status));
        }
        preview["status"] = json!("sent");
        Ok(preview)
    }
}
