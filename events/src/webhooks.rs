//! Webhooks: delivers events to the endpoints of accounts, and to partners' postback URLs ([`delivery_target`]).
//!
//! ```text
//! dispatcher ─►[ … + deliveries + due keys ] ─► endpoint queues ─► page from disk ─► POST
//!   POST ─►[ attempt + delivery − due key ], and a retry by the endpoint's schedule
//! ```
//!
//! Deliveries are created in the commit that dispatches their event ([`new_deliveries`]), in partitions of the dispatching node,
//! and are sent by the partition's owner ([`endpoint_worker`]). Memory holds one entry per endpoint with work in a partition
//! ([`endpoint_queues`]), however many deliveries it has. Each endpoint is served by its own task, so a dead one delays no other.
//!
//! Webhook attempts are recorded exactly once, by the owner, in a commit that deletes the due key ([`attempt_outcomes`]). The
//! HTTP POST is at-least-once: it is repeated after a crash before that commit. A delivery whose attempts are used up is
//! a dead letter: it is kept as `failed`, and its account can send it again.

mod attempt_outcomes;
mod delivery_target;
pub(crate) mod endpoint_queues;
mod endpoint_worker;
pub mod endpoints;
pub(crate) mod new_deliveries;
mod payload;
mod post_limits;
mod replay;
pub mod stream_subscribers;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use dns::secrets::Vault;
use jiff::Timestamp;
use model::id::{AccountId, WebhookId};
use model::webhook::{RetryPolicy, Webhook};
use net::http_client::HttpClient;
use quick_cache::sync::Cache;
use store::engine::{ReadError, Store};
use store::webhook::WebhookSetVersion;

use endpoint_queues::EndpointQueues;
use payload::PayloadCache;
use post_limits::PostLimits;
use queue::scheduler::partition_timers::PartitionTimers;
use queue::services::Services;
use stream_subscribers::StreamSubscribers;

pub use delivery_target::postback_endpoint_id;
pub use endpoints::{WebhookError, WebhookService};
pub use replay::ReplaySelection;

/// Timeout of an attempt.
pub const ATTEMPT_MAX: Duration = Duration::from_secs(15);
/// Concurrent POSTs to all endpoints …
const POSTS_MAX: usize = 1_024;
/// … and to those of one account.
const POSTS_PER_ACCOUNT_MAX: usize = 256;
/// Accounts whose endpoints are cached.
const ACCOUNTS_MAX: usize = 10_000;
/// Time after a delivery or subscription in which events are dispatched with a short delay.
const LISTENER_TTL_S: i64 = 600;

/// Waits before each attempt.
pub const RETRY_SCHEDULE: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(120),
];
/// Extended schedule: eight attempts in 27.6 hours.
const RETRY_SCHEDULE_EXTENDED: [Duration; 8] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(300),
    Duration::from_secs(1_800),
    Duration::from_secs(7_200),
    Duration::from_secs(18_000),
    Duration::from_secs(36_000),
    Duration::from_secs(36_000),
];

/// Dependencies of the webhook sender.
pub struct WebhooksParts {
    pub client: HttpClient,
    /// Seals the endpoints' secrets.
    pub vault: Arc<Vault>,
    /// Waits before each attempt, unless an endpoint selects the extended schedule.
    pub retry_schedule: Vec<Duration>,
}

/// Endpoints of an account, with their version.
type CachedEndpoints = (WebhookSetVersion, Arc<Vec<Webhook>>);

/// Sends webhooks of all accounts.
pub struct WebhookSender {
    services: Services,
    /// Next scan of each partition for owner alerts.
    owner_alert_timers: Arc<PartitionTimers>,
    client: HttpClient,
    vault: Arc<Vault>,
    retry_schedule: Vec<Duration>,
    pub(crate) endpoint_queues: EndpointQueues,
    subscribers: StreamSubscribers,
    payloads: PayloadCache,
    post_limits: PostLimits,
    endpoints: Cache<AccountId, CachedEndpoints>,
    /// Sealed and unsealed secrets.
    secrets: Cache<WebhookId, (Arc<str>, Arc<str>)>,
    /// Time, in seconds since 1970, until which events are dispatched with a short delay.
    listeners_until_s: AtomicI64,
}

impl WebhookSender {
    pub(crate) fn new(services: Services, owner_alert_timers: Arc<PartitionTimers>, parts: WebhooksParts) -> Self {
        Self {
            services,
            owner_alert_timers,
            client: parts.client,
            vault: parts.vault,
            retry_schedule: parts.retry_schedule,
            endpoint_queues: EndpointQueues::default(),
            subscribers: StreamSubscribers::default(),
            payloads: PayloadCache::default(),
            post_limits: PostLimits::new(POSTS_MAX, POSTS_PER_ACCOUNT_MAX),
            endpoints: Cache::new(ACCOUNTS_MAX),
            secrets: Cache::new(ACCOUNTS_MAX),
            listeners_until_s: AtomicI64::new(0),
        }
    }

    /// The client for URLs of customers and strangers: it connects to public addresses only, unless the operator allows
    /// others.
    #[must_use]
    pub fn client(&self) -> &HttpClient {
        &self.client
    }

    /// Waits before each attempt by a retry policy.
    fn retry_schedule(&self, policy: RetryPolicy) -> &[Duration] {
        match policy {
            RetryPolicy::Default => &self.retry_schedule,
            RetryPolicy::Extended => &RETRY_SCHEDULE_EXTENDED,
        }
    }

    /// Notes that an endpoint or subscriber is waiting for events.
    fn note_listener(&self, now: Timestamp) {
        self.listeners_until_s.store(now.as_second().saturating_add(LISTENER_TTL_S), Ordering::Relaxed);
    }

    /// True if events are dispatched with a short delay because an endpoint or subscriber is waiting.
    pub(crate) fn has_listeners(&self, now: Timestamp) -> bool {
        self.listeners_until_s.load(Ordering::Relaxed) > now.as_second()
    }

    /// Returns an account's endpoints as of a version, from the cache if possible.
    async fn endpoints(
        &self,
        store: &Store,
        account: AccountId,
        version: &WebhookSetVersion,
    ) -> Result<Arc<Vec<Webhook>>, ReadError> {
        if version.is_none() {
            return Ok(Arc::default());
        }
        if let Some((_, endpoints)) = self.endpoints.get(&account).filter(|(cached, _)| cached == version) {
            return Ok(endpoints);
        }
        // The list is read after the version: it is of that version or newer, and a newer one is read again later.
        let endpoints = Arc::new(store::webhook::list(store, account).await?);
        self.endpoints.insert(account, (version.clone(), Arc::clone(&endpoints)));
        Ok(endpoints)
    }

    /// Unseals a secret, or returns it from the cache.
    fn unseal_secret(&self, id: WebhookId, sealed: &str) -> Option<Arc<str>> {
        use base64::Engine as _;
        if let Some((_, text)) = self.secrets.get(&id).filter(|(cached, _)| &**cached == sealed) {
            return Some(text);
        }
        let blob = base64::engine::general_purpose::STANDARD.decode(sealed).ok()?;
        let plain = self.vault.open(&id.to_bytes(), &blob).ok()?;
        let text: Arc<str> = String::from_utf8(plain).ok()?.into();
        self.secrets.insert(id, (Arc::from(sealed), Arc::clone(&text)));
        Some(text)
    }
}

/// Returns the random part of an id, as a well distributed hash.
fn random_part(id: WebhookId) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = id.to_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
