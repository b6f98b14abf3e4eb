//! A scripted host: it sends the given bytes and requires the client to send exactly the expected ones.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use queue::delivery::client::smtp::{
    DialTarget, OutgoingMessage, SmtpConnection, SmtpDialer, SmtpTimeouts, TlsSecurityLevel,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Timeout of a script, so that a wrong script ends.
const PATIENCE: Duration = Duration::from_secs(20);

enum Act {
    Reply(Vec<u8>),
    Expect(Vec<u8>),
    ExpectEnd,
    StartTls,
    /// TLS handshake that the client aborts.
    FailTls,
    /// Accepts the next connection.
    NextConnection,
}

/// Actions of one host, in order, over one connection after the other.
#[derive(Default)]
pub(crate) struct Script {
    acts: Vec<Act>,
    tls: Option<TlsAcceptor>,
}

trait Both: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Both for T {}

impl Script {
    /// Sends the greeting and answers EHLO with these keywords.
    pub(crate) fn offering(keywords: &[&str]) -> Self {
        Self::default().replies("220 mx.example ESMTP\r\n").ehlo(keywords)
    }

    /// Expects one EHLO and replies with these keywords.
    pub(crate) fn ehlo(self, keywords: &[&str]) -> Self {
        let script = self.expects("EHLO out.example\r\n");
        let mut lines = vec!["mx.example at your service"];
        lines.extend(keywords);
        let last = lines.pop().unwrap();
        let mut reply: String = lines.iter().map(|line| format!("250-{line}\r\n")).collect();
        reply.push_str(&format!("250 {last}\r\n"));
        script.replies(&reply)
    }

    pub(crate) fn replies(self, text: impl AsRef<[u8]>) -> Self {
        self.act(Act::Reply(text.as_ref().to_vec()))
    }

    pub(crate) fn expects(self, text: impl AsRef<[u8]>) -> Self {
        self.act(Act::Expect(text.as_ref().to_vec()))
    }

    /// Expects the client to hang up without further data.
    pub(crate) fn expects_end(self) -> Self {
        self.act(Act::ExpectEnd)
    }

    /// Closes the connection and accepts the next one.
    pub(crate) fn next_connection(self) -> Self {
        self.act(Act::NextConnection)
    }

    pub(crate) fn starts_tls(self, acceptor: TlsAcceptor) -> Self {
        Self { tls: Some(acceptor), ..self }.act(Act::StartTls)
    }

    /// Starts TLS with a client that aborts the handshake.
    pub(crate) fn start_broken_tls(self, acceptor: TlsAcceptor) -> Self {
        Self { tls: Some(acceptor), ..self }.act(Act::FailTls)
    }

    fn act(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    /// Starts the host. At the end of the script it hangs up.
    pub(crate) async fn start(self) -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Host { address, task: tokio::spawn(tokio::time::timeout(PATIENCE, self.play(listener))) }
    }

    async fn play(self, listener: TcpListener) {
        let accept = async || listener.accept().await.unwrap().0;
        let mut stream: Box<dyn Both> = Box::new(accept().await);
        for act in self.acts {
            match act {
                Act::Reply(text) => stream.write_all(&text).await.unwrap(),
                Act::Expect(text) => expect_bytes(stream.as_mut(), &text).await,
                Act::ExpectEnd => {
                    let mut remainder = Vec::new();
                    // A reset counts as an end, too.
                    let _ = stream.read_to_end(&mut remainder).await;
                    assert_eq!(String::from_utf8_lossy(&remainder), "");
                }
                Act::NextConnection => {
                    stream.shutdown().await.ok();
                    stream = Box::new(accept().await);
                }
                Act::FailTls => {
                    let acceptor = self.tls.clone().unwrap();
                    assert!(acceptor.accept(stream.as_mut()).await.is_err());
                }
                Act::StartTls => {
                    let acceptor = self.tls.clone().unwrap();
                    stream = Box::new(acceptor.accept(stream).await.unwrap());
                }
            }
        }
        stream.shutdown().await.ok();
    }
}

async fn expect_bytes(stream: &mut dyn Both, expected: &[u8]) {
    let mut received = Vec::new();
    while received.len() < expected.len() {
        let mut buffer = vec![0; expected.len() - received.len()];
        let count = stream.read(&mut buffer).await.unwrap();
        received.extend_from_slice(&buffer[..count]);
        let is_as_expected = count > 0 && expected.starts_with(&received);
        let (actual, wanted) = (String::from_utf8_lossy(&received), String::from_utf8_lossy(expected));
        assert!(is_as_expected, "received {actual:?}, expected {wanted:?}");
    }
}

pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    task: JoinHandle<Result<(), tokio::time::error::Elapsed>>,
}

impl Host {
    /// Waits for the end of the script and panics if it failed.
    pub(crate) async fn done(self) {
        self.task.await.unwrap().expect("the script timed out");
    }

    pub(crate) fn target(&self, tls: TlsSecurityLevel) -> DialTarget {
        DialTarget {
            host: "mx.example".parse().unwrap(),
            address: self.address,
            is_trusted: false,
            source: None,
            helo: None,
            tls,
            dane: None,
            credentials: None,
        }
    }

    pub(crate) async fn connect(&self) -> SmtpConnection {
        dialer().connect(&self.target(TlsSecurityLevel::Opportunistic)).await.unwrap()
    }
}

/// Creates a dialer that may connect to loopback.
pub(crate) fn dialer() -> SmtpDialer {
    SmtpDialer::new("out.example".parse().unwrap()).unwrap().with_private_addresses(true)
}

/// Creates a dialer with timeouts short enough for tests of silent hosts.
pub(crate) fn hasty() -> SmtpDialer {
    patient(Duration::from_millis(50))
}

/// Creates a dialer with this timeout for every reply.
pub(crate) fn patient(limit: Duration) -> SmtpDialer {
    dialer().with_timeouts(SmtpTimeouts {
        greeting: limit,
        hello: limit,
        mail: limit,
        rcpt: limit,
        data: limit,
        final_dot: limit,
        ..SmtpTimeouts::default()
    })
}

/// Message `n`: from `vN@rp.example` to `rN@d.example`.
pub(crate) fn shipment(n: u32, body: &'static str) -> OutgoingMessage {
    OutgoingMessage {
        sender: Some(format!("v{n}@rp.example").parse().unwrap()),
        recipient: format!("r{n}@d.example").parse().unwrap(),
        body: vec![body.into()],
        eight_bit: false,
        smtputf8: false,
        require_tls: false,
        dsn: None,
        deliver_by: None,
        priority: None,
    }
}

/// MAIL and RCPT of message `n` without parameters.
pub(crate) fn envelope(n: u32) -> String {
    format!("MAIL FROM:<v{n}@rp.example>\r\nRCPT TO:<r{n}@d.example>\r\n")
}

/// Self-signed certificate for `mx.example`, with the host's TLS acceptor.
pub(crate) fn certificate() -> (TlsAcceptor, rustls::RootCertStore) {
    let certified = rcgen::generate_simple_self_signed(vec!["mx.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    (Arc::new(config).into(), roots)
}

/// Returns an address on which nothing listens.
pub(crate) async fn dead_end() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}
