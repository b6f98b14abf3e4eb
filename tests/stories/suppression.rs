//! Suppression by delivery results: permanently, for a growing time, or for a day.

use std::time::Duration;

use model::email::Category;
use model::id::EmailId;
use model::suppression::{BlockReason, Suppression, SuppressionReason, SuppressionSource};
use store::suppression::find_blocked;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

const HOUR: Duration = Duration::from_secs(3_600);

/// Sends an email and advances the clock to each further attempt until the recipient's state is final.
async fn send_to_the_end(world: &TestWorld, to: &str) -> EmailId {
    let id = world.relay(&[to], "story").await;
    let mut attempts = 0;
    loop {
        let email = world.wait(id, |e| e.recipients[0].attempts > attempts).await;
        let recipient = &email.recipients[0];
        attempts = recipient.attempts;
        if recipient.state.is_terminal() {
            return id;
        }
        let wait = recipient.next_attempt_at.unwrap().duration_since(world.server.clock.now());
        world.server.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
    }
}

async fn suppression(world: &TestWorld, of: &str) -> Option<Suppression> {
    let found = store::suppression::get(&world.server.store, world.account, &of.parse().unwrap()).await;
    found.unwrap().map(|found| found.suppression)
}

/// Detail of the last event of an email.
async fn last_event(world: &TestWorld, id: EmailId) -> serde_json::Value {
    let events = store::event::list(&world.server.store, world.account, id, 100).await.unwrap();
    events.last().unwrap().detail.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_user_is_suppressed_permanently_and_the_event_says_so() {
    let world = TestWorld::start().await;
    world.sink.script("Gone@dest.example", &[Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    let id = send_to_the_end(&world, "Gone@dest.example").await;
    let one = suppression(&world, "gone@dest.example").await.unwrap();
    assert_eq!(
        (one.reason, one.source, one.expires_at),
        (SuppressionReason::HardBounce, SuppressionSource::System, None)
    );
    assert_eq!(one.email, Some(id));
    let detail = one.detail.clone().unwrap();
    assert_eq!((detail.smtp_code, detail.diagnostic.as_str()), (Some(550), "550 5.1.1 user unknown"));
    let event = last_event(&world, id).await;
    assert_eq!(event["suppression_id"], one.id.to_string());
    assert!(event["suppressed_until"].is_null() && event["bounce"]["type"] == "hard");
    let to = "GONE@dest.example".parse().unwrap();
    let (now, destinations) = (world.server.clock.now(), [&to]);
    let stopped = find_blocked(&world.server.store, world.account, Category::Transactional, &destinations, now);
    let reason = BlockReason::Suppressed { id: one.id, reason: SuppressionReason::HardBounce };
    assert_eq!(stopped.await.unwrap()[0].reason, reason);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn soft_bounces_suppress_for_a_day_a_week_and_a_month() {
    let world = TestWorld::start().await;
    world.sink.script("full@dest.example", &vec![Behaviour::AtRcpt("452 4.2.2 mailbox full"); 1_000]);
    for hours in [24, 7 * 24, 30 * 24] {
        let id = send_to_the_end(&world, "full@dest.example").await;
        let one = suppression(&world, "full@dest.example").await.unwrap();
        assert_eq!(one.reason, SuppressionReason::SoftBounce);
        let held = Duration::try_from(one.expires_at.unwrap().duration_since(one.created_at)).unwrap();
        assert_eq!(held, hours * HOUR);
        let event = last_event(&world, id).await;
        assert_eq!(event["suppression_id"], one.id.to_string());
        assert_eq!(event["suppressed_until"], format!("{:.3}", one.expires_at.unwrap()));
        world.server.clock.advance(held);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_about_the_sender_suppresses_for_one_day() {
    let world = TestWorld::start().await;
    world.sink.script("one@dest.example", &[Behaviour::AtDot("550 5.7.26 unauthenticated mail")]);
    let id = send_to_the_end(&world, "one@dest.example").await;
    let one = suppression(&world, "one@dest.example").await.unwrap();
    assert_eq!(one.reason, SuppressionReason::SmtpFailure);
    let held = one.expires_at.unwrap().duration_since(one.created_at);
    assert_eq!(Duration::try_from(held).unwrap(), 24 * HOUR);
    assert_eq!(last_event(&world, id).await["suppression_id"], one.id.to_string());
    world.end().await;
}

/// Concurrent failures write the same suppression, each in its own commit: none is lost and none is written twice.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_failures_are_all_recorded() {
    const COUNT: usize = 20;
    let world = TestWorld::start_with("paused = true\n").await;
    let replies = ["550 5.1.1 user unknown", "550 5.7.1 blocked by policy"];
    let script: Vec<_> = (0..COUNT).map(|n| Behaviour::AtRcpt(replies[n % 2])).collect();
    world.sink.script("gone@dest.example", &script);
    let mut ids = Vec::new();
    for _ in 0..COUNT {
        ids.push(world.relay(&["gone@dest.example"], "many").await);
    }
    world.reload("");
    for id in &ids {
        let email = world.wait(*id, |e| e.recipients[0].state.is_terminal()).await;
        assert_eq!(email.recipients[0].attempts, 1);
    }
    let one = suppression(&world, "gone@dest.example").await.unwrap();
    assert_eq!((one.reason, one.expires_at), (SuppressionReason::HardBounce, None));
    for id in ids {
        assert_eq!(last_event(&world, id).await["suppression_id"], one.id.to_string());
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_imported_by_the_running_server() {
    let world = TestWorld::start().await;
    let mut batch = store::engine::Batch::intake();
    let now = world.server.clock.now();
    let import = model::import::SuppressionImport {
        id: model::id::ImportId::new(now, 1),
        account: world.account,
        status: model::import::ImportStatus::Queued,
        counts: model::import::ImportCounts { total: 1, ..Default::default() },
        place: (0, 1),
        errors: Vec::new(),
        created_at: now,
        completed_at: None,
    };
    store::suppression_import::create(&mut batch, &import, b"a@example.net\n".to_vec().into());
    world.server.store.commit(batch).await.unwrap();
    // The import was queued when the server stopped; the next start runs it.
    let world = world.restart("").await;
    let read = async {
        loop {
            let found = store::suppression_import::get(&world.server.store, world.account, import.id).await.unwrap();
            if found.unwrap().import.status == model::import::ImportStatus::Completed {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, read).await.expect("the import does not complete");
    assert_eq!(suppression(&world, "A@example.net").await.unwrap().reason, SuppressionReason::Import);
    world.end().await;
}
