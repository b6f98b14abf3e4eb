//! Retention: old emails are purged with their history; queued ones are not.

use std::time::Duration;

use model::recipient::RecipientState;

use crate::world::TestWorld;

#[tokio::test(flavor = "multi_thread")]
async fn an_email_is_purged_after_thirty_days() {
    let world = TestWorld::start().await;
    let id = world.relay(&["one@dest.example"], "old").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.server.clock.advance(Duration::from_secs(31 * 24 * 3600));
    world.wait_for_emails(|emails| emails.is_empty()).await;
    let store = &world.server.store;
    assert!(store::email::get_body(store, world.account, id).await.unwrap().is_none());
    assert!(store::attempt::list(store, world.account, id, 10).await.unwrap().is_empty());
    world.end().await;
}
