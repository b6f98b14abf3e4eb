//! Domains whose MX is this server: mail that it receives is delivered to its own MX listener; any other is a mail loop
//! (RFC 5321 5.1, 6.3).

use std::net::SocketAddr;
use std::time::Duration;

use model::recipient::RecipientState;
use postrider::active_certificates::ActiveCertificates;
use postrider::certificate::Certificate;

use crate::world::{DOMAIN, TestWorld, ZONE};

/// The records that customers must publish, and hosts that are this server under another name.
const OURS: &str = "
acme.example. MX 10 out.postrider.example.
circle.example. MX 10 out.postrider.example.
circle.example. MX 20 mx.dest.example.
alias.example. MX 10 other.example.
behind.example. MX 10 mx.dead.example.
behind.example. MX 20 other.example.
lost.example. MX 10 mx.lost.example.
lost.example. MX 20 other.example.
$SERVFAIL mx.lost.example
backup.example. MX 10 mx.dest.example.
backup.example. MX 20 out.postrider.example.
out.postrider.example. A 127.0.0.9
other.example. A 127.0.0.9
";

/// Starts a server whose own name resolves to its MX listener.
async fn start_with_own_domain() -> TestWorld {
    // This setting only enables the MX role; the listener that receives mail is opened below.
    let sections = "[mx]\nlisten = \"127.0.0.9:2\"\n[tls]\ncertificate = \"/cert.pem\"\nprivate_key = \"/key.pem\"\n";
    let world = TestWorld::start_with(sections).await;
    let other_records = ZONE.lines().filter(|line| !line.starts_with(DOMAIN) && !line.starts_with("other.example"));
    world.names.set(&format!("{}\n{OURS}", other_records.collect::<Vec<_>>().join("\n")));
    let certificates = ActiveCertificates::new(&Certificate::self_signed(&["localhost"]).unwrap()).unwrap();
    let mx_address = SocketAddr::from(([127, 0, 0, 9], world.sink.address.port()));
    world.listeners().listen_mx(&world.config(), &world.server, mx_address, certificates.smtp()).unwrap();
    world
}

async fn suppressed(world: &TestWorld) -> usize {
    let (status, page) = world.call("GET", "/suppressions", "").await;
    assert_eq!(status, 200, "{page}");
    page["suppressions"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_for_a_receiving_domain_is_delivered_to_the_own_mx_listener() {
    let world = start_with_own_domain().await;
    let (status, _) = world.call("PATCH", &format!("/domains/{DOMAIN}"), r#"{"inbound_enabled":true}"#).await;
    assert_eq!(status, 200);
    let id = world.relay(&["b@acme.example"], "next door").await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    let to = &email.recipients[0];
    assert_eq!((to.state, to.mx_host.as_deref()), (RecipientState::Delivered, Some("out.postrider.example")));
    let (_, page) = world.call("GET", "/received-emails", "").await;
    assert_eq!(page["received_emails"][0]["rcpt_to"], "b@acme.example", "{page}");
    // A local sender gets its DSN through the same listener.
    let id = world.relay(&["a@null.example"], "nobody").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Bounced).await;
    world
        .wait_for_emails(|emails| emails.len() == 3 && emails.iter().all(|e| e.recipients[0].state.is_terminal()))
        .await;
    let (_, page) = world.call("GET", "/received-emails", "").await;
    assert_eq!(page["received_emails"].as_array().unwrap().len(), 2, "the DSN was received: {page}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_loop_fails_and_suppresses_no_address() {
    let world = start_with_own_domain().await;
    for to in ["a@circle.example", "a@alias.example"] {
        let id = world.relay(&[to], "round and round").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        let recipient = &email.recipients[0];
        let error = recipient.error.clone().unwrap();
        assert_eq!((recipient.state, &recipient.last_response), (RecipientState::Failed, &None), "{error}");
        assert!(error.starts_with("the mail of"), "{error}");
    }
    assert_eq!(suppressed(&world).await, 0);
    // A preferred host that is down may come back: defer.
    let id = world.relay(&["a@behind.example"], "in a while").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    // The second retry begins at the second host, which is this server, and goes on to the preferred one.
    for attempts in [1, 2] {
        let email = world.wait(id, |e| e.recipients[0].attempts == attempts).await;
        let wait = email.recipients[0].next_attempt_at.unwrap().duration_since(world.server.clock.now());
        world.server.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
    }
    let email = world.wait(id, |e| e.recipients[0].attempts == 3).await;
    assert_eq!(email.recipients[0].state, RecipientState::Deferred, "{email:?}");
    // Without receiving, the domain's own name is a loop, whatever route is cached.
    for inbound_enabled in [true, false] {
        let change = format!(r#"{{"inbound_enabled":{inbound_enabled}}}"#);
        assert_eq!(world.call("PATCH", &format!("/domains/{DOMAIN}"), &change).await.0, 200);
        let id = world.relay(&["b@acme.example"], "perhaps").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        let delivered = email.recipients[0].state == RecipientState::Delivered;
        assert_eq!(delivered, inbound_enabled, "{email:?}");
    }
    assert_eq!(suppressed(&world).await, 0);
    // A preferred host other than this server takes the mail.
    let id = world.relay(&["a@backup.example"], "we are second").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_behind_a_host_whose_lookup_fails_is_temporary() {
    let world = start_with_own_domain().await;
    let id = world.relay(&["a@lost.example"], "in a while").await;
    // The third attempt begins at the second host, which is this server, and goes on to the preferred one.
    for attempts in [1, 2, 3] {
        let email = world.wait(id, |e| e.recipients[0].attempts == attempts).await;
        let recipient = &email.recipients[0];
        let error = recipient.error.clone().unwrap_or_default();
        assert_eq!(recipient.state, RecipientState::Deferred, "{error}");
        assert!(error.contains("looking up the address of mx.lost.example"), "{error}");
        if attempts < 3 {
            let wait = recipient.next_attempt_at.unwrap().duration_since(world.server.clock.now());
            world.server.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
        }
    }
    world.end().await;
}
