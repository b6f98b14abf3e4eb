//! Routing: from a recipient's domain to the mail hosts that take its mail (RFC 5321 5.1).
//!
//! ```text
//! domain ─► cache ─► override or smarthost? ─► MX lookup + MTA-STS policy ─► usable hosts ─► MailRoute (a ready queue)
//! ```
//!
//! A route is a set of MX hosts with their preferences, or a smarthost. All domains with the same set share one ready
//! queue, and with it connections and pace. A route is cached for the TTL of its DNS records, at most an hour.

pub(crate) mod host_addresses;
pub mod local_domains;
pub(crate) mod lookup_failures;
pub mod mta_sts;
pub mod own_hostnames;
pub(crate) mod route_table;
pub mod smarthosts;
pub mod transport_security;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dns::mx::{MailHosts, MxHost, drop_own_and_less_preferred};
use dns::resolver::{DaneRecords, LookupAnswer, LookupError, Resolver};
use jiff::Timestamp;
use message::address::DomainName;
use message::mta_sts::{CachedMtaStsPolicy, MtaStsMode};
use message::reply::{Enhanced, SmtpReply};
use message::tls_report::{self, AppliedTlsPolicy, TlsPolicyType};
use model::destination::RouteOverride;

use crate::routing::host_addresses::HostAddresses;
use crate::routing::local_domains::LocalDomains;
use crate::routing::mta_sts::{PolicyUnavailable, StsPolicyState};
use crate::routing::smarthosts::{Smarthost, SmarthostEndpoint, SmarthostUse, Smarthosts};
use crate::routing::transport_security::{DnssecResolver, TransportSecurity, TransportSecurityPolicies};

/// Cached routes. Beyond this number expired ones are evicted; if none is expired, every other one.
const CACHED_ROUTES_MAX: usize = 150_000;
/// Longest time a route is cached, whatever the DNS TTL.
const ROUTE_TTL_MAX: Duration = Duration::from_secs(3600);
/// Shortest time a route is cached: a zero TTL would cost a lookup per message.
const ROUTE_TTL_MIN: Duration = Duration::from_secs(5);
/// Time for which a fail-over route is cached when the MX lookup failed; then the lookup is repeated.
const FAIL_OVER_TTL: Duration = Duration::from_secs(60);

/// A domain's MTA-STS policy as used for its route, for TLS reports (RFC 8460). Domains share routes but not this.
#[derive(Debug)]
pub struct TlsPolicySource {
    /// The policy as TLS reports quote it.
    pub applied: AppliedTlsPolicy,
    /// The parsed policy, to match the hosts of the route.
    policy: Option<CachedMtaStsPolicy>,
    /// Fault of the last policy fetch.
    pub fault: Option<tls_report::TlsFault>,
}

impl TlsPolicySource {
    /// Keeps of a long policy only the patterns that match these hosts; all if the hosts are unknown, because a
    /// connection to them may still be open.
    fn from_sts_state(standing: StsPolicyState, hosts: Option<&[MxHost]>) -> Option<Arc<Self>> {
        let mut policy = standing.policy.filter(|cached| cached.policy.mode != MtaStsMode::None);
        let applied = match (&policy, &standing.fault) {
            (None, None) => return None,
            (None, Some(_)) => AppliedTlsPolicy::missing_sts_policy(),
            (Some(cached), _) => {
                AppliedTlsPolicy { kind: TlsPolicyType::Sts, lines: cached.lines.clone(), mx: cached.reported_mx() }
            }
        };
        if let (Some(cached), Some(hosts)) = (&mut policy, hosts) {
            cached.retain_patterns_of(hosts.iter().map(|mx| &mx.host));
        }
        Some(Arc::new(Self { applied, policy, fault: standing.fault }))
    }

    /// True if the policy allows a host to take the domain's mail, or if there is no policy.
    pub fn covers(&self, host: &DomainName) -> bool {
        self.policy.as_ref().is_none_or(|cached| cached.policy.covers(host))
    }
}

fn sts_mode(published: Option<&TlsPolicySource>) -> Option<MtaStsMode> {
    published?.policy.as_ref().map(|cached| cached.policy.mode)
}

/// Cached route of a domain.
#[derive(Debug)]
struct CachedRoute {
    expires_at: Timestamp,
    /// True if DNSSEC validation was active when the route was made. Once it becomes active, earlier routes are
    /// discarded.
    dnssec_was_active: bool,
    route: Arc<MailRoute>,
    tls_policy: Option<Arc<TlsPolicySource>>,
}

/// Route of a domain's mail.
#[derive(Debug, PartialEq, Eq)]
pub struct MailRoute {
    /// Name of the ready queue: equal for all domains that share the route.
    pub queue_name: String,
    pub next_hop: NextHop,
    /// MTA-STS mode and DNSSEC state, which decide the TLS requirement.
    pub security: TransportSecurity,
    /// Smarthost that takes the mail if none of the hosts can be reached.
    pub fail_over: Option<Arc<Smarthost>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHop {
    /// MX hosts, or the domain itself as implicit MX.
    Hosts {
        /// Sorted by preference, never empty.
        hosts: Vec<MxHost>,
        /// 25, except in tests.
        port: u16,
    },
    Smarthost(Arc<Smarthost>),
}

impl MailRoute {
    pub(crate) fn is_to_smarthost(&self) -> bool {
        matches!(self.next_hop, NextHop::Smarthost(_))
    }

    /// Returns the route with a TLS requirement. It has its own ready queue, because connections made under another
    /// requirement cannot be reused.
    #[must_use]
    fn with_security(self, protection: TransportSecurity) -> Self {
        Self { queue_name: format!("{}{}", self.queue_name, protection.queue_suffix()), security: protection, ..self }
    }

    /// Returns the route with a fail-over smarthost. It has its own ready queue, because other domains at the same
    /// hosts have no fail-over.
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

    /// Number of the preference, from 0, at which an attempt begins after `attempts` earlier ones. A host may accept
    /// connections and still fail to take mail, so every third attempt begins at another preference, in turn (RFC 5321
    /// 5.1). The first retry begins at the best again: most hosts that greylist remember only their own clients.
    pub(crate) fn first_preference(&self, attempts: u32) -> usize {
        match &self.next_hop {
            NextHop::Hosts { hosts, .. } if attempts % 3 == 2 => {
                let others = dns::mx::equal_preferences(hosts).count().saturating_sub(1);
                let turn = usize::try_from(attempts / 3).unwrap_or(0);
                turn.checked_rem(others).map_or(0, |other| other + 1)
            }
            NextHop::Hosts { .. } | NextHop::Smarthost(_) => 0,
        }
    }

    /// Number of a host's preference, from 0; `None` if it is no MX host of the route.
    pub(crate) fn preference_number(&self, host: &DomainName) -> Option<usize> {
        let NextHop::Hosts { hosts, .. } = &self.next_hop else { return None };
        dns::mx::equal_preferences(hosts).position(|equals| equals.iter().any(|mx| mx.host == *host))
    }

    /// The most preferred host name of the route; `None` for a smarthost given by IP address.
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

/// Error of routing a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// Temporary failure: retry later.
    Transient(String),
    /// DNSSEC validation of the MX records failed: retry later.
    DnssecBogus(String),
    /// No host satisfies the domain's MTA-STS policy: retry later.
    TlsPolicyUnmet(String, AppliedTlsPolicy),
    /// The domain takes no mail; the reply is written in the destination's stead.
    Permanent(SmtpReply),
}

/// Configuration of the router.
#[derive(Debug, Clone)]
pub struct RouterSettings {
    pub port: u16,
    /// Smarthosts and the domains that they serve.
    pub smarthosts: Smarthosts,
    /// Names of this server; an MX that carries one of them is a loop.
    pub own_names: Vec<DomainName>,
}

/// Resolves domains to routes and caches them.
#[derive(Debug)]
pub struct MxRouter {
    resolver: Resolver,
    pub(crate) settings: RouterSettings,
    security_policies: TransportSecurityPolicies,
    local_domains: Option<LocalDomains>,
    cache: Mutex<HashMap<DomainName, CachedRoute>>,
}

impl MxRouter {
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// Creates a router without local domains and without TLS policies.
    pub fn new(resolver: Resolver, settings: RouterSettings) -> Self {
        Self {
            resolver,
            settings,
            security_policies: TransportSecurityPolicies::default(),
            local_domains: None,
            cache: Mutex::default(),
        }
    }

    /// Sets the domains whose mail is received here: an MX with an own name is no loop for them.
    #[must_use]
    pub fn with_local_domains(self, receiving: LocalDomains) -> Self {
        Self { local_domains: Some(receiving), ..self }
    }

    /// Sets the MTA-STS and DNSSEC policies.
    #[must_use]
    pub fn with_security_policies(self, guards: TransportSecurityPolicies) -> Self {
        Self { security_policies: guards, ..self }
    }

    /// Returns the cached route of a domain if it is still valid. With `Timestamp::MIN` as `now` an expired one is
    /// returned, too. An override by the operator takes precedence; an override to a smarthost that is no longer
    /// configured is ignored.
    pub fn cached_route(
        &self,
        domain: &DomainName,
        override_route: Option<&RouteOverride>,
        now: Timestamp,
    ) -> Option<Arc<MailRoute>> {
        let smarthosts = &self.settings.smarthosts;
        let ordered = match override_route {
            Some(RouteOverride::MailHosts) => return self.cached_mx_route(domain, now),
            Some(RouteOverride::Smarthost(name)) => smarthosts.named(name),
            None => None,
        };
        match ordered.or_else(|| smarthosts.for_domain(domain, SmarthostUse::Always)) {
            Some(route) => Some(Arc::clone(route)),
            None => self.cached_mx_route(domain, now),
        }
    }

    /// Returns the cached route to a domain's own hosts if it is still valid.
    fn cached_mx_route(&self, domain: &DomainName, now: Timestamp) -> Option<Arc<MailRoute>> {
        let plans = self.cache.lock();
        let is_settled = self.is_dnssec_active();
        let holds = |plan: &&CachedRoute| plan.expires_at > now && (plan.dnssec_was_active || !is_settled);
        plans.get(domain).filter(holds).map(|plan| Arc::clone(&plan.route))
    }

    /// Returns the TLS policy source of a domain's cached route.
    pub fn tls_policy(&self, domain: &DomainName) -> Option<Arc<TlsPolicySource>> {
        let plans = self.cache.lock();
        plans.get(domain).and_then(|plan| plan.tls_policy.clone())
    }

    /// Resolves the route to a domain's own hosts, ignoring their MTA-STS and DANE policies (RFC 8689 5).
    ///
    /// # Errors
    /// Same as [`Self::find_route`].
    pub async fn find_route_without_tls_policy(&self, domain: &DomainName) -> Result<Arc<MailRoute>, RouteError> {
        let answer = self.resolver.mx(domain).await.map_err(|error| lookup_route_error(domain, &error))?;
        let hosts = self.mail_hosts(domain, answer.data).await?;
        let route = MailRoute::from(NextHop::Hosts { hosts, port: self.settings.port });
        Ok(Arc::new(route.with_fail_over(self.settings.smarthosts.for_domain(domain, SmarthostUse::FailOver))))
    }

    /// Resolves the route to a domain's own hosts, or returns the cached one (RFC 5321 5.1, RFC 7505).
    ///
    /// # Errors
    /// [`RouteError`], of which all variants but `Permanent` are worth a retry.
    pub async fn find_route(&self, domain: &DomainName, now: Timestamp) -> Result<Arc<MailRoute>, RouteError> {
        if let Some(route) = self.cached_mx_route(domain, now) {
            return Ok(route);
        }
        // Read before the lookup: if DNSSEC becomes active meanwhile, the cached route is discarded.
        let is_settled = self.is_dnssec_active();
        let (answer, policy) = tokio::join!(self.lookup_mx(domain, now), self.sts_policy(domain, now));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // Fail over on temporary errors only, not on forged answers, and only if the TLS policy is known.
                let known_policy = policy.ok().filter(|_| matches!(error, LookupError::Temporary { .. }));
                let route = known_policy
                    .and_then(|state| self.fail_over_route(domain, TlsPolicySource::from_sts_state(state, None), now));
                return route.ok_or_else(|| lookup_route_error(domain, &error));
            }
        };
        let mut hosts = self.mail_hosts(domain, answer.data).await?;
        let policy = policy.map_err(|error| RouteError::Transient(format!("{domain}: {error}")))?;
        let published = TlsPolicySource::from_sts_state(policy, Some(&hosts));
        let mode = sts_mode(published.as_deref());
        if let (Some(published), Some(MtaStsMode::Enforce)) = (&published, mode) {
            // RFC 8461 5: hosts that the policy does not name must not be used, whatever their preference.
            hosts.retain(|host| published.covers(&host.host));
            if hosts.is_empty() {
                let text = format!("none of the mail hosts of {domain} is listed in its MTA-STS policy (RFC 8461)");
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

    /// Returns the usable mail hosts of a domain. This server counts as one if the domain is local.
    async fn mail_hosts(&self, domain: &DomainName, answer: MailHosts) -> Result<Vec<MxHost>, RouteError> {
        let is_null_or_own = match &answer {
            MailHosts::Mx(hosts) => hosts.iter().any(|mx| self.is_own_host(&mx.host)),
            MailHosts::ImplicitMx(host) => self.is_own_host(host),
            MailHosts::NullMx | MailHosts::NoMail | MailHosts::NoSuchDomain => false,
        };
        let own_names = match is_null_or_own && self.is_local_domain(domain).await? {
            true => &[][..],
            false => &self.settings.own_names,
        };
        usable_mx_hosts(domain, answer, own_names).map_err(RouteError::Permanent)
    }

    /// True if a host has a name of this server.
    pub(crate) fn is_own_host(&self, host: &DomainName) -> bool {
        self.settings.own_names.contains(host)
    }

    async fn is_local_domain(&self, domain: &DomainName) -> Result<bool, RouteError> {
        let Some(receiving) = &self.local_domains else { return Ok(false) };
        let unread = |error| RouteError::Transient(format!("cannot check whether {domain} is a local domain: {error}"));
        receiving.contains(domain).await.map_err(unread)
    }

    /// True if a host is this server, by its DNS name or by the name in its greeting.
    pub(crate) fn is_self(&self, host: &DomainName, called: &str) -> bool {
        self.is_own_host(host) || called.parse().is_ok_and(|called: DomainName| self.is_own_host(&called))
    }

    /// Checks the name in a host's greeting or EHLO response for a mail loop (RFC 5321 6.3). An own name is a loop
    /// whatever the host is called in the DNS, unless the domain is local.
    ///
    /// # Errors
    /// [`RouteError::Permanent`] when it is a loop.
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

    /// Returns the route to the fail-over smarthost while the domain's MX lookup fails. The known TLS requirements
    /// still apply: the MTA-STS policy, and whether the last known MX records were signed.
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
        let (is_active, route_to_cache) = (self.is_dnssec_active(), Arc::clone(&route));
        self.cache_route(domain, now, FAIL_OVER_TTL, |until| CachedRoute {
            expires_at: until,
            dnssec_was_active: is_active,
            route: route_to_cache,
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
                // In lenient mode a bogus answer counts only if the name server fails too; otherwise its unvalidated
                // answer is used.
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

    /// Looks up the TLSA records of a route's host, if its MX records are signed.
    ///
    /// # Errors
    /// The records may exist but cannot be read: the host must not be used now (RFC 7672 2.1.2).
    pub async fn lookup_dane(
        &self,
        route: &MailRoute,
        host: &DomainName,
        port: u16,
        now: Timestamp,
    ) -> Result<DaneRecords, LookupError> {
        // Most domains are not signed: skip the lookup for them.
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
        let mut plans = self.cache.lock();
        if plans.len() >= CACHED_ROUTES_MAX {
            plans.retain(|_, plan| plan.expires_at > now);
            if plans.len() >= CACHED_ROUTES_MAX {
                // The choice is arbitrary; each evicted route costs one lookup.
                let mut has_evicted = false;
                plans.retain(|_, _| {
                    has_evicted = !has_evicted;
                    !has_evicted
                });
            }
        }
        plans.insert(domain.clone(), plan(until));
    }

    /// The addresses of a route in order of preference, from the preference number `first` on. Hosts of equal
    /// preference are shuffled by `seed`; hosts without addresses are skipped.
    ///
    /// # Errors
    /// [`RouteError::Transient`] with the last lookup error when no host has an address.
    pub(crate) async fn host_addresses(
        &self,
        route: &MailRoute,
        first: usize,
        seed: u64,
    ) -> Result<HostAddresses<'_>, RouteError> {
        let (mut hosts, port) = match &route.next_hop {
            NextHop::Hosts { hosts, port } => (hosts.clone(), *port),
            NextHop::Smarthost(smarthost) => return self.smarthost_addresses(smarthost).await,
        };
        dns::mx::shuffle_equal_preferences(&mut hosts, seed);
        // An attempt that begins elsewhere still reaches better hosts.
        let (from_first, better) = dns::mx::begin_at_preference(&mut hosts, first);
        HostAddresses::of_mx_hosts(&self.resolver, from_first, better, port).with_first_address().await
    }

    /// The addresses of a smarthost in configured order.
    ///
    /// # Errors
    /// [`RouteError::Transient`] with the last lookup error when no host has an address.
    pub(crate) async fn smarthost_addresses(&self, smarthost: &Smarthost) -> Result<HostAddresses<'_>, RouteError> {
        let endpoints = smarthost.endpoints.iter().cloned().collect();
        HostAddresses::of_endpoints(&self.resolver, endpoints).with_first_address().await
    }
}

fn lookup_route_error(domain: &DomainName, error: &LookupError) -> RouteError {
    let text = || format!("looking up the MX records of {domain}: {error}");
    match error {
        LookupError::Temporary { .. } => RouteError::Transient(text()),
        LookupError::Bogus { .. } => RouteError::DnssecBogus(text()),
        LookupError::Malformed { .. } => RouteError::Permanent(rejection_reply(
            Enhanced::new(5, 4, 4),
            format!("the MX records of {domain} are malformed: {error}"),
        )),
    }
}

/// Returns the hosts to try, or the permanent reply written in the destination's stead.
fn usable_mx_hosts(domain: &DomainName, answer: MailHosts, own_names: &[DomainName]) -> Result<Vec<MxHost>, SmtpReply> {
    match answer {
        MailHosts::Mx(hosts) => {
            let hosts = drop_own_and_less_preferred(hosts, own_names);
            if hosts.is_empty() {
                // RFC 5321 5.1: this server is the best MX, but the domain is not local.
                return Err(loop_reply(domain));
            }
            Ok(hosts)
        }
        MailHosts::ImplicitMx(host) if own_names.contains(&host) => Err(loop_reply(domain)),
        MailHosts::ImplicitMx(host) => Ok(vec![MxHost { preference: 0, host }]),
        MailHosts::NullMx => {
            Err(rejection_reply(Enhanced::new(5, 1, 10), format!("{domain} accepts no mail (null MX)")))
        }
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
    use message::mta_sts::MtaStsPolicy;

    use super::*;
    use crate::routing::smarthosts::DomainScope;

    #[test]
    fn every_third_attempt_begins_at_another_preference() {
        let host = |preference, name: &str| MxHost { preference, host: name.parse().unwrap() };
        let hosts = vec![host(10, "a.example"), host(10, "b.example"), host(20, "c.example"), host(30, "d.example")];
        let route = MailRoute::from(NextHop::Hosts { hosts, port: 25 });
        assert_eq!([0, 1, 2, 3, 4, 5, 8].map(|attempts| route.first_preference(attempts)), [0, 0, 1, 0, 0, 2, 1]);
        let number = |name: &str| route.preference_number(&name.parse().unwrap());
        assert_eq!((number("b.example"), number("c.example"), number("e.example")), (Some(0), Some(1), None));
        let equals = MailRoute::from(NextHop::Hosts { hosts: vec![host(5, "a.example")], port: 25 });
        assert_eq!((equals.first_preference(7), equals.first_preference(8)), (0, 0));
    }

    #[tokio::test]
    async fn fail_over_keeps_the_known_tls_requirements() {
        let name = |text: &str| text.parse::<DomainName>().unwrap();
        let at = vec![SmarthostEndpoint::Host(name("relay.example"), 587)];
        let other_smarthost = Smarthost { name: "late".parse().unwrap(), endpoints: at, credentials: None, tls: None };
        let scopes = vec![DomainScope::Domain(name("a.example"))];
        let smarthosts = Smarthosts::new(vec![(other_smarthost, SmarthostUse::FailOver, scopes)]);
        let resolver = Resolver::new(&dns::resolver::ResolverSettings {
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            ..dns::resolver::ResolverSettings::default()
        });
        let settings = RouterSettings { port: 25, smarthosts, own_names: Vec::new() };
        let planner = MxRouter::new(resolver.unwrap(), settings);
        let (domain, now) = (name("a.example"), Timestamp::UNIX_EPOCH);

        let unknown = planner.fail_over_route(&domain, None, now).unwrap();
        assert_eq!((unknown.is_to_smarthost(), unknown.security), (true, TransportSecurity::default()));
        let hosts = vec![MxHost { preference: 10, host: name("mx.a.example") }];
        let signed = TransportSecurity { sts: None, is_dnssec_signed: true };
        let route = MailRoute::from(NextHop::Hosts { hosts, port: 25 }).with_security(signed);
        let route = Arc::new(route);
        let plan = |until| CachedRoute { expires_at: until, dnssec_was_active: true, route, tls_policy: None };
        planner.cache_route(&domain, now, ROUTE_TTL_MIN, plan);
        let expires_at = now.checked_add(ROUTE_TTL_MAX).unwrap();
        for at in [expires_at, expires_at.checked_add(ROUTE_TTL_MAX).unwrap()] {
            let fail_over = planner.fail_over_route(&domain, None, at).unwrap();
            assert_eq!((fail_over.is_to_smarthost(), fail_over.security), (true, signed));
            assert!(fail_over.queue_name.ends_with("(signed)") && planner.cached_route(&domain, None, at).is_some());
        }
        assert!(planner.fail_over_route(&name("b.example"), None, now).is_none());
    }

    #[test]
    fn a_long_policy_keeps_its_patterns_while_the_hosts_are_unknown() {
        let patterns: String = (0..150).map(|n| format!("mx: mx{n}.example\n")).collect();
        let text = format!("version: STSv1\nmode: enforce\nmax_age: 60\n{patterns}");
        let policy = MtaStsPolicy::parse(text.as_bytes()).unwrap();
        let cached = CachedMtaStsPolicy::new("1".to_owned(), policy, text.as_bytes(), Timestamp::UNIX_EPOCH);
        let host: DomainName = "mx149.example".parse().unwrap();
        let known = [MxHost { preference: 10, host: host.clone() }];
        for hosts in [None, Some(&known[..])] {
            let state = StsPolicyState { policy: Some(cached.clone()), ..StsPolicyState::default() };
            assert!(TlsPolicySource::from_sts_state(state, hosts).unwrap().covers(&host), "{hosts:?}");
        }
    }
}
