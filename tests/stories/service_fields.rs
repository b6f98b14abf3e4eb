//! `Service-*` header fields: each option takes effect, and no such field is sent on.

use std::time::Duration;

use model::destination::{Destination, OperatorSuspension};
use model::email::{Category, EmailRollup, EmailStatus};
use model::id::EmailId;
use model::recipient::RecipientState;
use model::task::TaskClass;
use serde_json::json;

use crate::world::TestWorld;
use crate::world::submit::dialog;

/// Submits a message with these header fields. Returns the reply to the final dot.
async fn submit(world: &TestWorld, to: &str, message: &str) -> String {
    let rcpt = format!("RCPT TO:<{to}>");
    let content = format!("From: Ada <ada@acme.example>\r\nTo: {to}\r\n{}\r\n.", message.replace('\n', "\r\n"));
    let lines = ["EHLO test", "MAIL FROM:<ada@acme.example>", &rcpt, "DATA", &content];
    dialog(world.relay, &lines).await.pop().unwrap()
}

fn parse_id(reply: &str) -> EmailId {
    reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}")).parse().unwrap()
}

/// Waits until an email is delivered. Returns the content that the destination received last.
async fn delivered(world: &TestWorld, id: EmailId) -> String {
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    world.sink.received().last().unwrap().content.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_and_category_are_stored_and_the_unsubscribe_link_is_inserted() {
    let world = TestWorld::start().await;
    let reply = submit(
        &world,
        "b@dest.example",
        "Subject: news\nservice-tags: flow=welcome,\n  step=2\nService-Category: newsletter\n\
         List-Unsubscribe: <mailto:x@acme.example>\n\nleave: {{unsubscribe_url}}\n",
    )
    .await;
    let id = parse_id(&reply);
    let message = delivered(&world, id).await;
    let email = world.email(id).await.email;
    let tags: Vec<_> = email.tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str())).collect();
    assert_eq!(tags, [("flow", "welcome"), ("step", "2")]);
    assert!(email.category == Category::Newsletter && email.unsubscribe);
    assert!(!message.to_ascii_lowercase().contains("service-"), "{message}");
    assert_eq!(message.matches("\nList-Unsubscribe: ").count(), 1, "{message}");
    assert!(message.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{message}");
    let link = message.split("leave: ").nth(1).unwrap().trim();
    assert!(link.starts_with("http") && message.contains(&format!("List-Unsubscribe: <{link}>")), "{message}");
    // The list fields are covered by the DKIM signature (RFC 8058 4).
    let signature = message.split("DKIM-Signature:").nth(1).unwrap();
    assert!(signature.contains("List-Unsubscribe-Post"), "{message}");
    let token = link.rsplit_once("/u/").unwrap().1;
    let (status, _) = world.call("POST", &format!("/u/{token}"), "").await;
    assert_eq!(status, 200);
    let refused = submit(&world, "b@dest.example", "Service-Category: newsletter\n\nagain\n").await;
    assert!(refused.starts_with("550 5.7.1 category_unsubscribed: newsletter"), "{refused}");
    let id = parse_id(&submit(&world, "b@dest.example", "Subject: receipt\n\n{{unsubscribe_url}}\n").await);
    let message = delivered(&world, id).await;
    assert!(!message.contains("\nList-Unsubscribe: ") && message.contains("{{unsubscribe_url}}"), "{message}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_template_renders_the_message() {
    let world = TestWorld::start().await;
    let template = json!({
        "name": "Welcome", "alias": "welcome", "subject": "Hi {{name}}", "category": "product",
        "html": "<p>Hello {{name}}</p>", "text": "Hello {{name}}",
    });
    let (status, created) = world.call("POST", "/templates", &template.to_string()).await;
    assert_eq!(status, 200, "{created}");
    let id = created["template"]["id"].as_str().unwrap();
    let (status, reply) = world.call("POST", &format!("/templates/{id}/publish"), "{}").await;
    assert_eq!(status, 200, "{reply}");
    let variables = "Service-Template: Welcome\nService-Variables: {\"name\":\n \"Grace\"}\n";
    let email = parse_id(&submit(&world, "g@dest.example", &format!("X-Order: 7\n{variables}\nold text\n")).await);
    let message = delivered(&world, email).await;
    assert!(message.contains("Subject: Hi Grace\r\n") && message.contains("X-Order: 7\r\n"), "{message}");
    assert!(message.contains("<p>Hello Grace</p>") && !message.contains("old text"), "{message}");
    assert!(message.contains("List-Unsubscribe: <") && !message.contains("Service-"), "{message}");
    let (_, view) = world.call("GET", &format!("/emails/{email}"), "").await;
    assert_eq!(view["email"]["category"], "product", "{view}");
    let own_subject_email =
        parse_id(&submit(&world, "g@dest.example", &format!("Subject: mine\n{variables}\n\n")).await);
    assert!(delivered(&world, own_subject_email).await.contains("Subject: mine\r\n"));
    for (fields, start) in [
        ("Service-Template: nobody\n", "550 5.6.0 not_found: Service-Template: "),
        ("Service-Template: welcome\n", "550 5.6.0 Service-Variables: The template variable `name` is missing"),
    ] {
        let reply = submit(&world, "g@dest.example", &format!("{fields}\n\n")).await;
        assert!(reply.starts_with(start), "{reply}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_sends_once() {
    let world = TestWorld::start().await;
    let first = submit(&world, "b@dest.example", "Message-ID: <1@x>\nService-Idempotency-Key: k\n\nhi\n").await;
    let again = submit(&world, "b@dest.example", "Message-ID: <2@x>\nService-Idempotency-Key: k\n\nhi\n").await;
    assert_eq!(first, again);
    let other = submit(&world, "b@dest.example", "Service-Idempotency-Key: k\n\nho\n").await;
    assert!(other.starts_with("550 5.7.1 idempotency_conflict: "), "{other}");
    delivered(&world, parse_id(&first)).await;
    // One of the concurrent messages is sent; the others get the same reply or a temporary failure.
    let many = (0..10).map(|_| submit(&world, "c@dest.example", "Service-Idempotency-Key: m\n\nhi\n"));
    let replies = futures_util::future::join_all(many).await;
    let done: Vec<_> = replies.iter().filter(|reply| reply.starts_with("250 ")).collect();
    assert!(!done.is_empty() && done.iter().all(|reply| *reply == done[0]), "{replies:?}");
    let waits = |reply: &&String| reply.starts_with("451 4.7.0 idempotency_in_progress: ");
    assert_eq!(replies.iter().filter(waits).count() + done.len(), 10, "{replies:?}");
    delivered(&world, parse_id(done[0])).await;
    let world = world.restart("").await;
    assert_eq!(submit(&world, "b@dest.example", "Service-Idempotency-Key: k\n\nhi\n").await, first);
    world.server.clock.advance(Duration::from_secs(24 * 3600));
    // The expired key may be purged at this very moment, which conflicts: retry, as the reply requests.
    let anew = loop {
        let reply = submit(&world, "b@dest.example", "Service-Idempotency-Key: k\n\nhi\n").await;
        if !reply.starts_with("451 4.3.0 ") {
            break reply;
        }
    };
    assert_ne!(anew, first);
    delivered(&world, parse_id(&anew)).await;
    assert_eq!(world.sink.received().len(), 3);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_scheduled_at_schedules_the_email() {
    let world = TestWorld::start().await;
    let at = world.server.clock.now() + Duration::from_secs(3600);
    let field = format!("Service-Scheduled-At: {at}\n");
    let id = parse_id(&submit(&world, "b@dest.example", &format!("Subject: later\n{field}\nhi\n")).await);
    assert_eq!(EmailRollup::from_recipients(&world.email(id).await.recipients).status, EmailStatus::Scheduled);
    let file = "Content-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\n";
    let reply = submit(&world, "b@dest.example", &format!("{field}{file}\nx\n")).await;
    assert!(reply.starts_with("550 5.6.0 Service-Scheduled-At: attachments"), "{reply}");
    let reply = submit(&world, "b@dest.example", "Service-Scheduled-At: 2000-01-01T00:00:00Z\n\nhi\n").await;
    assert_eq!(reply, "550 5.6.0 scheduled_at: must be in the future");
    world.server.clock.advance(Duration::from_secs(3601));
    let message = delivered(&world, id).await;
    assert!(message.contains("DKIM-Signature:") && !message.contains("Service-"), "{message}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_service_fields_are_refused_by_name() {
    let world = TestWorld::start().await;
    for (fields, start) in [
        ("Service-Tag: a=b\n", "550 5.6.0 Service-Tag: unknown field; the fields are Service-Idempotency-Key, "),
        ("Service-Tags: a=b\nSERVICE-TAGS : a=c\n", "550 5.6.0 Service-Tags: occurs more than once"),
        ("Service-Unsubscribe: perhaps\n", "550 5.6.0 Service-Unsubscribe: must be true or false"),
    ] {
        let reply = submit(&world, "b@dest.example", &format!("{fields}\nhi\n")).await;
        assert!(reply.starts_with(start), "{reply}");
    }
    // In the body it is plain text.
    let id = parse_id(&submit(&world, "b@dest.example", "Subject: x\n\nService-Nothing: y\n").await);
    assert!(delivered(&world, id).await.contains("Service-Nothing: y"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_obey_the_rules_of_the_api() {
    let world = TestWorld::start().await;
    let file = "Content-Disposition: attachment; filename*0=\"a.e\"; filename*1=xe\n\nMZ\n";
    let reply = submit(&world, "b@dest.example", file).await;
    assert_eq!(reply, "550 5.6.0 attachment `a.exe`: files of type .exe are not accepted");
    let parts = |count: usize| {
        let parts = "--b\nContent-Type: application/pdf; name=a.pdf\n\nx\n".repeat(count);
        format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n")
    };
    let reply = submit(&world, "b@dest.example", &parts(11)).await;
    assert_eq!(reply, "550 5.6.0 attachment `a.pdf`: a message may have at most 10 attachments");
    let id = parse_id(&submit(&world, "b@dest.example", &parts(10)).await);
    delivered(&world, id).await;
    // Refused messages were not stored.
    assert_eq!(world.sink.received().len(), 1);
    world.end().await;
}

/// Submits a message with these MAIL parameters. Returns the reply to the final dot.
async fn submit_with_parameters(world: &TestWorld, parameters: &str) -> String {
    let mail = format!("MAIL FROM:<ada@acme.example> {parameters}");
    let content = "From: Ada <ada@acme.example>\r\nTo: b@dest.example\r\nSubject: when\r\n\r\nx\r\n.";
    let lines = ["EHLO test", &mail, "RCPT TO:<b@dest.example>", "DATA", content];
    dialog(world.relay, &lines).await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn envelope_parameters_schedule_expire_and_prioritize() {
    let world = TestWorld::start().await;
    let held = parse_id(&submit_with_parameters(&world, "HOLDFOR=3600").await);
    let email = world.email(held).await;
    assert!(email.email.scheduled && EmailRollup::from_recipients(&email.recipients).status == EmailStatus::Scheduled);
    let pressing = parse_id(&submit_with_parameters(&world, "BY=600;R MT-PRIORITY=-3").await);
    delivered(&world, pressing).await;
    let email = world.email(pressing).await.email;
    assert_eq!(email.expires_in, Some(Duration::from_secs(600)));
    assert_eq!(email.class(), TaskClass::Newsletter, "lowest priority");
    // DELIVERBY is passed to the next host with the remaining time.
    let parameters = world.sink.received().pop().unwrap().parameters;
    let (by, priority) = parameters.split_once(' ').unwrap();
    let left: u64 = by.strip_prefix("BY=").and_then(|by| by.strip_suffix(";R")).unwrap().parse().unwrap();
    assert!((500..=600).contains(&left) && priority == "MT-PRIORITY=-3", "{parameters}");
    let expired = parse_id(&submit_with_parameters(&world, "BY=-30;N").await);
    delivered(&world, expired).await;
    let parameters = world.sink.received().pop().unwrap().parameters;
    let expired: i64 = parameters.strip_prefix("BY=").and_then(|by| by.strip_suffix(";N")).unwrap().parse().unwrap();
    assert!((-130..=-30).contains(&expired), "{parameters}");
    let pressing = parse_id(&submit_with_parameters(&world, "MT-PRIORITY=6").await);
    delivered(&world, pressing).await;
    assert_eq!(world.email(pressing).await.email.class(), TaskClass::Expiring);
    for (parameter, reply) in [
        ("HOLDUNTIL=2001-01-01T00:00:00Z", "501 5.5.4 HOLDUNTIL must be in the future"),
        ("HOLDUNTIL=9000-01-01T00:00:00Z", "501 5.5.4 HOLDUNTIL must be within a year"),
        ("HOLDFOR=31622401", "501 5.5.4 Bad value for HOLDFOR"),
    ] {
        let mail = format!("MAIL FROM:<ada@acme.example> {parameter}");
        assert_eq!(dialog(world.relay, &["EHLO test", &mail]).await.pop().unwrap(), reply);
    }
    world.server.clock.advance(Duration::from_secs(3601));
    delivered(&world, held).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_email_is_not_sent() {
    let world = TestWorld::start().await;
    let queue = &world.server.queue;
    let destination = Destination::Domain("dest.example".parse().unwrap());
    let suspended = |now| OperatorSuspension { since: now, until: None, because: None };
    let since = world.server.clock.now();
    queue.delivery.queues.change_override(&destination, |s| s.suspension = Some(suspended(since))).await.unwrap();
    let code = parse_id(&submit_with_parameters(&world, "BY=600;R").await);
    let patient = parse_id(&submit_with_parameters(&world, "MT-PRIORITY=0").await);
    world.server.clock.advance(Duration::from_secs(900));
    queue.delivery.queues.change_override(&destination, |overrides| overrides.suspension = None).await.unwrap();
    delivered(&world, patient).await;
    let email = world.wait(code, |e| e.recipients[0].state.is_terminal()).await;
    assert_eq!(email.recipients[0].state, RecipientState::Failed);
    let events = store::event::list(&world.server.store, world.account, code, 10).await.unwrap();
    assert_eq!(events.last().unwrap().detail["failure"]["reason"], "expired");
    // The other email, and the DSN about the expired one.
    let received = world.sink.wait_for(2).await;
    assert!(received.iter().all(|received| received.recipient == "b@dest.example" || received.sender.is_empty()));
    assert_eq!(received.iter().filter(|received| received.recipient == "b@dest.example").count(), 1);
    world.end().await;
}
