//! A destination cannot be reached at all: its mail waits, is not counted as tried for nothing, and goes
//! when the destination is back.

use std::net::SocketAddr;
use std::time::Duration;

use mail::recipient::RecipientState;

use crate::world::TestWorld;
use crate::world::sink::Sink;

#[tokio::test(flavor = "multi_thread")]
async fn mail_for_a_dead_host_goes_when_it_is_back() {
    let world = TestWorld::start().await;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(world.relay(&["one@dead.example"], &format!("number {n}")).await);
    }
    // Three refused connections and it is dead; who has not been tried by then waits untried.
    world
        .wait_for_emails(|emails| {
            let tried =
                |e: &&store::email::EmailWithRecipients| e.recipients[0].state == RecipientState::Deferred;
            emails.iter().filter(tried).count() >= 3
        })
        .await;
    let address = SocketAddr::new([127, 0, 0, 2].into(), world.sink.address.port());
    let back = Sink::start_on(address).await;
    world.world.clock.advance(Duration::from_secs(600));
    for id in ids {
        world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    assert_eq!(back.taken().len(), 12);
    world.end().await;
}
