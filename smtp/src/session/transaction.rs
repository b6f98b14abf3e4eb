//! One mail transaction: MAIL, RCPT, then DATA or BDAT (RFC 5321 3.3, RFC 3030).
//!
//! A transaction lasts from an accepted MAIL to RSET, EHLO, the end of its content, or the first error in its content.
//! A refused DATA or BDAT ends it too, so that the client's next command runs without a transaction.

use std::time::Duration;

use message::reply::{Enhanced, SmtpReply};
use model::draft::{DraftRecipient, SubmissionEnvelope};
use model::recipient::RecipientKind;

use super::{InputMode, PendingHook, SessionAction, SmtpSession};
use crate::command::{CommandArguments, may_send, state};
use crate::content_budget::MessageMemory;
use crate::data::{ChunkReceiver, ContentBuffer, DotReceiver};
use crate::handler::{Hook, HookVerdict, SmtpMessage};
use crate::limits::OVERRUN_FACTOR;
use crate::parameter;
use crate::path::{self, ReversePath};
use crate::replies::{self, ReplyBuffer};
use crate::settings::ListenerRole;

const MAIL_FORM: &str = "Syntax: MAIL FROM:<address> [parameters]";
const RCPT_FORM: &str = "Syntax: RCPT TO:<address> [parameters]";

/// The current transaction.
#[derive(Debug)]
pub(crate) struct MailTransaction {
    envelope: SubmissionEnvelope,
    size_bytes: Option<u64>,
    binary: bool,
    recipients: Vec<DraftRecipient>,
    /// The content of the BDAT chunks so far.
    chunks: Option<Box<ChunkedContent>>,
}

/// Content received in BDAT chunks.
#[derive(Debug)]
struct ChunkedContent {
    content: ContentBuffer,
    receiver: ChunkReceiver,
    began: Duration,
}

impl MailTransaction {
    pub(super) fn state(&self) -> u8 {
        match self {
            Self { chunks: Some(_), .. } => state::CHUNKS,
            Self { recipients, .. } if recipients.is_empty() => state::MAIL,
            _ => state::RCPT,
        }
    }
}

/// Content received after DATA.
#[derive(Debug)]
pub(crate) struct DataContent {
    content: ContentBuffer,
    receiver: DotReceiver,
    began: Duration,
}

/// The BDAT chunk that is being received.
#[derive(Debug)]
pub(crate) struct BdatChunk {
    left: u64,
    is_last: bool,
    /// The reply to a refused chunk, sent after the chunk was read and discarded.
    refusal: Option<&'static str>,
    began: Duration,
    size_bytes: u64,
}

pub(crate) fn handle_mail(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let limits = &session.settings.limits;
    if session.counts.has_reached_mails_max(limits) {
        return session.close(replies::TOO_MANY_MAILS, replies);
    }
    let bytes_max = limits.message_bytes_max;
    let cut = match path::split_path(arguments.wire().trim_ascii_start(), "FROM") {
        Ok(cut) => cut,
        Err(error) => return session.refuse_reply(&error.reply(MAIL_FORM, 7), replies),
    };
    if session.state() == state::HELO && !cut.parameters.trim_ascii().is_empty() {
        return session.refuse(replies::PARAMETERS_NEED_EHLO, replies);
    }
    let reverse_path = match path::parse_reverse_path(cut.text, parameter::asks_smtputf8(cut.parameters)) {
        Ok(ReversePath::Null) => None,
        Ok(ReversePath::Address(address)) => Some(address),
        Err(error) => return session.refuse_reply(&error.reply(MAIL_FORM, 7), replies),
    };
    let parameters = match parameter::parse_mail_parameters(cut.parameters, session.settings.role) {
        Ok(parameters) => parameters,
        Err(error) => return session.refuse_reply(&error.reply(), replies),
    };
    // RFC 8689 2: REQUIRETLS is offered under TLS only.
    if parameters.require_tls && !session.client.is_secured() {
        let unknown = parameter::ParameterError::Unknown("REQUIRETLS".to_owned());
        return session.refuse_reply(&unknown.reply(), replies);
    }
    // RFC 1870 6.1: checked before the content is sent.
    if parameters.size_bytes.is_some_and(|size| size > bytes_max) {
        replies.push_fixed(replies::TOO_LARGE);
        return SessionAction::Read;
    }
    let (size_bytes, release) = (parameters.size_bytes, parameters.release);
    if let Some(size) = size_bytes
        && !session.reservation().has_available(usize::try_from(size).unwrap_or(usize::MAX), session.times.now)
    {
        replies.push_fixed(replies::INSUFFICIENT_MEMORY);
        return SessionAction::Read;
    }
    let transaction = Box::new(MailTransaction {
        envelope: SubmissionEnvelope {
            reverse_path: reverse_path.clone(),
            envelope_id: parameters.envelope_id,
            return_full: parameters.return_full,
            require_tls: parameters.require_tls,
            tls_optional: false,
            smtputf8: parameters.smtputf8,
            release,
            deliver_by: parameters.deliver_by,
            priority: parameters.priority,
        },
        size_bytes,
        binary: parameters.binary,
        recipients: Vec::new(),
        chunks: None,
    });
    let peer = session.client.peer;
    session.call_hook(PendingHook::MailFrom(transaction), Hook::MailFrom { reverse_path, size_bytes, release, peer })
}

pub(crate) fn handle_rcpt(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let Some(transaction) = &session.transaction else { return session.refuse(replies::MAIL_FIRST, replies) };
    let smtputf8 = transaction.envelope.smtputf8;
    let full = transaction.recipients.len() >= session.settings.limits.recipients_max;
    let cut = match path::split_path(arguments.wire().trim_ascii_start(), "TO") {
        Ok(cut) => cut,
        Err(error) => return session.refuse_reply(&error.reply(RCPT_FORM, 3), replies),
    };
    if session.client.greeted_with_ehlo() != Some(true) && !cut.parameters.trim_ascii().is_empty() {
        return session.refuse(replies::PARAMETERS_NEED_EHLO, replies);
    }
    let address = match path::parse_forward_path(cut.text, smtputf8, &session.settings.hostname) {
        Ok(address) => address,
        Err(error) => return session.refuse_reply(&error.reply(RCPT_FORM, 3), replies),
    };
    let notify = match parameter::parse_rcpt_parameters(cut.parameters, smtputf8, session.settings.role) {
        Ok(notify) => notify,
        Err(error) => return session.refuse_reply(&error.reply(), replies),
    };
    if full {
        replies.push_fixed(replies::TOO_MANY_RECIPIENTS);
        return SessionAction::Read;
    }
    // The envelope does not show in which header field an address is; the intake reads the header.
    let recipient = DraftRecipient { address, kind: RecipientKind::Bcc, notify };
    // A trusted host's recipients are all accepted, so there is no hook.
    if session.settings.role != ListenerRole::Relay {
        let question = Hook::RcptTo(recipient.address.clone());
        return session.call_hook(PendingHook::RcptTo(Box::new(recipient)), question);
    }
    session.complete_rcpt(recipient, HookVerdict::Accept, replies)
}

pub(crate) fn handle_rset(
    session: &mut SmtpSession,
    _: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    session.transaction = None;
    replies.push_fixed(replies::OK);
    SessionAction::Read
}

pub(crate) fn handle_data(
    session: &mut SmtpSession,
    _: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let Some(transaction) = &session.transaction else { return session.refuse(replies::MAIL_FIRST, replies) };
    let refusal = match transaction {
        t if t.recipients.is_empty() => Some(replies::NO_RECIPIENTS),
        // RFC 3030 3: DATA is refused, and the transaction ends.
        t if t.binary => Some(replies::BINARY_NEEDS_BDAT),
        _ => None,
    };
    let size_bytes = transaction.size_bytes;
    if let Some(reply) = refusal {
        return session.refuse_data(reply, replies);
    }
    let content = session.begin_content(size_bytes);
    if content.error().is_some() {
        // Not counted as an error, because the client did not cause it.
        (session.transaction, session.refused_data) = (None, true);
        replies.push_fixed(replies::INSUFFICIENT_MEMORY);
        return SessionAction::Read;
    }
    replies.push_fixed(replies::START_CONTENT);
    session.mode =
        InputMode::Data(Box::new(DataContent { content, receiver: DotReceiver::default(), began: session.times.now }));
    SessionAction::Read
}

/// BDAT (RFC 3030 2). The client sends the chunk without waiting for a reply, so a refused chunk is read and discarded.
/// If the size is invalid, the start of the next command is unknown, and the session ends.
pub(crate) fn handle_bdat(
    session: &mut SmtpSession,
    arguments: CommandArguments<'_>,
    replies: &mut ReplyBuffer,
) -> SessionAction {
    let Some((size_bytes, is_last)) = parse_bdat(arguments.text()) else {
        return session.close(replies::BAD_BDAT, replies);
    };
    let bytes_max = session.settings.limits.message_bytes_max;
    if size_bytes > bytes_max.saturating_mul(OVERRUN_FACTOR) {
        return session.close(replies::TOO_LARGE, replies);
    }
    let refusal = match (&session.transaction, session.state()) {
        (_, state::FRESH) => Some(replies::EHLO_FIRST),
        (None, _) => Some(may_send(session).err().unwrap_or(replies::MAIL_FIRST)),
        (Some(_), state::MAIL) => Some(replies::NO_RECIPIENTS),
        _ => None,
    };
    let (now, declared) = (session.times.now, session.transaction.as_ref().and_then(|t| t.size_bytes));
    let begins = refusal.is_none() && session.transaction.as_ref().is_some_and(|t| t.chunks.is_none());
    let content = begins.then(|| session.begin_content(declared.or(Some(size_bytes))));
    match &mut session.transaction {
        Some(transaction) if refusal.is_none() => {
            if let Some(content) = content {
                transaction.chunks =
                    Some(Box::new(ChunkedContent { content, receiver: ChunkReceiver::default(), began: now }));
            }
        }
        transaction => *transaction = None,
    }
    session.mode = InputMode::BdatChunk(BdatChunk { left: size_bytes, is_last, refusal, began: now, size_bytes });
    if size_bytes == 0 { session.complete_chunk(replies) } else { SessionAction::Read }
}

/// Parses `chunk-size [SP "LAST"]`.
fn parse_bdat(text: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split(' ').filter(|w| !w.is_empty());
    let size = words.next().filter(|w| w.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    let is_last = match words.next() {
        None => false,
        Some(word) if word.eq_ignore_ascii_case("LAST") => true,
        Some(_) => return None,
    };
    words.next().is_none().then_some((size, is_last))
}

impl SmtpSession {
    fn begin_content(&mut self, declared: Option<u64>) -> ContentBuffer {
        let reservation = self.reservation();
        reservation.begin_message(self.times.now);
        ContentBuffer::new(self.settings.limits.message_bytes_max, declared, MessageMemory::new(&reservation))
    }

    pub(super) fn complete_mail(
        &mut self,
        transaction: Box<MailTransaction>,
        answer: HookVerdict,
        replies: &mut ReplyBuffer,
    ) -> SessionAction {
        match answer.into_result() {
            Ok(reply) => {
                self.transaction = Some(transaction);
                replies.push_hook_reply(reply, replies::SENDER_OK);
                SessionAction::Read
            }
            Err(reply) => push_verdict_reply(&reply, replies),
        }
    }

    pub(super) fn complete_rcpt(
        &mut self,
        recipient: DraftRecipient,
        answer: HookVerdict,
        replies: &mut ReplyBuffer,
    ) -> SessionAction {
        match (answer.into_result(), &mut self.transaction) {
            (Ok(reply), Some(transaction)) => {
                transaction.recipients.push(recipient);
                replies.push_hook_reply(reply, replies::RECIPIENT_OK);
                SessionAction::Read
            }
            (Ok(_), None) => self.refuse(replies::MAIL_FIRST, replies),
            // Counted as an error, so that a client cannot guess addresses without end.
            (Err(reply), _) if reply.severity() == message::reply::Severity::Permanent => {
                self.refuse_reply(&reply, replies)
            }
            (Err(reply), _) => push_verdict_reply(&reply, replies),
        }
    }

    /// The start of the current content and its bytes received so far; `None` without content.
    pub(super) fn content_progress(&self) -> Option<(Duration, u64)> {
        let chunks = self.transaction.as_ref().and_then(|transaction| transaction.chunks.as_ref());
        match (&self.mode, chunks) {
            (InputMode::Data(receiving), _) => Some((receiving.began, receiving.content.received_bytes)),
            (_, Some(chunks)) => Some((chunks.began, chunks.content.received_bytes)),
            (InputMode::BdatChunk(chunk), None) => Some((chunk.began, chunk.size_bytes - chunk.left)),
            _ => None,
        }
    }

    /// Processes content, up to its end at most. Returns the number of bytes used.
    pub(super) fn handle_content(&mut self, bytes: &[u8], replies: &mut ReplyBuffer) -> (usize, SessionAction) {
        self.times.record_input();
        if let Some(reservation) = &self.reservation {
            reservation.record_received(bytes.len(), self.times.now);
        }
        match std::mem::replace(&mut self.mode, InputMode::Command) {
            InputMode::Data(mut receiving) => match receiving.receiver.push(bytes, &mut receiving.content) {
                Some(used) => (used, self.complete_content(receiving.content, replies)),
                None if receiving.content.is_overrun() => (bytes.len(), self.close(replies::TOO_LARGE, replies)),
                None => {
                    self.mode = InputMode::Data(receiving);
                    (bytes.len(), SessionAction::Read)
                }
            },
            InputMode::BdatChunk(mut chunk) => {
                let used = usize::try_from(chunk.left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let (part, _) = bytes.split_at(used);
                if let (None, Some(t)) = (chunk.refusal, &mut self.transaction)
                    && let Some(chunks) = &mut t.chunks
                {
                    chunks.receiver.push(part, t.binary, &mut chunks.content);
                }
                chunk.left -= used as u64;
                let is_complete = chunk.left == 0;
                self.mode = InputMode::BdatChunk(chunk);
                (used, if is_complete { self.complete_chunk(replies) } else { SessionAction::Read })
            }
            other => {
                self.mode = other;
                (bytes.len(), SessionAction::Read)
            }
        }
    }

    /// Ends a chunk after its last byte.
    fn complete_chunk(&mut self, replies: &mut ReplyBuffer) -> SessionAction {
        let InputMode::BdatChunk(chunk) = std::mem::replace(&mut self.mode, InputMode::Command) else {
            return SessionAction::Read;
        };
        if let Some(reply) = chunk.refusal {
            return self.refuse(reply, replies);
        }
        let Some(transaction) = &mut self.transaction else {
            return self.refuse(replies::MAIL_FIRST, replies);
        };
        let flaw = transaction.chunks.as_ref().and_then(|chunks| chunks.content.error());
        if let Some(flaw) = flaw {
            self.transaction = None;
            replies.push_fixed(flaw.reply());
            return SessionAction::Read;
        }
        if !chunk.is_last {
            let text = format!("{} bytes received", chunk.size_bytes);
            replies.push_reply(&SmtpReply::new(250, Enhanced::new(2, 0, 0), text));
            return SessionAction::Read;
        }
        match transaction.chunks.take() {
            Some(mut chunks) => {
                chunks.receiver.finish(transaction.binary, &mut chunks.content);
                self.complete_content(chunks.content, replies)
            }
            None => self.refuse(replies::MAIL_FIRST, replies),
        }
    }

    /// Ends the content and the transaction, whatever the result.
    fn complete_content(&mut self, content: ContentBuffer, replies: &mut ReplyBuffer) -> SessionAction {
        let Some(transaction) = self.transaction.take() else {
            return self.refuse(replies::MAIL_FIRST, replies);
        };
        match content.finish() {
            Ok((content, memory)) => {
                let message = SmtpMessage {
                    envelope: transaction.envelope,
                    recipients: transaction.recipients,
                    content,
                    binary: transaction.binary,
                    trace: self.client.trace(self.id, &self.settings.hostname),
                    memory,
                };
                self.call_hook(PendingHook::Submit, Hook::Submit(Box::new(message)))
            }
            Err(flaw) => {
                replies.push_fixed(flaw.reply());
                SessionAction::Read
            }
        }
    }

    pub(super) fn complete_submit(&mut self, answer: HookVerdict, replies: &mut ReplyBuffer) -> SessionAction {
        match answer.into_result() {
            Ok(reply) => {
                self.counts.count_mail();
                self.times.record_message();
                replies.push_hook_reply(reply, replies::MESSAGE_ACCEPTED);
                SessionAction::Read
            }
            Err(reply) => push_verdict_reply(&reply, replies),
        }
    }
}

/// Appends the handler's reply. A 421 also ends the session (RFC 5321 3.8).
fn push_verdict_reply(reply: &SmtpReply, replies: &mut ReplyBuffer) -> SessionAction {
    replies.push_reply(reply);
    if reply.code == 421 { SessionAction::Close } else { SessionAction::Read }
}
