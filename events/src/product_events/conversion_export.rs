//! Conversion exporter: posts each conversion credited to an ad click to the URL that the operator configured, at least
//! once.
//!
//! ```text
//! due export ─► POST {id, kind, occurred_at, gclid…} ─► 2xx: done · 4xx: given up · else retry, up to 7 days
//! ```
//!
//! The rows are in the partitions of the nodes that aggregated the events. The partition's owner posts them and commits
//! the outcome with a fence. After a crash an open export is posted again with the same id.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use message::hexadecimal;
use model::product_event::conversion::Conversion;
use net::http_client::{HttpClient, HttpClientError, HttpPost, HttpResponse, RequestIdempotency};
use queue::services::Services;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::conversion_export::QueuedConversionExport;
use store::engine::{Batch, CommitError, StoreError};
use tokio::sync::Notify;

/// Timeout of one POST.
const TIMEOUT: Duration = Duration::from_secs(15);
/// First retry delay; it doubles …
const RETRY_DELAY_MIN: Duration = Duration::from_secs(60);
/// … up to this.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(24 * 3600);
/// Time after which an export is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Concurrent POSTs.
const CONCURRENCY: usize = 8;
/// Exports of a partition read per round.
const ROUND_MAX: usize = 100;
/// Longest wait before the next poll.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Target of the conversion export.
#[derive(Clone)]
pub struct ConversionExportSettings {
    pub url: String,
    /// Bearer token, if the target requires one.
    pub token: Option<String>,
    /// Includes the SHA-256 of the person's address.
    pub email_hash: bool,
}

/// Target of the export, with the client that posts to it.
#[derive(Clone)]
pub struct ConversionTarget {
    settings: ConversionExportSettings,
    client: HttpClient,
}

/// Result of an export attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportDecision {
    Done,
    GivenUp,
    Retry(Timestamp),
}

impl ConversionTarget {
    /// Creates a target. The URL is configured by the operator, so it may be a private address.
    #[must_use]
    pub fn new(settings: ConversionExportSettings, client: HttpClient) -> Self {
        Self { settings, client }
    }

    async fn post_conversion(&self, conversion: &Conversion) -> Result<HttpResponse, HttpClientError> {
        let mut headers = vec![("idempotency-key", conversion.event.to_string())];
        if let Some(token) = &self.settings.token {
            headers.push(("authorization", format!("Bearer {token}")));
        }
        let body = Bytes::from(export_body(conversion, self.settings.email_hash).to_string());
        let (url, idempotency) = (self.settings.url.clone(), RequestIdempotency::Idempotent);
        self.client.post(HttpPost { url, headers, body, timeout: TIMEOUT, idempotency }).await
    }
}

/// Builds the request body. The id is the same in every try.
fn export_body(conversion: &Conversion, email_hash: bool) -> Value {
    let clicks = &conversion.context.clicks;
    let email = conversion.email.as_ref().filter(|_| email_hash);
    let mut body = json!({
        "id": conversion.event,
        "account_id": conversion.account,
        "kind": conversion.kind.word(),
        "occurred_at": model::timestamp::to_rfc3339(conversion.occurred_at),
    });
    let (value, currency) = conversion.value.clone().unzip();
    for (name, value) in [
        ("gclid", clicks.gclid.clone().map(Value::from)),
        ("gbraid", clicks.gbraid.clone().map(Value::from)),
        ("wbraid", clicks.wbraid.clone().map(Value::from)),
        ("value", value.map(Value::from)),
        ("currency", currency.flatten().map(Value::from)),
        ("email_sha256", email.map(|email| sha256_hex(&email.trim().to_lowercase()).into())),
    ] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}

/// SHA-256 in hexadecimal.
fn sha256_hex(text: &str) -> String {
    hexadecimal::encode(Sha256::digest(text))
}

/// Decides what follows from the response to an export.
fn decide_export(
    answer: &Result<HttpResponse, HttpClientError>,
    attempts: u32,
    since: Timestamp,
    now: Timestamp,
) -> ExportDecision {
    let retry_after_s = match answer {
        Ok(HttpResponse { status: 200..=299, .. }) => return ExportDecision::Done,
        Ok(HttpResponse { status: 408 | 429, retry_after_s, .. }) => *retry_after_s,
        Ok(HttpResponse { status: 400..=499, .. }) | Err(HttpClientError::Url(_)) => {
            return ExportDecision::GivenUp;
        }
        Ok(answer) => answer.retry_after_s,
        Err(_) => None,
    };
    let wait = RETRY_DELAY_MIN.saturating_mul(1 << attempts.min(16));
    let wait = wait.max(Duration::from_secs(retry_after_s.unwrap_or_default())).min(RETRY_DELAY_MAX);
    let at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
    match since.checked_add(GIVE_UP_AFTER) {
        Ok(end) if at > end => ExportDecision::GivenUp,
        _ => ExportDecision::Retry(at),
    }
}

/// Posts conversions to the target.
pub struct ConversionExporter {
    services: Services,
    /// Empty if the export is disabled.
    target: OnceLock<ConversionTarget>,
    wakeup: Notify,
}

impl ConversionExporter {
    pub(crate) fn new(services: Services) -> Self {
        Self { services, target: OnceLock::new(), wakeup: Notify::new() }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.target.get().is_some()
    }

    /// Enables the export of conversions. Only the first call has an effect.
    pub fn set_target(&self, target: ConversionTarget) {
        let _ = self.target.set(target);
    }

    /// Wakes the export: a conversion was recorded.
    pub(crate) fn wake(&self) {
        self.wakeup.notify_one();
    }

    /// Exports due conversions until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        while !self.services.stop.is_cancelled() && self.is_enabled() {
            let next = match self.export_due().await {
                Ok((_, next)) => next,
                Err(error) => {
                    store::warn_unless_away!(self.services.store, %error, "cannot export conversions; retrying");
                    None
                }
            };
            let look = self.services.clock.now().checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
            tokio::select! {
                () = self.wakeup.notified() => {}
                () = self.services.clock.sleep_until(next.map_or(look, |next| next.min(look))) => {}
                () = self.services.stop.cancelled() => return,
            }
        }
    }

    /// Posts all due exports of the owned partitions. Returns their number and the next due time.
    pub async fn export_due(&self) -> Result<(usize, Option<Timestamp>), StoreError> {
        let (mut attempted, mut soonest) = (0, None);
        for partition in self.services.leases.active() {
            loop {
                let found = store::conversion_export::list_first(&self.services.store, partition, ROUND_MAX).await?;
                let (now, full) = (self.services.clock.now(), found.len() == ROUND_MAX);
                let (due, not_due): (Vec<QueuedConversionExport>, Vec<QueuedConversionExport>) =
                    found.into_iter().partition(|export| export.due <= now);
                soonest = not_due.first().map(|export| export.due).into_iter().chain(soonest).min();
                let count = due.len();
                attempted += count;
                let work = due.into_iter().map(|export| self.export_conversion(export));
                let mut work = futures_util::stream::iter(work).buffer_unordered(CONCURRENCY);
                while let Some(outcome) = work.next().await {
                    outcome?;
                }
                // A next page can be due only if this one was full and completely due.
                if !full || count < ROUND_MAX || self.services.stop.is_cancelled() {
                    break;
                }
            }
        }
        Ok((attempted, soonest))
    }

    async fn export_conversion(&self, found: QueuedConversionExport) -> Result<(), StoreError> {
        let Some(target) = self.target.get() else { return Ok(()) };
        let outcome = match found.conversion(&self.services.store).await? {
            None => ExportDecision::GivenUp,
            Some(conversion) => {
                let answer = target.post_conversion(&conversion).await;
                let outcome = decide_export(&answer, found.export.tries, found.export.since, self.services.clock.now());
                if outcome != ExportDecision::Done {
                    let status = answer.map(|answer| answer.status);
                    let id = found.export.event;
                    tracing::warn!(conversion.id = %id, ?status, ?outcome, "conversion export failed");
                }
                outcome
            }
        };
        let mut batch = Batch::progress();
        if !self.services.leases.fence_partitions(&mut batch, std::iter::once(found.partition)) {
            return Ok(());
        }
        let word = match outcome {
            ExportDecision::Done => "done",
            ExportDecision::GivenUp => "given_up",
            ExportDecision::Retry(_) => "again",
        };
        match outcome {
            ExportDecision::Done | ExportDecision::GivenUp => found.complete(&mut batch),
            ExportDecision::Retry(at) => found.retry(&mut batch, at),
        }
        metrics::counter!("postrider_conversion_exports_total", "outcome" => word).increment(1);
        match self.services.store.commit(batch).await {
            // On a conflict another node owns the export now.
            Ok(()) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_decides_about_an_export() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let answer = |status, retry_after_s| {
            Ok(HttpResponse {
                status,
                retry_after_s,
                date: None,
                content_type: None,
                body: Bytes::new(),
                is_complete: true,
            })
        };
        let first = (0, at(0));
        for (outcome, (attempts, since), now, expected) in [
            (answer(204, None), first, 0, ExportDecision::Done),
            (answer(400, None), first, 0, ExportDecision::GivenUp),
            (answer(404, Some(9)), first, 0, ExportDecision::GivenUp),
            (answer(429, None), first, 0, ExportDecision::Retry(at(60))),
            (answer(429, Some(600)), first, 0, ExportDecision::Retry(at(600))),
            (answer(408, None), (1, at(0)), 60, ExportDecision::Retry(at(180))),
            (answer(500, None), (3, at(0)), 0, ExportDecision::Retry(at(480))),
            (answer(302, None), first, 0, ExportDecision::Retry(at(60))),
            (Err(HttpClientError::Timeout(TIMEOUT)), (40, at(0)), 0, ExportDecision::Retry(at(86_400))),
            (answer(500, None), (40, at(0)), 6 * 86_400 + 1, ExportDecision::GivenUp),
            (Err(HttpClientError::Url(String::new())), first, 0, ExportDecision::GivenUp),
        ] {
            assert_eq!(decide_export(&outcome, attempts, since, at(now)), expected, "{outcome:?} {attempts} {since}");
        }
    }
}
