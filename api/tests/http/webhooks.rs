//! Webhooks over HTTP: endpoints, signed deliveries, their log, replays, and the event stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use model::credential::ApiKeyScope;
use model::event::{Event, EventKind};
use model::id::EventId;
use model::received::received_event_data;
use model::webhook::sign;
use serde_json::{Value, json};
use store::engine::Batch;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::world::World;

/// A received delivery.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns whether the delivery has a valid signature of this secret in both formats.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let at: i64 = self.header("webhook-timestamp").parse().unwrap();
        let at = Timestamp::from_second(at).unwrap();
        let signed = sign([secret], self.header("webhook-id"), at, self.body.as_bytes());
        let signature = signed.service_signature.split_once(",v1=").unwrap().1.to_owned();
        self.header("service-signature").starts_with(&format!("t={},", signed.timestamp))
            && self.header("service-signature").contains(&signature)
            && self.header("webhook-signature").split(' ').any(|s| s == signed.webhook_signature)
    }
}

/// A receiver that answers with these statuses in turn, and then always with the last one.
pub(crate) struct Receiver {
    address: SocketAddr,
    received: mpsc::UnboundedReceiver<Received>,
}

impl Receiver {
    pub(crate) async fn start(statuses: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, addresses) = mpsc::unbounded_channel();
        let count = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, count) = (sender.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(received) = read_request(&mut stream).await {
                        let n = count.fetch_add(1, Ordering::SeqCst);
                        let status = statuses.get(n).or(statuses.last()).copied().unwrap_or("200 OK");
                        let _ = sender.send(received);
                        if status == "stall" {
                            std::future::pending::<()>().await;
                        }
                        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 4\r\n\r\nwell");
                        if stream.write_all(response.as_bytes()).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, received: addresses }
    }

    pub(crate) async fn next(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks?a=b", self.address)
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut headers = Vec::new();
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received { headers, body: String::from_utf8(body).ok()? })
}

impl World {
    async fn webhook(&self, body: Value) -> (String, String) {
        let made = self.post("/webhooks", body.to_string()).await;
        assert_eq!(made.status, StatusCode::OK, "{made:?}");
        let made = made.json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&made["webhook"]["id"]), text(&made["secret"]))
    }

    async fn send_email(&self) -> String {
        let body = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
        let sent = self.post("/emails", body.to_string()).await;
        assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
        sent.json()["id"].as_str().unwrap().to_owned()
    }

    /// Polls a path until the response satisfies `holds`.
    async fn poll_until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let settled = self.services.outcome_recorded.notified();
            let found = self.get(path).await;
            assert_eq!(found.status, StatusCode::OK, "{found:?}");
            let found = found.json();
            if holds(&found) {
                return found;
            }
            let patience = tokio::time::timeout(Duration::from_secs(30), settled).await;
            assert!(patience.is_ok(), "{path} stays {found}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_endpoints_are_created_at_once() {
    let world = World::start().await;
    let create = async |number: usize| {
        let body = json!({"url": format!("https://example.com/{number}"), "events": ["email.bounced"]});
        world.post("/webhooks", body.to_string()).await.status
    };
    let answers = futures_util::future::join_all((0..30).map(create)).await;
    assert!(answers.iter().all(|status| *status == StatusCode::OK), "{answers:?}");
}

#[tokio::test]
async fn endpoints_are_made_changed_and_deleted() {
    let world = World::start().await;
    let hook = json!({"endpoint": "https://example.com/hooks", "events": ["email.sent", "payout.paid"],
                      "description": "d", "retry_policy": "extended"});
    let made = world.post("/webhooks", hook.to_string()).await.json();
    let (webhook, secret) = (&made["webhook"], made["secret"].as_str().unwrap());
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    assert_eq!(webhook["url"], "https://example.com/hooks");
    assert_eq!(webhook["events"], json!(["email.sent", "payout.paid"]));
    assert_eq!((&webhook["enabled"], &webhook["retry_policy"]), (&json!(true), &json!("extended")));
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let view = world.get(&path).await.json();
    assert_eq!(view["webhook"], *webhook);
    assert!(!view.to_string().contains(secret));
    let changed = json!({"events": [], "enabled": false, "description": null});
    let changed = world.call(Method::PATCH, &path, &changed).await.json();
    assert_eq!(changed["webhook"]["disabled_reason"], "customer");
    assert_eq!((&changed["webhook"]["events"], &changed["webhook"]["description"]), (&json!([]), &Value::Null));
    let again = world.call(Method::PATCH, &path, &json!({"enabled": true})).await.json();
    assert_eq!((&again["webhook"]["enabled"], &again["webhook"]["disabled_reason"]), (&json!(true), &Value::Null));
    for _ in 0..3 {
        world.webhook(json!({"url": "https://example.com/more"})).await;
    }
    let page = world.get("/webhooks?limit=2").await.json();
    assert_eq!((page["webhooks"].as_array().unwrap().len(), &page["has_more"]), (2, &json!(true)));
    let rest = world.get(&format!("/webhooks?cursor={}", page["next_cursor"].as_str().unwrap())).await.json();
    assert_eq!((rest["webhooks"].as_array().unwrap().len(), &rest["next_cursor"]), (2, &Value::Null));
    // Another account gets 404.
    let other = world.account(2, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, &path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.call_as(&other, Method::DELETE, &path, &json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.call(Method::DELETE, &path, &json!({})).await.json(), json!({"ok": true}));
    assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn invalid_endpoints_are_refused() {
    let world = World::start().await;
    for (body, field) in [
        (json!({}), "url"),
        (json!({"url": "hooks"}), "url"),
        (json!({"url": "ftp://example.com/"}), "url"),
        (json!({"url": "https://user:secret@example.com/"}), "url"),
        (json!({"url": "https://example.com/", "events": ["email.eaten"]}), "events"),
        (json!({"url": "https://example.com/", "events": "email.sent"}), "events"),
        (json!({"url": "https://example.com/", "retry_policy": "never"}), "retry_policy"),
        (json!({"url": "https://example.com/", "inbound_addresses": "a@example.com"}), "inbound_addresses"),
        (json!({"url": "https://example.com/", "inbound_addresses": ["su*@example.com"]}), "inbound_addresses"),
        (json!({"url": "https://example.com/", "inbound_addresses": ["*@example.net"]}), "inbound_addresses"),
    ] {
        let refused = world.post("/webhooks", body.to_string()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}: {refused:?}");
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{body}: {refused:?}");
    }
    let unknown = json!({"url": "https://example.com/", "domain_ids": ["dom_00000000000000000000000000"]});
    assert_eq!(world.post("/webhooks", unknown.to_string()).await.code(), "not_found");
    let unknown = json!({"url": "https://example.com/", "events": ["email.eaten", "email.sent"]});
    let refused = world.post("/webhooks", unknown.to_string()).await.json();
    assert!(refused.to_string().contains("`email.eaten`"), "{refused}");
    for _ in 0..model::webhook::ENDPOINTS_MAX {
        world.webhook(json!({"url": "https://example.com/"})).await;
    }
    let one_more = world.post("/webhooks", json!({"url": "https://example.com/"}).to_string()).await;
    assert_eq!(one_more.status, StatusCode::CONFLICT);
    // A session needs its CSRF token for everything but reading.
    let session = world.session(1).await;
    let listed = world.call_with_session(&session, Method::GET, "/api/webhooks", &Value::Null).await;
    assert_eq!(listed.status, StatusCode::OK);
    let hook = json!({"url": "https://example.com/"});
    let forged = world.call_with_session(&session.forged(), Method::POST, "/api/webhooks", &hook).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    world.end().await;
}

#[tokio::test]
async fn an_event_is_posted_signed_logged_and_replayed() {
    let world = World::with_worker().await;
    let mut receiver = Receiver::start(&["200 OK"]).await;
    let (id, secret) = world.webhook(json!({"url": receiver.url(), "events": ["email.sent"]})).await;
    let email = world.send_email().await;
    let received = receiver.next().await;
    assert!(received.is_signed_with(&secret), "{received:?}");
    assert!(received.header("user-agent").starts_with("postrider/"));
    assert_eq!(received.header("content-type"), "application/json");
    let body = received.json();
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["type", "created_at", "data"]);
    assert_eq!((&body["type"], &body["data"]["email_id"]), (&json!("email.sent"), &json!(email)));
    assert_eq!((&body["data"]["status"], &body["data"]["recipients_count"]), (&json!("sent"), &json!(1)));
    assert_eq!(body["data"]["event_id"], received.header("webhook-id"));

    let path = format!("/webhooks/{id}/deliveries");
    let listed = world.poll_until(&path, |page| page["deliveries"][0]["status"] == "delivered").await;
    let delivery = listed["deliveries"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get(&format!("{path}?status=failed")).await.json()["deliveries"], json!([]));
    assert_eq!(world.get(&format!("{path}?type=email.sent")).await.json()["deliveries"][0]["id"], *delivery);
    let delivery_path = format!("{path}/{delivery}");
    let detail = world.get(&delivery_path).await.json()["delivery"].clone();
    assert_eq!(detail["payload"], body);
    assert_eq!((&detail["attempts"][0]["n"], &detail["attempts"][0]["response_status"]), (&json!(1), &json!(200)));
    assert_eq!((&detail["attempts"][0]["response_body"], &detail["attempts_count"]), (&json!("well"), &json!(1)));

    let replayed = world.post(&format!("{delivery_path}/replay"), "").await;
    assert_eq!(replayed.status, StatusCode::ACCEPTED, "{replayed:?}");
    assert_eq!(replayed.json()["delivery"]["id"], *delivery);
    let again = receiver.next().await;
    assert_eq!((again.header("webhook-id"), &again.body), (received.header("webhook-id"), &received.body));
    world.poll_until(&delivery_path, |detail| detail["delivery"]["attempts_count"] == 2).await;
    // Another account gets 404.
    let other = world.account(2, ApiKeyScope::Full).await;
    for path in [&path, &delivery_path] {
        assert_eq!(world.get_as(&other, path).await.status, StatusCode::NOT_FOUND);
    }
    world.end().await;
}

#[tokio::test]
async fn failed_delivery_follows_the_retry_schedule() {
    let world = World::with_worker().await;
    let mut receiver = Receiver::start(&["500 No"]).await;
    let (id, _) = world.webhook(json!({"url": receiver.url()})).await;
    world.send_email().await;
    let path = format!("/webhooks/{id}/deliveries");
    let first = receiver.next().await;
    for (n, wait) in [(1, 5), (2, 30), (3, 120), (4, 120)] {
        let found = world.poll_until(&path, |page| page["deliveries"][0]["attempts_count"] == n).await;
        let delivery = &found["deliveries"][0];
        assert_eq!((&delivery["status"], &delivery["response_status"]), (&json!("pending"), &json!(500)));
        assert!(delivery["next_attempt_at"].is_string());
        world.services.clock.advance(Duration::from_secs(wait));
        assert_eq!(receiver.next().await.body, first.body);
    }
    let failed = world.poll_until(&path, |page| page["deliveries"][0]["status"] == "failed").await;
    assert_eq!(failed["deliveries"][0]["attempts_count"], 5);
    assert_eq!(failed["deliveries"][0]["next_attempt_at"], Value::Null);
    let webhook = world.get(&format!("/webhooks/{id}")).await.json();
    assert!(webhook["webhook"]["failing_since"].is_string(), "{webhook}");
    assert_eq!(webhook["webhook"]["enabled"], true);
    let replay = json!({"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"});
    let replayed = world.post(&format!("/webhooks/{id}/replay"), replay.to_string()).await;
    assert_eq!((replayed.status, replayed.json()["queued"].clone()), (StatusCode::ACCEPTED, json!(1)));
    receiver.next().await;
    let replayed = world.poll_until(&path, |page| page["deliveries"][0]["status"] == "failed").await;
    assert_eq!(replayed["deliveries"][0]["attempts_count"], 6);
    world.end().await;
}

#[tokio::test]
async fn retry_after_is_capped_by_the_schedule() {
    let world = World::with_worker().await;
    let statuses = &["429 Slow\r\nretry-after: 60", "503 Slow\r\nretry-after: 86400", "500 No\r\nretry-after: 86400"];
    let mut receiver = Receiver::start(statuses).await;
    let (id, _) = world.webhook(json!({"url": receiver.url()})).await;
    world.send_email().await;
    let path = format!("/webhooks/{id}/deliveries");
    // `Retry-After` is capped by the rest of the schedule, 30 + 120 + 120 s; a plain failure waits for its own step.
    for (n, delay_min, delay_max) in [(1, 60, 62), (2, 270, 272), (3, 120, 122)] {
        receiver.next().await;
        let found = world.poll_until(&path, |page| page["deliveries"][0]["attempts_count"] == n).await;
        let next: Timestamp = found["deliveries"][0]["next_attempt_at"].as_str().unwrap().parse().unwrap();
        let delivery_path = format!("{path}/{}", found["deliveries"][0]["id"].as_str().unwrap());
        let detail = world.get(&delivery_path).await.json();
        let at = detail["delivery"]["attempts"][n - 1]["at"].as_str().unwrap().parse::<Timestamp>().unwrap();
        let waited = next.duration_since(at).as_secs();
        assert!(waited >= delay_min && waited < delay_max + 30, "{n}: {waited}");
        world.services.clock.advance(Duration::from_secs(u64::try_from(waited).unwrap() + 1));
    }
    world.end().await;
}

#[tokio::test]
async fn endpoint_is_disabled_after_five_days_or_410() {
    let world = World::with_worker().await;
    let mut gone_receiver = Receiver::start(&["410 Gone"]).await;
    let mut failing = Receiver::start(&["500 No"]).await;
    let mut other_receiver = Receiver::start(&["200 OK"]).await;
    let (gone_id, _) = world.webhook(json!({"url": gone_receiver.url()})).await;
    let (failing_id, _) = world.webhook(json!({"url": failing.url()})).await;
    let hook = json!({"url": other_receiver.url(), "events": ["webhook.disabled"]});
    world.webhook(hook).await;
    world.send_email().await;
    gone_receiver.next().await;
    let disabled = other_receiver.next().await.json();
    assert_eq!(disabled["data"]["webhook_id"], *gone_id);
    assert_eq!(disabled["data"]["disabled_reason"], "gone");
    let view = world.get(&format!("/webhooks/{gone_id}")).await.json();
    assert_eq!((&view["webhook"]["enabled"], &view["webhook"]["disabled_reason"]), (&json!(false), &json!("gone")));

    let path = format!("/webhooks/{failing_id}/deliveries");
    for days in [0, 6 * 24 * 3600] {
        world.services.clock.advance(Duration::from_secs(days));
        if days > 0 {
            world.send_email().await;
        }
        for n in 1..=5 {
            failing.next().await;
            world.poll_until(&path, |page| page["deliveries"][0]["attempts_count"] == n).await;
            world.services.clock.advance(Duration::from_secs(120));
        }
    }
    let disabled = other_receiver.next().await.json();
    assert_eq!(
        (&disabled["data"]["webhook_id"], &disabled["data"]["disabled_reason"]),
        (&json!(failing_id), &json!("failing"))
    );
    let path = format!("/webhooks/{failing_id}/replay");
    let replay = world.post(&path, r#"{"since": "2020-01-01T00:00:00Z"}"#).await;
    let test = world.post(&format!("/webhooks/{failing_id}/test"), r#"{"event": "email.sent"}"#).await;
    for refused in [replay, test] {
        assert_eq!((refused.status, refused.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
        assert_eq!(refused.json()["error"]["details"]["status"], "disabled");
    }
    world.end().await;
}

/// The owner's alert is in the commit that disables the endpoint, so that any process can send it, once.
#[tokio::test]
async fn owner_alert_survives_a_crash() {
    let sandbox = "sandbox@example.com".parse().unwrap();
    let world = World::with_worker_settings(|parts| parts.sandbox_sender = Some(sandbox)).await;
    let mut gone_receiver = Receiver::start(&["410 Gone"]).await;
    let (id, _) = world.webhook(json!({"url": gone_receiver.url()})).await;
    world.send_email().await;
    gone_receiver.next().await;
    world.poll_until(&format!("/webhooks/{id}"), |view| view["webhook"]["enabled"] == false).await;
    let owner_emails = "/emails?to=owner1@example.com";
    let store = &world.services.store;
    let waiting = async || {
        let (mut count, now) = (0, world.services.clock.now());
        for partition in 0..store::task::PARTITIONS {
            count += store::owner_alert::list_due(store, partition, now, 9).await.unwrap().found.len();
        }
        count
    };
    // It is not sent: the process that settled the delivery was killed.
    assert_eq!(world.get(owner_emails).await.json()["emails"], json!([]));
    assert_eq!(waiting().await, 1);
    accounts::background_tasks::start_accounts(&world.queue, &world.accounts, None);
    let sent = async {
        loop {
            let page = world.get(owner_emails).await.json();
            if page["emails"] != json!([]) {
                return page;
            }
        }
    };
    let sent = tokio::time::timeout(Duration::from_secs(30), sent).await.expect("the email");
    assert_eq!(sent["emails"].as_array().unwrap().len(), 1);
    assert_eq!(sent["emails"][0]["subject"], "A webhook endpoint was disabled");
    assert_eq!(waiting().await, 0);
    world.end().await;
}

#[tokio::test]
async fn dead_endpoint_does_not_delay_others() {
    let world = World::with_worker().await;
    let mut dead = Receiver::start(&["stall"]).await;
    let mut quick = Receiver::start(&["200 OK"]).await;
    world.webhook(json!({"url": dead.url()})).await;
    world.webhook(json!({"url": quick.url()})).await;
    for _ in 0..20 {
        let email = world.send_email().await;
        assert_eq!(quick.next().await.json()["data"]["email_id"], email);
    }
    dead.next().await;
    world.end().await;
}

#[tokio::test]
async fn both_secrets_sign_during_the_grace_period() {
    let world = World::with_worker().await;
    let mut receiver = Receiver::start(&["200 OK"]).await;
    let (id, old) = world.webhook(json!({"url": receiver.url()})).await;
    let rotated = world.post(&format!("/webhooks/{id}/rotate-secret"), r#"{"grace_hours": 2}"#).await.json();
    let new = rotated["secret"].as_str().unwrap();
    assert_ne!(old, new);
    world.send_email().await;
    let received = receiver.next().await;
    assert!(received.is_signed_with(&old) && received.is_signed_with(new), "{received:?}");
    world.services.clock.advance(Duration::from_secs(3 * 3600));
    world.send_email().await;
    let received = receiver.next().await;
    assert!(!received.is_signed_with(&old) && received.is_signed_with(new), "{received:?}");
    // Receivers compare the timestamp with their own clock, so it must be the machine's, within five minutes.
    let signed_at: i64 = received.header("webhook-timestamp").parse().unwrap();
    assert!(signed_at.abs_diff(world.services.clock.machine_now().as_second()) < 300, "{received:?}");
    let refused = world.post(&format!("/webhooks/{id}/rotate-secret"), r#"{"grace_hours": 999}"#).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test]
async fn test_events_are_sent_on_request() {
    let world = World::with_worker().await;
    let mut receiver = Receiver::start(&["200 OK"]).await;
    let (id, secret) = world.webhook(json!({"url": receiver.url(), "events": ["email.bounced"]})).await;
    let tested = world.post("/emails/test", r#"{"event": "email.bounced"}"#).await.json();
    assert_eq!((&tested["queued"], &tested["deliveries"][0]["webhook_id"]), (&json!(true), &json!(id)));
    assert_eq!(tested["deliveries"][0]["status"], "pending");
    let received = receiver.next().await;
    assert!(received.is_signed_with(&secret));
    assert_eq!(received.json(), tested["payload"]);
    let other = world.post("/emails/test", r#"{"event": "email.sent"}"#).await.json();
    assert_eq!((&other["queued"], &other["deliveries"]), (&json!(false), &json!([])));
    let dry = world.post("/emails/test", r#"{"event": "email.bounced", "deliver": false}"#).await.json();
    assert_eq!(dry["queued"], false);
    let event = json!({"event": "automation.started"});
    let tested = world.post(&format!("/webhooks/{id}/test"), event.to_string()).await;
    assert_eq!(tested.status, StatusCode::ACCEPTED, "{tested:?}");
    let received = receiver.next().await.json();
    assert_eq!((&received["type"], &received["data"]["test"]), (&json!("automation.started"), &json!(true)));
    let unknown = world.post(&format!("/webhooks/{id}/test"), r#"{"event": "email.eaten"}"#).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test]
async fn endpoint_filters_by_domain() {
    let world = World::with_worker().await;
    let mut receiver = Receiver::start(&["200 OK"]).await;
    let domain = world.domain(world.tenant().await.account().id).await.id;
    let hook = json!({"url": receiver.url(), "domain_ids": [domain]});
    world.webhook(hook).await;
    world.post("/suppressions", r#"{"email": "x@example.net"}"#).await;
    let email = world.send_email().await;
    assert_eq!(receiver.next().await.json()["data"]["email_id"], email);
    world.end().await;
}

/// Receives an email for an address.
async fn receive_email(world: &World, address: &str) {
    let received = crate::received::arrive(world, 1, |entry| entry.rcpt_to = address.parse().unwrap()).await;
    let event = Event {
        id: EventId::new(received.received_at, world.services.entropy.u128()),
        account: received.account,
        subject: received.id.into(),
        kind: EventKind::Received,
        recipient: Some(received.rcpt_to.clone()),
        created_at: received.received_at,
        detail: received_event_data(&received).into(),
    };
    let mut batch = Batch::intake();
    store::event::record(&mut batch, &event, 0);
    world.services.store.commit(batch).await.unwrap();
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
}

#[tokio::test]
async fn endpoint_filters_by_inbound_address() {
    let world = World::with_worker().await;
    let (mut support, mut rest) = (Receiver::start(&["200 OK"]).await, Receiver::start(&["200 OK"]).await);
    let addresses = json!(["Support@example.com", "support+*@example.com", "support@example.com"]);
    let events = ["email.received", "email.sent"];
    let hook = json!({"url": support.url(), "events": events, "inbound_addresses": addresses});
    let (id, _) = world.webhook(hook).await;
    let patterns = json!(["support@example.com", "support+*@example.com"]);
    let path = format!("/webhooks/{id}");
    assert_eq!(world.get(&path).await.json()["webhook"]["inbound_addresses"], patterns, "each once");
    assert_eq!(world.get("/webhooks").await.json()["webhooks"][0]["inbound_addresses"], patterns);
    let hook = json!({"url": rest.url(), "events": ["email.received"], "inbound_addresses": ["*@example.com"]});
    world.webhook(hook).await;
    for address in ["sales@example.com", "SUPPORT@example.com", "support+7@example.com", "supporter@example.com"] {
        receive_email(&world, address).await;
    }
    let got = |other_receiver: Received| other_receiver.json()["data"]["rcpt_to"].as_str().unwrap().to_owned();
    let mut received = vec![got(support.next().await), got(support.next().await)];
    received.sort_unstable();
    assert_eq!(received, ["SUPPORT@example.com", "support+7@example.com"]);
    for _ in 0..4 {
        rest.next().await;
    }
    // Other events are not affected.
    let email = world.send_email().await;
    assert_eq!(support.next().await.json()["data"]["email_id"], email);
    // Without the filter all received email is sent again.
    let all = world.call(Method::PATCH, &path, &json!({"inbound_addresses": null})).await.json();
    assert_eq!(all["webhook"]["inbound_addresses"], json!([]));
    receive_email(&world, "sales@example.com").await;
    assert_eq!(got(support.next().await), "sales@example.com");
    world.end().await;
}

#[tokio::test]
async fn the_stream_is_polled_without_gaps() {
    let world = World::start().await;
    let mut emails = Vec::new();
    let mut cursor = None;
    let mut collected = Vec::new();
    for _ in 0..3 {
        for _ in 0..4 {
            emails.push(world.send_email().await);
        }
        loop {
            let at = cursor.as_ref().map_or(String::new(), |cursor: &String| format!("&cursor={cursor}"));
            let page = world.get(&format!("/webhook-events?order=asc&limit=3{at}")).await.json();
            let events = page["events"].as_array().unwrap();
            collected.extend(events.iter().map(|entry| entry["data"]["email_id"].as_str().unwrap().to_owned()));
            cursor = Some(page["next_cursor"].as_str().unwrap().to_owned());
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(collected, emails);
    }
    let down = world.get("/webhook-events?limit=100").await.json();
    let ids = |page: &Value| -> Vec<String> {
        let events = page["events"].as_array().unwrap().iter();
        events.map(|entry| entry["data"]["email_id"].as_str().unwrap().to_owned()).collect()
    };
    let newest_first: Vec<String> = emails.iter().rev().cloned().collect();
    assert_eq!((ids(&down), &down["next_cursor"]), (newest_first, &Value::Null));
    world.post("/suppressions", r#"{"email": "x@example.net"}"#).await;
    let some = world.get("/webhook-events?types=suppression.created,domain.verified").await.json();
    assert_eq!(some["events"][0]["data"]["email"], "x@example.net");
    assert_eq!(some["events"].as_array().unwrap().len(), 1);
    for bad in ["order=up", "types=email.eaten", "cursor=x", "limit=0"] {
        let refused = world.get(&format!("/webhook-events?{bad}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    let other = world.account(2, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, "/webhook-events").await.json()["events"], json!([]));
    world.end().await;
}

/// Reads lines until one has this prefix.
async fn read_line(stream: &mut BufReader<TcpStream>, begins: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).await.unwrap() > 0, "the stream ended before {begins}");
        if let Some(rest) = line.trim_end().strip_prefix(begins) {
            return rest.to_owned();
        }
    }
}

async fn open_stream(world: &World, headers: &str) -> BufReader<TcpStream> {
    open_stream_at(world, "/webhook-events", &format!("authorization: Bearer {}\r\n{headers}", world.key)).await
}

async fn open_stream_at(world: &World, path: &str, fields: &str) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(TcpStream::connect(world.address).await.unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\naccept: text/event-stream\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_line(&mut stream, ": connected").await;
    stream
}

/// The dispatcher is woken by each change of suppressions: nothing else happens in this account.
#[tokio::test]
async fn new_suppressions_reach_the_stream() {
    let world = World::with_worker().await;
    let mut stream = open_stream(&world, "").await;
    world.post("/suppressions", r#"{"email": "one@example.net"}"#).await;
    assert_eq!(read_line(&mut stream, "event: ").await, "suppression.created");
    world.post("/suppressions/import", r#"{"csv": "email\ntwo@example.net\n"}"#).await;
    assert_eq!(read_line(&mut stream, "event: ").await, "suppression.created");
    world.end().await;
}

#[tokio::test]
async fn the_stream_is_followed_and_resumed() {
    let world = World::with_worker().await;
    let mut stream = open_stream(&world, "").await;
    let mut last = String::new();
    for _ in 0..3 {
        let email = world.send_email().await;
        last = read_line(&mut stream, "id: ").await;
        assert_eq!(read_line(&mut stream, "event: ").await, "email.sent");
        let event: Value = serde_json::from_str(&read_line(&mut stream, "data: ").await).unwrap();
        assert_eq!(event["data"]["email_id"], email);
    }
    drop(stream);
    let missed = [world.send_email().await, world.send_email().await];
    let mut stream = open_stream(&world, &format!("last-event-id: {last}\r\n")).await;
    for email in missed {
        let event: Value = serde_json::from_str(&read_line(&mut stream, "data: ").await).unwrap();
        assert_eq!(event["data"]["email_id"], email);
    }
    // The stream ends at shutdown.
    world.end().await;
    let mut rest = String::new();
    let _ = stream.read_to_string(&mut rest).await;
}

/// Reads to the end of a stream that the server ends.
async fn read_to_end(mut stream: BufReader<TcpStream>) -> String {
    let mut rest = String::new();
    loop {
        let read = stream.read_line(&mut rest).await.unwrap();
        if read == 0 || rest.ends_with("0\r\n") {
            return rest;
        }
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_key_or_session_that_opened_it() {
    let world = World::with_worker().await;
    let create = async |name: &str| {
        let body = json!({"name": name, "scope": "full"});
        let made = world.call(Method::POST, "/api-keys", &body).await.json();
        let path = format!("/api-keys/{}", made["api_key"]["id"].as_str().unwrap());
        (path, format!("authorization: Bearer {}\r\n", made["secret"].as_str().unwrap()))
    };
    let (deleted, fields) = create("deleted").await;
    let of_deleted = open_stream_at(&world, "/webhook-events", &fields).await;
    let (disabled, fields) = create("disabled").await;
    let of_disabled = open_stream_at(&world, "/webhook-events", &fields).await;
    let (_, fields) = create("kept").await;
    let mut of_kept = open_stream_at(&world, "/webhook-events", &fields).await;
    assert_eq!(world.call(Method::DELETE, &deleted, &Value::Null).await.status, StatusCode::OK);
    let change = json!({"enabled": false});
    assert_eq!(world.call(Method::PATCH, &disabled, &change).await.status, StatusCode::OK);
    for stream in [of_deleted, of_disabled] {
        let rest = read_to_end(stream).await;
        assert!(rest.contains(": ended: the API key or session is no longer valid"), "{rest}");
    }
    world.send_email().await;
    assert_eq!(read_line(&mut of_kept, "event: ").await, "email.sent");

    let session = world.session(1).await;
    let fields = format!("cookie: {}\r\n", session.cookie);
    let of_session = open_stream_at(&world, "/api/webhook-events", &fields).await;
    world.call_with_session(&session, Method::POST, "/auth/sign-out", &Value::Null).await;
    assert!(read_to_end(of_session).await.contains(": ended:"));
    world.end().await;
}

#[tokio::test]
async fn a_stream_ends_with_a_key_that_another_node_deleted() {
    let world = World::with_worker().await;
    let mut stream = open_stream(&world, "").await;
    let hash = model::credential::SecretHash::from_api_key(&world.key).unwrap();
    let found = store::credential::find_by_hash::<model::credential::ApiKey>(&world.services.store, &hash).await;
    let mut batch = store::engine::Batch::progress();
    store::credential::delete(&mut batch, &found.unwrap().unwrap());
    world.services.store.commit(batch).await.unwrap();
    read_line(&mut stream, ": ended: ").await;
    world.end().await;
}
