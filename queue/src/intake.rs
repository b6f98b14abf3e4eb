//! Message intake: every email, from the API, SMTP submission, the relay or the service itself, is accepted here.
//!
//! ```text
//! Draft ─► complete or compose ─► authorize ─► sign ─►[ email + recipients + tasks + event + body ]─► dispatcher
//!                                            └───────►[ email + recipients + schedule + event + body ]─► release
//! ```
//!
//! An email is accepted once it is committed to disk. A failure before the commit leaves no row behind. [`prepare`] and
//! [`write`] prepare the message, [`scheduled_release`] sends scheduled emails when they are due, and [`reschedule`] reschedules or
//! cancels them before.

mod build_message;
mod managed_unsubscribe;
mod prepare;
mod render_template;
mod reschedule;
mod scheduled_release;
mod suppression_check;
mod tracked_links;

use parking_lot::RwLock;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dns::secrets::Vault;
use dns::signing_pool::SigningPool;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::account::Account;
use mail::address::{Address, DomainName};
use mail::draft::Draft;
use mail::email::EmailStatus;
use mail::event::Event;
use mail::id::{EmailId, EventId};
use mail::plan::Plans;
use mail::signed_token::TokenKey;
use mail::unsubscribe::{UnsubscribeLinks, UnsubscribeToken};
use mail::usage::{PlanRemaining, PlanUsage};
use store::access::Tenant;
use store::engine::{Batch, CommitError, ReadError, Store, StoreState};
use tokio::sync::Notify;

use crate::automations::engine::AutomationEngine;
use crate::bounces::BounceProcessor;
use crate::client::http::{HttpClient, ResponseBudget};
use crate::clock::Clock;
use crate::credential_auth::CredentialAuthenticator;
use crate::dkim_signing::DkimSigning;
use crate::dkim2::TransactionSigner;
use crate::domains::{DomainsParts, SendingDomains};
use crate::email_tracking::EmailTracking;
use crate::entropy::Entropy;
use crate::idempotency::InProgressKeys;
use crate::last_hour::HourlyCounter;
use crate::outbox::OutboxDispatcher;
use crate::owner_alert_queue::OwnerAlertQueue;
use crate::partition_timers::PartitionTimers;
use crate::prepared_message::{Disposition, PartitionAssignment, PreparedMessage};
use crate::product_events::ProductEventService;
use crate::queue_admin::QueueAdmin;
use crate::quota_tracker::QuotaReservation;
use crate::rate_limit::{RateLimitStatus, RequestRate};
use crate::rate_limiter::RateLimiter;
use crate::sender_authorization::SenderAuthorization;
use crate::services::Services;
use crate::storage_quota::StorageQuotaTracker;
use crate::submit_error::SubmitError;
use crate::subsystems::{DeliverySubsystems, EventSubsystems, Subsystems};
use crate::suppression_import::SuppressionImporter;
use crate::suppressions::{SubscriptionPreferences, SuppressionError, SuppressionService};
use crate::task_reservation::TaskReservation;
use crate::template_cache::TemplateCache;
use crate::webhooks::WebhookService;

use prepare::PrepareError;
pub use prepare::SCHEDULED_AHEAD_MAX;
pub use render_template::RenderTemplateError;
pub use reschedule::RescheduleError;

/// Upper bound of the header bytes that intake adds to a message (trace fields, Date, Message-ID, From).
const ADDED_HEADER_BYTES_MAX: u64 = 4 * 1024;
/// Time limit for dispatching the outbox before usage is reported, so that emails just sent are counted.
const OUTBOX_WAIT_MAX: Duration = Duration::from_secs(2);

/// Memory for responses to HTTP requests made for accounts, over all accounts.
const RESPONSES_BYTES_MAX: usize = 64 << 20;
/// The share of one account.
const ACCOUNT_RESPONSES_BYTES_MAX: usize = 16 << 20;

/// Commits tried for an email when its partitions move to another node meanwhile.
const PARTITION_TRIES_MAX: usize = 3;

/// Message intake and the services around it. Clones share one state.
#[derive(Clone)]
pub struct Intake {
    pub(crate) services: Services,
    pub(crate) delivery: Arc<DeliverySubsystems>,
    pub(crate) events: Arc<EventSubsystems>,
    pub(crate) sender_authorization: Arc<SenderAuthorization>,
    signing_pool: Arc<SigningPool>,
    signing: DkimSigning,
    message_bytes_max: Arc<AtomicU64>,
    plans: Arc<RwLock<Plans>>,
    storage_quotas: Arc<StorageQuotaTracker>,
    rate_limiter: Arc<RateLimiter>,
    release_timers: Arc<PartitionTimers>,
    templates: Arc<TemplateCache>,
    link_key: TokenKey,
    base_url: Arc<OnceLock<String>>,
    partner_email_wakeup: Arc<Notify>,
    email_tracking: Arc<EmailTracking>,
    in_progress_keys: Arc<InProgressKeys>,
    pub(crate) domains: Arc<SendingDomains>,
    bounces: Arc<BounceProcessor>,
    product_events: Arc<ProductEventService>,
    automations: AutomationEngine,
    credentials: Arc<CredentialAuthenticator>,
    suppression_importer: Arc<SuppressionImporter>,
    webhooks: Arc<WebhookService>,
}

/// Parameters of [`Intake::new`] besides the subsystems.
pub struct IntakeParts {
    /// Opens sealed DKIM keys.
    pub vault: Arc<dns::secrets::Vault>,
    pub signing_pool: SigningPool,
    pub signing: DkimSigning,
    /// The operator's shared sender address for accounts without a verified domain.
    pub sandbox_sender: Option<Address>,
    /// Largest message accepted over SMTP, in bytes.
    pub message_bytes_max: u64,
    /// Limits of each plan.
    pub plans: Plans,
    /// Signs links in mail and on public pages.
    pub link_key: TokenKey,
    /// True to count and limit requests by the plan's rate.
    pub rate_limit: bool,
    pub domains: DomainsParts,
}

/// Result of an accepted submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitReceipt {
    pub id: EmailId,
    /// `Scheduled` for a scheduled email, otherwise `Sent`.
    pub status: EmailStatus,
    /// Suppressed recipients that were skipped because the sender chose `on_suppressed: skip`.
    pub skipped: Vec<Address>,
    /// Emails left under the caps of the plan.
    pub remaining: PlanRemaining,
}

impl SubmitReceipt {
    fn from_prepared(prepared: &PreparedMessage) -> Self {
        let status = match prepared.disposition {
            Disposition::Schedule(_) => EmailStatus::Scheduled,
            _ => EmailStatus::Sent,
        };
        let skipped = prepared.recipients.iter().filter(|to| to.suppressed);
        let skipped = skipped.map(|to| to.address.clone()).collect();
        let remaining = prepared.plan_reservation.as_ref().map(QuotaReservation::remaining).unwrap_or_default();
        Self { id: prepared.email.id, status, skipped, remaining }
    }
}

/// Adds rows to the commit of a batch; receives the result of each email.
pub type ExtendBatchCommit<'a> = dyn Fn(&[Result<SubmitReceipt, SubmitError>], &mut Batch) + Send + Sync + 'a;

impl Intake {
    /// Creates the intake of a queue. Call it once for each.
    #[must_use]
    pub fn new(queue: &Subsystems, parts: IntakeParts) -> Self {
        let services = queue.services.clone();
        let (delivery, events) = (Arc::new(queue.delivery.clone()), Arc::new(queue.events.clone()));
        let store = services.store.clone();
        let plans = Arc::new(RwLock::new(parts.plans));
        let storage_quotas =
            Arc::new(StorageQuotaTracker::new(store.clone(), services.clock.clone(), Arc::clone(&plans)));
        let automations =
            AutomationEngine::new(services.clone(), Arc::clone(&events.trigger_index), Arc::clone(&parts.vault));
        let sender_authorization =
            Arc::new(SenderAuthorization::new(store, parts.vault, parts.signing, parts.sandbox_sender));
        let signing_pool = Arc::new(parts.signing_pool);
        let signer =
            TransactionSigner::new(Arc::clone(&sender_authorization), Arc::clone(&signing_pool), parts.signing);
        delivery.dispatcher.agent.set_transaction_signer(signer);
        let product_events = ProductEventService::new(
            services.clone(),
            automations.clone(),
            Arc::clone(&events.analytics),
            Arc::clone(&events.exporter),
        );
        let response_budget = ResponseBudget::new(RESPONSES_BYTES_MAX, ACCOUNT_RESPONSES_BYTES_MAX);
        Self {
            credentials: Arc::new(CredentialAuthenticator::new(services.clone())),
            suppression_importer: Arc::new(SuppressionImporter::new(services.clone(), Arc::clone(&storage_quotas))),
            webhooks: Arc::new(WebhookService::new(services.clone(), Arc::clone(&events.webhooks), response_budget)),
            automations,
            email_tracking: Arc::new(EmailTracking::new(services.clone())),
            bounces: Arc::new(BounceProcessor::new(services.clone(), &delivery, parts.domains.facts.clone())),
            product_events: Arc::new(product_events),
            domains: Arc::new(SendingDomains::new(
                services.clone(),
                &events,
                Arc::clone(&sender_authorization),
                parts.domains,
            )),
            services,
            delivery,
            events,
            sender_authorization,
            signing_pool,
            signing: parts.signing,
            message_bytes_max: Arc::new(AtomicU64::new(parts.message_bytes_max)),
            plans,
            storage_quotas,
            rate_limiter: Arc::new(RateLimiter::new(parts.rate_limit)),
            release_timers: Arc::default(),
            templates: Arc::default(),
            link_key: parts.link_key,
            base_url: Arc::default(),
            partner_email_wakeup: Arc::default(),
            in_progress_keys: Arc::default(),
        }
    }

    /// The vault that seals secrets.
    #[must_use]
    pub fn vault(&self) -> &Arc<Vault> {
        self.events.webhooks.vault()
    }

    /// The client for URLs of customers and strangers: it connects to public addresses only, unless the operator allows
    /// others.
    #[must_use]
    pub fn http_client(&self) -> &HttpClient {
        self.events.webhooks.client()
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.services.store
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.services.clock
    }

    #[must_use]
    pub fn entropy(&self) -> &Entropy {
        &self.services.entropy
    }

    /// Cache of published templates.
    #[must_use]
    pub fn templates(&self) -> &TemplateCache {
        &self.templates
    }

    #[must_use]
    pub fn domains(&self) -> &SendingDomains {
        &self.domains
    }

    #[must_use]
    pub fn bounces(&self) -> &Arc<BounceProcessor> {
        &self.bounces
    }

    /// The domain of the sandbox sender, if the operator configured one.
    #[must_use]
    pub fn service_domain(&self) -> Option<DomainName> {
        self.sender_authorization.sandbox().map(|sender| sender.domain().clone())
    }

    /// The domain of the sandbox sender if it is not verified on this server; no account can send from it then.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unverified_sandbox_domain(&self) -> Result<Option<&DomainName>, ReadError> {
        self.sender_authorization.unverified_sandbox_domain().await
    }

    /// The address that system emails are sent from: the first of the two local parts, at the sandbox sender's domain,
    /// that differs from the sandbox sender.
    #[must_use]
    pub fn service_address(&self, local_parts: [&str; 2]) -> Option<Address> {
        self.sender_authorization
            .sandbox()
            .and_then(|sandbox| crate::system_mailer::sibling_address(sandbox, local_parts))
    }

    /// Public URL of the API and of the pages that links open; `None` until it is known.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.get().map(String::as_str)
    }

    /// Wakes the job that sends emails to partners.
    pub fn notify_partner_email(&self) {
        self.partner_email_wakeup.notify_one();
    }

    /// Waits until a partner email is queued, or until `at_latest`.
    pub async fn wait_for_partner_email(&self, at_latest: Timestamp) {
        tokio::select! {
            () = self.partner_email_wakeup.notified() => {}
            () = self.clock().sleep_until(at_latest) => {}
        }
    }

    #[must_use]
    pub fn automations(&self) -> &AutomationEngine {
        &self.automations
    }

    /// Idempotency keys of requests in progress.
    #[must_use]
    pub fn in_progress_keys(&self) -> &Arc<InProgressKeys> {
        &self.in_progress_keys
    }

    /// Limits of each plan.
    #[must_use]
    pub fn plans(&self) -> Plans {
        *self.plans.read()
    }

    /// Replaces the limits of the plans, on a configuration reload.
    pub fn set_plans(&self, plans: Plans) {
        *self.plans.write() = plans;
    }

    #[must_use]
    pub fn storage_quotas(&self) -> &Arc<StorageQuotaTracker> {
        &self.storage_quotas
    }

    #[must_use]
    pub fn rate_limiter(&self) -> &RateLimiter {
        &self.rate_limiter
    }

    /// Counts one HTTP or SMTP request of an account against its plan's rate. Returns `None` if rate limiting is off.
    /// Nodes that share a database divide the rate.
    ///
    /// # Errors
    /// The limit is reached; the status contains the time of the next allowed request.
    pub fn check_rate_limit(&self, account: &Account) -> Result<Option<RateLimitStatus>, RateLimitStatus> {
        if !self.rate_limiter.is_enabled() {
            return Ok(None);
        }
        let rate = RequestRate::new(self.plans().of(account.plan).requests_per_second, self.services.leases.nodes());
        self.rate_limiter.check(account.id, rate, self.services.clock.now()).map(Some)
    }

    /// Emails that an account has used of its plan today and this month, exact to one email.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn plan_usage(&self, tenant: &Tenant) -> Result<PlanUsage, ReadError> {
        // The quota tracker counts events that are not dispatched yet only for plans with caps.
        self.outbox().dispatch_within(OUTBOX_WAIT_MAX).await;
        let account = tenant.account().id;
        self.events.quota_tracker.usage_of(&self.services.store, account, self.clock().now()).await
    }

    /// Waits for the next recorded outcome. An outcome recorded after this call, even before the first poll, counts.
    pub fn next_outcome(&self) -> impl Future<Output = ()> + '_ {
        self.services.next_outcome()
    }

    /// Owner alerts that wait to be sent.
    #[must_use]
    pub fn owner_alerts(&self) -> OwnerAlertQueue {
        OwnerAlertQueue::new(self.services.clone(), Arc::clone(&self.events.owner_alert_timers))
    }

    /// Queue administration.
    #[must_use]
    pub fn queue_admin(&self) -> &Arc<QueueAdmin> {
        &self.delivery.admin
    }

    /// The outbox dispatcher.
    #[must_use]
    pub fn outbox(&self) -> &Arc<OutboxDispatcher> {
        &self.events.outbox
    }

    /// The credential authenticator.
    #[must_use]
    pub fn credentials(&self) -> &Arc<CredentialAuthenticator> {
        &self.credentials
    }

    /// The import of suppression lists.
    #[must_use]
    pub fn suppression_importer(&self) -> &Arc<SuppressionImporter> {
        &self.suppression_importer
    }

    /// Operations on webhook endpoints.
    #[must_use]
    pub fn webhooks(&self) -> &Arc<WebhookService> {
        &self.webhooks
    }

    /// The service for product events and visits.
    #[must_use]
    pub fn product_events(&self) -> &Arc<ProductEventService> {
        &self.product_events
    }

    /// Retention time of emails.
    #[must_use]
    pub fn retention(&self) -> Duration {
        self.delivery.policy.current().retention
    }

    /// The key that signs links in mail and on public pages.
    #[must_use]
    pub fn link_key(&self) -> &TokenKey {
        &self.link_key
    }

    /// Sets the public URL of the API, which links in mail lead to. Only the first call has an effect.
    pub fn set_base_url(&self, base_url: &str) {
        let _ = self.base_url.set(base_url.to_owned());
    }

    /// Public URL of the API; empty until it is known.
    #[must_use]
    pub fn base_url_or_empty(&self) -> &str {
        self.base_url.get().map_or("", String::as_str)
    }

    /// Builder of unsubscribe links; `None` until the public URL is known.
    #[must_use]
    pub fn unsubscribe_links(&self) -> Option<UnsubscribeLinks> {
        let base_url = self.base_url.get()?.clone();
        Some(UnsubscribeLinks { key: self.link_key.clone(), base_url })
    }

    /// Service that changes suppressions and subscription preferences.
    #[must_use]
    pub fn suppressions(&self) -> SuppressionService {
        SuppressionService::new(&self.services)
    }

    /// Applies the subscription preference of the recipient whom an unsubscribe link is bound to, and wakes the outbox.
    ///
    /// # Errors
    /// Returns a [`SuppressionError`] if the change is refused or cannot be stored.
    pub async fn apply_preference(
        &self,
        bound: &UnsubscribeToken,
        preference: SubscriptionPreferences,
    ) -> Result<(), SuppressionError> {
        self.suppressions().apply_preference(bound, preference).await?;
        self.services.outbox_wakeup.notify_one();
        Ok(())
    }

    /// Wakes the outbox dispatcher: an event was recorded.
    pub fn notify_outbox(&self) {
        self.services.outbox_wakeup.notify_one();
    }

    /// Partitions that this node holds, as ranges of adjacent numbers.
    #[must_use]
    pub fn partition_ranges(&self) -> Vec<RangeInclusive<u16>> {
        self.services.leases.owned_ranges()
    }

    #[must_use]
    pub fn email_tracking(&self) -> &EmailTracking {
        &self.email_tracking
    }

    /// Largest message accepted over SMTP, in bytes.
    #[must_use]
    pub fn message_bytes_max(&self) -> u64 {
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    /// Replaces the size limit, on a configuration reload.
    pub fn set_message_bytes_max(&self, bytes: u64) {
        self.message_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Checks that mail can be accepted: the node is not shutting down and the store is healthy.
    ///
    /// # Errors
    /// [`SubmitError::InsufficientStorage`] or [`SubmitError::Unavailable`].
    pub fn check_ready(&self) -> Result<(), SubmitError> {
        if self.services.stop.is_cancelled() {
            return Err(SubmitError::Unavailable);
        }
        self.check_store_health()
    }

    /// Checks the store alone. A message in transfer while delivery stops is still accepted: it is on disk for the next
    /// start.
    fn check_store_health(&self) -> Result<(), SubmitError> {
        match self.services.store.health().state {
            StoreState::Healthy => Ok(()),
            StoreState::Full => Err(SubmitError::InsufficientStorage),
            StoreState::Away(_) | StoreState::Fenced(_) => Err(SubmitError::Unavailable),
        }
    }

    /// Checks that an email may be scheduled for this time: in the future, and at most [`SCHEDULED_AHEAD_MAX`] ahead.
    ///
    /// # Errors
    /// Returns the reason as text for the `scheduled_at` field.
    pub fn validate_scheduled_at(&self, at: Timestamp) -> Result<(), &'static str> {
        prepare::validate_schedule_time(at, self.services.clock.now())
    }

    /// Checks at MAIL FROM that the account may send from the envelope sender, before content is read. The author in
    /// the header decides at the end of the message.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] if the account may not send from the address, or the store cannot be read.
    pub async fn authorize_sender(&self, tenant: &Tenant, sender: &Address) -> Result<(), SubmitError> {
        self.sender_authorization.authorize(tenant, sender, self.services.clock.now()).await.map(drop)
    }

    /// Accepts a draft. Returns when the email is committed.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] if the draft is refused or cannot be committed.
    pub async fn submit(&self, tenant: &Tenant, draft: Draft) -> Result<SubmitReceipt, SubmitError> {
        self.submit_with(tenant, draft, &|_, _| {}).await
    }

    /// Accepts a draft and lets `extend` add rows to its commit; `extend` receives the email's id.
    ///
    /// # Errors
    /// Returns a [`SubmitError`]; [`SubmitError::DoneConcurrently`] if a row that `extend` adds exists already.
    pub fn submit_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        draft: Draft,
        extend: &'a (dyn Fn(&SubmitReceipt, &mut Batch) + Send + Sync),
    ) -> BoxFuture<'a, Result<SubmitReceipt, SubmitError>> {
        Box::pin(async move {
            self.check_store_health()?;
            let now = self.services.clock.now();
            let prepared = match self.prepare_message(tenant, draft, now).await {
                Ok(prepared) => prepared,
                Err(PrepareError::Rejected(refusal)) => return Err(refusal),
                Err(PrepareError::Suppressed(prepared, refusal)) => {
                    self.commit(vec![*prepared], &|_| {}).await?;
                    return Err(refusal);
                }
            };
            let accepted = SubmitReceipt::from_prepared(&prepared);
            self.commit(vec![prepared], &|batch| extend(&accepted, batch)).await?;
            Ok(accepted)
        })
    }

    /// Accepts several drafts in one commit and returns the result of each. If `all` is set and one draft is refused,
    /// none is accepted. `extend` adds rows to the commit.
    ///
    /// If the result of the commit is unknown, each prepared email returns [`SubmitError::Unconfirmed`] with its id.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] that concerns the whole batch.
    pub fn submit_batch<'a>(
        &'a self,
        tenant: &'a Tenant,
        drafts: Vec<Draft>,
        all: bool,
        extend: &'a ExtendBatchCommit<'a>,
    ) -> BoxFuture<'a, Result<Vec<Result<SubmitReceipt, SubmitError>>, SubmitError>> {
        Box::pin(async move {
            self.check_store_health()?;
            let now = self.services.clock.now();
            let staging: Vec<_> = drafts.into_iter().map(|draft| self.prepare_message(tenant, draft, now)).collect();
            let mut prepared = Vec::with_capacity(staging.len());
            let mut outcomes = Vec::with_capacity(staging.len());
            for message in futures_util::future::join_all(staging).await {
                outcomes.push(match message {
                    Ok(message) => {
                        let accepted = SubmitReceipt::from_prepared(&message);
                        prepared.push(message);
                        Ok(accepted)
                    }
                    Err(PrepareError::Rejected(error)) => Err(error),
                    Err(PrepareError::Suppressed(message, error)) => {
                        prepared.push(*message);
                        Err(error)
                    }
                });
            }
            if all && outcomes.iter().any(Result::is_err) {
                return Ok(outcomes.into_iter().map(|result| result.map_err(SubmitError::without_email)).collect());
            }
            let unconfirmed = |accepted: SubmitReceipt| Err(SubmitError::Unconfirmed { id: accepted.id });
            match self.commit(prepared, &|batch| extend(&outcomes, batch)).await {
                Err(SubmitError::Unconfirmed { .. }) => {
                    Ok(outcomes.into_iter().map(|result| result.and_then(unconfirmed)).collect())
                }
                committed => committed.map(|()| outcomes),
            }
        })
    }

    /// Commits prepared messages in partitions of this node. Chooses others if a partition moved to another node
    /// meanwhile.
    async fn commit(
        &self,
        prepared: Vec<PreparedMessage>,
        extend: &(dyn Fn(&mut Batch) + Send + Sync),
    ) -> Result<(), SubmitError> {
        for _ in 0..PARTITION_TRIES_MAX {
            let mut batch = Batch::intake();
            let mut assignments = Vec::with_capacity(prepared.len());
            let mut events = Vec::with_capacity(prepared.len());
            for message in &prepared {
                let assignment = message.assign_partitions(|domain| self.services.leases.choose_for_domain(domain));
                let assignment = assignment.ok_or(SubmitError::Unavailable)?;
                let event = EventId::new(message.now, self.services.entropy.unique_bits());
                events.push(message.write_rows(&mut batch, &assignment, event));
                assignments.push(assignment);
            }
            if !self
                .services
                .leases
                .fence_partitions(&mut batch, assignments.iter().flat_map(PartitionAssignment::partitions))
            {
                // A partition moved to another node after it was chosen: choose again.
                continue;
            }
            let reserve = |assignment: PartitionAssignment| {
                (assignment.partition, TaskReservation::reserve(&self.delivery.dispatcher, assignment.tasks))
            };
            let reservations: Vec<_> = assignments.into_iter().map(reserve).collect();
            extend(&mut batch);
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    self.after_commit(prepared, events, reservations);
                    return Ok(());
                }
                Err(CommitError::Conflict { key })
                    if store::idempotency::caused_conflict(&key)
                        || store::schedule::caused_conflict(&key)
                        || store::automation_run::caused_conflict(&key)
                        || store::owner_alert::caused_conflict(&key)
                        || store::affiliate::partner_email::caused_conflict(&key) =>
                {
                    return Err(SubmitError::DoneConcurrently);
                }
                Err(CommitError::Conflict { .. }) => self.services.leases.wait_for_change().await,
                // The disk failed or the database connection was lost during the commit, so its result is unknown.
                Err(CommitError::Fenced(_) | CommitError::Unknown(_)) => {
                    reservations.into_iter().for_each(|(_, reservation)| reservation.mark_in_doubt());
                    let first = prepared.first().map(|message| message.email.id);
                    return Err(first.map_or(SubmitError::Unavailable, |id| SubmitError::Unconfirmed { id }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(SubmitError::Unavailable)
    }

    pub(crate) fn count_received(&self) {
        self.delivery.metrics().last_hour.count(HourlyCounter::Received, 1, self.clock().now());
    }

    /// Updates counters, timers and caches after the commit.
    fn after_commit(
        &self,
        prepared: Vec<PreparedMessage>,
        events: Vec<Event>,
        reservations: Vec<(u16, TaskReservation)>,
    ) {
        let (number, now) = (prepared.len() as u64, self.clock().now());
        metrics::counter!("postrider_emails_accepted_total").increment(number);
        self.delivery.metrics().last_hour.count(HourlyCounter::Accepted, number, now);
        for ((message, event), (partition, reservation)) in prepared.into_iter().zip(events).zip(reservations) {
            message.log();
            match message.disposition {
                Disposition::Schedule(at) => self.release_timers.schedule(partition, at),
                Disposition::Reject(..) => self.services.outcome_recorded.notify_waiters(),
                Disposition::Deliver => {}
            }
            reservation.confirm(&message.chunks);
            if let Some(reserved) = message.plan_reservation {
                reserved.confirm();
            }
            if let Some(storage) = message.storage_reservation {
                storage.confirm();
            }
            self.events.recent_events.insert(event, Some(message.email));
        }
        self.services.outbox_wakeup.notify_one();
    }
}
