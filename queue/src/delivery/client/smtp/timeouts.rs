//! Timeouts of the SMTP client (RFC 5321 4.5.3.2).

use std::time::Duration;

/// Timeouts of one connection. The defaults are the minima of the RFC; steps that it does not name have shorter ones,
/// where trying another host sooner costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmtpTimeouts {
    /// TCP connect. The RFC names no value; a host that needs longer is down.
    pub connect: Duration,
    /// Greeting (4.5.3.2.1).
    pub greeting: Duration,
    /// Replies to EHLO, HELO, STARTTLS and AUTH, which the RFC does not name.
    pub hello: Duration,
    /// TLS handshake.
    pub handshake: Duration,
    /// Reply to MAIL, and to RSET before it (4.5.3.2.2).
    pub mail: Duration,
    /// Reply to RCPT (4.5.3.2.3).
    pub rcpt: Duration,
    /// Reply to DATA (4.5.3.2.4).
    pub data: Duration,
    /// Progress of one write (4.5.3.2.5).
    pub block: Duration,
    /// Reply to the end of the content (4.5.3.2.6). Hosts that scan content need time, and giving up early causes
    /// duplicates (RFC 1047).
    pub final_dot: Duration,
    /// Reply to QUIT; nothing depends on it.
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
