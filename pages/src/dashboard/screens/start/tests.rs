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
    // The usage of the month says that emails were sent.
    assert!(page.contains("1 of 6 done") && page.contains("/dashboard/domains/new"), "{page}");
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
            json!({"data": [{"id": "prn_1", "status": "draft", "payouts_count": 1}]}),
        );
    let page = html(backend.get(""));
    assert_harmless(&page);
    assert!(page.contains("It has 1 payout. Partners are paid when you approve it."), "{page}");
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
fn nobody_is_told_to_do_what_the_role_forbids() {
    let approval = json!({"id": "apr_1", "operation": "send_email", "expires_at": "2026-11-27T09:00:00Z"});
    let mut runs = vec![json!({"id": "prn_2", "status": "draft", "payouts_count": 2})];
    runs.push(json!({"id": "prn_1", "status": "completed", "partial": true}));
    let domain = |checked: Option<&str>| json!({"id": "dom_1", "name": "x.example", "last_checked_at": checked});
    let domains = [domain(None), domain(Some("2026-11-20T00:00:00Z"))];
    let owner = empty()
        .answer("list_domains", json!({"domains": domains}))
        .answer(
            "list_webhooks",
            json!({"webhooks": [{"id": "whk_1", "url": "https://x.example", "disabled_reason": "gone"}]}),
        )
        .answer(
            "list_api_keys",
            json!({"api_keys": [{
                "id": "key_1", "name": "shop", "enabled": true, "expires_at": "2026-11-19T01:00:00Z",
                "created_at": "2026-10-01T00:00:00Z",
            }]}),
        )
        .answer("list_approvals", json!({"approvals": [approval]}))
        .answer("get_affiliate_program", json!({"processor": {"failed_events": 1}}))
        .answer("list_affiliate_reviews", json!({"data": [{}]}))
        .answer("list_affiliates", json!({"data": [{}]}))
        .answer("list_affiliate_payout_runs", json!({"data": runs}));
    let orders = [
        ("verify_domain", "Publish its records, then verify."),
        ("verify_domain", "verify it again"),
        ("update_webhook", "Enable it again"),
        ("delete_api_key", "Create a new one"),
        ("approve_request", "your approval"),
        ("allow_affiliate_referral", "your review"),
        ("approve_affiliate", "Approve or reject them"),
        ("approve_affiliate_payout_run", "when you approve it"),
        ("mark_affiliate_payout_paid", "pay them another way"),
        ("replay_affiliate_processor_event", "replay them."),
    ];
    let page = html(owner.get(""));
    assert!(orders.iter().all(|(_, order)| page.contains(*order)), "{page}");
    let viewer = orders.into_iter().fold(owner, |backend, (operation, _)| backend.forbid(operation));
    let page = html(viewer.get(""));
    for (operation, order) in orders {
        assert!(!page.contains(order), "{operation}: {page}");
    }
    assert!(page.contains("1 event of the payment processor") && page.contains("when an owner approves it"), "{page}");
}

#[test]
fn a_request_that_another_role_decides_is_not_called_yours() {
    let approval =
        |id: &str, operation: &str| json!({"id": id, "operation": operation, "expires_at": "2026-11-27T09:00:00Z"});
    let requests = [approval("apr_2", "send_email"), approval("apr_1", "update_affiliate_campaign")];
    let owner = empty().answer("list_approvals", json!({"approvals": requests}));
    assert!(html(owner.get("")).contains("2 requests are waiting for your approval"));
    let page = html(owner.forbid_decision("update_affiliate_campaign").get(""));
    assert!(page.contains("2 requests are waiting for approval"), "{page}");
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

#[test]
fn steps_lead_to_forms_that_the_role_may_send() {
    let mut account = account("free");
    account["limits"]["retention_days"] = json!(30);
    account["usage"]["emails_month"] = json!(0);
    let forms = [
        ("create_domain", "/dashboard/domains/new"),
        ("create_api_key", "/dashboard/api-keys/new"),
        ("send_email", "/dashboard/emails/new"),
        ("create_webhook", "/dashboard/webhooks/new"),
    ];
    let owner = empty().answer("get_account", account.clone());
    let page = html(owner.get(""));
    assert!(forms.iter().all(|(_, path)| page.contains(*path)), "{page}");
    let viewer = forms.into_iter().fold(owner, |backend, (operation, _)| backend.forbid(operation));
    let page = html(viewer.get(""));
    assert!(page.contains("0 of 6 done"), "{page}");
    for (operation, path) in forms {
        assert!(!page.contains(path), "{operation}: {page}");
    }
}

#[test]
fn what_waits_for_a_decision_is_named() {
    let approval = |id: &str, hour: u8| json!({"id": id, "operation": "send_email", "expires_at": format!("2026-11-27T{hour:02}:00:00Z")});
    let automation = |id: &str, name: &str, failed: u8| json!({"id": id, "name": name, "counts": {"failed": failed}});
    let failed_run = json!({"completed_at": "2026-11-25T12:00:00Z", "error": "The template is gone"});
    let backend = empty()
        .answer("list_approvals", json!({"approvals": [approval("apr_2", 11), approval("apr_1", 9)]}))
        .answer("get_affiliate_program", json!({"processor": null}))
        .answer("list_affiliates", json!({"data": [{}]}))
        .answer(
            "list_automations",
            json!({"automations": [automation("aut_1", "Trial", 2), automation("aut_2", "Calm", 0)]}),
        )
        .answer("list_automation_runs", json!({"runs": [failed_run]}));
    let page = html(backend.get(""));
    for text in [
        "2 requests are waiting for your approval",
        "by 27 Nov 2026, 09:00 UTC",
        "/dashboard/approvals?status=pending",
        "Partners are waiting for approval",
        "A run of Trial failed",
        "The template is gone",
        "/dashboard/automations/aut_1/runs?status=failed",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("A run of Calm failed"));
    let page = html(backend.answer("list_approvals", json!({"approvals": [approval("apr_1", 9)]})).get(""));
    assert!(page.contains("approval: Send an email") && page.contains("/dashboard/approvals/apr_1"), "{page}");
    let old_run = json!({"completed_at": "2026-11-18T12:00:00Z"});
    let backend = empty()
        .answer("list_automations", json!({"automations": [automation("aut_1", "Trial", 2)]}))
        .answer("list_automation_runs", json!({"runs": [old_run]}));
    assert!(!html(backend.get("")).contains("A run of Trial failed"), "a failure of last week");
}

#[test]
fn emails_that_are_no_longer_retained_count_as_sent() {
    let mut account = account("free");
    account["limits"]["retention_days"] = json!(30);
    account["usage"]["emails_month"] = json!(0);
    let backend = empty().answer("get_account", account);
    let page = html(backend.get(""));
    assert!(page.contains("Send the first one") && page.contains("0 of 6 done"), "{page}");
    let backend = backend.answer("get_email_metrics", json!({"metrics": {"totals": {"sent": 7}, "rows": []}}));
    let page = html(backend.get(""));
    assert!(page.contains("1 of 6 done") && page.contains("No emails in the last 30 days."), "{page}");
    assert!(!page.contains("Send the first one"), "{page}");
    let page = html(backend.get("/emails"));
    assert!(page.contains("No emails in the last 30 days") && page.contains("Write an email"), "{page}");
    assert!(!page.contains("No emails yet"), "{page}");
}

#[test]
fn an_email_has_the_time_of_its_sending() {
    let email = |status: &str, scheduled: Option<&str>, sent: Option<&str>| {
        json!({"id": "msg_1", "from": "a@example.com", "to": ["b@example.net"], "status": status, "scheduled_at": scheduled,
            "created_at": "2026-11-01T01:00:00Z", "sent_at": sent})
    };
    let (due, sent) = ("2026-12-01T02:00:00Z", "2026-11-03T03:00:00Z");
    let emails = json!([
        email("scheduled", Some(due), None),
        email("cancelled", Some(due), None),
        email("delivered", None, Some(sent))
    ]);
    let backend = empty().answer("list_emails", json!({"emails": emails, "next_cursor": null}));
    for target in ["", "/emails"] {
        let page = html(backend.get(target));
        assert!(!page.contains("2026-11-01T01"), "the time of creation: {page}");
        assert_eq!(page.matches("due <time datetime=\"2026-12-01T02").count(), 1, "{page}");
        assert!(page.contains("2026-11-03T03") && page.contains("\"dash\">–"), "{page}");
    }
}
