//! Tests of the pages of credentials, with fixed answers of the API.

use serde_json::{Value, json};

use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

fn key() -> Value {
    json!({
        "id": "key_1", "name": HOSTILE, "scope": "full", "hint": "rnl_...abcd", "enabled": true, "domain_id": null,
        "allowed_ips": ["203.0.113.7"], "last_used_at": null, "last_used_ip": null, "expires_at": "2026-11-01T00:00:00Z",
        "created_at": "2026-10-01T00:00:00Z",
    })
}

fn smtp() -> Value {
    json!({
        "id": "smtp_1", "name": HOSTILE, "hint": "stxsmtp_...abcd", "enabled": true, "domain_id": null, "allowed_ips": [],
        "last_used_at": null, "last_used_ip": null, "expires_at": null, "created_at": "2026-10-01T00:00:00Z",
        "host": "smtp.example.com", "port": 465, "security": "tls", "username": "postrider",
    })
}

fn backend() -> FakeBackend {
    let log =
        json!({"operation": "send_email", "status": 200, "api_key_id": "key_1", "created_at": "2026-11-20T10:00:00Z"});
    FakeBackend::new()
        .answer("list_api_keys", json!({"api_keys": [key()], "next_cursor": "next&"}))
        .answer("get_api_key", json!({"api_key": key()}))
        .answer("create_api_key", json!({"api_key": key(), "secret": "rnl_secret"}))
        .answer("rotate_api_key", json!({"api_key": key(), "secret": "rnl_rotated"}))
        .answer("update_api_key", json!({"api_key": key()}))
        .answer("delete_api_key", json!({"ok": true}))
        .answer("get_smtp_credential", json!({"smtp_credential": smtp()}))
        .answer("create_smtp_credential", json!({"smtp_credential": smtp(), "password": "stx&secret"}))
        .answer("list_domains", json!({"domains": [{"id": "dom_1", "name": "example.com"}]}))
        .answer("list_logs", json!({"logs": [log], "next_cursor": null}))
}

#[test]
fn lists_show_keys_with_their_state() {
    let page = html(backend().get("/api-keys"));
    assert_harmless(&page);
    assert!(page.contains("Expired") && page.contains("cursor=next%26") && page.contains("Never"), "{page}");
    let empty = FakeBackend::new().answer("list_api_keys", json!({"api_keys": [], "next_cursor": null}));
    assert!(html(empty.get("/api-keys")).contains("Create the first API key"));
    let forbidden = FakeBackend::new().answer("list_api_keys", json!({"api_keys": []})).forbid("create_api_key");
    assert!(!html(forbidden.get("/api-keys")).contains("/dashboard/api-keys/new"));
}

#[test]
fn a_key_shows_what_it_did() {
    let page = html(backend().get("/api-keys/key_1"));
    assert_harmless(&page);
    assert!(
        page.contains("Allowed IP addresses") && html(backend().get("/api-keys/new")).contains("Allowed IP addresses")
    );
    assert!(page.contains("could have done all of this") && page.contains("203.0.113.7"), "{page}");
}

#[test]
fn secrets_are_shown_once() {
    let backend = backend();
    let fields = [("name", "shop"), ("scope", "sending"), ("domain_id", ""), ("allowed_ips", "10.0.0.1\n10.0.0.2")];
    let page = html(backend.post("/api-keys/new", "create", &fields));
    assert!(page.contains("<code>rnl_secret</code>") && page.contains("POSTRIDER_API_KEY=rnl_secret"), "{page}");
    let policy = json!({"recipients": [], "from": null, "sends_per_day": null, "categories": [], "approve": []});
    let allowed = ["10.0.0.1", "10.0.0.2"];
    let body = json!({"name": "shop", "scope": "sending", "allowed_ips": allowed, "policy": policy});
    assert_eq!(backend.calls("create_api_key")[0].body, CallBody::Json(body));
    let page = html(backend.post("/api-keys/key_1/rotate", "rotate", &[("grace_hours", "0")]));
    assert!(page.contains("<code>rnl_rotated</code>"), "{page}");
    assert_eq!(backend.calls("rotate_api_key")[0].body, CallBody::Json(json!({"grace_hours": 0})));
    let page = html(backend.post("/smtp-credentials/new", "create", &[("name", "blog")]));
    assert_harmless(&page);
    assert!(page.contains("smtps://postrider:stx%26secret@smtp.example.com:465"), "{page}");
}

#[test]
fn keys_are_changed_and_deleted_by_name() {
    let backend = backend();
    let path = location(backend.post("/api-keys/key_1", "switch", &[("enabled", "false")]));
    assert_eq!(path, "/dashboard/api-keys/key_1?done=changed");
    assert_eq!(backend.calls("update_api_key")[0].body, CallBody::Json(json!({"enabled": false})));
    backend.post("/api-keys/key_1/edit", "edit", &[("name", "new"), ("allowed_ips", "")]);
    let CallBody::Json(body) = &backend.calls("update_api_key")[1].body else { panic!("no body") };
    assert_eq!((&body["name"], &body["allowed_ips"]), (&json!("new"), &json!([])));
    assert_eq!(body["policy"]["recipients"], json!([]), "an empty field removes the rule");
    let refused = backend.post("/api-keys/key_1/delete", "delete", &[("confirm", "other")]);
    assert_eq!(refused.status, 400);
    assert!(html(refused).contains("This is not the name") && backend.calls("delete_api_key").is_empty());
    assert_eq!(
        location(backend.post("/api-keys/key_1/delete", "delete", &[("confirm", HOSTILE)])),
        "/dashboard/api-keys?done=deleted"
    );
    assert_eq!(backend.calls("delete_api_key").len(), 1);
}

#[test]
fn a_second_use_of_a_form_makes_no_second_secret() {
    let backend = backend();
    for (path, form, operation) in
        [("/api-keys/new", "create", "create_api_key"), ("/api-keys/key_1/rotate", "rotate", "rotate_api_key")]
    {
        let fields = [("name", "shop"), ("grace_hours", "1"), ("form_key", operation)];
        let page = html(backend.post(path, form, &fields));
        assert!(page.contains("data-location=\"/dashboard/api-keys/key_1\""), "{page}");
        assert!(html(backend.post(path, form, &fields)).contains("This form was already sent"), "{path}");
        assert_eq!(backend.calls(operation).len(), 1);
    }
    // A form that was refused can be sent again.
    let failure = Failure { status: 403, message: "No".into(), ..Failure::default() };
    let refused = self::backend().refuse("create_api_key", failure);
    let fields = [("name", "shop"), ("form_key", "refused")];
    for _ in 0..2 {
        assert_eq!(refused.post("/api-keys/new", "create", &fields).status, 403);
    }
}
