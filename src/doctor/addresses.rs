//! Source addresses of outgoing mail, as bound locally and as seen by other hosts.
//!
//! ```text
//! [delivery] source_addresses, or the kernel's choice by its routes; and [[delivery.pools]]
//!     ─► public: the address itself
//!        private, so behind NAT: --address, or the host name's address
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::config::Config;

/// Arbitrary addresses beyond the default route of each family; nothing is sent to them.
const ROUTE_PROBE_TARGETS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)), IpAddr::V6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1))];

/// Replaces an unspecified address with loopback.
pub(crate) fn reachable_address(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

/// A source address of outgoing mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendingAddress {
    /// Address on this machine.
    pub local: IpAddr,
    /// Address that other hosts see; none if NAT hides it.
    pub public: Option<IpAddr>,
}

/// All source addresses; one of each family if the system chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendingAddresses(pub Vec<SendingAddress>);

impl SendingAddresses {
    /// Combines local and public addresses. `nat_addresses` are the public addresses of a NAT that the operator named;
    /// otherwise `hostname_addresses`, the addresses of the host name, are assumed.
    pub fn new(local: &[IpAddr], nat_addresses: &[IpAddr], hostname_addresses: &[IpAddr]) -> Self {
        let to_sending_address = |local: IpAddr| {
            let nat_address = || {
                let candidates = nat_addresses.iter().chain(hostname_addresses).copied();
                let mut matching =
                    candidates.filter(|address| address.is_ipv4() == local.is_ipv4() && !is_private(*address));
                matching.next()
            };
            SendingAddress { local, public: if is_private(local) { nat_address() } else { Some(local) } }
        };
        let mut sources: Vec<_> = local.iter().copied().map(to_sending_address).collect();
        // A private IPv6 address without a known public one is not routable; IPv4 is used instead.
        if sources.iter().any(|source| source.local.is_ipv4()) {
            sources.retain(|source| source.local.is_ipv4() || source.public.is_some());
        }
        Self(sources)
    }

    /// All public addresses.
    pub fn public(&self) -> Vec<IpAddr> {
        self.0.iter().filter_map(|source| source.public).collect()
    }

    /// Returns whether NAT translates a source address.
    pub fn behind_nat(&self) -> bool {
        self.0.iter().any(|source| source.public != Some(source.local))
    }
}

/// Source addresses on this machine: those configured, or those chosen by the routes.
pub(super) fn local_source_addresses(config: &Config) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = match config.delivery.source_addresses.is_empty() {
        true => ROUTE_PROBE_TARGETS.into_iter().filter_map(kernel_source_for).collect(),
        false => Vec::new(),
    };
    addresses.extend(config.delivery.all_source_addresses().into_iter().map(|(address, _)| address));
    addresses
}

/// Source address that the kernel would choose; sends nothing.
fn kernel_source_for(address: IpAddr) -> Option<IpAddr> {
    let any = if address.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(address, 53)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Returns whether an interface of this machine has the address, so that it can be bound.
pub(super) fn has_interface(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// Returns whether an address is not publicly routable: loopback, link-local, private (RFC 1918, RFC 4193), or shared
/// address space of providers (RFC 6598).
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(four) => {
            let [first, second, ..] = four.octets();
            four.is_private()
                || four.is_loopback()
                || four.is_link_local()
                || four.is_unspecified()
                || first == 100 && (64..128).contains(&second)
        }
        IpAddr::V6(six) => {
            six.is_loopback() || six.is_unspecified() || six.is_unique_local() || six.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_nat_address_is_known_by_option_or_host_name() {
        let forward = ips(&["2001:db8::5", "203.0.113.5", "10.1.1.1"]);
        let direct = SendingAddresses::new(&ips(&["203.0.113.9", "2001:db8::9"]), &[], &forward);
        assert_eq!((direct.public(), direct.behind_nat()), (ips(&["203.0.113.9", "2001:db8::9"]), false));
        let behind_nat = SendingAddresses::new(&ips(&["10.0.0.2", "fd00::2"]), &[], &forward);
        assert_eq!((behind_nat.public(), behind_nat.behind_nat()), (ips(&["203.0.113.5", "2001:db8::5"]), true));
        let with_option = SendingAddresses::new(&ips(&["10.0.0.2", "fd00::2"]), &ips(&["203.0.113.7"]), &[]);
        assert_eq!(with_option.public(), ips(&["203.0.113.7"]));
        assert_eq!(with_option.0.len(), 1, "a private IPv6 address alone is not routable");
        let unknown = SendingAddresses::new(&ips(&["192.168.1.2"]), &[], &[]);
        assert_eq!((unknown.public(), unknown.0.len()), (Vec::new(), 1));
    }

    #[test]
    fn local_and_private_addresses_are_recognised() {
        assert!(has_interface([127, 0, 0, 1].into()) && !has_interface([203, 0, 113, 77].into()));
        assert!(is_private([100, 64, 0, 1].into()) && !is_private([100, 128, 0, 1].into()));
        assert!(is_private("::ffff:10.0.0.1".parse().unwrap()) && is_private("fe80::1".parse().unwrap()));
    }
}
