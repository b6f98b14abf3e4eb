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
use mail::idempotency::IdempotencyScope;
use serde_json::{Value, json};
use store::access::Tenant;
use store::email::EmailWithRecipients;

use crate::call::{FromRequest, IntoResponse, Request, RequestSpec};
use crate::held::{LargeResponse, LargeResponsePermit};
use crate::idempotency::IdempotentResponse;
use crate::page::PageParameters;
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas};

pub use self::batch::run::send_batch;
pub use self::once::send_idempotent;
pub use self::send::REQUEST_BYTES_MAX;
use self::send::{SendRequest, SendResponse};
use self::timeline::{DeliveryAttemptList, DeliveryAttemptView, EmailEventList, EmailEventView, TIMELINE_MAX};
use self::view::{EmailDetail, EmailResponse};

/// `POST /emails`.
///
/// # Errors
/// What the hall refuses; what is wrong with the request was told before; what is wrong with its key.
pub async fn send(
    room: Arc<AppState>,
    tenant: Tenant,
    request: SendRequest,
) -> Result<IdempotentResponse<SendResponse>, Problem> {
    let SendRequest { email: letter, mut warnings, claim } = request;
    let draft = async { Ok((letter.into_draft(&room, &tenant, &mut warnings).await?, warnings)) };
    send_idempotent(&room, &tenant, (IdempotencyScope::Send, claim), draft).await
}

/// An email's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct EmailPath(EmailId);

const ID: &str = "id";

fn id_parameter() -> Value {
    schema::path_parameter(ID, "The email's id (`msg_…`)")
}

impl FromRequest for EmailPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![id_parameter()], ..RequestSpec::default() }
    }

    /// What cannot be an id is the id of nothing.
    fn read(call: &Request) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| email_not_found())
    }
}

/// A page of something of an email's.
#[derive(Debug)]
pub struct EmailTimelineQuery(EmailPath, PageParameters);

impl FromRequest for EmailTimelineQuery {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = vec![id_parameter()];
        parameters.extend(PageParameters::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(EmailPath::read(call)?, PageParameters::from_query(&call.query)?))
    }
}

fn email_not_found() -> Problem {
    Problem::new(ErrorCode::NOT_FOUND, "No such email")
}

async fn find(room: &AppState, tenant: &Tenant, id: EmailId) -> Result<EmailWithRecipients, Problem> {
    let found = store::email::get(room.intake.store(), tenant.account().id, id).await?;
    let found = found.ok_or_else(email_not_found)?;
    check_key_access(room, tenant, &found.email).await?;
    Ok(found)
}

/// An email without its recipients.
async fn find_without_recipients(room: &AppState, tenant: &Tenant, id: EmailId) -> Result<Email, Problem> {
    let found = store::email::get_without_recipients(room.intake.store(), tenant.account().id, id).await?;
    let email = found.ok_or_else(email_not_found)?;
    check_key_access(room, tenant, &email).await?;
    Ok(email)
}

/// For a key that may only send, what others sent is not there; for one that is bound to a domain, what was
/// sent from elsewhere.
async fn check_key_access(room: &AppState, tenant: &Tenant, email: &Email) -> Result<(), Problem> {
    if tenant.confined_to().is_some_and(|own| email.sent_by != Some(own)) {
        return Err(email_not_found());
    }
    let Some(bond) = tenant.bound_to() else { return Ok(()) };
    let domain = store::domain::get(room.intake.store(), tenant.account().id, bond).await?;
    match domain {
        Some(domain) if email.domain.as_ref() == Some(&domain.name) => Ok(()),
        _ => Err(email_not_found()),
    }
}

/// `GET /emails/{id}`.
///
/// # Errors
/// No such email; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, EmailPath(id): EmailPath) -> Result<EmailResponse, Problem> {
    let found = find(&room, &tenant, id).await?;
    Ok(EmailResponse { email: EmailDetail::load(&room, &tenant, &found).await? })
}

/// `GET /emails/{id}/events`.
///
/// # Errors
/// No such email; the cursor is none of this list's; the store cannot be read.
pub async fn events(room: Arc<AppState>, tenant: Tenant, input: EmailTimelineQuery) -> Result<EmailEventList, Problem> {
    let EmailTimelineQuery(EmailPath(id), page) = input;
    let store = room.intake.store();
    let account = tenant.account().id;
    find_without_recipients(&room, &tenant, id).await?;
    let events = store::event::list(store, account, id, TIMELINE_MAX).await?;
    let (events, next_cursor) = page.paginate(events)?;
    let events: Vec<_> = events.into_iter().map(EmailEventView::from_event).collect();
    Ok(EmailEventList { events, has_more: next_cursor.is_some(), next_cursor })
}

/// `GET /emails/{id}/attempts`.
///
/// # Errors
/// No such email; the cursor is none of this list's; the store cannot be read.
pub async fn attempts(
    room: Arc<AppState>,
    tenant: Tenant,
    input: EmailTimelineQuery,
) -> Result<DeliveryAttemptList, Problem> {
    let EmailTimelineQuery(EmailPath(id), page) = input;
    let found = find(&room, &tenant, id).await?;
    let mut attempts = store::attempt::list(room.intake.store(), tenant.account().id, id, TIMELINE_MAX).await?;
    attempts.sort_by_key(|attempt| (attempt.created_at, attempt.recipient, attempt.number));
    let (attempts, next_cursor) = page.paginate(attempts)?;
    let attempts: Vec<_> =
        attempts.into_iter().map(|attempt| DeliveryAttemptView::from_attempt(attempt, &found.recipients)).collect();
    Ok(DeliveryAttemptList { attempts, has_more: next_cursor.is_some(), next_cursor })
}

/// A message as it was sent.
#[derive(Debug)]
pub struct RawSentMessage(Bytes);

impl IntoResponse for RawSentMessage {
    const MEDIA_TYPE: &'static str = "message/rfc822";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The message, header and body"})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.0)
    }
}

/// `GET /emails/{id}/raw`.
///
/// # Errors
/// No such email, or its bytes are not kept any more; the store cannot be read.
pub async fn raw(
    room: Arc<AppState>,
    tenant: Tenant,
    EmailPath(id): EmailPath,
) -> Result<LargeResponse<RawSentMessage>, Problem> {
    let (store, account) = (room.intake.store(), tenant.account().id);
    let email = find_without_recipients(&room, &tenant, id).await?;
    if email.is_confidential() {
        return Err(Problem::new(ErrorCode::NOT_FOUND, "What this message says is for its recipient alone"));
    }
    let place = LargeResponsePermit::acquire(email.size_bytes).await?;
    let bytes = store::email::get_body(store, account, id).await?;
    bytes
        .map(|bytes| place.attach_to(RawSentMessage(bytes)))
        .ok_or_else(|| Problem::new(ErrorCode::NOT_FOUND, "The message's bytes are not kept any more"))
}
