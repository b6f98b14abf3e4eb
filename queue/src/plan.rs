//! Planning: from a recipient's domain to the site that takes its mail.
//!
//! A site is a set of MX hosts with their preferences; all domains behind one provider share it, and
//! with it connections and pace. A plan holds for as long as the DNS says, and no longer than an
//! hour. A smarthost is a site, too.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dns::lookup::{Answer, Dane, LookupError, Resolver};
use dns::mail_hosts::{MailHosts, MxHost, drop_at_or_below};
use jiff::Timestamp;
use mail::address::Name;
use mail::destination::Way;
use mail::mta_sts::{KeptPolicy, Mode};
use mail::reply::{Enhanced, Reply};

use crate::guard::{self, Guards, Protection, Signatures};
use crate::smarthosts::{Smarthost, SmarthostAt, Smarthosts, When};
use crate::sts::Unsure;

/// Plans kept; beyond it those that lapsed go, or, when none has, all.
const PLANS_MAX: usize = 100_000;
/// A plan is made anew after an hour, whatever the DNS says: hosts are watched more than records.
const PLAN_HOLDS_MAX: Duration = Duration::from_secs(3600);
/// A plan holds for a little while at least, or a zero TTL would cost a look-up a message.
const PLAN_HOLDS_MIN: Duration = Duration::from_secs(5);

/// Where a domain's mail goes.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The name of the site: what is the same for all domains that share it.
    pub site: String,
    /// Its hosts.
    pub to: Destination,
    /// What was published about the way there.
    pub protection: Protection,
    /// Who takes the mail where none of the hosts can be reached.
    pub fail_over: Option<Arc<Smarthost>>,
}

/// The hosts of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To the hosts of an MX record set, or to the domain itself.
    Hosts {
        /// Sorted, never empty.
        hosts: Vec<MxHost>,
        /// The port: 25 but for tests.
        port: u16,
    },
    /// To a smarthost.
    Smarthost(Arc<Smarthost>),
}

impl Route {
    /// The same, protected as it was published. It is a site of its own: connections that were not made that way are no
    /// good for it.
    #[must_use]
    fn protected(self, protection: Protection) -> Self {
        Self { site: format!("{}{}", self.site, protection.label()), protection, ..self }
    }

    /// The same, with somebody who steps in. A site of its own: for other domains at the same hosts nobody may.
    #[must_use]
    fn or_by(self, fail_over: Option<&Arc<Self>>) -> Self {
        match fail_over.map(|route| &route.to) {
            Some(Destination::Smarthost(smarthost)) => Self {
                site: format!("{} (or {})", self.site, smarthost.name),
                fail_over: Some(Arc::clone(smarthost)),
                ..self
            },
            Some(Destination::Hosts { .. }) | None => self,
        }
    }

    /// The most preferred host, when the route leads to hosts with names.
    #[must_use]
    pub fn first_host(&self) -> Option<&Name> {
        match &self.to {
            Destination::Hosts { hosts, .. } => hosts.first().map(|h| &h.host),
            Destination::Smarthost(smarthost) => match smarthost.at.first() {
                Some(SmarthostAt::Host(host, _)) => Some(host),
                Some(SmarthostAt::Address(_)) | None => None,
            },
        }
    }
}

impl From<Destination> for Route {
    fn from(to: Destination) -> Self {
        let site = match &to {
            Destination::Hosts { hosts, .. } => {
                let named: Vec<String> =
                    hosts.iter().map(|h| format!("{} {}", h.preference, h.host)).collect();
                named.join(", ")
            }
            Destination::Smarthost(smarthost) => smarthost.site(),
        };
        Self { site, to, protection: Protection::default(), fail_over: None }
    }
}

/// Why there is no route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoute {
    /// Ask again later.
    NotNow(String),
    /// None that is protected as the domain asks for: later, perhaps.
    Unprotected(String),
    /// There is none: what we say in the destination's stead.
    Never(Reply),
}

/// What planning needs to know.
#[derive(Debug, Clone)]
pub struct PlanSettings {
    /// The port of MX hosts.
    pub port: u16,
    /// Who takes whose mail in the stead of the recipients' hosts.
    pub smarthosts: Smarthosts,
    /// Names that are ours: an MX that is we ourselves is a loop.
    pub own_names: Vec<Name>,
}

/// Makes and keeps plans.
#[derive(Debug)]
pub struct Planner {
    resolver: Resolver,
    settings: PlanSettings,
    guards: Guards,
    plans: Mutex<HashMap<Name, (Timestamp, Arc<Route>)>>,
}

impl Planner {
    /// The resolver that it asks.
    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// A planner that asks this resolver.
    #[must_use]
    pub fn new(resolver: Resolver, settings: PlanSettings) -> Self {
        Self { resolver, settings, guards: Guards::default(), plans: Mutex::default() }
    }

    /// The same, which asks these how mail is to be protected.
    #[must_use]
    pub fn guarded(self, guards: Guards) -> Self {
        Self { guards, ..self }
    }

    /// The route of a domain, if it is known and still holds. The operator may have ordered which way it goes; a
    /// smarthost that is configured no more is none.
    #[must_use]
    pub fn known(&self, domain: &Name, way: Option<&Way>, now: Timestamp) -> Option<Arc<Route>> {
        let smarthosts = &self.settings.smarthosts;
        let ordered = match way {
            Some(Way::MailHosts) => return self.planned(domain, now),
            Some(Way::Smarthost(name)) => smarthosts.named(name),
            None => None,
        };
        match ordered.or_else(|| smarthosts.of(domain, When::Always)) {
            Some(route) => Some(Arc::clone(route)),
            None => self.planned(domain, now),
        }
    }

    /// The smarthosts that there are.
    #[must_use]
    pub fn smarthosts(&self) -> &Smarthosts {
        &self.settings.smarthosts
    }

    /// The route to a domain's own hosts, if it is known and still holds.
    fn planned(&self, domain: &Name, now: Timestamp) -> Option<Arc<Route>> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.get(domain).filter(|(until, _)| *until > now).map(|(_, route)| Arc::clone(route))
    }

    /// Finds the route to a domain's own hosts (RFC 5321 5.1, RFC 7505).
    ///
    /// # Errors
    /// [`NoRoute`] says whether to ask again.
    pub async fn find(&self, domain: &Name, now: Timestamp) -> Result<Arc<Route>, NoRoute> {
        if let Some(route) = self.planned(domain, now) {
            return Ok(route);
        }
        let (answer, policy) = tokio::join!(self.mx(domain, now), self.policy(domain, now));
        let answer = answer.map_err(|error| match error {
            LookupError::Temporary { .. } | LookupError::Bogus { .. } => {
                NoRoute::NotNow(format!("looking up the MX records of {domain}: {error}"))
            }
            LookupError::Malformed { .. } => NoRoute::Never(say(
                Enhanced::new(5, 4, 4),
                format!("the MX records of {domain} are malformed: {error}"),
            )),
        })?;
        let mut hosts = hosts_of(domain, answer.data, &self.settings.own_names).map_err(NoRoute::Never)?;
        let policy = policy.map_err(|unsure| NoRoute::NotNow(format!("{domain}: {unsure}")))?;
        let policy = policy.map(|kept| kept.policy).filter(|policy| policy.mode != Mode::None);
        if let Some(policy) = policy.as_ref().filter(|policy| policy.mode == Mode::Enforce) {
            // RFC 8461 5: other hosts are none, however preferred they are.
            hosts.retain(|host| policy.covers(&host.host));
            if hosts.is_empty() {
                let text =
                    format!("none of the mail hosts of {domain} stands in its policy of MTA-STS (RFC 8461)");
                return Err(NoRoute::Unprotected(text));
            }
        }
        let protection = Protection { sts: policy.map(|policy| policy.mode), is_signed: answer.is_secure };
        let to = Destination::Hosts { hosts, port: self.settings.port };
        let route: Arc<Route> = Arc::new(
            Route::from(to).protected(protection).or_by(self.settings.smarthosts.of(domain, When::FailOver)),
        );
        let is_settled = self.guards.signatures.as_ref().is_none_or(Signatures::is_settled);
        let ttl = if is_settled { answer.ttl } else { answer.ttl.min(guard::LOOK.unsigned_abs()) };
        self.keep(domain, &route, now, ttl);
        Ok(route)
    }

    async fn mx(&self, domain: &Name, now: Timestamp) -> Result<Answer<MailHosts>, LookupError> {
        match self.signatures(now).await {
            Some(checking) => match checking.mx(domain).await {
                Err(LookupError::Bogus { .. }) if self.is_lenient() => self.resolver.mx(domain).await,
                found => found,
            },
            None => self.resolver.mx(domain).await,
        }
    }

    fn is_lenient(&self) -> bool {
        self.guards.signatures.as_ref().is_some_and(Signatures::is_lenient)
    }

    async fn signatures(&self, now: Timestamp) -> Option<&Resolver> {
        match &self.guards.signatures {
            Some(signatures) => signatures.resolver(now).await,
            None => None,
        }
    }

    async fn policy(&self, domain: &Name, now: Timestamp) -> Result<Option<KeptPolicy>, Unsure> {
        match &self.guards.sts {
            Some(policies) => Box::pin(policies.of(domain, &self.resolver, now)).await,
            None => Ok(None),
        }
    }

    /// What a host of a route says of its certificate, where its word counts.
    ///
    /// # Errors
    /// Whether it says something is not to be had: the host is not to be used now (RFC 7672 2.1.2).
    pub async fn dane(
        &self,
        route: &Route,
        (host, port): (&Name, u16),
        now: Timestamp,
    ) -> Result<Dane, LookupError> {
        // Most are not: nobody is asked for them.
        if !route.protection.is_signed {
            return Ok(Dane::None);
        }
        match self.signatures(now).await {
            Some(checking) => match checking.dane(host, port).await {
                Err(LookupError::Bogus { .. }) if self.is_lenient() => {
                    self.resolver.addresses(host).await.map(|_| Dane::None)
                }
                found => found.map(|answer| answer.data),
            },
            None => Ok(Dane::None),
        }
    }

    fn keep(&self, domain: &Name, route: &Arc<Route>, now: Timestamp, ttl: Duration) {
        let Ok(until) = now.checked_add(ttl.clamp(PLAN_HOLDS_MIN, PLAN_HOLDS_MAX)) else { return };
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_MAX {
            plans.retain(|_, (until, _)| *until > now);
            if plans.len() >= PLANS_MAX {
                plans.clear();
            }
        }
        plans.insert(domain.clone(), (until, Arc::clone(route)));
    }

    /// The addresses to try for a route, in order: by preference, equals shuffled by `seed`; at most
    /// `limit`. A host without addresses is passed over.
    ///
    /// # Errors
    /// What went wrong, when no host has an address.
    pub async fn addresses(
        &self,
        route: &Route,
        seed: u64,
        limit: usize,
    ) -> Result<Vec<(Name, SocketAddr)>, NoRoute> {
        let (mut hosts, port) = match &route.to {
            Destination::Hosts { hosts, port } => (hosts.clone(), *port),
            Destination::Smarthost(smarthost) => return self.smarthost_addresses(smarthost, limit).await,
        };
        dns::mail_hosts::order(&mut hosts, seed);
        let mut found = Found::new(limit);
        for MxHost { host, .. } in hosts {
            if found.is_full() {
                break;
            }
            found.look_up(&self.resolver, &host, port).await;
        }
        found.end()
    }

    /// The addresses of a smarthost, in order, at most `limit`.
    ///
    /// # Errors
    /// What went wrong, when none of its hosts has an address.
    pub async fn smarthost_addresses(
        &self,
        smarthost: &Smarthost,
        limit: usize,
    ) -> Result<Vec<(Name, SocketAddr)>, NoRoute> {
        let mut found = Found::new(limit);
        for at in &smarthost.at {
            match at {
                SmarthostAt::Host(host, port) => found.look_up(&self.resolver, host, *port).await,
                SmarthostAt::Address(address) => {
                    let name = "smarthost".parse().map_err(|_| NoRoute::NotNow("no name".to_owned()))?;
                    found.addresses.push((name, *address));
                }
            }
        }
        found.end()
    }
}

/// Addresses that were found, and what went wrong with the last host that has none.
struct Found {
    addresses: Vec<(Name, SocketAddr)>,
    trouble: Option<String>,
    limit: usize,
}

impl Found {
    fn new(limit: usize) -> Self {
        Self { addresses: Vec::new(), trouble: None, limit }
    }

    fn is_full(&self) -> bool {
        self.addresses.len() >= self.limit
    }

    async fn look_up(&mut self, resolver: &Resolver, host: &Name, port: u16) {
        match resolver.addresses(host).await {
            // Two of each host, so that a host with many addresses leaves room for the next one.
            Ok(answer) => self
                .addresses
                .extend(answer.data.into_iter().take(2).map(|ip| (host.clone(), SocketAddr::new(ip, port)))),
            Err(error) => self.trouble = Some(format!("looking up the address of {host}: {error}")),
        }
    }

    fn end(mut self) -> Result<Vec<(Name, SocketAddr)>, NoRoute> {
        self.addresses.truncate(self.limit);
        if self.addresses.is_empty() {
            let none = || "none of the mail hosts has an address".to_owned();
            return Err(NoRoute::NotNow(self.trouble.unwrap_or_else(none)));
        }
        Ok(self.addresses)
    }
}

/// From the DNS's answer to hosts to try, or to what we say in the destination's stead.
fn hosts_of(domain: &Name, answer: MailHosts, own_names: &[Name]) -> Result<Vec<MxHost>, Reply> {
    match answer {
        MailHosts::Mx(hosts) => {
            let hosts = drop_at_or_below(hosts, own_names);
            if hosts.is_empty() {
                // RFC 5321 5.1: we are the best MX and do not take its mail.
                return Err(say(
                    Enhanced::new(5, 4, 6),
                    format!("the mail of {domain} loops back to this host"),
                ));
            }
            Ok(hosts)
        }
        MailHosts::ImplicitMx(host) if own_names.contains(&host) => {
            Err(say(Enhanced::new(5, 4, 6), format!("the mail of {domain} loops back to this host")))
        }
        MailHosts::ImplicitMx(host) => Ok(vec![MxHost { preference: 0, host }]),
        MailHosts::NullMx => Err(say(Enhanced::new(5, 1, 10), format!("{domain} takes no mail (null MX)"))),
        MailHosts::NoMail => Err(say(Enhanced::new(5, 1, 2), format!("{domain} has no mail host"))),
        MailHosts::NoSuchDomain => {
            Err(say(Enhanced::new(5, 1, 2), format!("the domain {domain} does not exist")))
        }
    }
}

fn say(enhanced: Enhanced, text: String) -> Reply {
    let code = if enhanced == Enhanced::new(5, 1, 10) { 556 } else { 550 };
    Reply::new(code, enhanced, text)
}
