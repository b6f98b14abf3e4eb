//! IP networks in CIDR notation: `192.0.2.0/24`, `2001:db8::/32`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// The text is not a valid network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IpNetworkError {
    /// Invalid address, or invalid prefix length.
    #[error("a network has the form 192.0.2.0/24 or 2001:db8::/32")]
    Form,
    /// Bits are set behind the prefix, so the address or the prefix length is wrong.
    #[error("the address has bits set behind its prefix; use the network address")]
    HostBits,
}

/// A CIDR block (RFC 4632, RFC 4291 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

impl IpNetwork {
    /// Returns whether the network contains an address. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && Self { address, ..*self }.network_address() == self.address
    }

    /// Returns whether every address of the other network is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4() && self.prefix <= other.prefix && self.contains(other.address)
    }

    /// Formats a network of one address without its prefix length.
    pub fn display_short(&self) -> String {
        let whole = if self.address.is_ipv4() { 32 } else { 128 };
        if self.prefix == whole { self.address.to_string() } else { self.to_string() }
    }

    fn network_address(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(a) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V4((a.to_bits() & mask).into())
            }
            IpAddr::V6(a) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V6((a.to_bits() & mask).into())
            }
        }
    }
}

impl FromStr for IpNetwork {
    type Err = IpNetworkError;

    /// Parses a network; a bare address is a network of one address.
    fn from_str(text: &str) -> Result<Self, IpNetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| IpNetworkError::Form)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().filter(|p| *p <= bits).ok_or(IpNetworkError::Form)?
            }
            Some(_) => return Err(IpNetworkError::Form),
        };
        let network = Self { address, prefix };
        if network.network_address() == address { Ok(network) } else { Err(IpNetworkError::HostBits) }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

message::stored_as_text!(IpNetwork);

/// Key by which clients are counted: an IPv4 address, or an IPv6 /64, because a single host controls a whole /64
/// (RFC 4291 2.5.1).
pub fn client_prefix(address: IpAddr) -> IpAddr {
    ipv6_prefix(address, 64)
}

/// Key by which sites are counted: an IPv4 address, or an IPv6 /56. RFC 6177 2 gives an end site many /64, often a /56;
/// counted by /64, one customer of a provider would be 256 clients.
pub fn site_prefix(address: IpAddr) -> IpAddr {
    ipv6_prefix(address, 56)
}

/// An IPv4 address, or the prefix of an IPv6 address.
fn ipv6_prefix(address: IpAddr, prefix: u8) -> IpAddr {
    match address.to_canonical() {
        address @ IpAddr::V6(_) => IpNetwork { address, prefix }.network_address(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "::1", "127.0.0.1"),
            ("::1", "::1", "::2"),
        ] {
            let network: IpNetwork = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn networks_cover_their_parts() {
        let network = |text: &str| text.parse::<IpNetwork>().unwrap();
        for (wide, narrow, expected) in [
            ("192.0.2.0/24", "192.0.2.0/24", true),
            ("192.0.2.0/24", "192.0.2.7", true),
            ("192.0.2.0/24", "192.0.2.128/25", true),
            ("192.0.2.128/25", "192.0.2.0/24", false),
            ("192.0.2.0/24", "192.0.3.0/24", false),
            ("0.0.0.0/0", "192.0.2.0/24", true),
            ("192.0.2.0/24", "0.0.0.0/0", false),
            ("2001:db8::/32", "2001:db8:1::/48", true),
            ("2001:db8:1::/48", "2001:db8::/32", false),
            ("::/0", "192.0.2.0/24", false),
            ("0.0.0.0/0", "::ffff:192.0.2.0/120", false),
        ] {
            assert_eq!(network(wide).covers(&network(narrow)), expected, "{wide} {narrow}");
        }
    }

    #[test]
    fn clients_are_counted_by_host_and_by_site() {
        for (address, host, site) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2ff:3::4", "2001:db8:1:2ff::", "2001:db8:1:200::"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(client_prefix(address), host.parse::<IpAddr>().unwrap());
            assert_eq!(site_prefix(address), site.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn invalid_networks_are_refused() {
        for text in ["", "x", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/+1", "::/129", "192.0.2.1/24"] {
            assert!(text.parse::<IpNetwork>().is_err(), "{text}");
        }
    }
}
