//! Route table: the routes of domains and tasks, under the operator's overrides.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use message::address::DomainName;
use model::destination::{Destination, OperatorSuspension};
use model::task::{QueueName, Task};
use net::clock::Clock;

use crate::routing::{MailRoute, MxRouter};
use crate::scheduler::Scheduler;
use crate::scheduler::destination_policies::DestinationPolicies;

/// Delay before a full or suspended queue is looked at again, unless it requests more work before.
pub(crate) const READY_QUEUE_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Routes of tasks, and suspensions of their destinations.
pub(crate) struct RouteTable {
    clock: Clock,
    pub(crate) router: Arc<MxRouter>,
    pub(crate) policies: DestinationPolicies,
    scheduler: Arc<Scheduler>,
}

impl RouteTable {
    pub(crate) fn new(clock: Clock, router: Arc<MxRouter>, scheduler: Arc<Scheduler>) -> Self {
        Self { clock, router, policies: DestinationPolicies::default(), scheduler }
    }

    /// The cached route of a task, if it is still valid.
    pub(crate) fn cached_route(&self, task: &Task, now: Timestamp) -> Option<Arc<MailRoute>> {
        let domain = task.address.domain();
        match &task.route {
            Some(route) => self.router.cached_route(domain, Some(route), now),
            None => self.cached_domain_route(domain, now),
        }
    }

    /// The last known route of a task, even if the cached one has expired: a ready queue keeps its tasks.
    pub(crate) fn last_route(&self, task: &Task) -> Option<Arc<MailRoute>> {
        self.cached_route(task, Timestamp::MIN)
    }

    /// The cached route of a domain's mail, if it is still valid.
    pub(crate) fn cached_domain_route(&self, domain: &DomainName, now: Timestamp) -> Option<Arc<MailRoute>> {
        self.router.cached_route(domain, self.policies.route_override(domain).as_ref(), now)
    }

    /// The operator's suspension of a task's destination, if active.
    pub(crate) fn suspension(
        &self,
        task: &Task,
        route: Option<&MailRoute>,
    ) -> Option<(Destination, OperatorSuspension)> {
        self.policies.suspension(task.address.domain(), route, self.clock.now())
    }

    /// Time at which mail to a suspended domain is looked at again; `None` if it is not suspended. Resuming looks at it
    /// at once.
    pub(crate) fn suspended_until(&self, domain: &DomainName, route: Option<&MailRoute>) -> Option<Timestamp> {
        let (_, suspension) = self.policies.suspension(domain, route, self.clock.now())?;
        Some(suspension.until.unwrap_or_else(|| self.clock.after(READY_QUEUE_RETRY_DELAY)))
    }

    /// Returns a task to disk until its suspended destination is looked at again.
    pub(crate) fn defer_suspended(&self, task: &Task, route: Option<&MailRoute>, until: Timestamp) {
        self.scheduler.defer(task, until);
        self.wake_if_resumed(&task.queue_name(), route, until);
    }

    /// Call this after a queue was added to the due index as suspended. Resuming a destination makes the indexed queues
    /// due. It misses this queue if it happened between the suspension check and the insert.
    pub(crate) fn wake_if_resumed(&self, queue: &QueueName, route: Option<&MailRoute>, until: Timestamp) {
        if self.suspended_until(&queue.domain, route).is_none_or(|resumes_at| resumes_at < until) {
            self.scheduler.due_index.make_due(queue, self.clock.now());
        }
    }
}
