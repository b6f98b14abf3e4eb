//! Requests on the wire: media types, encodings, nesting, sizes, slow clients, concurrency.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::world::{BASE_URL, Backend, TestResponse, World, store};
use api::operation::OperationTag;
use api::operations::operation_table;
use api::state::{ApiOptions, AppState};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use httpd::problem::Problem;
use httpd::request::NoInput;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const MAIL: &str = r#"{"from":"a@example.com","to":"b@example.net","subject":"s","text":"t"}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

impl World {
    async fn post_with(&self, headers: &[(&str, &str)], body: impl Into<Bytes>) -> TestResponse {
        let mut request = self.request(Method::POST, "/emails");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Full::new(body.into())).unwrap()).await
    }
}

#[tokio::test]
async fn compressed_bodies() {
    let world = World::start().await;
    for (encoding, packed) in [
        ("gzip", gzip(MAIL.as_bytes())),
        ("x-gzip", gzip(MAIL.as_bytes())),
        ("GZIP", gzip(MAIL.as_bytes())),
        ("zstd", zstd(MAIL.as_bytes())),
        ("identity", MAIL.into()),
    ] {
        let response = world.post_with(&[("content-encoding", encoding)], packed).await;
        assert_eq!(response.status, StatusCode::OK, "{encoding}: {response:?}");
    }
    for encoding in ["br", "deflate", "gzip, gzip", "gzip, zstd", "aws-chunked"] {
        let response = world.post_with(&[("content-encoding", encoding)], gzip(MAIL.as_bytes())).await;
        assert_eq!(response.code(), "unsupported_media_type", "{encoding}");
        assert_eq!(response.headers["accept-encoding"], "gzip, zstd");
    }
    for encoding in ["gzip", "zstd"] {
        let response = world.post_with(&[("content-encoding", encoding)], MAIL).await;
        assert_eq!((response.status.as_u16(), response.code().as_str()), (400, "invalid_json"), "{encoding}");
    }
    world.end().await;
}

/// 160 MB of spaces in 160 KB: larger than any request may be.
#[tokio::test]
async fn a_bomb_is_too_large() {
    let world = World::start().await;
    let bomb = gzip(&vec![b' '; httpd::request::SEND_BYTES_MAX + 1]);
    let response = world.post_with(&[("content-encoding", "gzip")], bomb).await;
    assert_eq!(response.code(), "payload_too_large");
    assert_eq!(world.post("/emails", MAIL).await.status, StatusCode::OK);
    world.end().await;
}

/// `curl -d` sends a form media type for everything.
#[tokio::test]
async fn curl_form_type_is_accepted_for_json() {
    let world = World::start().await;
    const FORM: &str = "application/x-www-form-urlencoded";
    assert_eq!(world.post_with(&[("content-type", FORM)], MAIL).await.status, StatusCode::OK);
    assert_eq!(world.post_with(&[], MAIL).await.status, StatusCode::OK);
    let form = world.post_with(&[("content-type", FORM)], "from=a@example.com&to=b@example.net").await;
    assert_eq!(form.code(), "unsupported_media_type");
    assert_eq!(form.headers["accept"], "application/json");
    for kind in ["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/json; charset=utf-16"]
    {
        assert_eq!(world.post_with(&[("content-type", kind)], MAIL).await.code(), "unsupported_media_type", "{kind}");
        // Without a body the media type does not matter; the error is the missing body.
        assert_eq!(world.post_with(&[("content-type", kind)], "").await.code(), "invalid_json", "{kind}");
    }
    world.end().await;
}

/// Nested so deep that a recursive parser would overflow the stack.
#[tokio::test]
async fn json_that_is_nested_too_deep() {
    let world = World::start().await;
    for depth in [129, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nest = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for body in [
                nest.clone(),
                open.repeat(depth),
                format!(r#"{{"from":"a@example.com","to":{nest},"subject":"s","text":"t"}}"#),
                format!(r#"{{"from":"a@example.com","to":"b@example.net","subject":"s","text":"t","x":{nest}}}"#),
                format!(r#"{{"from":"a@example.com","to":"b@example.net","subject":"s","text":"t","tags":{nest}}}"#),
            ] {
                let request = world
                    .request(Method::POST, "/emails")
                    .header("content-type", "application/json")
                    .header("idempotency-key", "k");
                let response = world.send(request.body(Full::from(body)).unwrap()).await;
                assert_eq!(response.code(), "invalid_json", "{depth} {open}");
            }
        }
    }
    world.end().await;
}

#[tokio::test]
async fn large_header_section_gets_the_error_envelope() {
    let world = World::start().await;
    let long = world.request(Method::GET, "/emails").header("x-long", "a".repeat(33 << 10));
    let many = (0..120).fold(world.request(Method::GET, "/emails"), |r, n| r.header(format!("x-{n}"), "1"));
    let target = world.request(Method::GET, &format!("/emails?q={}", "a".repeat(33 << 10)));
    for request in [long, many, target] {
        let response = world.send(request.body(Full::default()).unwrap()).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large")
        );
    }
    world.end().await;
}

/// hyper answers these by itself with a bare head.
#[tokio::test]
async fn protocol_errors_get_the_error_envelope() {
    let world = World::start().await;
    let long = format!("GET / HTTP/1.1\r\nHost: t\r\nX: {}\r\n\r\n", "a".repeat(100 << 10));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(300));
    let target = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100 << 10));
    for (request, status, code) in [
        ("GET / HTTP/1.1\r\nHost: t\r\nbad header\r\n\r\n", 400, "bad_request"),
        ("HELO there\r\n\r\n", 400, "bad_request"),
        ("POST /emails HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "bad_request"),
        (&long, 431, "headers_too_large"),
        (&many, 431, "headers_too_large"),
        (&target, 431, "headers_too_large"),
    ] {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        // The server may close before everything is written.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response).await;
        let response = String::from_utf8(response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{status}: {response:?}"));
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        let error = serde_json::from_str::<serde_json::Value>(body).unwrap()["error"].clone();
        assert_eq!(error["code"], code, "{response}");
        assert!(head.contains(&format!("x-request-id: {}", error["request_id"].as_str().unwrap())), "{response}");
    }
    world.end().await;
}

#[tokio::test]
async fn connection_is_reused_after_errors() {
    let world = World::start().await;
    let stream = TcpStream::connect(world.address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for (path, body, status) in [
        ("/emails", MAIL, 200),
        ("/emails", "{", 400),
        ("/nowhere", MAIL, 404),
        ("/emails", "", 400),
        ("/emails", MAIL, 200),
    ] {
        let request = world.request(Method::POST, path).body(Full::from(body)).unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path} {body}");
        http_body_util::BodyExt::collect(response.into_body()).await.unwrap();
    }
    world.end().await;
}

/// Number and maximum of concurrent requests of a connection.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static AT_WORK_MAX: AtomicUsize = AtomicUsize::new(0);
static BEGUN: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);
static RELEASE: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);

async fn slow(_: Arc<AppState>, _: NoInput) -> Result<api::openapi::OpenApiDocument, Problem> {
    let now = AT_WORK.fetch_add(1, Ordering::SeqCst) + 1;
    AT_WORK_MAX.fetch_max(now, Ordering::SeqCst);
    BEGUN.add_permits(1);
    RELEASE.acquire().await.unwrap().forget();
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
    Err(Problem::not_found("end"))
}

/// A client that resets requests (CVE-2023-44487) causes no more concurrent work than one that waits.
#[tokio::test]
async fn resets_do_not_accumulate_work() {
    const STREAMS_MAX: usize = 100;
    let backend = Backend::new(store().await).await;
    let mut table = operation_table();
    table.push(OperationTag::new("test").get("/slow", "").public("slow", slow));
    let api_server = backend.server_with(ApiOptions::new(BASE_URL), table);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(api::serve::serve_api(listener, None, api_server, stop.clone()));
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let send_request = |path: &str| {
        let request = Request::get(format!("http://{address}{path}")).body(Full::<Bytes>::default()).unwrap();
        let mut client = client.clone();
        tokio::spawn(async move { client.send_request(request).await })
    };
    for _ in 0..STREAMS_MAX {
        let queries = send_request("/slow");
        BEGUN.acquire().await.unwrap().forget();
        // The stream is reset; the handler runs on.
        queries.abort();
    }
    assert_eq!(AT_WORK.load(Ordering::SeqCst), STREAMS_MAX);
    let further: Vec<_> = (0..20).map(|_| send_request("/slow")).collect();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    further.iter().for_each(tokio::task::JoinHandle::abort);
    // A permit is free again: the next request is answered.
    RELEASE.add_permits(10 * STREAMS_MAX);
    assert_eq!(send_request("/healthz").await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(AT_WORK_MAX.load(Ordering::SeqCst), STREAMS_MAX);
    drop(client);
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn http_1_1_names_one_host() {
    let world = World::start().await;
    for (request, status) in [
        ("GET /healthz HTTP/1.1\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: a b\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: me@a\r\n\r\n", "400"),
        ("GET http://a/healthz HTTP/1.1\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: [2001:db8::1]:443\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nhost:\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.0\r\n\r\n", "200"),
    ] {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert_eq!(response.split(' ').nth(1), Some(status), "{request} {response}");
        assert!(status == "200" || response.contains("\"bad_request\""), "{response}");
        assert!(!response.to_lowercase().contains("strict-transport-security"), "{response}");
    }
    world.end().await;
}
