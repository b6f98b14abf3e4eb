//! A message that cannot be delivered: the recipient ends in one state, and an SMTP sender gets a DSN.

use std::time::Duration;

use model::email::{EmailRollup, EmailStatus};
use model::event::EventKind;
use model::recipient::RecipientState;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

#[tokio::test(flavor = "multi_thread")]
async fn a_5yz_about_the_recipient_bounces_and_the_sender_gets_a_dsn() {
    let world = TestWorld::start().await;
    world.sink.script("gone@dest.example", &[Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    let id = world.relay(&["gone@dest.example"], "lost").await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    let rollup = EmailRollup::from_recipients(&email.recipients);
    assert_eq!((rollup.status, rollup.last_event), (EmailStatus::Bounced, EventKind::Bounced));
    assert_eq!(rollup.bounce_reason.as_deref(), Some("550 5.1.1 user unknown"));
    let report = &world.sink.wait_for(1).await[0];
    assert_eq!((report.sender.as_str(), report.recipient.as_str()), ("", "ada@acme.example"));
    assert!(report.content.contains("Final-Recipient: rfc822; gone@dest.example"), "{}", report.content);
    assert!(report.content.contains("Status: 5.1.1") && report.content.contains("Subject: lost"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dsn_names_a_smarthost_without_a_name_by_its_address() {
    let world = TestWorld::start().await;
    let smarthost = format!("smarthost = \"{}\"\n", world.sink.address);
    let world = world.restart(&smarthost).await;
    world.sink.script("gone@dest.example", &[Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    let id = world.relay(&["gone@dest.example"], "lost").await;
    let report = &world.sink.wait_for(1).await[0];
    assert!(report.content.contains("Remote-MTA: dns; [127.0.0.1]\r\n"), "{}", report.content);
    let email = world.email(id).await;
    assert_eq!(email.recipients[0].mx_host.as_deref(), Some("[127.0.0.1]"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_dsn_is_sent_for_a_dsn() {
    let world = TestWorld::start().await;
    world.sink.script("gone@dest.example", &[Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    world.sink.script("ada@acme.example", &[Behaviour::AtRcpt("550 5.1.1 gone too")]);
    world.relay(&["gone@dest.example"], "lost").await;
    let done = |emails: &[store::email::EmailWithRecipients]| {
        emails.len() == 2 && emails.iter().all(|e| e.recipients[0].state.is_terminal())
    };
    world.wait_for_emails(done).await;
    assert!(world.sink.received().is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_about_the_sender_is_a_failure_not_a_bounce() {
    let world = TestWorld::start().await;
    world.sink.script("one@dest.example", &[Behaviour::AtDot("550 5.7.26 unauthenticated mail")]);
    let id = world.relay(&["one@dest.example"], "policy").await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    assert_eq!(email.recipients[0].state, RecipientState::Failed);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_without_mail_hosts_bounces_at_once() {
    let world = TestWorld::start().await;
    for to in ["one@null.example", "one@nowhere.invalid"] {
        let id = world.relay(&[to], "nowhere").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        assert_eq!(email.recipients[0].state, RecipientState::Bounced, "{to}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_given_up_after_48_hours() {
    let world = TestWorld::start().await;
    let deferrals = vec![Behaviour::AtRcpt("452 4.2.2 mailbox full"); 100];
    world.sink.script("full@dest.example", &deferrals);
    let id = world.relay(&["full@dest.example"], "full").await;
    let mut attempts = 0;
    loop {
        let email = world.wait(id, |e| e.recipients[0].attempts > attempts).await;
        attempts = email.recipients[0].attempts;
        if email.recipients[0].state.is_terminal() {
            assert_eq!(email.recipients[0].state, RecipientState::Bounced, "a soft bounce");
            break;
        }
        let next = email.recipients[0].next_attempt_at.unwrap();
        let wait = next.duration_since(world.server.clock.now());
        world.server.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
    }
    assert!((17..=20).contains(&attempts), "1m 5m 15m 30m 1h 2h 4h and then 4h until 48h: {attempts}");
    world.end().await;
}
