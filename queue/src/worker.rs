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
use mail::address::DomainName;
use mail::classify::ReplyRules;
use mail::given_name::SmarthostName;
use mail::outage::Outage;
use mail::task::{QueueName, Task};
use mail::verp::VerpKey;
use store::engine::{Key, Store};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::appointments::PartitionTimers;
use crate::automations::ears::TriggerIndex;
use crate::bodies::BodyBudget;
use crate::clock::Clock;
use crate::courier::smtp::{SmtpDialer, TlsSecurityLevel};
use crate::delays::DelayTracker;
use crate::destinations::DestinationPolicies;
use crate::dkim2::TransactionSigner;
use crate::entropy::Entropy;
use crate::figures::DeliveryMetrics;
use crate::flight::InFlightTasks;
use crate::holds::HoldCache;
use crate::last_hour::Counts;
use crate::lease::Leases;
use crate::lookup_failures::LookupFailures;
use crate::membership::{HEARTBEAT_INTERVAL, KnownNodes, LeaseError, Membership};
use crate::meter::QuotaTracker;
use crate::operate::WatchedCommands;
use crate::pace::PaceLimits;
use crate::plan::MxRouter;
use crate::pools::{PoolSettings, SourcePools};
use crate::porter::{AccessRevisions, LastUsedWriter};
use crate::product_events::ConversionExporter;
use crate::report::DsnReporter;
use crate::retry::RetrySchedule;
use crate::scheduled::DueIndex;
use crate::site::ReadyTask;
use crate::tell::fresh::RecentEvents;
use crate::tls_reports::TlsReporter;
use crate::tls_sessions::TlsSessionStats;
use crate::webhooks::{WebhookSender, WebhooksParts};

/// How long a stop waits for attempts under way: a mail host may take ten minutes for a final reply,
/// and the service manager does not wait so long.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// How often is looked for partitions whose recipients are to be counted.
const COUNT_AGAIN: Duration = Duration::from_secs(2);
/// And then for what was cut off to be booked.
const COMMIT_MAX: Duration = Duration::from_secs(1);

/// The worker's limits and manners.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Our name: says EHLO, reports failures.
    pub hostname: DomainName,
    /// What may change while it runs.
    pub delivery_policy: DeliveryPolicy,
    /// How fast a site is served, by the domain of its first host; `None` is all others.
    pub pace: Vec<(Option<DomainName>, PaceLimits)>,
    /// What TLS is asked of every site.
    pub tls: TlsSecurityLevel,
    /// Local addresses that mail leaves from that is of no other pool; none lets the system choose.
    pub source_addresses: Vec<std::net::IpAddr>,
    /// The other pools.
    pub pools: Vec<PoolSettings>,
    /// Tasks in memory at most.
    pub in_flight_max: usize,
    /// Tasks of one site in memory at most.
    pub ready_max: usize,
    /// Connections to mail hosts at most.
    pub connections_max: usize,
    /// Bodies in memory at most, in bytes.
    pub body_bytes_max: usize,
}

/// What the operator may change while the worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPolicy {
    /// When to try again.
    pub schedule: RetrySchedule,
    /// Nothing is tried: mail is accepted and stays.
    pub paused: bool,
    /// How long an email is kept after it was accepted.
    pub retention: Duration,
    /// What replies call for.
    pub shaping: ReplyRules,
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
    pub router: MxRouter,
    /// Opens connections.
    pub dialer: SmtpDialer,
    /// Signs return paths.
    pub verp: VerpKey,
    /// This node's name among others on the same store: new at every start.
    pub node: String,
    /// What webhooks need.
    pub webhooks: WebhooksParts,
    /// The node that is known to be dead, because this one has taken its place.
    pub predecessor_node: Option<String>,
}

/// The worker.
pub struct Worker {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) router: MxRouter,
    pub(crate) dialer: SmtpDialer,
    pub(crate) verp: VerpKey,
    /// Signs each transaction, where mail is signed at all.
    pub(crate) transaction_signer: std::sync::OnceLock<TransactionSigner>,
    /// How much accounts may keep, once there is a hall.
    pub(crate) storage_quotas: std::sync::OnceLock<Arc<crate::quota::StorageQuotaTracker>>,
    pub(crate) settings: WorkerSettings,
    delivery_policy: watch::Sender<Arc<DeliveryPolicy>>,
    pub(crate) in_flight: InFlightTasks,
    pub(crate) due_index: DueIndex,
    pub(crate) stop: CancellationToken,
    /// No host is waited for any more.
    pub(crate) abort: CancellationToken,
    /// Whatever still runs is dropped.
    end: CancellationToken,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) bodies: BodyBudget,
    tasks: TaskTracker,
    panicked: AtomicBool,
    pub(crate) metrics: DeliveryMetrics,
    pub(crate) outcome_recorded: Notify,
    /// Events wait to be told.
    pub(crate) outbox_wakeup: Notify,
    /// Those, as far as they are in memory.
    pub(crate) recent_events: RecentEvents,
    /// One at a time tells.
    pub(crate) dispatch_lock: tokio::sync::Mutex<()>,
    /// All events in our partitions that are older were told, in milliseconds since 1970; 0 before it is known.
    pub(crate) dispatched_until_ms: AtomicI64,
    pub(crate) quota_tracker: QuotaTracker,
    /// What senders are still to be told.
    pub(crate) dsn_reporter: DsnReporter,
    /// A list of suppressions was handed in.
    pub(crate) import_wakeup: Notify,
    /// Product events and visits wait to be counted.
    pub(crate) analytics_wakeup: Notify,
    /// One at a time counts.
    pub(crate) aggregation_lock: tokio::sync::Mutex<()>,
    /// Conversions wait to be exported.
    pub(crate) export_wakeup: Notify,
    /// By what, if they are.
    pub(crate) exporter: std::sync::OnceLock<ConversionExporter>,
    /// Events on their way to endpoints.
    pub(crate) webhooks: WebhookSender,
    /// When each partition is to be looked at for notices to owners.
    pub(crate) owner_alert_timers: PartitionTimers,
    /// When each partition is to be looked at for mail that has passed its deadline.
    pub(crate) deadline_timers: PartitionTimers,
    /// Queues whose senders are to hear that their mail is delayed.
    pub(crate) delays: DelayTracker,
    /// How TLS went, as far as it is not on disk.
    pub(crate) tls_session_stats: TlsSessionStats,
    /// Who tells it, if anybody does.
    pub(crate) tls_reporter: std::sync::OnceLock<TlsReporter>,
    /// What automations hear, and when they have something to do.
    pub(crate) trigger_index: TriggerIndex,
    /// When credentials were last used.
    pub(crate) last_used: LastUsedWriter,
    /// How often who accounts let in was changed.
    pub(crate) access_revisions: AccessRevisions,
    pub(crate) leases: Arc<Leases>,
    membership: tokio::sync::Mutex<Option<Membership>>,
    /// Something is ordered about many tasks.
    pub(crate) bulk_command_wakeup: Notify,
    /// Some of it was carried out.
    pub(crate) bulk_command_progressed: Notify,
    /// How far, for whoever watches.
    pub(crate) watched_commands: WatchedCommands,
    /// What the operator has ordered about destinations.
    pub(crate) destinations: DestinationPolicies,
    /// What holds mail back.
    pub(crate) holds: HoldCache,
    /// Where mail leaves from.
    pub(crate) pools: SourcePools,
    /// Which smarthosts do not answer, for the log. The configuration bounds how many there are.
    pub(crate) smarthost_outages: Mutex<HashMap<SmarthostName, Outage>>,
    pub(crate) resolving: Mutex<HashMap<DomainName, Vec<ReadyTask>>>,
    /// Which domains' mail hosts could not be looked up.
    pub(crate) lookup_failures: LookupFailures,
    /// Where the rows lie that are no tasks, as far as they were told.
    pub(crate) quarantined: Mutex<HashSet<Key>>,
}

impl Worker {
    /// Puts a worker together; [`Worker::start`] sets it going.
    #[must_use]
    pub fn new(parts: WorkerParts, settings: WorkerSettings) -> Arc<Self> {
        let leases = Arc::<Leases>::default();
        let neighbours = KnownNodes { may_exist: parts.store.is_shared(), predecessor: parts.predecessor_node };
        let membership =
            Membership::new((parts.store.clone(), neighbours), parts.clock.clone(), Arc::clone(&leases), parts.node);
        Arc::new(Self {
            leases,
            membership: tokio::sync::Mutex::new(Some(membership)),
            store: parts.store,
            clock: parts.clock,
            entropy: parts.entropy,
            router: parts.router,
            dialer: parts.dialer,
            verp: parts.verp,
            transaction_signer: std::sync::OnceLock::new(),
            storage_quotas: std::sync::OnceLock::new(),
            metrics: DeliveryMetrics::default(),
            outcome_recorded: Notify::new(),
            outbox_wakeup: Notify::new(),
            recent_events: RecentEvents::default(),
            dispatch_lock: tokio::sync::Mutex::default(),
            dispatched_until_ms: AtomicI64::default(),
            quota_tracker: QuotaTracker::default(),
            dsn_reporter: DsnReporter::default(),
            import_wakeup: Notify::new(),
            analytics_wakeup: Notify::new(),
            aggregation_lock: tokio::sync::Mutex::default(),
            export_wakeup: Notify::new(),
            exporter: std::sync::OnceLock::new(),
            webhooks: WebhookSender::new(parts.webhooks),
            owner_alert_timers: PartitionTimers::default(),
            deadline_timers: PartitionTimers::default(),
            delays: DelayTracker::default(),
            tls_session_stats: TlsSessionStats::default(),
            tls_reporter: std::sync::OnceLock::new(),
            trigger_index: TriggerIndex::default(),
            last_used: LastUsedWriter::default(),
            access_revisions: AccessRevisions::default(),
            in_flight: InFlightTasks::new(settings.in_flight_max),
            due_index: DueIndex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            abort: CancellationToken::new(),
            end: CancellationToken::new(),
            bodies: BodyBudget::new(settings.body_bytes_max),
            connections: Arc::new(Semaphore::new(settings.connections_max.max(1))),
            panicked: AtomicBool::new(false),
            bulk_command_wakeup: Notify::new(),
            bulk_command_progressed: Notify::new(),
            watched_commands: WatchedCommands::default(),
            destinations: DestinationPolicies::default(),
            holds: HoldCache::default(),
            pools: SourcePools::new(settings.source_addresses.clone(), settings.pools.clone()),
            smarthost_outages: Mutex::default(),
            resolving: Mutex::default(),
            lookup_failures: LookupFailures::default(),
            quarantined: Mutex::default(),
            delivery_policy: watch::Sender::new(Arc::new(settings.delivery_policy.clone())),
            settings,
        })
    }

    /// Takes this node's share of the work, and finds the queues in it. Returns when it has a share: at once,
    /// unless other nodes have everything and must give some up first.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn join_cluster<'a>(self: &'a Arc<Self>) -> BoxFuture<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            self.backfill_holds().await?;
            self.poll_cluster().await?;
            while self.leases.is_empty() && !self.stop.is_cancelled() {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                self.poll_cluster().await?;
            }
            if self.store.is_shared() {
                let worker = Arc::clone(self);
                self.spawn(async move { worker.run_membership().await });
            }
            self.quota_tracker.mark_behind();
            let worker = Arc::clone(self);
            self.spawn(async move { worker.drain_backlog().await });
            Ok(())
        })
    }

    /// Begins to deliver.
    pub fn start(self: &Arc<Self>) {
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_retention().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_outbox_dispatcher().await });
        self.outbox_wakeup.notify_one();
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_dsn_reporter().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_suppression_imports().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_aggregation().await });
        self.analytics_wakeup.notify_one();
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_conversion_exports().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_webhook_sender().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_last_used_writer().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_tls_stats_writer().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_bulk_commands().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_deadlines().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_delay_events().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.keep_counts().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.log_queue_hold().await });
        let worker = Arc::clone(self);
        self.spawn(async move { worker.run_queue_loader().await });
    }

    /// Looks at the other nodes until the worker stops.
    async fn run_membership(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {}
                () = self.stop.cancelled() => return,
            }
            let looked = tokio::select! {
                looked = self.poll_cluster() => looked,
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
    pub async fn poll_cluster(self: &Arc<Self>) -> Result<(), LeaseError> {
        let mut membership = self.membership.lock().await;
        let Some(member) = membership.as_mut() else { return Ok(()) };
        // Before there is anything to send.
        self.reload_holds().await?;
        let nodes = self.leases.nodes();
        let looked = member.poll(|partition| self.in_flight.attempting_in(partition)).await;
        drop(membership);
        if self.leases.nodes() != nodes {
            self.rebalance_pace();
        }
        self.store.queue_counts().track(&self.leases.held());
        // What cannot be read now is read at the next look: nobody else knows of these queues.
        for partition in self.leases.unloaded() {
            self.store.queue_counts().doubt(partition);
            self.load_due_index(partition).await?;
            self.load_endpoint_queues(partition).await?;
            self.dsn_reporter.scan_partition(partition);
            // What another node has put there meanwhile is looked for, too.
            self.deadline_timers.reset(partition);
            self.owner_alert_timers.reset(partition);
            self.leases.mark_loaded(partition);
        }
        looked?;
        self.reload_destinations().await?;
        self.reload_pools().await?;
        if self.store.is_shared() { self.apply_hints().await } else { Ok(()) }
    }

    /// Returns when a look has changed something, or would have.
    pub(crate) async fn wait_for_membership_change(&self) {
        let changed = self.leases.changed();
        let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, changed).await;
    }

    async fn load_due_index(&self, partition: u16) -> Result<(), store::engine::ReadError> {
        let mut from = None;
        while let Some((queue, due, next)) = store::task::next_queue(&self.store, partition, from).await? {
            let start = store::task::due_start(&queue, due);
            self.due_index.add(queue, due, start);
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
    pub fn set_tls_reporter(&self, reporter: TlsReporter) {
        let _ = self.tls_reporter.set(reporter);
    }

    /// The manners of this moment.
    #[must_use]
    pub fn delivery_policy(&self) -> Arc<DeliveryPolicy> {
        Arc::clone(&self.delivery_policy.borrow())
    }

    /// Takes on other manners; attempts under way are finished.
    pub fn reload_policy(&self, manners: DeliveryPolicy) {
        self.delivery_policy.send_replace(Arc::new(manners));
    }

    /// Hears when the manners change.
    pub(crate) fn watch_policy(&self) -> watch::Receiver<Arc<DeliveryPolicy>> {
        self.delivery_policy.subscribe()
    }

    /// Whether nothing is to be tried: the configuration says so, or the queue is held.
    pub(crate) fn is_paused(&self) -> bool {
        self.delivery_policy.borrow().paused || self.holds.is_queue_held()
    }

    /// Whether nothing more is to be begun, for now or for good.
    pub(crate) fn is_stopped_or_paused(&self) -> bool {
        self.stop.is_cancelled() || self.is_paused()
    }

    /// Returns when delivery is not paused, or ends.
    pub(crate) async fn wait_unpaused(&self) {
        let (mut manners, mut hold) = (self.watch_policy(), self.holds.watch_queue());
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
                self.abort.cancel();
                if tokio::time::timeout(COMMIT_MAX, self.tasks.wait()).await.is_err() {
                    self.end.cancel();
                    self.tasks.wait().await;
                }
            }
            // What the last attempts have shown.
            let _ = tokio::time::timeout(COMMIT_MAX, self.flush_tls_stats()).await;
            // Nothing is under way any more: others go on from here at their next look.
            if let Some(member) = self.membership.lock().await.take()
                && self.store.is_shared()
            {
                // A database that is away is not waited for: then the others wait until the lease is over.
                let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, member.leave()).await;
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
                tracing::error!("a task of the queue panicked: delivery stops, and begins anew after a restart");
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
    pub(crate) fn release_task(&self, task: &Task) {
        self.in_flight.finish(task.id);
        self.reload_later(task);
    }

    /// Has a task's queue looked at: whatever its row is by now, disk knows.
    pub(crate) fn reload_later(&self, task: &Task) {
        let queue = task.queue_name();
        let start = store::task::due_start(&queue, Timestamp::UNIX_EPOCH);
        self.due_index.add(queue, self.clock.now(), start);
    }

    /// Returns after the next settlement. What settles once this is called counts, also before the
    /// future is first polled: so a caller asks for it, looks, and waits, and misses nothing.
    pub fn next_outcome(&self) -> impl Future<Output = ()> + '_ {
        self.outcome_recorded.notified()
    }

    /// Says that an event was recorded: it is told now.
    pub fn notify_outbox(&self) {
        self.outbox_wakeup.notify_one();
    }

    /// The partitions that are ours.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Whether nothing of a queue is read before a later time.
    #[must_use]
    pub fn is_deferred(&self, queue: &QueueName) -> bool {
        self.due_index.due_of(queue).is_some_and(|due| due > self.clock.now())
    }

    /// Says that a task lies on disk and when it is due.
    pub(crate) fn schedule_task(&self, task: &Task) {
        self.due_index.add(task.queue_name(), task.due, store::task::key_of(task));
    }

    /// Tasks in memory that do not wait for a destination which is left alone.
    #[must_use]
    pub fn active_tasks(&self) -> usize {
        let now = self.clock.now();
        let sites = self
            .pools
            .all()
            .flat_map(|pool| pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect::<Vec<_>>());
        let waiting: usize =
            sites.filter(|site| site.unavailable_until(now).is_some()).map(|site| site.ready_count()).sum();
        self.in_flight.len().saturating_sub(waiting)
    }

    /// What this node did within the last hour.
    #[must_use]
    pub fn last_hour(&self) -> Counts {
        self.metrics.last_hour.sum(self.clock.now())
    }

    /// Tasks in memory, bytes of bodies in memory, queues with tasks on disk.
    #[must_use]
    pub fn memory_load(&self) -> (usize, usize, usize) {
        (self.in_flight.len(), self.bodies.buffered_bytes(), self.due_index.len())
    }
}

#[cfg(test)]
pub(crate) mod tests;
