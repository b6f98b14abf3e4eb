//! Replies to the client: the fixed ones as constants, and the buffer in which the replies of a pipelined group are
//! collected for one write (RFC 2920 3.2).
//!
//! Fixed replies are in wire form, so that sending one is a copy. Codes follow RFC 5321 4.2.3, enhanced codes RFC 3463
//! and the registry of RFC 5248.

use message::reply::SmtpReply;

pub(crate) const OK: &str = "250 2.0.0 OK\r\n";
pub(crate) const SENDER_OK: &str = "250 2.1.0 Sender OK\r\n";
pub(crate) const RECIPIENT_OK: &str = "250 2.1.5 Recipient OK\r\n";
pub(crate) const MESSAGE_ACCEPTED: &str = "250 2.0.0 OK\r\n";
pub(crate) const START_CONTENT: &str = "354 End data with <CR><LF>.<CR><LF>\r\n";
pub(crate) const START_TLS: &str = "220 2.0.0 Ready to start TLS\r\n";
pub(crate) const BYE: &str = "221 2.0.0 Bye\r\n";
pub(crate) const HELP: &str = "214-2.0.0 EHLO HELO STARTTLS MAIL RCPT DATA BDAT RSET NOOP VRFY QUIT\r\n\
     214 2.0.0 See RFC 5321\r\n";
/// HELP at submission, which offers AUTH.
pub(crate) const HELP_SUBMISSION: &str = "214-2.0.0 EHLO HELO STARTTLS AUTH MAIL RCPT DATA BDAT RSET NOOP VRFY QUIT\r\n\
     214 2.0.0 See RFC 5321 and RFC 6409\r\n";
pub(crate) const CANNOT_VERIFY: &str = "252 2.1.5 Cannot VRFY user; send a message to find out\r\n";
pub(crate) const AUTHENTICATED: &str = "235 2.7.0 Authentication succeeded\r\n";
pub(crate) const CHALLENGE_EMPTY: &str = "334 \r\n";
/// `Username:` in base64.
pub(crate) const CHALLENGE_USERNAME: &str = "334 VXNlcm5hbWU6\r\n";
/// `Password:` in base64.
pub(crate) const CHALLENGE_PASSWORD: &str = "334 UGFzc3dvcmQ6\r\n";

pub(crate) const TIMED_OUT: &str = "421 4.4.2 Timeout: no complete input for too long\r\n";
pub(crate) const MESSAGE_TIMED_OUT: &str = "421 4.4.2 Timeout: no message sent for too long\r\n";
pub(crate) const TOO_SLOW: &str = "421 4.4.2 Timeout: the message is arriving too slowly\r\n";
pub(crate) const ABORTED_SLOW: &str =
    "421 4.3.1 Memory is low and the message is arriving too slowly; try again in a minute\r\n";
pub(crate) const LOGIN_TIMED_OUT: &str = "421 4.4.2 Timeout: no login; reconnect and log in first\r\n";
pub(crate) const CONTENT_AFTER_REFUSAL: &str = "421 4.5.0 DATA was refused; send content only after 354\r\n";
pub(crate) const SHUTTING_DOWN: &str = "421 4.3.2 Shutting down; try again in a minute\r\n";
pub(crate) const TOO_MANY_ERRORS: &str = "421 4.7.0 Too many errors\r\n";
pub(crate) const TOO_MANY_JUNK: &str = "421 4.7.0 Too many junk commands\r\n";
pub(crate) const TOO_MANY_COMMANDS: &str = "421 4.7.0 Too many commands in one session; reconnect\r\n";
pub(crate) const TOO_MANY_LOGINS: &str = "421 4.7.0 Too many failed logins\r\n";
pub(crate) const TOO_MANY_MAILS: &str = "421 4.7.0 Too many messages in one session; reconnect\r\n";
pub(crate) const BEFORE_GREETING: &str = "554 5.5.1 You sent a command before the greeting\r\n";
/// All session slots are in use.
pub const TOO_MANY_SESSIONS: &str = "421 4.3.2 Too many connections; try again later\r\n";
/// The client's address has used its share of session slots.
pub const TOO_MANY_FROM_ADDRESS: &str = "421 4.7.0 Too many connections from your address\r\n";
/// The client's address exceeded its connections per minute.
pub const CONNECTION_RATE_EXCEEDED: &str =
    "421 4.7.0 Too many connections from your address; try again in a minute\r\n";
/// Too many refusals are already delayed for this address, so this one is sent without a delay.
pub const TOO_MANY_AUTH_FAILURES: &str = "421 4.7.0 Too many failed logins from your address; try again later\r\n";
/// The login is valid, but the account has used its share of session slots.
pub const TOO_MANY_OF_ACCOUNT: &str =
    "421 4.7.0 Too many connections for your account; reuse open ones or try again later\r\n";
/// The client is in none of the relay listener's networks.
pub const RELAY_NOT_ALLOWED: &str = "554 5.7.1 Relaying denied: your network is not allowed\r\n";

pub(crate) const INSUFFICIENT_MEMORY: &str = "452 4.3.1 Too much mail at once; try again in a minute\r\n";
pub(crate) const TOO_MANY_RECIPIENTS: &str = "452 4.5.3 Too many recipients; send the rest in another message\r\n";

pub(crate) const UNKNOWN: &str = "500 5.5.2 Command not recognised\r\n";
pub(crate) const LINE_UNTERMINATED: &str = "421 4.7.0 The line is not terminated\r\n";
pub(crate) const LINE_TOO_LONG: &str = "500 5.5.2 Line too long\r\n";
pub(crate) const AUTH_LINE_TOO_LONG: &str = "500 5.5.6 Authentication exchange line is too long\r\n";
pub(crate) const BARE_LINE_END: &str = "500 5.5.2 Lines end in <CR><LF>; a bare <CR> or <LF> is refused\r\n";
pub(crate) const NUL: &str = "500 5.5.2 A NUL byte is refused\r\n";
pub(crate) const NO_ARGUMENT: &str = "501 5.5.4 This command takes no argument\r\n";
pub(crate) const ARGUMENT_MISSING: &str = "501 5.5.4 An argument is missing\r\n";
pub(crate) const BAD_HELO: &str = "501 5.5.4 Expected one domain or address literal\r\n";
pub(crate) const BAD_BDAT: &str = "501 5.5.4 Syntax: BDAT size [LAST]\r\n";
pub(crate) const BAD_BASE64: &str = "501 5.5.2 Invalid base64\r\n";
pub(crate) const BAD_CREDENTIALS_FORM: &str = "501 5.5.2 Expected a user name and a password\r\n";
pub(crate) const AUTH_CANCELLED: &str = "501 5.7.0 Authentication cancelled\r\n";
pub(crate) const NOT_IMPLEMENTED: &str = "502 5.5.1 Not implemented\r\n";
pub(crate) const AUTH_NOT_HERE: &str = "502 5.5.1 AUTH is not offered here\r\n";
pub(crate) const TLS_NOT_HERE: &str = "502 5.5.1 STARTTLS is not offered here\r\n";
pub(crate) const EHLO_FIRST: &str = "503 5.5.1 Send EHLO first\r\n";
pub(crate) const MAIL_FIRST: &str = "503 5.5.1 Send MAIL first\r\n";
pub(crate) const MAIL_NESTED: &str = "503 5.5.1 A transaction is in progress; send RSET to cancel it\r\n";
pub(crate) const CHUNKS_UNDER_WAY: &str = "503 5.5.1 BDAT is in progress; continue with BDAT or send RSET\r\n";
pub(crate) const BINARY_NEEDS_BDAT: &str = "503 5.5.1 BODY=BINARYMIME requires BDAT\r\n";
pub(crate) const NOT_IN_TRANSACTION: &str = "503 5.5.1 Not allowed during a transaction\r\n";
pub(crate) const TLS_ALREADY: &str = "503 5.5.1 TLS is already active\r\n";
pub(crate) const AUTH_ALREADY: &str = "503 5.5.1 You are already authenticated\r\n";
pub(crate) const BAD_MECHANISM: &str = "504 5.5.4 Unsupported mechanism; use PLAIN or LOGIN\r\n";
pub(crate) const TLS_FIRST: &str = "530 5.7.0 Must issue a STARTTLS command first\r\n";
pub(crate) const AUTH_FIRST: &str = "530 5.7.0 Authentication required\r\n";
pub(crate) const AUTH_NEEDS_TLS: &str = "538 5.7.11 Encryption required for AUTH; issue STARTTLS first\r\n";
pub(crate) const BARE_IN_CONTENT: &str =
    "550 5.6.11 The message contains a bare <CR> or <LF>; lines end in <CR><LF>\r\n";
pub(crate) const NUL_IN_CONTENT: &str = "550 5.6.0 The message contains a NUL; encode such content in base64\r\n";
pub(crate) const TOO_LARGE: &str = "552 5.3.4 The message is larger than the limit that SIZE announces\r\n";
pub(crate) const NO_RECIPIENTS: &str = "554 5.5.1 No valid recipients\r\n";
pub(crate) const NOT_HTTP: &str = "554 5.5.1 This is an SMTP server\r\n";
pub(crate) const NOT_PLAIN_TLS: &str = "554 5.5.1 Use STARTTLS to start TLS\r\n";
pub(crate) const PARAMETERS_NEED_EHLO: &str = "555 5.5.4 Parameters require EHLO\r\n";

/// Replies to be sent, in wire form.
#[derive(Debug, Default)]
pub struct ReplyBuffer {
    wire: Vec<u8>,
    count: u64,
}

impl ReplyBuffer {
    /// Appends a fixed reply.
    pub fn push_fixed(&mut self, wire: &'static str) {
        self.wire.extend_from_slice(wire.as_bytes());
        self.count += 1;
    }

    /// Appends a formatted reply.
    pub fn push_reply(&mut self, reply: &SmtpReply) {
        reply.write_to(&mut self.wire);
        self.count += 1;
    }

    /// Appends the reply of a hook, or `fixed` if it has none.
    pub(crate) fn push_hook_reply(&mut self, reply: Option<SmtpReply>, fixed: &'static str) {
        match reply {
            Some(reply) => self.push_reply(&reply),
            None => self.push_fixed(fixed),
        }
    }

    /// Appends a reply in wire form.
    pub(crate) fn push_wire(&mut self, wire: &[u8]) {
        self.wire.extend_from_slice(wire);
        self.count += 1;
    }

    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// Number of replies appended since the session began.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Removes the first `bytes` bytes after they were sent. Returns true if none are left. The memory is freed then,
    /// so that an idle session holds none.
    pub fn mark_sent(&mut self, bytes: usize) -> bool {
        if bytes >= self.wire.len() {
            self.wire = Vec::new();
            return true;
        }
        self.wire.drain(..bytes);
        false
    }

    /// Takes the unsent bytes out of the buffer.
    #[must_use]
    pub fn take_wire(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.wire)
    }
}
