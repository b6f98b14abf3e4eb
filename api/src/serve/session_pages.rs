//! Requests for pages of people: the dashboard.
//!
//! ```text
//! request ─► has? ─► session cookie ─► body (bounded) ─► SessionPages::answer ─► gzip ─► response
//! ```
//!
//! The pages call operations by an [`OperationCaller`](crate::session_pages::OperationCaller).

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS};
use httpd::body::{self, RequestBody, ResponseBody};
use httpd::origin;
use httpd::response::Response;
use net::limit::memory_budget::MemoryHolder;

use super::static_pages;
use crate::access;
use crate::auth::cookie;
use crate::prelude::*;
use crate::server::ApiServer;
use crate::session_pages::{PageRequest, SessionPages};

/// Largest form: an import of 5,000 rows, or a template of 1 MB with its fields.
pub const FORM_BYTES_MAX: usize = 12 << 20;
/// Largest form of a client without a session.
const ANONYMOUS_FORM_BYTES_MAX: usize = 16 << 10;
/// Shorter responses are not compressed.
const GZIP_BYTES_MIN: usize = 1 << 10;

/// Answers a request with a page.
pub(super) async fn answer<B: RequestBody + Send + 'static>(
    pages: Arc<dyn SessionPages>,
    server: Arc<ApiServer>,
    request: Request<B>,
) -> http::Response<ResponseBody> {
    let is_head = request.method() == Method::HEAD;
    let accepts_gzip = static_pages::accepts_gzip(request.headers());
    let response = match read_request(server, request).await {
        Ok((request, _share)) => pages.answer(request).await,
        Err(problem) => error_response(&problem),
    };
    into_http(response, is_head, accepts_gzip)
}

async fn read_request<B: RequestBody + Send + 'static>(
    server: Arc<ApiServer>,
    request: Request<B>,
) -> Result<(PageRequest, net::limit::memory_budget::MemoryShare)> {
    let state = Arc::clone(&server.state);
    let (head, mut body) = request.into_parts();
    let checked = async {
        httpd::header_limits::check_head(&head)?;
        let method = match &head.method {
            &Method::GET | &Method::HEAD => Method::GET,
            &Method::POST => {
                origin::check_same_site(&head.headers, &state.options.base_url)?;
                Method::POST
            }
            _ => return Err(Problem::new(ErrorCode::METHOD_NOT_ALLOWED, "Use GET or POST")),
        };
        let user = match cookie::token(&head.headers) {
            Some(token) => access::session_user(&state, &token, access::client_ip(&head)).await?,
            None => None,
        };
        if let Some(user) = &user {
            state.accounts.limits.requests.check(user.tenant().account()).map_err(Problem::rate_limited)?;
        }
        Ok((method, user))
    };
    let (method, user) = match checked.await {
        Ok(checked) => checked,
        Err(problem) => {
            state.background.tasks.spawn(body::drain(body));
            return Err(problem);
        }
    };
    let client_ip = access::client_ip(&head);
    let (holder, bytes_max) = match &user {
        Some(user) => (MemoryHolder::Account(user.tenant().account().id), FORM_BYTES_MAX),
        None => (MemoryHolder::network(client_ip), ANONYMOUS_FORM_BYTES_MAX),
    };
    let allowance = state.memory_budget.allowance(holder);
    let read = body::read_form(&mut body, &head.headers, bytes_max, &allowance).await;
    if !body.is_end_stream() {
        state.background.tasks.spawn(body::drain(body));
    }
    let (body, share) = match read {
        // The session ended while the form was filled in: the page leads to the sign-in, and needs no form for it.
        Err(problem) if user.is_none() && problem.status() == StatusCode::PAYLOAD_TOO_LARGE => Default::default(),
        read => read?,
    };
    let operations = server;
    let request = PageRequest { operations, method, uri: head.uri, headers: head.headers, body, client_ip, user };
    Ok((request, share))
}

/// An error in plain text: the request did not reach a page.
pub(super) fn error_response(problem: &Problem) -> Response {
    if let Some(cause) = problem.cause() {
        tracing::error!(cause, "a page request failed");
    }
    Response::new(problem.status(), "text/plain; charset=utf-8", Vec::new(), format!("{}\n", problem.message()).into())
}

pub(super) fn into_http(response: Response, is_head: bool, accepts_gzip: bool) -> http::Response<ResponseBody> {
    let Response { status, media_type, headers, body, stream } = response;
    let is_text = media_type.to_str().is_ok_and(|text| text.starts_with("text/"));
    let gzip = (accepts_gzip && is_text && stream.is_none() && body.len() >= GZIP_BYTES_MIN)
        .then(|| compress(&body))
        .flatten();
    let is_gzip = gzip.is_some();
    let body = gzip.unwrap_or(body);
    let length = stream.is_none().then_some(body.len());
    let (body, stream) = if is_head { (Bytes::new(), None) } else { (body, stream) };
    let mut answer = http::Response::new(ResponseBody::with_stream(body, stream, Default::default()));
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    for (name, value) in headers {
        fields.append(name, value);
    }
    fields.insert(CONTENT_TYPE, media_type);
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(VARY, HeaderValue::from_static("accept-encoding, cookie"));
    if is_gzip {
        fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Some(length) = length.filter(|_| status != StatusCode::NO_CONTENT) {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    answer
}

fn compress(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
