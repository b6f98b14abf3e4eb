//! The ready queues of destinations: one for each source pool, set of mail hosts and TLS requirement, with their limits.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use message::address::DomainName;
use message::classify::mailbox_provider;
use model::destination::PaceOverride;
use model::task::{QueueName, Task, TaskTlsRequirement};

use crate::routing::MailRoute;
use crate::routing::lookup_failures::LookupFailures;
use crate::routing::route_table::RouteTable;
use crate::scheduler::Scheduler;
use crate::scheduler::delay_tracker::DelayTracker;
use crate::scheduler::pacing::PaceLimits;
use crate::scheduler::ready_queue::{DeliveryObstacle, ReadyQueue, ReadyQueueStatus, SendLimits};
use crate::scheduler::source_pools::{ProviderKey, SourcePool, SourcePools};
use crate::services::Services;

/// Ready queues of a pool above which idle ones are removed. Below it they are retained, because they remember their
/// rates.
const READY_QUEUES_MAX: usize = 20_000;
/// Connections to all hosts of a large provider, as a multiple of the limit of one host group.
const PROVIDER_CONNECTIONS: u32 = 5;

/// Rate limits for the hosts of a route.
struct RoutePace {
    /// Limits of these hosts.
    limits: PaceLimits,
    /// Shared limits of all hosts of a provider.
    provider: Option<(ProviderKey, PaceLimits)>,
}

impl RoutePace {
    /// Divides the limits among the nodes.
    fn per_node(self, nodes: u32) -> Self {
        let provider = self.provider.map(|(name, limits)| (name, limits.per_node(nodes)));
        Self { limits: self.limits.per_node(nodes), provider }
    }
}

/// Limits of ready queues.
pub(crate) struct ReadyQueueLimits {
    /// Pace by the domain of a ready queue's first host; `None` for all others.
    pub(crate) pace: Vec<(Option<DomainName>, PaceLimits)>,
    /// Largest number of tasks in one ready queue.
    pub(crate) ready_max: usize,
}

/// The ready queues of all destinations.
pub struct DestinationQueues {
    pub(crate) services: Services,
    pub(crate) routes: RouteTable,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) pools: SourcePools,
    /// Domains whose MX lookup fails.
    pub(crate) lookup_failures: LookupFailures,
    /// Queues that may need a delay event.
    pub(crate) delays: DelayTracker,
    pub(crate) limits: ReadyQueueLimits,
}

impl DestinationQueues {
    /// The ready queue of a route and source pool, created if needed.
    pub(crate) fn ready_queue(
        &self,
        pool: &SourcePool,
        route: &Arc<MailRoute>,
        tls: TaskTlsRequirement,
    ) -> Arc<ReadyQueue> {
        let mut sites = pool.ready_queues();
        let sites = &mut sites[tls as usize];
        if let Some(site) = sites.get(&route.queue_name) {
            return Arc::clone(site);
        }
        let now = self.services.clock.now();
        // Amortised: idle queues are removed only once for many new ones.
        if sites.len() >= READY_QUEUES_MAX && sites.len().is_multiple_of(READY_QUEUES_MAX / 10) {
            sites.retain(|_, site| !site.is_idle(now));
        }
        let limits = self.send_limits(pool, route, self.services.leases.nodes(), now);
        let site =
            Arc::new(ReadyQueue::new(Arc::clone(route), Arc::clone(&pool.source), tls, limits, self.limits.ready_max));
        sites.insert(route.queue_name.clone(), Arc::clone(&site));
        site
    }

    /// Recomputes the limits of all ready queues after the number of nodes or an override changed.
    pub(crate) fn rebalance_pace(&self) {
        let (nodes, now) = (self.services.leases.nodes(), self.services.clock.now());
        for pool in self.pools.all() {
            for site in pool.ready_queues().iter().flat_map(HashMap::values) {
                site.set_limits(self.send_limits(pool, &site.route, nodes, now));
            }
        }
    }

    /// Limits of a pool's ready queue of a route, on one of `nodes`.
    fn send_limits(&self, pool: &SourcePool, route: &MailRoute, nodes: u32, now: Timestamp) -> SendLimits {
        let pace = self.route_pace(route).per_node(nodes);
        SendLimits {
            pace: pace.limits,
            provider: pool.provider_limits(pace.provider),
            warm_up: pool.queue_warm_up_budget(route, now),
        }
    }

    /// Rate limits of a route: from an override, the configuration or the defaults.
    fn route_pace(&self, route: &MailRoute) -> RoutePace {
        let (configured, limits) = self.pace_limits(route);
        let ordered = self.routes.policies.pace(route);
        let limits = ordered.as_ref().map_or(limits, |(_, pace)| limits.with_order(*pace));
        let known_provider = route.first_host().and_then(mailbox_provider);
        // As many connections as a large provider gets by default.
        let raised_limits = || {
            let connections_max = limits.connections_max.saturating_mul(PROVIDER_CONNECTIONS);
            PaceLimits { connections_max, ..limits }
        };
        let provider = match (ordered, configured) {
            // The override does not set a connection limit.
            (Some((name, PaceOverride { connections_max: None, .. })), None) if known_provider.is_some() => {
                Some((ProviderKey::Paced(name), raised_limits()))
            }
            (Some((name, _)), _) | (None, Some(name)) => Some((ProviderKey::Paced(name), limits)),
            (None, None) => known_provider.map(|name| {
                (ProviderKey::Known(name.clone()), PaceLimits { messages_per_second: None, ..raised_limits() })
            }),
        };
        RoutePace { limits, provider }
    }

    fn pace_limits(&self, route: &MailRoute) -> (Option<DomainName>, PaceLimits) {
        let configured_limits = |wanted: Option<&DomainName>| {
            self.limits.pace.iter().find(|(domain, _)| domain.as_ref() == wanted).map(|(_, limits)| *limits)
        };
        let mut name = route.first_host().cloned();
        while let Some(domain) = name {
            if let Some(limits) = configured_limits(Some(&domain)) {
                return (Some(domain), limits);
            }
            name = domain.parent();
        }
        (None, configured_limits(None).unwrap_or_default())
    }

    /// Retries a task's destination now, even if it is dead.
    pub(crate) fn retry_destination_now(&self, task: &Task) {
        if let Some(route) = self.routes.last_route(task) {
            self.ready_queues_of(task, &route).for_each(|site| site.retry_now());
            // Waiting queues of the same provider are woken too.
            self.pools.candidates_for(task, &route).for_each(|pool| pool.wake());
        }
    }

    /// Status of all ready queues, the busiest first.
    pub fn ready_queue_statuses(&self) -> Vec<ReadyQueueStatus> {
        let now = self.services.clock.now();
        let of_pool = |pool: &Arc<SourcePool>| -> Vec<ReadyQueueStatus> {
            pool.ready_queues().iter().flat_map(HashMap::values).map(|site| site.status(now)).collect()
        };
        let mut statuses: Vec<_> = self.pools.all().flat_map(of_pool).collect();
        statuses.sort_by_key(|s| std::cmp::Reverse((s.ready, s.connections.counted)));
        statuses
    }

    /// Returns the existing ready queues in which a task may wait.
    pub(crate) fn ready_queues_of(&self, task: &Task, route: &MailRoute) -> impl Iterator<Item = Arc<ReadyQueue>> {
        let tls = task.tls_requirement();
        self.pools.candidates_for(task, route).filter_map(move |pool| pool.ready_queue(route, tls))
    }

    /// Returns the ready queue that holds a task, or else the existing one that it would be added to.
    pub(crate) fn ready_queue_of(&self, task: &Task, route: &MailRoute) -> Option<Arc<ReadyQueue>> {
        let holds = self.ready_queues_of(task, route).find(|site| site.position(task).is_some());
        holds.or_else(|| {
            let pool = self.pools.preview_for_account(task.account, route, self.services.clock.now());
            pool.ready_queue(route, task.tls_requirement())
        })
    }

    /// Schedules a scan of a queue if its destination is unavailable.
    pub(crate) fn note_delay(&self, queue: QueueName, site: &ReadyQueue) {
        if let Some(obstacle) = site.delivery_obstacle(self.services.clock.now()) {
            self.delays.add(queue, obstacle);
        }
    }

    /// Why nothing is delivered to a task's destination, if so.
    pub(crate) fn delivery_obstacle(&self, task: &Task) -> Option<DeliveryObstacle> {
        let now = self.services.clock.now();
        let route = self.routes.last_route(task)?;
        self.ready_queues_of(task, &route).find_map(|site| site.delivery_obstacle(now))
    }

    /// The last error of a task's destination: its last refusal, a connection error, or why its MX lookup failed.
    pub(crate) fn last_error(&self, task: &Task) -> Option<String> {
        let of_site = || {
            let route = self.routes.last_route(task)?;
            self.ready_queues_of(task, &route).find_map(|site| site.last_error())
        };
        match (self.lookup_failures.of(task.address.domain(), self.services.clock.now()), of_site()) {
            (Some(lookup), Some((error, at))) if at > lookup.at => Some(error),
            (Some(lookup), _) => Some(lookup.error),
            (None, of_site) => of_site.map(|(error, _)| error),
        }
    }

    /// Returns whether the newest fact about a task's destination is a failed MX lookup.
    pub(crate) fn is_lookup_failing(&self, task: &Task) -> bool {
        let Some(lookup) = self.lookup_failures.of(task.address.domain(), self.services.clock.now()) else {
            return false;
        };
        let route = self.routes.last_route(task);
        let of_site = route.and_then(|route| self.ready_queues_of(task, &route).find_map(|site| site.last_error()));
        of_site.is_none_or(|(_, at)| at <= lookup.at)
    }

    /// Number of tasks in memory, except those in unavailable ready queues.
    pub fn active_tasks(&self) -> usize {
        let now = self.services.clock.now();
        let sites = self
            .pools
            .all()
            .flat_map(|pool| pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect::<Vec<_>>());
        let waiting: usize =
            sites.filter(|site| site.unavailable_until(now).is_some()).map(|site| site.ready_count()).sum();
        self.scheduler.in_flight.len().saturating_sub(waiting)
    }
}
