//! Booking what comes back about a recipient: decided by its row, written in one commit.
//!
//! ```text
//! failed     delivered ─► bounced     + email.bounced            + suppression   + notice (crate::notification)
//! delayed    delivered ─► delivered   + email.delivery_delayed   (once in a row)
//! complaint  done with ─► the same    + email.complained         + suppression
//! ```
//!
//! The commit checks the recipient's row and the suppression's, and is decided anew when one of them has changed:
//! so the same report twice, two about the same recipient, and any of them on two nodes at once count once. A
//! recipient that has a task is its task's: what failed then is tried again by itself, and a complaint waits.

use jiff::Timestamp;
use mail::classify::BounceClass;
use mail::event::{Event, EventKind};
use mail::id::{EventId, SuppressionId};
use mail::moment;
use mail::recipient::{Recipient, RecipientState};
use mail::returned::{BounceDetail, Complaint};
use mail::simulator;
use mail::suppression::{self, SmtpDiagnostic, Suppression, SuppressionCause, SuppressionSource};
use serde_json::{Value, json};
use store::email::StoredRecipient;
use store::engine::{Batch, CommitError};
use store::task::PARTITIONS;

use super::{BounceError, BounceProcessor, BouncedRecipient, is_recent};
use crate::{figures, notification};

/// How often is begun again when others write at the same time: each time one of them got on.
const COMMIT_TRIES_MAX: usize = 50;

/// What came back.
#[derive(Debug, Clone)]
pub(super) enum BounceReport {
    /// It did not arrive.
    Failed(BounceDetail),
    /// It did not arrive yet.
    Delayed(BounceDetail),
    /// It is called spam.
    Complaint(Complaint),
}

/// What follows from it for the recipient.
struct BounceEffect {
    after: Recipient,
    kind: EventKind,
    reason: Option<suppression::SuppressionReason>,
}

impl BounceProcessor {
    /// Books it, and says what was made of it.
    pub(super) async fn apply(
        &self,
        about: BouncedRecipient,
        news: &BounceReport,
        received_at: Timestamp,
    ) -> Result<&'static str, BounceError> {
        let worker = &self.worker;
        let mut tries = COMMIT_TRIES_MAX;
        loop {
            let Some(found) = store::email::get_stored_recipient(&worker.store, about.account, about.task).await?
            else {
                return Ok("unknown");
            };
            let now = worker.clock.now();
            let Some(step) = decide_effect(&found.recipient, news, received_at, now)? else {
                return Ok("changed_nothing");
            };
            let mut batch = self.build_batch(about, &found, (&step, news), now).await?;
            let told_from = self.request_dsn(&mut batch, about, (&step, news), now).await?;
            match worker.store.commit(batch).await {
                Ok(()) => {
                    if let Some(partition) = told_from {
                        // Should there be no room to remember it now, it is found later.
                        let _ = worker.dsn_reporter.add((about.account, about.task.email), partition, now);
                    }
                    tracing::info!(email.id = %about.task.email, recipient = about.task.recipient,
                        event = step.kind.name(), "a report came back");
                    if let (EventKind::Bounced, BounceReport::Failed(failure)) = (step.kind, news) {
                        figures::bounced(failure.class(), "later");
                    }
                    worker.outbox_wakeup.notify_one();
                    worker.outcome_recorded.notify_waiters();
                    return Ok(step.kind.name());
                }
                Err(CommitError::Conflict { key })
                    if tries > 1
                        && (store::email::is_recipient_conflict(&key) || store::suppression::caused_conflict(&key)) =>
                {
                    tries -= 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn build_batch(
        &self,
        about: BouncedRecipient,
        found: &StoredRecipient,
        (step, news): (&BounceEffect, &BounceReport),
        now: Timestamp,
    ) -> Result<Batch, BounceError> {
        let (worker, email) = (&self.worker, about.task.email);
        let mut batch = Batch::progress();
        store::email::update_recipient(&mut batch, (about.account, email), found, &step.after);
        let mut stands = None;
        if let Some(reason) = step.reason
            && !simulator::is_simulated(&found.recipient.address)
        {
            let target = found.recipient.address.clone();
            let mut grounds = SuppressionCause::new(target, reason, SuppressionSource::System).with_email(email);
            grounds.detail = suppression_detail(news);
            let before = store::suppression::get(&worker.store, about.account, &grounds.target).await?;
            let id = SuppressionId::new(now, worker.entropy.unique_bits());
            let held = before.as_ref().map(|found| &found.suppression);
            let after = Suppression::apply_cause(held, grounds, about.account, id, now);
            if let Some(after) = &after {
                store::suppression::put(&mut batch, before.as_ref(), after);
                worker.suppressions().record_created(&mut batch, before.as_ref(), after);
            }
            stands = after.or(before.map(|found| found.suppression));
        }
        let event = Event {
            id: EventId::new(now, worker.entropy.unique_bits()),
            account: about.account,
            subject: email.into(),
            kind: step.kind,
            recipient: Some(found.recipient.address.clone()),
            created_at: now,
            detail: event_data(news, stands.as_ref()),
        };
        // Who tells it does not matter, as long as not one node tells all.
        store::event::record(&mut batch, &event, partition_of(about));
        Ok(batch)
    }

    /// Who handed the email in by SMTP hears that it bounced, as they would have, had it been refused at once:
    /// the partition that the notice lies in.
    async fn request_dsn(
        &self,
        batch: &mut Batch,
        about: BouncedRecipient,
        (step, news): (&BounceEffect, &BounceReport),
        now: Timestamp,
    ) -> Result<Option<u16>, BounceError> {
        let (BounceReport::Failed(failure), worker) = (news, &self.worker) else { return Ok(None) };
        let email = store::email::get_without_recipients(&worker.store, about.account, about.task.email).await?;
        let notice = email.and_then(|email| notification::dsn_for_bounce(&email, &step.after, failure, now));
        let Some(notice) = notice else { return Ok(None) };
        // In one of our own it is told at once; in another's, when that is taken over.
        let any = partition_of(about);
        let ours = worker.leases.choose_by_hash(any.into());
        let ours = ours.filter(|partition| worker.leases.fence_partitions(batch, [*partition].into_iter()));
        let partition = ours.unwrap_or(any);
        store::notice::put(batch, partition, (about.account, about.task.email), &notice);
        Ok(ours)
    }
}

/// A partition, the same one for all that is about an email.
fn partition_of(about: BouncedRecipient) -> u16 {
    let [.., last] = about.task.email.to_bytes();
    u16::from(last) % PARTITIONS
}

/// Decides what follows; nothing, when it is too late, or was known.
fn decide_effect(
    recipient: &Recipient,
    news: &BounceReport,
    received_at: Timestamp,
    now: Timestamp,
) -> Result<Option<BounceEffect>, BounceError> {
    use RecipientState as S;
    let done_at = recipient.delivered_at.unwrap_or(recipient.last_event.1);
    if recipient.state.is_terminal() && !is_recent(done_at, received_at) {
        return Ok(None);
    }
    let before = || recipient.clone();
    Ok(match news {
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
        // It may have come back before its 250 was booked, or even said. What waits for another attempt will hear there.
        BounceReport::Failed(_) if is_being_attempted(recipient, now) => {
            return Err(BounceError::StillDelivering);
        }
        BounceReport::Failed(_) | BounceReport::Delayed(_) => None,
        // Nothing was sent, or nobody was there to complain: then it is somebody else's word.
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

/// Whether an attempt is, or may be, going on.
fn is_being_attempted(recipient: &Recipient, now: Timestamp) -> bool {
    !recipient.state.is_terminal() && recipient.next_attempt_at.is_none_or(|at| at <= now)
}

/// A bounce suppresses as one that was said to us directly does: for good where it says something for ever about the
/// address; what blames us, for a day.
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

fn suppression_detail(news: &BounceReport) -> Option<SmtpDiagnostic> {
    match news {
        BounceReport::Failed(failure) | BounceReport::Delayed(failure) => Some(SmtpDiagnostic {
            smtp_code: smtp_code(failure),
            enhanced_code: failure.reply.enhanced,
            diagnostic: failure.diagnostic.clone(),
        }),
        BounceReport::Complaint(_) => None,
    }
}

/// The particulars of the event (completions-email.md 2.10).
fn event_data(news: &BounceReport, suppression: Option<&Suppression>) -> Value {
    let suppression_id = suppression.map(|suppression| suppression.id);
    let suppressed_until = suppression.and_then(|suppression| suppression.expires_at).map(moment::to_rfc3339);
    match news {
        BounceReport::Failed(failure) => {
            let reason: BounceClass = failure.class();
            // What blames us may pass, whatever its code.
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
            "arrived_at": complaint.arrived_at.map(moment::to_rfc3339),
        }, "suppression_id": suppression_id}),
    }
}
