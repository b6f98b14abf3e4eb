//! The hall: the one door of the queue. Whatever is sent is accepted here.
//!
//! ```text
//! Draft ─► mend or compose ─► may they? ─► sign ─►[ email + recipients + tasks + event + body ]─► worker
//!                                        └────────►[ email + recipients + schedule + event + body ]─► release
//! ```
//!
//! Accepted means: on disk. Everything before the commit leaves no trace when it fails. [`stage`] and
//! [`write`] are what goes before it; [`release`] takes scheduled emails the rest of the way, [`amend`]
//! changes them before.

mod amend;
mod fill;
mod reach;
mod release;
mod stage;
mod track;
mod unsubscribe;
mod write;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use dns::seal::Vault;
use dns::signing_pool::SigningPool;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::account::Account;
use mail::address::{Address, Name};
use mail::draft::Draft;
use mail::email::EmailStatus;
use mail::event::Event;
use mail::id::{EmailId, EventId};
use mail::link::LinkKey;
use mail::plan::Plans;
use mail::unsubscribe::{Bound, Unsubscribe};
use mail::usage::{Left, Used};
use store::access::Tenant;
use store::engine::{Batch, CommitError, ReadError, State, Store};
use tokio::sync::Notify;

use crate::appointments::Appointments;
use crate::automations::Automations;
use crate::clock::Clock;
use crate::contacts::{Contacts, ContactsError, Wish};
use crate::courier::http::AnswerBudget;
use crate::dkim2::TransactionSigner;
use crate::domains::{Domains, DomainsParts};
use crate::entropy::Entropy;
use crate::last_hour::Counted;
use crate::meter::Reserved;
use crate::once::AtWork;
use crate::quota::Quotas;
use crate::rate::{Rate, Standing};
use crate::refusal::Refusal;
use crate::reservation::Reservation;
use crate::returned::Returned;
use crate::sender::Senders;
use crate::staged::{Fate, Placed, Staged};
use crate::tell::TellError;
use crate::templates::Templates;
use crate::throttle::Throttle;
use crate::visits::Visits;
use crate::worker::Worker;

pub use amend::AmendError;
pub use fill::FillError;
pub use stage::SCHEDULED_AHEAD_MAX;
use stage::Stop;

/// What mending puts on top of a message (trace, Date, Message-ID, From), at most.
const HEADER_ROOM_BYTES: u64 = 4 * 1024;
/// How long who asks for the usage waits for what is not counted yet.
const TOLD_WITHIN: Duration = Duration::from_secs(2);

/// What answers to accounts' questions to hosts of their own may hold in memory, all together.
const ANSWERS_BYTES_MAX: usize = 64 << 20;
/// The part of one account.
const ACCOUNT_ANSWERS_BYTES_MAX: usize = 16 << 20;

/// How often partitions are chosen for an email, should they go to other nodes while it is committed.
const CHOICES_MAX: usize = 3;

/// The hall. Clones are the same hall.
#[derive(Clone)]
pub struct Hall {
    pub(crate) worker: Arc<Worker>,
    pub(crate) senders: Arc<Senders>,
    pool: Arc<SigningPool>,
    signing: Signing,
    message_bytes_max: Arc<AtomicU64>,
    plans: Arc<RwLock<Plans>>,
    quotas: Arc<Quotas>,
    throttle: Arc<Throttle>,
    appointments: Arc<Appointments>,
    templates: Arc<Templates>,
    links: LinkKey,
    base_url: Arc<OnceLock<String>>,
    letters: Arc<Notify>,
    visits: Arc<Visits>,
    at_work: Arc<AtWork>,
    pub(crate) answers: AnswerBudget,
    domains: Arc<Domains>,
    returned: Returned,
    automations: Automations,
}

/// What is signed of mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// Nothing: only to measure what signing costs.
    Off,
    /// Each message (DKIM).
    Messages,
    /// Each message, and each transaction that it goes out in (DKIM2).
    Transactions,
}

/// What the hall needs beside the worker.
pub struct HallParts {
    /// Opens DKIM keys.
    pub vault: Arc<dns::seal::Vault>,
    /// Signs.
    pub pool: SigningPool,
    /// What is signed of mail.
    pub signing: Signing,
    /// The shared sandbox sender.
    pub sandbox_sender: Option<Address>,
    /// The largest message taken over SMTP, in bytes.
    pub message_bytes_max: u64,
    /// What the plans include.
    pub plans: Plans,
    /// Signs links.
    pub links: LinkKey,
    /// Requests are counted, and bounded by the plans.
    pub rate_limit: bool,
    /// What sending domains need.
    pub domains: DomainsParts,
}

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The email's id.
    pub id: EmailId,
    /// Its state: in our spool.
    pub status: EmailStatus,
    /// Recipients that it does not go to, as the sender wished.
    pub skipped: Vec<Address>,
    /// What is left of the plan's caps.
    pub left: Left,
}

impl Accepted {
    fn of(staged: &Staged) -> Self {
        let status = match staged.fate {
            Fate::Later(_) => EmailStatus::Scheduled,
            _ => EmailStatus::Sent,
        };
        let skipped = staged.addressees.iter().filter(|to| to.suppressed);
        let skipped = skipped.map(|to| to.address.clone()).collect();
        let left = staged.reserved.as_ref().map(Reserved::left).unwrap_or_default();
        Self { id: staged.email.id, status, skipped, left }
    }
}

/// Writes something in the commit of several emails, told what came of each.
pub type AlsoOfMany<'a> = dyn Fn(&[Result<Accepted, Refusal>], &mut Batch) + Send + Sync + 'a;

impl Hall {
    /// Opens the hall before a worker.
    #[must_use]
    pub fn new(worker: Arc<Worker>, parts: HallParts) -> Self {
        let store = worker.store.clone();
        let plans = Arc::new(RwLock::new(parts.plans));
        let quotas = Arc::new(Quotas::new(store.clone(), worker.clock.clone(), Arc::clone(&plans)));
        let automations = Automations::new(Arc::clone(&worker), Arc::clone(&parts.vault));
        let senders = Arc::new(Senders::new(store, parts.vault, parts.signing, parts.sandbox_sender));
        let pool = Arc::new(parts.pool);
        let signer = TransactionSigner::new(Arc::clone(&senders), Arc::clone(&pool), parts.signing);
        // A worker has one hall.
        let _ = worker.transaction_signer.set(signer);
        let _ = worker.quotas.set(Arc::clone(&quotas));
        Self {
            automations,
            visits: Arc::new(Visits::new(Arc::clone(&worker))),
            returned: Returned::new(Arc::clone(&worker), parts.domains.facts.clone()),
            domains: Arc::new(Domains::new(Arc::clone(&worker), Arc::clone(&senders), parts.domains)),
            worker,
            senders,
            pool,
            signing: parts.signing,
            message_bytes_max: Arc::new(AtomicU64::new(parts.message_bytes_max)),
            plans,
            quotas,
            throttle: Arc::new(Throttle::new(parts.rate_limit)),
            appointments: Arc::default(),
            templates: Arc::default(),
            links: parts.links,
            base_url: Arc::default(),
            letters: Arc::default(),
            at_work: Arc::default(),
            answers: AnswerBudget::new(ANSWERS_BYTES_MAX, ACCOUNT_ANSWERS_BYTES_MAX),
        }
    }

    /// What seals secrets.
    #[must_use]
    pub fn vault(&self) -> &Arc<Vault> {
        self.worker.webhooks.vault()
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

    /// Templates that may be sent.
    #[must_use]
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// The sending domains.
    #[must_use]
    pub fn domains(&self) -> &Domains {
        &self.domains
    }

    /// Takes what comes back.
    #[must_use]
    pub fn returned(&self) -> &Returned {
        &self.returned
    }

    /// The domain that the service itself writes from, if the operator has named one.
    #[must_use]
    pub fn service_domain(&self) -> Option<Name> {
        self.senders.sandbox().map(|sender| sender.domain().clone())
    }

    /// The domain of the sandbox sender, when it is not verified here: then nobody can send from it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sandbox_fault(&self) -> Result<Option<&Name>, ReadError> {
        self.senders.sandbox_fault().await
    }

    /// The address that the service writes from, other than the sandbox sender itself: the first of two that is another.
    #[must_use]
    pub fn service_address(&self, local_parts: [&str; 2]) -> Option<Address> {
        self.senders.sandbox().and_then(|sandbox| crate::postman::beside(sandbox, local_parts))
    }

    /// Where the API is reached, and the public pages with it, once that is known.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.get().map(String::as_str)
    }

    /// Says that a letter to a partner is to be written.
    pub fn letter_to_write(&self) {
        self.letters.notify_one();
    }

    /// Returns when a letter to a partner is to be written, and at this time at the latest.
    pub async fn until_letters(&self, at_latest: Timestamp) {
        tokio::select! {
            () = self.letters.notified() => {}
            () = self.clock().sleep_until(at_latest) => {}
        }
    }

    /// The automations.
    #[must_use]
    pub fn automations(&self) -> &Automations {
        &self.automations
    }

    /// Idempotency keys at work.
    #[must_use]
    pub fn at_work(&self) -> &Arc<AtWork> {
        &self.at_work
    }

    /// What the plans include.
    #[must_use]
    pub fn plans(&self) -> Plans {
        *self.plans.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plans include something else from now on.
    pub fn set_plans(&self, plans: Plans) {
        *self.plans.write().unwrap_or_else(PoisonError::into_inner) = plans;
    }

    /// How much accounts may keep.
    #[must_use]
    pub fn quotas(&self) -> &Arc<Quotas> {
        &self.quotas
    }

    /// Who has asked how often.
    #[must_use]
    pub fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// Counts one request of an account, over HTTP or SMTP; none when requests are not counted. Nodes that
    /// share a database divide the rate.
    ///
    /// # Errors
    /// It may not be made now.
    pub fn rate(&self, account: &Account) -> Result<Option<Standing>, Standing> {
        if !self.throttle.is_on() {
            return Ok(None);
        }
        let rate = Rate::new(self.plans().of(account.plan).requests_per_second, self.worker.leases.nodes());
        self.throttle.take(account.id, rate, self.worker.clock.now()).map(Some)
    }

    /// What an account has used up of its plan today and this month, to the email.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn used(&self, tenant: &Tenant) -> Result<Used, ReadError> {
        // The meter knows those that are not told yet of plans with caps only.
        self.tell_within(TOLD_WITHIN).await;
        let account = tenant.account().id;
        self.worker.meter.used(&self.worker.store, account, self.clock().now()).await
    }

    /// Returns after the next thing that is settled; what happens once this is called counts.
    pub fn settled(&self) -> impl Future<Output = ()> + '_ {
        self.worker.settled()
    }

    /// Tells what has happened: what follows from it is in the store when this returns.
    ///
    /// # Errors
    /// [`TellError`].
    pub async fn tell(&self) -> Result<(), TellError> {
        self.worker.tell().await
    }

    /// Tells what has happened, and waits for it for so long at most: for what is to show what was just done. Where that was
    /// too short, returns the time up to which everything was told.
    pub async fn tell_within(&self, at_most: Duration) -> Option<Timestamp> {
        let worker = Arc::clone(&self.worker);
        // Half a telling would be done again: it goes on when the waiting ends.
        let telling = tokio::spawn(async move { worker.tell().await });
        match tokio::time::timeout(at_most, telling).await {
            Ok(Ok(Ok(()))) => return None,
            Ok(Ok(Err(error))) => {
                store::warn_unless_away!(self.worker.store, %error, "events cannot be told at the moment: lists may be behind");
            }
            Ok(Err(_)) | Err(_) => {}
        }
        Some(self.told_until())
    }

    /// Everything that happened here before this was told; 1970 before it is known.
    #[must_use]
    pub fn told_until(&self) -> Timestamp {
        self.worker.told_until()
    }

    /// What signs links in mail and on public pages.
    #[must_use]
    pub fn links(&self) -> &LinkKey {
        &self.links
    }

    /// Says where the API is reached, and with it the public pages that links lead to. The first word counts.
    pub fn open_pages_at(&self, base_url: &str) {
        let _ = self.base_url.set(base_url.to_owned());
    }

    /// Where the API is reached; empty before it is known.
    #[must_use]
    pub fn pages_at(&self) -> &str {
        self.base_url.get().map_or("", String::as_str)
    }

    /// Makes unsubscribe links; none before it is known where they lead.
    #[must_use]
    pub fn unsubscribe(&self) -> Option<Unsubscribe> {
        let base_url = self.base_url.get()?.clone();
        Some(Unsubscribe { key: self.links.clone(), base_url })
    }

    /// What changes what is known of addresses.
    #[must_use]
    pub fn contacts(&self) -> Contacts {
        self.worker.contacts()
    }

    /// Does what the recipient whom a link is bound to wants, and has it told.
    ///
    /// # Errors
    /// [`ContactsError`].
    pub async fn heed(&self, bound: &Bound, wish: Wish) -> Result<(), ContactsError> {
        self.contacts().heed(bound, wish).await?;
        self.worker.untold.notify_one();
        Ok(())
    }

    /// Says that an event was recorded: it is told now.
    pub fn something_to_tell(&self) {
        self.worker.something_to_tell();
    }

    /// The partitions that are this node's, in runs of neighbours.
    #[must_use]
    pub fn partitions(&self) -> Vec<RangeInclusive<u16>> {
        self.worker.leases.runs()
    }

    /// Says that a list of suppressions was handed in: it is read now.
    pub fn list_handed_in(&self) {
        self.worker.list_handed_in.notify_one();
    }

    /// Books opens and clicks.
    #[must_use]
    pub fn visits(&self) -> &Visits {
        &self.visits
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

    /// Whether an email may be scheduled for this time.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn may_schedule(&self, at: Timestamp) -> Result<(), &'static str> {
        stage::judge_schedule(at, self.worker.clock.now())
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
    pub fn accept_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        draft: Draft,
        also: &'a (dyn Fn(&Accepted, &mut Batch) + Send + Sync),
    ) -> BoxFuture<'a, Result<Accepted, Refusal>> {
        Box::pin(async move {
            self.healthy()?;
            let now = self.worker.clock.now();
            let staged = match self.stage(tenant, draft, now).await {
                Ok(staged) => staged,
                Err(Stop::Refused(refusal)) => return Err(refusal),
                Err(Stop::Blocked(staged, refusal)) => {
                    self.commit(vec![*staged], &|_| {}).await?;
                    return Err(refusal);
                }
            };
            let accepted = Accepted::of(&staged);
            self.commit(vec![staged], &|batch| also(&accepted, batch)).await?;
            Ok(accepted)
        })
    }

    /// Accepts several drafts in one commit, each that can be, and says of each what came of it; or none of
    /// them, when one cannot be and `all` must be. Writes something more in the same commit.
    ///
    /// A commit that nobody knows the end of leaves each of them [`Refusal::Unconfirmed`], by its own id.
    ///
    /// # Errors
    /// [`Refusal`], about all of them.
    pub fn accept_many<'a>(
        &'a self,
        tenant: &'a Tenant,
        drafts: Vec<Draft>,
        all: bool,
        also: &'a AlsoOfMany<'a>,
    ) -> BoxFuture<'a, Result<Vec<Result<Accepted, Refusal>>, Refusal>> {
        Box::pin(async move {
            self.healthy()?;
            let now = self.worker.clock.now();
            let staging: Vec<_> = drafts.into_iter().map(|draft| self.stage(tenant, draft, now)).collect();
            let mut staged = Vec::with_capacity(staging.len());
            let mut outcomes = Vec::with_capacity(staging.len());
            for one in futures_util::future::join_all(staging).await {
                outcomes.push(match one {
                    Ok(one) => {
                        let accepted = Accepted::of(&one);
                        staged.push(one);
                        Ok(accepted)
                    }
                    Err(Stop::Refused(refusal)) => Err(refusal),
                    Err(Stop::Blocked(one, refusal)) => {
                        staged.push(*one);
                        Err(refusal)
                    }
                });
            }
            if all && outcomes.iter().any(Result::is_err) {
                return Ok(outcomes.into_iter().map(|one| one.map_err(Refusal::without_email)).collect());
            }
            let doubt = |accepted: Accepted| Err(Refusal::Unconfirmed { id: accepted.id });
            match self.commit(staged, &|batch| also(&outcomes, batch)).await {
                Err(Refusal::Unconfirmed { .. }) => {
                    Ok(outcomes.into_iter().map(|one| one.and_then(doubt)).collect())
                }
                committed => committed.map(|()| outcomes),
            }
        })
    }

    /// Commits, in partitions of this node. Those that went to another node meanwhile are chosen anew.
    async fn commit(
        &self,
        staged: Vec<Staged>,
        also: &(dyn Fn(&mut Batch) + Send + Sync),
    ) -> Result<(), Refusal> {
        for _ in 0..CHOICES_MAX {
            let mut batch = Batch::intake();
            let mut placed = Vec::with_capacity(staged.len());
            let mut events = Vec::with_capacity(staged.len());
            for one in &staged {
                let place = one.place(|domain| self.worker.leases.choose(domain));
                let place = place.ok_or(Refusal::Unavailable)?;
                let event = EventId::new(one.now, self.worker.entropy.id());
                events.push(one.write(&mut batch, &place, event));
                placed.push(place);
            }
            if !self.worker.leases.fence_partitions(&mut batch, placed.iter().flat_map(Placed::partitions)) {
                // It went to another node this very moment.
                continue;
            }
            let reserve = |place: Placed| (place.partition, self.worker.reserve(place.tasks));
            let reservations: Vec<_> = placed.into_iter().map(reserve).collect();
            also(&mut batch);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    self.committed(staged, events, reservations);
                    return Ok(());
                }
                Err(CommitError::Conflict { key })
                    if store::idempotency::is_about_one(&key)
                        || store::schedule::is_about_one(&key)
                        || store::run::is_about_one(&key)
                        || store::owner_notice::is_about_one(&key)
                        || store::affiliate::partner_letter::is_about_one(&key) =>
                {
                    return Err(Refusal::DoneMeanwhile);
                }
                Err(CommitError::Conflict { .. }) => self.worker.look_soon().await,
                // The disk failed, or the database went away, with the commit on its way: nobody knows
                // whether it is there.
                Err(CommitError::Fenced(_) | CommitError::Unknown(_)) => {
                    reservations.into_iter().for_each(|(_, reservation)| reservation.in_doubt());
                    let first = staged.first().map(|one| one.email.id);
                    return Err(first.map_or(Refusal::Unavailable, |id| Refusal::Unconfirmed { id }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Unavailable)
    }

    /// Counts a message that was received.
    pub(crate) fn count_received(&self) {
        self.worker.figures.last_hour.count(Counted::Received, 1, self.clock().now());
    }

    /// They are on disk.
    fn committed(&self, staged: Vec<Staged>, events: Vec<Event>, reservations: Vec<(u16, Reservation)>) {
        let (number, now) = (staged.len() as u64, self.clock().now());
        metrics::counter!("postrider_emails_accepted_total").increment(number);
        self.worker.figures.last_hour.count(Counted::Accepted, number, now);
        for ((one, event), (partition, reservation)) in staged.into_iter().zip(events).zip(reservations) {
            one.log();
            match one.fate {
                Fate::Later(at) => self.appointments.note(partition, at),
                Fate::Refuse(..) => self.worker.settled.notify_waiters(),
                Fate::Send => {}
            }
            reservation.committed(&one.chunks);
            if let Some(reserved) = one.reserved {
                reserved.keep();
            }
            if let Some(storage) = one.storage {
                storage.keep();
            }
            self.worker.fresh.keep(event, Some(one.email));
        }
        self.worker.untold.notify_one();
    }
}
