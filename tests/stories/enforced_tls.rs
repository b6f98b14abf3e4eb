//! A domain whose mail never goes in the clear, and a mail host that has no TLS.

use std::time::Duration;

use mail::domain::TlsMode;
use mail::outcome::AttemptPhase;
use mail::recipient::RecipientState;

use crate::world::sink::Sink;
use crate::world::{DOMAIN, TestWorld};

async fn set(world: &TestWorld, mode: TlsMode) {
    let name = DOMAIN.parse().unwrap();
    let domain = store::domain::find_by_name(&world.world.store, &name).await.unwrap().unwrap();
    let change = |domain: &mut mail::domain::SendingDomain| domain.delivery.tls_mode = mode;
    world.world.intake.domains().change(domain.account, domain.id, change).await.unwrap();
    // What was found out about a sender holds for a second.
    world.world.clock.advance(Duration::from_secs(2));
}

fn taken(sink: &Sink, recipient: &str) -> usize {
    sink.taken().iter().filter(|taken| taken.recipient == recipient).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_domain_that_enforces_tls_waits_and_fails_rather_than_goes_in_the_clear() {
    let world = TestWorld::start().await;
    set(&world, TlsMode::Enforced).await;
    let secret = world.relay(&["secret@dest.example"], "secret").await;
    let email = world.wait(secret, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let said = email.recipients[0].error.clone().unwrap();
    assert!(said.contains("does not offer TLS"), "{said}");
    assert_eq!(email.recipients[0].last_response, None, "no host said so");
    let attempts = store::attempt::list(&world.world.store, world.account, secret, 10).await.unwrap();
    assert_eq!(attempts[0].phase, AttemptPhase::Tls);

    // Its other mail, once it may, is not held up by what waits, and the wish of what waits stays.
    set(&world, TlsMode::Opportunistic).await;
    let plain = world.relay(&["plain@dest.example"], "plain").await;
    world.wait(plain, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!((taken(&world.sink, "secret@dest.example"), taken(&world.sink, "plain@dest.example")), (0, 1));

    world.world.clock.advance(Duration::from_secs(49 * 3600));
    world.wait(secret, |e| e.recipients[0].state == RecipientState::Failed).await;
    let events = store::event::list(&world.world.store, world.account, secret, 10).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!(last.detail["failure"]["reason"], "tls_required", "{last:?}");
    assert_eq!(taken(&world.sink, "secret@dest.example"), 0);
    // Who sent it hears of it.
    world.sink.wait_for(2).await;
    world.end().await;
}
