//! Held email: an email of a request that waits for approval, as it would be sent: recipients and content after its
//! template, or the email that it answers or repeats, was read.
//!
//! Its hash covers everything that a person decides about. What the service adds to every email (ids, dates, tracked
//! links, signatures) is not part of it.

use jiff::Timestamp;
use message::address::{Address, Mailbox};
use message::compose::Attachment;
use message::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::draft::{Draft, DraftContent, OnSuppressed};
use crate::email::{Category, Tag};

/// An attachment without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAttachment {
    pub name: String,
    pub content_type: String,
    pub size_bytes: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
}

impl HeldAttachment {
    fn new(file: &Attachment) -> Self {
        Self {
            name: file.name.clone(),
            content_type: file.content_type.clone(),
            size_bytes: file.data.len() as u64,
            sha256: hexadecimal::encode(Sha256::digest(&file.data)),
            content_id: file.content_id.clone(),
        }
    }
}

/// An email of a request that waits for approval.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEmail {
    pub from: Mailbox,
    /// All recipients of the envelope, without duplicates.
    pub recipients: Vec<Address>,
    pub to: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply_to: Vec<Mailbox>,
    pub subject: String,
    pub text: Option<String>,
    pub html: Option<String>,
    /// Custom header fields by name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<HeldAttachment>,
    pub category: Category,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    pub scheduled_at: Option<Timestamp>,
    pub expires_in_s: Option<u64>,
    /// True if suppressed recipients are skipped.
    pub skips_suppressed: bool,
    /// True if the service adds an unsubscribe link.
    pub unsubscribe: bool,
}

impl HeldEmail {
    /// The email of a draft; `None` for a complete message, which only SMTP submits.
    pub fn from_draft(draft: &Draft) -> Option<Self> {
        let DraftContent::Parts(parts) = &draft.content else { return None };
        let headers = parts.headers.iter().map(|header| (header.name().to_owned(), header.value().to_owned()));
        Some(Self {
            from: parts.from.clone(),
            recipients: draft.recipients.iter().map(|recipient| recipient.address.clone()).collect(),
            to: parts.to.clone(),
            cc: parts.cc.clone(),
            bcc: parts.bcc.clone(),
            reply_to: parts.reply_to.clone(),
            subject: parts.subject.clone(),
            text: parts.text.clone(),
            html: parts.html.clone(),
            headers: headers.collect(),
            attachments: parts.attachments.iter().map(HeldAttachment::new).collect(),
            category: draft.category,
            tags: draft.tags.clone(),
            scheduled_at: draft.options.scheduled_at,
            expires_in_s: draft.options.expires_in.map(|lifetime| lifetime.as_secs()),
            skips_suppressed: draft.options.on_suppressed == OnSuppressed::Skip,
            unsubscribe: draft.manages_unsubscribe(),
        })
    }

    /// SHA-256 over all fields, in hexadecimal.
    pub fn hash(&self) -> String {
        // Serialization of plain structs into memory cannot fail.
        hexadecimal::encode(Sha256::digest(serde_json::to_vec(self).unwrap_or_default()))
    }
}

/// The emails that a person approved, while the request that sends them is carried out. No other email is sent then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedEmails {
    hashes: Vec<String>,
    /// True if their sends were counted against the client's limit when the request was held.
    pub are_counted: bool,
}

impl ApprovedEmails {
    pub fn new(emails: &[HeldEmail], are_counted: bool) -> Self {
        Self { hashes: emails.iter().map(HeldEmail::hash).collect(), are_counted }
    }

    pub fn include(&self, draft: &Draft) -> bool {
        HeldEmail::from_draft(draft).is_some_and(|email| self.hashes.contains(&email.hash()))
    }
}

#[cfg(test)]
mod tests {
    use message::compose::{Composition, CustomHeader};
    use message::header::SubmittedMessage;

    use super::*;
    use crate::draft::{DraftRecipient, SendOptions, SubmissionEnvelope};
    use crate::email::Ingress;
    use crate::recipient::{DsnOptions, RecipientKind};

    fn mailbox(text: &str) -> Mailbox {
        Mailbox::from(text.parse::<Address>().unwrap())
    }

    fn recipient(text: &str) -> DraftRecipient {
        DraftRecipient { address: text.parse().unwrap(), kind: RecipientKind::To, notify: DsnOptions::default() }
    }

    fn draft(change: impl FnOnce(&mut Draft, &mut Composition)) -> Draft {
        let mut parts = Composition {
            from: mailbox("ada@example.com"),
            to: vec![mailbox("grace@example.net")],
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: Vec::new(),
            subject: "Hello".to_owned(),
            html: None,
            text: Some("Hi".to_owned()),
            headers: Vec::new(),
            attachments: Vec::new(),
        };
        let mut draft = Draft {
            ingress: Ingress::Api,
            from: Some(parts.from.clone()),
            envelope: SubmissionEnvelope::default(),
            recipients: vec![recipient("grace@example.net")],
            content: DraftContent::Raw { message: SubmittedMessage::new(""), received: String::new() },
            tags: Vec::new(),
            category: Category::Transactional,
            options: SendOptions::default(),
        };
        change(&mut draft, &mut parts);
        draft.content = DraftContent::Parts(Box::new(parts));
        draft
    }

    #[test]
    fn only_the_approved_email_is_included() {
        let email = HeldEmail::from_draft(&draft(|_, _| {})).unwrap();
        let approved = ApprovedEmails::new(std::slice::from_ref(&email), false);
        assert!(approved.include(&draft(|_, _| {})));
        let file = |data: &[u8]| Attachment {
            name: "a".to_owned(),
            content_type: "text/plain".to_owned(),
            data: data.to_vec(),
            content_id: None,
        };
        let edits: [fn(&mut Draft, &mut Composition); 9] = [
            |_, parts| parts.subject.push('!'),
            |_, parts| parts.text = Some("Ho".to_owned()),
            |_, parts| parts.html = Some("Hi".to_owned()),
            |_, parts| parts.from = mailbox("root@example.com"),
            |_, parts| parts.reply_to = vec![mailbox("eve@example.org")],
            |_, parts| parts.headers = vec![CustomHeader::new("X-A", "b").unwrap()],
            |draft, _| draft.recipients.push(recipient("eve@example.org")),
            |draft, _| draft.category = Category::Newsletter,
            |draft, _| draft.options.unsubscribe = Some(true),
        ];
        for edit in edits {
            let edited = draft(edit);
            assert!(!approved.include(&edited), "{edited:?}");
        }
        let with_file = HeldEmail::from_draft(&draft(|_, parts| parts.attachments = vec![file(b"1")])).unwrap();
        let approved = ApprovedEmails::new(&[with_file], false);
        assert!(approved.include(&draft(|_, parts| parts.attachments = vec![file(b"1")])));
        assert!(!approved.include(&draft(|_, parts| parts.attachments = vec![file(b"2")])));
        let raw = Draft {
            content: DraftContent::Raw { message: SubmittedMessage::new(""), received: String::new() },
            ..draft(|_, _| {})
        };
        assert!(!approved.include(&raw), "only SMTP submits complete messages");
    }
}
