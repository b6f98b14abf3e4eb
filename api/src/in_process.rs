//! Operations called in this process by the dashboard, with the rules that hold over HTTP.
//!
//! ```text
//! page ─► [`OperationCaller::perform`] ─► role ─► storage quota ─► the operation's handler (own task) ─► response
//! ```
//!
//! A page makes several calls, so they are not rate-limited, and reads are not recorded in the request log. What a form
//! changes is recorded in the audit log.

use std::net::IpAddr;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use httpd::response::Response;
use model::request_log::RequestSurface;
use net::limit::memory_budget::MemoryShare;
use store::access::Denial;
use tokio::time::Instant;

use crate::access;
use crate::approvals::policy::deciding_roles;
use crate::auth::cookie;
use crate::dispatch::{self, REQUEST_ID};
use crate::operation::{Operation, OperationHandler};
use crate::prelude::*;
use crate::request_log::{self, RequestLogEntry};
use crate::server::ApiServer;
use crate::session_pages::{OperationCall, OperationCaller};

impl OperationCaller for ApiServer {
    fn perform<'a>(&'a self, user: Option<&'a SignedInUser>, call: OperationCall) -> BoxFuture<'a, Result<Response>> {
        Box::pin(async move {
            let (state, router, user) = (Arc::clone(&self.state), Arc::clone(&self.router), user.cloned());
            // A task of its own: a browser that disconnects keeps no change out of the audit log.
            let handled = self.state.background.tasks.spawn(async move {
                let operation = router.operation(&call.operation).ok_or_else(|| Problem::not_found("operation"))?;
                run_and_record(&state, user, operation, call).await
            });
            handled.await.map_err(Problem::internal)?
        })
    }

    fn allows(&self, user: Option<&SignedInUser>, operation: &str) -> bool {
        self.router.operation(operation).is_some_and(|operation| match (&operation.handler, user) {
            (OperationHandler::Public(_), _) => true,
            (_, Some(user)) => access::role_table::role_allows(user.user().role, operation),
            (_, None) => false,
        })
    }

    fn may_decide(&self, user: Option<&SignedInUser>, operation: &str) -> bool {
        let (Some(operation), Some(user)) = (self.router.operation(operation), user) else { return false };
        deciding_roles(operation).contains(&user.user().role)
    }

    fn session_user<'a>(
        &'a self,
        headers: &'a HeaderMap,
        client_ip: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Option<SignedInUser>>> {
        Box::pin(async move {
            match cookie::token(headers) {
                Some(token) => access::session_user(&self.state, &token, client_ip).await,
                None => Ok(None),
            }
        })
    }

    fn now(&self) -> Timestamp {
        self.state.services.clock.now()
    }

    fn base_url(&self) -> &str {
        &self.state.options.base_url
    }

    fn next_request_id(&self) -> RequestId {
        self.state.next_request_id()
    }
}

/// The path of a call, as a program would send it.
fn call_path(operation: &Operation, call: &OperationCall) -> String {
    let mut path = operation.path.to_owned();
    for (name, value) in &call.path {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    path
}

/// Runs a call, and records in the audit log what it changes.
async fn run_and_record(
    state: &State,
    user: Option<SignedInUser>,
    operation: &Operation,
    call: OperationCall,
) -> Result<Response> {
    let (id, begun) = (state.next_request_id(), Instant::now());
    let is_audited = |user: &&SignedInUser| request_log::is_audited(operation.id, operation.risk, user.tenant());
    let audited = user.as_ref().filter(is_audited).map(|user| (user, call_path(operation, &call)));
    let address = call.client_ip;
    let outcome = run(state, user.as_ref(), operation, call).await;
    if let Some((user, path)) = audited {
        let (status, error_code, response) = match &outcome {
            Ok(response) => (response.status, None, response.body.clone()),
            Err(problem) => (problem.status(), Some(problem.code().word), Bytes::new()),
        };
        let entry = RequestLogEntry {
            id,
            actor: (user.tenant().account().id, user.tenant().actor()),
            operation: operation.id,
            status: status.as_u16(),
            error_code,
            duration: begun.elapsed(),
            surface: RequestSurface::Dashboard,
            address,
            is_audited: true,
            approved: None,
        };
        state.request_log.record(entry, &operation.method, &path, &response);
        if request_log::is_written_first(operation.risk) {
            state.request_log.flush(&state.services.store).await;
        }
    }
    outcome.map_err(|problem| {
        let Some(cause) = problem.cause() else { return problem };
        let store = &state.services.store;
        store::error_unless_away!(store, request.id = %id, operation = operation.id, cause, "a call failed");
        problem.with_header(REQUEST_ID, id.to_string())
    })
}

async fn run(
    state: &State,
    user: Option<&SignedInUser>,
    operation: &Operation,
    call: OperationCall,
) -> Result<Response> {
    if let Some(user) = user {
        access::authorize_user(user, operation)?;
    }
    if let Some(bytes_max) = operation.body_bytes_max {
        if call.body.len() > bytes_max {
            let text = format!("The content is larger than {bytes_max} bytes");
            return Err(Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, text));
        }
        state.accounts.intake.check_ready().or_problem(state)?;
    }
    let OperationCall { path, query, headers, body, client_ip, .. } = call;
    let reserved = match user {
        Some(user) => dispatch::reserve_storage(state, user.tenant(), operation, &body, &headers).await?,
        None => Vec::new(),
    };
    let request = Request { path, query, headers, body, client_ip, ..Request::default() };
    let missing = || Problem::unauthorized(Denial::Missing);
    let running = match &operation.handler {
        OperationHandler::Public(handler) => handler(Arc::clone(state), request),
        OperationHandler::ApiKey(_, handler) | OperationHandler::ApiKeyOrSession(_, handler) => {
            handler(Arc::clone(state), user.ok_or_else(missing)?.tenant().clone(), request)
        }
        OperationHandler::Session(_, handler) => {
            handler(Arc::clone(state), user.cloned().ok_or_else(missing)?, request)
        }
        OperationHandler::Owner(handler) => {
            handler(Arc::clone(state), Owner::SignedIn(user.cloned().ok_or_else(missing)?), request)
        }
    };
    let response = dispatch::run_handler(running, MemoryShare::default(), reserved).await?;
    dispatch::apply_response_policy(state, operation, user.map(SignedInUser::tenant), response)
}
