//! `GET /emails` with filters, over HTTP.

use std::time::Duration;

use crate::world::World;
use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use model::event::{Event, EventKind};
use model::id::{EmailId, EventId};
use model::recipient::RecipientState;
use serde_json::{Value, json};
use store::engine::Batch;

async fn send(world: &World, extra: Value) -> String {
    let mut body = json!({"from": "Ann <Ann@Example.com>", "to": "b@example.net", "subject": "s", "text": "t"});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let response = world.call(Method::POST, "/emails", &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.json());
    world.services.clock.advance(Duration::from_millis(10));
    response.json()["id"].as_str().unwrap().to_owned()
}

fn in_an_hour(world: &World) -> String {
    (world.services.clock.now() + jiff::SignedDuration::from_hours(1)).to_string()
}

/// The ids of a list over all pages.
async fn ids(world: &World, query: &str) -> Vec<String> {
    let (mut collected, mut next) = (Vec::new(), String::new());
    loop {
        let response = world.get(&format!("/emails?{query}{next}")).await;
        let page = response.json();
        assert_eq!(response.status, StatusCode::OK, "{query}: {page}");
        collected.extend(page["emails"].as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap().to_owned()));
        assert_eq!(page["has_more"], !page["next_cursor"].is_null());
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return collected,
        }
    }
}

/// Settles all recipients of an email.
async fn record_outcome(world: &World, id: &str, state: RecipientState, kind: EventKind) {
    let (store, account) = (&world.services.store, world.tenant().await.account().id);
    let id: EmailId = id.parse().unwrap();
    world.services.clock.advance(Duration::from_millis(10));
    let now = world.services.clock.now();
    let found = store::email::get(store, account, id).await.unwrap().unwrap();
    let mut batch = Batch::progress();
    for recipient in found.recipients {
        let event = Event {
            id: EventId::new(now, recipient.index.into()),
            account,
            subject: id.into(),
            kind,
            recipient: Some(recipient.address.clone()),
            created_at: now,
            detail: json!({}),
        };
        let settled = model::recipient::Recipient { state, last_event: (kind, now), ..recipient };
        store::email::put_recipient(&mut batch, account, id, &settled);
        store::event::record(&mut batch, &event, 0);
    }
    store.commit(batch).await.unwrap();
}

#[tokio::test]
async fn emails_are_filtered() {
    let world = World::start().await;
    let first = send(&world, json!({"subject": "Your order #12 ships", "tags": {"env": "prod", "n": "a,b"}})).await;
    let two = send(&world, json!({"to": ["c@example.net", "B@Example.net"], "subject": "Order: yours"})).await;
    let newsletter = json!({"category": "newsletter", "unsubscribe": false, "tags": {"env": "prod"}});
    let three = send(&world, newsletter).await;
    let cc = ["d@example.net", r#""a,b"@example.net"#];
    let later = send(&world, json!({"scheduled_at": in_an_hour(&world), "cc": cc})).await;
    let (first, two, three, later) = (first.as_str(), two.as_str(), three.as_str(), later.as_str());
    let account = world.tenant().await.account().id;
    let domain = world.domain(account).await.id;
    let domain_id = format!("domain_id={domain}");
    for (query, expected) in [
        ("to=b@example.net", vec![later, three, two, first]),
        ("to=C@example.net", vec![two]),
        ("to=c@example.net,d@example.net", vec![later, two]),
        ("to=x@example.net", vec![]),
        ("to=%22a%2Cb%22@example.net", vec![later]),
        ("to=%22A,b%22@example.net,c@example.net", vec![later, two]),
        ("from=ann@example.com&limit=1", vec![later, three, two, first]),
        ("from=bob@example.com", vec![]),
        ("tag=env:prod", vec![three, first]),
        ("tag=env:prod&tag=n:a,b", vec![first]),
        ("tag=env:test", vec![]),
        ("category=newsletter", vec![three]),
        ("category=newsletter,transactional&limit=2", vec![later, three, two, first]),
        ("category=transactional&tag=env:prod", vec![first]),
        ("q=ORDER", vec![two, first]),
        ("q=order+your", vec![first]),
        ("q=ord", vec![]),
        ("status=scheduled", vec![later]),
        ("status=queued", vec![]),
        ("status=sent&limit=2", vec![three, two, first]),
        ("status=sent,scheduled&to=c@example.net,d@example.net", vec![later, two]),
        (domain_id.as_str(), vec![later, three, two, first]),
        ("domain_id=dom_01ARZ3NDEKTSV4RRFFQ69G5FAV", vec![]),
        ("template=nothing", vec![]),
        ("status=&to=&q=&tag=&created_after=", vec![later, three, two, first]),
    ] {
        assert_eq!(ids(&world, query).await, expected, "{query}");
    }
    world.end().await;
}

#[tokio::test]
async fn status_filter_follows_events() {
    let world = World::start().await;
    let first = send(&world, json!({})).await;
    let two = send(&world, json!({})).await;
    let late = send(&world, json!({"scheduled_at": in_an_hour(&world)})).await;
    assert_eq!(ids(&world, "status=sent").await, [two.clone(), first.clone()]);
    record_outcome(&world, &first, RecipientState::Delivered, EventKind::Delivered).await;
    record_outcome(&world, &two, RecipientState::Bounced, EventKind::Bounced).await;
    // The list shows the state even before its event is dispatched.
    assert_eq!(ids(&world, "status=sent").await, Vec::<String>::new());
    assert_eq!(ids(&world, "status=delivered").await, std::slice::from_ref(&first));
    assert_eq!(ids(&world, "status=bounced").await, std::slice::from_ref(&two));
    assert_eq!(ids(&world, "status=bounced,delivered&limit=1").await, [two, first]);
    let cancelled = world.call(Method::POST, &format!("/emails/{late}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, StatusCode::OK);
    assert_eq!(ids(&world, "status=scheduled").await, Vec::<String>::new());
    assert_eq!(ids(&world, "status=cancelled").await, [late]);
    world.end().await;
}

#[tokio::test]
async fn time_filters_apply() {
    let world = World::start().await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.insert(0, send(&world, json!({})).await);
    }
    let time = world.get(&format!("/emails/{}", sent[1])).await.json();
    let time = time["email"]["created_at"].as_str().unwrap().to_owned();
    let offset = format!("{}%2B00:00", time.trim_end_matches('Z'));
    // With an unescaped `+`, as people write it.
    let sloppy = format!("{}+00:00", time.trim_end_matches('Z'));
    for time in [time, offset, sloppy] {
        assert_eq!(ids(&world, &format!("created_after={time}")).await, sent[..1]);
        assert_eq!(ids(&world, &format!("created_before={time}")).await, sent[2..]);
        let both = format!("created_after={time}&created_before={time}&to=b@example.net");
        assert_eq!(ids(&world, &both).await, Vec::<String>::new());
    }
    world.end().await;
}

#[tokio::test]
async fn invalid_filters_are_named() {
    let world = World::start().await;
    let many = format!("to={}", ["a@example.net"; 11].join(","));
    for (query, field) in [
        ("status=opened", "status"),
        ("status=sent&status=sent", "status"),
        ("category=ads", "category"),
        ("to=nobody", "to"),
        ("from=a@example.com,b", "from"),
        ("tag=env", "tag"),
        ("tag=:x", "tag"),
        ("q=--", "q"),
        ("domain_id=example.com", "domain_id"),
        ("created_after=yesterday", "created_after"),
        ("created_before=2026-01-01", "created_before"),
        (many.as_str(), "to"),
    ] {
        let response = world.get(&format!("/emails?{query}")).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (StatusCode::BAD_REQUEST, "validation_error"),
            "{query}"
        );
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{query}: {}", response.json());
    }
    let cursor = world.get("/emails?to=b@example.net&cursor=x").await;
    assert_eq!(cursor.code(), "invalid_cursor");
    world.end().await;
}

#[tokio::test]
async fn lists_are_isolated_between_accounts() {
    let world = World::start().await;
    send(&world, json!({"tags": {"env": "prod"}})).await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let account = world.tenant().await.account().id;
    let domain = world.domain(account).await.id;
    for query in ["tag=env:prod".to_owned(), "status=sent".to_owned(), format!("domain_id={domain}")] {
        let page = world.get_as(&other, &format!("/emails?{query}")).await.json();
        assert_eq!(page["emails"], json!([]), "{query}");
    }
    world.end().await;
}

/// Filters may lag behind; then the list shows how far they are indexed.
#[tokio::test]
async fn lagging_filters_report_their_position() {
    let world = World::start().await;
    let before = world.services.clock.now();
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    let (late, after) = (world.queue.events.outbox.dispatched_until(), world.services.clock.now());
    assert!(late.as_millisecond() >= before.as_millisecond() && late <= after, "{before} {late} {after}");
    assert_eq!(world.queue.events.outbox.dispatch_within(Duration::from_secs(60)).await, None);
    let as_of = Some(httpd::json_timestamp::JsonTimestamp(late));
    let list = api::emails::view::EmailList {
        emails: Vec::new(),
        has_more: false,
        next_cursor: None,
        searched_until: None,
        as_of,
    };
    let view = serde_json::to_value(&list).unwrap();
    assert_eq!(view["as_of"], model::timestamp::to_rfc3339(late));
    let list = api::emails::view::EmailList { as_of: None, ..list };
    assert_eq!(serde_json::to_value(&list).unwrap().get("as_of"), None);
    world.end().await;
}
