//! Public IP addresses: the SSRF guard of outgoing connections (server-side request forgery).
//!
//! Whoever controls a domain's MX or NS records chooses the address that this server connects to, which could be in the
//! operator's own network. Connections to anything but public unicast addresses are therefore refused. RFC 6890 lists
//! the special-purpose blocks.
//!
//! The textual form of the address does not matter. An IPv6 address that embeds an IPv4 address (mapped, NAT64, 6to4)
//! is checked by the embedded one; Teredo is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True if `address` is a public unicast address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Blocks of the RFC 6890 registry that are not globally reachable, as first address and prefix length.
const RESERVED_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),       // this network, RFC 791
    ([10, 0, 0, 0], 8),      // private, RFC 1918
    ([100, 64, 0, 0], 10),   // carrier-grade NAT, RFC 6598
    ([127, 0, 0, 0], 8),     // loopback, RFC 1122
    ([169, 254, 0, 0], 16),  // link-local, RFC 3927; also the metadata services of cloud providers
    ([172, 16, 0, 0], 12),   // private, RFC 1918
    ([192, 0, 0, 0], 24),    // protocol assignments, RFC 6890
    ([192, 0, 2, 0], 24),    // documentation, RFC 5737
    ([192, 88, 99, 0], 24),  // the former 6to4 relays, RFC 7526
    ([192, 168, 0, 0], 16),  // private, RFC 1918
    ([198, 18, 0, 0], 15),   // benchmarks, RFC 2544
    ([198, 51, 100, 0], 24), // documentation, RFC 5737
    ([203, 0, 113, 0], 24),  // documentation, RFC 5737
    ([224, 0, 0, 0], 4),     // multicast, RFC 1112
    ([240, 0, 0, 0], 4),     // reserved, includes the broadcast address, RFC 1112
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !RESERVED_V4.iter().any(|&(first, length)| {
        let mask = u32::MAX << (32 - length);
        bits & mask == u32::from_be_bytes(first)
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let inside = |high: u16, low: u16| is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match [a, b] {
        // ::ffff:a.b.c.d (RFC 4291 2.5.5.2): a socket would use IPv4.
        [0, 0] if [c, d, e, f] == [0, 0, 0, 0xffff] => inside(g, h),
        // 64:ff9b::/96, NAT64 (RFC 6052). 64:ff9b:1::/48 (RFC 8215) is for local use and refused below.
        [0x64, 0xff9b] if [c, d, e, f] == [0, 0, 0, 0] => inside(g, h),
        // 2002::/16, 6to4 (RFC 3056): the IPv4 address follows the prefix.
        [0x2002, high] => inside(high, c),
        // 2001::/23, protocol assignments (RFC 2928): Teredo, ORCHID, benchmarking and others.
        [0x2001, low] if low < 0x200 => false,
        // Documentation: 2001:db8::/32 (RFC 3849) and 3fff::/20 (RFC 9637).
        [0x2001, 0xdb8] => false,
        [0x3fff, low] if low < 0x1000 => false,
        // Only 2000::/3 is allocated for global unicast (RFC 4291 2.4). Outside of it are the unspecified address,
        // loopback, IPv4-compatible, ULA (fc00::/7), link-local (fe80::/10), site-local (fec0::/10), multicast
        // (ff00::/8), discard-only (100::/64) and segment routing (5f00::/16).
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        let public = "
            1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 128.0.0.1
            169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.1 192.167.255.255 192.169.0.0
            198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1111 2a00:1450:4010::1a
            2001:4860:4860::8888 2001:200::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1";
        for text in public.split_whitespace() {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        let private = "
            0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1
            127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.170
            192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7
            203.0.113.7 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 :: ::1
            ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
            ::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::808:808 2002:7f00:1::1
            2002:c0a8:101::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1
            2001:10::1 2001:20::1 2001:db8::1 3fff::1 100::1 5f00::1 fc00::1 fd12:3456::1
            fe80::1 febf::1 fec0::1 ff02::1";
        for text in private.split_whitespace() {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
