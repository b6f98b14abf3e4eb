//! JSON views of received emails: the summary of lists and webhooks, and the full detail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use message::received::{
    AttachmentSummary, AuthResult, AuthenticationResults, ParsedReceivedEmail, ReceivedAttachment,
};
use model::received::{ReceivedEmail, SpamStatus, attachment_id};

use crate::prelude::*;

/// The fields that lists, webhooks and the detail share.
#[derive(Debug, Serialize, ToSchema)]
struct ReceivedEmailFields {
    /// Id (`inb_…`)
    email_id: ReceivedId,
    /// Addresses of the `To` header field
    to: Vec<String>,
    /// Author: `Ada <ada@example.com>`
    from: String,
    /// Subject
    subject: String,
    #[schema(const = "received")]
    status: &'static str,
    /// Envelope recipient
    rcpt_to: String,
    /// Addresses of the `Cc` header field
    cc: Vec<String>,
    /// Message-ID with angle brackets; empty if missing
    message_id: String,
    /// Message-ID of the email that this one replies to
    in_reply_to: Option<String>,
    /// Message-IDs of the thread, oldest first
    references: Vec<String>,
    /// Spam status
    spam_status: SpamStatus,
    /// Number of attachments; those beyond 2,000 parts are not counted
    attachment_count: u64,
    /// Time of receipt
    received_at: JsonTimestamp,
    /// Receiving domain
    domain: String,
    /// Envelope sender; null for the null reverse path of bounces
    envelope_from: Option<String>,
}

impl ReceivedEmailFields {
    fn from_received(received: &ReceivedEmail) -> Self {
        let heading = &received.heading;
        Self {
            email_id: received.id,
            to: heading.to.clone(),
            from: heading.from.clone(),
            subject: heading.subject.clone(),
            status: "received",
            rcpt_to: received.rcpt_to.to_string(),
            cc: heading.cc.clone(),
            message_id: heading.message_id.clone(),
            in_reply_to: heading.in_reply_to.clone(),
            references: heading.references.clone(),
            spam_status: received.spam_status,
            attachment_count: heading.attachment_count,
            received_at: JsonTimestamp(received.received_at),
            domain: received.rcpt_to.domain().to_string(),
            envelope_from: received.envelope_from.as_ref().map(ToString::to_string),
        }
    }
}

/// An attachment
#[derive(Debug, Serialize, ToSchema)]
struct AttachmentSummaryView {
    /// File name; generated if the sender gave none
    filename: String,
    /// MIME type
    content_type: String,
    /// Decoded size in bytes
    size: u64,
}

impl AttachmentSummaryView {
    fn from_summary(file: AttachmentSummary) -> Self {
        let AttachmentSummary { filename, content_type, size_bytes } = file;
        Self { filename, content_type, size: size_bytes }
    }
}

/// Authentication results
#[derive(Debug, Serialize, ToSchema)]
struct AuthSummaryView {
    /// SPF result of the envelope sender
    spf: AuthResult,
    /// DKIM result
    dkim: AuthResult,
    /// DMARC result of the author's domain
    dmarc: AuthResult,
}

/// A received email
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ReceivedEmail")]
pub struct ReceivedEmailView {
    #[serde(flatten)]
    fields: ReceivedEmailFields,
    /// The first attachments
    attachments: Vec<AttachmentSummaryView>,
    auth: AuthSummaryView,
}

impl ReceivedEmailView {
    /// The view of lists; the same fields as in the webhook event.
    pub fn from_received(received: &ReceivedEmail) -> Self {
        let AuthenticationResults { spf, dkim, dmarc, .. } = received.auth;
        let attachments = received.heading.attachments.iter().cloned();
        Self {
            fields: ReceivedEmailFields::from_received(received),
            attachments: attachments.map(AttachmentSummaryView::from_summary).collect(),
            auth: AuthSummaryView { spf, dkim, dmarc },
        }
    }
}

/// A page of received emails
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ReceivedEmailList")]
pub struct ReceivedEmailList {
    /// The received emails, in the requested order
    pub received_emails: Vec<ReceivedEmailView>,
    /// Whether there are more
    pub has_more: bool,
    /// The `cursor` of the next page
    pub next_cursor: Option<String>,
}

/// A header field
#[derive(Debug, Serialize, ToSchema)]
struct HeaderFieldView {
    /// Name
    name: String,
    /// Value, unfolded
    value: String,
}

/// An attachment
#[derive(Debug, Serialize, ToSchema)]
struct ReceivedAttachmentView {
    /// `att_` and its index, from 0
    id: String,
    #[serde(flatten)]
    file: AttachmentSummaryView,
    /// Declared character set; the bytes are unchanged
    charset: Option<String>,
    /// Content-ID, by which HTML refers to it
    content_id: Option<String>,
    /// Content-Disposition
    #[schema(enum = ["attachment", "inline"])]
    disposition: &'static str,
    /// Bytes in base64; null with `attachments=none`
    data: Option<String>,
}

impl ReceivedAttachmentView {
    fn from_attachment(index: usize, attachment: ReceivedAttachment, inline: bool) -> Self {
        Self {
            id: attachment_id(index),
            file: AttachmentSummaryView::from_summary(attachment.file),
            charset: attachment.charset,
            content_id: attachment.content_id,
            disposition: attachment.disposition,
            data: inline.then(|| STANDARD.encode(&attachment.data)),
        }
    }
}

/// Authentication results
#[derive(Debug, Serialize, ToSchema)]
struct AuthDetailView {
    /// Result of the check
    spf: AuthResult,
    /// Result of the check
    dkim: AuthResult,
    /// Result of the check
    dmarc: AuthResult,
    /// Result of the check
    arc: AuthResult,
}

/// A received email with texts, header fields and attachments
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ReceivedEmailDetail")]
pub struct ReceivedEmailDetail {
    #[serde(flatten)]
    fields: ReceivedEmailFields,
    /// Plain text
    text: Option<String>,
    /// HTML, unchanged: sanitize it before you display it
    html: Option<String>,
    /// Plain text without quoted replies
    stripped_text: Option<String>,
    /// Header fields in order
    headers: Vec<HeaderFieldView>,
    auth: AuthDetailView,
    /// Spam score
    spam_score: Option<f64>,
    /// Size of the message in bytes
    size: u64,
    /// Attachments
    attachments: Vec<ReceivedAttachmentView>,
}

impl ReceivedEmailDetail {
    /// Builds the view; `inline` includes the attachments' bytes.
    pub fn from_received(received: &ReceivedEmail, content: ParsedReceivedEmail, inline: bool) -> Self {
        let AuthenticationResults { spf, dkim, dmarc, arc } = received.auth;
        let files = content.attachments.into_iter().enumerate();
        let headers = content.headers.into_iter();
        Self {
            fields: ReceivedEmailFields::from_received(received),
            text: content.text,
            html: content.html,
            stripped_text: content.stripped_text,
            headers: headers.map(|(name, value)| HeaderFieldView { name, value }).collect(),
            auth: AuthDetailView { spf, dkim, dmarc, arc },
            spam_score: received.spam_score.map(model::received::SpamScore::points),
            size: received.size_bytes,
            attachments: files
                .map(|(index, file)| ReceivedAttachmentView::from_attachment(index, file, inline))
                .collect(),
        }
    }
}

object_response! { "A received email", pub ReceivedEmailResponse { received_email: ReceivedEmailDetail } as "OneReceivedEmail" }
