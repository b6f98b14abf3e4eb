//! Returns whether the host has a route to the IPv6 internet.
//!
//! The kernel's routing table is queried by connecting a UDP socket, which sends no packet. The result is cached for
//! [`PROBE_TTL`], since a network interface can come up later.

use parking_lot::Mutex;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::time::Instant;

/// How long a result is cached.
const PROBE_TTL: Duration = Duration::from_secs(30);
/// An address in the range of all global unicast addresses (RFC 4291 2.4).
const PROBE_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1);

#[derive(Debug)]
pub(crate) struct Ipv6Route {
    /// Assume a route without a probe.
    assumed: bool,
    known: Mutex<Option<(Instant, bool)>>,
}

impl Ipv6Route {
    /// Creates a probe; if `assumed`, [`Self::has_route`] is always true.
    pub(crate) fn new(assumed: bool) -> Self {
        Self { assumed, known: Mutex::new(None) }
    }

    pub(crate) fn has_route(&self) -> bool {
        if self.assumed {
            return true;
        }
        let now = Instant::now();
        let mut known = self.known.lock();
        match *known {
            Some((until, has_route)) if until > now => has_route,
            _ => {
                let has_route = probe_route();
                *known = Some((now + PROBE_TTL, has_route));
                has_route
            }
        }
    }
}

fn probe_route() -> bool {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    UdpSocket::bind(any).and_then(|socket| socket.connect((PROBE_ADDRESS, 9))).is_ok()
}
