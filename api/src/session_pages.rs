//! Pages for people on the API's port, and the operations as they call them: what the state, the server and the pages
//! know of each other.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Uri};
use httpd::problem::Problem;
use httpd::response::Response;
use jiff::Timestamp;
use model::id::RequestId;
use store::access::SignedInUser;

/// Pages that need a session: the dashboard.
pub trait SessionPages: Debug + Send + Sync + 'static {
    /// Returns whether a request is for one of its pages. No API operation has such a path.
    fn has(&self, uri: &Uri, headers: &HeaderMap) -> bool;

    /// Answers a request that it [`has`](Self::has). It checks the CSRF token of its forms itself, because the token
    /// comes in the body.
    fn answer(self: Arc<Self>, request: PageRequest) -> BoxFuture<'static, Response>;
}

pub struct PageRequest {
    pub operations: Arc<dyn OperationCaller>,
    /// GET or POST; HEAD is answered like GET.
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub client_ip: Option<IpAddr>,
    /// `None` without a live session.
    pub user: Option<SignedInUser>,
}

/// The operations of the API, called in this process.
pub trait OperationCaller: Send + Sync {
    /// Runs an operation as the signed-in user; without one, a public operation.
    ///
    /// # Errors
    /// The operation's problem response; 403 if the user's role does not allow the operation.
    fn perform<'a>(
        &'a self,
        user: Option<&'a SignedInUser>,
        call: OperationCall,
    ) -> BoxFuture<'a, Result<Response, Problem>>;

    /// Returns whether the user's role allows an operation; without a user, whether it is public.
    fn allows(&self, user: Option<&SignedInUser>, operation: &str) -> bool;

    /// Returns whether the user's role may approve or reject held requests of an operation.
    fn may_decide(&self, user: Option<&SignedInUser>, operation: &str) -> bool;

    /// The user of the session of a request, read anew; `None` without a live session.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    fn session_user<'a>(
        &'a self,
        headers: &'a HeaderMap,
        client_ip: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Option<SignedInUser>, Problem>>;

    fn now(&self) -> Timestamp;

    /// The public base URL, without a trailing slash.
    fn base_url(&self) -> &str;

    /// A new id for the log.
    fn next_request_id(&self) -> RequestId;
}

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
