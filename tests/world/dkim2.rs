//! Judges DKIM2 by mail-auth's own verifier, with the keys that a name server has: another reading of the draft than
//! that of the code that signs.

#![allow(clippy::unwrap_used, reason = "a test's world that cannot be set up ends the test")]

use std::net::SocketAddr;

use mail_auth::dkim2::Envelope;
use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use mail_auth::{AuthenticatedMessage, MessageAuthenticator};

/// What it says of a message that came in a transaction from one address to another: `Pass`, `None`, or why not.
pub(crate) async fn verdict(names: SocketAddr, message: &str, (from, to): (&str, &str)) -> String {
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
