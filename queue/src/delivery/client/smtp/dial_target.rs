//! The target of a connection, and why connecting failed.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use message::address::DomainName;
use message::dane::Tlsa;
use message::reply::SmtpReply;
use message::tls_report;
use serde::Deserialize;
use thiserror::Error;

use super::delivery::SmtpFault;
use super::tls::OutboundTls;
use super::transcript::Transcript;

/// A refusal that takes longer cost a wait: routers report an unreachable host after seconds, and firewalls may reject
/// late.
const AT_ONCE_WITHIN: Duration = Duration::from_secs(1);

/// Target of one connection.
#[derive(Debug, Clone)]
pub struct DialTarget {
    /// Host name, for the certificate and the attempt's record.
    pub host: DomainName,
    pub address: SocketAddr,
    /// True for a host that the operator configured: its address may be private.
    pub is_trusted: bool,
    /// Local address to connect from.
    pub source: Option<IpAddr>,
    /// Name for EHLO; the dialer's default if `None`.
    pub helo: Option<DomainName>,
    pub tls: TlsSecurityLevel,
    /// TLSA records, one of which must match the host's certificate (RFC 7672). If set, TLS is required even if
    /// `tls` is weaker.
    pub dane: Option<Arc<[Tlsa]>>,
    /// Credentials for a smarthost.
    pub credentials: Option<SmarthostCredentials>,
}

/// TLS requirement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsSecurityLevel {
    /// TLS if it is offered and works, otherwise plaintext.
    #[default]
    Opportunistic,
    /// Like `Opportunistic`; also records whether the certificate is valid for the host's name (RFC 8461 5, `testing`).
    #[serde(skip)]
    Testing,
    /// TLS with any certificate; never plaintext.
    Required,
    /// TLS with a certificate that is valid for the host's name; never plaintext.
    Verified,
    /// Always plaintext.
    Off,
}

impl TlsSecurityLevel {
    /// Returns whether mail may be sent in plaintext if TLS is not offered or fails.
    pub fn allows_plaintext(self) -> bool {
        matches!(self, Self::Opportunistic | Self::Testing | Self::Off)
    }
}

/// Credentials for AUTH PLAIN (RFC 4616).
#[derive(Clone, PartialEq, Eq)]
pub struct SmarthostCredentials {
    /// The authentication identity.
    pub username: String,
    pub password: String,
}

impl fmt::Debug for SmarthostCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmarthostCredentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Why connecting failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DialReason {
    /// The address is not public, and private addresses are not allowed.
    #[error("{0} is not a public address")]
    Private(IpAddr),
    /// The TCP connection failed: try another address.
    #[error("could not connect: {0}")]
    Connect(SmtpFault),
    /// The source address does not exist on this machine.
    #[error("{0} is not an address of this machine: configured source addresses must exist here")]
    Source(IpAddr),
    /// The connection was lost before the greeting was complete.
    #[error("{0}")]
    ConnectionLost(SmtpFault),
    /// The connection was lost after the greeting.
    #[error("{0}")]
    ConnectionLostAfterGreeting(SmtpFault),
    /// The host is closing the connection (421); see the reply.
    #[error("the host is closing the connection")]
    Closing,
    /// The greeting was a refusal; see the reply.
    #[error("the host refused the connection")]
    Greeting,
    /// The host refused EHLO and HELO; see the reply.
    #[error("the host refused EHLO")]
    Hello,
    /// TLS is required and the host does not offer it.
    #[error("the host does not offer TLS")]
    NoTls,
    /// TLS was tried and failed.
    #[error("TLS failed: {0}")]
    Tls(tls_report::TlsFault),
    /// The host does not offer AUTH PLAIN, or only in plaintext.
    #[error("the host does not offer AUTH PLAIN over TLS")]
    NoAuth,
    /// The host refused the credentials; see the reply.
    #[error("the host refused the credentials")]
    Auth,
}

impl DialReason {
    /// The TLS fault that this reason implies, if any.
    pub(super) fn tls_fault(&self, reply: Option<&SmtpReply>) -> Option<tls_report::TlsFault> {
        let not_supported =
            |reason: String| Some(tls_report::TlsFault::new(tls_report::TlsResultType::StarttlsNotSupported, reason));
        match (self, reply) {
            (Self::Tls(fault), _) => Some(fault.clone()),
            (Self::NoTls, Some(reply)) => not_supported(reply.to_string()),
            (Self::NoTls, None) => not_supported(self.to_string()),
            _ => None,
        }
    }
}

impl DialFailure {
    /// A failure without a connection attempt.
    pub fn not_attempted(reason: DialReason) -> Self {
        let fault = reason.tls_fault(None);
        let (transcript, duration) = (Transcript::default(), Duration::ZERO);
        Self { reason, reply: None, transcript, duration, tls: None, fault, local: None }
    }

    /// True if the failure cost no waiting: the address is not allowed, or the connection was refused within
    /// [`AT_ONCE_WITHIN`]. With a fault, TLS on an earlier connection took its time.
    pub(crate) fn is_refused_at_once(&self) -> bool {
        let is_refused = match self.reason {
            DialReason::Private(_) => true,
            DialReason::Connect(SmtpFault::Io(kind)) => matches!(
                kind,
                ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
            ),
            _ => false,
        };
        is_refused && self.fault.is_none() && self.duration < AT_ONCE_WITHIN
    }
}

/// A failed connection attempt.
#[derive(Debug, Clone, Error)]
#[error("{reason}")]
pub struct DialFailure {
    pub reason: DialReason,
    /// The host's reply, if there was one.
    pub reply: Option<SmtpReply>,
    pub transcript: Transcript,
    pub duration: Duration,
    /// TLS parameters, if TLS was established.
    pub tls: Option<OutboundTls>,
    /// The fault of the host's TLS, whether or not it caused the failure.
    pub fault: Option<tls_report::TlsFault>,
    /// The local address of the connection.
    pub local: Option<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prompt_refusal_costs_no_wait() {
        let is_at_once = |kind: ErrorKind, millis: u64| {
            let failure = DialFailure::not_attempted(DialReason::Connect(SmtpFault::Io(kind)));
            DialFailure { duration: Duration::from_millis(millis), ..failure }.is_refused_at_once()
        };
        assert!(is_at_once(ErrorKind::ConnectionRefused, 40) && is_at_once(ErrorKind::NetworkUnreachable, 0));
        assert!(!is_at_once(ErrorKind::HostUnreachable, 3_050), "no answer to ARP");
        assert!(!is_at_once(ErrorKind::ConnectionRefused, 20_000), "a firewall that rejects late");
        assert!(!is_at_once(ErrorKind::ConnectionReset, 40));
        let private = DialFailure::not_attempted(DialReason::Private(IpAddr::from([10, 0, 0, 1])));
        assert!(private.is_refused_at_once());
    }
}
