//! The operator in the stead of an account's owner: the same operations, called without HTTP.
//!
//! ```text
//! admin.sock ─► [`ask`] ─► router ─► the owner's operation ─► the status and the body that the endpoint answers
//! ```
//!
//! Who may open the socket may read the store, so nobody is asked for a session; whose owner is meant is said.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use store::access::Tenant;

use crate::call::{Owner, Request};
use crate::operations::OperationHandler;
use crate::problem::Problem;
use crate::room::AppState;
use crate::serve::router::{MatchedOperation, RouteMatch};

/// What the operator asks of an owner's operations.
#[derive(Debug)]
pub struct OwnerRequest {
    /// The method.
    pub method: Method,
    /// The path, and the query after a `?`.
    pub target: String,
    /// The body.
    pub body: Bytes,
}

/// Asks as the owner of this account: the status, and the body.
pub fn call_as_owner<'a>(
    room: &'a Arc<AppState>,
    owner: Tenant,
    ask: OwnerRequest,
) -> BoxFuture<'a, (StatusCode, Bytes)> {
    Box::pin(async move {
        match run_as_owner(room, owner, ask).await {
            Ok(answered) => answered,
            Err(problem) => {
                if let Some(cause) = problem.cause() {
                    tracing::error!(cause, "what the operator asked failed by our fault");
                }
                (problem.status(), problem.body(room.next_request_id(), &room.options.base_url))
            }
        }
    })
}

async fn run_as_owner(room: &Arc<AppState>, owner: Tenant, ask: OwnerRequest) -> Result<(StatusCode, Bytes), Problem> {
    let OwnerRequest { method, target, body } = ask;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let RouteMatch::Found(MatchedOperation { operation, path, .. }) = room.router.find(&method, path) else {
        return Err(Problem::not_found("path"));
    };
    if operation.body_bytes_max.is_some_and(|bytes_max| body.len() > bytes_max) {
        let text = "The body is larger than it may be";
        return Err(Problem::new(crate::problem::ErrorCode::PAYLOAD_TOO_LARGE, text));
    }
    let call = Request { path, query: query.to_owned(), body, ..Request::default() };
    let running = match &operation.handler {
        OperationHandler::Owner(handler) => handler(Arc::clone(room), Owner::Operator(owner), call),
        // What the owner's own keys may do.
        OperationHandler::ApiKeyOrSession(_, handler) => handler(Arc::clone(room), owner, call),
        OperationHandler::Public(_) | OperationHandler::ApiKey(..) | OperationHandler::Session(..) => {
            return Err(Problem::not_found("path"));
        }
    };
    let answer = running.await?;
    let Some(mut more) = answer.stream else { return Ok((answer.status, answer.body)) };
    // The operator's socket takes one value.
    let mut body = answer.body.to_vec();
    while let Some(piece) = more.recv().await {
        body.extend_from_slice(&piece.map_err(Problem::internal)?);
    }
    Ok((answer.status, body.into()))
}
