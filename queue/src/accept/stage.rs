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
use mail::email::{Email, HeaderSummary, Ingress};
use mail::id::EmailId;
use mail::quota::Noun;
use mail::suppression::BlockedRecipient;
use mail::unsubscribe;
use store::access::Tenant;
use store::email::RECIPIENTS_MAX;

use super::reach::suppressed_disposition;
use super::write::{BuiltMessage, build_message, envelope_recipients};
use super::{ADDED_HEADER_BYTES_MAX, DkimSigning, Intake};
use crate::meter::{QuotaDecision, QuotaReservation};
use crate::quota::{self, StorageQuotaError};
use crate::refusal::SubmitError;
use crate::sender::SendingIdentity;
use crate::staged::{DeliveryRequirements, Disposition, EnvelopeRecipient, PreparedMessage};

/// The farthest that an email may be scheduled ahead.
pub const SCHEDULED_AHEAD_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

impl Intake {
    /// Makes an email of a draft: everything but the commit.
    pub(super) async fn prepare_message(
        &self,
        tenant: &Tenant,
        mut draft: Draft,
        now: Timestamp,
    ) -> Result<PreparedMessage, PrepareError> {
        let id = EmailId::new(now, self.worker.entropy.unique_bits());
        validate_draft(&draft, now)?;
        let (scheduled_at, late_in_s) = (draft.options.scheduled_at, draft.envelope.late_in_s());
        let is_metered = draft.is_metered();
        let unsubscribe_url = self.manage_unsubscribe(tenant, id, &mut draft).await?;
        self.track_links(tenant, id, &mut draft, now).await?;
        // What is sent later is dated then.
        let written = build_message(id, &draft, scheduled_at.unwrap_or(now))?;
        let sender = self.sender_authorization.authorize(tenant, &written.from.address, now).await?;
        self.sender_authorization.check_sender_domains(tenant, &written.sender_domains).await?;
        let recipients = draft.recipients.iter().map(|r| &r.address);
        self.sender_authorization.check_reachable((tenant, &sender), &written.from.address, recipients)?;
        self.check_size(&draft, &written)?;
        let mut facts = restore_subject(written.facts, unsubscribe_url.as_deref());
        let mut addressees = envelope_recipients(draft.recipients, &mut facts, draft.ingress);
        let blocked = self.mark_suppressed((tenant.account().id, draft.category), &mut addressees, now).await?;
        let storage = self.reserve_storage(&sender, is_metered, total_bytes(&written.chunks)).await?;
        let (fate, chunks, reserved) = match suppressed_disposition(&blocked, draft.options.on_suppressed, &addressees)
        {
            Some(refuse) => (refuse, written.chunks, None),
            None => {
                let reserved = self.reserve_plan_quota(&sender, (id, is_metered), &addressees, now).await?;
                match scheduled_at {
                    Some(at) => (Disposition::Schedule(at), written.chunks, reserved),
                    None => (Disposition::Deliver, self.sign_message(&sender, written.chunks, now).await?, reserved),
                }
            }
        };
        let email = Email {
            id,
            account: tenant.account().id,
            door: draft.ingress,
            from: written.from,
            reverse_path: draft.envelope.reverse_path,
            domain: Some(sender.name.clone()),
            facts,
            tags: draft.tags,
            category: draft.category,
            size_bytes: total_bytes(&chunks),
            envelope_id: draft.envelope.envelope_id,
            return_full: draft.envelope.return_full,
            unsubscribe: unsubscribe_url.is_some(),
            scheduled: matches!(fate, Disposition::Schedule(_)),
            expires_in: draft.options.expires_in,
            late_in_s,
            priority: draft.options.priority,
            resent_from: draft.options.resent_from,
            template: draft.options.template,
            run: draft.options.run,
            sent_by: tenant.actor().credential(),
            created_at: now,
        };
        let transport = DeliveryRequirements {
            // Clients that say SMTPUTF8 of every message do not mean it: only content that needs it counts.
            smtputf8: written.needs_smtputf8,
            require_tls: draft.envelope.require_tls,
            tls_enforced: sender.enforces_tls() && !draft.envelope.tls_optional,
            tls_optional: draft.envelope.tls_optional,
            expires_at: self.expires_at(&email, now),
            plan: Some(tenant.account().plan),
        };
        let staged = PreparedMessage {
            email,
            recipients: addressees,
            chunks,
            requirements: transport,
            disposition: fate,
            scheduled: None,
            plan_reservation: reserved,
            storage_reservation: storage,
            now,
        };
        reject_if_suppressed(staged, blocked)
    }

    fn check_size(&self, draft: &Draft, written: &BuiltMessage) -> Result<(), SubmitError> {
        // The API bounds its requests itself, by files and by bytes.
        if draft.ingress == Ingress::Api {
            return Ok(());
        }
        // What we put on top does not count: a message of exactly the announced size is taken.
        let bytes_max = self.message_bytes_max();
        if total_bytes(&written.chunks) > bytes_max.saturating_add(ADDED_HEADER_BYTES_MAX) {
            return Err(SubmitError::TooLarge { bytes_max });
        }
        Ok(())
    }

    /// Reserves what an email uses up of the plan: nothing, where it is not metered.
    async fn reserve_plan_quota(
        &self,
        sender: &SendingIdentity,
        (id, is_metered): (EmailId, bool),
        addressees: &[EnvelopeRecipient],
        now: Timestamp,
    ) -> Result<Option<QuotaReservation>, SubmitError> {
        if !is_metered {
            return Ok(None);
        }
        let account = sender.account();
        let limits = self.plans().of(account.plan);
        let count = addressees.iter().filter(|to| !to.suppressed).count() as u64;
        let (meter, store) = (&self.worker.quota_tracker, &self.worker.store);
        match meter.reserve(store, (account.id, &limits), (id, count), now).await? {
            QuotaDecision::Reserved(reserved) => Ok(Some(reserved)),
            QuotaDecision::CapReached(cap) => Err(SubmitError::PlanLimit(cap)),
            QuotaDecision::Unknown => Err(SubmitError::Unavailable),
        }
    }

    /// Reserves the bytes that an email takes of the plan's storage: nothing, where it is not metered.
    async fn reserve_storage(
        &self,
        sender: &SendingIdentity,
        is_metered: bool,
        bytes: u64,
    ) -> Result<Option<quota::StorageReservation>, SubmitError> {
        if !is_metered {
            return Ok(None);
        }
        match self.storage_quotas().reserve(sender.account(), Noun::EmailBytes, bytes).await {
            Ok(reserved) => Ok(Some(reserved)),
            Err(StorageQuotaError::Full(full)) => Err(SubmitError::StorageFull(full)),
            Err(StorageQuotaError::Counting(_)) => Err(SubmitError::Unavailable),
            Err(StorageQuotaError::Read(error)) => Err(error.into()),
        }
    }

    /// When the delivery of an email is given up that goes out now.
    pub(super) fn expires_at(&self, email: &Email, now: Timestamp) -> Timestamp {
        let give_up_after = self.worker.delivery_policy().schedule.give_up_after;
        let after = email.expires_in.map_or(give_up_after, |after| after.min(give_up_after));
        now.checked_add(after).unwrap_or(Timestamp::MAX)
    }

    pub(super) async fn sign_message(
        &self,
        sender: &SendingIdentity,
        chunks: Vec<Bytes>,
        now: Timestamp,
    ) -> Result<Vec<Bytes>, SubmitError> {
        let Some(signer) = &sender.signer else { return Ok(chunks) };
        let (signer, message) = (Arc::clone(signer), chunks.clone());
        let signed = match self.signing {
            DkimSigning::MessagesAndTransactions => self.signing_pool.sign_with_instance(signer, message, now).await,
            DkimSigning::Messages | DkimSigning::Off => self.signing_pool.sign(signer, message, now).await,
        };
        let signatures = signed.map_err(|error| match error {
            dns::sign::SignError::Failed => {
                tracing::error!(domain = %sender.name, "a message could not be signed");
                SubmitError::SigningFailed
            }
            error => SubmitError::Invalid { field: "message", message: error.to_string() },
        })?;
        let mut signed = Vec::with_capacity(chunks.len() + 1);
        signed.push(Bytes::from(signatures));
        signed.extend(chunks);
        Ok(signed)
    }
}

/// Why an email is not staged.
pub(super) enum PrepareError {
    /// Nothing is kept of it.
    Rejected(SubmitError),
    /// The email says why it goes to nobody; it is to be committed.
    Suppressed(Box<PreparedMessage>, SubmitError),
}

impl From<SubmitError> for PrepareError {
    fn from(refusal: SubmitError) -> Self {
        Self::Rejected(refusal)
    }
}

fn reject_if_suppressed(
    staged: PreparedMessage,
    blocked: Vec<BlockedRecipient>,
) -> Result<PreparedMessage, PrepareError> {
    if !matches!(staged.disposition, Disposition::Reject(..)) {
        return Ok(staged);
    }
    let (id, category) = (Some(staged.email.id), staged.email.category);
    Err(PrepareError::Suppressed(Box::new(staged), SubmitError::Suppressed { id, category, blocked }))
}

/// Lists and events show the subject; the link in it is for the recipient alone.
fn restore_subject(mut facts: HeaderSummary, url: Option<&str>) -> HeaderSummary {
    if let Some(url) = url {
        facts.subject = unsubscribe::restore_placeholder(&facts.subject, url);
    }
    facts
}

fn validate_draft(draft: &Draft, now: Timestamp) -> Result<(), SubmitError> {
    validate_recipients(draft)?;
    validate_schedule(draft.options.scheduled_at, now)
}

fn validate_recipients(draft: &Draft) -> Result<(), SubmitError> {
    match draft.recipients.len() {
        0 => Err(SubmitError::Invalid { field: "to", message: "at least one recipient is needed".to_owned() }),
        1..=RECIPIENTS_MAX => Ok(()),
        _ => Err(SubmitError::TooManyRecipients { recipients_max: RECIPIENTS_MAX }),
    }
}

/// Whether an email may be scheduled for a time.
pub(super) fn validate_schedule(at: Option<Timestamp>, now: Timestamp) -> Result<(), SubmitError> {
    let Some(at) = at else { return Ok(()) };
    let refuse = |why: &str| SubmitError::Invalid { field: "scheduled_at", message: why.to_owned() };
    validate_schedule_time(at, now).map_err(refuse)
}

/// What is wrong with a time to be scheduled for.
pub(super) fn validate_schedule_time(at: Timestamp, now: Timestamp) -> Result<(), &'static str> {
    let latest = now.checked_add(SCHEDULED_AHEAD_MAX).unwrap_or(Timestamp::MAX);
    match at {
        at if at <= now => Err("must lie in the future"),
        at if at > latest => Err("must lie within a year"),
        _ => Ok(()),
    }
}

/// The bytes of a message in pieces.
pub(super) fn total_bytes(chunks: &[Bytes]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}
