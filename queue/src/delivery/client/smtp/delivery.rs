//! The result of a transaction: the verdict, and the facts for the attempt's record.

use std::io;
use std::time::Duration;

use message::reply::SmtpReply;
use thiserror::Error;

use super::content::MessageBodyError;
use super::reply_reader::ReplyParseError;
use super::tls::OutboundTls;
use super::transcript::Transcript;

/// The verdict on a message, which decides what the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionVerdict {
    /// The host accepted the message (2yz after the content).
    Accepted,
    /// Transient rejection (4yz): retry later.
    TransientFailure,
    /// Permanent rejection (5yz), or a check before sending found that the host would reject it.
    PermanentFailure,
    /// The connection was lost, or the host broke the protocol, before the end of the content was sent. The message
    /// cannot have arrived, so a retry is safe.
    ConnectionLost,
    /// The connection was lost between the end of the content and the reply: the message may have arrived (RFC 1047).
    Unconfirmed,
    /// The message needs an extension that this host does not offer; another host may.
    Unsupported,
}

/// Phase that the transaction reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionPhase {
    /// Nothing was sent; a reply, if any, is our own.
    Local,
    /// Nothing was sent, because the idle connection had closed. Retry on another connection at once.
    Idle,
    Mail,
    Rcpt,
    Data,
    /// Content, from its first byte to the reply to its last.
    Content,
}

impl TransactionPhase {
    /// Name in the attempt's record.
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

/// Why a session ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SmtpFault {
    #[error("the host closed the connection")]
    Closed,
    /// A timeout of RFC 5321 4.5.3.2.
    #[error("the host did not respond in time")]
    TimedOut,
    /// The server shut down while it waited for the host.
    #[error("the server shut down before the host responded")]
    Cancelled,
    #[error("the connection failed: {0}")]
    Io(io::ErrorKind),
    /// The host sent something that is not a reply.
    #[error(transparent)]
    Malformed(#[from] ReplyParseError),
    /// A reply that is not valid for the command.
    #[error("the host sent an unexpected reply: {0}")]
    UnexpectedReply(u16),
    /// Data that does not reply to any command.
    #[error("the host sent data before a command")]
    UnsolicitedData,
    /// The body could be used for SMTP smuggling.
    #[error(transparent)]
    Content(#[from] MessageBodyError),
    /// A pipelined envelope belongs to another message.
    #[error("the pipelined envelope belongs to another message")]
    WrongEnvelope,
    #[error("the connection has ended")]
    ConnectionEnded,
}

impl From<io::Error> for SmtpFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A TLS stream without close_notify counts as closed, like a TCP stream that ended.
            io::ErrorKind::UnexpectedEof => Self::Closed,
            kind => Self::Io(kind),
        }
    }
}

#[derive(Debug, Clone)]
pub struct TransactionResult {
    pub verdict: TransactionVerdict,
    /// The reply that decided, if any: the host's, or our own in [`TransactionPhase::Local`].
    pub reply: Option<SmtpReply>,
    pub phase: TransactionPhase,
    /// The failure, if it was not a reply.
    pub fault: Option<SmtpFault>,
    pub transcript: Transcript,
    pub duration: Duration,
    /// TLS parameters; `None` for a plaintext connection.
    pub tls: Option<OutboundTls>,
    /// Number of this delivery on its connection, from 1.
    pub ordinal: u32,
}
