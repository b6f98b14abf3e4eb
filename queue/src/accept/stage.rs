//! Staging: from a draft to an email that only needs its commit.
//!
//! ```text
//! Draft ─► write ─► may they? ─► is there room in the plan? ─► sign ─► Staged
//! ```

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use mail::draft::Draft;
use mail::email::{Door, Email, HeaderFacts};
use mail::id::EmailId;
use mail::quota::Noun;
use mail::suppression::Blocked;
use mail::unsubscribe;
use store::access::Tenant;
use store::email::RECIPIENTS_MAX;

use super::reach::fate_of;
use super::write::{Written, addressees, write};
use super::{HEADER_ROOM_BYTES, Hall, Signing};
use crate::meter::{Reserved, Room};
use crate::quota::{self, QuotaError};
use crate::refusal::Refusal;
use crate::sender::Sender;
use crate::staged::{Addressee, Fate, Staged, Transport};

/// The farthest that an email may be scheduled ahead.
pub const SCHEDULED_AHEAD_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

impl Hall {
    /// Makes an email of a draft: everything but the commit.
    pub(super) async fn stage(
        &self,
        tenant: &Tenant,
        mut draft: Draft,
        now: Timestamp,
    ) -> Result<Staged, Stop> {
        let id = EmailId::new(now, self.worker.entropy.id());
        check(&draft, now)?;
        let (scheduled_at, late_in_s) = (draft.wishes.scheduled_at, draft.envelope.late_in_s());
        let is_metered = draft.is_metered();
        let unsubscribe_url = self.manage_unsubscribe(tenant, id, &mut draft).await?;
        self.track(tenant, id, &mut draft, now).await?;
        // What is sent later is dated then.
        let written = write(id, &draft, scheduled_at.unwrap_or(now))?;
        let sender = self.senders.find(tenant, &written.from.address, now).await?;
        self.senders.check_sender_domains(tenant, &written.sender_domains).await?;
        let recipients = draft.recipients.iter().map(|r| &r.address);
        self.senders.may_reach((tenant, &sender), &written.from.address, recipients)?;
        self.check_size(&draft, &written)?;
        let mut facts = without_link(written.facts, unsubscribe_url.as_deref());
        let mut addressees = addressees(draft.recipients, &mut facts, draft.door);
        let blocked = self.mark_blocked((tenant.account().id, draft.category), &mut addressees, now).await?;
        let storage = self.reserve_storage(&sender, is_metered, size_of(&written.chunks)).await?;
        let (fate, chunks, reserved) = match fate_of(&blocked, draft.wishes.on_suppressed, &addressees) {
            Some(refuse) => (refuse, written.chunks, None),
            None => {
                let reserved = self.reserve(&sender, (id, is_metered), &addressees, now).await?;
                match scheduled_at {
                    Some(at) => (Fate::Later(at), written.chunks, reserved),
                    None => (Fate::Send, self.sign(&sender, written.chunks, now).await?, reserved),
                }
            }
        };
        let email = Email {
            id,
            account: tenant.account().id,
            door: draft.door,
            from: written.from,
            reverse_path: draft.envelope.reverse_path,
            domain: Some(sender.name.clone()),
            facts,
            tags: draft.tags,
            category: draft.category,
            size_bytes: size_of(&chunks),
            envelope_id: draft.envelope.envelope_id,
            return_full: draft.envelope.return_full,
            unsubscribe: unsubscribe_url.is_some(),
            scheduled: matches!(fate, Fate::Later(_)),
            expires_in: draft.wishes.expires_in,
            late_in_s,
            priority: draft.wishes.priority,
            resent_from: draft.wishes.resent_from,
            template: draft.wishes.template,
            run: draft.wishes.run,
            sent_by: tenant.actor().credential(),
            created_at: now,
        };
        let transport = Transport {
            // Clients that say SMTPUTF8 of every message do not mean it: only content that needs it counts.
            smtputf8: written.needs_smtputf8,
            require_tls: draft.envelope.require_tls,
            tls_enforced: sender.enforces_tls() && !draft.envelope.tls_optional,
            tls_optional: draft.envelope.tls_optional,
            expires_at: self.expires_at(&email, now),
            plan: Some(tenant.account().plan),
        };
        let staged =
            Staged { email, addressees, chunks, transport, fate, appointment: None, reserved, storage, now };
        unless_blocked(staged, blocked)
    }

    fn check_size(&self, draft: &Draft, written: &Written) -> Result<(), Refusal> {
        // The API bounds its requests itself, by files and by bytes.
        if draft.door == Door::Api {
            return Ok(());
        }
        // What we put on top does not count: a message of exactly the announced size is taken.
        let bytes_max = self.message_bytes_max();
        if size_of(&written.chunks) > bytes_max.saturating_add(HEADER_ROOM_BYTES) {
            return Err(Refusal::TooLarge { bytes_max });
        }
        Ok(())
    }

    /// Reserves what an email uses up of the plan: nothing, where it is not metered.
    async fn reserve(
        &self,
        sender: &Sender,
        (id, is_metered): (EmailId, bool),
        addressees: &[Addressee],
        now: Timestamp,
    ) -> Result<Option<Reserved>, Refusal> {
        if !is_metered {
            return Ok(None);
        }
        let account = sender.account();
        let limits = self.plans().of(account.plan);
        let count = addressees.iter().filter(|to| !to.suppressed).count() as u64;
        let (meter, store) = (&self.worker.meter, &self.worker.store);
        match meter.reserve(store, (account.id, &limits), (id, count), now).await? {
            Room::Reserved(reserved) => Ok(Some(reserved)),
            Room::Capped(cap) => Err(Refusal::PlanLimit(cap)),
            Room::Unknown => Err(Refusal::Unavailable),
        }
    }

    /// Reserves the bytes that an email takes of the plan's storage: nothing, where it is not metered.
    async fn reserve_storage(
        &self,
        sender: &Sender,
        is_metered: bool,
        bytes: u64,
    ) -> Result<Option<quota::Reserved>, Refusal> {
        if !is_metered {
            return Ok(None);
        }
        match self.quotas().reserve(sender.account(), Noun::EmailBytes, bytes).await {
            Ok(reserved) => Ok(Some(reserved)),
            Err(QuotaError::Full(full)) => Err(Refusal::StorageFull(full)),
            Err(QuotaError::Counting(_)) => Err(Refusal::Unavailable),
            Err(QuotaError::Read(error)) => Err(error.into()),
        }
    }

    /// When the delivery of an email is given up that goes out now.
    pub(super) fn expires_at(&self, email: &Email, now: Timestamp) -> Timestamp {
        let give_up_after = self.worker.manners().schedule.give_up_after;
        let after = email.expires_in.map_or(give_up_after, |after| after.min(give_up_after));
        now.checked_add(after).unwrap_or(Timestamp::MAX)
    }

    pub(super) async fn sign(
        &self,
        sender: &Sender,
        chunks: Vec<Bytes>,
        now: Timestamp,
    ) -> Result<Vec<Bytes>, Refusal> {
        let Some(signer) = &sender.signer else { return Ok(chunks) };
        let (signer, message) = (Arc::clone(signer), chunks.clone());
        let signed = match self.signing {
            Signing::Transactions => self.pool.sign_with_instance(signer, message, now).await,
            Signing::Messages | Signing::Off => self.pool.sign(signer, message, now).await,
        };
        let signatures = signed.map_err(|error| match error {
            dns::sign::SignError::Failed => {
                tracing::error!(domain = %sender.name, "a message could not be signed");
                Refusal::Unsigned
            }
            error => Refusal::Invalid { field: "message", message: error.to_string() },
        })?;
        let mut signed = Vec::with_capacity(chunks.len() + 1);
        signed.push(Bytes::from(signatures));
        signed.extend(chunks);
        Ok(signed)
    }
}

/// Why an email is not staged.
pub(super) enum Stop {
    /// Nothing is kept of it.
    Refused(Refusal),
    /// The email says why it goes to nobody; it is to be committed.
    Blocked(Box<Staged>, Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn unless_blocked(staged: Staged, blocked: Vec<Blocked>) -> Result<Staged, Stop> {
    if !matches!(staged.fate, Fate::Refuse(..)) {
        return Ok(staged);
    }
    let (id, category) = (Some(staged.email.id), staged.email.category);
    Err(Stop::Blocked(Box::new(staged), Refusal::Blocked { id, category, blocked }))
}

/// Lists and events show the subject; the link in it is for the recipient alone.
fn without_link(mut facts: HeaderFacts, url: Option<&str>) -> HeaderFacts {
    if let Some(url) = url {
        facts.subject = unsubscribe::restore(&facts.subject, url);
    }
    facts
}

fn check(draft: &Draft, now: Timestamp) -> Result<(), Refusal> {
    check_recipients(draft)?;
    check_schedule(draft.wishes.scheduled_at, now)
}

fn check_recipients(draft: &Draft) -> Result<(), Refusal> {
    match draft.recipients.len() {
        0 => Err(Refusal::Invalid { field: "to", message: "at least one recipient is needed".to_owned() }),
        1..=RECIPIENTS_MAX => Ok(()),
        _ => Err(Refusal::TooManyRecipients { recipients_max: RECIPIENTS_MAX }),
    }
}

/// Whether an email may be scheduled for a time.
pub(super) fn check_schedule(at: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    let Some(at) = at else { return Ok(()) };
    let refuse = |why: &str| Refusal::Invalid { field: "scheduled_at", message: why.to_owned() };
    judge_schedule(at, now).map_err(refuse)
}

/// What is wrong with a time to be scheduled for.
pub(super) fn judge_schedule(at: Timestamp, now: Timestamp) -> Result<(), &'static str> {
    let latest = now.checked_add(SCHEDULED_AHEAD_MAX).unwrap_or(Timestamp::MAX);
    match at {
        at if at <= now => Err("must lie in the future"),
        at if at > latest => Err("must lie within a year"),
        _ => Ok(()),
    }
}

/// The bytes of a message in pieces.
pub(super) fn size_of(chunks: &[Bytes]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}
