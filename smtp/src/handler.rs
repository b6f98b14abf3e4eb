//! The interface between a session and the code that decides for it: a session calls a [`Hook`], and a
//! [`SessionHandler`] returns a [`HookVerdict`].
//!
//! The session itself never blocks: the listener takes the hook from it, awaits the verdict and steps the session with
//! it. A handler stores what it needs between two hooks (such as the authenticated user) in its own `SessionContext`.
//! So the session has no notion of accounts.

use std::future::Future;
use std::net::IpAddr;

use bytes::Bytes;
use message::address::{Address, DomainName};
use message::reply::SmtpReply;
use model::credential::{API_KEY_PREFIX, API_KEY_PREFIX_LEGACY, SMTP_PASSWORD_PREFIX};
use model::draft::{DraftRecipient, FutureRelease, SubmissionEnvelope};
use model::id::AccountId;

use crate::content_budget::MessageMemory;

/// TLS version and cipher suite that the handshake negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTls {
    /// For example `TLSv1.3`.
    pub version: &'static str,
    /// For example `TLS13_AES_256_GCM_SHA384`.
    pub cipher: &'static str,
}

/// The facts about a session that the `Received` field records (RFC 5321 4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTrace {
    /// The number of the session, unique within the process.
    pub session: u64,
    /// The client's address.
    pub peer: IpAddr,
    /// The name that the client gave with HELO or EHLO.
    pub helo: Box<str>,
    /// True after EHLO, false after HELO.
    pub is_esmtp: bool,
    /// `None` for a connection without TLS.
    pub tls: Option<SessionTls>,
    pub authenticated: bool,
    /// The host name of this server.
    pub hostname: DomainName,
}

/// A complete message with its envelope.
#[derive(Debug)]
pub struct SmtpMessage {
    /// The parameters of MAIL FROM.
    pub envelope: SubmissionEnvelope,
    /// The parameters of each RCPT TO, in the order received. An address can occur twice.
    pub recipients: Vec<DraftRecipient>,
    /// The content: dot-unstuffed; lines end in CRLF, unless `binary`.
    pub content: Bytes,
    /// BODY=BINARYMIME: line ends and NULs can occur anywhere in the body (RFC 3030 3).
    pub binary: bool,
    pub trace: SessionTrace,
    /// The part of the content budget that the message holds; released on drop.
    pub memory: MessageMemory,
}

/// The user name and password of an AUTH exchange.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslCredentials {
    pub username: String,
    pub password: String,
}

impl SaslCredentials {
    /// The user name for the log, or `unknown`. Users sometimes type a password as the user name. A name is therefore
    /// logged only if it `is_known` to the server or has the form of an address. A name that contains an API key or SMTP
    /// password is never logged.
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

/// A decision that the session needs before it continues.
#[derive(Debug)]
pub enum Hook {
    /// Checks a login from this address.
    Authenticate(SaslCredentials, IpAddr),
    /// Checks the sender and whether there is capacity. `None` is the null reverse path `<>`.
    MailFrom {
        reverse_path: Option<Address>,
        /// The SIZE parameter.
        size_bytes: Option<u64>,
        /// The HOLDFOR or HOLDUNTIL parameter (RFC 4865).
        release: Option<FutureRelease>,
        /// The client's address.
        peer: IpAddr,
    },
    /// Checks a recipient. Relay sessions do not call this hook (see [`crate::settings::ListenerRole`]).
    RcptTo(Address),
    /// Submits the message. The verdict arrives once the message is stored durably.
    Submit(Box<SmtpMessage>),
}

/// The result of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// Accepted; the session sends its standard reply.
    Accept,
    /// The login is valid and belongs to this account. The session and its messages count against the account's quotas.
    AuthenticatedAs(AccountId),
    /// Accepted or refused, by the severity of this reply; the session sends it to the client.
    Reply(SmtpReply),
}

impl HookVerdict {
    pub(crate) fn into_result(self) -> Result<Option<SmtpReply>, SmtpReply> {
        match self {
            Self::Accept | Self::AuthenticatedAs(_) => Ok(None),
            Self::Reply(reply) if reply.severity() == message::reply::Severity::Completed => Ok(Some(reply)),
            Self::Reply(reply) => Err(reply),
        }
    }
}

/// Decides what the sessions of a listener may do.
pub trait SessionHandler: Send + Sync + 'static {
    /// State of one session between two hooks. Idle sessions hold one too, so it must be small.
    type SessionContext: Default + Send + Sync + 'static;

    /// Returns whether clients log in with this user name. The log shows no other names.
    fn is_user_name(&self, _user: &str) -> bool {
        false
    }

    /// Handles a hook. The future runs to its end even if the client disconnects. It is dropped only when the drain
    /// timeout of a shutdown ends.
    fn handle(&self, context: &mut Self::SessionContext, hook: Hook) -> impl Future<Output = HookVerdict> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_that_may_be_passwords_are_not_logged() {
        let logged = |username: &str, is_known| {
            let credentials = SaslCredentials { username: username.to_owned(), password: String::new() };
            credentials.user_to_log(is_known).to_owned()
        };
        assert_eq!(logged("postrider", true), "postrider");
        assert_eq!(logged("bob@example.net", false), "bob@example.net");
        for secret in ["hunter2", "p@ssword", "correct horse@battery.staple", ""] {
            assert_eq!(logged(secret, false), "unknown");
        }
        assert_eq!(logged(&format!("{SMTP_PASSWORD_PREFIX}x@example.net"), false), "unknown");
    }
}
