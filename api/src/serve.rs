//! The HTTP server: listeners, connections, TLS, graceful shutdown.
//!
//! ```text
//! accept (bounded) → PROXY header → limit by address → TLS → HTTP/1.1 or HTTP/2 → dispatch
//! ```
//!
//! Limits: open connections in total and by address ([`connection_limiter`]), size and time of the header section, size and rate
//! of the body ([`body`]), idle time, stalled writes, age of a connection. A shutdown lets requests in progress
//! finish within [`ConnectionOptions::drain_max`](crate::state::ConnectionOptions::drain_max). The operator's listener ([`ops`])
//! uses the same code.

mod acme_challenges;
mod mounted_service;
pub mod ops;
pub mod router;
pub mod session_pages;
pub mod static_pages;

use std::io;

use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;
use httpd::listener::{HttpListenerConfig, TlsConfigReceiver, run_listener};
use net::limit::fair_share::{FairShareQuota, QuotaBounds};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::approval_tasks;
use crate::dispatch::dispatch;
use crate::prelude::*;
use crate::server::ApiServer;

pub use self::acme_challenges::serve_acme_challenges;
pub use self::ops::serve_ops;

/// The ALPN protocols of the API's TLS configuration (RFC 7301): HTTP/2, then HTTP/1.1.
pub fn alpn_protocols() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// HSTS for one year (RFC 6797 6.1). It is sent only if this listener terminates TLS, and only for the host of the
/// base URL: customers' hosts may later be served elsewhere without TLS.
const HSTS_VALUE: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Serves the API on a listener until `stop`, then waits for requests in progress.
pub fn serve_api(
    listener: TcpListener,
    tls: Option<TlsConfigReceiver>,
    server: Arc<ApiServer>,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let state = Arc::clone(&server.state);
        let connections = &state.options.connections;
        let config = HttpListenerConfig {
            proxies: connections.proxies.clone(),
            tls,
            connections_max: connections.max,
            connections: FairShareQuota::new(QuotaBounds::each(connections.per_address_max)),
            drain_max: connections.drain_max,
            error_response: Some(protocol_error_response(&state)),
        };
        let (tasks, drain_max) = (state.background.tasks.clone(), config.drain_max);
        let (log_state, log_stop) = (Arc::clone(&state), stop.clone());
        let log_writer =
            tokio::spawn(async move { log_state.request_log.run(&log_state.services.store, log_stop).await });
        tokio::spawn(approval_tasks::run(Arc::clone(&server), stop.clone()));
        let (closing, stopped) = (state.background.shutdown.clone(), stop.clone());
        tokio::spawn(async move {
            stopped.cancelled().await;
            closing.cancel();
        });
        let is_tls = config.tls.is_some();
        let service = httpd::connection::http_service(move |mut request| {
            let connections = &server.state.options.connections;
            httpd::forwarded_for::apply_forwarded_for(&connections.forwarding_networks, &mut request);
            httpd::header_limits::normalize_host(&mut request);
            let strict = is_tls && httpd::header_limits::is_for(&server.state.options.base_url, request.headers());
            let server = Arc::clone(&server);
            async move {
                let mut response = respond(server, request).await;
                if strict {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS_VALUE);
                }
                response
            }
        });
        run_listener(listener, config, service, stop).await?;
        // Handlers run on after their clients disconnect.
        tasks.close();
        let _ = tokio::time::timeout(drain_max, tasks.wait()).await;
        let _ = log_writer.await;
        // Entries of requests that were answered since the stop.
        state.request_log.flush(&state.services.store).await;
        Ok(())
    })
}

/// Answers a request with a page of the dashboard or of the overlay, or passes it to the API.
async fn respond(
    server: Arc<ApiServer>,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<httpd::body::ResponseBody> {
    let mounted = server.state.options.pages.mounted_service.as_ref();
    if let Some(service) = mounted.filter(|service| service.path() == request.uri().path()) {
        return mounted_service::answer(Arc::clone(service), server, request).await;
    }
    let session_pages = server.state.options.pages.with_sessions.as_ref();
    // Not at the host names of customers, whose DNS they can point elsewhere: it would receive the session cookie.
    let is_own_host = || httpd::header_limits::is_own_host(&server.state.options.base_url, request.headers());
    if let Some(pages) = session_pages.filter(|pages| pages.has(request.uri(), request.headers()) && is_own_host()) {
        return session_pages::answer(Arc::clone(pages), server, request).await;
    }
    let Some(overlay) = &server.state.options.pages.overlay else { return dispatch(server, request).await };
    if overlay.has(request.uri(), request.headers()) {
        return static_pages::answer(Arc::clone(overlay), request).await;
    }
    let observer = overlay.observe(request.method(), request.uri());
    let response = dispatch(server, request).await;
    if let Some(observer) = observer {
        observer(response.status());
    }
    response
}

/// Builds the response to input that hyper rejects before it becomes a request.
fn protocol_error_response(state: &State) -> httpd::protocol_errors::ErrorResponseBuilder {
    let state = Arc::clone(state);
    Arc::new(move |status| {
        let (code, message) = match status {
            400 => (ErrorCode::BAD_REQUEST, "Malformed HTTP request (RFC 9112)"),
            _ => (ErrorCode::HEADERS_TOO_LARGE, "The header section of the request is too large"),
        };
        let (problem, id) = (Problem::new(code, message), state.next_request_id());
        let body = problem.body(id, &state.options.base_url);
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nx-request-id: {id}\r\n\
             cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
            problem.status(),
            body.len(),
        );
        [head.as_bytes(), &body].concat().into()
    })
}
