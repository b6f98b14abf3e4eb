//! Replay: delivers past deliveries to their endpoint again, one attempt each, as the same event.

use jiff::Timestamp;
use model::id::{AccountId, DeliveryId, WebhookId};
use model::webhook::Webhook;
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryStatus};
use store::engine::{Batch, CommitError};
use store::webhook_delivery::{DueDelivery, EndpointQueueName};

use super::endpoints::{WebhookError, WebhookService};

/// Deliveries read per page.
const PAGE_DELIVERIES: usize = 500;
/// Deliveries read per request.
const SCANNED_MAX: usize = 50_000;
/// Commit tries on concurrent changes.
const COMMIT_TRIES_MAX: usize = 5;

/// Selects deliveries of an endpoint for replay.
#[derive(Debug, Clone)]
pub struct ReplaySelection {
    /// Earliest creation time, inclusive.
    pub since: Timestamp,
    /// Latest creation time, exclusive.
    pub until: Timestamp,
    pub status: WebhookDeliveryStatus,
    /// Event names; empty selects all.
    pub events: Vec<String>,
}

impl WebhookService {
    /// Replays one delivery.
    ///
    /// # Errors
    /// `Unknown`, `UnknownDelivery` or `Disabled` when it cannot be replayed, `Pending` when it is queued already,
    /// `Changed` when conflicts persist; the store cannot be read or written.
    pub async fn replay_delivery(
        &self,
        account: AccountId,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<WebhookDelivery, WebhookError> {
        let endpoint = self.enabled_endpoint(account, webhook).await?;
        for _ in 0..COMMIT_TRIES_MAX {
            let found = store::webhook_delivery::get(&self.services.store, account, webhook, id).await?;
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

    /// Replays the selected deliveries, oldest first. Returns their number, and where to continue if the limit of one
    /// request is reached.
    ///
    /// # Errors
    /// `Unknown` or `Disabled` when the endpoint cannot receive, `Unavailable` when this node owns no partition; the
    /// store cannot be read or written.
    pub async fn replay_deliveries(
        &self,
        account: AccountId,
        webhook: WebhookId,
        range: &ReplaySelection,
    ) -> Result<(u64, Option<Timestamp>), WebhookError> {
        let endpoint = self.enabled_endpoint(account, webhook).await?;
        let (mut from, until) = (DeliveryId::new(range.since, 0), DeliveryId::new(range.until, 0));
        let is_selected = |delivery: &WebhookDelivery| {
            delivery.status == range.status && (range.events.is_empty() || range.events.contains(&delivery.kind))
        };
        let (mut queued, mut read) = (0, 0);
        loop {
            let slice = store::webhook_delivery::list_created_between(
                &self.services.store,
                account,
                webhook,
                from,
                until,
                PAGE_DELIVERIES,
                is_selected,
            );
            let (found, next) = slice.await?;
            if !found.is_empty() {
                queued += self.requeue_each(&endpoint, found).await?;
            }
            read += PAGE_DELIVERIES;
            match next {
                None => return Ok((queued, None)),
                Some(next) if read >= SCANNED_MAX => return Ok((queued, Some(next.born_at()))),
                Some(next) => from = next,
            }
        }
    }

    /// Requeues deliveries in one commit, or one by one if one of them changed concurrently.
    async fn requeue_each(&self, endpoint: &Webhook, found: Vec<WebhookDelivery>) -> Result<u64, WebhookError> {
        let queued = self.requeue_together(endpoint, found.clone()).await?;
        if !queued.is_empty() {
            return Ok(queued.len() as u64);
        }
        let mut count = 0;
        for delivery in found {
            count += self.requeue_together(endpoint, vec![delivery]).await?.len() as u64;
        }
        Ok(count)
    }

    /// Requeues deliveries in one commit. Returns nothing if one of them changed concurrently.
    async fn requeue_together(
        &self,
        endpoint: &Webhook,
        found: Vec<WebhookDelivery>,
    ) -> Result<Vec<WebhookDelivery>, WebhookError> {
        let (sender, now) = (&self.sender, self.services.clock.now());
        let mut batch = Batch::progress();
        let due = sender.new_due_delivery(endpoint.account, endpoint.id, now).ok_or(WebhookError::Unavailable)?;
        let queue_name: EndpointQueueName = due.queue;
        if !self.services.leases.fence_partitions(&mut batch, std::iter::once(queue_name.partition)) {
            return Err(WebhookError::Unavailable);
        }
        let mut queued = Vec::with_capacity(found.len());
        for before in found {
            let mut after = before.clone();
            (after.status, after.by_hand) = (WebhookDeliveryStatus::Pending, true);
            after.next_attempt_at = Some(now);
            store::webhook_delivery::update(&mut batch, &before, &after);
            DueDelivery { queue: queue_name, at: now, delivery: after.id }.put(&mut batch);
            queued.push(after);
        }
        match self.services.store.commit(batch).await {
            Ok(()) => {
                sender.endpoint_queues.add(queue_name, now);
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
