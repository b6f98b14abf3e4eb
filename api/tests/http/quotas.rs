//! Storage quotas: what an account stores is limited by its plan, by noun.

use std::time::Duration;

use accounts::suppressions::SuppressionService;
use http::{Method, StatusCode};
use model::account::Plan;
use model::plan::Plans;
use model::quota::Noun;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::affiliate_ledger::{event, post_event, program};
use crate::affiliate_program::{PROGRAM, set_up};
use crate::affiliates::with_headers;
use crate::world::{TestResponse, World};

/// A world whose free plan has these limits.
async fn world_with(caps: &[(Noun, u64)]) -> World {
    let world = World::start().await.with_plan(Plan::Free).await;
    let mut plans = Plans::default();
    for (noun, cap) in caps {
        plans.free.storage.set(*noun, Some(*cap));
    }
    world.accounts.limits.plans.replace(plans);
    world
}

fn check_full(refused: &TestResponse, noun: Noun, used: u64, cap: u64) {
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "plan_limit".into()), "{refused:?}");
    let error = &refused.json()["error"];
    assert_eq!(error["details"], json!({"limit": noun.word(), "used": used, "cap": cap}), "{error}");
    assert_eq!(error.get("upgrade_url"), None);
}

/// With a limit of two: creates two, is refused the third, deletes one, and creates it again.
async fn check_limit(noun: Noun, path: &str, body: impl Fn(usize) -> Value, id_of: impl Fn(&Value) -> String) {
    let world = world_with(&[]).await;
    check_limit_in(&world, noun, path, body, id_of).await;
    world.end().await;
}

async fn check_limit_in(
    world: &World,
    noun: Noun,
    path: &str,
    body: impl Fn(usize) -> Value,
    id_of: impl Fn(&Value) -> String,
) {
    let before = world.get("/account").await.json();
    let used_before = before["usage"]["storage"][noun.word()].as_u64().unwrap();
    let mut plans = world.accounts.limits.plans.current();
    let cap = used_before + 2;
    plans.free.storage.set(noun, Some(cap));
    world.accounts.limits.plans.replace(plans);
    let mut last = String::new();
    for n in 0..2 {
        let made = world.call(Method::POST, path, &body(n)).await;
        assert!(made.status.is_success(), "{path}: {made:?}");
        last = id_of(&made.json());
    }
    check_full(&world.call(Method::POST, path, &body(2)).await, noun, cap, cap);
    let account = world.get("/account").await.json();
    assert_eq!(account["limits"]["storage"][noun.word()], cap);
    assert_eq!(account["usage"]["storage"][noun.word()], cap);
    let deleted = world.call(Method::DELETE, &format!("{path}/{last}"), &Value::Null).await;
    assert!(deleted.status.is_success(), "{path}/{last}: {deleted:?}");
    let made = world.call(Method::POST, path, &body(2)).await;
    assert!(made.status.is_success(), "{path}: {made:?}");
}

fn id_of(name: &str) -> impl Fn(&Value) -> String {
    move |made: &Value| made[name]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

#[tokio::test]
async fn created_objects_are_limited_by_plan() {
    let suppression = |n| json!({"email": format!("a{n}@example.net")});
    check_limit(Noun::Suppressions, "/suppressions", suppression, id_of("suppression")).await;
    let opt_out = |n| json!({"email": format!("a{n}@example.net"), "category": "product"});
    check_limit(Noun::CategoryOptOuts, "/category-opt-outs", opt_out, id_of("category_opt_out")).await;
    let template = |n| json!({"name": format!("t{n}"), "subject": "s", "html": "h"});
    check_limit(Noun::Templates, "/templates", template, id_of("template")).await;
    check_limit(Noun::Webhooks, "/webhooks", |_| json!({"url": "https://example.com/"}), id_of("webhook")).await;
    let key = |n| json!({"name": format!("k{n}"), "scope": "sending"});
    check_limit(Noun::ApiKeys, "/api-keys", key, id_of("api_key")).await;
    let credential = |n| json!({"name": format!("k{n}")});
    check_limit(Noun::SmtpCredentials, "/smtp-credentials", credential, id_of("smtp_credential")).await;
    let automation = |n| {
        json!({
            "name": format!("a{n}"), "trigger": {"event": "signed_up"},
            "steps": [{"id": "wait", "type": "delay", "duration": "1h"}],
        })
    };
    check_limit(Noun::Automations, "/automations", automation, id_of("automation")).await;
}

#[tokio::test]
async fn partners_links_and_campaigns_are_bounded() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let world = world.with_plan(Plan::Free).await;
    let partner = |n| json!({"email": format!("p{n}@partner.example"), "name": format!("P {n}")});
    check_limit_in(&world, Noun::Affiliates, "/affiliates", partner, id_of("affiliate")).await;
    let made = world.get("/affiliates").await.json();
    let links = format!("/affiliates/{}/links", made["data"][0]["id"].as_str().unwrap());
    check_limit_in(&world, Noun::AffiliateLinks, &links, |n| json!({"token": format!("link{n}")}), id_of("link")).await;
    world.end().await;
}

#[tokio::test]
async fn users_are_bounded() {
    let world = world_with(&[(Noun::Users, 2)]).await;
    let owner = world.session(1).await;
    let invite = async |n: usize| {
        let body = json!({"email": format!("u{n}@example.net"), "role": "member"});
        world.call_with_session(&owner, Method::POST, "/users", &body).await
    };
    assert_eq!(invite(0).await.status, StatusCode::OK);
    check_full(&invite(1).await, Noun::Users, 2, 2);
    assert_eq!(invite(0).await.status, StatusCode::OK, "invited again");
    world.end().await;
}

/// Changing an existing row needs no quota.
#[tokio::test]
async fn changes_of_existing_rows_need_no_quota() {
    let caps = [(Noun::Suppressions, 2), (Noun::CategoryOptOuts, 1), (Noun::DomainClaims, 0)];
    let world = world_with(&caps).await;
    let opt_out = json!({"email": "a0@example.net", "category": "product"});
    let suppress = |range: std::ops::Range<usize>| json!({"emails": range.map(|n| format!("a{n}@example.net")).collect::<Vec<_>>()});
    for _ in 0..2 {
        assert_eq!(world.call(Method::POST, "/suppressions", &suppress(0..2)).await.status, StatusCode::OK);
        let made = world.call(Method::POST, "/category-opt-outs", &opt_out).await;
        assert_eq!(made.status, StatusCode::OK, "{made:?}");
    }
    check_full(&world.call(Method::POST, "/suppressions", &suppress(1..3)).await, Noun::Suppressions, 2, 2);
    let other = json!({"email": "b@example.net", "category": "product"});
    check_full(&world.call(Method::POST, "/category-opt-outs", &other).await, Noun::CategoryOptOuts, 1, 1);
    let domains = world.get("/domains").await.json();
    let domain = json!({"name": domains["domains"][0]["name"]});
    let own = world.call(Method::POST, "/domains/claims", &domain).await;
    assert_eq!((own.status, own.code()), (StatusCode::CONFLICT, "conflict".into()), "{own:?}");
    world.end().await;
}

/// Importing existing suppressions needs no quota either, and deletions free some.
#[tokio::test]
async fn import_continues_after_a_deletion() {
    let world = world_with(&[(Noun::Suppressions, 1_500)]).await;
    let import = async |range: std::ops::Range<usize>| {
        let list: String = range.map(|n| format!("a{n}@example.net\n")).collect();
        let body = json!({"csv": format!("email\n{list}")});
        let started = world.call(Method::POST, "/suppressions/import", &body).await.json();
        let stop = CancellationToken::new();
        accounts::suppression_import::process_open_imports(
            &SuppressionService::new(&world.services),
            Some(&world.accounts.limits.storage),
            &stop,
        )
        .await
        .unwrap();
        let path = format!("/suppressions/import/{}", started["import"]["id"].as_str().unwrap());
        let counts = world.get(&path).await.json()["import"]["counts"].clone();
        ["created", "exists", "refused"].map(|name| counts[name].as_u64().unwrap())
    };
    assert_eq!(import(0..1_600).await, [1_500, 0, 100]);
    assert_eq!(import(0..1_600).await, [0, 1_500, 100]);
    let listed = world.get("/suppressions?email=a7@example.net").await.json();
    let path =
        format!("/suppressions/{}", listed["suppressions"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed}")));
    assert!(world.call(Method::DELETE, &path, &Value::Null).await.status.is_success());
    world.services.clock.advance(Duration::from_millis(1));
    assert_eq!(import(0..1_600).await, [1, 1_499, 100]);
    world.end().await;
}

/// Concurrent requests share the quota. What the service records itself is always stored, and counts.
#[tokio::test]
async fn addresses_of_one_request_are_bounded_together() {
    let world = world_with(&[(Noun::Suppressions, 3)]).await;
    let many = |range: std::ops::Range<usize>| json!({"emails": range.map(|n| format!("a{n}@example.net")).collect::<Vec<_>>()});
    let refused = world.call(Method::POST, "/suppressions", &many(0..4)).await;
    check_full(&refused, Noun::Suppressions, 0, 3);
    assert_eq!(world.call(Method::POST, "/suppressions", &many(0..3)).await.status, StatusCode::OK);
    let grounds = model::suppression::SuppressionCause::new(
        model::suppression::SuppressionTarget::parse("bounced@example.net").unwrap(),
        model::suppression::SuppressionReason::HardBounce,
        model::suppression::SuppressionSource::Import,
    );
    let account = world.tenant().await.account().id;
    SuppressionService::new(&world.services).suppress(account, &[grounds], &|_, _| {}).await.unwrap();
    check_full(&world.call(Method::POST, "/suppressions", &many(5..6)).await, Noun::Suppressions, 4, 3);
    world.end().await;
}

#[tokio::test]
async fn import_stops_at_the_quota_and_counts_refusals() {
    let world = world_with(&[(Noun::Suppressions, 700)]).await;
    let list: String = (0..1_300).map(|n| format!("a{n}@example.net\n")).collect();
    let body = json!({"csv": format!("email\n{list}")});
    let started = world.call(Method::POST, "/suppressions/import", &body).await.json();
    let quotas = &world.accounts.limits.storage;
    let stop = CancellationToken::new();
    accounts::suppression_import::process_open_imports(&SuppressionService::new(&world.services), Some(quotas), &stop)
        .await
        .unwrap();
    let path = format!("/suppressions/import/{}", started["import"]["id"].as_str().unwrap());
    let done = world.get(&path).await.json()["import"].clone();
    let counts = json!({"total": 1_300, "processed": 1_300, "created": 700, "exists": 0, "invalid": 0, "refused": 600});
    assert_eq!((&done["status"], &done["counts"]), (&json!("completed"), &counts));
    assert!(done["errors"][0]["message"].as_str().unwrap().contains("700 suppressions"), "{done}");
    let listed = json!({"email": "one@example.net"});
    check_full(&world.call(Method::POST, "/suppressions", &listed).await, Noun::Suppressions, 700, 700);
    world.end().await;
}

#[tokio::test]
async fn product_events_are_bounded_by_number_and_by_bytes() {
    let world = world_with(&[(Noun::ProductEvents, 2)]).await;
    let event = json!({"name": "signed_up", "user_id": "u1", "data": {"text": "x".repeat(2_000)}});
    let send =
        async |key: &str| with_headers(&world, Method::POST, "/events", &[("idempotency-key", key)], &event).await;
    let first = send("a").await;
    assert!(first.status.is_success(), "{first:?}");
    assert!(send("b").await.status.is_success());
    check_full(&send("c").await, Noun::ProductEvents, 2, 2);
    // A replayed request gets its stored response.
    assert_eq!(send("a").await.json()["id"], first.json()["id"]);
    let mut plans = world.accounts.limits.plans.current();
    plans.free.storage.set(Noun::ProductEvents, None);
    plans.free.storage.set(Noun::ProductEventBytes, Some(6_000));
    world.accounts.limits.plans.replace(plans);
    let refused = send("d").await;
    assert_eq!(refused.json()["error"]["details"]["limit"], "product_event_bytes", "{refused:?}");
    world.end().await;
}

/// A stored response is replayed even if the quota is used up; the key does not bypass the quota of another
/// operation.
#[tokio::test]
async fn a_key_used_with_one_operation_does_not_let_another_pass_its_quota() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let world = world.with_plan(Plan::Free).await;
    let mut plans = world.accounts.limits.plans.current();
    plans.free.storage.set(Noun::ProductEvents, Some(1));
    for noun in [Noun::AffiliateCampaigns, Noun::Webhooks] {
        plans.free.storage.set(noun, Some(0));
    }
    world.accounts.limits.plans.replace(plans);
    let send = async |path: &str, body: &Value| {
        with_headers(&world, Method::POST, path, &[("idempotency-key", "k")], body).await
    };
    let event = json!({"name": "signed_up", "user_id": "u1"});
    let first = send("/events", &event).await;
    assert!(first.status.is_success(), "{first:?}");
    assert_eq!(send("/events", &event).await.json()["id"], first.json()["id"]);
    let campaign = json!({"name": "Partners"});
    let refused = send("/affiliate-campaigns", &campaign).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "plan_limit".into()), "{refused:?}");
    let webhook = json!({"url": "https://example.com/"});
    check_full(&send("/webhooks", &webhook).await, Noun::Webhooks, 0, 0);
    world.end().await;
}

/// Template versions are stored with their bodies and limited by bytes.
#[tokio::test]
async fn versions_of_a_template_are_bounded_by_bytes() {
    let world = world_with(&[(Noun::TemplateBytes, 300_000)]).await;
    let template = json!({"name": "t", "subject": "s", "html": "h".repeat(50_000)});
    let made = world.call(Method::POST, "/templates", &template).await;
    assert!(made.status.is_success(), "{made:?}");
    let path = format!("/templates/{}/publish", made.json()["template"]["id"].as_str().unwrap());
    let mut published = 0;
    let refused = loop {
        let response = world.call(Method::POST, &path, &json!({})).await;
        if !response.status.is_success() {
            break response;
        }
        published += 1;
        assert!(published < 10, "versions are not limited");
    };
    assert_eq!(refused.json()["error"]["details"]["limit"], "template_bytes", "{refused:?}");
    assert_eq!(published, 4, "each version counts its size");
    world.end().await;
}

#[tokio::test]
async fn a_plan_without_an_affiliate_program_cannot_enable_one() {
    let world = World::start().await.with_plan(Plan::Free).await;
    assert_eq!(world.get("/account").await.json()["account"]["features"]["affiliates"], false);
    let session = world.session(1).await;
    let enable = json!({"website_url": "https://shop.example", "currency": "usd"});
    let refused = world.call_with_session(&session, Method::POST, PROGRAM, &enable).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "plan_limit".into()));
    assert_eq!(refused.json()["error"]["details"]["limit"], "affiliates");
    let world = world.with_plan(Plan::Pro).await;
    assert_eq!(world.get("/account").await.json()["account"]["features"]["affiliates"], true);
    world.services.clock.advance(Duration::from_secs(1));
    let enabled = world.call_with_session(&session, Method::POST, PROGRAM, &enable).await;
    assert_eq!(enabled.status, StatusCode::CREATED, "{enabled:?}");
    world.end().await;
}

#[tokio::test]
async fn sent_emails_are_bounded_by_their_bytes() {
    let world = world_with(&[(Noun::EmailBytes, 20_000)]).await;
    let mail = |bytes: usize| json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "x ".repeat(bytes / 2)});
    let sent = world.call(Method::POST, "/emails", &mail(12_000)).await;
    assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
    let used = world.get("/account").await.json()["usage"]["storage"]["email_bytes"].as_u64().unwrap();
    assert!((12_000..16_000).contains(&used), "{used}");
    check_full(&world.call(Method::POST, "/emails", &mail(12_000)).await, Noun::EmailBytes, used, 20_000);
    let small = world.call(Method::POST, "/emails", &mail(100)).await;
    assert_eq!(small.status, StatusCode::OK, "{small:?}");
    world.end().await;
}

/// The holder of the webhook secret can sign any number of events.
#[tokio::test]
async fn events_of_the_processor_are_bounded_by_their_bytes() {
    let world = World::start().await;
    let owner = set_up(&world, 1).await;
    let program = program(&world, &owner).await;
    let world = world.with_plan(Plan::Free).await;
    let mut plans = world.accounts.limits.plans.current();
    plans.free.storage.set(Noun::AffiliateEventBytes, Some(1_000));
    world.accounts.limits.plans.replace(plans);
    let mut accepted = 0;
    let refused = loop {
        let charge = event(&world, &format!("evt_{accepted}"), "charge.pending", &json!({"id": "ch_1"}));
        let response = post_event(&world, &program, &charge).await;
        if response.status != StatusCode::OK {
            break response;
        }
        accepted += 1;
        assert!(accepted < 10, "events are not limited");
    };
    assert_eq!(refused.json()["error"]["details"]["limit"], "affiliate_event_bytes", "{refused:?}");
    assert!(accepted > 0);
    world.end().await;
}
