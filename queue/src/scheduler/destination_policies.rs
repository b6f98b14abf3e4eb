//! Operator overrides for destinations (suspension, pace, route), cached in memory, and their effects.
//!
//! ```text
//! postrider admin destination … ─►[ store ]─► every node, within one heartbeat ─► dispatch, loading, attempts, pace
//! ```

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use message::address::DomainName;
use model::destination::{Destination, DestinationOverrides, OperatorSuspension, PaceOverride, RouteOverride};
use store::destination::{self, DestinationOrdersVersion};
use store::engine::{ReadError, Store};

use crate::routing::MailRoute;

/// All overrides, as of one version.
#[derive(Debug, Default)]
pub(crate) struct DestinationOrders {
    pub(crate) version: DestinationOrdersVersion,
    pub(crate) domains: HashMap<DomainName, DestinationOverrides>,
    pub(crate) mail_hosts: HashMap<DomainName, DestinationOverrides>,
}

impl DestinationOrders {
    pub(crate) async fn read(store: &Store) -> Result<Self, ReadError> {
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

    pub(crate) fn for_destination(&self, destination: &Destination) -> Option<&DestinationOverrides> {
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
    pub(crate) reload_lock: tokio::sync::Mutex<()>,
}

impl DestinationPolicies {
    pub(crate) fn orders(&self) -> Arc<DestinationOrders> {
        Arc::clone(&self.orders.read())
    }

    pub(crate) fn replace(&self, orders: DestinationOrders) {
        *self.orders.write() = Arc::new(orders);
    }

    /// Route override of a domain, if any.
    pub(crate) fn route_override(&self, domain: &DomainName) -> Option<RouteOverride> {
        self.orders().domains.get(domain)?.route.clone()
    }

    /// Suspension of a destination, by domain or by mail host, if active.
    pub(crate) fn suspension(
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
