//! SMTP listeners: each accepted connection runs as a task of its own (listener/connection.rs).
//!
//! ```text
//! accept ─► TrustedProxies? ─► PROXY header ─► peer ─┐
//!              no ──────────────────────────► peer ─┴─► admit (networks, rate, per address) ─► ServerConnection::run
//! ```
//!
//! A [`Listener`] is bound first and served later, so that port 0 works and a bind error is reported at startup.
//! Serving ends when the shutdown token is cancelled:
//!
//! - the listener stops accepting connections,
//! - idle sessions receive 421,
//! - transactions in progress may end within the drain timeout, and the rest is dropped.
//!
//! Errors of accept (such as too many open files) are retried with a backoff. A panic ends only its own session.
//!
//! A connection from a trusted proxy begins with a PROXY header that names the client ([`TrustedProxies`]). The header
//! is read before the greeting and before TLS, and the client's address is the session's peer from then on.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::cidr::IpNetwork;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection_limiter::{ConnectionLimiter, ConnectionPermit, ConnectionSlot};
use crate::handler::{SessionHandler, SessionTls};
use crate::line_framer::LineFramer;
use crate::replies::{self, ReplyBuffer};
use crate::session::SmtpSession;
use crate::settings::{ListenerRole, SessionSettings};

mod connection;
mod transport;

use connection::ServerConnection;
use transport::ServerStream;

/// Connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 4_096;
/// The first delay after an error of accept; each further one doubles it, up to the maximum.
const ACCEPT_RETRY_FIRST: Duration = Duration::from_millis(10);
const ACCEPT_RETRY_MAX: Duration = Duration::from_secs(1);

/// The configuration of a listener.
#[derive(Debug)]
pub struct ListenerConfig {
    /// Role, host name and limits. A session keeps the settings that it began with.
    pub settings: watch::Receiver<Arc<SessionSettings>>,
    /// Networks that may connect; used for [`ListenerRole::Relay`] only.
    pub networks: watch::Receiver<Vec<IpNetwork>>,
    /// Proxies whose connections begin with a PROXY header.
    pub proxies: TrustedProxies,
    /// The TLS configuration, if there is a certificate. New connections use the current one.
    /// [`SessionSettings::tls_offered`] must agree with it.
    pub tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    /// TLS begins with the connection, without STARTTLS (RFC 8314 3.3).
    pub implicit_tls: bool,
}

impl ListenerConfig {
    /// The current settings.
    fn settings(&self) -> Arc<SessionSettings> {
        Arc::clone(&self.settings.borrow())
    }
}

/// State that all connections of a listener share.
struct ListenerContext<A> {
    config: ListenerConfig,
    handler: Arc<A>,
    connections: Arc<ConnectionLimiter>,
    /// Cancelled at shutdown: sessions end after their current transaction.
    shutdown: CancellationToken,
    /// Cancelled when the drain timeout ends: the remaining sessions are dropped.
    abort: CancellationToken,
}

impl<A> ListenerContext<A> {
    async fn handshake(&self, transport: &mut ServerStream) -> io::Result<SessionTls> {
        let tls = self.config.tls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        Box::pin(transport.accept_tls(acceptor)).await
    }
}

/// A bound socket with its configuration and session handler.
pub struct Listener<A> {
    socket: TcpListener,
    config: ListenerConfig,
    handler: Arc<A>,
    connections: Arc<ConnectionLimiter>,
}

impl<A: SessionHandler> Listener<A> {
    /// Binds the socket. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// Errors of bind and listen; [`io::ErrorKind::InvalidInput`] for implicit TLS without a certificate.
    pub fn bind(
        address: SocketAddr,
        config: ListenerConfig,
        handler: Arc<A>,
        connections: Arc<ConnectionLimiter>,
    ) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Self::from_socket(socket.listen(BACKLOG)?, config, handler, connections)
    }

    /// Creates a listener from a bound socket, for callers that need its address before the rest of the configuration.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for implicit TLS without a certificate.
    pub fn from_socket(
        socket: TcpListener,
        config: ListenerConfig,
        handler: Arc<A>,
        connections: Arc<ConnectionLimiter>,
    ) -> io::Result<Self> {
        if config.implicit_tls && config.tls.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "implicit TLS needs a certificate"));
        }
        Ok(Self { socket, config, handler, connections })
    }

    /// The bound address, with the actual port if 0 was requested.
    ///
    /// # Errors
    /// The system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub fn role(&self) -> ListenerRole {
        self.config.settings().role
    }

    /// Serves until `shutdown` is cancelled, then drains. Returns true if every session ended within the drain timeout.
    pub async fn serve(self, shutdown: CancellationToken) -> bool {
        let drain_timeout = self.config.settings().limits.timeouts.drain;
        let shared = Arc::new(ListenerContext {
            config: self.config,
            handler: self.handler,
            connections: self.connections,
            shutdown: shutdown.clone(),
            abort: CancellationToken::new(),
        });
        let tracker = TaskTracker::new();
        let mut retry = ACCEPT_RETRY_FIRST;
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    retry = ACCEPT_RETRY_FIRST;
                    shared.accept(&tracker, stream, peer);
                }
                // The client disconnected before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; retrying");
                    metrics::counter!("postrider_smtp_accept_errors_total").increment(1);
                    tokio::select! {
                        () = shutdown.cancelled() => break,
                        () = tokio::time::sleep(retry) => retry = (retry * 2).min(ACCEPT_RETRY_MAX),
                    }
                }
            }
        }
        drop(self.socket);
        tracker.close();
        if timeout(drain_timeout, tracker.wait()).await.is_ok() {
            return true;
        }
        shared.abort.cancel();
        tracker.wait().await;
        false
    }
}

/// A handler with the code that serves its listeners.
///
/// Each implementation is `Box::pin(listener.serve(shutdown))`. It is written beside the handler, so that the code of its
/// sessions is compiled and optimised in the crate of the handler, not in the crate that starts the listener.
pub trait ServedHandler: SessionHandler + Sized {
    fn serve(listener: Listener<Self>, shutdown: CancellationToken) -> ServedListener;
}

/// The future of [`Listener::serve`].
pub type ServedListener = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Counts a panic when the task unwinds.
struct PanicCounter;

impl Drop for PanicCounter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            metrics::counter!("postrider_smtp_panics_total").increment(1);
        }
    }
}

impl<A: SessionHandler> ListenerContext<A> {
    /// Spawns the task of a connection if it is admitted. A connection from a proxy takes a session slot at once,
    /// before its client is known.
    fn accept(self: &Arc<Self>, tracker: &TaskTracker, stream: TcpStream, peer: SocketAddr) {
        let is_proxy = self.config.proxies.contains(peer.ip());
        let (role, address) = (self.config.settings().role, (!is_proxy).then(|| peer.ip()));
        let Some(slot) = self.connections.acquire_slot(role, address, Instant::now()) else {
            return self.reject_connection(&stream, peer, replies::TOO_MANY_SESSIONS, "sessions");
        };
        if is_proxy {
            tracker.spawn(Arc::clone(self).run_proxied(stream, peer, slot));
        } else if let Some(permit) = self.admit(&stream, peer, slot) {
            tracker.spawn(Arc::clone(self).run_session(stream, peer, permit));
        }
    }

    /// Task of a connection from a proxy: reads the PROXY header before the greeting.
    async fn run_proxied(self: Arc<Self>, mut stream: TcpStream, proxy: SocketAddr, slot: ConnectionSlot) {
        let header = Box::pin(self.config.proxies.client_address(&mut stream, proxy));
        let peer = tokio::select! {
            () = self.shutdown.cancelled() => return,
            peer = header => peer,
        };
        if let Ok(peer) = peer
            && let Some(permit) = self.admit(&stream, peer, slot)
        {
            self.run_session(stream, peer, permit).await;
        }
    }

    /// Admits a client, or sends it the reason for the refusal.
    fn admit(&self, stream: &TcpStream, peer: SocketAddr, slot: ConnectionSlot) -> Option<ConnectionPermit> {
        let settings = self.config.settings();
        let is_outsider = settings.role == ListenerRole::Relay
            && !self.config.networks.borrow().iter().any(|network| network.contains(peer.ip()));
        if is_outsider {
            self.reject_connection(stream, peer, replies::RELAY_NOT_ALLOWED, "network");
            return None;
        }
        let (limits, now) = (&settings.limits, Instant::now());
        if !self.connections.allow_connection(peer.ip(), limits.connections_per_minute_max, now) {
            self.reject_connection(stream, peer, replies::CONNECTION_RATE_EXCEEDED, "rate");
            return None;
        }
        let permit = slot.admit(peer.ip(), limits.sessions_per_address_max, now);
        if permit.is_none() {
            self.reject_connection(stream, peer, replies::TOO_MANY_FROM_ADDRESS, "address");
        }
        permit
    }

    /// Sends the reason to a connection that is refused.
    fn reject_connection(&self, stream: &TcpStream, peer: SocketAddr, reply: &'static str, reason: &'static str) {
        metrics::counter!("postrider_smtp_sessions_refused_total").increment(1);
        self.count_refused(reason);
        tracing::debug!(peer = %peer.ip(), %reply, "connection refused");
        if !self.config.implicit_tls {
            // A line fits into an empty socket buffer; if not, the client gets no reply.
            let _ = stream.try_write(reply.as_bytes());
        }
    }

    /// Counts a refusal due to a limit, by its reason.
    fn count_refused(&self, reason: &'static str) {
        let listener = self.config.settings().role.name();
        metrics::counter!("postrider_smtp_refused_total", "listener" => listener, "reason" => reason).increment(1);
    }

    /// Task of an admitted connection.
    fn run_session(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        permit: ConnectionPermit,
    ) -> impl Future<Output = ()> + Send {
        metrics::counter!("postrider_smtp_sessions_total").increment(1);
        // Replies are small and the client waits for them: none may wait for the ACK of another (Nagle).
        let _ = stream.set_nodelay(true);
        let mut replies = ReplyBuffer::default();
        let settings = self.config.settings();
        let session = SmtpSession::new(
            settings,
            self.connections.next_session_id(),
            peer.ip().to_canonical(),
            self.config.implicit_tls,
            &mut replies,
        );
        let mut connection = ServerConnection {
            listener: self,
            transport: ServerStream::Plain(stream),
            session,
            replies,
            framer: LineFramer::default(),
            context: A::SessionContext::default(),
            draining: false,
            permit,
        };
        async move {
            let _count = PanicCounter;
            let cut = connection.listener.abort.clone();
            tokio::select! {
                () = cut.cancelled() => {}
                ended = connection.run() => if let Err(error) = ended {
                    tracing::debug!(session.id = connection.session.id, %error, "session ended");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_budget::ContentBudget;
    use crate::handler::{Hook, HookVerdict};
    use crate::limits::SessionLimits;

    struct Yes;

    impl SessionHandler for Yes {
        type SessionContext = ();
        async fn handle(&self, (): &mut (), _: Hook) -> HookVerdict {
            HookVerdict::Accept
        }
    }

    /// Memory of an idle session without the kernel's and TLS's: the task consists of this future and a header.
    const SESSION_BYTES_MAX: usize = 1_536;

    #[tokio::test]
    async fn an_idle_session_is_small() {
        let budget = ContentBudget::new(1);
        let session = SessionSettings::new(
            ListenerRole::Relay,
            "mx.example".parse().unwrap(),
            SessionLimits::for_relay(),
            budget,
            false,
        );
        let (session, networks) = (watch::Sender::new(Arc::new(session)), watch::Sender::new(Vec::new()));
        let (session, networks) = (session.subscribe(), networks.subscribe());
        let proxies = TrustedProxies::default();
        let config = ListenerConfig { settings: session, networks, proxies, tls: None, implicit_tls: false };
        let peers = ConnectionLimiter::new(8, 1);
        let enter = || peers.acquire_slot(ListenerRole::Relay, None, Instant::now()).unwrap();
        let shared = Arc::new(ListenerContext {
            config,
            handler: Arc::new(Yes),
            connections: Arc::clone(&peers),
            shutdown: CancellationToken::new(),
            abort: CancellationToken::new(),
        });
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), socket.accept());
        let (stream, peer) = accepted.unwrap();
        let proxied = size_of_val(&Arc::clone(&shared).run_proxied(stream, peer, enter()));
        let (other, accepted) = tokio::join!(TcpStream::connect(address), socket.accept());
        let (stream, peer) = accepted.unwrap();
        let permit = enter().admit(peer.ip(), 1, Instant::now()).unwrap();
        let future = shared.run_session(stream, peer, permit);
        let bytes = size_of_val(&future);
        println!("a session's future: {bytes} bytes; its state: {}", size_of::<SmtpSession>());
        assert!(bytes <= SESSION_BYTES_MAX, "{bytes}");
        assert!(proxied <= SESSION_BYTES_MAX, "behind a proxy: {proxied}");
        drop((future, client, other));
    }
}
