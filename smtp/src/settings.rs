//! What all sessions of one listener share: its role, its name, its limits, its greeting.
//!
//! The replies to EHLO differ only by whether TLS holds, so both are made once.

use std::fmt::Write as _;
use std::sync::Arc;

use mail::address::DomainName;
use queue::accept::SCHEDULED_AHEAD_MAX;

use crate::budget::ContentBudget;
use crate::limits::SessionLimits;

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerRole {
    /// Submission (RFC 6409): AUTH before MAIL, TLS before AUTH; each recipient is asked for.
    Submission,
    /// Trusted hosts hand in mail without AUTH; the network decides who is one.
    Relay,
    /// Mail for our own domains: no AUTH, each recipient is asked for.
    Mx,
}

impl ListenerRole {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Submission, Self::Relay, Self::Mx];

    /// Its name in figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Submission => "submission",
            Self::Relay => "relay",
            Self::Mx => "mx",
        }
    }
}

/// What a session needs to know.
#[derive(Debug)]
pub struct SessionSettings {
    role: ListenerRole,
    pub(crate) hostname: DomainName,
    pub(crate) limits: SessionLimits,
    /// While places are short.
    pub(crate) overload_limits: SessionLimits,
    budget: Arc<ContentBudget>,
    tls_offered: bool,
    greeting: String,
    capabilities_plain: String,
    capabilities_tls: String,
}

impl SessionSettings {
    /// Puts them together. `tls_offered` says that the listener has a certificate.
    #[must_use]
    pub fn new(
        role: ListenerRole,
        hostname: DomainName,
        limits: SessionLimits,
        budget: Arc<ContentBudget>,
        tls_offered: bool,
    ) -> Self {
        let greeting = format!("220 {hostname} ESMTP postrider\r\n");
        let capabilities = |secured: bool| capabilities(role, &hostname, &limits, (secured, tls_offered && !secured));
        Self {
            capabilities_plain: capabilities(false),
            capabilities_tls: capabilities(true),
            greeting,
            role,
            hostname,
            overload_limits: limits.for_overload(),
            limits,
            budget,
            tls_offered,
        }
    }

    /// What the listener is for.
    #[must_use]
    pub fn role(&self) -> ListenerRole {
        self.role
    }

    /// Our name.
    #[must_use]
    pub fn hostname(&self) -> &DomainName {
        &self.hostname
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// The memory for content that all sessions of this kind of listener share.
    #[must_use]
    pub fn budget(&self) -> &Arc<ContentBudget> {
        &self.budget
    }

    /// Whether STARTTLS can be had.
    #[must_use]
    pub fn tls_offered(&self) -> bool {
        self.tls_offered
    }

    pub(crate) fn greeting(&self) -> &str {
        &self.greeting
    }

    pub(crate) fn capabilities(&self, secured: bool) -> &str {
        if secured { &self.capabilities_tls } else { &self.capabilities_plain }
    }
}

/// The reply to EHLO. AUTH stands in it only under TLS (RFC 4954 4), STARTTLS only before it
/// (RFC 3207 4.2), REQUIRETLS only under it (RFC 8689 2).
fn capabilities(
    role: ListenerRole,
    hostname: &DomainName,
    limits: &SessionLimits,
    (secured, starttls): (bool, bool),
) -> String {
    let mut text = format!("250-{hostname}\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n");
    // Writing to a String does not fail.
    let _ = write!(text, "250-SIZE {}\r\n", limits.message_bytes_max);
    text.push_str("250-CHUNKING\r\n250-BINARYMIME\r\n250-ENHANCEDSTATUSCODES\r\n");
    // Who asks for a report of success gets it from the host before us (RFC 3461 5.2.2): here mail ends, and
    // nothing is written to strangers.
    if role != ListenerRole::Mx {
        text.push_str("250-DSN\r\n250-DELIVERBY\r\n250-MT-PRIORITY\r\n");
        // RFC 4865 3: for how long, and until when at most; both hold.
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
