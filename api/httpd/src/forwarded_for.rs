//! The client's address from `X-Forwarded-For`, for requests through proxies that the operator trusts.
//!
//! A client can send this header field. So it is read from its end, where the connecting proxy has appended, and only
//! as long as each address belongs to a trusted network. The first untrusted address is the client. Text that is not
//! an address also ends the search.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use hyper::Request;
use model::cidr::IpNetwork;

use super::peer_address::PeerAddress;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Replaces the peer's address by the client's.
pub fn apply_forwarded_for<B>(networks: &[IpNetwork], request: &mut Request<B>) {
    let Some(PeerAddress(peer)) = request.extensions().get::<PeerAddress>().copied() else { return };
    let client = forwarded_client(peer, request.headers(), networks);
    request.extensions_mut().insert(PeerAddress(client));
}

fn forwarded_client(peer: IpAddr, headers: &HeaderMap, networks: &[IpNetwork]) -> IpAddr {
    let is_named = |address: IpAddr| networks.iter().any(|network| network.contains(address));
    let mut client = peer;
    let fields = headers.get_all(FORWARDED_FOR).iter().rev();
    let written = fields.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
    for entry in written {
        if !is_named(client) {
            break;
        }
        match parse_address(entry.trim()) {
            Some(address) => client = address.to_canonical(),
            None => break,
        }
    }
    client
}

/// Parses an address with an optional port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let networks: Vec<IpNetwork> = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap()).to_vec();
        for (peer, fields, client_) in [
            ("10.0.0.1", &[][..], "10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7"], "192.0.2.7"),
            // The client may have written the beginning itself.
            ("10.0.0.1", &["203.0.113.9, 192.0.2.7"], "192.0.2.7"),
            ("10.0.0.1", &["203.0.113.9", "192.0.2.7, 10.1.1.1"], "192.0.2.7"),
            ("10.0.0.1", &["10.2.2.2"], "10.2.2.2"),
            ("10.0.0.1", &["192.0.2.7:4711"], "192.0.2.7"),
            ("10.0.0.1", &["192.0.2.7, unknown"], "10.0.0.1"),
            ("2001:db8::1", &["[2a00::7]:443"], "2a00::7"),
            ("2001:db8::1", &["::ffff:192.0.2.7"], "192.0.2.7"),
            ("198.51.100.1", &["192.0.2.7"], "198.51.100.1"),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(FORWARDED_FOR, field.parse().unwrap());
            }
            let found = forwarded_client(peer.parse().unwrap(), &headers, &networks);
            assert_eq!(found, client_.parse::<IpAddr>().unwrap(), "{peer} {fields:?}");
            assert_eq!(forwarded_client(peer.parse().unwrap(), &headers, &[]), peer.parse::<IpAddr>().unwrap());
        }
    }
}
