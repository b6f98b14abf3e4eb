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
use proxy::proxies::Proxies;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::bare::Worded;
use self::connection::Answer;
use self::crowd::Crowd;
use self::pages::{AnsweredRequest, Overlay};
use crate::dispatch::dispatch;
use crate::problem::{Code, Problem};
use crate::room::Room;

pub use self::challenges::challenges;
pub use self::ops::ops;

/// What a TLS configuration of the door offers (RFC 7301): HTTP/2, else HTTP/1.1.
#[must_use]
pub fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// The TLS of a listener. The sender's side gives a new configuration when certificates change;
/// connections that are open keep theirs.
pub type Tls = watch::Receiver<Arc<ServerConfig>>;

/// Who sent a request: what the socket says, or the proxy before it. An extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// How long a TLS handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Out of file descriptors or memory: how long to wait before the next accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Browsers ask our own host by TLS only, for a year (RFC 6797 6.1). It is sent where this listener ends TLS, and for the
/// host of the base URL alone: customers' hosts may one day be served by others, without TLS.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Serves the API on a listener until `stop`, then lets what has begun end.
///
/// # Errors
/// The listener itself cannot be used.
pub fn api(
    listener: TcpListener,
    tls: Option<Tls>,
    room: Arc<Room>,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let terms = Terms {
            proxies: room.options.proxies.clone(),
            tls,
            connections_max: room.options.connections_max,
            crowd: Crowd::new(room.options.connections_per_address_max),
            drain_max: room.options.drain_max,
            words: Some(words(&room)),
        };
        let (tasks, drain_max) = (room.tasks.clone(), terms.drain_max);
        let writing = tokio::spawn(Arc::clone(&room).write_journal(stop.clone()));
        let (closing, stopped) = (room.closing.clone(), stop.clone());
        tokio::spawn(async move {
            stopped.cancelled().await;
            closing.cancel();
        });
        let answering = Arc::clone(&room);
        let is_tls = terms.tls.is_some();
        let answer = connection::answering(move |mut request| {
            forwarded::settle(&answering.options.forwarding_networks, &mut request);
            head::settle_host(&mut request);
            let strict = is_tls && head::is_for(&answering.options.base_url, request.headers());
            let answering = Arc::clone(&answering);
            async move {
                let mut response = match answering.options.overlay.clone() {
                    Some(overlay) => overlaid(overlay, answering, request).await,
                    None => dispatch(answering, request).await,
                };
                if strict {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, STRICT);
                }
                response
            }
        });
        listen(listener, terms, answer, stop).await?;
        // Handlers whose clients hung up.
        tasks.close();
        let _ = tokio::time::timeout(drain_max, tasks.wait()).await;
        let _ = writing.await;
        // What was answered since the stop.
        room.journal.write(room.hall.store()).await;
        Ok(())
    })
}

/// Answers a request with a page of the overlay, or else by the API.
async fn overlaid(
    overlay: Arc<dyn Overlay>,
    room: Arc<Room>,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<body::Payload> {
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
struct Terms {
    /// Who says, before anything else, for whom it connects.
    proxies: Proxies,
    tls: Option<Tls>,
    connections_max: usize,
    crowd: Arc<Crowd>,
    drain_max: Duration,
    /// What is said to whom hyper answers by itself.
    words: Option<bare::Words>,
}

/// The answer to what never became a request.
fn words(room: &Arc<Room>) -> bare::Words {
    let room = Arc::clone(room);
    Arc::new(move |status| {
        let (code, message) = match status {
            400 => (Code::BAD_REQUEST, "This is not HTTP as RFC 9112 has it"),
            _ => (Code::HEADERS_TOO_LARGE, "The head of the request is too large"),
        };
        let (problem, id) = (Problem::new(code, message), room.request_id());
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

impl Terms {
    /// In the clear and from everywhere, for a listener that is not public.
    fn plain(connections_max: usize, drain_max: Duration) -> Self {
        let crowd = Crowd::new(connections_max);
        Self { proxies: Proxies::default(), tls: None, connections_max, crowd, drain_max, words: None }
    }
}

/// Accepts connections until `stop`, and waits for those that are open.
fn listen(
    listener: TcpListener,
    terms: Terms,
    answer: Answer,
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
                    let guest = Guest { stream, address, terms: Arc::clone(&terms), _place: place };
                    open.spawn(guest.serve(Arc::clone(&answer), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
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
struct Guest {
    stream: TcpStream,
    address: SocketAddr,
    terms: Arc<Terms>,
    /// Held to its end, while a proxy's header is awaited too.
    _place: OwnedSemaphorePermit,
}

impl Guest {
    async fn serve(mut self, answer: Answer, stop: CancellationToken) {
        // Answers are written whole: waiting for more to say only delays them.
        let _ = self.stream.set_nodelay(true);
        let peer = tokio::select! {
            () = stop.cancelled() => return,
            peer = self.terms.proxies.peer(&mut self.stream, self.address) => peer,
        };
        let Ok(peer) = peer else { return };
        let Some(_seat) = self.terms.crowd.seat(peer.ip()) else {
            metrics::counter!("postrider_api_connections_refused_total").increment(1);
            tracing::debug!(peer = %peer.ip(), "connection closed: its address has as many as it may");
            return;
        };
        let from = Peer(peer.ip().to_canonical());
        let answer: Answer = Arc::new(move |mut request| {
            request.extensions_mut().insert(from);
            answer(request)
        });
        let ending = connection::Ending { stop, drain_max: self.terms.drain_max };
        let words = self.terms.words.clone();
        match &self.terms.tls {
            None => connection::serve(Worded::new(self.stream, words), answer, ending).await,
            Some(tls) => {
                let config = Arc::clone(&tls.borrow());
                let handshake = TlsAcceptor::from(config).accept(self.stream);
                match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
                    Ok(Ok(stream)) => connection::serve(Worded::new(stream, words), answer, ending).await,
                    Ok(Err(error)) => tracing::debug!(peer = %peer.ip(), %error, "TLS handshake failed"),
                    Err(_) => tracing::debug!(peer = %peer.ip(), "TLS handshake took too long"),
                }
            }
        }
    }
}
