//! `POST /emails/{id}/resend`: a new send, built from a stored email (email-api.md "Email endpoints").
//!
//! Its author, recipients, subject, texts, tags and own header fields are those of the stored one; files
//! are left out, and links of ours are made anew. Everything is checked anew, as for any other send. What
//! has yet to go out by itself, since it is scheduled or held, is not sent again: it would go out twice.

use std::sync::Arc;

use http::HeaderMap;
use mail::compose::{Composition, CustomHeader};
use mail::contents::Contents;
use mail::draft::{Content, Draft, DraftRecipient, Envelope, Wishes};
use mail::email::{Door, EmailStatus, Rollup};
use mail::idempotency::Operation;
use mail::recipient::{Notify, Recipient};
use mail::tracking::restore_html;
use mail::unsubscribe;
use serde_json::json;
use store::access::Tenant;
use store::email::EmailWithRecipients;

use super::send::Sent;
use super::{OfEmail, find, id_parameter, send_once};
use crate::call::{Call, Input, Media, SMALL_BYTES_MAX, Takes};
use crate::fields::{Names, Notes};
use crate::idempotency::{self, Once};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What is said when the stored email had files.
const ATTACHMENTS_OMITTED: &str = "attachments_omitted";

/// What it takes.
#[derive(Debug)]
pub struct ResendEmail {
    email: OfEmail,
    headers: HeaderMap,
}

impl Input for ResendEmail {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object("Nothing: the email is sent as it is stored", []);
        let parameters = vec![id_parameter(), idempotency::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    /// Whoever asks for other recipients, say, is told that they get none.
    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[], foreign: &[] };
        let mut notes = Notes::default();
        call.given_if_any(&NAMES, &mut notes)?;
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { email: OfEmail::read(call)?, headers: call.headers.clone() })
    }
}

/// `POST /emails/{id}/resend`.
///
/// # Errors
/// No such email, or its message is not kept any more; what the hall refuses.
pub async fn resend(room: Arc<Room>, tenant: Tenant, input: ResendEmail) -> Result<Once<Sent>, Problem> {
    let ResendEmail { email: OfEmail(id), headers } = input;
    let claim = idempotency::claim(&headers, || id.to_string())?;
    let draft = async { again(&room, find(&room, &tenant, id).await?).await };
    send_once(&room, &tenant, (Operation::Resend, claim), draft).await
}

/// The email has gone out, or never will.
fn check_state(recipients: &[Recipient]) -> Result<(), Problem> {
    let status = Rollup::of(recipients).status;
    if !matches!(status, EmailStatus::Scheduled | EmailStatus::Queued) {
        return Ok(());
    }
    let text = "The email has yet to be sent: PATCH /emails/{id} sends it at another time, or cancels it";
    Err(Problem::new(Code::VALIDATION_ERROR, text).details(json!({"status": status})))
}

async fn again(room: &Room, found: EmailWithRecipients) -> Result<(Draft, Vec<String>), Problem> {
    let EmailWithRecipients { mut email, recipients, .. } = found;
    check_state(&recipients)?;
    if email.is_for_its_recipient_alone() {
        return Err(Problem::new(Code::NOT_FOUND, "What this message says is for its recipient alone"));
    }
    let raw = store::email::raw(room.hall.store(), email.account, email.id).await?;
    let raw = raw.ok_or_else(|| {
        Problem::new(Code::NOT_FOUND, "The message's bytes are not kept any more: it cannot be sent again")
    })?;
    let mut contents =
        tokio::task::spawn_blocking(move || Contents::of(&raw)).await.map_err(Problem::internal)?;
    // The new send makes its own link, if it is to have one. Subjects stored by earlier versions hold the old one.
    if email.unsubscribe
        && let Some(link) = contents.take_managed_unsubscribe()
    {
        email.facts.subject = unsubscribe::restore(&email.facts.subject, &link);
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
        html: contents.html.map(|html| restore_html(&html, room.hall.links())),
        text,
        headers,
        attachments: Vec::new(),
    };
    let recipients = recipients
        .into_iter()
        .map(|r| DraftRecipient { address: r.address, kind: r.kind, notify: Notify::default() })
        .collect();
    let wishes = Wishes {
        expires_in: email.expires_in,
        unsubscribe: Some(email.unsubscribe),
        resent_from: Some(email.id),
        template: email.template,
        ..Wishes::default()
    };
    let draft = Draft {
        door: Door::Api,
        from: Some(email.from),
        envelope: Envelope::default(),
        recipients,
        content: Content::Parts(Box::new(parts)),
        tags: email.tags,
        category: email.category,
        wishes,
    };
    Ok((draft, warnings))
}
