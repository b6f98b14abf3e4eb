//! Who is connected, by address: one of them has so many connections and no more, and the rest of the
//! listener's places are for others.
//!
//! Counted is whom a proxy names in its header, else the connection's own address; IPv6 by /64. Loopback is
//! not counted: a proxy on this machine that sends no header connects for all of its clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mail::network::client_prefix;

/// Those who are connected.
#[derive(Debug)]
pub struct HttpConnectionLimiter {
    per_address_max: usize,
    connections: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that is counted for its address; it is no more when this is dropped.
#[derive(Debug)]
pub struct HttpConnectionPermit(Option<(Arc<HttpConnectionLimiter>, IpAddr)>);

impl HttpConnectionLimiter {
    /// A crowd in which each address has so many connections at most.
    #[must_use]
    pub fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { per_address_max: each_max.max(1), connections: Mutex::default() })
    }

    /// Counts one more connection from an address; `None` when it has its share.
    #[must_use]
    pub fn acquire(self: &Arc<Self>, address: IpAddr) -> Option<HttpConnectionPermit> {
        let address = client_prefix(address);
        if address.is_loopback() {
            return Some(HttpConnectionPermit(None));
        }
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let held = connections.get(&address).copied().unwrap_or(0);
        if held >= self.per_address_max {
            return None;
        }
        connections.insert(address, held + 1);
        Some(HttpConnectionPermit(Some((Arc::clone(self), address))))
    }
}

impl Drop for HttpConnectionPermit {
    fn drop(&mut self) {
        let Some((crowd, address)) = &self.0 else { return };
        let mut connections = crowd.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = connections.get_mut(address) {
            *held -= 1;
            if *held == 0 {
                connections.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_share_and_is_forgotten() {
        let crowd = HttpConnectionLimiter::new(2);
        let seat = |from: &str| crowd.acquire(from.parse().unwrap());
        let held = [seat("192.0.2.1"), seat("::ffff:192.0.2.1"), seat("2001:db8::1"), seat("2001:db8::ffff")];
        assert!(held.iter().all(Option::is_some));
        assert!(seat("192.0.2.1").is_none() && seat("2001:db8::2").is_none());
        let others = [seat("192.0.2.2"), seat("2001:db8:0:1::1")];
        let own = ["127.0.0.1", "::1", "127.0.0.1", "127.0.0.1"].map(seat);
        assert!(others.iter().chain(&own).all(Option::is_some));
        drop((held, others, own));
        assert!(crowd.connections.lock().unwrap().is_empty());
    }
}
