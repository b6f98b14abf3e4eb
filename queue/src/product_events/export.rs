//! The conversion exporter: each new conversion that is credited to a click on an advertisement is told, once
//! at least, to the one address that the operator names.
//!
//! ```text
//! due export ─► POST {id, kind, occurred_at, gclid…} ─► 2xx: done · 4xx: given up · else later, up to 7 days
//! ```
//!
//! The rows lie in the partitions of who counted; the partition's owner posts, and books the outcome in a
//! commit that is fenced like a settlement. What a crash leaves open is posted again, with the same id.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::product_event::conversion::Conversion;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::conversion_export::Found;
use store::engine::{Batch, CommitError};

use super::count::CountError;
use crate::courier::http::{Again, Answer, Post, PostError, Poster};
use crate::worker::Worker;

/// How long one POST may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The first wait; each next one is twice as long …
const WAIT_MIN: Duration = Duration::from_secs(60);
/// … up to this.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);
/// For so long is tried.
const GIVE_UP_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Posts at once.
const AT_ONCE: usize = 8;
/// Exports of a partition looked at in a round.
const ROUND_MAX: usize = 100;
/// How soon is looked again, should nothing be known to be due before.
const LOOK: Duration = Duration::from_secs(30);

/// Where conversions are told.
#[derive(Clone)]
pub struct ExportSettings {
    /// The address.
    pub url: String,
    /// The bearer token, if one is asked for.
    pub token: Option<String>,
    /// Tell the SHA-256 of the person's address, too.
    pub email_hash: bool,
}

/// Tells conversions.
#[derive(Clone)]
pub struct Exporter {
    settings: ExportSettings,
    poster: Poster,
}

/// What becomes of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Done,
    GivenUp,
    Again(Timestamp),
}

impl Exporter {
    /// Tells there, by this poster: the address is the operator's word, and may be next door.
    #[must_use]
    pub fn new(settings: ExportSettings, poster: Poster) -> Self {
        Self { settings, poster }
    }

    async fn post(&self, conversion: &Conversion) -> Result<Answer, PostError> {
        let mut headers = vec![("idempotency-key", conversion.event.to_string())];
        if let Some(token) = &self.settings.token {
            headers.push(("authorization", format!("Bearer {token}")));
        }
        let body = Bytes::from(body(conversion, self.settings.email_hash).to_string());
        let (url, again) = (self.settings.url.clone(), Again::Harmless);
        self.poster.post(Post { url, headers, body, timeout: TIMEOUT, again }).await
    }
}

/// What is posted. The id is the same at every try.
fn body(conversion: &Conversion, email_hash: bool) -> Value {
    let clicks = conversion.clicks();
    let email = conversion.email.as_ref().filter(|_| email_hash);
    let mut body = json!({
        "id": conversion.event,
        "account_id": conversion.account,
        "kind": conversion.kind.word(),
        "occurred_at": mail::moment::write(conversion.occurred_at),
    });
    let (value, currency) = conversion.value.clone().unzip();
    for (name, value) in [
        ("gclid", clicks.gclid.clone().map(Value::from)),
        ("gbraid", clicks.gbraid.clone().map(Value::from)),
        ("wbraid", clicks.wbraid.clone().map(Value::from)),
        ("value", value.map(Value::from)),
        ("currency", currency.flatten().map(Value::from)),
        ("email_sha256", email.map(|email| hash(&email.trim().to_lowercase()).into())),
    ] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}

/// SHA-256 in hexadecimal.
fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// What becomes of an export after this answer.
fn next(answer: &Result<Answer, PostError>, (tries, since): (u32, Timestamp), now: Timestamp) -> Next {
    let asked_s = match answer {
        Ok(Answer { status: 200..=299, .. }) => return Next::Done,
        Ok(Answer { status: 408 | 429, retry_after_s, .. }) => *retry_after_s,
        Ok(Answer { status: 400..=499, .. }) | Err(PostError::Url(_)) => return Next::GivenUp,
        Ok(answer) => answer.retry_after_s,
        Err(_) => None,
    };
    let wait = WAIT_MIN.saturating_mul(1 << tries.min(16));
    let wait = wait.max(Duration::from_secs(asked_s.unwrap_or_default())).min(WAIT_MAX);
    let at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
    match since.checked_add(GIVE_UP_AFTER) {
        Ok(end) if at > end => Next::GivenUp,
        _ => Next::Again(at),
    }
}

impl Worker {
    /// What tells conversions; none when nobody is to be told.
    pub(crate) fn exporter(&self) -> Option<&Exporter> {
        self.exporter.get()
    }

    /// Has conversions told from now on. The first word counts.
    pub fn export_conversions(&self, exporter: Exporter) {
        let _ = self.exporter.set(exporter);
    }

    /// Keeps exporting until the worker stops.
    pub(crate) async fn keep_exporting(self: Arc<Self>) {
        while !self.stop.is_cancelled() && self.exporter().is_some() {
            let next = match self.export_due().await {
                Ok((_, next)) => next,
                Err(error) => {
                    store::warn_unless_away!(self.store, %error, "conversions cannot be exported at the moment");
                    None
                }
            };
            let look = self.clock.now().checked_add(LOOK).unwrap_or(Timestamp::MAX);
            tokio::select! {
                () = self.exports.notified() => {}
                () = self.clock.sleep_until(next.map_or(look, |next| next.min(look))) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Tries all that is due in our partitions. Says how many were tried, and when the next is due.
    pub(crate) async fn export_due(&self) -> Result<(usize, Option<Timestamp>), CountError> {
        let (mut tried, mut soonest) = (0, None);
        for partition in self.leases.active() {
            loop {
                let found = store::conversion_export::first(&self.store, partition, ROUND_MAX).await?;
                let (now, full) = (self.clock.now(), found.len() == ROUND_MAX);
                let (due, later): (Vec<Found>, Vec<Found>) =
                    found.into_iter().partition(|one| one.due <= now);
                soonest = later.first().map(|one| one.due).into_iter().chain(soonest).min();
                let count = due.len();
                tried += count;
                let work = due.into_iter().map(|one| self.export(one));
                let mut work = futures_util::stream::iter(work).buffer_unordered(AT_ONCE);
                while let Some(outcome) = work.next().await {
                    outcome?;
                }
                // Only a page that was full of what was due has more behind it.
                if !full || count < ROUND_MAX || self.stop.is_cancelled() {
                    break;
                }
            }
        }
        Ok((tried, soonest))
    }

    async fn export(&self, found: Found) -> Result<(), CountError> {
        let Some(exporter) = self.exporter() else { return Ok(()) };
        let outcome = match found.conversion(&self.store).await? {
            None => Next::GivenUp,
            Some(conversion) => {
                let answer = exporter.post(&conversion).await;
                let outcome = next(&answer, (found.export.tries, found.export.since), self.clock.now());
                if outcome != Next::Done {
                    let said = answer.map(|answer| answer.status);
                    let id = found.export.event;
                    tracing::warn!(conversion.id = %id, ?said, ?outcome, "a conversion was not taken");
                }
                outcome
            }
        };
        let mut batch = Batch::progress();
        if !self.leases.fence_partitions(&mut batch, std::iter::once(found.partition)) {
            return Ok(());
        }
        let word = match outcome {
            Next::Done => "done",
            Next::GivenUp => "given_up",
            Next::Again(_) => "again",
        };
        match outcome {
            Next::Done | Next::GivenUp => found.done(&mut batch),
            Next::Again(at) => found.again(&mut batch, at),
        }
        metrics::counter!("postrider_conversion_exports_total", "outcome" => word).increment(1);
        match self.store.commit(batch).await {
            // Another node has it by now.
            Ok(()) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_an_export() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let answer = |status, retry_after_s| {
            Ok(Answer {
                status,
                retry_after_s,
                at: None,
                content_type: None,
                body: Bytes::new(),
                is_whole: true,
            })
        };
        let first = (0, at(0));
        for (given, state, now, wanted) in [
            (answer(204, None), first, 0, Next::Done),
            (answer(400, None), first, 0, Next::GivenUp),
            (answer(404, Some(9)), first, 0, Next::GivenUp),
            (answer(429, None), first, 0, Next::Again(at(60))),
            (answer(429, Some(600)), first, 0, Next::Again(at(600))),
            (answer(408, None), (1, at(0)), 60, Next::Again(at(180))),
            (answer(500, None), (3, at(0)), 0, Next::Again(at(480))),
            (answer(302, None), first, 0, Next::Again(at(60))),
            (Err(PostError::Timeout(TIMEOUT)), (40, at(0)), 0, Next::Again(at(86_400))),
            (answer(500, None), (40, at(0)), 6 * 86_400 + 1, Next::GivenUp),
            (Err(PostError::Url(String::new())), first, 0, Next::GivenUp),
        ] {
            assert_eq!(next(&given, state, at(now)), wanted, "{given:?} {state:?}");
        }
    }
}
