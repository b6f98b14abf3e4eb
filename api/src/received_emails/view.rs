//! Received emails as clients see them: in lists what webhooks say, one by one all there is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail::received::{Attachment, Auth, AuthResult, Reading, Received, SpamStatus, attachment_id, data_of};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::schema::{self, Describe, Schemas};

/// A received email in a list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ReceivedView(Map<String, Value>);

impl ReceivedView {
    /// What is shown of one.
    #[must_use]
    pub fn of(received: &Received) -> Self {
        Self(data_of(received))
    }
}

fn file() -> Vec<(&'static str, Value)> {
    vec![
        ("filename", schema::string("Its name; a made-up one where the sender gave none")),
        ("content_type", schema::string("Its MIME type")),
        ("size", schema::count("Its size, decoded, in bytes")),
    ]
}

fn result(what: &str) -> Value {
    schema::words(&AuthResult::WORDS, what)
}

fn texts(description: &str) -> Value {
    schema::list(json!({"type": "string"}), description)
}

/// The fields of lists and webhooks.
fn fields() -> Vec<(&'static str, Value)> {
    let auth = schema::object(
        "Where it comes from",
        [
            ("spf", result("May its host send for the envelope's sender?")),
            ("dkim", result("Does a signature hold?")),
            ("dmarc", result("Does one of both stand for the author's domain?")),
        ],
    );
    vec![
        ("email_id", schema::string("Its id (`inb_…`)")),
        ("to", texts("To whom, as its header says")),
        ("from", schema::string("Its author: `Ada <ada@example.com>`")),
        ("subject", schema::string("Its subject")),
        ("status", json!({"type": "string", "const": "received"})),
        ("rcpt_to", schema::string("The address that it came in for")),
        ("cc", texts("To whom else, as its header says")),
        ("message_id", schema::string("Its message id, with angle brackets; empty when it has none")),
        ("in_reply_to", schema::nullable_string("The message that it answers")),
        ("references", texts("The thread before it, the oldest first")),
        ("spam_status", schema::words(&SpamStatus::WORDS, "Whether it is spam")),
        (
            "attachment_count",
            schema::count("How many files it has; those beyond 2,000 parts are not counted"),
        ),
        ("attachments", schema::list(schema::object("A file", file()), "The first of its files")),
        ("received_at", schema::time("When it was received")),
        ("domain", schema::string("The domain that it came in for")),
        ("envelope_from", schema::nullable_string("The envelope's sender; null is the null path of reports")),
        ("auth", auth),
    ]
}

impl Describe for ReceivedView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("ReceivedEmail", |_| schema::object("A received email", fields()))
    }
}

/// A page of received emails.
#[derive(Debug, Serialize)]
pub struct ReceivedList {
    /// They.
    pub received_emails: Vec<ReceivedView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

impl Describe for ReceivedList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = ReceivedView::schema(schemas);
        schemas.named("ReceivedEmailList", |_| {
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
struct FieldView {
    name: String,
    value: String,
}

#[derive(Debug, Serialize)]
struct AttachmentView {
    id: String,
    filename: String,
    content_type: String,
    charset: Option<String>,
    size: u64,
    content_id: Option<String>,
    disposition: &'static str,
    data: Option<String>,
}

impl AttachmentView {
    fn of(place: usize, attachment: Attachment, inline: bool) -> Self {
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
pub struct ReceivedDetail {
    #[serde(flatten)]
    listed: Map<String, Value>,
    text: Option<String>,
    html: Option<String>,
    stripped_text: Option<String>,
    headers: Vec<FieldView>,
    auth: Auth,
    spam_score: Option<f64>,
    size: u64,
    attachments: Vec<AttachmentView>,
}

impl ReceivedDetail {
    /// What is shown of one; of its files also the bytes, if they are to be `inline`.
    #[must_use]
    pub fn of(received: &Received, reading: Reading, inline: bool) -> Self {
        // These two are here with more in them.
        let again = |name: &str| matches!(name, "auth" | "attachments");
        let listed = data_of(received).into_iter().filter(|(name, _)| !again(name)).collect();
        let files = reading.attachments.into_iter().enumerate();
        let headers = reading.headers.into_iter();
        Self {
            listed,
            text: reading.text,
            html: reading.html,
            stripped_text: reading.stripped_text,
            headers: headers.map(|(name, value)| FieldView { name, value }).collect(),
            auth: received.auth,
            spam_score: received.spam_score.map(mail::received::Score::points),
            size: received.size_bytes,
            attachments: files.map(|(place, file)| AttachmentView::of(place, file, inline)).collect(),
        }
    }
}

impl Describe for ReceivedDetail {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("ReceivedEmailDetail", |_| {
            let auth = schema::object(
                "Where it comes from",
                ["spf", "dkim", "dmarc", "arc"].map(|name| (name, result("What its check said"))),
            );
            let header = schema::object(
                "A field",
                [("name", schema::string("Its name")), ("value", schema::string("Its value, unfolded"))],
            );
            let mut attachment = vec![("id", schema::string("`att_` and its place, from 0"))];
            attachment.extend(file());
            attachment.extend([
                (
                    "charset",
                    schema::nullable_string(
                        "The character set that the sender claims; the bytes are as sent",
                    ),
                ),
                ("content_id", schema::nullable_string("Its Content-ID, by which HTML shows it")),
                ("disposition", schema::words(&["attachment", "inline"], "How it is meant")),
                ("data", schema::nullable_string("Its bytes in base 64; null with `attachments=none`")),
            ]);
            let mut all = fields();
            all.retain(|(name, _)| !["auth", "attachments"].contains(name));
            all.extend([
                ("text", schema::nullable_string("Its plain text")),
                (
                    "html",
                    schema::nullable_string("Its HTML, as the sender wrote it: not safe to show as it is"),
                ),
                ("stripped_text", schema::nullable_string("Its plain text without what it answers")),
                ("headers", schema::list(header, "The fields of its header, in their order")),
                ("auth", auth),
                (
                    "spam_score",
                    json!({"type": ["number", "null"], "description": "How much it looks like spam"}),
                ),
                ("size", schema::count("The message's size, in bytes")),
                ("attachments", schema::list(schema::object("A file", attachment), "Its files")),
            ]);
            schema::object("A received email, whole", all)
        })
    }
}

/// A received email by itself.
#[derive(Debug, Serialize)]
pub struct OneReceived {
    /// It.
    pub received_email: ReceivedDetail,
}

impl Describe for OneReceived {
    fn schema(schemas: &mut Schemas) -> Value {
        let email = ReceivedDetail::schema(schemas);
        schemas.named("OneReceivedEmail", |_| schema::object("A received email", [("received_email", email)]))
    }
}
