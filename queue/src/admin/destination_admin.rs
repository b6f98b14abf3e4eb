//! Operator commands on destinations: suspend, pace, route.
//!
//! An override is stored, applies on every node within one heartbeat, and persists over restarts.

use model::destination::{Destination, DestinationOverrides, RouteOverride};
use model::task::QueueName;
use store::destination::{self, DESTINATIONS_MAX};
use store::engine::{Batch, CommitError, ReadError};
use store::{RetriesExhausted, retry_on_conflict};
use thiserror::Error;

use crate::scheduler::destination_policies::DestinationOrders;
use crate::scheduler::destination_queues::DestinationQueues;

#[derive(Debug, Error)]
pub enum DestinationError {
    #[error("unknown smarthost `{0}`; define it in [[delivery.smarthosts]]")]
    NoSmarthost(String),
    /// Domains with a common mail host may have different routes.
    #[error("a route can be set only for a recipient domain, not for a mail host")]
    RouteOfMailHost,
    #[error("{DESTINATIONS_MAX} destinations already have overrides; remove some first")]
    TooMany,
    /// Concurrent changes did not end.
    #[error("another override was changed at the same time; try again")]
    Conflict(#[from] RetriesExhausted),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl DestinationQueues {
    /// All overrides, sorted by destination.
    pub fn list_overrides(&self) -> Vec<(Destination, DestinationOverrides)> {
        let orders = self.routes.policies.orders();
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
    pub async fn change_override(
        &self,
        destination: &Destination,
        change: impl Fn(&mut DestinationOverrides),
    ) -> Result<DestinationOverrides, DestinationError> {
        let overrides = retry_on_conflict(|| async {
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
            Ok::<_, DestinationError>(self.services.store.try_commit(batch).await?.then_some(overrides))
        })
        .await?;
        self.reload_overrides().await?;
        Ok(overrides)
    }

    fn validate_route_override(
        &self,
        destination: &Destination,
        overrides: &DestinationOverrides,
    ) -> Result<(), DestinationError> {
        match (&overrides.route, destination) {
            (Some(_), Destination::MailHost(_)) => Err(DestinationError::RouteOfMailHost),
            (Some(RouteOverride::Smarthost(name)), _)
                if self.routes.router.settings.smarthosts.named(name).is_none() =>
            {
                Err(DestinationError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Reloads the overrides if they changed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_overrides(&self) -> Result<(), ReadError> {
        let _reload = self.routes.policies.reload_lock.lock().await;
        let before = self.routes.policies.orders();
        if destination::current_version(&self.services.store).await? == before.version {
            return Ok(());
        }
        self.routes.policies.replace(DestinationOrders::read(&self.services.store).await?);
        self.rebalance_pace();
        self.pools.all().for_each(|pool| pool.wake());
        // Look at suspended queues again; those still suspended are deferred again.
        let now = self.services.clock.now();
        let is_affected = |queue: &QueueName| {
            let domain_overrides = |orders: &DestinationOrders| orders.domains.get(&queue.domain).cloned();
            let after = self.routes.policies.orders();
            domain_overrides(&before) != domain_overrides(&after) || before.mail_hosts != after.mail_hosts
        };
        self.scheduler.due_index.make_due_where(is_affected, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::destination::OperatorSuspension;
    use store::engine::Store;

    use super::*;
    use crate::delivery::outcome::tests::task;
    use crate::subsystems::tests::idle;

    #[tokio::test]
    async fn a_resumed_destination_is_due_at_once() {
        let (queue, task) = (idle(Store::memory()), task());
        let domain = task.address.domain();
        let order = async |until: Option<Option<Timestamp>>| {
            let since = Timestamp::UNIX_EPOCH;
            let suspension = until.map(|until| OperatorSuspension { since, until, because: None });
            let change = |overrides: &mut DestinationOverrides| overrides.suspension.clone_from(&suspension);
            queue.delivery.queues.change_override(&Destination::Domain(domain.clone()), change).await.unwrap();
            queue.delivery.queues.routes.suspended_until(domain, None)
        };
        let distant_end = queue.services.clock.after(std::time::Duration::from_secs(3_600));
        for until in [None, Some(distant_end)] {
            let resumed = order(Some(until)).await.unwrap();
            queue.delivery.queues.routes.defer_suspended(&task, None, resumed);
            assert!(
                queue.delivery.scheduler.due_index.next_due() > Some(queue.services.clock.now()),
                "it is left alone"
            );

            // Found suspended, and resumed before it is in the index.
            let noted = queue.delivery.scheduler.due_index.pop_due(Timestamp::MAX);
            assert_eq!(noted.map(|(queue, _)| queue), Some(task.queue_name()));
            assert_eq!(order(None).await, None);
            queue.delivery.queues.routes.defer_suspended(&task, None, resumed);
            assert!(
                queue.delivery.scheduler.due_index.next_due() <= Some(queue.services.clock.now()),
                "nobody would look at it"
            );
            queue.delivery.scheduler.due_index.pop_due(Timestamp::MAX);
        }
        // The same if it is suspended again, for a shorter time.
        let near_end = queue.services.clock.after(std::time::Duration::from_secs(60));
        let resumed = order(Some(Some(distant_end))).await.unwrap();
        order(Some(Some(near_end))).await;
        queue.delivery.queues.routes.defer_suspended(&task, None, resumed);
        assert!(queue.delivery.scheduler.due_index.next_due() <= Some(queue.services.clock.now()));
    }
}
