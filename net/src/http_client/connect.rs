//! Connecting to a URL's host: resolve, check the address, connect to that address, TLS.
//!
//! The name is resolved once: a second lookup could return another address (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dns::resolver::Resolver;
use hyper_util::rt::TokioIo;
use model::public_ip;
use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::HttpClientError;
use super::connection_pool::HttpConnection;
use super::url_target::{UrlHost, UrlTarget};

/// Timeout for one address, so that time is left for another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// TLS sessions cached for resumption, about 2 KB each.
const TLS_SESSIONS_MAX: usize = 1_024;
/// Buffer limit: bounds the head of a response and each read of its body.
const BUFFER_BYTES_MAX: usize = 16 * 1024;
/// Header fields in a response.
const HEADERS_MAX: usize = 64;

/// Opens connections.
pub(super) struct HttpConnector {
    resolver: Resolver,
    allow_private: bool,
    tls: TlsConnector,
}

impl HttpConnector {
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
        config.resumption = Resumption::in_memory_sessions(TLS_SESSIONS_MAX);
        Ok(Self { resolver, allow_private, tls: TlsConnector::from(Arc::new(config)) })
    }

    pub(super) async fn connect(&self, target: &UrlTarget) -> Result<HttpConnection, HttpClientError> {
        let connection_error =
            |error: &dyn std::fmt::Display| HttpClientError::ConnectionFailed(format!("{}: {error}", target.authority));
        let addresses = self.public_addresses(target).await?;
        let mut last = io::Error::other("the host has no address");
        for address in addresses {
            let address = SocketAddr::new(address, target.port);
            match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let connection = self.handshake(target, stream).await;
                    return connection.map_err(|error| connection_error(&error));
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(connection_error(&last))
    }

    /// Addresses of the host that may be connected to.
    async fn public_addresses(&self, target: &UrlTarget) -> Result<Vec<IpAddr>, HttpClientError> {
        let found = match &target.host {
            UrlHost::Address(address) => vec![*address],
            UrlHost::Name(name) => {
                let found = self.resolver.addresses(name).await;
                found.map_err(|error| HttpClientError::ConnectionFailed(error.to_string()))?.data
            }
        };
        let is_reachable = |address: &IpAddr| self.allow_private || public_ip::is_public(*address);
        match found.iter().find(|address| !is_reachable(address)) {
            Some(private) if !found.iter().any(is_reachable) => Err(HttpClientError::NotPublic(*private)),
            _ => Ok(found.into_iter().filter(is_reachable).collect()),
        }
    }

    async fn handshake(&self, target: &UrlTarget, stream: TcpStream) -> Result<HttpConnection, HttpHandshakeError> {
        // A request is one write: Nagle's algorithm would only add a delayed ACK's 40 ms.
        stream.set_nodelay(true)?;
        if !target.is_https {
            return http1_handshake(stream).await;
        }
        let name = match &target.host {
            UrlHost::Name(name) => ServerName::try_from(name.as_str().to_owned())
                .map_err(|_| io::Error::other("the host name is not valid in a certificate"))?,
            UrlHost::Address(address) => ServerName::from(*address),
        };
        let stream = self.tls.connect(name, stream).await.map_err(HttpHandshakeError::Tls)?;
        http1_handshake(stream).await
    }
}

/// Why a TCP connection cannot be used.
#[derive(Debug, thiserror::Error)]
enum HttpHandshakeError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// Starts HTTP/1.1 (RFC 9112) on a stream. The connection closes when the returned value is dropped.
async fn http1_handshake<S>(stream: S) -> Result<HttpConnection, HttpHandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    // Its errors reach the caller that waits for the response.
    let driver = AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }));
    Ok(HttpConnection { sender, driver })
}
