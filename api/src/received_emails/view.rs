//! Received emails as clients see them: in lists what webhooks say, one by one all there is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail::received::{
    AuthResult, AuthenticationResults, ParsedReceivedEmail, ReceivedAttachment, ReceivedEmail, SpamStatus,
    attachment_id, received_event_data,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::schema::{self, Schemas, ToSchema};

/// A received email in a list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ReceivedEmailView(Map<String, Value>);

impl ReceivedEmailView {
    /// What is shown of one.
    #[must_use]
    pub fn from_received(received: &ReceivedEmail) -> Self {
        Self(received_event_data(received))
    }
}

fn attachment_fields_schema() -> Vec<(&'static str, Value)> {
    vec![
        ("filename", schema::string("Its name; a made-up one where the sender gave none")),
        ("content_type", schema::string("Its MIME type")),
        ("size", schema::count("Its size, decoded, in bytes")),
    ]
}

fn auth_result_schema(what: &str) -> Value {
    schema::string_enum(&AuthResult::WORDS, what)
}

fn text_list_schema(description: &str) -> Value {
    schema::list(json!({"type": "string"}), description)
}

/// The fields of lists and webhooks.
fn summary_fields_schema() -> Vec<(&'static str, Value)> {
    let auth = schema::object(
        "Where it comes from",
        [
            ("spf", auth_result_schema("May its host send for the envelope's sender?")),
            ("dkim", auth_result_schema("Does a signature hold?")),
            ("dmarc", auth_result_schema("Does one of both stand for the author's domain?")),
        ],
    );
    vec![
        ("email_id", schema::string("Its id (`inb_…`)")),
        ("to", text_list_schema("To whom, as its header says")),
        ("from", schema::string("Its author: `Ada <ada@example.com>`")),
        ("subject", schema::string("Its subject")),
        ("status", json!({"type": "string", "const": "received"})),
        ("rcpt_to", schema::string("The address that it came in for")),
        ("cc", text_list_schema("To whom else, as its header says")),
        ("message_id", schema::string("Its message id, with angle brackets; empty when it has none")),
        ("in_reply_to", schema::nullable_string("The message that it answers")),
        ("references", text_list_schema("The thread before it, the oldest first")),
        ("spam_status", schema::string_enum(&SpamStatus::WORDS, "Whether it is spam")),
        ("attachment_count", schema::count("How many files it has; those beyond 2,000 parts are not counted")),
        ("attachments", schema::list(schema::object("A file", attachment_fields_schema()), "The first of its files")),
        ("received_at", schema::time("When it was received")),
        ("domain", schema::string("The domain that it came in for")),
        ("envelope_from", schema::nullable_string("The envelope's sender; null is the null path of reports")),
        ("auth", auth),
    ]
}

impl ToSchema for ReceivedEmailView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("ReceivedEmail", |_| schema::object("A received email", summary_fields_schema()))
    }
}

/// A page of received emails.
#[derive(Debug, Serialize)]
pub struct ReceivedEmailList {
    /// They.
    pub received_emails: Vec<ReceivedEmailView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

impl ToSchema for ReceivedEmailList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = ReceivedEmailView::schema(schemas);
        schemas.component("ReceivedEmailList", |_| {
            schema::object(
                "A page",
                [
                    ("received_emails", schema::list(entry, "The entries, in the order asked for")),
                    ("has_more", schema::boolean("Whether there are more")),
                    ("next_cursor", schema::nullable_string("Where they begin: give it as `cursor`")),
                ],
            )
        })
    }
}

#[derive(Debug, Serialize)]
struct HeaderFieldView {
    name: String,
    value: String,
}

#[derive(Debug, Serialize)]
struct ReceivedAttachmentView {
    id: String,
    filename: String,
    content_type: String,
    charset: Option<String>,
    size: u64,
    content_id: Option<String>,
    disposition: &'static str,
    data: Option<String>,
}

impl ReceivedAttachmentView {
    fn from_attachment(place: usize, attachment: ReceivedAttachment, inline: bool) -> Self {
        Self {
            id: attachment_id(place),
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

/// All there is of a received email.
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
    /// What is shown of one; of its files also the bytes, if they are to be `inline`.
    #[must_use]
    pub fn from_received(received: &ReceivedEmail, reading: ParsedReceivedEmail, inline: bool) -> Self {
        // These two are here with more in them.
        let again = |name: &str| matches!(name, "auth" | "attachments");
        let listed = received_event_data(received).into_iter().filter(|(name, _)| !again(name)).collect();
        let files = reading.attachments.into_iter().enumerate();
        let headers = reading.headers.into_iter();
        Self {
            listed,
            text: reading.text,
            html: reading.html,
            stripped_text: reading.stripped_text,
            headers: headers.map(|(name, value)| HeaderFieldView { name, value }).collect(),
            auth: received.auth,
            spam_score: received.spam_score.map(mail::received::SpamScore::points),
            size: received.size_bytes,
            attachments: files
                .map(|(place, file)| ReceivedAttachmentView::from_attachment(place, file, inline))
                .collect(),
        }
    }
}

impl ToSchema for ReceivedEmailDetail {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("ReceivedEmailDetail", |_| {
            let auth = schema::object(
                "Where it comes from",
                ["spf", "dkim", "dmarc", "arc"].map(|name| (name, auth_result_schema("What its check said"))),
            );
            let header = schema::object(
                "A field",
                [("name", schema::string("Its name")), ("value", schema::string("Its value, unfolded"))],
            );
            let mut attachment = vec![("id", schema::string("`att_` and its place, from 0"))];
            attachment.extend(attachment_fields_schema());
            attachment.extend([
                ("charset", schema::nullable_string("The character set that the sender claims; the bytes are as sent")),
                ("content_id", schema::nullable_string("Its Content-ID, by which HTML shows it")),
                ("disposition", schema::string_enum(&["attachment", "inline"], "How it is meant")),
                ("data", schema::nullable_string("Its bytes in base 64; null with `attachments=none`")),
            ]);
            let mut all = summary_fields_schema();
            all.retain(|(name, _)| !["auth", "attachments"].contains(name));
            all.extend([
                ("text", schema::nullable_string("Its plain text")),
                ("html", schema::nullable_string("Its HTML, as the sender wrote it: not safe to show as it is")),
                ("stripped_text", schema::nullable_string("Its plain text without what it answers")),
                ("headers", schema::list(header, "The fields of its header, in their order")),
                ("auth", auth),
                ("spam_score", json!({"type": ["number", "null"], "description": "How much it looks like spam"})),
                ("size", schema::count("The message's size, in bytes")),
                ("attachments", schema::list(schema::object("A file", attachment), "Its files")),
            ]);
            schema::object("A received email, whole", all)
        })
    }
}

/// A received email by itself.
#[derive(Debug, Serialize)]
pub struct ReceivedEmailResponse {
    /// It.
    pub received_email: ReceivedEmailDetail,
}

impl ToSchema for ReceivedEmailResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let email = ReceivedEmailDetail::schema(schemas);
        schemas.component("OneReceivedEmail", |_| schema::object("A received email", [("received_email", email)]))
    }
}
