//! JSON views of received emails: the summary of lists and webhooks, and the full detail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail::received::{
    AuthResult, AuthenticationResults, ParsedReceivedEmail, ReceivedAttachment, ReceivedEmail, SpamStatus,
    attachment_id, received_event_data,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::schema::{self, Schemas, ToSchema};

/// A received email in a list; the same fields as in its webhook event.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ReceivedEmailView(Map<String, Value>);

impl ReceivedEmailView {
    #[must_use]
    pub fn from_received(received: &ReceivedEmail) -> Self {
        Self(received_event_data(received))
    }
}

fn attachment_fields_schema() -> Vec<(&'static str, Value)> {
    vec![
        ("filename", schema::string("File name; generated if the sender gave none")),
        ("content_type", schema::string("MIME type")),
        ("size", schema::count("Decoded size in bytes")),
    ]
}

fn auth_result_schema(description: &str) -> Value {
    schema::string_enum(&AuthResult::WORDS, description)
}

fn text_list_schema(description: &str) -> Value {
    schema::list(json!({"type": "string"}), description)
}

/// The fields that lists and webhooks share.
fn summary_fields_schema() -> Vec<(&'static str, Value)> {
    let auth = schema::object(
        "Authentication results",
        [
            ("spf", auth_result_schema("SPF result of the envelope sender")),
            ("dkim", auth_result_schema("DKIM result")),
            ("dmarc", auth_result_schema("DMARC result of the author's domain")),
        ],
    );
    vec![
        ("email_id", schema::string("Id (`inb_…`)")),
        ("to", text_list_schema("Addresses of the `To` header field")),
        ("from", schema::string("Author: `Ada <ada@example.com>`")),
        ("subject", schema::string("Subject")),
        ("status", json!({"type": "string", "const": "received"})),
        ("rcpt_to", schema::string("Envelope recipient")),
        ("cc", text_list_schema("Addresses of the `Cc` header field")),
        ("message_id", schema::string("Message-ID with angle brackets; empty if missing")),
        ("in_reply_to", schema::nullable_string("Message-ID of the email that this one replies to")),
        ("references", text_list_schema("Message-IDs of the thread, oldest first")),
        ("spam_status", schema::string_enum(&SpamStatus::WORDS, "Spam status")),
        ("attachment_count", schema::count("Number of attachments; those beyond 2,000 parts are not counted")),
        (
            "attachments",
            schema::list(schema::object("An attachment", attachment_fields_schema()), "The first attachments"),
        ),
        ("received_at", schema::time("Time of receipt")),
        ("domain", schema::string("Receiving domain")),
        ("envelope_from", schema::nullable_string("Envelope sender; null for the null reverse path of bounces")),
        ("auth", auth),
    ]
}

impl ToSchema for ReceivedEmailView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("ReceivedEmail", |_| schema::object("A received email", summary_fields_schema()))
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
    /// File name; generated if the sender gave none
    filename: String,
    /// MIME type
    content_type: String,
    /// Declared character set; the bytes are unchanged
    charset: Option<String>,
    /// Decoded size in bytes
    size: u64,
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
            filename: attachment.file.filename,
            content_type: attachment.file.content_type,
            charset: attachment.charset,
            size: attachment.file.size_bytes,
            content_id: attachment.content_id,
            disposition: attachment.disposition,
            data: inline.then(|| STANDARD.encode(&attachment.data)),
        }
    }
}

/// A received email with its texts, header fields and attachments.
#[derive(Debug, Serialize)]
pub struct ReceivedEmailDetail {
    #[serde(flatten)]
    listed: Map<String, Value>,
    text: Option<String>,
    html: Option<String>,
    stripped_text: Option<String>,
    headers: Vec<HeaderFieldView>,
    auth: AuthenticationResults,
    spam_score: Option<f64>,
    size: u64,
    attachments: Vec<ReceivedAttachmentView>,
}

impl ReceivedEmailDetail {
    /// Builds the view; `inline` includes the attachments' bytes.
    #[must_use]
    pub fn from_received(received: &ReceivedEmail, content: ParsedReceivedEmail, inline: bool) -> Self {
        // These two fields are replaced by fuller versions below.
        let again = |name: &str| matches!(name, "auth" | "attachments");
        let listed = received_event_data(received).into_iter().filter(|(name, _)| !again(name)).collect();
        let files = content.attachments.into_iter().enumerate();
        let headers = content.headers.into_iter();
        Self {
            listed,
            text: content.text,
            html: content.html,
            stripped_text: content.stripped_text,
            headers: headers.map(|(name, value)| HeaderFieldView { name, value }).collect(),
            auth: received.auth,
            spam_score: received.spam_score.map(mail::received::SpamScore::points),
            size: received.size_bytes,
            attachments: files
                .map(|(index, file)| ReceivedAttachmentView::from_attachment(index, file, inline))
                .collect(),
        }
    }
}

impl ToSchema for ReceivedEmailDetail {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("ReceivedEmailDetail", |_| {
            let auth = schema::object(
                "Authentication results",
                ["spf", "dkim", "dmarc", "arc"].map(|name| (name, auth_result_schema("Result of the check"))),
            );
            let header = schema::object(
                "A header field",
                [("name", schema::string("Name")), ("value", schema::string("Value, unfolded"))],
            );
            let mut attachment = vec![("id", schema::string("`att_` and its index, from 0"))];
            attachment.extend(attachment_fields_schema());
            attachment.extend([
                ("charset", schema::nullable_string("Declared character set; the bytes are unchanged")),
                ("content_id", schema::nullable_string("Content-ID, by which HTML refers to it")),
                ("disposition", schema::string_enum(&["attachment", "inline"], "Content-Disposition")),
                ("data", schema::nullable_string("Bytes in base64; null with `attachments=none`")),
            ]);
            let mut all = summary_fields_schema();
            all.retain(|(name, _)| !["auth", "attachments"].contains(name));
            all.extend([
                ("text", schema::nullable_string("Plain text")),
                ("html", schema::nullable_string("HTML, unchanged: sanitize it before you display it")),
                ("stripped_text", schema::nullable_string("Plain text without quoted replies")),
                ("headers", schema::list(header, "Header fields in order")),
                ("auth", auth),
                ("spam_score", json!({"type": ["number", "null"], "description": "Spam score"})),
                ("size", schema::count("Size of the message in bytes")),
                ("attachments", schema::list(schema::object("An attachment", attachment), "Attachments")),
            ]);
            schema::object("A received email with texts, header fields and attachments", all)
        })
    }
}

/// A received email
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "OneReceivedEmail")]
pub struct ReceivedEmailResponse {
    pub received_email: ReceivedEmailDetail,
}
