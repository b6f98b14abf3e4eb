//! The table of verbs: each with the stages in which it may come, what must hold, and what it does.
//!
//! A command is refused by the first of these that says no: the verb is known, the stage is right, the
//! check holds. Only then its `run` reads the arguments. What it does stands in [`crate::session`].

use crate::replies;
use crate::session::{Next, Session, greeting, transaction};
use crate::settings::Role;

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
pub(crate) struct Arguments<'a> {
    wire: &'a [u8],
}

impl<'a> Arguments<'a> {
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
    pub(crate) stages: u8,
    /// What else must hold; the reply when it does not.
    pub(crate) check: fn(&Session) -> Result<(), &'static str>,
    /// It takes no argument.
    pub(crate) bare: bool,
    /// It leads nowhere: counted, so that nobody keeps a session busy with it.
    pub(crate) junk: bool,
    /// Does it.
    pub(crate) run: fn(&mut Session, Arguments<'_>, &mut replies::Replies) -> Next,
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
    check: fn(&Session) -> Result<(), &'static str>,
    run: fn(&mut Session, Arguments<'_>, &mut replies::Replies) -> Next,
) -> Verb {
    Verb { name: name.as_bytes(), stages, check, bare: false, junk: false, run }
}

const fn bare(verb: Verb) -> Verb {
    Verb { bare: true, ..verb }
}

const fn junk(verb: Verb) -> Verb {
    Verb { junk: true, ..verb }
}

/// Ordered by how often they come.
static VERBS: [Verb; 14] = [
    verb("RCPT", stage::MAIL | stage::RCPT, nothing, transaction::rcpt),
    verb("MAIL", stage::IDLE, may_send, transaction::mail),
    bare(verb("DATA", stage::MAIL | stage::RCPT, nothing, transaction::data)),
    // BDAT looks at the stage itself: its chunk follows unasked, and must be read whatever is wrong.
    verb("BDAT", stage::ANY, nothing, transaction::bdat),
    verb("EHLO", stage::ANY, nothing, greeting::ehlo),
    bare(verb("QUIT", stage::ANY, nothing, greeting::quit)),
    bare(junk(verb("RSET", stage::ANY, nothing, transaction::rset))),
    verb("AUTH", stage::ANY, may_log_in, greeting::auth),
    bare(verb("STARTTLS", stage::ANY, may_secure, greeting::start_tls)),
    junk(verb("NOOP", stage::ANY, nothing, greeting::noop)),
    verb("HELO", stage::ANY, nothing, greeting::helo),
    junk(verb("VRFY", stage::ANY, nothing, greeting::vrfy)),
    junk(verb("HELP", stage::ANY, nothing, greeting::help)),
    junk(verb("EXPN", stage::ANY, nothing, greeting::expn)),
];

/// What HTTP clients begin with. A browser can be made to send such a request here with SMTP commands
/// in its body; so the first line already ends the session.
static HTTP: [&[u8]; 10] =
    [b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"CONNECT", b"PATCH", b"TRACE", b"PRI"];

/// What a line's first word is.
pub(crate) enum Found<'a> {
    /// A verb, and what stands behind it.
    Verb(&'static Verb, Arguments<'a>),
    /// The start of an HTTP request.
    Http,
    /// Nothing that is known here.
    Unknown,
}

/// Looks up a framed line, CRLF included.
pub(crate) fn find(line: &[u8]) -> Found<'_> {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, wire) = line.split_at(end);
    if let Some(verb) = VERBS.iter().find(|verb| verb.name.eq_ignore_ascii_case(word)) {
        Found::Verb(verb, Arguments { wire })
    } else if HTTP.contains(&word) {
        Found::Http
    } else {
        Found::Unknown
    }
}

/// Whether a line may be as long as AUTH lines may; told from its start.
pub(crate) fn is_auth(start: &[u8]) -> bool {
    start.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"AUTH "))
}

fn nothing(_: &Session) -> Result<(), &'static str> {
    Ok(())
}

/// RFC 6409 4.3: nobody sends without having said who they are; RFC 3207 4: nor, here, in the clear.
pub(crate) fn may_send(session: &Session) -> Result<(), &'static str> {
    match session.settings().role() {
        Role::Submission if !session.is_authenticated() && !session.is_secured() => Err(replies::TLS_FIRST),
        Role::Submission if !session.is_authenticated() => Err(replies::AUTH_FIRST),
        _ => Ok(()),
    }
}

/// RFC 4954 3 and 4.
fn may_log_in(session: &Session) -> Result<(), &'static str> {
    match session.stage() {
        _ if session.settings().role() != Role::Submission => Err(replies::AUTH_NOT_HERE),
        _ if !session.is_secured() => Err(replies::AUTH_NEEDS_TLS),
        stage::FRESH | stage::HELO => Err(replies::EHLO_FIRST),
        _ if session.is_authenticated() => Err(replies::AUTH_ALREADY),
        stage::EHLO => Ok(()),
        _ => Err(replies::NOT_IN_TRANSACTION),
    }
}

/// RFC 3207 4.
fn may_secure(session: &Session) -> Result<(), &'static str> {
    match session.stage() {
        _ if session.is_secured() => Err(replies::TLS_ALREADY),
        _ if !session.settings().tls_offered() => Err(replies::TLS_NOT_HERE),
        stage::FRESH | stage::HELO => Err(replies::EHLO_FIRST),
        stage::EHLO => Ok(()),
        _ => Err(replies::NOT_IN_TRANSACTION),
    }
}

/// Why a verb may not come at this stage.
pub(crate) fn out_of_order(verb: &Verb, at: u8) -> &'static str {
    match at {
        stage::FRESH => replies::EHLO_FIRST,
        stage::CHUNKS => replies::CHUNKS_UNDER_WAY,
        stage::HELO | stage::EHLO => replies::MAIL_FIRST,
        _ if verb.stages == stage::IDLE => replies::MAIL_NESTED,
        _ => replies::NOT_IN_TRANSACTION,
    }
}
