//! Planning: from a recipient's domain to the site that takes its mail.
//!
//! A site is a set of MX hosts with their preferences; all domains behind one provider share it, and
//! with it connections and pace. A plan holds for as long as the DNS says, and no longer than an
//! hour. A smarthost is a site, too.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dns::lookup::{DaneRecords, LookupAnswer, LookupError, Resolver};
use dns::mail_hosts::{MailHosts, MxHost, drop_own_and_less_preferred};
use jiff::Timestamp;
use mail::address::DomainName;
use mail::destination::RouteOverride;
use mail::mta_sts::{CachedMtaStsPolicy, MtaStsMode};
use mail::reply::{Enhanced, SmtpReply};
use mail::tls_report::{self, AppliedTlsPolicy, TlsPolicyType};

use crate::guard::{DnssecResolver, TransportSecurity, TransportSecurityPolicies};
use crate::receiving::LocalDomains;
use crate::smarthosts::{Smarthost, SmarthostEndpoint, SmarthostUse, Smarthosts};
use crate::sts::{PolicyUnavailable, StsPolicyState};

/// Plans kept; beyond it those that lapsed go, or, when none has, every other one.
const CACHED_ROUTES_MAX: usize = 150_000;
/// A plan is made anew after an hour, whatever the DNS says: hosts are watched more than records.
const ROUTE_TTL_MAX: Duration = Duration::from_secs(3600);
/// A plan holds for a little while at least, or a zero TTL would cost a look-up a message.
const ROUTE_TTL_MIN: Duration = Duration::from_secs(5);
/// For so long somebody steps in for hosts that could not be found out; then they are looked up again.
const FAIL_OVER_TTL: Duration = Duration::from_secs(60);

/// What a domain says of how its mail is to be protected, for reports (RFC 8460). Routes are shared; this is not.
#[derive(Debug)]
pub struct TlsPolicySource {
    /// Its policy of MTA-STS.
    pub applied: AppliedTlsPolicy,
    /// The same, to be asked.
    policy: Option<CachedMtaStsPolicy>,
    /// Why it could not be had.
    pub fault: Option<tls_report::TlsFault>,
}

impl TlsPolicySource {
    fn from_sts_state(standing: StsPolicyState) -> Option<Arc<Self>> {
        let policy = standing.policy.filter(|kept| kept.policy.mode != MtaStsMode::None);
        let applied = match (&policy, &standing.fault) {
            (None, None) => return None,
            (None, Some(_)) => AppliedTlsPolicy::missing_sts_policy(),
            (Some(kept), _) => {
                let mx = kept.policy.mx.iter().cloned().map(String::from).collect();
                AppliedTlsPolicy { kind: TlsPolicyType::Sts, lines: kept.lines.clone(), mx }
            }
        };
        Some(Arc::new(Self { applied, policy, fault: standing.fault }))
    }

    /// Whether a host may take the domain's mail.
    #[must_use]
    pub fn covers(&self, host: &DomainName) -> bool {
        self.policy.as_ref().is_none_or(|kept| kept.policy.covers(host))
    }
}

fn sts_mode(published: Option<&TlsPolicySource>) -> Option<MtaStsMode> {
    published?.policy.as_ref().map(|kept| kept.policy.mode)
}

/// What is known of the way to a domain.
#[derive(Debug)]
struct CachedRoute {
    /// Until when it holds.
    expires_at: Timestamp,
    /// Whether it was known then that signatures are checked: once they are, what was planned without is planned anew.
    dnssec_was_active: bool,
    route: Arc<MailRoute>,
    /// What the domain says.
    tls_policy: Option<Arc<TlsPolicySource>>,
}

/// Where a domain's mail goes.
#[derive(Debug, PartialEq, Eq)]
pub struct MailRoute {
    /// The name of the site: what is the same for all domains that share it.
    pub queue_name: String,
    /// Its hosts.
    pub next_hop: NextHop,
    /// What was published about the way there.
    pub security: TransportSecurity,
    /// Who takes the mail where none of the hosts can be reached.
    pub fail_over: Option<Arc<Smarthost>>,
}

/// The hosts of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHop {
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

impl MailRoute {
    /// Whether it leads to a smarthost.
    pub(crate) fn is_to_smarthost(&self) -> bool {
        matches!(self.next_hop, NextHop::Smarthost(_))
    }

    /// The same, protected as it was published. It is a site of its own: connections that were not made that way are no
    /// good for it.
    #[must_use]
    fn with_security(self, protection: TransportSecurity) -> Self {
        Self { queue_name: format!("{}{}", self.queue_name, protection.queue_suffix()), security: protection, ..self }
    }

    /// The same, with somebody who steps in. A site of its own: for other domains at the same hosts nobody may.
    #[must_use]
    fn with_fail_over(self, fail_over: Option<&Arc<Self>>) -> Self {
        match fail_over.map(|route| &route.next_hop) {
            Some(NextHop::Smarthost(smarthost)) => Self {
                queue_name: format!("{} (or {})", self.queue_name, smarthost.name),
                fail_over: Some(Arc::clone(smarthost)),
                ..self
            },
            Some(NextHop::Hosts { .. }) | None => self,
        }
    }

    /// The most preferred host, when the route leads to hosts with names.
    #[must_use]
    pub fn first_host(&self) -> Option<&DomainName> {
        match &self.next_hop {
            NextHop::Hosts { hosts, .. } => hosts.first().map(|h| &h.host),
            NextHop::Smarthost(smarthost) => match smarthost.endpoints.first() {
                Some(SmarthostEndpoint::Host(host, _)) => Some(host),
                Some(SmarthostEndpoint::Address(_)) | None => None,
            },
        }
    }
}

impl From<NextHop> for MailRoute {
    fn from(to: NextHop) -> Self {
        let site = match &to {
            NextHop::Hosts { hosts, .. } => {
                let named: Vec<String> = hosts.iter().map(|h| format!("{} {}", h.preference, h.host)).collect();
                named.join(", ")
            }
            NextHop::Smarthost(smarthost) => smarthost.ready_queue_name(),
        };
        Self { queue_name: site, next_hop: to, security: TransportSecurity::default(), fail_over: None }
    }
}

/// Why there is no route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// Ask again later.
    Transient(String),
    /// The answer's signatures do not hold: later, perhaps.
    DnssecBogus(String),
    /// None that is protected as the domain asks for, by its policy: later, perhaps.
    TlsPolicyUnmet(String, AppliedTlsPolicy),
    /// There is none: what we say in the destination's stead.
    Permanent(SmtpReply),
}

/// What planning needs to know.
#[derive(Debug, Clone)]
pub struct RouterSettings {
    /// The port of MX hosts.
    pub port: u16,
    /// Who takes whose mail in the stead of the recipients' hosts.
    pub smarthosts: Smarthosts,
    /// Names that are ours: an MX that is we ourselves is a loop.
    pub own_names: Vec<DomainName>,
}

/// Makes and keeps plans.
#[derive(Debug)]
pub struct MxRouter {
    resolver: Resolver,
    settings: RouterSettings,
    security_policies: TransportSecurityPolicies,
    local_domains: Option<LocalDomains>,
    cache: Mutex<HashMap<DomainName, CachedRoute>>,
}

impl MxRouter {
    /// The resolver that it asks.
    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// A planner that asks this resolver.
    #[must_use]
    pub fn new(resolver: Resolver, settings: RouterSettings) -> Self {
        Self {
            resolver,
            settings,
            security_policies: TransportSecurityPolicies::default(),
            local_domains: None,
            cache: Mutex::default(),
        }
    }

    /// The same, where mail comes in, too: to ourselves goes what is for those whose mail we take.
    #[must_use]
    pub fn with_local_domains(self, receiving: LocalDomains) -> Self {
        Self { local_domains: Some(receiving), ..self }
    }

    /// The same, which asks these how mail is to be protected.
    #[must_use]
    pub fn with_security_policies(self, guards: TransportSecurityPolicies) -> Self {
        Self { security_policies: guards, ..self }
    }

    /// The route of a domain, if it is known and still holds; as of [`Timestamp::MIN`] the last one, whether it holds or
    /// not. The operator may have ordered which way it goes; a smarthost that is configured no more is none.
    #[must_use]
    pub fn cached_route(
        &self,
        domain: &DomainName,
        way: Option<&RouteOverride>,
        now: Timestamp,
    ) -> Option<Arc<MailRoute>> {
        let smarthosts = &self.settings.smarthosts;
        let ordered = match way {
            Some(RouteOverride::MailHosts) => return self.cached_mx_route(domain, now),
            Some(RouteOverride::Smarthost(name)) => smarthosts.named(name),
            None => None,
        };
        match ordered.or_else(|| smarthosts.for_domain(domain, SmarthostUse::Always)) {
            Some(route) => Some(Arc::clone(route)),
            None => self.cached_mx_route(domain, now),
        }
    }

    /// The smarthosts that there are.
    #[must_use]
    pub fn smarthosts(&self) -> &Smarthosts {
        &self.settings.smarthosts
    }

    /// The route to a domain's own hosts, if it is known and still holds.
    fn cached_mx_route(&self, domain: &DomainName, now: Timestamp) -> Option<Arc<MailRoute>> {
        let plans = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let is_settled = self.is_dnssec_active();
        let holds = |plan: &&CachedRoute| plan.expires_at > now && (plan.dnssec_was_active || !is_settled);
        plans.get(domain).filter(holds).map(|plan| Arc::clone(&plan.route))
    }

    /// What a domain says of how its mail is to be protected, as of its plan.
    #[must_use]
    pub fn tls_policy(&self, domain: &DomainName) -> Option<Arc<TlsPolicySource>> {
        let plans = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        plans.get(domain).and_then(|plan| plan.tls_policy.clone())
    }

    /// Finds the route to a domain's own hosts, whatever they say of how mail is to be protected (RFC 8689 5).
    ///
    /// # Errors
    /// As [`Planner::find`].
    pub async fn find_route_without_tls_policy(&self, domain: &DomainName) -> Result<Arc<MailRoute>, RouteError> {
        let answer = self.resolver.mx(domain).await.map_err(|error| lookup_route_error(domain, &error))?;
        let hosts = self.mail_hosts(domain, answer.data).await?;
        let route = MailRoute::from(NextHop::Hosts { hosts, port: self.settings.port });
        Ok(Arc::new(route.with_fail_over(self.settings.smarthosts.for_domain(domain, SmarthostUse::FailOver))))
    }

    /// Finds the route to a domain's own hosts (RFC 5321 5.1, RFC 7505).
    ///
    /// # Errors
    /// [`NoRoute`] says whether to ask again.
    pub async fn find_route(&self, domain: &DomainName, now: Timestamp) -> Result<Arc<MailRoute>, RouteError> {
        if let Some(route) = self.cached_mx_route(domain, now) {
            return Ok(route);
        }
        // Before it is asked: what is seen meanwhile makes a new plan.
        let is_settled = self.is_dnssec_active();
        let (answer, policy) = tokio::join!(self.lookup_mx(domain, now), self.sts_policy(domain, now));
        let published = policy.map(TlsPolicySource::from_sts_state);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // What is forged is waited out; and without knowing what is asked of TLS nothing goes.
                let known = published.ok().filter(|_| matches!(error, LookupError::Temporary { .. }));
                let route = known.and_then(|published| self.fail_over_route(domain, published, now));
                return route.ok_or_else(|| lookup_route_error(domain, &error));
            }
        };
        let mut hosts = self.mail_hosts(domain, answer.data).await?;
        let published = published.map_err(|unsure| RouteError::Transient(format!("{domain}: {unsure}")))?;
        let mode = sts_mode(published.as_deref());
        if let (Some(published), Some(MtaStsMode::Enforce)) = (&published, mode) {
            // RFC 8461 5: other hosts are none, however preferred they are.
            hosts.retain(|host| published.covers(&host.host));
            if hosts.is_empty() {
                let text = format!("none of the mail hosts of {domain} stands in its policy of MTA-STS (RFC 8461)");
                return Err(RouteError::TlsPolicyUnmet(text, published.applied.clone()));
            }
        }
        let protection = TransportSecurity { sts: mode, is_dnssec_signed: answer.is_secure };
        let to = NextHop::Hosts { hosts, port: self.settings.port };
        let route: Arc<MailRoute> = Arc::new(
            MailRoute::from(to)
                .with_security(protection)
                .with_fail_over(self.settings.smarthosts.for_domain(domain, SmarthostUse::FailOver)),
        );
        let plan = |until| CachedRoute {
            expires_at: until,
            dnssec_was_active: is_settled,
            route: Arc::clone(&route),
            tls_policy: published,
        };
        self.cache_route(domain, now, answer.ttl, plan);
        Ok(route)
    }

    /// The hosts that take a domain's mail. We ourselves are one of them where it comes in here.
    async fn mail_hosts(&self, domain: &DomainName, answer: MailHosts) -> Result<Vec<MxHost>, RouteError> {
        let names_us = match &answer {
            MailHosts::Mx(hosts) => hosts.iter().any(|mx| self.is_own_host(&mx.host)),
            MailHosts::ImplicitMx(host) => self.is_own_host(host),
            MailHosts::NullMx | MailHosts::NoMail | MailHosts::NoSuchDomain => false,
        };
        let own_names = match names_us && self.is_local_domain(domain).await? {
            true => &[][..],
            false => &self.settings.own_names,
        };
        usable_mx_hosts(domain, answer, own_names).map_err(RouteError::Permanent)
    }

    /// Whether a host is we ourselves, by its name.
    pub(crate) fn is_own_host(&self, host: &DomainName) -> bool {
        self.settings.own_names.contains(host)
    }

    async fn is_local_domain(&self, domain: &DomainName) -> Result<bool, RouteError> {
        let Some(receiving) = &self.local_domains else { return Ok(false) };
        let unread = |error| RouteError::Transient(format!("whether the mail of {domain} comes in here: {error}"));
        receiving.contains(domain).await.map_err(unread)
    }

    /// Whether a host that calls itself this is we ourselves.
    pub(crate) fn is_self(&self, host: &DomainName, called: &str) -> bool {
        self.is_own_host(host) || called.parse().is_ok_and(|called: DomainName| self.is_own_host(&called))
    }

    /// A host of a domain's has answered, and calls itself this. By our own name it is we ourselves, whatever it is
    /// called in the DNS (RFC 5321 6.3): a loop, unless the domain's mail comes in here.
    ///
    /// # Errors
    /// [`NoRoute`]: it is one.
    pub(crate) async fn check_loop(
        &self,
        domain: &DomainName,
        host: &DomainName,
        called: &str,
    ) -> Result<(), RouteError> {
        if !self.is_self(host, called) || self.is_local_domain(domain).await? {
            return Ok(());
        }
        let text = format!("the mail of {domain} loops back to this host: {host} calls itself {called}");
        Err(RouteError::Permanent(rejection_reply(Enhanced::new(5, 4, 6), text)))
    }

    /// The way to who steps in where nobody says now which hosts a domain has. What is known of how its mail is to be
    /// protected holds there, too: its policy, and that its MX records were signed.
    fn fail_over_route(
        &self,
        domain: &DomainName,
        published: Option<Arc<TlsPolicySource>>,
        now: Timestamp,
    ) -> Option<Arc<MailRoute>> {
        let smarthost = self.settings.smarthosts.for_domain(domain, SmarthostUse::FailOver)?;
        let before = self.cached_mx_route(domain, Timestamp::MIN);
        let is_signed = before.is_some_and(|route| route.security.is_dnssec_signed);
        let protection = TransportSecurity { sts: sts_mode(published.as_deref()), is_dnssec_signed: is_signed };
        let route = Arc::new(MailRoute::from(smarthost.next_hop.clone()).with_security(protection));
        let (is_settled, kept) = (self.is_dnssec_active(), Arc::clone(&route));
        self.cache_route(domain, now, FAIL_OVER_TTL, |until| CachedRoute {
            expires_at: until,
            dnssec_was_active: is_settled,
            route: kept,
            tls_policy: published,
        });
        Some(route)
    }

    fn is_dnssec_active(&self) -> bool {
        self.security_policies.dnssec.as_ref().is_none_or(DnssecResolver::is_active)
    }

    async fn lookup_mx(&self, domain: &DomainName, now: Timestamp) -> Result<LookupAnswer<MailHosts>, LookupError> {
        match self.validating_resolver(now).await {
            Some(checking) => match checking.mx(domain).await {
                // Where the name server gives no answer either, it finds the same.
                Err(bogus @ LookupError::Bogus { .. }) if self.is_dnssec_lenient() => {
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

    fn is_dnssec_lenient(&self) -> bool {
        self.security_policies.dnssec.as_ref().is_some_and(DnssecResolver::is_lenient)
    }

    async fn validating_resolver(&self, now: Timestamp) -> Option<&Resolver> {
        match &self.security_policies.dnssec {
            Some(signatures) => signatures.validating_resolver(now).await,
            None => None,
        }
    }

    async fn sts_policy(&self, domain: &DomainName, now: Timestamp) -> Result<StsPolicyState, PolicyUnavailable> {
        match &self.security_policies.sts {
            Some(policies) => Box::pin(policies.policy_of(domain, &self.resolver, now)).await,
            None => Ok(StsPolicyState::default()),
        }
    }

    /// What a host of a route says of its certificate, where its word counts.
    ///
    /// # Errors
    /// Whether it says something is not to be had: the host is not to be used now (RFC 7672 2.1.2).
    pub async fn lookup_dane(
        &self,
        route: &MailRoute,
        (host, port): (&DomainName, u16),
        now: Timestamp,
    ) -> Result<DaneRecords, LookupError> {
        // Most are not: nobody is asked for them.
        if !route.security.is_dnssec_signed {
            return Ok(DaneRecords::None);
        }
        match self.validating_resolver(now).await {
            Some(checking) => match checking.dane(host, port).await {
                Err(LookupError::Bogus { .. }) if self.is_dnssec_lenient() => {
                    self.resolver.addresses(host).await.map(|_| DaneRecords::None)
                }
                found => found.map(|answer| answer.data),
            },
            None => Ok(DaneRecords::None),
        }
    }

    fn cache_route(
        &self,
        domain: &DomainName,
        now: Timestamp,
        ttl: Duration,
        plan: impl FnOnce(Timestamp) -> CachedRoute,
    ) {
        let Ok(until) = now.checked_add(ttl.clamp(ROUTE_TTL_MIN, ROUTE_TTL_MAX)) else { return };
        let mut plans = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= CACHED_ROUTES_MAX {
            plans.retain(|_, plan| plan.expires_at > now);
            if plans.len() >= CACHED_ROUTES_MAX {
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
    pub async fn host_addresses(
        &self,
        route: &MailRoute,
        seed: u64,
        limit: usize,
    ) -> Result<Vec<(DomainName, SocketAddr)>, RouteError> {
        let (mut hosts, port) = match &route.next_hop {
            NextHop::Hosts { hosts, port } => (hosts.clone(), *port),
            NextHop::Smarthost(smarthost) => return self.smarthost_addresses(smarthost, limit).await,
        };
        dns::mail_hosts::shuffle_equal_preferences(&mut hosts, seed);
        let mut found = ResolvedAddresses::new(limit);
        for MxHost { host, .. } in hosts {
            if found.is_full() {
                break;
            }
            found.resolve_host(&self.resolver, &host, port).await;
        }
        found.finish()
    }

    /// The addresses of a smarthost, in order, at most `limit`.
    ///
    /// # Errors
    /// What went wrong, when none of its hosts has an address.
    pub async fn smarthost_addresses(
        &self,
        smarthost: &Smarthost,
        limit: usize,
    ) -> Result<Vec<(DomainName, SocketAddr)>, RouteError> {
        let mut found = ResolvedAddresses::new(limit);
        for at in &smarthost.endpoints {
            match at {
                SmarthostEndpoint::Host(host, port) => found.resolve_host(&self.resolver, host, *port).await,
                SmarthostEndpoint::Address(address) => {
                    let name = "smarthost".parse().map_err(|_| RouteError::Transient("no name".to_owned()))?;
                    found.addresses.push((name, *address));
                }
            }
        }
        found.finish()
    }
}

/// Addresses that were found, and what went wrong with the last host that has none.
struct ResolvedAddresses {
    addresses: Vec<(DomainName, SocketAddr)>,
    last_error: Option<String>,
    limit: usize,
}

impl ResolvedAddresses {
    fn new(limit: usize) -> Self {
        Self { addresses: Vec::new(), last_error: None, limit }
    }

    fn is_full(&self) -> bool {
        self.addresses.len() >= self.limit
    }

    async fn resolve_host(&mut self, resolver: &Resolver, host: &DomainName, port: u16) {
        match resolver.addresses(host).await {
            // Two of each host, so that a host with many addresses leaves room for the next one.
            Ok(answer) => self
                .addresses
                .extend(answer.data.into_iter().take(2).map(|ip| (host.clone(), SocketAddr::new(ip, port)))),
            Err(error) => self.last_error = Some(format!("looking up the address of {host}: {error}")),
        }
    }

    fn finish(mut self) -> Result<Vec<(DomainName, SocketAddr)>, RouteError> {
        self.addresses.truncate(self.limit);
        if self.addresses.is_empty() {
            let none = || "none of the mail hosts has an address".to_owned();
            return Err(RouteError::Transient(self.last_error.unwrap_or_else(none)));
        }
        Ok(self.addresses)
    }
}

fn lookup_route_error(domain: &DomainName, error: &LookupError) -> RouteError {
    let told = || format!("looking up the MX records of {domain}: {error}");
    match error {
        LookupError::Temporary { .. } => RouteError::Transient(told()),
        LookupError::Bogus { .. } => RouteError::DnssecBogus(told()),
        LookupError::Malformed { .. } => RouteError::Permanent(rejection_reply(
            Enhanced::new(5, 4, 4),
            format!("the MX records of {domain} are malformed: {error}"),
        )),
    }
}

/// From the DNS's answer to hosts to try, or to what we say in the destination's stead.
fn usable_mx_hosts(domain: &DomainName, answer: MailHosts, own_names: &[DomainName]) -> Result<Vec<MxHost>, SmtpReply> {
    match answer {
        MailHosts::Mx(hosts) => {
            let hosts = drop_own_and_less_preferred(hosts, own_names);
            if hosts.is_empty() {
                // RFC 5321 5.1: we are the best MX and do not take its mail.
                return Err(loop_reply(domain));
            }
            Ok(hosts)
        }
        MailHosts::ImplicitMx(host) if own_names.contains(&host) => Err(loop_reply(domain)),
        MailHosts::ImplicitMx(host) => Ok(vec![MxHost { preference: 0, host }]),
        MailHosts::NullMx => Err(rejection_reply(Enhanced::new(5, 1, 10), format!("{domain} takes no mail (null MX)"))),
        MailHosts::NoMail => Err(rejection_reply(Enhanced::new(5, 1, 2), format!("{domain} has no mail host"))),
        MailHosts::NoSuchDomain => {
            Err(rejection_reply(Enhanced::new(5, 1, 2), format!("the domain {domain} does not exist")))
        }
    }
}

pub(crate) fn loop_reply(domain: &DomainName) -> SmtpReply {
    rejection_reply(Enhanced::new(5, 4, 6), format!("the mail of {domain} loops back to this host"))
}

fn rejection_reply(enhanced: Enhanced, text: String) -> SmtpReply {
    let code = if enhanced == Enhanced::new(5, 1, 10) { 556 } else { 550 };
    SmtpReply::new(code, enhanced, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smarthosts::DomainScope;

    #[tokio::test]
    async fn who_steps_in_keeps_to_what_was_known_of_the_hosts() {
        let name = |text: &str| text.parse::<DomainName>().unwrap();
        let at = vec![SmarthostEndpoint::Host(name("relay.example"), 587)];
        let late = Smarthost { name: "late".parse().unwrap(), endpoints: at, credentials: None, tls: None };
        let whose = vec![DomainScope::Domain(name("a.example"))];
        let smarthosts = Smarthosts::new(vec![(late, SmarthostUse::FailOver, whose)]);
        let resolver = Resolver::new(&dns::lookup::ResolverSettings {
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            ..dns::lookup::ResolverSettings::default()
        });
        let settings = RouterSettings { port: 25, smarthosts, own_names: Vec::new() };
        let planner = MxRouter::new(resolver.unwrap(), settings);
        let (domain, now) = (name("a.example"), Timestamp::UNIX_EPOCH);

        let unknown = planner.fail_over_route(&domain, None, now).unwrap();
        assert_eq!((unknown.is_to_smarthost(), unknown.security), (true, TransportSecurity::default()));
        let hosts = vec![MxHost { preference: 10, host: name("mx.a.example") }];
        let signed = TransportSecurity { sts: None, is_dnssec_signed: true };
        let own = MailRoute::from(NextHop::Hosts { hosts, port: 25 }).with_security(signed);
        let own = Arc::new(own);
        let plan = |until| CachedRoute { expires_at: until, dnssec_was_active: true, route: own, tls_policy: None };
        planner.cache_route(&domain, now, ROUTE_TTL_MIN, plan);
        let later = now.checked_add(ROUTE_TTL_MAX).unwrap();
        for at in [later, later.checked_add(ROUTE_TTL_MAX).unwrap()] {
            let known = planner.fail_over_route(&domain, None, at).unwrap();
            assert_eq!((known.is_to_smarthost(), known.security), (true, signed));
            assert!(known.queue_name.ends_with("(signed)") && planner.cached_route(&domain, None, at).is_some());
        }
        assert!(planner.fail_over_route(&name("b.example"), None, now).is_none());
    }
}
