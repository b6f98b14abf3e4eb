//! Letters of the service itself: plain text, to one person: a link to sign in with, a warning, what strangers wrote to
//! the operator. They go the way of all mail ([`Draft`]); who writes them, `queue`'s postman knows.

use crate::address::{Address, Mailbox};
use crate::compose::{Attachment, Composition};
use crate::draft::{Content, Draft, DraftRecipient, Envelope, Wishes};
use crate::email::{Category, Door};
use crate::recipient::{Notify, RecipientKind};

/// A letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// To whom.
    pub to: Address,
    /// About what.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// Who is answered; the writer, if nobody is named.
    pub reply_to: Option<Address>,
    /// What comes along.
    pub attachment: Option<Attachment>,
}

impl Letter {
    /// A letter of text alone.
    #[must_use]
    pub fn new(to: Address, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { to, subject: subject.into(), text: text.into(), reply_to: None, attachment: None }
    }

    /// The draft of it, written by `from`.
    #[must_use]
    pub fn draft(self, from: Address) -> Draft {
        let from = Mailbox::from(from);
        let parts = Composition {
            from: from.clone(),
            to: vec![Mailbox::from(self.to.clone())],
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: self.reply_to.map(Mailbox::from).into_iter().collect(),
            subject: self.subject,
            html: None,
            text: Some(self.text),
            headers: Vec::new(),
            attachments: self.attachment.into_iter().collect(),
        };
        let recipient =
            DraftRecipient { address: self.to, kind: RecipientKind::To, notify: Notify::default() };
        Draft {
            door: Door::System,
            from: Some(from),
            envelope: Envelope::default(),
            recipients: vec![recipient],
            content: Content::Parts(Box::new(parts)),
            tags: Vec::new(),
            category: Category::Transactional,
            wishes: Wishes::default(),
        }
    }
}
