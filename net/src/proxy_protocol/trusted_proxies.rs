//! The trusted proxies, and the reading of their PROXY header from a connection.
//!
//! A connection from one of the trusted networks must begin with a header. The protocol forbids detecting it (section
//! 5): a client could forge one, and clients of a proxy that omits it would all get the proxy's address. Reading is
//! limited in time and bytes. From other addresses nothing is read, and a header there is an invalid command. A refusal
//! is counted and logged here; the caller only closes the connection without a reply.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use model::cidr::IpNetwork;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use crate::proxy_protocol::header::{ConnectionSource, HeaderProgress, ProxyHeaderError, parse};

/// Timeout for the header. A proxy sends it in its first packet; a lost packet is retransmitted after one second, and
/// then after two.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a connection from a proxy is closed.
#[derive(Debug, Error)]
pub enum ProxyProtocolError {
    #[error(transparent)]
    Malformed(#[from] ProxyHeaderError),
    #[error("no complete PROXY header within {} s", HEADER_TIMEOUT.as_secs())]
    Timeout,
    /// The connection ended or failed before the header was complete.
    #[error("the connection ended within the PROXY header: {0}")]
    Ended(#[from] io::Error),
}

/// The networks whose connections begin with a PROXY header.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    networks: Arc<[IpNetwork]>,
}

impl TrustedProxies {
    /// Trusts hosts in these networks. The default is none.
    pub fn new(networks: &[IpNetwork]) -> Self {
        Self { networks: networks.into() }
    }

    /// Returns whether a connection from this address must begin with a header.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Returns the client's address: from a trusted proxy, the one in its header, else `address`. Reads exactly the
    /// header.
    ///
    /// # Errors
    /// A [`ProxyProtocolError`]: the caller closes the connection without a reply.
    pub async fn client_address(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        address: SocketAddr,
    ) -> Result<SocketAddr, ProxyProtocolError> {
        if !self.contains(address.ip()) {
            return Ok(address);
        }
        match read_header(stream, HEADER_TIMEOUT).await {
            Ok(ConnectionSource::Client(client)) => Ok(client),
            Ok(ConnectionSource::Proxy) => Ok(address),
            Err(error) => {
                metrics::counter!("postrider_proxy_headers_refused_total").increment(1);
                tracing::debug!(proxy = %address, %error, "connection closed");
                Err(error)
            }
        }
    }
}

async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
    patience: Duration,
) -> Result<ConnectionSource, ProxyProtocolError> {
    let reading = async {
        let mut bytes = Vec::new();
        loop {
            match parse(&bytes)? {
                HeaderProgress::Complete { origin, .. } => return Ok(origin),
                HeaderProgress::Incomplete(count) => {
                    let mut missing = (&mut *stream).take(count as u64);
                    if missing.read_buf(&mut bytes).await? == 0 {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                }
            }
        }
    };
    timeout(patience, reading).await.unwrap_or(Err(ProxyProtocolError::Timeout))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    const LINE: &str = "PROXY TCP4 192.0.2.1 198.51.100.1 56324 587\r\n";

    fn proxies() -> TrustedProxies {
        TrustedProxies::new(&["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()])
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn bytes_after_the_header_remain_unread() {
        // A pipe of one byte returns one byte per read; the other one returns as many as are requested.
        for pipe in [1, 4096] {
            let (mut far, mut near) = duplex(pipe);
            let client = async {
                far.write_all(LINE.as_bytes()).await.unwrap();
                far.write_all(b"EHLO x\r\n").await.unwrap();
                drop(far);
            };
            let server = async {
                let peer = proxies().client_address(&mut near, address("10.1.2.3:4")).await.unwrap();
                let mut rest = String::new();
                near.read_to_string(&mut rest).await.unwrap();
                (peer, rest)
            };
            let ((), (peer, rest)) = tokio::join!(client, server);
            assert_eq!((peer, rest.as_str()), (address("192.0.2.1:56324"), "EHLO x\r\n"));
        }
    }

    #[tokio::test]
    async fn nothing_is_read_from_other_clients() {
        let (mut far, mut near) = duplex(4096);
        far.write_all(LINE.as_bytes()).await.unwrap();
        drop(far);
        let own = address("192.0.2.9:4");
        assert_eq!(proxies().client_address(&mut near, own).await.unwrap(), own);
        let mut rest = String::new();
        near.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, LINE);
    }

    #[tokio::test]
    async fn a_header_without_an_address_keeps_that_of_the_proxy() {
        for own in ["10.1.2.3:4", "[::ffff:10.1.2.3]:4", "[2001:db8::1]:4"].map(address) {
            let mut header: &[u8] = b"PROXY UNKNOWN\r\n";
            assert_eq!(proxies().client_address(&mut header, own).await.unwrap(), own);
        }
    }

    #[tokio::test]
    async fn missing_and_invalid_headers_are_refused() {
        let proxy = address("10.1.2.3:4");
        for (bytes, why) in [
            (&b"EHLO x\r\n"[..], "the connection does not begin with a PROXY header"),
            (b"PROXY TCP4 192.0.2.1", "the connection ended within the PROXY header: unexpected end of file"),
            (b"", "the connection ended within the PROXY header: unexpected end of file"),
        ] {
            let refused = proxies().client_address(&mut &*bytes, proxy).await.unwrap_err();
            assert_eq!(refused.to_string(), why);
        }
        let (_far, mut near) = duplex(1);
        assert!(matches!(read_header(&mut near, Duration::ZERO).await, Err(ProxyProtocolError::Timeout)));
    }
}
