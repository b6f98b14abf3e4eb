//! The hall: the one door of the queue. Whatever is sent is accepted here.
//!
//! ```text
//! Draft ─► mend or compose ─► may they? ─► sign ─►[ email + recipients + tasks + event + body ]─► worker
//! ```
//!
//! Accepted means: on disk. Everything before the commit leaves no trace when it fails.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use dns::signing_pool::SigningPool;
use jiff::Timestamp;
use mail::address::{Address, Mailbox};
use mail::compose::{self, Composition};
use mail::draft::{Content, Draft, DraftRecipient};
use mail::email::{Door, Email, EmailStatus, HeaderFacts};
use mail::id::{EmailId, EventId};
use mail::message::{self, Mending};
use mail::plan::Plans;
use mail::recipient::RecipientKind;
use store::access::Tenant;
use store::email::RECIPIENTS_MAX;
use store::engine::{Batch, CommitError, State, Store};

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::refusal::Refusal;
use crate::reservation::Reservation;
use crate::sender::{Sender, Senders};
use crate::staged::{Addressee, Staged, Transport};
use crate::worker::Worker;

/// What mending puts on top of a message (trace, Date, Message-ID, From), at most.
const HEADER_ROOM_BYTES: u64 = 4 * 1024;

/// How often partitions are chosen for an email, should they go to other nodes while it is committed.
const CHOICES_MAX: usize = 3;

/// The hall. Clones are the same hall.
#[derive(Clone)]
pub struct Hall {
    worker: Arc<Worker>,
    senders: Arc<Senders>,
    pool: Arc<SigningPool>,
    message_bytes_max: Arc<AtomicU64>,
    plans: Plans,
}

/// What the hall needs beside the worker.
pub struct HallParts {
    /// Opens DKIM keys.
    pub vault: Arc<dns::seal::Vault>,
    /// Signs.
    pub pool: SigningPool,
    /// Mail is signed (off only to measure what signing costs).
    pub dkim: bool,
    /// The shared sandbox sender.
    pub sandbox_sender: Option<Address>,
    /// The largest message taken over SMTP, in bytes.
    pub message_bytes_max: u64,
    /// What the plans include.
    pub plans: Plans,
}

/// What was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The email's id.
    pub id: EmailId,
    /// Its state: in our spool.
    pub status: EmailStatus,
}

/// Writes something in the commit of several emails, told what came of each.
pub type AlsoOfMany<'a> = dyn Fn(&[Result<Accepted, Refusal>], &mut Batch) + Send + Sync + 'a;

/// A message with its author, before it is signed.
struct Written {
    from: Mailbox,
    facts: HeaderFacts,
    chunks: Vec<Bytes>,
    /// The header has bytes above 127.
    needs_smtputf8: bool,
}

impl Hall {
    /// Opens the hall before a worker.
    #[must_use]
    pub fn new(worker: Arc<Worker>, parts: HallParts) -> Self {
        let store = worker.store.clone();
        let senders = Senders::new(store, parts.vault, parts.dkim, parts.sandbox_sender);
        Self {
            worker,
            senders: Arc::new(senders),
            pool: Arc::new(parts.pool),
            message_bytes_max: Arc::new(AtomicU64::new(parts.message_bytes_max)),
            plans: parts.plans,
        }
    }

    /// Where everything lies.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.worker.store
    }

    /// The time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.worker.clock
    }

    /// Chance.
    #[must_use]
    pub fn entropy(&self) -> &Entropy {
        &self.worker.entropy
    }

    /// What the plans include.
    #[must_use]
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// The largest message taken, in bytes.
    #[must_use]
    pub fn message_bytes_max(&self) -> u64 {
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    /// Takes messages of another size from now on.
    pub fn set_message_bytes_max(&self, bytes: u64) {
        self.message_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Whether there are room and health to take anything at all.
    ///
    /// # Errors
    /// [`Refusal::Full`] or [`Refusal::Unavailable`].
    pub fn ready(&self) -> Result<(), Refusal> {
        if self.worker.stop.is_cancelled() {
            return Err(Refusal::Unavailable);
        }
        self.healthy()
    }

    /// Whether the store takes anything. What is on its way when delivery stops is still accepted: it is
    /// on disk for the next start.
    fn healthy(&self) -> Result<(), Refusal> {
        match self.worker.store.health().state {
            State::Healthy => Ok(()),
            State::Full => Err(Refusal::Full),
            State::Away(_) | State::Fenced(_) => Err(Refusal::Unavailable),
        }
    }

    /// Whether the account may send from an address: asked at MAIL FROM, before anything is read. The
    /// author in the header decides at the end.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn may_send(&self, tenant: &Tenant, sender: &Address) -> Result<(), Refusal> {
        self.senders.find(tenant, sender, self.worker.clock.now()).await.map(drop)
    }

    /// Accepts a draft: returns when it is on disk.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn accept(&self, tenant: &Tenant, draft: Draft) -> Result<Accepted, Refusal> {
        self.accept_with(tenant, draft, &|_, _| {}).await
    }

    /// Accepts a draft, and writes something in the same commit: what it is, is told when the email has its
    /// id.
    ///
    /// # Errors
    /// [`Refusal`]; [`Refusal::DoneMeanwhile`] when what was to be written is there already.
    pub async fn accept_with(
        &self,
        tenant: &Tenant,
        draft: Draft,
        also: &(dyn Fn(&Accepted, &mut Batch) + Send + Sync),
    ) -> Result<Accepted, Refusal> {
        self.healthy()?;
        let now = self.worker.clock.now();
        let staged = self.stage(tenant, draft, now).await?;
        let accepted = Accepted { id: staged.email.id, status: EmailStatus::Sent };
        self.commit(&[staged], now, &|batch| also(&accepted, batch)).await?;
        Ok(accepted)
    }

    /// Accepts several drafts in one commit, each that can be, and says of each what came of it; or none of
    /// them, when one cannot be and `all` must be. Writes something more in the same commit.
    ///
    /// # Errors
    /// [`Refusal`], about all of them.
    pub async fn accept_many(
        &self,
        tenant: &Tenant,
        drafts: Vec<Draft>,
        all: bool,
        also: &AlsoOfMany<'_>,
    ) -> Result<Vec<Result<Accepted, Refusal>>, Refusal> {
        self.healthy()?;
        let now = self.worker.clock.now();
        let staging: Vec<_> = drafts.into_iter().map(|draft| self.stage(tenant, draft, now)).collect();
        let mut staged = Vec::with_capacity(staging.len());
        let mut outcomes = Vec::with_capacity(staging.len());
        for one in futures_util::future::join_all(staging).await {
            outcomes.push(one.map(|one| {
                let accepted = Accepted { id: one.email.id, status: EmailStatus::Sent };
                staged.push(one);
                accepted
            }));
        }
        if all && staged.len() < outcomes.len() {
            return Ok(outcomes);
        }
        self.commit(&staged, now, &|batch| also(&outcomes, batch)).await?;
        Ok(outcomes)
    }

    /// Makes an email of a draft: everything but the commit.
    async fn stage(&self, tenant: &Tenant, draft: Draft, now: Timestamp) -> Result<Staged, Refusal> {
        let id = EmailId::new(now, self.worker.entropy.u128());
        if draft.recipients.is_empty() {
            return Err(Refusal::Invalid {
                field: "to",
                message: "at least one recipient is needed".to_owned(),
            });
        }
        if draft.recipients.len() > RECIPIENTS_MAX {
            return Err(Refusal::TooManyRecipients { recipients_max: RECIPIENTS_MAX });
        }
        let written = write(id, &draft, now)?;
        let sender = self.senders.find(tenant, &written.from.address, now).await?;
        let recipients = draft.recipients.iter().map(|r| &r.address);
        self.senders.may_reach(&sender, &written.from.address, recipients)?;
        // What we put on top does not count: a message of exactly the announced size is taken.
        let given_bytes: u64 = written.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        // The API bounds its requests itself, by files and by bytes.
        let bytes_max = self.message_bytes_max();
        if draft.door != Door::Api && given_bytes > bytes_max.saturating_add(HEADER_ROOM_BYTES) {
            return Err(Refusal::TooLarge { bytes_max });
        }
        let chunks = self.sign(&sender, written.chunks, now).await?;
        let size_bytes: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let mut facts = written.facts;
        let addressees = addressees(draft.recipients, &mut facts, draft.door);
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
            size_bytes,
            envelope_id: draft.envelope.envelope_id,
            return_full: draft.envelope.return_full,
            created_at: now,
        };
        let give_up_after = self.worker.manners().schedule.give_up_after;
        let transport = Transport {
            // Clients that say SMTPUTF8 of every message do not mean it: only content that needs it counts.
            smtputf8: written.needs_smtputf8,
            require_tls: draft.envelope.require_tls,
            expires_at: now.checked_add(give_up_after).unwrap_or(Timestamp::MAX),
        };
        Ok(Staged { email, addressees, chunks, transport })
    }

    async fn sign(&self, sender: &Sender, chunks: Vec<Bytes>, now: Timestamp) -> Result<Vec<Bytes>, Refusal> {
        let Some(signer) = &sender.signer else { return Ok(chunks) };
        let signatures =
            self.pool.sign(Arc::clone(signer), chunks.clone(), now).await.map_err(|error| match error {
                dns::sign::SignError::Failed => Refusal::Unavailable,
                error => Refusal::Invalid { field: "message", message: error.to_string() },
            })?;
        let mut signed = Vec::with_capacity(chunks.len() + 1);
        signed.push(Bytes::from(signatures));
        signed.extend(chunks);
        Ok(signed)
    }

    /// Commits, in partitions of this node. Those that went to another node meanwhile are chosen anew.
    async fn commit(
        &self,
        staged: &[Staged],
        now: Timestamp,
        also: &(dyn Fn(&mut Batch) + Send + Sync),
    ) -> Result<(), Refusal> {
        for _ in 0..CHOICES_MAX {
            let mut batch = Batch::intake();
            let mut reservations = Vec::with_capacity(staged.len());
            let mut ours = true;
            for one in staged {
                let chosen = one.tasks(|domain| self.worker.leases.choose(domain));
                let tasks = chosen.ok_or(Refusal::Unavailable)?;
                ours &= self.worker.leases.fence(&mut batch, &tasks);
                one.write(&mut batch, &tasks, EventId::new(now, self.worker.entropy.u128()));
                reservations.push(self.worker.reserve(tasks));
            }
            if !ours {
                // It went to another node this very moment.
                continue;
            }
            also(&mut batch);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    for (one, reservation) in staged.iter().zip(reservations) {
                        reservation.committed(&one.chunks);
                    }
                    metrics::counter!("postrider_emails_accepted_total").increment(staged.len() as u64);
                    return Ok(());
                }
                Err(CommitError::Conflict { key }) if store::idempotency::is_about_one(&key) => {
                    return Err(Refusal::DoneMeanwhile);
                }
                Err(CommitError::Conflict { .. }) => self.worker.look_soon().await,
                // The disk failed, or the database went away, with the commit on its way: nobody knows
                // whether it is there.
                Err(CommitError::Fenced(_) | CommitError::Unknown(_)) => {
                    reservations.into_iter().for_each(Reservation::in_doubt);
                    let first = staged.first().map(|one| one.email.id);
                    return Err(first.map_or(Refusal::Unavailable, |id| Refusal::Unconfirmed { id }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Unavailable)
    }
}

/// Makes the message of a draft: mended (RFC 6409 8) or composed.
fn write(id: EmailId, draft: &Draft, now: Timestamp) -> Result<Written, Refusal> {
    match &draft.content {
        Content::Raw { message, received } => {
            message::check_lines(message)?;
            let header = message::read(message)?;
            let header_is_ascii = header.is_ascii;
            let reverse_path = draft.envelope.reverse_path.as_ref();
            let mended = message::mend(message, header, &Mending { id, reverse_path, received, now })?;
            let mut chunks = Vec::with_capacity(mended.rest.len() + 1);
            chunks.push(Bytes::from(mended.top));
            chunks.extend(mended.rest);
            Ok(Written { from: mended.from, facts: mended.facts, chunks, needs_smtputf8: !header_is_ascii })
        }
        Content::Parts(parts) => written_from(id, parts, now),
    }
}

fn written_from(id: EmailId, parts: &Composition, now: Timestamp) -> Result<Written, Refusal> {
    let message_id = message::message_id(id, &parts.from.address);
    let bytes = compose::compose(parts, &message_id, now);
    // A subject, say, of one endless word cannot be folded.
    message::check_lines(&bytes)?;
    let facts = HeaderFacts {
        to: parts.to.clone(),
        cc: parts.cc.clone(),
        bcc: parts.bcc.clone(),
        reply_to: parts.reply_to.clone(),
        subject: parts.subject.clone(),
        message_id,
    };
    Ok(Written { from: parts.from.clone(), facts, chunks: vec![Bytes::from(bytes)], needs_smtputf8: false })
}

/// Everybody once. SMTP does not say in which field a recipient stands: the header does, and who
/// stands in none of them is a blind one.
fn addressees(recipients: Vec<DraftRecipient>, facts: &mut HeaderFacts, door: Door) -> Vec<Addressee> {
    let mut seen = HashSet::with_capacity(recipients.len());
    let smtp = matches!(door, Door::Submission | Door::Relay);
    let mut blind = Vec::new();
    let stands_in = |field: &[Mailbox], address: &Address| field.iter().any(|m| m.address == *address);
    let addressees = recipients
        .into_iter()
        .filter(|r| seen.insert(r.address.clone()))
        .map(|DraftRecipient { address, kind, notify }| {
            let kind = match kind {
                _ if smtp && stands_in(&facts.to, &address) => RecipientKind::To,
                _ if smtp && stands_in(&facts.cc, &address) => RecipientKind::Cc,
                _ if smtp => RecipientKind::Bcc,
                given => given,
            };
            if smtp && kind == RecipientKind::Bcc {
                blind.push(Mailbox::from(address.clone()));
            }
            Addressee { address, kind, notify }
        })
        .collect();
    if smtp {
        facts.bcc = blind;
    }
    addressees
}
