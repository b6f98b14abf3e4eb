//! Received emails over HTTP: list, poll, get, reply, forward, delete.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use message::received::{AuthResult, AuthenticationResults, ParsedReceivedEmail};
use model::credential::ApiKeyScope;
use model::id::ReceivedId;
use model::received::{ReceivedEmail, SpamScore, SpamStatus, received_event_data};
use serde_json::{Value, json};
use store::engine::{Batch, Body};

use crate::world::{TestResponse, World};

const MESSAGE: &str = "From: Ada <ada@far.example>\r\nTo: help@example.com\r\nCc: c@far.example\r\nSubject: Hi\r\n\
    Message-ID: <2@far.example>\r\nReferences: <0@example.com> <1@far.example>\r\n\
    Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nYes.\r\n\r\n> Do you?\r\n--x\r\n\
    Content-Type: text/html\r\nContent-Disposition: attachment; filename=\"a\u{e4} b.html\"\r\n\r\n<script>1</script>\r\n--x--\r\n";

/// Stores a received email for an account, as the MX listener does.
pub(crate) async fn arrive(world: &World, account: u8, change: impl FnOnce(&mut ReceivedEmail)) -> ReceivedEmail {
    let store = &world.services.store;
    let now = world.services.clock.now();
    let since = jiff::Timestamp::from_second(1_700_000_000).unwrap();
    let account = model::id::AccountId::new(since, account.into());
    let id = ReceivedId::new(now, world.services.entropy.u128());
    let mut heads = store::received_email::get_sequences(store, &[account]).await.unwrap();
    let mut received = ReceivedEmail {
        id,
        account,
        domain: model::id::DomainId::new(since, 1),
        sequence: heads[0].next_sequence(),
        rcpt_to: "help@example.com".parse().unwrap(),
        envelope_from: Some("bounce@far.example".parse().unwrap()),
        heading: ParsedReceivedEmail::parse_header(MESSAGE.as_bytes()),
        auth: AuthenticationResults { spf: AuthResult::Pass, ..AuthenticationResults::default() },
        spam_status: SpamStatus::NotSpam,
        spam_score: Some(SpamScore(-5)),
        trace: "Delivered-To: help@example.com\r\n".to_owned(),
        body: id,
        size_bytes: MESSAGE.len() as u64,
        received_at: now,
    };
    change(&mut received);
    let mut batch = Batch::intake();
    heads[0].put(&mut batch);
    store::received_email::create(&mut batch, &received);
    store::received_email::put_body(&mut batch, account, id, Body::from(Bytes::from_static(MESSAGE.as_bytes())));
    store.commit(batch).await.unwrap();
    received
}

fn ids(page: &TestResponse) -> Vec<String> {
    let page = page.json();
    let emails = page["received_emails"].as_array().unwrap_or_else(|| panic!("{page}"));
    emails.iter().map(|entry| entry["email_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn received_email_is_shown_in_full() {
    let world = World::start().await;
    let received = arrive(&world, 1, |_| {}).await;
    let id = received.id;
    let list = world.get("/received-emails").await.json();
    assert_eq!(list["received_emails"][0], Value::Object(received_event_data(&received)), "as in the webhook");
    let one = world.get(&format!("/received-emails/{id}")).await.json();
    let email = &one["received_email"];
    let names: Vec<&String> = email.as_object().unwrap().keys().collect();
    assert_eq!(names[..6], ["email_id", "to", "from", "subject", "status", "rcpt_to"]);
    assert_eq!((&email["from"], &email["status"]), (&json!("Ada <ada@far.example>"), &json!("received")));
    assert_eq!((&email["text"], &email["stripped_text"]), (&json!("Yes.\n\n> Do you?"), &json!("Yes.")));
    assert_eq!(email["auth"], json!({"spf": "pass", "dkim": "none", "dmarc": "none", "arc": "none"}));
    assert_eq!((&email["spam_score"], &email["attachment_count"]), (&json!(-0.5), &json!(1)));
    assert_eq!(email["headers"][0], json!({"name": "Delivered-To", "value": "help@example.com"}));
    let file = &email["attachments"][0];
    assert_eq!((&file["id"], &file["filename"]), (&json!("att_0"), &json!("aä b.html")));
    assert_eq!(file["data"], json!("PHNjcmlwdD4xPC9zY3JpcHQ+"));
    let without = world.get(&format!("/received-emails/{id}?attachments=none")).await.json();
    assert_eq!(without["received_email"]["attachments"][0]["data"], Value::Null);
    let raw = world.get(&format!("/received-emails/{id}/raw")).await;
    assert_eq!(raw.headers["content-type"], "message/rfc822");
    assert_eq!(raw.body, format!("Delivered-To: help@example.com\r\n{MESSAGE}"));
    // A browser must not render the attachment.
    let file = world.get(&format!("/received-emails/{id}/attachments/att_0")).await;
    assert_eq!(
        (&file.body[..], &file.headers["content-type"]),
        (&b"<script>1</script>"[..], &"application/octet-stream".parse().unwrap())
    );
    assert_eq!(file.headers["content-disposition"], "attachment; filename*=UTF-8''a%C3%A4%20b.html");
    for path in ["/attachments/att_1", "/attachments/x", "/attachments/att_00"] {
        assert_eq!(world.get(&format!("/received-emails/{id}{path}")).await.status, StatusCode::NOT_FOUND);
    }
    let bad = world.get(&format!("/received-emails/{id}?attachments=x")).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test]
async fn lists_are_filtered_and_polled() {
    let world = World::start().await;
    let empty = world.get("/received-emails?order=asc").await.json();
    let start = empty["next_cursor"].as_str().unwrap().to_owned();
    let mut all = Vec::new();
    for n in 0..5 {
        world.services.clock.advance(Duration::from_secs(3_600));
        let change = |email: &mut ReceivedEmail| {
            email.rcpt_to = format!("box{n}@example.com").parse().unwrap();
            email.spam_status = if n == 2 { SpamStatus::Spam } else { SpamStatus::NotSpam };
        };
        all.push(arrive(&world, 1, change).await);
    }
    let ids_of = |expected: &[usize]| expected.iter().map(|n| all[*n].id.to_string()).collect::<Vec<_>>();
    let at = |n: usize| format!("{:.3}", all[n].received_at);
    let domain = all[0].domain;
    for (query, expected) in [
        (String::new(), vec![4, 3, 2, 1, 0]),
        ("?order=asc".to_owned(), vec![0, 1, 2, 3, 4]),
        (format!("?order=asc&cursor={start}"), vec![0, 1, 2, 3, 4]),
        ("?to=BOX3@example.com,box1@example.com".to_owned(), vec![3, 1]),
        ("?from=ada@far.example&limit=2".to_owned(), vec![4, 3]),
        ("?from=bounce@far.example&spam_status=spam".to_owned(), vec![2]),
        ("?from=nobody@far.example".to_owned(), vec![]),
        (format!("?domain_id={domain}&spam_status=spam,not_checked"), vec![2]),
        ("?domain_id=dom_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(), vec![]),
        (format!("?received_after={}", at(2)), vec![4, 3]),
        (format!("?received_before={}&order=asc", at(2)), vec![0, 1]),
        (format!("?received_after={}&received_before={}", at(0), at(3)), vec![2, 1]),
    ] {
        assert_eq!(ids(&world.get(&format!("/received-emails{query}")).await), ids_of(&expected), "{query}");
    }
    for (order, expected) in [("desc", [4, 3, 2, 1, 0]), ("asc", [0, 1, 2, 3, 4])] {
        let (mut collected, mut next) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/received-emails?limit=2&order={order}{next}")).await;
            collected.extend(ids(&page));
            let page = page.json();
            next = format!("&cursor={}", page["next_cursor"].as_str().unwrap_or_default());
            if page["has_more"] == false {
                assert_eq!(page["next_cursor"].is_string(), order == "asc", "polling continues");
                break;
            }
        }
        assert_eq!(collected, ids_of(&expected), "{order}");
        if order == "asc" {
            let late = arrive(&world, 1, |_| {}).await;
            let page = world.get(&format!("/received-emails?order=asc{next}")).await;
            assert_eq!(ids(&page), [late.id.to_string()]);
        }
    }
    for bad in ["order=up", "spam_status=maybe", "to=x", "domain_id=1", "received_after=now", "limit=0"] {
        let response = world.get(&format!("/received-emails?{bad}")).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"), "{bad}");
    }
    assert_eq!(world.get("/received-emails?cursor=AQAA").await.code(), "invalid_cursor");
    world.end().await;
}

#[tokio::test]
async fn received_emails_are_isolated_between_accounts() {
    let world = World::start().await;
    let (own, elsewhere) = (
        arrive(&world, 1, |_| {}).await,
        arrive(&world, 1, |entry| {
            entry.domain = model::id::DomainId::new(entry.received_at, 99);
        })
        .await,
    );
    let other = world.account(2, ApiKeyScope::Full).await;
    let body = json!({"name": "b", "scope": "full", "domain_id": own.domain});
    let made = world.post("/api-keys", body.to_string()).await.json();
    let bound = made["secret"].as_str().unwrap();
    for (key, id, is_reached) in [(other.as_str(), own.id, false), (bound, own.id, true), (bound, elsewhere.id, false)]
    {
        let calls = [
            (Method::GET, ""),
            (Method::GET, "/raw"),
            (Method::GET, "/attachments/att_0"),
            (Method::POST, "/reply"),
            (Method::POST, "/forward"),
        ];
        for (method, path) in calls {
            let body = json!({"text": "x", "to": "b@example.net"});
            let path = format!("/received-emails/{id}{path}");
            let status = world.call_as(key, method, &path, &body).await.status;
            assert_eq!(status == StatusCode::OK, is_reached, "{path}: {status}");
            assert!(is_reached || status == StatusCode::NOT_FOUND);
        }
    }
    assert!(ids(&world.get_as(&other, "/received-emails").await).is_empty());
    assert_eq!(ids(&world.get_as(bound, "/received-emails").await), [own.id.to_string()]);
    let foreign = format!("/received-emails?domain_id={}", elsewhere.domain);
    assert!(ids(&world.get_as(bound, &foreign).await).is_empty());
    let path = format!("/received-emails/{}", own.id);
    assert_eq!(world.call_as(&other, Method::DELETE, &path, &Value::Null).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.call(Method::DELETE, &path, &Value::Null).await.json(), json!({"ok": true}));
    assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get(&format!("{path}/raw")).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn reply_keeps_the_thread_and_forward_attaches() {
    let world = World::start().await;
    let id = arrive(&world, 1, |_| {}).await.id;
    let empty = world.post(&format!("/received-emails/{id}/reply"), r#"{"text": ""}"#).await;
    assert!(empty.json()["error"]["details"]["fields"]["html"].is_string(), "{empty:?}");
    let response = world.post(&format!("/received-emails/{id}/reply"), r#"{"text": "Good."}"#).await;
    assert_eq!(response.status, StatusCode::OK, "{response:?}");
    let sent = response.json()["id"].as_str().unwrap().to_owned();
    let email = &world.get(&format!("/emails/{sent}")).await.json()["email"];
    assert_eq!((&email["from"], &email["subject"]), (&json!("help@example.com"), &json!("Re: Hi")));
    assert_eq!(email["to"], json!(["Ada <ada@far.example>"]));
    let raw = world.get(&format!("/emails/{sent}/raw")).await.body;
    let raw = String::from_utf8_lossy(&raw).into_owned();
    assert!(raw.contains("In-Reply-To: <2@far.example>\r\n"), "{raw}");
    let references = raw.split("References: ").nth(1).unwrap().split("\r\n\r\n").next().unwrap();
    assert!(
        references
            .replace("\r\n\t", " ")
            .replace("\r\n ", " ")
            .starts_with("<0@example.com> <1@far.example> <2@far.example>"),
        "{raw}"
    );
    let forward = format!("/received-emails/{id}/forward");
    let request = || {
        world
            .request(Method::POST, &forward)
            .header("idempotency-key", "k")
            .body(http_body_util::Full::from(r#"{"to": ["b@example.net"]}"#))
            .unwrap()
    };
    let (first, again) = (world.send(request()).await, world.send(request()).await);
    assert_eq!(first.status, StatusCode::OK, "{first:?}");
    assert_eq!(first.json()["id"], again.json()["id"], "sent once");
    let sent = first.json()["id"].as_str().unwrap().to_owned();
    let email = &world.get(&format!("/emails/{sent}")).await.json()["email"];
    assert_eq!((&email["from"], &email["subject"]), (&json!("help@example.com"), &json!("Fwd: Hi")));
    assert_eq!(email["attachments"][0]["content_type"], "message/rfc822");
    for (path, body) in [("reply", "{}"), ("reply", r#"{"html": 1}"#), ("forward", "{}"), ("forward", r#"{"to": "x"}"#)]
    {
        let refused = world.post(&format!("/received-emails/{id}/{path}"), body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path} {body}");
    }
    // There is no address to reply to.
    let silent = arrive(&world, 1, |entry| {
        (entry.heading.from, entry.heading.author) = (String::new(), None);
    })
    .await
    .id;
    let refused = world.post(&format!("/received-emails/{silent}/reply"), r#"{"text": "x"}"#).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    world.end().await;
}
