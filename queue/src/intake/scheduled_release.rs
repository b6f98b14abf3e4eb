//! Release of scheduled emails when they are due.
//!
//! ```text
//! due ─► authorize again ─► date ─► sign ─►[ tasks + recipients + body + schedule + event ]─► dispatcher
//!                  ├─ refused: held, retried for as long as a delivery would be; then it fails
//!                  └─ the store cannot be read or written: still scheduled, retried soon
//! ```
//!
//! A release stores the whole signed message, so on a full disk it waits like new mail: the disk reserve is left to
//! deliveries. Nothing is signed and no row is written while the store refuses new mail.
//!
//! Each node releases the emails of its own partitions: a batch of each partition in turn, and within a partition one
//! email of each account in turn. So a hundred thousand emails of one account, scheduled for one moment, do not delay
//! another account's. Memory holds one timer for each partition, however many emails wait.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use message::header;
use model::draft::OnSuppressed;
use model::event::EventKind;
use model::recipient::{Recipient, RecipientState};
use model::schedule::{Schedule, ScheduleState};
use net::limit::round_robin::round_robin;
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::Batch;
use store::schedule::{ScheduleKey, StoredSchedule};
use tokio::time::Instant;

use super::prepare::total_bytes;
use super::suppression_check::{mark_suppressed, suppressed_disposition};
use super::{Intake, SubmitError};
use crate::intake::prepared_message::{
    DeliveryRequirements, Disposition, EnvelopeRecipient, PreparedMessage, ScheduledRef,
};

/// Emails released from one partition before the next partition has its turn.
const ROUND_EMAILS: usize = 64;
/// Emails released concurrently: enough to keep the signing threads busy.
const CONCURRENCY: usize = 64;
/// Retry delay when the due emails of a partition cannot be read, or a failure is not transient.
const READ_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Retry delay when the email is refused at the moment, for example because its domain is not verified.
const HOLD_RETRY_DELAY: Duration = Duration::from_secs(300);
/// Retry delay after a transient refusal, such as a full disk: of the email, or of its partition if that cannot be
/// stored.
const TRANSIENT_RETRY_DELAY: Duration = Duration::from_secs(10);
/// Minimum time between warnings about failed releases.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

impl Intake {
    /// Releases due emails until shutdown.
    pub async fn run_scheduled_release(self: Arc<Self>) {
        let mut warned_at: Option<Instant> = None;
        while !self.services.stop.is_cancelled() {
            for partition in self.release_timers.due_or_wait(&self.services, None).await {
                let Err(refusal) = self.release_partition(partition).await else { continue };
                let delay = if refusal.is_transient() { TRANSIENT_RETRY_DELAY } else { READ_RETRY_DELAY };
                // A full disk refuses the emails of all partitions.
                if warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
                    tracing::warn!(%refusal, "cannot release scheduled email; retrying");
                    warned_at = Some(Instant::now());
                }
                self.release_timers.schedule(partition, self.services.clock.after(delay));
            }
        }
    }

    /// Releases the first due emails of a partition, and reschedules the partition if more are due.
    ///
    /// # Errors
    /// The store cannot be read, refuses new mail, or does not store the result of an email: the caller reschedules the
    /// partition.
    async fn release_partition(&self, partition: u16) -> Result<(), SubmitError> {
        self.release_timers.begin_scan(partition);
        let now = self.services.clock.now();
        let first = store::schedule::list_due(&self.services.store, partition, now).await;
        // On a read error, look at the partition again later.
        let first = first
            .inspect_err(|_| self.release_timers.schedule(partition, self.services.clock.after(READ_RETRY_DELAY)))?;
        if !first.due.is_empty() {
            self.check_store_health()?;
        }
        let has_more = first.has_more || first.due.len() > ROUND_EMAILS;
        let next = if has_more { Some(now) } else { first.later };
        let releases =
            round_robin(first.due, |key| key.0).into_iter().take(ROUND_EMAILS).map(|key| self.release_email(key));
        let mut done = futures_util::stream::iter(releases).buffer_unordered(CONCURRENCY);
        let mut outcome = Ok(());
        while let Some(released) = done.next().await {
            outcome = outcome.and(released);
        }
        // Emails that failed are retried later, not at once.
        if let Some(next) = next.filter(|_| outcome.is_ok()) {
            self.release_timers.schedule(partition, next);
        }
        outcome
    }

    /// Releases one email if it is still open and due.
    async fn release_email(&self, key: ScheduleKey) -> Result<(), SubmitError> {
        let store = &self.services.store;
        let Some(found) = store::schedule::get(store, key).await? else { return Ok(()) };
        if !found.schedule.is_open() || found.schedule.due > self.services.clock.now() {
            return Ok(());
        }
        let Some(email) = store::email::get(store, key.0, key.1).await? else { return Ok(()) };
        let Some(body) = store::email::get_body(store, key.0, key.1).await? else {
            tracing::error!(email.id = %key.1, "scheduled email has no stored message; run `postrider admin store check`");
            let missing =
                SubmitError::Invalid { field: "message", message: "the stored message is missing".to_owned() };
            return self.fail_scheduled(email, found, Bytes::new(), &missing).await;
        };
        // A held email is retried for as long as a delivery would be.
        let (until, held) = (self.expires_at(&email.email, found.schedule.scheduled_at), found.clone());
        match self.submit_scheduled(&email, found, &body).await {
            // Cancelled or rescheduled concurrently: nothing to do.
            Ok(()) | Err(SubmitError::DoneConcurrently) => Ok(()),
            // Hold this email alone; others of the partition are still released. Storing the hold fails too if the
            // store does.
            Err(refusal) => {
                tracing::info!(%refusal, email.id = %key.1, "scheduled email refused");
                let now = self.services.clock.now();
                if now < until {
                    let (state, wait) = state_after_refusal(held.schedule.state, &refusal);
                    let due = now.checked_add(wait).unwrap_or(Timestamp::MAX).min(until);
                    self.defer_scheduled(&email, &held, state, due).await
                } else {
                    self.fail_scheduled(email, held, body, &refusal).await
                }
            }
        }
    }

    async fn submit_scheduled(
        &self,
        found: &EmailWithRecipients,
        stored_schedule: StoredSchedule,
        body: &Bytes,
    ) -> Result<(), SubmitError> {
        let now = self.services.clock.now();
        let email = &found.email;
        let fails_suppressed = stored_schedule.schedule.fails_suppressed;
        let on_suppressed = if fails_suppressed { OnSuppressed::Fail } else { OnSuppressed::Skip };
        let tenant = store::access::service_tenant(&self.services.store, email.account).await;
        let tenant = tenant.map_err(|_| SubmitError::Unavailable)?;
        let sender = self.sender_authorization.authorize(&tenant, &email.from.address, now).await?;
        let recipients = found.recipients.iter().map(|r| &r.address);
        self.sender_authorization.check_reachable(&tenant, &sender, &email.from.address, recipients)?;
        let chunks = vec![body.clone()];
        let mut prepared = self.prepare_scheduled(found.clone(), stored_schedule, chunks, Disposition::Deliver, now);
        prepared.requirements.tls_enforced = sender.enforces_tls();
        prepared.requirements.plan = Some(sender.account().plan);
        // Recipients may have been suppressed since.
        let (store, recipients) = (&self.services.store, &mut prepared.recipients);
        let blocked = mark_suppressed(store, email.account, email.category, recipients, now).await?;
        match suppressed_disposition(&blocked, on_suppressed, &prepared.recipients) {
            Some(refuse) => prepared.disposition = refuse,
            None => {
                prepared.chunks = self.signer.sign(&sender, header::replace_date(body, now), now).await?;
                prepared.email.size_bytes = total_bytes(&prepared.chunks);
            }
        }
        self.commit(vec![prepared], &|_| {}).await
    }

    /// Builds the prepared message of a scheduled email with its disposition.
    fn prepare_scheduled(
        &self,
        EmailWithRecipients { mut email, recipients, .. }: EmailWithRecipients,
        stored_schedule: StoredSchedule,
        chunks: Vec<Bytes>,
        disposition: Disposition,
        now: Timestamp,
    ) -> PreparedMessage {
        let schedule = &stored_schedule.schedule;
        let counted = recipients.iter().filter(|r| r.state != RecipientState::Suppressed).count();
        let addressees = recipients.into_iter().map(|recipient| EnvelopeRecipient {
            notify: schedule.notify.get(usize::from(recipient.index)).cloned().unwrap_or_default(),
            address: recipient.address,
            kind: recipient.kind,
            suppressed: recipient.state == RecipientState::Suppressed,
        });
        let addressees = addressees.collect();
        email.size_bytes = total_bytes(&chunks);
        // Emails that were scheduled by earlier versions have it in the schedule only.
        email.require_tls = schedule.require_tls;
        let transport = DeliveryRequirements {
            smtputf8: schedule.smtputf8,
            require_tls: schedule.require_tls,
            tls_enforced: false,
            tls_optional: false,
            // An email with `expires_in` (a login code) does not expire later because it was held.
            expires_at: self.expires_at(&email, email.expires_in.map_or(now, |_| schedule.scheduled_at)),
            plan: None,
        };
        let stored_schedule = Some(ScheduledRef { schedule: stored_schedule, counted });
        PreparedMessage {
            email,
            recipients: addressees,
            chunks,
            sealed_body: None,
            requirements: transport,
            disposition,
            scheduled: stored_schedule,
            plan_reservation: None,
            storage_reservation: None,
            now,
        }
    }

    /// Stores the state of a refused email and the time of the next attempt.
    async fn defer_scheduled(
        &self,
        email: &EmailWithRecipients,
        found: &StoredSchedule,
        state: ScheduleState,
        due: Timestamp,
    ) -> Result<(), SubmitError> {
        let Some(partition) = self.services.leases.any() else { return Err(SubmitError::Unavailable) };
        let mut batch = Batch::progress();
        if !self.services.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
            return Err(SubmitError::Unavailable);
        }
        let key = (email.email.account, email.email.id);
        let after = Schedule { state, due, partition, ..found.schedule.clone() };
        store::schedule::update(&mut batch, key, found, &after);
        let is_held = state == ScheduleState::Held;
        for recipient in email.recipients.iter().filter(|r| is_held && r.state == RecipientState::Scheduled) {
            let held = Recipient { state: RecipientState::Held, ..recipient.clone() };
            store::email::put_recipient(&mut batch, key.0, key.1, &held);
        }
        self.services.store.commit(batch).await?;
        self.release_timers.schedule(partition, due);
        self.services.outcome_recorded.notify_waiters();
        Ok(())
    }

    /// Fails an email that was held for too long.
    async fn fail_scheduled(
        &self,
        email: EmailWithRecipients,
        found: StoredSchedule,
        body: Bytes,
        refusal: &SubmitError,
    ) -> Result<(), SubmitError> {
        let is_expired = email.email.expires_in.is_some() && !matches!(refusal, SubmitError::Invalid { .. });
        let reason = if is_expired { "expired" } else { "rejected" };
        let detail = json!({"failure": {"reason": reason, "message": refusal.to_string(), "smtp_code": null}});
        let disposition = Disposition::Reject(EventKind::Failed, detail);
        let prepared = self.prepare_scheduled(email, found, vec![body], disposition, self.services.clock.now());
        match self.commit(vec![prepared], &|_| {}).await {
            Err(SubmitError::DoneConcurrently) => Ok(()),
            outcome => outcome,
        }
    }
}

/// State of a refused email, and the delay before the next attempt. Only a refusal of the email itself holds it.
fn state_after_refusal(state: ScheduleState, refusal: &SubmitError) -> (ScheduleState, Duration) {
    match refusal.is_transient() {
        true => (state, TRANSIENT_RETRY_DELAY),
        false => (ScheduleState::Held, HOLD_RETRY_DELAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transient_refusal_does_not_hold_the_email() {
        use ScheduleState::{Held, Waiting};
        for (state, refusal, after) in [
            (Waiting, SubmitError::InsufficientStorage, (Waiting, TRANSIENT_RETRY_DELAY)),
            (Waiting, SubmitError::Unavailable, (Waiting, TRANSIENT_RETRY_DELAY)),
            (Held, SubmitError::Unavailable, (Held, TRANSIENT_RETRY_DELAY)),
            (Waiting, SubmitError::AccountSuspended, (Held, HOLD_RETRY_DELAY)),
        ] {
            assert_eq!(state_after_refusal(state, &refusal), after, "{refusal}");
        }
    }
}
