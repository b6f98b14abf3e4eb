//! Replaying: what was delivered or given up goes to its endpoint once more, one attempt, as the same event.

use jiff::Timestamp;
use mail::delivery::{WebhookDelivery, WebhookDeliveryStatus};
use mail::id::{AccountId, DeliveryId, WebhookId};
use mail::webhook::Webhook;
use store::delivery::{DueDelivery, EndpointQueueName};
use store::engine::{Batch, CommitError};

use super::desk::WebhookError;
use crate::accept::Intake;

/// Deliveries looked at in one step.
const PAGE_DELIVERIES: usize = 500;
/// Deliveries looked at in one request.
const SCANNED_MAX: usize = 50_000;
/// Commits tried, when deliveries are changed meanwhile.
const COMMIT_TRIES_MAX: usize = 5;

/// Which deliveries of an endpoint are replayed.
#[derive(Debug, Clone)]
pub struct ReplaySelection {
    /// Made at this time or later, …
    pub since: Timestamp,
    /// … and before this one.
    pub until: Timestamp,
    /// In this state.
    pub status: WebhookDeliveryStatus,
    /// Of these events; of all, if none is named.
    pub events: Vec<String>,
}

impl Intake {
    /// Queues a delivery once more.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn replay_delivery(
        &self,
        account: AccountId,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<WebhookDelivery, WebhookError> {
        let endpoint = self.enabled_endpoint(account, webhook).await?;
        for _ in 0..COMMIT_TRIES_MAX {
            let found = store::delivery::get(self.store(), (account, webhook), id).await?;
            let before = found.ok_or(WebhookError::UnknownDelivery)?;
            if before.status == WebhookDeliveryStatus::Pending {
                return Err(WebhookError::Pending);
            }
            let replayed = self.requeue_together(&endpoint, vec![before]).await?;
            if let Some(delivery) = replayed.into_iter().next() {
                return Ok(delivery);
            }
        }
        Err(WebhookError::Changed)
    }

    /// Queues deliveries once more, oldest first. How many; and from when on there may be more, where there are too
    /// many for one request.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn replay_deliveries(
        &self,
        account: AccountId,
        webhook: WebhookId,
        range: &ReplaySelection,
    ) -> Result<(u64, Option<Timestamp>), WebhookError> {
        let endpoint = self.enabled_endpoint(account, webhook).await?;
        let (mut from, until) = (DeliveryId::new(range.since, 0), DeliveryId::new(range.until, 0));
        let passes = |one: &WebhookDelivery| {
            one.status == range.status && (range.events.is_empty() || range.events.contains(&one.kind))
        };
        let (mut queued, mut looked) = (0, 0);
        loop {
            let of = (account, webhook);
            let slice = store::delivery::list_created_between(self.store(), of, (from, until), PAGE_DELIVERIES, passes);
            let (found, next) = slice.await?;
            if !found.is_empty() {
                queued += self.requeue_each(&endpoint, found).await?;
            }
            looked += PAGE_DELIVERIES;
            match next {
                None => return Ok((queued, None)),
                Some(next) if looked >= SCANNED_MAX => return Ok((queued, Some(next.born_at()))),
                Some(next) => from = next,
            }
        }
    }

    /// Together; or, when one of them was changed meanwhile, each by itself.
    async fn requeue_each(&self, endpoint: &Webhook, found: Vec<WebhookDelivery>) -> Result<u64, WebhookError> {
        let queued = self.requeue_together(endpoint, found.clone()).await?;
        if !queued.is_empty() {
            return Ok(queued.len() as u64);
        }
        let mut count = 0;
        for one in found {
            count += self.requeue_together(endpoint, vec![one]).await?.len() as u64;
        }
        Ok(count)
    }

    /// Nothing: one of them was changed meanwhile.
    async fn requeue_together(
        &self,
        endpoint: &Webhook,
        found: Vec<WebhookDelivery>,
    ) -> Result<Vec<WebhookDelivery>, WebhookError> {
        let (worker, now) = (&self.worker, self.clock().now());
        let mut batch = Batch::progress();
        let place = worker.new_due_delivery((endpoint.account, endpoint.id), now).ok_or(WebhookError::Unavailable)?;
        let line: EndpointQueueName = place.queue;
        if !worker.leases.fence_partitions(&mut batch, std::iter::once(line.partition)) {
            return Err(WebhookError::Unavailable);
        }
        let mut queued = Vec::with_capacity(found.len());
        for before in found {
            let mut after = before.clone();
            (after.status, after.by_hand) = (WebhookDeliveryStatus::Pending, true);
            after.next_attempt_at = Some(now);
            store::delivery::update(&mut batch, &before, &after);
            DueDelivery { queue: line, at: now, delivery: after.id }.put(&mut batch);
            queued.push(after);
        }
        match self.store().commit(batch).await {
            Ok(()) => {
                worker.webhooks.endpoint_queues.add(line, now);
                Ok(queued)
            }
            Err(CommitError::Conflict { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    async fn enabled_endpoint(&self, account: AccountId, webhook: WebhookId) -> Result<Webhook, WebhookError> {
        let endpoint = self.webhook(account, webhook).await?;
        if endpoint.enabled { Ok(endpoint) } else { Err(WebhookError::Disabled) }
    }
}
