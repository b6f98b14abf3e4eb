//! What the operator has ordered about destinations, in memory, and what follows from it.
//!
//! ```text
//! postrider admin destination … ─►[ store ]─► every node, within a beat ─► dispatch, refill, attempt, pace
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
use crate::plan::MailRoute;
use crate::worker::Worker;

/// Commits tried, when something else is ordered meanwhile.
const COMMIT_TRIES_MAX: usize = 20;

/// Why something was not ordered.
#[derive(Debug, Error)]
pub enum DestinationError {
    /// There is no smarthost of this name.
    #[error("there is no smarthost `{0}`: the configuration names them in [[delivery.smarthosts]]")]
    NoSmarthost(String),
    /// Domains behind one host may go different ways.
    #[error("a way is ordered for a recipients' domain, not for mail hosts")]
    RouteOfMailHost,
    /// Too much is ordered.
    #[error("something is ordered about {DESTINATIONS_MAX} destinations already; take some of it back first")]
    TooMany,
    /// Others order without end.
    #[error("something else was ordered at the same time; try again")]
    Conflict,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// All that is ordered, of one version.
#[derive(Debug, Default)]
struct DestinationOrders {
    version: DestinationOrdersVersion,
    domains: HashMap<DomainName, DestinationOverrides>,
    mail_hosts: HashMap<DomainName, DestinationOverrides>,
}

impl DestinationOrders {
    async fn read(store: &Store) -> Result<Self, ReadError> {
        // The version first: what is ordered in between is read again at the next look.
        let version = destination::current_version(store).await?;
        let mut orders = Self { version, ..Self::default() };
        for (destination, standing) in destination::list(store).await? {
            match destination {
                Destination::Domain(name) => orders.domains.insert(name, standing),
                Destination::MailHost(name) => orders.mail_hosts.insert(name, standing),
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

    /// What is ordered about the hosts of a route, as far as it is meant: the nearest name above the first of them where
    /// that is so counts.
    fn for_hosts(
        &self,
        route: &MailRoute,
        is_meant: impl Fn(&DestinationOverrides) -> bool,
    ) -> Option<(&DomainName, &DestinationOverrides)> {
        if self.mail_hosts.is_empty() {
            return None;
        }
        let mut name = route.first_host().cloned();
        while let Some(host) = name {
            if let Some(found) = self.mail_hosts.get_key_value(&host).filter(|(_, found)| is_meant(found)) {
                return Some(found);
            }
            name = host.parent();
        }
        None
    }
}

/// What the operator has ordered about destinations.
#[derive(Debug, Default)]
pub(crate) struct DestinationPolicies {
    orders: RwLock<Arc<DestinationOrders>>,
    /// One at a time looks what is new: else what was read first could be taken on last.
    reload_lock: tokio::sync::Mutex<()>,
}

impl DestinationPolicies {
    fn orders(&self) -> Arc<DestinationOrders> {
        Arc::clone(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, orders: DestinationOrders) {
        *self.orders.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(orders);
    }

    /// Which way the mail of a domain goes, if that is ordered.
    fn route_override(&self, domain: &DomainName) -> Option<RouteOverride> {
        self.orders().domains.get(domain)?.way.clone()
    }

    /// Why a task is left alone, if it is.
    fn suspension(
        &self,
        domain: &DomainName,
        route: Option<&MailRoute>,
        now: Timestamp,
    ) -> Option<(Destination, OperatorSuspension)> {
        let orders = self.orders();
        let by_domain = || {
            let standing = orders.domains.get(domain)?;
            Some((Destination::Domain(domain.clone()), standing))
        };
        let by_host = || {
            let holds =
                |standing: &DestinationOverrides| standing.suspension.as_ref().is_some_and(|s| s.is_active(now));
            let (name, standing) = orders.for_hosts(route?, holds)?;
            Some((Destination::MailHost(name.clone()), standing))
        };
        [by_domain(), by_host()].into_iter().flatten().find_map(|(destination, standing)| {
            let suspension = standing.suspension.as_ref().filter(|suspension| suspension.is_active(now))?;
            Some((destination, suspension.clone()))
        })
    }

    /// How fast the hosts of a route are to be served by order, and the name that it was ordered for.
    pub(crate) fn pace(&self, route: &MailRoute) -> Option<(DomainName, PaceOverride)> {
        let orders = self.orders();
        let (name, standing) = orders.for_hosts(route, |standing| !standing.pace.is_empty())?;
        Some((name.clone(), standing.pace))
    }
}

impl Worker {
    /// What is ordered about destinations, by name.
    #[must_use]
    pub fn destination_orders(&self) -> Vec<(Destination, DestinationOverrides)> {
        let orders = self.destinations.orders();
        let domains = orders.domains.iter().map(|(name, s)| (Destination::Domain(name.clone()), s.clone()));
        let hosts = orders.mail_hosts.iter().map(|(name, s)| (Destination::MailHost(name.clone()), s.clone()));
        let mut all: Vec<_> = domains.chain(hosts).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Orders something about a destination: it holds from now on, over restarts, on every node.
    ///
    /// # Errors
    /// [`DestinationError`].
    pub async fn order_destination(
        &self,
        destination: &Destination,
        change: impl Fn(&mut DestinationOverrides),
    ) -> Result<DestinationOverrides, DestinationError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let orders = DestinationOrders::read(&self.store).await?;
            let mut standing = orders.for_destination(destination).cloned().unwrap_or_default();
            let before = standing.way.clone();
            change(&mut standing);
            standing.suspension.take_if(|suspension| !suspension.is_active(self.clock.now()));
            if standing.way != before {
                self.validate_route_override(destination, &standing)?;
            }
            let count = orders.domains.len() + orders.mail_hosts.len();
            if orders.for_destination(destination).is_none() && count >= DESTINATIONS_MAX {
                return Err(DestinationError::TooMany);
            }
            let mut batch = Batch::progress();
            destination::put(&mut batch, &orders.version, destination, &standing);
            match self.store.commit(batch).await {
                Ok(()) => {
                    self.reload_destinations().await?;
                    return Ok(standing);
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
        standing: &DestinationOverrides,
    ) -> Result<(), DestinationError> {
        match (&standing.way, destination) {
            (Some(_), Destination::MailHost(_)) => Err(DestinationError::RouteOfMailHost),
            (Some(RouteOverride::Smarthost(name)), _) if self.router.smarthosts().named(name).is_none() => {
                Err(DestinationError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Takes on what was ordered since the last look.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_destinations(&self) -> Result<(), ReadError> {
        let _looking = self.destinations.reload_lock.lock().await;
        let before = self.destinations.orders();
        if destination::current_version(&self.store).await? == before.version {
            return Ok(());
        }
        self.destinations.replace(DestinationOrders::read(&self.store).await?);
        self.rebalance_pace();
        self.pools.all().for_each(|pool| pool.wake());
        // Whatever was left alone is looked at again: what is left alone still goes back to sleep.
        let now = self.clock.now();
        let concerned = |queue: &QueueName| {
            let theirs = |orders: &DestinationOrders| orders.domains.get(&queue.domain).cloned();
            let after = self.destinations.orders();
            theirs(&before) != theirs(&after) || before.mail_hosts != after.mail_hosts
        };
        self.due_index.make_due_where(concerned, now);
        Ok(())
    }

    /// The route of a task, if it is known and still holds.
    pub(crate) fn cached_route(&self, task: &Task, now: Timestamp) -> Option<Arc<MailRoute>> {
        let domain = task.address.domain();
        match &task.way {
            Some(way) => self.router.cached_route(domain, Some(way), now),
            None => self.cached_domain_route(domain, now),
        }
    }

    /// The route that a task has taken, or would have, when its domain was last looked up: a site that took it keeps it,
    /// whether or not the plan still holds.
    pub(crate) fn last_route(&self, task: &Task) -> Option<Arc<MailRoute>> {
        self.cached_route(task, Timestamp::MIN)
    }

    /// The route of a domain's mail, if it is known and still holds.
    pub(crate) fn cached_domain_route(&self, domain: &DomainName, now: Timestamp) -> Option<Arc<MailRoute>> {
        self.router.cached_route(domain, self.destinations.route_override(domain).as_ref(), now)
    }

    /// Why a task's destination is left alone, if the operator has ordered that.
    pub(crate) fn suspension(
        &self,
        task: &Task,
        route: Option<&MailRoute>,
    ) -> Option<(Destination, OperatorSuspension)> {
        self.destinations.suspension(task.address.domain(), route, self.clock.now())
    }

    /// When mail to this domain is looked at again, if it is left alone. What is resumed is looked at at once.
    pub(crate) fn suspended_until(&self, domain: &DomainName, route: Option<&MailRoute>) -> Option<Timestamp> {
        let (_, suspension) = self.destinations.suspension(domain, route, self.clock.now())?;
        Some(suspension.until.unwrap_or_else(|| self.after(READY_QUEUE_RETRY_DELAY)))
    }

    /// Leaves a task to disk while its destination is left alone, as was found: it is read again then.
    pub(crate) fn defer_suspended(&self, task: &Task, route: Option<&MailRoute>, until: Timestamp) {
        self.defer(task, until);
        self.wake_if_resumed(&task.queue_name(), route, until);
    }

    /// To be called once a queue is noted to be left alone until then. Who resumes a destination has all queues looked at
    /// that are noted: this one was not, if it was resumed between the look at what is ordered and the note.
    pub(crate) fn wake_if_resumed(&self, queue: &QueueName, route: Option<&MailRoute>, until: Timestamp) {
        if self.suspended_until(&queue.domain, route).is_none_or(|again| again < until) {
            self.due_index.make_due(queue, self.clock.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::tests::task;
    use crate::worker::tests::idle;

    #[tokio::test]
    async fn what_is_resumed_while_it_is_put_off_is_looked_at_at_once() {
        let (worker, task) = (idle(Store::memory()), task());
        let domain = task.address.domain();
        let order = async |until: Option<Option<Timestamp>>| {
            let since = Timestamp::UNIX_EPOCH;
            let suspension = until.map(|until| OperatorSuspension { since, until, because: None });
            let change = |standing: &mut DestinationOverrides| standing.suspension.clone_from(&suspension);
            worker.order_destination(&Destination::Domain(domain.clone()), change).await.unwrap();
            worker.suspended_until(domain, None)
        };
        let later = worker.after(std::time::Duration::from_secs(3_600));
        for until in [None, Some(later)] {
            let again = order(Some(until)).await.unwrap();
            worker.defer_suspended(&task, None, again);
            assert!(worker.due_index.next_due() > Some(worker.clock.now()), "it is left alone");

            // Found to be left alone, and resumed before that is noted.
            let noted = worker.due_index.pop_due(Timestamp::MAX);
            assert_eq!(noted.map(|(queue, _)| queue), Some(task.queue_name()));
            assert_eq!(order(None).await, None);
            worker.defer_suspended(&task, None, again);
            assert!(worker.due_index.next_due() <= Some(worker.clock.now()), "nobody would look at it");
            worker.due_index.pop_due(Timestamp::MAX);
        }
        // The same where it is left alone again, and not so long.
        let sooner = worker.after(std::time::Duration::from_secs(60));
        let again = order(Some(Some(later))).await.unwrap();
        order(Some(Some(sooner))).await;
        worker.defer_suspended(&task, None, again);
        assert!(worker.due_index.next_due() <= Some(worker.clock.now()));
    }
}
