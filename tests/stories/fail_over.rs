//! A fail-over smarthost takes mail when the DNS lookup of a domain fails. It needs at least the TLS that the domain
//! requires, and it is not used when the domain certainly has no mail host.

use std::time::Duration;

use message::mta_sts::{CachedMtaStsPolicy, MtaStsPolicy};
use model::recipient::RecipientState;

use crate::world::sink::Sink;
use crate::world::{TestWorld, ZONE};

fn has_received(sink: &Sink, recipient: &str) -> bool {
    sink.received().iter().any(|message| message.recipient == recipient)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_smarthost_takes_mail_when_dns_fails() {
    let relay = Sink::start().await;
    let delivery = format!(
        "[[delivery.smarthosts]]\nname = \"late\"\nhosts = \"{}\"\nwhen = \"fail-over\"\n\
         domains = [\"lost.example\", \"strict.example\", \"null.example\", \"gone.example\"]\n",
        relay.address
    );
    let world = TestWorld::start_with(&delivery).await;
    world.names.set(&format!("{ZONE}$SERVFAIL lost.example\n$SERVFAIL strict.example\n$SERVFAIL else.example\n"));
    let lost = world.relay(&["a@lost.example"], "somebody takes it").await;
    world.wait(lost, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert!(has_received(&relay, "a@lost.example"));

    // The domain's cached MTA-STS policy also applies to the fail-over smarthost.
    let text = b"version: STSv1\nmode: enforce\nmx: mx.strict.example\nmax_age: 604800\n";
    let policy =
        CachedMtaStsPolicy::new("1".to_owned(), MtaStsPolicy::parse(text).unwrap(), text, world.server.clock.now());
    store::sts_policy::put(&world.server.store, &"strict.example".parse().unwrap(), &policy).await.unwrap();
    let strict = world.relay(&["a@strict.example"], "not in the clear").await;
    let email = world.wait(strict, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let error = email.recipients[0].error.clone().unwrap();
    assert!(error.contains("TLS") && !has_received(&relay, "a@strict.example"), "{error}");

    // A domain without a fail-over smarthost waits; a domain without a mail host bounces.
    let waits = world.relay(&["a@else.example"], "nobody takes it").await;
    world.wait(waits, |e| e.recipients[0].state == RecipientState::Deferred).await;
    for unreachable in ["a@null.example", "a@gone.example"] {
        let id = world.relay(&[unreachable], "there is none").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        assert!(email.recipients[0].state != RecipientState::Delivered && !has_received(&relay, unreachable));
    }

    // DNS works again: mail is sent to the domain's own host.
    world.names.set(&format!("{ZONE}lost.example. MX 10 mx.dest.example.\n"));
    world.server.clock.advance(Duration::from_secs(61));
    let own_host_id = world.relay(&["b@lost.example"], "to its own host").await;
    world.wait(own_host_id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert!(has_received(&world.sink, "b@lost.example") && !has_received(&relay, "b@lost.example"));
    world.end().await;
}
