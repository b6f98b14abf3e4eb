//! Operator overrides for destinations (suspension, pace, route), cached in memory, and their effects.
//!
//! ```text
//! postrider admin destination … ─►[ store ]─► every node, within one heartbeat ─► dispatch, loading, attempts, pace
//! ```

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use mail::address::DomainName;
use mail::destination::{Destination, DestinationOverrides, OperatorSuspension, PaceOverride, RouteOverride};
use mail::task::{QueueName, Task};
use store::destination::{self, DESTINATIONS_MAX, DestinationOrdersVersion};
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

use crate::dispatch::READY_QUEUE_RETRY_DELAY;
use crate::routing::MailRoute;
use crate::worker::Worker;

/// Commits tried when other overrides change concurrently.
const COMMIT_TRIES_MAX: usize = 20;

#[derive(Debug, Error)]
pub enum DestinationError {
    #[error("unknown smarthost `{0}`; define it in [[delivery.smarthosts]]")]
    NoSmarthost(String),
    /// Domains with a common mail host may have different routes.
    #[error("a route can be set for a recipient domain only, not for a mail host")]
    RouteOfMailHost,
    #[error("{DESTINATIONS_MAX} destinations have overrides already; remove some first")]
    TooMany,
    /// Concurrent changes did not end.
    #[error("another override was changed at the same time; try again")]
    Conflict,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// All overrides, as of one version.
#[derive(Debug, Default)]
struct DestinationOrders {
    version: DestinationOrdersVersion,
    domains: HashMap<DomainName, DestinationOverrides>,
    mail_hosts: HashMap<DomainName, DestinationOverrides>,
}

impl DestinationOrders {
    async fn read(store: &Store) -> Result<Self, ReadError> {
        // Read the version first: changes made in between are read again at the next poll.
        let version = destination::current_version(store).await?;
        let mut orders = Self { version, ..Self::default() };
        for (destination, overrides) in destination::list(store).await? {
            match destination {
                Destination::Domain(name) => orders.domains.insert(name, overrides),
                Destination::MailHost(name) => orders.mail_hosts.insert(name, overrides),
            };
        }
        Ok(orders)
    }

    fn for_destination(&self, destination: &Destination) -> Option<&DestinationOverrides> {
        match destination {
            Destination::Domain(name) => self.domains.get(name),
            Destination::MailHost(name) => self.mail_hosts.get(name),
        }
    }

    /// Override for the hosts of a route that `matches` accepts: the closest ancestor of the first host's name with
    /// such an override.
    fn for_hosts(
        &self,
        route: &MailRoute,
        matches: impl Fn(&DestinationOverrides) -> bool,
    ) -> Option<(&DomainName, &DestinationOverrides)> {
        if self.mail_hosts.is_empty() {
            return None;
        }
        let mut name = route.first_host().cloned();
        while let Some(host) = name {
            if let Some(found) = self.mail_hosts.get_key_value(&host).filter(|(_, found)| matches(found)) {
                return Some(found);
            }
            name = host.parent();
        }
        None
    }
}

/// Cache of the overrides.
#[derive(Debug, Default)]
pub(crate) struct DestinationPolicies {
    orders: RwLock<Arc<DestinationOrders>>,
    /// One reload at a time: otherwise an older read could replace a newer one.
    reload_lock: tokio::sync::Mutex<()>,
}

impl DestinationPolicies {
    fn orders(&self) -> Arc<DestinationOrders> {
        Arc::clone(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, orders: DestinationOrders) {
        *self.orders.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(orders);
    }

    /// Route override of a domain, if any.
    fn route_override(&self, domain: &DomainName) -> Option<RouteOverride> {
        self.orders().domains.get(domain)?.route.clone()
    }

    /// Suspension of a destination, by domain or by mail host, if active.
    fn suspension(
        &self,
        domain: &DomainName,
        route: Option<&MailRoute>,
        now: Timestamp,
    ) -> Option<(Destination, OperatorSuspension)> {
        let orders = self.orders();
        let by_domain = || {
            let overrides = orders.domains.get(domain)?;
            Some((Destination::Domain(domain.clone()), overrides))
        };
        let by_host = || {
            let holds =
                |overrides: &DestinationOverrides| overrides.suspension.as_ref().is_some_and(|s| s.is_active(now));
            let (name, overrides) = orders.for_hosts(route?, holds)?;
            Some((Destination::MailHost(name.clone()), overrides))
        };
        [by_domain(), by_host()].into_iter().flatten().find_map(|(destination, overrides)| {
            let suspension = overrides.suspension.as_ref().filter(|suspension| suspension.is_active(now))?;
            Some((destination, suspension.clone()))
        })
    }

    /// Pace override for the hosts of a route, and the name that it was set for.
    pub(crate) fn pace(&self, route: &MailRoute) -> Option<(DomainName, PaceOverride)> {
        let orders = self.orders();
        let (name, overrides) = orders.for_hosts(route, |overrides| !overrides.pace.is_empty())?;
        Some((name.clone(), overrides.pace))
    }
}

impl Worker {
    /// All overrides, sorted by destination.
    #[must_use]
    pub fn destination_orders(&self) -> Vec<(Destination, DestinationOverrides)> {
        let orders = self.destinations.orders();
        let domains = orders.domains.iter().map(|(name, s)| (Destination::Domain(name.clone()), s.clone()));
        let hosts = orders.mail_hosts.iter().map(|(name, s)| (Destination::MailHost(name.clone()), s.clone()));
        let mut all: Vec<_> = domains.chain(hosts).collect();
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        all
    }

    /// Changes the overrides of a destination. They take effect at once, persist over restarts and apply on every node.
    ///
    /// # Errors
    /// Returns a [`DestinationError`] if the change is invalid or cannot be committed.
    pub async fn order_destination(
        &self,
        destination: &Destination,
        change: impl Fn(&mut DestinationOverrides),
    ) -> Result<DestinationOverrides, DestinationError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let orders = DestinationOrders::read(&self.services.store).await?;
            let mut overrides = orders.for_destination(destination).cloned().unwrap_or_default();
            let before = overrides.route.clone();
            change(&mut overrides);
            overrides.suspension.take_if(|suspension| !suspension.is_active(self.services.clock.now()));
            if overrides.route != before {
                self.validate_route_override(destination, &overrides)?;
            }
            let count = orders.domains.len() + orders.mail_hosts.len();
            if orders.for_destination(destination).is_none() && count >= DESTINATIONS_MAX {
                return Err(DestinationError::TooMany);
            }
            let mut batch = Batch::progress();
            destination::put(&mut batch, &orders.version, destination, &overrides);
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    self.reload_destinations().await?;
                    return Ok(overrides);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(DestinationError::Conflict)
    }

    fn validate_route_override(
        &self,
        destination: &Destination,
        overrides: &DestinationOverrides,
    ) -> Result<(), DestinationError> {
        match (&overrides.route, destination) {
            (Some(_), Destination::MailHost(_)) => Err(DestinationError::RouteOfMailHost),
            (Some(RouteOverride::Smarthost(name)), _) if self.router.smarthosts().named(name).is_none() => {
                Err(DestinationError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Reloads the overrides if they changed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_destinations(&self) -> Result<(), ReadError> {
        let _reload = self.destinations.reload_lock.lock().await;
        let before = self.destinations.orders();
        if destination::current_version(&self.services.store).await? == before.version {
            return Ok(());
        }
        self.destinations.replace(DestinationOrders::read(&self.services.store).await?);
        self.rebalance_pace();
        self.pools.all().for_each(|pool| pool.wake());
        // Look at suspended queues again; those still suspended are deferred again.
        let now = self.services.clock.now();
        let is_affected = |queue: &QueueName| {
            let domain_overrides = |orders: &DestinationOrders| orders.domains.get(&queue.domain).cloned();
            let after = self.destinations.orders();
            domain_overrides(&before) != domain_overrides(&after) || before.mail_hosts != after.mail_hosts
        };
        self.due_index.make_due_where(is_affected, now);
        Ok(())
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
        self.router.cached_route(domain, self.destinations.route_override(domain).as_ref(), now)
    }

    /// The operator's suspension of a task's destination, if active.
    pub(crate) fn suspension(
        &self,
        task: &Task,
        route: Option<&MailRoute>,
    ) -> Option<(Destination, OperatorSuspension)> {
        self.destinations.suspension(task.address.domain(), route, self.services.clock.now())
    }

    /// Time at which mail to a suspended domain is looked at again; `None` if it is not suspended. Resuming looks at it
    /// at once.
    pub(crate) fn suspended_until(&self, domain: &DomainName, route: Option<&MailRoute>) -> Option<Timestamp> {
        let (_, suspension) = self.destinations.suspension(domain, route, self.services.clock.now())?;
        Some(suspension.until.unwrap_or_else(|| self.services.clock.after(READY_QUEUE_RETRY_DELAY)))
    }

    /// Returns a task to disk until its suspended destination is looked at again.
    pub(crate) fn defer_suspended(&self, task: &Task, route: Option<&MailRoute>, until: Timestamp) {
        self.defer(task, until);
        self.wake_if_resumed(&task.queue_name(), route, until);
    }

    /// Call this after a queue was added to the due index as suspended. Resuming a destination makes the indexed queues
    /// due. It misses this queue if it happened between the suspension check and the insert.
    pub(crate) fn wake_if_resumed(&self, queue: &QueueName, route: Option<&MailRoute>, until: Timestamp) {
        if self.suspended_until(&queue.domain, route).is_none_or(|resumes_at| resumes_at < until) {
            self.due_index.make_due(queue, self.services.clock.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::task;
    use crate::worker::tests::idle;

    #[tokio::test]
    async fn a_resumed_destination_is_due_at_once() {
        let (worker, task) = (idle(Store::memory()), task());
        let domain = task.address.domain();
        let order = async |until: Option<Option<Timestamp>>| {
            let since = Timestamp::UNIX_EPOCH;
            let suspension = until.map(|until| OperatorSuspension { since, until, because: None });
            let change = |overrides: &mut DestinationOverrides| overrides.suspension.clone_from(&suspension);
            worker.order_destination(&Destination::Domain(domain.clone()), change).await.unwrap();
            worker.suspended_until(domain, None)
        };
        let distant_end = worker.services.clock.after(std::time::Duration::from_secs(3_600));
        for until in [None, Some(distant_end)] {
            let resumed = order(Some(until)).await.unwrap();
            worker.defer_suspended(&task, None, resumed);
            assert!(worker.due_index.next_due() > Some(worker.services.clock.now()), "it is left alone");

            // Found suspended, and resumed before it is in the index.
            let noted = worker.due_index.pop_due(Timestamp::MAX);
            assert_eq!(noted.map(|(queue, _)| queue), Some(task.queue_name()));
            assert_eq!(order(None).await, None);
            worker.defer_suspended(&task, None, resumed);
            assert!(worker.due_index.next_due() <= Some(worker.services.clock.now()), "nobody would look at it");
            worker.due_index.pop_due(Timestamp::MAX);
        }
        // The same if it is suspended again, for a shorter time.
        let near_end = worker.services.clock.after(std::time::Duration::from_secs(60));
        let resumed = order(Some(Some(distant_end))).await.unwrap();
        order(Some(Some(near_end))).await;
        worker.defer_suspended(&task, None, resumed);
        assert!(worker.due_index.next_due() <= Some(worker.services.clock.now()));
    }
}
