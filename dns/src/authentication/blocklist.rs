//! Looks up addresses in DNSBLs (RFC 5782): the reversed address, below the name of the list.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::join_all;
use message::address::DomainName;
use tokio::time::timeout;

use crate::resolver::Resolver;

/// Timeout of a list. A list that does not answer in time counts as not listing the address.
const DEADLINE: Duration = Duration::from_secs(4);
/// Maximum lists that are queried.
pub const LISTS_MAX: usize = 10;

/// The first list that contains an address; `None` if none does.
pub async fn find_listing(resolver: &Resolver, peer: IpAddr, lists: &[DomainName]) -> Option<DomainName> {
    let lookups = lists.iter().take(LISTS_MAX).map(|list| async move {
        let name = list.child(&reversed_address(peer)).ok()?;
        let found = timeout(DEADLINE, resolver.addresses(&name)).await.ok()?.ok()?;
        found.data.into_iter().any(is_listing).then(|| list.clone())
    });
    join_all(lookups).await.into_iter().flatten().next()
}

/// Returns whether an answer means that the address is listed. That is an address in 127.0.0.0/8 (RFC 5782 2.1). One in
/// 127.255.255.0/24 is an error code of the large lists, such as a refused query.
fn is_listing(answer: IpAddr) -> bool {
    matches!(answer, IpAddr::V4(four) if matches!(four.octets(), [127, a, b, _] if (a, b) != (255, 255)))
}

fn reversed_address(peer: IpAddr) -> String {
    match peer.to_canonical() {
        IpAddr::V4(four) => {
            let [a, b, c, d] = four.octets();
            format!("{d}.{c}.{b}.{a}")
        }
        IpAddr::V6(six) => {
            let nibbles = six.octets().into_iter().rev().flat_map(|byte| [byte & 0xF, byte >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}")).collect::<Vec<_>>().join(".")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_reversed() {
        assert_eq!(reversed_address("192.0.2.99".parse().unwrap()), "99.2.0.192");
        assert_eq!(reversed_address("::ffff:192.0.2.99".parse().unwrap()), "99.2.0.192");
        let six = reversed_address("2001:db8:1:2:3:4:567:89ab".parse().unwrap());
        assert_eq!(six, "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2");
    }

    #[test]
    fn not_every_answer_is_a_listing() {
        assert!(is_listing("127.0.0.2".parse().unwrap()));
        for none in ["127.255.255.254", "192.0.2.1", "::1"] {
            assert!(!is_listing(none.parse().unwrap()), "{none}");
        }
    }
}
