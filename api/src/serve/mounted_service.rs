//! Requests for a service that is mounted on the API's port.
//!
//! ```text
//! request ─► path? ─► head: refusal? ─► credentials ─► body (bounded) ─► MountedService::answer ─► dispatch for each operation
//! ```

use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::request::Parts;
use http_body_util::{BodyExt as _, Full, Limited};
use httpd::body::{self, RequestBody, ResponseBody};
use httpd::header_limits;
use hyper::body::Body as _;
use net::limit::memory_budget::{MemoryHolder, MemoryShare};

use crate::access;
use crate::approvals::policy;
use crate::dispatch::{self, dispatch, problem_response};
use crate::mounted_service::{AllowedOperation, MountedService, OperationDispatcher, ResponseTooLarge};
use crate::operation::Operation;
use crate::prelude::*;
use crate::server::ApiServer;

/// Largest response of an operation that a mounted service takes.
const RESPONSE_BYTES_MAX: usize = 8 << 20;

/// Answers a request for the service.
pub(super) async fn answer<B: RequestBody + Send + 'static>(
    service: Arc<dyn MountedService>,
    server: Arc<ApiServer>,
    request: http::Request<B>,
) -> http::Response<ResponseBody> {
    let state = Arc::clone(&server.state);
    let (mut head, mut body) = request.into_parts();
    head.extensions.insert(service.surface());
    let account = match accept(&*service, &state, &head).await {
        Ok(account) => account,
        Err(response) => {
            // A client that waits for `100 Continue` sends no body after a final response (RFC 9110 10.1.1).
            if !head.headers.contains_key(EXPECT) {
                state.background.tasks.spawn(body::drain(body));
            }
            return with_length(*response);
        }
    };
    // A message may be larger than all that strangers of one network may hold.
    let allowance = state.memory_budget.allowance(MemoryHolder::Account(account));
    let read = body::read_body(&mut body, &head.headers, service.body_bytes_max(), Media::Json, &allowance).await;
    if !body.is_end_stream() {
        state.background.tasks.spawn(body::drain(body));
    }
    match read {
        Ok((content, _share)) => with_length(service.answer(server, head, content).await.map(whole)),
        Err(problem) => problem_response(&problem, state.next_request_id(), &state.options.base_url),
    }
}

/// Checks a request before its body is read. Returns the account of its credentials.
async fn accept(
    service: &dyn MountedService,
    state: &AppState,
    head: &Parts,
) -> Result<AccountId, Box<http::Response<ResponseBody>>> {
    let refusal = |problem: &Problem| problem_response(problem, state.next_request_id(), &state.options.base_url);
    header_limits::check_head(head).map_err(|problem| Box::new(refusal(&problem)))?;
    if let Some(response) = service.refusal(head) {
        return Err(Box::new(response.map(whole)));
    }
    match access::authenticate_program(state, head).await {
        Ok(tenant) => Ok(tenant.account().id),
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            Err(Box::new(service.unauthorized().map(whole)))
        }
        Err(problem) => Err(Box::new(refusal(&problem))),
    }
}

fn whole(bytes: Bytes) -> ResponseBody {
    ResponseBody::new(bytes, MemoryShare::default())
}

fn with_length(mut response: http::Response<ResponseBody>) -> http::Response<ResponseBody> {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

impl OperationDispatcher for ApiServer {
    fn dispatch(
        self: Arc<Self>,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, ResponseTooLarge>> {
        Box::pin(async move {
            let (head, body) = dispatch(self, request.map(Full::new)).await.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|_| ResponseTooLarge)?;
            Ok(http::Response::from_parts(head, body.to_bytes()))
        })
    }

    fn allowed_operations<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Vec<AllowedOperation>>> {
        Box::pin(async move {
            let tenant = access::authenticate_program(&self.state, head).await?;
            dispatch::count_request(&self.state, &tenant)?;
            let is_allowed = |operation: &&Operation| {
                operation.scope().is_some()
                    && access::authorize_program(&tenant, operation).is_ok()
                    && policy::decide(tenant.policy(), operation).is_ok()
            };
            let allowed = self.router.operations().iter().filter(is_allowed);
            Ok(allowed.map(|operation| (operation.method.clone(), operation.path)).collect())
        })
    }

    fn now(&self) -> Timestamp {
        self.state.services.clock.now()
    }
}
