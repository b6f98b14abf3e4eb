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

use crate::call::{Call, Owner};
use crate::operations::Action;
use crate::problem::Problem;
use crate::room::Room;
use crate::serve::router::{Found, Route};

/// What the operator asks of an owner's operations.
#[derive(Debug)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// The path, and the query after a `?`.
    pub target: String,
    /// The body.
    pub body: Bytes,
}

/// Asks as the owner of this account: the status, and the body.
pub fn ask<'a>(room: &'a Arc<Room>, owner: Tenant, ask: Ask) -> BoxFuture<'a, (StatusCode, Bytes)> {
    Box::pin(async move {
        match answer(room, owner, ask).await {
            Ok(answered) => answered,
            Err(problem) => {
                if let Some(cause) = problem.cause() {
                    tracing::error!(cause, "what the operator asked failed by our fault");
                }
                (problem.status(), problem.body(room.request_id(), &room.options.base_url))
            }
        }
    })
}

async fn answer(room: &Arc<Room>, owner: Tenant, ask: Ask) -> Result<(StatusCode, Bytes), Problem> {
    let Ask { method, target, body } = ask;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let Route::Found(Found { operation, path, .. }) = room.router.find(&method, path) else {
        return Err(Problem::not_found("path"));
    };
    if operation.body_bytes_max.is_some_and(|bytes_max| body.len() > bytes_max) {
        let text = "The body is larger than it may be";
        return Err(Problem::new(crate::problem::Code::PAYLOAD_TOO_LARGE, text));
    }
    let call = Call { path, query: query.to_owned(), body, ..Call::default() };
    let running = match &operation.action {
        Action::Owner(handler) => handler(Arc::clone(room), Owner::Operator(owner), call),
        // What the owner's own keys may do.
        Action::Either(_, handler) => handler(Arc::clone(room), owner, call),
        Action::Public(_) | Action::Keyed(..) | Action::SignedIn(..) => {
            return Err(Problem::not_found("path"));
        }
    };
    let answer = running.await?;
    let Some(mut more) = answer.more else { return Ok((answer.status, answer.body)) };
    // The operator's socket takes one value.
    let mut body = answer.body.to_vec();
    while let Some(piece) = more.recv().await {
        body.extend_from_slice(&piece.map_err(Problem::internal)?);
    }
    Ok((answer.status, body.into()))
}
