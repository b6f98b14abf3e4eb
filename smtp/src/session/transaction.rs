//! One mail transaction: MAIL, RCPT, then DATA or BDAT (RFC 5321 3.3, RFC 3030).
//!
//! A transaction lives from an accepted MAIL to RSET, EHLO, the end of its content, or the first thing
//! that is wrong with its content. Nothing of it outlives a refused DATA or BDAT: what the client sends
//! next meets a session without a transaction.

use std::time::Duration;

use mail::draft::{DraftRecipient, Envelope};
use mail::recipient::RecipientKind;
use mail::reply::{Enhanced, Reply};

use super::{Asked, Mode, Next, Session};
use crate::answers::{Answer, Message, Question};
use crate::budget::Held;
use crate::command::{Arguments, may_send, stage};
use crate::data::{ChunkReceiver, Content, DotReceiver};
use crate::limits::OVERRUN_FACTOR;
use crate::parameter;
use crate::path::{self, Path};
use crate::replies::{self, Replies};
use crate::settings::Role;

const MAIL_FORM: &str = "The form is MAIL FROM:<address> [parameters]";
const RCPT_FORM: &str = "The form is RCPT TO:<address> [parameters]";

/// A message under way.
#[derive(Debug)]
pub(crate) struct Transaction {
    envelope: Envelope,
    size_bytes: Option<u64>,
    binary: bool,
    recipients: Vec<DraftRecipient>,
    /// What BDAT brought so far.
    chunks: Option<Box<Chunks>>,
}

/// Content that comes in chunks.
#[derive(Debug)]
struct Chunks {
    content: Content,
    receiver: ChunkReceiver,
    began: Duration,
}

impl Transaction {
    pub(super) fn stage(&self) -> u8 {
        match self {
            Self { chunks: Some(_), .. } => stage::CHUNKS,
            Self { recipients, .. } if recipients.is_empty() => stage::MAIL,
            _ => stage::RCPT,
        }
    }
}

/// Content on its way in by DATA.
#[derive(Debug)]
pub(crate) struct Receiving {
    content: Content,
    receiver: DotReceiver,
    began: Duration,
}

/// The chunk that is coming.
#[derive(Debug)]
pub(crate) struct Chunk {
    left: u64,
    is_last: bool,
    /// The chunk is read and thrown away, and this is said then.
    refusal: Option<&'static str>,
    began: Duration,
    size_bytes: u64,
}

pub(crate) fn mail(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    let limits = &session.settings.limits;
    if session.counts.mails >= limits.mails_max {
        return session.close(replies::TOO_MANY_MAILS, replies);
    }
    let bytes_max = limits.message_bytes_max;
    let cut = match path::cut(arguments.wire().trim_ascii_start(), "FROM") {
        Ok(cut) => cut,
        Err(error) => return session.refuse_reply(&error.reply(MAIL_FORM, 7), replies),
    };
    if session.stage() == stage::HELO && !cut.rest.trim_ascii().is_empty() {
        return session.refuse(replies::PARAMETERS_NEED_EHLO, replies);
    }
    let reverse_path = match path::reverse(cut.text, parameter::asks_smtputf8(cut.rest)) {
        Ok(Path::Null) => None,
        Ok(Path::Address(address)) => Some(address),
        Err(error) => return session.refuse_reply(&error.reply(MAIL_FORM, 7), replies),
    };
    let parameters = match parameter::mail(cut.rest, session.settings.role()) {
        Ok(parameters) => parameters,
        Err(error) => return session.refuse_reply(&error.reply(), replies),
    };
    // RFC 8689 2: REQUIRETLS is offered under TLS only.
    if parameters.require_tls && !session.is_secured() {
        let unknown = parameter::ParameterError::Unknown("REQUIRETLS".to_owned());
        return session.refuse_reply(&unknown.reply(), replies);
    }
    // RFC 1870 6.1: before a byte of it has come.
    if parameters.size_bytes.is_some_and(|size| size > bytes_max) {
        replies.say(replies::TOO_LARGE);
        return Next::Listen;
    }
    let (size_bytes, release) = (parameters.size_bytes, parameters.release);
    if let Some(size) = size_bytes
        && !session.reservation().has(usize::try_from(size).unwrap_or(usize::MAX), session.now)
    {
        replies.say(replies::FULL);
        return Next::Listen;
    }
    let transaction = Box::new(Transaction {
        envelope: Envelope {
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
    let peer = session.peer();
    session.ask(Asked::Sender(transaction), Question::Sender { reverse_path, size_bytes, release, peer })
}

pub(crate) fn rcpt(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    let Some(transaction) = &session.transaction else { return session.refuse(replies::MAIL_FIRST, replies) };
    let smtputf8 = transaction.envelope.smtputf8;
    let full = transaction.recipients.len() >= session.settings.limits.recipients_max;
    let cut = match path::cut(arguments.wire().trim_ascii_start(), "TO") {
        Ok(cut) => cut,
        Err(error) => return session.refuse_reply(&error.reply(RCPT_FORM, 3), replies),
    };
    if !matches!(session.greeted, Some((_, true))) && !cut.rest.trim_ascii().is_empty() {
        return session.refuse(replies::PARAMETERS_NEED_EHLO, replies);
    }
    let address = match path::forward(cut.text, smtputf8, session.settings.hostname()) {
        Ok(address) => address,
        Err(error) => return session.refuse_reply(&error.reply(RCPT_FORM, 3), replies),
    };
    let notify = match parameter::rcpt(cut.rest, smtputf8, session.settings.role()) {
        Ok(notify) => notify,
        Err(error) => return session.refuse_reply(&error.reply(), replies),
    };
    if full {
        replies.say(replies::TOO_MANY_RECIPIENTS);
        return Next::Listen;
    }
    // SMTP does not say in which header field an address stands; the hall reads the header.
    let recipient = DraftRecipient { address, kind: RecipientKind::Bcc, notify };
    // A trusted host's recipients are all taken: nobody needs to be asked.
    if session.settings.role() != Role::Relay {
        let question = Question::Recipient(recipient.address.clone());
        return session.ask(Asked::Recipient(Box::new(recipient)), question);
    }
    session.recipient_judged(recipient, Answer::Granted, replies)
}

pub(crate) fn rset(session: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    session.transaction = None;
    replies.say(replies::OK);
    Next::Listen
}

pub(crate) fn data(session: &mut Session, _: Arguments<'_>, replies: &mut Replies) -> Next {
    let Some(transaction) = &session.transaction else { return session.refuse(replies::MAIL_FIRST, replies) };
    let refusal = match transaction {
        t if t.recipients.is_empty() => Some(replies::NO_RECIPIENTS),
        // RFC 3030 3: a reply to DATA, and the transaction is over.
        t if t.binary => Some(replies::BINARY_NEEDS_BDAT),
        _ => None,
    };
    let size_bytes = transaction.size_bytes;
    if let Some(reply) = refusal {
        return session.refuse_data(reply, replies);
    }
    let content = session.content(size_bytes);
    if content.flaw().is_some() {
        // Not counted as an error: it is not the client's.
        (session.transaction, session.refused_data) = (None, true);
        replies.say(replies::FULL);
        return Next::Listen;
    }
    replies.say(replies::START_CONTENT);
    session.mode =
        Mode::Data(Box::new(Receiving { content, receiver: DotReceiver::default(), began: session.now }));
    Next::Listen
}

/// RFC 3030 2. The chunk follows whatever we say: a refused one is read and thrown away. When the size
/// cannot be read, nobody knows where the next command begins, so the session ends.
pub(crate) fn bdat(session: &mut Session, arguments: Arguments<'_>, replies: &mut Replies) -> Next {
    let Some((size_bytes, is_last)) = read_bdat(arguments.text()) else {
        return session.close(replies::BAD_BDAT, replies);
    };
    let bytes_max = session.settings.limits.message_bytes_max;
    if size_bytes > bytes_max.saturating_mul(OVERRUN_FACTOR) {
        return session.close(replies::TOO_LARGE, replies);
    }
    let refusal = match (&session.transaction, session.stage()) {
        (_, stage::FRESH) => Some(replies::EHLO_FIRST),
        (None, _) => Some(may_send(session).err().unwrap_or(replies::MAIL_FIRST)),
        (Some(_), stage::MAIL) => Some(replies::NO_RECIPIENTS),
        _ => None,
    };
    let (now, declared) = (session.now, session.transaction.as_ref().and_then(|t| t.size_bytes));
    let begins = refusal.is_none() && session.transaction.as_ref().is_some_and(|t| t.chunks.is_none());
    let content = begins.then(|| session.content(declared.or(Some(size_bytes))));
    match &mut session.transaction {
        Some(transaction) if refusal.is_none() => {
            if let Some(content) = content {
                transaction.chunks =
                    Some(Box::new(Chunks { content, receiver: ChunkReceiver::default(), began: now }));
            }
        }
        transaction => *transaction = None,
    }
    session.mode = Mode::Chunk(Chunk { left: size_bytes, is_last, refusal, began: now, size_bytes });
    if size_bytes == 0 { session.chunk_read(replies) } else { Next::Listen }
}

/// `chunk-size [SP "LAST"]`
fn read_bdat(text: &[u8]) -> Option<(u64, bool)> {
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

impl Session {
    fn content(&mut self, declared: Option<u64>) -> Content {
        let reservation = self.reservation();
        reservation.begin(self.now);
        Content::new(self.settings.limits.message_bytes_max, declared, Held::none(&reservation))
    }

    pub(super) fn sender_judged(
        &mut self,
        transaction: Box<Transaction>,
        answer: Answer,
        replies: &mut Replies,
    ) -> Next {
        match answer.refusal() {
            Ok(reply) => {
                self.transaction = Some(transaction);
                match reply {
                    Some(reply) => replies.say_reply(&reply),
                    None => replies.say(replies::SENDER_OK),
                }
                Next::Listen
            }
            Err(reply) => said(&reply, replies),
        }
    }

    pub(super) fn recipient_judged(
        &mut self,
        recipient: DraftRecipient,
        answer: Answer,
        replies: &mut Replies,
    ) -> Next {
        match (answer.refusal(), &mut self.transaction) {
            (Ok(reply), Some(transaction)) => {
                transaction.recipients.push(recipient);
                match reply {
                    Some(reply) => replies.say_reply(&reply),
                    None => replies.say(replies::RECIPIENT_OK),
                }
                Next::Listen
            }
            (Ok(_), None) => self.refuse(replies::MAIL_FIRST, replies),
            // Whoever guesses addresses is not let guess for ever.
            (Err(reply), _) if reply.severity() == mail::reply::Severity::Permanent => {
                self.refuse_reply(&reply, replies)
            }
            (Err(reply), _) => said(&reply, replies),
        }
    }

    /// When the content under way began, and how much of it came; none where none has begun.
    pub(super) fn received(&self) -> Option<(Duration, u64)> {
        let chunks = self.transaction.as_ref().and_then(|transaction| transaction.chunks.as_ref());
        match (&self.mode, chunks) {
            (Mode::Data(receiving), _) => Some((receiving.began, receiving.content.seen())),
            (_, Some(chunks)) => Some((chunks.began, chunks.content.seen())),
            (Mode::Chunk(chunk), None) => Some((chunk.began, chunk.size_bytes - chunk.left)),
            _ => None,
        }
    }

    /// Takes content, or what comes behind it.
    pub(super) fn bytes(&mut self, bytes: &[u8], replies: &mut Replies) -> (usize, Next) {
        self.active_at = self.now;
        if let Some(reservation) = &self.reservation {
            reservation.received(bytes.len(), self.now);
        }
        match std::mem::replace(&mut self.mode, Mode::Command) {
            Mode::Data(mut receiving) => match receiving.receiver.push(bytes, &mut receiving.content) {
                Some(used) => (used, self.complete(receiving.content, replies)),
                None if receiving.content.is_overrun() => {
                    (bytes.len(), self.close(replies::TOO_LARGE, replies))
                }
                None => {
                    self.mode = Mode::Data(receiving);
                    (bytes.len(), Next::Listen)
                }
            },
            Mode::Chunk(mut chunk) => {
                let used = usize::try_from(chunk.left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let (part, _) = bytes.split_at(used);
                if let (None, Some(t)) = (chunk.refusal, &mut self.transaction)
                    && let Some(chunks) = &mut t.chunks
                {
                    chunks.receiver.push(part, t.binary, &mut chunks.content);
                }
                chunk.left -= used as u64;
                let done = chunk.left == 0;
                self.mode = Mode::Chunk(chunk);
                (used, if done { self.chunk_read(replies) } else { Next::Listen })
            }
            other => {
                self.mode = other;
                (bytes.len(), Next::Listen)
            }
        }
    }

    /// A chunk is there to its last byte.
    fn chunk_read(&mut self, replies: &mut Replies) -> Next {
        let Mode::Chunk(chunk) = std::mem::replace(&mut self.mode, Mode::Command) else {
            return Next::Listen;
        };
        if let Some(reply) = chunk.refusal {
            return self.refuse(reply, replies);
        }
        let Some(transaction) = &mut self.transaction else {
            return self.refuse(replies::MAIL_FIRST, replies);
        };
        let flaw = transaction.chunks.as_ref().and_then(|chunks| chunks.content.flaw());
        if let Some(flaw) = flaw {
            self.transaction = None;
            replies.say(flaw.reply());
            return Next::Listen;
        }
        if !chunk.is_last {
            let text = format!("{} bytes received", chunk.size_bytes);
            replies.say_reply(&Reply::new(250, Enhanced::new(2, 0, 0), text));
            return Next::Listen;
        }
        match transaction.chunks.take() {
            Some(mut chunks) => {
                chunks.receiver.finish(transaction.binary, &mut chunks.content);
                self.complete(chunks.content, replies)
            }
            None => self.refuse(replies::MAIL_FIRST, replies),
        }
    }

    /// The content is complete. Whatever comes of it, the transaction is over.
    fn complete(&mut self, content: Content, replies: &mut Replies) -> Next {
        let Some(transaction) = self.transaction.take() else {
            return self.refuse(replies::MAIL_FIRST, replies);
        };
        match content.finish() {
            Ok((content, held)) => {
                let message = Message {
                    envelope: transaction.envelope,
                    recipients: transaction.recipients,
                    content,
                    binary: transaction.binary,
                    trace: self.trace(),
                    held,
                };
                self.ask(Asked::Take, Question::Take(Box::new(message)))
            }
            Err(flaw) => {
                replies.say(flaw.reply());
                Next::Listen
            }
        }
    }

    pub(super) fn taken(&mut self, answer: Answer, replies: &mut Replies) -> Next {
        match answer.refusal() {
            Ok(reply) => {
                self.counts.mails += 1;
                self.brought_at = self.now;
                (self.counts.errors, self.counts.junk) = (0, 0);
                match reply {
                    Some(reply) => replies.say_reply(&reply),
                    None => replies.say(replies::TAKEN),
                }
                Next::Listen
            }
            Err(reply) => said(&reply, replies),
        }
    }
}

/// Says what the answerer said; a 421 is its wish to end the session (RFC 5321 3.8).
fn said(reply: &Reply, replies: &mut Replies) -> Next {
    replies.say_reply(reply);
    if reply.code == 421 { Next::Close } else { Next::Listen }
}
