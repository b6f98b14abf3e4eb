//! Worker: shared state and lifecycle of delivery, from accepted mail to connections and from due tasks on disk back
//! into memory.
//!
//! ```text
//! accept ─► reserve ─[commit]─► dispatch ─► ready queue ─► connection (attempt.rs) ─► outcome
//!              │ no memory              ▲
//!              ▼                        │ a page at a time, while there is memory
//!          due index (one entry per queue, tasks on disk) ◄─ defer
//! ```
//!
//! Fresh mail is sent from memory. The store is read for retries, after a restart, and for tasks that found no memory.
//! Memory is bounded by the number of tasks ([`crate::in_flight`]), by bytes of messages ([`crate::body_budget`]) and by
//! connections. The steps are in task_reservation.rs, dispatch.rs and queue_loader.rs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::DomainName;
use mail::id::EmailId;
use mail::outage::Outage;
use mail::slug::SmarthostName;
use mail::task::{QueueName, Task};
use mail::verp::VerpKey;
use store::engine::{Key, Store};
use tokio::sync::{Notify, Semaphore};

use crate::automations::trigger_index::TriggerIndex;
use crate::body_budget::BodyBudget;
use crate::client::smtp::{SmtpDialer, TlsSecurityLevel};
use crate::clock::Clock;
use crate::delays::DelayTracker;
use crate::delivery_metrics::DeliveryMetrics;
use crate::delivery_policy::{DeliveryPolicy, SharedDeliveryPolicy};
use crate::destination_policies::DestinationPolicies;
use crate::dkim2::TransactionSigner;
use crate::dsn_builder::DsnReporter;
use crate::due_index::DueIndex;
use crate::entropy::Entropy;
use crate::holds::HoldCache;
use crate::in_flight::InFlightTasks;
use crate::last_hour::Counts;
use crate::lease::{HEARTBEAT_INTERVAL, Leases};
use crate::lookup_failures::LookupFailures;
use crate::membership::{KnownNodes, LeaseError, Membership};
use crate::outbox::OutboxDispatcher;
use crate::outbox::recent_events::RecentEvents;
use crate::pacing::PaceLimits;
use crate::partition_timers::PartitionTimers;
use crate::product_events::{AnalyticsAggregator, ConversionExporter};
use crate::queue_admin::WatchedCommands;
use crate::quota_tracker::QuotaTracker;
use crate::ready_queue::ReadyTask;
use crate::retention::RetentionJob;
use crate::routing::MxRouter;
use crate::services::Services;
use crate::source_pools::{PoolSettings, SourcePools};
use crate::supervisor::COMMIT_MAX;
use crate::tls_reporter::TlsReporter;
use crate::tls_session_stats::TlsSessionStats;
use crate::webhooks::{WebhookSender, WebhooksParts};

/// Longest wait for attempts in progress at shutdown. A mail host may take ten minutes for its final reply, but the
/// service manager does not wait that long.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// Interval for checking which partitions need a count of their recipients.
const COUNT_AGAIN: Duration = Duration::from_secs(2);

/// Settings of the worker.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Host name for EHLO and DSNs.
    pub hostname: DomainName,
    /// Policy that may be reloaded at runtime.
    pub delivery_policy: DeliveryPolicy,
    /// Pace by the domain of a ready queue's first host; `None` for all others.
    pub pace: Vec<(Option<DomainName>, PaceLimits)>,
    /// TLS level for all hosts.
    pub tls: TlsSecurityLevel,
    /// Local addresses of the default pool; if empty, the system chooses.
    pub source_addresses: Vec<std::net::IpAddr>,
    /// Additional source pools.
    pub pools: Vec<PoolSettings>,
    /// Largest number of tasks in memory.
    pub in_flight_max: usize,
    /// Largest number of tasks in one ready queue.
    pub ready_max: usize,
    /// Largest number of connections to mail hosts.
    pub connections_max: usize,
    /// Largest size of buffered bodies, in bytes.
    pub body_bytes_max: usize,
}

/// Dependencies of the worker.
pub struct WorkerParts {
    pub store: Store,
    pub clock: Clock,
    pub entropy: Entropy,
    pub router: MxRouter,
    pub dialer: SmtpDialer,
    /// Key of the signed return paths.
    pub verp: VerpKey,
    /// Name of this node in the cluster, new at every start.
    pub node: String,
    pub webhooks: WebhooksParts,
    /// Node that is known to be dead because this one replaces it.
    pub predecessor_node: Option<String>,
}

/// State shared by all parts of the queue.
pub struct Worker {
    pub(crate) services: Services,
    pub(crate) router: Arc<MxRouter>,
    pub(crate) dialer: SmtpDialer,
    pub(crate) verp: VerpKey,
    /// Signer of transactions (DKIM2), if enabled.
    pub(crate) transaction_signer: std::sync::OnceLock<TransactionSigner>,
    pub(crate) settings: WorkerSettings,
    pub policy: Arc<SharedDeliveryPolicy>,
    pub(crate) in_flight: InFlightTasks,
    pub(crate) due_index: DueIndex,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) bodies: BodyBudget,
    pub(crate) metrics: DeliveryMetrics,
    pub(crate) recent_events: Arc<RecentEvents>,
    pub outbox: Arc<OutboxDispatcher>,
    pub(crate) quota_tracker: QuotaTracker,
    pub(crate) dsn_reporter: DsnReporter,
    pub(crate) analytics: Arc<AnalyticsAggregator>,
    pub(crate) exporter: Arc<ConversionExporter>,
    pub(crate) webhooks: Arc<WebhookSender>,
    /// Next scan of each partition for owner alerts.
    pub(crate) owner_alert_timers: Arc<PartitionTimers>,
    /// Next scan of each partition for expired mail.
    pub(crate) deadline_timers: PartitionTimers,
    /// Queues that may need a delay event.
    pub(crate) delays: DelayTracker,
    pub(crate) tls_stats: Arc<TlsSessionStats>,
    /// TLS reporter, if reports are enabled.
    pub(crate) tls_reporter: std::sync::OnceLock<TlsReporter>,
    /// Triggers and timers of automations.
    pub(crate) trigger_index: Arc<TriggerIndex>,
    membership: tokio::sync::Mutex<Option<Membership>>,
    /// Wakes the execution of bulk commands.
    pub(crate) bulk_command_wakeup: Notify,
    /// Signals progress of bulk commands.
    pub(crate) bulk_command_progressed: Notify,
    pub(crate) watched_commands: WatchedCommands,
    /// Emails with a pending command that this node does not understand, and the command. Each was logged.
    pub(crate) unknown_hints: Mutex<HashSet<(EmailId, String)>>,
    pub(crate) destinations: DestinationPolicies,
    /// Holds of accounts and of the whole queue.
    pub(crate) holds: HoldCache,
    pub(crate) pools: SourcePools,
    /// Unreachable smarthosts, for the log. Their number is bounded by the configuration.
    pub(crate) smarthost_outages: Mutex<HashMap<SmarthostName, Outage>>,
    pub(crate) resolving: Mutex<HashMap<DomainName, Vec<ReadyTask>>>,
    /// Domains whose MX lookup fails.
    pub(crate) lookup_failures: LookupFailures,
    /// Keys of undecodable task rows that were logged.
    pub(crate) quarantined: Mutex<HashSet<Key>>,
}

impl Worker {
    /// Creates a worker; [`Worker::start`] starts it.
    #[must_use]
    pub fn new(parts: WorkerParts, settings: WorkerSettings) -> Arc<Self> {
        let services = Services::new(parts.store, parts.clock, parts.entropy);
        let neighbours = KnownNodes { may_exist: services.store.is_shared(), predecessor: parts.predecessor_node };
        let membership = Membership::new(
            services.store.clone(),
            neighbours,
            services.clock.clone(),
            Arc::clone(&services.leases),
            parts.node,
        );
        let router = Arc::new(parts.router);
        let owner_alert_timers = Arc::<PartitionTimers>::default();
        let webhooks = Arc::new(WebhookSender::new(services.clone(), Arc::clone(&owner_alert_timers), parts.webhooks));
        let (quota_tracker, recent_events) = (QuotaTracker::default(), Arc::<RecentEvents>::default());
        let trigger_index = Arc::<TriggerIndex>::default();
        let outbox = Arc::new(OutboxDispatcher::new(
            services.clone(),
            Arc::clone(&webhooks),
            quota_tracker.clone(),
            Arc::clone(&recent_events),
            Arc::clone(&trigger_index),
        ));
        let exporter = Arc::new(ConversionExporter::new(services.clone()));
        Arc::new(Self {
            membership: tokio::sync::Mutex::new(Some(membership)),
            tls_stats: Arc::new(TlsSessionStats::new(services.clone(), Arc::clone(&router))),
            router,
            recent_events,
            outbox,
            quota_tracker,
            analytics: Arc::new(AnalyticsAggregator::new(services.clone(), Arc::clone(&exporter))),
            exporter,
            webhooks,
            owner_alert_timers,
            trigger_index,
            dialer: parts.dialer,
            verp: parts.verp,
            transaction_signer: std::sync::OnceLock::new(),
            metrics: DeliveryMetrics::default(),
            dsn_reporter: DsnReporter::default(),
            deadline_timers: PartitionTimers::default(),
            delays: DelayTracker::default(),
            tls_reporter: std::sync::OnceLock::new(),
            in_flight: InFlightTasks::new(settings.in_flight_max),
            due_index: DueIndex::default(),
            bodies: BodyBudget::new(settings.body_bytes_max),
            connections: Arc::new(Semaphore::new(settings.connections_max.max(1))),
            bulk_command_wakeup: Notify::new(),
            bulk_command_progressed: Notify::new(),
            watched_commands: WatchedCommands::default(),
            unknown_hints: Mutex::default(),
            destinations: DestinationPolicies::default(),
            holds: HoldCache::default(),
            pools: SourcePools::new(settings.source_addresses.clone(), settings.pools.clone()),
            smarthost_outages: Mutex::default(),
            resolving: Mutex::default(),
            lookup_failures: LookupFailures::default(),
            quarantined: Mutex::default(),
            policy: Arc::new(SharedDeliveryPolicy::new(settings.delivery_policy.clone())),
            settings,
            services,
        })
    }

    /// Joins the cluster: acquires this node's share of the partitions and loads their queues. Returns when it owns a
    /// partition, which takes longer only if other nodes own all of them and must release some first.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn join_cluster<'a>(self: &'a Arc<Self>) -> BoxFuture<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            self.backfill_holds().await?;
            self.poll_cluster().await?;
            while self.services.leases.is_empty() && !self.services.stop.is_cancelled() {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                self.poll_cluster().await?;
            }
            if self.services.store.is_shared() {
                let worker = Arc::clone(self);
                self.services.spawn(async move { worker.run_membership().await });
            }
            self.quota_tracker.mark_behind();
            self.services.spawn(Arc::clone(&self.outbox).drain_backlog());
            Ok(())
        })
    }

    /// Starts delivery and all background jobs.
    pub fn start(self: &Arc<Self>) {
        let Self { services, .. } = &**self;
        services.spawn(RetentionJob::new(services.clone(), Arc::clone(&self.policy)).run());
        services.spawn(Arc::clone(&self.outbox).run());
        services.outbox_wakeup.notify_one();
        services.spawn(Arc::clone(self).run_dsn_reporter());
        services.spawn(Arc::clone(&self.analytics).run());
        self.analytics.wake();
        services.spawn(Arc::clone(&self.exporter).run());
        services.spawn(Arc::clone(&self.webhooks).run());
        services.spawn(Arc::clone(&self.tls_stats).run());
        services.spawn(Arc::clone(self).run_bulk_commands());
        services.spawn(Arc::clone(self).run_deadlines());
        services.spawn(Arc::clone(self).run_delay_events());
        services.spawn(Arc::clone(self).keep_counts());
        services.spawn(Arc::clone(self).log_queue_hold());
        services.spawn(Arc::clone(self).run_queue_loader());
    }

    /// Polls the cluster until the worker stops.
    async fn run_membership(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {}
                () = self.services.stop.cancelled() => return,
            }
            let polled = tokio::select! {
                polled = self.poll_cluster() => polled,
                () = self.services.stop.cancelled() => return,
            };
            if let Err(error) = polled {
                store::warn_unless_away!(self.services.store, %error, "cannot poll the cluster; retrying");
            }
        }
    }

    /// Polls the cluster once: takes over free partitions, loads their queues, and applies hints and orders of other
    /// nodes.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn poll_cluster(self: &Arc<Self>) -> Result<(), LeaseError> {
        let mut membership = self.membership.lock().await;
        let Some(member) = membership.as_mut() else { return Ok(()) };
        // Load holds before any task can be sent.
        self.reload_holds().await?;
        let nodes = self.services.leases.nodes();
        let polled = member.poll(|partition| self.in_flight.attempting_in(partition)).await;
        drop(membership);
        if self.services.leases.nodes() != nodes {
            self.rebalance_pace();
        }
        self.services.store.queue_counts().track(&self.services.leases.held());
        // A read error is retried at the next poll, because no other node loads these queues.
        for partition in self.services.leases.unloaded() {
            self.services.store.queue_counts().invalidate(partition);
            self.load_due_index(partition).await?;
            self.webhooks.load_endpoint_queues(partition).await?;
            self.dsn_reporter.scan_partition(partition);
            // Scan again for rows that another node may have added.
            self.deadline_timers.reset(partition);
            self.owner_alert_timers.reset(partition);
            self.services.leases.mark_loaded(partition);
        }
        polled?;
        self.reload_destinations().await?;
        self.reload_pools().await?;
        if self.services.store.is_shared() { self.apply_hints().await } else { Ok(()) }
    }

    async fn load_due_index(&self, partition: u16) -> Result<(), store::engine::ReadError> {
        let mut from = None;
        while let Some((queue, due, next)) = store::task::next_queue(&self.services.store, partition, from).await? {
            let start = store::task::due_start(&queue, due);
            self.due_index.add(queue, due, start);
            from = Some(next);
        }
        Ok(())
    }

    /// Counts the tasks of uncounted partitions, a page at a time, until the worker stops.
    async fn keep_counts(self: Arc<Self>) {
        loop {
            match self.services.store.queue_counts().read(&self.services.store, self.services.clock.now()).await {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => tokio::select! {
                    () = self.services.leases.changed() => {}
                    () = tokio::time::sleep(COUNT_AGAIN) => {}
                    () = self.services.stop.cancelled() => return,
                },
                Err(error) => {
                    store::warn_unless_away!(self.services.store, %error, "cannot count queued recipients; retrying");
                    tokio::select! {
                        () = tokio::time::sleep(COUNT_AGAIN) => {}
                        () = self.services.stop.cancelled() => return,
                    }
                }
            }
            if self.services.stop.is_cancelled() {
                return;
            }
        }
    }

    /// Enables TLS reports. Only the first call has an effect.
    pub fn set_tls_reporter(&self, reporter: TlsReporter) {
        let _ = self.tls_reporter.set(reporter);
    }

    /// True if delivery is paused by the configuration or the queue is held.
    pub(crate) fn is_paused(&self) -> bool {
        self.policy.is_paused() || self.holds.is_queue_held()
    }

    /// True if no new attempt may begin.
    pub(crate) fn is_stopped_or_paused(&self) -> bool {
        self.services.stop.is_cancelled() || self.is_paused()
    }

    /// Waits until delivery is not paused, or stops.
    pub(crate) async fn wait_unpaused(&self) {
        let (mut policy, mut hold) = (self.policy.subscribe(), self.holds.watch_queue());
        while self.is_paused() {
            // `changed` cannot fail, because this worker owns the senders.
            tokio::select! {
                _ = policy.changed() => {}
                _ = hold.changed() => {}
                () = self.services.stop.cancelled() => return,
            }
        }
    }

    /// Stops delivery after attempts in progress have finished. Those that take longer than [`DRAIN_MAX`] are aborted:
    /// attempts that may have been delivered are recorded as unconfirmed, all others are repeated after the next start.
    /// Waiting tasks stay on disk.
    pub async fn drain(&self) {
        self.drain_within(DRAIN_MAX).await;
    }

    /// Like [`Self::drain`], with another time limit.
    pub fn drain_within(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.services.supervisor.shut_down(patience).await;
            // Write the TLS session counts of the last attempts.
            let _ = tokio::time::timeout(COMMIT_MAX, self.tls_stats.flush()).await;
            // Nothing is in progress any more: other nodes take over at their next poll.
            if let Some(member) = self.membership.lock().await.take()
                && self.services.store.is_shared()
            {
                // Do not wait for an unreachable database: other nodes then take over when the lease expires.
                let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, member.leave()).await;
            }
        })
    }

    /// True if delivery has stopped permanently because of a panic and a restart is needed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.services.has_failed()
    }

    /// Releases a task without an outcome and reloads its queue from disk.
    pub(crate) fn release_task(&self, task: &Task) {
        self.in_flight.finish(task.id);
        self.reload_later(task);
    }

    /// Schedules the task's queue to be read from disk: the stored row is authoritative.
    pub(crate) fn reload_later(&self, task: &Task) {
        let queue = task.queue_name();
        let start = store::task::due_start(&queue, Timestamp::UNIX_EPOCH);
        self.due_index.add(queue, self.services.clock.now(), start);
    }

    /// Resolves after the next outcome. Outcomes after this call count even before the future is first polled, so a
    /// caller can create it, check a condition and then wait without missing one.
    pub fn next_outcome(&self) -> impl Future<Output = ()> + '_ {
        self.services.outcome_recorded.notified()
    }

    /// Wakes the outbox dispatcher after an event was recorded.
    pub fn notify_outbox(&self) {
        self.services.outbox_wakeup.notify_one();
    }

    /// The partition leases of this node.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.services.leases
    }

    /// True if the next scan of a queue is in the future.
    #[must_use]
    pub fn is_deferred(&self, queue: &QueueName) -> bool {
        self.due_index.due_of(queue).is_some_and(|due| due > self.services.clock.now())
    }

    /// Adds a task on disk to the due index.
    pub(crate) fn schedule_task(&self, task: &Task) {
        self.due_index.add(task.queue_name(), task.due, store::task::key_of(task));
    }

    /// Number of tasks in memory, except those in unavailable ready queues.
    #[must_use]
    pub fn active_tasks(&self) -> usize {
        let now = self.services.clock.now();
        let sites = self
            .pools
            .all()
            .flat_map(|pool| pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect::<Vec<_>>());
        let waiting: usize =
            sites.filter(|site| site.unavailable_until(now).is_some()).map(|site| site.ready_count()).sum();
        self.in_flight.len().saturating_sub(waiting)
    }

    /// Counters of this node over the last hour.
    #[must_use]
    pub fn last_hour(&self) -> Counts {
        self.metrics.last_hour.sum(self.services.clock.now())
    }

    /// Tasks in memory, bytes of bodies in memory, and queues with tasks on disk.
    #[must_use]
    pub fn memory_load(&self) -> (usize, usize, usize) {
        (self.in_flight.len(), self.bodies.buffered_bytes(), self.due_index.len())
    }
}

#[cfg(test)]
pub(crate) mod tests;
