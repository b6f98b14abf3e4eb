//! Telling the owner by mail: an endpoint begins to fail, or was disabled; a domain is claimed by another account; somebody
//! applies to the partner program.
//!
//! ```text
//! attempt settled | claim proven ─►[ … + notice ] ─► find what is due in our partitions ─►[ the email - the notice ]
//! ```
//!
//! Mailed as the service's other mail is, from the domain of the sandbox sender, as the account that has it. Where
//! there is none, or it cannot send, the operator's log says so; the endpoint's own fields tell it anyway. What
//! passes by itself is waited for, up to a day.

use std::time::Duration;

use jiff::Timestamp;
use mail::account::Account;
use mail::address::{Address, DomainName};
use mail::id::{AccountId, EventId, PartnerId, WebhookId};
use mail::letter::SystemEmail;
use mail::moment;
use mail::owner_notice::{AlertSubject, OwnerAlert, WebhookAlert};
use mail::setup::ServiceHosts;
use store::engine::{Batch, CommitError};
use store::owner_notice::QueuedOwnerAlert;
use store::task::PARTITIONS;

use crate::accept::{Intake, SubmitReceipt};
use crate::postman::{self, SystemMailer};
use crate::refusal::SubmitError;

/// Who writes; or the other one, when the first is the sandbox sender itself, which reaches nobody but owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "webhooks"];
/// Notices of a partition read at once.
const PAGE_ALERTS: usize = 50;
/// How soon is tried again what cannot be mailed at the moment …
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// … and for how long.
const RETRY_FOR: Duration = Duration::from_secs(24 * 3600);
/// How often all partitions are looked at: other nodes put notices into them, and go.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Why a notice is not mailed.
enum OwnerAlertError {
    /// It never will be.
    Permanent(String),
    /// Not at the moment.
    Transient(String),
}

/// A notice lies where it lay: the store takes nothing at the moment.
struct StoreUnavailable;

fn transient(error: &dyn std::fmt::Display) -> OwnerAlertError {
    OwnerAlertError::Transient(error.to_string())
}

/// Where the notice of a commit is put.
#[derive(Debug, Clone, Copy)]
pub struct AlertPartition(u16);

impl Intake {
    /// A place for a notice, in a partition of this node's.
    #[must_use]
    pub fn alert_partition(&self) -> AlertPartition {
        let any = || u16::try_from(self.entropy().u64() % u64::from(PARTITIONS)).unwrap_or_default();
        AlertPartition(self.worker.leases.any().unwrap_or_else(any))
    }

    /// Puts a notice for an account's owner into the commit that makes it true. [`Hall::noticed`] follows.
    pub fn put_owner_alert(
        &self,
        batch: &mut Batch,
        AlertPartition(place): AlertPartition,
        told: (AccountId, AlertSubject),
    ) {
        let now = self.clock().now();
        let (account, about) = told;
        let notice = OwnerAlert { id: EventId::new(now, self.entropy().u128()), account, about, since: now };
        store::owner_notice::enqueue(batch, place, &notice);
    }

    /// The commit is done: the notice that was put there is mailed.
    pub fn notify_owner_alert(&self, AlertPartition(place): AlertPartition) {
        self.worker.owner_alert_timers.schedule(place, self.clock().now());
    }

    /// Mails what owners are to be told until the worker stops.
    pub(crate) async fn run_owner_alerts(&self) {
        let (worker, appointments) = (&self.worker, &self.worker.owner_alert_timers);
        while !worker.stop.is_cancelled() {
            let (leases, changed) = (worker.leases.changed(), appointments.changed());
            let (due, next) = appointments.due(&worker.leases.active(), self.clock().now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock().sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = tokio::time::sleep(POLL_INTERVAL), if self.store().is_shared() => appointments.reset_all(),
                    () = worker.stop.cancelled() => {}
                }
            }
            for partition in due {
                self.send_due_alerts(partition).await;
            }
        }
    }

    /// Mails what of a partition is due.
    async fn send_due_alerts(&self, partition: u16) {
        let (now, appointments) = (self.clock().now(), &self.worker.owner_alert_timers);
        appointments.begin_scan(partition);
        match store::owner_notice::list_due(self.store(), partition, now, PAGE_ALERTS).await {
            Ok(due) => {
                for (_, error) in &due.damaged {
                    tracing::error!(%error, partition, "a notice for an owner cannot be read and is passed over");
                }
                let (is_full, mut is_stuck) = (due.found.len() == PAGE_ALERTS, false);
                for found in due.found {
                    match self.send_or_defer_alert(&found).await {
                        Ok(next) => next.into_iter().for_each(|next| appointments.schedule(partition, next)),
                        Err(StoreUnavailable) => is_stuck = true,
                    }
                }
                let next = match (is_stuck, is_full) {
                    // A store in need is not asked for the same again at once.
                    (true, _) => Some(self.worker.after(RETRY_DELAY)),
                    (false, true) => Some(now),
                    (false, false) => due.next,
                };
                next.into_iter().for_each(|next| appointments.schedule(partition, next));
            }
            Err(error) => {
                store::warn_unless_away!(self.worker.store, %error, "notices for owners cannot be read at the moment");
                appointments.schedule(partition, self.worker.after(RETRY_DELAY));
            }
        }
    }

    /// Mails one, or puts it off: until when.
    async fn send_or_defer_alert(&self, found: &QueuedOwnerAlert) -> Result<Option<Timestamp>, StoreUnavailable> {
        let (notice, now) = (&found.notice, self.clock().now());
        let why = match self.submit_alert(found).await {
            Ok(()) => return Ok(None),
            Err(why) => why,
        };
        let mut batch = Batch::progress();
        let end = notice.since.checked_add(RETRY_FOR).unwrap_or(Timestamp::MAX);
        let next = match why {
            OwnerAlertError::Transient(_) if now < end => {
                let next = self.worker.after(RETRY_DELAY);
                found.defer(&mut batch, next);
                Some(next)
            }
            OwnerAlertError::Transient(cause) | OwnerAlertError::Permanent(cause) => {
                tracing::warn!(%cause, account.id = %notice.account, about = %notice.about, "an owner could not be mailed");
                found.remove(&mut batch);
                None
            }
        };
        match self.store().commit(batch).await {
            Ok(()) => Ok(next),
            // Somebody else did it.
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(_) => Err(StoreUnavailable),
        }
    }

    /// Accepts the email, and takes the notice away in the same commit.
    async fn submit_alert(&self, found: &QueuedOwnerAlert) -> Result<(), OwnerAlertError> {
        let notice = &found.notice;
        let postman = self.alert_mailer().await?;
        let owner = store::account::get(self.store(), notice.account).await.map_err(|error| transient(&error))?;
        let owner = owner.ok_or_else(|| OwnerAlertError::Permanent("the account is gone".to_owned()))?;
        let also = |outcomes: &[Result<SubmitReceipt, SubmitError>], batch: &mut Batch| {
            // An owner who is suppressed is not written to: then that is over, too.
            if outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(SubmitError::Suppressed { .. }))) {
                found.remove(batch);
            }
        };
        match postman.send_with(self, alert_email(&owner, notice, self.domains().facts()), &also).await {
            Ok(None | Some(Ok(_) | Err(SubmitError::Suppressed { .. }))) => Ok(()),
            Ok(Some(Err(refusal @ (SubmitError::Message(_) | SubmitError::Invalid { .. })))) => {
                Err(OwnerAlertError::Permanent(refusal.to_string()))
            }
            // Whatever else is in the way, the operator can clear away.
            Ok(Some(Err(refusal))) => Err(transient(&refusal)),
            Err(SubmitError::DoneConcurrently) => Ok(()),
            Err(refusal) => Err(transient(&refusal)),
        }
    }

    async fn alert_mailer(&self) -> Result<SystemMailer, OwnerAlertError> {
        let never = |cause: &dyn std::fmt::Display| OwnerAlertError::Permanent(cause.to_string());
        let sandbox =
            self.sender_authorization.sandbox().ok_or_else(|| never(&"`sandbox_sender` in [service] is not set"))?;
        let from = postman::sibling_address(sandbox, LOCAL_PARTS)
            .ok_or_else(|| never(&"`sandbox_sender` is no address to write from"))?;
        SystemMailer::for_service(self, from).await.map_err(|error| transient(&error))
    }
}

fn alert_email(owner: &Account, notice: &OwnerAlert, facts: &ServiceHosts) -> SystemEmail {
    let (subject, text) = match &notice.about {
        AlertSubject::Endpoint { webhook, url, what } => {
            let (subject, text) = endpoint_alert((*webhook, url), *what);
            (subject.to_owned(), text)
        }
        AlertSubject::Claim { claimed, grace_ends_at } => claim_alert(owner, (claimed, *grace_ends_at), facts),
        AlertSubject::Application { affiliate, applicant } => application_alert(*affiliate, applicant),
    };
    SystemEmail::new(owner.email.clone(), subject, text)
}

/// They had the domain verified: they may object, and are told how.
fn claim_alert(owner: &Account, (name, ends): (&DomainName, Timestamp), facts: &ServiceHosts) -> (String, String) {
    let own = facts.ownership_record(owner.id, name);
    let text = format!(
        "Somebody who rules the DNS of {name} claims it for another account. Unless you object, it is theirs after \
         {}, and your account can send from it no more.\n\nTo object, have this record stand at \
         {}.{name}:\n\n{}\n\nIf you gave the domain away, there is nothing to do.\n",
        moment::to_rfc3339(ends),
        facts.ownership_label,
        own.value
    );
    (format!("Your domain {name} is claimed by another account"), text)
}

/// Who they are, they said themselves: nothing of it but the address stands in mail.
fn application_alert(affiliate: PartnerId, applicant: &Address) -> (String, String) {
    let text = format!(
        "{applicant} applied to your partner program by its form, and waits for your answer ({affiliate}).\n\nTo \
         answer: POST /affiliates/{affiliate}/approve, or POST /affiliates/{affiliate}/reject.\n"
    );
    ("Somebody applied to your partner program".to_owned(), text)
}

fn endpoint_alert((webhook, url): (WebhookId, &str), what: WebhookAlert) -> (&'static str, String) {
    match what {
        WebhookAlert::Failing => (
            "A webhook endpoint does not take deliveries",
            format!(
                "Deliveries to {url} ({webhook}) fail: the first one was given up.\n\nThey are kept and can be \
                 sent again (POST /webhooks/{webhook}/replay). When nothing arrives for five days, the endpoint is \
                 disabled.\n"
            ),
        ),
        WebhookAlert::Gone => (
            "A webhook endpoint was disabled",
            format!(
                "{url} ({webhook}) answered 410 (gone), so nothing is sent to it any more.\n\nTo enable it again: \
                 PATCH /webhooks/{webhook} with {{\"enabled\": true}}.\n"
            ),
        ),
        WebhookAlert::Disabled => (
            "A webhook endpoint was disabled",
            format!(
                "Nothing arrived at {url} ({webhook}) for five days, so nothing is sent to it any more.\n\nTo \
                 enable it again: PATCH /webhooks/{webhook} with {{\"enabled\": true}}. What was given up can be \
                 sent again (POST /webhooks/{webhook}/replay).\n"
            ),
        ),
    }
}
