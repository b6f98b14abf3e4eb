//! What a session does outside a transaction: EHLO, STARTTLS, AUTH, and the verbs that lead nowhere.

use mail::reply::{Reply, Severity};

use super::{Asked, Mode, Next, Session};
use crate::answers::{Answer, Question, TlsFacts};
use crate::command::Arguments;
use crate::replies::{self, Replies};
use crate::sasl::{self, Progress};
use crate::settings::Role;

/// RFC 5321 4.1.1.1: a domain is at most 255 bytes.
const HELO_BYTES_MAX: usize = 255;

pub(crate) fn ehlo(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    let Some(name) = name(arguments.text()) else { return session.refuse(replies::BAD_HELO, replies) };
    // RFC 5321 4.1.4: EHLO in the middle is RSET and EHLO.
    session.transaction = None;
    session.greeted = Some((name.into(), true));
    replies.say_wire(session.settings.capabilities(session.is_secured()).as_bytes());
    Next::Listen
}

pub(crate) fn helo(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    let Some(name) = name(arguments.text()) else { return session.refuse(replies::BAD_HELO, replies) };
    session.transaction = None;
    session.greeted = Some((name.into(), false));
    replies.say_reply(&Reply::plain(250, session.settings.hostname().to_string()));
    Next::Listen
}

/// One word of printable ASCII. Whether it is a name that exists is nobody's business here: many clients
/// know no better one (RFC 5321 4.1.4 forbids to refuse mail for it).
fn name(text: &[u8]) -> Option<&str> {
    let plausible = (1..=HELO_BYTES_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    if plausible { std::str::from_utf8(text).ok() } else { None }
}

pub(crate) fn start_tls(session: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    replies.say(replies::START_TLS);
    session.mode = Mode::Handshake { greets: false };
    Next::StartTls
}

pub(crate) fn auth(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    session.sasl(sasl::begin(arguments.text()), replies)
}

pub(crate) fn noop(_: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    replies.say(replies::OK);
    Next::Listen
}

pub(crate) fn help(session: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    let is_submission = session.settings.role() == Role::Submission;
    replies.say(if is_submission { replies::HELP_SUBMISSION } else { replies::HELP });
    Next::Listen
}

/// RFC 5321 3.5.3 and 7.3: who lives here is not told.
pub(crate) fn vrfy(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    if arguments.text().is_empty() {
        return session.refuse(replies::ARGUMENT_MISSING, replies);
    }
    replies.say(replies::CANNOT_VERIFY);
    Next::Listen
}

pub(crate) fn expn(session: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    session.refuse(replies::NOT_IMPLEMENTED, replies)
}

pub(crate) fn quit(session: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    replies.say(replies::BYE);
    session.mode = Mode::Quit;
    Next::Close
}

impl Session {
    /// RFC 3207 4.2: all that was learnt in the clear is forgotten.
    pub(super) fn secured(&mut self, tls: TlsFacts, replies: &mut Replies) -> Next {
        if let Mode::Handshake { greets } = self.mode {
            if greets {
                replies.say_wire(self.settings.greeting().as_bytes());
            }
            self.active_at = self.now;
            self.mode = Mode::Command;
            self.tls = Some(tls);
            self.greeted = None;
            self.authenticated = false;
            (self.account, self.reservation) = (None, None);
            self.transaction = None;
        }
        Next::Listen
    }

    pub(super) fn sasl(&mut self, progress: Progress, replies: &mut Replies) -> Next {
        match progress {
            Progress::Challenge(challenge, exchange) => {
                replies.say(challenge);
                self.mode = Mode::Sasl(exchange);
                Next::Listen
            }
            Progress::Complete(credentials) => {
                self.ask(Asked::Authenticate, Question::Authenticate(credentials, self.peer))
            }
            Progress::Failed(reply) => self.refuse(reply, replies),
        }
    }

    pub(super) fn authenticated_as(&mut self, answer: Answer, replies: &mut Replies) -> Next {
        let account = if let Answer::Account(account) = answer { Some(account) } else { None };
        match answer.refusal() {
            Ok(reply) => {
                self.authenticated = true;
                // From now on the account pays for what its messages hold.
                (self.account, self.reservation) = (account, None);
                match reply {
                    Some(reply) => replies.say_reply(&reply),
                    None => replies.say(replies::AUTHENTICATED),
                }
                Next::Listen
            }
            Err(reply) => {
                // The client learns why first, also from the last attempt that it is granted.
                replies.say_reply(&reply);
                self.counts.auth_failures += u32::from(reply.severity() == Severity::Permanent);
                if reply.code == 421 {
                    return Next::Close;
                }
                if self.counts.auth_failures >= self.settings.limits.auth_failures_max {
                    // RFC 5321 3.8: no connection is closed without a word.
                    return self.close(replies::TOO_MANY_LOGINS, replies);
                }
                Next::Listen
            }
        }
    }
}
