//! Addresses of the mail hosts of numbered domains: `d17.hosts.bench.test` and `d17.tarpits.bench.test` each have a
//! mail host at a loopback address of their own. The name server publishes the address, and the sink decides by the
//! local address of a connection which host it plays.

use std::net::Ipv4Addr;

/// The zones, each with the address of its number 0 and 2^21 numbers.
const HOSTS: (&str, Ipv4Addr) = (".hosts.bench.test", Ipv4Addr::new(127, 128, 0, 0));
const TARPITS: (&str, Ipv4Addr) = (".tarpits.bench.test", Ipv4Addr::new(127, 160, 0, 0));
const NUMBERS: u32 = 1 << 21;

/// Returns the address of `mx.d{number}` in one of the zones.
pub(crate) fn address_of(name: &str) -> Option<Ipv4Addr> {
    [HOSTS, TARPITS].into_iter().find_map(|(zone, first)| {
        let number: u32 = name.strip_suffix(zone)?.strip_prefix("mx.d")?.parse().ok()?;
        (number < NUMBERS).then(|| Ipv4Addr::from_bits(first.to_bits() + number))
    })
}

/// The kind of mail host at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// A usual mail host, by the number of its domain.
    Usual(u32),
    /// A tarpit: sends one byte of its reply now and then.
    Tarpit,
}

/// Returns the kind of mail host at this address.
pub(crate) fn host_at(address: Ipv4Addr) -> Host {
    let number_from = |(_, first): (&str, Ipv4Addr)| {
        address.to_bits().checked_sub(first.to_bits()).filter(|number| *number < NUMBERS)
    };
    match number_from(TARPITS) {
        Some(_) => Host::Tarpit,
        None => Host::Usual(number_from(HOSTS).unwrap_or_default()),
    }
}
