//! The operator's listener: `/metrics` for Prometheus, `/healthz`, and pages for the operator.
//!
//! ```text
//! /metrics, /healthz ─► text, without a key
//! OpsPages::has ──────► body (bounded) ─► OpsPages::answer ─► gzip ─► response
//! ```
//!
//! Meant for loopback or a private network: metrics need no key, and `/healthz` returns the full reason. The pages have
//! a sign-in of their own.

use std::io;
use std::net::IpAddr;

use futures_util::future::BoxFuture;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use httpd::body::{self, ResponseBody, text_response};
use httpd::connection::http_service;
use httpd::header_limits;
use httpd::listener::{HttpListenerConfig, run_listener};
use hyper::body::{Body as _, Incoming};
use net::limit::memory_budget::{MemoryBudget, MemoryHolder, MemoryShare};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{session_pages, static_pages};
use crate::access;
use crate::prelude::*;

/// A scraper, a health check, and a person with curl.
const CONNECTIONS_MAX: usize = 64;
/// Longest wait of a shutdown for a scrape.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Media type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON_TYPE: &str = "application/json";
/// Largest form of a page.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Memory of the forms of all connections.
const FORMS_BYTES_MAX: usize = 8 << 20;

/// Pages for the operator beside the metrics: the console.
pub trait OpsPages: Send + Sync + 'static {
    /// Returns whether a request is for one of its pages.
    fn has(&self, uri: &Uri) -> bool;

    /// Answers a request that it [`has`](Self::has). It checks the host of the request, the session and the CSRF token.
    fn answer(self: Arc<Self>, request: OpsPageRequest) -> BoxFuture<'static, httpd::response::Response>;
}

/// A request for a page of the operator.
#[derive(Debug)]
pub struct OpsPageRequest {
    /// GET or POST; HEAD is answered like GET.
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub client_ip: Option<IpAddr>,
}

/// Serves the operator's listener until `stop`. `render` writes the metrics; `health` returns the reason if the
/// service is unhealthy (see [`crate::health::unhealthy_reason`]).
pub async fn serve_ops(
    listener: TcpListener,
    render: impl Fn() -> String + Send + Sync + 'static,
    health: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    pages: Option<Arc<dyn OpsPages>>,
    stop: CancellationToken,
) -> io::Result<()> {
    let (render, health) = (Arc::new(render), Arc::new(health));
    let budget = MemoryBudget::new(FORMS_BYTES_MAX, FORM_BYTES_MAX);
    let service = http_service(move |mut request| {
        header_limits::normalize_host(&mut request);
        let (render, health, budget) = (Arc::clone(&render), Arc::clone(&health), budget.clone());
        let pages = pages.clone().filter(|pages| pages.has(request.uri()));
        async move {
            match pages {
                Some(pages) => respond_with_page(pages, &budget, request).await,
                None => respond(request.method(), request.uri().path(), &*render, &*health),
            }
        }
    });
    run_listener(listener, HttpListenerConfig::plaintext(CONNECTIONS_MAX, DRAIN_MAX), service, stop).await
}

async fn respond_with_page(
    pages: Arc<dyn OpsPages>,
    budget: &MemoryBudget,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let is_head = request.method() == Method::HEAD;
    let accepts_gzip = static_pages::accepts_gzip(request.headers());
    let response = match read_request(budget, request).await {
        Ok((request, _share)) => pages.answer(request).await,
        Err(problem) => session_pages::error_response(&problem),
    };
    session_pages::into_http(response, is_head, accepts_gzip)
}

async fn read_request(budget: &MemoryBudget, request: Request<Incoming>) -> Result<(OpsPageRequest, MemoryShare)> {
    let (head, mut body) = request.into_parts();
    let client_ip = access::client_ip(&head);
    let checked = header_limits::check_head(&head).and_then(|()| match &head.method {
        &Method::GET | &Method::HEAD => Ok(Method::GET),
        &Method::POST => Ok(Method::POST),
        _ => Err(Problem::new(ErrorCode::METHOD_NOT_ALLOWED, "Use GET or POST")),
    });
    let read = match checked {
        Ok(method) => {
            let allowance = budget.allowance(MemoryHolder::network(client_ip));
            body::read_form(&mut body, &head.headers, FORM_BYTES_MAX, &allowance).await.map(|read| (method, read))
        }
        Err(problem) => Err(problem),
    };
    if !body.is_end_stream() {
        tokio::spawn(body::drain(body));
    }
    let (method, (content, share)) = read?;
    Ok((OpsPageRequest { method, uri: head.uri, headers: head.headers, body: content, client_ip }, share))
}

fn respond(
    method: &Method,
    path: &str,
    render: &(impl Fn() -> String + ?Sized),
    health: &(impl Fn() -> Result<(), String> + ?Sized),
) -> Response<ResponseBody> {
    let is_known = matches!(path, "/metrics" | "/healthz");
    if is_known && !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET only\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut response = match path {
        "/metrics" => text_response(StatusCode::OK, METRICS_TYPE, render()),
        "/healthz" => match health() {
            Ok(()) => text_response(StatusCode::OK, JSON_TYPE, r#"{"status":"ok"}"#.into()),
            Err(reason) => {
                let body = serde_json::json!({"status": "unavailable", "reason": reason});
                text_response(StatusCode::SERVICE_UNAVAILABLE, JSON_TYPE, body.to_string())
            }
        },
        _ => text_response(StatusCode::NOT_FOUND, "text/plain", "/metrics and /healthz\n".into()),
    };
    if method == Method::HEAD {
        *response.body_mut() = ResponseBody::new(Bytes::new(), MemoryShare::default());
    }
    response
}
