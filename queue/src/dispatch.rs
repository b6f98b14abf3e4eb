//! Dispatching: a task in memory goes to the site that takes its mail, as soon as the site is known.
//!
//! What finds no room at its site goes back to disk, from where refill brings it when there is room: so
//! a destination that is slow or dead fills its own line and then its own queues, and nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::address::Name;
use mail::classify::provider;
use mail::destination::OrderedPace;
use mail::outcome::{Outcome, Phase};
use mail::task::{Task, TlsDemand};
use mail::tls_report::{Applied, Fault, ResultType};

use crate::attempt;
use crate::pace::PaceLimits;
use crate::plan::{NoRoute, Route};
use crate::pools::{Pool, ProviderKey};
use crate::settle::Attempted;
use crate::site::{Call, Pushed, Ready, Site, SiteStanding};
use crate::worker::Worker;

/// Domains looked up at once. More would time out in the resolver's own line and be booked as trouble.
const LOOKUPS_MAX: usize = 512;
/// Tasks that wait in memory for one domain's look-up.
const WAITING_MAX: usize = 32;
/// Sites kept although nothing happens there (they remember their pace).
const SITES_MAX: usize = 20_000;
/// Connections to all hosts of a large provider, for each that one set of its hosts may have.
const PROVIDER_CONNECTIONS: u32 = 5;
/// Settlements at once of what a look-up left without a route.
const SETTLED_AT_ONCE: usize = 64;
/// How soon what found no room for its look-up, or could not be read, is looked at again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How soon what found no room at its site is looked at again, should the site not call for it before.
pub(crate) const LOOK_AGAIN_AT_SITE: Duration = Duration::from_secs(60);

/// Where a task went that was read from disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    /// Into a line, or to where its route is looked up.
    On,
    /// Back to disk, until a time that is noted.
    Back,
    /// Back to disk: there is no room for it, nor for those behind it.
    NoRoom,
}

/// How fast the hosts of a route are served.
struct Paced {
    /// These hosts.
    limits: PaceLimits,
    /// All hosts under a name together, if they are a provider's.
    provider: Option<(ProviderKey, PaceLimits)>,
}

impl Paced {
    /// What each of `nodes` may give them.
    fn share(self, nodes: u32) -> Self {
        let provider = self.provider.map(|(name, limits)| (name, limits.share(nodes)));
        Self { limits: self.limits.share(nodes), provider }
    }
}

impl Worker {
    /// Brings a task to its site: at once when the route is known, else when it is found.
    pub(crate) fn dispatch(self: &Arc<Self>, ready: Ready) -> Went {
        if self.holds.holds(ready.task.account) {
            self.park(&ready.task);
            return Went::Back;
        }
        let now = self.clock.now();
        let known = self.route_of(&ready.task, now);
        if ready.task.tls_optional && !known.as_ref().is_some_and(|route| route.is_to_smarthost()) {
            let worker = Arc::clone(self);
            self.spawn(async move { worker.resolve_unprotected(ready).await });
            return Went::On;
        }
        if let Some(route) = known {
            return self.line_up(&route, ready);
        }
        let domain = ready.task.address.domain().clone();
        if let Some(again) = self.left_alone_until(&domain, None) {
            self.leave_alone(&ready.task, None, again);
            return Went::Back;
        }
        if self.room_to_look_up(&domain) == 0 {
            self.put_off(&ready.task, self.later(LOOK_AGAIN));
            return Went::NoRoom;
        }
        let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = resolving.get_mut(&domain) {
            waiting.push(ready);
            return Went::On;
        }
        resolving.insert(domain.clone(), vec![ready]);
        drop(resolving);
        let worker = Arc::clone(self);
        self.spawn(async move { worker.resolve(domain).await });
        Went::On
    }

    /// How many tasks may wait for the look-up of this domain.
    pub(crate) fn room_to_look_up(&self, domain: &Name) -> usize {
        let resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        match resolving.get(domain) {
            Some(waiting) => WAITING_MAX.saturating_sub(waiting.len()),
            None if resolving.len() >= LOOKUPS_MAX => 0,
            None => WAITING_MAX,
        }
    }

    /// Whether the mail hosts of a domain are being looked up.
    pub(crate) fn is_domain_looked_up(&self, domain: &Name) -> bool {
        self.resolving.lock().unwrap_or_else(PoisonError::into_inner).contains_key(domain)
    }

    /// Whether a task waits for the look-up of its domain.
    pub(crate) fn is_looked_up(&self, task: &Task) -> bool {
        let resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = resolving.get(task.address.domain());
        waiting.is_some_and(|waiting| waiting.iter().any(|ready| ready.task.id == task.id))
    }

    async fn resolve(self: Arc<Self>, domain: Name) {
        let began_at = self.clock.now();
        let found = Box::pin(self.planner.find(&domain, began_at)).await;
        let waiting = {
            let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
            resolving.remove(&domain).unwrap_or_default()
        };
        let unanswered = match &found {
            Err(NoRoute::NotNow(why) | NoRoute::Forged(why)) => Some(why.as_str()),
            Ok(_) | Err(NoRoute::Unprotected(..) | NoRoute::Never(_)) => None,
        };
        self.lookup_failures.note(&domain, unanswered, self.clock.now());
        let no_route = match found {
            Ok(route) => {
                return waiting.into_iter().for_each(|ready| {
                    self.line_up(&route, ready);
                });
            }
            Err(no_route) => no_route,
        };
        match &no_route {
            NoRoute::Unprotected(why, applied) => {
                self.count_outside(&domain, applied, Fault::new(ResultType::ValidationFailure, why));
            }
            // RFC 8460 4.3.2.1.
            NoRoute::Forged(why) => {
                self.count_outside(&domain, &Applied::unproved(), Fault::new(ResultType::DnssecInvalid, why));
            }
            NoRoute::NotNow(_) | NoRoute::Never(_) => {}
        }
        let attempted = self.no_route(no_route, began_at);
        futures_util::stream::iter(waiting)
            .for_each_concurrent(SETTLED_AT_ONCE, async |ready| {
                if self.flights.depart(ready.task.id, ready.task.partition) {
                    self.settle(&ready, &attempted).await;
                } else {
                    self.let_go(&ready.task);
                }
            })
            .await;
    }

    /// Brings a task to hosts whatever is asked of TLS there. Such tasks are few: each looks for itself.
    async fn resolve_unprotected(self: Arc<Self>, ready: Ready) {
        let began_at = self.clock.now();
        match self.planner.find_unprotected(ready.task.address.domain()).await {
            Ok(route) => _ = self.line_up(&route, ready),
            Err(no_route) if self.flights.depart(ready.task.id, ready.task.partition) => {
                self.settle(&ready, &self.no_route(no_route, began_at)).await;
            }
            Err(_) => self.let_go(&ready.task),
        }
    }

    /// An attempt that came to no hosts.
    pub(crate) fn no_route(&self, why: NoRoute, began_at: Timestamp) -> Attempted {
        let (outcome, phase) = match why {
            NoRoute::NotNow(text) | NoRoute::Forged(text) => (Outcome::Unreachable(text), Phase::Dns),
            NoRoute::Unprotected(text, _) => (Outcome::Unreachable(text), Phase::Tls),
            NoRoute::Never(reply) => (Outcome::Undeliverable(reply), Phase::Dns),
        };
        self.not_dialled(outcome, phase, began_at)
    }

    /// An attempt that came to no connection.
    pub(crate) fn not_dialled(&self, outcome: Outcome, phase: Phase, began_at: Timestamp) -> Attempted {
        let duration = Duration::try_from(self.clock.now().duration_since(began_at)).unwrap_or_default();
        let transcript = String::new();
        Attempted {
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
            answered_before: None,
        }
    }

    fn line_up(self: &Arc<Self>, route: &Arc<Route>, ready: Ready) -> Went {
        // Its account may have been suspended while its hosts were looked up.
        if self.holds.holds(ready.task.account) {
            self.park(&ready.task);
            return Went::Back;
        }
        if let Some(again) = self.left_alone_until(ready.task.address.domain(), Some(route)) {
            self.leave_alone(&ready.task, Some(route), again);
            return Went::Back;
        }
        let (now, tls) = (self.clock.now(), ready.task.tls_demand());
        if ready.task.is_too_late(now) {
            let worker = Arc::clone(self);
            self.spawn(async move { worker.lapse_in_line(&ready).await });
            return Went::On;
        }
        let waits = |pool: &Arc<Pool>| self.site(pool, route, tls).alone_until(now).is_some();
        let site = self.site(self.pools.leave(&ready.task, route, now, waits), route, tls);
        match site.push(ready, now, self.flights.room()) {
            Pushed::Lined(call) => {
                self.answer(&site, call);
                Went::On
            }
            Pushed::Dead(ready, until) => {
                self.put_off(&ready.task, until);
                self.note_delay(ready.task.queue(), &site);
                Went::Back
            }
            Pushed::Full(ready) => {
                self.put_off(&ready.task, self.later(LOOK_AGAIN_AT_SITE));
                site.park(ready.task.queue());
                // Who made room before it was parked hastened nothing.
                if let Ok(1..) = site.admits(ready.task.class, now, self.flights.room()) {
                    self.scheduled.hasten(&ready.task.queue(), now);
                }
                Went::NoRoom
            }
        }
    }

    /// Ends a task that is worth nothing any more, and that nobody has taken yet.
    async fn lapse_in_line(self: &Arc<Self>, ready: &Ready) {
        if self.flights.depart(ready.task.id, ready.task.partition) {
            self.lapse(ready).await;
        } else {
            self.let_go(&ready.task);
        }
    }

    /// Ends a task that was taken, if it is worth nothing any more. Whether it is.
    pub(crate) async fn lapse(self: &Arc<Self>, ready: &Ready) -> bool {
        let is_lapsed = ready.task.is_too_late(self.clock.now());
        if is_lapsed {
            self.end_lapsed(ready).await;
        }
        is_lapsed
    }

    /// Ends a task whose time is up, and that nobody tries. False: somebody else has changed it.
    pub(crate) async fn end_lapsed(self: &Arc<Self>, ready: &Ready) -> bool {
        let why = match self.last_error(&ready.task) {
            Some(error) => {
                format!("its time was up before it could be tried; the destination's last error: {error}")
            }
            None => "its time was up before it was its turn".to_owned(),
        };
        let untried = self.untried(&ready.task, &why).await;
        self.book(ready, &untried).await
    }

    /// Leaves an untried task to disk, to be read again then.
    pub(crate) fn put_off(&self, task: &Task, until: Timestamp) {
        self.flights.land(task.id);
        self.scheduled.note(task.queue(), until, store::task::key_of(task));
    }

    pub(crate) fn later(&self, wait: Duration) -> Timestamp {
        self.clock.now().checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// Does what a site calls for.
    pub(crate) fn answer(self: &Arc<Self>, site: &Arc<Site>, call: Call) {
        if call == Call::Connect {
            if self.stop.is_cancelled() {
                // Nothing begins any more; what waits stays on disk.
                site.left(true);
                return;
            }
            self.spawn(attempt::carry(Arc::clone(self), Arc::clone(site)));
        }
    }

    /// The site of a route, as it is served from a pool; made if there is none.
    pub(crate) fn site(&self, pool: &Pool, route: &Arc<Route>, tls: TlsDemand) -> Arc<Site> {
        let mut sites = pool.sites();
        let sites = &mut sites[tls as usize];
        if let Some(site) = sites.get(&route.site) {
            return Arc::clone(site);
        }
        let now = self.clock.now();
        // Looked through once in so many new ones: the cost of each stays small.
        if sites.len() >= SITES_MAX && sites.len().is_multiple_of(SITES_MAX / 10) {
            sites.retain(|_, site| !site.is_quiet(now));
        }
        let paced = self.pace_of(route).share(self.leases.nodes());
        let limits = paced.limits;
        let to = (Arc::clone(route), Arc::clone(&pool.source));
        let site = Arc::new(Site::new(to, tls, limits, self.settings.ready_max));
        site.belong(pool.provider(paced.provider), pool.budget_of_site(route, now));
        sites.insert(route.site.clone(), Arc::clone(&site));
        site
    }

    /// The number of nodes has changed, or something is ordered: each takes its part of what a site may be given.
    pub(crate) fn share_pace(&self) {
        let (nodes, now) = (self.leases.nodes(), self.clock.now());
        for pool in self.pools.all() {
            for site in pool.sites().iter().flat_map(HashMap::values) {
                let paced = self.pace_of(site.route()).share(nodes);
                site.limit(paced.limits);
                site.belong(pool.provider(paced.provider), pool.budget_of_site(site.route(), now));
            }
        }
    }

    /// How fast the hosts of a route are served, as was ordered or is configured, or as is usual.
    fn pace_of(&self, route: &Route) -> Paced {
        let (configured, limits) = self.limits_of(route);
        let ordered = self.destinations.pace(route);
        let limits = ordered.as_ref().map_or(limits, |(_, pace)| limits.ordered(*pace));
        let known = route.first_host().and_then(provider);
        // As many connections as a large provider has without being asked.
        let many = || {
            let connections_max = limits.connections_max.saturating_mul(PROVIDER_CONNECTIONS);
            PaceLimits { connections_max, ..limits }
        };
        let provider = match (ordered, configured) {
            // Nothing is said of its connections.
            (Some((name, OrderedPace { connections_max: None, .. })), None) if known.is_some() => {
                Some((ProviderKey::Paced(name), many()))
            }
            (Some((name, _)), _) | (None, Some(name)) => Some((ProviderKey::Paced(name), limits)),
            (None, None) => known.map(|name| {
                (ProviderKey::Known(name.clone()), PaceLimits { messages_per_second: None, ..many() })
            }),
        };
        Paced { limits, provider }
    }

    fn limits_of(&self, route: &Route) -> (Option<Name>, PaceLimits) {
        let written = |wanted: Option<&Name>| {
            self.settings.pace.iter().find(|(domain, _)| domain.as_ref() == wanted).map(|(_, limits)| *limits)
        };
        let mut name = route.first_host().cloned();
        while let Some(domain) = name {
            if let Some(limits) = written(Some(&domain)) {
                return (Some(domain), limits);
            }
            name = domain.parent();
        }
        (None, written(None).unwrap_or_default())
    }

    /// The site of a task is tried now, dead or not.
    pub(crate) fn revive(&self, task: &Task) {
        if let Some(route) = self.last_route_of(task) {
            self.sites_of(task, &route).for_each(|site| site.revive());
            // With it rest, and are revived, those of its provider.
            self.pools.may_hold(task, &route).for_each(|pool| pool.wake());
        }
    }

    /// How the sites stand, the busiest first.
    #[must_use]
    pub fn standings(&self) -> Vec<SiteStanding> {
        let now = self.clock.now();
        let of_pool = |pool: &Arc<Pool>| -> Vec<SiteStanding> {
            pool.sites().iter().flat_map(HashMap::values).map(|site| site.standing(now)).collect()
        };
        let mut standings: Vec<_> = self.pools.all().flat_map(of_pool).collect();
        standings.sort_by_key(|s| std::cmp::Reverse((s.ready, s.connections)));
        standings
    }
}
