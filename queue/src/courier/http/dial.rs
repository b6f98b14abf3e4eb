//! From a target to a connection: resolve, check, connect to the checked address, TLS.
//!
//! The name is resolved once; a second answer, which might be another (DNS rebinding), is never asked for.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dns::lookup::Resolver;
use hyper_util::rt::TokioIo;
use mail::egress;
use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::PostError;
use super::kept::Connection;
use super::target::{Place, Target};

/// How long one address is tried, so that there is time for another.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// TLS sessions kept for resumption, about 2 KB each.
const SESSIONS_MAX: usize = 1_024;
/// The head of an answer, and any read of its body, fit in so many bytes.
const BUFFER_BYTES_MAX: usize = 16 * 1024;
/// Fields of an answer's head.
const HEADERS_MAX: usize = 64;

/// Connects.
pub(super) struct Dialer {
    resolver: Resolver,
    allow_private: bool,
    tls: TlsConnector,
}

impl Dialer {
    pub(super) fn new(
        resolver: Resolver,
        allow_private: bool,
        roots: Option<RootCertStore>,
    ) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = roots.unwrap_or_else(|| RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Ok(Self { resolver, allow_private, tls: TlsConnector::from(Arc::new(config)) })
    }

    pub(super) async fn dial(&self, target: &Target) -> Result<Connection, PostError> {
        let lost = |error: &dyn std::fmt::Display| PostError::Lost(format!("{}: {error}", target.authority));
        let addresses = self.addresses(target).await?;
        let mut last = io::Error::other("it has no address");
        for address in addresses {
            let address = SocketAddr::new(address, target.port);
            match tokio::time::timeout(CONNECT_MAX, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let connection = self.greet(target, stream).await;
                    return connection.map_err(|error| lost(&error));
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(lost(&last))
    }

    /// The addresses that may be connected to.
    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, PostError> {
        let found = match &target.place {
            Place::Address(address) => vec![*address],
            Place::Name(name) => {
                let found = self.resolver.addresses(name).await;
                found.map_err(|error| PostError::Lost(error.to_string()))?.data
            }
        };
        let may = |address: &IpAddr| self.allow_private || egress::is_public(*address);
        match found.iter().find(|address| !may(address)) {
            Some(private) if !found.iter().any(may) => Err(PostError::NotPublic(*private)),
            _ => Ok(found.into_iter().filter(may).collect()),
        }
    }

    async fn greet(&self, target: &Target, stream: TcpStream) -> Result<Connection, Trouble> {
        // A request is one write; waiting for more would only add a delayed ACK's 40 ms.
        stream.set_nodelay(true)?;
        if !target.secure {
            return speak(stream).await;
        }
        let name = match &target.place {
            Place::Name(name) => ServerName::try_from(name.as_str().to_owned())
                .map_err(|_| io::Error::other("its certificate could not be checked"))?,
            Place::Address(address) => ServerName::from(*address),
        };
        let stream = self.tls.connect(name, stream).await.map_err(Trouble::Tls)?;
        speak(stream).await
    }
}

/// Why a connection that stands is of no use.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// HTTP/1.1 over it (RFC 9112). It ends with what is given back.
async fn speak<S>(stream: S) -> Result<Connection, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    // Its errors reach who waits for the answer.
    let driver = AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }));
    Ok(Connection { sender, driver })
}
