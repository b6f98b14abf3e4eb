//! `GET /emails/metrics` over HTTP.

use std::time::Duration;

use crate::world::World;
use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use model::event::{Event, EventKind};
use model::id::{EmailId, EventId};
use model::metric::{Counter, Dimension, Hour, MetricCounts, category_and_domain};
use model::recipient::Recipient;
use serde_json::{Value, json};
use store::engine::Batch;

async fn send(world: &World, extra: Value) -> EmailId {
    let mut body = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let response = world.call(Method::POST, "/emails", &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.json());
    world.services.clock.advance(Duration::from_millis(10));
    response.json()["id"].as_str().unwrap().parse().unwrap()
}

/// Records an event of an email's first recipient.
async fn record_event(world: &World, email: EmailId, kind: EventKind, detail: Value) {
    let (store, account) = (&world.services.store, world.tenant().await.account().id);
    world.services.clock.advance(Duration::from_millis(10));
    let now = world.services.clock.now();
    let found = store::email::get(store, account, email).await.unwrap().unwrap();
    let recipient = Recipient {
        mx_host: Some("aspmx.l.google.com".to_owned()),
        last_event: (kind, now),
        ..found.recipients[0].clone()
    };
    let event = Event {
        id: EventId::new(now, 1),
        account,
        subject: email.into(),
        kind,
        recipient: Some(recipient.address.clone()),
        created_at: now,
        detail,
    };
    let mut batch = Batch::progress();
    store::email::put_recipient(&mut batch, account, email, &recipient);
    store::event::record(&mut batch, &event, 0);
    store.commit(batch).await.unwrap();
}

async fn metrics(world: &World, query: &str) -> Value {
    let response = world.get(&format!("/emails/metrics?{query}")).await;
    assert_eq!(response.status, StatusCode::OK, "{query}: {}", response.json());
    response.json()["metrics"].clone()
}

/// Sets the clock to one o'clock, so that no test crosses midnight.
fn advance_to_one_o_clock(world: &World) {
    let clock = &world.services.clock;
    let into_day = clock.now().as_second().rem_euclid(86_400);
    clock.advance(Duration::from_secs(u64::try_from(86_400 - into_day + 3_660).unwrap()));
}

async fn record_day(world: &World) {
    advance_to_one_o_clock(world);
    let tagged = send(world, json!({"tags": {"env": "prod"}, "to": ["b@example.net", "c@example.net"]})).await;
    let plain = send(world, json!({})).await;
    let later = world.services.clock.now() + jiff::SignedDuration::from_hours(9);
    send(world, json!({"scheduled_at": later.to_string()})).await;
    record_event(world, tagged, EventKind::Delivered, json!({})).await;
    let open = |first: bool, machine: bool| json!({"open": {"first": first, "machine": machine}});
    record_event(world, tagged, EventKind::Opened, open(true, true)).await;
    record_event(world, tagged, EventKind::Opened, open(true, false)).await;
    record_event(world, tagged, EventKind::Opened, open(false, false)).await;
    world.services.clock.advance(Duration::from_secs(3_600));
    record_event(world, plain, EventKind::DeliveryDelayed, json!({"delay": {"attempt": 1}})).await;
    record_event(world, plain, EventKind::DeliveryDelayed, json!({"delay": {"attempt": 2}})).await;
    record_event(world, plain, EventKind::Bounced, json!({})).await;
}

#[tokio::test]
async fn events_are_counted() {
    let world = World::start().await;
    record_day(&world).await;
    let all = metrics(&world, "").await;
    let mut totals = all["totals"].clone();
    // The world's clock goes on between the calls.
    let time = totals.as_object_mut().unwrap().remove("delivery_time").unwrap();
    assert_eq!((&time["measured"], &time["p50_seconds"]), (&json!(1), &time["p99_seconds"]), "{time}");
    assert_eq!(
        totals,
        json!({
            "sent": 3, "delivered": 1, "bounced": 1, "failed": 0, "delayed": 1, "complained": 0,
            "opened": 1, "clicked": 0, "suppressed": 0, "unsubscribed": 0, "delivery_rate": 0.3333,
            "bounce_rate": 0.3333, "complaint_rate": 0.0, "open_rate": 1.0, "click_rate": 0.0,
            "unsubscribe_rate": 0.0,
        })
    );
    let rows = all["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 31);
    assert_eq!((&rows[30]["sent"], &rows[29]["sent"]), (&json!(3), &json!(0)));
    assert!(rows[30]["period_start"].as_str().unwrap().ends_with("T00:00:00.000Z"));
    assert!(rows[30].get("dimension").is_none());

    let hours = metrics(&world, "granularity=hour&metrics=sent,bounced").await;
    assert_eq!(hours["totals"], json!({"sent": 3, "bounced": 1, "bounce_rate": 0.3333}));
    let rows = hours["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 25);
    let counts = |row: &Value| (row["sent"].clone(), row["bounced"].clone());
    assert_eq!((counts(&rows[23]), counts(&rows[24])), ((json!(3), json!(0)), (json!(0), json!(1))));
    assert_eq!(rows[24].as_object().unwrap().len(), 3);
    // A second request counts nothing twice.
    assert_eq!(metrics(&world, "").await, all);
    world.end().await;
}

#[tokio::test]
async fn metrics_are_grouped_by_dimension() {
    let world = World::start().await;
    record_day(&world).await;
    let by = metrics(&world, "dimensions=tag,provider,domain&metrics=sent,delivered,bounced").await;
    let rows: Vec<Value> = by["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["dimension"], row["value"], row["sent"], row["delivered"], row["bounced"]]))
        .collect();
    assert_eq!(
        json!(rows),
        json!([["domain", "example.com", 3, 1, 1], ["tag", "env:prod", 2, 1, 0], ["provider", "google.com", 0, 1, 1],])
    );
    assert_eq!(by["totals"]["sent"], 3);
    assert_eq!(metrics(&world, "dimensions=template").await["rows"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn metrics_are_filtered_by_domain_and_category() {
    let world = World::start().await;
    world.create_domain(1, "other.example").await;
    advance_to_one_o_clock(&world);
    let news = send(&world, json!({"category": "newsletter", "html": "<p>{{unsubscribe_url}}</p>"})).await;
    send(&world, json!({"from": "a@other.example", "category": "newsletter"})).await;
    send(&world, json!({})).await;
    record_event(&world, news, EventKind::Complained, json!({})).await;
    for (query, sent, complained) in [
        ("", 3, 1),
        ("domain=Example.com", 2, 1),
        ("category=newsletter", 2, 1),
        ("category=transactional", 1, 0),
        ("category=newsletter&domain=other.example", 1, 0),
        ("category=product&domain=example.com", 0, 0),
        ("domain=nobody.example", 0, 0),
    ] {
        let found = metrics(&world, &format!("metrics=sent,complained&{query}")).await;
        assert_eq!(
            (&found["totals"]["sent"], &found["totals"]["complained"]),
            (&json!(sent), &json!(complained)),
            "{query}"
        );
        assert_eq!(found["rows"].as_array().unwrap().len(), 31, "{query}");
    }
    let rows = async |query: &str| -> Value {
        let found = metrics(&world, query).await;
        let row = |row: &Value| json!([row["dimension"], row["value"], row["sent"]]);
        found["rows"].as_array().unwrap().iter().map(row).collect()
    };
    let by_category = json!([["category", "newsletter", 2], ["category", "transactional", 1]]);
    assert_eq!(rows("dimensions=category").await, by_category);
    let of_domain = json!([["category", "newsletter", 1], ["category", "transactional", 1]]);
    assert_eq!(rows("dimensions=category&domain=example.com").await, of_domain);
    let of_category = json!([["domain", "example.com", 1], ["domain", "other.example", 1]]);
    assert_eq!(rows("dimensions=domain&category=newsletter").await, of_category);
    let of_both = json!([["domain", "example.com", 1], ["category", "newsletter", 1]]);
    assert_eq!(rows("dimensions=category,domain&category=newsletter&domain=example.com").await, of_both);

    // Counts of an earlier release have no category.
    let (account, now) = (world.tenant().await.account().id, world.services.clock.now());
    let mut batch = Batch::progress();
    let mut counts = MetricCounts::default();
    counts.add(Counter::Sent, 5);
    let additions = [((account, None, Hour::containing(now)), [(String::new(), counts)].into())].into();
    store::metric::add(&world.services.store, &mut batch, &additions).await.unwrap();
    world.services.store.commit(batch).await.unwrap();
    let found = rows("dimensions=category").await;
    assert_eq!(found[0], json!(["category", "(unknown)", 5]), "{found}");
    for (query, field) in [
        ("category=spam", "category"),
        ("domain=a%20b", "domain"),
        ("domain=example.com&dimensions=tag", "dimensions"),
        ("dimensions=category_and_domain", "dimensions"),
    ] {
        let refused = world.get(&format!("/emails/metrics?{query}")).await.json();
        assert!(refused["error"]["details"]["fields"][field].is_string(), "{query}: {refused}");
    }
    world.end().await;
}

#[tokio::test]
async fn all_deliveries_are_measured() {
    let world = World::start().await;
    advance_to_one_o_clock(&world);
    let mut emails = Vec::new();
    for _ in 0..150 {
        emails.push(send(&world, json!({})).await);
    }
    let slow = send(&world, json!({"category": "product"})).await;
    for email in &emails {
        record_event(&world, *email, EventKind::Delivered, json!({})).await;
    }
    world.services.clock.advance(Duration::from_secs(600));
    record_event(&world, slow, EventKind::Delivered, json!({})).await;
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    let time = |found: &Value| {
        let time = &found["delivery_time"];
        (time["measured"].as_u64().unwrap(), time["p50_seconds"].as_f64(), time["p99_seconds"].as_f64())
    };
    let all = metrics(&world, "metrics=delivery_time").await;
    let (measured, p50, p99) = time(&all["totals"]);
    assert_eq!(measured, 151, "more than a page of the list");
    assert!(p50.is_some_and(|p50| (1.0..240.0).contains(&p50)), "{all}");
    assert!(p99.is_some_and(|p99| p99 < 240.0), "one of 151 is slow: {all}");
    assert_eq!(all["totals"].as_object().unwrap().len(), 1);
    let of_category = metrics(&world, "metrics=delivery_time&category=product").await;
    let (measured, p50, p99) = time(&of_category["totals"]);
    assert_eq!((measured, p50), (1, p99));
    assert!(p99.is_some_and(|p99| (480.0..1_200.0).contains(&p99)), "{of_category}");
    let none = metrics(&world, "category=newsletter").await;
    assert_eq!(none["totals"]["delivery_time"], json!({"measured": 0, "p50_seconds": null, "p99_seconds": null}));
    let by = metrics(&world, "dimensions=provider&metrics=delivery_time").await;
    assert_eq!((&by["rows"][0]["value"], time(&by["rows"][0]).0), (&json!("google.com"), 151));
    world.end().await;
}

#[tokio::test]
async fn pairs_over_the_limit_are_other_categories() {
    let world = World::start().await;
    let (account, now) = (world.tenant().await.account().id, world.services.clock.now());
    let sent = || {
        let mut counts = MetricCounts::default();
        counts.add(Counter::Sent, 1);
        counts
    };
    let bucket = |dimension| (account, Some(dimension), Hour::containing(now));
    let domains = || (0..=store::metric::VALUES_MAX).map(|n| format!("d{n:03}.example"));
    let pairs = domains().map(|domain| (category_and_domain("newsletter", &domain), sent())).collect();
    let additions = [
        (bucket(Dimension::CategoryAndDomain), pairs),
        (bucket(Dimension::Domain), [("d100.example".to_owned(), sent())].into()),
    ];
    let mut batch = Batch::progress();
    store::metric::add(&world.services.store, &mut batch, &additions.into()).await.unwrap();
    world.services.store.commit(batch).await.unwrap();
    let by_category = metrics(&world, "metrics=sent&domain=d100.example&dimensions=category").await;
    assert_eq!((&by_category["rows"][0]["value"], &by_category["rows"][0]["sent"]), (&json!("(other)"), &json!(1)));
    let by_domain = metrics(&world, "metrics=sent&category=newsletter&dimensions=domain").await;
    let rows = by_domain["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["value"], &rows[0]["sent"]), (101, &json!("(other)"), &json!(1)), "{by_domain}");
    world.end().await;
}

#[tokio::test]
async fn a_range_is_of_whole_periods() {
    let world = World::start().await;
    let day = |query: &'static str| async {
        let rows = metrics(&world, query).await["rows"].as_array().unwrap().clone();
        rows.into_iter().map(|row| row["period_start"].as_str().unwrap()[..13].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(day("from=2026-01-01&to=2026-01-03").await, ["2026-01-01T00", "2026-01-02T00"]);
    assert_eq!(day("from=2026-01-01T23:59:00Z&to=2026-01-02T00:00:01Z").await.len(), 2);
    assert_eq!(
        day("granularity=hour&from=2026-01-01T10:30:00%2B01:00&to=2026-01-01T11:00:00Z").await,
        ["2026-01-01T09", "2026-01-01T10"]
    );
    assert_eq!(day("granularity=hour&from=2026-01-01&to=2026-04-03").await.len(), 92 * 24);
    for (query, field) in [
        ("granularity=week", "granularity"),
        ("dimensions=color", "dimensions"),
        ("metrics=sent,happy", "metrics"),
        ("from=2026-01-02&to=2026-01-01", "from"),
        ("from=2026-01-02&to=2026-01-02", "from"),
        ("from=2026-13-01", "from"),
        ("to=tomorrow", "to"),
        ("from=2020-01-01&to=2026-01-01", "from"),
        ("granularity=hour&from=2026-01-01&to=2026-05-01", "from"),
    ] {
        let response = world.get(&format!("/emails/metrics?{query}")).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (StatusCode::BAD_REQUEST, "validation_error"),
            "{query}"
        );
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{query}: {}", response.json());
    }
    world.end().await;
}

#[tokio::test]
async fn metrics_are_isolated_and_need_a_full_key() {
    let world = World::start().await;
    send(&world, json!({})).await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let foreign = world.get_as(&other, "/emails/metrics").await.json();
    assert_eq!(foreign["metrics"]["totals"]["sent"], 0);
    let sending = world.account(3, ApiKeyScope::Sending).await;
    assert_eq!(world.get_as(&sending, "/emails/metrics").await.status, StatusCode::FORBIDDEN);
    world.end().await;
}
