//! Stop and start: nothing is lost, nothing is sent twice.

use std::time::Duration;

use model::recipient::RecipientState;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

/// A stop waits for attempts in progress, and a connection begins no further one: it would be aborted and repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_begins_no_transaction_on_an_open_connection() {
    let world = TestWorld::start_with("paused = true\n[[delivery.pace]]\nconnections_max = 1\n").await;
    world.sink.script("slow@dest.example", &[Behaviour::AtRcptLater("550 5.1.1 nobody")]);
    world.relay(&["slow@dest.example"], "in progress").await;
    world.relay(&["b@dest.example"], "next").await;
    world.reload("[[delivery.pace]]\nconnections_max = 1\n");
    world.sink.pending_reply().await;
    let (sink, stop) = (world.sink.clone(), world.server.queue.services.stop.clone());
    let closing = tokio::spawn(world.close());
    stop.cancelled().await;
    sink.release_reply();
    closing.await.unwrap();
    assert!(sink.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_mail_is_delivered_after_a_restart() {
    let world = TestWorld::start_with("paused = true\n").await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(world.relay(&["one@dest.example", "two@other.example"], &format!("kept {n}")).await);
    }
    assert!(world.sink.received().is_empty());
    let world = world.restart("").await;
    for id in ids {
        world.wait(id, |e| e.recipients.iter().all(|r| r.state == RecipientState::Delivered)).await;
    }
    assert_eq!(world.sink.received().len(), 20);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deferred_mail_keeps_its_retry_time_over_a_restart() {
    let world = TestWorld::start().await;
    world.sink.script("grey@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["grey@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let world = world.restart("").await;
    assert!(world.sink.received().is_empty());
    world.server.clock.advance(Duration::from_secs(75));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_larger_than_memory_is_delivered_from_disk() {
    let world = TestWorld::start_with("tasks_in_memory_max = 8\n").await;
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push(world.relay(&["one@dest.example"], &format!("many {n}")).await);
    }
    for id in ids {
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    assert_eq!(world.sink.received().len(), 60, "each once");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_cut_after_the_final_dot_is_recorded_as_unconfirmed() {
    let world = TestWorld::start().await;
    world.sink.script("slow@dest.example", &[Behaviour::StallAfterDot]);
    world.sink.script("stuck@slow.example", &[Behaviour::Stall]);
    let id = world.relay(&["slow@dest.example"], "on its way").await;
    let untried = world.relay(&["stuck@slow.example"], "not yet").await;
    world.sink.wait_for(1).await;
    world.server.queue.drain_within(Duration::ZERO).await;
    let world = world.restart("").await;
    let attempts = store::attempt::list(&world.server.store, world.account, id, 10).await.unwrap();
    assert_eq!(attempts.len(), 1, "{attempts:#?}");
    let error = attempts[0].error.as_deref().unwrap_or_default();
    assert!(error.starts_with("it may have arrived") && error.contains("shut down"), "{error}");
    assert_eq!(world.email(id).await.recipients[0].state, RecipientState::Deferred);
    let email = world.wait(untried, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(email.recipients[0].attempts, 1, "an attempt cut before its content was sent does not count");
    world.server.clock.advance(Duration::from_secs(75));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_message_that_cannot_be_read_counts_as_damaged() {
    let world = TestWorld::start_with("paused = true\n").await;
    let lost = world.relay(&["one@dest.example"], "damaged").await;
    let mut batch = store::engine::Batch::progress();
    batch.delete_body(store::email::body_key(world.account, lost));
    world.server.store.commit(batch).await.unwrap();
    assert_eq!(world.server.queue.delivery.scheduler.damaged.count(), 0);
    world.reload("");
    world.wait(lost, |e| e.recipients[0].state == RecipientState::Deferred).await;
    assert_eq!(world.server.queue.delivery.scheduler.damaged.count(), 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_task_does_not_block_others() {
    let world = TestWorld::start_with("paused = true\n").await;
    let lost = world.relay(&["one@dest.example"], "damaged").await;
    let id = world.relay(&["one@dest.example"], "behind it").await;
    let store = &world.server.store;
    let slice = store::task::list_all(store, None, 10).await.unwrap();
    let (task, _) = slice.tasks.iter().find(|(task, _)| task.id.email == lost).unwrap();
    let mut batch = store::engine::Batch::progress();
    batch.put(store::task::key_of(task), store::engine::Value::from_static(b"[1,{}]"));
    store.commit(batch).await.unwrap();
    assert_eq!(world.reload("").applied, ["delivery.paused"]);
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(world.email(lost).await.recipients[0].state, RecipientState::Queued);
    let report = store.verify().await.unwrap();
    assert!(
        report.problems.len() == 1 && report.problems[0].to_string().contains("dest.example"),
        "{:?}",
        report.problems
    );
    world.end().await;
}
