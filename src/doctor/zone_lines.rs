//! DNS records as lines of a zone file (RFC 1035 5.1), for copying.

use std::net::IpAddr;

use message::address::DomainName;

/// TTL in seconds: one hour, so that errors are corrected soon.
pub(crate) const TTL_S: u32 = 3_600;

fn zone_line(owner: &str, kind: &str, value: &str) -> String {
    format!("{owner}. {TTL_S} IN {kind} {value}")
}

/// Formats an A or AAAA record.
pub(crate) fn address_record(owner: &DomainName, address: IpAddr) -> String {
    zone_line(owner.as_str(), if address.is_ipv4() { "A" } else { "AAAA" }, &address.to_string())
}

/// Formats the PTR record of an address.
pub(crate) fn ptr_record(address: IpAddr, name: &DomainName) -> String {
    let zone = if address.is_ipv4() { "in-addr.arpa" } else { "ip6.arpa" };
    zone_line(&format!("{}.{zone}", reversed_address(address)), "PTR", &format!("{name}."))
}

/// Formats an MX record.
pub(crate) fn mx_record(owner: &DomainName, host: &DomainName) -> String {
    zone_line(owner.as_str(), "MX", &format!("10 {host}."))
}

/// Formats a TXT record of one string. The string must not contain quotes or backslashes.
pub(crate) fn txt_record(owner: &DomainName, text: &str) -> String {
    zone_line(owner.as_str(), "TXT", &format!("\"{text}\""))
}

/// Formats a wildcard TXT record for all names below `owner` (RFC 4592).
pub(crate) fn wildcard_txt_record(owner: &str, text: &str) -> String {
    zone_line(&format!("*.{owner}"), "TXT", &format!("\"{text}\""))
}

/// SPF record that permits these addresses only.
pub(crate) fn spf_value(addresses: &[IpAddr]) -> String {
    let mut text = "v=spf1".to_owned();
    for address in addresses {
        text.push_str(if address.is_ipv4() { " ip4:" } else { " ip6:" });
        text.push_str(&address.to_string());
    }
    text.push_str(" -all");
    text
}

/// Reverses an address for DNS names: by octets (RFC 1035 3.5) or nibbles (RFC 3596 2.5).
pub(crate) fn reversed_address(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(four) => {
            let [a, b, c, d] = four.octets();
            format!("{d}.{c}.{b}.{a}")
        }
        IpAddr::V6(six) => {
            let nibbles = six.octets().into_iter().rev().flat_map(|octet| [octet & 0xf, octet >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}")).collect::<Vec<_>>().join(".")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_a_zone_file() {
        let name: DomainName = "mx1.example.net".parse().unwrap();
        let (four, six) = ("203.0.113.5".parse().unwrap(), "2001:db8::1:5".parse().unwrap());
        assert_eq!(address_record(&name, four), "mx1.example.net. 3600 IN A 203.0.113.5");
        assert_eq!(address_record(&name, six), "mx1.example.net. 3600 IN AAAA 2001:db8::1:5");
        assert_eq!(ptr_record(four, &name), "5.113.0.203.in-addr.arpa. 3600 IN PTR mx1.example.net.");
        assert!(ptr_record(six, &name).starts_with("5.0.0.0.1.0.0.0.0.0.0.0"), "{}", ptr_record(six, &name));
        assert!(ptr_record(six, &name).contains(".8.b.d.0.1.0.0.2.ip6.arpa. 3600 IN PTR"));
        assert_eq!(
            txt_record(&name, &spf_value(&[four, six])),
            "mx1.example.net. 3600 IN TXT \"v=spf1 ip4:203.0.113.5 ip6:2001:db8::1:5 -all\""
        );
    }
}
