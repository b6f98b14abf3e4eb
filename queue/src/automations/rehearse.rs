//! Rehearsing: one run of one automation, whatever its state, gone through at once for who tries it out.
//!
//! Delays and waits are passed over (nothing was received); conditions are asked. A dry run writes emails and
//! text messages and sends none; a test sends them. The run is shown and not kept, and nobody is told of it.

use mail::automation::Definition;
use mail::automation::context::{Context, Facts, Waited};
use mail::automation::definition::{Action, SendEmail};
use mail::automation::run::{Beginning, Mode, Run, Then};
use mail::id::{AutomationId, ProductEventId, RunId};
use mail::signal::Signal;
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::ReadError;
use thiserror::Error;

use super::letter::{self, Unwritten};
use super::sms::Text;
use super::step;
use crate::accept::Hall;
use crate::refusal::Refusal;

/// Why nothing was rehearsed.
#[derive(Debug, Error)]
pub enum RehearseError {
    /// There is no such automation.
    #[error("no such automation")]
    NotFound,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Hall {
    /// Goes through a run that this signal would start, to its end.
    ///
    /// # Errors
    /// [`RehearseError`].
    pub async fn rehearse(
        &self,
        tenant: &Tenant,
        automation: AutomationId,
        signal: &Signal<'_>,
        mode: Mode,
    ) -> Result<Run, RehearseError> {
        let account = tenant.account().id;
        let found = store::automation::get(self.store(), account, automation).await?;
        let automation = found.ok_or(RehearseError::NotFound)?.automation;
        // A draft's version may change: it is read anew.
        let version = store::automation::version(self.store(), account, automation.id, automation.version);
        let definition = version.await?.ok_or(RehearseError::NotFound)?.definition;
        let now = self.clock().now();
        let beginning = Beginning {
            id: RunId::new(now, self.entropy().id()),
            partition: 0,
            source: ProductEventId::from_bytes(signal.id).to_string(),
            event_name: signal.name,
            user_id: signal.user_id,
            email: signal.email,
            lineage: Vec::new(),
            at: now,
        };
        let (mut run, _) = Run::begin(&automation, &definition, beginning);
        let mut known = Context::new(Facts::from(signal));
        while run.status.is_active() {
            self.rehearse_step(tenant, (&mut run, &definition), &mut known, mode).await;
        }
        Ok(run)
    }

    async fn rehearse_step(
        &self,
        tenant: &Tenant,
        (run, definition): (&mut Run, &Definition),
        known: &mut Context,
        mode: Mode,
    ) {
        let now = self.clock().now();
        let Some(action) = definition.steps.get(run.index).map(|step| &step.action) else {
            drop(run.fail("there are no steps", now));
            return;
        };
        let outcome = match action {
            Action::Delay(delay) => step::delay_until(delay, known, now)
                .map(|until| (json!({"skipped": true, "until": mail::moment::write(until)}), Then::Next)),
            Action::WaitForEvent(_) => {
                known.wait = Some(Waited { received: false, facts: None });
                Ok((json!({"skipped": true, "received": false}), Then::Next))
            }
            Action::Condition(gate) => {
                let holds = step::holds(&gate.condition, known);
                Ok((json!({"result": holds}), step::after_gate(gate, holds)))
            }
            Action::SendEmail(email) => {
                self.rehearse_email(tenant, (run, email), known, mode).await.map(|shown| (shown, Then::Next))
            }
            Action::Sms(_) => match Self::text_of(action, known) {
                Some(Ok(text)) => self.rehearse_text(run, &text, mode).await.map(|shown| (shown, Then::Next)),
                Some(Err(error)) => Err(error),
                None => Err("there is no text".to_owned()),
            },
        };
        let now = self.clock().now();
        match outcome {
            Ok((output, then)) => drop(run.complete(output, then, now)),
            Err(error) => drop(run.fail(&error, now)),
        }
    }

    async fn rehearse_email(
        &self,
        tenant: &Tenant,
        (run, email): (&Run, &SendEmail),
        known: &Context,
        mode: Mode,
    ) -> Result<Value, String> {
        let written = letter::write(self, tenant, (run, email), known).await;
        let mut written = written.map_err(|error| match error {
            Unwritten::Never(error) | Unwritten::NotNow(error) => error,
            // A rehearsal answers nothing that was received.
            Unwritten::Withheld(why) => why.word().to_owned(),
        })?;
        let mut shown = written.shown;
        if mode != Mode::TestSend {
            return Ok(shown);
        }
        // There is no run that it could be found by.
        written.draft.wishes.run = None;
        match self.accept(tenant, written.draft).await {
            Ok(accepted) => shown["email_id"] = json!(accepted.id),
            Err(Refusal::Blocked { id, .. }) => {
                shown["suppressed"] = json!(true);
                shown["email_id"] = json!(id);
            }
            Err(refusal) => return Err(refusal.to_string()),
        }
        Ok(shown)
    }

    async fn rehearse_text(&self, run: &Run, text: &Text, mode: Mode) -> Result<Value, String> {
        let mut shown = text.shown();
        if mode != Mode::TestSend {
            return Ok(shown);
        }
        let gate = self.automations().0.sms.get().ok_or("no provider of text messages is configured")?;
        let answer = gate.post(text, format!("{}-{}", run.id, run.index)).await;
        let answer = answer.map_err(|error| format!("the provider did not answer: {error}"))?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("the provider answered {}", answer.status));
        }
        shown["status"] = json!("sent");
        Ok(shown)
    }
}
