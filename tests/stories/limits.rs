//! Limiting factors and errors: the operator sees what limits a destination and its last error. A local error is never
//! shown as an SMTP reply.

use model::event::EventKind;
use model::recipient::RecipientState;
use queue::admin::queue_admin::{LimitingFactor, TopDestination};

use crate::world::sink::Behaviour;
use crate::world::{TestWorld, ZONE};

async fn top(world: &TestWorld, name: &str) -> TopDestination {
    let top = world.server.queue.delivery.admin.top_destinations(10, |_| {}).await.unwrap();
    let found = top.destinations.iter().find(|destination| destination.name.contains(name));
    found.unwrap_or_else(|| panic!("{name}: {top:#?}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_shown_as_the_limit_before_the_hosts_are_dead() {
    let world = TestWorld::start().await;
    let first = world.relay(&["one@dead.example"], "first").await;
    world.wait(first, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let top_destination = top(&world, "dead.example").await;
    assert_eq!(top_destination.limit, LimitingFactor::Unreachable, "{top_destination:?}");
    assert!(top_destination.last_reply.unwrap().contains("refused"));
    for n in 0..4 {
        world.relay(&["one@dead.example"], &format!("number {n}")).await;
    }
    world
        .wait_for_emails(|emails| {
            emails.iter().filter(|e| e.recipients[0].state == RecipientState::Deferred).count() >= 3
        })
        .await;
    // An untried email shows the error of other emails at these hosts.
    let untried = world.relay(&["two@dead.example"], "untried").await;
    let trace = world.server.queue.delivery.admin.trace_email(untried).await.unwrap();
    let error = trace.waits[0].destination_error.clone().unwrap_or_else(|| panic!("{trace:#?}"));
    assert!(error.contains("refused"), "{error}");
    // `end` would wait until the untried message leaves memory, which takes 30 s.
    world.server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reply_that_lowered_the_connections_is_shown() {
    let world = TestWorld::start().await;
    world.sink.script("one@dest.example", &[Behaviour::AtRcpt("421 4.7.0 too many connections")]);
    let id = world.relay(&["one@dest.example"], "slow").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let slowed = top(&world, "dest.example").await.slowed;
    let expected = "slowed from 5 to 2 connections because of 421 4.7.0 too many connections";
    assert_eq!(slowed.as_deref(), Some(expected));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_dns_is_shown_as_the_limit() {
    let world = TestWorld::start().await;
    world.names.set(&format!("{ZONE}$SERVFAIL lost.example\n"));
    let id = world.relay(&["one@lost.example"], "nowhere yet").await;
    let email = world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let top_destination = top(&world, "lost.example").await;
    assert_eq!(top_destination.limit, LimitingFactor::Dns, "{top_destination:?}");
    assert_eq!(top_destination.last_reply, email.recipients[0].error);
    // Once DNS works again, the limit is lifted.
    world.names.set(&format!("{ZONE}lost.example. MX 10 mx.dest.example.\n"));
    world.server.clock.advance(std::time::Duration::from_secs(120));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_error_is_not_shown_as_an_smtp_reply() {
    let world = TestWorld::start().await;
    let id = world.relay(&["one@null.example"], "nowhere").await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    let recipient = &email.recipients[0];
    assert_eq!((recipient.state, &recipient.last_response), (RecipientState::Bounced, &None));
    assert!(recipient.error.as_deref().unwrap().contains("null MX"), "{recipient:?}");
    let attempts = store::attempt::list(&world.server.store, world.account, id, 10).await.unwrap();
    assert!(attempts[0].reply.is_none() && attempts[0].error.is_some(), "{attempts:?}");
    let events = store::event::list(&world.server.store, world.account, id, 10).await.unwrap();
    let bounced = events.iter().find(|event| event.kind == EventKind::Bounced).unwrap();
    assert!(bounced.detail["bounce"]["smtp_code"].is_null(), "{bounced:?}");
    assert!(bounced.detail["bounce"]["diagnostic"].as_str().unwrap().starts_with("x-postrider; "));
    let (_, view) = world.call("GET", &format!("/emails/{id}"), "").await;
    let view = &view["email"]["recipients"][0];
    assert!(view["last_response"].is_null() && view["error"].is_string(), "{view}");
    world.end().await;
}
