//! Who is connected, by address: one of them has so many connections and no more, and the rest of the
//! listener's places are for others.
//!
//! Counted is whom a proxy names in its header, else the connection's own address; IPv6 by /64. Loopback is
//! not counted: a proxy on this machine that sends no header connects for all of its clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mail::network::counted;

/// Those who are connected.
#[derive(Debug)]
pub struct Crowd {
    each_max: usize,
    connections: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that is counted for its address; it is no more when this is dropped.
#[derive(Debug)]
pub struct Seat(Option<(Arc<Crowd>, IpAddr)>);

impl Crowd {
    /// A crowd in which each address has so many connections at most.
    #[must_use]
    pub fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { each_max: each_max.max(1), connections: Mutex::default() })
    }

    /// Counts one more connection from an address; `None` when it has its share.
    #[must_use]
    pub fn seat(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let address = counted(address);
        if address.is_loopback() {
            return Some(Seat(None));
        }
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let held = connections.get(&address).copied().unwrap_or(0);
        if held >= self.each_max {
            return None;
        }
        connections.insert(address, held + 1);
        Some(Seat(Some((Arc::clone(self), address))))
    }
}

impl Drop for Seat {
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
        let crowd = Crowd::new(2);
        let seat = |from: &str| crowd.seat(from.parse().unwrap());
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
