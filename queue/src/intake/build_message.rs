//! Building the message of a draft: a message from SMTP is completed (RFC 6409 8), one from the API is composed. No
//! I/O.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use jiff::Timestamp;
use message::address::{Address, DomainName, Mailbox};
use message::compose::{self, Composition};
use message::header::{self, CompletionContext, HeaderSummary};
use model::draft::{Draft, DraftContent, DraftRecipient};
use model::email::Ingress;
use model::id::EmailId;
use model::recipient::RecipientKind;

use crate::intake::prepared_message::EnvelopeRecipient;
use crate::intake::submit_error::SubmitError;

/// A message and its author, not signed yet.
pub(super) struct BuiltMessage {
    pub(super) from: Mailbox,
    pub(super) header: HeaderSummary,
    /// Domains named in Sender, Resent-From and Resent-Sender.
    pub(super) sender_domains: BTreeSet<DomainName>,
    pub(super) chunks: Vec<Bytes>,
    /// True if the header contains bytes above 127.
    pub(super) needs_smtputf8: bool,
}

/// Builds the message of a draft, with `now` as its date.
pub(super) fn build_message(id: EmailId, draft: &Draft, now: Timestamp) -> Result<BuiltMessage, SubmitError> {
    match &draft.content {
        DraftContent::Raw { message, received } => {
            header::check_lines(message.bytes())?;
            let mut header = header::parse_header(message)?;
            let header_is_ascii = header.is_ascii;
            let sender_domains = std::mem::take(&mut header.sender_domains);
            let reverse_path = draft.envelope.reverse_path.as_ref();
            let context = CompletionContext { id_left: &id.message_id_left(), reverse_path, received, now };
            let completed = header::complete_message(message, header, &context)?;
            let mut chunks = Vec::with_capacity(completed.rest.len() + 1);
            chunks.push(Bytes::from(completed.top));
            chunks.extend(completed.rest);
            Ok(BuiltMessage {
                from: completed.from,
                header: completed.summary,
                sender_domains,
                chunks,
                needs_smtputf8: !header_is_ascii,
            })
        }
        DraftContent::Parts(parts) => compose_message(id, parts, now),
    }
}

fn compose_message(id: EmailId, parts: &Composition, now: Timestamp) -> Result<BuiltMessage, SubmitError> {
    let message_id = header::generate_message_id(&id.message_id_left(), &parts.from.address);
    let bytes = compose::compose(parts, &message_id, now);
    // One long word, in a subject for example, cannot be folded.
    header::check_lines(&bytes)?;
    let header = HeaderSummary {
        to: parts.to.clone(),
        cc: parts.cc.clone(),
        bcc: parts.bcc.clone(),
        reply_to: parts.reply_to.clone(),
        subject: parts.subject.clone(),
        message_id,
    };
    Ok(BuiltMessage {
        from: parts.from.clone(),
        header,
        // The API does not accept these fields.
        sender_domains: BTreeSet::new(),
        chunks: vec![Bytes::from(bytes)],
        needs_smtputf8: false,
    })
}

/// Envelope recipients without duplicates. SMTP does not say to which field a recipient belongs: the header decides,
/// and a recipient in neither To nor Cc is a Bcc.
pub(super) fn envelope_recipients(
    recipients: Vec<DraftRecipient>,
    header: &mut HeaderSummary,
    ingress: Ingress,
) -> Vec<EnvelopeRecipient> {
    let mut added = HashSet::with_capacity(recipients.len());
    let smtp = matches!(ingress, Ingress::Submission | Ingress::Relay);
    let mut blind = Vec::new();
    let is_listed = |field: &[Mailbox], address: &Address| field.iter().any(|m| m.address == *address);
    let addressees = recipients
        .into_iter()
        .filter(|r| added.insert(r.address.clone()))
        .map(|DraftRecipient { address, kind, notify }| {
            let kind = match kind {
                _ if smtp && is_listed(&header.to, &address) => RecipientKind::To,
                _ if smtp && is_listed(&header.cc, &address) => RecipientKind::Cc,
                _ if smtp => RecipientKind::Bcc,
                explicit => explicit,
            };
            if smtp && kind == RecipientKind::Bcc {
                blind.push(Mailbox::from(address.clone()));
            }
            EnvelopeRecipient { address, kind, notify, suppressed: false }
        })
        .collect();
    if smtp {
        header.bcc = blind;
    }
    addressees
}
