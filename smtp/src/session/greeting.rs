//! Commands outside a transaction: EHLO, STARTTLS, AUTH, QUIT, and the junk commands.

use message::reply::{Severity, SmtpReply};

use super::{InputMode, PendingHook, SessionAction, SmtpSession};
use crate::command::CommandArguments;
use crate::handler::{Hook, HookVerdict, SessionTls};
use crate::replies::{self, ReplyBuffer};
use crate::sasl::{self, SaslProgress};
use crate::settings::ListenerRole;

/// RFC 5321 4.5.3.1.2: a domain has at most 255 octets.
const HELO_BYTES_MAX: usize = 255;

pub(crate) fn handle_ehlo(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let Some(name) = parse_helo_name(arguments.text()) else {
        return session.refuse(replies::BAD_HELO, replies);
    };
    // RFC 5321 4.1.4: EHLO resets the session like RSET.
    session.transaction = None;
    session.client.set_helo(name, true);
    replies.push_wire(session.settings.capabilities(session.client.is_secured()).as_bytes());
    SessionAction::Read
}

pub(crate) fn handle_helo(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let Some(name) = parse_helo_name(arguments.text()) else {
        return session.refuse(replies::BAD_HELO, replies);
    };
    session.transaction = None;
    session.client.set_helo(name, false);
    replies.push_reply(&SmtpReply::without_enhanced(250, session.settings.hostname.to_string()));
    SessionAction::Read
}

/// Parses one word of printable ASCII. The name is not verified: many clients have no better one, and RFC 5321 4.1.4
/// forbids refusing mail for it.
fn parse_helo_name(text: &[u8]) -> Option<&str> {
    let plausible = (1..=HELO_BYTES_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    if plausible { std::str::from_utf8(text).ok() } else { None }
}

pub(crate) fn handle_starttls(
    session: &mut SmtpSession,
    _: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    replies.push_fixed(replies::START_TLS);
    session.mode = InputMode::Handshake { greets: false };
    SessionAction::StartTls
}

pub(crate) fn handle_auth(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    session.handle_sasl(sasl::start_exchange(arguments.text()), replies)
}

pub(crate) fn handle_noop(_: &mut SmtpSession, _: CommandArguments<'_>, replies: &mut ReplyBuffer) -> SessionAction {
    replies.push_fixed(replies::OK);
    SessionAction::Read
}

pub(crate) fn handle_help(
    session: &mut SmtpSession,
    _: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let is_submission = session.settings.role == ListenerRole::Submission;
    replies.push_fixed(if is_submission { replies::HELP_SUBMISSION } else { replies::HELP });
    SessionAction::Read
}

/// VRFY does not reveal which addresses exist (RFC 5321 3.5.3 and 7.3).
pub(crate) fn handle_vrfy(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    if arguments.text().is_empty() {
        return session.refuse(replies::ARGUMENT_MISSING, replies);
    }
    replies.push_fixed(replies::CANNOT_VERIFY);
    SessionAction::Read
}

pub(crate) fn handle_expn(
    session: &mut SmtpSession,
    _: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    session.refuse(replies::NOT_IMPLEMENTED, replies)
}

pub(crate) fn handle_quit(
    session: &mut SmtpSession,
    _: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    replies.push_fixed(replies::BYE);
    session.mode = InputMode::Quit;
    SessionAction::Close
}

impl SmtpSession {
    /// Starts anew under TLS (RFC 3207 4.2).
    pub(super) fn handle_tls_established(&mut self, tls: SessionTls, replies: &mut ReplyBuffer) -> SessionAction {
        if let InputMode::Handshake { greets } = self.mode {
            if greets {
                replies.push_wire(self.settings.greeting.as_bytes());
            }
            self.times.record_input();
            self.mode = InputMode::Command;
            self.client.restart_under_tls(tls);
            (self.reservation, self.transaction) = (None, None);
        }
        SessionAction::Read
    }

    pub(super) fn handle_sasl(&mut self, progress: SaslProgress, replies: &mut ReplyBuffer) -> SessionAction {
        match progress {
            SaslProgress::Challenge(challenge, exchange) => {
                replies.push_fixed(challenge);
                self.mode = InputMode::Sasl(exchange);
                SessionAction::Read
            }
            SaslProgress::Complete(credentials) => {
                self.call_hook(PendingHook::Authenticate, Hook::Authenticate(credentials, self.client.peer))
            }
            SaslProgress::Failed(reply) => self.refuse(reply, replies),
        }
    }

    pub(super) fn complete_auth(&mut self, answer: HookVerdict, replies: &mut ReplyBuffer) -> SessionAction {
        let account = if let HookVerdict::AuthenticatedAs(account) = answer { Some(account) } else { None };
        match answer.into_result() {
            Ok(reply) => {
                self.client.authenticate(account);
                // From now on the messages' memory counts against the account.
                self.reservation = None;
                replies.push_hook_reply(reply, replies::AUTHENTICATED);
                SessionAction::Read
            }
            Err(reply) => {
                // The reply of the handler is sent first, even for the last permitted attempt.
                replies.push_reply(&reply);
                let is_permanent = reply.severity() == Severity::Permanent;
                let is_last = self.counts.count_auth_failure(is_permanent, &self.settings.limits);
                if reply.code == 421 {
                    return SessionAction::Close;
                }
                if is_last {
                    // RFC 5321 3.8: the server sends a reply before it closes a connection.
                    return self.close(replies::TOO_MANY_LOGINS, replies);
                }
                SessionAction::Read
            }
        }
    }
}
