//! Limits of an SMTP session, with their defaults and reasons.
//!
//! [`SessionLimits`] is plain data that the configuration fills. The limits of shared resources are elsewhere: content
//! in memory in [`crate::content_budget`], the number of sessions in [`crate::connection_limiter`].

use std::time::Duration;

use crate::content_budget::SLOW_BYTES_PER_S;

/// RFC 5321 4.5.3.1.4 requires 512; SMTPUTF8, DSN and similar extensions add up to about 1,500.
pub const COMMAND_LINE_BYTES_MAX: usize = 2_048;
/// Limit of an AUTH line and of a line in the SASL exchange (RFC 4954 4).
pub const AUTH_LINE_BYTES_MAX: usize = 12_288;
/// A line that is too long is dropped up to its end, so that the client receives the reason. No SMTP client sends more
/// than this in one line.
pub const LINE_BYTES_SKIPPED_MAX: usize = 128 * 1024;
/// Replies are buffered until the end of a pipelined group, or until they reach this size.
pub const REPLIES_BYTES_FLUSH: usize = 8 * 1024;
/// Content over the size limit is read to its end, so that the client sees the reply. Beyond this multiple of the limit
/// the connection is closed instead.
pub const OVERRUN_FACTOR: u64 = 4;
/// Initial buffer for content with a declared size. It grows only as bytes arrive.
pub const DECLARED_BYTES_TRUSTED: usize = 32 * 1024;
/// Initial buffer for content without a declared size.
pub const CONTENT_BYTES_FIRST: usize = 16 * 1024;
/// Timeouts of an untrusted session during overload: for the next command or a handshake, for the login, for a pause in
/// content, and for bringing an accepted message.
const COMMAND_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(30);
const LOGIN_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(5);
const CONTENT_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(60);
const MESSAGE_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(120);

/// The limits of one listener's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLimits {
    /// The largest message in bytes, announced as SIZE (RFC 1870).
    pub message_bytes_max: u64,
    /// Recipients in one transaction, announced as RCPTMAX. RFC 5321 4.5.3.1.8 requires at least 100.
    pub recipients_max: usize,
    /// Messages in one session, announced as MAILMAX (RFC 9422).
    pub mails_max: u64,
    /// Commands in one session. A client that needs more reconnects.
    pub commands_max: u64,
    /// Junk commands (NOOP, RSET, VRFY, HELP, EXPN) between two messages.
    pub junk_max: u32,
    /// Malformed or misplaced commands between two messages; the last one ends the session.
    pub errors_max: u32,
    /// Failed AUTH commands in one session; the last one ends the session.
    pub auth_failures_max: u32,
    /// Concurrent sessions of one address (one /64 for IPv6). A busy application with a hundred connections fits, even
    /// while its previous ones are still being closed.
    pub sessions_per_address_max: usize,
    /// Connections per minute from one address (one /64 for IPv6); loopback is exempt.
    pub connections_per_minute_max: u32,
    pub timeouts: SessionTimeouts,
}

/// The timeouts of one listener's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTimeouts {
    /// Delay of the greeting. A client that sends before it is not a mail client (RFC 5321 4.3.1).
    pub greet_delay: Duration,
    /// Timeout for the next command (RFC 5321 4.5.3.2.7: at least 5 minutes).
    pub command: Duration,
    /// Timeout since the last accepted message or the session's start, whatever commands are sent meanwhile.
    pub message: Duration,
    /// Timeout for the login of a submission session, since it occupies a scarce session slot.
    pub login: Duration,
    /// Timeout for a pause in content (RFC 5321 4.5.3.2.5 and .6: senders wait 3 and 10 minutes).
    pub content: Duration,
    /// Content slower than this is aborted, averaged over the message once [`Self::content`] has passed.
    pub content_bytes_per_s_min: u64,
    pub handshake: Duration,
    /// How long a transaction in progress may continue after a shutdown began.
    pub drain: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 50 * 1024 * 1024,
            recipients_max: 1_000,
            mails_max: 100_000,
            commands_max: 1_000_000,
            junk_max: 100,
            errors_max: 20,
            auth_failures_max: 3,
            sessions_per_address_max: 250,
            connections_per_minute_max: u32::MAX,
            timeouts: SessionTimeouts::default(),
        }
    }
}

impl Default for SessionTimeouts {
    fn default() -> Self {
        Self {
            greet_delay: Duration::ZERO,
            command: Duration::from_secs(300),
            message: Duration::MAX,
            login: Duration::from_secs(30),
            content: Duration::from_secs(600),
            content_bytes_per_s_min: 500,
            handshake: Duration::from_secs(60),
            drain: Duration::from_secs(10),
        }
    }
}

impl SessionTimeouts {
    /// Shorter timeouts for untrusted sessions during overload: idle sessions free their slots for waiting clients.
    #[must_use]
    pub fn for_overload(&self) -> Self {
        Self {
            command: self.command.min(COMMAND_TIMEOUT_OVERLOAD),
            login: self.login.min(LOGIN_TIMEOUT_OVERLOAD),
            message: self.message.min(MESSAGE_TIMEOUT_OVERLOAD),
            content: self.content.min(CONTENT_TIMEOUT_OVERLOAD),
            content_bytes_per_s_min: self.content_bytes_per_s_min.max(SLOW_BYTES_PER_S),
            handshake: self.handshake.min(COMMAND_TIMEOUT_OVERLOAD),
            ..self.clone()
        }
    }
}

impl SessionLimits {
    /// Limits for MX, where clients are untrusted.
    pub fn for_mx() -> Self {
        Self {
            // A file of 25 MB in base64, and the rest of the message.
            message_bytes_max: 36 * 1024 * 1024,
            recipients_max: 100,
            mails_max: 1_000,
            commands_max: 20_000,
            errors_max: 10,
            sessions_per_address_max: 50,
            connections_per_minute_max: 600,
            ..Self::default()
        }
    }

    /// Limits for relay. Hosts trusted by network hold few, long, busy sessions, so limits against abuse are lifted.
    pub fn for_relay() -> Self {
        Self {
            mails_max: u64::MAX,
            commands_max: u64::MAX,
            junk_max: u32::MAX,
            errors_max: 1_000,
            sessions_per_address_max: usize::MAX,
            ..Self::default()
        }
    }
}
