//! A temporary failure: the message waits by the retry schedule and is then retried.

use std::net::SocketAddr;
use std::time::Duration;

use model::event::EventKind;
use model::recipient::RecipientState;

use crate::world::sink::{Behaviour, Sink};
use crate::world::{TestWorld, ZONE};

#[tokio::test(flavor = "multi_thread")]
async fn a_4yz_is_retried_on_schedule() {
    let world = TestWorld::start().await;
    world.sink.script("grey@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["grey@dest.example"], "later").await;
    let email = world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let recipient = &email.recipients[0];
    assert_eq!(recipient.last_response.as_ref().unwrap().to_string(), "451 4.7.1 greylisted");
    let wait = recipient.next_attempt_at.unwrap().duration_since(email.email.created_at);
    assert!((60..=70).contains(&wait.as_secs()), "{wait:?}");
    assert!(world.sink.received().is_empty());
    world.server.clock.advance(Duration::from_secs(75));
    let email = world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(email.recipients[0].attempts, 2);
    let events = store::event::list(&world.server.store, world.account, id, 10).await.unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Sent, EventKind::DeliveryDelayed, EventKind::Delivered]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_after_the_final_dot_is_recorded_as_unconfirmed() {
    let world = TestWorld::start().await;
    world.sink.script("cut@dest.example", &[Behaviour::CutAfterDot]);
    let id = world.relay(&["cut@dest.example"], "maybe").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let attempts = store::attempt::list(&world.server.store, world.account, id, 10).await.unwrap();
    assert!(attempts[0].error.as_deref().unwrap().starts_with("it may have arrived"), "{attempts:?}");
    let events = store::event::list(&world.server.store, world.account, id, 10).await.unwrap();
    assert_eq!(events[1].detail["delay"]["unconfirmed"], true);
    world.server.clock.advance(Duration::from_secs(75));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(world.sink.received().len(), 2, "delivery over SMTP is at-least-once");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_failure_defers_and_does_not_bounce() {
    let world = TestWorld::start().await;
    world.names.set("$SERVFAIL broken.example. MX\n");
    let id = world.relay(&["one@broken.example"], "later").await;
    let email = world.wait(id, |e| e.recipients[0].state != RecipientState::Queued).await;
    assert_eq!(email.recipients[0].state, RecipientState::Deferred);
    world.end().await;
}

/// Nothing listens at the better hosts, so they refuse the connection at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_host_behind_many_that_refuse_connections_is_reached() {
    let world = TestWorld::start().await;
    let better: String = (1..=7)
        .map(|n| format!("many.example. MX {n} mx{n}.many.example.\nmx{n}.many.example. A 127.0.7.{n}\n"))
        .collect();
    world.names.set(&format!("{ZONE}{better}many.example. MX 20 mx.dest.example.\n"));
    let id = world.relay(&["a@many.example"], "to the backup").await;
    let email = world.wait(id, |email| email.recipients[0].attempts == 1).await;
    assert_eq!(email.recipients[0].state, RecipientState::Delivered);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_third_attempt_begins_at_another_preference() {
    let world = TestWorld::start().await;
    let backup = Sink::start_on(SocketAddr::new([127, 0, 0, 2].into(), world.sink.address.port())).await;
    world.names.set(&format!(
        "{ZONE}two.example. MX 10 mx.dest.example.\ntwo.example. MX 20 mx.backup.example.\n\
         mx.backup.example. A 127.0.0.2\n"
    ));
    world.sink.script("a@two.example", &[Behaviour::AtRcpt("451 4.3.0 disk full"); 10]);
    backup.script("a@two.example", &[Behaviour::AtDot("452 4.3.1 disk full")]);
    let id = world.relay(&["a@two.example"], "to either").await;
    for attempts in 1..=5 {
        let email = world.wait(id, |email| email.recipients[0].attempts == attempts).await;
        // The connection to the preferred host stays open for messages that follow one another; retries leave it.
        for name in ["b", "c"] {
            let other = world.relay(&[&format!("{name}{attempts}@two.example")], "first attempt").await;
            world.wait(other, |email| email.recipients[0].state == RecipientState::Delivered).await;
        }
        let wait = email.recipients[0].next_attempt_at.unwrap().duration_since(world.server.clock.now());
        world.server.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
    }
    world.wait(id, |email| email.recipients[0].state == RecipientState::Delivered).await;
    let attempts = store::attempt::list(&world.server.store, world.account, id, 10).await.unwrap();
    let hosts: Vec<_> = attempts.iter().filter_map(|attempt| attempt.mx_host.as_deref()).collect();
    let (preferred, other) = ("mx.dest.example", "mx.backup.example");
    assert_eq!(hosts, [preferred, preferred, other, preferred, preferred, other]);
    assert!(world.sink.received().iter().all(|message| message.recipient != "a@two.example"));
    assert_eq!((world.sink.received().len(), backup.received().len()), (10, 1));
    world.end().await;
}
