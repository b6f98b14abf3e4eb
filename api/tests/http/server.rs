//! HTTP basics: routes, methods, keys, scopes, media types, sizes, shutdown.

use std::sync::Arc;
use std::time::Duration;

use crate::world::{BASE_URL, Backend, World, store};
use api::operation::{OperationHandler, OperationTag};
use api::operations::operation_table;
use api::state::{ApiOptions, AppState};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use httpd::problem::Problem;
use httpd::request::NoInput;
use model::credential::ApiKeyScope;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const MAIL: &str = r#"{"from":"a@example.com","to":"b@example.net","subject":"s","text":"t"}"#;

#[tokio::test]
async fn health_and_document_need_no_key() {
    let world = World::start().await;
    for (path, part) in [("/healthz", "status"), ("/openapi.json", "openapi")] {
        let request = Request::get(path).header("host", "t").body(Full::default()).unwrap();
        let response = world.send(request).await;
        assert_eq!(response.status, StatusCode::OK, "{path}");
        assert!(response.json()[part].is_string(), "{path}");
        assert!(response.headers["x-request-id"].to_str().unwrap().starts_with("req_"));
    }
    world.end().await;
}

#[tokio::test]
async fn requests_without_a_key_are_refused() {
    let world = World::start().await;
    for (key, reason) in [
        ("", "malformed"),
        ("rnl_", "malformed"),
        ("rnl_0000000000000000000000000000000000000000", "unknown"),
        ("stxsmtp_abc", "malformed"),
    ] {
        let response = world.get_as(key, "/emails").await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED);
        let error = &response.json()["error"];
        assert_eq!((error["message"].as_str(), error["code"].as_str()), (Some("Unauthorized"), Some("unauthorized")));
        assert_eq!(error["details"]["reason"], reason, "{key}");
        assert_eq!(error["request_id"].as_str(), response.headers["x-request-id"].to_str().ok());
        let challenge = response.headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.starts_with("Bearer resource_metadata=\"https://api.example.test/"), "{challenge}");
    }
    let request = Request::get("/emails").header("host", "t").body(Full::default()).unwrap();
    assert_eq!(world.send(request).await.json()["error"]["details"]["reason"], "missing");
    let legacy = world.key.replacen("rnl_", "stx_", 1);
    assert_eq!(world.get_as(&legacy, "/emails").await.status, StatusCode::OK);
    world.end().await;
}

/// Derived from the operation table: an operation with full scope refuses a sending key, every operation with a scope
/// refuses a request without a key, and one that needs a session refuses keys.
#[tokio::test]
async fn scopes_hold_for_every_operation() {
    let world = World::start().await;
    let sending = world.account(2, ApiKeyScope::Sending).await;
    for operation in operation_table() {
        let path = operation.path.replace("{id}", "msg_00000000000000000000000000");
        let send_request = |key: Option<&str>| {
            let mut request = Request::builder().method(operation.method.clone()).uri(&path).header("host", "t");
            if let Some(key) = key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            request.body(Full::from("{}")).unwrap()
        };
        let nobody = world.send(send_request(None)).await;
        let sender = world.send(send_request(Some(&sending))).await;
        let full = world.send(send_request(Some(&world.key))).await;
        let browser = world.get_as(&world.key, &format!("/api{path}")).await;
        match operation.handler {
            OperationHandler::Public(_) => assert!(nobody.status != StatusCode::FORBIDDEN, "{path}"),
            OperationHandler::ApiKey(scope, _) | OperationHandler::ApiKeyOrSession(scope, _) => {
                assert_eq!(nobody.status, StatusCode::UNAUTHORIZED, "{path}");
                assert_eq!(sender.status == StatusCode::FORBIDDEN, scope == ApiKeyScope::Full, "{path}");
                assert!(![401, 403].contains(&full.status.as_u16()), "{path}");
                // A key is not a session, and an operation without sessions does not exist under the browser prefix.
                assert!([401, 404, 405].contains(&browser.status.as_u16()), "{path}");
            }
            OperationHandler::Session(..) | OperationHandler::Owner(_) => {
                assert_eq!(nobody.status, StatusCode::UNAUTHORIZED, "{path}");
                assert_eq!(sender.status, StatusCode::FORBIDDEN, "{path}");
                assert_eq!(full.status, StatusCode::FORBIDDEN, "{path}");
            }
        }
    }
    world.end().await;
}

#[tokio::test]
async fn wrong_paths_methods_and_types() {
    let world = World::start().await;
    for path in ["/", "/email", "/emails/", "/emails/x/y", "/emails//raw", "/%65mails"] {
        let response = world.get(path).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::NOT_FOUND, "not_found"), "{path}");
    }
    let request = world.request(Method::DELETE, "/emails").body(Full::default()).unwrap();
    let response = world.send(request).await;
    assert_eq!((response.status, response.code().as_str()), (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"));
    assert_eq!(response.headers["allow"], "GET, HEAD, POST");
    for (name, value) in [("content-type", "text/plain"), ("content-encoding", "br")] {
        let request = world.request(Method::POST, "/emails").header(name, value);
        let response = world.send(request.body(Full::from(MAIL)).unwrap()).await;
        assert_eq!(response.code(), "unsupported_media_type", "{name}");
    }
    world.end().await;
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let world = World::start().await;
    let get = world.get("/emails").await;
    let request = world.request(Method::HEAD, "/emails").body(Full::default()).unwrap();
    let head = world.send(request).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.headers["content-length"], get.body.len().to_string());
    world.end().await;
}

#[tokio::test]
async fn large_bodies_are_refused_before_reading() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST /emails HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {}\r\nContent-Length: 999999999\r\n\
         Expect: 100-continue\r\n\r\n",
        world.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert!(response.contains("payload_too_large"), "{response}");
    world.end().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let world = World::start().await;
    let request = world.request(Method::GET, "/emails").header("x-long", "a".repeat(64 << 10));
    let response = world.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(response.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    world.end().await;
}

/// A panic in a handler fails only that request.
#[tokio::test]
async fn panic_returns_500_without_details() {
    async fn faulty(_: Arc<AppState>, _: NoInput) -> Result<api::openapi::OpenApiDocument, Problem> {
        panic!("the secret cause")
    }
    let backend = Backend::new(store().await).await;
    let mut table = operation_table();
    table.push(OperationTag::new("test").get("/faulty", "").public("faulty", faulty));
    let api_server = backend.server_with(ApiOptions::new(BASE_URL), table);
    let request = Request::get("/faulty").header("host", "test").body(Full::<Bytes>::default()).unwrap();
    let response = api::dispatch::dispatch(api_server, request).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains("internal_error") && !body.contains("secret"), "{body}");
}

/// A stalled request does not delay a shutdown beyond the drain time.
#[tokio::test]
async fn shutdown_drains_for_a_limited_time() {
    let world = World::with_options(|options| options.connections.drain_max = Duration::ZERO).await;
    let mut stalled = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST /emails HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {}\r\nContent-Length: 10\r\n\r\n{{",
        world.key
    );
    stalled.write_all(head.as_bytes()).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn http2_with_prior_knowledge() {
    let world = World::start().await;
    let stream = TcpStream::connect(world.address).await.unwrap();
    let (mut client, connection) = hyper::client::conn::http2::handshake(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(stream),
    )
    .await
    .unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        let request = Request::post(format!("http://{}/emails", world.address))
            .header("authorization", format!("Bearer {}", world.key))
            .body(Full::<Bytes>::from(MAIL))
            .unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!((response.status(), response.version()), (StatusCode::OK, http::Version::HTTP_2));
    }
    drop(client);
    world.end().await;
}

#[tokio::test]
async fn the_operators_listener() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let health = || Err("fenced: the disk said no".to_owned());
    let serving = tokio::spawn(api::serve::serve_ops(listener, || "up 1\n".to_owned(), health, None, stop.clone()));
    for (path, status, part) in
        [("/metrics", "200", "up 1"), ("/healthz", "503", "the disk said no"), ("/x", "404", "")]
    {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")) && response.contains(part), "{response}");
    }
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn refused_body_is_drained_so_the_response_is_readable() {
    let world = World::start().await;
    for (path, status) in [("/emails", "401"), ("/nowhere", "404")] {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let size = 8 << 20;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer rnl_nobody\r\n\
             Content-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = vec![b' '; 1 << 20];
        for _ in 0..size >> 20 {
            stream.write_all(&chunk).await.unwrap();
        }
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")) && response.contains("request_id"), "{response}");
    }
    world.end().await;
}
