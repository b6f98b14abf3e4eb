//! Sending: the email of a step goes the way of all mail, and the step is done in the commit that accepts it.
//!
//! Suppressed recipients are no error of the run: the step says so and the run goes on. What passes by itself (no
//! room, a plan's cap) is tried again for a day; what does not ends the run.

use jiff::Timestamp;
use mail::automation::context::Context;
use mail::automation::definition::SendEmail;
use mail::automation::run::Run;
use serde_json::json;
use store::access::{AccessError, Tenant};
use store::engine::{Batch, ReadError};
use store::run::Found;

use super::letter::{self, Unwritten};
use super::step::{self, Moved};
use crate::accept::{Accepted, Hall};
use crate::refusal::Refusal;

/// What came of a step that was tried.
pub(super) enum Tried {
    /// It is committed.
    Committed,
    /// The run is not as it was read.
    Changed,
    /// The store takes nothing, or nobody knows whether it did: it is looked at again soon.
    Again,
}

impl Hall {
    /// Does a step that sends an email.
    pub(super) async fn send_step(
        &self,
        found: &Found,
        email: &SendEmail,
        known: &Context,
    ) -> Result<Tried, ReadError> {
        let now = self.clock().now();
        let run = &found.run;
        let written = match self.tenant_of(run).await {
            Ok(tenant) => {
                letter::write(self, &tenant, (run, email), known).await.map(|written| (tenant, written.draft))
            }
            Err(unwritten) => Err(unwritten),
        };
        let (tenant, draft) = match written {
            Ok(written) => written,
            Err(Unwritten::Never(why)) => {
                return self.commit_moved(found, step::failed(run.clone(), &why, now)).await;
            }
            Err(Unwritten::NotNow(why)) => {
                return self.commit_moved(found, step::put_off(run.clone(), &why, now)).await;
            }
        };
        let also = |outcomes: &[Result<Accepted, Refusal>], batch: &mut Batch| {
            if let Some(outcome) = outcomes.first() {
                self.automations().write_moved(found, &moved(run, outcome, now), now, batch);
            }
        };
        match self.accept_many(&tenant, vec![draft], false, &also).await {
            Ok(outcomes) if matches!(outcomes.first(), Some(Err(Refusal::Unconfirmed { .. }))) => {
                Ok(Tried::Again)
            }
            Ok(_) => Ok(Tried::Committed),
            Err(Refusal::DoneMeanwhile) => Ok(Tried::Changed),
            Err(_) => Ok(Tried::Again),
        }
    }

    pub(super) async fn tenant_of(&self, run: &Run) -> Result<Tenant, Unwritten> {
        store::access::by_service(self.store(), run.account).await.map_err(|error| match error {
            AccessError::Unavailable(error) => Unwritten::NotNow(error.to_string()),
            error => Unwritten::Never(error.to_string()),
        })
    }
}

/// What a run comes to when its email was accepted, or was not.
fn moved(run: &Run, outcome: &Result<Accepted, Refusal>, now: Timestamp) -> Moved {
    let run = run.clone();
    match outcome {
        Ok(accepted) => step::done(run, json!({"email_id": accepted.id}), now),
        Err(Refusal::Blocked { id, .. }) => step::done(run, json!({"suppressed": true, "email_id": id}), now),
        Err(refusal) if is_passing(refusal) => step::put_off(run, &refusal.to_string(), now),
        Err(refusal) => step::failed(run, &refusal.to_string(), now),
    }
}

fn is_passing(refusal: &Refusal) -> bool {
    refusal.is_passing()
        || matches!(refusal, Refusal::PlanLimit(_) | Refusal::Unsigned | Refusal::DoneMeanwhile)
}
