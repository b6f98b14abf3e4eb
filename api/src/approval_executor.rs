//! Executes approved requests.
//!
//! ```text
//! decision ─►[ pending → approved ] ─ signal ─►[ approved → executing ] ─► the operation's handler ─►[ executed + result ]
//!                            ▲                          │      under the idempotency key of the request, or of the approval
//!                            └─ transient error before ─┘
//!                               the handler began
//! ```
//!
//! Emails are resolved again, and sent only if they are those that the person saw: the intake refuses any other.
//!
//! When a node stops in between, the next one takes over after the lease: it repeats the request if that is safe, which
//! is so with an idempotency key and for methods that are idempotent (RFC 9110 9.2.2). Otherwise the approval ends as
//! interrupted. So a request is executed at most once.

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use httpd::response::{JSON_MEDIA_TYPE, Response};
use model::approval::{
    Approval, ApprovalState, Decision, EXECUTION_LEASE, ExecutionResult, HeldContent, HeldRequest, RESPONSE_BYTES_MAX,
};
use model::credential::CredentialId;
use model::held_email::ApprovedEmails;
use model::idempotency::{IdempotencyRecord, IdempotencyScope, IdempotentResult};
use model::request_log::RequestSurface;
use net::limit::memory_budget::MemoryShare;
use queue::intake::storage_quota::StorageReservation;
use queue::intake::submit_error::SubmitError;
use store::access::Actor;
use store::idempotency::ScopedIdempotencyKey;
use tokio::time::Instant;

use crate::access::{self, Principal};
use crate::approvals::{content, policy};
use crate::handler::HandlerFuture;
use crate::operation::{Operation, OperationHandler};
use crate::prelude::*;
use crate::request_log::{self, RequestLogEntry};
use crate::serve::router::RouteMatch;
use crate::server::ApiServer;
use crate::{approval_change, dispatch, idempotency};

/// An execution that takes longer is left to the lease's end, which is later.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(100);
/// Time after the approval in which transient errors are retried.
const RETRY_FOR: Duration = Duration::from_secs(3600);
/// The error code of the audit log for a request that may have been executed.
const INTERRUPTED: &str = "interrupted";

/// Whether the request may have been executed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    /// A node that stopped may have executed it, wholly or in part.
    Repeated,
}

/// Why a request has no response.
enum ExecutionFailure {
    /// The handler was not called.
    BeforeHandler(Problem),
    /// The handler was called, and returned this.
    Returned(Problem),
    /// The handler was called, and may still run; or a part of its work remains.
    Unfinished(Problem),
}

/// How an attempt ends.
enum ExecutionOutcome {
    Executed(Response),
    Failed(Problem),
    /// It may have been executed, and is not repeated.
    Interrupted(Problem),
    /// Nothing was done: the next attempt is a first one, too.
    TryAgain(Problem),
    /// It is repeated after the lease, if that is safe.
    RepeatLater(Problem),
}

impl ExecutionOutcome {
    /// `may_retry`: the time for retries is not over.
    fn new(performed: Result<Response, ExecutionFailure>, method: &str, attempt: Attempt, may_retry: bool) -> Self {
        let failure = match performed {
            Ok(response) => return Self::Executed(response),
            Err(failure) => failure,
        };
        match (failure, attempt) {
            (ExecutionFailure::BeforeHandler(problem), Attempt::First) if may_retry && is_transient(&problem) => {
                Self::TryAgain(problem)
            }
            (ExecutionFailure::BeforeHandler(problem), Attempt::First) => Self::Failed(problem),
            (ExecutionFailure::BeforeHandler(problem) | ExecutionFailure::Returned(problem), _)
                if may_retry && is_transient(&problem) =>
            {
                Self::RepeatLater(problem)
            }
            (ExecutionFailure::Unfinished(problem), _) if may_retry => Self::RepeatLater(problem),
            (ExecutionFailure::BeforeHandler(problem) | ExecutionFailure::Unfinished(problem), _) => {
                Self::Interrupted(problem)
            }
            // An attempt before may have deleted it.
            (ExecutionFailure::Returned(problem), Attempt::Repeated)
                if method == Method::DELETE.as_str() && problem.status() == StatusCode::NOT_FOUND =>
            {
                Self::Interrupted(problem)
            }
            (ExecutionFailure::Returned(problem), _) => Self::Failed(problem),
        }
    }
}

/// Executes a request that this node holds, and stores its result.
async fn execute(server: &ApiServer, approval: &Approval, attempt: Attempt) -> Result<()> {
    let state = &server.state;
    let ApprovalState::Executing { approved, .. } = approval.state else {
        return Err(Problem::internal("the approval is not being executed"));
    };
    let (id, begun) = (state.next_request_id(), Instant::now());
    let opened = content::open(state, approval).await;
    let content = opened.and_then(|content| content.ok_or_else(|| Problem::internal("the content was deleted")));
    let performed = match &content {
        Ok(content) => perform(server, approval, content, attempt).await,
        Err(problem) => Err(ExecutionFailure::BeforeHandler(problem.clone())),
    };
    let may_retry = state.services.clock.now() < give_up_at(approved.at);
    let (status, body, error_code) =
        match ExecutionOutcome::new(performed, &approval.request.method, attempt, may_retry) {
            ExecutionOutcome::Executed(response) => {
                (response.status.as_u16(), stored_body(&response.media_type, &response.body), None)
            }
            ExecutionOutcome::Failed(problem) => {
                if let Some(cause) = problem.cause() {
                    tracing::error!(request.id = %id, approval.id = %approval.id, cause, "approved request failed");
                }
                let body = problem.body(id, &state.options.base_url);
                let body = stored_body(&HeaderValue::from_static(JSON_MEDIA_TYPE), &body);
                (problem.status().as_u16(), body, Some(problem.code().word))
            }
            ExecutionOutcome::Interrupted(problem) => {
                let cause = problem.cause().unwrap_or_default();
                tracing::warn!(approval.id = %approval.id, cause, "approved request may have been executed");
                return interrupt(server, approval, approved).await;
            }
            ExecutionOutcome::TryAgain(problem) => {
                let after = Approval { state: ApprovalState::Approved { approved }, ..approval.clone() };
                approval_change::commit(state, approval, &after, None).await?;
                return Err(problem);
            }
            ExecutionOutcome::RepeatLater(problem) => return Err(problem),
        };
    record(server, approval, id, (status, error_code), begun, &body);
    if server.router.operation(&approval.request.operation).is_some_and(|one| request_log::is_written_first(one.risk)) {
        state.request_log.flush(&state.services.store).await;
    }
    let result = ExecutionResult { at: state.services.clock.now(), status, error_code: error_code.map(str::to_owned) };
    // An attempt before may have used the sends: they are not given back.
    let reserved_sends = approval.reserved_sends.filter(|_| attempt == Attempt::First);
    let after = Approval { state: ApprovalState::Executed { approved, result }, reserved_sends, ..approval.clone() };
    let content = HeldContent { response: body, ..content.unwrap_or_default() };
    let sealed = content::seal(state, approval.id, &content)?;
    approval_change::commit(state, approval, &after, Some(sealed)).await?;
    state.approvals.ended.notify_waiters();
    Ok(())
}

/// Ends an approval whose request may have been executed. The audit log has it first, so that no change is missing
/// there.
async fn interrupt(server: &ApiServer, approval: &Approval, approved: Decision) -> Result<()> {
    let state = &server.state;
    let failure = (StatusCode::GATEWAY_TIMEOUT.as_u16(), Some(INTERRUPTED));
    record(server, approval, state.next_request_id(), failure, Instant::now(), "");
    state.request_log.flush(&state.services.store).await;
    let interrupted = ApprovalState::Interrupted { approved, at: state.services.clock.now() };
    let after = Approval { state: interrupted, ..approval.clone() };
    if approval_change::commit(state, approval, &after, None).await? {
        tracing::warn!(approval.id = %approval.id, "approved request was interrupted and is not repeated");
        state.approvals.ended.notify_waiters();
    }
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
    id: model::id::RequestId,
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
        approved: Some((approval.id, approval.decision().map(|decision| decision.by))),
    };
    server.state.request_log.record(entry, &head.method, head.uri.path(), body.as_bytes());
}

/// A call whose handler was not started.
struct PreparedCall<'a> {
    operation: &'a Operation,
    tenant: Tenant,
    running: HandlerFuture,
    reserved: Vec<StorageReservation>,
}

/// Calls the operation's handler as the client, with all rules that hold for it now but the approval.
async fn perform(
    server: &ApiServer,
    approval: &Approval,
    content: &HeldContent,
    attempt: Attempt,
) -> Result<Response, ExecutionFailure> {
    let (state, deadline) = (&server.state, Instant::now() + EXECUTION_TIMEOUT);
    let late = || Problem::outage("the execution takes too long");
    let prepared = tokio::time::timeout_at(deadline, prepare(server, approval, content, attempt)).await;
    let prepared = prepared.unwrap_or_else(|_| Err(late())).map_err(ExecutionFailure::BeforeHandler)?;
    let PreparedCall { operation, tenant, running, reserved } = prepared;
    // A task of its own: it finishes although this wait ends.
    let task = state.background.tasks.spawn(dispatch::run_handler(running, MemoryShare::default(), reserved));
    let Ok(joined) = tokio::time::timeout_at(deadline, task).await else {
        return Err(ExecutionFailure::Unfinished(late()));
    };
    let response = joined.map_err(Problem::internal).flatten().map_err(ExecutionFailure::Returned)?;
    let used = idempotency_record(state, approval, operation).await.map_err(ExecutionFailure::Unfinished)?;
    if used.is_some_and(|used| matches!(used.outcome, IdempotentResult::Partly(_)))
        && approval.decision().is_some_and(|approved| state.services.clock.now() < give_up_at(approved.at))
    {
        let text = "emails of the batch have transient errors";
        return Err(ExecutionFailure::Unfinished(Problem::outage(text)));
    }
    dispatch::apply_response_policy(state, operation, Some(&tenant), response).map_err(ExecutionFailure::Returned)
}

/// Checks a request and builds the call of its handler.
async fn prepare<'a>(
    server: &'a ApiServer,
    approval: &Approval,
    content: &HeldContent,
    attempt: Attempt,
) -> Result<PreparedCall<'a>> {
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
            // An attempt before may have sent some of them. Then the idempotency key returns the result, or sends the
            // rest.
            let used = match attempt {
                Attempt::First => None,
                Attempt::Repeated => idempotency_record(state, approval, operation).await?,
            };
            if used.is_none() {
                let drafts = resolve(Arc::clone(state), tenant.clone(), request.clone()).await?;
                if drafts.len() != content.emails.len() || !drafts.iter().all(|draft| approved.include(draft)) {
                    return Err(SubmitError::NotApproved.into_problem(state));
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
    Ok(PreparedCall { operation, tenant, running, reserved })
}

/// The key under which a request is executed.
fn own_idempotency_key(approval: &Approval) -> String {
    approval.request.idempotency_key.clone().unwrap_or_else(|| approval.id.to_string())
}

/// Reads the valid record of a request's idempotency key; `None` for operations that send no email.
async fn idempotency_record(
    state: &AppState,
    approval: &Approval,
    operation: &Operation,
) -> Result<Option<IdempotencyRecord>> {
    let scope = match operation.id {
        "send_email" => IdempotencyScope::Send,
        "send_batch" => IdempotencyScope::SendBatch,
        "resend_email" => IdempotencyScope::Resend,
        "reply_to_received_email" => IdempotencyScope::Reply,
        "forward_received_email" => IdempotencyScope::Forward,
        _ => return Ok(None),
    };
    let name = ScopedIdempotencyKey { account: approval.account, operation: scope, key: own_idempotency_key(approval) };
    let found = store::idempotency::get(&state.services.store, &name).await?;
    let now = state.services.clock.now();
    Ok(found.map(|found| found.used).filter(|used| used.is_valid(now)))
}

async fn tenant_of(state: &AppState, approval: &Approval) -> Result<Tenant> {
    let (store, now) = (&state.services.store, state.services.clock.now());
    let tenant = store::access::client_tenant(store, approval.account, approval.client, now).await;
    tenant.map_err(access::access_error_problem)
}

/// The request's head, with an idempotency key.
fn head_of(approval: &Approval) -> Result<Parts> {
    let HeldRequest { method, path, query, headers, .. } = &approval.request;
    let method: Method = method.parse().map_err(|_| Problem::internal("a stored method is invalid"))?;
    let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
    // A key may have other characters than ASCII.
    let key = HeaderValue::from_bytes(own_idempotency_key(approval).as_bytes()).map_err(Problem::internal)?;
    let mut builder = http::Request::builder().method(method).uri(target);
    builder = builder.header(CONTENT_TYPE, JSON_MEDIA_TYPE);
    builder = builder.header(idempotency::IDEMPOTENCY_KEY, key);
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

/// Returns whether a node may claim the request now.
pub(crate) fn is_due(approval: &Approval, now: Timestamp) -> bool {
    match approval.state {
        ApprovalState::Approved { .. } => true,
        ApprovalState::Executing { lease_until, .. } => lease_until <= now,
        _ => false,
    }
}

/// Claims an approved request, or one whose lease has ended, and executes it.
pub(crate) async fn claim(server: &ApiServer, approval: &Approval) -> Result<()> {
    let state = &server.state;
    let now = state.services.clock.now();
    let (approved, attempt) = match approval.state {
        ApprovalState::Approved { approved } => (approved, Attempt::First),
        ApprovalState::Executing { approved, lease_until } if lease_until <= now => (approved, Attempt::Repeated),
        _ => return Ok(()),
    };
    let operation = server.router.operation(&approval.request.operation);
    if attempt == Attempt::Repeated && !operation.is_some_and(is_repeatable) {
        return interrupt(server, approval, approved).await;
    }
    let executing = ApprovalState::Executing { approved, lease_until: lease_until(now) };
    let claimed = Approval { state: executing, ..approval.clone() };
    // Otherwise another node claimed it.
    if !approval_change::commit(state, approval, &claimed, None).await? {
        return Ok(());
    }
    execute(server, &claimed, attempt).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word of the ending.
    fn ending(failure: ExecutionFailure, method: &str, attempt: Attempt, may_retry: bool) -> &'static str {
        match ExecutionOutcome::new(Err(failure), method, attempt, may_retry) {
            ExecutionOutcome::Executed(_) => "executed",
            ExecutionOutcome::Failed(_) => "failed",
            ExecutionOutcome::Interrupted(_) => "interrupted",
            ExecutionOutcome::TryAgain(_) => "try again",
            ExecutionOutcome::RepeatLater(_) => "repeat later",
        }
    }

    #[test]
    fn only_what_cannot_have_been_executed_fails_or_begins_anew() {
        use Attempt::{First, Repeated};
        use ExecutionFailure::{BeforeHandler, Returned, Unfinished};
        let (away, gone) = (|| Problem::outage("away"), || Problem::not_found("email"));
        for (failure, method, attempt, may_retry, expected) in [
            (BeforeHandler(away()), "POST", First, true, "try again"),
            (BeforeHandler(away()), "POST", First, false, "failed"),
            (BeforeHandler(gone()), "POST", First, true, "failed"),
            (BeforeHandler(away()), "POST", Repeated, true, "repeat later"),
            (BeforeHandler(away()), "POST", Repeated, false, "interrupted"),
            (BeforeHandler(gone()), "POST", Repeated, true, "interrupted"),
            (Returned(away()), "POST", First, true, "repeat later"),
            (Returned(away()), "POST", First, false, "failed"),
            (Returned(gone()), "DELETE", First, true, "failed"),
            (Returned(gone()), "DELETE", Repeated, true, "interrupted"),
            (Returned(gone()), "PUT", Repeated, true, "failed"),
            (Unfinished(away()), "POST", First, true, "repeat later"),
            (Unfinished(away()), "POST", First, false, "interrupted"),
        ] {
            assert_eq!(ending(failure, method, attempt, may_retry), expected, "{method} {attempt:?} {may_retry}");
        }
    }
}
