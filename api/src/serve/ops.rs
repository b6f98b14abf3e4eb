//! The operator's own listener: `/metrics` for Prometheus and `/healthz`.
//!
//! Meant for loopback or a private network: it asks for no key, and its `/healthz` tells the reason
//! in full.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::body::{Payload, text};
use super::budget::Share;
use super::connection::answering;
use super::{Terms, listen};

/// A scraper, a watchdog, a person with curl.
const CONNECTIONS_MAX: usize = 64;
/// How long a stop waits for a scrape.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// The Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON_TYPE: &str = "application/json";

/// Serves the operator's listener until `stop`. `render` writes the metrics; `health` says why the
/// service is not well (see [`crate::health::reason`]).
///
/// # Errors
/// The listener itself cannot be used.
pub async fn ops(
    listener: TcpListener,
    render: impl Fn() -> String + Send + Sync + 'static,
    health: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let (render, health) = (Arc::new(render), Arc::new(health));
    let answer =
        answering(move |request| ready(respond(request.method(), request.uri().path(), &*render, &*health)));
    listen(listener, Terms::plain(CONNECTIONS_MAX, DRAIN_MAX), answer, stop).await
}

fn respond(
    method: &Method,
    path: &str,
    render: &(impl Fn() -> String + ?Sized),
    health: &(impl Fn() -> Result<(), String> + ?Sized),
) -> Response<Payload> {
    let known = matches!(path, "/metrics" | "/healthz");
    if known && !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET only\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut response = match path {
        "/metrics" => text(StatusCode::OK, METRICS_TYPE, render()),
        "/healthz" => match health() {
            Ok(()) => text(StatusCode::OK, JSON_TYPE, r#"{"status":"ok"}"#.into()),
            Err(reason) => {
                let body = serde_json::json!({"status": "unavailable", "reason": reason});
                text(StatusCode::SERVICE_UNAVAILABLE, JSON_TYPE, body.to_string())
            }
        },
        _ => text(StatusCode::NOT_FOUND, "text/plain", "/metrics and /healthz\n".into()),
    };
    if method == Method::HEAD {
        *response.body_mut() = Payload::new(Bytes::new(), Share::default());
    }
    response
}
