//! A service that is mounted on the API's port: credentials before the body, and bodies larger than strangers may send.

use std::sync::Arc;

use api::mounted_service::{MountedService, OperationDispatcher};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use mail::request_log::RequestSurface;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::oauth::{Program, Tokens};
use crate::world::{BASE_URL, TestResponse, World};

/// Answers with the length of the body, in the place of the MCP server.
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
        _: Arc<dyn OperationDispatcher>,
        _: Parts,
        body: Bytes,
    ) -> BoxFuture<'static, Response<Bytes>> {
        Box::pin(async move { Response::new(body.len().to_string().into()) })
    }
}

async fn world() -> World {
    World::with_options(|options| options.mounted_service = Some(Arc::new(LengthService))).await
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
        assert_eq!((response.status, &response.body[..]), (StatusCode::OK, bytes.to_string().as_bytes()));
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
        world.call_as(&of_mcp.access, Method::GET, "/account", &serde_json::Value::Null).await.status,
        StatusCode::UNAUTHORIZED
    );
    world.end().await;
}
