//! The table of verbs: the states that allow each verb, its further conditions, and its handler.
//!
//! A command is checked in this order: the verb is known, the state allows it, the check passes. Only then `run` parses
//! the arguments. The handlers are in [`crate::session`].

use crate::replies;
use crate::session::{SessionAction, SmtpSession, greeting, transaction};
use crate::settings::ListenerRole;

/// The state of a session, as bits; a verb's `states` is a set of them.
pub(crate) mod state {
    /// Before HELO or EHLO.
    pub(crate) const FRESH: u8 = 1;
    /// After HELO, outside a transaction.
    pub(crate) const HELO: u8 = 2;
    /// After EHLO, outside a transaction.
    pub(crate) const EHLO: u8 = 4;
    /// MAIL was accepted.
    pub(crate) const MAIL: u8 = 8;
    /// A recipient was accepted.
    pub(crate) const RCPT: u8 = 16;
    /// A BDAT chunk was accepted (RFC 3030).
    pub(crate) const CHUNKS: u8 = 32;
    /// Greeted and outside a transaction.
    pub(crate) const IDLE: u8 = HELO | EHLO;
    pub(crate) const ANY: u8 = FRESH | IDLE | MAIL | RCPT | CHUNKS;
}

/// The bytes after the verb, up to and including the CRLF.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandArguments<'a> {
    wire: &'a [u8],
}

impl<'a> CommandArguments<'a> {
    /// The bytes as sent, line end included.
    pub(crate) fn wire(self) -> &'a [u8] {
        self.wire
    }

    /// The bytes without surrounding blanks and without the line end.
    pub(crate) fn text(self) -> &'a [u8] {
        self.wire.trim_ascii()
    }
}

/// One row of the table.
pub(crate) struct Verb {
    name: &'static [u8],
    /// The states in which the verb is allowed.
    pub(crate) states: u8,
    /// A further condition; returns the reply if it is not met.
    pub(crate) check: fn(&SmtpSession) -> Result<(), &'static str>,
    /// The verb takes no argument.
    pub(crate) no_argument: bool,
    /// A junk command: it brings no message and is counted, so that a session cannot stay busy with it.
    pub(crate) junk: bool,
    pub(crate) run: fn(&mut SmtpSession, CommandArguments<'_>, &mut replies::ReplyBuffer) -> SessionAction,
}

impl Verb {
    /// True if a refusal of this verb ends the transaction, because the client may already be sending content. BDAT
    /// handles this itself. For DATA after BDAT, RFC 3030 3 leaves the result undefined.
    pub(crate) fn brings_content(&self) -> bool {
        self.name == b"DATA"
    }
}

const fn verb(
    name: &'static str,
    stages: u8,
    check: fn(&SmtpSession) -> Result<(), &'static str>,
    run: fn(&mut SmtpSession, CommandArguments<'_>, &mut replies::ReplyBuffer) -> SessionAction,
) -> Verb {
    Verb { name: name.as_bytes(), states: stages, check, no_argument: false, junk: false, run }
}

const fn no_argument(verb: Verb) -> Verb {
    Verb { no_argument: true, ..verb }
}

const fn junk(verb: Verb) -> Verb {
    Verb { junk: true, ..verb }
}

/// Ordered by frequency.
static VERBS: [Verb; 14] = [
    verb("RCPT", state::MAIL | state::RCPT, always_allowed, transaction::handle_rcpt),
    verb("MAIL", state::IDLE, may_send, transaction::handle_mail),
    no_argument(verb("DATA", state::MAIL | state::RCPT, always_allowed, transaction::handle_data)),
    // BDAT checks the state itself: its chunk follows without waiting for a reply and must be read even after an error.
    verb("BDAT", state::ANY, always_allowed, transaction::handle_bdat),
    verb("EHLO", state::ANY, always_allowed, greeting::handle_ehlo),
    no_argument(verb("QUIT", state::ANY, always_allowed, greeting::handle_quit)),
    no_argument(junk(verb("RSET", state::ANY, always_allowed, transaction::handle_rset))),
    verb("AUTH", state::ANY, may_authenticate, greeting::handle_auth),
    no_argument(verb("STARTTLS", state::ANY, may_start_tls, greeting::handle_starttls)),
    junk(verb("NOOP", state::ANY, always_allowed, greeting::handle_noop)),
    verb("HELO", state::ANY, always_allowed, greeting::handle_helo),
    junk(verb("VRFY", state::ANY, always_allowed, greeting::handle_vrfy)),
    junk(verb("HELP", state::ANY, always_allowed, greeting::handle_help)),
    junk(verb("EXPN", state::ANY, always_allowed, greeting::handle_expn)),
];

/// Methods of HTTP requests. A browser can be made to send a request with SMTP commands in its body, so the first line
/// ends the session.
static HTTP_METHODS: [&[u8]; 10] =
    [b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"CONNECT", b"PATCH", b"TRACE", b"PRI"];

pub(crate) enum ParsedCommand<'a> {
    /// A known verb and its arguments.
    Verb(&'static Verb, CommandArguments<'a>),
    /// The first line of an HTTP request.
    Http,
    Unknown,
}

/// Parses a line that includes its CRLF.
pub(crate) fn parse_command(line: &[u8]) -> ParsedCommand<'_> {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, wire) = line.split_at(end);
    if let Some(verb) = VERBS.iter().find(|verb| verb.name.eq_ignore_ascii_case(word)) {
        ParsedCommand::Verb(verb, CommandArguments { wire })
    } else if HTTP_METHODS.contains(&word) {
        ParsedCommand::Http
    } else {
        ParsedCommand::Unknown
    }
}

/// Returns whether the line begins with AUTH, which may be longer than other commands.
pub(crate) fn is_auth_command(start: &[u8]) -> bool {
    start.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"AUTH "))
}

fn always_allowed(_: &SmtpSession) -> Result<(), &'static str> {
    Ok(())
}

/// Submission requires authentication (RFC 6409 4.3), and TLS before it (RFC 3207 4).
pub(crate) fn may_send(session: &SmtpSession) -> Result<(), &'static str> {
    let client = &session.client;
    match session.settings.role {
        ListenerRole::Submission if !client.is_authenticated() && !client.is_secured() => Err(replies::TLS_FIRST),
        ListenerRole::Submission if !client.is_authenticated() => Err(replies::AUTH_FIRST),
        _ => Ok(()),
    }
}

/// The conditions for AUTH (RFC 4954 3 and 4).
fn may_authenticate(session: &SmtpSession) -> Result<(), &'static str> {
    match session.state() {
        _ if session.settings.role != ListenerRole::Submission => Err(replies::AUTH_NOT_HERE),
        _ if !session.client.is_secured() => Err(replies::AUTH_NEEDS_TLS),
        state::FRESH | state::HELO => Err(replies::EHLO_FIRST),
        _ if session.client.is_authenticated() => Err(replies::AUTH_ALREADY),
        state::EHLO => Ok(()),
        _ => Err(replies::NOT_IN_TRANSACTION),
    }
}

/// The conditions for STARTTLS (RFC 3207 4).
fn may_start_tls(session: &SmtpSession) -> Result<(), &'static str> {
    match session.state() {
        _ if session.client.is_secured() => Err(replies::TLS_ALREADY),
        _ if !session.settings.tls_offered => Err(replies::TLS_NOT_HERE),
        state::FRESH | state::HELO => Err(replies::EHLO_FIRST),
        state::EHLO => Ok(()),
        _ => Err(replies::NOT_IN_TRANSACTION),
    }
}

/// The reply to a verb that state `at` does not allow.
pub(crate) fn bad_sequence_reply(verb: &Verb, at: u8) -> &'static str {
    match at {
        state::FRESH => replies::EHLO_FIRST,
        state::CHUNKS => replies::CHUNKS_UNDER_WAY,
        state::HELO | state::EHLO => replies::MAIL_FIRST,
        _ if verb.states == state::IDLE => replies::MAIL_NESTED,
        _ => replies::NOT_IN_TRANSACTION,
    }
}
