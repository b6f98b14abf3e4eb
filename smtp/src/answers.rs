//! The seam to whoever decides: a session asks [`Question`]s, and an [`Answers`] answers them.
//!
//! The session never waits: the listener takes the question, awaits the answer and steps the session
//! with it. What an answerer must remember between two questions of one session (who logged in) is its
//! own `Visitor`, so the session knows nothing of tenants.

use std::future::Future;
use std::net::IpAddr;

use bytes::Bytes;
use mail::address::{Address, DomainName};
use mail::credential::{API_KEY_PREFIX, API_KEY_PREFIX_LEGACY, SMTP_PASSWORD_PREFIX};
use mail::draft::{DraftRecipient, FutureRelease, SubmissionEnvelope};
use mail::id::AccountId;
use mail::reply::SmtpReply;

use crate::budget::MessageMemory;

/// What a TLS handshake agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTls {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// `TLS13_AES_256_GCM_SHA384`.
    pub cipher: &'static str,
}

/// What the `Received` field tells of the session (RFC 5321 4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTrace {
    /// The session.
    pub session: u64,
    /// Who connected.
    pub peer: IpAddr,
    /// What it calls itself.
    pub helo: Box<str>,
    /// It said EHLO, not HELO.
    pub is_esmtp: bool,
    /// The connection is encrypted.
    pub tls: Option<SessionTls>,
    /// It logged in.
    pub authenticated: bool,
    /// Our own name.
    pub hostname: DomainName,
}

/// A message as it was received, complete.
#[derive(Debug)]
pub struct SmtpMessage {
    /// What MAIL said.
    pub envelope: SubmissionEnvelope,
    /// What RCPT said, in the order given; an address may stand twice.
    pub recipients: Vec<DraftRecipient>,
    /// The content: dot-unstuffed; lines end in CRLF, unless `binary`.
    pub content: Bytes,
    /// BODY=BINARYMIME: any byte may stand anywhere (RFC 3030 3).
    pub binary: bool,
    /// How it came.
    pub trace: SessionTrace,
    /// Its share of the memory budget.
    pub memory: MessageMemory,
}

/// What AUTH brought.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslCredentials {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: String,
}

impl SaslCredentials {
    /// The user name for the log. People type passwords there: it is shown only where it `is_known` to the server, or has
    /// the form of an address, and not that of a secret of ours.
    #[must_use]
    pub fn user_to_log(&self, is_known: bool) -> &str {
        let is_secret = [API_KEY_PREFIX, API_KEY_PREFIX_LEGACY, SMTP_PASSWORD_PREFIX]
            .iter()
            .any(|prefix| self.username.contains(prefix));
        let is_address =
            || self.username.parse::<Address>().is_ok_and(|address| address.domain().as_str().contains('.'));
        if !is_secret && (is_known || is_address()) { &self.username } else { "unknown" }
    }
}

impl std::fmt::Debug for SaslCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, hidden)", self.username.escape_debug())
    }
}

/// What a session wants to know before it goes on.
#[derive(Debug)]
pub enum Hook {
    /// Does this login hold, from this address?
    Authenticate(SaslCredentials, IpAddr),
    /// May mail come from here, and is there room? None is the null path `<>`.
    MailFrom {
        /// The reverse path.
        reverse_path: Option<Address>,
        /// SIZE, when it was given.
        size_bytes: Option<u64>,
        /// When the message is to be released, if that was said.
        release: Option<FutureRelease>,
        /// Who is at the other end.
        peer: IpAddr,
    },
    /// Is this recipient taken? Relays do not ask (see [`crate::settings::Role`]).
    RcptTo(Address),
    /// Take this message: the answer comes when it is safe.
    Submit(Box<SmtpMessage>),
}

/// What the session is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// Yes, and the usual words will do.
    Accept,
    /// The login holds, and it is this account's: its sessions and its messages have a share of what there is.
    AuthenticatedAs(AccountId),
    /// Yes or no, by the severity of this reply, and these are the words.
    Reply(SmtpReply),
}

impl HookVerdict {
    pub(crate) fn into_result(self) -> Result<Option<SmtpReply>, SmtpReply> {
        match self {
            Self::Accept | Self::AuthenticatedAs(_) => Ok(None),
            Self::Reply(reply) if reply.severity() == mail::reply::Severity::Completed => Ok(Some(reply)),
            Self::Reply(reply) => Err(reply),
        }
    }
}

/// Whoever answers a listener's sessions.
pub trait SessionHandler: Send + Sync + 'static {
    /// What is remembered between the questions of one session. Keep it small: idle sessions have one.
    type SessionContext: Default + Send + Sync + 'static;

    /// Whether it is a user name with which clients log in: the log shows no others.
    fn is_user_name(&self, _user: &str) -> bool {
        false
    }

    /// Answers a question. The future is awaited to its end, whether or not the client is still there;
    /// only when the drain time of a shutdown is over is it dropped.
    fn handle(&self, visitor: &mut Self::SessionContext, question: Hook) -> impl Future<Output = HookVerdict> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_shows_no_user_name_that_may_be_a_password() {
        let shown = |username: &str, is_known| {
            let credentials = SaslCredentials { username: username.to_owned(), password: String::new() };
            credentials.user_to_log(is_known).to_owned()
        };
        assert_eq!(shown("postrider", true), "postrider");
        assert_eq!(shown("bob@example.net", false), "bob@example.net");
        for secret in ["hunter2", "p@ssword", "correct horse@battery.staple", ""] {
            assert_eq!(shown(secret, false), "unknown");
        }
        assert_eq!(shown(&format!("{SMTP_PASSWORD_PREFIX}x@example.net"), false), "unknown");
    }
}
