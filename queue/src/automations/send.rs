//! Sending: the email of a step goes the way of all mail, and the step is done in the commit that accepts it.
//!
//! Suppressed recipients are no error of the run: the step says so and the run goes on. What passes by itself (no
//! room, a plan's cap) is tried again for a day; what does not ends the run.
//!
//! A received email is answered once in an hour for each author and automation, whatever comes meanwhile: two machines
//! that answer one another, and say nothing of it, stay at that (RFC 3834 2).

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use mail::automation::context::Context;
use mail::automation::definition::SendEmail;
use mail::automation::person::{self, PersonKey};
use mail::automation::run::Run;
use mail::received::{Answering, Unanswerable};
use serde_json::{Value, json};
use store::access::{AccessError, Tenant};
use store::engine::{Batch, ReadError};
use store::run::Found;
use store::run::by::Answered;

use super::letter::{self, Unwritten, Written};
use super::step::{self, Moved};
use crate::accept::{Accepted, Hall};
use crate::refusal::Refusal;

/// How long an author is not answered again.
const ANSWERED_FOR: SignedDuration = SignedDuration::from_hours(1);

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
        let (known, answered) = self.in_measure(run, known, now).await?;
        let written = match self.tenant_of(run).await {
            Ok(tenant) => {
                letter::write(self, &tenant, (run, email), &known).await.map(|written| (tenant, written))
            }
            Err(unwritten) => Err(unwritten),
        };
        let (tenant, Written { draft, answers, withheld, .. }) = match written {
            Ok(written) => written,
            Err(Unwritten::Withheld(why)) => {
                let output = json!({"withheld": why.word()});
                return self.commit_moved(found, step::done(run.clone(), output, now)).await;
            }
            Err(Unwritten::Never(why)) => {
                return self.commit_moved(found, step::failed(run.clone(), &why, now)).await;
            }
            Err(Unwritten::NotNow(why)) => {
                return self.commit_moved(found, step::put_off(run.clone(), &why, now)).await;
            }
        };
        let also = |outcomes: &[Result<Accepted, Refusal>], batch: &mut Batch| {
            if let Some(outcome) = outcomes.first() {
                self.automations().write_moved(found, &moved(run, (outcome, withheld), now), now, batch);
                if let (true, Ok(_), Some((author, before))) = (answers, outcome, &answered) {
                    store::run::by::put_answered(batch, run, (*author, now), before);
                }
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

    /// What a run knows, with the answer to its author held back that would follow another run's too soon; and the
    /// last answer to that author.
    async fn in_measure<'a>(
        &self,
        run: &Run,
        known: &'a Context,
        now: Timestamp,
    ) -> Result<(Cow<'a, Context>, Option<(PersonKey, Answered)>), ReadError> {
        let open = known.answering.as_ref().filter(|known| known.unanswerable.is_none());
        let Some(author) = open.and_then(|known| known.author.as_ref()) else {
            return Ok((Cow::Borrowed(known), None));
        };
        let author = person::of_email(&author.folded().to_string());
        let before = store::run::by::answered(self.store(), (run.account, run.automation), author).await?;
        let lately = before
            .last
            .is_some_and(|last| last.run != run.id && now.duration_since(last.at).abs() < ANSWERED_FOR);
        let known = match &known.answering {
            Some(answering) if lately => {
                let unanswerable = Some(Unanswerable::AnsweredLately);
                let answering = Some(Answering { unanswerable, ..answering.clone() });
                Cow::Owned(Context { answering, ..known.clone() })
            }
            _ => Cow::Borrowed(known),
        };
        Ok((known, Some((author, before))))
    }

    pub(super) async fn tenant_of(&self, run: &Run) -> Result<Tenant, Unwritten> {
        store::access::by_service(self.store(), run.account).await.map_err(|error| match error {
            AccessError::Unavailable(error) => Unwritten::NotNow(error.to_string()),
            error => Unwritten::Never(error.to_string()),
        })
    }
}

/// What a run comes to when its email was accepted, or was not.
fn moved(
    run: &Run,
    (outcome, withheld): (&Result<Accepted, Refusal>, Option<Unanswerable>),
    now: Timestamp,
) -> Moved {
    let run = run.clone();
    let output = |mut output: Value| {
        if let Some(why) = withheld {
            output["withheld"] = json!(why.word());
        }
        output
    };
    match outcome {
        Ok(accepted) => step::done(run, output(json!({"email_id": accepted.id})), now),
        Err(Refusal::Blocked { id, .. }) => {
            step::done(run, output(json!({"suppressed": true, "email_id": id})), now)
        }
        Err(refusal) if is_passing(refusal) => step::put_off(run, &refusal.to_string(), now),
        Err(refusal) => step::failed(run, &refusal.to_string(), now),
    }
}

fn is_passing(refusal: &Refusal) -> bool {
    refusal.is_passing()
        || matches!(
            refusal,
            Refusal::PlanLimit(_) | Refusal::StorageFull(_) | Refusal::Unsigned | Refusal::DoneMeanwhile
        )
}
