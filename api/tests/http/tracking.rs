//! The tracking pixel and links over HTTP: responses and recorded events.

use std::time::Duration;

use crate::world::{TestResponse, World};
use http::{Method, Request};
use http_body_util::Full;
use jiff::Timestamp;
use model::id::{AccountId, EmailId};
use model::recipient::RecipientState;
use model::signed_token::{TokenKey, TokenPurpose};
use model::tracking::{TrackedLink, TrackingTarget, pixel_token};
use serde_json::{Value, json};
use store::engine::{Batch, CommitError};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const TARGET: &str = "https://shop.example/münze?a=1&b=2";

/// An API, and an email that was delivered a minute ago.
struct Sent {
    world: World,
    target: TrackingTarget,
    path: String,
}

impl Sent {
    async fn send_to(recipients: &[&str]) -> Self {
        let world = World::start().await;
        let body = json!({"from": "a@example.com", "to": recipients, "subject": "s", "html": "<p>x"});
        let response = world.post("/emails", body.to_string()).await;
        let email: EmailId = response.json()["id"].as_str().unwrap().parse().unwrap();
        let account = AccountId::new(Timestamp::from_second(1_700_000_000).unwrap(), 1);
        let sent = Self {
            target: TrackingTarget::new(account, email, recipients.len()),
            path: format!("/emails/{email}"),
            world,
        };
        sent.deliver().await;
        sent.advance(60);
        sent
    }

    async fn deliver(&self) {
        let (store, now) = (&self.world.services.store, self.world.services.clock.now());
        let found = store::email::get(store, self.target.account, self.target.email).await.unwrap().unwrap();
        let mut batch = Batch::progress();
        for mut recipient in found.recipients {
            (recipient.state, recipient.delivered_at) = (RecipientState::Delivered, Some(now));
            store::email::put_recipient(&mut batch, self.target.account, self.target.email, &recipient);
        }
        store.commit(batch).await.unwrap();
    }

    fn advance(&self, seconds: u64) {
        self.world.services.clock.advance(Duration::from_secs(seconds));
    }

    fn pixel(&self) -> String {
        format!("/o/{}", pixel_token(&self.world.accounts.links.key, self.target))
    }

    fn link(&self, link: u16) -> String {
        let click = TrackedLink { target: self.target, link, url: TARGET.to_owned() };
        format!("/c/{}", click.token(&self.world.accounts.links.key))
    }

    async fn fetch(&self, method: Method, path: &str, user_agent: &str) -> TestResponse {
        let request = Request::builder().method(method).uri(path).header("host", "t").header("user-agent", user_agent);
        self.world.send(request.body(Full::default()).unwrap()).await
    }

    /// The recorded events, oldest first: kind, recipient and detail.
    async fn events(&self) -> Vec<(String, Value, Value)> {
        let list = self.world.get(&format!("{}/events?limit=100", self.path)).await.json();
        let mut events: Vec<_> = list["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (e["type"].as_str().unwrap().to_owned(), e["recipient"].clone(), e["detail"].clone()))
            .filter(|(kind, ..)| kind == "email.opened" || kind == "email.clicked")
            .collect();
        events.reverse();
        events
    }

    async fn email(&self) -> Value {
        self.world.get(&self.path).await.json()["email"].clone()
    }

    async fn listed_last_event(&self) -> Value {
        self.world.get("/emails").await.json()["emails"][0]["last_event"].clone()
    }
}

/// The paths of tracked links in a sent message.
fn link_paths(raw: &[u8], page: &str) -> Vec<String> {
    let html = model::parsed_body::ParsedBody::parse(raw).html.unwrap();
    let start = format!("\"{}{page}", crate::world::BASE_URL);
    html.split(&start).skip(1).map(|rest| format!("{page}{}", rest.split('"').next().unwrap())).collect()
}

#[tokio::test]
async fn tracking_follows_the_domain_settings() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    let html = "<body><a href=\"https://shop.example/?a=1&amp;b=2\">x</a> <a href=\"mailto:a@b.example\">y</a></body>";
    let body = json!({"from": "a@example.com", "to": "ada@dest.example", "subject": "s", "html": html, "text": "https://shop.example/"});
    let store = &sent.world.services.store;
    for (opens, clicks) in [(false, false), (true, false), (false, true), (true, true)] {
        let before = store::domain::find_by_name(store, &crate::world::DOMAIN.parse().unwrap()).await.unwrap().unwrap();
        let mut after = before.clone();
        (after.delivery.open_tracking, after.delivery.click_tracking) = (opens, clicks);
        let mut batch = Batch::progress();
        store::domain::update(&mut batch, &before, &after);
        store.commit(batch).await.unwrap();
        sent.advance(2);
        let id = sent.world.post("/emails", body.to_string()).await.json()["id"].as_str().unwrap().to_owned();
        let resent =
            sent.world.post(&format!("/emails/{id}/resend"), "").await.json()["id"].as_str().unwrap().to_owned();
        for id in [id, resent] {
            let raw = sent.world.get(&format!("/emails/{id}/raw")).await.body;
            let (pixels, links) = (link_paths(&raw, "/o/"), link_paths(&raw, "/c/"));
            assert_eq!((pixels.len(), links.len()), (usize::from(opens), usize::from(clicks)));
            for path in &links {
                let response = sent.fetch(Method::GET, path, FIREFOX).await;
                assert_eq!(response.headers["location"], "https://shop.example/?a=1&b=2");
            }
            sent.advance(1);
            for path in &pixels {
                assert_eq!(sent.fetch(Method::GET, path, FIREFOX).await.status, 200);
            }
            let view = sent.world.get(&format!("/emails/{id}")).await.json()["email"].clone();
            assert_eq!((&view["html"], &view["text"]), (&json!(html), &json!("https://shop.example/")));
            let last = match (opens, clicks) {
                (true, _) => "email.opened",
                (false, true) => "email.clicked",
                (false, false) => "email.sent",
            };
            assert_eq!(view["last_event"], last);
        }
    }
    sent.world.end().await;
}

#[tokio::test]
async fn pixel_records_the_first_open() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    assert_eq!(sent.email().await["recipients"][0]["opened_at"], Value::Null);
    let response = sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await;
    assert_eq!(response.status, 200);
    assert!(response.body.starts_with(b"GIF89a"), "{:?}", response.body);
    for (name, value) in [
        ("content-type", "image/gif"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(response.headers[name], value);
    }
    let opened_at = sent.email().await["recipients"][0]["opened_at"].clone();
    assert!(opened_at.is_string());
    // Again within a minute: the pixel, but no further event; after a minute it is another open.
    sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await;
    sent.advance(61);
    sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await;
    let open = |first| json!({"open": {"ip": "127.0.0.1", "user_agent": FIREFOX, "machine": false, "proxy": null, "first": first}});
    let event = |detail| ("email.opened".to_owned(), json!("ada@dest.example"), detail);
    assert_eq!(sent.events().await, [event(open(true)), event(open(false))]);
    let email = sent.email().await;
    assert_eq!((&email["recipients"][0]["opened_at"], &email["last_event"]), (&opened_at, &json!("email.opened")));
    assert_eq!(sent.listed_last_event().await, "email.opened");
    sent.world.end().await;
}

#[tokio::test]
async fn link_redirects_and_records_the_first_click() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    let response = sent.fetch(Method::GET, &sent.link(3), FIREFOX).await;
    assert_eq!((response.status.as_u16(), response.body.len()), (302, 0));
    assert_eq!(response.headers["location"], "https://shop.example/m%C3%BCnze?a=1&b=2");
    assert_eq!(response.headers["referrer-policy"], "no-referrer");
    assert_eq!(response.headers["cache-control"], "no-store");
    let email = sent.email().await;
    assert!(email["recipients"][0]["clicked_at"].is_string());
    assert_eq!(email["recipients"][0]["opened_at"], Value::Null);
    assert_eq!(email["last_event"], "email.clicked");
    let click = json!({"url": TARGET, "ip": "127.0.0.1", "user_agent": FIREFOX, "machine": false, "first": true});
    let expected = ("email.clicked".to_owned(), json!("ada@dest.example"), json!({"click": click}));
    assert_eq!(sent.events().await, [expected]);
    sent.world.end().await;
}

#[tokio::test]
async fn bots_are_flagged_and_not_counted() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    let response = sent.fetch(Method::HEAD, &sent.link(0), FIREFOX).await;
    assert_eq!((response.status.as_u16(), response.body.len()), (302, 0));
    sent.advance(1);
    assert_eq!(sent.fetch(Method::GET, &sent.pixel(), "Mozilla/5.0").await.status, 200);
    let flags: Vec<_> = sent
        .events()
        .await
        .into_iter()
        .map(|(kind, _, detail)| {
            let visit = &detail[if kind == "email.opened" { "open" } else { "click" }];
            (kind, visit["machine"] == true, visit["first"] == true)
        })
        .collect();
    assert_eq!(flags, [("email.clicked".to_owned(), true, true), ("email.opened".to_owned(), true, true)]);
    let recipient = sent.email().await["recipients"][0].clone();
    assert_eq!((&recipient["opened_at"], &recipient["clicked_at"]), (&Value::Null, &Value::Null));
    // The first open by a person still counts as the first.
    sent.advance(61);
    sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await;
    let (_, _, last) = sent.events().await.pop().unwrap();
    assert_eq!((&last["open"]["machine"], &last["open"]["first"]), (&json!(false), &json!(true)));
    sent.world.end().await;
}

#[tokio::test]
async fn fetch_at_delivery_is_a_bot() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    sent.deliver().await;
    for n in 0..3 {
        sent.fetch(Method::GET, &sent.link(n), FIREFOX).await;
    }
    let events = sent.events().await;
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|(_, _, detail)| detail["click"]["machine"] == true), "{events:?}");
    sent.world.end().await;
}

#[tokio::test]
async fn opens_of_several_recipients_are_ambiguous() {
    let sent = Sent::send_to(&["ada@dest.example", "bob@dest.example"]).await;
    for agent in [FIREFOX, "Thunderbird"] {
        sent.fetch(Method::GET, &sent.pixel(), agent).await;
    }
    let events = sent.events().await;
    assert_eq!(events.len(), 2, "two visitors, within a minute: {events:?}");
    assert!(events.iter().all(|(_, recipient, _)| recipient.is_null()));
    let email = sent.email().await;
    assert!(email["recipients"].as_array().unwrap().iter().all(|r| r["opened_at"].is_null()));
    assert_eq!(email["last_event"], "email.opened");
    sent.world.end().await;
}

#[tokio::test]
async fn events_of_one_link_are_limited() {
    let sent = Sent::send_to(&["ada@dest.example", "bob@dest.example"]).await;
    let pixel = sent.pixel();
    // Many visitors within one minute.
    let visits = (0..200).map(|n| {
        let (sent, pixel) = (&sent, &pixel);
        async move { sent.fetch(Method::GET, pixel, &format!("agent {n}")).await.status }
    });
    for status in futures_util::future::join_all(visits).await {
        assert_eq!(status, 200);
    }
    assert_eq!(sent.events().await.len(), 64);
    sent.world.end().await;
}

#[tokio::test]
async fn unsigned_links_are_404() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    let key = &sent.world.accounts.links.key;
    let click = TrackedLink { target: sent.target, link: 0, url: TARGET.to_owned() };
    let token = click.token(key);
    let forged = click.token(&TokenKey::new([7; 32]));
    let cut = &token[..token.len() - 1];
    let open = pixel_token(key, sent.target);
    let unsubscribe = key.sign(TokenPurpose::Unsubscribe, b"x");
    for token in [forged.as_str(), cut, &open, &unsubscribe, "x", "%00", "https:%2F%2Fevil.example", &"a".repeat(1_900)]
    {
        let response = sent.fetch(Method::GET, &format!("/c/{token}"), FIREFOX).await;
        assert_eq!((response.status.as_u16(), response.headers.get("location")), (404, None), "{token}");
    }
    assert_eq!(sent.fetch(Method::GET, &format!("/o/{token}"), FIREFOX).await.code(), "not_found");
    // A browser gets a page.
    let request = Request::get("/c/nonsense").header("host", "t").header("accept", "text/html,*/*;q=0.8");
    let response = sent.world.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(
        (response.status.as_u16(), &response.headers["content-type"]),
        (404, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert_eq!(sent.fetch(Method::POST, &sent.pixel(), FIREFOX).await.status, 405);
    assert!(sent.events().await.is_empty());
    sent.world.end().await;
}

#[tokio::test]
async fn links_of_a_deleted_email_still_work() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await;
    let store = &sent.world.services.store;
    let forget = async || {
        let mut batch = Batch::progress();
        store::email::purge(store, &mut batch, sent.target.account, &[sent.target.email]).await.unwrap();
        batch
    };
    // An open that is recorded during the deletion leaves no row behind.
    let early = forget().await;
    sent.advance(61);
    sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await;
    assert!(matches!(store.commit(early).await, Err(CommitError::Conflict { .. })));
    store.commit(forget().await).await.unwrap();
    sent.advance(61);
    assert_eq!(sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await.status, 200);
    assert_eq!(sent.fetch(Method::GET, &sent.link(0), FIREFOX).await.status, 302);
    let events = store::event::list(store, sent.target.account, sent.target.email, 10).await.unwrap();
    assert!(events.is_empty(), "{events:?}");
    assert!(store::tracking::load(store, sent.target).await.unwrap().is_none());
    sent.world.end().await;
}

#[tokio::test]
async fn full_store_does_not_block_redirects() {
    let sent = Sent::send_to(&["ada@dest.example"]).await;
    sent.world.services.store.close().await;
    assert_eq!(sent.fetch(Method::GET, &sent.pixel(), FIREFOX).await.status, 200);
    assert_eq!(sent.fetch(Method::GET, &sent.link(0), FIREFOX).await.status, 302);
}
