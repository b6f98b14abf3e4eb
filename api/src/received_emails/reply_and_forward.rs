//! `POST /received-emails/{id}/reply` and `/forward`: new emails whose sender is the address that received the email.
//!
//! Both use the same intake as any send: plan, suppressions and access level are checked. A received message is
//! forwarded as an attachment of a new message, so that nothing is sent under the name of its author.

use httpd::request_object::{RequestValue, bounded_text_schema};
use message::address::Mailbox;
use message::compose::{Attachment, Composition, CustomHeader};
use message::received::thread_headers;
use model::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use model::email::{Category, Ingress};
use model::idempotency::IdempotencyScope;
use model::received::ReceivedEmail;
use model::recipient::{DsnOptions, RecipientKind};

use super::path::{ReceivedEmailPath, find, load_message};
use crate::emails::recipients::{RecipientLists, read_recipients};
use crate::emails::send::SendResponse;
use crate::emails::send_fields::{CONTENT_BYTES_MAX, recipients_schema};
use crate::emails::send_idempotent;
use crate::idempotency::{GivenKey, IdempotentResponse};
use crate::prelude::*;

/// Both texts with JSON escapes.
const BODY_BYTES_MAX: usize = 4 * CONTENT_BYTES_MAX;
/// Longest subject in bytes, including the prefix.
const SUBJECT_BYTES_MAX: usize = 900;

/// A reply; `html` or `text` is required
#[derive(Debug, RequestObject)]
#[schema(name = "ReplyToReceivedEmail", body_bytes_max = BODY_BYTES_MAX, check = check_reply)]
pub struct ReplyFields {
    /// The HTML body
    #[field(aliases = ["htmlBody", "html_body"], foreign = ["HtmlBody"], reader = BodyText)]
    html: Option<String>,
    /// The plain-text body
    #[field(aliases = ["textBody", "text_body", "plain_body"], foreign = ["TextBody"], reader = BodyText)]
    text: Option<String>,
}

/// The request of `POST /received-emails/{id}/reply`.
type ReplyToReceivedEmail = (ReceivedEmailPath, (GivenKey, ReplyFields));

fn check_reply(reply: &ReplyFields, _: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    if !notes.errors.is_empty() {
        return;
    }
    let is_empty = |content: &Option<String>| content.as_ref().is_none_or(String::is_empty);
    if reply.html.is_none() && reply.text.is_none() {
        notes.errors.add("html", "`html` or `text` is required");
    } else if is_empty(&reply.html) && is_empty(&reply.text) {
        notes.errors.add("html", "`html` or `text` must not be empty");
    }
}

/// A text of the new message.
struct BodyText;

impl RequestValue for BodyText {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(0, CONTENT_BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        let text = fields::parse_text(value)?;
        match text.len() > CONTENT_BYTES_MAX {
            true => Err(format!("is larger than {CONTENT_BYTES_MAX} bytes")),
            false => Ok(text.into_owned()),
        }
    }
}

/// `POST /received-emails/{id}/reply`.
///
/// # Errors
/// The email does not exist or has no address to reply to; the intake refuses the reply.
pub async fn reply(
    state: State,
    tenant: Tenant,
    (ReceivedEmailPath(id), (key, ReplyFields { html, text })): ReplyToReceivedEmail,
) -> Result<IdempotentResponse<SendResponse>> {
    let fingerprint = || json!(["reply", id, html, text]).to_string();
    let claim = key.claim(fingerprint);
    let draft = async { Ok((reply_draft(&state, &tenant, id, html, text).await?, Vec::new())) };
    send_idempotent(&state, &tenant, IdempotencyScope::Reply, claim, draft).await
}

/// The email of a request of `POST /received-emails/{id}/reply`.
///
/// # Errors
/// The email does not exist or has no address to reply to.
pub async fn resolve_reply(
    state: State,
    tenant: Tenant,
    (ReceivedEmailPath(id), (_, ReplyFields { html, text })): ReplyToReceivedEmail,
) -> Result<Vec<Draft>> {
    Ok(vec![reply_draft(&state, &tenant, id, html, text).await?])
}

async fn reply_draft(
    state: &AppState,
    tenant: &Tenant,
    id: ReceivedId,
    html: Option<String>,
    text: Option<String>,
) -> Result<Draft> {
    let received = find(state, tenant, id).await?;
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
    Ok(build_draft(parts, envelope_recipients(&to)))
}

/// The addresses of `Reply-To`, else the author.
fn reply_recipients(received: &ReceivedEmail) -> Result<Vec<Mailbox>> {
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

/// The request of `POST /received-emails/{id}/forward`.
type ForwardReceivedEmail = (ReceivedEmailPath, (GivenKey, ForwardFields));

/// Recipients and text of the forwarded email
#[derive(Debug, RequestObject)]
#[schema(name = "ForwardReceivedEmail", body_bytes_max = BODY_BYTES_MAX)]
pub struct ForwardFields {
    /// Recipients
    #[field(foreign = ["To"], read = read_to, schema = recipients_schema)]
    to: RecipientLists,
    /// Text above the forwarded message
    #[field(aliases = ["textBody", "text_body", "plain_body"], foreign = ["TextBody"], reader = BodyText)]
    text: Option<String>,
}

fn read_to(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<RecipientLists> {
    Some(read_recipients(fields, notes))
}

/// `POST /received-emails/{id}/forward`.
///
/// # Errors
/// The email does not exist, or its message is no longer stored; the intake refuses the email.
pub async fn forward(
    state: State,
    tenant: Tenant,
    (ReceivedEmailPath(id), (key, ForwardFields { to: people, text })): ForwardReceivedEmail,
) -> Result<IdempotentResponse<SendResponse>> {
    let fingerprint = || {
        let to: Vec<String> = people.to.iter().map(ToString::to_string).collect();
        json!(["forward", id, to, text]).to_string()
    };
    let claim = key.claim(fingerprint);
    let draft = async { Ok((forward_draft(&state, &tenant, id, people, text).await?, Vec::new())) };
    send_idempotent(&state, &tenant, IdempotencyScope::Forward, claim, draft).await
}

/// The email of a request of `POST /received-emails/{id}/forward`.
///
/// # Errors
/// The email does not exist, or its message is no longer stored.
pub async fn resolve_forward(
    state: State,
    tenant: Tenant,
    (ReceivedEmailPath(id), (_, ForwardFields { to, text })): ForwardReceivedEmail,
) -> Result<Vec<Draft>> {
    Ok(vec![forward_draft(&state, &tenant, id, to, text).await?])
}

async fn forward_draft(
    state: &AppState,
    tenant: &Tenant,
    id: ReceivedId,
    people: RecipientLists,
    text: Option<String>,
) -> Result<Draft> {
    let received = find(state, tenant, id).await?;
    let message = load_message(state, &received).await?;
    let heading = &received.heading;
    let forwarded_header = format!(
        "---------- Forwarded message ----------\nFrom: {}\nDate: {}\nSubject: {}\nTo: {}\n\nThe message is attached.\n",
        heading.from,
        model::timestamp::to_rfc3339(received.received_at),
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
    Ok(build_draft(parts, people.envelope))
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
