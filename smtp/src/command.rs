//! The table of verbs: each with the stages in which it may come, what must hold, and what it does.
//!
//! A command is refused by the first of these that says no: the verb is known, the stage is right, the
//! check holds. Only then its `run` reads the arguments. What it does stands in [`crate::session`].

use crate::replies;
use crate::session::{SessionAction, SmtpSession, greeting, transaction};
use crate::settings::ListenerRole;

/// How far a session has come; a verb's `stages` is a set of them.
pub(crate) mod stage {
    /// Nothing said yet.
    pub(crate) const FRESH: u8 = 1;
    /// HELO was said.
    pub(crate) const HELO: u8 = 2;
    /// EHLO was said.
    pub(crate) const EHLO: u8 = 4;
    /// MAIL was taken.
    pub(crate) const MAIL: u8 = 8;
    /// A recipient was taken.
    pub(crate) const RCPT: u8 = 16;
    /// A chunk was taken (RFC 3030).
    pub(crate) const CHUNKS: u8 = 32;
    /// Outside a transaction, greeted.
    pub(crate) const IDLE: u8 = HELO | EHLO;
    /// Everywhere.
    pub(crate) const ANY: u8 = FRESH | IDLE | MAIL | RCPT | CHUNKS;
}

/// What stands behind a verb, up to and including the line's CRLF.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandArguments<'a> {
    wire: &'a [u8],
}

impl<'a> CommandArguments<'a> {
    /// As sent, line end included.
    pub(crate) fn wire(self) -> &'a [u8] {
        self.wire
    }

    /// Without blanks around it and without the line end.
    pub(crate) fn text(self) -> &'a [u8] {
        self.wire.trim_ascii()
    }
}

/// One row of the table.
pub(crate) struct Verb {
    name: &'static [u8],
    /// The stages in which it may come.
    pub(crate) states: u8,
    /// What else must hold; the reply when it does not.
    pub(crate) check: fn(&SmtpSession) -> Result<(), &'static str>,
    /// It takes no argument.
    pub(crate) no_argument: bool,
    /// It leads nowhere: counted, so that nobody keeps a session busy with it.
    pub(crate) junk: bool,
    /// Does it.
    pub(crate) run: fn(&mut SmtpSession, CommandArguments<'_>, &mut replies::ReplyBuffer) -> SessionAction,
}

impl Verb {
    /// Refused in whatever way, it ends the transaction: what a client sends behind it may be content (BDAT sees to
    /// that itself; of DATA behind BDAT, RFC 3030 3 leaves open what comes of it).
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

/// Ordered by how often they come.
static VERBS: [Verb; 14] = [
    verb("RCPT", stage::MAIL | stage::RCPT, always_allowed, transaction::handle_rcpt),
    verb("MAIL", stage::IDLE, may_send, transaction::handle_mail),
    no_argument(verb("DATA", stage::MAIL | stage::RCPT, always_allowed, transaction::handle_data)),
    // BDAT looks at the stage itself: its chunk follows unasked, and must be read whatever is wrong.
    verb("BDAT", stage::ANY, always_allowed, transaction::handle_bdat),
    verb("EHLO", stage::ANY, always_allowed, greeting::handle_ehlo),
    no_argument(verb("QUIT", stage::ANY, always_allowed, greeting::handle_quit)),
    no_argument(junk(verb("RSET", stage::ANY, always_allowed, transaction::handle_rset))),
    verb("AUTH", stage::ANY, may_authenticate, greeting::handle_auth),
    no_argument(verb("STARTTLS", stage::ANY, may_start_tls, greeting::handle_starttls)),
    junk(verb("NOOP", stage::ANY, always_allowed, greeting::handle_noop)),
    verb("HELO", stage::ANY, always_allowed, greeting::handle_helo),
    junk(verb("VRFY", stage::ANY, always_allowed, greeting::handle_vrfy)),
    junk(verb("HELP", stage::ANY, always_allowed, greeting::handle_help)),
    junk(verb("EXPN", stage::ANY, always_allowed, greeting::handle_expn)),
];

/// What HTTP clients begin with. A browser can be made to send such a request here with SMTP commands
/// in its body; so the first line already ends the session.
static HTTP_METHODS: [&[u8]; 10] =
    [b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"CONNECT", b"PATCH", b"TRACE", b"PRI"];

/// What a line's first word is.
pub(crate) enum ParsedCommand<'a> {
    /// A verb, and what stands behind it.
    Verb(&'static Verb, CommandArguments<'a>),
    /// The start of an HTTP request.
    Http,
    /// Nothing that is known here.
    Unknown,
}

/// Looks up a framed line, CRLF included.
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

/// Whether a line may be as long as AUTH lines may; told from its start.
pub(crate) fn is_auth_command(start: &[u8]) -> bool {
    start.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"AUTH "))
}

fn always_allowed(_: &SmtpSession) -> Result<(), &'static str> {
    Ok(())
}

/// RFC 6409 4.3: nobody sends without having said who they are; RFC 3207 4: nor, here, in the clear.
pub(crate) fn may_send(session: &SmtpSession) -> Result<(), &'static str> {
    match session.settings().role() {
        ListenerRole::Submission if !session.is_authenticated() && !session.is_secured() => Err(replies::TLS_FIRST),
        ListenerRole::Submission if !session.is_authenticated() => Err(replies::AUTH_FIRST),
        _ => Ok(()),
    }
}

/// RFC 4954 3 and 4.
fn may_authenticate(session: &SmtpSession) -> Result<(), &'static str> {
    match session.state() {
        _ if session.settings().role() != ListenerRole::Submission => Err(replies::AUTH_NOT_HERE),
        _ if !session.is_secured() => Err(replies::AUTH_NEEDS_TLS),
        stage::FRESH | stage::HELO => Err(replies::EHLO_FIRST),
        _ if session.is_authenticated() => Err(replies::AUTH_ALREADY),
        stage::EHLO => Ok(()),
        _ => Err(replies::NOT_IN_TRANSACTION),
    }
}

/// RFC 3207 4.
fn may_start_tls(session: &SmtpSession) -> Result<(), &'static str> {
    match session.state() {
        _ if session.is_secured() => Err(replies::TLS_ALREADY),
        _ if !session.settings().tls_offered() => Err(replies::TLS_NOT_HERE),
        stage::FRESH | stage::HELO => Err(replies::EHLO_FIRST),
        stage::EHLO => Ok(()),
        _ => Err(replies::NOT_IN_TRANSACTION),
    }
}

/// Why a verb may not come at this stage.
pub(crate) fn bad_sequence_reply(verb: &Verb, at: u8) -> &'static str {
    match at {
        stage::FRESH => replies::EHLO_FIRST,
        stage::CHUNKS => replies::CHUNKS_UNDER_WAY,
        stage::HELO | stage::EHLO => replies::MAIL_FIRST,
        _ if verb.states == stage::IDLE => replies::MAIL_NESTED,
        _ => replies::NOT_IN_TRANSACTION,
    }
}
