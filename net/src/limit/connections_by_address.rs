//! Limits the open connections of one address, so that one client cannot take all connections of the listener.
//!
//! The address is the one from the PROXY header, else the peer's; IPv6 counts by /64. Loopback is not limited: a
//! local proxy without the header connects for all of its clients.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use model::cidr::client_prefix;

/// Counts open connections by address.
#[derive(Debug)]
pub struct HttpConnectionLimiter {
    per_address_max: usize,
    connections: Mutex<HashMap<IpAddr, usize>>,
}

/// A counted connection; dropping it frees the slot.
#[derive(Debug)]
pub struct HttpConnectionPermit(Option<(Arc<HttpConnectionLimiter>, IpAddr)>);

impl HttpConnectionLimiter {
    /// A limiter with this many connections for each address (at least 1).
    pub fn new(per_address_max: usize) -> Arc<Self> {
        Arc::new(Self { per_address_max: per_address_max.max(1), connections: Mutex::default() })
    }

    /// Counts a connection from an address; `None` when the limit of the address is reached.
    #[must_use]
    pub fn acquire(self: &Arc<Self>, address: IpAddr) -> Option<HttpConnectionPermit> {
        let address = client_prefix(address);
        if address.is_loopback() {
            return Some(HttpConnectionPermit(None));
        }
        let mut connections = self.connections.lock();
        let count = connections.get(&address).copied().unwrap_or(0);
        if count >= self.per_address_max {
            return None;
        }
        connections.insert(address, count + 1);
        Some(HttpConnectionPermit(Some((Arc::clone(self), address))))
    }
}

impl Drop for HttpConnectionPermit {
    fn drop(&mut self) {
        let Some((limiter, address)) = &self.0 else { return };
        let mut connections = limiter.connections.lock();
        if let Some(count) = connections.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                connections.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_and_forgotten() {
        let limiter = HttpConnectionLimiter::new(2);
        let acquire = |from: &str| limiter.acquire(from.parse().unwrap());
        let permits =
            [acquire("192.0.2.1"), acquire("::ffff:192.0.2.1"), acquire("2001:db8::1"), acquire("2001:db8::ffff")];
        assert!(permits.iter().all(Option::is_some));
        assert!(acquire("192.0.2.1").is_none() && acquire("2001:db8::2").is_none());
        let others = [acquire("192.0.2.2"), acquire("2001:db8:0:1::1")];
        let loopback = ["127.0.0.1", "::1", "127.0.0.1", "127.0.0.1"].map(acquire);
        assert!(others.iter().chain(&loopback).all(Option::is_some));
        drop((permits, others, loopback));
        assert!(limiter.connections.lock().is_empty());
    }
}
