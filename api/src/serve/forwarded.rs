//! For whom a request is passed on: what a proxy that the operator names says of it (`X-Forwarded-For`).
//!
//! Anybody can send the header field. So it is read from its end, where whoever connects has written, and only as long as
//! those who wrote are named: the first address that is not is who asks. What is no address ends it as well.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use hyper::Request;
use mail::network::IpNetwork;

use super::PeerAddress;

/// The field that proxies write.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Puts who asks in the place of who connected.
pub(super) fn apply_forwarded_for<B>(networks: &[IpNetwork], request: &mut Request<B>) {
    let Some(PeerAddress(peer)) = request.extensions().get::<PeerAddress>().copied() else { return };
    let client = forwarded_client(peer, request.headers(), networks);
    request.extensions_mut().insert(PeerAddress(client));
}

fn forwarded_client(peer: IpAddr, headers: &HeaderMap, networks: &[IpNetwork]) -> IpAddr {
    let is_named = |address: IpAddr| networks.iter().any(|network| network.contains(address));
    let mut client = peer;
    let fields = headers.get_all(FORWARDED_FOR).iter().rev();
    let written = fields.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
    for one in written {
        if !is_named(client) {
            break;
        }
        match parse_address(one.trim()) {
            Some(address) => client = address.to_canonical(),
            None => break,
        }
    }
    client
}

/// An address, with a port or without.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_are_named_say_who_asks() {
        let networks: Vec<IpNetwork> = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap()).to_vec();
        for (peer, fields, client_) in [
            ("10.0.0.1", &[][..], "10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7"], "192.0.2.7"),
            // Who asks may have written the beginning.
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
