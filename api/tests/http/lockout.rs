//! Failed passwords are counted by network, so that one client cannot lock out another.

use crate::world::{TestResponse, World};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const PASSWORD: &str = "correct horse battery";
const EMAIL: &str = "owner1@example.com";

async fn world() -> World {
    let world = World::with_options(|options| {
        options.connections.proxies = TrustedProxies::new(&["127.0.0.1".parse().unwrap()])
    })
    .await;
    let session = world.session(1).await;
    let request = Request::post("/auth/password")
        .header("host", "t")
        .header("cookie", &session.cookie)
        .header("x-csrf-token", session.csrf.as_deref().unwrap());
    let body = json!({"password": PASSWORD}).to_string();
    let done = call_from(&world, "192.0.2.1", request.body(Full::new(body.into())).unwrap()).await;
    assert_eq!(done.status, StatusCode::OK);
    world
}

/// A request of a client behind the proxy.
async fn call_from(world: &World, client: &str, request: Request<Full<bytes::Bytes>>) -> TestResponse {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let header = format!("PROXY TCP4 {client} 198.51.100.1 56324 443\r\n");
    stream.write_all(header.as_bytes()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    TestResponse { status: head.status, headers: head.headers, body }
}

async fn post_from(world: &World, client: &str, path: &str, body: &Value) -> TestResponse {
    let request = Request::builder().method(Method::POST).uri(path).header("host", "t");
    call_from(world, client, request.body(Full::new(body.to_string().into())).unwrap()).await
}

async fn sign_in(world: &World, client: &str, password: &str) -> u16 {
    let body = json!({"email": EMAIL, "password": password});
    post_from(world, client, "/auth/sign-in", &body).await.status.as_u16()
}

#[tokio::test]
async fn failed_passwords_lock_out_only_their_network() {
    let world = world().await;
    for _ in 0..10 {
        assert_eq!(sign_in(&world, "192.0.2.66", "wrong").await, 401);
    }
    assert_eq!(sign_in(&world, "192.0.2.66", PASSWORD).await, 429);
    // The owner, on another network, can still sign in.
    for _ in 0..3 {
        assert_eq!(sign_in(&world, "192.0.2.1", PASSWORD).await, 200);
    }
    world.services.clock.advance(std::time::Duration::from_secs(301));
    assert_eq!(sign_in(&world, "192.0.2.66", PASSWORD).await, 200);
    world.end().await;
}

#[tokio::test]
async fn invalid_links_are_limited_by_network() {
    let world = world().await;
    let mut statuses = Vec::new();
    for _ in 0..51 {
        statuses.push(post_from(&world, "192.0.2.66", "/auth/link/x", &Value::Null).await.status.as_u16());
    }
    assert_eq!((statuses.pop(), statuses.iter().all(|status| *status == 401)), (Some(429), true));
    assert_eq!(post_from(&world, "192.0.2.67", "/auth/link/x", &Value::Null).await.status.as_u16(), 401);
    world.end().await;
}
