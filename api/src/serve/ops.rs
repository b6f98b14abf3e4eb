//! The operator's listener: `/metrics` for Prometheus, and `/healthz`.
//!
//! Meant for loopback or a private network: it needs no key, and its `/healthz` returns the full reason.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::body::{ResponseBody, text_response};
use super::connection::http_service;
use super::listener::{HttpListenerConfig, run_listener};
use super::memory_budget::MemoryShare;

/// A scraper, a health check, and a person with curl.
const CONNECTIONS_MAX: usize = 64;
/// Longest wait of a shutdown for a scrape.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Media type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON_TYPE: &str = "application/json";

/// Serves the operator's listener until `stop`. `render` writes the metrics; `health` returns the reason if the
/// service is unhealthy (see [`crate::health::unhealthy_reason`]).
///
/// # Errors
/// The listener cannot be used.
pub async fn serve_ops(
    listener: TcpListener,
    render: impl Fn() -> String + Send + Sync + 'static,
    health: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let (render, health) = (Arc::new(render), Arc::new(health));
    let service =
        http_service(move |request| ready(respond(request.method(), request.uri().path(), &*render, &*health)));
    run_listener(listener, HttpListenerConfig::plaintext(CONNECTIONS_MAX, DRAIN_MAX), service, stop).await
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
