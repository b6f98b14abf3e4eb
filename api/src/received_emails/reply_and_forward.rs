//! `POST /received-emails/{id}/reply` and `/forward`: new emails whose sender is the address that received the email.
//!
//! Both use the same intake as any send: plan, suppressions and access level are checked. A received message is
//! forwarded as an attachment of a new message, so that nothing is sent under the name of its author.

use std::sync::Arc;

use http::HeaderMap;
use mail::address::Mailbox;
use mail::compose::{Attachment, Composition, CustomHeader};
use mail::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use mail::email::{Category, Ingress};
use mail::idempotency::IdempotencyScope;
use mail::received::{ReceivedEmail, thread_headers};
use mail::recipient::{DsnOptions, RecipientKind};
use serde_json::json;
use serde_json::value::RawValue;
use store::access::Tenant;

use super::path::{ReceivedEmailPath, find, id_parameter, load_message};
use crate::emails::recipients::{RecipientLists, read_recipients};
use crate::emails::send::SendResponse;
use crate::emails::send_fields::CONTENT_BYTES_MAX;
use crate::emails::send_idempotent;
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::idempotency::{self, IdempotentResponse};
use crate::problem::{ErrorCode, Problem};
use crate::request::{FromRequest, Request, RequestSpec};
use crate::schema::{self, Schemas};
use crate::state::AppState;

/// Both texts with JSON escapes.
const BODY_BYTES_MAX: usize = 4 * CONTENT_BYTES_MAX;
/// Longest subject in bytes, including the prefix.
const SUBJECT_BYTES_MAX: usize = 900;

const REPLY_NAMES: FieldNames = FieldNames {
    known: &[
        ("html", "html"),
        ("htmlBody", "html"),
        ("html_body", "html"),
        ("text", "text"),
        ("textBody", "text"),
        ("text_body", "text"),
        ("plain_body", "text"),
    ],
    foreign: &[("HtmlBody", "html"), ("TextBody", "text")],
};

const FORWARD_NAMES: FieldNames = FieldNames {
    known: &[("to", "to"), ("text", "text"), ("textBody", "text"), ("text_body", "text"), ("plain_body", "text")],
    foreign: &[("To", "to"), ("TextBody", "text")],
};

/// The request body of `POST /received-emails/{id}/reply`.
#[derive(Debug)]
pub struct ReplyToReceivedEmail {
    id: ReceivedEmailPath,
    html: Option<String>,
    text: Option<String>,
    headers: HeaderMap,
}

fn text_schema() -> serde_json::Value {
    json!({"type": "string", "maxLength": CONTENT_BYTES_MAX})
}

/// A text of the new message.
fn parse_body_text(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    match text.len() > CONTENT_BYTES_MAX {
        true => Err(format!("is larger than {CONTENT_BYTES_MAX} bytes")),
        false => Ok(text.into_owned()),
    }
}

fn read_text(fields: &ObjectFields<'_>, name: &'static str, notes: &mut FieldDiagnostics) -> Option<String> {
    let parsed = fields.value(name).map(parse_body_text).transpose();
    parsed.map_err(|text| notes.errors.add(name, text)).ok().flatten()
}

impl FromRequest for ReplyToReceivedEmail {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("ReplyToReceivedEmail", |_| {
            schema::object_with(
                "A reply; `html` or `text` is required",
                &[],
                [("html", text_schema()), ("text", text_schema())],
            )
        });
        let parameters = vec![id_parameter(), idempotency::header_parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&REPLY_NAMES, &mut notes)?;
        let (html, text) = (read_text(&fields, "html", &mut notes), read_text(&fields, "text", &mut notes));
        if html.is_none() && text.is_none() && notes.errors.is_empty() {
            notes.errors.add("html", "`html` or `text` is required");
        }
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { id: ReceivedEmailPath::read(call)?, html, text, headers: call.headers.clone() })
    }
}

/// `POST /received-emails/{id}/reply`.
///
/// # Errors
/// The email does not exist or has no address to reply to; the intake refuses the reply.
pub async fn reply(
    state: Arc<AppState>,
    tenant: Tenant,
    input: ReplyToReceivedEmail,
) -> Result<IdempotentResponse<SendResponse>, Problem> {
    let ReplyToReceivedEmail { id: ReceivedEmailPath(id), html, text, headers } = input;
    let fingerprint = || json!(["reply", id, html, text]).to_string();
    let claim = idempotency::parse_claim(&headers, fingerprint)?;
    let draft = async {
        let received = find(&state, &tenant, id).await?;
        let to = reply_recipients(&received)?;
        let heading = &received.heading;
        let fields = thread_headers(heading).into_iter();
        let parts = Composition {
            from: Mailbox::from(received.rcpt_to.clone()),
            to: to.clone(),
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: Vec::new(),
            subject: prefixed_subject("Re:", &heading.subject),
            html,
            text,
            headers: fields.filter_map(|(name, value)| CustomHeader::new(name, &value).ok()).collect(),
            attachments: Vec::new(),
        };
        Ok((build_draft(parts, envelope_recipients(&to)), Vec::new()))
    };
    send_idempotent(&state, &tenant, IdempotencyScope::Reply, claim, draft).await
}

/// The addresses of `Reply-To`, else the author.
fn reply_recipients(received: &ReceivedEmail) -> Result<Vec<Mailbox>, Problem> {
    let heading = &received.heading;
    let reply_to: Vec<Mailbox> = heading.reply_to.iter().filter_map(|text| Mailbox::foreign(text).ok()).collect();
    if !reply_to.is_empty() {
        return Ok(reply_to);
    }
    let sender = Mailbox::foreign(&heading.from).ok();
    let author = sender.or_else(|| heading.author.clone().map(Mailbox::from));
    let message = "The email has no author to reply to";
    author.map(|author| vec![author]).ok_or_else(|| Problem::new(ErrorCode::VALIDATION_ERROR, message))
}

/// The request body of `POST /received-emails/{id}/forward`.
#[derive(Debug)]
pub struct ForwardReceivedEmail {
    id: ReceivedEmailPath,
    recipients: RecipientLists,
    text: Option<String>,
    headers: HeaderMap,
}

impl FromRequest for ForwardReceivedEmail {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("ForwardReceivedEmail", |_| {
            let string_schema = || json!({"type": "string"});
            let to = json!({
                "description": "Recipients",
                "oneOf": [string_schema(), {"type": "array", "items": string_schema(), "minItems": 1, "maxItems": 1000}],
            });
            let mut text = text_schema();
            text["description"] = json!("Text above the forwarded message");
            schema::object_with("Recipients and text of the forwarded email", &["to"], [("to", to), ("text", text)])
        });
        let parameters = vec![id_parameter(), idempotency::header_parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&FORWARD_NAMES, &mut notes)?;
        let recipients = read_recipients(&fields, &mut notes);
        let text = read_text(&fields, "text", &mut notes);
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { id: ReceivedEmailPath::read(call)?, recipients, text, headers: call.headers.clone() })
    }
}

/// `POST /received-emails/{id}/forward`.
///
/// # Errors
/// The email does not exist, or its message is no longer stored; the intake refuses the email.
pub async fn forward(
    state: Arc<AppState>,
    tenant: Tenant,
    input: ForwardReceivedEmail,
) -> Result<IdempotentResponse<SendResponse>, Problem> {
    let ForwardReceivedEmail { id: ReceivedEmailPath(id), recipients: people, text, headers } = input;
    let fingerprint = || {
        let to: Vec<String> = people.to.iter().map(ToString::to_string).collect();
        json!(["forward", id, to, text]).to_string()
    };
    let claim = idempotency::parse_claim(&headers, fingerprint)?;
    let draft = async {
        let received = find(&state, &tenant, id).await?;
        let message = load_message(&state, &received).await?;
        let heading = &received.heading;
        let forwarded_header = format!(
            "---------- Forwarded message ----------\nFrom: {}\nDate: {}\nSubject: {}\nTo: {}\n\nThe message is attached.\n",
            heading.from,
            mail::timestamp::to_rfc3339(received.received_at),
            heading.subject,
            heading.to.join(", "),
        );
        let text = text.map_or_else(|| forwarded_header.clone(), |text| format!("{text}\n\n{forwarded_header}"));
        let parts = Composition {
            from: Mailbox::from(received.rcpt_to.clone()),
            to: people.to,
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: Vec::new(),
            subject: prefixed_subject("Fwd:", &heading.subject),
            html: None,
            text: Some(text),
            headers: Vec::new(),
            attachments: vec![Attachment {
                name: "message.eml".to_owned(),
                content_type: "message/rfc822".to_owned(),
                data: message.to_vec(),
                content_id: None,
            }],
        };
        Ok((build_draft(parts, people.envelope), Vec::new()))
    };
    send_idempotent(&state, &tenant, IdempotencyScope::Forward, claim, draft).await
}

/// Prefixes a subject, unless it has the prefix already.
fn prefixed_subject(before: &str, subject: &str) -> String {
    let has = subject.get(..before.len()).is_some_and(|start| start.eq_ignore_ascii_case(before));
    let mut prefixed = if has { subject.to_owned() } else { format!("{before} {subject}") };
    while prefixed.len() > SUBJECT_BYTES_MAX {
        prefixed.pop();
    }
    prefixed.trim().to_owned()
}

fn envelope_recipients(to: &[Mailbox]) -> Vec<DraftRecipient> {
    let mut all: Vec<DraftRecipient> = Vec::new();
    for mailbox in to {
        if all.iter().all(|recipient| recipient.address != mailbox.address) {
            let address = mailbox.address.clone();
            all.push(DraftRecipient { address, kind: RecipientKind::To, notify: DsnOptions::default() });
        }
    }
    all
}

fn build_draft(parts: Composition, recipients: Vec<DraftRecipient>) -> Draft {
    Draft {
        ingress: Ingress::Api,
        from: Some(parts.from.clone()),
        envelope: SubmissionEnvelope::default(),
        recipients,
        content: DraftContent::Parts(Box::new(parts)),
        tags: Vec::new(),
        category: Category::default(),
        options: SendOptions::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_prefixes_do_not_accumulate() {
        assert_eq!(prefixed_subject("Re:", "Hi"), "Re: Hi");
        assert_eq!(prefixed_subject("Re:", "RE: Hi"), "RE: Hi");
        assert_eq!(prefixed_subject("Fwd:", "Re: Hi"), "Fwd: Re: Hi");
        assert_eq!(prefixed_subject("Re:", ""), "Re:");
        assert!(prefixed_subject("Re:", &"ä".repeat(900)).len() <= SUBJECT_BYTES_MAX);
    }
}
