//! Audits for requests: one at a time, whose result is used by the requests that wait for it, and by those that do not
//! wait.

use std::time::Duration;

use affiliate::audit::audit_within;
use affiliate::audit::report::{AuditReport, AuditStatus};
use affiliate::audit::runner::{AuditRunner, AuditWait};
use affiliate::error::AffiliateError;
use jiff::SignedDuration;
use model::id::AccountId;

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

/// Asks without waiting.
async fn ask(runner: &AuditRunner, world: &World, account: AccountId) -> Result<AuditReport, AffiliateError> {
    runner.audit(world.ledger.clone(), account, AuditWait::No).await
}

#[tokio::test]
async fn a_request_that_waits_gets_a_new_result() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    let first = wait_for(&runner, &world).await;
    assert!(first.ok && first.complete, "{first:?}");
    assert_eq!((first.status, first.checked.commissions), (AuditStatus::Done, 2));
    world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 20)).await;
    let second = wait_for(&runner, &world).await;
    assert_eq!(second.checked.commissions, 4, "the newest commission is another one");
    world.clock.advance(Duration::from_secs(3));
    assert_ne!(wait_for(&runner, &world).await.audited_at, second.audited_at, "the audit began before the request");
}

#[tokio::test]
async fn requests_share_a_running_audit() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    let (one, other) = tokio::join!(wait_for(&runner, &world), wait_for(&runner, &world));
    assert_eq!(one, other);
}

#[tokio::test]
async fn requests_that_wait_share_the_audit_after_the_running_one() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    ask(&runner, &world, world.account).await.unwrap();
    // The audit begins.
    tokio::task::yield_now().await;
    world.clock.advance(Duration::from_secs(10));
    let asked_at = world.clock.now();
    let (one, other) = tokio::join!(wait_for(&runner, &world), wait_for(&runner, &world));
    assert!(one.audited_at.is_some_and(|at| at.0 >= asked_at), "{one:?}");
    assert_eq!(one, other);
}

#[tokio::test]
async fn a_request_that_does_not_wait_is_answered_at_once() {
    let (world, runner) = (world_with_a_payment().await, AuditRunner::default());
    let running = ask(&runner, &world, world.account).await.unwrap();
    assert_eq!((running.status, running.ok, running.invariants.len()), (AuditStatus::Running, false, 0));
    let done = wait_for(&runner, &world).await;
    world.clock.advance(Duration::from_secs(300));
    let again = ask(&runner, &world, world.account).await.unwrap();
    assert_eq!(again, done, "a page that is read again and again uses an older result");
    world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 20)).await;
    for _ in 0..2 {
        let last = ask(&runner, &world, world.account).await.unwrap();
        assert_eq!(last, done, "while another audit runs, the last result is known");
    }
    let second = wait_for(&runner, &world).await;
    assert_eq!(second.checked.commissions, 4);
    assert_eq!(ask(&runner, &world, world.account).await.unwrap(), second);
}

#[tokio::test]
async fn the_error_of_an_audit_is_a_result_for_a_short_time() {
    let (world, runner) = (World::new().await, AuditRunner::default());
    let unknown = AccountId::new(world.clock.now(), 1);
    let running = ask(&runner, &world, unknown).await.unwrap();
    assert_eq!(running.status, AuditStatus::Running);
    let failed = runner.audit(world.ledger.clone(), unknown, AuditWait::ForResult).await;
    assert!(matches!(failed, Err(AffiliateError::NotSetUp)), "{failed:?}");
    let failed = ask(&runner, &world, unknown).await;
    assert!(matches!(failed, Err(AffiliateError::NotSetUp)), "{failed:?}");
    world.clock.advance(Duration::from_secs(31));
    assert_eq!(ask(&runner, &world, unknown).await.unwrap().status, AuditStatus::Running);
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
