//! Holds a request of a client until a person decides it.
//!
//! ```text
//! request ─► JSON object without secrets ─►[ approval + mail to the owner ] ─► 202 approval_required
//! ```
//!
//! The operation reads the request when it is executed: a request with an invalid field is held, and fails then.

use bytes::Bytes;
use http::header::{IF_MATCH, LOCATION};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use mail::approval::{
    Approval, ApprovalState, ApprovalStatus, BODY_BYTES_MAX, ExecutionResult, HeldRequest, PENDING_MAX,
};
use mail::client_policy::ApprovalKind;
use mail::credential::CredentialId;
use mail::id::ApprovalId;
use mail::owner_alert::AlertSubject;
use serde_json::json;
use store::access::Tenant;
use store::engine::{Batch, CommitError};

use super::view::approval_url;
use crate::approvals::policy::SECRET_FIELDS;
use crate::fields;
use crate::idempotency;
use crate::json_limits;
use crate::json_timestamp::JsonTimestamp;
use crate::operation::Operation;
use crate::problem::{ErrorCode, Problem};
use crate::response::{JSON_MEDIA_TYPE, Response};
use crate::state::AppState;

/// The owner gets no further mail while this many requests of the last hour are pending.
const MAILED_PENDING_MAX: usize = 10;
const HOUR: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// Stores the request with a mail to the owner, and answers 202. A request whose idempotency key was held before gets
/// the state of that approval, or its result.
///
/// # Errors
/// The request is malformed or too large, too many requests are pending, or the store cannot be written.
pub(crate) async fn hold(
    state: &AppState,
    tenant: &Tenant,
    operation: &Operation,
    kind: ApprovalKind,
    head: &Parts,
    body: &Bytes,
) -> Result<Response, Problem> {
    let client = tenant.actor().credential().ok_or_else(|| Problem::internal("a held request has no credential"))?;
    let request = held_request(operation, head, body)?;
    let (store, account, now) = (state.intake.store(), tenant.account().id, state.intake.clock().now());
    if let Some(found) = find_by_key(state, tenant, client, &request).await? {
        return repeated(state, &found, &request, now);
    }
    let since = |age: jiff::SignedDuration| now.checked_sub(age).unwrap_or(Timestamp::MIN);
    let decision_time = jiff::SignedDuration::try_from(mail::approval::DECISION_TIME).unwrap_or(HOUR);
    let pending = store::approval::count_pending(store, account, since(decision_time), PENDING_MAX).await?;
    if pending >= PENDING_MAX {
        let text = format!("{PENDING_MAX} requests already wait for approval; decide them or let them expire");
        return Err(Problem::policy_violation("approve", text));
    }
    let pending_lately = store::approval::count_pending(store, account, since(HOUR), MAILED_PENDING_MAX).await?;
    let id = ApprovalId::new(now, state.intake.entropy().unique_bits());
    let held = Approval { id, account, client, kind, request, created_at: now, state: ApprovalState::Pending };
    let mut batch = Batch::progress();
    store::approval::create(&mut batch, &held);
    let alert = (pending_lately < MAILED_PENDING_MAX).then(|| state.intake.alert_partition());
    if let Some(partition) = alert {
        let about = AlertSubject::Approval {
            approval: id,
            operation: held.request.operation.clone(),
            approval_url: approval_url(state, id),
        };
        state.intake.put_owner_alert(&mut batch, partition, account, about);
    }
    match store.commit(batch).await {
        Ok(()) => {}
        // The same idempotency key was used at the same time.
        Err(CommitError::Conflict { .. }) => {
            let text = "A request with this key is in progress";
            return Err(Problem::new(ErrorCode::IDEMPOTENCY_IN_PROGRESS, text));
        }
        Err(error) => return Err(Problem::outage(error)),
    }
    alert.into_iter().for_each(|partition| state.intake.notify_owner_alert(partition));
    tracing::info!(account.id = %account, approval.id = %id, operation = operation.id, "request waits for approval");
    approval_required(state, &held)
}

/// Only a JSON object without secrets is held: a person reads it, and it is stored as it is.
fn check_body(body: &Bytes) -> Result<(), Problem> {
    json_limits::check_limits(body)?;
    let fields = fields::parse_body(body)?;
    match fields.0.iter().find(|(name, _)| SECRET_FIELDS.contains(&name.as_ref())) {
        Some((name, _)) => {
            let text = format!("A request with `{name}` cannot wait for approval, because it contains a secret");
            Err(Problem::policy_violation("credentials", text))
        }
        None => Ok(()),
    }
}

fn held_request(operation: &Operation, head: &Parts, body: &Bytes) -> Result<HeldRequest, Problem> {
    if body.len() > BODY_BYTES_MAX {
        let text = format!("A request that waits for approval has at most {BODY_BYTES_MAX} bytes");
        return Err(Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, text));
    }
    if !body.is_empty() {
        check_body(body)?;
    }
    let text = std::str::from_utf8(body).map_err(|_| Problem::new(ErrorCode::INVALID_JSON, "is not valid UTF-8"))?;
    let if_match = head.headers.get(IF_MATCH).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(HeldRequest {
        operation: operation.id.to_owned(),
        method: operation.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        idempotency_key: idempotency::parse_key(&head.headers)?,
        if_match,
        body: text.to_owned(),
    })
}

async fn find_by_key(
    state: &AppState,
    tenant: &Tenant,
    client: CredentialId,
    request: &HeldRequest,
) -> Result<Option<Approval>, Problem> {
    let Some(used) = &request.idempotency_key else { return Ok(None) };
    let store = state.intake.store();
    let account = tenant.account().id;
    Ok(store::approval::find_by_idempotency_key(store, account, client, &request.operation, used).await?)
}

/// The response to a request that was held before.
fn repeated(state: &AppState, found: &Approval, request: &HeldRequest, now: Timestamp) -> Result<Response, Problem> {
    if found.request.hash() != request.hash() {
        let text = "The idempotency key was used for a different request; use a new one";
        return Err(Problem::new(ErrorCode::IDEMPOTENCY_CONFLICT, text));
    }
    let status = found.status(now);
    match (&found.state, status) {
        (ApprovalState::Executed { result, .. }, _) if !result.body.is_empty() => stored_result(result),
        (_, ApprovalStatus::Rejected | ApprovalStatus::Expired) => {
            let text =
                format!("The request was not approved ({}); a new one needs another idempotency key", status.word());
            Err(Problem::policy_violation("approve", text))
        }
        (_, ApprovalStatus::Pending) => approval_required(state, found),
        (_, ApprovalStatus::Approved | ApprovalStatus::Executing) => {
            Err(Problem::new(ErrorCode::IDEMPOTENCY_IN_PROGRESS, "The approved request is being carried out"))
        }
        (_, ApprovalStatus::Executed | ApprovalStatus::Interrupted) => {
            let text =
                format!("The request was approved before and is {}; see `GET /approvals/{}`", status.word(), found.id);
            Err(Problem::new(ErrorCode::CONFLICT, text))
        }
    }
}

fn stored_result(result: &ExecutionResult) -> Result<Response, Problem> {
    let status = StatusCode::from_u16(result.status).map_err(Problem::internal)?;
    let headers = vec![(idempotency::REPLAYED, HeaderValue::from_static("true"))];
    let media_type = HeaderValue::from_static(JSON_MEDIA_TYPE);
    Ok(Response { status, media_type, headers, body: Bytes::from(result.body.clone()), stream: None })
}

fn approval_required(state: &AppState, held: &Approval) -> Result<Response, Problem> {
    let url = approval_url(state, held.id);
    let body = json!({
        "status": "approval_required",
        "approval_id": held.id,
        "url": url,
        "expires_at": JsonTimestamp(held.expires_at()),
    });
    let body = serde_json::to_vec(&body).map_err(Problem::internal)?;
    let location = HeaderValue::try_from(format!("/approvals/{}", held.id)).map_err(Problem::internal)?;
    let media_type = HeaderValue::from_static(JSON_MEDIA_TYPE);
    let headers = vec![(LOCATION, location)];
    Ok(Response { status: StatusCode::ACCEPTED, media_type, headers, body: body.into(), stream: None })
}
