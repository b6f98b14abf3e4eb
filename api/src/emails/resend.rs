//! `POST /emails/{id}/resend`: a new send, built from a stored email (email-api.md "Email endpoints").
//!
//! Its author, recipients, subject, texts, tags and own header fields are those of the stored one; files
//! are left out. Everything is checked anew, as for any other send.

use std::sync::Arc;

use http::HeaderMap;
use mail::compose::{Composition, CustomHeader};
use mail::contents::Contents;
use mail::draft::{Content, Draft, DraftRecipient, Envelope, Wishes};
use mail::email::Door;
use mail::idempotency::Operation;
use mail::recipient::Notify;
use mail::tracking::restore_html;
use queue::accept::Accepted;
use store::access::Tenant;
use store::email::EmailWithRecipients;
use store::engine::Batch;

use super::send::Sent;
use super::{OfEmail, find, id_parameter};
use crate::call::{Call, Input, Takes};
use crate::idempotency::{self, Once, Turn, done};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::Schemas;

/// What is said when the stored email had files.
const ATTACHMENTS_OMITTED: &str = "attachments_omitted";

/// What it takes.
#[derive(Debug)]
pub struct ResendEmail {
    email: OfEmail,
    headers: HeaderMap,
}

impl Input for ResendEmail {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![id_parameter(), idempotency::parameter()], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
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
    let slot = match idempotency::look(&room, &tenant, Operation::Resend, claim).await? {
        Turn::Done(body) => return Ok(Once::again(body)),
        Turn::Go(slot) => slot,
    };
    let found = find(&room, &tenant, id).await?;
    let (draft, warnings) = again(&room, found).await?;
    let now = room.hall.clock().now();
    let sent = |accepted: &Accepted| Sent::of(accepted, &warnings);
    let result = {
        let also = |accepted: &Accepted, batch: &mut Batch| {
            if let Some(slot) = &slot {
                slot.keep(batch, done(&sent(accepted)), now);
            }
        };
        room.hall.accept_with(&tenant, draft, &also).await
    };
    let left = result.as_ref().map(|accepted| accepted.left).unwrap_or_default();
    let answer = idempotency::conclude(slot, &room, result.map(|accepted| sent(&accepted))).await?;
    Ok(answer.with_quota(left))
}

async fn again(room: &Room, found: EmailWithRecipients) -> Result<(Draft, Vec<String>), Problem> {
    let EmailWithRecipients { email, recipients, .. } = found;
    let raw = store::email::raw(room.hall.store(), email.account, email.id).await?;
    let raw = raw.ok_or_else(|| {
        Problem::new(Code::NOT_FOUND, "The message's bytes are not kept any more: it cannot be sent again")
    })?;
    let contents =
        tokio::task::spawn_blocking(move || Contents::of(&raw)).await.map_err(Problem::internal)?;
    let warnings = contents.files.iter().take(1).map(|_| ATTACHMENTS_OMITTED.to_owned()).collect();
    // The new send makes its own, if it is to have one.
    let is_managed =
        |name: &str| email.unsubscribe && name.to_ascii_lowercase().starts_with("list-unsubscribe");
    let headers = contents.headers.iter().filter(|(name, _)| !is_managed(name));
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
