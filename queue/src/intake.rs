//! Message intake: every email, from the API, SMTP submission, the relay or the service itself, is accepted here.
//!
//! ```text
//! Draft ─► complete or compose ─► authorize ─► sign ─►[ email + recipients + tasks + event + body ]─► dispatcher
//!                                            └───────►[ email + recipients + schedule + event + body ]─► release
//! ```
//!
//! An email is accepted once it is committed to disk. A failure before the commit leaves no row behind. [`prepare`]
//! prepares the message. [`scheduled_release`] sends scheduled emails when they are due, and [`reschedule`] reschedules
//! or cancels them before.

pub mod account_limits;
mod build_message;
pub mod dkim_signing;
pub mod idempotency;
mod managed_unsubscribe;
pub mod message_signer;
mod prepare;
pub(crate) mod prepared_message;
pub mod quota_tracker;
mod render_template;
pub mod request_limiter;
mod reschedule;
mod scheduled_release;
pub mod sender_authorization;
pub mod service_links;
pub mod shared_plans;
pub mod storage_quota;
pub mod submit_error;
mod suppression_check;
pub mod system_mailer;
pub(crate) mod task_reservation;
pub mod template_cache;
mod tracked_links;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::Address;
use model::draft::Draft;
use model::email::EmailStatus;
use model::event::Event;
use model::id::{EmailId, EventId};
use model::usage::PlanRemaining;
use store::access::Tenant;
use store::engine::{Batch, CommitError, StoreState};

use crate::delivery::delivery_metrics::DeliveryMetrics;
use crate::delivery::delivery_policy::SharedDeliveryPolicy;
use crate::delivery::last_hour::HourlyCounter;
use crate::intake::account_limits::AccountLimits;
use crate::intake::message_signer::MessageSigner;
use crate::intake::prepared_message::{Disposition, PartitionAssignment, PreparedMessage};
use crate::intake::quota_tracker::QuotaReservation;
use crate::intake::sender_authorization::SenderAuthorization;
use crate::intake::service_links::ServiceLinks;
use crate::intake::submit_error::SubmitError;
use crate::intake::task_reservation::TaskReservation;
use crate::scheduler::dispatch::Dispatcher;
use crate::scheduler::partition_timers::PartitionTimers;
use crate::services::Services;

use prepare::PrepareError;
pub use prepare::SCHEDULED_AHEAD_MAX;
pub use render_template::{RenderTemplateError, TemplateRenderer};
pub use reschedule::RescheduleError;
pub use suppression_check::would_be_suppressed;

/// Upper bound of the header bytes that intake adds to a message (trace fields, Date, Message-ID, From).
const ADDED_HEADER_BYTES_MAX: u64 = 4 * 1024;
/// Commits tried for an email when its partitions move to another node meanwhile.
const PARTITION_TRIES_MAX: usize = 3;

/// Message intake: accepts every email.
pub struct Intake {
    pub services: Services,
    pub dispatcher: Arc<Dispatcher>,
    pub policy: Arc<SharedDeliveryPolicy>,
    pub sender_authorization: Arc<SenderAuthorization>,
    pub signer: MessageSigner,
    pub limits: Arc<AccountLimits>,
    pub links: ServiceLinks,
    /// Next release of scheduled emails in each partition.
    pub release_timers: PartitionTimers,
    /// Largest message accepted over SMTP, in bytes.
    pub message_bytes_max: AtomicU64,
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
            Disposition::Schedule(..) => EmailStatus::Scheduled,
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
    /// Counters of this node.
    pub fn metrics(&self) -> &Arc<DeliveryMetrics> {
        &self.dispatcher.agent.outcomes.metrics
    }

    /// Largest message accepted over SMTP, in bytes.
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
                (assignment.partition, TaskReservation::reserve(&self.dispatcher, assignment.tasks))
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

    /// Updates counters, timers and caches after the commit.
    fn after_commit(
        &self,
        prepared: Vec<PreparedMessage>,
        events: Vec<Event>,
        reservations: Vec<(u16, TaskReservation)>,
    ) {
        let (number, now) = (prepared.len() as u64, self.services.clock.now());
        metrics::counter!("postrider_emails_accepted_total").increment(number);
        self.metrics().last_hour.count(HourlyCounter::Accepted, number, now);
        for ((message, event), (partition, reservation)) in prepared.into_iter().zip(events).zip(reservations) {
            message.log();
            match message.disposition {
                Disposition::Schedule(at, _) => self.release_timers.schedule(partition, at),
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
            self.services.recent_events.insert(event, Some(message.email));
        }
        self.services.outbox_wakeup.notify_one();
    }
}
