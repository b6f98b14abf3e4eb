//! The address of a server for dynamic updates, which the customer specifies.
//!
//! The address is untrusted. The name is resolved once, the addresses are checked, and the connection uses a checked
//! address, so DNS rebinding has no effect. Only public addresses are allowed unless the operator permits others. The
//! port must be 53 or unprivileged.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use message::address::DomainName;
use model::public_ip;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use dns::resolver::Resolver;

/// The default port.
const PORT: u16 = 53;
/// Ports below this one belong to other services.
const PORT_UNPRIVILEGED: u16 = 1_024;
/// Maximum addresses that are tried.
const ADDRESSES_MAX: usize = 3;
/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server as the customer enters it: `ns1.example.com`, `ns1.example.com:5353`, `192.0.2.1`, `[2001:db8::1]:53`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    host: ServerHost,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ServerHost {
    Name(DomainName),
    Address(IpAddr),
}

/// The reason why a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServerError {
    /// Not a host name or address.
    #[error("must be a host name or an address, with a port if it is not 53")]
    Malformed,
    /// A privileged port other than 53.
    #[error("must have port 53, or a port of 1024 or above")]
    Port,
    /// The name cannot be resolved.
    #[error("has no address: {0}")]
    NoAddress(String),
    /// No address is public.
    #[error("must have a public address; private, loopback and link-local addresses are refused")]
    Private,
    /// No address accepts a connection.
    #[error("does not accept TCP connections: {0}")]
    Unreachable(String),
}

impl FromStr for ServerAddress {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let (host, port) = if let Ok(address) = text.parse::<SocketAddr>() {
            (ServerHost::Address(address.ip()), address.port())
        } else if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            (ServerHost::Address(address), PORT)
        } else {
            let (host, port) = match text.rsplit_once(':') {
                Some((host, port)) => (host, port.parse().map_err(|_| ServerError::Malformed)?),
                None => (text, PORT),
            };
            (ServerHost::Name(host.parse().map_err(|_| ServerError::Malformed)?), port)
        };
        if port != PORT && port < PORT_UNPRIVILEGED {
            return Err(ServerError::Port);
        }
        Ok(Self { host, port })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            ServerHost::Name(name) => write!(f, "{}:{}", name.as_str(), self.port),
            ServerHost::Address(address) => write!(f, "{}", SocketAddr::new(*address, self.port)),
        }
    }
}

impl ServerAddress {
    /// Resolves the server to an address that is permitted and accepts connections.
    pub async fn resolve(&self, resolver: &Resolver, allow_private: bool) -> Result<SocketAddr, ServerError> {
        let addresses = match &self.host {
            ServerHost::Address(address) => vec![*address],
            ServerHost::Name(name) => {
                let found = resolver.addresses(name).await;
                found.map_err(|error| ServerError::NoAddress(error.to_string()))?.data
            }
        };
        if addresses.is_empty() {
            return Err(ServerError::NoAddress("no address record found".to_owned()));
        }
        let allowed = addresses.into_iter().filter(|address| allow_private || public_ip::is_public(*address));
        let mut failure = ServerError::Private;
        for address in allowed.take(ADDRESSES_MAX) {
            let at = SocketAddr::new(address, self.port);
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(at)).await {
                Ok(Ok(_)) => return Ok(at),
                Ok(Err(error)) => failure = ServerError::Unreachable(error.kind().to_string()),
                Err(_) => failure = ServerError::Unreachable("timed out".to_owned()),
            }
        }
        Err(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_addresses_are_parsed() {
        let cases = [
            ("ns1.example.com", Some("ns1.example.com:53")),
            ("NS1.example.com:5353", Some("ns1.example.com:5353")),
            ("192.0.2.1", Some("192.0.2.1:53")),
            ("192.0.2.1:5353", Some("192.0.2.1:5353")),
            ("2001:db8::1", Some("[2001:db8::1]:53")),
            ("[2001:db8::1]", Some("[2001:db8::1]:53")),
            ("[2001:db8::1]:5353", Some("[2001:db8::1]:5353")),
            ("ns1.example.com:25", None),
            ("ns1.example.com:70000", None),
            ("ns1.example.com:", None),
            ("http://ns1.example.com", None),
            ("fe80::1%eth0", None),
            ("2130706433", None),
            ("127.1", None),
            ("a b", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let read = text.parse::<ServerAddress>().ok().map(|server| server.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
