//! Plan limits hold exactly under concurrent sends.

use std::time::Duration;

use crate::world::World;
use futures_util::future::join_all;
use http::StatusCode;
use model::account::Plan;
use serde_json::json;

fn email_to(recipients: usize) -> String {
    let to: Vec<_> = (0..recipients).map(|n| format!("b{n}@example.net")).collect();
    json!({"from": "ada@example.com", "to": to, "subject": "s", "text": "t"}).to_string()
}

#[tokio::test]
async fn concurrent_sends_stay_within_the_plan() {
    let world = World::start().await.with_plan(Plan::Free).await;
    let responses = join_all((0..70).map(|_| world.post("/emails", email_to(2)))).await;
    let passed = responses.iter().filter(|a| a.status == StatusCode::OK).count();
    // The limit is 100 a day, and each email has two recipients.
    assert_eq!(passed, 50);
    let refused = responses.iter().find(|a| a.status != StatusCode::OK).unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "plan_limit"));
    let error = refused.json()["error"].clone();
    // No upgrade page is configured.
    assert_eq!(error.get("upgrade_url"), None);
    assert_eq!((&error["details"]["limit"], &error["details"]["cap"]), (&json!("daily"), &json!(100)));
    assert!(error["details"]["resets_at"].as_str().unwrap().ends_with("T00:00:00.000Z"));
    // The count is the same after the outbox was dispatched.
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    assert_eq!(world.post("/emails", email_to(1)).await.code(), "plan_limit");
    let used = world.queue.events.outbox.plan_usage(&world.tenant().await).await.unwrap();
    assert_eq!((used.day, used.month), (100, 100));
    world.services.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(world.post("/emails", email_to(1)).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn refused_or_cancelled_email_uses_no_quota() {
    let world = World::start().await.with_plan(Plan::Free).await;
    // 101 recipients are too many; the failed try uses up nothing.
    let first = world.post("/emails", email_to(99)).await;
    assert_eq!(first.status, StatusCode::OK);
    assert_eq!(first.headers["x-quota-daily-remaining"], "1");
    assert_eq!(first.headers["x-quota-monthly-remaining"], "2901");
    assert_eq!(world.post("/emails", email_to(2)).await.code(), "plan_limit");
    let at = format!("{:.3}", world.services.clock.now() + Duration::from_secs(3600));
    let mail =
        json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "t", "scheduled_at": at});
    let id = world.post("/emails", mail.to_string()).await.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(world.post("/emails", email_to(1)).await.code(), "plan_limit");
    assert_eq!(world.post(&format!("/emails/{id}/cancel"), "").await.status, StatusCode::OK);
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    let again = world.post("/emails", email_to(1)).await;
    assert_eq!(again.status, StatusCode::OK, "{again:?}");
    world.end().await;
}

/// When the plan allows more than it includes, the response shows how much of the included amount remains.
#[tokio::test]
async fn remaining_included_amount_is_reported() {
    let world = World::start().await.with_plan(Plan::Pro).await;
    let mut plans = model::plan::Plans::default();
    plans.pro.emails_per_month = Some(3);
    world.accounts.limits.plans.replace(plans);
    for (recipients, remaining) in [(2, "1"), (2, "0"), (1, "0")] {
        let response = world.post("/emails", email_to(recipients)).await;
        assert_eq!(response.status, StatusCode::OK, "{response:?}");
        assert_eq!(response.headers["x-quota-monthly-remaining"], remaining);
        assert!(!response.headers.contains_key("x-quota-daily-remaining"));
        world.queue.events.outbox.dispatch_outbox().await.unwrap();
    }
    world.end().await;
    let unlimited = World::start().await.with_plan(Plan::Dedicated).await;
    let response = unlimited.post("/emails", email_to(1)).await;
    assert!(!response.headers.contains_key("x-quota-monthly-remaining"));
    unlimited.end().await;
}

#[tokio::test]
async fn a_batch_is_counted_email_by_email() {
    let world = World::start().await.with_plan(Plan::Free).await;
    assert_eq!(world.post("/emails", email_to(98)).await.status, StatusCode::OK);
    let email = |n| json!({"from": "ada@example.com", "to": format!("b{n}@example.net"), "subject": "s", "text": "t"});
    let batch = json!({"emails": [email(1), email(2), email(3)]});
    let response = world.post("/emails/batch", batch.to_string()).await.json();
    let entries = response["data"].as_array().unwrap();
    assert_eq!(entries.iter().filter(|e| e["status"] == "sent").count(), 2, "{response}");
    assert_eq!(entries.iter().filter(|e| e["error"]["code"] == "plan_limit").count(), 1);
    world.end().await;
}

#[tokio::test]
async fn blocked_scheduled_email_returns_its_quota() {
    let world = World::start().await.with_plan(Plan::Free).await;
    let at = format!("{:.3}", world.services.clock.now() + Duration::from_secs(3600));
    let mail =
        json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "t", "scheduled_at": at});
    let id = world.post("/emails", mail.to_string()).await.json()["id"].as_str().unwrap().to_owned();
    let tenant = world.tenant().await;
    assert_eq!(world.queue.events.outbox.plan_usage(&tenant).await.unwrap().month, 1);
    let suppressed = world.post("/suppressions", json!({"email": "b@example.net"}).to_string()).await;
    assert_eq!(suppressed.status, StatusCode::OK);
    accounts::background_tasks::start_accounts(&world.queue, &world.accounts, None);
    world.services.clock.advance(Duration::from_secs(3601));
    let path = format!("/emails/{id}");
    let released = async {
        loop {
            let changed = world.services.outcome_recorded.notified();
            if world.get(&path).await.json()["email"]["status"] == "failed" {
                return;
            }
            changed.await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), released).await.unwrap();
    assert_eq!(world.queue.events.outbox.plan_usage(&tenant).await.unwrap().month, 0);
    world.end().await;
}
