//! Send request: parses the body of `POST /emails`.
//!
//! All errors are reported at once. Unknown fields are ignored and named in `warnings`.

use std::borrow::Cow;

use http::HeaderMap;
use mail::attachment_policy::ATTACHMENTS_MAX;
use mail::attachment_policy::filename_policy::EXTENSIONS_BLOCKED;
use mail::email::EmailStatus;
use mail::id::EmailId;
use mail::tags::TAGS_MAX;
use queue::idempotency::IdempotencyKey;
use queue::intake::SubmitReceipt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attachments::{self, NAME_BYTES_MAX};
use super::fingerprint;
use super::recipients::{RECIPIENTS_MAX, REPLY_TO_MAX, read_author, read_recipients, read_reply_to};
use super::send_email::SendEmail;
use super::send_options::{EXPIRES_IN_S_MAX, read_send_options};
use super::tags_and_headers::{HEADERS_MAX, read_category, read_headers, read_tags};
use super::template::{read_template, template_schema, variables_schema};
use crate::fields::{self, FieldDiagnostics, FieldNames, JsonObject, ObjectFields};
use crate::idempotency;
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec, SEND_BYTES_MAX};
use crate::schema::{self, Schemas, ToSchema};

/// Maximum size of `html` and of `text`.
pub const CONTENT_BYTES_MAX: usize = 5 << 20;
/// Maximum size of `subject`: a line of RFC 5322 2.1.1 with four-byte characters.
pub const SUBJECT_BYTES_MAX: usize = 4 * 998;

/// Field name of the idempotency key of one email of a batch.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency_key";

/// Field names of a send request and their aliases.
pub(crate) const NAMES: FieldNames = FieldNames {
    known: &[
        ("from", "from"),
        ("to", "to"),
        ("cc", "cc"),
        ("bcc", "bcc"),
        ("subject", "subject"),
        ("html", "html"),
        ("htmlBody", "html"),
        ("html_body", "html"),
        ("text", "text"),
        ("textBody", "text"),
        ("text_body", "text"),
        ("plain_body", "text"),
        ("reply_to", "reply_to"),
        ("replyTo", "reply_to"),
        ("headers", "headers"),
        ("tags", "tags"),
        ("attachments", "attachments"),
        ("category", "category"),
        ("unsubscribe", "unsubscribe"),
        ("scheduled_at", "scheduled_at"),
        ("scheduledAt", "scheduled_at"),
        ("on_suppressed", "on_suppressed"),
        ("expires_in", "expires_in"),
        ("template", "template"),
        ("template_id", "template"),
        ("templateId", "template"),
        ("template_alias", "template"),
        ("templateAlias", "template"),
        ("variables", "variables"),
        ("template_data", "variables"),
        ("templateData", "variables"),
        ("data_variables", "variables"),
        ("dataVariables", "variables"),
        ("dynamic_template_data", "variables"),
        (IDEMPOTENCY_KEY, IDEMPOTENCY_KEY),
        ("idempotencyKey", IDEMPOTENCY_KEY),
    ],
    foreign: &[
        ("From", "from"),
        ("To", "to"),
        ("Cc", "cc"),
        ("Bcc", "bcc"),
        ("Subject", "subject"),
        ("HtmlBody", "html"),
        ("HTMLBody", "html"),
        ("Html", "html"),
        ("TextBody", "text"),
        ("Text", "text"),
        ("ReplyTo", "reply_to"),
        ("Headers", "headers"),
        ("Tag", "tags"),
        ("The tags", "tags"),
        ("Metadata", "tags"),
        ("Attachments", "attachments"),
        ("ScheduledAt", "scheduled_at"),
        ("TemplateId", "template"),
        ("TemplateAlias", "template"),
        ("TemplateModel", "variables"),
    ],
};

/// A parsed send request.
#[derive(Debug)]
pub struct SendRequest {
    pub email: SendEmail,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
    /// The idempotency key, if one was given.
    pub claim: Option<IdempotencyKey>,
}

impl SendRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// All errors of the body.
    pub fn from_json(body: &[u8]) -> Result<Self, Problem> {
        Self::from_parts(body, &HeaderMap::new())
    }

    fn from_parts(body: &[u8], header: &HeaderMap) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_body(body)?, &NAMES, "", &mut notes);
        if fields.is_present_or_misnamed(IDEMPOTENCY_KEY) {
            let text = "is accepted only in a batch; use the header `Idempotency-Key`";
            notes.errors.add(IDEMPOTENCY_KEY, text);
        }
        let request = Self::from_fields(&fields, notes)?;
        let claim = idempotency::parse_claim(header, || request.fingerprint())?;
        Ok(Self { claim, ..request })
    }

    /// Parses one email of a batch.
    pub(super) fn from_batch_item(item: JsonObject<'_>) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(item, &NAMES, "", &mut notes);
        let request = Self::from_fields(&fields, notes)?;
        let Some(key) = fields.value(IDEMPOTENCY_KEY) else { return Ok(request) };
        let key = fields::parse_text(key).ok().and_then(|text| idempotency::validate_key(&text));
        let key = key.ok_or_else(|| idempotency::invalid_key(IDEMPOTENCY_KEY))?;
        let claim = Some(IdempotencyKey { key, fingerprint: request.fingerprint() });
        Ok(Self { claim, ..request })
    }

    fn fingerprint(&self) -> String {
        fingerprint::email_fingerprint(&self.email, &self.warnings)
    }

    fn from_fields(fields: &ObjectFields<'_>, mut notes: FieldDiagnostics) -> Result<Self, Problem> {
        let template = read_template(fields, &mut notes);
        // A template can provide missing fields.
        let inherits = template.is_some() || fields.is_present_or_misnamed("template");
        let from =
            if inherits && !fields.is_present_or_misnamed("from") { None } else { read_author(fields, &mut notes) };
        let email = SendEmail {
            from,
            recipients: read_recipients(fields, &mut notes),
            reply_to: read_reply_to(fields, &mut notes),
            subject: if inherits && !fields.is_present_or_misnamed("subject") {
                None
            } else {
                read_subject(fields, &mut notes)
            },
            html: None,
            text: None,
            headers: read_headers(fields, &mut notes),
            tags: read_tags(fields, &mut notes),
            category: read_category(fields, &mut notes),
            options: read_send_options(fields, &mut notes),
            attachments: attachments::read_attachments(fields, &mut notes),
            template,
        };
        let (html, text) =
            if inherits { reject_contents(fields, &mut notes) } else { read_contents(fields, &mut notes) };
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { email: SendEmail { html, text, ..email }, warnings: notes.warnings, claim: None })
    }
}

fn read_subject(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<String> {
    let outcome = match fields.value("subject") {
        None if fields.is_present_or_misnamed("subject") => return None,
        None => Err("is required".to_owned()),
        Some(value) => fields::parse_header_line(value, SUBJECT_BYTES_MAX)
            .and_then(|subject| if subject.trim().is_empty() { Err("is empty".to_owned()) } else { Ok(subject) }),
    };
    outcome.map_err(|text| notes.errors.add("subject", text)).ok()
}

/// Rejects bodies: with a template they always come from the template.
fn reject_contents(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> (Option<String>, Option<String>) {
    for name in ["html", "text"] {
        if fields.value(name).is_some() {
            notes.errors.add(name, "cannot be combined with `template`");
        }
    }
    (None, None)
}

/// Parses `html` and `text`; at least one is required.
fn read_contents(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> (Option<String>, Option<String>) {
    let mut content = |name: &str| {
        let text = fields::parse_text(fields.value(name)?);
        let text = text.and_then(|text| match text.len() {
            0..=CONTENT_BYTES_MAX if memchr::memchr(b'\0', text.as_bytes()).is_some() => {
                Err("must not contain NUL characters".to_owned())
            }
            0..=CONTENT_BYTES_MAX => Ok(normalize_line_ends(text)),
            _ => Err(format!("is longer than {CONTENT_BYTES_MAX} bytes")),
        });
        text.map_err(|error| notes.errors.add(name, error)).ok()
    };
    let (html, text) = (content("html"), content("text"));
    let empty = |content: &Option<String>| content.as_ref().is_none_or(String::is_empty);
    if !fields.is_present_or_misnamed("html") && !fields.is_present_or_misnamed("text") {
        notes.errors.add("html", "`html` or `text` is required");
    } else if (html.is_some() || text.is_some()) && empty(&html) && empty(&text) {
        notes.errors.add("html", "`html` or `text` must not be empty");
    }
    (html, text)
}

/// Converts all line breaks to LF, which the composer writes as CRLF. A bare CR would end up in the message, which
/// RFC 5322 2.3 forbids.
fn normalize_line_ends(text: Cow<'_, str>) -> String {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return text.into_owned();
    }
    text.replace("\r\n", "\n").replace('\r', "\n")
}

impl FromRequest for SendRequest {
    const BODY_BYTES_MAX: Option<usize> = Some(SEND_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("SendRequest", |_| send_schema());
        RequestSpec {
            parameters: vec![idempotency::header_parameter()],
            body: Some(body),
            body_bytes_max: Self::BODY_BYTES_MAX,
        }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Self::from_parts(&call.body, &call.headers)
    }
}

pub(super) fn send_schema() -> Value {
    let addresses = |entries_max: usize, description: &str| {
        json!({
            "description": description,
            "oneOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "maxItems": entries_max},
            ],
        })
    };
    let mut recipients = addresses(RECIPIENTS_MAX, "Recipients");
    recipients["oneOf"][0]["minLength"] = json!(1);
    recipients["oneOf"][1]["minItems"] = json!(1);
    let mut send = schema::object_with(
        "An email to send. Without `template`, `from`, `subject`, and `html` or `text` are required",
        &["to"],
        [
            ("from", author_schema()),
            ("to", recipients),
            ("cc", addresses(RECIPIENTS_MAX, "Recipients of a copy")),
            ("bcc", addresses(RECIPIENTS_MAX, "Recipients of a blind copy")),
            ("reply_to", addresses(REPLY_TO_MAX, "Addresses for replies")),
            ("subject", schema::string("The subject")),
            ("html", schema::string("The HTML body (also `htmlBody`, `html_body`)")),
            ("text", schema::string("The plain-text body (also `textBody`, `text_body`, `plain_body`)")),
            (
                "headers",
                json!({
                    "type": "object", "additionalProperties": {"type": "string"},
                    "maxProperties": HEADERS_MAX,
                    "description": "Custom headers; headers that control transport are rejected",
                }),
            ),
            ("tags", tags_schema()),
            (
                "attachments",
                json!({
                    "type": "array", "items": attachment_schema(), "maxItems": ATTACHMENTS_MAX,
                    "description": "The attachments",
                }),
            ),
        ],
    );
    if let (Some(Value::Object(options)), Some(fields)) =
        (options_schema().get_mut("properties").map(Value::take), send["properties"].as_object_mut())
    {
        fields.extend(options);
    }
    send["examples"] = json!([{
        "from": "Ada <ada@example.com>",
        "to": ["grace@example.net"],
        "subject": "Welcome",
        "html": "<p>Hello Grace</p>",
        "text": "Hello Grace",
        "tags": [{"name": "flow", "value": "welcome"}],
    }]);
    send
}

fn author_schema() -> Value {
    json!({
        "description": "The author: `Ada <ada@example.com>`; its domain must be verified",
        "oneOf": [{"type": "string"}, schema::object_with(
            "An address and a display name",
            &["email"],
            [("email", schema::string("The address")), ("name", schema::string("The display name"))],
        )],
    })
}

fn tags_schema() -> Value {
    let tag = schema::object(
        "A tag",
        [("name", schema::string("The name, without a colon")), ("value", schema::string("The value"))],
    );
    json!({
        "description": "Stored with the email and sent along with its events",
        "oneOf": [
            {"type": "array", "items": tag, "maxItems": TAGS_MAX},
            {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": TAGS_MAX},
        ],
    })
}

/// Schema of the options besides the message itself.
fn options_schema() -> Value {
    schema::object_with(
        "Send options",
        &[],
        [
            ("category", schema::string_enum(&["transactional", "product", "newsletter"], "The category")),
            (
                "scheduled_at",
                schema::time("When to send the email (also `scheduledAt`); attachments are not supported"),
            ),
            (
                "expires_in",
                json!({
                    "type": "integer", "minimum": 1, "maximum": EXPIRES_IN_S_MAX,
                    "description": "Lifetime in seconds: the email is sent with priority and fails after this time",
                }),
            ),
            (
                "on_suppressed",
                json!({
                    "type": "string", "enum": ["fail", "skip"], "default": "fail",
                    "description": "If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email",
                }),
            ),
            ("unsubscribe", schema::boolean("Managed unsubscribe (RFC 8058)")),
            ("template", template_schema()),
            ("variables", variables_schema()),
        ],
    )
}

fn attachment_schema() -> Value {
    let name = format!("The file name; not accepted: .{}", EXTENSIONS_BLOCKED.join(", ."));
    schema::object_with(
        "A file",
        &["name", "data"],
        [
            ("name", json!({"type": "string", "maxLength": NAME_BYTES_MAX, "description": name})),
            (
                "content_type",
                json!({"type": "string", "default": "application/octet-stream", "description": "The content type"}),
            ),
            (
                "data",
                json!({
                    "type": "string", "contentEncoding": "base64",
                    "description": "The content in base64, at most 10 MB decoded",
                }),
            ),
            ("content_id", schema::string("The Content-ID that `cid:` in the HTML refers to; makes the file inline")),
        ],
    )
}

/// The email was accepted
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(name = "Sent")]
pub struct SendResponse {
    /// The email's id (`msg_…`)
    pub id: EmailId,
    /// The email is stored and will be delivered
    #[schema(as = String, enum = ["sent", "scheduled"])]
    pub status: EmailStatus,
    /// Warnings, for example about ignored fields
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SendResponse {
    /// Builds the response from the intake's receipt and the warnings.
    #[must_use]
    pub fn from_accepted(accepted: &SubmitReceipt, warnings: &[String]) -> Self {
        let skipped = |address| format!("{address} is suppressed and was skipped");
        let warnings = warnings.iter().cloned().chain(accepted.skipped.iter().map(skipped)).collect();
        Self { id: accepted.id, status: accepted.status, warnings }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_field_has_a_schema() {
        let schema = send_schema();
        let described: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        // Batches describe their idempotency key themselves.
        let fields = NAMES.known.iter().map(|(_, name)| *name).filter(|name| *name != IDEMPOTENCY_KEY);
        assert_eq!(fields.collect::<BTreeSet<_>>(), described);
    }
}
