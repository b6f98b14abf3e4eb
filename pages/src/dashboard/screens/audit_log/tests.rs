//! The page of the audit log, with fixed answers.

use serde_json::json;

use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};

#[test]
fn entries_are_shown_with_actor_and_result() {
    let entry = |status: u16, code: Option<&str>| {
        json!({
            "id": "req_1", "operation": "delete_domain", "object_id": "dom_1", "path": format!("/domains/{HOSTILE}"),
            "status": status, "error_code": code, "surface": "api", "api_key_id": "key_1", "user_id": null,
            "ip": "192.0.2.1", "created_at": "2026-11-26T10:00:00Z",
        })
    };
    let entries = json!([entry(200, None), entry(403, Some("policy_violation"))]);
    let backend = FakeBackend::new().answer("list_audit_log", json!({"entries": entries, "next_cursor": null}));
    let backend = backend.answer("list_api_keys", json!({"api_keys": [{"id": "key_1", "name": "shop-backend"}]}));
    let page = html(backend.get("/audit-log?operation=delete_domain"));
    assert_harmless(&page);
    for text in ["Delete a domain", "Policy violation", "?api_key_id=key_1\">shop-backend<", "192.0.2.1"] {
        assert!(page.contains(text), "{text}");
    }
}
