//! Scheduled emails are sent at their time, also after a restart, and are signed and dated then. Emails that must not
//! be sent are held. Of a concurrent release and cancellation exactly one wins.

use std::time::Duration;

use model::email::{EmailRollup, EmailStatus};
use model::event::EventKind;
use model::id::EmailId;
use model::recipient::RecipientState;
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::StoreState;

use crate::logs::Lines;
use crate::world::TestWorld;

const HOUR: Duration = Duration::from_secs(3600);

async fn schedule(world: &TestWorld, to: &str, after: Duration) -> EmailId {
    let at = world.server.clock.now() + after;
    let body = json!({
        "from": "Ada <ada@acme.example>", "to": to, "subject": "later", "text": "hello",
        "scheduled_at": at.to_string(),
    });
    let (status, response) = world.call("POST", "/emails", &body.to_string()).await;
    assert_eq!((status, response["status"].as_str()), (200, Some("scheduled")), "{response}");
    response["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_email_is_sent_at_its_time_and_not_before() {
    let world = TestWorld::start().await;
    let id = schedule(&world, "b@dest.example", HOUR).await;
    let moved = schedule(&world, "c@dest.example", 3 * HOUR).await;
    let at = (world.server.clock.now() + HOUR + HOUR / 2).to_string();
    let (status, _) = world.call("PATCH", &format!("/emails/{moved}"), &json!({"scheduled_at": at}).to_string()).await;
    assert_eq!(status, 200);
    // The schedule is stored.
    let world = world.restart("").await;
    assert_eq!(EmailRollup::from_recipients(&world.email(id).await.recipients).status, EmailStatus::Scheduled);
    assert!(world.sink.received().is_empty());
    world.server.clock.advance(HOUR + Duration::from_secs(1));
    let email = world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(EmailRollup::from_recipients(&world.email(moved).await.recipients).status, EmailStatus::Scheduled);
    let received = world.sink.received();
    let message = received[0].content.clone();
    assert!(message.contains("DKIM-Signature:"), "{message}");
    let date = message::header::format_date(world.server.clock.now());
    assert!(message.contains(&format!("Date: {}", &date[..date.len() - 9])), "{date}: {message}");
    assert!(email.recipients[0].attempts == 1 && email.schedule.is_some());
    let events = store::event::list(&world.server.store, world.account, id, 10).await.unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Scheduled, EventKind::Sent, EventKind::Delivered]);
    let (_, view) = world.call("GET", &format!("/emails/{id}"), "").await;
    assert!(view["email"]["sent_at"].as_str() >= view["email"]["scheduled_at"].as_str(), "{view}");
    world.server.clock.advance(HOUR / 2);
    world.wait(moved, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

/// `on_suppressed` counts when the email is due, too: by default, one recipient that was suppressed since fails it.
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_suppressed_since_fails_a_scheduled_email_or_is_skipped() {
    let world = TestWorld::start().await;
    let at = (world.server.clock.now() + HOUR).to_string();
    let mut emails = Vec::new();
    for on_suppressed in ["fail", "skip"] {
        let body = json!({
            "from": "ada@acme.example", "to": ["b@dest.example", "gone@dest.example"], "subject": "s", "text": "t",
            "scheduled_at": at, "on_suppressed": on_suppressed,
        });
        let (status, response) = world.call("POST", "/emails", &body.to_string()).await;
        assert_eq!(status, 200, "{response}");
        emails.push(response["id"].as_str().unwrap().parse::<EmailId>().unwrap());
    }
    world.call("POST", "/suppressions", r#"{"email": "gone@dest.example"}"#).await;
    world.server.clock.advance(HOUR + Duration::from_secs(1));
    let states = |email: &EmailWithRecipients| email.recipients.iter().map(|r| r.state).collect::<Vec<_>>();
    let failed = world.wait(emails[0], |e| e.recipients.iter().all(|r| r.state.is_terminal())).await;
    assert_eq!(states(&failed), [RecipientState::Failed, RecipientState::Suppressed]);
    let events = store::event::list(&world.server.store, world.account, emails[0], 10).await.unwrap();
    assert_eq!(events.last().unwrap().kind, EventKind::Suppressed);
    let sent = world.wait(emails[1], |e| e.recipients.iter().all(|r| r.state.is_terminal())).await;
    assert_eq!(states(&sent), [RecipientState::Delivered, RecipientState::Suppressed]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_email_of_a_suspended_account_is_held_and_then_fails() {
    let world = TestWorld::start().await;
    let id = schedule(&world, "b@dest.example", HOUR).await;
    world.suspend(true).await;
    world.server.clock.advance(HOUR + Duration::from_secs(1));
    let held = world.wait(id, |e| e.recipients[0].state == RecipientState::Held).await;
    assert_eq!(EmailRollup::from_recipients(&held.recipients).status, EmailStatus::Queued);
    world.suspend(false).await;
    world.server.clock.advance(Duration::from_secs(301));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    // Delivery is given up after two days.
    let lost = schedule(&world, "c@dest.example", HOUR).await;
    world.suspend(true).await;
    world.server.clock.advance(49 * HOUR);
    let failed = world.wait(lost, |e| e.recipients[0].state.is_terminal()).await;
    let rollup = EmailRollup::from_recipients(&failed.recipients);
    assert_eq!((rollup.status, rollup.last_event), (EmailStatus::Failed, EventKind::Failed));
    world.end().await;
}

/// A release stores the whole message, so it waits for space as new mail does. Nothing is written meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_email_waits_while_the_disk_is_full() {
    let lines = Lines::start();
    let world = TestWorld::start().await;
    let id = schedule(&world, "b@dest.example", HOUR).await;
    let schedule_before = world.email(id).await.schedule;
    // A disk without space for the reserve counts as full.
    let world = world.restart("[store]\nreserve_bytes = 1000000000000000000\n").await;
    assert_eq!(world.server.store.health().state, StoreState::Full);
    world.server.clock.advance(HOUR + Duration::from_secs(1));
    lines.wait_for("message", "cannot release scheduled email; retrying", 1).await;
    let email = world.email(id).await;
    assert_eq!((email.recipients[0].state, email.schedule), (RecipientState::Scheduled, schedule_before));
    let (_, view) = world.call("GET", &format!("/emails/{id}"), "").await;
    assert_eq!(view["email"]["recipients"][0]["waits_for"]["cause"], "scheduled_at", "{view}");
    assert!(world.sink.received().is_empty());
    // The clock of the next process has the system time.
    let world = world.restart("").await;
    assert_eq!(world.server.store.health().state, StoreState::Healthy);
    world.server.clock.advance(HOUR + Duration::from_secs(1));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

/// Returns whether the cancellation was in time.
async fn cancel(world: &TestWorld, id: EmailId) -> bool {
    let (status, response) = world.call("POST", &format!("/emails/{id}/cancel"), "").await;
    match status {
        200 => response["email"]["status"].as_str() == Some("cancelled"),
        400 | 409 => false,
        other => panic!("{other}: {response}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrent_release_and_cancellation_have_one_result() {
    let world = TestWorld::start().await;
    let mut ids = Vec::new();
    for n in 0..40 {
        ids.push(schedule(&world, &format!("r{n}@dest.example"), HOUR).await);
    }
    world.server.clock.advance(HOUR + Duration::from_secs(1));
    let cancelled = futures_util::future::join_all(ids.iter().map(|id| cancel(&world, *id))).await;
    for (id, cancelled) in ids.iter().zip(&cancelled) {
        let expected = if *cancelled { RecipientState::Cancelled } else { RecipientState::Delivered };
        world.wait(*id, |e| e.recipients[0].state == expected).await;
    }
    assert_eq!(world.sink.received().len(), cancelled.iter().filter(|c| !**c).count());
    world.end().await;
}
