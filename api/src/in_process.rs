//! Operations called in this process by the dashboard, with the rules that hold over HTTP.
//!
//! ```text
//! page ─► [`perform`] ─► role ─► storage quota ─► the operation's handler (own task) ─► response
//! ```
//!
//! A page makes several calls, so they are neither rate-limited nor recorded in the request log one by one.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use store::access::{Denial, SignedInUser};

use crate::access;
use crate::auth::cookie;
use crate::dispatch;
use crate::handler::Owner;
use crate::operation::{Operation, OperationHandler};
use crate::problem::{ErrorCode, Problem};
use crate::request::Request;
use crate::response::Response;
use crate::serve::memory_budget::MemoryShare;
use crate::server::ApiServer;

/// A call of an operation.
#[derive(Debug, Default)]
pub struct OperationCall {
    /// The operation's id, for example `list_emails`.
    pub operation: String,
    /// Path parameters.
    pub path: Vec<(String, String)>,
    /// The encoded query.
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub client_ip: Option<IpAddr>,
}

/// The user of the session of a request, read anew; `None` without a live session.
///
/// # Errors
/// 503 when the store cannot be read.
pub async fn session_user(
    server: &ApiServer,
    headers: &HeaderMap,
    client_ip: Option<IpAddr>,
) -> Result<Option<SignedInUser>, Problem> {
    match cookie::token(headers) {
        Some(token) => access::session_user(&server.state, &token, client_ip).await,
        None => Ok(None),
    }
}

/// Runs an operation as the signed-in user; without one, a public operation.
///
/// # Errors
/// The operation's problem response; 403 if the user's role does not allow the operation.
pub fn perform<'a>(
    server: &'a Arc<ApiServer>,
    user: Option<&'a SignedInUser>,
    call: OperationCall,
) -> BoxFuture<'a, Result<Response, Problem>> {
    Box::pin(async move {
        let operation = server.router.operation(&call.operation).ok_or_else(|| Problem::not_found("operation"))?;
        let outcome = run(server, user, operation, call).await;
        if let Err(problem) = &outcome
            && let Some(cause) = problem.cause()
        {
            store::error_unless_away!(server.state.intake.store(), operation = operation.id, cause, "page call failed");
        }
        outcome
    })
}

/// Returns whether the user's role allows an operation; without a user, whether it is public.
#[must_use]
pub fn allows(server: &ApiServer, user: Option<&SignedInUser>, operation: &str) -> bool {
    server.router.operation(operation).is_some_and(|operation| match (&operation.handler, user) {
        (OperationHandler::Public(_), _) => true,
        (_, Some(user)) => access::role_table::role_allows(user.user().role, operation),
        (_, None) => false,
    })
}

async fn run(
    server: &Arc<ApiServer>,
    user: Option<&SignedInUser>,
    operation: &Operation,
    call: OperationCall,
) -> Result<Response, Problem> {
    let state = &server.state;
    if let Some(user) = user {
        access::authorize_user(user, operation)?;
    }
    if let Some(bytes_max) = operation.body_bytes_max {
        if call.body.len() > bytes_max {
            let text = format!("The content is larger than {bytes_max} bytes");
            return Err(Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, text));
        }
        state.intake.check_ready().map_err(|refusal| Problem::from_refusal(refusal, state.upgrade_url()))?;
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
    let response = dispatch::spawn_handler(state, running, MemoryShare::default(), None, reserved).await?;
    dispatch::apply_response_policy(state, operation, user.map(SignedInUser::tenant), response)
}
