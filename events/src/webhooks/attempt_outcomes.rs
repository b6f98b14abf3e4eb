//! Commits the outcomes of attempts; those of one endpoint that ended together share a commit.
//!
//! The commit deletes the due keys and checks that they exist and that the partition is owned. So each attempt is
//! recorded once, even if another node made the same one.

use std::time::Duration;

use jiff::Timestamp;
use model::event::{Event, EventKind};
use model::id::{DeliveryId, EventId};
use model::owner_alert::{AlertSubject, OwnerAlert, WebhookAlert};
use model::timestamp;
use model::webhook::{DisabledReason, FAILING_MAX, Webhook};
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt, WebhookDeliveryStatus};
use serde_json::json;
use store::engine::{Batch, CommitError, ReadError};
use store::webhook::WebhookSetVersion;
use store::webhook_delivery::{DueDelivery, EndpointQueueName};

use super::WebhookSender;
use super::delivery_target::DeliveryTarget;
use super::endpoint_worker::EndpointAttempt;

/// Commit tries on concurrent changes of the endpoint.
const COMMIT_TRIES_MAX: usize = 5;
/// Status by which an endpoint unsubscribes.
const STATUS_GONE: u16 = 410;

impl WebhookSender {
    /// Commits attempts of one endpoint. Deliveries whose attempt could not be committed stay due.
    pub(super) async fn commit_attempts(
        &self,
        queue_name: EndpointQueueName,
        attempts: Vec<EndpointAttempt>,
    ) -> Vec<DeliveryId> {
        let ids: Vec<DeliveryId> = attempts.iter().map(|attempt| attempt.due.delivery).collect();
        match self.try_commit_attempts(queue_name, &attempts).await {
            Ok(true) => {}
            Ok(false) if attempts.len() > 1 => {
                // One of them was committed elsewhere: commit the others one by one.
                for attempt in attempts {
                    let booked = self.try_commit_attempts(queue_name, std::slice::from_ref(&attempt)).await;
                    if let Err(error) = booked {
                        log_commit_error(&error, queue_name);
                    }
                }
            }
            Ok(false) => {}
            Err(error) => {
                log_commit_error(&error, queue_name);
                // Delay, because the deliveries would be posted again at once.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        ids
    }

    /// Returns false when a row differs from what was read.
    async fn try_commit_attempts(
        &self,
        queue_name: EndpointQueueName,
        attempts: &[EndpointAttempt],
    ) -> Result<bool, CommitError> {
        let unread = |error: ReadError| CommitError::Unknown(error.to_string().into());
        for _ in 0..COMMIT_TRIES_MAX {
            let found = DeliveryTarget::load(&self.services.store, queue_name).await.map_err(unread)?;
            let mut batch = Batch::progress();
            if !self.services.leases.fence_partitions(&mut batch, std::iter::once(queue_name.partition)) {
                return Ok(false);
            }
            let ladder = found.as_ref().map(|found| self.retry_schedule_for(found)).unwrap_or_default();
            let mut outcome = EndpointOutcome::new(found, ladder, self.services.clock.now());
            let mut next = Vec::new();
            for attempt in attempts {
                next.extend(self.write_attempt(&mut batch, attempt, &mut outcome));
            }
            let notice = self.write_endpoint_outcome(&mut batch, queue_name, outcome);
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    for due in next {
                        self.endpoint_queues.add(queue_name, due);
                    }
                    self.attempts_committed(attempts, queue_name, notice);
                    self.services.outcome_recorded.notify_waiters();
                    return Ok(true);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Adds one attempt to the batch and returns the time of the next one, if there is one.
    fn write_attempt(
        &self,
        batch: &mut Batch,
        endpoint_attempt: &EndpointAttempt,
        outcome: &mut EndpointOutcome<'_>,
    ) -> Option<Timestamp> {
        let EndpointAttempt { due, delivery, attempt, .. } = endpoint_attempt;
        let now = outcome.now;
        let mut after = delivery.clone();
        after.attempts = attempt.number;
        after.response_status = attempt.response_status;
        after.next_attempt_at = None;
        due.complete(batch);
        store::webhook_delivery::put_attempt(batch, delivery, attempt);
        let mut next = None;
        if endpoint_attempt.is_success() {
            (after.status, after.delivered_at) = (WebhookDeliveryStatus::Delivered, Some(now));
            outcome.record_success();
        } else if attempt.response_status == Some(STATUS_GONE) {
            after.status = WebhookDeliveryStatus::Failed;
            outcome.disable_endpoint(DisabledReason::Gone);
        } else {
            next = next_attempt_at(outcome.ladder, endpoint_attempt, now);
            after.next_attempt_at = next;
            if next.is_none() {
                // A replayed delivery that succeeded before stays delivered.
                let is_delivered = after.delivered_at.is_some();
                after.status =
                    if is_delivered { WebhookDeliveryStatus::Delivered } else { WebhookDeliveryStatus::Failed };
                if !delivery.by_hand {
                    outcome.record_exhausted();
                }
            }
        }
        if let Some(at) = next {
            DueDelivery { at, ..*due }.put(batch);
        }
        store::webhook_delivery::put(batch, &after);
        next
    }

    /// Adds the change of the endpoint and the alert for its owner to the batch. Returns the alert.
    fn write_endpoint_outcome(
        &self,
        batch: &mut Batch,
        queue_name: EndpointQueueName,
        outcome: EndpointOutcome<'_>,
    ) -> Option<OwnerAlert> {
        let ((before, version), after, now) = (outcome.endpoint?, outcome.after?, outcome.now);
        if after == before {
            return None;
        }
        let alert = match (after.disabled_reason, before.failing_since, after.failing_since) {
            (Some(reason), since, _) => {
                let event =
                    disabled_event(&after, reason, since, EventId::new(now, self.services.entropy.unique_bits()), now);
                store::event::record(batch, &event, queue_name.partition);
                Some(WebhookAlert::from_disabled_reason(reason))
            }
            (None, None, Some(_)) => Some(WebhookAlert::Failing),
            _ => None,
        };
        store::webhook::update(batch, &before, &after, &version);
        let id = EventId::new(now, self.services.entropy.unique_bits());
        let subject = AlertSubject::Endpoint { webhook: after.id, url: after.url, what: alert? };
        let notice = OwnerAlert { id, account: after.account, about: subject, since: now };
        store::owner_alert::enqueue(batch, queue_name.partition, &notice);
        Some(notice)
    }

    fn attempts_committed(
        &self,
        attempts: &[EndpointAttempt],
        queue_name: EndpointQueueName,
        notice: Option<OwnerAlert>,
    ) {
        for attempt in attempts {
            let outcome = if attempt.is_success() { "delivered" } else { "failed" };
            metrics::counter!("postrider_webhook_attempts_total", "outcome" => outcome).increment(1);
        }
        if let Some(notice) = notice {
            self.owner_alert_timers.schedule(queue_name.partition, notice.since);
            // Dispatches the event of a disabled endpoint.
            self.services.outbox_wakeup.notify_one();
        }
    }

    /// Deletes deliveries of a deleted endpoint, or fails those of a disabled one. Returns false if the commit fails.
    pub(super) async fn drop_deliveries(
        &self,
        queue_name: EndpointQueueName,
        due: Vec<(DueDelivery, Option<WebhookDelivery>)>,
        is_deleted: bool,
    ) -> bool {
        let mut batch = Batch::progress();
        if !self.services.leases.fence_partitions(&mut batch, std::iter::once(queue_name.partition)) {
            return false;
        }
        let now = self.services.clock.now();
        for (due, delivery) in due {
            due.complete(&mut batch);
            match delivery {
                Some(delivery) if is_deleted => store::webhook_delivery::delete(&mut batch, &delivery),
                Some(delivery) => fail_delivery(&mut batch, delivery, now),
                None => {}
            }
        }
        self.services.store.commit(batch).await.is_ok()
    }
}

/// Returns the time of the next attempt; `None` at the end of the schedule.
fn next_attempt_at(schedule: &[Duration], attempt: &EndpointAttempt, now: Timestamp) -> Option<Timestamp> {
    if attempt.delivery.by_hand {
        return None;
    }
    let attempts_made = usize::try_from(attempt.attempt.number).unwrap_or(usize::MAX);
    let remaining = schedule.get(attempts_made..).unwrap_or_default();
    let wait = *remaining.first()?;
    // `Retry-After` is respected up to the remaining length of the schedule.
    let window = remaining.iter().sum();
    let wait = attempt.retry_after.map_or(wait, |retry_after| retry_after.clamp(wait, window));
    now.checked_add(wait).ok()
}

fn log_commit_error(error: &CommitError, queue_name: EndpointQueueName) {
    if error.is_away() {
        return;
    }
    tracing::warn!(%error, webhook.id = %queue_name.webhook, "cannot record webhook attempts; retrying");
}

/// Fails a delivery without an attempt, because its endpoint is disabled.
fn fail_delivery(batch: &mut Batch, mut delivery: WebhookDelivery, now: Timestamp) {
    delivery.attempts = delivery.attempts.saturating_add(1);
    let attempt = WebhookDeliveryAttempt {
        number: delivery.attempts,
        at: now,
        response_status: None,
        response_body: String::new(),
        duration_ms: 0,
        error: Some("not attempted: the endpoint is disabled".to_owned()),
    };
    (delivery.status, delivery.next_attempt_at) = (WebhookDeliveryStatus::Failed, None);
    store::webhook_delivery::put_attempt(batch, &delivery, &attempt);
    store::webhook_delivery::put(batch, &delivery);
}

fn disabled_event(
    webhook: &Webhook,
    reason: DisabledReason,
    since: Option<Timestamp>,
    id: EventId,
    now: Timestamp,
) -> Event {
    let detail = json!({
        "webhook_id": webhook.id, "url": webhook.url, "disabled_reason": reason.word(),
        "failing_since": since.map(timestamp::to_rfc3339),
    });
    Event::new(id, webhook.account, webhook.id, EventKind::WebhookDisabled, now, detail)
}

/// Effect of a batch of attempts on their endpoint.
struct EndpointOutcome<'w> {
    /// `None` if the endpoint was deleted, or for a postback URL, which has no state.
    endpoint: Option<(Webhook, WebhookSetVersion)>,
    after: Option<Webhook>,
    ladder: &'w [Duration],
    now: Timestamp,
}

impl<'w> EndpointOutcome<'w> {
    fn new(found: Option<DeliveryTarget>, ladder: &'w [Duration], now: Timestamp) -> Self {
        let endpoint = match found {
            Some(DeliveryTarget::Endpoint(endpoint, version)) => Some((*endpoint, version)),
            Some(DeliveryTarget::Postback(_)) | None => None,
        };
        let after = endpoint.as_ref().map(|(endpoint, _)| endpoint.clone());
        Self { endpoint, after, ladder, now }
    }

    fn record_success(&mut self) {
        if let Some(after) = &mut self.after {
            after.failing_since = None;
        }
    }

    /// Records that a delivery has used up its retries.
    fn record_exhausted(&mut self) {
        let now = self.now;
        let Some(after) = self.after.as_mut().filter(|after| after.enabled) else { return };
        match after.failing_since {
            None => after.failing_since = Some(now),
            Some(since) if now.duration_since(since).unsigned_abs() >= FAILING_MAX => {
                self.disable_endpoint(DisabledReason::Failing);
            }
            Some(_) => {}
        }
    }

    fn disable_endpoint(&mut self, reason: DisabledReason) {
        if let Some(after) = self.after.as_mut().filter(|after| after.enabled) {
            after.set_disabled(Some(reason));
            after.updated_at = self.now;
        }
    }
}
