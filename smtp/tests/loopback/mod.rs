//! A listener on loopback, a test client, and a handler that records messages.

#![allow(unreachable_pub, dead_code, reason = "shared by test binaries, each using a part")]

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;

use message::reply::{Enhanced, SmtpReply};
use model::cidr::IpNetwork;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use smtp::connection_limiter::ConnectionLimiter;
use smtp::content_budget::ContentBudget;
use smtp::handler::{Hook, HookVerdict, SessionHandler, SmtpMessage};
use smtp::limits::SessionLimits;
use smtp::listener::{Listener, ListenerConfig};
use smtp::settings::{ListenerRole, SessionSettings};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

/// Accepts the login `postrider` / `secret` and every sender, recipient and message, which it records.
#[derive(Default)]
pub struct Remember {
    pub taken: Mutex<Vec<SmtpMessage>>,
    /// If set, Submit notifies the first and waits for the second.
    pub hold: Option<(Notify, Notify)>,
}

impl SessionHandler for Remember {
    type SessionContext = ();

    async fn handle(&self, (): &mut (), question: Hook) -> HookVerdict {
        match question {
            Hook::Authenticate(c, _) if c.username == "postrider" && c.password == "secret" => HookVerdict::Accept,
            Hook::Authenticate(..) => HookVerdict::Reply(SmtpReply::new(535, Enhanced::new(5, 7, 8), "no")),
            Hook::Submit(message) if message.content.starts_with(b"panic") => panic!("asked to"),
            Hook::Submit(message) => {
                if let Some((reached, go)) = &self.hold {
                    reached.notify_one();
                    go.notified().await;
                }
                self.taken.lock().push(*message);
                HookVerdict::Reply(SmtpReply::new(250, Enhanced::new(2, 0, 0), "OK msg_1"))
            }
            _ => HookVerdict::Accept,
        }
    }
}

/// A listener that serves in a task.
pub struct Server<A: SessionHandler = Remember> {
    pub address: SocketAddr,
    pub answers: Arc<A>,
    pub peers: Arc<ConnectionLimiter>,
    pub tls: watch::Sender<Arc<rustls::ServerConfig>>,
    pub certificate: rcgen::CertifiedKey<rcgen::KeyPair>,
    pub shutdown: CancellationToken,
    pub served: tokio::task::JoinHandle<bool>,
}

/// A TLS configuration with this certificate.
pub fn server_config(certificate: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Arc<rustls::ServerConfig> {
    let key = rustls_pki_types::PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

impl<A: SessionHandler> Server<A> {
    pub fn start(role: ListenerRole, limits: SessionLimits, implicit_tls: bool, answers: A) -> Self {
        Self::behind(&[], role, limits, implicit_tls, answers)
    }

    /// A listener that trusts proxies in these networks.
    pub fn behind(
        proxies: &[IpNetwork],
        role: ListenerRole,
        limits: SessionLimits,
        implicit_tls: bool,
        answers: A,
    ) -> Self {
        let peers = ConnectionLimiter::new(64, 1);
        let budget = ContentBudget::new(ContentBudget::BYTES_DEFAULT);
        Self::sharing(peers, budget, proxies, role, limits, implicit_tls, answers)
    }

    /// A listener that shares its connection limiter and content budget with others.
    pub fn sharing(
        peers: Arc<ConnectionLimiter>,
        budget: Arc<ContentBudget>,
        proxies: &[IpNetwork],
        role: ListenerRole,
        limits: SessionLimits,
        implicit_tls: bool,
        answers: A,
    ) -> Self {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = watch::Sender::new(server_config(&certificate));
        let session = SessionSettings::new(role, "mx.example".parse().unwrap(), limits, budget, true);
        let networks = vec!["127.0.0.1".parse().unwrap()];
        let (session, networks) = (watch::Sender::new(Arc::new(session)), watch::Sender::new(networks));
        let config = ListenerConfig {
            settings: session.subscribe(),
            networks: networks.subscribe(),
            proxies: TrustedProxies::new(proxies),
            tls: Some(tls.subscribe()),
            implicit_tls,
        };
        let answers = Arc::new(answers);
        let listener =
            Listener::bind("127.0.0.1:0".parse().unwrap(), config, Arc::clone(&answers), Arc::clone(&peers)).unwrap();
        let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
        let served = tokio::spawn(listener.serve(shutdown.clone()));
        Self { address, answers, peers, tls, certificate, shutdown, served }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub async fn secure(&self, stream: TcpStream) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

impl Server {
    pub fn taken(&self) -> Vec<SmtpMessage> {
        std::mem::take(&mut self.answers.taken.lock())
    }
}

pub async fn send_text(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

/// Reads `count` replies, or fewer if the server closes the connection.
pub async fn read_replies(stream: &mut (impl AsyncRead + Unpin), count: usize) -> String {
    let (mut replies, mut line_start, mut reply_count) = (String::new(), 0, 0);
    while reply_count < count {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(n) => replies.push_str(std::str::from_utf8(&buffer[..n]).unwrap()),
        }
        while let Some(end) = replies[line_start..].find("\r\n") {
            reply_count += usize::from(replies.as_bytes().get(line_start + 3) == Some(&b' '));
            line_start += end + 2;
        }
    }
    replies
}

/// Returns whether the server closed the connection.
pub async fn is_closed(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    matches!(stream.read(&mut [0; 16]).await, Ok(0) | Err(_))
}
