//! The hall: the one door of the queue. Whatever is sent is accepted here.
//!
//! ```text
//! Draft ─► mend or compose ─► may they? ─► sign ─►[ email + recipients + tasks + event + body ]─► worker
//!                                        └────────►[ email + recipients + schedule + event + body ]─► release
//! ```
//!
//! Accepted means: on disk. Everything before the commit leaves no trace when it fails. [`stage`] and
//! [`write`] are what goes before it; [`release`] takes scheduled emails the rest of the way, [`amend`]
//! changes them before.

mod amend;
mod fill;
mod reach;
mod release;
mod stage;
mod track;
mod unsubscribe;
mod write;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use dns::seal::Vault;
use dns::signing_pool::SigningPool;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::account::Account;
use mail::address::{Address, DomainName};
use mail::draft::Draft;
use mail::email::EmailStatus;
use mail::event::Event;
use mail::id::{EmailId, EventId};
use mail::link::TokenKey;
use mail::plan::Plans;
use mail::unsubscribe::{UnsubscribeLinks, UnsubscribeToken};
use mail::usage::{PlanRemaining, PlanUsage};
use store::access::Tenant;
use store::engine::{Batch, CommitError, ReadError, Store, StoreState};
use tokio::sync::Notify;

use crate::appointments::PartitionTimers;
use crate::automations::AutomationEngine;
use crate::clock::Clock;
use crate::contacts::{SubscriptionPreferences, SuppressionError, SuppressionService};
use crate::courier::http::ResponseBudget;
use crate::dkim2::TransactionSigner;
use crate::domains::{DomainsParts, SendingDomains};
use crate::entropy::Entropy;
use crate::last_hour::Counted;
use crate::meter::QuotaReservation;
use crate::once::InProgressKeys;
use crate::quota::StorageQuotaTracker;
use crate::rate::{RateLimitStatus, RequestRate};
use crate::refusal::SubmitError;
use crate::reservation::TaskReservation;
use crate::returned::BounceProcessor;
use crate::sender::SenderAuthorization;
use crate::staged::{Disposition, PartitionAssignment, PreparedMessage};
use crate::tell::OutboxError;
use crate::templates::TemplateCache;
use crate::throttle::RateLimiter;
use crate::visits::EmailTracking;
use crate::worker::Worker;

pub use amend::RescheduleError;
pub use fill::RenderTemplateError;
use stage::PrepareError;
pub use stage::SCHEDULED_AHEAD_MAX;

/// What mending puts on top of a message (trace, Date, Message-ID, From), at most.
const ADDED_HEADER_BYTES_MAX: u64 = 4 * 1024;
/// How long who asks for the usage waits for what is not counted yet.
const OUTBOX_WAIT_MAX: Duration = Duration::from_secs(2);

/// What answers to accounts' questions to hosts of their own may hold in memory, all together.
const RESPONSES_BYTES_MAX: usize = 64 << 20;
/// The part of one account.
const ACCOUNT_RESPONSES_BYTES_MAX: usize = 16 << 20;

/// How often partitions are chosen for an email, should they go to other nodes while it is committed.
const PARTITION_TRIES_MAX: usize = 3;

/// The hall. Clones are the same hall.
#[derive(Clone)]
pub struct Intake {
    pub(crate) worker: Arc<Worker>,
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
    pub(crate) response_budget: ResponseBudget,
    domains: Arc<SendingDomains>,
    bounces: BounceProcessor,
    automations: AutomationEngine,
}

/// What is signed of mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DkimSigning {
    /// Nothing: only to measure what signing costs.
    Off,
    /// Each message (DKIM).
    Messages,
    /// Each message, and each transaction that it goes out in (DKIM2).
    MessagesAndTransactions,
}

/// What the hall needs beside the worker.
pub struct IntakeParts {
    /// Opens DKIM keys.
    pub vault: Arc<dns::seal::Vault>,
    /// Signs.
    pub signing_pool: SigningPool,
    /// What is signed of mail.
    pub signing: DkimSigning,
    /// The shared sandbox sender.
    pub sandbox_sender: Option<Address>,
    /// The largest message taken over SMTP, in bytes.
    pub message_bytes_max: u64,
    /// What the plans include.
    pub plans: Plans,
    /// Signs links.
    pub link_key: TokenKey,
    /// Requests are counted, and bounded by the plans.
    pub rate_limit: bool,
    /// What sending domains need.
    pub domains: DomainsParts,
}

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitReceipt {
    /// The email's id.
    pub id: EmailId,
    /// Its state: in our spool.
    pub status: EmailStatus,
    /// Recipients that it does not go to, as the sender wished.
    pub skipped: Vec<Address>,
    /// What is left of the plan's caps.
    pub remaining: PlanRemaining,
}

impl SubmitReceipt {
    fn from_prepared(staged: &PreparedMessage) -> Self {
        let status = match staged.disposition {
            Disposition::Schedule(_) => EmailStatus::Scheduled,
            _ => EmailStatus::Sent,
        };
        let skipped = staged.recipients.iter().filter(|to| to.suppressed);
        let skipped = skipped.map(|to| to.address.clone()).collect();
        let remaining = staged.plan_reservation.as_ref().map(QuotaReservation::remaining).unwrap_or_default();
        Self { id: staged.email.id, status, skipped, remaining }
    }
}

/// Writes something in the commit of several emails, told what came of each.
pub type ExtendBatchCommit<'a> = dyn Fn(&[Result<SubmitReceipt, SubmitError>], &mut Batch) + Send + Sync + 'a;

impl Intake {
    /// Opens the hall before a worker.
    #[must_use]
    pub fn new(worker: Arc<Worker>, parts: IntakeParts) -> Self {
        let store = worker.store.clone();
        let plans = Arc::new(RwLock::new(parts.plans));
        let storage_quotas =
            Arc::new(StorageQuotaTracker::new(store.clone(), worker.clock.clone(), Arc::clone(&plans)));
        let automations = AutomationEngine::new(Arc::clone(&worker), Arc::clone(&parts.vault));
        let sender_authorization =
            Arc::new(SenderAuthorization::new(store, parts.vault, parts.signing, parts.sandbox_sender));
        let signing_pool = Arc::new(parts.signing_pool);
        let signer =
            TransactionSigner::new(Arc::clone(&sender_authorization), Arc::clone(&signing_pool), parts.signing);
        // A worker has one hall.
        let _ = worker.transaction_signer.set(signer);
        let _ = worker.storage_quotas.set(Arc::clone(&storage_quotas));
        Self {
            automations,
            email_tracking: Arc::new(EmailTracking::new(Arc::clone(&worker))),
            bounces: BounceProcessor::new(Arc::clone(&worker), parts.domains.facts.clone()),
            domains: Arc::new(SendingDomains::new(
                Arc::clone(&worker),
                Arc::clone(&sender_authorization),
                parts.domains,
            )),
            worker,
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
            response_budget: ResponseBudget::new(RESPONSES_BYTES_MAX, ACCOUNT_RESPONSES_BYTES_MAX),
        }
    }

    /// What seals secrets.
    #[must_use]
    pub fn vault(&self) -> &Arc<Vault> {
        self.worker.webhooks.vault()
    }

    /// Where everything lies.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.worker.store
    }

    /// The time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.worker.clock
    }

    /// Chance.
    #[must_use]
    pub fn entropy(&self) -> &Entropy {
        &self.worker.entropy
    }

    /// Templates that may be sent.
    #[must_use]
    pub fn templates(&self) -> &TemplateCache {
        &self.templates
    }

    /// The sending domains.
    #[must_use]
    pub fn domains(&self) -> &SendingDomains {
        &self.domains
    }

    /// Takes what comes back.
    #[must_use]
    pub fn bounces(&self) -> &BounceProcessor {
        &self.bounces
    }

    /// The domain that the service itself writes from, if the operator has named one.
    #[must_use]
    pub fn service_domain(&self) -> Option<DomainName> {
        self.sender_authorization.sandbox().map(|sender| sender.domain().clone())
    }

    /// The domain of the sandbox sender, when it is not verified here: then nobody can send from it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unverified_sandbox_domain(&self) -> Result<Option<&DomainName>, ReadError> {
        self.sender_authorization.unverified_sandbox_domain().await
    }

    /// The address that the service writes from, other than the sandbox sender itself: the first of two that is another.
    #[must_use]
    pub fn service_address(&self, local_parts: [&str; 2]) -> Option<Address> {
        self.sender_authorization.sandbox().and_then(|sandbox| crate::postman::sibling_address(sandbox, local_parts))
    }

    /// Where the API is reached, and the public pages with it, once that is known.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.get().map(String::as_str)
    }

    /// Says that a letter to a partner is to be written.
    pub fn notify_partner_email(&self) {
        self.partner_email_wakeup.notify_one();
    }

    /// Returns when a letter to a partner is to be written, and at this time at the latest.
    pub async fn wait_for_partner_email(&self, at_latest: Timestamp) {
        tokio::select! {
            () = self.partner_email_wakeup.notified() => {}
            () = self.clock().sleep_until(at_latest) => {}
        }
    }

    /// The automations.
    #[must_use]
    pub fn automations(&self) -> &AutomationEngine {
        &self.automations
    }

    /// Idempotency keys at work.
    #[must_use]
    pub fn in_progress_keys(&self) -> &Arc<InProgressKeys> {
        &self.in_progress_keys
    }

    /// What the plans include.
    #[must_use]
    pub fn plans(&self) -> Plans {
        *self.plans.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plans include something else from now on.
    pub fn set_plans(&self, plans: Plans) {
        *self.plans.write().unwrap_or_else(PoisonError::into_inner) = plans;
    }

    /// How much accounts may keep.
    #[must_use]
    pub fn storage_quotas(&self) -> &Arc<StorageQuotaTracker> {
        &self.storage_quotas
    }

    /// Who has asked how often.
    #[must_use]
    pub fn rate_limiter(&self) -> &RateLimiter {
        &self.rate_limiter
    }

    /// Counts one request of an account, over HTTP or SMTP; none when requests are not counted. Nodes that
    /// share a database divide the rate.
    ///
    /// # Errors
    /// It may not be made now.
    pub fn check_rate_limit(&self, account: &Account) -> Result<Option<RateLimitStatus>, RateLimitStatus> {
        if !self.rate_limiter.is_enabled() {
            return Ok(None);
        }
        let rate = RequestRate::new(self.plans().of(account.plan).requests_per_second, self.worker.leases.nodes());
        self.rate_limiter.check(account.id, rate, self.worker.clock.now()).map(Some)
    }

    /// What an account has used up of its plan today and this month, to the email.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn plan_usage(&self, tenant: &Tenant) -> Result<PlanUsage, ReadError> {
        // The meter knows those that are not told yet of plans with caps only.
        self.dispatch_outbox_within(OUTBOX_WAIT_MAX).await;
        let account = tenant.account().id;
        self.worker.quota_tracker.usage_of(&self.worker.store, account, self.clock().now()).await
    }

    /// Returns after the next thing that is settled; what happens once this is called counts.
    pub fn next_outcome(&self) -> impl Future<Output = ()> + '_ {
        self.worker.next_outcome()
    }

    /// Tells what has happened: what follows from it is in the store when this returns.
    ///
    /// # Errors
    /// [`TellError`].
    pub async fn dispatch_outbox(&self) -> Result<(), OutboxError> {
        self.worker.dispatch_outbox().await
    }

    /// Tells what has happened, and waits for it for so long at most: for what is to show what was just done. Where that was
    /// too short, returns the time up to which everything was told.
    pub async fn dispatch_outbox_within(&self, at_most: Duration) -> Option<Timestamp> {
        let worker = Arc::clone(&self.worker);
        // Half a telling would be done again: it goes on when the waiting ends.
        let telling = tokio::spawn(async move { worker.dispatch_outbox().await });
        match tokio::time::timeout(at_most, telling).await {
            Ok(Ok(Ok(()))) => return None,
            Ok(Ok(Err(error))) => {
                store::warn_unless_away!(self.worker.store, %error, "events cannot be told at the moment: lists may be behind");
            }
            Ok(Err(_)) | Err(_) => {}
        }
        Some(self.dispatched_until())
    }

    /// Everything that happened here before this was told; 1970 before it is known.
    #[must_use]
    pub fn dispatched_until(&self) -> Timestamp {
        self.worker.dispatched_until()
    }

    /// What signs links in mail and on public pages.
    #[must_use]
    pub fn link_key(&self) -> &TokenKey {
        &self.link_key
    }

    /// Says where the API is reached, and with it the public pages that links lead to. The first word counts.
    pub fn set_base_url(&self, base_url: &str) {
        let _ = self.base_url.set(base_url.to_owned());
    }

    /// Where the API is reached; empty before it is known.
    #[must_use]
    pub fn base_url_or_empty(&self) -> &str {
        self.base_url.get().map_or("", String::as_str)
    }

    /// Makes unsubscribe links; none before it is known where they lead.
    #[must_use]
    pub fn unsubscribe_links(&self) -> Option<UnsubscribeLinks> {
        let base_url = self.base_url.get()?.clone();
        Some(UnsubscribeLinks { key: self.link_key.clone(), base_url })
    }

    /// What changes what is known of addresses.
    #[must_use]
    pub fn suppressions(&self) -> SuppressionService {
        self.worker.suppressions()
    }

    /// Does what the recipient whom a link is bound to wants, and has it told.
    ///
    /// # Errors
    /// [`ContactsError`].
    pub async fn apply_preference(
        &self,
        bound: &UnsubscribeToken,
        wish: SubscriptionPreferences,
    ) -> Result<(), SuppressionError> {
        self.suppressions().apply_preference(bound, wish).await?;
        self.worker.outbox_wakeup.notify_one();
        Ok(())
    }

    /// Says that an event was recorded: it is told now.
    pub fn notify_outbox(&self) {
        self.worker.notify_outbox();
    }

    /// The partitions that are this node's, in runs of neighbours.
    #[must_use]
    pub fn partition_ranges(&self) -> Vec<RangeInclusive<u16>> {
        self.worker.leases.owned_ranges()
    }

    /// Says that a list of suppressions was handed in: it is read now.
    pub fn notify_suppression_import(&self) {
        self.worker.import_wakeup.notify_one();
    }

    /// Books opens and clicks.
    #[must_use]
    pub fn email_tracking(&self) -> &EmailTracking {
        &self.email_tracking
    }

    /// The largest message taken, in bytes.
    #[must_use]
    pub fn message_bytes_max(&self) -> u64 {
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    /// Takes messages of another size from now on.
    pub fn set_message_bytes_max(&self, bytes: u64) {
        self.message_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Whether there are room and health to take anything at all.
    ///
    /// # Errors
    /// [`Refusal::Full`] or [`Refusal::Unavailable`].
    pub fn check_ready(&self) -> Result<(), SubmitError> {
        if self.worker.stop.is_cancelled() {
            return Err(SubmitError::Unavailable);
        }
        self.check_store_health()
    }

    /// Whether the store takes anything. What is on its way when delivery stops is still accepted: it is
    /// on disk for the next start.
    fn check_store_health(&self) -> Result<(), SubmitError> {
        match self.worker.store.health().state {
            StoreState::Healthy => Ok(()),
            StoreState::Full => Err(SubmitError::InsufficientStorage),
            StoreState::Away(_) | StoreState::Fenced(_) => Err(SubmitError::Unavailable),
        }
    }

    /// Whether an email may be scheduled for this time.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate_scheduled_at(&self, at: Timestamp) -> Result<(), &'static str> {
        stage::validate_schedule_time(at, self.worker.clock.now())
    }

    /// Whether the account may send from an address: asked at MAIL FROM, before anything is read. The
    /// author in the header decides at the end.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn authorize_sender(&self, tenant: &Tenant, sender: &Address) -> Result<(), SubmitError> {
        self.sender_authorization.authorize(tenant, sender, self.worker.clock.now()).await.map(drop)
    }

    /// Accepts a draft: returns when it is on disk.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn submit(&self, tenant: &Tenant, draft: Draft) -> Result<SubmitReceipt, SubmitError> {
        self.submit_with(tenant, draft, &|_, _| {}).await
    }

    /// Accepts a draft, and writes something in the same commit: what it is, is told when the email has its
    /// id.
    ///
    /// # Errors
    /// [`Refusal`]; [`Refusal::DoneMeanwhile`] when what was to be written is there already.
    pub fn submit_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        draft: Draft,
        also: &'a (dyn Fn(&SubmitReceipt, &mut Batch) + Send + Sync),
    ) -> BoxFuture<'a, Result<SubmitReceipt, SubmitError>> {
        Box::pin(async move {
            self.check_store_health()?;
            let now = self.worker.clock.now();
            let staged = match self.prepare_message(tenant, draft, now).await {
                Ok(staged) => staged,
                Err(PrepareError::Rejected(refusal)) => return Err(refusal),
                Err(PrepareError::Suppressed(staged, refusal)) => {
                    self.commit(vec![*staged], &|_| {}).await?;
                    return Err(refusal);
                }
            };
            let accepted = SubmitReceipt::from_prepared(&staged);
            self.commit(vec![staged], &|batch| also(&accepted, batch)).await?;
            Ok(accepted)
        })
    }

    /// Accepts several drafts in one commit, each that can be, and says of each what came of it; or none of
    /// them, when one cannot be and `all` must be. Writes something more in the same commit.
    ///
    /// A commit that nobody knows the end of leaves each of them [`Refusal::Unconfirmed`], by its own id.
    ///
    /// # Errors
    /// [`Refusal`], about all of them.
    pub fn submit_batch<'a>(
        &'a self,
        tenant: &'a Tenant,
        drafts: Vec<Draft>,
        all: bool,
        also: &'a ExtendBatchCommit<'a>,
    ) -> BoxFuture<'a, Result<Vec<Result<SubmitReceipt, SubmitError>>, SubmitError>> {
        Box::pin(async move {
            self.check_store_health()?;
            let now = self.worker.clock.now();
            let staging: Vec<_> = drafts.into_iter().map(|draft| self.prepare_message(tenant, draft, now)).collect();
            let mut staged = Vec::with_capacity(staging.len());
            let mut outcomes = Vec::with_capacity(staging.len());
            for one in futures_util::future::join_all(staging).await {
                outcomes.push(match one {
                    Ok(one) => {
                        let accepted = SubmitReceipt::from_prepared(&one);
                        staged.push(one);
                        Ok(accepted)
                    }
                    Err(PrepareError::Rejected(refusal)) => Err(refusal),
                    Err(PrepareError::Suppressed(one, refusal)) => {
                        staged.push(*one);
                        Err(refusal)
                    }
                });
            }
            if all && outcomes.iter().any(Result::is_err) {
                return Ok(outcomes.into_iter().map(|one| one.map_err(SubmitError::without_email)).collect());
            }
            let doubt = |accepted: SubmitReceipt| Err(SubmitError::Unconfirmed { id: accepted.id });
            match self.commit(staged, &|batch| also(&outcomes, batch)).await {
                Err(SubmitError::Unconfirmed { .. }) => {
                    Ok(outcomes.into_iter().map(|one| one.and_then(doubt)).collect())
                }
                committed => committed.map(|()| outcomes),
            }
        })
    }

    /// Commits, in partitions of this node. Those that went to another node meanwhile are chosen anew.
    async fn commit(
        &self,
        staged: Vec<PreparedMessage>,
        also: &(dyn Fn(&mut Batch) + Send + Sync),
    ) -> Result<(), SubmitError> {
        for _ in 0..PARTITION_TRIES_MAX {
            let mut batch = Batch::intake();
            let mut placed = Vec::with_capacity(staged.len());
            let mut events = Vec::with_capacity(staged.len());
            for one in &staged {
                let place = one.assign_partitions(|domain| self.worker.leases.choose_for_domain(domain));
                let place = place.ok_or(SubmitError::Unavailable)?;
                let event = EventId::new(one.now, self.worker.entropy.unique_bits());
                events.push(one.write_rows(&mut batch, &place, event));
                placed.push(place);
            }
            if !self.worker.leases.fence_partitions(&mut batch, placed.iter().flat_map(PartitionAssignment::partitions))
            {
                // It went to another node this very moment.
                continue;
            }
            let reserve = |place: PartitionAssignment| (place.partition, self.worker.reserve_tasks(place.tasks));
            let reservations: Vec<_> = placed.into_iter().map(reserve).collect();
            also(&mut batch);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    self.after_commit(staged, events, reservations);
                    return Ok(());
                }
                Err(CommitError::Conflict { key })
                    if store::idempotency::caused_conflict(&key)
                        || store::schedule::caused_conflict(&key)
                        || store::run::caused_conflict(&key)
                        || store::owner_notice::caused_conflict(&key)
                        || store::affiliate::partner_letter::caused_conflict(&key) =>
                {
                    return Err(SubmitError::DoneConcurrently);
                }
                Err(CommitError::Conflict { .. }) => self.worker.wait_for_membership_change().await,
                // The disk failed, or the database went away, with the commit on its way: nobody knows
                // whether it is there.
                Err(CommitError::Fenced(_) | CommitError::Unknown(_)) => {
                    reservations.into_iter().for_each(|(_, reservation)| reservation.mark_in_doubt());
                    let first = staged.first().map(|one| one.email.id);
                    return Err(first.map_or(SubmitError::Unavailable, |id| SubmitError::Unconfirmed { id }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(SubmitError::Unavailable)
    }

    /// Counts a message that was received.
    pub(crate) fn count_received(&self) {
        self.worker.metrics.last_hour.count(Counted::Received, 1, self.clock().now());
    }

    /// They are on disk.
    fn after_commit(
        &self,
        staged: Vec<PreparedMessage>,
        events: Vec<Event>,
        reservations: Vec<(u16, TaskReservation)>,
    ) {
        let (number, now) = (staged.len() as u64, self.clock().now());
        metrics::counter!("postrider_emails_accepted_total").increment(number);
        self.worker.metrics.last_hour.count(Counted::Accepted, number, now);
        for ((one, event), (partition, reservation)) in staged.into_iter().zip(events).zip(reservations) {
            one.log();
            match one.disposition {
                Disposition::Schedule(at) => self.release_timers.schedule(partition, at),
                Disposition::Reject(..) => self.worker.outcome_recorded.notify_waiters(),
                Disposition::Deliver => {}
            }
            reservation.confirm(&one.chunks);
            if let Some(reserved) = one.plan_reservation {
                reserved.confirm();
            }
            if let Some(storage) = one.storage_reservation {
                storage.confirm();
            }
            self.worker.recent_events.insert(event, Some(one.email));
        }
        self.worker.outbox_wakeup.notify_one();
    }
}
