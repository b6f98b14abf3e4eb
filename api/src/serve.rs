//! The server: listeners, connections, TLS, and how they end.
//!
//! ```text
//! accept (bounded) → from a proxy: its header → bounded by address → TLS → HTTP/1.1 or HTTP/2 → dispatch
//! ```
//!
//! Limits: connections at once and of one address (see [`crowd`]), the size and time of a request's head, of its body (see [`body`]),
//! idle time, stalled writes, the age of a connection. A stop lets requests that have begun end,
//! within [`Options::drain_max`](crate::room::Options::drain_max). The same machinery serves the
//! operator's own listener ([`ops`]).

mod bare;
pub mod body;
pub mod budget;
mod challenges;
pub mod connection;
pub mod crowd;
pub mod encoding;
mod forwarded;
pub mod head;
pub mod ops;
pub mod origin;
pub mod pages;
pub mod router;
mod stall;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;
use proxy::proxies::TrustedProxies;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::bare::ProtocolErrorStream;
use self::connection::HttpService;
use self::crowd::HttpConnectionLimiter;
use self::pages::{AnsweredRequest, Overlay};
use crate::dispatch::dispatch;
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;

pub use self::challenges::serve_acme_challenges;
pub use self::ops::serve_ops;

/// What a TLS configuration of the door offers (RFC 7301): HTTP/2, else HTTP/1.1.
#[must_use]
pub fn alpn_protocols() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// The TLS of a listener. The sender's side gives a new configuration when certificates change;
/// connections that are open keep theirs.
pub type TlsConfigReceiver = watch::Receiver<Arc<ServerConfig>>;

/// Who sent a request: what the socket says, or the proxy before it. An extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// How long a TLS handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Out of file descriptors or memory: how long to wait before the next accept.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Browsers ask our own host by TLS only, for a year (RFC 6797 6.1). It is sent where this listener ends TLS, and for the
/// host of the base URL alone: customers' hosts may one day be served by others, without TLS.
const HSTS_VALUE: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Serves the API on a listener until `stop`, then lets what has begun end.
///
/// # Errors
/// The listener itself cannot be used.
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
            forwarded::apply_forwarded_for(&answering.options.forwarding_networks, &mut request);
            head::normalize_host(&mut request);
            let strict = is_tls && head::is_for(&answering.options.base_url, request.headers());
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
        // Handlers whose clients hung up.
        tasks.close();
        let _ = tokio::time::timeout(drain_max, tasks.wait()).await;
        let _ = writing.await;
        // What was answered since the stop.
        room.request_log.flush(room.intake.store()).await;
        Ok(())
    })
}

/// Answers a request with a page of the overlay, or else by the API.
async fn overlaid(
    overlay: Arc<dyn Overlay>,
    room: Arc<AppState>,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<body::ResponseBody> {
    if overlay.has(request.uri(), request.headers()) {
        return pages::answer(overlay, request).await;
    }
    let begun = tokio::time::Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let response = dispatch(room, request).await;
    overlay.answered(&AnsweredRequest { method, uri, status: response.status(), took: begun.elapsed() });
    response
}

/// How a listener takes those who connect.
struct HttpListenerConfig {
    /// Who says, before anything else, for whom it connects.
    proxies: TrustedProxies,
    tls: Option<TlsConfigReceiver>,
    connections_max: usize,
    connections: Arc<HttpConnectionLimiter>,
    drain_max: Duration,
    /// What is said to whom hyper answers by itself.
    error_response: Option<bare::ErrorResponseBuilder>,
}

/// The answer to what never became a request.
fn protocol_error_response(room: &Arc<AppState>) -> bare::ErrorResponseBuilder {
    let room = Arc::clone(room);
    Arc::new(move |status| {
        let (code, message) = match status {
            400 => (ErrorCode::BAD_REQUEST, "This is not HTTP as RFC 9112 has it"),
            _ => (ErrorCode::HEADERS_TOO_LARGE, "The head of the request is too large"),
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
    /// In the clear and from everywhere, for a listener that is not public.
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

/// Accepts connections until `stop`, and waits for those that are open.
fn run_listener(
    listener: TcpListener,
    terms: HttpListenerConfig,
    answer: HttpService,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        listener.local_addr()?;
        let places = Arc::new(Semaphore::new(terms.connections_max.max(1)));
        let terms = Arc::new(terms);
        let open = TaskTracker::new();
        loop {
            // Without a free place the rest waits in the kernel's backlog.
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                Some((place, listener.accept().await))
            };
            let (place, accepted) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(next) = next => next,
                else => break,
            };
            match accepted {
                Ok((stream, address)) => {
                    let guest = AcceptedConnection { stream, address, config: Arc::clone(&terms), _permit: place };
                    open.spawn(guest.serve(Arc::clone(&answer), stop.clone()));
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

/// A connection that was accepted.
struct AcceptedConnection {
    stream: TcpStream,
    address: SocketAddr,
    config: Arc<HttpListenerConfig>,
    /// Held to its end, while a proxy's header is awaited too.
    _permit: OwnedSemaphorePermit,
}

impl AcceptedConnection {
    async fn serve(mut self, answer: HttpService, stop: CancellationToken) {
        // Answers are written whole: waiting for more to say only delays them.
        let _ = self.stream.set_nodelay(true);
        let peer = tokio::select! {
            () = stop.cancelled() => return,
            peer = self.config.proxies.client_address(&mut self.stream, self.address) => peer,
        };
        let Ok(peer) = peer else { return };
        let Some(_seat) = self.config.connections.acquire(peer.ip()) else {
            metrics::counter!("postrider_api_connections_refused_total").increment(1);
            tracing::debug!(peer = %peer.ip(), "connection closed: its address has as many as it may");
            return;
        };
        let from = PeerAddress(peer.ip().to_canonical());
        let answer: HttpService = Arc::new(move |mut request| {
            request.extensions_mut().insert(from);
            answer(request)
        });
        let ending = connection::ShutdownSignal { stop, drain_max: self.config.drain_max };
        let words = self.config.error_response.clone();
        match &self.config.tls {
            None => connection::serve_connection(ProtocolErrorStream::new(self.stream, words), answer, ending).await,
            Some(tls) => {
                let config = Arc::clone(&tls.borrow());
                let handshake = TlsAcceptor::from(config).accept(self.stream);
                match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
                    Ok(Ok(stream)) => {
                        connection::serve_connection(ProtocolErrorStream::new(stream, words), answer, ending).await
                    }
                    Ok(Err(error)) => tracing::debug!(peer = %peer.ip(), %error, "TLS handshake failed"),
                    Err(_) => tracing::debug!(peer = %peer.ip(), "TLS handshake took too long"),
                }
            }
        }
    }
}
