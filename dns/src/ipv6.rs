//! Whether the machine has a way to the IPv6 internet.
//!
//! Asked of the kernel's routing table by connecting a UDP socket, which sends nothing; asked again now
//! and then, since a network may come up after us.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long an answer is taken as given.
const PROBE_TTL: Duration = Duration::from_secs(30);
/// Any address of the range from which all global ones are (RFC 4291 2.4).
const PROBE_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1);

/// Knows whether there is a route.
#[derive(Debug)]
pub(crate) struct Ipv6Route {
    /// Not asked: taken as there.
    assumed: bool,
    known: Mutex<Option<(Instant, bool)>>,
}

impl Ipv6Route {
    /// `assumed`: without asking there is one.
    pub(crate) fn new(assumed: bool) -> Self {
        Self { assumed, known: Mutex::new(None) }
    }

    /// Whether there is a route.
    pub(crate) fn has_route(&self) -> bool {
        if self.assumed {
            return true;
        }
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((until, there)) if until > now => there,
            _ => {
                let there = probe_route();
                *known = Some((now + PROBE_TTL, there));
                there
            }
        }
    }
}

fn probe_route() -> bool {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    UdpSocket::bind(any).and_then(|socket| socket.connect((PROBE_ADDRESS, 9))).is_ok()
}
