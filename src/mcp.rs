//! The MCP server on the API's port, at `/mcp`: the tools of crate `mcp` over the operations of crate `api`.
//!
//! ```text
//! POST /mcp ─► [`McpEndpoint`] ─► mcp::streamable_http ─► [`DispatchBackend`] ─► api::dispatch, as a request of the client
//! ```
//!
//! Each call of an operation has the caller's `Authorization` and address, so keys, policies, rate limits and the request
//! log treat it as a request over HTTP.

use std::sync::Arc;

use ::mcp::api_tools::ApiTools;
use ::mcp::backend::{Backend, NoReply, OperationCall, Reply};
use ::mcp::caller_rights::CallerRights;
use ::mcp::streamable_http::{self, HttpOptions, MESSAGE_BYTES_MAX, accept_head};
use ::mcp::toolset::ToolSelection;
use api::mounted_service::{MountedService, OperationDispatcher};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, IF_MATCH, RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use model::request_log::RequestSurface;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Headers of the client that each call of an operation repeats.
const REPEATED: [HeaderName; 3] = [AUTHORIZATION, HOST, USER_AGENT];

#[derive(Debug)]
pub struct McpEndpoint {
    options: HttpOptions,
}

impl McpEndpoint {
    /// The endpoint of a server with this public base URL.
    pub fn new(base_url: &str) -> Self {
        Self { options: HttpOptions { base_url: base_url.to_owned(), resource_metadata: None } }
    }

    /// Names the protected resource metadata (RFC 9728) in refusals, so that clients can sign in.
    #[must_use]
    pub fn with_resource_metadata(mut self, url: String) -> Self {
        self.options.resource_metadata = Some(url);
        self
    }
}

impl MountedService for McpEndpoint {
    fn path(&self) -> &'static str {
        "/mcp"
    }

    fn surface(&self) -> RequestSurface {
        RequestSurface::Mcp
    }

    fn body_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn refusal(&self, head: &Parts) -> Option<Response<Bytes>> {
        accept_head(head, &self.options).err().map(|refusal| *refusal)
    }

    fn unauthorized(&self) -> Response<Bytes> {
        streamable_http::unauthorized(&self.options, true)
    }

    fn answer(
        self: Arc<Self>,
        operations: Arc<dyn OperationDispatcher>,
        head: Parts,
        body: Bytes,
    ) -> BoxFuture<'static, Response<Bytes>> {
        Box::pin(async move {
            let selection = match ToolSelection::from_query(head.uri.query().unwrap_or_default()) {
                Ok(selection) => selection,
                Err(text) => return streamable_http::refused(StatusCode::BAD_REQUEST, &text),
            };
            let tools = ApiTools::new(selection, DispatchBackend { operations, head: head.clone() });
            match accept_head(&head, &self.options) {
                Ok(accepted) => accepted.answer(&body, &tools).await,
                Err(refusal) => *refusal,
            }
        })
    }
}

/// The operations in this process, with the credentials and the address of one request.
struct DispatchBackend {
    operations: Arc<dyn OperationDispatcher>,
    head: Parts,
}

impl DispatchBackend {
    fn request(&self, call: OperationCall) -> Result<Request<Bytes>, NoReply> {
        let unsendable = |_| NoReply::new("The arguments cannot be sent");
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = call.method;
        *request.uri_mut() = call.target.parse().map_err(|_| NoReply::new("The arguments do not form a valid path"))?;
        *request.extensions_mut() = self.head.extensions.clone();
        let headers = request.headers_mut();
        for name in REPEATED {
            headers.extend(self.head.headers.get(&name).map(|value| (name, value.clone())));
        }
        if let Some(key) = &call.idempotency_key {
            headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(key).map_err(unsendable)?);
        }
        if let Some(version) = &call.if_match {
            let quoted =
                if version.contains('"') || version == "*" { version.clone() } else { format!("\"{version}\"") };
            headers.insert(IF_MATCH, HeaderValue::from_str(&quoted).map_err(unsendable)?);
        }
        if let Some(body) = call.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = body.to_string().into();
        }
        Ok(request)
    }
}

impl Backend for DispatchBackend {
    fn perform(&self, call: OperationCall) -> BoxFuture<'_, Result<Reply, NoReply>> {
        Box::pin(async move {
            let idempotency_key = call.idempotency_key.clone();
            let request = self.request(call)?;
            let response = Arc::clone(&self.operations).dispatch(request).await;
            let Ok(response) = response else {
                let lost = NoReply::new("The response is too large for a conversation");
                return Err(NoReply { idempotency_key, ..lost });
            };
            let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
            Ok(Reply {
                status: response.status().as_u16(),
                media_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
                retry_after: text(RETRY_AFTER).and_then(|seconds| seconds.parse().ok()),
                body: response.body().clone(),
                idempotency_key,
            })
        })
    }

    fn now(&self) -> Timestamp {
        self.operations.now()
    }

    fn caller_rights(&self) -> BoxFuture<'_, Result<CallerRights, NoReply>> {
        Box::pin(async move {
            match self.operations.allowed_operations(&self.head).await {
                Ok(allowed) => Ok(CallerRights::only(allowed.iter().map(|(method, path)| (method.as_str(), *path)))),
                Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => Ok(CallerRights::Unknown),
                Err(problem) => Err(NoReply::new(problem.message())),
            }
        })
    }
}
