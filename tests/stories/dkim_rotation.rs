//! A domain's DKIM keys are rotated while mail is sent.

use std::fmt::Write as _;

use model::domain::SendingDomain;
use model::domain_setup::{RecordPurpose, RecordType};
use model::recipient::RecipientState;

use crate::world::sink::Sink;
use crate::world::{DOMAIN, TestWorld, ZONE};

/// Sends one email and returns the selectors that signed it, sorted.
pub(crate) async fn selectors(world: &TestWorld, sink: &Sink, subject: &str) -> Vec<String> {
    let count = sink.received().len();
    let id = world.relay(&["someone@dest.example"], subject).await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let received = sink.wait_for(count + 1).await;
    // Unfold header fields (RFC 5322 2.2.3).
    let content = received[count].content.replace("\r\n\t", " ").replace("\r\n ", " ");
    let fields = content.lines().filter(|line| line.starts_with("DKIM-Signature:"));
    let tag = |field: &str| field.split(';').find_map(|tag| tag.trim().strip_prefix("s=").map(str::to_owned));
    let mut found: Vec<String> = fields.filter_map(tag).collect();
    found.sort();
    found
}

async fn domain(world: &TestWorld) -> SendingDomain {
    store::domain::find_by_name(&world.server.store, &DOMAIN.parse().unwrap()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_signed_with_new_keys_once_their_record_is_published() {
    let world = TestWorld::start().await;
    let domains = &world.server.accounts.domains;
    let old = domain(&world).await;
    let of_old = [old.dkim.selector.clone(), old.dkim.ed25519_selector()];
    assert_eq!(selectors(&world, &world.sink, "before").await, of_old);

    let turning = domains.rotate_keys(old.account, old.id).await.unwrap().domain;
    let next = turning.next_dkim.clone().unwrap();
    domains.verify(old.account, old.id).await.unwrap();
    assert_eq!(selectors(&world, &world.sink, "not published yet").await, of_old);

    let mut zone = ZONE.to_owned();
    for record in domains.facts().required_records(&turning) {
        if record.purpose == RecordPurpose::Dkim && record.record_type == RecordType::Txt {
            writeln!(zone, "{}. TXT \"{}\"", record.name, record.value).unwrap();
        }
    }
    world.names.set(&zone);
    // Wait until the cached DNS answer has expired.
    world.server.clock.advance(std::time::Duration::from_secs(10));
    let verified = domains.verify(old.account, old.id).await.unwrap().domain;
    assert_eq!(verified.dkim.selector, next.selector);
    assert_eq!(selectors(&world, &world.sink, "published").await, [next.selector.clone(), next.ed25519_selector()]);
    world.end().await;
}
