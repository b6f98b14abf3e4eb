//! A listener: accepts connections within its limits and serves each in a task of its own.
//!
//! ```text
//! accept (bounded) → PROXY header → limit by address → TLS → HTTP/1.1 or HTTP/2 → service
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use net::limit::fair_share::{FairShareQuota, QuotaBounds, QuotaHolder};
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{self, HttpService};
use super::peer_address::PeerAddress;
use super::protocol_errors::{ErrorResponseBuilder, ProtocolErrorStream};

/// The TLS configuration of a listener. A new one is sent when certificates change; open connections keep theirs.
pub type TlsConfigReceiver = watch::Receiver<Arc<ServerConfig>>;

/// Time limit of a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which usually means that file descriptors or memory are exhausted.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Settings of a listener.
pub struct HttpListenerConfig {
    /// Peers that send a PROXY protocol header.
    pub proxies: TrustedProxies,
    pub tls: Option<TlsConfigReceiver>,
    pub connections_max: usize,
    /// The open connections of each address.
    pub connections: Arc<FairShareQuota>,
    pub drain_max: Duration,
    /// Builds the error responses that replace hyper's own.
    pub error_response: Option<ErrorResponseBuilder>,
}

impl HttpListenerConfig {
    /// Without TLS and without proxies, for a listener that is not public.
    pub fn plaintext(connections_max: usize, drain_max: Duration) -> Self {
        let connections = FairShareQuota::new(QuotaBounds::each(connections_max));
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
pub fn run_listener(
    listener: TcpListener,
    config: HttpListenerConfig,
    service: HttpService,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        listener.local_addr()?;
        let permits = Arc::new(Semaphore::new(config.connections_max.max(1)));
        let config = Arc::new(config);
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
                        AcceptedConnection { stream, address, config: Arc::clone(&config), _permit: permit };
                    open.spawn(connection.serve(Arc::clone(&service), stop.clone()));
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

struct AcceptedConnection {
    stream: TcpStream,
    address: SocketAddr,
    config: Arc<HttpListenerConfig>,
    /// Held until the connection ends, and also while the PROXY header is awaited.
    _permit: OwnedSemaphorePermit,
}

impl AcceptedConnection {
    async fn serve(mut self, service: HttpService, stop: CancellationToken) {
        // Responses are written whole; Nagle's algorithm would only delay them.
        let _ = self.stream.set_nodelay(true);
        let peer = tokio::select! {
            () = stop.cancelled() => return,
            peer = self.config.proxies.client_address(&mut self.stream, self.address) => peer,
        };
        let Ok(peer) = peer else { return };
        let share = self.config.connections.share_for([QuotaHolder::for_address(peer.ip())]);
        let Some(_slot) = share.count_unit(usize::MAX) else {
            metrics::counter!("postrider_api_connections_refused_total").increment(1);
            tracing::debug!(peer = %peer.ip(), "connection closed: too many connections from this address");
            return;
        };
        let from = PeerAddress(peer.ip().to_canonical());
        let service: HttpService = Arc::new(move |mut request| {
            request.extensions_mut().insert(from);
            service(request)
        });
        let ending = connection::ShutdownSignal { stop, drain_max: self.config.drain_max };
        let error_response = self.config.error_response.clone();
        match &self.config.tls {
            None => {
                connection::serve_connection(ProtocolErrorStream::new(self.stream, error_response), service, ending)
                    .await
            }
            Some(tls) => {
                let config = Arc::clone(&tls.borrow());
                let handshake = TlsAcceptor::from(config).accept(self.stream);
                match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
                    Ok(Ok(stream)) => {
                        connection::serve_connection(ProtocolErrorStream::new(stream, error_response), service, ending)
                            .await
                    }
                    Ok(Err(error)) => tracing::debug!(peer = %peer.ip(), %error, "TLS handshake failed"),
                    Err(_) => tracing::debug!(peer = %peer.ip(), "TLS handshake took too long"),
                }
            }
        }
    }
}
