//! Webhook sender: a task per endpoint with due deliveries reads them a page at a time and posts several concurrently,
//! until no more is due.
//!
//! The concurrency is adaptive: one more for each success, half for each failure.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use model::id::DeliveryId;
use model::webhook::sign;
use model::webhook_delivery::{RESPONSE_BYTES_MAX, WebhookDelivery, WebhookDeliveryAttempt};
use net::clock::Clock;
use net::http_client::{HttpPost, RequestIdempotency};
use store::engine::ReadError;
use store::webhook_delivery::{DueDelivery, EndpointQueueName};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::WebhookSender;
use super::delivery_target::DeliveryTarget;

/// Deliveries of an endpoint read per page.
const PAGE_DELIVERIES: usize = 64;
/// Largest number of concurrent POSTs to one endpoint.
const CONCURRENCY_MAX: usize = 32;
/// Number of concurrent POSTs at the start.
const CONCURRENCY_FIRST: usize = 8;
/// Deliveries of an endpoint that are posted or being committed. When the store is slow, posting waits for it.
const IN_PROGRESS_MAX: usize = 512;
/// Delay before a store error is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A finished attempt.
#[derive(Debug)]
pub(super) struct EndpointAttempt {
    pub(super) due: DueDelivery,
    pub(super) delivery: WebhookDelivery,
    pub(super) attempt: WebhookDeliveryAttempt,
    /// `Retry-After` of the response.
    pub(super) retry_after: Option<Duration>,
}

impl EndpointAttempt {
    /// True if the response status is 2xx.
    pub(super) fn is_success(&self) -> bool {
        self.attempt.response_status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// A delivery that was not posted, because the node stops or releases the partition.
struct NotPosted(DeliveryId);

impl WebhookSender {
    /// Serves due endpoint queues until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        while !self.services.stop.is_cancelled() {
            let (due, next) = self.endpoint_queues.take_due(self.services.clock.now());
            for (queue_name, wake) in due {
                let sender = Arc::clone(&self);
                self.services.spawn(async move { sender.serve_endpoint(queue_name, &wake).await });
            }
            tokio::select! {
                () = self.endpoint_queues.changed() => {}
                () = self.services.clock.sleep_until(next) => {
                    let now = self.services.clock.now();
                    if now < next {
                        self.endpoint_queues.make_due(now);
                    }
                }
                () = self.services.stop.cancelled() => return,
            }
        }
    }

    /// Loads the endpoint queues of a partition from disk, with one read per queue.
    pub(crate) async fn load_endpoint_queues(&self, partition: u16) -> Result<(), ReadError> {
        let mut from = None;
        while let Some((queue_name, due, next)) =
            store::webhook_delivery::next_endpoint_queue(&self.services.store, partition, from).await?
        {
            self.endpoint_queues.add(queue_name, due);
            from = Some(next);
        }
        Ok(())
    }

    async fn serve_endpoint(self: Arc<Self>, queue_name: EndpointQueueName, wake: &Notify) {
        let next = match self.serve_due_deliveries(queue_name, wake).await {
            Ok(next) => next,
            Err(error) => {
                store::warn_unless_away!(self.services.store, %error, webhook.id = %queue_name.webhook, "cannot read webhook deliveries; retrying");
                Some(self.services.clock.after(RETRY_DELAY))
            }
        };
        // If another node took over the partition, it loads the queue.
        let is_owned = self.services.leases.is_active(queue_name.partition);
        self.endpoint_queues.finish_serving(queue_name, next.filter(|_| is_owned));
    }

    /// Posts all due deliveries and returns the next due time.
    async fn serve_due_deliveries(
        &self,
        queue_name: EndpointQueueName,
        wake: &Notify,
    ) -> Result<Option<Timestamp>, ReadError> {
        let mut service = EndpointSession { concurrency: CONCURRENCY_FIRST, ..EndpointSession::default() };
        let (mut posting, mut settling) = (FuturesUnordered::new(), FuturesUnordered::new());
        loop {
            let is_active = self.may_post(queue_name);
            if is_active && service.waiting.is_empty() && !service.is_done {
                self.load_due_deliveries(queue_name, &mut service).await?;
            }
            while is_active && posting.len() < service.concurrency && service.in_progress.len() < IN_PROGRESS_MAX {
                let Some((due, delivery)) = service.waiting.pop_front() else { break };
                service.in_progress.insert(due.delivery);
                posting.push(self.post_delivery(service.destination.clone(), due, delivery));
            }
            if posting.is_empty() && settling.is_empty() {
                if is_active && !service.is_done {
                    continue;
                }
                return Ok(service.next_due.filter(|_| is_active));
            }
            tokio::select! {
                Some(posted) = posting.next(), if !posting.is_empty() => {
                    // Commit finished attempts together.
                    let mut attempts: Vec<EndpointAttempt> = service.take_attempt(posted).into_iter().collect();
                    while let Some(Some(posted)) = futures_util::FutureExt::now_or_never(posting.next()) {
                        attempts.extend(service.take_attempt(posted));
                    }
                    if !attempts.is_empty() {
                        settling.push(self.commit_attempts(queue_name, attempts));
                    }
                }
                Some(settled) = settling.next(), if !settling.is_empty() => {
                    for id in settled {
                        service.in_progress.remove(&id);
                    }
                    // A retry may be due already.
                    service.is_done = false;
                }
                () = wake.notified() => service.is_done = false,
                () = self.services.clock.sleep_until(service.next_due.unwrap_or(Timestamp::MAX)), if service.is_done => {
                    service.is_done = false;
                }
            }
        }
    }

    /// Returns whether this node may post deliveries of a queue.
    fn may_post(&self, queue_name: EndpointQueueName) -> bool {
        !self.services.stop.is_cancelled() && self.services.leases.is_active(queue_name.partition)
    }

    /// Reads deliveries that are due and not in progress.
    async fn load_due_deliveries(
        &self,
        queue_name: EndpointQueueName,
        service: &mut EndpointSession,
    ) -> Result<(), ReadError> {
        self.endpoint_queues.mark_seen(queue_name);
        let limit = service.in_progress.len() + PAGE_DELIVERIES;
        let (due, next) =
            store::webhook_delivery::list_due(&self.services.store, queue_name, self.services.clock.now(), limit)
                .await?;
        let new_deliveries: Vec<_> =
            due.into_iter().filter(|(due, _)| !service.in_progress.contains(&due.delivery)).collect();
        (service.next_due, service.is_done) = (next, new_deliveries.is_empty());
        if new_deliveries.is_empty() {
            return Ok(());
        }
        match DeliveryTarget::load(&self.services.store, queue_name).await? {
            Some(destination) if destination.is_enabled() => {
                service.destination = Some(Arc::new(destination));
                let mut orphans = Vec::new();
                for (due, delivery) in new_deliveries {
                    match delivery {
                        Some(delivery) => service.waiting.push_back((due, delivery)),
                        None => orphans.push((due, None)),
                    }
                }
                if !orphans.is_empty() && !self.drop_deliveries(queue_name, orphans, true).await {
                    (service.next_due, service.is_done) = (Some(self.services.clock.after(RETRY_DELAY)), true);
                }
            }
            found => {
                let dropped = self.drop_deliveries(queue_name, new_deliveries, found.is_none()).await;
                if !dropped {
                    (service.next_due, service.is_done) = (Some(self.services.clock.after(RETRY_DELAY)), true);
                }
            }
        }
        Ok(())
    }

    /// Posts a delivery. Returns [`NotPosted`] if this node may not post it any more when a permit is free: it stays
    /// due.
    async fn post_delivery(
        &self,
        to: Option<Arc<DeliveryTarget>>,
        due: DueDelivery,
        delivery: WebhookDelivery,
    ) -> Result<EndpointAttempt, NotPosted> {
        let at = self.services.clock.now();
        let (mut answer, mut duration_ms) = (Err("the endpoint was deleted".to_owned()), 0);
        if let Some(destination) = to {
            let _permit = self.post_limits.acquire(destination.account()).await;
            if !self.may_post(due.queue) {
                return Err(NotPosted(due.delivery));
            }
            let started = Instant::now();
            answer = match self.body(&self.services.store, &delivery).await {
                Ok(Some(body)) => {
                    let post = self.signed_post(&destination, &delivery, body, &self.services.clock);
                    match post {
                        Some(post) => self.client.post(post).await.map_err(|error| error.to_string()),
                        None => Err("cannot unseal the endpoint's secret".to_owned()),
                    }
                }
                Ok(None) => Err("the event was purged".to_owned()),
                Err(error) => Err(format!("cannot read the event: {error}")),
            };
            duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        }
        let number = delivery.attempts.saturating_add(1);
        let (attempt, retry_after) = match answer {
            Ok(answer) => {
                let stored = answer.body.get(..RESPONSE_BYTES_MAX).unwrap_or(&answer.body);
                let response_body = String::from_utf8_lossy(stored).into_owned();
                let pause = answer.retry_after_s.filter(|_| matches!(answer.status, 429 | 503));
                let response_status = Some(answer.status);
                (
                    WebhookDeliveryAttempt { number, at, response_status, response_body, duration_ms, error: None },
                    pause.map(Duration::from_secs),
                )
            }
            Err(error) => {
                let (response_status, response_body) = (None, String::new());
                let error = Some(error);
                (WebhookDeliveryAttempt { number, at, response_status, response_body, duration_ms, error }, None)
            }
        };
        Ok(EndpointAttempt { due, delivery, attempt, retry_after })
    }
}

impl WebhookSender {
    /// Signs a delivery with the system time: receivers compare it with their clock, and a test may have moved the
    /// server's clock.
    fn signed_post(
        &self,
        destination: &DeliveryTarget,
        delivery: &WebhookDelivery,
        body: bytes::Bytes,
        clock: &Clock,
    ) -> Option<HttpPost> {
        let now = clock.now();
        let (row, secret) = destination.secret();
        let mut secrets = vec![self.unseal_secret(row, &secret.0)?];
        if let DeliveryTarget::Endpoint(endpoint, _) = destination {
            let former = endpoint.former_secrets.iter().filter(|former| former.until > now);
            secrets.extend(former.filter_map(|former| self.unseal_former_secret(endpoint.id, &former.sealed.0)));
        }
        let id = delivery.event.to_string();
        let signed = sign(secrets.iter().map(AsRef::as_ref), &id, clock.machine_now(), &body);
        Some(HttpPost {
            url: destination.url().to_owned(),
            headers: vec![
                ("service-signature", signed.service_signature),
                ("webhook-id", id),
                ("webhook-timestamp", signed.timestamp),
                ("webhook-signature", signed.webhook_signature),
            ],
            body,
            timeout: destination.attempt_max(),
            // Receivers deduplicate by `webhook-id`.
            idempotency: RequestIdempotency::Idempotent,
        })
    }
}

/// State of an endpoint queue while it is served.
#[derive(Debug, Default)]
struct EndpointSession {
    destination: Option<Arc<DeliveryTarget>>,
    /// Read and not started.
    waiting: VecDeque<(DueDelivery, WebhookDelivery)>,
    /// Started and not committed.
    in_progress: HashSet<DeliveryId>,
    /// Current limit of concurrent POSTs.
    concurrency: usize,
    /// True if nothing more was due at the last read.
    is_done: bool,
    /// Next due time at the last read.
    next_due: Option<Timestamp>,
}

impl EndpointSession {
    /// Returns a finished attempt. A delivery that was not posted is read again if the partition is still served.
    fn take_attempt(&mut self, posted: Result<EndpointAttempt, NotPosted>) -> Option<EndpointAttempt> {
        match posted {
            Ok(attempt) => {
                self.adjust_concurrency(attempt.is_success());
                Some(attempt)
            }
            Err(NotPosted(delivery)) => {
                self.in_progress.remove(&delivery);
                self.is_done = false;
                None
            }
        }
    }

    fn adjust_concurrency(&mut self, is_success: bool) {
        self.concurrency =
            if is_success { (self.concurrency + 1).min(CONCURRENCY_MAX) } else { (self.concurrency / 2).max(1) };
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use model::domain::SealedSecret;
    use model::id::{AccountId, EventId, WebhookId};
    use model::webhook::{RetryPolicy, Webhook};
    use model::webhook_delivery::WebhookDeliveryStatus;
    use queue::subsystems::idle::{self, IdleQueue};
    use store::engine::Store;
    use store::webhook::WebhookSetVersion;

    use super::*;
    use crate::subsystems::EventSubsystems;
    use crate::subsystems::idle::webhooks;
    use crate::webhooks::POSTS_PER_ACCOUNT_MAX;

    const PARTITION: u16 = 7;

    fn endpoint(account: AccountId, id: WebhookId, now: Timestamp) -> Webhook {
        Webhook {
            id,
            account,
            url: "https://acme.example/hooks".to_owned(),
            events: Vec::new(),
            enabled: true,
            description: None,
            domains: Vec::new(),
            addresses: Vec::new(),
            retry: RetryPolicy::Default,
            secret: SealedSecret(String::new()),
            former_secrets: Vec::new(),
            failing_since: None,
            disabled_reason: None,
            created_at: now,
            updated_at: now,
        }
    }

    fn delivery(queue: EndpointQueueName, id: DeliveryId, now: Timestamp) -> WebhookDelivery {
        WebhookDelivery {
            id,
            account: queue.account,
            webhook: queue.webhook,
            event: EventId::new(now, 1),
            kind: "email.delivered".to_owned(),
            subject: None,
            body: Some("{}".to_owned()),
            status: WebhookDeliveryStatus::Pending,
            attempts: 0,
            by_hand: false,
            next_attempt_at: Some(now),
            response_status: None,
            created_at: now,
            delivered_at: None,
        }
    }

    #[tokio::test]
    async fn a_delivery_that_waits_for_a_permit_is_not_posted_when_the_partition_is_left() {
        let idle = IdleQueue::new(Store::memory(), idle::settings());
        idle.cluster.poll().await.unwrap();
        let events = EventSubsystems::new(&idle.services, webhooks());
        let (sender, leases) = (&events.webhooks, &idle.services.leases);
        assert!(leases.is_active(PARTITION));
        let now = idle.services.clock.now();
        let (account, webhook, id) = (AccountId::new(now, 1), WebhookId::new(now, 1), DeliveryId::new(now, 1));
        let queue = EndpointQueueName { partition: PARTITION, account, webhook };
        let mut permits = Vec::new();
        for _ in 0..POSTS_PER_ACCOUNT_MAX {
            permits.push(sender.post_limits.acquire(account).await);
        }
        let target = DeliveryTarget::Endpoint(Box::new(endpoint(account, webhook, now)), WebhookSetVersion::default());
        let due = DueDelivery { queue, at: now, delivery: id };
        let posting = sender.post_delivery(Some(Arc::new(target)), due, delivery(queue, id, now));
        let mut posting = Box::pin(posting);
        assert!(posting.as_mut().now_or_never().is_none(), "it waits for a permit");
        leases.start_release(&[PARTITION]);
        permits.clear();
        assert!(matches!(posting.await, Err(NotPosted(left)) if left == id));
    }
}
