//! The outgoing SMTP client: one connection to one host, reused for many messages.
//!
//! ```text
//! SmtpDialer::connect(DialTarget) ─► SmtpConnection ─► deliver(OutgoingMessage, next) ─► TransactionResult
//!                                                                        {verdict, reply, transcript …}
//! ```
//!
//! An [`SmtpDialer`] is built once and shared. It checks the address ([`is_public`]), reads the greeting and secures
//! the connection as the [`TlsSecurityLevel`] requires. The [`SmtpConnection`] then delivers one [`OutgoingMessage`]
//! after another, each for one recipient. The result is a [`TransactionVerdict`], never an error: the caller records it
//! and continues.
//!
//! The transaction code is our own. It pipelines the next message's envelope behind the content of this one, so that a
//! reused connection costs one round trip, one write and about one read for each message. It writes the body straight
//! from its `Bytes` and cannot send a bare CR or LF. It reads every reply with all its lines, and never assigns a reply
//! to another command. mail-send makes the TCP connection and the TLS handshake only (see `dial.rs`).
//!
//! Limits: reply lines of 4,096 bytes, 128 lines and 32 KiB a reply, transcripts of 16 KiB. An idle connection holds a
//! read buffer of 1 KiB. Timeouts are those of RFC 5321 4.5.3.2 ([`SmtpTimeouts`]).
//!
//! Standards: RFC 5321, 1870 (SIZE), 2852 (DELIVERBY), 2920 (PIPELINING), 3030 (CHUNKING), 3207 (STARTTLS), 3461 (DSN),
//! 4954 with 4616 (AUTH PLAIN), 6152 (8BITMIME), 6531 (SMTPUTF8), 6710 (MT-PRIORITY), 8689 (REQUIRETLS), 9422 (LIMITS
//! MAILMAX), 2034 and 3463 (enhanced codes).

mod certificate;
mod command;
mod connection;
mod content;
mod data_payload;
mod delivery;
mod dial;
mod dial_target;
mod ehlo;
mod envelope_replies;
mod outgoing_message;
mod reply_reader;
mod timeouts;
mod tls;
mod transaction;
mod transcript;
mod wire;

pub use connection::SmtpConnection;
pub use content::MessageBodyError;
pub use delivery::{SmtpFault, TransactionPhase, TransactionResult, TransactionVerdict};
pub use dial::SmtpDialer;
pub use dial_target::{DialFailure, DialReason, DialTarget, SmarthostCredentials, TlsSecurityLevel};
pub use ehlo::EhloCapabilities;
pub use model::public_ip::is_public;
pub use outgoing_message::{
    DeliverByParameter, DsnNotify, DsnParameters, DsnReturn, OriginalRecipient, OutgoingMessage,
};
pub use reply_reader::ReplyParseError;
pub use timeouts::SmtpTimeouts;
pub use tls::OutboundTls;
pub use transcript::{TRANSCRIPT_BYTES_MAX, Transcript};
