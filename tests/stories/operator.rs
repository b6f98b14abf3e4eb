//! The operator looks into the queue, and reaches into it.

use mail::recipient::RecipientState;
use queue::operate::Order;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

#[tokio::test(flavor = "multi_thread")]
async fn hold_release_retry_and_drop() {
    let world = TestWorld::start().await;
    let worker = &world.world.worker;
    world.sink.script("grey@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["grey@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    worker.order(id, Order::Hold).await.unwrap();
    let trace = worker.trace(id).await.unwrap();
    assert!(trace.waiting[0].what.starts_with("held"), "{:?}", trace.waiting);
    worker.order(id, Order::Release).await.unwrap();
    let trace = worker.trace(id).await.unwrap();
    assert!(trace.waiting[0].until.is_some(), "{:?}", trace.waiting);
    assert_eq!(worker.order(id, Order::Retry).await.unwrap(), 1);
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert!(worker.order(id, Order::Retry).await.is_err(), "nothing is left in the queue");

    world.sink.script("drop@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["drop@dest.example"], "never").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    worker.order(id, Order::Drop).await.unwrap();
    let email = world.email(id).await;
    assert_eq!(email.recipients[0].state, RecipientState::Cancelled);
    world.end().await;
}
