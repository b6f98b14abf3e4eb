//! `Connection`: one HTTP/1.1 connection to the server, over TCP or TLS, directly or through a proxy.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::base_url::BaseUrl;
use crate::error::{CliError, ConnectionFailure};
use crate::proxy::Proxy;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(crate) type BoxedStream = Box<dyn Stream>;

/// A connection that can carry several requests, one after the other.
#[derive(Debug)]
pub(crate) struct Connection {
    requests: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// `CliError::Connection`; the server has received nothing.
    pub(crate) async fn open(base_url: &BaseUrl) -> Result<Self, CliError> {
        Self::open_to(base_url, &format!("the base URL {base_url}")).await
    }

    /// Opens a connection to the host of a URL. `what` names the URL in errors.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn open_to(url: &BaseUrl, what: &str) -> Result<Self, CliError> {
        let host = url.host();
        let mut stream = match Proxy::of_environment(url)? {
            Some(proxy) => proxy.connect(url).await?,
            None => connect_tcp(host, url.port(), what).await?,
        };
        if url.is_tls() {
            stream = connect_tls(stream, host, what).await?;
        }
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
        // It ends with the connection; an error reaches the request.
        tokio::spawn(connection);
        Ok(Self { requests })
    }

    /// Waits until the connection can carry a request. Returns false if it is closed.
    pub(crate) async fn is_ready(&mut self) -> bool {
        self.requests.ready().await.is_ok()
    }

    /// Sends a request and waits for the header section of the answer.
    ///
    /// # Errors
    /// `CliError::Connection`: the server may have carried out the request.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, CliError> {
        self.requests.ready().await.map_err(|error| lost(&error))?;
        self.requests.send_request(request).await.map_err(|error| lost(&error))
    }
}

/// Connects to a host. `what` names it in errors.
pub(crate) async fn connect_tcp(host: &str, port: u16, what: &str) -> Result<BoxedStream, CliError> {
    let addresses: Vec<_> = tokio::net::lookup_host((host, port)).await.map(Iterator::collect).unwrap_or_default();
    if addresses.is_empty() {
        let message = format!("the host {host} of {what} does not exist, or DNS is not responding");
        return Err(CliError::Connection(ConnectionFailure::Dns, message));
    }
    let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectionFailure::Refused,
            _ => ConnectionFailure::Other,
        };
        CliError::Connection(reason, format!("nothing answers at {what}: {error}; is it correct?"))
    })?;
    let _ = stream.set_nodelay(true);
    Ok(Box::new(stream))
}

/// Begins TLS on a connection to a host. `what` names it in errors.
pub(crate) async fn connect_tls(stream: BoxedStream, host: &str, what: &str) -> Result<BoxedStream, CliError> {
    let failed = |error: io::Error| {
        let message = format!(
            "no TLS connection to {what}: {error}; check the address and the certificate (for a private CA, set \
             SSL_CERT_FILE to a file with its certificates)"
        );
        CliError::Connection(ConnectionFailure::Tls, message)
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(io::Error::other(error)))?;
    let connector = TLS_CONNECTOR.clone()?;
    Ok(Box::new(connector.connect(name, stream).await.map_err(failed)?))
}

fn lost(error: &hyper::Error) -> CliError {
    if error.is_parse() {
        return CliError::unexpected_response(0, format!("the response is not HTTP: {error}; is the URL correct?"));
    }
    let message = format!("the connection was lost before the response was complete: {error}");
    CliError::Connection(ConnectionFailure::Reset, message)
}

static TLS_CONNECTOR: LazyLock<Result<TlsConnector, CliError>> = LazyLock::new(tls_connector);

/// Trusts the authorities of the system and those that every browser knows; a minimal container has none of its own.
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` take the place of the system's, as in other programs.
fn tls_connector() -> Result<TlsConnector, CliError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from) {
        let found = rustls_native_certs::load_certs_from_paths(Some(&path), None);
        let refused = |why: String| CliError::usage(format!("cannot use SSL_CERT_FILE {}: {why}", path.display()));
        if let Some(error) = found.errors.first() {
            return Err(refused(error.to_string()));
        }
        if roots.add_parsable_certificates(found.certs).0 == 0 {
            return Err(refused("it contains no valid certificate".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| CliError::Io(error.to_string()))?.with_root_certificates(roots);
    Ok(TlsConnector::from(Arc::new(config.with_no_client_auth())))
}

/// A body, or its beginning.
pub(crate) struct ReadBody {
    pub(crate) content: Bytes,
    pub(crate) is_whole: bool,
}

/// Reads the body of an answer, at most `bytes_max` bytes of it.
pub(crate) async fn read_body(response: Response<Incoming>, bytes_max: usize) -> Result<ReadBody, CliError> {
    let mut body = response.into_body();
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|error| lost(&error))?.into_data() else { continue };
        if content.len() + chunk.len() > bytes_max {
            content.extend_from_slice(chunk.get(..bytes_max - content.len()).unwrap_or_default());
            return Ok(ReadBody { content: content.freeze(), is_whole: false });
        }
        content.extend_from_slice(&chunk);
    }
    Ok(ReadBody { content: content.freeze(), is_whole: true })
}
