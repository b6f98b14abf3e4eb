//! `POST /emails/{id}/resend`: a new send, built from a stored email (email-api.md "Email endpoints").
//!
//! Its author, recipients, subject, texts, tags and own header fields are those of the stored one; files
//! are left out, and links of ours are made anew. Everything is checked anew, as for any other send. What
//! has yet to go out by itself, since it is scheduled or held, is not sent again: it would go out twice.

use std::sync::Arc;

use http::HeaderMap;
use mail::compose::{Composition, CustomHeader};
use mail::contents::ParsedBody;
use mail::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use mail::email::{EmailRollup, EmailStatus, Ingress};
use mail::idempotency::IdempotencyScope;
use mail::recipient::{DsnOptions, Recipient};
use mail::tracking::restore_html;
use mail::unsubscribe;
use serde_json::json;
use store::access::Tenant;
use store::email::EmailWithRecipients;

use super::send::SendResponse;
use super::{EmailPath, find, id_parameter, send_idempotent};
use crate::call::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::{FieldDiagnostics, FieldNames};
use crate::idempotency::{self, IdempotentResponse};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// What is said when the stored email had files.
const ATTACHMENTS_OMITTED: &str = "attachments_omitted";

/// What it takes.
#[derive(Debug)]
pub struct ResendEmail {
    email: EmailPath,
    headers: HeaderMap,
}

impl FromRequest for ResendEmail {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object("Nothing: the email is sent as it is stored", []);
        let parameters = vec![id_parameter(), idempotency::header_parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    /// Whoever asks for other recipients, say, is told that they get none.
    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        call.optional_body_fields(&NAMES, &mut notes)?;
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { email: EmailPath::read(call)?, headers: call.headers.clone() })
    }
}

/// `POST /emails/{id}/resend`.
///
/// # Errors
/// No such email, or its message is not kept any more; what the hall refuses.
pub async fn resend(
    room: Arc<AppState>,
    tenant: Tenant,
    input: ResendEmail,
) -> Result<IdempotentResponse<SendResponse>, Problem> {
    let ResendEmail { email: EmailPath(id), headers } = input;
    let claim = idempotency::parse_claim(&headers, || id.to_string())?;
    let draft = async { draft_from_stored(&room, find(&room, &tenant, id).await?).await };
    send_idempotent(&room, &tenant, (IdempotencyScope::Resend, claim), draft).await
}

/// The email has gone out, or never will.
fn check_resendable(recipients: &[Recipient]) -> Result<(), Problem> {
    let status = EmailRollup::from_recipients(recipients).status;
    if !matches!(status, EmailStatus::Scheduled | EmailStatus::Queued) {
        return Ok(());
    }
    let text = "The email has yet to be sent: PATCH /emails/{id} sends it at another time, or cancels it";
    Err(Problem::new(ErrorCode::VALIDATION_ERROR, text).with_details(json!({"status": status})))
}

async fn draft_from_stored(room: &AppState, found: EmailWithRecipients) -> Result<(Draft, Vec<String>), Problem> {
    let EmailWithRecipients { mut email, recipients, .. } = found;
    check_resendable(&recipients)?;
    if email.is_confidential() {
        return Err(Problem::new(ErrorCode::NOT_FOUND, "What this message says is for its recipient alone"));
    }
    let raw = store::email::get_body(room.intake.store(), email.account, email.id).await?;
    let raw = raw.ok_or_else(|| {
        Problem::new(ErrorCode::NOT_FOUND, "The message's bytes are not kept any more: it cannot be sent again")
    })?;
    let mut contents = tokio::task::spawn_blocking(move || ParsedBody::parse(&raw)).await.map_err(Problem::internal)?;
    // The new send makes its own link, if it is to have one. Subjects stored by earlier versions hold the old one.
    if email.unsubscribe
        && let Some(link) = contents.take_managed_unsubscribe()
    {
        email.facts.subject = unsubscribe::restore_placeholder(&email.facts.subject, &link);
    }
    let warnings = contents.files.iter().take(1).map(|_| ATTACHMENTS_OMITTED.to_owned()).collect();
    let headers = contents.headers.iter();
    let headers = headers.filter_map(|(name, value)| CustomHeader::new(name, value).ok()).collect();
    // What neither text nor HTML was in has a text that is empty.
    let text = contents.text.or_else(|| contents.html.is_none().then(String::new));
    let parts = Composition {
        from: email.from.clone(),
        to: email.facts.to,
        cc: email.facts.cc,
        bcc: email.facts.bcc,
        reply_to: email.facts.reply_to,
        subject: email.facts.subject,
        // The new email is tracked anew, under its own name.
        html: contents.html.map(|html| restore_html(&html, room.intake.link_key())),
        text,
        headers,
        attachments: Vec::new(),
    };
    let recipients = recipients
        .into_iter()
        .map(|r| DraftRecipient { address: r.address, kind: r.kind, notify: DsnOptions::default() })
        .collect();
    let wishes = SendOptions {
        expires_in: email.expires_in,
        unsubscribe: Some(email.unsubscribe),
        resent_from: Some(email.id),
        template: email.template,
        ..SendOptions::default()
    };
    let draft = Draft {
        ingress: Ingress::Api,
        from: Some(email.from),
        envelope: SubmissionEnvelope::default(),
        recipients,
        content: DraftContent::Parts(Box::new(parts)),
        tags: email.tags,
        category: email.category,
        options: wishes,
    };
    Ok((draft, warnings))
}
