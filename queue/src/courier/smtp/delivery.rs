//! What became of a shipment: the verdict, and everything an attempt's record wants to keep.

use std::io;
use std::time::Duration;

use mail::reply::SmtpReply;
use thiserror::Error;

use super::content::MessageBodyError;
use super::replies::ReplyParseError;
use super::tls::OutboundTls;
use super::transcript::Transcript;

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionVerdict {
    /// The host took it (2yz after the content): done.
    Accepted,
    /// Not now (4yz): try again later.
    TransientFailure,
    /// Not ever (5yz), or we found before sending that the host would say so: give up.
    PermanentFailure,
    /// The connection was lost, or the host talked nonsense, before the end of the content was
    /// sent: it cannot have arrived, trying again is safe.
    ConnectionLost,
    /// Lost between the end of the content and the reply: it may have arrived (RFC 1047).
    Unconfirmed,
    /// The message needs an extension that this host does not offer; another host may.
    Unsupported,
}

/// How far the transaction had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionPhase {
    /// Nothing was sent. A reply, if any, is our own.
    Local,
    /// Nothing was sent: the connection had died while it waited. Take another one, at once.
    Idle,
    /// MAIL.
    Mail,
    /// RCPT.
    Rcpt,
    /// DATA.
    Data,
    /// The content, from its first byte to the reply after its last.
    Content,
}

impl TransactionPhase {
    /// The name that an attempt's record carries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Idle => "idle",
            Self::Mail => "mail",
            Self::Rcpt => "rcpt",
            Self::Data => "data",
            Self::Content => "content",
        }
    }
}

/// Why a conversation ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SmtpFault {
    /// End of stream.
    #[error("the host closed the connection")]
    Closed,
    /// A timeout of RFC 5321 4.5.3.2 passed.
    #[error("the host did not answer in time")]
    TimedOut,
    /// We were stopped while we waited for the host.
    #[error("the server was stopped before the host answered")]
    Cancelled,
    /// The socket said so.
    #[error("the connection failed: {0}")]
    Io(io::ErrorKind),
    /// What came is no reply.
    #[error(transparent)]
    Malformed(#[from] ReplyParseError),
    /// A reply that cannot follow the command.
    #[error("the host answered {0} where that makes no sense")]
    UnexpectedReply(u16),
    /// Bytes that answer no command.
    #[error("the host spoke without being asked")]
    UnsolicitedData,
    /// The body could smuggle.
    #[error(transparent)]
    Content(#[from] MessageBodyError),
    /// An envelope went ahead on this connection and it is not this shipment's.
    #[error("the envelope that was sent ahead is another message's")]
    WrongEnvelope,
    /// The connection was used after its end.
    #[error("the connection is at its end")]
    ConnectionEnded,
}

impl From<io::Error> for SmtpFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A TLS stream without close_notify and a TCP stream without FIN are the same to us.
            io::ErrorKind::UnexpectedEof => Self::Closed,
            kind => Self::Io(kind),
        }
    }
}

/// The end of one delivery.
#[derive(Debug, Clone)]
pub struct TransactionResult {
    /// What to do next.
    pub verdict: TransactionVerdict,
    /// The reply that decided, when one did: the host's, or ours in [`Phase::Local`].
    pub reply: Option<SmtpReply>,
    /// How far it came.
    pub phase: TransactionPhase,
    /// What went wrong, when it was not a reply.
    pub fault: Option<SmtpFault>,
    /// What was said.
    pub transcript: Transcript,
    /// From the call to its return.
    pub duration: Duration,
    /// TLS as it was; `None` is a connection in the clear.
    pub tls: Option<OutboundTls>,
    /// The how-manieth delivery on its connection it was, from 1.
    pub ordinal: u32,
}
