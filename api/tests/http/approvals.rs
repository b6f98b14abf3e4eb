//! Policies of API keys, approvals and the audit log over HTTP.

use std::sync::Arc;

use api::approval_tasks::execute_approved;
use api::openapi::OpenApiDocument;
use api::operation::OperationTag;
use api::operations::operation_table;
use api::state::{ApiOptions, AppState};
use http::{Method, StatusCode};
use httpd::problem::Problem;
use httpd::request::NoInput;
use model::approval::{Approval, ApprovalState, Decision};
use model::credential::ApiKeyScope;
use model::id::{ApprovalId, UserId};
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::Batch;
use tokio::sync::Semaphore;

use crate::world::{BASE_URL, TestResponse, TestSession, World};

/// An API key with a policy; returns its id and secret.
pub(crate) async fn key_with_policy(world: &World, scope: &str, policy: Value) -> (String, String) {
    let body = json!({"name": "assistant", "scope": scope, "policy": policy});
    let response = world.call(Method::POST, "/api-keys", &body).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.json());
    let json = response.json();
    (json["api_key"]["id"].as_str().unwrap().to_owned(), json["secret"].as_str().unwrap().to_owned())
}

pub(crate) fn email_to(to: &str) -> Value {
    json!({"from": "ada@example.com", "to": [to], "subject": "Hello", "text": "Hi"})
}

async fn send(world: &World, secret: &str, email: &Value) -> TestResponse {
    world.call_as(secret, Method::POST, "/emails", email).await
}

pub(crate) async fn sent(world: &World) -> usize {
    world.get("/emails").await.json()["emails"].as_array().unwrap().len()
}

/// Sends an email that is held; returns the approval.
async fn hold(world: &World, secret: &str) -> Value {
    let held = send(world, secret, &email_to("grace@example.net")).await;
    read_held(world, secret, &held).await
}

/// The approval that a call waits for.
pub(crate) async fn read_held(world: &World, secret: &str, held: &TestResponse) -> Value {
    assert_eq!(held.status, StatusCode::ACCEPTED, "{:?}", held.json());
    let held = held.json();
    assert_eq!(held["status"], "approval_required");
    let id = held["approval_id"].as_str().unwrap();
    assert!(held["url"].as_str().unwrap().ends_with(&format!("/dashboard/approvals/{id}")));
    let response = world.get_as(secret, &format!("/approvals/{id}")).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.json());
    response.json()["approval"].clone()
}

pub(crate) async fn decide(
    world: &World,
    session: &TestSession,
    approval: &Value,
    decision: &str,
    hash: &Value,
) -> TestResponse {
    let path = format!("/approvals/{}/{decision}", approval["id"].as_str().unwrap());
    world.call_with_session(session, Method::POST, &path, &json!({"hash": hash})).await
}

#[tokio::test]
async fn a_policy_bounds_what_a_key_sends() {
    let world = World::start().await;
    let policy = json!({
        "recipients": ["*@example.net"], "from": "ada@example.com", "sends_per_day": 2, "categories": ["transactional"],
    });
    let (id, secret) = key_with_policy(&world, "full", policy).await;
    let shown = world.get(&format!("/api-keys/{id}")).await.json()["api_key"]["policy"].clone();
    assert_eq!(shown["recipients"], json!(["*@example.net"]));
    assert_eq!((&shown["sends_per_day"], &shown["from"]), (&json!(2), &json!("ada@example.com")));

    let rule = async |email: Value| {
        let response = send(&world, &secret, &email).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::FORBIDDEN, "policy_violation"));
        response.json()["error"]["details"]["rule"].as_str().unwrap().to_owned()
    };
    assert_eq!(rule(email_to("eve@evil.example")).await, "recipients");
    let mut hidden = email_to("grace@example.net");
    hidden["bcc"] = json!(["eve@evil.example"]);
    assert_eq!(rule(hidden).await, "recipients");
    let mut other = email_to("grace@example.net");
    other["from"] = json!("root@example.com");
    assert_eq!(rule(other).await, "from");
    let mut news = email_to("grace@example.net");
    news["category"] = json!("newsletter");
    assert_eq!(rule(news).await, "categories");
    assert_eq!(sent(&world).await, 0);
    for _ in 0..2 {
        assert_eq!(send(&world, &secret, &email_to("grace@example.net")).await.status, StatusCode::OK);
    }
    assert_eq!(rule(email_to("grace@example.net")).await, "sends_per_day");
    assert_eq!(sent(&world).await, 2);
    world.end().await;
}

#[tokio::test]
async fn a_key_cannot_lift_its_policy() {
    let world = World::start().await;
    let (id, secret) = key_with_policy(&world, "full", json!({"recipients": ["*@example.net"]})).await;
    for (method, path, body) in [
        (Method::POST, "/api-keys".to_owned(), json!({"name": "free", "scope": "full"})),
        (Method::PATCH, format!("/api-keys/{id}"), json!({"policy": null})),
        (Method::DELETE, format!("/api-keys/{id}"), json!({})),
        (Method::POST, "/smtp-credentials".to_owned(), json!({"name": "free"})),
        (Method::POST, "/webhooks".to_owned(), json!({"url": "https://evil.example/", "events": ["email.sent"]})),
        (Method::POST, "/events".to_owned(), json!({"name": "user.created", "email": "eve@evil.example"})),
        (Method::POST, "/automations".to_owned(), json!({"name": "a", "trigger": {"event": "x"}, "steps": []})),
    ] {
        let response = world.call_as(&secret, method.clone(), &path, &body).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (StatusCode::FORBIDDEN, "policy_violation"),
            "{method} {path}"
        );
    }
    for (policy, field) in [
        (json!({"recipient": ["x@example.net"]}), "policy.recipient"),
        (json!({"recipients": ["x"]}), "policy.recipients"),
        (json!({"sends_per_day": 0}), "policy.sends_per_day"),
        (json!({"approve": ["everything"]}), "policy.approve"),
        (json!("none"), "policy"),
    ] {
        let body = json!({"name": "k", "scope": "full", "policy": policy});
        let response = world.call(Method::POST, "/api-keys", &body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{policy}");
        let fields = response.json()["error"]["details"]["fields"].clone();
        assert!(fields.to_string().contains(&format!("\"{field}\"")), "{policy}: {fields}");
    }
    let body = json!({"name": "k", "policy": {"approve": ["send"]}});
    assert_eq!(world.call(Method::POST, "/smtp-credentials", &body).await.code(), "validation_error");
    // An owner removes the policy.
    let removed = world.call(Method::PATCH, &format!("/api-keys/{id}"), &json!({"policy": null})).await;
    assert_eq!(removed.json()["api_key"]["policy"], Value::Null);
    assert_eq!(send(&world, &secret, &email_to("eve@evil.example")).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_held_request_is_executed_once_when_a_person_approves_it() {
    let world = World::start().await;
    let (key, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let session = world.session(1).await;
    let approval = hold(&world, &secret).await;
    assert_eq!((&approval["status"], &approval["operation"]), (&json!("pending"), &json!("send_email")));
    assert_eq!((&approval["client_id"], sent(&world).await), (&json!(key), 0));
    assert!(approval["body"].as_str().unwrap().contains("grace@example.net"));

    // Another content than the one that was shown.
    let other = decide(&world, &session, &approval, "approve", &json!("0".repeat(64))).await;
    assert_eq!((other.status, sent(&world).await), (StatusCode::CONFLICT, 0));
    // The client cannot approve its own request.
    let path = format!("/approvals/{}/approve", approval["id"].as_str().unwrap());
    let own = world.call_as(&secret, Method::POST, &path, &json!({"hash": approval["hash"]})).await;
    assert_eq!(own.status, StatusCode::FORBIDDEN);

    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await;
    assert_eq!(done.status, StatusCode::OK, "{:?}", done.json());
    let done = done.json()["approval"].clone();
    assert_eq!((&done["status"], &done["response_status"]), (&json!("executed"), &json!(200)));
    assert!(done["response"]["id"].as_str().unwrap().starts_with("msg_"), "{done}");
    assert_eq!(sent(&world).await, 1);
    for decision in ["approve", "reject"] {
        let again = decide(&world, &session, &approval, decision, &approval["hash"]).await;
        assert_eq!((again.status, sent(&world).await), (StatusCode::CONFLICT, 1), "{decision}");
    }
    // The client reads the result.
    let path = format!("/approvals/{}", approval["id"].as_str().unwrap());
    assert_eq!(world.get_as(&secret, &path).await.json()["approval"]["response"], done["response"]);
    // Another account does not see it.
    let stranger = world.account(2, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&stranger, &path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get_as(&stranger, "/approvals").await.json()["approvals"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_rejected_request_is_never_executed() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "full", json!({"approve": ["send", "delete", "manage"]})).await;
    let session = world.session(1).await;
    let approval = hold(&world, &secret).await;
    let rejected = decide(&world, &session, &approval, "reject", &approval["hash"]).await;
    assert_eq!(rejected.json()["approval"]["status"], "rejected");
    let again = decide(&world, &session, &approval, "approve", &approval["hash"]).await;
    assert_eq!((again.status, sent(&world).await), (StatusCode::CONFLICT, 0));
    let listed = world.get("/approvals?status=rejected").await.json();
    assert_eq!(listed["approvals"].as_array().unwrap().len(), 1);
    // Other kinds.
    let made = json!({"name": "t", "subject": "s", "text": "x"});
    let held = world.call_as(&secret, Method::POST, "/templates", &made).await;
    assert_eq!(held.status, StatusCode::ACCEPTED, "{:?}", held.json());
    assert_eq!(world.get("/templates").await.json()["templates"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn an_idempotency_key_is_held_once() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let session = world.session(1).await;
    let post_text = async |body: String| {
        let request = http::Request::post("/emails")
            .header("host", "test")
            .header("authorization", format!("Bearer {secret}"))
            .header("content-type", "application/json")
            .header("idempotency-key", http::HeaderValue::from_bytes("día 1".as_bytes()).unwrap());
        world.send(request.body(http_body_util::Full::new(body.into())).unwrap()).await
    };
    let post = async |email: Value| post_text(email.to_string()).await;
    let first = post(email_to("grace@example.net")).await.json();
    let second = post(email_to("grace@example.net")).await.json();
    assert_eq!(first["approval_id"], second["approval_id"]);
    // Order and spaces do not matter.
    let fields = email_to("grace@example.net").as_object().unwrap().clone();
    let reversed: serde_json::Map<String, Value> = fields.into_iter().rev().collect();
    let third = post_text(serde_json::to_string_pretty(&reversed).unwrap()).await.json();
    assert_eq!(first["approval_id"], third["approval_id"]);
    assert_eq!(post(email_to("eve@example.net")).await.code(), "idempotency_conflict");
    let path = format!("/approvals/{}", first["approval_id"].as_str().unwrap());
    let approval = world.get_as(&secret, &path).await.json()["approval"].clone();
    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await.json();
    let replayed = post(email_to("grace@example.net")).await;
    assert_eq!((replayed.status, sent(&world).await), (StatusCode::OK, 1));
    assert_eq!(replayed.json()["id"], done["approval"]["response"]["id"]);
    // The key may be used again after its time.
    world.services.clock.advance(model::idempotency::RETENTION);
    let later = post(email_to("eve@example.net")).await;
    assert_eq!(later.status, StatusCode::ACCEPTED, "{:?}", later.json());
    assert_ne!(later.json()["approval_id"], first["approval_id"]);
    world.end().await;
}

#[tokio::test]
async fn a_revoked_key_executes_nothing() {
    let world = World::start().await;
    let (key, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let session = world.session(1).await;
    let approval = hold(&world, &secret).await;
    let deleted = world.call(Method::DELETE, &format!("/api-keys/{key}"), &json!({})).await;
    assert_eq!(deleted.status, StatusCode::OK);
    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await;
    assert_eq!(done.json()["approval"]["response_status"], 401, "{:?}", done.json());
    assert_eq!(done.json()["approval"]["status"], "failed");
    assert_eq!(sent(&world).await, 0);
    world.end().await;
}

/// Stores an approval as a node leaves it that stops after the decision.
async fn interrupt(world: &World, approval: &Value) -> Approval {
    let id: ApprovalId = approval["id"].as_str().unwrap().parse().unwrap();
    let (store, account) = (world.services.store.clone(), world.tenant().await.account().id);
    let before = store::approval::get(&store, account, id).await.unwrap().unwrap();
    let approved = Decision { by: UserId::from_bytes([1; 16]), at: before.created_at };
    let state = ApprovalState::Executing { approved, lease_until: before.created_at };
    let (mut batch, after) = (Batch::progress(), Approval { state, ..before.clone() });
    store::approval::update(&mut batch, &before, &after, None);
    store.commit(batch).await.unwrap();
    after
}

#[tokio::test]
async fn an_interrupted_execution_is_finished_once() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let left = interrupt(&world, &hold(&world, &secret).await).await;
    // Two servers on the same store look at the same time.
    let options = api::state::ApiOptions::new("https://api.example.test");
    let other = world.server(options);
    let (one, two) = tokio::join!(execute_approved(&world.server), execute_approved(&other));
    assert_eq!((one, two), (Ok(()), Ok(())));
    let found = store::approval::get(&world.services.store, left.account, left.id).await.unwrap().unwrap();
    let ApprovalState::Executed { result, .. } = found.state else { panic!("{found:?}") };
    assert_eq!(result.status, 200, "{result:?}");
    assert_eq!(sent(&world).await, 1);
    world.end().await;
}

#[tokio::test]
async fn an_interrupted_execution_that_cannot_be_repeated_is_in_the_audit_log() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "full", json!({"approve": ["manage"]})).await;
    let template = json!({"name": "t", "subject": "s", "text": "x"});
    let held = world.call_as(&secret, Method::POST, "/templates", &template).await;
    let left = interrupt(&world, &read_held(&world, &secret, &held).await).await;
    execute_approved(&world.server).await.unwrap();
    let shown = world.get(&format!("/approvals/{}", left.id)).await.json();
    assert_eq!(shown["approval"]["status"], "interrupted", "{shown}");
    assert_eq!(world.get("/templates").await.json()["templates"], json!([]));
    let log = world.get("/audit-log?operation=create_template").await.json();
    let seen: Vec<&Value> = log["entries"].as_array().unwrap().iter().map(|entry| &entry["error_code"]).collect();
    assert!(seen.contains(&&json!("interrupted")), "{log}");
    world.end().await;
}

#[tokio::test]
async fn the_audit_log_names_actor_object_and_result() {
    let world = World::start().await;
    let (key, secret) = key_with_policy(&world, "full", json!({"recipients": ["*@example.net"]})).await;
    assert_eq!(send(&world, &secret, &email_to("eve@evil.example")).await.status, StatusCode::FORBIDDEN);
    let email = send(&world, &secret, &email_to("grace@example.net")).await.json();
    assert_eq!(send(&world, &world.key, &email_to("grace@example.net")).await.status, StatusCode::OK);
    let log = world.get("/audit-log").await;
    assert_eq!(log.status, StatusCode::OK, "{:?}", log.json());
    let log = log.json();
    let entries = log["entries"].as_array().unwrap();
    let seen: Vec<(&str, u64)> =
        entries.iter().map(|e| (e["operation"].as_str().unwrap(), e["status"].as_u64().unwrap())).collect();
    // An ordinary key's emails are in the list of emails.
    assert_eq!(seen, [("send_email", 200), ("send_email", 403), ("create_api_key", 200)]);
    assert_eq!((&entries[0]["object_id"], &entries[0]["api_key_id"]), (&email["id"], &json!(key)));
    assert_eq!((&entries[1]["error_code"], &entries[0]["ip"]), (&json!("policy_violation"), &json!("127.0.0.1")));
    assert_eq!(entries[2]["object_id"], json!(key));
    assert!(!log.to_string().contains(&secret[4..]));
    let by_key = world.get(&format!("/audit-log?api_key_id={key}&operation=send_email")).await.json();
    assert_eq!(by_key["entries"].as_array().unwrap().len(), 2);
    assert_eq!(world.get("/audit-log?api_key_id=x").await.code(), "validation_error");
    // The request log has them, too.
    let logs = world.get("/logs?path=/emails&status=403").await.json();
    assert_eq!(logs["logs"].as_array().unwrap().len(), 1);
    world.end().await;
}

#[tokio::test]
async fn the_audit_log_names_the_approval_and_who_approved() {
    let world = World::start().await;
    let (_, secret) = key_with_policy(&world, "sending", json!({"approve": ["send"]})).await;
    let held = send(&world, &secret, &email_to("grace@example.net")).await;
    let approval = read_held(&world, &secret, &held).await;
    let session = world.session(1).await;
    let done = decide(&world, &session, &approval, "approve", &approval["hash"]).await.json();
    assert_eq!(done["approval"]["status"], "executed", "{done}");
    let log = world.get(&format!("/audit-log?object_id={}", approval["id"].as_str().unwrap())).await.json();
    let seen: Vec<_> = log["entries"].as_array().unwrap().iter().map(|e| (&e["operation"], &e["status"])).collect();
    let expected =
        [(json!("send_email"), json!(200)), (json!("approve_request"), json!(200)), (json!("send_email"), json!(202))];
    for (operation, status) in &expected {
        assert!(seen.contains(&(operation, status)), "{log}");
    }
    let entry = |surface: &str, status: u64| {
        let entries = log["entries"].as_array().unwrap();
        entries.iter().find(|e| e["surface"] == surface && e["status"] == status).unwrap().clone()
    };
    let (executed, held) = (entry("approval", 200), entry("api", 202));
    assert_eq!((&executed["approval_id"], &held["approval_id"]), (&approval["id"], &approval["id"]));
    assert_eq!(executed["approved_by"], done["approval"]["decided_by"], "{done}");
    assert!(executed["approved_by"].is_string() && held["approved_by"].is_null());
    assert_eq!(held["object_id"], approval["id"]);
    world.end().await;
}

#[tokio::test]
async fn a_suppression_that_is_deleted_by_its_address_is_named_by_its_id() {
    let world = World::start().await;
    let made = world.call(Method::POST, "/suppressions", &json!({"email": "grace@example.net"})).await.json();
    let deleted = world.call(Method::DELETE, "/suppressions/grace@example.net", &Value::Null).await;
    assert_eq!(deleted.status, StatusCode::OK);
    let log = world.get("/audit-log?operation=delete_suppression").await.json();
    let entry = &log["entries"][0];
    assert_eq!((&entry["object_id"], &entry["path"]), (&deleted.json()["id"], &json!("/suppressions/[redacted]")));
    assert!(made.to_string().contains(entry["object_id"].as_str().unwrap()), "{made}");
    world.end().await;
}

static BEGUN: Semaphore = Semaphore::const_new(0);
static RELEASE: Semaphore = Semaphore::const_new(0);

async fn slow_change(_: Arc<AppState>, _: Tenant, _: NoInput) -> Result<OpenApiDocument, Problem> {
    BEGUN.add_permits(1);
    RELEASE.acquire().await.unwrap().forget();
    Err(Problem::not_found("end"))
}

/// A client that resets its connection leaves no gap in the audit log.
#[tokio::test]
async fn a_request_whose_client_is_gone_is_in_the_audit_log() {
    let world = World::start().await;
    let mut table = operation_table();
    table.push(
        OperationTag::new("test").post("/slow", "").full_key_or_session(("slow_change", "slow.change"), slow_change),
    );
    let server = world.server_with(ApiOptions::new(BASE_URL), table);
    let request = |method: Method, path: &str| {
        let request = world.request(method, path);
        request.body(http_body_util::Full::<bytes::Bytes>::default()).unwrap()
    };
    let exchange = tokio::spawn(api::dispatch::dispatch(Arc::clone(&server), request(Method::POST, "/slow")));
    BEGUN.acquire().await.unwrap().forget();
    // As when the connection is reset: its future is dropped.
    exchange.abort();
    assert!(exchange.await.is_err_and(|error| error.is_cancelled()));
    RELEASE.add_permits(1);
    while !server.state().is_idle() {
        tokio::task::yield_now().await;
    }
    let log = api::dispatch::dispatch(Arc::clone(&server), request(Method::GET, "/audit-log")).await;
    let log = http_body_util::BodyExt::collect(log.into_body()).await.unwrap().to_bytes();
    let log: Value = serde_json::from_slice(&log).unwrap();
    let entry = &log["entries"][0];
    assert_eq!((&entry["operation"], &entry["status"]), (&json!("slow_change"), &json!(404)), "{log}");
    world.end().await;
}
