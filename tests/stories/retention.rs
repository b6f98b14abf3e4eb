//! Retention: old emails are purged with their history; queued ones are not.

use std::time::Duration;

use model::recipient::RecipientState;
use serde_json::json;

use crate::world::TestWorld;

#[tokio::test(flavor = "multi_thread")]
async fn an_email_is_purged_after_thirty_days() {
    let world = TestWorld::start().await;
    let id = world.relay(&["one@dest.example"], "old").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.server.clock.advance(Duration::from_secs(31 * 24 * 3600));
    world.wait_for_emails(|emails| emails.is_empty()).await;
    let store = &world.server.store;
    assert!(store::email::get_body(store, world.account, id).await.unwrap().is_none());
    assert!(store::attempt::list(store, world.account, id, 10).await.unwrap().is_empty());
    world.end().await;
}

/// The age of an email counts from its last delivery: one that was scheduled for long has its history, and takes its
/// late bounces, for as long as any other.
#[tokio::test(flavor = "multi_thread")]
async fn an_email_is_purged_thirty_days_after_its_delivery() {
    let world = TestWorld::start().await;
    let day = Duration::from_secs(24 * 3600);
    let at = world.server.clock.now() + 20 * day;
    let body = json!({
        "from": "Ada <ada@acme.example>", "to": "later@dest.example", "subject": "later", "text": "hello",
        "scheduled_at": at.to_string(),
    });
    let (_, response) = world.call("POST", "/emails", &body.to_string()).await;
    let late = response["id"].as_str().unwrap().parse().unwrap();
    let early = world.relay(&["one@dest.example"], "early").await;
    world.wait(early, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.server.clock.advance(20 * day + Duration::from_secs(1));
    world.wait(late, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.server.clock.advance(15 * day);
    world.wait_for_emails(|emails| emails.len() == 1).await;
    assert_eq!(world.email(late).await.email.id, late);
    world.server.clock.advance(16 * day);
    world.wait_for_emails(|emails| emails.is_empty()).await;
    world.end().await;
}
