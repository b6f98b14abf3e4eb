//! The fields of `POST /emails` and of an email of a batch: one row for each.

use std::borrow::Cow;

use httpd::request_object::RequestValue as _;
use httpd::request_value::Time;
use message::attachment_policy::ATTACHMENTS_MAX;
use message::attachment_policy::filename_policy::EXTENSIONS_BLOCKED;
use model::draft::OnSuppressed;
use model::email::Category;
use model::tags::{TAG_BYTES_MAX, TAGS_MAX};

use super::attachments::{self, CONTENT_ID_BYTES_MAX, CONTENT_TYPE_BYTES_MAX, CONTENT_TYPE_DEFAULT};
use super::recipients::{self, MAILBOX_BYTES_MAX, NAME_BYTES_MAX, RECIPIENTS_MAX, REPLY_TO_MAX};
use super::send_email::SendEmail;
use super::send_options::{self, EXPIRES_IN_S_MAX};
use super::tags_and_headers::{self, HEADERS_MAX};
use super::template;
use crate::prelude::*;
use crate::request_field::{RequestField, fingerprint_with_other, read_with_other};
use crate::request_fingerprint::RequestFingerprint;

/// Maximum size of `html` and of `text`.
pub(crate) const CONTENT_BYTES_MAX: usize = 5 << 20;
/// Maximum size of `subject`: a line of RFC 5322 2.1.1 with four-byte characters.
const SUBJECT_BYTES_MAX: usize = 4 * 998;

/// Field name of the idempotency key of one email of a batch.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency_key";
/// Field name of the attachments, which batches do not accept.
pub(super) const ATTACHMENTS: &str = "attachments";

pub(crate) static FIELDS: &[RequestField<SendEmail>] = &[
    RequestField {
        name: "from",
        aliases: &[],
        foreign: &["From"],
        description: "The author: `Ada <ada@example.com>`; its domain must be verified",
        schema: || author_schema(&mut Schemas::default()),
        read: |email, fields, notes| {
            // A template can provide it.
            if !has_template(fields) || fields.is_present_or_misnamed("from") {
                email.from = recipients::read_author(fields, notes);
            }
        },
        fingerprint: |email, fingerprint| fingerprint.add_mailboxes(email.from.as_slice()),
    },
    RequestField {
        name: "to",
        aliases: &[],
        foreign: &["To"],
        description: "Recipients",
        schema: || recipients_schema(&mut Schemas::default()),
        // With `cc` and `bcc`: the limit and duplicates concern all three.
        read: |email, fields, notes| email.recipients = recipients::read_recipients(fields, notes),
        fingerprint: |email, fingerprint| fingerprint.add_mailboxes(&email.recipients.to),
    },
    RequestField {
        name: "cc",
        aliases: &[],
        foreign: &["Cc"],
        description: "Recipients of a copy",
        schema: || addresses_schema(RECIPIENTS_MAX),
        read: read_with_other,
        fingerprint: |email, fingerprint| fingerprint.add_mailboxes(&email.recipients.cc),
    },
    RequestField {
        name: "bcc",
        aliases: &[],
        foreign: &["Bcc"],
        description: "Recipients of a blind copy",
        schema: || addresses_schema(RECIPIENTS_MAX),
        read: read_with_other,
        fingerprint: |email, fingerprint| fingerprint.add_mailboxes(&email.recipients.bcc),
    },
    RequestField {
        name: "reply_to",
        aliases: &["replyTo"],
        foreign: &["ReplyTo"],
        description: "Addresses for replies",
        schema: || addresses_schema(REPLY_TO_MAX),
        read: |email, fields, notes| email.reply_to = recipients::read_reply_to(fields, notes),
        fingerprint: |email, fingerprint| fingerprint.add_mailboxes(&email.reply_to),
    },
    RequestField {
        name: "subject",
        aliases: &[],
        foreign: &["Subject"],
        description: "The subject",
        schema: || json!({"type": "string", "minLength": 1, "maxLength": SUBJECT_BYTES_MAX}),
        read: read_subject,
        fingerprint: |email, fingerprint| fingerprint.add_optional(email.subject.as_ref()),
    },
    RequestField {
        name: "html",
        aliases: &["htmlBody", "html_body"],
        foreign: &["HtmlBody", "HTMLBody", "Html"],
        description: "The HTML body",
        schema: content_schema,
        read: |email, fields, notes| email.html = read_content(fields, "html", notes),
        fingerprint: |email, fingerprint| fingerprint.add_optional(email.html.as_ref()),
    },
    RequestField {
        name: "text",
        aliases: &["textBody", "text_body", "plain_body"],
        foreign: &["TextBody", "Text"],
        description: "The plain-text body",
        schema: content_schema,
        read: |email, fields, notes| {
            email.text = read_content(fields, "text", notes);
            check_contents(email, fields, notes);
        },
        fingerprint: |email, fingerprint| fingerprint.add_optional(email.text.as_ref()),
    },
    RequestField {
        name: "headers",
        aliases: &[],
        foreign: &["Headers"],
        description: "Custom headers; headers that control transport are rejected",
        schema: || json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": HEADERS_MAX}),
        read: |email, fields, notes| email.headers = tags_and_headers::read_headers(fields, notes),
        fingerprint: |email, fingerprint| {
            fingerprint.add_pairs(email.headers.iter().map(|header| (header.name(), header.value())));
        },
    },
    RequestField {
        name: "tags",
        aliases: &[],
        foreign: &["Tag", "The tags", "Metadata"],
        description: "Stored with the email and sent along with its events",
        schema: tags_schema,
        read: |email, fields, notes| email.tags = tags_and_headers::read_tags(fields, notes),
        fingerprint: |email, fingerprint| {
            fingerprint.add_pairs(email.tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str())));
        },
    },
    RequestField {
        name: ATTACHMENTS,
        aliases: &[],
        foreign: &["Attachments"],
        description: "The attachments",
        schema: || json!({"type": "array", "items": attachment_schema(), "maxItems": ATTACHMENTS_MAX}),
        read: |email, fields, notes| email.attachments = attachments::read_attachments(fields, notes),
        fingerprint: |email, fingerprint| {
            fingerprint.add_count(email.attachments.len());
            for file in &email.attachments {
                fingerprint.add(&file.name);
                fingerprint.add(&file.content_type);
                fingerprint.add_optional(file.content_id.as_ref());
                fingerprint.add(&file.data);
            }
        },
    },
    RequestField {
        name: "category",
        aliases: &[],
        foreign: &[],
        description: "The category",
        schema: || json!({"type": "string", "enum": Category::WORDS}),
        read: |email, fields, notes| email.category = tags_and_headers::read_category(fields, notes),
        fingerprint: |email, fingerprint| fingerprint.add_optional(email.category.map(|category| [category as u8])),
    },
    RequestField {
        name: "scheduled_at",
        aliases: &["scheduledAt"],
        foreign: &["ScheduledAt"],
        description: "When to send the email; attachments are not supported",
        schema: || json!({"type": "string", "format": "date-time"}),
        read: |email, fields, notes| {
            email.options.scheduled_at = fields.read("scheduled_at", Time::parse, notes);
            if email.options.scheduled_at.is_some() && attachments::has_any(fields) {
                notes.errors.add(ATTACHMENTS, "are not supported on scheduled emails");
            }
        },
        fingerprint: |email, fingerprint| {
            fingerprint.add_optional(email.options.scheduled_at.map(|at| at.to_string()));
        },
    },
    RequestField {
        name: "expires_in",
        aliases: &[],
        foreign: &[],
        description: "Lifetime in seconds: the email is sent with priority and fails after this time",
        schema: || json!({"type": "integer", "minimum": 1, "maximum": EXPIRES_IN_S_MAX}),
        read: |email, fields, notes| {
            email.options.expires_in = fields.read("expires_in", send_options::parse_lifetime, notes);
        },
        fingerprint: |email, fingerprint| {
            fingerprint.add_optional(email.options.expires_in.map(|time| time.as_secs().to_le_bytes()));
        },
    },
    RequestField {
        name: "on_suppressed",
        aliases: &[],
        foreign: &[],
        description: "If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email",
        schema: || json!({"type": "string", "enum": ["fail", "skip"], "default": "fail"}),
        read: |email, fields, notes| {
            let given = fields.read("on_suppressed", send_options::parse_on_suppressed, notes);
            email.options.on_suppressed = given.unwrap_or_default();
        },
        fingerprint: |email, fingerprint| {
            fingerprint.add([u8::from(email.options.on_suppressed == OnSuppressed::Skip)])
        },
    },
    RequestField {
        name: "unsubscribe",
        aliases: &[],
        foreign: &[],
        description: "Managed unsubscribe (RFC 8058)",
        schema: || json!({"type": "boolean"}),
        read: |email, fields, notes| {
            email.options.unsubscribe = fields.read("unsubscribe", fields::parse_bool, notes);
        },
        fingerprint: |email, fingerprint| {
            fingerprint.add_optional(email.options.unsubscribe.map(|is_enabled| [u8::from(is_enabled)]));
        },
    },
    RequestField {
        name: "template",
        aliases: &["template_id", "templateId", "template_alias", "templateAlias"],
        foreign: &["TemplateId", "TemplateAlias"],
        description: "A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the \
                      subject, author, reply addresses and category if they are omitted",
        schema: template::template_schema,
        // With `variables`.
        read: |email, fields, notes| email.template = template::read_template(fields, notes),
        fingerprint: |email, fingerprint| fingerprint.add_template(email.template.as_ref()),
    },
    RequestField {
        name: "variables",
        aliases: &["template_data", "templateData", "data_variables", "dataVariables", "dynamic_template_data"],
        foreign: &["TemplateModel"],
        description: "The template's variables by name",
        schema: || template::variables_schema(&mut Schemas::default()),
        read: read_with_other,
        fingerprint: fingerprint_with_other,
    },
    RequestField {
        name: IDEMPOTENCY_KEY,
        aliases: &["idempotencyKey"],
        foreign: &[],
        description: "Idempotency key of this email: for 24 hours the same email with the same key, in any batch, is \
                      not sent again and gets the same entry",
        schema: || json!({"type": "string"}),
        // The batch reads it; a single email has a header for it.
        read: read_with_other,
        fingerprint: fingerprint_with_other,
    },
];

/// The fingerprint covers the parsed email, not the body's bytes: `"x"` equals `["x"]`, an alias equals its canonical
/// name, and tags are equal as object or list in any order. Ignored fields count by name, because the response names
/// them.
pub(super) fn add_to_fingerprint(fingerprint: &mut RequestFingerprint, email: &SendEmail, warnings: &[String]) {
    FIELDS.iter().for_each(|field| (field.fingerprint)(email, fingerprint));
    fingerprint.add_count(warnings.len());
    warnings.iter().for_each(|warning| fingerprint.add(warning));
}

/// Schema of an email without the fields of this name.
pub(super) fn send_schema(excluded: &str) -> Value {
    let mut send = schema::object_with(
        "An email to send. Without `template`, `from`, `subject`, and `html` or `text` are required",
        &["to"],
        FIELDS.iter().filter(|field| field.name != excluded).map(RequestField::property),
    );
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

/// True if the email has a template, which can provide missing fields and always provides the bodies.
fn has_template(fields: &ObjectFields<'_>) -> bool {
    fields.is_present_or_misnamed("template")
}

fn read_subject(email: &mut SendEmail, fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    let outcome = match fields.value("subject") {
        None if has_template(fields) || fields.is_present_or_misnamed("subject") => return,
        None => Err("is required".to_owned()),
        Some(value) => fields::parse_header_line(value, SUBJECT_BYTES_MAX)
            .and_then(|subject| if subject.trim().is_empty() { Err("is empty".to_owned()) } else { Ok(subject) }),
    };
    email.subject = outcome.map_err(|text| notes.errors.add("subject", text)).ok();
}

/// Parses `html` or `text`. With a template they are rejected.
fn read_content(fields: &ObjectFields<'_>, name: &'static str, notes: &mut FieldDiagnostics) -> Option<String> {
    let value = fields.value(name)?;
    let text = if has_template(fields) {
        Err("cannot be combined with `template`".to_owned())
    } else {
        fields::parse_text(value).and_then(|text| match text.len() {
            0..=CONTENT_BYTES_MAX if memchr::memchr(b'\0', text.as_bytes()).is_some() => {
                Err("must not contain NUL characters".to_owned())
            }
            0..=CONTENT_BYTES_MAX => Ok(normalize_line_ends(text)),
            _ => Err(format!("is longer than {CONTENT_BYTES_MAX} bytes")),
        })
    };
    text.map_err(|error| notes.errors.add(name, error)).ok()
}

/// Checks that there is a body, unless a template provides it.
fn check_contents(email: &SendEmail, fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    let (html, text) = (&email.html, &email.text);
    let is_empty = |content: &Option<String>| content.as_ref().is_none_or(String::is_empty);
    if has_template(fields) {
        return;
    }
    if !fields.is_present_or_misnamed("html") && !fields.is_present_or_misnamed("text") {
        notes.errors.add("html", "`html` or `text` is required");
    } else if (html.is_some() || text.is_some()) && is_empty(html) && is_empty(text) {
        notes.errors.add("html", "`html` or `text` must not be empty");
    }
}

/// Converts all line breaks to LF, which the composer writes as CRLF. A bare CR would end up in the message, which
/// RFC 5322 2.3 forbids.
fn normalize_line_ends(text: Cow<'_, str>) -> String {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return text.into_owned();
    }
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn content_schema() -> Value {
    json!({"type": "string", "maxLength": CONTENT_BYTES_MAX})
}

/// An address or a list. JSON Schema counts characters and the reader bytes, so the limit refuses nothing valid.
pub(crate) fn addresses_schema(entries_max: usize) -> Value {
    let address = json!({"type": "string", "minLength": 1, "maxLength": MAILBOX_BYTES_MAX});
    json!({"oneOf": [address, {"type": "array", "items": address, "maxItems": entries_max}]})
}

/// Schema of `to`.
pub(crate) fn recipients_schema(_: &mut Schemas) -> Value {
    let mut schema = addresses_schema(RECIPIENTS_MAX);
    schema["oneOf"][1]["minItems"] = json!(1);
    schema
}

/// Schema of `from`.
pub(crate) fn author_schema(_: &mut Schemas) -> Value {
    let email = schema::address("The address");
    let mut name = schema::bounded_string(NAME_BYTES_MAX, "The display name");
    schema::allow_null(&mut name);
    json!({"oneOf": [
        {"type": "string", "minLength": 1, "maxLength": MAILBOX_BYTES_MAX},
        schema::object_with("An address and a display name", &["email"], [("email", email), ("name", name)]),
    ]})
}

fn tags_schema() -> Value {
    let value = json!({"type": "string", "maxLength": TAG_BYTES_MAX});
    let name = json!({"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX, "pattern": "^[^:]+$"});
    let tag = schema::object(
        "A tag",
        [
            ("name", schema::describe(name, Some("The name, without a colon"))),
            ("value", schema::describe(value.clone(), Some("The value"))),
        ],
    );
    json!({"oneOf": [
        {"type": "array", "items": tag, "maxItems": TAGS_MAX},
        {"type": "object", "additionalProperties": value, "maxProperties": TAGS_MAX},
    ]})
}

fn attachment_schema() -> Value {
    let name = format!("The file name; not accepted: .{}", EXTENSIONS_BLOCKED.join(", ."));
    schema::object_with(
        "A file",
        &["name", "data"],
        [
            (
                "name",
                json!({
                    "type": "string", "minLength": 1, "maxLength": attachments::NAME_BYTES_MAX, "description": name,
                }),
            ),
            (
                "content_type",
                json!({
                    "type": "string", "maxLength": CONTENT_TYPE_BYTES_MAX, "default": CONTENT_TYPE_DEFAULT,
                    "description": "The content type",
                }),
            ),
            (
                "data",
                json!({
                    "type": "string", "contentEncoding": "base64",
                    "description": "The content in base64, at most 10 MB decoded",
                }),
            ),
            (
                "content_id",
                json!({
                    "type": "string", "maxLength": CONTENT_ID_BYTES_MAX,
                    "description": "The Content-ID that `cid:` in the HTML refers to; makes the file inline",
                }),
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_belongs_to_one_field() {
        let names = || FIELDS.iter().flat_map(|field| [&[field.name], field.aliases, field.foreign].concat());
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
    }

    /// Fingerprints are stored for 24 hours: an update must compute the same ones.
    #[test]
    fn fingerprints_are_stable() {
        let fingerprint = |body: &str| {
            let mut notes = FieldDiagnostics::default();
            let fields = fields::parse_body(body.as_bytes()).unwrap();
            let fields = ObjectFields::from_object(fields, &FIELDS, "", &mut notes);
            let mut email = SendEmail::default();
            FIELDS.iter().for_each(|field| (field.read)(&mut email, &fields, &mut notes));
            assert!(notes.errors.is_empty(), "{body}");
            let mut fingerprint = RequestFingerprint::new();
            add_to_fingerprint(&mut fingerprint, &email, &notes.warnings);
            fingerprint.finish()
        };
        let plain = r#"{"from": "a@x.example", "to": "b@y.example", "subject": "S", "text": "T"}"#;
        assert_eq!(fingerprint(plain), "f268d4b1b3d71023aaacabfd5e3ba023291bec66a5fac76dfc259a8a1cc63b5d");
        let full = r#"{
            "from": "A <a@x.example>", "to": ["b@y.example"], "cc": "c@y.example", "bcc": "d@y.example",
            "replyTo": "e@y.example", "subject": "S", "htmlBody": "H", "text": "T", "headers": {"X-A": "1"},
            "tags": {"n": "v"}, "category": "product", "expires_in": 60, "on_suppressed": "skip", "unsubscribe": false,
            "attachments": [{"name": "a.txt", "data": "YQ==", "content_type": "text/plain"}], "colour": "red"
        }"#;
        assert_eq!(fingerprint(full), "247d56a4214146af7120d988e317d21454014d7c38ec6730abbffd9f0396c7d3");
    }
}
