//! Ingestion of webhook bodies: signature, mode, account, deduplication, and replay of failed events.

use affiliate::ledger::ingest::IngestOutcome;
use affiliate::processor::AMOUNT_MAX;
use affiliate::processor::signature;
use serde_json::{Value, json};
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent};

use super::processor_objects::invoice;
use super::world::{SECRET, World};

impl World {
    async fn event_row(&self, id: &str) -> Option<ProcessorEvent> {
        processor_event::get(self.store(), self.account, id).await.unwrap().event
    }

    async fn listed(&self, status: EventStatus) -> usize {
        processor_event::list(self.store(), self.account, status, None, 100).await.unwrap().len()
    }
}

fn id(event: &Value) -> &str {
    event["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_signed_event_is_applied_once() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    let event = world.paid("in_1", "cus_1", 10_000, 10);
    let body = event.to_string();
    let header = signature::sign(SECRET, world.clock.now(), body.as_bytes());
    let receive = async |secret: &str, body: &str| match signature::verify(
        &header,
        body.as_bytes(),
        &["whsec_old", secret],
        world.clock.now(),
    ) {
        Ok(_) => world.ingest().ingest(world.account, body.as_bytes()).await,
        Err(error) => IngestOutcome::BadSignature(error),
    };
    assert!(matches!(receive("whsec_other", &body).await, IngestOutcome::BadSignature(_)));
    assert!(matches!(receive(SECRET, &format!("{body} ")).await, IngestOutcome::BadSignature(_)));
    assert_eq!(world.event_row(id(&event)).await, None);
    assert!(matches!(receive(SECRET, &body).await, IngestOutcome::Done));
    assert!(matches!(receive(SECRET, &body).await, IngestOutcome::Duplicate));
    assert_eq!(world.lines().await.len(), 2);
    let row = world.event_row(id(&event)).await.unwrap();
    assert_eq!((row.status, row.attempts, row.body), (EventStatus::Done, 1, None));
    // A replay of a processed event changes nothing.
    let replayed = world.ingest().replay(world.account, id(&event)).await.unwrap().unwrap();
    assert_eq!((replayed.status, replayed.attempts), (EventStatus::Done, 1));
    world.audit().await;
}

#[tokio::test]
async fn events_of_other_modes_accounts_and_types_are_ignored() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    let mut test_mode = world.paid("in_1", "cus_1", 10_000, 10);
    test_mode["livemode"] = json!(false);
    let mut anothers = world.paid("in_2", "cus_1", 10_000, 10);
    anothers["account"] = json!("acct_other");
    let unused_kind = world.event("payout.paid", 1, json!({"id": "po_1"}));
    // An event without `livemode` is not live.
    let mut silent = world.paid("in_4", "cus_1", 10_000, 10);
    silent.as_object_mut().unwrap().remove("livemode");
    for event in [&test_mode, &anothers, &unused_kind, &silent] {
        assert!(matches!(world.try_ingest(event).await, IngestOutcome::Ignored(_)), "{event}");
        assert!(matches!(world.try_ingest(event).await, IngestOutcome::Duplicate), "{event}");
    }
    assert_eq!((world.lines().await.len(), world.listed(EventStatus::Ignored).await), (0, 4));
    let mut connected_event = world.paid("in_3", "cus_1", 10_000, 10);
    connected_event["account"] = json!("acct_own");
    world.ingest_event(&connected_event).await;
    assert_eq!(world.lines().await.len(), 2);
}

#[tokio::test]
async fn an_unreadable_event_fails_and_can_be_replayed() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    let mut broken = invoice("in_1", "cus_1", 10_000, world.start + 10);
    broken["amount_paid"] = json!("10000");
    let event = world.event("invoice.paid", 10, broken);
    assert!(matches!(world.try_ingest(&event).await, IngestOutcome::Failed(_)));
    assert!(matches!(world.try_ingest(&event).await, IngestOutcome::Failed(_)));
    let row = world.event_row(id(&event)).await.unwrap();
    assert_eq!((row.status, row.attempts), (EventStatus::Failed, 2));
    assert!(row.error.unwrap().contains("amount_paid") && row.body.is_some());
    let replayed = world.ingest().replay(world.account, id(&event)).await.unwrap().unwrap();
    assert_eq!((replayed.status, replayed.attempts), (EventStatus::Failed, 3));
    // The processor resends it with correct data.
    let mut mended = event.clone();
    mended["data"]["object"]["amount_paid"] = json!(10_000);
    world.ingest_event(&mended).await;
    let row = world.event_row(id(&event)).await.unwrap();
    assert_eq!((row.status, row.attempts, row.error, row.body), (EventStatus::Done, 4, None, None));
    assert_eq!((world.lines().await.len(), world.listed(EventStatus::Failed).await), (2, 0));
    assert!(world.ingest().replay(world.account, "evt_unknown").await.unwrap().is_none());
    // A body without a valid id.
    assert!(matches!(world.ingest().ingest(world.account, b"{\"id\": 7}").await, IngestOutcome::Failed(_)));
    assert_eq!(world.listed(EventStatus::Failed).await, 1);
    world.audit().await;
}

#[tokio::test]
async fn amounts_beyond_the_maximum_change_nothing() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", AMOUNT_MAX, 10)).await;
    let before = world.outline().await;
    for amount in [AMOUNT_MAX + 1, i64::MAX] {
        assert!(matches!(world.try_ingest(&world.paid("in_2", "cus_1", amount, 20)).await, IngestOutcome::Failed(_)));
    }
    assert_eq!((world.outline().await, world.referral(lead.id).await.revenue_cents), (before, AMOUNT_MAX));
    world.audit().await;
}
