//! Addresses of this host, in a cache: each check asks the kernel.

use std::net::{IpAddr, UdpSocket};

use jiff::{SignedDuration, Timestamp};
use quick_cache::sync::Cache;

/// Age at which the kernel is asked again about an address.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_secs(30);
/// Addresses in the cache. The least used ones are evicted.
const ADDRESSES_MAX: usize = 1_024;

/// Tells the addresses of this host from others.
///
/// An address is this host's if a socket can be bound to it. A list of the interfaces' addresses would need a netlink
/// socket, which the systemd unit forbids, and would lack addresses that are local by a route only.
#[derive(Debug)]
pub struct LocalAddresses {
    checked: Cache<IpAddr, CheckedAddress>,
}

#[derive(Debug, Clone, Copy)]
struct CheckedAddress {
    is_local: bool,
    at: Timestamp,
}

impl Default for LocalAddresses {
    fn default() -> Self {
        Self { checked: Cache::new(ADDRESSES_MAX) }
    }
}

impl LocalAddresses {
    /// Returns whether this host has the address, or had it less than 30 seconds ago.
    pub fn contains(&self, address: IpAddr, now: Timestamp) -> bool {
        self.contains_with(address, now, |address| UdpSocket::bind((address, 0)).is_ok())
    }

    fn contains_with(&self, address: IpAddr, now: Timestamp, check: impl FnOnce(IpAddr) -> bool) -> bool {
        if let Some(known) = self.checked.get(&address)
            && now.duration_since(known.at).abs() < REFRESH_AFTER
        {
            return known.is_local;
        }
        let is_local = check(address);
        self.checked.insert(address, CheckedAddress { is_local, at: now });
        is_local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_at_most_twice_a_minute() {
        let (addresses, mut checks) = (LocalAddresses::default(), 0);
        for second in 0..60 {
            addresses.contains_with(IpAddr::from([192, 0, 2, 1]), Timestamp::from_second(second).unwrap(), |_| {
                checks += 1;
                true
            });
        }
        assert_eq!(checks, 2);
    }

    #[test]
    fn own_addresses_are_told_from_others() {
        let addresses = LocalAddresses::default();
        assert!(addresses.contains(IpAddr::from([127, 0, 0, 1]), Timestamp::UNIX_EPOCH));
        assert!(!addresses.contains(IpAddr::from([192, 0, 2, 1]), Timestamp::UNIX_EPOCH));
    }
}
