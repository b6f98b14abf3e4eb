//! The outgoing SMTP client: one connection to one host, kept open for many messages.
//!
//! ```text
//! Dialer.dial(Target) ─► Connection ─► deliver(Shipment, next) ─► Delivery {verdict, reply, transcript …}
//! ```
//!
//! A [`Dialer`] is built once and shared. What it dials is guarded ([`is_public`]), greeted and
//! secured as the [`TlsMode`] asks; the [`Connection`] then takes one [`Shipment`] after the other,
//! each one message for one recipient. What became of it is a [`Verdict`], never an error: the
//! caller books it and takes the next.
//!
//! The transaction is our own. It pipelines the next message's envelope behind the content of this
//! one, so that a kept connection costs one round trip, one write and about one read per message; it
//! writes the body straight from its `Bytes`; it cannot be made to send a bare CR or LF; it reads
//! every reply, with all its lines and three-digit details, and never takes one command's reply for
//! another's. mail-send makes the TCP connection and the TLS handshake (`dial.rs` says why no more).
//!
//! Limits: reply lines of 4,096 bytes, 128 lines and 32 KiB a reply, transcripts of 16 KiB; an idle
//! connection keeps a read buffer of 1 KiB. Timeouts are those of RFC 5321 4.5.3.2 ([`Timeouts`]).
//!
//! Standards: RFC 5321, 1870 (SIZE), 2852 (DELIVERBY), 2920 (PIPELINING), 3030 (CHUNKING), 3207 (STARTTLS), 3461 (DSN),
//! 4954 with 4616 (AUTH PLAIN), 6152 (8BITMIME), 6531 (SMTPUTF8), 6710 (MT-PRIORITY), 8689 (REQUIRETLS), 9422 (LIMITS
//! MAILMAX), 2034 and 3463 (enhanced codes).

mod answers;
mod capabilities;
mod certificate;
mod command;
mod connection;
mod content;
mod delivery;
mod dial;
mod load;
mod replies;
mod shipment;
mod target;
mod timeouts;
mod tls;
mod transaction;
mod transcript;
mod wire;

pub use capabilities::EhloCapabilities;
pub use connection::SmtpConnection;
pub use content::MessageBodyError;
pub use delivery::{SmtpFault, TransactionPhase, TransactionResult, TransactionVerdict};
pub use dial::SmtpDialer;
pub use mail::egress::is_public;
pub use replies::ReplyParseError;
pub use shipment::{DeliverByParameter, DsnNotify, DsnParameters, DsnReturn, OriginalRecipient, OutgoingMessage};
pub use target::{DialFailure, DialReason, DialTarget, SmarthostCredentials, TlsSecurityLevel};
pub use timeouts::SmtpTimeouts;
pub use tls::OutboundTls;
pub use transcript::{TRANSCRIPT_BYTES_MAX, Transcript};
