//! Where the hosts of numbered domains are: `d17.hosts.bench.test` has its mail host at an address that no other
//! number has, and so has `d17.tarpits.bench.test`. The name server says so, and the sink knows by the address whom it
//! plays.

use std::net::Ipv4Addr;

/// The zones, and the addresses of their numbers 0. Each has room for two million.
const HOSTS: (&str, Ipv4Addr) = (".hosts.bench.test", Ipv4Addr::new(127, 128, 0, 0));
const TARPITS: (&str, Ipv4Addr) = (".tarpits.bench.test", Ipv4Addr::new(127, 160, 0, 0));
const NUMBERS: u32 = 1 << 21;

/// The address of `mx.d{number}` in one of the zones.
pub(crate) fn address_of(name: &str) -> Option<Ipv4Addr> {
    [HOSTS, TARPITS].into_iter().find_map(|(zone, first)| {
        let number: u32 = name.strip_suffix(zone)?.strip_prefix("mx.d")?.parse().ok()?;
        (number < NUMBERS).then(|| Ipv4Addr::from_bits(first.to_bits() + number))
    })
}

/// Whose mail host is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// A domain's, by its number.
    Usual(u32),
    /// One that answers a byte now and then.
    Tarpit,
}

/// Whose mail host is at this address.
pub(crate) fn host_at(address: Ipv4Addr) -> Host {
    let number_from = |(_, first): (&str, Ipv4Addr)| {
        address.to_bits().checked_sub(first.to_bits()).filter(|number| *number < NUMBERS)
    };
    match number_from(TARPITS) {
        Some(_) => Host::Tarpit,
        None => Host::Usual(number_from(HOSTS).unwrap_or_default()),
    }
}
