//! HTTP client of the certificate authority: one connection per request, TLS with the public CAs or the operator's,
//! names resolved by the configured name servers.
//!
//! Responses are limited in size and time. HTTP without TLS is permitted to loopback addresses only.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dns::resolver::Resolver;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use message::address::DomainName;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::certificate;

/// Timeout of a request, from connecting to the last byte.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// Timeout of connecting to one address.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a response body.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Errors of a request.
#[derive(Debug, thiserror::Error)]
enum AcmeClientError {
    #[error("{0} is not an https URL")]
    Address(Uri),
    #[error("{host}: {error}")]
    Connect { host: String, error: io::Error },
    #[error("no response within {} s", REQUEST_MAX.as_secs())]
    Timeout,
}

/// Sends the requests of the ACME library.
#[derive(Clone)]
pub(super) struct AcmeHttpClient {
    tls: TlsConnector,
    resolver: Resolver,
}

impl AcmeHttpClient {
    /// Creates a client that trusts the public CAs, or only those in a PEM file.
    pub(super) fn new(roots: Option<&Path>, resolver: Resolver) -> Result<Self, String> {
        let trusted = match roots {
            None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() },
            Some(file) => certificate::load_roots(file)?,
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), resolver })
    }

    /// Connects to the first of the host's addresses that accepts.
    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let addresses = match (host.parse::<IpAddr>(), host.parse::<DomainName>()) {
            (Ok(address), _) => vec![address],
            (_, Ok(name)) => self.resolver.addresses(&name).await.map_err(io::Error::other)?.data,
            (_, Err(error)) => return Err(io::Error::other(error)),
        };
        let mut last_error = io::Error::other("the name has no address");
        for address in addresses {
            match tokio::time::timeout(CONNECT_MAX, TcpStream::connect((address, port))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last_error = error,
                Err(_) => last_error = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last_error)
    }

    async fn send(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let uri = request.uri().clone();
        let address_error = || Error::Other(Box::new(AcmeClientError::Address(uri.clone())));
        let host = uri.host().ok_or_else(address_error)?.trim_matches(['[', ']']).to_owned();
        let local = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if local => false,
            _ => return Err(address_error()),
        };
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let failed = |error| Error::Other(Box::new(AcmeClientError::Connect { host: host.clone(), error }));
        let stream = self.connect(&host, port).await.map_err(failed)?;
        if !secure {
            return send_over(stream, request).await;
        }
        let name = ServerName::try_from(host.clone()).map_err(|_| address_error())?;
        send_over(self.tls.connect(name, stream).await.map_err(failed)?, request).await
    }
}

/// Sends one request over HTTP/1.1 and reads its response (RFC 9112).
async fn send_over<S>(stream: S, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let to_error = |error: hyper::Error| Error::Other(Box::new(error));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(to_error)?;
    // The task ends when `sender` is dropped.
    tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    if let Some(authority) = parts.uri.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
        parts.headers.insert(HOST, authority);
    }
    if let Some(path) = parts.uri.path_and_query() {
        parts.uri = Uri::from(path.clone());
    }
    let response = sender.send_request(Request::from_parts(parts, body)).await.map_err(to_error)?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(Error::Other)?.to_bytes();
    Ok(BytesResponse::from(Response::from_parts(parts, Full::new(body))))
}

impl HttpClient for AcmeHttpClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let response_future = self.clone().send(request);
        Box::pin(async move {
            let result = tokio::time::timeout(REQUEST_MAX, response_future).await;
            result.unwrap_or_else(|_| Err(Error::Other(Box::new(AcmeClientError::Timeout))))
        })
    }
}
