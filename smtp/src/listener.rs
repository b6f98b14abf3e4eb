//! Listening: sockets become connections, connections become tasks (listener/connection.rs).
//!
//! A [`Listener`] is bound first and served later, so that a port can be 0 and a failure to bind is seen
//! at start. Serving ends when the shutdown token is cancelled: no connection is accepted any more, idle
//! sessions are told 421, transactions under way are finished, and after the drain time what is left is
//! dropped. Errors of accept (too many open files, say) are waited out. A panic ends one session.
//!
//! A connection from a proxy begins with a header that says who is behind it ([`Proxies`]): it is read
//! before a word is said and before TLS, and its address is the peer's from then on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mail::network::IpNetwork;
use proxy::proxies::TrustedProxies;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answers::{SessionHandler, SessionTls};
use crate::inbox::LineFramer;
use crate::peers::{ConnectionLimiter, ConnectionPermit, ConnectionSlot};
use crate::replies::{self, ReplyBuffer};
use crate::session::SmtpSession;
use crate::settings::{ListenerRole, SessionSettings};

mod connection;
mod transport;

use connection::ServerConnection;
use transport::ServerStream;

/// Connections that the kernel may keep for us to accept.
const BACKLOG: u32 = 4_096;
/// The first wait after accept failed; doubled up to the second.
const ACCEPT_RETRY_FIRST: Duration = Duration::from_millis(10);
const ACCEPT_RETRY_MAX: Duration = Duration::from_secs(1);

/// What a listener is.
#[derive(Debug)]
pub struct ListenerConfig {
    /// Role, name and limits; a session keeps those that it began with.
    pub settings: watch::Receiver<Arc<SessionSettings>>,
    /// Who may connect; for [`Role::Relay`] only.
    pub networks: watch::Receiver<Vec<IpNetwork>>,
    /// Who says, before anything else, for whom it connects.
    pub proxies: TrustedProxies,
    /// What TLS shows, when there is a certificate; connections that come after it was replaced see the
    /// new one. [`Settings`] must say the same about TLS being offered.
    pub tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    /// TLS begins with the connection (RFC 8314 3.3).
    pub implicit_tls: bool,
}

impl ListenerConfig {
    /// The settings of this moment.
    fn settings(&self) -> Arc<SessionSettings> {
        Arc::clone(&self.settings.borrow())
    }
}

/// What all connections of a listener share.
struct ListenerContext<A> {
    config: ListenerConfig,
    handler: Arc<A>,
    connections: Arc<ConnectionLimiter>,
    /// Finish what is under way.
    shutdown: CancellationToken,
    /// Drop what is still under way.
    abort: CancellationToken,
}

impl<A> ListenerContext<A> {
    async fn handshake(&self, transport: &mut ServerStream) -> io::Result<SessionTls> {
        let tls = self.config.tls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        Box::pin(transport.accept_tls(acceptor)).await
    }
}

/// A bound socket, and what to do with those who connect.
pub struct Listener<A> {
    socket: TcpListener,
    config: ListenerConfig,
    handler: Arc<A>,
    connections: Arc<ConnectionLimiter>,
}

impl<A: SessionHandler> Listener<A> {
    /// Binds. Must be called inside a runtime.
    ///
    /// # Errors
    /// Those of bind and listen; [`io::ErrorKind::InvalidInput`] for implicit TLS without certificate.
    pub fn bind(
        address: SocketAddr,
        door: ListenerConfig,
        answers: Arc<A>,
        peers: Arc<ConnectionLimiter>,
    ) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Self::from_socket(socket.listen(BACKLOG)?, door, answers, peers)
    }

    /// Listens on a socket that is bound already: its address was wanted before the rest was known.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for implicit TLS without certificate.
    pub fn from_socket(
        socket: TcpListener,
        door: ListenerConfig,
        answers: Arc<A>,
        peers: Arc<ConnectionLimiter>,
    ) -> io::Result<Self> {
        if door.implicit_tls && door.tls.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "implicit TLS needs a certificate"));
        }
        Ok(Self { socket, config: door, handler: answers, connections: peers })
    }

    /// Where it listens: the port that 0 became.
    ///
    /// # Errors
    /// That of the system call.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What it is for.
    #[must_use]
    pub fn role(&self) -> ListenerRole {
        self.config.settings().role()
    }

    /// Serves until `shutdown`, then drains. `true` when every session came to its end by itself.
    pub async fn serve(self, shutdown: CancellationToken) -> bool {
        let drain_timeout = self.config.settings().limits().drain_timeout;
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
                // The client went away before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
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

/// Counts a panic on the way out of a task.
struct PanicCounter;

impl Drop for PanicCounter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            metrics::counter!("postrider_smtp_panics_total").increment(1);
        }
    }
}

impl<A: SessionHandler> ListenerContext<A> {
    /// Gives a connection its task, if it may come in. One from a proxy has a place already while it is
    /// not known for whom it comes.
    fn accept(self: &Arc<Self>, tracker: &TaskTracker, stream: TcpStream, peer: SocketAddr) {
        let is_proxy = self.config.proxies.contains(peer.ip());
        let (role, address) = (self.config.settings().role(), (!is_proxy).then(|| peer.ip()));
        let Some(place) = self.connections.acquire_slot(role, address, Instant::now()) else {
            return self.reject_connection(&stream, peer, (replies::TOO_MANY_SESSIONS, "sessions"));
        };
        if is_proxy {
            tracker.spawn(Arc::clone(self).run_proxied(stream, peer, place));
        } else if let Some(guest) = self.admit(&stream, peer, place) {
            tracker.spawn(Arc::clone(self).run_session(stream, peer, guest));
        }
    }

    /// The task of a connection from a proxy: the header first, before a word is said.
    async fn run_proxied(self: Arc<Self>, mut stream: TcpStream, proxy: SocketAddr, place: ConnectionSlot) {
        let header = Box::pin(self.config.proxies.client_address(&mut stream, proxy));
        let peer = tokio::select! {
            () = self.shutdown.cancelled() => return,
            peer = header => peer,
        };
        if let Ok(peer) = peer
            && let Some(guest) = self.admit(&stream, peer, place)
        {
            self.run_session(stream, peer, guest).await;
        }
    }

    /// Whether this peer may come in; if not, it hears why.
    fn admit(&self, stream: &TcpStream, peer: SocketAddr, place: ConnectionSlot) -> Option<ConnectionPermit> {
        let settings = self.config.settings();
        let outsider = settings.role() == ListenerRole::Relay
            && !self.config.networks.borrow().iter().any(|network| network.contains(peer.ip()));
        if outsider {
            self.reject_connection(stream, peer, (replies::RELAY_NOT_ALLOWED, "network"));
            return None;
        }
        let (limits, now) = (settings.limits(), Instant::now());
        if !self.connections.allow_connection(peer.ip(), limits.connections_per_minute_max, now) {
            self.reject_connection(stream, peer, (replies::CONNECTION_RATE_EXCEEDED, "rate"));
            return None;
        }
        let guest = place.admit(peer.ip(), limits.sessions_per_address_max, now);
        if guest.is_none() {
            self.reject_connection(stream, peer, (replies::TOO_MANY_FROM_ADDRESS, "address"));
        }
        guest
    }

    /// A last word to a connection that may not come in.
    fn reject_connection(&self, stream: &TcpStream, peer: SocketAddr, (reply, reason): (&'static str, &'static str)) {
        metrics::counter!("postrider_smtp_sessions_refused_total").increment(1);
        self.count_refused(reason);
        tracing::debug!(peer = %peer.ip(), %reply, "connection refused");
        if !self.config.implicit_tls {
            // An empty socket buffer takes a line; if not, the client goes without it.
            let _ = stream.try_write(reply.as_bytes());
        }
    }

    /// Counts what is refused because there is too much of it, and why.
    fn count_refused(&self, reason: &'static str) {
        let listener = self.config.settings().role().name();
        metrics::counter!("postrider_smtp_refused_total", "listener" => listener, "reason" => reason).increment(1);
    }

    /// The task of a connection.
    fn run_session(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        guest: ConnectionPermit,
    ) -> impl Future<Output = ()> + Send {
        metrics::counter!("postrider_smtp_sessions_total").increment(1);
        // Replies are small and waited for: none may wait for the ACK of another.
        let _ = stream.set_nodelay(true);
        let mut replies = ReplyBuffer::default();
        let who = (self.connections.next_session_id(), peer.ip().to_canonical());
        let settings = self.config.settings();
        let session = SmtpSession::new(settings, who, self.config.implicit_tls, &mut replies);
        let mut connection = ServerConnection {
            listener: self,
            transport: ServerStream::Plain(stream),
            session,
            replies,
            framer: LineFramer::default(),
            context: A::SessionContext::default(),
            draining: false,
            permit: guest,
        };
        async move {
            let _count = PanicCounter;
            let cut = connection.listener.abort.clone();
            tokio::select! {
                () = cut.cancelled() => {}
                ended = connection.run() => if let Err(error) = ended {
                    tracing::debug!(session.id = connection.session.id(), %error, "session ended");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::{Hook, HookVerdict};
    use crate::budget::ContentBudget;
    use crate::limits::SessionLimits;

    struct Yes;

    impl SessionHandler for Yes {
        type SessionContext = ();
        async fn handle(&self, (): &mut (), _: Hook) -> HookVerdict {
            HookVerdict::Accept
        }
    }

    /// What a session costs beside the kernel and TLS: the task is this future and a header.
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
        let door = ListenerConfig { settings: session, networks, proxies, tls: None, implicit_tls: false };
        let peers = ConnectionLimiter::new(8, 1);
        let enter = || peers.acquire_slot(ListenerRole::Relay, None, Instant::now()).unwrap();
        let shared = Arc::new(ListenerContext {
            config: door,
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
        let guest = enter().admit(peer.ip(), 1, Instant::now()).unwrap();
        let future = shared.run_session(stream, peer, guest);
        let bytes = size_of_val(&future);
        println!("a session's future: {bytes} bytes; its state: {}", size_of::<SmtpSession>());
        assert!(bytes <= SESSION_BYTES_MAX, "{bytes}");
        assert!(proxied <= SESSION_BYTES_MAX, "behind a proxy: {proxied}");
        drop((future, client, other));
    }
}
