//! Settings that all sessions of one listener share: role, host name, limits, greeting, capabilities.
//!
//! The two replies to EHLO, with and without TLS, are rendered once.

use std::fmt::Write as _;
use std::sync::Arc;

use message::address::DomainName;
use queue::intake::SCHEDULED_AHEAD_MAX;

use crate::content_budget::ContentBudget;
use crate::limits::{SessionLimits, SessionTimeouts};

/// The role of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerRole {
    /// Submission (RFC 6409): AUTH before MAIL, TLS before AUTH; a hook checks each recipient.
    Submission,
    /// Mail from hosts that are trusted by network, without AUTH.
    Relay,
    /// Mail for local domains: no AUTH; a hook checks each recipient.
    Mx,
}

impl ListenerRole {
    pub const ALL: [Self; 3] = [Self::Submission, Self::Relay, Self::Mx];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submission => "submission",
            Self::Relay => "relay",
            Self::Mx => "mx",
        }
    }
}

/// The settings of a listener's sessions.
#[derive(Debug)]
pub struct SessionSettings {
    pub(crate) role: ListenerRole,
    pub(crate) hostname: DomainName,
    pub(crate) limits: SessionLimits,
    /// The timeouts of untrusted sessions during overload.
    pub(crate) overload_timeouts: SessionTimeouts,
    /// The content memory that all sessions of this role share.
    pub budget: Arc<ContentBudget>,
    /// True if STARTTLS is offered.
    pub tls_offered: bool,
    pub(crate) greeting: String,
    capabilities_plain: String,
    capabilities_tls: String,
}

impl SessionSettings {
    /// `tls_offered` is true if the listener has a certificate.
    pub fn new(
        role: ListenerRole,
        hostname: DomainName,
        limits: SessionLimits,
        budget: Arc<ContentBudget>,
        tls_offered: bool,
    ) -> Self {
        let greeting = format!("220 {hostname} ESMTP postrider\r\n");
        let capabilities = |secured: bool| capabilities(role, &hostname, &limits, secured, tls_offered && !secured);
        Self {
            capabilities_plain: capabilities(false),
            capabilities_tls: capabilities(true),
            greeting,
            role,
            hostname,
            overload_timeouts: limits.timeouts.for_overload(),
            limits,
            budget,
            tls_offered,
        }
    }

    pub(crate) fn capabilities(&self, secured: bool) -> &str {
        if secured { &self.capabilities_tls } else { &self.capabilities_plain }
    }
}

/// Renders the reply to EHLO. It offers AUTH only under TLS (RFC 4954 4), STARTTLS only before TLS (RFC 3207 4.2), and
/// REQUIRETLS only under TLS (RFC 8689 2).
fn capabilities(
    role: ListenerRole,
    hostname: &DomainName,
    limits: &SessionLimits,
    secured: bool,
    starttls: bool,
) -> String {
    let mut text = format!("250-{hostname}\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n");
    // Writing to a String cannot fail.
    let _ = write!(text, "250-SIZE {}\r\n", limits.message_bytes_max);
    text.push_str("250-CHUNKING\r\n250-BINARYMIME\r\n250-ENHANCEDSTATUSCODES\r\n");
    // MX offers no DSN: a report of success is then sent by the host before this one (RFC 3461 5.2.2). This server is
    // the final one and sends no mail to unverified senders.
    if role != ListenerRole::Mx {
        text.push_str("250-DSN\r\n250-DELIVERBY\r\n250-MT-PRIORITY\r\n");
        // RFC 4865 3: the longest HOLDFOR and the latest HOLDUNTIL; both apply.
        let ahead_max = SCHEDULED_AHEAD_MAX.as_secs();
        let _ = write!(text, "250-FUTURERELEASE {ahead_max} 9999-12-31T23:59:59Z\r\n");
    }
    if starttls {
        text.push_str("250-STARTTLS\r\n");
    }
    if secured {
        text.push_str("250-REQUIRETLS\r\n");
        if role == ListenerRole::Submission {
            text.push_str("250-AUTH PLAIN LOGIN\r\n");
        }
    }
    let _ = write!(text, "250-LIMITS RCPTMAX={}", limits.recipients_max);
    if limits.mails_max != u64::MAX {
        let _ = write!(text, " MAILMAX={}", limits.mails_max);
    }
    text.push_str("\r\n250 HELP\r\n");
    text
}
