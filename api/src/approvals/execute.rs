//! Executes approved requests.
//!
//! ```text
//! [ pending → executing ] ─► the operation's handler ─►[ executing → executed + result ]
//!        ▲ the decision        under the idempotency key of the request, or of the approval
//! ```
//!
//! When a node stops in between, the next one takes over after the lease: it repeats the request if that is safe, which
//! is so with an idempotency key and for methods that are idempotent (RFC 9110 9.2.2). Otherwise the approval ends as
//! interrupted. So a request is executed at most once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, IF_MATCH};
use http::request::Parts;
use http::{HeaderValue, Method};
use jiff::Timestamp;
use mail::approval::{Approval, ApprovalState, EXECUTION_LEASE, ExecutionResult, HeldRequest, RESPONSE_BYTES_MAX};
use mail::credential::CredentialId;
use mail::request_log::RequestSurface;
use store::access::{Actor, Tenant};
use store::engine::Batch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::policy;
use crate::access::{self, Principal};
use crate::dispatch;
use crate::idempotency;
use crate::operation::{Operation, OperationHandler};
use crate::problem::{ErrorCode, Problem};
use crate::request::Request;
use crate::request_log::RequestLogEntry;
use crate::response::{JSON_MEDIA_TYPE, Response};
use crate::schema::Schemas;
use crate::serve::memory_budget::MemoryShare;
use crate::serve::router::RouteMatch;
use crate::state::AppState;

/// Interval at which executions of nodes that stopped are looked for.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(30);
const PAGE_APPROVALS: usize = 100;

/// Executes an approved request and stores its result. Returns the approval as it is stored then.
pub(super) async fn execute(state: &Arc<AppState>, approval: &Approval) -> Result<Approval, Problem> {
    let ApprovalState::Executing { approved, .. } = approval.state else {
        return Err(Problem::internal("the approval is not being executed"));
    };
    let (id, begun) = (state.next_request_id(), Instant::now());
    let (status, body, error_code) = match perform(state, approval).await {
        Ok(response) => (response.status.as_u16(), stored_body(&response.media_type, &response.body), None),
        Err(problem) if problem.code() == ErrorCode::SERVICE_UNAVAILABLE => return Err(problem),
        Err(problem) => {
            if let Some(cause) = problem.cause() {
                tracing::error!(request.id = %id, approval.id = %approval.id, cause, "approved request failed");
            }
            let body = problem.body(id, &state.options.base_url);
            (
                problem.status().as_u16(),
                stored_body(&HeaderValue::from_static(JSON_MEDIA_TYPE), &body),
                Some(problem.code().word),
            )
        }
    };
    record(state, approval, id, (status, error_code), begun, &body);
    let at = state.intake.clock().now();
    let after = Approval {
        state: ApprovalState::Executed { approved, result: ExecutionResult { at, status, body } },
        ..approval.clone()
    };
    store_change(state, approval, &after).await?;
    Ok(after)
}

fn stored_body(media_type: &HeaderValue, body: &Bytes) -> String {
    let is_stored = *media_type == JSON_MEDIA_TYPE && body.len() <= RESPONSE_BYTES_MAX;
    let text = is_stored.then(|| std::str::from_utf8(body).ok()).flatten();
    text.unwrap_or_default().to_owned()
}

fn record(
    state: &AppState,
    approval: &Approval,
    id: mail::id::RequestId,
    (status, error_code): (u16, Option<&'static str>),
    begun: Instant,
    body: &str,
) {
    let Some(operation) = state.router.operation(&approval.request.operation) else { return };
    let Ok(head) = head_of(approval) else { return };
    let actor = match approval.client {
        CredentialId::ApiKey(key) => Actor::ApiKey(key),
        CredentialId::Grant(grant) => Actor::Grant(grant),
        CredentialId::Smtp(credential) => Actor::SmtpCredential(credential),
    };
    let entry = RequestLogEntry {
        id,
        actor: (approval.account, actor),
        operation: operation.id,
        status,
        error_code,
        duration: begun.elapsed(),
        surface: RequestSurface::Approval,
        address: None,
        is_audited: true,
    };
    state.request_log.record(entry, &head.method, head.uri.path(), body.as_bytes());
}

/// Calls the operation's handler as the client, with all rules that hold for it now but the approval.
async fn perform(state: &Arc<AppState>, approval: &Approval) -> Result<Response, Problem> {
    let tenant = tenant_of(state, approval).await?;
    let head = head_of(approval)?;
    let RouteMatch::Found(found) = state.router.find(&head.method, head.uri.path()) else {
        return Err(Problem::not_found("operation"));
    };
    let operation = found.operation;
    if operation.id != approval.request.operation {
        return Err(Problem::not_found("operation"));
    }
    access::authorize(&Principal::ApiKey(tenant.clone()), operation, &head)?;
    policy::decide(tenant.policy(), operation)?;
    let body = Bytes::from(approval.request.body.clone());
    let reserved = dispatch::reserve_storage(state, &tenant, operation, &body, &head.headers).await?;
    let query = approval.request.query.clone();
    let request = Request { path: found.path, query, headers: head.headers, body, ..Request::default() };
    let (OperationHandler::ApiKey(_, handler) | OperationHandler::ApiKeyOrSession(_, handler)) = &operation.handler
    else {
        return Err(Problem::not_found("operation"));
    };
    let running = handler(Arc::clone(state), tenant.clone(), request);
    let response = dispatch::spawn_handler(state, running, MemoryShare::default(), None, reserved).await?;
    dispatch::apply_response_policy(state, operation, Some(&tenant), response)
}

async fn tenant_of(state: &AppState, approval: &Approval) -> Result<Tenant, Problem> {
    let (store, now) = (state.intake.store(), state.intake.clock().now());
    let tenant = store::access::client_tenant(store, approval.account, approval.client, now).await;
    tenant.map_err(access::access_error_problem)
}

/// The request's head, with an idempotency key.
fn head_of(approval: &Approval) -> Result<Parts, Problem> {
    let HeldRequest { method, path, query, idempotency_key, if_match, .. } = &approval.request;
    let method: Method = method.parse().map_err(|_| Problem::internal("a stored method is invalid"))?;
    let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
    let own_key = approval.id.to_string();
    let mut builder = http::Request::builder().method(method).uri(target);
    builder = builder.header(CONTENT_TYPE, JSON_MEDIA_TYPE);
    builder = builder.header(idempotency::IDEMPOTENCY_KEY, idempotency_key.as_deref().unwrap_or(&own_key));
    if let Some(if_match) = if_match {
        builder = builder.header(IF_MATCH, if_match);
    }
    builder.body(()).map(|request| request.into_parts().0).map_err(Problem::internal)
}

/// Returns whether an interrupted request may be repeated.
fn is_repeatable(operation: &Operation) -> bool {
    let is_idempotent = matches!(operation.method, Method::GET | Method::PUT | Method::PATCH | Method::DELETE);
    is_idempotent || (operation.request_spec)(&mut Schemas::default()).takes_idempotency_key()
}

async fn store_change(state: &AppState, before: &Approval, after: &Approval) -> Result<(), Problem> {
    let mut batch = Batch::progress();
    store::approval::update(&mut batch, before, after);
    state.intake.store().commit(batch).await.map_err(Problem::outage)
}

/// End of a lease that begins now.
pub(super) fn lease_until(now: Timestamp) -> Timestamp {
    now.checked_add(EXECUTION_LEASE).unwrap_or(Timestamp::MAX)
}

/// Finishes executions of nodes that stopped, until `stop`.
pub(crate) async fn recover(state: Arc<AppState>, stop: CancellationToken) {
    loop {
        if let Err(error) = recover_once(&state).await
            && let Some(cause) = error.cause()
        {
            store::warn_unless_away!(state.intake.store(), cause, "cannot finish approved requests; retrying");
        }
        let next = state.intake.clock().now().checked_add(RECOVERY_INTERVAL).unwrap_or(Timestamp::MAX);
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.intake.clock().sleep_until(next) => {}
        }
    }
}

/// Looks once for executions whose lease has ended.
async fn recover_once(state: &Arc<AppState>) -> Result<(), Problem> {
    let store = state.intake.store();
    let mut after = None;
    loop {
        let page = store::approval::list_executing(store, after, PAGE_APPROVALS).await?;
        for approval in &page {
            take_over(state, approval).await?;
        }
        let Some(last) = page.last().filter(|_| page.len() == PAGE_APPROVALS) else { return Ok(()) };
        after = Some((last.account, last.id));
    }
}

/// Takes over an execution whose lease has ended.
async fn take_over(state: &Arc<AppState>, approval: &Approval) -> Result<(), Problem> {
    let now = state.intake.clock().now();
    let ApprovalState::Executing { approved, lease_until: end } = approval.state else { return Ok(()) };
    if end > now {
        return Ok(());
    }
    let repeatable = state.router.operation(&approval.request.operation).is_some_and(is_repeatable);
    let next = match repeatable {
        true => ApprovalState::Executing { approved, lease_until: lease_until(now) },
        false => ApprovalState::Interrupted { approved, at: now },
    };
    let taken = Approval { state: next, ..approval.clone() };
    match store_change(state, approval, &taken).await {
        Ok(()) if repeatable => execute(state, &taken).await.map(drop),
        Ok(()) => {
            tracing::warn!(approval.id = %approval.id, "approved request was interrupted and is not repeated");
            Ok(())
        }
        Err(problem) => Err(problem),
    }
}
