//! A door on port 0 with a store in memory, and a small client.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::net::SocketAddr;
use std::sync::Arc;

use api::room::{Options, Room};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use mail::account::{Account, Plan};
use mail::credential::{API_KEY_PREFIX, ApiKey, Scope, Secret, SecretHash};
use mail::id::{AccountId, ApiKeyId};
use serde_json::Value;
use store::engine::{Batch, Purpose, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use api::stub::Hall;

pub const BASE_URL: &str = "https://api.example.test";

pub struct World {
    pub address: SocketAddr,
    pub hall: Hall,
    pub room: Arc<Room>,
    pub key: String,
    pub stop: CancellationToken,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// An answer.
#[derive(Debug)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answered {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl World {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let hall = Hall::new(Store::memory());
        let mut options = Options::new(BASE_URL);
        change(&mut options);
        let room = Room::new(hall.clone(), options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(api::serve::api(listener, None, Arc::clone(&room), stop.clone()));
        let mut world = Self { address, hall, room, key: String::new(), stop, serving };
        world.key = world.account(1, Scope::Full).await;
        world
    }

    /// An account with one key; the number makes both.
    pub async fn account(&self, number: u8, scope: Scope) -> String {
        let secret = Secret::new(API_KEY_PREFIX, [number; 32]);
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let id = AccountId::new(now, number.into());
        let account = Account {
            id,
            email: format!("owner{number}@example.com").parse().unwrap(),
            plan: Plan::Free,
            production: true,
            suspended: false,
            created_at: now,
        };
        let key = ApiKey {
            id: ApiKeyId::new(now, number.into()),
            account: id,
            name: "test".into(),
            scope,
            hint: secret.hint(),
            enabled: true,
            created_at: now,
        };
        let mut batch = Batch::new(Purpose::Intake);
        store::account::create(&mut batch, &account);
        let hash = SecretHash::of_api_key(secret.expose()).unwrap();
        store::credential::create_api_key(&mut batch, &key, &hash);
        self.hall.store().commit(batch).await.unwrap();
        secret.expose().to_owned()
    }

    pub fn request(&self, method: Method, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", self.key))
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answered {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut client, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = client.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answered { status: head.status, headers: head.headers, body }
    }

    pub async fn get(&self, path: &str) -> Answered {
        self.send(self.request(Method::GET, path).body(Full::default()).unwrap()).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Answered {
        let request = Request::get(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {key}"))
            .body(Full::default())
            .unwrap();
        self.send(request).await
    }

    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answered {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(Full::new(body.into())).unwrap()).await
    }

    /// Stops the door; it must end by itself.
    pub async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}
