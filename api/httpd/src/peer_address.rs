//! `PeerAddress`: the address of the client, as an extension of the request.

use std::net::IpAddr;

/// The client's address, from the socket or the PROXY header; an extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);
