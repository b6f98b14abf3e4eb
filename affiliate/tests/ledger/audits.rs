//! Audits for requests: one at a time, whose result is used again while the ledger is the same.

use std::time::Duration;

use affiliate::audit::runner::{AuditRunner, AuditWait};
use affiliate::audit::{AuditReport, AuditStatus, audit_within};
use jiff::SignedDuration;

use super::world::World;

async fn world_with_a_payment() -> World {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    world
}

async fn wait_for(runner: &AuditRunner, world: &World) -> AuditReport {
    runner.audit(world.ledger.clone(), world.account, AuditWait::ForResult).await.unwrap()
}

#[tokio::test]
async fn a_result_is_used_again_until_the_ledger_changes() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    let first = wait_for(&runner, &world).await;
    assert!(first.ok && first.complete, "{first:?}");
    assert_eq!((first.status, first.checked.commissions), (AuditStatus::Done, 2));
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(wait_for(&runner, &world).await, first);
    world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 20)).await;
    let second = wait_for(&runner, &world).await;
    assert_eq!(second.checked.commissions, 4, "the newest commission is another one");
    world.clock.advance(Duration::from_secs(60));
    assert_ne!(wait_for(&runner, &world).await.audited_at, second.audited_at, "the result is too old");
}

#[tokio::test]
async fn requests_share_a_running_audit() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    let (one, other) = tokio::join!(wait_for(&runner, &world), wait_for(&runner, &world));
    assert_eq!(one, other);
}

#[tokio::test]
async fn a_request_that_does_not_wait_is_answered_at_once() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    let at_once = async || runner.audit(world.ledger.clone(), world.account, AuditWait::No).await.unwrap();
    let running = at_once().await;
    assert_eq!((running.status, running.ok, running.invariants.len()), (AuditStatus::Running, false, 0));
    let done = wait_for(&runner, &world).await;
    world.clock.advance(Duration::from_secs(300));
    assert_eq!(at_once().await, done, "a page that is read again and again uses an older result");
}

#[tokio::test]
async fn an_audit_ends_when_its_time_is_over() {
    let world = world_with_a_payment().await;
    let limit = |limit| audit_within(&world.ledger, world.account, Some(limit));
    let ended = limit(SignedDuration::ZERO).await.unwrap();
    assert!(!ended.complete && ended.broken.is_empty(), "{ended:?}");
    assert_eq!((ended.checked.partners, ended.checked.commissions), (0, 0));
    assert!(limit(SignedDuration::from_secs(60)).await.unwrap().complete);
}
