//! Approvals: the server is killed between the decision of a person and the end of the execution. The approved email is
//! sent once.
//!
//! The kill comes right after the decision was sent, after the decision was stored, or after its answer began. At least
//! one must come between the decision and the end of the execution.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::installation::{DOMAIN, Installation, PATIENCE, free_address};

/// Rounds; each kills the server once.
const ROUNDS: usize = 6;
/// Further rounds, if no kill came between the decision and the end of the execution.
const ROUNDS_MAX: usize = 30;
/// Emails of a batch: its execution takes a while.
const BATCH_EMAILS: usize = 30;
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

    /// Sends an approval, and waits for `bytes` of its answer. Returns the connection.
    async fn begin_approval(&self, api: SocketAddr, approval: &Value, bytes: usize) -> TcpStream {
        let path = format!("/approvals/{}/approve", approval["id"].as_str().unwrap());
        let body = json!({"hash": approval["hash"]});
        let mut stream = TcpStream::connect(api).await.unwrap();
        stream.write_all(request("POST", &path, &self.credential(), &body).as_bytes()).await.unwrap();
        let mut answer = vec![0; bytes];
        stream.read_exact(&mut answer).await.unwrap();
        stream
    }
}

/// Reads an approval.
async fn read(api: SocketAddr, key: &str, path: &str) -> Value {
    call(api, "GET", path, key, &Value::Null).await["approval"].clone()
}

/// The ids of all emails with this subject.
async fn ids_with_subject(api: SocketAddr, key: &str, subject: &str) -> BTreeSet<String> {
    let (mut ids, mut path) = (BTreeSet::new(), "/emails?limit=100".to_owned());
    loop {
        let page = call(api, "GET", &path, key, &Value::Null).await;
        let found = page["emails"].as_array().unwrap().iter().filter(|one| one["subject"] == subject);
        ids.extend(found.map(|one| one["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { return ids };
        path = format!("/emails?limit=100&cursor={cursor}");
    }
}

/// Waits until the approval is not pending.
async fn wait_for_decision(api: SocketAddr, key: &str, path: &str) {
    let decided = async { while read(api, key, path).await["status"] == "pending" {} };
    tokio::time::timeout(PATIENCE, decided).await.expect("the decision is stored");
}

/// Waits until the approval at `path` is executed; approves it if the decision was lost.
async fn wait_until_executed(installation: &Installation, key: &str, path: &str) -> Value {
    let api = installation.api;
    let executed = async {
        loop {
            let approval = read(api, key, path).await;
            match approval["status"].as_str().unwrap() {
                "executed" => return approval,
                "pending" => {
                    let _connection = Session::create(installation).await.begin_approval(api, &approval, 0).await;
                    wait_for_decision(api, key, path).await;
                }
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
    let mut between = 0;
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS && between > 0 {
            break;
        }
        let api = installation.api;
        let subject = format!("round {round}");
        let from = format!("ada@{DOMAIN}");
        let email = json!({"from": from, "to": ["grace@dest.example"], "subject": subject, "text": "Hi"});
        let batch = json!({"emails": vec![email; BATCH_EMAILS]});
        let held = call(api, "POST", "/emails/batch", &key, &batch).await;
        let path = format!("/approvals/{}", held["approval_id"].as_str().unwrap());
        let approval = read(api, &key, &path).await;
        let session = Session::create(&installation).await;
        let connection = session.begin_approval(api, &approval, usize::from(round % 3 == 2)).await;
        if round % 3 == 1 || round >= ROUNDS {
            wait_for_decision(api, &key, &path).await;
        }
        server.signal(Signal::KILL);
        server.wait_for_exit().await;
        drop(connection);
        server = installation.start().await;
        let status = read(installation.api, &key, &path).await["status"].clone();
        between += usize::from(status == "approved" || status == "executing");
        // The lease began on the clock of the round before, which was ahead as far as it was advanced.
        let ahead = (LEASE_S * (round + 1)).to_string();
        installation.admin(&["clock", "advance", &ahead]).await;
        let done = wait_until_executed(&installation, &key, &path).await;
        let sent = ids_with_subject(api, &owner, &subject).await;
        let answered = done["response"]["data"].as_array().unwrap().iter();
        let answered: BTreeSet<String> = answered.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!((sent.len(), &sent), (BATCH_EMAILS, &answered), "round {round}");
    }
    assert!(between > 0, "no kill came between a decision and the end of its execution");
    server.stop().await;
}
