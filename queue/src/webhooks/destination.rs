//! Where deliveries go: to an account's endpoint, or to the address of a partner of its affiliate program.
//!
//! Both take the same way: lines, attempts and the log know them by an id. A partner's postbacks go by the bytes of its
//! own id ([`postback_line`]), which no endpoint has: both are made of time and chance.

use std::time::Duration;

use mail::affiliate::postback;
use mail::delivery::{WebhookDelivery, WebhookDeliveryStatus};
use mail::domain::SealedSecret;
use mail::id::{AccountId, DeliveryId, EventId, PartnerId, WebhookId};
use mail::webhook::Webhook;
use store::delivery::EndpointQueueName;
use store::engine::{Batch, ReadError, Store};
use store::webhook::WebhookSetVersion;

use super::desk::WebhookError;
use super::{ATTEMPT_MAX, WebhookSender};
use crate::accept::Intake;

/// A partner's address.
#[derive(Debug, Clone)]
pub(super) struct PostbackTarget {
    account: AccountId,
    id: WebhookId,
    url: String,
    secret: SealedSecret,
}

/// Where deliveries of a line go.
#[derive(Debug, Clone)]
pub(super) enum DeliveryTarget {
    /// An endpoint, as of a version.
    Endpoint(Box<Webhook>, WebhookSetVersion),
    /// A partner's address.
    Postback(PostbackTarget),
}

/// By what id a partner's postbacks go.
#[must_use]
pub fn postback_endpoint_id(partner: PartnerId) -> WebhookId {
    WebhookId::from_bytes(partner.to_bytes())
}

impl DeliveryTarget {
    /// The destination of a line; none when it is gone.
    pub(super) async fn load(store: &Store, line: EndpointQueueName) -> Result<Option<Self>, ReadError> {
        let (account, id) = (line.account, line.webhook);
        if let Some((endpoint, version)) = store::webhook::get(store, account, id).await? {
            return Ok(Some(Self::Endpoint(Box::new(endpoint), version)));
        }
        let partner = PartnerId::from_bytes(id.to_bytes());
        let found = store::affiliate::partner::get(store, account, partner).await?;
        Ok(found.and_then(|partner| {
            let (url, secret) = (partner.postback_url?, partner.postback_secret);
            Some(Self::Postback(PostbackTarget { account, id, url, secret }))
        }))
    }

    /// Whether anything is sent there.
    pub(super) fn is_enabled(&self) -> bool {
        match self {
            Self::Endpoint(endpoint, _) => endpoint.enabled,
            Self::Postback(_) => true,
        }
    }

    /// Whose it is.
    pub(super) fn account(&self) -> AccountId {
        match self {
            Self::Endpoint(endpoint, _) => endpoint.account,
            Self::Postback(postback) => postback.account,
        }
    }

    /// Where it is.
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Endpoint(endpoint, _) => &endpoint.url,
            Self::Postback(postback) => &postback.url,
        }
    }

    /// By what id it goes, and what signs.
    pub(super) fn secret(&self) -> (WebhookId, &SealedSecret) {
        match self {
            Self::Endpoint(endpoint, _) => (endpoint.id, &endpoint.secret),
            Self::Postback(postback) => (postback.id, &postback.secret),
        }
    }

    /// How long one attempt may take.
    pub(super) fn attempt_max(&self) -> Duration {
        match self {
            Self::Endpoint(..) => ATTEMPT_MAX,
            Self::Postback(_) => postback::ATTEMPT_TIMEOUT,
        }
    }
}

impl WebhookSender {
    /// The waits before each attempt.
    pub(super) fn retry_schedule_for(&self, destination: &DeliveryTarget) -> &[Duration] {
        match destination {
            DeliveryTarget::Endpoint(endpoint, _) => self.retry_schedule(endpoint.retry),
            DeliveryTarget::Postback(_) => &postback::RETRY_SCHEDULE,
        }
    }
}

impl Intake {
    /// Queues a body of somebody's making to a partner's address, to try it: delivered as all else is.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn send_test_postback(
        &self,
        (account, partner): (AccountId, PartnerId),
        (event, kind): (EventId, &str),
        body: &str,
    ) -> Result<WebhookDelivery, WebhookError> {
        let (worker, now) = (&self.worker, self.clock().now());
        let line = (account, postback_endpoint_id(partner));
        let due = worker.new_due_delivery(line, now).ok_or(WebhookError::Unavailable)?;
        let delivery = WebhookDelivery {
            id: due.delivery,
            account,
            webhook: line.1,
            event,
            kind: kind.to_owned(),
            subject: None,
            body: Some(body.to_owned()),
            status: WebhookDeliveryStatus::Pending,
            attempts: 0,
            by_hand: true,
            next_attempt_at: Some(now),
            response_status: None,
            created_at: now,
            delivered_at: None,
        };
        let mut batch = Batch::intake();
        store::delivery::create(&mut batch, &delivery, &due);
        if !worker.leases.fence_partitions(&mut batch, std::iter::once(due.queue.partition)) {
            return Err(WebhookError::Unavailable);
        }
        self.store().commit(batch).await?;
        worker.webhooks.endpoint_queues.add(due.queue, now);
        Ok(delivery)
    }

    /// What was sent to a partner's address, newest first, and before which the next page begins.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_postbacks(
        &self,
        (account, partner): (AccountId, PartnerId),
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<(Vec<WebhookDelivery>, Option<DeliveryId>), ReadError> {
        let line = (account, postback_endpoint_id(partner));
        store::delivery::list(self.store(), line, before, (limit, limit), |_| true).await
    }
}
