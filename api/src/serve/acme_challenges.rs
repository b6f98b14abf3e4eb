//! The HTTP-01 listener (RFC 8555 8.3): plain HTTP on port 80, serves only challenge responses of ACME.

use std::future::Future;
use std::io;
use std::time::Duration;

use http::header::HOST;
use http::uri::Authority;
use http::{Method, Request, StatusCode};
use httpd::body::text_response;
use httpd::connection::http_service;
use httpd::listener::{HttpListenerConfig, run_listener};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The certificate authority connects from a few places at once; port 80 also attracts scanners.
const CONNECTIONS_MAX: usize = 64;
/// Longest wait of a shutdown for a response.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Path prefix of challenge responses (RFC 8555 8.3).
const PATH: &str = "/.well-known/acme-challenge/";

/// Serves challenge responses until `stop`. `answer` returns the response for a host and a token.
pub async fn serve_acme_challenges<A, F>(
    listener: TcpListener,
    find_proof: A,
    stop: CancellationToken,
) -> io::Result<()>
where
    A: Fn(String, String) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Option<String>> + Send + 'static,
{
    let respond = http_service(move |request| {
        let answering = challenge_target(&request).map(|(host, token)| find_proof(host, token));
        async move {
            let found = match answering {
                Some(answering) => answering.await,
                None => None,
            };
            match found {
                Some(proof) => text_response(StatusCode::OK, "application/octet-stream", proof),
                None => text_response(StatusCode::NOT_FOUND, "text/plain", "not found\n".to_owned()),
            }
        }
    });
    run_listener(listener, HttpListenerConfig::plaintext(CONNECTIONS_MAX, DRAIN_MAX), respond, stop).await
}

/// The host and the token of a challenge request.
fn challenge_target<B>(request: &Request<B>) -> Option<(String, String)> {
    let token = request.uri().path().strip_prefix(PATH).filter(|_| request.method() == Method::GET)?;
    let host: Authority = request.headers().get(HOST)?.to_str().ok()?.parse().ok()?;
    Some((host.host().to_owned(), token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_challenge_paths_are_answered() {
        let send = |method: &str, path: &str, host: &str| {
            let request = Request::builder().method(method).uri(path).header(HOST, host).body(()).unwrap();
            challenge_target(&request)
        };
        let proof = "/.well-known/acme-challenge/abc";
        let expected = Some(("mx.example.net".to_owned(), "abc".to_owned()));
        assert_eq!(send("GET", proof, "mx.example.net"), expected);
        assert_eq!(send("GET", proof, "mx.example.net:80"), expected);
        assert_eq!(send("POST", proof, "mx.example.net"), None);
        assert_eq!(send("GET", "/", "mx.example.net"), None);
        assert_eq!(send("GET", proof, "a b"), None);
    }
}
