//! What an account does with its endpoints: made, changed, given another secret, tried, deleted; and the stream of
//! events that it reads by itself.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use mail::delivery::{WebhookDelivery, WebhookDeliveryStatus};
use mail::domain::SealedSecret;
use mail::event::Event;
use mail::id::{AccountId, EventId, WebhookId};
use mail::webhook::{ENDPOINTS_MAX, FORMER_SECRETS_MAX, FormerSecret, Webhook, format_secret};
use serde_json::{Map, Value};
use store::engine::{Batch, CommitError, ReadError};
use store::stream::EventLogEntry;
use thiserror::Error;

use super::WebhookSender;
use super::follow::StreamSubscriber;
use super::payload;
use crate::accept::Intake;
use crate::courier::http::{HttpClientError, HttpGet, HttpPost, HttpResponse, ResponsePermit, UrlRules, UrlTarget};

/// What one permit holds at most: half of an account's part, so that its other questions go on beside it.
const PERMIT_BYTES_MAX: usize = 8 << 20;
/// Commits tried, when something is changed meanwhile.
const COMMIT_TRIES_MAX: usize = 8;
/// What the former secret is sealed as: another row than the secret, so that they are never taken for each other.
const FORMER_SECRET_CONTEXT: &[u8] = b" former";

/// Why something cannot be done with an endpoint.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// There is no such endpoint.
    #[error("there is no such webhook endpoint")]
    Unknown,
    /// There is no such delivery.
    #[error("there is no such delivery")]
    UnknownDelivery,
    /// There are as many as there may be.
    #[error("an account has at most {ENDPOINTS_MAX} webhook endpoints")]
    TooMany,
    /// Nothing is sent to it.
    #[error("the webhook endpoint is disabled")]
    Disabled,
    /// It is being tried.
    #[error("the delivery is being tried")]
    Pending,
    /// Somebody else changed it at the same time.
    #[error("it was changed at the same time")]
    Changed,
    /// Not now.
    #[error("not at the moment")]
    Unavailable,
    /// The secret cannot be sealed.
    #[error("the secret cannot be sealed")]
    Seal,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// An event, as it is told.
#[derive(Debug, Clone)]
pub struct DispatchedEvent {
    /// Its place in the stream.
    pub number: u64,
    /// The event.
    pub event: Event,
    /// What is told of it.
    pub data: Map<String, Value>,
}

impl WebhookSender {
    fn seal_secret(&self, row: &[u8], text: &str) -> Result<SealedSecret, WebhookError> {
        let blob = self.vault.seal(row, text.as_bytes()).map_err(|_| WebhookError::Seal)?;
        Ok(SealedSecret(STANDARD.encode(blob)))
    }

    /// The text of a former secret.
    pub(super) fn unseal_former_secret(&self, id: WebhookId, sealed: &str) -> Option<std::sync::Arc<str>> {
        let blob = STANDARD.decode(sealed).ok()?;
        let plain = self.vault.open(&[&id.to_bytes(), FORMER_SECRET_CONTEXT].concat(), &blob).ok()?;
        String::from_utf8(plain).ok().map(Into::into)
    }
}

impl Intake {
    /// Which URLs endpoints may have.
    #[must_use]
    pub fn webhook_url_rules(&self) -> UrlRules {
        self.worker.webhooks.url_rules()
    }

    /// Whether an endpoint may have this URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_webhook_url(&self, url: &str) -> Result<(), String> {
        UrlTarget::parse(url, self.webhook_url_rules()).map(drop)
    }

    /// Gets what stands at a URL that a stranger named, under the rules of webhooks.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn fetch_url(&self, get: HttpGet) -> Result<HttpResponse, HttpClientError> {
        self.worker.webhooks.client().get(get).await
    }

    /// The same; what is kept of the answer is paid from a permit of [`Hall::answer_permit`].
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn fetch_url_with_permit(
        &self,
        get: HttpGet,
        permit: &mut ResponsePermit,
    ) -> Result<HttpResponse, HttpClientError> {
        self.worker.webhooks.client().get_with_permit(get, Some(permit)).await
    }

    /// A permit to keep foreign answers in memory, for an account, of nothing yet.
    #[must_use]
    pub fn response_permit(&self, account: AccountId) -> ResponsePermit {
        self.response_budget.permit(account, PERMIT_BYTES_MAX)
    }

    /// Posts to a URL that a stranger named, under the rules of webhooks, and reads more of the answer than of theirs.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn post_url(&self, post: HttpPost, answer_bytes_max: usize) -> Result<HttpResponse, HttpClientError> {
        self.worker.webhooks.client().post_with_limit(post, answer_bytes_max).await
    }

    /// Makes an endpoint as `settings` says, with an id and a secret of its own; the secret's text is in nobody's
    /// hands but the caller's.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn create_webhook(&self, settings: Webhook) -> Result<(Webhook, String), WebhookError> {
        let (now, account) = (self.clock().now(), settings.account);
        let id = WebhookId::new(now, self.entropy().unique_bits());
        let text = format_secret(&self.entropy().secret());
        let secret = self.worker.webhooks.seal_secret(&id.to_bytes(), &text)?;
        let webhook = Webhook { id, secret, created_at: now, updated_at: now, ..settings };
        for _ in 0..COMMIT_TRIES_MAX {
            let versions = store::webhook::list_versions(self.store(), &[account]).await?;
            let version = versions.into_iter().next().unwrap_or_default();
            if store::webhook::list(self.store(), account).await?.len() >= ENDPOINTS_MAX {
                return Err(WebhookError::TooMany);
            }
            let mut batch = Batch::intake();
            store::webhook::create(&mut batch, &webhook, &version);
            if self.commit_unless_changed(batch).await? {
                self.worker.webhooks.note_listener(now);
                return Ok((webhook, text));
            }
        }
        Err(WebhookError::Changed)
    }

    async fn commit_unless_changed(&self, batch: Batch) -> Result<bool, WebhookError> {
        match self.store().commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// An endpoint of an account.
    ///
    /// # Errors
    /// [`WebhookError::Unknown`], or the store cannot be read.
    pub async fn webhook(&self, account: AccountId, id: WebhookId) -> Result<Webhook, WebhookError> {
        let found = store::webhook::get(self.store(), account, id).await?;
        found.map(|(webhook, _)| webhook).ok_or(WebhookError::Unknown)
    }

    /// Changes an endpoint.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: impl Fn(&mut Webhook),
    ) -> Result<Webhook, WebhookError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let found = store::webhook::get(self.store(), account, id).await?;
            let (before, version) = found.ok_or(WebhookError::Unknown)?;
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(after);
            }
            after.updated_at = self.clock().now();
            let mut batch = Batch::progress();
            store::webhook::update(&mut batch, &before, &after, &version);
            if self.commit_unless_changed(batch).await? {
                return Ok(after);
            }
        }
        Err(WebhookError::Changed)
    }

    /// Deletes an endpoint; what waits to be delivered to it is dropped.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<(), WebhookError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let found = store::webhook::get(self.store(), account, id).await?;
            let (webhook, version) = found.ok_or(WebhookError::Unknown)?;
            let mut batch = Batch::progress();
            store::webhook::delete(&mut batch, &webhook, &version);
            if self.commit_unless_changed(batch).await? {
                return Ok(());
            }
        }
        Err(WebhookError::Changed)
    }

    /// Gives an endpoint another secret; those before sign beside it for a while.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn rotate_webhook_secret(
        &self,
        account: AccountId,
        id: WebhookId,
        grace: Duration,
    ) -> Result<(Webhook, String), WebhookError> {
        let webhooks = &self.worker.webhooks;
        let before = self.webhook(account, id).await?;
        let text = format_secret(&self.entropy().secret());
        let secret = webhooks.seal_secret(&id.to_bytes(), &text)?;
        let now = self.clock().now();
        let until = now.checked_add(grace).unwrap_or(Timestamp::MAX);
        let former = match webhooks.unseal_secret(id, &before.secret.0).filter(|_| !grace.is_zero()) {
            Some(text) => Some(webhooks.seal_secret(&[&id.to_bytes(), FORMER_SECRET_CONTEXT].concat(), &text)?),
            None => None,
        };
        let changed = self.change_webhook(account, id, |webhook| {
            // Of two rotations at the same time the later one's secret holds; the former is what both knew.
            match former.clone() {
                Some(sealed) => {
                    webhook.former_secrets.retain(|former| former.until > now);
                    webhook.former_secrets.insert(0, FormerSecret { sealed, until });
                    webhook.former_secrets.truncate(FORMER_SECRETS_MAX);
                }
                // Without a grace none of them signs any more: that is how a stolen one is ended.
                None => webhook.former_secrets.clear(),
            }
            webhook.secret = secret.clone();
        });
        Ok((changed.await?, text))
    }

    /// Queues a body of somebody's making to endpoints, to try them: delivered as all else is.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn send_test_deliveries(
        &self,
        endpoints: &[Webhook],
        (event, kind): (EventId, &str),
        body: &str,
    ) -> Result<Vec<WebhookDelivery>, WebhookError> {
        let (worker, now) = (&self.worker, self.clock().now());
        let mut batch = Batch::intake();
        let (mut deliveries, mut lines) = (Vec::new(), Vec::new());
        for endpoint in endpoints {
            let due = worker.new_due_delivery((endpoint.account, endpoint.id), now).ok_or(WebhookError::Unavailable)?;
            let delivery = WebhookDelivery {
                id: due.delivery,
                account: endpoint.account,
                webhook: endpoint.id,
                event,
                kind: kind.to_owned(),
                subject: None,
                body: Some(body.to_owned()),
                status: WebhookDeliveryStatus::Pending,
                attempts: 0,
                by_hand: false,
                next_attempt_at: Some(now),
                response_status: None,
                created_at: now,
                delivered_at: None,
            };
            store::delivery::create(&mut batch, &delivery, &due);
            lines.push(due.queue);
            deliveries.push(delivery);
        }
        if deliveries.is_empty() {
            return Ok(deliveries);
        }
        if !worker.leases.fence_partitions(&mut batch, lines.iter().map(|line| line.partition)) {
            return Err(WebhookError::Unavailable);
        }
        self.store().commit(batch).await?;
        for line in lines {
            worker.webhooks.endpoint_queues.add(line, now);
        }
        Ok(deliveries)
    }

    /// What a delivery posts; none when what it tells of is not kept any more.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn delivery_body(&self, delivery: &WebhookDelivery) -> Result<Option<Bytes>, ReadError> {
        payload::load_body(self.store(), delivery).await
    }

    /// Events as they are told, of these entries of an account's stream; without those that are not kept any more.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn dispatched_events(
        &self,
        account: AccountId,
        entries: &[EventLogEntry],
    ) -> Result<Vec<DispatchedEvent>, ReadError> {
        let which: Vec<_> = entries.iter().map(|entry| (entry.subject, entry.event)).collect();
        let told = payload::event_payloads(self.store(), account, &which).await?;
        let told = entries.iter().zip(told).filter_map(|(entry, told)| {
            let (event, data) = told?;
            Some(DispatchedEvent { number: entry.number, event, data })
        });
        Ok(told.collect())
    }

    /// Follows an account's stream; none when there are as many who follow as there may be.
    #[must_use]
    pub fn subscribe(&self, account: AccountId) -> Option<StreamSubscriber> {
        self.worker.webhooks.note_listener(self.clock().now());
        self.worker.webhooks.subscribers.subscribe(account)
    }
}
