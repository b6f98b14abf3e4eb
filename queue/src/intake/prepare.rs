//! Preparation: turns a draft into an email that is ready to commit.
//!
//! ```text
//! Draft ─► build message ─► authorize sender ─► check suppressions ─► reserve quota ─► sign ─► PreparedMessage
//! ```

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use message::header::HeaderSummary;
use model::client_policy::PolicyViolation;
use model::draft::Draft;
use model::email::{Email, Ingress};
use model::id::EmailId;
use model::quota::Noun;
use model::suppression::BlockedRecipient;
use model::unsubscribe;
use store::access::Tenant;
use store::client_sends::{self, LimitedClient, SendReservation};
use store::email::RECIPIENTS_MAX;
use store::engine::StoreError;

use super::build_message::{BuiltMessage, build_message, envelope_recipients};
use super::suppression_check::{mark_suppressed, suppressed_disposition};
use super::{ADDED_HEADER_BYTES_MAX, Intake};
use crate::intake::prepared_message::{DeliveryRequirements, Disposition, EnvelopeRecipient, PreparedMessage};
use crate::intake::quota_tracker::{QuotaDecision, QuotaReservation};
use crate::intake::sender_authorization::SendingIdentity;
use crate::intake::storage_quota::{self, StorageQuotaError};
use crate::intake::submit_error::SubmitError;

/// Limit on scheduling an email ahead: 366 days.
pub const SCHEDULED_AHEAD_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

impl Intake {
    /// Turns a draft into a prepared message; only the commit is left.
    pub(super) async fn prepare_message(
        &self,
        tenant: &Tenant,
        mut draft: Draft,
        now: Timestamp,
    ) -> Result<PreparedMessage, PrepareError> {
        let id = EmailId::new(now, self.services.entropy.unique_bits());
        check_acceptable(tenant, &draft, now)?;
        let (account, is_metered, scheduled_at) = (tenant.account().id, draft.is_metered(), draft.options.scheduled_at);
        let unsubscribe_url = self.manage_unsubscribe(tenant, id, &mut draft).await?;
        self.track_links(tenant, id, &mut draft, now).await?;
        // A scheduled email carries the date at which it is sent.
        let built = build_message(id, &draft, scheduled_at.unwrap_or(now))?;
        let sender = self.sender_authorization.authorize(tenant, &built.from.address, now).await?;
        self.check_built(tenant, &sender, &draft, &built).await?;
        let mut header = restore_subject(built.header, unsubscribe_url.as_deref());
        let mut addressees = envelope_recipients(draft.recipients, &mut header, draft.ingress);
        let blocked = mark_suppressed(&self.services.store, account, draft.category, &mut addressees, now).await?;
        let storage = self.reserve_storage(&sender, is_metered, total_bytes(&built.chunks)).await?;
        let (disposition, chunks, reserved) =
            match suppressed_disposition(&blocked, draft.options.on_suppressed, &addressees) {
                Some(refuse) => (refuse, built.chunks, None),
                None => {
                    let reserved = self.reserve_plan_quota(&sender, id, is_metered, &addressees, now).await?;
                    self.reserve_client_sends(tenant, &addressees, now).await?;
                    match scheduled_at.map(|at| Disposition::Schedule(at, draft.options.on_suppressed)) {
                        Some(schedule) => (schedule, built.chunks, reserved),
                        None => (Disposition::Deliver, self.signer.sign(&sender, built.chunks, now).await?, reserved),
                    }
                }
            };
        let email = Email {
            late_in_s: draft.envelope.late_in_s(),
            reverse_path: draft.envelope.reverse_path,
            domain: Some(sender.name.clone()),
            header,
            tags: draft.tags,
            category: draft.category,
            size_bytes: total_bytes(&chunks),
            envelope_id: draft.envelope.envelope_id,
            return_full: draft.envelope.return_full,
            require_tls: draft.envelope.require_tls,
            unsubscribe: unsubscribe_url.is_some(),
            scheduled: matches!(disposition, Disposition::Schedule(..)),
            sent_by: tenant.actor().credential(),
            ..Email::new(id, account, draft.ingress, built.from, now).with_options(draft.options)
        };
        let transport = DeliveryRequirements {
            // Some clients send SMTPUTF8 with every message: require it only for content that needs it.
            smtputf8: built.needs_smtputf8,
            require_tls: draft.envelope.require_tls,
            tls_enforced: sender.enforces_tls() && !draft.envelope.tls_optional,
            tls_optional: draft.envelope.tls_optional,
            expires_at: self.expires_at(&email, now),
            plan: Some(tenant.account().plan),
        };
        let prepared = PreparedMessage {
            sealed_body: self.seal_secret_body(&email, &chunks)?,
            email,
            recipients: addressees,
            chunks,
            requirements: transport,
            disposition,
            scheduled: None,
            plan_reservation: reserved,
            storage_reservation: storage,
            now,
        };
        reject_if_suppressed(prepared, blocked)
    }

    /// Seals the body of an email with a secret link. `None` for all other emails, and in a cluster: its nodes are upgraded
    /// one after the other, and those of 0.1.0 would send the sealed bytes.
    fn seal_secret_body(&self, email: &Email, chunks: &[Bytes]) -> Result<Option<Bytes>, SubmitError> {
        if !email.has_secret_link || self.services.store.is_shared() {
            return Ok(None);
        }
        self.sender_authorization.seal_body(email.account, email.id, chunks).map(Some)
    }

    /// Checks a draft as far as that is possible before it is accepted: its fields, its sender, its recipients, and the
    /// policy of the client. Suppressions and quotas are checked when it is submitted.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] if the draft would be refused, or the store cannot be read.
    pub async fn check_draft(&self, tenant: &Tenant, draft: &Draft) -> Result<(), SubmitError> {
        let now = self.services.clock.now();
        validate_draft(draft, now)?;
        let id = EmailId::new(now, self.services.entropy.unique_bits());
        let built = build_message(id, draft, now)?;
        let sender = self.sender_authorization.authorize(tenant, &built.from.address, now).await?;
        self.check_built(tenant, &sender, draft, &built).await
    }

    /// Checks that the account may use the sender's domains and reach the recipients, that the client's policy permits
    /// the email, and its size.
    async fn check_built(
        &self,
        tenant: &Tenant,
        sender: &SendingIdentity,
        draft: &Draft,
        built: &BuiltMessage,
    ) -> Result<(), SubmitError> {
        self.sender_authorization.check_sender_domains(tenant, &built.sender_domains).await?;
        let (author, recipients) = (&built.from.address, || draft.recipients.iter().map(|r| &r.address));
        self.sender_authorization.check_reachable(tenant, sender, author, recipients())?;
        tenant.policy().check_email(author, draft.category, recipients())?;
        self.check_size(draft, built)
    }

    fn check_size(&self, draft: &Draft, built: &BuiltMessage) -> Result<(), SubmitError> {
        // The API limits its requests itself, by attachments and bytes.
        if draft.ingress == Ingress::Api {
            return Ok(());
        }
        // Fields that intake adds do not count: a message of exactly the announced size is accepted.
        let bytes_max = self.message_bytes_max();
        if total_bytes(&built.chunks) > bytes_max.saturating_add(ADDED_HEADER_BYTES_MAX) {
            return Err(SubmitError::TooLarge { bytes_max });
        }
        Ok(())
    }

    /// Counts the recipients of an email for a client whose policy limits its sends a day.
    async fn reserve_client_sends(
        &self,
        tenant: &Tenant,
        addressees: &[EnvelopeRecipient],
        now: Timestamp,
    ) -> Result<(), SubmitError> {
        let (Some(limit), Some(id)) = (tenant.policy().sends_per_day, tenant.actor().credential()) else {
            return Ok(());
        };
        if tenant.approved_emails().is_some_and(|approved| approved.are_counted) {
            return Ok(());
        }
        let count = addressees.iter().filter(|to| !to.suppressed).count();
        let sends = u32::try_from(count).unwrap_or(u32::MAX);
        let client = LimitedClient { account: tenant.account().id, id, limit };
        match client_sends::reserve(&self.services.store, client, sends, now).await {
            Ok(SendReservation::Reserved(_)) => Ok(()),
            Ok(SendReservation::LimitReached { used }) => Err(PolicyViolation::SendsPerDay { limit, used }.into()),
            Err(StoreError::Read(error)) => Err(error.into()),
            Err(StoreError::Commit(error)) => Err(error.into()),
        }
    }

    /// Reserves the recipients of an email in the plan's quota; `None` if the email is not metered.
    async fn reserve_plan_quota(
        &self,
        sender: &SendingIdentity,
        id: EmailId,
        is_metered: bool,
        addressees: &[EnvelopeRecipient],
        now: Timestamp,
    ) -> Result<Option<QuotaReservation>, SubmitError> {
        if !is_metered {
            return Ok(None);
        }
        let account = sender.account();
        let limits = self.limits.plans.of(account.plan);
        let count = addressees.iter().filter(|to| !to.suppressed).count() as u64;
        let (meter, store) = (&self.limits.emails, &self.services.store);
        match meter.reserve(store, account.id, &limits, id, count, now).await? {
            QuotaDecision::Reserved(reserved) => Ok(Some(reserved)),
            QuotaDecision::CapReached(cap) => Err(SubmitError::PlanLimit(cap)),
            QuotaDecision::Unknown => Err(SubmitError::Unavailable),
        }
    }

    /// Reserves the bytes of an email in the plan's storage; `None` if the email is not metered.
    async fn reserve_storage(
        &self,
        sender: &SendingIdentity,
        is_metered: bool,
        bytes: u64,
    ) -> Result<Option<storage_quota::StorageReservation>, SubmitError> {
        if !is_metered {
            return Ok(None);
        }
        match self.limits.storage.reserve(sender.account(), Noun::EmailBytes, bytes).await {
            Ok(reserved) => Ok(Some(reserved)),
            Err(StorageQuotaError::Full(full)) => Err(SubmitError::StorageFull(full)),
            Err(StorageQuotaError::Counting(_)) => Err(SubmitError::Unavailable),
            Err(StorageQuotaError::Read(error)) => Err(error.into()),
        }
    }

    /// Deadline of an email that is sent now: after `expires_in` or `give_up_after`, whichever is shorter.
    pub(super) fn expires_at(&self, email: &Email, now: Timestamp) -> Timestamp {
        let give_up_after = self.policy.current().schedule.give_up_after;
        let after = email.expires_in.map_or(give_up_after, |after| after.min(give_up_after));
        now.checked_add(after).unwrap_or(Timestamp::MAX)
    }
}

/// Why a draft was not prepared.
pub(super) enum PrepareError {
    /// Nothing is stored.
    Rejected(SubmitError),
    /// The email is sent to no recipient. It is still committed, to record why.
    Suppressed(Box<PreparedMessage>, SubmitError),
}

impl From<SubmitError> for PrepareError {
    fn from(refusal: SubmitError) -> Self {
        Self::Rejected(refusal)
    }
}

fn reject_if_suppressed(
    prepared: PreparedMessage,
    blocked: Vec<BlockedRecipient>,
) -> Result<PreparedMessage, PrepareError> {
    if !matches!(prepared.disposition, Disposition::Reject(..)) {
        return Ok(prepared);
    }
    let (id, category) = (Some(prepared.email.id), prepared.email.category);
    Err(PrepareError::Suppressed(Box::new(prepared), SubmitError::Suppressed { id, category, blocked }))
}

/// Lists and events show the subject with its placeholder: the link is for the recipient alone.
fn restore_subject(mut header: HeaderSummary, url: Option<&str>) -> HeaderSummary {
    if let Some(url) = url {
        header.subject = unsubscribe::restore_placeholder(&header.subject, url);
    }
    header
}

/// Checks a draft before anything is read for it.
fn check_acceptable(tenant: &Tenant, draft: &Draft, now: Timestamp) -> Result<(), SubmitError> {
    validate_draft(draft, now)?;
    check_approved(tenant, draft)
}

/// Checks that a person approved the email, if the tenant carries out a request that waited for approval.
fn check_approved(tenant: &Tenant, draft: &Draft) -> Result<(), SubmitError> {
    match tenant.approved_emails() {
        Some(approved) if !approved.include(draft) => Err(SubmitError::NotApproved),
        _ => Ok(()),
    }
}

fn validate_draft(draft: &Draft, now: Timestamp) -> Result<(), SubmitError> {
    validate_recipients(draft)?;
    validate_schedule(draft.options.scheduled_at, now)
}

fn validate_recipients(draft: &Draft) -> Result<(), SubmitError> {
    match draft.recipients.len() {
        0 => Err(SubmitError::Invalid { field: "to", message: "at least one recipient is required".to_owned() }),
        1..=RECIPIENTS_MAX => Ok(()),
        _ => Err(SubmitError::TooManyRecipients { recipients_max: RECIPIENTS_MAX }),
    }
}

/// Checks that an email may be scheduled for a time.
pub(super) fn validate_schedule(at: Option<Timestamp>, now: Timestamp) -> Result<(), SubmitError> {
    let Some(at) = at else { return Ok(()) };
    let invalid = |reason: &str| SubmitError::Invalid { field: "scheduled_at", message: reason.to_owned() };
    validate_schedule_time(at, now).map_err(invalid)
}

pub(super) fn validate_schedule_time(at: Timestamp, now: Timestamp) -> Result<(), &'static str> {
    let latest = now.checked_add(SCHEDULED_AHEAD_MAX).unwrap_or(Timestamp::MAX);
    match at {
        at if at <= now => Err("must be in the future"),
        at if at > latest => Err("must be within a year"),
        _ => Ok(()),
    }
}

/// Sum of the chunk lengths.
pub(super) fn total_bytes(chunks: &[Bytes]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}
