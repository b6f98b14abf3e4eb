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
use mail::address::{Address, Name};
use mail::id::{AccountId, EventId, PartnerId, WebhookId};
use mail::letter::Letter;
use mail::moment;
use mail::owner_notice::{About, OwnerNotice, What};
use mail::setup::Facts;
use store::engine::{Batch, CommitError};
use store::owner_notice::Found;
use store::task::PARTITIONS;

use crate::accept::{Accepted, Hall};
use crate::postman::{self, Postman};
use crate::refusal::Refusal;

/// Who writes; or the other one, when the first is the sandbox sender itself, which reaches nobody but owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "webhooks"];
/// Notices of a partition read at once.
const SLICE: usize = 50;
/// How soon is tried again what cannot be mailed at the moment …
const AGAIN: Duration = Duration::from_secs(60);
/// … and for how long.
const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// How often all partitions are looked at: other nodes put notices into them, and go.
const LOOK: Duration = Duration::from_secs(5);

/// Why a notice is not mailed.
enum Unmailed {
    /// It never will be.
    Never(String),
    /// Not at the moment.
    NotNow(String),
}

/// A notice lies where it lay: the store takes nothing at the moment.
struct Stuck;

fn not_now(error: &dyn std::fmt::Display) -> Unmailed {
    Unmailed::NotNow(error.to_string())
}

/// Where the notice of a commit is put.
#[derive(Debug, Clone, Copy)]
pub struct NoticePlace(u16);

impl Hall {
    /// A place for a notice, in a partition of this node's.
    #[must_use]
    pub fn notice_place(&self) -> NoticePlace {
        let any = || u16::try_from(self.entropy().u64() % u64::from(PARTITIONS)).unwrap_or_default();
        NoticePlace(self.worker.leases.any().unwrap_or_else(any))
    }

    /// Puts a notice for an account's owner into the commit that makes it true. [`Hall::noticed`] follows.
    pub fn notice(&self, batch: &mut Batch, NoticePlace(place): NoticePlace, told: (AccountId, About)) {
        let now = self.clock().now();
        let (account, about) = told;
        let notice = OwnerNotice { id: EventId::new(now, self.entropy().u128()), account, about, since: now };
        store::owner_notice::put(batch, place, &notice);
    }

    /// The commit is done: the notice that was put there is mailed.
    pub fn noticed(&self, NoticePlace(place): NoticePlace) {
        self.worker.owner_notices.note(place, self.clock().now());
    }

    /// Mails what owners are to be told until the worker stops.
    pub(crate) async fn keep_noticing(&self) {
        let (worker, appointments) = (&self.worker, &self.worker.owner_notices);
        while !worker.stop.is_cancelled() {
            let (leases, changed) = (worker.leases.changed(), appointments.changed());
            let (due, next) = appointments.due(&worker.leases.active(), self.clock().now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock().sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = tokio::time::sleep(LOOK), if self.store().is_shared() => appointments.look_at_all(),
                    () = worker.stop.cancelled() => {}
                }
            }
            for partition in due {
                self.mail_notices(partition).await;
            }
        }
    }

    /// Mails what of a partition is due.
    async fn mail_notices(&self, partition: u16) {
        let (now, appointments) = (self.clock().now(), &self.worker.owner_notices);
        appointments.begin(partition);
        match store::owner_notice::due(self.store(), partition, now, SLICE).await {
            Ok(due) => {
                for (_, error) in &due.damaged {
                    tracing::error!(%error, partition, "a notice for an owner cannot be read and is passed over");
                }
                let (is_full, mut is_stuck) = (due.found.len() == SLICE, false);
                for found in due.found {
                    match self.mail_notice(&found).await {
                        Ok(next) => next.into_iter().for_each(|next| appointments.note(partition, next)),
                        Err(Stuck) => is_stuck = true,
                    }
                }
                let next = match (is_stuck, is_full) {
                    // A store in need is not asked for the same again at once.
                    (true, _) => Some(self.worker.later(AGAIN)),
                    (false, true) => Some(now),
                    (false, false) => due.next,
                };
                next.into_iter().for_each(|next| appointments.note(partition, next));
            }
            Err(error) => {
                store::warn_unless_away!(self.worker.store, %error, "notices for owners cannot be read at the moment");
                appointments.note(partition, self.worker.later(AGAIN));
            }
        }
    }

    /// Mails one, or puts it off: until when.
    async fn mail_notice(&self, found: &Found) -> Result<Option<Timestamp>, Stuck> {
        let (notice, now) = (&found.notice, self.clock().now());
        let why = match self.mail_owner(found).await {
            Ok(()) => return Ok(None),
            Err(why) => why,
        };
        let mut batch = Batch::progress();
        let end = notice.since.checked_add(TRIED_FOR).unwrap_or(Timestamp::MAX);
        let next = match why {
            Unmailed::NotNow(_) if now < end => {
                let next = self.worker.later(AGAIN);
                found.put_off(&mut batch, next);
                Some(next)
            }
            Unmailed::NotNow(cause) | Unmailed::Never(cause) => {
                tracing::warn!(%cause, account.id = %notice.account, about = %notice.about, "an owner could not be mailed");
                found.take(&mut batch);
                None
            }
        };
        match self.store().commit(batch).await {
            Ok(()) => Ok(next),
            // Somebody else did it.
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(_) => Err(Stuck),
        }
    }

    /// Accepts the email, and takes the notice away in the same commit.
    async fn mail_owner(&self, found: &Found) -> Result<(), Unmailed> {
        let notice = &found.notice;
        let postman = self.owners_postman().await?;
        let owner =
            store::account::get(self.store(), notice.account).await.map_err(|error| not_now(&error))?;
        let owner = owner.ok_or_else(|| Unmailed::Never("the account is gone".to_owned()))?;
        let also = |outcomes: &[Result<Accepted, Refusal>], batch: &mut Batch| {
            // An owner who is suppressed is not written to: then that is over, too.
            if outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(Refusal::Blocked { .. }))) {
                found.take(batch);
            }
        };
        match postman.send_with(self, letter(&owner, notice, self.domains().facts()), &also).await {
            Ok(None | Some(Ok(_) | Err(Refusal::Blocked { .. }))) => Ok(()),
            Ok(Some(Err(refusal @ (Refusal::Message(_) | Refusal::Invalid { .. })))) => {
                Err(Unmailed::Never(refusal.to_string()))
            }
            // Whatever else is in the way, the operator can clear away.
            Ok(Some(Err(refusal))) => Err(not_now(&refusal)),
            Err(Refusal::DoneMeanwhile) => Ok(()),
            Err(refusal) => Err(not_now(&refusal)),
        }
    }

    async fn owners_postman(&self) -> Result<Postman, Unmailed> {
        let never = |cause: &dyn std::fmt::Display| Unmailed::Never(cause.to_string());
        let sandbox =
            self.senders.sandbox().ok_or_else(|| never(&"`sandbox_sender` in [service] is not set"))?;
        let from = postman::beside(sandbox, LOCAL_PARTS)
            .ok_or_else(|| never(&"`sandbox_sender` is no address to write from"))?;
        Postman::find(self, from).await.map_err(|error| not_now(&error))
    }
}

fn letter(owner: &Account, notice: &OwnerNotice, facts: &Facts) -> Letter {
    let (subject, text) = match &notice.about {
        About::Endpoint { webhook, url, what } => {
            let (subject, text) = about_endpoint((*webhook, url), *what);
            (subject.to_owned(), text)
        }
        About::Claim { claimed, grace_ends_at } => about_claim(owner, (claimed, *grace_ends_at), facts),
        About::Application { affiliate, applicant } => about_application(*affiliate, applicant),
    };
    Letter::new(owner.email.clone(), subject, text)
}

/// They had the domain verified: they may object, and are told how.
fn about_claim(owner: &Account, (name, ends): (&Name, Timestamp), facts: &Facts) -> (String, String) {
    let own = facts.ownership(owner.id, name);
    let text = format!(
        "Somebody who rules the DNS of {name} claims it for another account. Unless you object, it is theirs after \
         {}, and your account can send from it no more.\n\nTo object, have this record stand at \
         {}.{name}:\n\n{}\n\nIf you gave the domain away, there is nothing to do.\n",
        moment::write(ends),
        facts.ownership_label,
        own.value
    );
    (format!("Your domain {name} is claimed by another account"), text)
}

/// Who they are, they said themselves: nothing of it but the address stands in mail.
fn about_application(affiliate: PartnerId, applicant: &Address) -> (String, String) {
    let text = format!(
        "{applicant} applied to your partner program by its form, and waits for your answer ({affiliate}).\n\nTo \
         answer: POST /affiliates/{affiliate}/approve, or POST /affiliates/{affiliate}/reject.\n"
    );
    ("Somebody applied to your partner program".to_owned(), text)
}

fn about_endpoint((webhook, url): (WebhookId, &str), what: What) -> (&'static str, String) {
    match what {
        What::Failing => (
            "A webhook endpoint does not take deliveries",
            format!(
                "Deliveries to {url} ({webhook}) fail: the first one was given up.\n\nThey are kept and can be \
                 sent again (POST /webhooks/{webhook}/replay). When nothing arrives for five days, the endpoint is \
                 disabled.\n"
            ),
        ),
        What::Gone => (
            "A webhook endpoint was disabled",
            format!(
                "{url} ({webhook}) answered 410 (gone), so nothing is sent to it any more.\n\nTo enable it again: \
                 PATCH /webhooks/{webhook} with {{\"enabled\": true}}.\n"
            ),
        ),
        What::Disabled => (
            "A webhook endpoint was disabled",
            format!(
                "Nothing arrived at {url} ({webhook}) for five days, so nothing is sent to it any more.\n\nTo \
                 enable it again: PATCH /webhooks/{webhook} with {{\"enabled\": true}}. What was given up can be \
                 sent again (POST /webhooks/{webhook}/replay).\n"
            ),
        ),
    }
}
