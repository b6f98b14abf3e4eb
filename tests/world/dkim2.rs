//! Verifies DKIM2 with mail-auth's verifier and the keys of a name server: an implementation of the draft independent
//! of the signing code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;

use mail_auth::dkim2::Envelope;
use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use mail_auth::{AuthenticatedMessage, MessageAuthenticator};

/// Result for a message with this envelope: `Pass`, `None`, or the error.
pub(crate) async fn verdict(names: SocketAddr, message: &str, from: &str, to: &str) -> String {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = names.port();
        connection
    });
    let server = NameServerConfig::new(names.ip(), true, connections.into());
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let verifier = MessageAuthenticator::new(config, ResolverOpts::default()).unwrap();
    let message = AuthenticatedMessage::parse(message.as_bytes()).unwrap();
    let output = verifier.verify_dkim2(&message, Envelope::new(from, [to])).await;
    format!("{:?}", output.result())
}
