//! Webhook endpoints of an account: create, change, rotate the secret, test and delete; and subscriptions to the
//! account's event stream.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use model::domain::SealedSecret;
use model::event::Event;
use model::id::{AccountId, EventId, WebhookId};
use model::webhook::{ENDPOINTS_MAX, FORMER_SECRETS_MAX, FormerSecret, Webhook, format_secret};
use model::webhook_delivery::WebhookDelivery;
use net::http_client::{
    HttpClientError, HttpGet, HttpPost, HttpResponse, ResponseBudget, ResponsePermit, UrlRules, UrlTarget,
};
use queue::services::Services;
use serde_json::{Map, Value};
use store::engine::{Batch, CommitError, ReadError};
use store::event_log::EventLogEntry;
use store::{RetriesExhausted, retry_on_conflict};
use thiserror::Error;

use super::stream_subscribers::StreamSubscriber;
use super::{WebhookSender, payload};

/// Largest response memory per permit: half of an account's share, so that other requests of the account can proceed.
const PERMIT_BYTES_MAX: usize = 8 << 20;
/// Suffix of the associated data of former secrets, so that they cannot be exchanged with current ones.
const FORMER_SECRET_CONTEXT: &[u8] = b" former";

/// Error of an operation on an endpoint.
#[derive(Debug, Error)]
pub enum WebhookError {
    #[error("webhook endpoint not found")]
    Unknown,
    #[error("webhook delivery not found")]
    UnknownDelivery,
    /// The account has [`ENDPOINTS_MAX`] endpoints.
    #[error("an account has at most {ENDPOINTS_MAX} webhook endpoints")]
    TooMany,
    /// Nothing is sent to a disabled endpoint.
    #[error("the webhook endpoint is disabled")]
    Disabled,
    /// The delivery is pending.
    #[error("the delivery is pending")]
    Pending,
    /// Concurrent changes at every try.
    #[error("the webhook endpoint was changed concurrently; try again")]
    Changed,
    /// This node owns no partition now.
    #[error("webhooks are temporarily unavailable; try again later")]
    Unavailable,
    #[error("cannot seal the secret")]
    Seal,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl From<RetriesExhausted> for WebhookError {
    fn from(_: RetriesExhausted) -> Self {
        Self::Changed
    }
}

/// An event with its payload.
#[derive(Debug, Clone)]
pub struct DispatchedEvent {
    /// Sequence number in the account's event log.
    pub number: u64,
    pub event: Event,
    /// Payload data.
    pub data: Map<String, Value>,
}

impl WebhookSender {
    fn seal_secret(&self, row: &[u8], text: &str) -> Result<SealedSecret, WebhookError> {
        let blob = self.vault.seal(row, text.as_bytes()).map_err(|_| WebhookError::Seal)?;
        Ok(SealedSecret(STANDARD.encode(blob)))
    }

    pub(super) fn unseal_former_secret(&self, id: WebhookId, sealed: &str) -> Option<std::sync::Arc<str>> {
        let blob = STANDARD.decode(sealed).ok()?;
        let plain = self.vault.open(&[&id.to_bytes(), FORMER_SECRET_CONTEXT].concat(), &blob).ok()?;
        String::from_utf8(plain).ok().map(Into::into)
    }
}

/// Operations of accounts on their webhook endpoints and event streams, and HTTP requests to URLs of customers.
pub struct WebhookService {
    pub(super) services: Services,
    pub(super) sender: Arc<WebhookSender>,
    response_budget: ResponseBudget,
}

impl WebhookService {
    pub fn new(services: Services, sender: Arc<WebhookSender>, response_budget: ResponseBudget) -> Self {
        Self { services, sender, response_budget }
    }

    /// Rules for the URLs of endpoints.
    #[must_use]
    pub fn webhook_url_rules(&self) -> UrlRules {
        self.sender.client.rules()
    }

    /// Checks that an endpoint may have this URL.
    pub fn check_webhook_url(&self, url: &str) -> Result<(), String> {
        UrlTarget::parse(url, self.webhook_url_rules()).map(drop)
    }

    /// GETs a URL that a customer supplied, under the rules of webhooks. The memory of the response is taken from a
    /// permit of [`Self::response_permit`].
    ///
    /// # Errors
    /// The URL is not allowed, the request fails, or the permit is exhausted.
    pub async fn fetch_url_with_permit(
        &self,
        get: HttpGet,
        permit: &mut ResponsePermit,
    ) -> Result<HttpResponse, HttpClientError> {
        self.sender.client().get_with_permit(get, Some(permit)).await
    }

    /// Returns an empty permit for response memory of an account.
    #[must_use]
    pub fn response_permit(&self, account: AccountId) -> ResponsePermit {
        self.response_budget.permit(account, PERMIT_BYTES_MAX)
    }

    /// POSTs to a URL that a customer supplied, under the rules of webhooks, with its own limit of response bytes.
    pub async fn post_url(&self, post: HttpPost, answer_bytes_max: usize) -> Result<HttpResponse, HttpClientError> {
        self.sender.client().post_with_limit(post, answer_bytes_max).await
    }

    /// Creates an endpoint with these settings, a new id and a new secret. Returns the plain secret, which is stored
    /// sealed only.
    ///
    /// # Errors
    /// `TooMany` at the limit of endpoints, `Seal` when the secret cannot be sealed, `Changed` when conflicts persist;
    /// the store cannot be read or written.
    pub async fn create_webhook(&self, settings: Webhook) -> Result<(Webhook, String), WebhookError> {
        let (now, account) = (self.services.clock.now(), settings.account);
        let id = WebhookId::new(now, self.services.entropy.unique_bits());
        let text = format_secret(&self.services.entropy.secret());
        let secret = self.sender.seal_secret(&id.to_bytes(), &text)?;
        let webhook = Webhook { id, secret, created_at: now, updated_at: now, ..settings };
        retry_on_conflict(async || {
            let versions = store::webhook::list_versions(&self.services.store, &[account]).await?;
            let version = versions.into_iter().next().unwrap_or_default();
            if store::webhook::list(&self.services.store, account).await?.len() >= ENDPOINTS_MAX {
                return Err(WebhookError::TooMany);
            }
            let mut batch = Batch::intake();
            store::webhook::create(&mut batch, &webhook, &version);
            Ok(self.commit_unless_changed(batch).await?.then_some(()))
        })
        .await?;
        self.sender.note_listener(now);
        Ok((webhook, text))
    }

    async fn commit_unless_changed(&self, batch: Batch) -> Result<bool, WebhookError> {
        match self.services.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns an endpoint of an account.
    ///
    /// # Errors
    /// [`WebhookError::Unknown`], or the store cannot be read.
    pub async fn webhook(&self, account: AccountId, id: WebhookId) -> Result<Webhook, WebhookError> {
        let found = store::webhook::get(&self.services.store, account, id).await?;
        found.map(|(webhook, _)| webhook).ok_or(WebhookError::Unknown)
    }

    /// Changes an endpoint and returns the result.
    ///
    /// # Errors
    /// `Unknown` when the endpoint does not exist, `Changed` when conflicts persist; the store cannot be read or
    /// written.
    pub async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: impl Fn(&mut Webhook),
    ) -> Result<Webhook, WebhookError> {
        retry_on_conflict(async || {
            let found = store::webhook::get(&self.services.store, account, id).await?;
            let (before, version) = found.ok_or(WebhookError::Unknown)?;
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(Some(after));
            }
            after.updated_at = self.services.clock.now();
            let mut batch = Batch::progress();
            store::webhook::update(&mut batch, &before, &after, &version);
            Ok(self.commit_unless_changed(batch).await?.then_some(after))
        })
        .await
    }

    /// Deletes an endpoint and drops its pending deliveries.
    ///
    /// # Errors
    /// `Unknown` when the endpoint does not exist, `Changed` when conflicts persist; the store cannot be read or
    /// written.
    pub async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<(), WebhookError> {
        retry_on_conflict(async || {
            let found = store::webhook::get(&self.services.store, account, id).await?;
            let (webhook, version) = found.ok_or(WebhookError::Unknown)?;
            let mut batch = Batch::progress();
            store::webhook::delete(&mut batch, &webhook, &version);
            Ok(self.commit_unless_changed(batch).await?.then_some(()))
        })
        .await
    }

    /// Replaces an endpoint's secret. Former secrets also sign until `grace` has passed.
    ///
    /// # Errors
    /// `Unknown` when the endpoint does not exist, `Seal` when the secret cannot be sealed, `Changed` when conflicts
    /// persist; the store cannot be read or written.
    pub async fn rotate_webhook_secret(
        &self,
        account: AccountId,
        id: WebhookId,
        grace: Duration,
    ) -> Result<(Webhook, String), WebhookError> {
        let webhooks = &self.sender;
        let before = self.webhook(account, id).await?;
        let text = format_secret(&self.services.entropy.secret());
        let secret = webhooks.seal_secret(&id.to_bytes(), &text)?;
        let now = self.services.clock.now();
        let until = now.checked_add(grace).unwrap_or(Timestamp::MAX);
        let former = match webhooks.unseal_secret(id, &before.secret.0).filter(|_| !grace.is_zero()) {
            Some(text) => Some(webhooks.seal_secret(&[&id.to_bytes(), FORMER_SECRET_CONTEXT].concat(), &text)?),
            None => None,
        };
        let changed = self.change_webhook(account, id, |webhook| {
            // With two concurrent rotations the later secret is valid; both have the same former secret.
            match former.clone() {
                Some(sealed) => {
                    webhook.former_secrets.retain(|former| former.until > now);
                    webhook.former_secrets.insert(0, FormerSecret { sealed, until });
                    webhook.former_secrets.truncate(FORMER_SECRETS_MAX);
                }
                // Without a grace period all former secrets are dropped: that revokes a stolen one.
                None => webhook.former_secrets.clear(),
            }
            webhook.secret = secret.clone();
        });
        Ok((changed.await?, text))
    }

    /// Queues a given body to endpoints as a test, delivered like any other.
    ///
    /// # Errors
    /// `Unavailable` when this node owns no partition; the store cannot be written.
    pub async fn send_test_deliveries(
        &self,
        endpoints: &[Webhook],
        event: EventId,
        kind: &str,
        body: &str,
    ) -> Result<Vec<WebhookDelivery>, WebhookError> {
        let endpoints = endpoints.iter().map(|endpoint| (endpoint.account, endpoint.id));
        self.queue_tests(endpoints, event, kind, body, false).await
    }

    pub(super) async fn queue_tests(
        &self,
        endpoints: impl Iterator<Item = (AccountId, WebhookId)>,
        event: EventId,
        kind: &str,
        body: &str,
        by_hand: bool,
    ) -> Result<Vec<WebhookDelivery>, WebhookError> {
        let (sender, now) = (&self.sender, self.services.clock.now());
        let mut batch = Batch::intake();
        let (mut deliveries, mut queues) = (Vec::new(), Vec::new());
        for (account, webhook) in endpoints {
            let due = sender.new_due_delivery(account, webhook, now).ok_or(WebhookError::Unavailable)?;
            let delivery = WebhookDelivery::new(due.delivery, account, webhook, event, kind, now);
            let delivery = WebhookDelivery { body: Some(body.to_owned()), by_hand, ..delivery };
            store::webhook_delivery::create(&mut batch, &delivery, &due);
            queues.push(due.queue);
            deliveries.push(delivery);
        }
        if deliveries.is_empty() {
            return Ok(deliveries);
        }
        if !self.services.leases.fence_partitions(&mut batch, queues.iter().map(|queue_name| queue_name.partition)) {
            return Err(WebhookError::Unavailable);
        }
        self.services.store.commit(batch).await?;
        for queue_name in queues {
            sender.endpoint_queues.add(queue_name, now);
        }
        Ok(deliveries)
    }

    /// Returns the body of a delivery; `None` if its event was purged.
    pub async fn delivery_body(&self, delivery: &WebhookDelivery) -> Result<Option<Bytes>, ReadError> {
        payload::load_body(&self.services.store, delivery).await
    }

    /// Returns the events of these log entries with their payloads, without purged ones.
    pub async fn dispatched_events(
        &self,
        account: AccountId,
        entries: &[EventLogEntry],
    ) -> Result<Vec<DispatchedEvent>, ReadError> {
        let keys: Vec<_> = entries.iter().map(|entry| (entry.subject, entry.event)).collect();
        let payloads = payload::event_payloads(&self.services.store, account, &keys).await?;
        let events = entries.iter().zip(payloads).filter_map(|(entry, event_payload)| {
            let (event, data) = event_payload?;
            Some(DispatchedEvent { number: entry.number, event, data })
        });
        Ok(events.collect())
    }

    /// Subscribes to an account's event stream; `None` if the limit of subscribers is reached.
    #[must_use]
    pub fn subscribe(&self, account: AccountId) -> Option<StreamSubscriber> {
        self.sender.note_listener(self.services.clock.now());
        self.sender.subscribers.subscribe(account)
    }
}
