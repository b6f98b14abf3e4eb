//! The operations that a key can call: a sending key, and a key that is bound to a domain. An operation that is
//! missing in this table fails the test, so that each new one is a decision.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::world::World;
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Whether a sending key can call the operations, and whether a full key that is bound to a domain can.
const REACH: &[(bool, bool, &[&str])] = &[
    (
        true,
        true,
        &[
            "send_email",
            "send_batch",
            "list_emails",
            "get_email",
            "update_email",
            "cancel_email",
            "resend_email",
            "list_email_events",
            "list_email_attempts",
            "list_approvals",
            "get_approval",
        ],
    ),
    (
        false,
        true,
        &[
            "test_event",
            "get_email_raw",
            "get_domain",
            "get_domain_zone_file",
            "verify_domain",
            "list_received_emails",
            "get_received_email",
            "get_received_email_raw",
            "get_received_email_attachment",
            "get_email_attachment",
            "reply_to_received_email",
            "forward_received_email",
            "delete_received_email",
            "get_domain_dmarc",
        ],
    ),
    (true, false, &["send_event", "list_events", "get_event"]),
    (
        false,
        false,
        &[
            "get_email_metrics",
            "count_events",
            "get_funnel",
            "list_conversions",
            "count_visits",
            "create_affiliate_login_link",
            "get_account",
            "list_logs",
            "get_log",
            "create_api_key",
            "list_api_keys",
            "get_api_key",
            "update_api_key",
            "delete_api_key",
            "rotate_api_key",
            "create_smtp_credential",
            "list_smtp_credentials",
            "get_smtp_credential",
            "update_smtp_credential",
            "delete_smtp_credential",
            "rotate_smtp_credential",
            "create_domain",
            "list_domains",
            "update_domain",
            "delete_domain",
            "rotate_domain_dkim",
            "create_domain_claim",
            "apply_domain_dns",
            "connect_domain_dns",
            "cancel_domain_dkim_rotation",
            "list_dns_credentials",
            "save_dns_credentials",
            "delete_dns_credentials",
            "list_domain_claims",
            "get_domain_claim",
            "cancel_domain_claim",
            "verify_domain_claim",
            "list_suppressions",
            "create_suppression",
            "check_suppressions",
            "import_suppressions",
            "get_suppression_import",
            "dry_run_suppression_import",
            "list_suppression_imports",
            "export_suppressions",
            "get_suppression",
            "delete_suppression",
            "list_category_opt_outs",
            "create_category_opt_out",
            "delete_category_opt_out",
            "create_template",
            "list_templates",
            "get_template",
            "update_template",
            "delete_template",
            "publish_template",
            "list_template_versions",
            "get_template_version",
            "roll_back_template",
            "preview_template",
            "test_template",
            "duplicate_template",
            "create_webhook",
            "list_webhooks",
            "get_webhook",
            "update_webhook",
            "delete_webhook",
            "rotate_webhook_secret",
            "test_webhook",
            "list_webhook_deliveries",
            "get_webhook_delivery",
            "replay_webhook_delivery",
            "replay_webhook_deliveries",
            "list_webhook_events",
            "create_automation",
            "list_automations",
            "get_automation",
            "update_automation",
            "delete_automation",
            "duplicate_automation",
            "list_automation_versions",
            "list_automation_runs",
            "get_automation_run",
            "cancel_automation_run",
            "dry_run_automation",
            "replay_automation",
            "count_automation_steps",
            "list_affiliates",
            "create_affiliate",
            "get_affiliate",
            "update_affiliate",
            "delete_affiliate",
            "approve_affiliate",
            "reject_affiliate",
            "suspend_affiliate",
            "list_affiliate_links",
            "create_affiliate_link",
            "delete_affiliate_link",
            "list_affiliate_campaigns",
            "create_affiliate_campaign",
            "get_affiliate_campaign",
            "update_affiliate_campaign",
            "list_affiliate_referrals",
            "create_affiliate_referral",
            "get_affiliate_referral",
            "list_affiliate_commissions",
            "get_affiliate_commission",
            "reverse_affiliate_commission",
            "list_affiliate_payouts",
            "get_affiliate_payout",
            "mark_affiliate_payout_paid",
            "list_grants",
            "get_grant",
            "revoke_grant",
            "list_audit_log",
        ],
    ),
];

async fn key(world: &World, body: Value) -> String {
    let made = world.post("/api-keys", body.to_string()).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    made.json()["secret"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn keys_reach_exactly_the_listed_operations() {
    let world = World::start().await;
    let account = world.tenant().await.account().id;
    let domain = world.domain(account).await.id;
    let sending = key(&world, json!({"name": "s", "scope": "sending"})).await;
    let bound = key(&world, json!({"name": "b", "scope": "full", "domain_id": domain})).await;
    let both = key(&world, json!({"name": "c", "scope": "sending", "domain_id": domain})).await;
    let expected: BTreeMap<&str, (bool, bool)> =
        REACH.iter().flat_map(|(s, b, ids)| ids.iter().map(move |id| (*id, (*s, *b)))).collect();
    let mut collected = 0;
    for operation in api::operations::operation_table() {
        if operation.scope().is_none() {
            continue;
        }
        let (by_sending, by_bound) = *expected.get(operation.id).unwrap_or_else(|| panic!("{}", operation.id));
        collected += 1;
        let mut path = operation.path.to_owned();
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, "1");
        }
        for (key, may) in [(&sending, by_sending), (&bound, by_bound), (&both, by_sending && by_bound)] {
            let response = world.call_as(key, operation.method.clone(), &path, &json!({})).await;
            let refused = response.status == StatusCode::FORBIDDEN;
            assert_eq!(!refused, may, "{} {}: {response:?}", operation.method, operation.path);
            assert!(!refused || response.code() == "forbidden");
        }
    }
    assert_eq!(collected, expected.len());
    world.end().await;
}

#[tokio::test]
async fn sending_key_reads_no_content() {
    let mut world = World::start().await;
    let mail = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "secret",
                      "html": "<p>secret</p>", "headers": {"X-Code": "secret"}});
    let full = world.key.clone();
    world.key = key(&world, json!({"name": "s", "scope": "sending"})).await;
    let id = world.post("/emails", mail.to_string()).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/emails/{id}");
    assert_eq!(world.get_as(&full, &path).await.json()["email"]["text"], "secret");
    let view = world.get(&path).await;
    assert!(!String::from_utf8_lossy(&view.body).contains("secret"), "{view:?}");
    let email = view.json()["email"].clone();
    assert_eq!((&email["status"], &email["text"], &email["html"]), (&json!("sent"), &Value::Null, &Value::Null));
    // It may resend the email without seeing its content.
    assert_eq!(world.post(&format!("{path}/resend"), "").await.status, StatusCode::OK);
    world.end().await;
}

/// A sending key sees only email that it sent; a full key and a session see all.
#[tokio::test]
async fn sending_key_sees_only_its_own_emails() {
    let world = World::start().await;
    let sending = key(&world, json!({"name": "s", "scope": "sending"})).await;
    let other = key(&world, json!({"name": "t", "scope": "sending"})).await;
    let at = world.services.clock.now() + Duration::from_secs(3_600);
    let mail = |subject: &str| {
        json!({"from": "ada@example.com", "to": "b@example.net", "subject": subject, "text": "t",
               "scheduled_at": format!("{at:.3}")})
    };
    let mut ids = Vec::new();
    for (key, subject) in [(&world.key, "full"), (&sending, "own"), (&other, "other"), (&sending, "own")] {
        let sent = world.call_as(key, Method::POST, "/emails", &mail(subject)).await;
        ids.push(sent.json()["id"].as_str().unwrap().to_owned());
        world.services.clock.advance(Duration::from_millis(10));
    }
    let calls = |id: &str| {
        [
            (Method::GET, format!("/emails/{id}"), Value::Null),
            (Method::GET, format!("/emails/{id}/events"), Value::Null),
            (Method::GET, format!("/emails/{id}/attempts"), Value::Null),
            (
                Method::PATCH,
                format!("/emails/{id}"),
                json!({"scheduled_at": format!("{:.3}", at + Duration::from_secs(9))}),
            ),
            (Method::POST, format!("/emails/{id}/cancel"), json!({})),
            (Method::POST, format!("/emails/{id}/resend"), json!({})),
        ]
    };
    for (n, own) in [(0, false), (1, true), (2, false)] {
        for (method, path, body) in calls(&ids[n]) {
            let response = world.call_as(&sending, method.clone(), &path, &body).await;
            let status = if own { StatusCode::OK } else { StatusCode::NOT_FOUND };
            assert_eq!(response.status, status, "{method} {path}: {response:?}");
        }
    }
    // All pages, with and without a filter. One email was resent.
    let listed = async |key: &str, query: &str| {
        let (mut collected, mut next) = (Vec::new(), String::new());
        loop {
            let page = world.get_as(key, &format!("/emails?limit=1{query}{next}")).await.json();
            collected.extend(page["emails"].as_array().unwrap().iter().map(|email| email["subject"].clone()));
            match page["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => return collected,
            }
        }
    };
    assert_eq!(listed(&sending, "").await, ["own", "own", "own"]);
    assert_eq!(listed(&sending, "&status=scheduled&q=own").await, ["own"]);
    assert_eq!(listed(&sending, "&q=other").await, [""; 0]);
    assert_eq!(listed(&world.key, "").await, ["own", "own", "other", "own", "full"]);
    let session = world.session(1).await;
    let path = format!("/api/emails/{}", ids[2]);
    assert_eq!(world.call_with_session(&session, Method::GET, &path, &Value::Null).await.status, StatusCode::OK);
    world.end().await;
}
