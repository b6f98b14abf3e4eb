//! Webhooks: events on their way to the endpoints that ask for them, and to partners' own addresses ([`destination`]).
//!
//! ```text
//! tell ─►[ … + deliveries + due keys ] ─► lines ─► a slice from disk ─► post ─►[ attempt + delivery - due key ]
//!                                                                  └─► again, by the endpoint's ladder
//! ```
//!
//! Deliveries are made in the commit that tells their event ([`make`]), in partitions of the telling node, and
//! tried by their partition's owner ([`send`]). In memory stands one entry for each endpoint that has work in a
//! partition ([`lines`]), however much that is; each is served by a task of its own, so that one that is dead
//! delays no other. An attempt is booked in one commit that takes its due key away ([`settle`]): once, and by the
//! owner. Posted it may be twice, when a crash comes between.

pub mod desk;
mod destination;
pub mod follow;
pub(crate) mod lines;
pub(crate) mod make;
mod payload;
mod places;
mod replay;
mod send;
mod settle;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dns::seal::Vault;
use jiff::Timestamp;
use mail::id::{AccountId, WebhookId};
use mail::webhook::{RetryPolicy, Webhook};
use store::engine::{ReadError, Store};
use store::webhook::WebhookSetVersion;

use crate::courier::http::{HttpClient, UrlRules};
use follow::StreamSubscribers;
use lines::EndpointQueues;
use payload::PayloadCache;
use places::PostLimits;

pub use desk::WebhookError;
pub use destination::postback_endpoint_id;
pub use replay::ReplaySelection;

/// How long one attempt may take (completions-email.md 2.11).
pub const ATTEMPT_MAX: Duration = Duration::from_secs(15);
/// Posts under way at once, to all endpoints together …
const POSTS_MAX: usize = 1_024;
/// … and to those of one account.
const POSTS_PER_ACCOUNT_MAX: usize = 256;
/// Accounts whose endpoints are kept in memory.
const ACCOUNTS_MAX: usize = 10_000;
/// For so long after something was delivered or followed telling does not dawdle.
const LISTENER_TTL_S: i64 = 600;

/// The waits before each attempt that are the contract's (email-api.md, "Limits").
pub const RETRY_SCHEDULE: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(120),
];
/// The long ladder: eight attempts in 27.6 hours.
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

/// What webhooks need.
pub struct WebhooksParts {
    /// Posts.
    pub client: HttpClient,
    /// Seals secrets.
    pub vault: Arc<Vault>,
    /// The waits before each attempt, unless an endpoint asks for the long ladder.
    pub retry_schedule: Vec<Duration>,
}

/// An account's endpoints, and as of which version of them.
type CachedEndpoints = (WebhookSetVersion, Arc<Vec<Webhook>>);

/// The webhooks of all accounts.
pub(crate) struct WebhookSender {
    client: HttpClient,
    vault: Arc<Vault>,
    retry_schedule: Vec<Duration>,
    pub(crate) endpoint_queues: EndpointQueues,
    subscribers: StreamSubscribers,
    payloads: PayloadCache,
    post_limits: PostLimits,
    endpoints: Mutex<HashMap<AccountId, CachedEndpoints>>,
    secrets: Mutex<HashMap<WebhookId, (String, Arc<str>)>>,
    /// Until when, in seconds, telling is eager.
    listeners_until_s: AtomicI64,
}

impl WebhookSender {
    /// What seals secrets.
    pub(crate) fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    pub(crate) fn new(parts: WebhooksParts) -> Self {
        Self {
            client: parts.client,
            vault: parts.vault,
            retry_schedule: parts.retry_schedule,
            endpoint_queues: EndpointQueues::default(),
            subscribers: StreamSubscribers::default(),
            payloads: PayloadCache::default(),
            post_limits: PostLimits::new(POSTS_MAX, POSTS_PER_ACCOUNT_MAX),
            endpoints: Mutex::default(),
            secrets: Mutex::default(),
            listeners_until_s: AtomicI64::new(0),
        }
    }

    /// Which URLs may be posted to.
    pub(crate) fn url_rules(&self) -> UrlRules {
        self.client.rules()
    }

    /// Who posts, and gets.
    pub(crate) fn client(&self) -> &HttpClient {
        &self.client
    }

    /// The waits before each attempt.
    fn retry_schedule(&self, policy: RetryPolicy) -> &[Duration] {
        match policy {
            RetryPolicy::Default => &self.retry_schedule,
            RetryPolicy::Extended => &RETRY_SCHEDULE_EXTENDED,
        }
    }

    /// Somebody wants to hear what happens.
    fn note_listener(&self, now: Timestamp) {
        self.listeners_until_s.store(now.as_second().saturating_add(LISTENER_TTL_S), Ordering::Relaxed);
    }

    /// Whether events are told without gathering many, because somebody waits for them.
    pub(crate) fn has_listeners(&self, now: Timestamp) -> bool {
        self.listeners_until_s.load(Ordering::Relaxed) > now.as_second()
    }

    /// The endpoints of an account, as of a version.
    async fn endpoints(
        &self,
        store: &Store,
        account: AccountId,
        version: &WebhookSetVersion,
    ) -> Result<Arc<Vec<Webhook>>, ReadError> {
        if version.is_none() {
            return Ok(Arc::default());
        }
        {
            let known = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, endpoints)) = known.get(&account).filter(|(known, _)| known == version) {
                return Ok(Arc::clone(endpoints));
            }
        }
        // Read after the version: what is kept is that version's or a newer one's, and then read again.
        let endpoints = Arc::new(store::webhook::list(store, account).await?);
        let mut known = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ACCOUNTS_MAX {
            known.clear();
        }
        known.insert(account, (version.clone(), Arc::clone(&endpoints)));
        Ok(endpoints)
    }

    /// The text of a secret that lies sealed.
    fn unseal_secret(&self, id: WebhookId, sealed: &str) -> Option<Arc<str>> {
        use base64::Engine as _;
        let known = |secrets: &HashMap<WebhookId, (String, Arc<str>)>| {
            let (of, text) = secrets.get(&id)?;
            (of == sealed).then(|| Arc::clone(text))
        };
        if let Some(text) = known(&self.secrets.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(text);
        }
        let blob = base64::engine::general_purpose::STANDARD.decode(sealed).ok()?;
        let plain = self.vault.open(&id.to_bytes(), &blob).ok()?;
        let text: Arc<str> = String::from_utf8(plain).ok()?.into();
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if secrets.len() >= ACCOUNTS_MAX {
            secrets.clear();
        }
        secrets.insert(id, (sealed.to_owned(), Arc::clone(&text)));
        Some(text)
    }
}

/// A number of an id's that spreads: its random part.
fn random_part(id: WebhookId) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = id.to_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
