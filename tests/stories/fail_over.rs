//! Nobody says which hosts a domain has, and a smarthost steps in: as well protected as it would have been, and not where
//! it is certain that there is no host.

use std::time::Duration;

use mail::mta_sts::{CachedMtaStsPolicy, MtaStsPolicy};
use mail::recipient::RecipientState;

use crate::world::sink::Sink;
use crate::world::{TestWorld, ZONE};

fn has(sink: &Sink, recipient: &str) -> bool {
    sink.taken().iter().any(|taken| taken.recipient == recipient)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smarthost_steps_in_where_the_dns_gives_no_answer() {
    let relay = Sink::start().await;
    let more = format!(
        "[[delivery.smarthosts]]\nname = \"late\"\nhosts = \"{}\"\nwhen = \"fail-over\"\n\
         domains = [\"lost.example\", \"strict.example\", \"null.example\", \"gone.example\"]\n",
        relay.address
    );
    let world = TestWorld::start_with(&more).await;
    world.names.set(&format!("{ZONE}$SERVFAIL lost.example\n$SERVFAIL strict.example\n$SERVFAIL else.example\n"));
    let lost = world.relay(&["a@lost.example"], "somebody takes it").await;
    world.wait(lost, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert!(has(&relay, "a@lost.example"));

    // What the domain has promised holds for who steps in, too.
    let text = b"version: STSv1\nmode: enforce\nmx: mx.strict.example\nmax_age: 604800\n";
    let policy =
        CachedMtaStsPolicy::new("1".to_owned(), MtaStsPolicy::parse(text).unwrap(), text, world.world.clock.now());
    store::sts_policy::put(&world.world.store, &"strict.example".parse().unwrap(), &policy).await.unwrap();
    let strict = world.relay(&["a@strict.example"], "not in the clear").await;
    let email = world.wait(strict, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let said = email.recipients[0].error.clone().unwrap();
    assert!(said.contains("TLS") && !has(&relay, "a@strict.example"), "{said}");

    // Others wait; and it is certain of some that they have no host.
    let waits = world.relay(&["a@else.example"], "nobody takes it").await;
    world.wait(waits, |e| e.recipients[0].state == RecipientState::Deferred).await;
    for none in ["a@null.example", "a@gone.example"] {
        let id = world.relay(&[none], "there is none").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        assert!(email.recipients[0].state != RecipientState::Delivered && !has(&relay, none));
    }

    // The DNS answers again.
    world.names.set(&format!("{ZONE}lost.example. MX 10 mx.dest.example.\n"));
    world.world.clock.advance(Duration::from_secs(61));
    let own = world.relay(&["b@lost.example"], "to its own host").await;
    world.wait(own, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert!(has(&world.sink, "b@lost.example") && !has(&relay, "b@lost.example"));
    world.end().await;
}
