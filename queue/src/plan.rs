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
use mail::tls_report::{self, Applied, PolicyKind};

use crate::guard::{Guards, Protection, Signatures};
use crate::receiving::Receiving;
use crate::smarthosts::{Smarthost, SmarthostAt, Smarthosts, When};
use crate::sts::{Standing, Unsure};

/// Plans kept; beyond it those that lapsed go, or, when none has, every other one.
const PLANS_MAX: usize = 150_000;
/// A plan is made anew after an hour, whatever the DNS says: hosts are watched more than records.
const PLAN_HOLDS_MAX: Duration = Duration::from_secs(3600);
/// A plan holds for a little while at least, or a zero TTL would cost a look-up a message.
const PLAN_HOLDS_MIN: Duration = Duration::from_secs(5);
/// For so long somebody steps in for hosts that could not be found out; then they are looked up again.
const STEPS_IN_FOR: Duration = Duration::from_secs(60);

/// What a domain says of how its mail is to be protected, for reports (RFC 8460). Routes are shared; this is not.
#[derive(Debug)]
pub struct Published {
    /// Its policy of MTA-STS.
    pub applied: Applied,
    /// The same, to be asked.
    policy: Option<KeptPolicy>,
    /// Why it could not be had.
    pub trouble: Option<tls_report::Fault>,
}

impl Published {
    fn of(standing: Standing) -> Option<Arc<Self>> {
        let policy = standing.policy.filter(|kept| kept.policy.mode != Mode::None);
        let applied = match (&policy, &standing.trouble) {
            (None, None) => return None,
            (None, Some(_)) => Applied::missing(),
            (Some(kept), _) => {
                let mx = kept.policy.mx.iter().cloned().map(String::from).collect();
                Applied { kind: PolicyKind::Sts, lines: kept.lines.clone(), mx }
            }
        };
        Some(Arc::new(Self { applied, policy, trouble: standing.trouble }))
    }

    /// Whether a host may take the domain's mail.
    #[must_use]
    pub fn covers(&self, host: &Name) -> bool {
        self.policy.as_ref().is_none_or(|kept| kept.policy.covers(host))
    }
}

fn mode_of(published: Option<&Published>) -> Option<Mode> {
    published?.policy.as_ref().map(|kept| kept.policy.mode)
}

/// What is known of the way to a domain.
#[derive(Debug)]
struct Plan {
    /// Until when it holds.
    until: Timestamp,
    /// Whether it was known then that signatures are checked: once they are, what was planned without is planned anew.
    is_settled: bool,
    route: Arc<Route>,
    /// What the domain says.
    published: Option<Arc<Published>>,
}

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
    /// Whether it leads to a smarthost.
    pub(crate) fn is_to_smarthost(&self) -> bool {
        matches!(self.to, Destination::Smarthost(_))
    }

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
    /// The answer's signatures do not hold: later, perhaps.
    Forged(String),
    /// None that is protected as the domain asks for, by its policy: later, perhaps.
    Unprotected(String, Applied),
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
    receiving: Option<Receiving>,
    plans: Mutex<HashMap<Name, Plan>>,
}

impl Planner {
    /// The resolver that it asks.
    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// A planner that asks this resolver.
    #[must_use]
    pub fn new(resolver: Resolver, settings: PlanSettings) -> Self {
        Self { resolver, settings, guards: Guards::default(), receiving: None, plans: Mutex::default() }
    }

    /// The same, where mail comes in, too: to ourselves goes what is for those whose mail we take.
    #[must_use]
    pub fn receiving(self, receiving: Receiving) -> Self {
        Self { receiving: Some(receiving), ..self }
    }

    /// The same, which asks these how mail is to be protected.
    #[must_use]
    pub fn guarded(self, guards: Guards) -> Self {
        Self { guards, ..self }
    }

    /// The route of a domain, if it is known and still holds; as of [`Timestamp::MIN`] the last one, whether it holds or
    /// not. The operator may have ordered which way it goes; a smarthost that is configured no more is none.
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
        let is_settled = self.is_settled();
        let holds = |plan: &&Plan| plan.until > now && (plan.is_settled || !is_settled);
        plans.get(domain).filter(holds).map(|plan| Arc::clone(&plan.route))
    }

    /// What a domain says of how its mail is to be protected, as of its plan.
    #[must_use]
    pub fn published(&self, domain: &Name) -> Option<Arc<Published>> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.get(domain).and_then(|plan| plan.published.clone())
    }

    /// Finds the route to a domain's own hosts, whatever they say of how mail is to be protected (RFC 8689 5).
    ///
    /// # Errors
    /// As [`Planner::find`].
    pub async fn find_unprotected(&self, domain: &Name) -> Result<Arc<Route>, NoRoute> {
        let answer = self.resolver.mx(domain).await.map_err(|error| not_found(domain, &error))?;
        let hosts = self.hosts(domain, answer.data).await?;
        let route = Route::from(Destination::Hosts { hosts, port: self.settings.port });
        Ok(Arc::new(route.or_by(self.settings.smarthosts.of(domain, When::FailOver))))
    }

    /// Finds the route to a domain's own hosts (RFC 5321 5.1, RFC 7505).
    ///
    /// # Errors
    /// [`NoRoute`] says whether to ask again.
    pub async fn find(&self, domain: &Name, now: Timestamp) -> Result<Arc<Route>, NoRoute> {
        if let Some(route) = self.planned(domain, now) {
            return Ok(route);
        }
        // Before it is asked: what is seen meanwhile makes a new plan.
        let is_settled = self.is_settled();
        let (answer, policy) = tokio::join!(self.mx(domain, now), self.policy(domain, now));
        let published = policy.map(Published::of);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // What is forged is waited out; and without knowing what is asked of TLS nothing goes.
                let known = published.ok().filter(|_| matches!(error, LookupError::Temporary { .. }));
                let route = known.and_then(|published| self.step_in(domain, published, now));
                return route.ok_or_else(|| not_found(domain, &error));
            }
        };
        let mut hosts = self.hosts(domain, answer.data).await?;
        let published = published.map_err(|unsure| NoRoute::NotNow(format!("{domain}: {unsure}")))?;
        let mode = mode_of(published.as_deref());
        if let (Some(published), Some(Mode::Enforce)) = (&published, mode) {
            // RFC 8461 5: other hosts are none, however preferred they are.
            hosts.retain(|host| published.covers(&host.host));
            if hosts.is_empty() {
                let text =
                    format!("none of the mail hosts of {domain} stands in its policy of MTA-STS (RFC 8461)");
                return Err(NoRoute::Unprotected(text, published.applied.clone()));
            }
        }
        let protection = Protection { sts: mode, is_signed: answer.is_secure };
        let to = Destination::Hosts { hosts, port: self.settings.port };
        let route: Arc<Route> = Arc::new(
            Route::from(to).protected(protection).or_by(self.settings.smarthosts.of(domain, When::FailOver)),
        );
        let plan = |until| Plan { until, is_settled, route: Arc::clone(&route), published };
        self.keep(domain, now, answer.ttl, plan);
        Ok(route)
    }

    /// The hosts that take a domain's mail. We ourselves are one of them where it comes in here.
    async fn hosts(&self, domain: &Name, answer: MailHosts) -> Result<Vec<MxHost>, NoRoute> {
        let names_us = match &answer {
            MailHosts::Mx(hosts) => hosts.iter().any(|mx| self.is_own(&mx.host)),
            MailHosts::ImplicitMx(host) => self.is_own(host),
            MailHosts::NullMx | MailHosts::NoMail | MailHosts::NoSuchDomain => false,
        };
        let own_names = match names_us && self.comes_in(domain).await? {
            true => &[][..],
            false => &self.settings.own_names,
        };
        hosts_of(domain, answer, own_names).map_err(NoRoute::Never)
    }

    /// Whether a host is we ourselves, by its name.
    pub(crate) fn is_own(&self, host: &Name) -> bool {
        self.settings.own_names.contains(host)
    }

    async fn comes_in(&self, domain: &Name) -> Result<bool, NoRoute> {
        let Some(receiving) = &self.receiving else { return Ok(false) };
        let unread = |error| NoRoute::NotNow(format!("whether the mail of {domain} comes in here: {error}"));
        receiving.takes(domain).await.map_err(unread)
    }

    /// Whether a host that calls itself this is we ourselves.
    pub(crate) fn is_us(&self, host: &Name, called: &str) -> bool {
        self.is_own(host) || called.parse().is_ok_and(|called: Name| self.is_own(&called))
    }

    /// A host of a domain's has answered, and calls itself this. By our own name it is we ourselves, whatever it is
    /// called in the DNS (RFC 5321 6.3): a loop, unless the domain's mail comes in here.
    ///
    /// # Errors
    /// [`NoRoute`]: it is one.
    pub(crate) async fn meets(&self, domain: &Name, host: &Name, called: &str) -> Result<(), NoRoute> {
        if !self.is_us(host, called) || self.comes_in(domain).await? {
            return Ok(());
        }
        let text = format!("the mail of {domain} loops back to this host: {host} calls itself {called}");
        Err(NoRoute::Never(say(Enhanced::new(5, 4, 6), text)))
    }

    /// The way to who steps in where nobody says now which hosts a domain has. What is known of how its mail is to be
    /// protected holds there, too: its policy, and that its MX records were signed.
    fn step_in(
        &self,
        domain: &Name,
        published: Option<Arc<Published>>,
        now: Timestamp,
    ) -> Option<Arc<Route>> {
        let smarthost = self.settings.smarthosts.of(domain, When::FailOver)?;
        let before = self.planned(domain, Timestamp::MIN);
        let is_signed = before.is_some_and(|route| route.protection.is_signed);
        let protection = Protection { sts: mode_of(published.as_deref()), is_signed };
        let route = Arc::new(Route::from(smarthost.to.clone()).protected(protection));
        let (is_settled, kept) = (self.is_settled(), Arc::clone(&route));
        self.keep(domain, now, STEPS_IN_FOR, |until| Plan { until, is_settled, route: kept, published });
        Some(route)
    }

    fn is_settled(&self) -> bool {
        self.guards.signatures.as_ref().is_none_or(Signatures::is_settled)
    }

    async fn mx(&self, domain: &Name, now: Timestamp) -> Result<Answer<MailHosts>, LookupError> {
        match self.signatures(now).await {
            Some(checking) => match checking.mx(domain).await {
                // Where the name server gives no answer either, it finds the same.
                Err(bogus @ LookupError::Bogus { .. }) if self.is_lenient() => {
                    self.resolver.mx(domain).await.map_err(|error| match error {
                        LookupError::Temporary { .. } => bogus,
                        other => other,
                    })
                }
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

    async fn policy(&self, domain: &Name, now: Timestamp) -> Result<Standing, Unsure> {
        match &self.guards.sts {
            Some(policies) => Box::pin(policies.of(domain, &self.resolver, now)).await,
            None => Ok(Standing::default()),
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

    fn keep(&self, domain: &Name, now: Timestamp, ttl: Duration, plan: impl FnOnce(Timestamp) -> Plan) {
        let Ok(until) = now.checked_add(ttl.clamp(PLAN_HOLDS_MIN, PLAN_HOLDS_MAX)) else { return };
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_MAX {
            plans.retain(|_, plan| plan.until > now);
            if plans.len() >= PLANS_MAX {
                // Which go is left to chance; the others spare as many look-ups.
                let mut goes = false;
                plans.retain(|_, _| {
                    goes = !goes;
                    !goes
                });
            }
        }
        plans.insert(domain.clone(), plan(until));
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

fn not_found(domain: &Name, error: &LookupError) -> NoRoute {
    let told = || format!("looking up the MX records of {domain}: {error}");
    match error {
        LookupError::Temporary { .. } => NoRoute::NotNow(told()),
        LookupError::Bogus { .. } => NoRoute::Forged(told()),
        LookupError::Malformed { .. } => NoRoute::Never(say(
            Enhanced::new(5, 4, 4),
            format!("the MX records of {domain} are malformed: {error}"),
        )),
    }
}

/// From the DNS's answer to hosts to try, or to what we say in the destination's stead.
fn hosts_of(domain: &Name, answer: MailHosts, own_names: &[Name]) -> Result<Vec<MxHost>, Reply> {
    match answer {
        MailHosts::Mx(hosts) => {
            let hosts = drop_at_or_below(hosts, own_names);
            if hosts.is_empty() {
                // RFC 5321 5.1: we are the best MX and do not take its mail.
                return Err(loops(domain));
            }
            Ok(hosts)
        }
        MailHosts::ImplicitMx(host) if own_names.contains(&host) => Err(loops(domain)),
        MailHosts::ImplicitMx(host) => Ok(vec![MxHost { preference: 0, host }]),
        MailHosts::NullMx => Err(say(Enhanced::new(5, 1, 10), format!("{domain} takes no mail (null MX)"))),
        MailHosts::NoMail => Err(say(Enhanced::new(5, 1, 2), format!("{domain} has no mail host"))),
        MailHosts::NoSuchDomain => {
            Err(say(Enhanced::new(5, 1, 2), format!("the domain {domain} does not exist")))
        }
    }
}

pub(crate) fn loops(domain: &Name) -> Reply {
    say(Enhanced::new(5, 4, 6), format!("the mail of {domain} loops back to this host"))
}

fn say(enhanced: Enhanced, text: String) -> Reply {
    let code = if enhanced == Enhanced::new(5, 1, 10) { 556 } else { 550 };
    Reply::new(code, enhanced, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smarthosts::Whose;

    #[tokio::test]
    async fn who_steps_in_keeps_to_what_was_known_of_the_hosts() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let at = vec![SmarthostAt::Host(name("relay.example"), 587)];
        let late = Smarthost { name: "late".parse().unwrap(), at, credentials: None, tls: None };
        let whose = vec![Whose::Domain(name("a.example"))];
        let smarthosts = Smarthosts::new(vec![(late, When::FailOver, whose)]);
        let resolver = Resolver::new(&dns::lookup::Settings {
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            ..dns::lookup::Settings::default()
        });
        let settings = PlanSettings { port: 25, smarthosts, own_names: Vec::new() };
        let planner = Planner::new(resolver.unwrap(), settings);
        let (domain, now) = (name("a.example"), Timestamp::UNIX_EPOCH);

        let unknown = planner.step_in(&domain, None, now).unwrap();
        assert_eq!((unknown.is_to_smarthost(), unknown.protection), (true, Protection::default()));
        let hosts = vec![MxHost { preference: 10, host: name("mx.a.example") }];
        let signed = Protection { sts: None, is_signed: true };
        let own = Route::from(Destination::Hosts { hosts, port: 25 }).protected(signed);
        let own = Arc::new(own);
        let plan = |until| Plan { until, is_settled: true, route: own, published: None };
        planner.keep(&domain, now, PLAN_HOLDS_MIN, plan);
        let later = now.checked_add(PLAN_HOLDS_MAX).unwrap();
        for at in [later, later.checked_add(PLAN_HOLDS_MAX).unwrap()] {
            let known = planner.step_in(&domain, None, at).unwrap();
            assert_eq!((known.is_to_smarthost(), known.protection), (true, signed));
            assert!(known.site.ends_with("(signed)") && planner.known(&domain, None, at).is_some());
        }
        assert!(planner.step_in(&name("b.example"), None, now).is_none());
    }
}
