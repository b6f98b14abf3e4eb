//! Amending a scheduled email: sending it at another time, or taking it back.
//!
//! Of an amendment and the release at the same moment one wins, by the check of the schedule's row.

use jiff::Timestamp;
use mail::email::{EmailRollup, EmailStatus};
use mail::event::{Event, EventKind};
use mail::id::EmailId;
use mail::recipient::{Recipient, RecipientState};
use mail::schedule::{Schedule, ScheduleState};
use serde_json::json;
use store::access::Tenant;
use store::email::EmailWithRecipients;
use store::engine::{Batch, CommitError};
use store::schedule::StoredSchedule;
use thiserror::Error;

use super::Intake;
use super::stage::validate_schedule;
use crate::refusal::SubmitError;

/// Why a scheduled email was not amended.
#[derive(Debug, Error)]
pub enum RescheduleError {
    /// The account has no such email.
    #[error("no such email")]
    Unknown,
    /// It is not scheduled (any more).
    #[error("only a scheduled email can be changed")]
    NotScheduled(EmailStatus),
    /// It was sent, or amended by somebody else, this very moment.
    #[error("the email was changed at the same time")]
    Conflict,
    /// The time will not do, or the store cannot take it.
    #[error(transparent)]
    Refused(#[from] SubmitError),
}

impl From<store::engine::ReadError> for RescheduleError {
    fn from(error: store::engine::ReadError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<CommitError> for RescheduleError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. } => Self::Conflict,
            error => Self::Refused(error.into()),
        }
    }
}

impl Intake {
    /// Has an email sent at another time.
    ///
    /// # Errors
    /// [`AmendError`].
    pub async fn reschedule(&self, tenant: &Tenant, id: EmailId, at: Timestamp) -> Result<(), RescheduleError> {
        validate_schedule(Some(at), self.clock().now())?;
        let (_, found) = self.find_scheduled(tenant, id, |schedule| schedule.state == ScheduleState::Waiting).await?;
        let (mut batch, partition) = self.begin_change()?;
        let after = Schedule { scheduled_at: at, due: at, partition, ..found.schedule.clone() };
        store::schedule::update(&mut batch, (tenant.account().id, id), &found, &after);
        self.worker.store.commit(batch).await?;
        self.release_timers.schedule(partition, at);
        Ok(())
    }

    /// Takes an email back. One that was taken back already stays so.
    ///
    /// # Errors
    /// [`AmendError`].
    pub async fn cancel(&self, tenant: &Tenant, id: EmailId) -> Result<(), RescheduleError> {
        // What is due and held may be taken back, too.
        let (email, found) = match self.find_scheduled(tenant, id, Schedule::is_open).await {
            Err(RescheduleError::NotScheduled(EmailStatus::Cancelled)) => return Ok(()),
            found => found?,
        };
        let (mut batch, partition) = self.begin_change()?;
        let now = self.clock().now();
        let about = (tenant.account().id, id);
        let after = Schedule { state: ScheduleState::Cancelled(now), ..found.schedule.clone() };
        store::schedule::update(&mut batch, about, &found, &after);
        let waiting = || email.recipients.iter().filter(|r| !r.state.is_terminal());
        for recipient in waiting() {
            let last_event = (EventKind::Cancelled, now);
            let state = RecipientState::Cancelled;
            let cancelled = Recipient { state, last_event, ..recipient.clone() };
            store::email::put_recipient(&mut batch, about.0, about.1, &cancelled);
        }
        let event = Event {
            id: self.new_event_id(),
            account: about.0,
            subject: id.into(),
            kind: EventKind::Cancelled,
            recipient: None,
            created_at: now,
            // The plan gets them back.
            detail: json!({
                "by": "customer", "recipients_count": waiting().count(), "accepted_at": email.email.created_at,
            }),
        };
        store::event::record(&mut batch, &event, partition);
        self.worker.store.commit(batch).await?;
        self.worker.outbox_wakeup.notify_one();
        Ok(())
    }

    /// The email and its schedule, while that may be amended.
    async fn find_scheduled(
        &self,
        tenant: &Tenant,
        id: EmailId,
        may: impl Fn(&Schedule) -> bool,
    ) -> Result<(EmailWithRecipients, StoredSchedule), RescheduleError> {
        let (store, account) = (&self.worker.store, tenant.account().id);
        // The schedule first: should it change before the rest is read, the commit finds out.
        let found = store::schedule::get(store, (account, id)).await?;
        let email = store::email::get(store, account, id).await?.ok_or(RescheduleError::Unknown)?;
        match found {
            Some(found) if may(&found.schedule) => Ok((email, found)),
            _ => Err(RescheduleError::NotScheduled(EmailRollup::from_recipients(&email.recipients).status)),
        }
    }

    /// An empty batch for an amendment, and a partition of ours that it may use.
    fn begin_change(&self) -> Result<(Batch, u16), SubmitError> {
        let leases = &self.worker.leases;
        let mut batch = Batch::progress();
        let partition = leases.any().ok_or(SubmitError::Unavailable)?;
        let ours = leases.fence_partitions(&mut batch, std::iter::once(partition));
        if ours { Ok((batch, partition)) } else { Err(SubmitError::Unavailable) }
    }
}
