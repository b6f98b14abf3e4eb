//! Basic delivery from SMTP and HTTP: signed, with a return path for each recipient, and visible in the API.

use accounts::domains::NewDomain;
use message::address::DomainName;
use model::account::Plan;
use model::email::{EmailRollup, EmailStatus};
use model::recipient::{RecipientKind, RecipientState};
use serde_json::json;

use crate::world::TestWorld;
use crate::world::submit::dialog;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_from_smtp_is_signed_and_delivered_to_each_recipient() {
    let world = TestWorld::start().await;
    let id = world.relay(&["one@dest.example", "two@other.example"], "hello").await;
    let email = world.wait(id, |e| e.recipients.iter().all(|r| r.state.is_terminal())).await;
    assert_eq!(EmailRollup::from_recipients(&email.recipients).status, EmailStatus::Delivered);
    assert_eq!(email.recipients[1].kind, RecipientKind::Bcc, "the header does not name it");
    let received = world.sink.received();
    assert_eq!(received.len(), 2);
    for message in &received {
        assert!(message.sender.starts_with("b-") && message.sender.ends_with("@rp.acme.example"));
        assert_eq!(message.content.matches("DKIM-Signature:").count(), 2, "RSA and Ed25519");
        assert!(message.content.contains("\r\nReceived: from test"), "{}", message.content);
        assert!(message.content.contains("\r\nDate: ") && message.content.contains("\r\nMessage-ID: <"));
    }
    assert_ne!(received[0].sender, received[1].sender, "a return path for each recipient");
    let attempts = store::attempt::list(&world.server.store, world.account, id, 10).await.unwrap();
    assert_eq!(attempts.len(), 2);
    assert!(attempts[0].transcript.contains("RCPT TO:<one@dest.example>"), "{}", attempts[0].transcript);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_from_http_is_composed_and_shown() {
    let world = TestWorld::start().await;
    let body = json!({
        "from": "Ada <ada@acme.example>",
        "to": ["one@dest.example"],
        "bcc": "secret@dest.example",
        "subject": "h\u{e4}llo",
        "html": "<p>hi</p>",
        "tags": {"kind": "welcome"},
    });
    let (status, response) = world.call("POST", "/emails", &body.to_string()).await;
    assert_eq!((status, &response["status"]), (200, &json!("sent")), "{response}");
    let received = world.sink.wait_for(2).await;
    assert!(received.iter().all(|message| !message.content.contains("secret@dest.example")));
    let id = response["id"].as_str().unwrap();
    world.wait(id.parse().unwrap(), |e| e.recipients.iter().all(|r| r.state == RecipientState::Delivered)).await;
    let (status, view) = world.call("GET", &format!("/emails/{id}"), "").await;
    assert_eq!(status, 200);
    assert_eq!(view["email"]["status"], "delivered", "{view}");
    assert_eq!(view["email"]["last_event"], "email.delivered");
    assert_eq!(view["email"]["recipients"].as_array().unwrap().len(), 2);
    assert_eq!(view["email"]["counts"], json!({"queued": 0, "delivered": 2, "bounced": 0, "failed": 0}));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_many_messages() {
    let world = TestWorld::start_with("[[delivery.pace]]\nconnections_max = 1\n").await;
    for n in 0..20 {
        world.relay(&["one@dest.example"], &format!("number {n}")).await;
    }
    world.sink.wait_for(20).await;
    // The first message may have used a connection of its own.
    assert!(world.sink.connections() <= 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_domain_cannot_be_sent_from() {
    let world = TestWorld::start().await;
    let replies = dialog(world.relay, &["EHLO test", "MAIL FROM:<eve@elsewhere.example>"]).await;
    assert!(replies[2].starts_with("550 5.7.1 domain_not_verified"), "{replies:?}");
    // The envelope sender is authorized, but the From domain decides.
    let message = "From: eve@elsewhere.example\r\nSubject: x\r\n\r\nx\r\n.";
    let lines = ["EHLO test", "MAIL FROM:<ada@acme.example>", "RCPT TO:<one@dest.example>", "DATA", message];
    let replies = dialog(world.relay, &lines).await;
    assert!(replies[5].starts_with("550 5.7.1 domain_not_verified"), "{replies:?}");
    assert!(world.sink.received().is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_field_cannot_name_another_account() {
    let world = TestWorld::start().await;
    let provisioned =
        world.server.provisioning.create_account("eve@bank.example".parse().unwrap(), Plan::Pro, true).await;
    let (domains, bank) = (&world.server.accounts.domains, "bank.example".parse::<DomainName>().unwrap());
    domains.create(provisioned.unwrap().account.id, NewDomain::with_name(bank.clone()), None).await.unwrap();
    let submit_fields = async |fields: &str| {
        let message = format!("From: ada@acme.example\r\n{fields}\r\nSubject: x\r\n\r\nx\r\n.");
        let lines = ["EHLO test", "MAIL FROM:<ada@acme.example>", "RCPT TO:<one@dest.example>", "DATA", &message];
        dialog(world.relay, &lines).await.pop().unwrap()
    };
    let forged_fields = ["Sender: chief@bank.example", "Resent-From: a@b.example, <chief@mail.Bank.example>"];
    for field in forged_fields {
        assert!(submit_fields(field).await.starts_with("250"), "{field}: the domain is not verified");
    }
    domains.force_verify(&bank).await.unwrap();
    for field in forged_fields {
        let refused = submit_fields(field).await;
        assert!(refused.starts_with("550 5.7.1 domain_not_verified"), "{field}: {refused}");
    }
    for field in ["Sender: app@acme.example", "Sender: root@host.internal", "Sender: root"] {
        assert!(submit_fields(field).await.starts_with("250"), "{field}");
    }
    world.sink.wait_for(5).await;
    world.end().await;
}
