//! Tests of the start page, with fixed answers of the API.

use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};
use crate::dashboard::prelude::*;

fn account(plan: &str) -> serde_json::Value {
    json!({
        "account": {"plan": plan, "access_level": "production", "suspended": false, "features": {"affiliates": true}},
        "limits": {"emails_per_month": 1_000, "storage": {"webhooks": 5}},
        "usage": {"emails_month": 900, "storage": {"webhooks": 5}},
    })
}

fn empty() -> FakeBackend {
    FakeBackend::new()
        .answer("get_account", account("free"))
        .answer("list_domains", json!({"domains": []}))
        .answer("list_api_keys", json!({"api_keys": []}))
        .answer("list_emails", json!({"emails": []}))
        .answer("list_webhooks", json!({"webhooks": []}))
        .answer("list_users", json!({"users": [{}]}))
}

#[test]
fn an_empty_account_begins_with_a_domain() {
    let page = html(empty().get(""));
    assert!(page.contains("0 of 6 done") && page.contains("/dashboard/domains/new"), "{page}");
    assert!(page.contains("almost used up: 90%") && page.contains("The webhooks are used up"), "{page}");
}

#[test]
fn what_needs_attention_is_named() {
    let record = json!({"type": "TXT", "name": HOSTILE, "required": true, "status": "missing", "error": null});
    let domain = json!({"id": "dom_1", "name": HOSTILE, "degraded_since": "2026-11-20T00:00:00Z", "records": [record]});
    let backend = empty()
        .answer("get_account", account("pro"))
        .answer("list_domains", json!({"domains": [domain]}))
        .answer(
            "list_webhooks",
            json!({"webhooks": [{"id": "whk_1", "url": "https://x.example", "disabled_reason": "failing"}]}),
        )
        .answer("get_affiliate_program", json!({"processor": {"failed_events": 2}}))
        .answer("list_affiliate_reviews", json!({"data": [{}]}))
        .answer(
            "list_affiliate_payout_runs",
            json!({"data": [{"id": "prn_1", "status": "draft", "payouts_count": 3}]}),
        );
    let page = html(backend.get(""));
    assert_harmless(&page);
    for text in [
        "will lose its verification",
        "is turned off",
        "are waiting for your review",
        "is waiting for approval",
        "2 events",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn a_role_sees_what_it_may_read() {
    let backend = empty().forbid("list_api_keys").forbid("list_users").forbid("get_account");
    let page = html(backend.get(""));
    assert!(page.contains("0 of 3 done") && !page.contains("Usage"), "{page}");
    assert!(backend.calls("list_api_keys").is_empty());
    let broken = Failure { status: 503, message: "Later".into(), ..Failure::default() };
    assert_eq!(empty().refuse("list_emails", broken).get("").status, 503);
}
