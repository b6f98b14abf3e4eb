//! The pages of webhooks, with fixed answers.

use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};
use crate::dashboard::prelude::*;

fn webhook() -> Value {
    json!({
        "id": "whk_1", "url": format!("https://example.com/hooks?x={HOSTILE}"), "events": [], "enabled": true,
        "description": HOSTILE, "domain_ids": [], "inbound_addresses": [HOSTILE], "retry_policy": "default",
        "failing_since": "2026-11-26T10:00:00Z", "disabled_reason": null, "created_at": "2026-11-20T10:00:00Z",
    })
}

fn delivery() -> Value {
    json!({
        "id": "whd_1", "webhook_id": "whk_1", "event_id": "evt_1", "type": "email.bounced", "status": "failed",
        "attempts_count": 2, "next_attempt_at": null, "response_status": 500, "created_at": "2026-11-26T11:00:00Z",
        "delivered_at": null, "payload": {"type": "email.bounced", "data": {"email_id": "msg_1", "to": [HOSTILE]}},
        "attempts": [
            {"n": 1, "at": "2026-11-26T11:00:00Z", "response_status": 500, "response_body": HOSTILE, "duration_ms": 12},
            {"n": 2, "at": "2026-11-26T11:00:05Z", "response_status": null, "response_body": "", "duration_ms": 15000,
             "error": HOSTILE},
        ],
    })
}

fn backend() -> FakeBackend {
    FakeBackend::new()
        .answer("list_webhooks", json!({"webhooks": [webhook()], "has_more": false, "next_cursor": null}))
        .answer("get_webhook", json!({"webhook": webhook()}))
        .answer("list_webhook_deliveries", json!({"deliveries": [delivery()], "next_cursor": "c2"}))
        .answer("get_webhook_delivery", json!({"delivery": delivery()}))
        .answer(
            "list_domains",
            json!({"domains": [{"id": "dom_1", "name": "a.example"}, {"id": "dom_2", "name": HOSTILE}]}),
        )
        .answer(
            "list_webhook_events",
            json!({"events": [{"id": "evt_1", "type": "email.received", "created_at": "2026-11-26T11:00:00Z",
                "data": {"email_id": "inb_1", "from": HOSTILE, "subject": HOSTILE}}], "next_cursor": null}),
        )
}

#[test]
fn texts_of_strangers_are_harmless() {
    let backend = backend();
    for target in [
        "/webhooks",
        "/webhooks/new",
        "/webhooks/events",
        "/webhooks/whk_1",
        "/webhooks/whk_1/edit",
        "/webhooks/whk_1/delete",
        "/webhooks/whk_1/deliveries/whd_1",
    ] {
        let answer = backend.get(target);
        assert_eq!(answer.status, 200, "{target}");
        assert_harmless(&html(answer));
    }
    let events = html(backend.get("/webhooks/events?types=email.received"));
    assert!(events.contains("/dashboard/received/inb_1"));
    assert!(
        backend
            .calls("list_webhook_events")
            .iter()
            .any(|call| call.query.iter().any(|(_, value)| value == "email.received"))
    );
}

#[test]
fn an_endpoint_is_created_and_its_secret_shown_once() {
    let backend = backend().answer("create_webhook", json!({"webhook": webhook(), "secret": "whsec_of_the_test"}));
    let chosen = [("url", "https://example.com/hooks"), ("subscription", "chosen"), ("retry_policy", "extended")];
    let refused = backend.post("/webhooks/new", "create", &chosen);
    assert_eq!(refused.status, 400);
    assert!(html(refused).contains("Select at least one event"));
    let mut fields = chosen.to_vec();
    fields.extend([
        ("events", "email.bounced"),
        ("events", "email.failed"),
        ("domain_ids", "dom_2"),
        ("description", ""),
    ]);
    let page = html(backend.post("/webhooks/new", "create", &fields));
    assert!(page.contains("whsec_of_the_test") && page.contains("constructEvent") && page.contains("construct_event"));
    let calls = backend.calls("create_webhook");
    let crate::dashboard::backend::CallBody::Json(body) = &calls[0].body else { panic!("no body") };
    assert_eq!(
        *body,
        json!({"url": "https://example.com/hooks", "description": null, "events": ["email.bounced", "email.failed"],
            "retry_policy": "extended", "inbound_addresses": [], "domain_ids": ["dom_2"]})
    );
}

#[test]
fn an_endpoint_is_deleted_by_its_name() {
    let backend = backend().answer("delete_webhook", json!({"ok": true}));
    let refused = backend.post("/webhooks/whk_1/delete", "delete", &[("confirm", "example.org")]);
    assert_eq!((refused.status, backend.calls("delete_webhook").len()), (400, 0));
    let done = backend.post("/webhooks/whk_1/delete", "delete", &[("confirm", "example.com")]);
    assert_eq!(location(done), "/dashboard/webhooks?done=deleted");
}

#[test]
fn a_replay_goes_on_where_the_api_stopped_and_ends_at_one_time() {
    let backend =
        backend().answer("replay_webhook_deliveries", json!({"queued": 2, "next_since": "2026-11-26T11:30:00Z"}));
    let done = backend.post("/webhooks/whk_1/replay", "replay", &[("since", "2026-11-26T11:00"), ("status", "failed")]);
    let calls = backend.calls("replay_webhook_deliveries");
    let path = format!("/dashboard/webhooks/whk_1/replay?queued={}&next=2026-11-26T11%3A30%3A00Z", 2 * calls.len());
    assert_eq!(location(done), path);
    let bodies: Vec<_> = calls.iter().map(|call| format!("{:?}", call.body)).collect();
    assert!(bodies[0].contains("2026-11-26T11:00:00Z") && bodies[1].contains("2026-11-26T11:30:00Z"));
    assert!(bodies.iter().all(|body| body.contains("2026-11-26T12:00:00Z")), "{}", bodies[0]);
    let page = html(backend.get("/webhooks/whk_1/replay?queued=40&next=2026-11-26T11:30:00Z"));
    assert!(page.contains("40 deliveries are sent again") && page.contains("2026-11-26T11:30"));
}

#[test]
fn refused_filters_and_forbidden_operations_are_said() {
    let failure = Failure { status: 400, message: "`type` is not an event".into(), ..Failure::default() };
    let refused = backend().refuse("list_webhook_deliveries", failure);
    let page = html(refused.get("/webhooks/whk_1?type=x"));
    assert!(page.contains("The list could not be read: type is not an event"));
    let viewer =
        backend().forbid("update_webhook").forbid("delete_webhook").forbid("create_webhook").forbid("test_webhook");
    let page = html(viewer.get("/webhooks/whk_1"));
    assert!(!page.contains("/edit") && !page.contains("Disable the endpoint") && !page.contains("Send the test"));
    assert!(!html(viewer.get("/webhooks")).contains("/webhooks/new"));
    assert_eq!(viewer.get("/webhooks/new").status, 403);
}

#[test]
fn lists_without_entries_say_what_to_do() {
    let backend = FakeBackend::new()
        .answer("list_webhooks", json!({"webhooks": []}))
        .answer("get_webhook", json!({"webhook": webhook()}))
        .answer("list_webhook_deliveries", json!({"deliveries": []}))
        .answer("list_webhook_events", json!({"events": []}));
    assert!(html(backend.get("/webhooks")).contains("Add the first endpoint"));
    assert!(html(backend.get("/webhooks/whk_1")).contains("No deliveries yet"));
    let mut old = webhook();
    old["created_at"] = json!("2026-10-01T00:00:00Z");
    let backend = backend.answer("get_webhook", json!({"webhook": old}));
    assert!(html(backend.get("/webhooks/whk_1")).contains("No deliveries in the last 30 days"));
    assert!(html(backend.get("/webhooks/whk_1?status=failed")).contains("No deliveries match the filters"));
    assert!(html(backend.get("/webhooks/events")).contains("No events yet"));
}

#[test]
fn a_reload_of_a_new_secret_creates_no_second_endpoint() {
    let backend = backend().answer("create_webhook", json!({"webhook": webhook(), "secret": "whsec_1"}));
    let form = html(backend.get("/webhooks/new"));
    let (_, key) = form.split_once("name=\"form_key\" value=\"").expect("the form has a key");
    let key = key.split('"').next().unwrap_or_default();
    let fields = [("url", "https://example.com/hooks"), ("subscription", "all"), ("form_key", key)];
    let page = html(backend.post("/webhooks/new", "create", &fields));
    assert!(page.contains("whsec_1") && page.contains("data-location=\"/dashboard/webhooks/whk_1\""), "{page}");
    let page = html(backend.post("/webhooks/new", "create", &fields));
    assert!(page.contains("This form was already sent") && page.contains("href=\"/dashboard/webhooks\""), "{page}");
    assert_eq!(backend.calls("create_webhook").len(), 1);
}
