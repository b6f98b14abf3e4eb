//! The seam to whoever decides: a session asks [`Question`]s, and an [`Answers`] answers them.
//!
//! The session never waits: the listener takes the question, awaits the answer and steps the session
//! with it. What an answerer must remember between two questions of one session (who logged in) is its
//! own `Visitor`, so the session knows nothing of tenants.

use std::future::Future;
use std::net::IpAddr;

use bytes::Bytes;
use mail::address::{Address, Name};
use mail::credential::{API_KEY_PREFIX, API_KEY_PREFIX_LEGACY, SMTP_PASSWORD_PREFIX};
use mail::draft::{DraftRecipient, Envelope, Release};
use mail::id::AccountId;
use mail::reply::Reply;

use crate::budget::Held;

/// What a TLS handshake agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// `TLS13_AES_256_GCM_SHA384`.
    pub cipher: &'static str,
}

/// What the `Received` field tells of the session (RFC 5321 4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The session.
    pub session: u64,
    /// Who connected.
    pub peer: IpAddr,
    /// What it calls itself.
    pub helo: Box<str>,
    /// It said EHLO, not HELO.
    pub extended: bool,
    /// The connection is encrypted.
    pub tls: Option<TlsFacts>,
    /// It logged in.
    pub authenticated: bool,
    /// Our own name.
    pub hostname: Name,
}

/// A message as it was received, complete.
#[derive(Debug)]
pub struct Message {
    /// What MAIL said.
    pub envelope: Envelope,
    /// What RCPT said, in the order given; an address may stand twice.
    pub recipients: Vec<DraftRecipient>,
    /// The content: dot-unstuffed; lines end in CRLF, unless `binary`.
    pub content: Bytes,
    /// BODY=BINARYMIME: any byte may stand anywhere (RFC 3030 3).
    pub binary: bool,
    /// How it came.
    pub trace: Trace,
    /// Its share of the memory budget.
    pub held: Held,
}

/// What AUTH brought.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: String,
}

impl Credentials {
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

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, hidden)", self.username.escape_debug())
    }
}

/// What a session wants to know before it goes on.
#[derive(Debug)]
pub enum Question {
    /// Does this login hold, from this address?
    Authenticate(Credentials, IpAddr),
    /// May mail come from here, and is there room? None is the null path `<>`.
    Sender {
        /// The reverse path.
        reverse_path: Option<Address>,
        /// SIZE, when it was given.
        size_bytes: Option<u64>,
        /// When the message is to be released, if that was said.
        release: Option<Release>,
        /// Who is at the other end.
        peer: IpAddr,
    },
    /// Is this recipient taken? Relays do not ask (see [`crate::settings::Role`]).
    Recipient(Address),
    /// Take this message: the answer comes when it is safe.
    Take(Box<Message>),
}

/// What the session is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, and the usual words will do.
    Granted,
    /// The login holds, and it is this account's: its sessions and its messages have a share of what there is.
    Account(AccountId),
    /// Yes or no, by the severity of this reply, and these are the words.
    Said(Reply),
}

impl Answer {
    pub(crate) fn refusal(self) -> Result<Option<Reply>, Reply> {
        match self {
            Self::Granted | Self::Account(_) => Ok(None),
            Self::Said(reply) if reply.severity() == mail::reply::Severity::Completed => Ok(Some(reply)),
            Self::Said(reply) => Err(reply),
        }
    }
}

/// Whoever answers a listener's sessions.
pub trait Answers: Send + Sync + 'static {
    /// What is remembered between the questions of one session. Keep it small: idle sessions have one.
    type Visitor: Default + Send + Sync + 'static;

    /// Whether it is a user name with which clients log in: the log shows no others.
    fn is_user_name(&self, _user: &str) -> bool {
        false
    }

    /// Answers a question. The future is awaited to its end, whether or not the client is still there;
    /// only when the drain time of a shutdown is over is it dropped.
    fn answer(&self, visitor: &mut Self::Visitor, question: Question) -> impl Future<Output = Answer> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_shows_no_user_name_that_may_be_a_password() {
        let shown = |username: &str, is_known| {
            let credentials = Credentials { username: username.to_owned(), password: String::new() };
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
