//! Executes approved requests.
//!
//! ```text
//! decision ─►[ pending → approved ] ─ signal ─►[ approved → executing ] ─► the operation's handler ─►[ executed + result ]
//!                                                 under the idempotency key of the request, or of the approval
//! ```
//!
//! Emails are resolved again, and sent only if they are those that the person saw: the intake refuses any other.
//!
//! When a node stops in between, the next one takes over after the lease: it repeats the request if that is safe, which
//! is so with an idempotency key and for methods that are idempotent (RFC 9110 9.2.2). Otherwise the approval ends as
//! interrupted. So a request is executed at most once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method};
use jiff::Timestamp;
use mail::approval::{
    Approval, ApprovalState, EXECUTION_LEASE, ExecutionResult, HeldContent, HeldRequest, RESPONSE_BYTES_MAX,
};
use mail::credential::CredentialId;
use mail::held_email::ApprovedEmails;
use mail::request_log::RequestSurface;
use queue::submit_error::SubmitError;
use store::access::{Actor, Tenant};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::{self, Principal};
use crate::approval_change;
use crate::approvals::{content, policy};
use crate::dispatch;
use crate::idempotency;
use crate::operation::{Operation, OperationHandler};
use crate::problem::{ErrorCode, Problem};
use crate::request::Request;
use crate::request_log::{self, RequestLogEntry};
use crate::response::{JSON_MEDIA_TYPE, Response};
use crate::schema::Schemas;
use crate::serve::memory_budget::MemoryShare;
use crate::serve::router::RouteMatch;
use crate::server::ApiServer;
use crate::state::AppState;

/// Interval at which approvals of other nodes are looked for.
const INTERVAL: Duration = Duration::from_secs(30);
/// An execution that takes longer is left to the lease's end, which is later.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(100);
/// Time after the approval in which transient errors are retried.
const RETRY_FOR: Duration = Duration::from_secs(3600);
const PAGE_APPROVALS: usize = 20;

/// Whether the request may have been executed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    /// A node that stopped may have executed it, wholly or in part.
    Repeated,
}

/// Executes a request that this node holds, and stores its result.
async fn execute(server: &ApiServer, approval: &Approval, attempt: Attempt) -> Result<(), Problem> {
    let state = &server.state;
    let ApprovalState::Executing { approved, .. } = approval.state else {
        return Err(Problem::internal("the approval is not being executed"));
    };
    let (id, begun) = (state.next_request_id(), Instant::now());
    let opened = content::open(state, approval).await;
    let content = opened.and_then(|content| content.ok_or_else(|| Problem::internal("the content was deleted")));
    let performed = match &content {
        Ok(content) => {
            let performed = tokio::time::timeout(EXECUTION_TIMEOUT, perform(server, approval, content, attempt)).await;
            performed.unwrap_or_else(|_| Err(Problem::outage("the execution takes too long")))
        }
        Err(problem) => Err(problem.clone()),
    };
    let (status, body, error_code) = match performed {
        Ok(response) => (response.status.as_u16(), stored_body(&response.media_type, &response.body), None),
        // It is repeated after the lease, if that is safe.
        Err(problem) if is_transient(&problem) && state.intake.clock().now() < give_up_at(approved.at) => {
            return Err(problem);
        }
        Err(problem) => {
            if let Some(cause) = problem.cause() {
                tracing::error!(request.id = %id, approval.id = %approval.id, cause, "approved request failed");
            }
            let body = problem.body(id, &state.options.base_url);
            let body = stored_body(&HeaderValue::from_static(JSON_MEDIA_TYPE), &body);
            (problem.status().as_u16(), body, Some(problem.code().word))
        }
    };
    record(server, approval, id, (status, error_code), begun, &body);
    if server.router.operation(&approval.request.operation).is_some_and(|one| request_log::is_written_first(one.risk)) {
        state.request_log.flush(state.intake.store()).await;
    }
    let result = ExecutionResult { at: state.intake.clock().now(), status, error_code: error_code.map(str::to_owned) };
    let after = Approval { state: ApprovalState::Executed { approved, result }, ..approval.clone() };
    let content = HeldContent { response: body, ..content.unwrap_or_default() };
    let sealed = content::seal(state, approval.id, &content)?;
    approval_change::commit(state, approval, &after, Some(sealed)).await?;
    state.approvals.ended.notify_waiters();
    Ok(())
}

fn is_transient(problem: &Problem) -> bool {
    [ErrorCode::SERVICE_UNAVAILABLE, ErrorCode::IDEMPOTENCY_IN_PROGRESS].contains(&problem.code())
}

fn give_up_at(approved_at: Timestamp) -> Timestamp {
    approved_at.checked_add(RETRY_FOR).unwrap_or(Timestamp::MAX)
}

fn stored_body(media_type: &HeaderValue, body: &Bytes) -> String {
    let is_stored = *media_type == JSON_MEDIA_TYPE && body.len() <= RESPONSE_BYTES_MAX;
    let text = is_stored.then(|| std::str::from_utf8(body).ok()).flatten();
    text.unwrap_or_default().to_owned()
}

fn record(
    server: &ApiServer,
    approval: &Approval,
    id: mail::id::RequestId,
    (status, error_code): (u16, Option<&'static str>),
    begun: Instant,
    body: &str,
) {
    let Some(operation) = server.router.operation(&approval.request.operation) else { return };
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
    server.state.request_log.record(entry, &head.method, head.uri.path(), body.as_bytes());
}

/// Calls the operation's handler as the client, with all rules that hold for it now but the approval.
async fn perform(
    server: &ApiServer,
    approval: &Approval,
    content: &HeldContent,
    attempt: Attempt,
) -> Result<Response, Problem> {
    let state = &server.state;
    if approval.request.content_hash(content) != approval.hash {
        return Err(Problem::internal("the stored content differs from the one that was approved"));
    }
    let tenant = tenant_of(state, approval).await?;
    let head = head_of(approval)?;
    let RouteMatch::Found(found) = server.router.find(&head.method, head.uri.path()) else {
        return Err(Problem::not_found("operation"));
    };
    let operation = found.operation;
    if operation.id != approval.request.operation {
        return Err(Problem::not_found("operation"));
    }
    access::authorize(&Principal::ApiKey(tenant.clone()), operation, &head)?;
    policy::decide(tenant.policy(), operation)?;
    let body = Bytes::from(content.body.clone());
    let reserved = dispatch::reserve_storage(state, &tenant, operation, &body, &head.headers).await?;
    let query = approval.request.query.clone();
    let request = Request { path: found.path, query, headers: head.headers, body, ..Request::default() };
    let tenant = match &operation.resolve_sends {
        None => tenant,
        Some(resolve) => {
            let approved = ApprovedEmails::new(&content.emails, approval.reserved_sends.is_some());
            // A repeated attempt may have sent some of them. Then the idempotency key returns the result.
            if attempt == Attempt::First {
                let drafts = resolve(Arc::clone(state), tenant.clone(), request.clone()).await?;
                if drafts.len() != content.emails.len() || !drafts.iter().all(|draft| approved.include(draft)) {
                    return Err(Problem::from_refusal(SubmitError::NotApproved, state.upgrade_url()));
                }
            }
            tenant.restricted_to_emails(approved)
        }
    };
    let (OperationHandler::ApiKey(_, handler) | OperationHandler::ApiKeyOrSession(_, handler)) = &operation.handler
    else {
        return Err(Problem::not_found("operation"));
    };
    let running = handler(Arc::clone(state), tenant.clone(), request);
    // A task of its own: it finishes although this wait ends.
    let task = state.tasks.spawn(dispatch::run_handler(running, MemoryShare::default(), reserved));
    let response = task.await.map_err(Problem::internal)??;
    dispatch::apply_response_policy(state, operation, Some(&tenant), response)
}

async fn tenant_of(state: &AppState, approval: &Approval) -> Result<Tenant, Problem> {
    let (store, now) = (state.intake.store(), state.intake.clock().now());
    let tenant = store::access::client_tenant(store, approval.account, approval.client, now).await;
    tenant.map_err(access::access_error_problem)
}

/// The request's head, with an idempotency key.
fn head_of(approval: &Approval) -> Result<Parts, Problem> {
    let HeldRequest { method, path, query, idempotency_key, headers, .. } = &approval.request;
    let method: Method = method.parse().map_err(|_| Problem::internal("a stored method is invalid"))?;
    let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
    let own_key = approval.id.to_string();
    let mut builder = http::Request::builder().method(method).uri(target);
    builder = builder.header(CONTENT_TYPE, JSON_MEDIA_TYPE);
    builder = builder.header(idempotency::IDEMPOTENCY_KEY, idempotency_key.as_deref().unwrap_or(&own_key));
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder.body(()).map(|request| request.into_parts().0).map_err(Problem::internal)
}

/// Returns whether an interrupted request may be repeated.
fn is_repeatable(operation: &Operation) -> bool {
    let is_idempotent = matches!(operation.method, Method::GET | Method::PUT | Method::DELETE);
    is_idempotent || (operation.request_spec)(&mut Schemas::default()).takes_idempotency_key()
}

/// End of a lease that begins now.
fn lease_until(now: Timestamp) -> Timestamp {
    now.checked_add(EXECUTION_LEASE).unwrap_or(Timestamp::MAX)
}

/// Executes approved requests until `stop`: at once after a decision at this node, and periodically those of others.
pub(crate) async fn run(server: Arc<ApiServer>, stop: CancellationToken) {
    let state = &server.state;
    loop {
        let approved = state.approvals.approved.notified();
        for done in [execute_approved(&server).await, end_contents(&server).await] {
            if let Err(problem) = done {
                let cause = problem.cause().unwrap_or_default();
                store::warn_unless_away!(state.intake.store(), cause, "cannot work on approvals; retrying");
            }
        }
        let next = state.intake.clock().now().checked_add(INTERVAL).unwrap_or(Timestamp::MAX);
        tokio::select! {
            () = stop.cancelled() => return,
            () = approved => {}
            () = state.intake.clock().sleep_until(next) => {}
        }
    }
}

/// Executes requests that are approved, or that a node which stopped left behind.
///
/// # Errors
/// The store cannot be read.
pub async fn execute_approved(server: &ApiServer) -> Result<(), Problem> {
    let store = server.state.intake.store();
    let mut after = None;
    loop {
        let page = store::approval::list_executing(store, after, PAGE_APPROVALS).await?;
        let results = futures_util::future::join_all(page.iter().map(|approval| claim(server, approval))).await;
        // One that cannot be executed now does not keep others waiting.
        for problem in results.into_iter().filter_map(Result::err) {
            let cause = problem.cause().unwrap_or_default();
            store::warn_unless_away!(store, cause, "cannot execute an approved request; retrying");
        }
        let Some(last) = page.last().filter(|_| page.len() == PAGE_APPROVALS) else { return Ok(()) };
        after = Some((last.account, last.id));
    }
}

/// Ends approvals whose time for a decision is over, and deletes contents that are no longer needed.
///
/// # Errors
/// The store cannot be read or written.
pub async fn end_contents(server: &ApiServer) -> Result<(), Problem> {
    approval_change::end_contents(&server.state).await
}

/// Claims an approved request, or one whose lease has ended, and executes it.
async fn claim(server: &ApiServer, approval: &Approval) -> Result<(), Problem> {
    let state = &server.state;
    let now = state.intake.clock().now();
    let (approved, attempt, is_repeatable) = match approval.state {
        ApprovalState::Approved { approved } => (approved, Attempt::First, true),
        ApprovalState::Executing { approved, lease_until } if lease_until <= now => {
            let operation = server.router.operation(&approval.request.operation);
            (approved, Attempt::Repeated, operation.is_some_and(is_repeatable))
        }
        _ => return Ok(()),
    };
    let next = match is_repeatable {
        true => ApprovalState::Executing { approved, lease_until: lease_until(now) },
        false => ApprovalState::Interrupted { approved, at: now },
    };
    let claimed = Approval { state: next, ..approval.clone() };
    // Otherwise another node claimed it.
    if !approval_change::commit(state, approval, &claimed, None).await? {
        return Ok(());
    }
    if is_repeatable {
        return execute(server, &claimed, attempt).await;
    }
    tracing::warn!(approval.id = %approval.id, "approved request was interrupted and is not repeated");
    Ok(())
}
