//! `expires_in`: an email ends at its deadline whatever it waits for, and an event reports it.

use std::time::Duration;

use model::destination::{Destination, OperatorSuspension};
use model::id::EmailId;
use model::recipient::{Recipient, RecipientState};
use queue::admin::queue_command::QueueCommand;
use serde_json::{Value, json};

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

/// Sends an email that expires after ten minutes.
async fn code(world: &TestWorld, to: &str) -> EmailId {
    code_for(world, to, json!({"expires_in": 600})).await
}

/// Sends an email with further fields, such as `expires_in`.
pub(crate) async fn code_for(world: &TestWorld, to: &str, how: Value) -> EmailId {
    let mut mail = json!({"from": "ada@acme.example", "to": to, "subject": "Your code", "text": "1234"});
    mail.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
    let (status, answer) = world.call("POST", "/emails", &mail.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    answer["id"].as_str().unwrap().parse().unwrap()
}

/// Waits until an email has ended. Returns its recipient and the detail of its last event.
async fn wait_for_end(world: &TestWorld, id: EmailId) -> (Recipient, Value) {
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    let events = store::event::list(&world.server.store, world.account, id, 10).await.unwrap();
    (email.recipients[0].clone(), events.last().unwrap().detail.clone())
}

async fn is_expired(world: &TestWorld, id: EmailId) {
    let (recipient, detail) = wait_for_end(world, id).await;
    assert_eq!((recipient.state, recipient.attempts), (RecipientState::Failed, 0), "nothing was tried");
    assert_eq!(detail["failure"]["reason"], "expired", "{detail}");
}

const PAST: Duration = Duration::from_secs(606);

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_while_its_destination_is_suspended() {
    let world = TestWorld::start().await;
    let since = world.server.clock.now();
    let suspension = || Some(OperatorSuspension { since, until: None, because: None });
    let destination = Destination::Domain("dest.example".parse().unwrap());
    let queue = &world.server.queue;
    queue.delivery.queues.change_override(&destination, |overrides| overrides.suspension = suspension()).await.unwrap();
    let id = code(&world, "b@dest.example").await;
    world.server.clock.advance(PAST);
    is_expired(&world, id).await;
    assert!(world.sink.received().is_empty(), "no host was contacted");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_while_the_operator_holds_it() {
    let world = TestWorld::start_with("paused = true\n").await;
    let id = code(&world, "b@dest.example").await;
    world.server.queue.delivery.admin.command_email(id, &QueueCommand::Hold).await.unwrap();
    world.reload("");
    world.server.clock.advance(PAST);
    is_expired(&world, id).await;
    assert!(world.sink.received().is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_while_delivery_is_paused() {
    let world = TestWorld::start_with("paused = true\n").await;
    let id = code(&world, "b@dest.example").await;
    world.server.clock.advance(PAST);
    is_expired(&world, id).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_after_a_restart() {
    let world = TestWorld::start_with("paused = true\n").await;
    let id = code(&world, "b@dest.example").await;
    let world = world.restart("paused = true\n").await;
    world.server.clock.advance(PAST);
    is_expired(&world, id).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_in_the_ready_queue() {
    let rarely = "[[delivery.pace]]\nmail_host = \"mx.dest.example\"\nmessages_per_second = 0.001\n";
    let world = TestWorld::start_with(rarely).await;
    let first = world.relay(&["a@dest.example"], "the one of this quarter of an hour").await;
    world.wait(first, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let id = code(&world, "b@dest.example").await;
    let queue = &world.server.queue;
    assert_eq!(queue.delivery.queues.ready_queue_statuses().iter().map(|site| site.ready).sum::<usize>(), 1);
    world.server.clock.advance(PAST);
    is_expired(&world, id).await;
    assert_eq!(
        queue.delivery.queues.ready_queue_statuses().iter().map(|site| site.ready).sum::<usize>(),
        0,
        "no ready task"
    );
    assert_eq!(world.sink.received().len(), 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_email_reports_the_last_reply_of_its_destination() {
    let pause =
        "[[delivery.replies]]\nprovider = \"dest.example\"\ncode = \"4.7.28\"\naction = \"pause\"\nfor = \"1h\"\n";
    let world = TestWorld::start_with(pause).await;
    world.sink.script("b@dest.example", &[Behaviour::AtRcpt("421 4.7.28 an unusual rate of mail from you")]);
    let id = code(&world, "b@dest.example").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    world.server.clock.advance(PAST);
    let (recipient, detail) = wait_for_end(&world, id).await;
    assert_eq!(recipient.state, RecipientState::Bounced);
    assert_eq!(recipient.last_response.map(|reply| reply.code), Some(421));
    let bounce = &detail["bounce"];
    assert_eq!((&bounce["type"], &bounce["smtp_code"]), (&json!("soft"), &json!(421)), "{detail}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_behind_a_slow_message() {
    let world = TestWorld::start_with("paused = true\n[[delivery.pace]]\nconnections_max = 1\n").await;
    world.sink.script("slow@dest.example", &[Behaviour::AtRcptLater("550 5.1.1 nobody")]);
    let first = code(&world, "slow@dest.example").await;
    let next = code(&world, "b@dest.example").await;
    world.reload("[[delivery.pace]]\nconnections_max = 1\n");
    world.sink.pending_reply().await;
    world.server.clock.advance(PAST);
    world.sink.release_reply();
    world.wait(first, |e| e.recipients[0].state == RecipientState::Bounced).await;
    is_expired(&world, next).await;
    assert!(world.sink.received().is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_expires_while_held_after_its_scheduled_time() {
    let world = TestWorld::start().await;
    let due = world.server.clock.now() + Duration::from_secs(60);
    let how = json!({"expires_in": 600, "scheduled_at": due.to_string()});
    let id = code_for(&world, "b@dest.example", how).await;
    world.suspend(true).await;
    world.server.clock.advance(Duration::from_secs(61));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Held).await;
    world.server.clock.advance(PAST);
    is_expired(&world, id).await;
    world.suspend(false).await;
    world.end().await;
}
