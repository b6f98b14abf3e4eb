//! Emails: send, list, show, and the events and delivery attempts of an email.
//!
//! `POST /emails` parses a send request (`send`, `recipients`, `attachments`, …) into a `Draft` and
//! submits it to the message intake. The other operations show stored emails (`view`, `timeline`). Access is decided by
//! the tenant alone: an id of another account is answered 404.

pub mod attachments;
pub mod batch;
pub mod list;
pub mod metrics;
pub mod path;
pub mod recipients;
pub mod reschedule;
pub mod resend;
pub mod send;
pub mod send_email;
pub(crate) mod send_fields;
mod send_idempotent;
pub mod send_options;
pub mod sent_attachment;
pub mod tags_and_headers;
pub mod template;
pub mod test_event;
pub mod timeline;
pub mod view;

use httpd::large_response::{LargeResponse, LargeResponsePermit};
use httpd::response::{IntoResponse, Response};
use model::draft::Draft;
use model::idempotency::IdempotencyScope;

use crate::idempotency::IdempotentResponse;
use crate::prelude::*;

pub use self::batch::submit::send_batch;
use self::path::{EmailPath, find, find_without_recipients};
use self::send::{SendRequest, SendResponse};
pub use self::send_idempotent::send_idempotent;
use self::timeline::{DeliveryAttemptList, DeliveryAttemptView, EmailEventList, EmailEventView, TIMELINE_MAX};
use self::view::{EmailDetail, EmailResponse};

/// `POST /emails`.
///
/// # Errors
/// The intake rejects the email; the idempotency key is in progress or was used for another request.
pub async fn send(state: State, tenant: Tenant, request: SendRequest) -> Result<IdempotentResponse<SendResponse>> {
    let SendRequest { email, mut warnings, claim } = request;
    let draft = async { Ok((email.into_draft(&state, &tenant, &mut warnings).await?, warnings)) };
    send_idempotent(&state, &tenant, IdempotencyScope::Send, claim, draft).await
}

/// The email of a request of `POST /emails`.
///
/// # Errors
/// The template cannot be rendered, or a field is missing.
pub async fn resolve_send(state: State, tenant: Tenant, request: SendRequest) -> Result<Vec<Draft>> {
    let SendRequest { email, mut warnings, .. } = request;
    Ok(vec![email.into_draft(&state, &tenant, &mut warnings).await?])
}

/// `GET /emails/{id}`.
pub async fn get(state: State, tenant: Tenant, EmailPath(id): EmailPath) -> Result<EmailResponse> {
    let found = find(&state, &tenant, id).await?;
    Ok(EmailResponse { email: EmailDetail::load(&state, &tenant, &found).await? })
}

/// `GET /emails/{id}/events`.
pub async fn events(
    state: State,
    tenant: Tenant,
    (EmailPath(id), page): (EmailPath, PageParameters),
) -> Result<EmailEventList> {
    let store = &state.services.store;
    let account = tenant.account().id;
    find_without_recipients(&state, &tenant, id).await?;
    let events = store::event::list(store, account, id, TIMELINE_MAX).await?;
    let (events, next_cursor) = page.paginate(events)?;
    let events: Vec<_> = events.into_iter().map(EmailEventView::from_event).collect();
    Ok(EmailEventList::new(events, next_cursor))
}

/// `GET /emails/{id}/attempts`.
pub async fn attempts(
    state: State,
    tenant: Tenant,
    (EmailPath(id), page): (EmailPath, PageParameters),
) -> Result<DeliveryAttemptList> {
    let found = find(&state, &tenant, id).await?;
    let mut attempts = store::attempt::list(&state.services.store, tenant.account().id, id, TIMELINE_MAX).await?;
    attempts.sort_by_key(|attempt| (attempt.created_at, attempt.recipient, attempt.number));
    let (attempts, next_cursor) = page.paginate(attempts)?;
    let attempts: Vec<_> =
        attempts.into_iter().map(|attempt| DeliveryAttemptView::from_attempt(attempt, &found.recipients)).collect();
    Ok(DeliveryAttemptList::new(attempts, next_cursor))
}

/// A sent message in RFC 5322 format.
#[derive(Debug)]
pub struct RawSentMessage(Bytes);

impl IntoResponse for RawSentMessage {
    const MEDIA_TYPE: &'static str = "message/rfc822";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The message with header and body"})
    }

    fn into_response(self) -> Result<Response> {
        Ok(Self::with_body(self.0))
    }
}

/// `GET /emails/{id}/raw`.
///
/// # Errors
/// The email does not exist, its content is confidential or no longer stored; the store cannot be read.
pub async fn raw(state: State, tenant: Tenant, EmailPath(id): EmailPath) -> Result<LargeResponse<RawSentMessage>> {
    let (store, account) = (&state.services.store, tenant.account().id);
    let email = find_without_recipients(&state, &tenant, id).await?;
    if email.is_confidential() {
        return Err(Problem::new(
            ErrorCode::NOT_FOUND,
            "The content of this message is confidential and can be read only by its recipient",
        ));
    }
    let permit = LargeResponsePermit::acquire(email.size_bytes).await?;
    let bytes = store::email::get_body(store, account, id).await?;
    bytes
        .map(|bytes| permit.attach_to(RawSentMessage(bytes)))
        .ok_or_else(|| Problem::new(ErrorCode::NOT_FOUND, "The content of this message is no longer stored"))
}
