//! What a dial is asked for, and why it led to nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mail::address::DomainName;
use mail::dane::Tlsa;
use mail::reply::SmtpReply;
use mail::tls_report;
use thiserror::Error;

use super::delivery::SmtpFault;
use super::tls::OutboundTls;
use super::transcript::Transcript;

/// What one connection shall lead to.
#[derive(Debug, Clone)]
pub struct DialTarget {
    /// The host's name: for the certificate and the record.
    pub host: DomainName,
    /// Where it is.
    pub address: SocketAddr,
    /// The operator has named it: it may be next door.
    pub is_trusted: bool,
    /// The address to come from.
    pub source: Option<IpAddr>,
    /// What we say in EHLO; none is what the dialer always says.
    pub helo: Option<DomainName>,
    /// What is asked of TLS.
    pub tls: TlsSecurityLevel,
    /// Records of which one must name the host's certificate (RFC 7672), whatever else is asked: then there is TLS or
    /// nothing.
    pub dane: Option<Arc<[Tlsa]>>,
    /// For a smart host: who we are.
    pub credentials: Option<SmarthostCredentials>,
}

/// What is asked of TLS on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsSecurityLevel {
    /// TLS when it is offered and works, else in the clear.
    Opportunistic,
    /// The same; whether the certificate is good for the host's name is noted (RFC 8461 5, `testing`).
    Testing,
    /// TLS or nothing; any certificate.
    Required,
    /// TLS or nothing; the certificate is good for the host's name by the public roots.
    Verified,
    /// In the clear.
    Off,
}

impl TlsSecurityLevel {
    /// Whether mail may go in the clear where TLS is not offered, or fails.
    #[must_use]
    pub fn allows_plaintext(self) -> bool {
        matches!(self, Self::Opportunistic | Self::Testing | Self::Off)
    }
}

/// A name and a password for AUTH PLAIN (RFC 4616).
#[derive(Clone, PartialEq, Eq)]
pub struct SmarthostCredentials {
    /// The authentication identity.
    pub username: String,
    /// The secret.
    pub password: String,
}

impl fmt::Debug for SmarthostCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DialReason {
    /// The address is not a public one and private ones are not allowed: never dial it.
    #[error("{0} is not a public address")]
    Private(IpAddr),
    /// No TCP connection: try another address.
    #[error("could not connect: {0}")]
    Connect(SmtpFault),
    /// The address that we were to come from is none of this machine's.
    #[error("{0} is not an address of this machine: no mail leaves from there")]
    Source(IpAddr),
    /// The connection was lost before it was ready.
    #[error("{0}")]
    ConnectionLost(SmtpFault),
    /// The same, when it had greeted.
    #[error("{0}")]
    ConnectionLostAfterGreeting(SmtpFault),
    /// The host is about to close the connection (421); the reply says why.
    #[error("the host closes the connection")]
    Closing,
    /// The host greeted with a refusal; the reply says which.
    #[error("the host refused the connection")]
    Greeting,
    /// The host refused EHLO and HELO; the reply says why.
    #[error("the host refused to be spoken to")]
    Hello,
    /// TLS is asked for and the host does not offer it.
    #[error("the host does not offer TLS")]
    NoTls,
    /// TLS is asked for and failed.
    #[error("TLS failed: {0}")]
    Tls(tls_report::TlsFault),
    /// The host does not offer AUTH PLAIN, or only in the clear.
    #[error("the host offers no way to authenticate")]
    NoAuth,
    /// The host refused the credentials; the reply says why.
    #[error("the host refused the credentials")]
    Auth,
}

impl DialReason {
    /// What it says of the host's TLS, if it does.
    pub(super) fn tls_fault(&self, reply: Option<&SmtpReply>) -> Option<tls_report::TlsFault> {
        let none = |why: String| Some(tls_report::TlsFault::new(tls_report::TlsResultType::StarttlsNotSupported, why));
        match (self, reply) {
            (Self::Tls(fault), _) => Some(fault.clone()),
            (Self::NoTls, Some(reply)) => none(reply.to_string()),
            (Self::NoTls, None) => none(self.to_string()),
            _ => None,
        }
    }
}

impl DialFailure {
    /// One for which nobody was dialled.
    #[must_use]
    pub fn not_attempted(reason: DialReason) -> Self {
        let fault = reason.tls_fault(None);
        let (transcript, duration) = (Transcript::default(), Duration::ZERO);
        Self { reason, reply: None, transcript, duration, tls: None, fault, local: None }
    }
}

/// A dial that led to nothing.
#[derive(Debug, Clone, Error)]
#[error("{reason}")]
pub struct DialFailure {
    /// Why.
    pub reason: DialReason,
    /// What the host said, when it said something.
    pub reply: Option<SmtpReply>,
    /// What was said before.
    pub transcript: Transcript,
    /// How long it took.
    pub duration: Duration,
    /// The TLS that there was by then.
    pub tls: Option<OutboundTls>,
    /// What was wrong with the host's TLS, whether or not that was the end of it.
    pub fault: Option<tls_report::TlsFault>,
    /// The address that it came from.
    pub local: Option<IpAddr>,
}
