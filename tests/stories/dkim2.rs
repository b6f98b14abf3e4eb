//! DKIM2: each recipient's copy is signed for its own transaction when the setting is on.

use std::fmt::Write as _;
use std::time::Duration;

use model::domain::{SealedSecret, SendingDomain};
use model::recipient::RecipientState;
use serde_json::json;
use store::engine::Batch;

use crate::world::dkim2::verdict;
use crate::world::sink::{Behaviour, ReceivedMessage};
use crate::world::submit::dialog;
use crate::world::{DOMAIN, TestWorld, ZONE};

const ON: &str = "dkim2 = \"on\"\n";

async fn domain(world: &TestWorld) -> SendingDomain {
    store::domain::find_by_name(&world.server.store, &DOMAIN.parse().unwrap()).await.unwrap().unwrap()
}

/// Publishes the domain's keys in DNS.
async fn publish(world: &TestWorld) {
    let mut zone = ZONE.to_owned();
    let domain = domain(world).await;
    for (name, value) in postrider::dev::capture::dkim_records(&domain) {
        writeln!(zone, "{name}. TXT \"{value}\"").unwrap();
    }
    world.names.set(&zone);
}

/// Starts with DKIM2 on and the keys published.
async fn world() -> TestWorld {
    let world = TestWorld::start_with(ON).await;
    publish(&world).await;
    world
}

async fn dkim2_result(world: &TestWorld, received: &ReceivedMessage) -> String {
    verdict(world.names.address, &received.content, &received.sender, &received.recipient).await
}

fn has_fields(received: &ReceivedMessage) -> bool {
    received.content.contains("DKIM2-Signature:") || received.content.contains("Message-Instance:")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signature_is_valid_for_its_recipient_only() {
    let world = world().await;
    world.relay(&["one@dest.example", "two@other.example"], "hello").await;
    let received = world.sink.wait_for(2).await;
    for (message, other_message) in [(&received[0], &received[1]), (&received[1], &received[0])] {
        assert_eq!(dkim2_result(&world, message).await, "Pass", "{}", message.content);
        assert!(message.content.starts_with("DKIM2-Signature: i=1; m=1; t="), "{}", message.content);
        assert_eq!(message.content.matches("\r\nDKIM-Signature:").count(), 2, "{}", message.content);
        // Replayed unchanged to another recipient, or from another sender.
        let on = verdict(world.names.address, &message.content, &message.sender, &other_message.recipient).await;
        assert!(on.contains("RcptToMismatch(1)"), "{on}");
        let on = verdict(world.names.address, &message.content, &other_message.sender, &message.recipient).await;
        assert!(on.contains("MailFromMismatch(1)"), "{on}");
        let changed = ReceivedMessage { content: message.content.replace("hello", "hullo"), ..message.clone() };
        assert!(dkim2_result(&world, &changed).await.contains("HashMismatch(1)"));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_sent_by_http_and_scheduled_mail_is_signed_too() {
    let world = world().await;
    let due = world.server.clock.now() + Duration::from_secs(60);
    for scheduled_at in [None, Some(due.to_string())] {
        let body = json!({
            "from": format!("Ada <ada@{DOMAIN}>"), "to": "one@dest.example", "subject": "h\u{e4}llo",
            "html": "<p>hi</p>", "scheduled_at": scheduled_at,
        });
        let (status, answer) = world.call("POST", "/emails", &body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
    }
    world.sink.wait_for(1).await;
    world.server.clock.advance(Duration::from_secs(61));
    for received in world.sink.wait_for(2).await {
        assert_eq!(dkim2_result(&world, &received).await, "Pass", "{}", received.content);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_signed_anew_and_from_disk() {
    let world = world().await;
    world.sink.script("grey@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["grey@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let world = world.restart(ON).await;
    // The keys were rotated meanwhile: the retry is signed with the current keys.
    let domains = &world.server.accounts.domains;
    let old = domain(&world).await;
    domains.rotate_keys(old.account, old.id).await.unwrap();
    let mut zone = ZONE.to_owned();
    for record in domains.facts().required_records(&domain(&world).await) {
        if record.record_type == model::domain_setup::RecordType::Txt {
            writeln!(zone, "{}. TXT \"{}\"", record.name, record.value).unwrap();
        }
    }
    world.names.set(&zone);
    let verified = domains.verify(old.account, old.id).await.unwrap().domain;
    assert_ne!(verified.dkim.selector, old.dkim.selector);
    world.server.clock.advance(Duration::from_secs(75));
    let received = world.sink.wait_for(1).await;
    assert_eq!(dkim2_result(&world, &received[0]).await, "Pass", "{}", received[0].content);
    let set = format!("s={}:ed25519-sha256:", verified.dkim.ed25519_selector());
    assert!(received[0].content.contains(&set), "{}", received[0].content);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_no_field_is_added() {
    let world = TestWorld::start().await;
    world.relay(&["one@dest.example"], "off").await;
    assert!(!has_fields(&world.sink.wait_for(1).await[0]));
    world.end().await;
    // Neither is mail that was accepted while DKIM2 was on.
    let world = TestWorld::start_with(&format!("{ON}paused = true\n")).await;
    world.relay(&["one@dest.example"], "on, and off").await;
    let world = world.restart("").await;
    let received = world.sink.wait_for(1).await;
    assert!(!has_fields(&received[0]), "{}", received[0].content);
    assert!(received[0].content.starts_with("DKIM-Signature:"), "{}", received[0].content);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_deleted_domain_is_sent_without_dkim2() {
    let world = TestWorld::start_with(&format!("{ON}paused = true\n")).await;
    world.relay(&["one@dest.example"], "orphaned").await;
    let deleted_domain = domain(&world).await;
    world.server.accounts.domains.delete(deleted_domain.account, deleted_domain.id).await.unwrap();
    world.reload(ON);
    let received = world.sink.wait_for(1).await;
    assert!(!has_fields(&received[0]), "{}", received[0].content);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_sent_without_dkim2_if_the_keys_cannot_be_unsealed() {
    let paused = format!("{ON}paused = true\n");
    let world = TestWorld::start_with(&paused).await;
    world.relay(&["one@dest.example"], "locked out").await;
    // After the restart the unsealed keys are no longer cached.
    let world = world.restart(&paused).await;
    let old_domain = domain(&world).await;
    let mut new_domain = old_domain.clone();
    new_domain.dkim.rsa = SealedSecret("AAAA".to_owned());
    let mut batch = Batch::progress();
    store::domain::update(&mut batch, &old_domain, &new_domain);
    world.server.store.commit(batch).await.unwrap();
    world.reload(ON);
    let received = world.sink.wait_for(1).await;
    assert!(!has_fields(&received[0]), "{}", received[0].content);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_dkim2_fields_are_left_alone() {
    let world = world().await;
    let fields = "DKIM2-Signature: i=1; m=1; t=1; d=acme.example; mf=PD4=; rt=PD4=; s=x:ed25519-sha256:AAAA;\r\n\
                  Message-Instance: m=1; h=sha256:AAAA:AAAA;";
    let message = format!("{fields}\r\nFrom: ada@acme.example\r\nSubject: x\r\n\r\nx\r\n.");
    let lines = ["EHLO test", "MAIL FROM:<ada@acme.example>", "RCPT TO:<one@dest.example>", "DATA", &message];
    let replies = dialog(world.relay, &lines).await;
    assert!(replies[5].starts_with("250 2.0.0 OK"), "{replies:?}");
    let received = world.sink.wait_for(1).await;
    assert!(received[0].content.contains(fields), "{}", received[0].content);
    assert_eq!(received[0].content.matches("Message-Instance:").count(), 1, "{}", received[0].content);
    assert_eq!(received[0].content.matches("DKIM2-Signature:").count(), 1, "{}", received[0].content);
    world.end().await;
}
