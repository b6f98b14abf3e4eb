//! From an address to a connection that can take messages.
//!
//! ```text
//! guard ─► TCP ─► greeting ─► EHLO (HELO) ─► STARTTLS ─► handshake ─► EHLO ─► AUTH ─► Connection
//! ```
//!
//! mail-send makes the TCP connection (from a source address when asked to) and the handshake. The
//! words in between are ours: its reader keeps one reply of what it read and forgets the rest, which
//! would lose what a host says when it refuses us, and would let bytes in that someone put behind
//! STARTTLS in the clear. Such bytes are a failure here (RFC 3207 4.2), and what was learnt before
//! TLS is forgotten.
//!
//! When TLS fails and the mode is opportunistic, `dial` makes one second connection by itself and
//! speaks in the clear on it; the connection remembers why. With any other mode nothing goes in the
//! clear.

use std::io::ErrorKind;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail::address::Name;
use mail::egress;
use mail::reply::{Reply, Severity};
use mail::tls_report::{self, ResultType};
use mail_send::SmtpClient;
use rustls::RootCertStore;
use rustls::client::ClientConnection;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::capabilities::Capabilities;
use super::certificate::CertificateFault;
use super::connection::Connection;
use super::delivery::Fault;
use super::target::{Credentials, DialFailure, DialReason, Target, TlsMode};
use super::timeouts::Timeouts;
use super::tls::{Connectors, TlsFacts};
use super::transcript::Transcript;
use super::wire::{Stream, Wire};

/// Makes connections. Built once, shared by all.
#[derive(Clone)]
pub struct Dialer {
    pub(super) helo: Name,
    pub(super) timeouts: Timeouts,
    pub(super) chunking: bool,
    connectors: Connectors,
    allow_private: bool,
}

/// What stopped a dial.
struct Stop(DialReason, Option<Reply>);

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self(DialReason::Lost(fault), None)
    }
}

impl Dialer {
    /// A dialer that introduces itself as `helo` and checks certificates against the public roots.
    ///
    /// # Errors
    /// When the TLS provider cannot be configured.
    pub fn new(helo: Name) -> Result<Self, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let connectors = Connectors::new(roots)?;
        Ok(Self { helo, timeouts: Timeouts::default(), chunking: true, connectors, allow_private: false })
    }

    /// With these roots instead of the public ones.
    ///
    /// # Errors
    /// When the TLS provider cannot be configured.
    pub fn roots(self, roots: RootCertStore) -> Result<Self, rustls::Error> {
        Ok(Self { connectors: Connectors::new(roots)?, ..self })
    }

    /// With these timeouts.
    #[must_use]
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Whether private addresses may be dialled, also those that nobody has named.
    #[must_use]
    pub fn allow_private(self, allow_private: bool) -> Self {
        Self { allow_private, ..self }
    }

    /// Whether BDAT is used where it is offered.
    #[must_use]
    pub fn chunking(self, chunking: bool) -> Self {
        Self { chunking, ..self }
    }

    /// Connects to a host and makes ready for the first message.
    ///
    /// # Errors
    /// [`DialFailure`], with what was said up to it.
    pub async fn dial(&self, target: &Target) -> Result<Connection, DialFailure> {
        let started = Instant::now();
        if !self.allow_private && !target.is_trusted && !egress::is_public(target.address.ip()) {
            let stop = Stop(DialReason::Private(target.address.ip()), None);
            return Err(failure(stop, Transcript::default(), started));
        }
        let mode = match target.dane {
            Some(_) if target.tls.may_be_clear() => TlsMode::Required,
            _ => target.tls,
        };
        let first = self.attempt(target, mode, (Transcript::ordinary(), started)).await;
        match first {
            Err(DialFailure { reason: DialReason::Tls(why), mut transcript, .. })
                if matches!(mode, TlsMode::Opportunistic | TlsMode::Testing) =>
            {
                transcript.note(elapsed_ms(started), &format!("TLS failed: {why}; once more in the clear"));
                let second = self.attempt(target, TlsMode::Off, (transcript, started)).await;
                let fault = Some(why);
                match second {
                    Ok(second) => Ok(second.known(None, fault)),
                    Err(failure) => Err(DialFailure { fault, ..failure }),
                }
            }
            other => other,
        }
    }

    async fn attempt(
        &self,
        target: &Target,
        mode: TlsMode,
        (transcript, started): (Transcript, Instant),
    ) -> Result<Connection, DialFailure> {
        let wire = self.connect(target, transcript, started).await?;
        let local = wire.local_ip();
        match self.make_ready(wire, target, mode, started).await {
            Ok(connection) => Ok(connection.known(local, None)),
            Err(failure) => Err(DialFailure { local, ..failure }),
        }
    }

    async fn make_ready(
        &self,
        mut wire: Wire,
        target: &Target,
        mode: TlsMode,
        started: Instant,
    ) -> Result<Connection, DialFailure> {
        let mut learnt = match self.meet(&mut wire, target).await {
            Ok(learnt) => learnt,
            Err(stop) => return Err(lost(stop, wire, started)),
        };
        let (mut tls, mut fault) = (None, None);
        if mode != TlsMode::Off {
            match self.ask_for_tls(&mut wire, mode, learnt.capabilities.starttls).await {
                Ok(Some(refused)) => fault = Some(refused),
                Ok(None) => {
                    let facts;
                    (wire, facts, fault) = self.handshake(wire, target, started).await?;
                    tls = Some(facts);
                    learnt = match self.hello(&mut wire, target).await {
                        Ok(learnt) => learnt,
                        Err(stop) => {
                            let failure = lost(as_tls(stop), wire, started);
                            return Err(DialFailure { tls, fault: failure.fault.or(fault), ..failure });
                        }
                    };
                }
                Err(stop) => return Err(lost(stop, wire, started)),
            }
        }
        if let Some(credentials) = &target.credentials {
            // In the clear only where the operator said so (`Off`), to a host of their own.
            let may = learnt.capabilities.auth_plain && (tls.is_some() || target.tls == TlsMode::Off);
            if let Err(stop) = self.authenticate(&mut wire, credentials, may).await {
                return Err(DialFailure { tls, ..lost(stop, wire, started) });
            }
        }
        Ok(Connection::new(self, wire, learnt, tls).known(None, fault))
    }

    async fn connect(
        &self,
        target: &Target,
        mut transcript: Transcript,
        started: Instant,
    ) -> Result<Wire, DialFailure> {
        let made = match target.source {
            Some(source) => SmtpClient::connect_using(source, target.address, self.timeouts.connect).await,
            None => SmtpClient::<TcpStream>::connect(target.address, self.timeouts.connect).await,
        };
        let stream = made.map_err(io_fault).and_then(|client| {
            // Groups leave in one write; waiting for more would only add a delayed ACK's 40 ms.
            client.stream.set_nodelay(true)?;
            Ok(client.stream)
        });
        match stream {
            Ok(stream) => {
                let line = format!("connected to {} at {}", target.host, target.address);
                transcript.note(elapsed_ms(started), &line);
                Ok(Wire::new(Stream::Plain(stream), transcript, started))
            }
            Err(fault) => {
                let reason = match (target.source, &fault) {
                    (Some(source), Fault::Io(ErrorKind::AddrNotAvailable)) => DialReason::Source(source),
                    _ => DialReason::Connect(fault),
                };
                Err(failure(Stop(reason, None), transcript, started))
            }
        }
    }

    async fn meet(&self, wire: &mut Wire, target: &Target) -> Result<Learnt, Stop> {
        let greeting = wire.hear(self.timeouts.greeting).await?;
        match greeting.severity() {
            Severity::Completed => self.hello(wire, target).await,
            Severity::Intermediate => Err(Fault::Unexpected(greeting.code).into()),
            Severity::Transient | Severity::Permanent => Err(Stop(DialReason::Greeting, Some(greeting))),
        }
    }

    async fn hello(&self, wire: &mut Wire, target: &Target) -> Result<Learnt, Stop> {
        self.say_hello(wire, target.helo.as_ref().unwrap_or(&self.helo)).await.map_err(
            |Stop(reason, reply)| match reason {
                DialReason::Lost(fault) => Stop(DialReason::LostAfterGreeting(fault), reply),
                other => Stop(other, reply),
            },
        )
    }

    async fn say_hello(&self, wire: &mut Wire, helo: &Name) -> Result<Learnt, Stop> {
        let reply = self.ask(wire, &format!("EHLO {helo}\r\n")).await?;
        match reply.severity() {
            Severity::Completed => {
                let capabilities = Capabilities::read(&reply);
                return Ok(Learnt { capabilities, name: first_word(&reply) });
            }
            Severity::Intermediate => return Err(Fault::Unexpected(reply.code).into()),
            Severity::Transient => return Err(Stop(DialReason::Hello, Some(reply))),
            // RFC 5321 3.2: a host that does not know EHLO may know HELO.
            Severity::Permanent => {}
        }
        let reply = self.ask(wire, &format!("HELO {helo}\r\n")).await?;
        match reply.severity() {
            Severity::Completed => {
                Ok(Learnt { capabilities: Capabilities::default(), name: first_word(&reply) })
            }
            Severity::Intermediate => Err(Fault::Unexpected(reply.code).into()),
            Severity::Transient | Severity::Permanent => Err(Stop(DialReason::Hello, Some(reply))),
        }
    }

    async fn ask(&self, wire: &mut Wire, command: &str) -> Result<Reply, Stop> {
        wire.command(command.as_bytes(), self.timeouts.block).await?;
        Ok(wire.hear(self.timeouts.hello).await?)
    }

    /// Nothing: the handshake may begin. What is wrong: it goes on in the clear.
    async fn ask_for_tls(
        &self,
        wire: &mut Wire,
        mode: TlsMode,
        offered: bool,
    ) -> Result<Option<tls_report::Fault>, Stop> {
        let may_be_clear = mode.may_be_clear();
        let in_the_clear = |reply: Option<&Reply>| DialReason::NoTls.tls_fault(reply);
        if !offered {
            return if may_be_clear { Ok(in_the_clear(None)) } else { Err(Stop(DialReason::NoTls, None)) };
        }
        // A host that falls over its own offer is met again in the clear like one whose handshake fails.
        let reply = self.ask(wire, "STARTTLS\r\n").await.map_err(|Stop(reason, reply)| match reason {
            DialReason::Lost(fault) => Stop(DialReason::Tls(broken(fault.to_string())), reply),
            other => Stop(other, reply),
        })?;
        match reply.severity() {
            Severity::Completed if wire.has_unread() => {
                Err(Stop(DialReason::Tls(broken("plaintext came behind STARTTLS")), None))
            }
            Severity::Completed => Ok(None),
            // RFC 5321 3.8: it says good-bye, whatever it was asked.
            Severity::Transient if may_be_clear && reply.code == 421 => {
                Err(Stop(DialReason::Closing, Some(reply)))
            }
            Severity::Transient | Severity::Permanent if may_be_clear => Ok(in_the_clear(Some(&reply))),
            _ => Err(Stop(DialReason::NoTls, Some(reply))),
        }
    }

    async fn handshake(
        &self,
        wire: Wire,
        target: &Target,
        started: Instant,
    ) -> Result<(Wire, TlsFacts, Option<tls_report::Fault>), DialFailure> {
        let connector = match (&target.dane, target.tls) {
            (Some(_), _) | (None, TlsMode::Testing | TlsMode::Verified) => &self.connectors.judged,
            (None, _) => &self.connectors.opportunistic,
        };
        // The unread bytes were seen to be none; they are dropped with what was learnt in the clear.
        let (stream, mut transcript) = wire.into_parts();
        let Stream::Plain(stream) = stream else {
            return Err(failure(Fault::Ended.into(), transcript, started));
        };
        let client = SmtpClient { stream, timeout: self.timeouts.handshake };
        match client.into_tls(connector, target.host.as_str()).await {
            Ok(client) => {
                let session = client.tls_connection();
                let verdict = self.judge(session, target);
                let verified = verdict == Ok(true);
                let facts = TlsFacts::of(session, verified);
                let resumed = if facts.resumed { ", resumed" } else { "" };
                let line = format!("{} {}{resumed}", facts.version, facts.cipher);
                transcript.note(elapsed_ms(started), &line);
                let fault = verdict.err().map(|fault| fault.told());
                if let Some(fault) = &fault {
                    transcript.note(elapsed_ms(started), &fault.reason);
                    if target.dane.is_some() || target.tls == TlsMode::Verified {
                        let stop = Stop(DialReason::Tls(fault.clone()), None);
                        return Err(DialFailure { tls: Some(facts), ..failure(stop, transcript, started) });
                    }
                }
                Ok((Wire::new(Stream::Tls(Box::new(client.stream)), transcript, started), facts, fault))
            }
            Err(error) => {
                let why = match error {
                    mail_send::Error::Tls(error) => error.to_string(),
                    other => io_fault(other).to_string(),
                };
                Err(failure(Stop(DialReason::Tls(broken(why)), None), transcript, started))
            }
        }
    }

    /// Whether the host's certificate holds, by what it is to be judged by; false where that is nothing.
    fn judge(&self, session: &ClientConnection, target: &Target) -> Result<bool, CertificateFault> {
        let chain = session.peer_certificates().unwrap_or_default();
        let (judge, host) = (&self.connectors.judge, target.host.as_str());
        match (&target.dane, target.tls) {
            (Some(records), _) => judge.by_records(records, chain, host).map(|()| true),
            (None, TlsMode::Testing | TlsMode::Verified) => judge.by_roots(chain, host).map(|()| true),
            (None, _) => Ok(false),
        }
    }

    async fn authenticate(&self, wire: &mut Wire, who: &Credentials, may: bool) -> Result<(), Stop> {
        if !may {
            return Err(Stop(DialReason::NoAuth, None));
        }
        let secret = STANDARD.encode(format!("\0{}\0{}", who.username, who.password));
        let command = format!("AUTH PLAIN {secret}\r\n");
        wire.secret(command.as_bytes(), "AUTH PLAIN [secret]\r\n", self.timeouts.block).await?;
        let reply = wire.hear(self.timeouts.hello).await?;
        match reply.severity() {
            Severity::Completed => Ok(()),
            _ => Err(Stop(DialReason::Auth, Some(reply))),
        }
    }
}

/// What a host said of itself.
pub(super) struct Learnt {
    pub capabilities: Capabilities,
    /// The name that it gave, as it gave it.
    pub name: String,
}

fn first_word(reply: &Reply) -> String {
    reply.lines.first().and_then(|line| line.split_ascii_whitespace().next()).unwrap_or_default().to_owned()
}

fn elapsed_ms(started: Instant) -> u32 {
    u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX)
}

fn io_fault(error: mail_send::Error) -> Fault {
    match error {
        mail_send::Error::Io(error) => error.into(),
        mail_send::Error::Timeout => Fault::TimedOut,
        _ => Fault::Io(std::io::ErrorKind::Other),
    }
}

/// In TLS 1.3 a host's objections to the handshake arrive with the first read after it.
fn as_tls(stop: Stop) -> Stop {
    match stop {
        Stop(DialReason::LostAfterGreeting(Fault::Io(std::io::ErrorKind::InvalidData)), _) => {
            Stop(DialReason::Tls(broken("the host broke the handshake off")), None)
        }
        other => other,
    }
}

/// TLS that was offered and came to nothing.
fn broken(why: impl Into<String>) -> tls_report::Fault {
    tls_report::Fault::new(ResultType::ValidationFailure, why)
}

fn failure(Stop(reason, reply): Stop, transcript: Transcript, started: Instant) -> DialFailure {
    let fault = reason.tls_fault(reply.as_ref());
    let duration = started.elapsed();
    DialFailure { reason, reply, transcript, duration, tls: None, fault, local: None }
}

fn lost(stop: Stop, wire: Wire, started: Instant) -> DialFailure {
    failure(stop, wire.into_parts().1, started)
}
