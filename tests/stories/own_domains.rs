//! Mail for domains whose mail host is we ourselves: what comes in here goes to our own door, all else goes in circles.

use std::net::SocketAddr;

use mail::recipient::RecipientState;
use postrider::certificate::Certificate;
use postrider::serve::ActiveCertificates;

use crate::world::{DOMAIN, TestWorld, ZONE};

/// As the records say that customers are told to publish; and a host that is us by another name.
const OURS: &str = "
acme.example. MX 10 out.postrider.example.
circle.example. MX 10 out.postrider.example.
circle.example. MX 20 mx.dest.example.
alias.example. MX 10 other.example.
behind.example. MX 10 mx.dead.example.
behind.example. MX 20 other.example.
backup.example. MX 10 mx.dest.example.
backup.example. MX 20 out.postrider.example.
out.postrider.example. A 127.0.0.9
other.example. A 127.0.0.9
";

/// A world whose own name leads to its own MX door.
async fn at_home() -> TestWorld {
    // That there is an MX door; the one that counts is opened below.
    let more = "[mx]\nlisten = \"127.0.0.9:2\"\n[tls]\ncertificate = \"/cert.pem\"\nprivate_key = \"/key.pem\"\n";
    let world = TestWorld::start_with(more).await;
    let others = ZONE.lines().filter(|line| !line.starts_with(DOMAIN) && !line.starts_with("other.example"));
    world.names.set(&format!("{}\n{OURS}", others.collect::<Vec<_>>().join("\n")));
    let certificates = ActiveCertificates::new(&Certificate::self_signed(&["localhost"]).unwrap()).unwrap();
    let door = SocketAddr::from(([127, 0, 0, 9], world.sink.address.port()));
    world.doors().listen_mx(&world.config(), &world.world, door, certificates.smtp()).unwrap();
    world
}

async fn suppressed(world: &TestWorld) -> usize {
    let (status, page) = world.call("GET", "/suppressions", "").await;
    assert_eq!(status, 200, "{page}");
    page["suppressions"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_here_comes_in_from_here_too() {
    let world = at_home().await;
    let (status, _) = world.call("PATCH", &format!("/domains/{DOMAIN}"), r#"{"inbound_enabled":true}"#).await;
    assert_eq!(status, 200);
    let id = world.relay(&["b@acme.example"], "next door").await;
    let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    let to = &email.recipients[0];
    assert_eq!((to.state, to.mx_host.as_deref()), (RecipientState::Delivered, Some("out.postrider.example")));
    let (_, page) = world.call("GET", "/received-emails", "").await;
    assert_eq!(page["received_emails"][0]["rcpt_to"], "b@acme.example", "{page}");
    // Who writes from there is told of what cannot be delivered, and stays in good standing.
    let id = world.relay(&["a@null.example"], "nobody").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Bounced).await;
    world
        .wait_for_emails(|emails| emails.len() == 3 && emails.iter().all(|e| e.recipients[0].state.is_terminal()))
        .await;
    let (_, page) = world.call("GET", "/received-emails", "").await;
    assert_eq!(page["received_emails"].as_array().unwrap().len(), 2, "the report came in: {page}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_in_circles_fails_and_says_nothing_of_the_address() {
    let world = at_home().await;
    for to in ["a@circle.example", "a@alias.example"] {
        let id = world.relay(&[to], "round and round").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        let recipient = &email.recipients[0];
        let said = recipient.error.clone().unwrap();
        assert_eq!((recipient.state, &recipient.last_response), (RecipientState::Failed, &None), "{said}");
        assert!(said.starts_with("the mail of"), "{said}");
    }
    assert_eq!(suppressed(&world).await, 0);
    // A better host that is away may come back.
    let id = world.relay(&["a@behind.example"], "in a while").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    // Where the domain's mail comes in here no more, its own name is a loop, too, whatever was planned.
    for inbound_enabled in [true, false] {
        let change = format!(r#"{{"inbound_enabled":{inbound_enabled}}}"#);
        assert_eq!(world.call("PATCH", &format!("/domains/{DOMAIN}"), &change).await.0, 200);
        let id = world.relay(&["b@acme.example"], "perhaps").await;
        let email = world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
        let delivered = email.recipients[0].state == RecipientState::Delivered;
        assert_eq!(delivered, inbound_enabled, "{email:?}");
    }
    assert_eq!(suppressed(&world).await, 0);
    // A host that is better than we are takes it.
    let id = world.relay(&["a@backup.example"], "we are second").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.end().await;
}
