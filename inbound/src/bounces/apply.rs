//! Applies bounces, delays and complaints to a recipient: decided by its stored row, written in one commit.
//!
//! ```text
//! failed     delivered ─► bounced     + email.bounced            + suppression   + pending DSN (queue::dsn::dsn_request)
//! delayed    delivered ─► delivered   + email.delivery_delayed   (not twice in a row)
//! complaint  finished  ─► unchanged   + email.complained         + suppression
//! ```
//!
//! The commit checks the recipient's and the suppression's row, and is decided again when one of them changed. So
//! repeated reports, concurrent reports about the same recipient, and reports on several nodes count once.
//!
//! A recipient with a task belongs to its task. A failure report is deferred while an attempt may be in progress, and
//! ignored while the task waits for its next attempt. A complaint is deferred until the task has finished.

use jiff::Timestamp;
use message::bounce::{BounceDetail, Complaint};
use message::classify::BounceClass;
use model::event::{Event, EventKind};
use model::id::{EventId, SuppressionId};
use model::recipient::{Recipient, RecipientState};
use model::suppression::{self, SmtpDiagnostic, Suppression, SuppressionCause, SuppressionSource};
use model::{simulator, timestamp};
use queue::delivery::delivery_metrics;
use queue::dsn::dsn_request;
use queue::suppression_event::record_created;
use serde_json::{Value, json};
use store::email::StoredRecipient;
use store::engine::{Batch, CommitError};
use store::task::PARTITIONS;

use super::{BounceError, BounceProcessor, BouncedRecipient, is_recent};

/// Commit tries on conflicts; each conflict means that another writer succeeded.
const COMMIT_TRIES_MAX: usize = 50;

/// A report about one recipient.
#[derive(Debug, Clone)]
pub(super) enum BounceReport {
    /// Permanent failure.
    Failed(BounceDetail),
    /// Delay.
    Delayed(BounceDetail),
    /// Spam complaint.
    Complaint(Complaint),
}

/// Change of the recipient, and the event and suppression that follow.
struct BounceEffect {
    after: Recipient,
    kind: EventKind,
    reason: Option<suppression::SuppressionReason>,
}

impl BounceProcessor {
    /// Applies a report and returns the result for metrics.
    pub(super) async fn apply(
        &self,
        bounced: BouncedRecipient,
        report: &BounceReport,
        received_at: Timestamp,
    ) -> Result<&'static str, BounceError> {
        let services = &self.services;
        let mut tries_left = COMMIT_TRIES_MAX;
        loop {
            let Some(found) =
                store::email::get_stored_recipient(&services.store, bounced.account, bounced.task).await?
            else {
                return Ok("unknown");
            };
            let now = services.clock.now();
            let Some(step) = decide_effect(&found.recipient, report, received_at, now)? else {
                return Ok("changed_nothing");
            };
            let mut batch = self.build_batch(bounced, &found, &step, report, now).await?;
            let dsn_partition = self.request_dsn(&mut batch, bounced, &step, report, now).await?;
            match services.store.commit(batch).await {
                Ok(()) => {
                    if let Some(partition) = dsn_partition {
                        // If there is no memory for it now, it is found on disk later.
                        let _ = self.pending_dsns.add((bounced.account, bounced.task.email), partition, now);
                    }
                    tracing::info!(email.id = %bounced.task.email, recipient = bounced.task.recipient,
                        event = step.kind.name(), "bounce report applied");
                    if let (EventKind::Bounced, BounceReport::Failed(failure)) = (step.kind, report) {
                        delivery_metrics::bounced(failure.class(), "later");
                    }
                    services.outbox_wakeup.notify_one();
                    services.outcome_recorded.notify_waiters();
                    return Ok(step.kind.name());
                }
                Err(CommitError::Conflict { key })
                    if tries_left > 1
                        && (store::email::is_recipient_conflict(&key) || store::suppression::caused_conflict(&key)) =>
                {
                    tries_left -= 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn build_batch(
        &self,
        recipient: BouncedRecipient,
        found: &StoredRecipient,
        step: &BounceEffect,
        report: &BounceReport,
        now: Timestamp,
    ) -> Result<Batch, BounceError> {
        let (services, email) = (&self.services, recipient.task.email);
        let mut batch = Batch::progress();
        store::email::update_recipient(&mut batch, recipient.account, email, found, &step.after);
        let mut current = None;
        if let Some(reason) = step.reason
            && !simulator::is_simulated(&found.recipient.address)
        {
            let target = found.recipient.address.clone();
            let mut grounds = SuppressionCause::new(target, reason, SuppressionSource::System).with_email(email);
            grounds.detail = suppression_detail(report);
            let before = store::suppression::get(&services.store, recipient.account, &grounds.target).await?;
            let id = SuppressionId::new(now, services.entropy.unique_bits());
            let held = before.as_ref().map(|found| &found.suppression);
            let after = Suppression::apply_cause(held, grounds, recipient.account, id, now);
            if let Some(after) = &after {
                store::suppression::put(&mut batch, before.as_ref(), after);
                record_created(&mut batch, &services.clock, &services.entropy, before.as_ref(), after);
            }
            current = after.or(before.map(|found| found.suppression));
        }
        let (id, detail) = (EventId::new(now, services.entropy.unique_bits()), event_data(report, current.as_ref()));
        let event = Event::new(id, recipient.account, email, step.kind, now, detail);
        let event = Event { recipient: Some(found.recipient.address.clone()), ..event };
        // Any partition will do; choosing it by email spreads the dispatching over all nodes.
        store::event::record(&mut batch, &event, partition_of(recipient));
        Ok(batch)
    }

    /// Adds a pending DSN for a sender who submitted the email by SMTP. Returns the partition it is in, if this node
    /// owns it.
    async fn request_dsn(
        &self,
        batch: &mut Batch,
        recipient: BouncedRecipient,
        step: &BounceEffect,
        report: &BounceReport,
        now: Timestamp,
    ) -> Result<Option<u16>, BounceError> {
        let (BounceReport::Failed(failure), services) = (report, &self.services) else { return Ok(None) };
        let email =
            store::email::get_without_recipients(&services.store, recipient.account, recipient.task.email).await?;
        let notice = email.and_then(|email| dsn_request::dsn_for_bounce(&email, &step.after, failure, now));
        let Some(notice) = notice else { return Ok(None) };
        // A DSN in an owned partition is sent at once; in another one, after its owner scans it.
        let any = partition_of(recipient);
        let owned = services.leases.choose_by_hash(any.into());
        let owned = owned.filter(|partition| services.leases.fence_partitions(batch, [*partition].into_iter()));
        let partition = owned.unwrap_or(any);
        store::pending_dsn::put(batch, partition, (recipient.account, recipient.task.email), &notice);
        Ok(owned)
    }
}

/// Returns a partition by the email's id.
fn partition_of(recipient: BouncedRecipient) -> u16 {
    let [.., last] = recipient.task.email.to_bytes();
    u16::from(last) % PARTITIONS
}

/// Decides the effect of a report; `None` when it is too late or repeats a known state.
fn decide_effect(
    recipient: &Recipient,
    report: &BounceReport,
    received_at: Timestamp,
    now: Timestamp,
) -> Result<Option<BounceEffect>, BounceError> {
    use RecipientState as S;
    let done_at = recipient.delivered_at.unwrap_or(recipient.last_event.1);
    if recipient.state.is_terminal() && !is_recent(done_at, received_at) {
        return Ok(None);
    }
    let before = || recipient.clone();
    Ok(match report {
        BounceReport::Failed(failure) if recipient.state == S::Delivered => Some(BounceEffect {
            after: Recipient {
                state: S::Bounced,
                bounced_at: Some(now),
                last_response: Some(failure.reply.clone()),
                error: None,
                last_event: (EventKind::Bounced, now),
                ..before()
            },
            kind: EventKind::Bounced,
            reason: Some(suppression_reason(failure)),
        }),
        BounceReport::Delayed(_)
            if recipient.state == S::Delivered && recipient.last_event.0 != EventKind::DeliveryDelayed =>
        {
            let last_event = (EventKind::DeliveryDelayed, now);
            Some(BounceEffect { after: Recipient { last_event, ..before() }, kind: last_event.0, reason: None })
        }
        // The report may arrive before the attempt's 250 is recorded. If the recipient waits for another attempt, that
        // attempt decides.
        BounceReport::Failed(_) if is_being_attempted(recipient, now) => {
            return Err(BounceError::StillDelivering);
        }
        BounceReport::Failed(_) | BounceReport::Delayed(_) => None,
        // The recipient was suppressed or complained before.
        BounceReport::Complaint(_) if recipient.complained_at.is_some() || recipient.state == S::Suppressed => None,
        BounceReport::Complaint(_) if !recipient.state.is_terminal() => {
            return Err(BounceError::StillDelivering);
        }
        BounceReport::Complaint(_) if recipient.attempts == 0 => None,
        BounceReport::Complaint(_) => Some(BounceEffect {
            after: Recipient { complained_at: Some(now), last_event: (EventKind::Complained, now), ..before() },
            kind: EventKind::Complained,
            reason: Some(suppression::SuppressionReason::Complaint),
        }),
    })
}

/// True if an attempt is or may be in progress.
fn is_being_attempted(recipient: &Recipient, now: Timestamp) -> bool {
    !recipient.state.is_terminal() && recipient.next_attempt_at.is_none_or(|at| at <= now)
}

/// Returns the suppression reason for a bounce, as for a direct rejection. Permanent classes about the address suppress
/// permanently; a reason about the sender suppresses for a day.
fn suppression_reason(failure: &BounceDetail) -> suppression::SuppressionReason {
    match failure.class() {
        reason if !reason.is_about_recipient() => suppression::SuppressionReason::SmtpFailure,
        reason if !failure.soft && reason.is_permanent() => suppression::SuppressionReason::HardBounce,
        _ => suppression::SuppressionReason::SoftBounce,
    }
}

fn smtp_code(failure: &BounceDetail) -> Option<u16> {
    failure.has_code.then_some(failure.reply.code)
}

fn suppression_detail(report: &BounceReport) -> Option<SmtpDiagnostic> {
    match report {
        BounceReport::Failed(failure) | BounceReport::Delayed(failure) => Some(SmtpDiagnostic {
            smtp_code: smtp_code(failure),
            enhanced_code: failure.reply.enhanced,
            diagnostic: failure.diagnostic.clone(),
        }),
        BounceReport::Complaint(_) => None,
    }
}

/// Builds the event's data.
fn event_data(report: &BounceReport, suppression: Option<&Suppression>) -> Value {
    let suppression_id = suppression.map(|suppression| suppression.id);
    let suppressed_until = suppression.and_then(|suppression| suppression.expires_at).map(timestamp::to_rfc3339);
    match report {
        BounceReport::Failed(failure) => {
            let reason: BounceClass = failure.class();
            // A reason about the sender is temporary, whatever its code.
            let soft = failure.soft || !reason.is_about_recipient();
            json!({"bounce_reason": failure.reply.to_string(), "bounce": {
                "type": if soft { "soft" } else { "hard" },
                "category": reason,
                "smtp_code": smtp_code(failure),
                "enhanced_code": failure.reply.enhanced,
                "diagnostic": failure.diagnostic,
                "mx_host": failure.host,
                "async": true,
            }, "suppression_id": suppression_id, "suppressed_until": suppressed_until})
        }
        BounceReport::Delayed(failure) => json!({"delay": {
            "smtp_code": smtp_code(failure),
            "enhanced_code": failure.reply.enhanced,
            "diagnostic": failure.diagnostic,
            "attempt": null,
            "next_attempt_at": null,
            "expires_at": null,
            "async": true,
        }}),
        BounceReport::Complaint(complaint) => json!({"complaint": {
            "feedback_type": complaint.feedback_type,
            "source": "fbl",
            "user_agent": complaint.user_agent,
            "arrived_at": complaint.arrived_at.map(timestamp::to_rfc3339),
        }, "suppression_id": suppression_id}),
    }
}
