//! The worker: from accepted mail to connections, and from due tasks on disk back into memory.
//!
//! ```text
//! accept ─► reserve ─[commit]─► dispatch ─► site ─► connection (attempt.rs) ─► settle
//!              │ no room                ▲
//!              ▼                        │ a slice at a time, when there is room
//!          scheduled (one entry a queue, tasks on disk) ◄─ put off
//! ```
//!
//! Fresh mail goes out from memory; the store is read for retries, after a restart, and for what found
//! no room. Memory is bounded by places for tasks ([`crate::flight`]), by bytes of messages
//! ([`crate::bodies`]) and by connections; reservation.rs, dispatch.rs and refill.rs are the steps.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::Name;
use mail::classify::Shaping;
use mail::given_name::SmarthostName;
use mail::outage::Outage;
use mail::task::{QueueName, Task};
use mail::verp::VerpKey;
use store::engine::{Key, Store};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::appointments::Appointments;
use crate::automations::ears::Ears;
use crate::bodies::BodyBudget;
use crate::clock::Clock;
use crate::courier::smtp::{Dialer, TlsMode};
use crate::delays::Delays;
use crate::destinations::Destinations;
use crate::dkim2::TransactionSigner;
use crate::entropy::Entropy;
use crate::figures::Figures;
use crate::flight::Flights;
use crate::holds::Holds;
use crate::last_hour::Counts;
use crate::lease::Leases;
use crate::lookup_failures::LookupFailures;
use crate::membership::{BEAT, LeaseError, Membership, Neighbours};
use crate::meter::Meter;
use crate::operate::Watched;
use crate::pace::PaceLimits;
use crate::plan::Planner;
use crate::pools::{PoolSettings, Pools};
use crate::porter::{Revisions, Uses};
use crate::product_events::Exporter;
use crate::report::Reports;
use crate::retry::Schedule;
use crate::scheduled::Scheduled;
use crate::site::Ready;
use crate::tell::fresh::Fresh;
use crate::tls_reports::TlsReporter;
use crate::tls_sessions::TlsSessions;
use crate::webhooks::{Webhooks, WebhooksParts};

/// How long a stop waits for attempts under way: a mail host may take ten minutes for a final reply,
/// and the service manager does not wait so long.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// How often is looked for partitions whose recipients are to be counted.
const COUNT_AGAIN: Duration = Duration::from_secs(2);
/// And then for what was cut off to be booked.
const BOOK_MAX: Duration = Duration::from_secs(1);

/// The worker's limits and manners.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Our name: says EHLO, reports failures.
    pub hostname: Name,
    /// What may change while it runs.
    pub manners: Manners,
    /// How fast a site is served, by the domain of its first host; `None` is all others.
    pub pace: Vec<(Option<Name>, PaceLimits)>,
    /// What TLS is asked of every site.
    pub tls: TlsMode,
    /// Local addresses that mail leaves from that is of no other pool; none lets the system choose.
    pub source_addresses: Vec<std::net::IpAddr>,
    /// The other pools.
    pub pools: Vec<PoolSettings>,
    /// Tasks in memory at most.
    pub places_max: usize,
    /// Tasks of one site in memory at most.
    pub ready_max: usize,
    /// Connections to mail hosts at most.
    pub connections_max: usize,
    /// Bodies in memory at most, in bytes.
    pub body_bytes_max: usize,
}

/// What the operator may change while the worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manners {
    /// When to try again.
    pub schedule: Schedule,
    /// Nothing is tried: mail is accepted and stays.
    pub paused: bool,
    /// How long an email is kept after it was accepted.
    pub retention: Duration,
    /// What replies call for.
    pub shaping: Shaping,
}

/// What the worker is built from.
pub struct WorkerParts {
    /// Where everything lies.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
    /// Finds hosts.
    pub planner: Planner,
    /// Opens connections.
    pub dialer: Dialer,
    /// Signs return paths.
    pub verp: VerpKey,
    /// This node's name among others on the same store: new at every start.
    pub node: String,
    /// What webhooks need.
    pub webhooks: WebhooksParts,
    /// The node that is known to be dead, because this one has taken its place.
    pub former_node: Option<String>,
}

/// The worker.
pub struct Worker {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) planner: Planner,
    pub(crate) dialer: Dialer,
    pub(crate) verp: VerpKey,
    /// Signs each transaction, where mail is signed at all.
    pub(crate) transaction_signer: std::sync::OnceLock<TransactionSigner>,
    /// How much accounts may keep, once there is a hall.
    pub(crate) quotas: std::sync::OnceLock<Arc<crate::quota::Quotas>>,
    pub(crate) settings: WorkerSettings,
    manners: watch::Sender<Arc<Manners>>,
    pub(crate) flights: Flights,
    pub(crate) scheduled: Scheduled,
    pub(crate) stop: CancellationToken,
    /// No host is waited for any more.
    pub(crate) cut: CancellationToken,
    /// Whatever still runs is dropped.
    end: CancellationToken,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) bodies: BodyBudget,
    tasks: TaskTracker,
    panicked: AtomicBool,
    pub(crate) figures: Figures,
    pub(crate) settled: Notify,
    /// Events wait to be told.
    pub(crate) untold: Notify,
    /// Those, as far as they are in memory.
    pub(crate) fresh: Fresh,
    /// One at a time tells.
    pub(crate) telling: tokio::sync::Mutex<()>,
    /// All events in our partitions that are older were told, in milliseconds since 1970; 0 before it is known.
    pub(crate) told_until_ms: AtomicI64,
    pub(crate) meter: Meter,
    /// What senders are still to be told.
    pub(crate) reports: Reports,
    /// A list of suppressions was handed in.
    pub(crate) list_handed_in: Notify,
    /// Product events and visits wait to be counted.
    pub(crate) uncounted: Notify,
    /// One at a time counts.
    pub(crate) counting: tokio::sync::Mutex<()>,
    /// Conversions wait to be exported.
    pub(crate) exports: Notify,
    /// By what, if they are.
    pub(crate) exporter: std::sync::OnceLock<Exporter>,
    /// Events on their way to endpoints.
    pub(crate) webhooks: Webhooks,
    /// When each partition is to be looked at for notices to owners.
    pub(crate) owner_notices: Appointments,
    /// When each partition is to be looked at for mail that has passed its deadline.
    pub(crate) deadlines: Appointments,
    /// Queues whose senders are to hear that their mail is delayed.
    pub(crate) delays: Delays,
    /// How TLS went, as far as it is not on disk.
    pub(crate) tls_sessions: TlsSessions,
    /// Who tells it, if anybody does.
    pub(crate) tls_reporter: std::sync::OnceLock<TlsReporter>,
    /// What automations hear, and when they have something to do.
    pub(crate) ears: Ears,
    /// When credentials were last used.
    pub(crate) uses: Uses,
    /// How often who accounts let in was changed.
    pub(crate) revisions: Revisions,
    pub(crate) leases: Arc<Leases>,
    membership: tokio::sync::Mutex<Option<Membership>>,
    /// Something is ordered about many tasks.
    pub(crate) something_ordered: Notify,
    /// Some of it was carried out.
    pub(crate) order_moved: Notify,
    /// How far, for whoever watches.
    pub(crate) watched: Watched,
    /// What the operator has ordered about destinations.
    pub(crate) destinations: Destinations,
    /// What holds mail back.
    pub(crate) holds: Holds,
    /// Where mail leaves from.
    pub(crate) pools: Pools,
    /// Which smarthosts do not answer, for the log. The configuration bounds how many there are.
    pub(crate) smarthost_outages: Mutex<HashMap<SmarthostName, Outage>>,
    pub(crate) resolving: Mutex<HashMap<Name, Vec<Ready>>>,
    /// Which domains' mail hosts could not be looked up.
    pub(crate) lookup_failures: LookupFailures,
    /// Where the rows lie that are no tasks, as far as they were told.
    pub(crate) aside: Mutex<HashSet<Key>>,
}

impl Worker {
    /// Puts a worker together; [`Worker::start`] sets it going.
    #[must_use]
    pub fn new(parts: WorkerParts, settings: WorkerSettings) -> Arc<Self> {
        let leases = Arc::<Leases>::default();
        let neighbours = Neighbours { shared: parts.store.is_shared(), former: parts.former_node };
        let membership = Membership::new(
            (parts.store.clone(), neighbours),
            parts.clock.clone(),
            Arc::clone(&leases),
            parts.node,
        );
        Arc::new(Self {
            leases,
            membership: tokio::sync::Mutex::new(Some(membership)),
            store: parts.store,
            clock: parts.clock,
            entropy: parts.entropy,
            planner: parts.planner,
            dialer: parts.dialer,
            verp: parts.verp,
            transaction_signer: std::sync::OnceLock::new(),
            quotas: std::sync::OnceLock::new(),
            figures: Figures::default(),
            settled: Notify::new(),
            untold: Notify::new(),
            fresh: Fresh::default(),
            telling: tokio::sync::Mutex::default(),
            told_until_ms: AtomicI64::default(),
            meter: Meter::default(),
            reports: Reports::default(),
            list_handed_in: Notify::new(),
            uncounted: Notify::new(),
            counting: tokio::sync::Mutex::default(),
            exports: Notify::new(),
            exporter: std::sync::OnceLock::new(),
            webhooks: Webhooks::new(parts.webhooks),
            owner_notices: Appointments::default(),
            deadlines: Appointments::default(),
            delays: Delays::default(),
            tls_sessions: TlsSessions::default(),
            tls_reporter: std::sync::OnceLock::new(),
            ears: Ears::default(),
            uses: Uses::default(),
            revisions: Revisions::default(),
            flights: Flights::new(settings.places_max),
            scheduled: Scheduled::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
            end: CancellationToken::new(),
            bodies: BodyBudget::new(settings.body_bytes_max),
            connections: Arc::new(Semaphore::new(settings.connections_max.max(1))),
            panicked: AtomicBool::new(false),
            something_ordered: Notify::new(),
            order_moved: Notify::new(),
            watched: Watched::default(),
            destinations: Destinations::default(),
            holds: Holds::default(),
            pools: Pools::new(settings.source_addresses.clone(), settings.pools.clone()),
            smarthost_outages: Mutex::default(),
            resolving: Mutex::default(),
            lookup_failures: LookupFailures::default(),
            aside: Mutex::default(),
            manners: watch::Sender::new(Arc::new(settings.manners.clone())),
            settings,
        })
    }

    /// Takes this node's share of the work, and finds the queues in it. Returns when it has a share: at once,
    /// unless other nodes have everything and must give some up first.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn join<'a>(self: &'a Arc<Self>) -> BoxFuture<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            self.begin_holds().await?;
            self.look().await?;
            while self.leases.is_empty() && !self.stop.is_cancelled() {
                tokio::time::sleep(BEAT).await;
                self.look().await?;
            }
            if self.store.is_shared() {
                let worker = Arc::clone(self);
                self.spawn(async move { worker.keep_looking().await });
            }
            self.meter.fall_behind();
            let worker = Arc::clone(self);
            self.spawn(async move { worker.catch_up().await });
            Ok(())
        })
    }

    /// Begins to deliver.
    pub fn start(self: &Arc<Self>) {
        let worker = Arc::clone(self);
        self.spawn(async move { worker.forget_old().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_telling().await });
        self.untold.notify_one();
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_reporting().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.import_lists().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_counting().await });
        self.uncounted.notify_one();
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_exporting().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_sending().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.write_uses().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_writing_sessions().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.carry_out_orders().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_deadlines().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_telling_delays().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_counts().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.tell_hold().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.refill().await });
    }

    /// Looks at the other nodes until the worker stops.
    async fn keep_looking(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(BEAT) => {}
                () = self.stop.cancelled() => return,
            }
            let looked = tokio::select! {
                looked = self.look() => looked,
                () = self.stop.cancelled() => return,
            };
            if let Err(error) = looked {
                store::warn_unless_away!(self.store, %error, "the other nodes cannot be seen");
            }
        }
    }

    /// Looks once at the other nodes, takes over what is ours to take, and follows what they left word about.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn look(self: &Arc<Self>) -> Result<(), LeaseError> {
        let mut membership = self.membership.lock().await;
        let Some(member) = membership.as_mut() else { return Ok(()) };
        // Before there is anything to send.
        self.look_at_holds().await?;
        let nodes = self.leases.nodes();
        let looked = member.look(|partition| self.flights.attempting(partition)).await;
        drop(membership);
        if self.leases.nodes() != nodes {
            self.share_pace();
        }
        self.store.queue_counts().track(&self.leases.held());
        // What cannot be read now is read at the next look: nobody else knows of these queues.
        for partition in self.leases.unfound() {
            self.store.queue_counts().doubt(partition);
            self.find_queues(partition).await?;
            self.find_lines(partition).await?;
            self.reports.find(partition);
            // What another node has put there meanwhile is looked for, too.
            self.deadlines.forget(partition);
            self.owner_notices.forget(partition);
            self.leases.found(partition);
        }
        looked?;
        self.look_at_destinations().await?;
        self.look_at_pools().await?;
        if self.store.is_shared() { self.follow_hints().await } else { Ok(()) }
    }

    /// Returns when a look has changed something, or would have.
    pub(crate) async fn look_soon(&self) {
        let changed = self.leases.changed();
        let _ = tokio::time::timeout(BEAT, changed).await;
    }

    async fn find_queues(&self, partition: u16) -> Result<(), store::engine::ReadError> {
        let mut from = None;
        while let Some((queue, due, next)) = store::task::next_queue(&self.store, partition, from).await? {
            let start = store::task::start_of(&queue, due);
            self.scheduled.note(queue, due, start);
            from = Some(next);
        }
        Ok(())
    }

    /// Reads the tasks of partitions that are not counted yet, a slice at a time, until the worker stops.
    async fn keep_counts(self: Arc<Self>) {
        loop {
            match self.store.queue_counts().read(&self.store, self.clock.now()).await {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => tokio::select! {
                    () = self.leases.changed() => {}
                    () = tokio::time::sleep(COUNT_AGAIN) => {}
                    () = self.stop.cancelled() => return,
                },
                Err(error) => {
                    store::warn_unless_away!(self.store, %error, "queued recipients cannot be counted");
                    tokio::select! {
                        () = tokio::time::sleep(COUNT_AGAIN) => {}
                        () = self.stop.cancelled() => return,
                    }
                }
            }
            if self.stop.is_cancelled() {
                return;
            }
        }
    }

    /// From now on reports about TLS are made, by this one. The first word counts.
    pub fn report_tls(&self, reporter: TlsReporter) {
        let _ = self.tls_reporter.set(reporter);
    }

    /// The manners of this moment.
    #[must_use]
    pub fn manners(&self) -> Arc<Manners> {
        Arc::clone(&self.manners.borrow())
    }

    /// Takes on other manners; attempts under way are finished.
    pub fn adopt(&self, manners: Manners) {
        self.manners.send_replace(Arc::new(manners));
    }

    /// Hears when the manners change.
    pub(crate) fn manners_heard(&self) -> watch::Receiver<Arc<Manners>> {
        self.manners.subscribe()
    }

    /// Whether nothing is to be tried: the configuration says so, or the queue is held.
    pub(crate) fn is_paused(&self) -> bool {
        self.manners.borrow().paused || self.holds.is_queue_held()
    }

    /// Whether nothing more is to be begun, for now or for good.
    pub(crate) fn rests(&self) -> bool {
        self.stop.is_cancelled() || self.is_paused()
    }

    /// Returns when delivery is not paused, or ends.
    pub(crate) async fn unpaused(&self) {
        let (mut manners, mut hold) = (self.manners_heard(), self.holds.of_queue());
        while self.is_paused() {
            // The senders are ours: they are not gone while we wait.
            tokio::select! {
                _ = manners.changed() => {}
                _ = hold.changed() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Finishes the attempts that are under way and returns; those that take longer than
    /// [`DRAIN_MAX`] are cut off: those that may have arrived are booked as unconfirmed, all others are
    /// tried anew after the next start. What waits stays on disk.
    pub async fn drain(&self) {
        self.drain_within(DRAIN_MAX).await;
    }

    /// [`Self::drain`] with another patience.
    pub fn drain_within(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stop.cancel();
            self.tasks.close();
            if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
                self.cut.cancel();
                if tokio::time::timeout(BOOK_MAX, self.tasks.wait()).await.is_err() {
                    self.end.cancel();
                    self.tasks.wait().await;
                }
            }
            // What the last attempts have shown.
            let _ = tokio::time::timeout(BOOK_MAX, self.write_sessions()).await;
            // Nothing is under way any more: others go on from here at their next look.
            if let Some(member) = self.membership.lock().await.take()
                && self.store.is_shared()
            {
                // A database that is away is not waited for: then the others wait until the lease is over.
                let _ = tokio::time::timeout(BEAT, member.part()).await;
            }
        })
    }

    /// Runs something that ends when the worker is drained.
    ///
    /// A bug that panics takes what its task held with it (a connection's count, a place in memory), so
    /// nothing can be trusted to go on: delivery stops, and whoever runs the worker starts anew from disk.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(self: &Arc<Self>, work: F) {
        let end = self.end.clone();
        let worker = Arc::clone(self);
        // Boxed once: every layer around it would copy its kilobytes.
        let work = Box::pin(work);
        self.tasks.spawn(async move {
            let ended = AssertUnwindSafe(end.run_until_cancelled(work)).catch_unwind().await;
            if ended.is_err() {
                tracing::error!(
                    "a task of the queue panicked: delivery stops, and begins anew after a restart"
                );
                worker.panicked.store(true, Ordering::Release);
                worker.stop.cancel();
            }
        });
    }

    /// Whether delivery has ended for good, by a bug or by the store, and only a restart helps.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    /// Gives back a task's place, untried or unbooked, and has its queue looked at: whatever its row is
    /// by now, disk knows.
    pub(crate) fn let_go(&self, task: &Task) {
        self.flights.land(task.id);
        self.let_lie(task);
    }

    /// Has a task's queue looked at: whatever its row is by now, disk knows.
    pub(crate) fn let_lie(&self, task: &Task) {
        let queue = task.queue();
        let start = store::task::start_of(&queue, Timestamp::UNIX_EPOCH);
        self.scheduled.note(queue, self.clock.now(), start);
    }

    /// Returns after the next settlement. What settles once this is called counts, also before the
    /// future is first polled: so a caller asks for it, looks, and waits, and misses nothing.
    pub fn settled(&self) -> impl Future<Output = ()> + '_ {
        self.settled.notified()
    }

    /// Says that an event was recorded: it is told now.
    pub fn something_to_tell(&self) {
        self.untold.notify_one();
    }

    /// The partitions that are ours.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Whether nothing of a queue is read before a later time.
    #[must_use]
    pub fn is_put_off(&self, queue: &QueueName) -> bool {
        self.scheduled.due_of(queue).is_some_and(|due| due > self.clock.now())
    }

    /// Says that a task lies on disk and when it is due.
    pub(crate) fn note(&self, task: &Task) {
        self.scheduled.note(task.queue(), task.due, store::task::key_of(task));
    }

    /// Tasks in memory that do not wait for a destination which is left alone.
    #[must_use]
    pub fn active_tasks(&self) -> usize {
        let now = self.clock.now();
        let sites = self
            .pools
            .all()
            .flat_map(|pool| pool.sites().iter().flat_map(HashMap::values).cloned().collect::<Vec<_>>());
        let waiting: usize =
            sites.filter(|site| site.alone_until(now).is_some()).map(|site| site.ready()).sum();
        self.flights.len().saturating_sub(waiting)
    }

    /// What this node did within the last hour.
    #[must_use]
    pub fn last_hour(&self) -> Counts {
        self.figures.last_hour.sum(self.clock.now())
    }

    /// Tasks in memory, bytes of bodies in memory, queues with tasks on disk.
    #[must_use]
    pub fn load(&self) -> (usize, usize, usize) {
        (self.flights.len(), self.bodies.held_bytes(), self.scheduled.len())
    }
}

#[cfg(test)]
pub(crate) mod tests;
