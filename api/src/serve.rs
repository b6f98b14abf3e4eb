//! The HTTP server: listeners, connections, TLS, graceful shutdown.
//!
//! ```text
//! accept (bounded) → PROXY header → limit by address → TLS → HTTP/1.1 or HTTP/2 → dispatch
//! ```
//!
//! Limits: open connections in total and by address ([`connection_limiter`]), size and time of the header section, size and rate
//! of the body ([`body`]), idle time, stalled writes, age of a connection. A shutdown lets requests in progress
//! finish within [`ApiOptions::drain_max`](crate::state::ApiOptions::drain_max). The operator's listener ([`ops`])
//! uses the same code.

mod acme_challenges;
pub mod body;
pub mod connection;
pub mod connection_limiter;
pub mod encoding;
mod forwarded_for;
pub mod header_limits;
pub mod memory_budget;
pub mod ops;
pub mod origin;
mod protocol_errors;
pub mod router;
pub mod static_pages;
mod write_timeout;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;
use proxy::trusted_proxies::TrustedProxies;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::HttpService;
use self::connection_limiter::HttpConnectionLimiter;
use self::protocol_errors::ProtocolErrorStream;
use self::static_pages::{AnsweredRequest, Overlay};
use crate::dispatch::dispatch;
use crate::problem::{ErrorCode, Problem};
use crate::state::AppState;

pub use self::acme_challenges::serve_acme_challenges;
pub use self::ops::serve_ops;

/// The ALPN protocols of the API's TLS configuration (RFC 7301): HTTP/2, then HTTP/1.1.
#[must_use]
pub fn alpn_protocols() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// The TLS configuration of a listener. A new one is sent when certificates change; open connections keep theirs.
pub type TlsConfigReceiver = watch::Receiver<Arc<ServerConfig>>;

/// The client's address, from the socket or the PROXY header; an extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Time limit of a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which usually means that file descriptors or memory are exhausted.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// HSTS for one year (RFC 6797 6.1). It is sent only if this listener terminates TLS, and only for the host of the
/// base URL: customers' hosts may later be served elsewhere without TLS.
const HSTS_VALUE: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Serves the API on a listener until `stop`, then waits for requests in progress.
///
/// # Errors
/// The listener cannot be used.
pub fn serve_api(
    listener: TcpListener,
    tls: Option<TlsConfigReceiver>,
    room: Arc<AppState>,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let terms = HttpListenerConfig {
            proxies: room.options.proxies.clone(),
            tls,
            connections_max: room.options.connections_max,
            connections: HttpConnectionLimiter::new(room.options.connections_per_address_max),
            drain_max: room.options.drain_max,
            error_response: Some(protocol_error_response(&room)),
        };
        let (tasks, drain_max) = (room.tasks.clone(), terms.drain_max);
        let writing = tokio::spawn(Arc::clone(&room).run_request_log(stop.clone()));
        let (closing, stopped) = (room.shutdown.clone(), stop.clone());
        tokio::spawn(async move {
            stopped.cancelled().await;
            closing.cancel();
        });
        let answering = Arc::clone(&room);
        let is_tls = terms.tls.is_some();
        let answer = connection::http_service(move |mut request| {
            forwarded_for::apply_forwarded_for(&answering.options.forwarding_networks, &mut request);
            header_limits::normalize_host(&mut request);
            let strict = is_tls && header_limits::is_for(&answering.options.base_url, request.headers());
            let answering = Arc::clone(&answering);
            async move {
                let mut response = match answering.options.overlay.clone() {
                    Some(overlay) => overlaid(overlay, answering, request).await,
                    None => dispatch(answering, request).await,
                };
                if strict {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS_VALUE);
                }
                response
            }
        });
        run_listener(listener, terms, answer, stop).await?;
        // Handlers run on after their clients disconnect.
        tasks.close();
        let _ = tokio::time::timeout(drain_max, tasks.wait()).await;
        let _ = writing.await;
        // Entries of requests that were answered since the stop.
        room.request_log.flush(room.intake.store()).await;
        Ok(())
    })
}

/// Answers a request with a page of the overlay, or passes it to the API.
async fn overlaid(
    overlay: Arc<dyn Overlay>,
    room: Arc<AppState>,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<body::ResponseBody> {
    if overlay.has(request.uri(), request.headers()) {
        return static_pages::answer(overlay, request).await;
    }
    let begun = tokio::time::Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let response = dispatch(room, request).await;
    overlay.answered(&AnsweredRequest { method, uri, status: response.status(), took: begun.elapsed() });
    response
}

/// Settings of a listener.
struct HttpListenerConfig {
    /// Peers that send a PROXY protocol header.
    proxies: TrustedProxies,
    tls: Option<TlsConfigReceiver>,
    connections_max: usize,
    connections: Arc<HttpConnectionLimiter>,
    drain_max: Duration,
    /// Builds the error responses that replace hyper's own.
    error_response: Option<protocol_errors::ErrorResponseBuilder>,
}

/// Builds the response to input that hyper rejects before it becomes a request.
fn protocol_error_response(room: &Arc<AppState>) -> protocol_errors::ErrorResponseBuilder {
    let room = Arc::clone(room);
    Arc::new(move |status| {
        let (code, message) = match status {
            400 => (ErrorCode::BAD_REQUEST, "Malformed HTTP request (RFC 9112)"),
            _ => (ErrorCode::HEADERS_TOO_LARGE, "The header section of the request is too large"),
        };
        let (problem, id) = (Problem::new(code, message), room.next_request_id());
        let body = problem.body(id, &room.options.base_url);
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nx-request-id: {id}\r\n\
             cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
            problem.status(),
            body.len(),
        );
        [head.as_bytes(), &body].concat().into()
    })
}

impl HttpListenerConfig {
    /// Without TLS and without proxies, for a listener that is not public.
    fn plaintext(connections_max: usize, drain_max: Duration) -> Self {
        let connections = HttpConnectionLimiter::new(connections_max);
        Self {
            proxies: TrustedProxies::default(),
            tls: None,
            connections_max,
            connections,
            drain_max,
            error_response: None,
        }
    }
}

/// Accepts connections until `stop`, then waits for open ones.
fn run_listener(
    listener: TcpListener,
    terms: HttpListenerConfig,
    answer: HttpService,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        listener.local_addr()?;
        let permits = Arc::new(Semaphore::new(terms.connections_max.max(1)));
        let terms = Arc::new(terms);
        let open = TaskTracker::new();
        loop {
            // Without a permit further connections wait in the kernel's backlog.
            let next = async {
                let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
                Some((permit, listener.accept().await))
            };
            let (permit, accepted) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(next) = next => next,
                else => break,
            };
            match accepted {
                Ok((stream, address)) => {
                    let connection =
                        AcceptedConnection { stream, address, config: Arc::clone(&terms), _permit: permit };
                    open.spawn(connection.serve(Arc::clone(&answer), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
        drop(listener);
        open.close();
        open.wait().await;
        Ok(())
    })
}

/// An accepted connection.
struct AcceptedConnection {
    stream: TcpStream,
    address: SocketAddr,
    config: Arc<HttpListenerConfig>,
    /// Held until the connection ends, and also while the PROXY header is awaited.
    _permit: OwnedSemaphorePermit,
}

impl AcceptedConnection {
    async fn serve(mut self, answer: HttpService, stop: CancellationToken) {
        // Responses are written whole; Nagle's algorithm would only delay them.
        let _ = self.stream.set_nodelay(true);
        let peer = tokio::select! {
            () = stop.cancelled() => return,
            peer = self.config.proxies.client_address(&mut self.stream, self.address) => peer,
        };
        let Ok(peer) = peer else { return };
        let Some(_slot) = self.config.connections.acquire(peer.ip()) else {
            metrics::counter!("postrider_api_connections_refused_total").increment(1);
            tracing::debug!(peer = %peer.ip(), "connection closed: too many connections from this address");
            return;
        };
        let from = PeerAddress(peer.ip().to_canonical());
        let answer: HttpService = Arc::new(move |mut request| {
            request.extensions_mut().insert(from);
            answer(request)
        });
        let ending = connection::ShutdownSignal { stop, drain_max: self.config.drain_max };
        let error_response = self.config.error_response.clone();
        match &self.config.tls {
            None => {
                connection::serve_connection(ProtocolErrorStream::new(self.stream, error_response), answer, ending)
                    .await
            }
            Some(tls) => {
                let config = Arc::clone(&tls.borrow());
                let handshake = TlsAcceptor::from(config).accept(self.stream);
                match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
                    Ok(Ok(stream)) => {
                        connection::serve_connection(ProtocolErrorStream::new(stream, error_response), answer, ending)
                            .await
                    }
                    Ok(Err(error)) => tracing::debug!(peer = %peer.ip(), %error, "TLS handshake failed"),
                    Err(_) => tracing::debug!(peer = %peer.ip(), "TLS handshake took too long"),
                }
            }
        }
    }
}
