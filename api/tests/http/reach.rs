//! What a key reaches, operation by operation: a key that may only send, and one that is bound to a domain.
//! An operation that is not in the table here fails the test: whoever adds one decides.

use std::collections::BTreeMap;

use crate::world::World;
use http::StatusCode;
use serde_json::{Value, json};

/// Whether a sending key may call it, and whether a full key that is bound to a domain may.
const REACH: &[(bool, bool, &[&str])] = &[
    (
        true,
        true,
        &[
            "send_email",
            "send_batch",
            "list_emails",
            "get_email",
            "amend_email",
            "cancel_email",
            "resend_email",
            "list_email_events",
            "list_email_attempts",
        ],
    ),
    (false, true, &["test_event", "get_email_raw", "get_domain", "get_domain_zone_file", "verify_domain"]),
    (
        false,
        false,
        &[
            "get_email_metrics",
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
            "claim_domain",
            "get_domain_claim",
            "verify_domain_claim",
            "list_suppressions",
            "create_suppression",
            "check_suppressions",
            "import_suppressions",
            "get_suppression_import",
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
        ],
    ),
];

async fn key(world: &World, body: Value) -> String {
    let made = world.post("/api-keys", body.to_string()).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    made.json()["secret"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_key_reaches_what_the_table_says_and_no_more() {
    let world = World::start().await;
    let account = world.tenant().await.account().id;
    let domain = world.domain(account).await.id;
    let sending = key(&world, json!({"name": "s", "scope": "sending"})).await;
    let bound = key(&world, json!({"name": "b", "scope": "full", "domain_id": domain})).await;
    let both = key(&world, json!({"name": "c", "scope": "sending", "domain_id": domain})).await;
    let expected: BTreeMap<&str, (bool, bool)> =
        REACH.iter().flat_map(|(s, b, ids)| ids.iter().map(move |id| (*id, (*s, *b)))).collect();
    let mut seen = 0;
    for operation in api::operations::table() {
        if operation.scope().is_none() {
            continue;
        }
        let (by_sending, by_bound) =
            *expected.get(operation.id).unwrap_or_else(|| panic!("{}", operation.id));
        seen += 1;
        let mut path = operation.path.to_owned();
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, "1");
        }
        for (key, may) in [(&sending, by_sending), (&bound, by_bound), (&both, by_sending && by_bound)] {
            let answer = world.call_as(key, operation.method.clone(), &path, &json!({})).await;
            let refused = answer.status == StatusCode::FORBIDDEN;
            assert_eq!(!refused, may, "{} {}: {answer:?}", operation.method, operation.path);
            assert!(!refused || answer.code() == "forbidden");
        }
    }
    assert_eq!(seen, expected.len());
    world.end().await;
}

#[tokio::test]
async fn a_key_that_may_only_send_reads_nothing_that_was_written() {
    let mut world = World::start().await;
    let mail = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "secret",
                      "html": "<p>secret</p>", "headers": {"X-Code": "secret"}});
    let id = world.post("/emails", mail.to_string()).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/emails/{id}");
    assert_eq!(world.get(&path).await.json()["email"]["text"], "secret");
    world.key = key(&world, json!({"name": "s", "scope": "sending"})).await;
    let shown = world.get(&path).await;
    assert!(!String::from_utf8_lossy(&shown.body).contains("secret"), "{shown:?}");
    let email = shown.json()["email"].clone();
    assert_eq!(
        (&email["status"], &email["text"], &email["html"]),
        (&json!("sent"), &Value::Null, &Value::Null)
    );
    // It may send it again, and does not learn by that what it says.
    assert_eq!(world.post(&format!("{path}/resend"), "").await.status, StatusCode::OK);
    world.end().await;
}
