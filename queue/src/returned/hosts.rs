//! The names of hosts that reports speak of, for who reads them: asked for when somebody looks, never when a
//! report comes in, so that no stranger's report has us ask for anything.
//!
//! A name counts when it leads back to the address (iprev, RFC 8601 3): anybody can write any name into the zone of
//! their own addresses. What was asked a moment ago the resolver knows still; bounds are so many addresses, so
//! many at once, and a moment in all, after which what is not known is not shown.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use mail::address::DomainName;

use super::BounceProcessor;

/// Addresses that are asked about.
const ADDRESSES_MAX: usize = 100;
/// At once.
const CONCURRENCY: usize = 25;
/// Names of one address that are looked at: an honest host has one.
const NAMES_MAX: usize = 3;
/// For so long in all.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

impl BounceProcessor {
    /// The names of the first of these addresses.
    pub async fn verified_host_names(&self, addresses: Vec<IpAddr>) -> HashMap<IpAddr, DomainName> {
        let mut found = HashMap::new();
        let asking =
            addresses.into_iter().take(ADDRESSES_MAX).map(|ip| async move { (ip, self.verified_host_name(ip).await) });
        let mut asking = futures_util::stream::iter(asking).buffer_unordered(CONCURRENCY);
        let look = async {
            while let Some((ip, host)) = asking.next().await {
                found.extend(host.map(|host| (ip, host)));
            }
        };
        if tokio::time::timeout(LOOKUP_TIMEOUT, look).await.is_err() {
            tracing::debug!("not all names of hosts in DMARC reports were found in time");
        }
        found
    }

    /// A name of the address that leads back to it.
    async fn verified_host_name(&self, ip: IpAddr) -> Option<DomainName> {
        let resolver = self.worker.router.resolver();
        let names = resolver.ptr(ip).await.ok()?.data;
        for name in names.into_iter().take(NAMES_MAX) {
            if resolver.addresses(&name).await.is_ok_and(|answer| answer.data.contains(&ip)) {
                return Some(name);
            }
        }
        None
    }
}
