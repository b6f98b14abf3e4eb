//! Store failures: no event is applied in part, and a redelivered event is applied.

use affiliate::ledger::ingest::IngestOutcome;
use model::affiliate::referral::ReferralStatus;
use store::engine::{FaultInjector, RedbOptions, Store};

use super::processor_objects::{charge, checkout};
use super::world::{World, terms};

#[tokio::test]
async fn a_full_disk_leaves_no_partial_changes() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let options = RedbOptions {
        faults: Some(faults.clone()),
        reserve_bytes: 0,
        segment_bytes: 1 << 20,
        ..RedbOptions::new(directory.path().join("store"))
    };
    let world = World::with_settings(Store::open(&options).unwrap(), terms(), |_| {}).await;
    let lead = world.lead("lin@example.org", None).await;
    let mut events: Vec<_> = (0..150).map(|n| world.paid(&format!("in_{n}"), "cus_1", 1_000, 10 + n)).collect();
    // This links all invoices to the referral, which takes two commits.
    let session = checkout("cs_1", Some("cus_1"), &lead.id.to_string());
    events.push(world.event("checkout.session.completed", 500, session));
    events.push(world.event("charge.refunded", 600, charge("in_7", 1_000, 1_000)));
    let mut refused = 0;
    for (number, event) in events.iter().enumerate() {
        if number % 10 == 0 || number > 145 {
            faults.set_full(true);
            if let IngestOutcome::Failed(_) = world.try_ingest(event).await {
                refused += 1;
                world.audit().await;
            }
            faults.set_full(false);
        }
        while let IngestOutcome::Failed(_) = world.try_ingest(event).await {
            tokio::task::yield_now().await;
        }
    }
    let referral = world.referral(lead.id).await;
    assert_eq!((referral.status, referral.revenue_cents), (ReferralStatus::Active, 149_000));
    assert_eq!((world.lines().await.len(), world.event_kinds(lead.id).await.len()), (300, 2));
    world.audit().await;
    assert!(refused <= events.len());
    world.store().close().await;
}
