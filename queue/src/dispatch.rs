//! Dispatch: puts a task into the ready queue of its destination as soon as its route is known.
//!
//! A task that finds its ready queue full returns to disk. The queue loader reads it again when there is capacity. So a
//! slow or dead destination fills its own ready queue and its own stored queues, and no other destination's.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::address::DomainName;
use mail::classify::mailbox_provider;
use mail::destination::PaceOverride;
use mail::outcome::{AttemptPhase, Outcome};
use mail::task::{Task, TaskTlsRequirement};
use mail::tls_report::{AppliedTlsPolicy, TlsFault, TlsResultType};

use crate::attempt;
use crate::commit_retries::CommitRetries;
use crate::outcome::AttemptResult;
use crate::pacing::PaceLimits;
use crate::ready_queue::{ConnectDecision, EnqueueOutcome, ReadyQueue, ReadyTask, SiteStanding};
use crate::routing::{MailRoute, RouteError};
use crate::source_pools::{ProviderKey, SourcePool};
use crate::worker::Worker;

/// Concurrent MX lookups. More would time out in the resolver's own queue and count as failures.
const LOOKUPS_MAX: usize = 512;
/// Tasks in memory that wait for one domain's lookup.
const WAITING_PER_DOMAIN_MAX: usize = 32;
/// Ready queues of a pool above which idle ones are removed. Below it they are retained, because they remember their
/// rates.
const READY_QUEUES_MAX: usize = 20_000;
/// Connections to all hosts of a large provider, as a multiple of the limit of one host group.
const PROVIDER_CONNECTIONS: u32 = 5;
/// Concurrent commits of outcomes for tasks that a lookup left without a route.
const OUTCOME_CONCURRENCY: usize = 64;
/// Retry delay when there is no capacity for a lookup or a row cannot be read.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Retry delay of a task whose ready queue was full, unless the queue requests more work before.
pub(crate) const READY_QUEUE_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Result of dispatching a task that was read from disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispatchOutcome {
    /// In a ready queue, or waiting for its route.
    Enqueued,
    /// Returned to disk until a time in the due index.
    Deferred,
    /// Returned to disk: there is no capacity for it or for the tasks behind it.
    QueueFull,
}

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

impl Worker {
    /// Dispatches a task to its ready queue: at once if the route is known, otherwise after the lookup.
    pub(crate) fn dispatch(self: &Arc<Self>, ready: ReadyTask) -> DispatchOutcome {
        if self.holds.is_account_held(ready.task.account) {
            self.park(&ready.task);
            return DispatchOutcome::Deferred;
        }
        let now = self.services.clock.now();
        let cached = self.cached_route(&ready.task, now);
        if ready.task.tls_optional && !cached.as_ref().is_some_and(|route| route.is_to_smarthost()) {
            let worker = Arc::clone(self);
            self.services.spawn(async move { worker.resolve_without_tls_policy(ready).await });
            return DispatchOutcome::Enqueued;
        }
        if let Some(route) = cached {
            return self.enqueue(&route, ready);
        }
        let domain = ready.task.address.domain().clone();
        if let Some(resumes_at) = self.suspended_until(&domain, None) {
            self.defer_suspended(&ready.task, None, resumes_at);
            return DispatchOutcome::Deferred;
        }
        if self.lookup_capacity(&domain) == 0 {
            self.defer(&ready.task, self.services.clock.after(RETRY_DELAY));
            return DispatchOutcome::QueueFull;
        }
        let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = resolving.get_mut(&domain) {
            waiting.push(ready);
            return DispatchOutcome::Enqueued;
        }
        resolving.insert(domain.clone(), vec![ready]);
        drop(resolving);
        let worker = Arc::clone(self);
        self.services.spawn(async move { worker.resolve_route(domain).await });
        DispatchOutcome::Enqueued
    }

    /// Number of tasks that may still wait for the lookup of this domain.
    pub(crate) fn lookup_capacity(&self, domain: &DomainName) -> usize {
        let resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        match resolving.get(domain) {
            Some(waiting) => WAITING_PER_DOMAIN_MAX.saturating_sub(waiting.len()),
            None if resolving.len() >= LOOKUPS_MAX => 0,
            None => WAITING_PER_DOMAIN_MAX,
        }
    }

    /// Returns whether an MX lookup of a domain is in progress.
    pub(crate) fn is_domain_looked_up(&self, domain: &DomainName) -> bool {
        self.resolving.lock().unwrap_or_else(PoisonError::into_inner).contains_key(domain)
    }

    /// Returns whether a task waits for the lookup of its domain.
    pub(crate) fn awaits_lookup(&self, task: &Task) -> bool {
        let resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = resolving.get(task.address.domain());
        waiting.is_some_and(|waiting| waiting.iter().any(|ready| ready.task.id == task.id))
    }

    async fn resolve_route(self: Arc<Self>, domain: DomainName) {
        let began_at = self.services.clock.now();
        let found = Box::pin(self.router.find_route(&domain, began_at)).await;
        let waiting = {
            let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
            resolving.remove(&domain).unwrap_or_default()
        };
        let unanswered = match &found {
            Err(RouteError::Transient(reason) | RouteError::DnssecBogus(reason)) => Some(reason.as_str()),
            Ok(_) | Err(RouteError::TlsPolicyUnmet(..) | RouteError::Permanent(_)) => None,
        };
        self.lookup_failures.note(&domain, unanswered, self.services.clock.now());
        let no_route = match found {
            Ok(route) => {
                return waiting.into_iter().for_each(|ready| {
                    self.enqueue(&route, ready);
                });
            }
            Err(no_route) => no_route,
        };
        match &no_route {
            RouteError::TlsPolicyUnmet(reason, applied) => {
                self.tls_stats.count_unreached(
                    &domain,
                    applied,
                    TlsFault::new(TlsResultType::ValidationFailure, reason),
                );
            }
            // RFC 8460 4.3.2.1.
            RouteError::DnssecBogus(reason) => {
                self.tls_stats.count_unreached(
                    &domain,
                    &AppliedTlsPolicy::unverifiable_tlsa(),
                    TlsFault::new(TlsResultType::DnssecInvalid, reason),
                );
            }
            RouteError::Transient(_) | RouteError::Permanent(_) => {}
        }
        let attempted = self.route_error_result(no_route, began_at);
        futures_util::stream::iter(waiting)
            .for_each_concurrent(OUTCOME_CONCURRENCY, async |ready| {
                if self.in_flight.start(ready.task.id, ready.task.partition) {
                    self.record_outcome(&ready, &attempted).await;
                } else {
                    self.release_task(&ready.task);
                }
            })
            .await;
    }

    /// Dispatches a task that ignores TLS policies (`TLS-Required: No`). Such tasks are rare, so each does its own
    /// lookup.
    async fn resolve_without_tls_policy(self: Arc<Self>, ready: ReadyTask) {
        let began_at = self.services.clock.now();
        match self.router.find_route_without_tls_policy(ready.task.address.domain()).await {
            Ok(route) => _ = self.enqueue(&route, ready),
            Err(no_route) if self.in_flight.start(ready.task.id, ready.task.partition) => {
                self.record_outcome(&ready, &self.route_error_result(no_route, began_at)).await;
            }
            Err(_) => self.release_task(&ready.task),
        }
    }

    /// Result of an attempt that found no route.
    pub(crate) fn route_error_result(&self, error: RouteError, began_at: Timestamp) -> AttemptResult {
        let (outcome, phase) = match error {
            RouteError::Transient(text) | RouteError::DnssecBogus(text) => {
                (Outcome::Unreachable(text), AttemptPhase::Dns)
            }
            RouteError::TlsPolicyUnmet(text, _) => (Outcome::Unreachable(text), AttemptPhase::Tls),
            RouteError::Permanent(reply) => (Outcome::Undeliverable(reply), AttemptPhase::Dns),
        };
        self.no_connection_result(outcome, phase, began_at)
    }

    /// Result of an attempt that opened no connection.
    pub(crate) fn no_connection_result(
        &self,
        outcome: Outcome,
        phase: AttemptPhase,
        began_at: Timestamp,
    ) -> AttemptResult {
        let duration = Duration::try_from(self.services.clock.now().duration_since(began_at)).unwrap_or_default();
        let transcript = String::new();
        AttemptResult {
            outcome,
            phase,
            began_at,
            duration,
            mx_host: None,
            ip: None,
            source: None,
            tls: None,
            transcript,
            is_untried: false,
            earlier_reply: None,
        }
    }

    fn enqueue(self: &Arc<Self>, route: &Arc<MailRoute>, ready: ReadyTask) -> DispatchOutcome {
        // The account may have been suspended during the lookup.
        if self.holds.is_account_held(ready.task.account) {
            self.park(&ready.task);
            return DispatchOutcome::Deferred;
        }
        if let Some(resumes_at) = self.suspended_until(ready.task.address.domain(), Some(route)) {
            self.defer_suspended(&ready.task, Some(route), resumes_at);
            return DispatchOutcome::Deferred;
        }
        let (now, tls) = (self.services.clock.now(), ready.task.tls_requirement());
        if ready.task.is_expired(now) {
            let worker = Arc::clone(self);
            self.services.spawn(async move { worker.expire_in_queue(&ready).await });
            return DispatchOutcome::Enqueued;
        }
        let waits = |pool: &Arc<SourcePool>| self.ready_queue(pool, route, tls).unavailable_until(now).is_some();
        let site = self.ready_queue(self.pools.choose_for_task(&ready.task, route, now, waits), route, tls);
        match site.enqueue(ready, now, self.in_flight.free_capacity()) {
            EnqueueOutcome::Enqueued(call) => {
                self.follow_connect_decision(&site, call);
                DispatchOutcome::Enqueued
            }
            EnqueueOutcome::Unavailable(ready, until) => {
                self.defer(&ready.task, until);
                self.note_delay(ready.task.queue_name(), &site);
                DispatchOutcome::Deferred
            }
            EnqueueOutcome::Full(ready) => {
                self.defer(&ready.task, self.services.clock.after(READY_QUEUE_RETRY_DELAY));
                site.park(ready.task.queue_name());
                // Room may have been freed before `park`, so no wake-up was sent: check again.
                if let Ok(1..) = site.load_capacity(ready.task.class, now, self.in_flight.free_capacity()) {
                    self.due_index.make_due(&ready.task.queue_name(), now);
                }
                DispatchOutcome::QueueFull
            }
        }
    }

    /// Ends an expired task that no connection has taken yet.
    async fn expire_in_queue(self: &Arc<Self>, ready: &ReadyTask) {
        if self.in_flight.start(ready.task.id, ready.task.partition) {
            self.expire_if_lapsed(ready).await;
        } else {
            self.release_task(&ready.task);
        }
    }

    /// Ends a taken task if it has expired. Returns whether it has.
    pub(crate) async fn expire_if_lapsed(self: &Arc<Self>, ready: &ReadyTask) -> bool {
        let is_lapsed = ready.task.is_expired(self.services.clock.now());
        if is_lapsed {
            self.expire_task(ready).await;
        }
        is_lapsed
    }

    /// Ends an expired task that is not in an attempt. Returns false if it changed concurrently.
    pub(crate) async fn expire_task(self: &Arc<Self>, ready: &ReadyTask) -> bool {
        let reason = match self.last_error(&ready.task) {
            Some(error) => {
                format!("expired before it could be attempted; the destination's last error: {error}")
            }
            None => "expired before its first attempt".to_owned(),
        };
        let result = self.untried_result(&ready.task, &reason).await;
        matches!(self.commit_outcome(ready, &result, CommitRetries::Unlimited).await, Ok(true))
    }

    /// Returns an untried task to disk; it is read again at `until`.
    pub(crate) fn defer(&self, task: &Task, until: Timestamp) {
        self.in_flight.finish(task.id);
        self.due_index.add(task.queue_name(), until, store::task::key_of(task));
    }

    /// Opens a connection if the ready queue requests one.
    pub(crate) fn follow_connect_decision(self: &Arc<Self>, site: &Arc<ReadyQueue>, call: ConnectDecision) {
        if call == ConnectDecision::Connect {
            if self.services.stop.is_cancelled() {
                // Shutdown: open no connections; queued tasks stay on disk.
                site.connection_ended(true);
                return;
            }
            self.services.spawn(attempt::run_connection(Arc::clone(self), Arc::clone(site)));
        }
    }

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
        let paced = self.route_pace(route).per_node(self.services.leases.nodes());
        let limits = paced.limits;
        let site = Arc::new(ReadyQueue::new(
            Arc::clone(route),
            Arc::clone(&pool.source),
            tls,
            limits,
            self.settings.ready_max,
        ));
        site.set_provider(pool.provider_limits(paced.provider), pool.queue_warm_up_budget(route, now));
        sites.insert(route.queue_name.clone(), Arc::clone(&site));
        site
    }

    /// Recomputes the limits of all ready queues after the number of nodes or an override changed.
    pub(crate) fn rebalance_pace(&self) {
        let (nodes, now) = (self.services.leases.nodes(), self.services.clock.now());
        for pool in self.pools.all() {
            for site in pool.ready_queues().iter().flat_map(HashMap::values) {
                let paced = self.route_pace(site.route()).per_node(nodes);
                site.set_limits(paced.limits);
                site.set_provider(pool.provider_limits(paced.provider), pool.queue_warm_up_budget(site.route(), now));
            }
        }
    }

    /// Rate limits of a route: from an override, the configuration or the defaults.
    fn route_pace(&self, route: &MailRoute) -> RoutePace {
        let (configured, limits) = self.pace_limits(route);
        let ordered = self.destinations.pace(route);
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
            self.settings.pace.iter().find(|(domain, _)| domain.as_ref() == wanted).map(|(_, limits)| *limits)
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
        if let Some(route) = self.last_route(task) {
            self.ready_queues_of(task, &route).for_each(|site| site.retry_now());
            // Waiting queues of the same provider are woken too.
            self.pools.candidates_for(task, &route).for_each(|pool| pool.wake());
        }
    }

    /// Status of all ready queues, the busiest first.
    #[must_use]
    pub fn ready_queue_statuses(&self) -> Vec<SiteStanding> {
        let now = self.services.clock.now();
        let of_pool = |pool: &Arc<SourcePool>| -> Vec<SiteStanding> {
            pool.ready_queues().iter().flat_map(HashMap::values).map(|site| site.status(now)).collect()
        };
        let mut statuses: Vec<_> = self.pools.all().flat_map(of_pool).collect();
        statuses.sort_by_key(|s| std::cmp::Reverse((s.ready, s.connections)));
        statuses
    }
}
