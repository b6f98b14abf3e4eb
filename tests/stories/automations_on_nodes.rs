//! Automations and webhooks on two nodes: an event received by either node resumes a run of the other, a node takes
//! over the work of one that left, and every effect happens once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use postrider::config::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::database::Server;
use crate::world::{DOMAIN, PATIENCE, TestWorld};

/// Two nodes of one cluster whose webhooks may use http and private addresses.
async fn nodes(server: &Server) -> [TestWorld; 2] {
    let change = |config: &mut Config| {
        config.webhooks.allow_http = true;
        config.webhooks.allow_private_destinations = true;
    };
    let url = server.database();
    let first = TestWorld::node(&url, None, change).await;
    let second = TestWorld::node(&url, Some(&first), change).await;
    [first, second]
}

async fn call_api(node: &TestWorld, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, response) = node.call(method, path, &body).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {response}");
    response
}

/// Creates and activates an automation. Returns its path.
async fn automation(node: &TestWorld, trigger: &str, steps: Value) -> String {
    let definition = json!({"name": "A", "trigger": {"event": trigger}, "steps": steps});
    let created = call_api(node, "POST", "/automations", definition).await;
    let path = format!("/automations/{}", created["automation"]["id"].as_str().unwrap());
    call_api(node, "POST", &path, json!({"action": "activate"})).await;
    path
}

async fn send_event(node: &TestWorld, name: &str, user: usize) -> Value {
    let event = json!({"name": name, "user_id": user.to_string(), "email": format!("u{user}@dest.example")});
    call_api(node, "POST", "/events", event).await
}

/// Polls until the response satisfies the condition.
async fn wait_until(node: &TestWorld, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let response = call_api(node, "GET", path, Value::Null).await;
            if condition(&response) {
                return response;
            }
        }
    };
    let response = tokio::time::timeout(PATIENCE, asking).await;
    response.unwrap_or_else(|_| panic!("{path}: timed out"))
}

/// Waits until `count` runs of an automation are in a state.
async fn runs(node: &TestWorld, path: &str, state: &str, count: usize) {
    wait_until(node, path, |response| {
        let counts = &response["automation"]["counts"];
        assert_eq!((&counts["failed"], &counts["cancelled"]), (&json!(0), &json!(0)), "{counts}");
        counts[state] == json!(count)
    })
    .await;
}

/// Starts a webhook receiver; the channel yields the type and the id of each event that it receives.
async fn receiver() -> (SocketAddr, mpsc::UnboundedReceiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (event_sender, event_receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(BufReader::new(stream), event_sender.clone()));
        }
    });
    (address, event_receiver)
}

async fn receive(mut stream: BufReader<TcpStream>, event_sender: mpsc::UnboundedSender<(String, String)>) {
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.is_ok_and(|read| read > 0) {
                continue;
            }
            return;
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        let event: Value = serde_json::from_slice(&body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let _ = event_sender.send((text(&event["type"]), text(&event["data"]["event_id"])));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    }
}

/// Counts `count` received events by type; no event may arrive twice.
async fn count_events(
    event_receiver: &mut mpsc::UnboundedReceiver<(String, String)>,
    count: usize,
) -> BTreeMap<String, usize> {
    let (mut ids, mut types) = (std::collections::BTreeSet::new(), BTreeMap::new());
    for _ in 0..count {
        let next = tokio::time::timeout(PATIENCE, event_receiver.recv()).await;
        let (kind, id) = next.unwrap_or_else(|_| panic!("received {types:?} of {count} events")).unwrap();
        assert!(ids.insert(id), "{kind} was delivered twice");
        *types.entry(kind).or_default() += 1;
    }
    types
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_started_on_one_node_is_resumed_by_an_event_on_the_other() {
    const USERS: usize = 10;
    let server = Server::start(&[]);
    let nodes = nodes(&server).await;
    let (address, mut event_receiver) = receiver().await;
    call_api(&nodes[0], "POST", "/webhooks", json!({"url": format!("http://{address}/")})).await;
    let letter =
        json!({"type": "send_email", "from": format!("a@{DOMAIN}"), "subject": "u {{event.user_id}}", "text": "t"});
    let wait = json!({"type": "wait_for_event", "event": "ended", "match": "auto", "timeout": "1d"});
    let path = automation(&nodes[0], "begun", json!([wait, letter])).await;
    for user in 0..USERS {
        let started = send_event(&nodes[user % 2], "begun", user).await;
        assert_eq!(started["matched_automations"], 1, "{started}");
    }
    // Both nodes show the runs as waiting.
    for node in &nodes {
        runs(node, &path, "waiting", USERS).await;
    }
    for user in 0..USERS {
        let ended = send_event(&nodes[(user + 1) % 2], "ended", user).await;
        assert_eq!(ended["resumed_runs"], 1, "{ended}");
    }
    runs(&nodes[1], &path, "completed", USERS).await;
    assert_eq!(nodes[0].sink.wait_for(USERS).await.len(), USERS);
    let types = count_events(&mut event_receiver, 6 * USERS).await;
    let expected = [
        ("automation.completed", USERS),
        ("automation.started", USERS),
        ("automation.step_completed", 2 * USERS),
        ("email.delivered", USERS),
        ("email.sent", USERS),
    ];
    assert_eq!(types, expected.map(|(name, count)| (name.to_owned(), count)).into());
    let [first, second] = nodes;
    second.end().await;
    first.end().await;
    assert!(event_receiver.try_recv().is_err(), "each is delivered once");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_stopped_node_continue_on_the_other() {
    const USERS: usize = 10;
    let server = Server::start(&[]);
    let [first, second] = nodes(&server).await;
    let delay = json!({"type": "delay", "duration": "1h"});
    let gate = json!({"type": "condition", "all": [{"field": "event.user_id", "op": "exists"}]});
    let path = automation(&first, "begun", json!([delay, gate, delay])).await;
    for user in 0..USERS {
        send_event(&second, "begun", user).await;
    }
    runs(&first, &path, "waiting", USERS).await;
    second.end().await;
    first.server.clock.advance(Duration::from_secs(3_601));
    // Each run has started its second delay before the clock moves on.
    let listed = format!("{path}/runs?limit=100");
    wait_until(&first, &listed, |response| {
        let mut listed = response["runs"].as_array().unwrap().iter();
        listed.all(|run| run["current_step_index"] == 2 && run["status"] == "waiting")
    })
    .await;
    first.server.clock.advance(Duration::from_secs(3_601));
    runs(&first, &path, "completed", USERS).await;
    let count_type = |response: &Value, kind: &str| {
        response["events"].as_array().unwrap().iter().filter(|event| event["type"] == kind).count()
    };
    let events = wait_until(&first, "/webhook-events?order=asc&limit=100", |events| {
        count_type(events, "automation.completed") == USERS
    });
    assert_eq!(count_type(&events.await, "automation.step_completed"), 3 * USERS, "each step once");
    first.end().await;
}
