//! Letters of the service itself, to one person: a link to sign in with, a warning, what strangers wrote to the
//! operator, what a partner of an affiliate program is told. Plain text, and the same in HTML where it is for people who
//! never heard of us. They go the way of all mail ([`Draft`]); who writes them, `queue`'s postman knows.

use crate::address::{Address, Mailbox};
use crate::compose::{Attachment, Composition, CustomHeader};
use crate::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use crate::email::{Category, Ingress};
use crate::recipient::{DsnOptions, RecipientKind};

/// A letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEmail {
    /// To whom.
    pub to: Address,
    /// About what.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// The same in HTML.
    pub html: Option<String>,
    /// Who is answered; the writer, if nobody is named.
    pub reply_to: Option<Address>,
    /// What comes along.
    pub attachment: Option<Attachment>,
    /// The mailbox that it was passed on for, in a field of its own: should it come back there, it ends.
    pub forwarded_for: Option<Address>,
}

/// The field that says for whom a letter was passed on.
pub const LOOP_HEADER: &str = "X-Loop";

impl SystemEmail {
    /// A letter of text alone.
    #[must_use]
    pub fn new(to: Address, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            to,
            subject: subject.into(),
            text: text.into(),
            html: None,
            reply_to: None,
            attachment: None,
            forwarded_for: None,
        }
    }

    /// The draft of it, written by `from`.
    #[must_use]
    pub fn into_draft(self, from: Mailbox) -> Draft {
        let passed_on = self.forwarded_for.map(|mailbox| CustomHeader::new(LOOP_HEADER, &mailbox.to_string()));
        let passed_on = passed_on.and_then(Result::ok);
        let parts = Composition {
            from: from.clone(),
            to: vec![Mailbox::from(self.to.clone())],
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: self.reply_to.map(Mailbox::from).into_iter().collect(),
            subject: self.subject,
            html: self.html,
            text: Some(self.text),
            // RFC 3834 5: no machine answers it, and no automation of who reads it here.
            headers: CustomHeader::new("Auto-Submitted", "auto-generated").into_iter().chain(passed_on).collect(),
            attachments: self.attachment.into_iter().collect(),
        };
        let recipient = DraftRecipient { address: self.to, kind: RecipientKind::To, notify: DsnOptions::default() };
        Draft {
            ingress: Ingress::System,
            from: Some(from),
            envelope: SubmissionEnvelope::default(),
            recipients: vec![recipient],
            content: DraftContent::Parts(Box::new(parts)),
            tags: Vec::new(),
            category: Category::Transactional,
            options: SendOptions::default(),
        }
    }
}
