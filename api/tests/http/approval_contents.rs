//! Contents of held requests: a request is checked and resolved when it is held, sent exactly so, stored encrypted, and
//! deleted; its sends count from then on.

use std::time::Duration;

use api::approval_tasks::{end_contents, execute_approved};
use http::{Method, StatusCode};
use model::approval::{
    Approval, ApprovalState, CLIENT_HELD_PER_DAY_MAX, CLIENT_PENDING_BYTES_MAX, CLIENT_PENDING_MAX, DECISION_TIME,
    EXECUTED_CONTENT_TIME, HELD_PER_DAY_MAX, HeldRequest, PENDING_BYTES_MAX, PENDING_MAX,
};
use model::client_policy::ApprovalKind;
use model::credential::CredentialId;
use model::id::{ApiKeyId, ApprovalId};
use serde_json::{Value, json};
use store::engine::Batch;

use crate::approvals::{decide, email_to, key_with_policy, read_held, sent};
use crate::received::arrive;
use crate::world::World;

async fn publish_template(world: &World, subject: &str) {
    let template = json!({
        "name": "Bill", "alias": "bill", "subject": subject, "text": "You owe {{sum}}", "from": "ada@example.com",
    });
    match world.get("/templates/bill").await.status {
        StatusCode::OK => world.call(Method::PATCH, "/templates/bill", &json!({"subject": subject})).await,
        _ => world.call(Method::POST, "/templates", &template).await,
    };
    let published = world.call(Method::POST, "/templates/bill/publish", &json!({})).await;
    assert_eq!(published.status, StatusCode::OK, "{:?}", published.json());
}

fn bill() -> Value {
    json!({"to": ["grace@example.net"], "template": "bill", "variables": {"sum": "7 EUR"}})
}

async fn stored_content(world: &World, approval: &Value) -> Option<Vec<u8>> {
    let id: ApprovalId = approval["id"].as_str().unwrap().parse().unwrap();
    let account = world.tenant().await.account().id;
    store::approval::get_content(&world.services.store, account, id).await.unwrap().map(|content| content.to_vec())
}

#[tokio::test]
async fn a_person_sees_recipients_and_content_of_every_kind_of_send() {
    let world = World::start().await;
    publish_template(&world, "Your bill").await;
    let received = arrive(&world, 1, |_| {}).await.id;
    let first = world.call(Method::POST, "/emails", &email_to("old@example.net")).await.json();
    world.services.clock.advance(Duration::from_secs(60));
    let (_, secret) = key_with_policy(&world, "full", json!({"approve": ["send"]})).await;
    let resend = format!("/emails/{}/resend", first["id"].as_str().unwrap());
    let (reply, forward) =
        (format!("/received-emails/{received}/reply"), format!("/received-emails/{received}/forward"));
    let batch = json!({"emails": [email_to("a@example.net"), email_to("b@example.net")]});
    let cases = [
        ("/emails".to_owned(), bill(), "ada@example.com", json!(["grace@example.net"]), "Your bill", "You owe 7 EUR"),
        (reply, json!({"text": "Yes"}), "help@example.com", json!(["ada@far.example"]), "Re: Hi", "Yes"),
        (forward, json!({"to": "x@example.net"}), "help@example.com", json!(["x@example.net"]), "Fwd: Hi", "Forwarded"),
        ("/emails/batch".to_owned(), batch, "ada@example.com", json!(["a@example.net"]), "Hello", "Hi"),
        (
            "/templates/bill/test-send".to_owned(),
            json!({"to": "t@example.net", "variables": {"sum": "1"}}),
            "ada@example.com",
            json!(["t@example.net"]),
            "Your bill",
            "You owe 1",
        ),
    ];
    for (path, body, from, recipients, subject, text) in cases {
        let held = world.call_as(&secret, Method::POST, &path, &body).await;
        let approval = read_held(&world, &secret, &held).await;
        let email = &approval["emails"][0];
        assert_eq!((&email["from"], &email["recipients"]), (&json!(from), &recipients), "{path}: {approval}");
        assert_eq!(email["subject"], subject, "{path}");
        assert!(email["text"].as_str().unwrap().contains(text), "{path}: {email}");
    }
    // The first email is still in the queue here, so it cannot be sent again: that is said at once.
    let resent = world.call_as(&secret, Method::POST, &resend, &json!({})).await;
    assert_ne!(resent.status, StatusCode::OK);
    assert_eq!(sent(&world).await, 1);
    world.end().await;
}

#[tokio::test]
async fn what_changed_after_the_approval_was_asked_is_not_sent() {
    let world = World::start().await;
    publish_template(&world, "Your bill").await;
    let (_, secret) = key_with_policy(&world, "full", json!({"approve": ["send"], "sends_per_day": 1})).await;
    let session = world.session(1).await;
    let hold = async || {
        let held = world.call_as(&secret, Method::POST, "/emails", &bill()).await;
        read_held(&world, &secret, &held).await
    };
    let approval = hold().await;
    publish_template(&world, "Your other bill").await;
    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await.json()["approval"].clone();
    assert_eq!((&done["status"], &done["error_code"]), (&json!("failed"), &json!("conflict")), "{done}");
    let reason = done["response"]["error"]["message"].as_str().unwrap();
    assert!(reason.contains("differs from the one that was approved"), "{reason}");
    assert_eq!(sent(&world).await, 0);
    // Its sends were given back; what is shown now is sent.
    let approval = hold().await;
    assert_eq!(approval["emails"][0]["subject"], "Your other bill");
    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await.json()["approval"].clone();
    assert_eq!((&done["status"], sent(&world).await), (&json!("executed"), 1), "{done}");
    world.end().await;
}

#[tokio::test]
async fn a_request_that_would_be_refused_is_refused_at_once() {
    let world = World::start().await;
    let policy = json!({"approve": ["send", "delete", "manage"], "recipients": ["*@example.net"]});
    let (_, secret) = key_with_policy(&world, "full", policy).await;
    let bad_item = json!({"emails": [email_to("a@example.net"), {"from": "ada@example.com", "to": "x"}]});
    for (path, body, status, code) in [
        ("/emails", json!({"from": "ada@example.com", "to": "no address"}), 400, "validation_error"),
        ("/emails", bill(), 404, "not_found"),
        ("/emails", email_to("eve@evil.example"), 403, "policy_violation"),
        ("/emails/batch", bad_item, 400, "validation_error"),
        ("/templates", json!({"subject": 7}), 400, "validation_error"),
        ("/webhooks", json!({"url": "x", "events": ["no.such"]}), 403, "policy_violation"),
    ] {
        let response = world.call_as(&secret, Method::POST, path, &body).await;
        assert_eq!((response.status.as_u16(), response.code().as_str()), (status, code), "{path} {body}");
    }
    let mut other = email_to("grace@example.net");
    other["from"] = json!("ada@foreign.example");
    assert_eq!(world.call_as(&secret, Method::POST, "/emails", &other).await.code(), "domain_not_verified");
    assert_eq!(world.get("/approvals").await.json()["approvals"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn the_content_is_encrypted_and_deleted() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let hold = async || {
        let held = world.call_as(&secret, Method::POST, "/emails", &email_to("grace@example.net")).await;
        read_held(&world, &secret, &held).await
    };
    let session = world.session(1).await;
    let (rejected, executed, expired) = (hold().await, hold().await, hold().await);
    let content = stored_content(&world, &rejected).await.unwrap();
    assert!(!content.windows(5).any(|part| part == b"grace"), "it is readable");
    decide(&world, &session, &rejected, "reject", &rejected["hash"]).await;
    assert_eq!(stored_content(&world, &rejected).await, None);
    decide(&world, &session, &executed, "approve", &executed["hash"]).await;
    let content = stored_content(&world, &executed).await.unwrap();
    assert!(!content.windows(4).any(|part| part == b"msg_"), "the response is readable");
    let read = async |approval: &Value| {
        world.get(&format!("/approvals/{}", approval["id"].as_str().unwrap())).await.json()["approval"].clone()
    };
    assert_eq!(read(&executed).await["body"], executed["body"]);

    world.services.clock.advance(DECISION_TIME.max(EXECUTED_CONTENT_TIME) + Duration::from_secs(1));
    end_contents(&world.server).await.unwrap();
    for (approval, status) in [(&rejected, "rejected"), (&executed, "executed"), (&expired, "expired")] {
        assert_eq!(stored_content(&world, approval).await, None, "{status}");
        let shown = read(approval).await;
        assert_eq!((&shown["status"], &shown["body"], &shown["emails"]), (&json!(status), &Value::Null, &Value::Null));
        assert_eq!(shown["hash"], approval["hash"], "the hash is kept");
    }
    world.end().await;
}

#[tokio::test]
async fn sends_are_counted_when_they_are_held() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"], "sends_per_day": 2})).await;
    let session = world.session(1).await;
    let hold = async || world.call_as(&secret, Method::POST, "/emails", &email_to("grace@example.net")).await;
    let first = read_held(&world, &secret, &hold().await).await;
    let second = read_held(&world, &secret, &hold().await).await;
    let refused = hold().await;
    assert_eq!(refused.json()["error"]["details"]["rule"], "sends_per_day", "{:?}", refused.json());
    // A rejected one gives its sends back.
    decide(&world, &session, &first, "reject", &first["hash"]).await;
    let third = read_held(&world, &secret, &hold().await).await;
    for approval in [&second, &third] {
        let done = decide(&world, &session, approval, "approve", &approval["hash"]).await.json();
        assert_eq!(done["approval"]["status"], "executed", "{done}");
    }
    assert_eq!((sent(&world).await, hold().await.code().as_str()), (2, "policy_violation"));
    execute_approved(&world.server).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn a_held_batch_stops_at_its_size() {
    let world = World::start().await;
    let template = json!({
        "name": "Long", "alias": "long", "subject": "s", "text": "x".repeat(400 << 10), "from": "ada@example.com",
    });
    assert_eq!(world.call(Method::POST, "/templates", &template).await.status, StatusCode::OK);
    assert_eq!(world.call(Method::POST, "/templates/long/publish", &json!({})).await.status, StatusCode::OK);
    let (_, secret) = key_with_policy(&world, "full", json!({"approve": ["send"]})).await;
    let email = |template: &str| json!({"to": "grace@example.net", "template": template});
    // The unknown template is not reached.
    let emails = [email("long"), email("long"), email("long"), email("missing")];
    let held = world.call_as(&secret, Method::POST, "/emails/batch", &json!({"emails": emails})).await;
    assert_eq!((held.status, held.code().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"));
    world.end().await;
}

#[tokio::test]
async fn a_batch_keeps_its_validation() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let session = world.session(1).await;
    let suppressed = json!({"email": "b@example.net"});
    assert_eq!(world.call(Method::POST, "/suppressions", &suppressed).await.status, StatusCode::OK);
    let body = json!([email_to("a@example.net"), email_to("b@example.net")]).to_string();
    let request = http::Request::post("/emails/batch")
        .header("host", "test")
        .header("authorization", format!("Bearer {secret}"))
        .header("content-type", "application/json")
        .header("batch-validation", "strict");
    let held = world.send(request.body(http_body_util::Full::new(body.into())).unwrap()).await;
    let approval = read_held(&world, &secret, &held).await;
    assert_eq!(approval["emails"].as_array().unwrap().len(), 2);
    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await.json();
    assert_eq!((&done["approval"]["status"], sent(&world).await), (&json!("failed"), 0), "{done}");
    world.end().await;
}

#[tokio::test]
async fn partner_money_is_approved_by_who_may_release_it() {
    let world = World::start().await;
    let policy = json!({"recipients": ["*@example.net"]});
    let (_, limited) = key_with_policy(&world, "full", policy).await;
    let (_, asks) = key_with_policy(&world, "full", json!({"approve": ["manage"]})).await;
    let campaign = json!({"name": "c", "commission_type": "percent", "commission_bps": 9_000, "recurring_months": 12});
    let refused = world.call_as(&limited, Method::POST, "/affiliate-campaigns", &campaign).await;
    assert_eq!(refused.json()["error"]["details"]["rule"], "money", "{:?}", refused.json());
    let held = world.call_as(&asks, Method::POST, "/affiliate-campaigns", &campaign).await;
    let approval = read_held(&world, &asks, &held).await;
    let session = world.session(1).await;
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    let stale = decide(&world, &session, &approval, "approve", &approval["hash"]).await;
    assert_eq!(stale.code(), "reauthentication_required");
    let developer = crate::oauth::user_with_role(&world, model::user::UserRole::Developer).await.1;
    let refused = decide(&world, &developer, &approval, "approve", &approval["hash"]).await;
    assert_eq!(refused.code(), "forbidden");
    world.end().await;
}

#[tokio::test]
async fn a_policy_is_loosened_only_with_a_recent_proof_of_identity() {
    let world = World::start().await;
    let (id, _) = key_with_policy(&world, "full", json!({"sends_per_day": 5})).await;
    let session = world.session(1).await;
    let path = format!("/api/api-keys/{id}");
    let change =
        async |policy: Value| world.call_with_session(&session, Method::PATCH, &path, &json!({"policy": policy})).await;
    assert_eq!(change(json!({"sends_per_day": 6})).await.status, StatusCode::OK);
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    for looser in [json!(null), json!({"sends_per_day": 7}), json!({"recipients": ["*@example.net"]})] {
        let refused = change(looser.clone()).await;
        assert_eq!(refused.code(), "reauthentication_required", "{looser}");
    }
    let stricter = change(json!({"sends_per_day": 4, "approve": ["send"]})).await;
    assert_eq!(stricter.status, StatusCode::OK, "{:?}", stricter.json());
    let renamed = world.call_with_session(&session, Method::PATCH, &path, &json!({"name": "renamed"})).await;
    assert_eq!(renamed.json()["api_key"]["policy"]["sends_per_day"], 4);
    world.end().await;
}

#[tokio::test]
async fn addresses_are_added_and_keys_enabled_only_with_a_recent_proof_of_identity() {
    let world = World::start().await;
    let session = world.session(1).await;
    for (list, field) in [("api-keys", "api_key"), ("smtp-credentials", "smtp_credential")] {
        let mut create = json!({"name": "n", "allowed_ips": ["192.0.2.0/24"]});
        if list == "api-keys" {
            create["scope"] = "sending".into();
        }
        let created = world.call(Method::POST, &format!("/{list}"), &create).await.json();
        let path = format!("/api/{list}/{}", created[field]["id"].as_str().unwrap());
        let change = async |body: Value| world.call_with_session(&session, Method::PATCH, &path, &body).await;
        assert_eq!(change(json!({"enabled": false})).await.status, StatusCode::OK);
        world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
        for looser in [
            json!({"allowed_ips": []}),
            json!({"allowed_ips": ["192.0.2.0/24", "198.51.100.1"]}),
            json!({"allowed_ips": ["192.0.0.0/16"]}),
            json!({"enabled": true}),
        ] {
            assert_eq!(change(looser.clone()).await.code(), "reauthentication_required", "{path}: {looser}");
        }
        let stricter = change(json!({"allowed_ips": ["192.0.2.7"], "enabled": false})).await;
        assert_eq!(stricter.status, StatusCode::OK, "{:?}", stricter.json());
        // A key needs no proof.
        let by_key = world.call(Method::PATCH, path.strip_prefix("/api").unwrap(), &json!({"enabled": true})).await;
        assert_eq!(by_key.status, StatusCode::OK);
    }
    world.end().await;
}

/// Stores pending approvals of a key with contents of this length, as the API does.
async fn fill(world: &World, key: ApiKeyId, number: u32, made_ago: Duration, content_bytes: usize) {
    let (store, now) = (&world.services.store, world.services.clock.now());
    let account = world.tenant().await.account().id;
    let created_at = now.checked_sub(made_ago).unwrap();
    for n in 0..number {
        let request = HeldRequest {
            operation: "send_email".to_owned(),
            method: "POST".to_owned(),
            path: "/emails".to_owned(),
            query: String::new(),
            idempotency_key: None,
            headers: Vec::new(),
        };
        let approval = Approval {
            id: ApprovalId::new(created_at, n.into()),
            account,
            client: CredentialId::ApiKey(key),
            kind: ApprovalKind::Send,
            moves_money: false,
            request_hash: String::new(),
            fingerprint: None,
            hash: String::new(),
            request,
            reserved_sends: None,
            created_at,
            state: ApprovalState::Pending,
        };
        let usage = store::approval::usage(store, account, approval.client, now).await.unwrap();
        let mut batch = Batch::progress();
        store::approval::create(&mut batch, &approval, vec![0; content_bytes], None, &usage);
        store.commit(batch).await.unwrap();
    }
}

#[tokio::test]
async fn pending_requests_their_bytes_and_a_day_are_bounded() {
    let expired = DECISION_TIME + Duration::from_secs(1);
    let other_key = ApiKeyId::from_bytes([1; 16]);
    let limit = u32::try_from(PENDING_MAX).unwrap();
    let bytes = usize::try_from(PENDING_BYTES_MAX).unwrap();
    for (number, made_ago, content_bytes, code) in [
        (limit - 1, Duration::ZERO, 1, "conflict"),
        (31, Duration::ZERO, bytes / 31 - 2_000, "conflict"),
        (HELD_PER_DAY_MAX - 1, expired, 1, "rate_limit_exceeded"),
    ] {
        let world = World::start().await;
        let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
        fill(&world, other_key, number, made_ago, content_bytes).await;
        let mut email = email_to("grace@example.net");
        email["text"] = json!("x".repeat(if content_bytes > 1 { 20_000 } else { 1 }));
        let hold = async || world.call_as(&secret, Method::POST, "/emails", &email).await;
        let last = hold().await;
        assert_eq!(last.status, StatusCode::ACCEPTED, "{:?}", last.json());
        let refused = hold().await;
        assert_eq!(refused.code(), code, "{:?}", refused.json());
        assert_eq!(refused.headers.contains_key("retry-after"), code == "rate_limit_exceeded");
        world.end().await;
    }
}

#[tokio::test]
async fn a_client_may_use_a_quarter_of_the_limits() {
    let expired = DECISION_TIME + Duration::from_secs(1);
    let limit = u32::try_from(CLIENT_PENDING_MAX).unwrap();
    let bytes = usize::try_from(CLIENT_PENDING_BYTES_MAX).unwrap();
    for (number, made_ago, content_bytes, code) in [
        (limit - 1, Duration::ZERO, 1, "conflict"),
        (7, Duration::ZERO, bytes / 7 - 2_000, "conflict"),
        (CLIENT_HELD_PER_DAY_MAX - 1, expired, 1, "rate_limit_exceeded"),
    ] {
        let world = World::start().await;
        let (id, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
        let (_, other) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
        fill(&world, id.parse().unwrap(), number, made_ago, content_bytes).await;
        let mut email = email_to("grace@example.net");
        email["text"] = json!("x".repeat(if content_bytes > 1 { 9_000 } else { 1 }));
        let hold = async |secret: &str| world.call_as(secret, Method::POST, "/emails", &email).await;
        // The first reaches a limit of numbers, and exceeds that of bytes.
        if content_bytes == 1 {
            assert_eq!(hold(&secret).await.status, StatusCode::ACCEPTED);
        }
        assert_eq!(hold(&secret).await.code(), code);
        assert_eq!(hold(&other).await.status, StatusCode::ACCEPTED, "another client is not affected");
        world.end().await;
    }
}
