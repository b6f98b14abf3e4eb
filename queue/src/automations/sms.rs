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
use mail::automation::context::{self, Context};
use mail::automation::definition::{Action, Sms};
use mail::automation::run::Run;
use serde_json::{Value, json};
use store::engine::ReadError;
use store::run::{About, Found};

use super::send::Tried;
use super::step::{self, Moved};
use crate::accept::Hall;
use crate::courier::http::{Again, Answer, Post, PostError, Poster};

/// How long a provider may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// When a try is tried again that nobody has heard of.
const UNHEARD: Duration = Duration::from_secs(60);
/// When a place is looked for again.
const NO_PLACE: Duration = Duration::from_secs(1);
/// Commits tried when the run changes meanwhile.
const TRIES_MAX: usize = 5;

/// Who sends text messages: the operator's provider.
#[derive(Clone)]
pub struct SmsGate {
    /// Posts to it; it may be next door.
    pub poster: Poster,
    /// Where.
    pub url: String,
    /// The bearer token.
    pub token: String,
    /// Who sends: a number or a name.
    pub from: String,
}

/// A message that was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) to: String,
    pub(super) body: String,
}

impl Text {
    pub(super) fn write(sms: &Sms, known: &Context) -> Result<Self, String> {
        let root = known.to_json();
        let fill = |field: &str, text: &str| {
            context::fill_text(text, &root)
                .map(|text| text.trim().to_owned())
                .map_err(|e| format!("`{field}`: {e}"))
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

    pub(super) fn shown(&self) -> Value {
        json!({"to": self.to, "body": self.body})
    }
}

impl SmsGate {
    pub(super) async fn post(&self, text: &Text, key: String) -> Result<Answer, PostError> {
        let body = json!({"to": text.to, "from": self.from, "body": text.body});
        let headers = vec![("authorization", format!("Bearer {}", self.token)), ("idempotency-key", key)];
        let body = Bytes::from(body.to_string());
        // The books try again when nobody knows whether it was taken; two at once would be two texts where a
        // provider does not heed the key.
        let (url, again) = (self.url.clone(), Again::Never);
        self.poster.post(Post { url, headers, body, timeout: TIMEOUT, again }).await
    }
}

/// The key of all tries of a step.
fn key_of(run: &Run) -> String {
    format!("{}-{}", run.id, run.index)
}

impl Hall {
    /// Does a step that sends a text message: writes the try down, and has it posted.
    pub(super) async fn text_step(
        &self,
        found: &Found,
        sms: &Sms,
        known: &Context,
    ) -> Result<Tried, ReadError> {
        let now = self.clock().now();
        let run = &found.run;
        let text = match Text::write(sms, known) {
            Ok(text) => text,
            Err(why) => return self.commit_moved(found, step::failed(run.clone(), &why, now)).await,
        };
        let Some(gate) = self.automations().0.sms.get().cloned() else {
            let why = "no provider of text messages is configured";
            return self.commit_moved(found, step::failed(run.clone(), why, now)).await;
        };
        let place = std::sync::Arc::clone(&self.automations().0.sms_places).try_acquire_owned();
        let wait = if place.is_ok() { UNHEARD } else { NO_PLACE };
        let moved = self.later(run, wait, now);
        let tries = moved.run.tries;
        let tried = self.commit_moved(found, moved).await?;
        if let (Tried::Committed, Ok(place)) = (&tried, place) {
            let (hall, about, key) = (self.clone(), store::run::about(run), key_of(run));
            self.worker.spawn(async move {
                let outcome = gate.post(&text, key).await;
                if let Err(error) = hall.texted(about, tries, &outcome).await {
                    // What came of it is asked of the provider again, under the same key.
                    store::warn_unless_away!(hall.store(), %error, run.id = %about.2, "what came of a text message is not booked");
                }
                drop(place);
            });
        }
        Ok(tried)
    }

    fn later(&self, run: &Run, wait: Duration, now: Timestamp) -> Moved {
        let mut run = run.clone();
        let tries = run.tries;
        run.put_off(now.checked_add(wait).unwrap_or(Timestamp::MAX), now);
        if wait == NO_PLACE {
            run.tries = tries;
        }
        Moved { run, facts: Vec::new(), known: None }
    }

    /// Books what a provider answered to a try.
    async fn texted(
        &self,
        about: About,
        tries: u32,
        outcome: &Result<Answer, PostError>,
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
                    step::done(run.clone(), json!({"status": "sent"}), now)
                }
                Ok(answer) if (400..500).contains(&answer.status) && !is_passing(answer.status) => {
                    step::failed(run.clone(), &format!("the provider answered {}", answer.status), now)
                }
                other => {
                    let why = match other {
                        Ok(answer) => format!("the provider answered {}", answer.status),
                        Err(error) => format!("the provider did not answer: {error}"),
                    };
                    let mut moved = step::put_off(run.clone(), &why, now);
                    // This try was counted when it began.
                    moved.run.tries = tries;
                    moved
                }
            };
            match self.commit_moved(&found, moved).await? {
                Tried::Changed => {}
                Tried::Committed | Tried::Again => return Ok(()),
            }
        }
        Ok(())
    }

    /// What a text message of a step would be.
    pub(super) fn text_of(action: &Action, known: &Context) -> Option<Result<Text, String>> {
        match action {
            Action::Sms(sms) => Some(Text::write(sms, known)),
            _ => None,
        }
    }
}

/// A 4xx that says: not now.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429)
}
