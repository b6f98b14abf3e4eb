//! How long the courier waits for what (RFC 5321 4.5.3.2).

use std::time::Duration;

/// The timeouts of one connection. The defaults are the minima that the RFC asks for, but where
/// nothing is lost by asking another host sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmtpTimeouts {
    /// For the TCP connection. The RFC names none; a host that needs more than this is down.
    pub connect: Duration,
    /// For the greeting (4.5.3.2.1).
    pub greeting: Duration,
    /// For the replies to EHLO, HELO, STARTTLS and AUTH, which the RFC does not name.
    pub hello: Duration,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For the reply to MAIL, and to RSET before it (4.5.3.2.2).
    pub mail: Duration,
    /// For the reply to RCPT (4.5.3.2.3).
    pub rcpt: Duration,
    /// For the reply to DATA (4.5.3.2.4).
    pub data: Duration,
    /// For one write to make progress (4.5.3.2.5).
    pub block: Duration,
    /// For the reply to the end of the content (4.5.3.2.6): hosts that scan before they answer take
    /// their time, and giving up early makes duplicates (RFC 1047).
    pub final_dot: Duration,
    /// For the reply to QUIT: nothing depends on it.
    pub quit: Duration,
}

impl Default for SmtpTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            greeting: Duration::from_secs(5 * 60),
            hello: Duration::from_secs(5 * 60),
            handshake: Duration::from_secs(60),
            mail: Duration::from_secs(5 * 60),
            rcpt: Duration::from_secs(5 * 60),
            data: Duration::from_secs(2 * 60),
            block: Duration::from_secs(3 * 60),
            final_dot: Duration::from_secs(10 * 60),
            quit: Duration::from_secs(5),
        }
    }
}
