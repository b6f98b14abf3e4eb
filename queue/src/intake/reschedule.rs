//! Rescheduling and cancelling a scheduled email.
//!
//! If an email is changed while it is released, one of the two commits fails on the version check of the schedule row.

use jiff::Timestamp;
use model::email::{EmailRollup, EmailStatus};
use model::event::{Event, EventKind};
use model::id::{EmailId, EventId};
use model::recipient::{Recipient, RecipientState};
use model::schedule::{Schedule, ScheduleState};
use serde_json::json;
use store::access::Tenant;
use store::email::EmailWithRecipients;
use store::engine::{Batch, CommitError};
use store::schedule::StoredSchedule;
use thiserror::Error;

use super::Intake;
use super::prepare::validate_schedule;
use crate::intake::submit_error::SubmitError;

#[derive(Debug, Error)]
pub enum RescheduleError {
    #[error("email not found")]
    Unknown,
    /// The email is no longer scheduled; carries its current status.
    #[error("only a scheduled email can be rescheduled or cancelled")]
    NotScheduled(EmailStatus),
    /// The email was sent or changed concurrently.
    #[error("the email was changed concurrently; read it and try again")]
    Conflict,
    /// The new time is invalid, or the store cannot be written.
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
    /// Changes the time at which a scheduled email is sent.
    ///
    /// # Errors
    /// Returns a [`RescheduleError`] if the email is unknown or not waiting, the time is invalid, or the store fails.
    pub async fn reschedule_email(&self, tenant: &Tenant, id: EmailId, at: Timestamp) -> Result<(), RescheduleError> {
        validate_schedule(Some(at), self.services.clock.now())?;
        let (_, found) = self.find_scheduled(tenant, id, |schedule| schedule.state == ScheduleState::Waiting).await?;
        let (mut batch, partition) = self.begin_change()?;
        let after = Schedule { scheduled_at: at, due: at, partition, ..found.schedule.clone() };
        store::schedule::update(&mut batch, (tenant.account().id, id), &found, &after);
        self.services.store.commit(batch).await?;
        self.release_timers.schedule(partition, at);
        Ok(())
    }

    /// Cancels a scheduled email. Cancelling twice succeeds.
    ///
    /// # Errors
    /// Returns a [`RescheduleError`] if the email is unknown or already sent, or the store fails.
    pub async fn cancel_scheduled_email(&self, tenant: &Tenant, id: EmailId) -> Result<(), RescheduleError> {
        // A due email that is held can be cancelled too.
        let (email, found) = match self.find_scheduled(tenant, id, Schedule::is_open).await {
            Err(RescheduleError::NotScheduled(EmailStatus::Cancelled)) => return Ok(()),
            found => found?,
        };
        let (mut batch, partition) = self.begin_change()?;
        let now = self.services.clock.now();
        let key = (tenant.account().id, id);
        let after = Schedule { state: ScheduleState::Cancelled(now), ..found.schedule.clone() };
        store::schedule::update(&mut batch, key, &found, &after);
        let waiting = || email.recipients.iter().filter(|r| !r.state.is_terminal());
        for recipient in waiting() {
            let last_event = (EventKind::Cancelled, now);
            let state = RecipientState::Cancelled;
            let cancelled = Recipient { state, last_event, ..recipient.clone() };
            store::email::put_recipient(&mut batch, key.0, key.1, &cancelled);
        }
        // `accepted_at` lets the quota tracker credit the plan's usage of that day and month.
        let detail = json!({
            "by": "customer", "recipients_count": waiting().count(), "accepted_at": email.email.created_at,
        });
        let event_id = EventId::new(now, self.services.entropy.unique_bits());
        let event = Event::new(event_id, key.0, id, EventKind::Cancelled, now, detail);
        store::event::record(&mut batch, &event, partition);
        self.services.store.commit(batch).await?;
        self.services.outbox_wakeup.notify_one();
        Ok(())
    }

    /// Reads the email and its schedule, if the schedule permits the change.
    async fn find_scheduled(
        &self,
        tenant: &Tenant,
        id: EmailId,
        is_allowed: impl Fn(&Schedule) -> bool,
    ) -> Result<(EmailWithRecipients, StoredSchedule), RescheduleError> {
        let (store, account) = (&self.services.store, tenant.account().id);
        // Read the schedule first: if it changes before the email is read, the commit detects it.
        let found = store::schedule::get(store, (account, id)).await?;
        let email = store::email::get(store, account, id).await?.ok_or(RescheduleError::Unknown)?;
        match found {
            Some(found) if is_allowed(&found.schedule) => Ok((email, found)),
            _ => Err(RescheduleError::NotScheduled(EmailRollup::from_recipients(&email.recipients).status)),
        }
    }

    /// Starts a batch with a partition that this node holds.
    fn begin_change(&self) -> Result<(Batch, u16), SubmitError> {
        let leases = &self.services.leases;
        let mut batch = Batch::progress();
        let partition = leases.any().ok_or(SubmitError::Unavailable)?;
        let is_fenced = leases.fence_partitions(&mut batch, std::iter::once(partition));
        if is_fenced { Ok((batch, partition)) } else { Err(SubmitError::Unavailable) }
    }
}
