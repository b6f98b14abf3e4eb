//! Every bound of the SMTP door, with its name, its default and its reason.
//!
//! [`Limits`] is plain data: the configuration fills it. What sessions share has its bounds elsewhere: content in
//! memory in [`crate::budget`], the sessions themselves in [`crate::peers`].

use std::time::Duration;

use crate::budget::SLOW_BYTES_PER_S;

/// RFC 5321 4.5.3.1.4 says 512; SMTPUTF8, DSN and their kin add up to about 1,500.
pub const COMMAND_LINE_BYTES_MAX: usize = 2_048;
/// RFC 4954 4: an AUTH line, and a line of the exchange.
pub const AUTH_LINE_BYTES_MAX: usize = 12_288;
/// A line that is too long is dropped up to its end, so that the client hears why; but no client that
/// speaks SMTP sends so much of one.
pub const LINE_BYTES_SKIPPED_MAX: usize = 128 * 1024;
/// Replies wait for the end of a pipelined group, but no longer than until they are this many bytes.
pub const REPLIES_BYTES_FLUSH: usize = 8 * 1024;
/// Content that overruns the limit is read to its end, so that the client sees the reply; past this
/// many times the limit the connection is closed instead.
pub const OVERRUN_FACTOR: u64 = 4;
/// Room made at once for content whose size is declared; more must first arrive.
pub const DECLARED_BYTES_TRUSTED: usize = 32 * 1024;
/// Room made at once for content whose size is not declared.
pub const CONTENT_BYTES_FIRST: usize = 16 * 1024;
/// While places are short a stranger may wait for no longer than this before its next command (or in a handshake),
/// before its login, and in the middle of content; nor without bringing a message that is taken.
const COMMAND_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(30);
const LOGIN_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(5);
const CONTENT_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(60);
const MESSAGE_TIMEOUT_OVERLOAD: Duration = Duration::from_secs(120);

/// The bounds of one listener's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLimits {
    /// The largest message, announced as SIZE (RFC 1870).
    pub message_bytes_max: u64,
    /// Recipients in one transaction (RFC 5321 4.5.3.1.8 asks for at least 100), announced as RCPTMAX.
    pub recipients_max: usize,
    /// Messages in one session, announced as MAILMAX (RFC 9422).
    pub mails_max: u64,
    /// Commands in one session: whoever needs more connects again.
    pub commands_max: u64,
    /// Commands that lead nowhere (NOOP, RSET, VRFY, HELP, EXPN) between two messages.
    pub junk_max: u32,
    /// Malformed or misplaced commands between two messages; the last ends the session.
    pub errors_max: u32,
    /// Failed AUTHs in one session; the last ends the session.
    pub auth_failures_max: u32,
    /// Sessions of one address (one /64 for IPv6) at a time. Room for a busy application of a hundred
    /// connections, whose last ones are still being closed when it opens the next.
    pub sessions_per_address_max: usize,
    /// Connections that one address (one /64 for IPv6) may open in a minute; loopback is not counted.
    pub connections_per_minute_max: u32,
    /// How long the greeting is held back: who speaks before it is no mail client (RFC 5321 4.3.1).
    pub greet_delay: Duration,
    /// How long a session may wait for a command (RFC 5321 4.5.3.2.7: at least 5 minutes).
    pub command_timeout: Duration,
    /// How long a session may go on with commands that bring no message.
    pub message_timeout: Duration,
    /// How long a submission session may go on without a login. Its place is one of few.
    pub login_timeout: Duration,
    /// How long content may pause (RFC 5321 4.5.3.2.5 and .6: senders wait 3 and 10 minutes).
    pub content_timeout: Duration,
    /// Slower than this, averaged over the message after [`Self::content_timeout`], is cut off.
    pub content_bytes_per_s_min: u64,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long a transaction under way may go on after a shutdown began.
    pub drain_timeout: Duration,
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
            greet_delay: Duration::ZERO,
            command_timeout: Duration::from_secs(300),
            message_timeout: Duration::MAX,
            login_timeout: Duration::from_secs(30),
            content_timeout: Duration::from_secs(600),
            content_bytes_per_s_min: 500,
            handshake_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

impl SessionLimits {
    /// For strangers, who bring mail for our own domains: they have less to say.
    #[must_use]
    pub fn for_mx() -> Self {
        Self {
            // A file of 25 MB in base 64, and the rest.
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

    /// For strangers while places are short: those who do nothing make room for those who wait outside.
    #[must_use]
    pub fn for_overload(&self) -> Self {
        Self {
            command_timeout: self.command_timeout.min(COMMAND_TIMEOUT_OVERLOAD),
            login_timeout: self.login_timeout.min(LOGIN_TIMEOUT_OVERLOAD),
            message_timeout: self.message_timeout.min(MESSAGE_TIMEOUT_OVERLOAD),
            content_timeout: self.content_timeout.min(CONTENT_TIMEOUT_OVERLOAD),
            content_bytes_per_s_min: self.content_bytes_per_s_min.max(SLOW_BYTES_PER_S),
            handshake_timeout: self.handshake_timeout.min(COMMAND_TIMEOUT_OVERLOAD),
            ..self.clone()
        }
    }

    /// For hosts that are trusted by network: they hold few, long, busy sessions, so nothing is
    /// counted that only a stranger would abuse.
    #[must_use]
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
