//! A destination that cannot be reached: its mail waits without counted attempts and is delivered once the destination
//! is back.

use std::net::SocketAddr;
use std::time::Duration;

use model::event::EventKind;
use model::id::EmailId;
use model::recipient::RecipientState;
use store::email::EmailWithRecipients;

use crate::world::TestWorld;
use crate::world::sink::Sink;

#[tokio::test(flavor = "multi_thread")]
async fn mail_for_a_dead_host_is_delivered_when_it_is_back() {
    let world = TestWorld::start().await;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(world.relay(&["one@dead.example"], &format!("number {n}")).await);
    }
    // After three refused connections the host counts as dead; the remaining mail waits untried.
    world
        .wait_for_emails(|emails| {
            let is_attempted =
                |e: &&store::email::EmailWithRecipients| e.recipients[0].state == RecipientState::Deferred;
            emails.iter().filter(is_attempted).count() >= 3
        })
        .await;
    let address = SocketAddr::new([127, 0, 0, 2].into(), world.sink.address.port());
    let back = Sink::start_on(address).await;
    world.server.clock.advance(Duration::from_secs(600));
    for id in ids {
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    assert_eq!(back.received().len(), 12);
    world.end().await;
}

/// Kinds of an email's events, oldest first.
async fn events(world: &TestWorld, id: EmailId) -> Vec<EventKind> {
    let events = store::event::list(&world.server.store, world.account, id, 100).await.unwrap();
    events.into_iter().map(|event| event.kind).collect()
}

/// Relays `count` messages to a domain and waits until at least one was tried.
async fn relay_many(world: &TestWorld, domain: &str, count: usize, parameters: &str) -> Vec<EmailId> {
    let mut ids = Vec::new();
    for n in 0..count {
        let to = format!("one@{domain}");
        ids.push(world.relay_with(&[&to], parameters, &format!("number {n}")).await);
    }
    let is_tried = |e: &&EmailWithRecipients| e.recipients[0].state == RecipientState::Deferred;
    world.wait_for_emails(|emails| emails.iter().filter(is_tried).count() >= 1).await;
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn all_mail_for_a_dead_host_gets_a_delay_dsn_and_fails_at_its_deadline() {
    let world = TestWorld::start().await;
    let ids = relay_many(&world, "dead.example", 20, " NOTIFY=FAILURE,DELAY").await;
    let clock = &world.server.clock;
    // Probe the host until all mail is deferred: it has then been dead for longer than the first retry delay.
    loop {
        let changed = world.server.queue.services.outcome_recorded.notified();
        let mut emails = Vec::new();
        for id in &ids {
            emails.push(world.email(*id).await);
        }
        if emails.iter().all(|email| email.recipients[0].state == RecipientState::Deferred) {
            break;
        }
        let dead_until = world
            .server
            .queue
            .delivery
            .queues
            .ready_queue_statuses()
            .iter()
            .filter_map(|site| site.throttle.dead_until)
            .max();
        if let Some(until) = dead_until.filter(|until| *until > clock.now()) {
            clock.advance(Duration::try_from(until.duration_since(clock.now())).unwrap() + Duration::from_millis(1));
        }
        changed.await;
    }
    for id in &ids {
        world.wait(*id, |e| e.recipients[0].state == RecipientState::Deferred).await;
        assert!(events(&world, *id).await.contains(&EventKind::DeliveryDelayed));
    }
    clock.advance(Duration::from_secs(4 * 3600));
    loop {
        let changed = world.server.queue.services.outcome_recorded.notified();
        let page = store::task::list_all(&world.server.store, None, 100).await.unwrap();
        if page.tasks.iter().all(|(task, _)| !task.notify.delay) {
            break;
        }
        changed.await;
    }
    // A delay DSN is held back for a while to include other recipients of its email.
    clock.advance(Duration::from_secs(600));
    let reports = world.sink.wait_for(20).await;
    assert!(reports.iter().all(|report| report.content.contains("Action: delayed\r\n")), "{reports:?}");
    clock.advance(Duration::from_secs(44 * 3600 + 6));
    for id in &ids {
        let email = world.wait(*id, |e| e.recipients[0].state.is_terminal()).await;
        assert_eq!(email.recipients[0].state, RecipientState::Failed);
        let kinds = events(&world, *id).await;
        assert_eq!(kinds.iter().filter(|kind| **kind == EventKind::Failed).count(), 1, "{kinds:?}");
    }
    clock.advance(Duration::from_secs(600));
    let reports = world.sink.wait_for(40).await;
    let failed = reports.iter().filter(|report| report.content.contains("Action: failed\r\n"));
    assert_eq!(failed.count(), 20);
    // The host is back after the deadline: none of the expired mail is sent.
    let address = SocketAddr::new([127, 0, 0, 2].into(), world.sink.address.port());
    let back = Sink::start_on(address).await;
    clock.advance(Duration::from_secs(3600));
    let next = world.relay(&["one@dead.example"], "anew").await;
    world.wait(next, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(back.received().len(), 1);
    world.end().await;
}

/// Deadline of mail in backoff: one 421 greeting, then one jump of the clock past the deadline.
#[tokio::test(flavor = "multi_thread")]
async fn all_mail_for_a_host_in_backoff_ends_at_its_deadline() {
    let world = TestWorld::start().await;
    world.sink.script_all_greetings(Some("421 4.3.2 not now"));
    let ids = relay_many(&world, "dest.example", 20, " NOTIFY=NEVER").await;
    world.server.clock.advance(Duration::from_secs(176_400));
    world.sink.script_all_greetings(None);
    for id in &ids {
        let email = world.wait(*id, |e| e.recipients[0].state.is_terminal()).await;
        let state = email.recipients[0].state;
        assert!(matches!(state, RecipientState::Failed | RecipientState::Bounced), "{email:#?}");
    }
    assert!(world.sink.received().is_empty(), "{:?}", world.sink.received());
    world.end().await;
}
