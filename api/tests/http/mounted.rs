//! A service that is mounted on the API's port: credentials before the body, bodies larger than strangers may send, and
//! the operations that the credentials allow.

use std::sync::Arc;

use api::mounted_service::{MountedService, OperationDispatcher};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use model::request_log::RequestSurface;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::approvals::key_with_policy;
use crate::oauth::{Program, Tokens};
use crate::world::{BASE_URL, TestResponse, World};

/// Answers with the length of the body and the allowed operations, in the place of the MCP server.
#[derive(Debug)]
struct LengthService;

impl MountedService for LengthService {
    fn path(&self) -> &'static str {
        "/mcp"
    }

    fn surface(&self) -> RequestSurface {
        RequestSurface::Mcp
    }

    fn body_bytes_max(&self) -> usize {
        4 << 20
    }

    fn refusal(&self, _: &Parts) -> Option<Response<Bytes>> {
        None
    }

    fn unauthorized(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response
    }

    fn answer(
        self: Arc<Self>,
        operations: Arc<dyn OperationDispatcher>,
        head: Parts,
        body: Bytes,
    ) -> BoxFuture<'static, Response<Bytes>> {
        Box::pin(async move {
            let allowed = operations.allowed_operations(&head).await.unwrap();
            let allowed: Vec<String> = allowed.iter().map(|(method, path)| format!("{method} {path}")).collect();
            Response::new(json!({"length": body.len(), "allowed": allowed}).to_string().into())
        })
    }
}

async fn world() -> World {
    World::with_options(|options| options.pages.mounted_service = Some(Arc::new(LengthService))).await
}

async fn post(world: &World, key: &str, bytes: usize) -> TestResponse {
    let request = Request::post("/mcp")
        .header("host", "test")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json");
    world.send(request.body(Full::new(vec![b' '; bytes].into())).unwrap()).await
}

#[tokio::test]
async fn a_message_of_3_mb_is_accepted() {
    let world = world().await;
    for bytes in [1, 3 << 20, 4 << 20] {
        let response = post(&world, &world.key, bytes).await;
        assert_eq!((response.status, &response.json()["length"]), (StatusCode::OK, &json!(bytes)));
    }
    let response = post(&world, &world.key, (4 << 20) + 1).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    world.end().await;
}

#[tokio::test]
async fn the_body_of_a_stranger_is_not_read() {
    let world = world().await;
    for (key, expected) in
        [("rnl_nobody", "HTTP/1.1 401 Unauthorized"), (world.key.as_str(), "HTTP/1.1 100 Continue\r\n\r\n")]
    {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\nContent-Length: 3000000\r\n\
             Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut response = vec![0; 25];
        stream.read_exact(&mut response).await.unwrap();
        assert_eq!(String::from_utf8(response).unwrap(), expected);
    }
    world.end().await;
}

#[tokio::test]
async fn a_token_of_the_api_is_refused() {
    let world = world().await;
    let program = Program::new(&world).await;
    let of_api = program.tokens(&["read"]).await;
    assert_eq!(world.get_as(&of_api.access, "/account").await.status, StatusCode::OK);
    assert_eq!(post(&world, &of_api.access, 1).await.status, StatusCode::UNAUTHORIZED);
    let resource = format!("{BASE_URL}/mcp");
    let request: Vec<_> = program.request().into_iter().filter(|(name, _)| *name != "resource").collect();
    let request: Vec<_> = request.into_iter().chain([("resource", resource.as_str())]).collect();
    let of_mcp = Tokens::read(&program.exchange(&program.code(&request, &["read"]).await).await);
    assert_eq!(post(&world, &of_mcp.access, 1).await.status, StatusCode::OK);
    assert_eq!(
        world.call_as(&of_mcp.access, Method::GET, "/account", &Value::Null).await.status,
        StatusCode::UNAUTHORIZED
    );
    world.end().await;
}

#[tokio::test]
async fn credentials_allow_a_part_of_the_operations() {
    let world = world().await;
    let sending = world.account(2, ApiKeyScope::Sending).await;
    let program = Program::new(&world).await;
    let request: Vec<_> = program.request().into_iter().filter(|(name, _)| *name != "resource").collect();
    let read = Tokens::read(&program.exchange(&program.code(&request, &["read"]).await).await).access;
    let (_, limited) = key_with_policy(&world, "full", json!({"recipients": ["*@example.net"]})).await;
    for (key, allowed, refused) in [
        (world.key.as_str(), "POST /api-keys", "POST /users"),
        (&sending, "POST /emails", "POST /templates"),
        (&read, "GET /emails", "POST /emails"),
        (&limited, "POST /emails", "POST /api-keys"),
    ] {
        let answer = post(&world, key, 1).await.json();
        let has = |operation: &str| answer["allowed"].as_array().unwrap().contains(&json!(operation));
        assert!(has(allowed) && !has(refused), "{allowed} {refused}: {answer}");
    }
    world.end().await;
}
