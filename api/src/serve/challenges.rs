//! The listener that a certificate authority comes to for proofs by HTTP-01 (RFC 8555 8.3), in the clear and
//! on port 80. Whatever else is asked there does not exist.

use std::future::Future;
use std::io;
use std::time::Duration;

use http::header::HOST;
use http::uri::Authority;
use http::{Method, Request, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::body::text_response;
use super::connection::http_service;
use super::{HttpListenerConfig, run_listener};

/// The authority asks from a few places at once; strangers come to port 80, too.
const CONNECTIONS_MAX: usize = 64;
/// How long a stop waits for an answer.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Where proofs are (RFC 8555 8.3).
const PATH: &str = "/.well-known/acme-challenge/";

/// Serves proofs until `stop`. `answer` knows the one for a host and a token.
///
/// # Errors
/// The listener itself cannot be used.
pub async fn serve_acme_challenges<A, F>(listener: TcpListener, answer: A, stop: CancellationToken) -> io::Result<()>
where
    A: Fn(String, String) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Option<String>> + Send + 'static,
{
    let respond = http_service(move |request| {
        let answering = challenge_target(&request).map(|(host, token)| answer(host, token));
        async move {
            let found = match answering {
                Some(answering) => answering.await,
                None => None,
            };
            match found {
                Some(proof) => text_response(StatusCode::OK, "application/octet-stream", proof),
                None => text_response(StatusCode::NOT_FOUND, "text/plain", "nothing is here\n".to_owned()),
            }
        }
    });
    run_listener(listener, HttpListenerConfig::plaintext(CONNECTIONS_MAX, DRAIN_MAX), respond, stop).await
}

/// The host and the token that are asked about.
fn challenge_target<B>(request: &Request<B>) -> Option<(String, String)> {
    let token = request.uri().path().strip_prefix(PATH).filter(|_| request.method() == Method::GET)?;
    let host: Authority = request.headers().get(HOST)?.to_str().ok()?.parse().ok()?;
    Some((host.host().to_owned(), token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_are_asked_about() {
        let ask = |method: &str, path: &str, host: &str| {
            let request = Request::builder().method(method).uri(path).header(HOST, host).body(()).unwrap();
            challenge_target(&request)
        };
        let proof = "/.well-known/acme-challenge/abc";
        let known = Some(("mx.example.net".to_owned(), "abc".to_owned()));
        assert_eq!(ask("GET", proof, "mx.example.net"), known);
        assert_eq!(ask("GET", proof, "mx.example.net:80"), known);
        assert_eq!(ask("POST", proof, "mx.example.net"), None);
        assert_eq!(ask("GET", "/", "mx.example.net"), None);
        assert_eq!(ask("GET", proof, "a b"), None);
    }
}
