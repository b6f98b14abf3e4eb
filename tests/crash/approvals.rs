//! Approvals: the server is killed between the decision of a person and the end of the execution. The approved email is
//! sent once.
//!
//! The kill comes at another step of the execution in each round, as far as it can be told from outside: after the
//! decision was sent, and after its answer began.

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::installation::{DOMAIN, Installation, PATIENCE, free_address};

/// Rounds; each kills the server once.
const ROUNDS: usize = 6;
/// A node that stopped holds an execution for this long.
const LEASE_S: usize = 121;

/// The owner's session.
struct Session {
    cookie: String,
    csrf: String,
}

/// A request in the form of HTTP/1.1.
fn request(method: &str, path: &str, credential: &str, body: &Value) -> String {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{credential}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn call(api: SocketAddr, method: &str, path: &str, credential: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(api).await.unwrap();
    stream.write_all(request(method, path, credential, body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 ") || head.contains(" 202 "), "{method} {path}: {answer}");
    serde_json::from_str(body).unwrap()
}

impl Session {
    async fn create(installation: &Installation) -> Self {
        let created = installation.admin(&["session", "create"]).await;
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        Self { cookie: text("cookie"), csrf: text("csrf_token") }
    }

    fn credential(&self) -> String {
        format!("Cookie: {}\r\nX-Csrf-Token: {}", self.cookie, self.csrf)
    }

    /// Sends an approval, and waits for `bytes` of its answer.
    async fn begin_approval(&self, api: SocketAddr, approval: &Value, bytes: usize) {
        let path = format!("/approvals/{}/approve", approval["id"].as_str().unwrap());
        let body = json!({"hash": approval["hash"]});
        let mut stream = TcpStream::connect(api).await.unwrap();
        stream.write_all(request("POST", &path, &self.credential(), &body).as_bytes()).await.unwrap();
        let mut answer = vec![0; bytes];
        stream.read_exact(&mut answer).await.unwrap();
    }
}

/// Waits until the approval at `path` is executed; approves it if the decision was lost.
async fn wait_until_executed(installation: &Installation, key: &str, path: &str) -> Value {
    let api = installation.api;
    let executed = async {
        loop {
            let approval = call(api, "GET", path, key, &Value::Null).await["approval"].clone();
            match approval["status"].as_str().unwrap() {
                "executed" => return approval,
                "pending" => Session::create(installation).await.begin_approval(api, &approval, 0).await,
                "approved" | "executing" => {}
                other => panic!("{other}: {approval}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, executed).await.expect("the approved request is executed")
}

#[tokio::test]
async fn a_kill_between_approval_and_execution_executes_once() {
    // No mail host answers there: emails stay in the queue.
    let (mut installation, mut server, secret) = Installation::create(free_address()).await;
    let owner = format!("Authorization: Bearer {secret}");
    let body = json!({"name": "assistant", "scope": "full", "policy": {"approve": ["send"]}});
    let key = call(installation.api, "POST", "/api-keys", &owner, &body).await;
    let key = format!("Authorization: Bearer {}", key["secret"].as_str().unwrap());
    for round in 0..ROUNDS {
        let api = installation.api;
        let subject = format!("round {round}");
        let from = format!("ada@{DOMAIN}");
        let email = json!({"from": from, "to": ["grace@dest.example"], "subject": subject, "text": "Hi"});
        let held = call(api, "POST", "/emails", &key, &email).await;
        let path = format!("/approvals/{}", held["approval_id"].as_str().unwrap());
        let approval = call(api, "GET", &path, &key, &Value::Null).await["approval"].clone();
        let session = Session::create(&installation).await;
        session.begin_approval(api, &approval, round % 2).await;
        server.signal(Signal::KILL);
        server.wait_for_exit().await;
        server = installation.start().await;
        // The lease began on the clock of the round before, which was ahead as far as it was advanced.
        let ahead = (LEASE_S * (round + 1)).to_string();
        installation.admin(&["clock", "advance", &ahead]).await;
        let done = wait_until_executed(&installation, &key, &path).await;
        let page = call(api, "GET", "/emails?limit=100", &owner, &Value::Null).await;
        let emails = page["emails"].as_array().unwrap();
        let sent: Vec<&Value> = emails.iter().filter(|one| one["subject"] == subject).map(|one| &one["id"]).collect();
        assert_eq!(sent, [&done["response"]["id"]], "round {round}");
    }
    server.stop().await;
}
