//! Who sends by SMTP and asks to be told (RFC 3461) is told: that mail was handed on, that it is late.

use std::time::Duration;

use mail::recipient::RecipientState;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_success_hears_that_the_next_host_has_it() {
    let world = TestWorld::start().await;
    let wish = " NOTIFY=SUCCESS ORCPT=rfc822;one@dest.example";
    world.relay_with(&["one@dest.example"], wish, "hello").await;
    let taken = world.sink.wait_for(2).await;
    let report = taken.iter().find(|taken| taken.recipient == "ada@acme.example").unwrap();
    assert_eq!(report.sender, "");
    assert!(report.content.contains("Original-Recipient: rfc822;one@dest.example\r\n"), "{}", report.content);
    assert!(report.content.contains("Action: relayed\r\nStatus: 2."), "{}", report.content);
    assert!(report.content.contains("text/rfc822-headers") && !report.content.contains("\r\nhello\r\n"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_delay_hears_once_that_it_is_late() {
    let world = TestWorld::start().await;
    world.sink.script("slow@dest.example", &vec![Behaviour::AtRcpt("451 4.2.1 come back"); 10]);
    let id = world.relay_with(&["slow@dest.example"], " NOTIFY=DELAY", "patience").await;
    for attempts in 1..=10 {
        let email = world.wait(id, |email| email.recipients[0].attempts == attempts).await;
        let next = email.recipients[0].next_attempt_at.unwrap();
        let wait = next.duration_since(world.world.clock.now());
        world.world.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
    }
    world.wait(id, |email| email.recipients[0].state == RecipientState::Delivered).await;
    // Of ten times that it was put off, the first after four hours was told.
    let taken = world.sink.wait_for(2).await;
    let reports: Vec<_> = taken.iter().filter(|taken| taken.recipient == "ada@acme.example").collect();
    assert_eq!((reports.len(), taken.len()), (1, 2));
    let content = &reports[0].content;
    assert!(content.contains("Action: delayed\r\nStatus: 4.2.1\r\n"), "{content}");
    assert!(content.contains("Will-Retry-Until: "), "{content}");
    world.end().await;
}
