//! Reload: settings that can change do so without a restart.

use model::recipient::RecipientState;
use postrider::reload;

use crate::world::TestWorld;
use crate::world::submit::dialog;

#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_paused_and_resumed_without_a_restart() {
    let world = TestWorld::start().await;
    let before = world.relay(&["one@dest.example"], "before").await;
    world.wait(before, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let changes = world.reload("paused = true\n");
    assert_eq!(changes, reload::ConfigChanges { applied: vec!["delivery.paused"], needs_restart: Vec::new() });
    let id = world.relay(&["one@dest.example"], "meanwhile").await;
    let trace = world.server.queue.delivery.admin.trace_email(id).await.unwrap();
    assert!(trace.waits[0].cause == queue::admin::queue_admin::WaitCause::Paused, "{:?}", trace.waits);
    assert_eq!(world.reload("").applied, ["delivery.paused"]);
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let received = world.sink.wait_for(2).await;
    assert_eq!(received.len(), 2, "{received:#?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_networks_and_limits_apply_to_the_next_session() {
    let world = TestWorld::start().await;
    assert!(dialog(world.relay, &[]).await[0].starts_with("220 "));
    world.reload("[submission]\nmessage_bytes_max = 1000\n");
    let replies = dialog(world.relay, &["EHLO x", "MAIL FROM:<ada@acme.example> SIZE=1001"]).await;
    assert!(replies[2].starts_with("552 5.3.4 "), "{replies:?}");
    world.reload_with(|config| config.relay[0].networks = vec!["192.0.2.0/24".parse().unwrap()]);
    assert!(dialog(world.relay, &[]).await[0].starts_with("554 5.7.1 "));
    world.end().await;
}
