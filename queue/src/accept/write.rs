//! Making the message of a draft: what came by SMTP is mended (RFC 6409 8), what came by the API is composed.
//! Pure.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::{Address, Mailbox, Name};
use mail::compose::{self, Composition};
use mail::draft::{Content, Draft, DraftRecipient};
use mail::email::{Door, HeaderFacts};
use mail::id::EmailId;
use mail::message::{self, Mending};
use mail::recipient::RecipientKind;

use crate::refusal::Refusal;
use crate::staged::Addressee;

/// A message with its author, before it is signed.
pub(super) struct Written {
    pub(super) from: Mailbox,
    pub(super) facts: HeaderFacts,
    /// The domains that Sender, Resent-From and Resent-Sender name.
    pub(super) sender_domains: BTreeSet<Name>,
    pub(super) chunks: Vec<Bytes>,
    /// The header has bytes above 127.
    pub(super) needs_smtputf8: bool,
}

/// Makes the message of a draft, dated `now`.
pub(super) fn write(id: EmailId, draft: &Draft, now: Timestamp) -> Result<Written, Refusal> {
    match &draft.content {
        Content::Raw { message, received } => {
            message::check_lines(message)?;
            let mut header = message::read(message)?;
            let header_is_ascii = header.is_ascii;
            let sender_domains = std::mem::take(&mut header.sender_domains);
            let reverse_path = draft.envelope.reverse_path.as_ref();
            let mended = message::mend(message, header, &Mending { id, reverse_path, received, now })?;
            let mut chunks = Vec::with_capacity(mended.rest.len() + 1);
            chunks.push(Bytes::from(mended.top));
            chunks.extend(mended.rest);
            Ok(Written {
                from: mended.from,
                facts: mended.facts,
                sender_domains,
                chunks,
                needs_smtputf8: !header_is_ascii,
            })
        }
        Content::Parts(parts) => written_from(id, parts, now),
    }
}

fn written_from(id: EmailId, parts: &Composition, now: Timestamp) -> Result<Written, Refusal> {
    let message_id = message::message_id(id, &parts.from.address);
    let bytes = compose::compose(parts, &message_id, now);
    // A subject, say, of one endless word cannot be folded.
    message::check_lines(&bytes)?;
    let facts = HeaderFacts {
        to: parts.to.clone(),
        cc: parts.cc.clone(),
        bcc: parts.bcc.clone(),
        reply_to: parts.reply_to.clone(),
        subject: parts.subject.clone(),
        message_id,
    };
    Ok(Written {
        from: parts.from.clone(),
        facts,
        // The API refuses these fields.
        sender_domains: BTreeSet::new(),
        chunks: vec![Bytes::from(bytes)],
        needs_smtputf8: false,
    })
}

/// Everybody once. SMTP does not say in which field a recipient stands: the header does, and who
/// stands in none of them is a blind one.
pub(super) fn addressees(
    recipients: Vec<DraftRecipient>,
    facts: &mut HeaderFacts,
    door: Door,
) -> Vec<Addressee> {
    let mut seen = HashSet::with_capacity(recipients.len());
    let smtp = matches!(door, Door::Submission | Door::Relay);
    let mut blind = Vec::new();
    let stands_in = |field: &[Mailbox], address: &Address| field.iter().any(|m| m.address == *address);
    let addressees = recipients
        .into_iter()
        .filter(|r| seen.insert(r.address.clone()))
        .map(|DraftRecipient { address, kind, notify }| {
            let kind = match kind {
                _ if smtp && stands_in(&facts.to, &address) => RecipientKind::To,
                _ if smtp && stands_in(&facts.cc, &address) => RecipientKind::Cc,
                _ if smtp => RecipientKind::Bcc,
                given => given,
            };
            if smtp && kind == RecipientKind::Bcc {
                blind.push(Mailbox::from(address.clone()));
            }
            Addressee { address, kind, notify, suppressed: false }
        })
        .collect();
    if smtp {
        facts.bcc = blind;
    }
    addressees
}
