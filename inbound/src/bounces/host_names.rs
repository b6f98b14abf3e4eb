//! Host names of source addresses in DMARC reports. They are looked up when a user views a report, never when one is
//! received, so that a stranger's report causes no DNS queries.
//!
//! A name counts only if it resolves back to the address (iprev, RFC 8601 3), because the owner of an address may
//! publish any PTR name. The number of addresses, the concurrency and the total time are bounded. Names not found in
//! time are omitted; the resolver caches results for the next view.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use message::address::DomainName;

use super::BounceProcessor;

/// Addresses looked up.
const ADDRESSES_MAX: usize = 100;
/// Concurrent lookups.
const CONCURRENCY: usize = 25;
/// PTR names checked per address; a genuine host has one.
const NAMES_MAX: usize = 3;
/// Total time of the lookups.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

impl BounceProcessor {
    /// Returns the verified host names of the first addresses, at most `ADDRESSES_MAX`.
    pub async fn verified_host_names(&self, addresses: Vec<IpAddr>) -> HashMap<IpAddr, DomainName> {
        let mut found = HashMap::new();
        let lookups =
            addresses.into_iter().take(ADDRESSES_MAX).map(|ip| async move { (ip, self.verified_host_name(ip).await) });
        let mut lookups = futures_util::stream::iter(lookups).buffer_unordered(CONCURRENCY);
        let look = async {
            while let Some((ip, host)) = lookups.next().await {
                found.extend(host.map(|host| (ip, host)));
            }
        };
        if tokio::time::timeout(LOOKUP_TIMEOUT, look).await.is_err() {
            tracing::debug!("timeout looking up host names for a DMARC report");
        }
        found
    }

    /// Returns a PTR name of the address that resolves back to it.
    async fn verified_host_name(&self, ip: IpAddr) -> Option<DomainName> {
        let resolver = &self.resolver;
        let names = resolver.ptr(ip).await.ok()?.data;
        for name in names.into_iter().take(NAMES_MAX) {
            if resolver.addresses(&name).await.is_ok_and(|answer| answer.data.contains(&ip)) {
                return Some(name);
            }
        }
        None
    }
}
