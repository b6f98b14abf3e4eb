//! Requests for a service that is mounted on the API's port.
//!
//! ```text
//! request ─► path? ─► head: refusal? ─► body (bounded) ─► MountedService::answer ─► dispatch for each operation
//! ```

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Body;

use super::body::{self, ResponseBody};
use super::header_limits;
use super::memory_budget::{MemoryHolder, MemoryShare};
use crate::dispatch::{dispatch, problem_response};
use crate::mounted_service::{MountedService, OperationDispatcher, ResponseTooLarge};
use crate::problem::Problem;
use crate::request::Media;
use crate::server::ApiServer;
use crate::{access, dispatch};

/// Largest response of an operation that a mounted service takes.
const RESPONSE_BYTES_MAX: usize = 8 << 20;

/// Answers a request for the service.
pub(super) async fn answer<B>(
    service: Arc<dyn MountedService>,
    server: Arc<ApiServer>,
    request: http::Request<B>,
) -> http::Response<ResponseBody>
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    let state = Arc::clone(&server.state);
    let (head, mut body) = request.into_parts();
    let refused = match header_limits::check_head(&head) {
        Ok(()) => service.refusal(&head).map(|response| response.map(whole)),
        Err(problem) => Some(problem_response(&problem, state.next_request_id(), &state.options.base_url)),
    };
    if let Some(response) = refused {
        state.background.tasks.spawn(body::drain(body));
        return with_length(response);
    }
    let allowance = state.memory_budget.allowance(MemoryHolder::network(access::client_ip(&head)));
    let read = body::read_body(&mut body, &head.headers, service.body_bytes_max(), Media::Json, &allowance).await;
    if !body.is_end_stream() {
        state.background.tasks.spawn(body::drain(body));
    }
    match read {
        Ok((content, _share)) => with_length(service.answer(server, head, content).await.map(whole)),
        Err(problem) => problem_response(&problem, state.next_request_id(), &state.options.base_url),
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

    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<(), Problem>> {
        Box::pin(async move {
            let tenant = access::authenticate_program(&self.state, head).await?;
            dispatch::count_request(&self.state, &tenant)
        })
    }
}
