//! Tests of the pages of product events with fixed answers.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

fn event() -> Value {
    json!({
        "id": "ae_1", "name": HOSTILE, "user_id": HOSTILE, "email": HOSTILE, "data": {HOSTILE: HOSTILE},
        "source": HOSTILE, "created_at": "2026-11-26T10:00:00.000Z",
    })
}

fn backend() -> FakeBackend {
    let period = "2026-11-20T00:00:00.000Z";
    FakeBackend::new()
        .answer("list_events", json!({"events": [event()], "has_more": true, "next_cursor": null}))
        .answer(
            "count_events",
            json!({
                "totals": [{"name": HOSTILE, "count": 7, "seats": 1, "excluded": 2}],
                "counts": [{"name": HOSTILE, "period_start": period, "count": 7}],
            }),
        )
        .answer("get_event", json!({"event": event()}))
}

#[test]
fn the_list_shows_events_and_counts() {
    let page = html(backend().get("/events"));
    assert_harmless(&page);
    for part in ["and 1 of invited teammates, 2 of your team", "Send a test event", "/dashboard/events/ae_1", "<svg"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let one = backend();
    html(one.get("/events?user_id=u_1&name=a&range=7"));
    assert!(one.calls("count_events").is_empty(), "counts are not stored by person");
    assert!(one.calls("list_events")[0].query.contains(&("user_id".to_owned(), "u_1".to_owned())));
}

#[test]
fn empty_lists_say_what_to_do() {
    let none = || {
        let backend = FakeBackend::new().answer("list_events", json!({"events": [], "next_cursor": null}));
        backend.answer("count_events", json!({"totals": [], "counts": []}))
    };
    assert!(html(none().get("/events")).contains("No events in the last 30 days"));
    assert!(html(none().get("/events?name=x")).contains("No events match the filters"));
    assert!(!html(none().forbid("send_event").get("/events")).contains("Send a test event"));
}

#[test]
fn one_event_is_shown_with_its_effect() {
    let page = html(backend().get("/events/ae_1?started=2&resumed=0&ended=1"));
    assert_harmless(&page);
    assert!(page.contains("The event was recorded: 2 automations started, 1 run was cancelled."));
    let page = html(backend().get("/events/ae_1?started=0&resumed=0&ended=0"));
    assert!(page.contains("No active automation is waiting for it."));
    assert!(!html(backend().get("/events/ae_1?started=x")).contains("was recorded"));
}

#[test]
fn events_are_sent_and_errors_are_beside_the_field() {
    let backend = backend().answer("send_event", json!({"event": event(), "matched_automations": 1}));
    let fields =
        [("name", "user.created"), ("email", ""), ("user_id", "u_1"), ("data", "{\"plan\": 1}"), ("form_key", "k")];
    let sent = location(backend.post("/events/new", "send", &fields));
    assert_eq!(sent, "/dashboard/events/ae_1?started=1&resumed=0&ended=0");
    let call = &backend.calls("send_event")[0];
    let expected = json!({"name": "user.created", "user_id": "u_1", "data": {"plan": 1}});
    assert_eq!(call.body, CallBody::Json(expected));
    assert!(call.idempotency_key.is_some());
    let wrong = html(backend.post("/events/new", "send", &[("name", HOSTILE), ("data", "{")]));
    assert!(wrong.contains("This is not valid JSON"));
    let long = [("name", "order"), ("data", r#"{"price": 19.90, "order_id": 12345678901234567890123}"#)];
    let rounded = html(backend.post("/events/new", "send", &long));
    assert!(rounded.contains("The number 12345678901234567890123 would lose digits"), "{rounded}");
    assert_eq!(backend.calls("send_event").len(), 1);
    let refused = backend.refuse("send_event", Failure::field("email", "is no address"));
    let page = html(refused.post("/events/new", "send", &[("name", HOSTILE), ("email", "x")]));
    assert!(page.contains("is no address") && page.contains("value=\"x\"") && !page.contains("<script>alert"));
}

#[test]
fn events_are_exported() {
    let PageContent::File { content, .. } = backend().get("/events/export.csv").content else { panic!("no file") };
    assert_eq!(content.matches("ae_1").count(), 1);
}

#[test]
fn numbers_keep_all_their_digits() {
    let event = r#"{"id":"ae_1","name":"order","data":{"order_id":12345678901234567890123,"price":19.90}}"#;
    let backend = FakeBackend::new()
        .answer("get_event", json!(format!(r#"{{"event":{event}}}"#)))
        .answer("list_events", json!(format!(r#"{{"events":[{event}],"has_more":false,"next_cursor":null}}"#)))
        .answer("count_events", json!({"totals": [], "counts": []}));
    let PageContent::File { content, .. } = backend.get("/events/export.csv").content else { panic!("no file") };
    for text in [html(backend.get("/events/ae_1")), html(backend.get("/events")), content] {
        assert!(text.contains("12345678901234567890123") && text.contains("19.90"), "{text}");
    }
}
