//! Emails: send one, list them, look at one, see what happened to it.
//!
//! `POST /emails` reads a send request (`send`, with `recipients`, `attachments` and `labels`) into
//! a `Draft` and hands it to the hall; the others show what the store remembers (`view`,
//! `timeline`). Whose emails they are is decided by the tenant alone: an id of another account is
//! not found.

pub mod amend;
pub mod attachments;
pub mod batch;
pub(crate) mod fingerprint;
pub mod labels;
pub mod letter;
pub mod list;
pub mod metrics;
mod once;
pub mod recipients;
pub mod rehearse;
pub mod resend;
pub mod send;
pub mod template;
pub mod timeline;
pub mod view;
pub mod wishes;

use std::sync::Arc;

use bytes::Bytes;
use mail::email::Email;
use mail::id::EmailId;
use mail::idempotency::Operation;
use serde_json::{Value, json};
use store::access::Tenant;
use store::email::EmailWithRecipients;

use crate::call::{Call, Input, Reply, Takes};
use crate::held::{Held, Place};
use crate::idempotency::Once;
use crate::page::Page;
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

pub use self::batch::run::send_batch;
pub use self::once::send_once;
pub use self::send::REQUEST_BYTES_MAX;
use self::send::{SendRequest, Sent};
use self::timeline::{AttemptList, AttemptView, EventList, EventView, TIMELINE_MAX};
use self::view::{EmailDetail, OneEmail};

/// `POST /emails`.
///
/// # Errors
/// What the hall refuses; what is wrong with the request was told before; what is wrong with its key.
pub async fn send(room: Arc<Room>, tenant: Tenant, request: SendRequest) -> Result<Once<Sent>, Problem> {
    let SendRequest { letter, mut warnings, claim } = request;
    let draft = async { Ok((letter.fill(&room, &tenant, &mut warnings).await?, warnings)) };
    send_once(&room, &tenant, (Operation::Send, claim), draft).await
}

/// An email's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfEmail(EmailId);

const ID: &str = "id";

fn id_parameter() -> Value {
    schema::path_parameter(ID, "The email's id (`msg_…`)")
}

impl Input for OfEmail {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![id_parameter()], ..Takes::default() }
    }

    /// What cannot be an id is the id of nothing.
    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| no_such_email())
    }
}

/// A page of something of an email's.
#[derive(Debug)]
pub struct PageOfEmail(OfEmail, Page);

impl Input for PageOfEmail {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = vec![id_parameter()];
        parameters.extend(Page::parameters());
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(OfEmail::read(call)?, Page::read(&call.query)?))
    }
}

fn no_such_email() -> Problem {
    Problem::new(Code::NOT_FOUND, "No such email")
}

async fn find(room: &Room, tenant: &Tenant, id: EmailId) -> Result<EmailWithRecipients, Problem> {
    let found = store::email::get(room.hall.store(), tenant.account().id, id).await?;
    let found = found.ok_or_else(no_such_email)?;
    check_reach(room, tenant, &found.email).await?;
    Ok(found)
}

/// An email without its recipients.
async fn find_bare(room: &Room, tenant: &Tenant, id: EmailId) -> Result<Email, Problem> {
    let found = store::email::get_bare(room.hall.store(), tenant.account().id, id).await?;
    let email = found.ok_or_else(no_such_email)?;
    check_reach(room, tenant, &email).await?;
    Ok(email)
}

/// For a key that may only send, what others sent is not there; for one that is bound to a domain, what was
/// sent from elsewhere.
async fn check_reach(room: &Room, tenant: &Tenant, email: &Email) -> Result<(), Problem> {
    if tenant.confined_to().is_some_and(|own| email.sent_by != Some(own)) {
        return Err(no_such_email());
    }
    let Some(bond) = tenant.bound_to() else { return Ok(()) };
    let domain = store::domain::get(room.hall.store(), tenant.account().id, bond).await?;
    match domain {
        Some(domain) if email.domain.as_ref() == Some(&domain.name) => Ok(()),
        _ => Err(no_such_email()),
    }
}

/// `GET /emails/{id}`.
///
/// # Errors
/// No such email; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, OfEmail(id): OfEmail) -> Result<OneEmail, Problem> {
    let found = find(&room, &tenant, id).await?;
    Ok(OneEmail { email: EmailDetail::read(&room, &tenant, &found).await? })
}

/// `GET /emails/{id}/events`.
///
/// # Errors
/// No such email; the cursor is none of this list's; the store cannot be read.
pub async fn events(room: Arc<Room>, tenant: Tenant, input: PageOfEmail) -> Result<EventList, Problem> {
    let PageOfEmail(OfEmail(id), page) = input;
    let store = room.hall.store();
    let account = tenant.account().id;
    find_bare(&room, &tenant, id).await?;
    let events = store::event::list(store, account, id, TIMELINE_MAX).await?;
    let (events, next_cursor) = page.of(events)?;
    let events: Vec<_> = events.into_iter().map(EventView::of).collect();
    Ok(EventList { events, has_more: next_cursor.is_some(), next_cursor })
}

/// `GET /emails/{id}/attempts`.
///
/// # Errors
/// No such email; the cursor is none of this list's; the store cannot be read.
pub async fn attempts(room: Arc<Room>, tenant: Tenant, input: PageOfEmail) -> Result<AttemptList, Problem> {
    let PageOfEmail(OfEmail(id), page) = input;
    let found = find(&room, &tenant, id).await?;
    let mut attempts = store::attempt::list(room.hall.store(), tenant.account().id, id, TIMELINE_MAX).await?;
    attempts.sort_by_key(|attempt| (attempt.created_at, attempt.recipient, attempt.number));
    let (attempts, next_cursor) = page.of(attempts)?;
    let attempts: Vec<_> =
        attempts.into_iter().map(|attempt| AttemptView::of(attempt, &found.recipients)).collect();
    Ok(AttemptList { attempts, has_more: next_cursor.is_some(), next_cursor })
}

/// A message as it was sent.
#[derive(Debug)]
pub struct Message(Bytes);

impl Reply for Message {
    const MEDIA_TYPE: &'static str = "message/rfc822";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The message, header and body"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.0)
    }
}

/// `GET /emails/{id}/raw`.
///
/// # Errors
/// No such email, or its bytes are not kept any more; the store cannot be read.
pub async fn raw(room: Arc<Room>, tenant: Tenant, OfEmail(id): OfEmail) -> Result<Held<Message>, Problem> {
    let (store, account) = (room.hall.store(), tenant.account().id);
    let email = find_bare(&room, &tenant, id).await?;
    if email.is_for_its_recipient_alone() {
        return Err(Problem::new(Code::NOT_FOUND, "What this message says is for its recipient alone"));
    }
    let place = Place::of(email.size_bytes).await?;
    let bytes = store::email::raw(store, account, id).await?;
    bytes
        .map(|bytes| place.holds(Message(bytes)))
        .ok_or_else(|| Problem::new(Code::NOT_FOUND, "The message's bytes are not kept any more"))
}
