//! Dispatch: puts a task into the ready queue of its destination as soon as its route is known.
//!
//! A task that finds its ready queue full returns to disk. The queue loader reads it again when there is capacity. So a
//! slow or dead destination fills its own ready queue and its own stored queues, and no other destination's.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use message::address::DomainName;
use message::tls_report::{AppliedTlsPolicy, TlsFault, TlsResultType};
use model::task::Task;

use crate::delivery::attempt::DeliveryAgent;
use crate::routing::route_table::READY_QUEUE_RETRY_DELAY;
use crate::routing::{MailRoute, RouteError};
use crate::scheduler::Scheduler;
use crate::scheduler::deadline_timers::DeadlineTimers;
use crate::scheduler::destination_queues::DestinationQueues;
use crate::scheduler::pause_state::PauseState;
use crate::scheduler::ready_queue::{EnqueueOutcome, ReadyTask};
use crate::scheduler::source_pools::SourcePool;
use crate::services::Services;

/// Concurrent MX lookups. More would time out in the resolver's own queue and count as failures.
const LOOKUPS_MAX: usize = 512;
/// Tasks in memory that wait for one domain's lookup.
const WAITING_PER_DOMAIN_MAX: usize = 32;
/// Concurrent commits of outcomes for tasks that a lookup left without a route.
const OUTCOME_CONCURRENCY: usize = 64;
/// Retry delay when there is no capacity for a lookup or a row cannot be read.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(1);

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

/// Dispatches tasks to the ready queues of their destinations.
pub struct Dispatcher {
    pub(crate) services: Services,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) queues: Arc<DestinationQueues>,
    pub(crate) agent: Arc<DeliveryAgent>,
    pub(crate) deadlines: Arc<DeadlineTimers>,
    pub(crate) pause: PauseState,
    /// Tasks that wait for the MX lookup of their domain.
    resolving: Mutex<HashMap<DomainName, Vec<ReadyTask>>>,
}

impl Dispatcher {
    pub(crate) fn new(
        services: Services,
        agent: Arc<DeliveryAgent>,
        deadlines: Arc<DeadlineTimers>,
        pause: PauseState,
    ) -> Self {
        let queues = Arc::clone(&agent.queues);
        let scheduler = Arc::clone(&queues.scheduler);
        Self { services, scheduler, queues, agent, deadlines, pause, resolving: Mutex::default() }
    }

    /// Dispatches a task to its ready queue: at once if the route is known, otherwise after the lookup.
    pub(crate) fn dispatch(self: &Arc<Self>, ready: ReadyTask) -> DispatchOutcome {
        if self.scheduler.holds.is_account_held(ready.task.account) {
            self.scheduler.park(&ready.task);
            return DispatchOutcome::Deferred;
        }
        let now = self.services.clock.now();
        let cached = self.queues.routes.cached_route(&ready.task, now);
        if ready.task.tls_optional && !cached.as_ref().is_some_and(|route| route.is_to_smarthost()) {
            let dispatcher = Arc::clone(self);
            self.services.spawn(async move { dispatcher.resolve_without_tls_policy(ready).await });
            return DispatchOutcome::Enqueued;
        }
        if let Some(route) = cached {
            return self.enqueue(&route, ready);
        }
        let domain = ready.task.address.domain().clone();
        if let Some(resumes_at) = self.queues.routes.suspended_until(&domain, None) {
            self.queues.routes.defer_suspended(&ready.task, None, resumes_at);
            return DispatchOutcome::Deferred;
        }
        if self.lookup_capacity(&domain) == 0 {
            self.scheduler.defer(&ready.task, self.services.clock.after(RETRY_DELAY));
            return DispatchOutcome::QueueFull;
        }
        let mut resolving = self.resolving.lock();
        if let Some(waiting) = resolving.get_mut(&domain) {
            waiting.push(ready);
            return DispatchOutcome::Enqueued;
        }
        resolving.insert(domain.clone(), vec![ready]);
        drop(resolving);
        let dispatcher = Arc::clone(self);
        self.services.spawn(async move { dispatcher.resolve_route(domain).await });
        DispatchOutcome::Enqueued
    }

    /// Number of tasks that may still wait for the lookup of this domain.
    pub(crate) fn lookup_capacity(&self, domain: &DomainName) -> usize {
        let resolving = self.resolving.lock();
        match resolving.get(domain) {
            Some(waiting) => WAITING_PER_DOMAIN_MAX.saturating_sub(waiting.len()),
            None if resolving.len() >= LOOKUPS_MAX => 0,
            None => WAITING_PER_DOMAIN_MAX,
        }
    }

    /// Returns whether an MX lookup of a domain is in progress.
    pub(crate) fn is_domain_looked_up(&self, domain: &DomainName) -> bool {
        self.resolving.lock().contains_key(domain)
    }

    /// Returns whether a task waits for the lookup of its domain.
    pub(crate) fn awaits_lookup(&self, task: &Task) -> bool {
        let resolving = self.resolving.lock();
        let waiting = resolving.get(task.address.domain());
        waiting.is_some_and(|waiting| waiting.iter().any(|ready| ready.task.id == task.id))
    }

    async fn resolve_route(self: Arc<Self>, domain: DomainName) {
        let began_at = self.services.clock.now();
        let found = Box::pin(self.queues.routes.router.find_route(&domain, began_at)).await;
        let waiting = {
            let mut resolving = self.resolving.lock();
            resolving.remove(&domain).unwrap_or_default()
        };
        let unanswered = match &found {
            Err(RouteError::Transient(reason) | RouteError::DnssecBogus(reason)) => Some(reason.as_str()),
            Ok(_) | Err(RouteError::TlsPolicyUnmet(..) | RouteError::Permanent(_)) => None,
        };
        self.queues.lookup_failures.note(&domain, unanswered, self.services.clock.now());
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
                self.agent.tls_stats.count_unreached(
                    &domain,
                    applied,
                    TlsFault::new(TlsResultType::ValidationFailure, reason),
                );
            }
            // RFC 8460 4.3.2.1.
            RouteError::DnssecBogus(reason) => {
                self.agent.tls_stats.count_unreached(
                    &domain,
                    &AppliedTlsPolicy::unverifiable_tlsa(),
                    TlsFault::new(TlsResultType::DnssecInvalid, reason),
                );
            }
            RouteError::Transient(_) | RouteError::Permanent(_) => {}
        }
        let attempted = self.agent.outcomes.route_error_result(no_route, began_at);
        futures_util::stream::iter(waiting)
            .for_each_concurrent(OUTCOME_CONCURRENCY, async |ready| {
                if self.scheduler.in_flight.start(ready.task.id, ready.task.partition) {
                    self.agent.outcomes.record_outcome(&ready, &attempted).await;
                } else {
                    self.scheduler.release_task(&ready.task);
                }
            })
            .await;
    }

    /// Dispatches a task that ignores TLS policies (`TLS-Required: No`). Such tasks are rare, so each does its own
    /// lookup.
    async fn resolve_without_tls_policy(self: Arc<Self>, ready: ReadyTask) {
        let began_at = self.services.clock.now();
        match self.queues.routes.router.find_route_without_tls_policy(ready.task.address.domain()).await {
            Ok(route) => _ = self.enqueue(&route, ready),
            Err(no_route) if self.scheduler.in_flight.start(ready.task.id, ready.task.partition) => {
                self.agent
                    .outcomes
                    .record_outcome(&ready, &self.agent.outcomes.route_error_result(no_route, began_at))
                    .await;
            }
            Err(_) => self.scheduler.release_task(&ready.task),
        }
    }

    fn enqueue(self: &Arc<Self>, route: &Arc<MailRoute>, ready: ReadyTask) -> DispatchOutcome {
        // The account may have been suspended during the lookup.
        if self.scheduler.holds.is_account_held(ready.task.account) {
            self.scheduler.park(&ready.task);
            return DispatchOutcome::Deferred;
        }
        if let Some(resumes_at) = self.queues.routes.suspended_until(ready.task.address.domain(), Some(route)) {
            self.queues.routes.defer_suspended(&ready.task, Some(route), resumes_at);
            return DispatchOutcome::Deferred;
        }
        let (now, tls) = (self.services.clock.now(), ready.task.tls_requirement());
        if ready.task.is_expired(now) {
            let dispatcher = Arc::clone(self);
            self.services.spawn(async move { dispatcher.expire_in_queue(&ready).await });
            return DispatchOutcome::Enqueued;
        }
        let waits = |pool: &Arc<SourcePool>| self.queues.ready_queue(pool, route, tls).unavailable_until(now).is_some();
        let site =
            self.queues.ready_queue(self.queues.pools.choose_for_task(&ready.task, route, now, waits), route, tls);
        match site.enqueue(ready, now, self.scheduler.in_flight.free_capacity()) {
            EnqueueOutcome::Enqueued(call) => {
                self.agent.follow_connect_decision(&site, call);
                DispatchOutcome::Enqueued
            }
            EnqueueOutcome::Unavailable(ready, until) => {
                self.scheduler.defer(&ready.task, until);
                self.queues.note_delay(ready.task.queue_name(), &site);
                DispatchOutcome::Deferred
            }
            EnqueueOutcome::Full(ready) => {
                self.scheduler.defer(&ready.task, self.services.clock.after(READY_QUEUE_RETRY_DELAY));
                site.park(ready.task.queue_name());
                // Room may have been freed before `park`, so no wake-up was sent: check again.
                if let Ok(1..) = site.load_capacity(ready.task.class, now, self.scheduler.in_flight.free_capacity()) {
                    self.scheduler.due_index.make_due(&ready.task.queue_name(), now);
                }
                DispatchOutcome::QueueFull
            }
        }
    }

    /// Ends an expired task that no connection has taken yet.
    async fn expire_in_queue(self: &Arc<Self>, ready: &ReadyTask) {
        if self.scheduler.in_flight.start(ready.task.id, ready.task.partition) {
            self.agent.expire_if_lapsed(ready).await;
        } else {
            self.scheduler.release_task(&ready.task);
        }
    }
}
