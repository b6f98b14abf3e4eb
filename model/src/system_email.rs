//! Emails of the service itself to one person: sign-in links, alerts, messages forwarded to the operator, and emails to
//! partners of an affiliate program. Plain text, with an HTML version for readers outside the service. They are
//! submitted like any other mail ([`Draft`]); `queue` determines the author.

use message::address::{Address, Mailbox};
use message::compose::{Attachment, Composition, CustomHeader};
use message::received::LOOP_HEADER;

use crate::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use crate::email::{Category, Ingress};
use crate::recipient::{DsnOptions, RecipientKind};

/// An email of the service itself to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEmail {
    pub to: Address,
    pub subject: String,
    pub text: String,
    /// The HTML version.
    pub html: Option<String>,
    /// Reply-To address; replies go to the author if absent.
    pub reply_to: Option<Address>,
    pub attachment: Option<Attachment>,
    /// Mailbox from which the message was forwarded, written to [`LOOP_HEADER`] so that a mail loop is detected.
    pub forwarded_for: Option<Address>,
    /// REQUIRETLS (RFC 8689), for a forwarded message that was received with it.
    pub require_tls: bool,
    /// True if it has a link that signs its reader in, or confirms something in their name.
    pub has_secret_link: bool,
}

impl SystemEmail {
    /// Creates a plain-text email.
    pub fn new(to: Address, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            to,
            subject: subject.into(),
            text: text.into(),
            html: None,
            reply_to: None,
            attachment: None,
            forwarded_for: None,
            require_tls: false,
            has_secret_link: false,
        }
    }

    /// Marks the email as one whose link only its recipient may use.
    #[must_use]
    pub fn with_secret_link(self) -> Self {
        Self { has_secret_link: true, ..self }
    }

    /// Builds the draft with `from` as the author.
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
            // RFC 3834 5: prevents automatic replies, including those of automations on this server.
            headers: CustomHeader::new("Auto-Submitted", "auto-generated").into_iter().chain(passed_on).collect(),
            attachments: self.attachment.into_iter().collect(),
        };
        let recipient = DraftRecipient { address: self.to, kind: RecipientKind::To, notify: DsnOptions::default() };
        Draft {
            ingress: Ingress::System,
            from: Some(from),
            envelope: SubmissionEnvelope { require_tls: self.require_tls, ..SubmissionEnvelope::default() },
            recipients: vec![recipient],
            content: DraftContent::Parts(Box::new(parts)),
            tags: Vec::new(),
            category: Category::Transactional,
            options: SendOptions { has_secret_link: self.has_secret_link, ..SendOptions::default() },
        }
    }
}
