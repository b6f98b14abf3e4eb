//! The operator on behalf of an account's owner: the same operations, called without HTTP.
//!
//! ```text
//! admin.sock ─► [`call_as_owner`] ─► router ─► the owner's operation ─► status and body as over HTTP
//! ```
//!
//! Whoever can open the socket can read the store, so no session is required; the request names the account.

use futures_util::future::BoxFuture;

use crate::operation::OperationHandler;
use crate::prelude::*;
use crate::serve::router::{MatchedOperation, RouteMatch};
use crate::server::ApiServer;

/// A request on behalf of an owner.
#[derive(Debug)]
pub struct OwnerRequest {
    pub method: Method,
    /// The path with an optional query.
    pub target: String,
    pub body: Bytes,
}

/// Runs an operation as the owner of the account and returns its status and body.
pub fn call_as_owner<'a>(
    server: &'a Arc<ApiServer>,
    owner: Tenant,
    request: OwnerRequest,
) -> BoxFuture<'a, (StatusCode, Bytes)> {
    Box::pin(async move {
        let state = &server.state;
        match run_as_owner(server, owner, request).await {
            Ok(response) => response,
            Err(problem) => {
                if let Some(cause) = problem.cause() {
                    tracing::error!(cause, "the operator's request failed");
                }
                (problem.status(), problem.body(state.next_request_id(), &state.options.base_url))
            }
        }
    })
}

async fn run_as_owner(server: &ApiServer, owner: Tenant, request: OwnerRequest) -> Result<(StatusCode, Bytes)> {
    let OwnerRequest { method, target, body } = request;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let RouteMatch::Found(MatchedOperation { operation, path, .. }) = server.router.find(&method, path) else {
        return Err(Problem::not_found("path"));
    };
    if operation.body_bytes_max.is_some_and(|bytes_max| body.len() > bytes_max) {
        let text = "The body is too large for this operation";
        return Err(Problem::new(httpd::problem::ErrorCode::PAYLOAD_TOO_LARGE, text));
    }
    let call = Request { path, query: query.to_owned(), body, ..Request::default() };
    let state = &server.state;
    let account = owner.account().id;
    let running = match &operation.handler {
        OperationHandler::Owner(handler) => handler(Arc::clone(state), Owner::Operator(owner), call),
        // Operations that the owner's API keys may call.
        OperationHandler::ApiKey(_, handler) | OperationHandler::ApiKeyOrSession(_, handler) => {
            handler(Arc::clone(state), owner, call)
        }
        OperationHandler::Public(_) | OperationHandler::Session(..) => {
            return Err(Problem::not_found("path"));
        }
    };
    let response = running.await?;
    if !operation.method.is_safe() {
        tracing::info!(account.id = %account, operation = operation.id, "operator: change as the owner");
    }
    let Some(mut chunks) = response.stream else { return Ok((response.status, response.body)) };
    // The operator's socket takes a single value, so a streamed body is collected.
    let mut body = response.body.to_vec();
    while let Some(chunk) = chunks.recv().await {
        body.extend_from_slice(&chunk.map_err(Problem::internal)?);
    }
    Ok((response.status, body.into()))
}
