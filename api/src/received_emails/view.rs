//! JSON views of received emails: the summary of lists and webhooks, and the full detail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use message::received::{
    AttachmentSummary, AuthResult, AuthenticationResults, ParsedReceivedEmail, ReceivedAttachment,
};
use model::received::{ReceivedEmail, SpamStatus, attachment_id};

use crate::prelude::*;

object_view! {
    /// The fields that lists, webhooks and the detail share.
    struct ReceivedEmailFields, fn from_received(received: &ReceivedEmail; let heading = &received.heading) {
        /// Id (`inb_…`)
        email_id: ReceivedId = received.id,
        /// Addresses of the `To` header field
        to: Vec<String> = heading.to.clone(),
        /// Author: `Ada <ada@example.com>`
        from: String = heading.from.clone(),
        /// Subject
        subject: String = heading.subject.clone(),
        #[schema(const = "received")]
        status: &'static str = "received",
        /// Envelope recipient
        rcpt_to: String = received.rcpt_to.to_string(),
        /// Addresses of the `Cc` header field
        cc: Vec<String> = heading.cc.clone(),
        /// Message-ID with angle brackets; empty if missing
        message_id: String = heading.message_id.clone(),
        /// Message-ID of the email that this one replies to
        in_reply_to: Option<String> = heading.in_reply_to.clone(),
        /// Message-IDs of the thread, oldest first
        references: Vec<String> = heading.references.clone(),
        /// Spam status
        spam_status: SpamStatus = received.spam_status,
        /// Number of attachments; those beyond 2,000 parts are not counted
        attachment_count: u64 = heading.attachment_count,
        /// Time of receipt
        received_at: JsonTimestamp = JsonTimestamp(received.received_at),
        /// Receiving domain
        domain: String = received.rcpt_to.domain().to_string(),
        /// Envelope sender; null for the null reverse path of bounces
        envelope_from: Option<String> = received.envelope_from.as_ref().map(ToString::to_string),
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

object_view! {
    /// A received email
    #[schema(name = "ReceivedEmail")]
    pub struct ReceivedEmailView,
    /// The view of lists; the same fields as in the webhook event.
    pub fn from_received(
        received: &ReceivedEmail;
        let AuthenticationResults { spf, dkim, dmarc, .. } = received.auth;
        let attachments = received.heading.attachments.iter().cloned()
    ) {
        #[serde(flatten)]
        fields: ReceivedEmailFields = ReceivedEmailFields::from_received(received),
        /// The first attachments
        attachments: Vec<AttachmentSummaryView> = attachments.map(AttachmentSummaryView::from_summary).collect(),
        auth: AuthSummaryView = AuthSummaryView { spf, dkim, dmarc },
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

object_view! {
    /// An attachment
    struct ReceivedAttachmentView, fn from_attachment(index: usize, attachment: ReceivedAttachment, inline: bool) {
        /// `att_` and its index, from 0
        id: String = attachment_id(index),
        #[serde(flatten)]
        file: AttachmentSummaryView = AttachmentSummaryView::from_summary(attachment.file),
        /// Declared character set; the bytes are unchanged
        charset: Option<String> = attachment.charset,
        /// Content-ID, by which HTML refers to it
        content_id: Option<String> = attachment.content_id,
        /// Content-Disposition
        #[schema(enum = ["attachment", "inline"])]
        disposition: &'static str = attachment.disposition,
        /// Bytes in base64; null with `attachments=none`
        data: Option<String> = inline.then(|| STANDARD.encode(&attachment.data)),
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

object_view! {
    /// A received email with texts, header fields and attachments
    #[schema(name = "ReceivedEmailDetail")]
    pub struct ReceivedEmailDetail,
    /// Builds the view; `inline` includes the attachments' bytes.
    pub fn from_received(
        received: &ReceivedEmail, content: ParsedReceivedEmail, inline: bool;
        let AuthenticationResults { spf, dkim, dmarc, arc } = received.auth;
        let files = content.attachments.into_iter().enumerate();
        let headers = content.headers.into_iter()
    ) {
        #[serde(flatten)]
        fields: ReceivedEmailFields = ReceivedEmailFields::from_received(received),
        /// Plain text
        text: Option<String> = content.text,
        /// HTML, unchanged: sanitize it before you display it
        html: Option<String> = content.html,
        /// Plain text without quoted replies
        stripped_text: Option<String> = content.stripped_text,
        /// Header fields in order
        headers: Vec<HeaderFieldView> = headers.map(|(name, value)| HeaderFieldView { name, value }).collect(),
        auth: AuthDetailView = AuthDetailView { spf, dkim, dmarc, arc },
        /// Spam score
        spam_score: Option<f64> = received.spam_score.map(model::received::SpamScore::points),
        /// Size of the message in bytes
        size: u64 = received.size_bytes,
        /// Attachments
        attachments: Vec<ReceivedAttachmentView> = files
            .map(|(index, file)| ReceivedAttachmentView::from_attachment(index, file, inline))
            .collect(),
    }
}

object_response! { "A received email", pub ReceivedEmailResponse { received_email: ReceivedEmailDetail } as "OneReceivedEmail" }
