//! The subsystems of delivery: builds them in the order of their dependencies.
//!
//! ```text
//! accept ─► reserve ─[commit]─► dispatch ─► ready queue ─► connection (attempt.rs) ─► outcome
//!              │ no memory              ▲
//!              ▼                        │ a page at a time, while there is memory
//!          due index (one entry per queue, tasks on disk) ◄─ defer
//! ```
//!
//! Fresh mail is sent from memory. The store is read for retries, after a restart, and for tasks that found no memory.
//! Memory is bounded by the number of tasks ([`crate::scheduler::in_flight`]), by bytes of messages ([`net::limit::body_budget`]) and by
//! connections. The steps are in task_reservation.rs, dispatch.rs and queue_loader.rs.
//!
//! Only the code that builds, starts and stops the server uses [`DeliverySubsystems`]. A subsystem gets the handles that it
//! needs in its constructor.

pub mod idle;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use message::address::DomainName;
use net::limit::body_budget::BodyBudget;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::admin::queue_admin::QueueAdmin;
use crate::cluster::lease::HEARTBEAT_INTERVAL;
use crate::cluster::membership::{KnownNodes, Membership};
use crate::cluster::{ClusterMember, PartitionListener};
use crate::delivery::attempt::DeliveryAgent;
use crate::delivery::client::smtp::{SmtpDialer, TlsSecurityLevel};
use crate::delivery::delivery_metrics::DeliveryMetrics;
use crate::delivery::delivery_policy::{DeliveryPolicy, SharedDeliveryPolicy};
use crate::delivery::dkim2::TransactionSigner;
use crate::delivery::keys::DeliveryKeys;
use crate::delivery::last_hour::Counts;
use crate::delivery::outcome_writer::OutcomeWriter;
use crate::delivery::tls_session_stats::TlsSessionStats;
use crate::dsn::pending_dsns::PendingDsns;
use crate::routing::MxRouter;
use crate::routing::lookup_failures::LookupFailures;
use crate::routing::route_table::RouteTable;
use crate::scheduler::Scheduler;
use crate::scheduler::deadline_timers::DeadlineTimers;
use crate::scheduler::delay_tracker::DelayTracker;
use crate::scheduler::destination_queues::{DestinationQueues, ReadyQueueLimits};
use crate::scheduler::dispatch::Dispatcher;
use crate::scheduler::holds::HoldCache;
use crate::scheduler::pacing::PaceLimits;
use crate::scheduler::pause_state::PauseState;
use crate::scheduler::source_pools::{PoolSettings, SourcePools};
use crate::services::Services;
use crate::supervisor::COMMIT_MAX;

/// Settings of the subsystems.
#[derive(Debug, Clone)]
pub struct SubsystemSettings {
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

/// Dependencies of delivery.
pub struct DeliveryParts {
    pub router: MxRouter,
    pub dialer: SmtpDialer,
    pub keys: DeliveryKeys,
}

/// Subsystems that deliver queued mail. Clones share them.
#[derive(Clone)]
pub struct DeliverySubsystems {
    pub policy: Arc<SharedDeliveryPolicy>,
    pub scheduler: Arc<Scheduler>,
    pub queues: Arc<DestinationQueues>,
    pub dispatcher: Arc<Dispatcher>,
    pub admin: Arc<QueueAdmin>,
    pub router: Arc<MxRouter>,
    pub(crate) tls_stats: Arc<TlsSessionStats>,
    pub pending_dsns: Arc<PendingDsns>,
    /// Host name for EHLO and DSNs.
    pub hostname: DomainName,
    pub keys: DeliveryKeys,
}

impl DeliverySubsystems {
    /// Builds the subsystems; [`start`](crate::background_tasks::start) starts their tasks.
    pub fn new(services: &Services, parts: DeliveryParts, settings: SubsystemSettings) -> Self {
        let policy = Arc::new(SharedDeliveryPolicy::new(settings.delivery_policy));
        let holds = Arc::<HoldCache>::default();
        let scheduler = Arc::new(Scheduler::new(services.clock.clone(), Arc::clone(&holds), settings.in_flight_max));
        let router = Arc::new(parts.router);
        let queues = Arc::new(DestinationQueues {
            services: services.clone(),
            routes: RouteTable::new(services.clock.clone(), Arc::clone(&router), Arc::clone(&scheduler)),
            scheduler: Arc::clone(&scheduler),
            pools: SourcePools::new(settings.source_addresses, settings.pools),
            lookup_failures: LookupFailures::default(),
            delays: DelayTracker::default(),
            limits: ReadyQueueLimits { pace: settings.pace, ready_max: settings.ready_max },
        });
        let pause = PauseState::new(Arc::clone(&policy), holds, services.stop.clone());
        let pending_dsns = Arc::<PendingDsns>::default();
        let tls_stats = Arc::new(TlsSessionStats::new(services.clone(), Arc::clone(&router)));
        let outcomes = OutcomeWriter {
            services: services.clone(),
            scheduler: Arc::clone(&scheduler),
            policy: Arc::clone(&policy),
            metrics: Arc::default(),
            pending_dsns: Arc::clone(&pending_dsns),
        };
        let agent = Arc::new(DeliveryAgent {
            services: services.clone(),
            queues: Arc::clone(&queues),
            scheduler: Arc::clone(&scheduler),
            outcomes,
            pause: pause.clone(),
            policy: Arc::clone(&policy),
            bodies: BodyBudget::new(settings.body_bytes_max),
            connections: Arc::new(Semaphore::new(settings.connections_max.max(1))),
            connections_max: settings.connections_max,
            dialer: parts.dialer,
            tls: settings.tls,
            tls_stats: Arc::clone(&tls_stats),
            keys: parts.keys.clone(),
            transaction_signer: OnceLock::new(),
            smarthost_outages: Mutex::default(),
        });
        let deadlines = Arc::<DeadlineTimers>::default();
        let dispatcher = Arc::new(Dispatcher::new(services.clone(), agent, deadlines, pause));
        Self {
            admin: Arc::new(QueueAdmin::new(services.clone(), Arc::clone(&dispatcher))),
            policy,
            scheduler,
            queues,
            dispatcher,
            router,
            tls_stats,
            pending_dsns,
            hostname: settings.hostname,
            keys: parts.keys,
        }
    }

    /// Makes this node a member of the cluster, under a name that is new at every start. `predecessor` is known to be dead
    /// because this node replaces it. The work of `listener` belongs to partitions, too. Call it once.
    #[must_use]
    pub fn cluster_member(
        &self,
        services: &Services,
        node: String,
        predecessor: Option<String>,
        listener: Arc<dyn PartitionListener>,
    ) -> ClusterMember {
        let nodes = KnownNodes { may_exist: services.store.is_shared(), predecessor };
        let membership =
            Membership::new(services.store.clone(), nodes, services.clock.clone(), Arc::clone(&services.leases), node);
        ClusterMember {
            services: services.clone(),
            membership: tokio::sync::Mutex::new(Some(membership)),
            queues: Arc::clone(&self.queues),
            deadlines: Arc::clone(&self.dispatcher.deadlines),
            pending_dsns: Arc::clone(&self.pending_dsns),
            admin: Arc::clone(&self.admin),
            listener,
            unknown_hints: Mutex::default(),
        }
    }

    /// Stops all tasks of `services` after attempts in progress have finished, and leaves the cluster. Attempts that take
    /// longer than `patience` are aborted.
    pub async fn shut_down(&self, services: &Services, cluster: &ClusterMember, patience: Duration) {
        let mut drained = std::pin::pin!(services.supervisor.shut_down(patience));
        loop {
            tokio::select! {
                () = &mut drained => break,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => cluster.renew_leases().await,
            }
        }
        // Write the TLS session counts of the last attempts.
        let _ = tokio::time::timeout(COMMIT_MAX, self.tls_stats.flush()).await;
        // Nothing is in progress any more: other nodes take over.
        cluster.leave().await;
    }

    /// Signs each transaction of domains that use DKIM2. Only the first call has an effect.
    pub fn set_transaction_signer(&self, signer: TransactionSigner) {
        let _ = self.dispatcher.agent.transaction_signer.set(signer);
    }

    /// Whether delivery is paused, held or stopped.
    pub fn pause_state(&self) -> &PauseState {
        &self.dispatcher.pause
    }

    pub(crate) fn metrics(&self) -> &Arc<DeliveryMetrics> {
        &self.dispatcher.agent.outcomes.metrics
    }

    /// Counters of this node over the last hour.
    pub fn last_hour(&self) -> Counts {
        self.metrics().last_hour.sum(self.scheduler.clock.now())
    }

    /// Tasks in memory, bytes of bodies in memory, and queues with tasks on disk.
    pub fn memory_load(&self) -> (usize, usize, usize) {
        let Scheduler { in_flight, due_index, .. } = &*self.scheduler;
        (in_flight.len(), self.dispatcher.agent.bodies.buffered_bytes(), due_index.len())
    }
}

#[cfg(test)]
pub(crate) mod tests;
