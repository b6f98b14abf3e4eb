//! A service of another crate under a path of the API's port, which calls operations as clients do: the MCP server.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Method;
use http::request::Parts;
use httpd::problem::Problem;
use jiff::Timestamp;
use model::request_log::RequestSurface;

/// A service under one path.
pub trait MountedService: Debug + Send + Sync + 'static {
    /// Its path. No API operation has it.
    fn path(&self) -> &'static str;

    /// The way by which its requests reach the operations: it selects the access tokens that are accepted.
    fn surface(&self) -> RequestSurface;

    /// Largest body of a request.
    fn body_bytes_max(&self) -> usize;

    /// Refuses a request by its head, before its body is read.
    fn refusal(&self, head: &Parts) -> Option<http::Response<Bytes>>;

    /// 401, for a request whose credentials are missing, unknown, revoked or expired. Its body is not read.
    fn unauthorized(&self) -> http::Response<Bytes>;

    /// Answers an authenticated request that it does not refuse.
    fn answer(
        self: Arc<Self>,
        operations: Arc<dyn OperationDispatcher>,
        head: Parts,
        body: Bytes,
    ) -> BoxFuture<'static, http::Response<Bytes>>;
}

/// The operations of the API, called as over HTTP: with authentication, rate limit, and the request log.
pub trait OperationDispatcher: Send + Sync + 'static {
    /// Answers a request. The address of the client is an extension of the request.
    ///
    /// # Errors
    /// The response is larger than a mounted service takes.
    fn dispatch(
        self: Arc<Self>,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, ResponseTooLarge>>;

    /// Checks the credentials of a request, and counts it against the rate limit of its account. Returns the operations
    /// that they allow, by method and path.
    ///
    /// # Errors
    /// 401 if they are unknown, revoked or expired; 403, 429 or 503 otherwise.
    fn allowed_operations<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Vec<AllowedOperation>, Problem>>;

    fn now(&self) -> Timestamp;
}

/// Method and path of an operation, with `{name}` for path parameters.
pub type AllowedOperation = (Method, &'static str);

/// The response of an operation is larger than a mounted service takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseTooLarge;
