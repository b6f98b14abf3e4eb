//! Where deliveries go: to an account's endpoint, or to the address of a partner of its affiliate program.
//!
//! Both take the same way: lines, attempts and the log know them by an id. A partner's postbacks go by the bytes of its
//! own id ([`postback_line`]), which no endpoint has: both are made of time and chance.

use std::time::Duration;

use mail::affiliate::postback;
use mail::delivery::{Delivery, DeliveryStatus};
use mail::domain::SealedKey;
use mail::id::{AccountId, DeliveryId, EventId, PartnerId, WebhookId};
use mail::webhook::Webhook;
use store::delivery::LineName;
use store::engine::{Batch, ReadError, Store};
use store::webhook::Version;

use super::desk::WebhookError;
use super::{ATTEMPT_MAX, Webhooks};
use crate::accept::Hall;

/// A partner's address.
#[derive(Debug, Clone)]
pub(super) struct Postback {
    account: AccountId,
    id: WebhookId,
    url: String,
    secret: SealedKey,
}

/// Where deliveries of a line go.
#[derive(Debug, Clone)]
pub(super) enum Destination {
    /// An endpoint, as of a version.
    Endpoint(Box<Webhook>, Version),
    /// A partner's address.
    Postback(Postback),
}

/// By what id a partner's postbacks go.
#[must_use]
pub fn postback_line(partner: PartnerId) -> WebhookId {
    WebhookId::from_bytes(partner.to_bytes())
}

impl Destination {
    /// The destination of a line; none when it is gone.
    pub(super) async fn of(store: &Store, line: LineName) -> Result<Option<Self>, ReadError> {
        let (account, id) = (line.account, line.webhook);
        if let Some((endpoint, version)) = store::webhook::get(store, account, id).await? {
            return Ok(Some(Self::Endpoint(Box::new(endpoint), version)));
        }
        let partner = PartnerId::from_bytes(id.to_bytes());
        let found = store::affiliate::partner::get(store, account, partner).await?;
        Ok(found.and_then(|partner| {
            let (url, secret) = (partner.postback_url?, partner.postback_secret);
            Some(Self::Postback(Postback { account, id, url, secret }))
        }))
    }

    /// Whether anything is sent there.
    pub(super) fn is_open(&self) -> bool {
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
    pub(super) fn secret(&self) -> (WebhookId, &SealedKey) {
        match self {
            Self::Endpoint(endpoint, _) => (endpoint.id, &endpoint.secret),
            Self::Postback(postback) => (postback.id, &postback.secret),
        }
    }

    /// How long one attempt may take.
    pub(super) fn attempt_max(&self) -> Duration {
        match self {
            Self::Endpoint(..) => ATTEMPT_MAX,
            Self::Postback(_) => postback::ATTEMPT_MAX,
        }
    }
}

impl Webhooks {
    /// The waits before each attempt.
    pub(super) fn ladder_of(&self, destination: &Destination) -> &[Duration] {
        match destination {
            Destination::Endpoint(endpoint, _) => self.ladder(endpoint.retry),
            Destination::Postback(_) => &postback::LADDER,
        }
    }
}

impl Hall {
    /// Queues a body of somebody's making to a partner's address, to try it: delivered as all else is.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn try_postback(
        &self,
        (account, partner): (AccountId, PartnerId),
        (event, kind): (EventId, &str),
        body: &str,
    ) -> Result<Delivery, WebhookError> {
        let (worker, now) = (&self.worker, self.clock().now());
        let line = (account, postback_line(partner));
        let due = worker.due(line, now).ok_or(WebhookError::Unavailable)?;
        let delivery = Delivery {
            id: due.delivery,
            account,
            webhook: line.1,
            event,
            kind: kind.to_owned(),
            subject: None,
            body: Some(body.to_owned()),
            status: DeliveryStatus::Pending,
            attempts: 0,
            by_hand: true,
            next_attempt_at: Some(now),
            response_status: None,
            created_at: now,
            delivered_at: None,
        };
        let mut batch = Batch::intake();
        store::delivery::create(&mut batch, &delivery, &due);
        if !worker.leases.fence_partitions(&mut batch, std::iter::once(due.line.partition)) {
            return Err(WebhookError::Unavailable);
        }
        self.store().commit(batch).await?;
        worker.webhooks.lines.note(due.line, now);
        Ok(delivery)
    }

    /// What was sent to a partner's address, newest first, and before which the next page begins.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn postbacks(
        &self,
        (account, partner): (AccountId, PartnerId),
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<DeliveryId>), ReadError> {
        let line = (account, postback_line(partner));
        store::delivery::list(self.store(), line, before, (limit, limit), |_| true).await
    }
}
