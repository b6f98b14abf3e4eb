//! Targets of deliveries: an account's endpoint, or the postback URL of a partner of its affiliate program.
//!
//! Both use the same queues, attempts and log, keyed by a webhook id. A partner's postbacks use the bytes of the
//! partner's id ([`postback_endpoint_id`]), which no endpoint has, because ids consist of time and random bits.

use std::time::Duration;

use model::affiliate::postback;
use model::domain::SealedSecret;
use model::id::{AccountId, DeliveryId, EventId, PartnerId, WebhookId};
use model::webhook::Webhook;
use model::webhook_delivery::WebhookDelivery;
use store::engine::{ReadError, Store};
use store::webhook::WebhookSetVersion;
use store::webhook_delivery::EndpointQueueName;

use super::endpoints::{WebhookError, WebhookService};
use super::{ATTEMPT_MAX, WebhookSender};

/// Postback URL of a partner.
#[derive(Debug, Clone)]
pub(super) struct PostbackTarget {
    account: AccountId,
    id: WebhookId,
    url: String,
    secret: SealedSecret,
}

/// Target of the deliveries in an endpoint queue.
#[derive(Debug, Clone)]
pub(super) enum DeliveryTarget {
    Endpoint(Box<Webhook>, WebhookSetVersion),
    /// A partner's postback URL.
    Postback(PostbackTarget),
}

/// Webhook id under which a partner's postbacks are queued.
#[must_use]
pub fn postback_endpoint_id(partner: PartnerId) -> WebhookId {
    WebhookId::from_bytes(partner.to_bytes())
}

impl DeliveryTarget {
    /// Loads the target of an endpoint queue; `None` if it was deleted.
    pub(super) async fn load(store: &Store, queue_name: EndpointQueueName) -> Result<Option<Self>, ReadError> {
        let (account, id) = (queue_name.account, queue_name.webhook);
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

    /// True if deliveries are sent to the target.
    pub(super) fn is_enabled(&self) -> bool {
        match self {
            Self::Endpoint(endpoint, _) => endpoint.enabled,
            Self::Postback(_) => true,
        }
    }

    pub(super) fn account(&self) -> AccountId {
        match self {
            Self::Endpoint(endpoint, _) => endpoint.account,
            Self::Postback(postback) => postback.account,
        }
    }

    pub(super) fn url(&self) -> &str {
        match self {
            Self::Endpoint(endpoint, _) => &endpoint.url,
            Self::Postback(postback) => &postback.url,
        }
    }

    /// Webhook id and sealed signing secret.
    pub(super) fn secret(&self) -> (WebhookId, &SealedSecret) {
        match self {
            Self::Endpoint(endpoint, _) => (endpoint.id, &endpoint.secret),
            Self::Postback(postback) => (postback.id, &postback.secret),
        }
    }

    /// Timeout of an attempt.
    pub(super) fn attempt_max(&self) -> Duration {
        match self {
            Self::Endpoint(..) => ATTEMPT_MAX,
            Self::Postback(_) => postback::ATTEMPT_TIMEOUT,
        }
    }
}

impl WebhookSender {
    /// Waits before each attempt.
    pub(super) fn retry_schedule_for(&self, destination: &DeliveryTarget) -> &[Duration] {
        match destination {
            DeliveryTarget::Endpoint(endpoint, _) => self.retry_schedule(endpoint.retry),
            DeliveryTarget::Postback(_) => &postback::RETRY_SCHEDULE,
        }
    }
}

impl WebhookService {
    /// Queues a given body to a partner's postback URL as a test, delivered like any other.
    ///
    /// # Errors
    /// `Unavailable` when this node owns no partition; the store cannot be written.
    pub async fn send_test_postback(
        &self,
        account: AccountId,
        partner: PartnerId,
        event: EventId,
        kind: &str,
        body: &str,
    ) -> Result<WebhookDelivery, WebhookError> {
        let endpoint = std::iter::once((account, postback_endpoint_id(partner)));
        let queued = self.queue_tests(endpoint, event, kind, body, true).await?;
        queued.into_iter().next().ok_or(WebhookError::Unavailable)
    }

    /// Lists a partner's postbacks, newest first, with the cursor of the next page.
    pub async fn list_postbacks(
        &self,
        account: AccountId,
        partner: PartnerId,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<(Vec<WebhookDelivery>, Option<DeliveryId>), ReadError> {
        let endpoint = postback_endpoint_id(partner);
        store::webhook_delivery::list(&self.services.store, account, endpoint, before, limit, limit, |_| true).await
    }
}
