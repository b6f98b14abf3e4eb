//! Addresses that an attempt dials: those of a route's hosts, in order (RFC 5321 5.1).
//!
//! ```text
//! hosts from the first preference on ─► better hosts, if the attempt began elsewhere
//!   └─ looked up when their turn comes, two addresses each ─► next address
//! ```
//!
//! An attempt may wait for a few addresses only. One that refuses the connection at once does not count
//! ([`HostAddresses::uncount_wait`]). A part of both limits is reserved for the better hosts.

use std::collections::VecDeque;
use std::net::SocketAddr;

use dns::mx::MxHost;
use dns::resolver::Resolver;
use message::address::DomainName;

use super::smarthosts::SmarthostEndpoint;
use super::{MailRoute, RouteError};

/// Addresses that an attempt waits for (Postfix: `smtp_mx_address_limit`, 5).
const WAITS_MAX: usize = 5;
/// Addresses of an attempt, with those that refuse at once.
const ADDRESSES_MAX: usize = 20;
/// Addresses of one host, so that the next host gets a try.
const HOST_ADDRESSES_MAX: usize = 2;
/// Addresses of better hosts that an attempt dials at least, after those of the preference at which it begins.
const BETTER_ADDRESSES: usize = 2;

/// The addresses of one attempt.
pub(crate) struct HostAddresses<'r> {
    resolver: &'r Resolver,
    /// Hosts to be looked up, in order.
    hosts: VecDeque<SmarthostEndpoint>,
    /// Hosts better than the first preference, which follow.
    better: VecDeque<SmarthostEndpoint>,
    /// Addresses of the last host that was looked up.
    found: VecDeque<(DomainName, SocketAddr)>,
    waits_left: usize,
    addresses_left: usize,
    /// Hosts whose lookup failed, with the error.
    failed_lookups: Vec<(DomainName, String)>,
}

impl<'r> HostAddresses<'r> {
    /// The addresses of MX hosts: these first, then those that are better.
    pub(super) fn of_mx_hosts(resolver: &'r Resolver, from_first: &[MxHost], better: &[MxHost], port: u16) -> Self {
        let endpoint = |mx: &MxHost| SmarthostEndpoint::Host(mx.host.clone(), port);
        let better = better.iter().map(endpoint).collect();
        Self { better, ..Self::of_endpoints(resolver, from_first.iter().map(endpoint).collect()) }
    }

    pub(super) fn of_endpoints(resolver: &'r Resolver, hosts: VecDeque<SmarthostEndpoint>) -> Self {
        Self {
            resolver,
            hosts,
            better: VecDeque::new(),
            found: VecDeque::new(),
            waits_left: WAITS_MAX,
            addresses_left: ADDRESSES_MAX,
            failed_lookups: Vec::new(),
        }
    }

    /// Looks up the first host that has an address.
    ///
    /// # Errors
    /// [`RouteError::Transient`] with the last lookup error when no host has an address.
    pub(super) async fn with_first_address(mut self) -> Result<Self, RouteError> {
        if self.find_address().await {
            return Ok(self);
        }
        let none = || "none of the mail hosts has an address".to_owned();
        Err(RouteError::Transient(self.lookup_error().map_or_else(none, str::to_owned)))
    }

    /// Error of the last failed lookup.
    pub(crate) fn lookup_error(&self) -> Option<&str> {
        self.failed_lookups.last().map(|(_, error)| error.as_str())
    }

    /// The next address; `None` if there is none, or a limit is reached.
    pub(crate) async fn next(&mut self) -> Option<(DomainName, SocketAddr)> {
        if !self.find_address().await {
            return None;
        }
        self.waits_left -= 1;
        self.addresses_left -= 1;
        self.found.pop_front()
    }

    /// The last address cost no waiting: another one may be dialled in its place.
    pub(crate) fn uncount_wait(&mut self) {
        self.waits_left += 1;
    }

    /// Drops the hosts that are not preferred to this one, also those whose lookup failed.
    pub(crate) fn retain_better(&mut self, route: &MailRoute, than: &DomainName) {
        let limit = route.preference_number(than);
        let is_better = |host: &DomainName| route.preference_number(host) < limit;
        let is_better_endpoint =
            |endpoint: &SmarthostEndpoint| matches!(endpoint, SmarthostEndpoint::Host(host, _) if is_better(host));
        self.found.retain(|(host, _)| is_better(host));
        self.hosts.retain(is_better_endpoint);
        self.better.retain(is_better_endpoint);
        self.failed_lookups.retain(|(host, _)| is_better(host));
    }

    /// Looks up hosts until one has an address that may be dialled. Returns false if there is none.
    async fn find_address(&mut self) -> bool {
        loop {
            let reserved = if self.better.is_empty() { 0 } else { BETTER_ADDRESSES };
            if self.waits_left.min(self.addresses_left) > reserved {
                if !self.found.is_empty() {
                    return true;
                }
                if let Some(host) = self.hosts.pop_front() {
                    self.look_up(host).await;
                    continue;
                }
            }
            if self.better.is_empty() {
                return false;
            }
            self.found.clear();
            self.hosts = std::mem::take(&mut self.better);
        }
    }

    async fn look_up(&mut self, endpoint: SmarthostEndpoint) {
        match endpoint {
            SmarthostEndpoint::Host(host, port) => match self.resolver.addresses(&host).await {
                Ok(answer) => {
                    let addresses = answer.data.into_iter().take(HOST_ADDRESSES_MAX);
                    self.found.extend(addresses.map(|ip| (host.clone(), SocketAddr::new(ip, port))));
                }
                Err(error) => {
                    let text = format!("looking up the address of {host}: {error}");
                    self.failed_lookups.push((host, text));
                }
            },
            SmarthostEndpoint::Address(address) => {
                let name = "smarthost".parse::<DomainName>().ok();
                self.found.extend(name.map(|name| (name, address)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dns::resolver::ResolverSettings;

    use super::*;
    use crate::routing::NextHop;

    fn resolver() -> Resolver {
        let settings =
            ResolverSettings { servers: vec!["127.0.0.1:9".parse().unwrap()], ..ResolverSettings::default() };
        Resolver::new(&settings).unwrap()
    }

    /// Numbers of the dialled addresses: those below 100 are of the first hosts, the others of better ones.
    async fn dialled(first: u16, better: u16, is_wait: impl Fn(u16) -> bool) -> Vec<u16> {
        let endpoints = |ports: std::ops::Range<u16>| {
            ports.map(|port| SmarthostEndpoint::Address(SocketAddr::from(([192, 0, 2, 1], port)))).collect()
        };
        let resolver = resolver();
        let better = endpoints(100..100 + better);
        let mut addresses = HostAddresses { better, ..HostAddresses::of_endpoints(&resolver, endpoints(0..first)) };
        let mut found = Vec::new();
        while let Some((_, address)) = addresses.next().await {
            found.push(address.port());
            if !is_wait(address.port()) {
                addresses.uncount_wait();
            }
        }
        found
    }

    #[tokio::test]
    async fn addresses_that_refuse_at_once_do_not_count() {
        assert_eq!(dialled(30, 0, |_| true).await, [0, 1, 2, 3, 4]);
        assert_eq!(dialled(8, 0, |_| false).await, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(dialled(30, 0, |number| number.is_multiple_of(2)).await, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(dialled(30, 0, |_| false).await.len(), ADDRESSES_MAX);
    }

    #[tokio::test]
    async fn better_hosts_have_a_part_of_the_limits() {
        assert_eq!(dialled(30, 30, |_| true).await, [0, 1, 2, 100, 101]);
        assert_eq!(dialled(1, 30, |_| true).await, [0, 100, 101, 102, 103]);
        assert_eq!(dialled(30, 1, |number| number < 100).await, [0, 1, 2, 100]);
        let refused = dialled(30, 30, |_| false).await;
        assert_eq!((refused.len(), &refused[17..]), (ADDRESSES_MAX, &[17, 100, 101][..]));
    }

    #[tokio::test]
    async fn after_a_loop_only_better_hosts_are_tried() {
        let names = ["a.example", "b.example", "c.example", "d.example"];
        let hosts = std::iter::zip([10, 20, 20, 30], names);
        let mut hosts: Vec<MxHost> =
            hosts.map(|(preference, name)| MxHost { preference, host: name.parse().unwrap() }).collect();
        let route = MailRoute::from(NextHop::Hosts { hosts: hosts.clone(), port: 25 });
        // The attempt begins at the second preference.
        let (from_first, better) = dns::mx::begin_at_preference(&mut hosts, 1);
        let resolver = resolver();
        let mut addresses = HostAddresses::of_mx_hosts(&resolver, from_first, better, 25);
        let failed = |name: &str| (name.parse().unwrap(), format!("lookup of {name}"));
        addresses.failed_lookups = vec![failed("a.example"), failed("c.example")];
        addresses.retain_better(&route, &"b.example".parse().unwrap());
        let a = SmarthostEndpoint::Host("a.example".parse().unwrap(), 25);
        assert!(addresses.hosts.is_empty());
        assert_eq!(addresses.better, [a]);
        assert_eq!(addresses.lookup_error(), Some("lookup of a.example"));
        addresses.retain_better(&route, &"a.example".parse().unwrap());
        assert!(addresses.better.is_empty() && addresses.lookup_error().is_none());
    }
}
