//! Connecting to a host: from an address to a session that is ready for messages.
//!
//! ```text
//! check address ─► TCP ─► greeting ─► EHLO (HELO) ─► STARTTLS ─► handshake ─► EHLO ─► AUTH ─► SmtpConnection
//! ```
//!
//! mail-send makes the TCP connection (from a source address if configured) and the handshake. The SMTP dialog is our
//! own, because mail-send's reader drops bytes after the first reply. That would lose a host's reason for a refusal,
//! and accept bytes injected in plaintext behind STARTTLS. Such bytes are a failure here (RFC 3207 4.2), and
//! capabilities from before TLS are discarded.
//!
//! If TLS fails in an opportunistic mode, `connect` opens a second connection and continues in plaintext; the
//! connection records why. No other mode falls back to plaintext.

use std::io::ErrorKind;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_send::SmtpClient;
use message::address::DomainName;
use message::reply::{Severity, SmtpReply};
use message::tls_report::{self, TlsResultType};
use model::public_ip;
use rustls::RootCertStore;
use rustls::client::ClientConnection;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::certificate::ServerCertificateError;
use super::connection::SmtpConnection;
use super::delivery::SmtpFault;
use super::dial_target::{DialFailure, DialReason, DialTarget, SmarthostCredentials, TlsSecurityLevel};
use super::ehlo::EhloCapabilities;
use super::timeouts::SmtpTimeouts;
use super::tls::{OutboundTls, TlsConnectors};
use super::transcript::Transcript;
use super::wire::{ClientStream, SmtpWire};

/// Opens connections. Built once and shared.
#[derive(Clone)]
pub struct SmtpDialer {
    pub(super) helo: DomainName,
    pub(super) timeouts: SmtpTimeouts,
    pub(super) chunking: bool,
    connectors: TlsConnectors,
    allow_private: bool,
}

/// Why a session could not be established.
struct HandshakeFailure(DialReason, Option<SmtpReply>);

impl From<SmtpFault> for HandshakeFailure {
    fn from(fault: SmtpFault) -> Self {
        Self(DialReason::ConnectionLost(fault), None)
    }
}

impl SmtpDialer {
    /// Creates a dialer that sends `helo` in EHLO and verifies certificates against the public roots.
    ///
    /// # Errors
    /// The TLS provider cannot be configured.
    pub fn new(helo: DomainName) -> Result<Self, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let connectors = TlsConnectors::new(roots)?;
        Ok(Self { helo, timeouts: SmtpTimeouts::default(), chunking: true, connectors, allow_private: false })
    }

    /// Trusts these roots instead of the public ones.
    ///
    /// # Errors
    /// The TLS provider cannot be configured.
    pub fn with_roots(self, roots: RootCertStore) -> Result<Self, rustls::Error> {
        Ok(Self { connectors: TlsConnectors::new(roots)?, ..self })
    }

    #[must_use]
    pub fn with_timeouts(self, timeouts: SmtpTimeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Allows private addresses even for hosts that the operator did not configure.
    #[must_use]
    pub fn with_private_addresses(self, allow_private: bool) -> Self {
        Self { allow_private, ..self }
    }

    /// Allows BDAT with hosts that offer CHUNKING.
    #[must_use]
    pub fn with_chunking(self, chunking: bool) -> Self {
        Self { chunking, ..self }
    }

    /// Connects to a host and prepares the session for the first message.
    ///
    /// # Errors
    /// Returns a [`DialFailure`] with the transcript up to it.
    pub async fn connect(&self, target: &DialTarget) -> Result<SmtpConnection, DialFailure> {
        let started = Instant::now();
        if !self.allow_private && !target.is_trusted && !public_ip::is_public(target.address.ip()) {
            let stop = HandshakeFailure(DialReason::Private(target.address.ip()), None);
            return Err(dial_failure(stop, Transcript::default(), started));
        }
        let mode = match target.dane {
            Some(_) if target.tls.allows_plaintext() => TlsSecurityLevel::Required,
            _ => target.tls,
        };
        let first = self.connect_once(target, mode, Transcript::with_typical_capacity(), started).await;
        match first {
            Err(DialFailure { reason: DialReason::Tls(tls_fault), mut transcript, .. })
                if matches!(mode, TlsSecurityLevel::Opportunistic | TlsSecurityLevel::Testing) =>
            {
                transcript.note(elapsed_ms(started), &format!("TLS failed: {tls_fault}; retrying in plaintext"));
                let second = self.connect_once(target, TlsSecurityLevel::Off, transcript, started).await;
                let fault = Some(tls_fault);
                match second {
                    Ok(second) => Ok(second.with_facts(None, fault)),
                    Err(failure) => Err(DialFailure { fault, ..failure }),
                }
            }
            other => other,
        }
    }

    async fn connect_once(
        &self,
        target: &DialTarget,
        mode: TlsSecurityLevel,
        transcript: Transcript,
        started: Instant,
    ) -> Result<SmtpConnection, DialFailure> {
        let wire = self.connect_tcp(target, transcript, started).await?;
        let local = wire.source_ip();
        match self.start_session(wire, target, mode, started).await {
            Ok(connection) => Ok(connection.with_facts(local, None)),
            Err(failure) => Err(DialFailure { local, ..failure }),
        }
    }

    async fn start_session(
        &self,
        mut wire: SmtpWire,
        target: &DialTarget,
        mode: TlsSecurityLevel,
        started: Instant,
    ) -> Result<SmtpConnection, DialFailure> {
        let mut ehlo = match self.greet(&mut wire, target).await {
            Ok(ehlo) => ehlo,
            Err(stop) => return Err(dial_failure_of(stop, wire, started)),
        };
        let (mut tls, mut fault) = (None, None);
        if mode != TlsSecurityLevel::Off {
            match self.start_tls(&mut wire, mode, ehlo.capabilities.starttls).await {
                Ok(Some(refused)) => fault = Some(refused),
                Ok(None) => {
                    let facts;
                    (wire, facts, fault) = self.tls_handshake(wire, target, started).await?;
                    tls = Some(facts);
                    ehlo = match self.send_ehlo_or_helo(&mut wire, target).await {
                        Ok(ehlo) => ehlo,
                        Err(stop) => {
                            let failure = dial_failure_of(as_tls_failure(stop), wire, started);
                            return Err(DialFailure { tls, fault: failure.fault.or(fault), ..failure });
                        }
                    };
                }
                Err(stop) => return Err(dial_failure_of(stop, wire, started)),
            }
        }
        if let Some(credentials) = &target.credentials {
            // Plaintext only if the operator configured it (`Off`) for a smarthost.
            let is_allowed = ehlo.capabilities.auth_plain && (tls.is_some() || target.tls == TlsSecurityLevel::Off);
            if let Err(stop) = self.authenticate(&mut wire, credentials, is_allowed).await {
                return Err(DialFailure { tls, ..dial_failure_of(stop, wire, started) });
            }
        }
        Ok(SmtpConnection::new(self, wire, ehlo, tls).with_facts(None, fault))
    }

    async fn connect_tcp(
        &self,
        target: &DialTarget,
        mut transcript: Transcript,
        started: Instant,
    ) -> Result<SmtpWire, DialFailure> {
        let socket = match target.source {
            Some(source) => SmtpClient::connect_using(source, target.address, self.timeouts.connect).await,
            None => SmtpClient::<TcpStream>::connect(target.address, self.timeouts.connect).await,
        };
        let stream = socket.map_err(io_fault).and_then(|client| {
            // A group of commands is one write: Nagle's algorithm would only add a delayed ACK's 40 ms.
            client.stream.set_nodelay(true)?;
            Ok(client.stream)
        });
        match stream {
            Ok(stream) => {
                let line = format!("connected to {} at {}", target.host, target.address);
                transcript.note(elapsed_ms(started), &line);
                Ok(SmtpWire::new(ClientStream::Plain(stream), transcript, started))
            }
            Err(fault) => {
                let reason = match (target.source, &fault) {
                    (Some(source), SmtpFault::Io(ErrorKind::AddrNotAvailable)) => DialReason::Source(source),
                    _ => DialReason::Connect(fault),
                };
                Err(dial_failure(HandshakeFailure(reason, None), transcript, started))
            }
        }
    }

    async fn greet(&self, wire: &mut SmtpWire, target: &DialTarget) -> Result<EhloResponse, HandshakeFailure> {
        let greeting = wire.read_reply(self.timeouts.greeting).await?;
        match greeting.severity() {
            Severity::Completed => self.send_ehlo_or_helo(wire, target).await,
            Severity::Intermediate => Err(SmtpFault::UnexpectedReply(greeting.code).into()),
            Severity::Transient | Severity::Permanent => Err(HandshakeFailure(DialReason::Greeting, Some(greeting))),
        }
    }

    async fn send_ehlo_or_helo(
        &self,
        wire: &mut SmtpWire,
        target: &DialTarget,
    ) -> Result<EhloResponse, HandshakeFailure> {
        self.send_hello(wire, target.helo.as_ref().unwrap_or(&self.helo)).await.map_err(
            |HandshakeFailure(reason, reply)| match reason {
                DialReason::ConnectionLost(fault) => {
                    HandshakeFailure(DialReason::ConnectionLostAfterGreeting(fault), reply)
                }
                other => HandshakeFailure(other, reply),
            },
        )
    }

    async fn send_hello(&self, wire: &mut SmtpWire, helo: &DomainName) -> Result<EhloResponse, HandshakeFailure> {
        let reply = self.send_command(wire, &format!("EHLO {helo}\r\n")).await?;
        match reply.severity() {
            Severity::Completed => {
                let capabilities = EhloCapabilities::parse(&reply);
                return Ok(EhloResponse { capabilities, name: first_word(&reply) });
            }
            Severity::Intermediate => return Err(SmtpFault::UnexpectedReply(reply.code).into()),
            Severity::Transient => return Err(HandshakeFailure(DialReason::Hello, Some(reply))),
            // RFC 5321 3.2: a host that does not support EHLO may support HELO.
            Severity::Permanent => {}
        }
        let reply = self.send_command(wire, &format!("HELO {helo}\r\n")).await?;
        match reply.severity() {
            Severity::Completed => {
                Ok(EhloResponse { capabilities: EhloCapabilities::default(), name: first_word(&reply) })
            }
            Severity::Intermediate => Err(SmtpFault::UnexpectedReply(reply.code).into()),
            Severity::Transient | Severity::Permanent => Err(HandshakeFailure(DialReason::Hello, Some(reply))),
        }
    }

    async fn send_command(&self, wire: &mut SmtpWire, command: &str) -> Result<SmtpReply, HandshakeFailure> {
        wire.send_command(command.as_bytes(), self.timeouts.block).await?;
        Ok(wire.read_reply(self.timeouts.hello).await?)
    }

    /// Sends STARTTLS. Returns `None` if the handshake may begin, or why the session continues in plaintext.
    async fn start_tls(
        &self,
        wire: &mut SmtpWire,
        mode: TlsSecurityLevel,
        is_offered: bool,
    ) -> Result<Option<tls_report::TlsFault>, HandshakeFailure> {
        let allows_plaintext = mode.allows_plaintext();
        let in_the_clear = |reply: Option<&SmtpReply>| DialReason::NoTls.tls_fault(reply);
        if !is_offered {
            return if allows_plaintext {
                Ok(in_the_clear(None))
            } else {
                Err(HandshakeFailure(DialReason::NoTls, None))
            };
        }
        // A host that fails at STARTTLS is retried in plaintext, like one whose handshake fails.
        let reply =
            self.send_command(wire, "STARTTLS\r\n").await.map_err(|HandshakeFailure(reason, reply)| match reason {
                DialReason::ConnectionLost(fault) => {
                    HandshakeFailure(DialReason::Tls(tls_validation_failure(fault.to_string())), reply)
                }
                other => HandshakeFailure(other, reply),
            })?;
        match reply.severity() {
            Severity::Completed if wire.has_unread() => {
                Err(HandshakeFailure(DialReason::Tls(tls_validation_failure("plaintext data after STARTTLS")), None))
            }
            Severity::Completed => Ok(None),
            // RFC 5321 3.8: 421 means that the host closes the connection, whatever the command.
            Severity::Transient if allows_plaintext && reply.code == 421 => {
                Err(HandshakeFailure(DialReason::Closing, Some(reply)))
            }
            Severity::Transient | Severity::Permanent if allows_plaintext => Ok(in_the_clear(Some(&reply))),
            _ => Err(HandshakeFailure(DialReason::NoTls, Some(reply))),
        }
    }

    async fn tls_handshake(
        &self,
        wire: SmtpWire,
        target: &DialTarget,
        started: Instant,
    ) -> Result<(SmtpWire, OutboundTls, Option<tls_report::TlsFault>), DialFailure> {
        let connector = match (&target.dane, target.tls) {
            (Some(_), _) | (None, TlsSecurityLevel::Testing | TlsSecurityLevel::Verified) => &self.connectors.verified,
            (None, _) => &self.connectors.opportunistic,
        };
        // No bytes are unread. The capabilities from before TLS are dropped with the plaintext session.
        let (stream, mut transcript) = wire.into_parts();
        let ClientStream::Plain(stream) = stream else {
            return Err(dial_failure(SmtpFault::ConnectionEnded.into(), transcript, started));
        };
        let client = SmtpClient { stream, timeout: self.timeouts.handshake };
        match client.into_tls(connector, target.host.as_str()).await {
            Ok(client) => {
                let session = client.tls_connection();
                let verdict = self.verify_certificate(session, target);
                let verified = verdict == Ok(true);
                let facts = OutboundTls::from_session(session, verified);
                let resumed = if facts.resumed { ", resumed" } else { "" };
                let line = format!("{} {}{resumed}", facts.version, facts.cipher);
                transcript.note(elapsed_ms(started), &line);
                let fault = verdict.err().map(|fault| fault.tls_report_failure());
                if let Some(fault) = &fault {
                    transcript.note(elapsed_ms(started), &fault.reason);
                    if target.dane.is_some() || target.tls == TlsSecurityLevel::Verified {
                        let stop = HandshakeFailure(DialReason::Tls(fault.clone()), None);
                        return Err(DialFailure { tls: Some(facts), ..dial_failure(stop, transcript, started) });
                    }
                }
                Ok((SmtpWire::new(ClientStream::Tls(Box::new(client.stream)), transcript, started), facts, fault))
            }
            Err(error) => {
                let reason = match error {
                    mail_send::Error::Tls(error) => error.to_string(),
                    other => io_fault(other).to_string(),
                };
                Err(dial_failure(
                    HandshakeFailure(DialReason::Tls(tls_validation_failure(reason)), None),
                    transcript,
                    started,
                ))
            }
        }
    }

    /// Verifies the host's certificate as the target requires. Returns false if no verification is required.
    fn verify_certificate(
        &self,
        session: &ClientConnection,
        target: &DialTarget,
    ) -> Result<bool, ServerCertificateError> {
        let chain = session.peer_certificates().unwrap_or_default();
        let (verifier, host) = (&self.connectors.verifier, target.host.as_str());
        match (&target.dane, target.tls) {
            (Some(records), _) => verifier.verify_dane(records, chain, host).map(|()| true),
            (None, TlsSecurityLevel::Testing | TlsSecurityLevel::Verified) => {
                verifier.verify_pkix(chain, host).map(|()| true)
            }
            (None, _) => Ok(false),
        }
    }

    async fn authenticate(
        &self,
        wire: &mut SmtpWire,
        credentials: &SmarthostCredentials,
        is_allowed: bool,
    ) -> Result<(), HandshakeFailure> {
        if !is_allowed {
            return Err(HandshakeFailure(DialReason::NoAuth, None));
        }
        let secret = STANDARD.encode(format!("\0{}\0{}", credentials.username, credentials.password));
        let command = format!("AUTH PLAIN {secret}\r\n");
        wire.send_secret(command.as_bytes(), "AUTH PLAIN [secret]\r\n", self.timeouts.block).await?;
        let reply = wire.read_reply(self.timeouts.hello).await?;
        match reply.severity() {
            Severity::Completed => Ok(()),
            _ => Err(HandshakeFailure(DialReason::Auth, Some(reply))),
        }
    }
}

/// Result of EHLO or HELO.
pub(super) struct EhloResponse {
    pub capabilities: EhloCapabilities,
    /// The host's own name, unchanged.
    pub name: String,
}

fn first_word(reply: &SmtpReply) -> String {
    reply.lines.first().and_then(|line| line.split_ascii_whitespace().next()).unwrap_or_default().to_owned()
}

fn elapsed_ms(started: Instant) -> u32 {
    u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX)
}

fn io_fault(error: mail_send::Error) -> SmtpFault {
    match error {
        mail_send::Error::Io(error) => error.into(),
        mail_send::Error::Timeout => SmtpFault::TimedOut,
        _ => SmtpFault::Io(std::io::ErrorKind::Other),
    }
}

/// In TLS 1.3, a host's alert about the handshake arrives with the first read after it.
fn as_tls_failure(stop: HandshakeFailure) -> HandshakeFailure {
    match stop {
        HandshakeFailure(
            DialReason::ConnectionLostAfterGreeting(SmtpFault::Io(std::io::ErrorKind::InvalidData)),
            _,
        ) => HandshakeFailure(DialReason::Tls(tls_validation_failure("the host aborted the TLS handshake")), None),
        other => other,
    }
}

/// TLS was offered and failed.
fn tls_validation_failure(reason: impl Into<String>) -> tls_report::TlsFault {
    tls_report::TlsFault::new(TlsResultType::ValidationFailure, reason)
}

fn dial_failure(
    HandshakeFailure(reason, reply): HandshakeFailure,
    transcript: Transcript,
    started: Instant,
) -> DialFailure {
    let fault = reason.tls_fault(reply.as_ref());
    let duration = started.elapsed();
    DialFailure { reason, reply, transcript, duration, tls: None, fault, local: None }
}

fn dial_failure_of(stop: HandshakeFailure, wire: SmtpWire, started: Instant) -> DialFailure {
    dial_failure(stop, wire.into_parts().1, started)
}
