//! `POST /emails/{id}/resend`: a new email built from a stored one.
//!
//! It has the stored email's author, recipients, subject, bodies, tags and custom headers, and on request its attachments.
//! Tracking and unsubscribe links are created again. It is validated like any other send. An email that is still
//! scheduled or held cannot be resent: it would be sent twice.

use message::compose::{Attachment, Composition, CustomHeader};
use model::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use model::email::{Email, EmailRollup, EmailStatus, Ingress};
use model::idempotency::IdempotencyScope;
use model::parsed_body::{ParsedAttachment, ParsedBody, parse_attachments};
use model::recipient::{DsnOptions, Recipient};
use model::tracking::restore_html;
use model::unsubscribe;
use store::email::EmailWithRecipients;

use super::path::{EmailPath, find};
use super::send::SendResponse;
use super::send_idempotent;
use crate::idempotency::{GivenKey, IdempotentResponse};
use crate::prelude::*;

/// Warning if the stored email had attachments.
const ATTACHMENTS_OMITTED: &str = "attachments_omitted";

// Fields such as other recipients are not supported; they are reported as ignored.
/// The email is resent as stored
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct ResendFields {
    /// Whether the new email also has the attachments; without them, the response has the warning `attachments_omitted`
    #[field(absent = false, default = false)]
    attachments: bool,
}

/// Path, key and body of `POST /emails/{id}/resend`.
type ResendEmail = (EmailPath, (GivenKey, ResendFields));

/// `POST /emails/{id}/resend`.
///
/// # Errors
/// The email does not exist or its content is no longer stored; the intake rejects the new email.
pub async fn resend(
    state: State,
    tenant: Tenant,
    (EmailPath(id), (key, ResendFields { attachments: keeps_attachments })): ResendEmail,
) -> Result<IdempotentResponse<SendResponse>> {
    // Without attachments the fingerprint is that of earlier releases: a retry across an update matches.
    let with_attachments = if keeps_attachments { " attachments" } else { "" };
    let claim = key.claim(|| format!("{id}{with_attachments}"));
    let draft = async { draft_from_stored(&state, find(&state, &tenant, id).await?, keeps_attachments).await };
    send_idempotent(&state, &tenant, IdempotencyScope::Resend, claim, draft).await
}

/// The email of a request of `POST /emails/{id}/resend`.
///
/// # Errors
/// The email does not exist or its content is no longer stored.
pub async fn resolve_resend(
    state: State,
    tenant: Tenant,
    (EmailPath(id), (_, fields)): ResendEmail,
) -> Result<Vec<Draft>> {
    let found = find(&state, &tenant, id).await?;
    let (draft, _) = draft_from_stored(&state, found, fields.attachments).await?;
    Ok(vec![draft])
}

/// Checks that the email was sent or will never be.
fn check_resendable(recipients: &[Recipient]) -> Result<()> {
    let status = EmailRollup::from_recipients(recipients).status;
    if !matches!(status, EmailStatus::Scheduled | EmailStatus::Queued) {
        return Ok(());
    }
    let text = "The email has not been sent yet; reschedule or cancel it with PATCH /emails/{id}";
    Err(Problem::new(ErrorCode::VALIDATION_ERROR, text).with_details(json!({"status": status})))
}

/// The stored content of an email, and its attachments if the new email has them.
async fn load_contents(
    state: &AppState,
    email: &Email,
    keeps_attachments: bool,
) -> Result<(ParsedBody, Vec<Attachment>)> {
    let raw = store::email::get_body(&state.services.store, email.account, email.id).await?;
    let raw = raw.ok_or_else(|| {
        Problem::new(ErrorCode::NOT_FOUND, "The content of this message is no longer stored; it cannot be resent")
    })?;
    let parse = move || {
        let files = if keeps_attachments { parse_attachments(&raw) } else { Vec::new() };
        let attachment = |(file, data): (ParsedAttachment, Vec<u8>)| Attachment {
            name: file.name.unwrap_or_else(|| "attachment".to_owned()),
            content_type: file.content_type,
            data,
            content_id: file.content_id,
        };
        (ParsedBody::parse(&raw), files.into_iter().map(attachment).collect())
    };
    tokio::task::spawn_blocking(parse).await.map_err(Problem::internal)
}

async fn draft_from_stored(
    state: &AppState,
    found: EmailWithRecipients,
    keeps_attachments: bool,
) -> Result<(Draft, Vec<String>)> {
    let EmailWithRecipients { mut email, recipients, .. } = found;
    check_resendable(&recipients)?;
    if email.is_confidential() {
        return Err(Problem::new(
            ErrorCode::NOT_FOUND,
            "The content of this message is confidential and can be read only by its recipient",
        ));
    }
    let (mut contents, attachments) = load_contents(state, &email, keeps_attachments).await?;
    // The new email gets its own unsubscribe link. Subjects stored by earlier versions contain the old one.
    if email.unsubscribe
        && let Some(link) = contents.take_managed_unsubscribe()
    {
        email.header.subject = unsubscribe::restore_placeholder(&email.header.subject, &link);
    }
    let omitted = contents.files.iter().take(usize::from(!keeps_attachments));
    let warnings = omitted.map(|_| ATTACHMENTS_OMITTED.to_owned()).collect();
    let headers = contents.headers.iter();
    let headers = headers.filter_map(|(name, value)| CustomHeader::new(name, value).ok()).collect();
    // A message with neither text nor HTML gets an empty text.
    let text = contents.text.or_else(|| contents.html.is_none().then(String::new));
    let parts = Composition {
        from: email.from.clone(),
        to: email.header.to,
        cc: email.header.cc,
        bcc: email.header.bcc,
        reply_to: email.header.reply_to,
        subject: email.header.subject,
        // Restores the original links, so that the new email is tracked under its own id.
        html: contents.html.map(|html| restore_html(&html, &state.accounts.links.key)),
        text,
        headers,
        attachments,
    };
    let recipients = recipients
        .into_iter()
        .map(|r| DraftRecipient { address: r.address, kind: r.kind, notify: DsnOptions::default() })
        .collect();
    let options = SendOptions {
        expires_in: email.expires_in,
        unsubscribe: Some(email.unsubscribe),
        resent_from: Some(email.id),
        template: email.template,
        ..SendOptions::default()
    };
    let draft = Draft {
        ingress: Ingress::Api,
        from: Some(email.from),
        envelope: SubmissionEnvelope { require_tls: email.require_tls, ..SubmissionEnvelope::default() },
        recipients,
        content: DraftContent::Parts(Box::new(parts)),
        tags: email.tags,
        category: email.category,
        options,
    };
    Ok((draft, warnings))
}
