//! The subsystems of delivery and of events: builds them in the order of their dependencies.
//!
//! ```text
//! accept ─► reserve ─[commit]─► dispatch ─► ready queue ─► connection (attempt.rs) ─► outcome
//!              │ no memory              ▲
//!              ▼                        │ a page at a time, while there is memory
//!          due index (one entry per queue, tasks on disk) ◄─ defer
//! ```
//!
//! Fresh mail is sent from memory. The store is read for retries, after a restart, and for tasks that found no memory.
//! Memory is bounded by the number of tasks ([`crate::in_flight`]), by bytes of messages ([`net::limit::body_budget`]) and by
//! connections. The steps are in task_reservation.rs, dispatch.rs and queue_loader.rs.
//!
//! Only the code that builds, starts and stops the server uses [`Subsystems`] and [`AccountSubsystems`]. A subsystem gets the handles that it
//! needs in its constructor.

mod accounts;
pub mod idle;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use message::address::DomainName;
use model::verp::VerpKey;
use net::clock::Clock;
use net::entropy::Entropy;
use store::engine::Store;

use crate::attempt::{DeliveryAgent, DeliveryAgentParts};
use crate::automations::trigger_index::TriggerIndex;
use crate::client::smtp::{SmtpDialer, TlsSecurityLevel};
use crate::cluster::{ClusterMember, ClusterMemberParts};
use crate::deadline_timers::DeadlineTimers;
use crate::delivery_metrics::DeliveryMetrics;
use crate::delivery_policy::{DeliveryPolicy, SharedDeliveryPolicy};
use crate::destination_admin::DestinationAdmin;
use crate::destination_queues::{DestinationQueues, ReadyQueueLimits};
use crate::dispatch::Dispatcher;
use crate::email_tracking::EmailTracking;
use crate::hold_admin::HoldAdmin;
use crate::holds::HoldCache;
use crate::last_hour::Counts;
use crate::membership::{KnownNodes, Membership};
use crate::outbox::OutboxDispatcher;
use crate::outcome_writer::OutcomeWriter;
use crate::owner_alert_queue::OwnerAlertQueue;
use crate::pacing::PaceLimits;
use crate::pause_state::PauseState;
use crate::pending_dsns::PendingDsns;
use crate::pool_admin::PoolAdmin;
use crate::product_events::aggregation::AnalyticsAggregator;
use crate::product_events::conversion_export::ConversionExporter;
use crate::queue_admin::QueueAdmin;
use crate::quota_tracker::QuotaTracker;
use crate::route_table::RouteTable;
use crate::routing::MxRouter;
use crate::scheduler::Scheduler;
use crate::services::Services;
use crate::source_pools::{PoolSettings, SourcePools};
use crate::supervisor::COMMIT_MAX;
use crate::tls_session_stats::TlsSessionStats;
use crate::webhooks::{WebhookSender, WebhooksParts};

pub use accounts::{AccountParts, AccountSubsystems};

/// Longest wait for attempts in progress at shutdown. A mail host may take ten minutes for its final reply, but the
/// service manager does not wait that long.
const DRAIN_MAX: Duration = Duration::from_secs(8);

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

/// Dependencies of the subsystems.
pub struct SubsystemParts {
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

/// Subsystems that deliver queued mail. Clones share them.
#[derive(Clone)]
pub struct DeliverySubsystems {
    pub policy: Arc<SharedDeliveryPolicy>,
    pub scheduler: Arc<Scheduler>,
    pub queues: Arc<DestinationQueues>,
    pub dispatcher: Arc<Dispatcher>,
    pub holds: Arc<HoldAdmin>,
    pub destinations: Arc<DestinationAdmin>,
    pub pools: Arc<PoolAdmin>,
    pub admin: Arc<QueueAdmin>,
    pub(crate) router: Arc<MxRouter>,
    pub(crate) tls_stats: Arc<TlsSessionStats>,
    pub(crate) pending_dsns: Arc<PendingDsns>,
    /// Host name for EHLO and DSNs.
    pub(crate) hostname: DomainName,
    /// Key of the signed return paths.
    pub(crate) verp: VerpKey,
}

/// Subsystems that process events. Clones share them.
#[derive(Clone)]
pub struct EventSubsystems {
    pub outbox: Arc<OutboxDispatcher>,
    pub(crate) quota_tracker: QuotaTracker,
    pub(crate) trigger_index: Arc<TriggerIndex>,
    pub webhooks: Arc<WebhookSender>,
    pub(crate) analytics: Arc<AnalyticsAggregator>,
    pub(crate) exporter: Arc<ConversionExporter>,
    pub owner_alerts: OwnerAlertQueue,
    /// One for all listeners: it serialises the opens and clicks of an email.
    pub email_tracking: Arc<EmailTracking>,
}

/// All subsystems of delivery and events.
pub struct Subsystems {
    pub services: Services,
    pub delivery: DeliverySubsystems,
    pub events: EventSubsystems,
    pub cluster: Arc<ClusterMember>,
}

impl Subsystems {
    /// Builds the subsystems; [`start`](crate::background_tasks::start) starts their tasks.
    #[must_use]
    pub fn new(parts: SubsystemParts, settings: SubsystemSettings) -> Self {
        let services = Services::new(parts.store, parts.clock, parts.entropy);
        let events = EventSubsystems::new(&services, parts.webhooks);
        let policy = Arc::new(SharedDeliveryPolicy::new(settings.delivery_policy));
        let holds = Arc::<HoldCache>::default();
        let scheduler = Arc::new(Scheduler::new(services.clock.clone(), Arc::clone(&holds), settings.in_flight_max));
        let router = Arc::new(parts.router);
        let queues = Arc::new(DestinationQueues::new(
            services.clone(),
            RouteTable::new(services.clock.clone(), Arc::clone(&router), Arc::clone(&scheduler)),
            Arc::clone(&scheduler),
            SourcePools::new(settings.source_addresses, settings.pools),
            ReadyQueueLimits { pace: settings.pace, ready_max: settings.ready_max },
        ));
        let pause = PauseState::new(Arc::clone(&policy), holds, services.stop.clone());
        let pending_dsns = Arc::<PendingDsns>::default();
        let tls_stats = Arc::new(TlsSessionStats::new(services.clone(), Arc::clone(&router)));
        let outcomes = OutcomeWriter::new(
            services.clone(),
            Arc::clone(&scheduler),
            Arc::clone(&policy),
            Arc::clone(&pending_dsns),
        );
        let agent = DeliveryAgentParts {
            queues: Arc::clone(&queues),
            outcomes,
            pause: pause.clone(),
            policy: Arc::clone(&policy),
            tls_stats: Arc::clone(&tls_stats),
            dialer: parts.dialer,
            tls: settings.tls,
            verp: parts.verp.clone(),
            connections_max: settings.connections_max,
            body_bytes_max: settings.body_bytes_max,
        };
        let agent = Arc::new(DeliveryAgent::new(services.clone(), agent));
        let deadlines = Arc::<DeadlineTimers>::default();
        let dispatcher = Arc::new(Dispatcher::new(services.clone(), agent, deadlines, pause));
        let delivery = DeliverySubsystems {
            holds: Arc::new(HoldAdmin::new(services.clone(), Arc::clone(&queues))),
            destinations: Arc::new(DestinationAdmin::new(services.clone(), Arc::clone(&queues))),
            pools: Arc::new(PoolAdmin::new(services.clone(), Arc::clone(&queues))),
            admin: Arc::new(QueueAdmin::new(services.clone(), Arc::clone(&dispatcher))),
            policy,
            scheduler,
            queues,
            dispatcher,
            router,
            tls_stats,
            pending_dsns,
            hostname: settings.hostname,
            verp: parts.verp,
        };
        let nodes = KnownNodes { may_exist: services.store.is_shared(), predecessor: parts.predecessor_node };
        let membership = Membership::new(
            services.store.clone(),
            nodes,
            services.clock.clone(),
            Arc::clone(&services.leases),
            parts.node,
        );
        let cluster = Arc::new(ClusterMember::new(services.clone(), cluster_parts(membership, &delivery, &events)));
        Self { services, delivery, events, cluster }
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
            let _ = tokio::time::timeout(COMMIT_MAX, self.delivery.tls_stats.flush()).await;
            // Nothing is in progress any more: other nodes take over.
            self.cluster.leave().await;
        })
    }
}

impl DeliverySubsystems {
    pub(crate) fn metrics(&self) -> &Arc<DeliveryMetrics> {
        &self.dispatcher.agent.outcomes.metrics
    }

    /// Counters of this node over the last hour.
    #[must_use]
    pub fn last_hour(&self) -> Counts {
        self.metrics().last_hour.sum(self.scheduler.clock.now())
    }

    /// Tasks in memory, bytes of bodies in memory, and queues with tasks on disk.
    #[must_use]
    pub fn memory_load(&self) -> (usize, usize, usize) {
        let Scheduler { in_flight, due_index, .. } = &*self.scheduler;
        (in_flight.len(), self.dispatcher.agent.bodies.buffered_bytes(), due_index.len())
    }
}

impl EventSubsystems {
    fn new(services: &Services, webhooks: WebhooksParts) -> Self {
        let owner_alerts = OwnerAlertQueue::new(services.clone());
        let webhooks = Arc::new(WebhookSender::new(services.clone(), Arc::clone(&owner_alerts.timers), webhooks));
        let quota_tracker = QuotaTracker::default();
        let trigger_index = Arc::<TriggerIndex>::default();
        let outbox = Arc::new(OutboxDispatcher::new(
            services.clone(),
            Arc::clone(&webhooks),
            quota_tracker.clone(),
            Arc::clone(&trigger_index),
        ));
        let exporter = Arc::new(ConversionExporter::new(services.clone()));
        let analytics = Arc::new(AnalyticsAggregator::new(services.clone(), Arc::clone(&exporter)));
        let email_tracking = Arc::new(EmailTracking::new(services.clone()));
        Self { outbox, quota_tracker, trigger_index, webhooks, analytics, exporter, owner_alerts, email_tracking }
    }
}

fn cluster_parts(
    membership: Membership,
    delivery: &DeliverySubsystems,
    events: &EventSubsystems,
) -> ClusterMemberParts {
    ClusterMemberParts {
        membership,
        holds: Arc::clone(&delivery.holds),
        destinations: Arc::clone(&delivery.destinations),
        pools: Arc::clone(&delivery.pools),
        queues: Arc::clone(&delivery.queues),
        deadlines: Arc::clone(&delivery.dispatcher.deadlines),
        pending_dsns: Arc::clone(&delivery.pending_dsns),
        admin: Arc::clone(&delivery.admin),
        outbox: Arc::clone(&events.outbox),
        webhooks: Arc::clone(&events.webhooks),
        owner_alert_timers: Arc::clone(&events.owner_alerts.timers),
    }
}

#[cfg(test)]
pub(crate) mod tests;
