//! A sending domain with enforced TLS, and a mail host without TLS.

use std::time::Duration;

use message::outcome::AttemptPhase;
use model::domain::TlsMode;
use model::recipient::RecipientState;

use crate::world::sink::Sink;
use crate::world::{DOMAIN, TestWorld};

async fn set_tls_mode(world: &TestWorld, mode: TlsMode) {
    let name = DOMAIN.parse().unwrap();
    let domain = store::domain::find_by_name(&world.server.store, &name).await.unwrap().unwrap();
    let change = |domain: &mut model::domain::SendingDomain| domain.delivery.tls_mode = mode;
    world.server.accounts.domains.change(domain.account, domain.id, change).await.unwrap();
    // The sending identity is cached for one second.
    world.server.clock.advance(Duration::from_secs(2));
}

fn count_received(sink: &Sink, recipient: &str) -> usize {
    sink.received().iter().filter(|message| message.recipient == recipient).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_that_requires_tls_is_deferred_and_fails_rather_than_sent_in_clear_text() {
    let world = TestWorld::start().await;
    set_tls_mode(&world, TlsMode::Enforced).await;
    let secret = world.relay(&["secret@dest.example"], "secret").await;
    let email = world.wait(secret, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let error = email.recipients[0].error.clone().unwrap();
    assert!(error.contains("does not offer TLS"), "{error}");
    assert_eq!(email.recipients[0].last_response, None, "it is not an SMTP reply");
    let attempts = store::attempt::list(&world.server.store, world.account, secret, 10).await.unwrap();
    assert_eq!(attempts[0].phase, AttemptPhase::Tls);

    // Plain mail of the same domain is not blocked by the waiting email, which still requires TLS.
    set_tls_mode(&world, TlsMode::Opportunistic).await;
    let plain = world.relay(&["plain@dest.example"], "plain").await;
    world.wait(plain, |e| e.recipients[0].state == RecipientState::Delivered).await;
    assert_eq!(
        (count_received(&world.sink, "secret@dest.example"), count_received(&world.sink, "plain@dest.example")),
        (0, 1)
    );

    world.server.clock.advance(Duration::from_secs(49 * 3600));
    world.wait(secret, |e| e.recipients[0].state == RecipientState::Failed).await;
    let events = store::event::list(&world.server.store, world.account, secret, 10).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!(last.detail["failure"]["reason"], "tls_required", "{last:?}");
    assert_eq!(count_received(&world.sink, "secret@dest.example"), 0);
    // The sender receives a DSN.
    world.sink.wait_for(2).await;
    world.end().await;
}
