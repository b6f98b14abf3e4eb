//! The pages of approvals, with fixed answers.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::CallBody;
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

fn approval(status: &str) -> Value {
    json!({
        "id": "apr_1", "status": status, "kind": "send", "client_id": "key_1", "operation": "send_email", "method": "POST",
        "path": format!("/emails?x={HOSTILE}"), "body": json!({"subject": HOSTILE}).to_string(),
        "idempotency_key": HOSTILE, "if_match": HOSTILE,
        "emails": [{
            "from": HOSTILE, "recipients": ["eve@evil.example"], "to": [HOSTILE], "subject": HOSTILE, "text": HOSTILE,
            "html": format!("<p>{HOSTILE}</p>"), "category": "transactional",
            "attachments": [{"name": HOSTILE, "content_type": "text/plain", "size_bytes": 7, "sha256": "cd".repeat(32)}],
            "headers": [{"name": "X-Note", "value": HOSTILE}],
        }],
        "hash": "ab".repeat(32),
        "url": "https://x/", "created_at": "2026-11-26T10:00:00Z", "expires_at": "2026-11-27T10:00:00Z",
        "response_status": (status == "executed").then_some(200),
        "response": (status == "executed").then(|| json!({"id": HOSTILE})),
    })
}

fn backend(status: &str) -> FakeBackend {
    FakeBackend::new()
        .answer("list_approvals", json!({"approvals": [approval(status)], "next_cursor": null}))
        .answer("get_approval", json!({"approval": approval(status)}))
        .answer("approve_request", json!({"approval": approval("executed")}))
        .answer("reject_request", json!({"approval": approval("rejected")}))
}

#[test]
fn a_request_is_shown_whole_and_harmless() {
    for status in ["pending", "executed", "failed", "interrupted", "expired"] {
        let backend = backend(status);
        let list = html(backend.get("/approvals"));
        assert!(list.contains("Send an email") && list.contains("value=\"pending\">Waiting for a decision<"), "{list}");
        let page = html(backend.get("/approvals/apr_1"));
        assert_harmless(&page);
        for part in ["eve@evil.example", "iframe sandbox=", "Idempotency key", "If-Match", "X-Note: ", "SHA-256 cdcd"] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.contains("Approve and carry out"), status == "pending", "{status}");
    }
}

#[test]
fn a_role_that_may_not_decide_gets_no_buttons() {
    let viewer = backend("pending").forbid_decision("send_email");
    let page = html(viewer.get("/approvals/apr_1"));
    assert!(!page.contains("Approve and carry out") && !page.contains("Your decision"), "{page}");
}

#[test]
fn the_decision_names_the_hash_that_was_shown() {
    let backend = backend("pending");
    assert!(html(backend.get("/approvals/apr_1")).contains(&"ab".repeat(32)));
    for (form, operation) in [("approve", "approve_request"), ("reject", "reject_request")] {
        let answer = backend.post("/approvals/apr_1", form, &[("hash", "cd")]);
        assert!(location(answer).starts_with("/dashboard/approvals/apr_1"));
        let calls = backend.calls(operation);
        let call = calls.last().unwrap();
        let CallBody::Json(body) = &call.body else { panic!("no body") };
        assert_eq!(body["hash"], "cd", "what the person saw, not what is stored now");
    }
}

#[test]
fn the_html_of_an_email_is_foreign() {
    let backend = backend("pending");
    let PageContent::Foreign { html, .. } = backend.get("/approvals/apr_1/html/0").content else {
        panic!("not foreign")
    };
    assert!(html.contains(HOSTILE), "it is shown in a frame without rights");
    assert_eq!(backend.get("/approvals/apr_1/html/1").status, 404);
}
