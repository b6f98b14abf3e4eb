//! The server: listeners, connections, TLS, and how they end.
//!
//! ```text
//! accept (bounded) → TLS → HTTP/1.1 or HTTP/2 → dispatch
//! ```
//!
//! Limits: connections at once, the size and time of a request's head, of its body (see [`body`]),
//! idle time, stalled writes, the age of a connection. A stop lets requests that have begun end,
//! within [`Options::drain_max`](crate::room::Options::drain_max). The same machinery serves the
//! operator's own listener ([`ops`]).

pub mod body;
pub mod budget;
pub mod connection;
pub mod ops;
pub mod pages;
pub mod router;
mod stall;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::body::Payload;
use crate::dispatch::dispatch;
use crate::room::Room;

pub use self::ops::ops;

/// What a TLS configuration of the door offers (RFC 7301): HTTP/2, else HTTP/1.1.
#[must_use]
pub fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// The TLS of a listener. The sender's side gives a new configuration when certificates change;
/// connections that are open keep theirs.
pub type Tls = watch::Receiver<Arc<ServerConfig>>;

/// How long a TLS handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Out of file descriptors or memory: how long to wait before the next accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the API on a listener until `stop`, then lets what has begun end.
///
/// # Errors
/// The listener itself cannot be used.
pub async fn api(
    listener: TcpListener,
    tls: Option<Tls>,
    room: Arc<Room>,
    stop: CancellationToken,
) -> io::Result<()> {
    let limits = Limits { connections_max: room.options.connections_max, drain_max: room.options.drain_max };
    let tasks = room.tasks.clone();
    let answer = move |request: Request<Incoming>| dispatch(Arc::clone(&room), request);
    listen(listener, tls, limits, answer, stop).await?;
    // Handlers whose clients hung up.
    tasks.close();
    let _ = tokio::time::timeout(limits.drain_max, tasks.wait()).await;
    Ok(())
}

/// The limits of a listener.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connections_max: usize,
    drain_max: Duration,
}

/// Accepts connections until `stop`, and waits for those that are open.
async fn listen<S, F>(
    listener: TcpListener,
    tls: Option<Tls>,
    limits: Limits,
    answer: S,
    stop: CancellationToken,
) -> io::Result<()>
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send + 'static,
{
    listener.local_addr()?;
    let places = Arc::new(Semaphore::new(limits.connections_max.max(1)));
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
            Ok((stream, _)) => {
                let guest = Guest { stream, tls: tls.clone(), place, drain_max: limits.drain_max };
                open.spawn(guest.serve(answer.clone(), stop.clone()));
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
}

/// A connection that was accepted.
struct Guest {
    stream: TcpStream,
    tls: Option<Tls>,
    place: OwnedSemaphorePermit,
    drain_max: Duration,
}

impl Guest {
    async fn serve<S, F>(self, answer: S, stop: CancellationToken)
    where
        S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Payload>> + Send + 'static,
    {
        // Answers are written whole: waiting for more to say only delays them.
        let _ = self.stream.set_nodelay(true);
        let ending = connection::Ending { stop, drain_max: self.drain_max };
        match self.tls {
            None => connection::serve(self.stream, answer, ending).await,
            Some(tls) => {
                let config = Arc::clone(&tls.borrow());
                let handshake = TlsAcceptor::from(config).accept(self.stream);
                match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
                    Ok(Ok(stream)) => connection::serve(stream, answer, ending).await,
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => tracing::debug!("TLS handshake took too long"),
                }
            }
        }
        drop(self.place);
    }
}
