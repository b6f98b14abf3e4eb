//! Releasing: scheduled emails go the rest of the way when they are due.
//!
//! ```text
//! due ─► may they still? ─► date ─► sign ─►[ tasks + recipients + body + schedule + event ]─► worker
//!                    └─ not now: held, tried again for as long as a delivery would be; then it fails
//! ```
//!
//! Each node releases what lies in its own partitions, some of each in turn, and within a partition some of
//! each account in turn: who schedules a hundred thousand for a moment does not delay the one of somebody
//! else. Memory holds one time for each partition, however many emails wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::draft::OnSuppressed;
use mail::event::EventKind;
use mail::id::{AccountId, EventId};
use mail::message;
use mail::recipient::{Recipient, RecipientState};
use mail::schedule::{Schedule, ScheduleState};
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::Batch;
use store::schedule::{About, Found};

use super::reach::fate_of;
use super::stage::size_of;
use super::{Hall, Refusal};
use crate::staged::{Addressee, Appointment, Fate, Staged, Transport};

/// Emails of a partition released before the others have their turn.
const SLICE: usize = 64;
/// Emails released side by side: enough to keep the signers busy.
const AT_ONCE: usize = 64;
/// How soon is tried again what the store could not take.
const AGAIN: Duration = Duration::from_secs(1);
/// How soon is tried again what may not be sent at the moment.
const HOLD: Duration = Duration::from_secs(300);
/// How soon is tried again what could not be sent for a reason that passes by itself.
const HOLD_PASSING: Duration = Duration::from_secs(10);

impl Hall {
    /// Begins to release what is scheduled, and to look at domains.
    pub fn start(&self) {
        let hall = self.clone();
        self.worker.spawn(async move { hall.keep_releasing().await });
        let hall = self.clone();
        self.worker.spawn(async move { hall.keep_running().await });
        self.worker.spawn(Arc::clone(&self.domains).keep_looking());
        let hall = self.clone();
        self.worker.spawn(async move { hall.keep_noticing().await });
        let hall = self.clone();
        self.worker.spawn(async move { hall.keep_tls_reporting().await });
        let (hall, domains) = (self.clone(), Arc::clone(&self.domains));
        self.worker.spawn(async move { domains.keep_claims(|account| hall.domains_max(account)).await });
    }

    /// How many domains an account's plan includes; none of one that is gone.
    async fn domains_max(&self, account: AccountId) -> Option<u32> {
        match store::account::get(&self.worker.store, account).await {
            Ok(Some(account)) => self.plans().of(account.plan).domains,
            _ => Some(0),
        }
    }

    async fn keep_releasing(&self) {
        while !self.worker.stop.is_cancelled() {
            let leases = self.worker.leases.changed();
            let changed = self.appointments.changed();
            let (due, next) = self.appointments.due(&self.worker.leases.active(), self.clock().now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock().sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = self.worker.stop.cancelled() => {}
                }
            }
            for partition in due {
                if let Err(refusal) = self.release_in(partition).await {
                    tracing::warn!(%refusal, "scheduled mail cannot be released at the moment");
                    self.appointments.note(partition, self.worker.later(AGAIN));
                }
            }
        }
    }

    /// Releases what is due first in a partition; should more be due, its turn comes again.
    async fn release_in(&self, partition: u16) -> Result<(), Refusal> {
        self.appointments.begin(partition);
        let now = self.clock().now();
        let first = store::schedule::first_due(&self.worker.store, partition, now).await;
        // What cannot be read is looked at again.
        let first = first.inspect_err(|_| self.appointments.note(partition, self.worker.later(AGAIN)))?;
        let more = first.more || first.due.len() > SLICE;
        let next = if more { Some(now) } else { first.later };
        let releases = by_turns(first.due).into_iter().take(SLICE).map(|about| self.release(about));
        let mut done = futures_util::stream::iter(releases).buffer_unordered(AT_ONCE);
        let mut outcome = Ok(());
        while let Some(one) = done.next().await {
            outcome = outcome.and(one);
        }
        // What went wrong is tried again later, and not at once.
        if let Some(next) = next.filter(|_| outcome.is_ok()) {
            self.appointments.note(partition, next);
        }
        outcome
    }

    /// Releases one email, if it is still to be sent.
    async fn release(&self, about: About) -> Result<(), Refusal> {
        let store = &self.worker.store;
        let Some(found) = store::schedule::get(store, about).await? else { return Ok(()) };
        if !found.schedule.is_open() || found.schedule.due > self.clock().now() {
            return Ok(());
        }
        let Some(email) = store::email::get(store, about.0, about.1).await? else { return Ok(()) };
        let Some(body) = store::email::raw(store, about.0, about.1).await? else {
            tracing::error!(email.id = %about.1, "a scheduled email has lost its message");
            let lost = Refusal::Invalid { field: "message", message: "its bytes are not there".to_owned() };
            return self.fail(email, found, Bytes::new(), &lost).await;
        };
        // As long as it would be tried to deliver it.
        let (until, held) = (self.expires_at(&email.email, found.schedule.scheduled_at), found.clone());
        match self.send_scheduled(&email, found, &body).await {
            // Cancelled or rescheduled this very moment: so be it.
            Ok(()) | Err(Refusal::DoneMeanwhile) => Ok(()),
            // Whatever is in its way is in its own way: others behind it go. A store that takes nothing takes
            // no hold either.
            Err(refusal) => {
                tracing::info!(%refusal, email.id = %about.1, "a scheduled email may not be sent now");
                let now = self.clock().now();
                if now < until {
                    let hold = if refusal.is_passing() { HOLD_PASSING } else { HOLD };
                    let due = now.checked_add(hold).unwrap_or(Timestamp::MAX).min(until);
                    self.hold(&email, &held, due).await
                } else {
                    self.fail(email, held, body, &refusal).await
                }
            }
        }
    }

    async fn send_scheduled(
        &self,
        found: &EmailWithRecipients,
        appointment: Found,
        body: &Bytes,
    ) -> Result<(), Refusal> {
        let now = self.clock().now();
        let email = &found.email;
        let tenant = store::access::by_service(&self.worker.store, email.account).await;
        let tenant = tenant.map_err(|_| Refusal::Unavailable)?;
        let sender = self.senders.find(&tenant, &email.from.address, now).await?;
        let recipients = found.recipients.iter().map(|r| &r.address);
        self.senders.may_reach((&tenant, &sender), &email.from.address, recipients)?;
        let chunks = vec![body.clone()];
        let mut staged = self.staged(found.clone(), appointment, (chunks, Fate::Send), now);
        staged.transport.tls_enforced = sender.enforces_tls();
        staged.transport.plan = Some(sender.account().plan);
        // Who has left since does not get it, and keeps nobody else from getting it.
        let about = (email.account, email.category);
        let blocked = self.mark_blocked(about, &mut staged.addressees, now).await?;
        match fate_of(&blocked, OnSuppressed::Skip, &staged.addressees) {
            Some(refuse) => staged.fate = refuse,
            None => {
                staged.chunks = self.sign(&sender, message::redate(body, now), now).await?;
                staged.email.size_bytes = size_of(&staged.chunks);
            }
        }
        self.commit(vec![staged], &|_| {}).await
    }

    /// What was scheduled, with what is to become of it now.
    fn staged(
        &self,
        EmailWithRecipients { mut email, recipients, .. }: EmailWithRecipients,
        appointment: Found,
        (chunks, fate): (Vec<Bytes>, Fate),
        now: Timestamp,
    ) -> Staged {
        let schedule = &appointment.schedule;
        let counted = recipients.iter().filter(|r| r.state != RecipientState::Suppressed).count();
        let addressees = recipients.into_iter().map(|recipient| Addressee {
            notify: schedule.notify.get(usize::from(recipient.index)).cloned().unwrap_or_default(),
            address: recipient.address,
            kind: recipient.kind,
            suppressed: recipient.state == RecipientState::Suppressed,
        });
        let addressees = addressees.collect();
        email.size_bytes = size_of(&chunks);
        let transport = Transport {
            smtputf8: schedule.smtputf8,
            require_tls: schedule.require_tls,
            tls_enforced: false,
            tls_optional: false,
            // A code that was held is worth nothing longer for that.
            expires_at: self.expires_at(&email, email.expires_in.map_or(now, |_| schedule.scheduled_at)),
            plan: None,
        };
        let appointment = Some(Appointment { found: appointment, counted });
        Staged { email, addressees, chunks, transport, fate, appointment, reserved: None, storage: None, now }
    }

    /// It is due and may not be sent yet: it is looked at again then.
    async fn hold(&self, email: &EmailWithRecipients, found: &Found, due: Timestamp) -> Result<(), Refusal> {
        let Some(partition) = self.worker.leases.any() else { return Err(Refusal::Unavailable) };
        let mut batch = Batch::progress();
        if !self.worker.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
            return Err(Refusal::Unavailable);
        }
        let about = (email.email.account, email.email.id);
        let state = ScheduleState::Held;
        let after = Schedule { state, due, partition, ..found.schedule.clone() };
        store::schedule::change(&mut batch, about, found, &after);
        for recipient in email.recipients.iter().filter(|r| r.state == RecipientState::Scheduled) {
            let held = Recipient { state: RecipientState::Held, ..recipient.clone() };
            store::email::put_recipient(&mut batch, about.0, about.1, &held);
        }
        self.worker.store.commit(batch).await?;
        self.appointments.note(partition, due);
        self.worker.settled.notify_waiters();
        Ok(())
    }

    /// It was held for so long that it fails.
    async fn fail(
        &self,
        email: EmailWithRecipients,
        found: Found,
        body: Bytes,
        refusal: &Refusal,
    ) -> Result<(), Refusal> {
        let is_expired = email.email.expires_in.is_some() && !matches!(refusal, Refusal::Invalid { .. });
        let reason = if is_expired { "expired" } else { "rejected" };
        let why = json!({"failure": {"reason": reason, "message": refusal.to_string(), "smtp_code": null}});
        let fate = Fate::Refuse(EventKind::Failed, why);
        let staged = self.staged(email, found, (vec![body], fate), self.clock().now());
        match self.commit(vec![staged], &|_| {}).await {
            Err(Refusal::DoneMeanwhile) => Ok(()),
            outcome => outcome,
        }
    }

    /// An id for an event that happens now.
    pub(super) fn event_id(&self) -> EventId {
        EventId::new(self.clock().now(), self.worker.entropy.id())
    }
}

/// In the order of their turns: each account has one email in each turn, what it has due first.
fn by_turns(due: Vec<About>) -> Vec<About> {
    let mut before: HashMap<AccountId, usize> = HashMap::new();
    let mut turns: Vec<(usize, About)> = due
        .into_iter()
        .map(|about| {
            let turns = before.entry(about.0).or_default();
            *turns += 1;
            (*turns, about)
        })
        .collect();
    // It keeps the order within a turn.
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, about)| about).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::EmailId;

    #[test]
    fn accounts_take_turns() {
        let at = Timestamp::UNIX_EPOCH;
        let email = |account, number| (AccountId::new(at, account), EmailId::new(at, number));
        let due = [(1, 1), (1, 2), (1, 3), (2, 4), (1, 5), (3, 6), (2, 7)].map(|(a, n)| email(a, n));
        let turns = [(1, 1), (2, 4), (3, 6), (1, 2), (2, 7), (1, 3), (1, 5)].map(|(a, n)| email(a, n));
        assert_eq!(by_turns(due.to_vec()), turns);
    }
}
