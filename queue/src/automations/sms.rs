//! Text messages: posted to the operator's provider, `{to, from, body}` with a bearer token.
//!
//! ```text
//! due ─►[ tried again in a minute ]─► post ─► 2xx done · 4xx failed · else tried again
//! ```
//!
//! A provider takes seconds and is none of ours: the try is written down first, so that a crash while it is on its
//! way leaves it to be tried again. The provider sees one `idempotency-key` for all tries of a step.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use mail::automation::context::{self, RunContext};
use mail::automation::definition::{SmsStep, StepAction};
use mail::automation::run::AutomationRun;
use serde_json::{Value, json};
use store::engine::ReadError;
use store::run::{RunKey, StoredRun};

use super::send::StepCommit;
use super::step::{self, RunUpdate};
use crate::accept::Intake;
use crate::courier::http::{HttpClient, HttpClientError, HttpPost, HttpResponse, RequestIdempotency};

/// How long a provider may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// When a try is tried again that nobody has heard of.
const UNCONFIRMED_RETRY_DELAY: Duration = Duration::from_secs(60);
/// When a place is looked for again.
const PERMIT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Commits tried when the run changes meanwhile.
const TRIES_MAX: usize = 5;

/// Who sends text messages: the operator's provider.
#[derive(Clone)]
pub struct SmsProvider {
    /// Posts to it; it may be next door.
    pub client: HttpClient,
    /// Where.
    pub url: String,
    /// The bearer token.
    pub token: String,
    /// Who sends: a number or a name.
    pub from: String,
}

/// A message that was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SmsMessage {
    pub(super) to: String,
    pub(super) body: String,
}

impl SmsMessage {
    pub(super) fn render(sms: &SmsStep, known: &RunContext) -> Result<Self, String> {
        let root = known.to_json();
        let fill = |field: &str, text: &str| {
            context::render_text(text, &root).map(|text| text.trim().to_owned()).map_err(|e| format!("`{field}`: {e}"))
        };
        let (to, body) = (fill("to", &sms.to)?, fill("body", &sms.body)?);
        let number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ' ' | '(' | ')' | '.');
        if !(3..=32).contains(&to.len()) || !to.chars().all(number) {
            return Err("`to` is no telephone number".to_owned());
        }
        if body.is_empty() {
            return Err("`body` is empty".to_owned());
        }
        Ok(Self { to, body })
    }

    pub(super) fn preview(&self) -> Value {
        json!({"to": self.to, "body": self.body})
    }
}

impl SmsProvider {
    pub(super) async fn post_message(&self, text: &SmsMessage, key: String) -> Result<HttpResponse, HttpClientError> {
        let body = json!({"to": text.to, "from": self.from, "body": text.body});
        let headers = vec![("authorization", format!("Bearer {}", self.token)), ("idempotency-key", key)];
        let body = Bytes::from(body.to_string());
        // The books try again when nobody knows whether it was taken; two at once would be two texts where a
        // provider does not heed the key.
        let (url, again) = (self.url.clone(), RequestIdempotency::NonIdempotent);
        self.client.post(HttpPost { url, headers, body, timeout: TIMEOUT, idempotency: again }).await
    }
}

/// The key of all tries of a step.
fn step_idempotency_key(run: &AutomationRun) -> String {
    format!("{}-{}", run.id, run.index)
}

impl Intake {
    /// Does a step that sends a text message: writes the try down, and has it posted.
    pub(super) async fn run_sms_step(
        &self,
        found: &StoredRun,
        sms: &SmsStep,
        known: &RunContext,
    ) -> Result<StepCommit, ReadError> {
        let now = self.clock().now();
        let run = &found.run;
        let text = match SmsMessage::render(sms, known) {
            Ok(text) => text,
            Err(why) => return self.commit_run_update(found, step::fail_step(run.clone(), &why, now)).await,
        };
        let Some(gate) = self.automations().0.sms_provider.get().cloned() else {
            let why = "no provider of text messages is configured";
            return self.commit_run_update(found, step::fail_step(run.clone(), why, now)).await;
        };
        let place = std::sync::Arc::clone(&self.automations().0.sms_permits).try_acquire_owned();
        let wait = if place.is_ok() { UNCONFIRMED_RETRY_DELAY } else { PERMIT_RETRY_DELAY };
        let moved = self.defer_step(run, wait, now);
        let tries = moved.run.tries;
        let tried = self.commit_run_update(found, moved).await?;
        if let (StepCommit::Committed, Ok(place)) = (&tried, place) {
            let (hall, about, key) = (self.clone(), store::run::run_key(run), step_idempotency_key(run));
            self.worker.spawn(async move {
                let outcome = gate.post_message(&text, key).await;
                if let Err(error) = hall.commit_sms_result(about, tries, &outcome).await {
                    // What came of it is asked of the provider again, under the same key.
                    store::warn_unless_away!(hall.store(), %error, run.id = %about.2, "what came of a text message is not booked");
                }
                drop(place);
            });
        }
        Ok(tried)
    }

    fn defer_step(&self, run: &AutomationRun, wait: Duration, now: Timestamp) -> RunUpdate {
        let mut run = run.clone();
        let tries = run.tries;
        run.defer_step(now.checked_add(wait).unwrap_or(Timestamp::MAX), now);
        if wait == PERMIT_RETRY_DELAY {
            run.tries = tries;
        }
        RunUpdate { run, facts: Vec::new(), known: None }
    }

    /// Books what a provider answered to a try.
    async fn commit_sms_result(
        &self,
        about: RunKey,
        tries: u32,
        outcome: &Result<HttpResponse, HttpClientError>,
    ) -> Result<(), ReadError> {
        for _ in 0..TRIES_MAX {
            let Some(found) = store::run::get(self.store(), about).await? else { return Ok(()) };
            let run = &found.run;
            // Cancelled meanwhile, or tried again by somebody who thought that nobody had.
            if !run.status.is_active() || run.tries != tries {
                return Ok(());
            }
            let now = self.clock().now();
            let moved = match outcome {
                Ok(answer) if (200..300).contains(&answer.status) => {
                    step::complete_step(run.clone(), json!({"status": "sent"}), now)
                }
                Ok(answer) if (400..500).contains(&answer.status) && !is_transient_status(answer.status) => {
                    step::fail_step(run.clone(), &format!("the provider answered {}", answer.status), now)
                }
                other => {
                    let why = match other {
                        Ok(answer) => format!("the provider answered {}", answer.status),
                        Err(error) => format!("the provider did not answer: {error}"),
                    };
                    let mut moved = step::defer_step(run.clone(), &why, now);
                    // This try was counted when it began.
                    moved.run.tries = tries;
                    moved
                }
            };
            match self.commit_run_update(&found, moved).await? {
                StepCommit::Conflict => {}
                StepCommit::Committed | StepCommit::Retry => return Ok(()),
            }
        }
        Ok(())
    }

    /// What a text message of a step would be.
    pub(super) fn render_sms(action: &StepAction, known: &RunContext) -> Option<Result<SmsMessage, String>> {
        match action {
            StepAction::Sms(sms) => Some(SmsMessage::render(sms, known)),
            _ => None,
        }
    }
}

/// A 4xx that says: not now.
fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429)
}
