//! What the operator has ordered about destinations, in memory, and what follows from it.
//!
//! ```text
//! postrider admin destination … ─►[ store ]─► every node, within a beat ─► dispatch, refill, attempt, pace
//! ```

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use mail::address::Name;
use mail::destination::{Destination, OrderedPace, Standing, Suspension, Way};
use mail::task::{QueueName, Task};
use store::destination::{self, DESTINATIONS_MAX, Version};
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

use crate::dispatch::LOOK_AGAIN_AT_SITE;
use crate::plan::Route;
use crate::worker::Worker;

/// Commits tried, when something else is ordered meanwhile.
const TRIES_MAX: usize = 20;

/// Why something was not ordered.
#[derive(Debug, Error)]
pub enum DestinationError {
    /// There is no smarthost of this name.
    #[error("there is no smarthost `{0}`: the configuration names them in [[delivery.smarthosts]]")]
    NoSmarthost(String),
    /// Domains behind one host may go different ways.
    #[error("a way is ordered for a recipients' domain, not for mail hosts")]
    WayOfHosts,
    /// Too much is ordered.
    #[error("something is ordered about {DESTINATIONS_MAX} destinations already; take some of it back first")]
    TooMany,
    /// Others order without end.
    #[error("something else was ordered at the same time; try again")]
    Changed,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// All that is ordered, of one version.
#[derive(Debug, Default)]
struct Orders {
    version: Version,
    domains: HashMap<Name, Standing>,
    mail_hosts: HashMap<Name, Standing>,
}

impl Orders {
    async fn read(store: &Store) -> Result<Self, ReadError> {
        // The version first: what is ordered in between is read again at the next look.
        let version = destination::version(store).await?;
        let mut orders = Self { version, ..Self::default() };
        for (destination, standing) in destination::all(store).await? {
            match destination {
                Destination::Domain(name) => orders.domains.insert(name, standing),
                Destination::MailHost(name) => orders.mail_hosts.insert(name, standing),
            };
        }
        Ok(orders)
    }

    fn of(&self, destination: &Destination) -> Option<&Standing> {
        match destination {
            Destination::Domain(name) => self.domains.get(name),
            Destination::MailHost(name) => self.mail_hosts.get(name),
        }
    }

    /// What is ordered about the hosts of a route, as far as it is meant: the nearest name above the first of them where
    /// that is so counts.
    fn of_hosts(&self, route: &Route, is_meant: impl Fn(&Standing) -> bool) -> Option<(&Name, &Standing)> {
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
pub(crate) struct Destinations {
    orders: RwLock<Arc<Orders>>,
    /// One at a time looks what is new: else what was read first could be taken on last.
    looking: tokio::sync::Mutex<()>,
}

impl Destinations {
    fn orders(&self) -> Arc<Orders> {
        Arc::clone(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn adopt(&self, orders: Orders) {
        *self.orders.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(orders);
    }

    /// Which way the mail of a domain goes, if that is ordered.
    fn way(&self, domain: &Name) -> Option<Way> {
        self.orders().domains.get(domain)?.way.clone()
    }

    /// Why a task is left alone, if it is.
    fn suspension(
        &self,
        domain: &Name,
        route: Option<&Route>,
        now: Timestamp,
    ) -> Option<(Destination, Suspension)> {
        let orders = self.orders();
        let by_domain = || {
            let standing = orders.domains.get(domain)?;
            Some((Destination::Domain(domain.clone()), standing))
        };
        let by_host = || {
            let holds = |standing: &Standing| standing.suspension.as_ref().is_some_and(|s| s.holds(now));
            let (name, standing) = orders.of_hosts(route?, holds)?;
            Some((Destination::MailHost(name.clone()), standing))
        };
        [by_domain(), by_host()].into_iter().flatten().find_map(|(destination, standing)| {
            let suspension = standing.suspension.as_ref().filter(|suspension| suspension.holds(now))?;
            Some((destination, suspension.clone()))
        })
    }

    /// How fast the hosts of a route are to be served by order, and the name that it was ordered for.
    pub(crate) fn pace(&self, route: &Route) -> Option<(Name, OrderedPace)> {
        let orders = self.orders();
        let (name, standing) = orders.of_hosts(route, |standing| !standing.pace.is_empty())?;
        Some((name.clone(), standing.pace))
    }
}

impl Worker {
    /// What is ordered about destinations, by name.
    #[must_use]
    pub fn ordered(&self) -> Vec<(Destination, Standing)> {
        let orders = self.destinations.orders();
        let domains = orders.domains.iter().map(|(name, s)| (Destination::Domain(name.clone()), s.clone()));
        let hosts =
            orders.mail_hosts.iter().map(|(name, s)| (Destination::MailHost(name.clone()), s.clone()));
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
        change: impl Fn(&mut Standing),
    ) -> Result<Standing, DestinationError> {
        for _ in 0..TRIES_MAX {
            let orders = Orders::read(&self.store).await?;
            let mut standing = orders.of(destination).cloned().unwrap_or_default();
            let before = standing.way.clone();
            change(&mut standing);
            standing.suspension.take_if(|suspension| !suspension.holds(self.clock.now()));
            if standing.way != before {
                self.judge_way(destination, &standing)?;
            }
            let count = orders.domains.len() + orders.mail_hosts.len();
            if orders.of(destination).is_none() && count >= DESTINATIONS_MAX {
                return Err(DestinationError::TooMany);
            }
            let mut batch = Batch::progress();
            destination::put(&mut batch, &orders.version, destination, &standing);
            match self.store.commit(batch).await {
                Ok(()) => {
                    self.look_at_destinations().await?;
                    return Ok(standing);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(DestinationError::Changed)
    }

    fn judge_way(&self, destination: &Destination, standing: &Standing) -> Result<(), DestinationError> {
        match (&standing.way, destination) {
            (Some(_), Destination::MailHost(_)) => Err(DestinationError::WayOfHosts),
            (Some(Way::Smarthost(name)), _) if self.planner.smarthosts().named(name).is_none() => {
                Err(DestinationError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Takes on what was ordered since the last look.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn look_at_destinations(&self) -> Result<(), ReadError> {
        let _looking = self.destinations.looking.lock().await;
        let before = self.destinations.orders();
        if destination::version(&self.store).await? == before.version {
            return Ok(());
        }
        self.destinations.adopt(Orders::read(&self.store).await?);
        self.share_pace();
        self.pools.all().for_each(|pool| pool.wake());
        // Whatever was left alone is looked at again: what is left alone still goes back to sleep.
        let now = self.clock.now();
        let concerned = |queue: &QueueName| {
            let theirs = |orders: &Orders| orders.domains.get(&queue.domain).cloned();
            let after = self.destinations.orders();
            theirs(&before) != theirs(&after) || before.mail_hosts != after.mail_hosts
        };
        self.scheduled.hasten_where(concerned, now);
        Ok(())
    }

    /// The route of a task, if it is known and still holds.
    pub(crate) fn route_of(&self, task: &Task, now: Timestamp) -> Option<Arc<Route>> {
        let domain = task.address.domain();
        match &task.way {
            Some(way) => self.planner.known(domain, Some(way), now),
            None => self.route_to(domain, now),
        }
    }

    /// The route that a task has taken, or would have, when its domain was last looked up: a site that took it keeps it,
    /// whether or not the plan still holds.
    pub(crate) fn last_route_of(&self, task: &Task) -> Option<Arc<Route>> {
        self.route_of(task, Timestamp::MIN)
    }

    /// The route of a domain's mail, if it is known and still holds.
    pub(crate) fn route_to(&self, domain: &Name, now: Timestamp) -> Option<Arc<Route>> {
        self.planner.known(domain, self.destinations.way(domain).as_ref(), now)
    }

    /// Why a task's destination is left alone, if the operator has ordered that.
    pub(crate) fn suspension(&self, task: &Task, route: Option<&Route>) -> Option<(Destination, Suspension)> {
        self.destinations.suspension(task.address.domain(), route, self.clock.now())
    }

    /// When mail to this domain is looked at again, if it is left alone. What is resumed is looked at at once.
    pub(crate) fn left_alone_until(&self, domain: &Name, route: Option<&Route>) -> Option<Timestamp> {
        let (_, suspension) = self.destinations.suspension(domain, route, self.clock.now())?;
        Some(suspension.until.unwrap_or_else(|| self.later(LOOK_AGAIN_AT_SITE)))
    }

    /// Leaves a task to disk while its destination is left alone, as was found: it is read again then.
    pub(crate) fn leave_alone(&self, task: &Task, route: Option<&Route>, until: Timestamp) {
        self.put_off(task, until);
        self.look_if_resumed(&task.queue(), route, until);
    }

    /// To be called once a queue is noted to be left alone until then. Who resumes a destination has all queues looked at
    /// that are noted: this one was not, if it was resumed between the look at what is ordered and the note.
    pub(crate) fn look_if_resumed(&self, queue: &QueueName, route: Option<&Route>, until: Timestamp) {
        if self.left_alone_until(&queue.domain, route).is_none_or(|again| again < until) {
            self.scheduled.hasten(queue, self.clock.now());
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
            let suspension = until.map(|until| Suspension { since, until, because: None });
            let change = |standing: &mut Standing| standing.suspension.clone_from(&suspension);
            worker.order_destination(&Destination::Domain(domain.clone()), change).await.unwrap();
            worker.left_alone_until(domain, None)
        };
        let later = worker.later(std::time::Duration::from_secs(3_600));
        for until in [None, Some(later)] {
            let again = order(Some(until)).await.unwrap();
            worker.leave_alone(&task, None, again);
            assert!(worker.scheduled.next_due() > Some(worker.clock.now()), "it is left alone");

            // Found to be left alone, and resumed before that is noted.
            let noted = worker.scheduled.pop_due(Timestamp::MAX);
            assert_eq!(noted.map(|(queue, _)| queue), Some(task.queue()));
            assert_eq!(order(None).await, None);
            worker.leave_alone(&task, None, again);
            assert!(worker.scheduled.next_due() <= Some(worker.clock.now()), "nobody would look at it");
            worker.scheduled.pop_due(Timestamp::MAX);
        }
        // The same where it is left alone again, and not so long.
        let sooner = worker.later(std::time::Duration::from_secs(60));
        let again = order(Some(Some(later))).await.unwrap();
        order(Some(Some(sooner))).await;
        worker.leave_alone(&task, None, again);
        assert!(worker.scheduled.next_due() <= Some(worker.clock.now()));
    }
}
