//! DSNs for SMTP senders (RFC 3461): success, delay and failure.

use std::time::Duration;

use model::recipient::RecipientState;

use crate::world::sink::Behaviour;
use crate::world::{TestWorld, submit};

#[tokio::test(flavor = "multi_thread")]
async fn notify_success_reports_relayed_mail() {
    let world = TestWorld::start().await;
    let parameters = " NOTIFY=SUCCESS ORCPT=rfc822;one@dest.example";
    world.relay_with(&["one@dest.example"], parameters, "hello").await;
    let received = world.sink.wait_for(2).await;
    let report = received.iter().find(|received| received.recipient == "ada@acme.example").unwrap();
    assert_eq!(report.sender, "");
    assert!(report.content.contains("Original-Recipient: rfc822;one@dest.example\r\n"), "{}", report.content);
    assert!(report.content.contains("Action: relayed\r\nStatus: 2."), "{}", report.content);
    assert!(report.content.contains("text/rfc822-headers") && !report.content.contains("\r\nhello\r\n"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notify_delay_sends_one_delay_dsn() {
    let world = TestWorld::start().await;
    world.sink.script("slow@dest.example", &vec![Behaviour::AtRcpt("451 4.2.1 come back"); 10]);
    let id = world.relay_with(&["slow@dest.example"], " NOTIFY=DELAY", "patience").await;
    for attempts in 1..=10 {
        let email = world.wait(id, |email| email.recipients[0].attempts == attempts).await;
        let next = email.recipients[0].next_attempt_at.unwrap();
        let wait = next.duration_since(world.server.clock.now());
        world.server.clock.advance(Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1));
    }
    world.wait(id, |email| email.recipients[0].state == RecipientState::Delivered).await;
    // Ten deferrals, but only the first one after four hours causes a delay DSN.
    let received = world.sink.wait_for(2).await;
    let reports: Vec<_> = received.iter().filter(|received| received.recipient == "ada@acme.example").collect();
    assert_eq!((reports.len(), received.len()), (1, 2));
    let content = &reports[0].content;
    assert!(content.contains("Action: delayed\r\nStatus: 4.2.1\r\n"), "{content}");
    assert!(content.contains("Will-Retry-Until: "), "{content}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_failures_are_reported_in_one_dsn() {
    let world = TestWorld::start().await;
    let names: Vec<String> =
        (0..1_000).map(|n| format!("gone{n}@{}.example", ["dest", "other", "slow"][n % 3])).collect();
    for name in &names {
        world.sink.script(name, &[Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    }
    let to: Vec<&str> = names.iter().map(String::as_str).collect();
    let id = world.relay(&to, "to all").await;
    world.wait(id, |email| email.recipients.iter().all(|r| r.state == RecipientState::Bounced)).await;
    let report = world.sink.wait_for(1).await.remove(0);
    assert_eq!((report.sender.as_str(), report.recipient.as_str()), ("", "ada@acme.example"));
    assert_eq!(report.content.matches("\r\nFinal-Recipient: rfc822; gone").count(), 1_000);
    assert_eq!(report.content.matches("Status: 5.1.1\r\n").count(), 1_000);
    let emails = store::email::list(&world.server.store, world.account, None, 10).await.unwrap();
    assert_eq!(emails.len(), 2, "the message and one report");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dsn_waits_for_attempts_due_soon_and_no_longer() {
    let world = TestWorld::start().await;
    let unknown_user = [Behaviour::AtRcpt("550 5.1.1 user unknown")];
    world.sink.script("gone@dest.example", &unknown_user);
    world.sink.script("soon@other.example", &[Behaviour::AtRcpt("451 4.2.1 come back"), unknown_user[0]]);
    let deferred_then_refused = [vec![Behaviour::AtRcpt("451 4.2.1 come back"); 2], unknown_user.to_vec()].concat();
    world.sink.script("late@other.example", &deferred_then_refused);
    let id = world.relay(&["gone@dest.example", "soon@other.example", "late@other.example"], "hello").await;
    // The second attempt is due in a minute: the DSN waits for it. The third is due five minutes later: it does not.
    world.wait(id, |email| email.recipients.iter().all(|r| r.attempts == 1)).await;
    world.server.clock.advance(Duration::from_secs(75));
    world.wait(id, |email| email.recipients[1].state.is_terminal()).await;
    let first = world.sink.wait_for(1).await.remove(0).content;
    assert!(first.contains("rfc822; gone@") && first.contains("rfc822; soon@") && !first.contains("late@"));
    world.server.clock.advance(Duration::from_secs(400));
    world.wait(id, |email| email.recipients[2].state.is_terminal()).await;
    let second = world.sink.wait_for(2).await.remove(1).content;
    assert!(second.contains("Final-Recipient: rfc822; late@other.example\r\n"), "{second}");
    assert!(!second.contains("rfc822; gone@"), "{second}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_dsn_is_sent_once_after_a_restart() {
    let world = TestWorld::start().await;
    world.sink.script("gone@dest.example", &[Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    let deferral = Behaviour::AtRcpt("451 4.2.1 come back");
    world.sink.script("grey@other.example", &[deferral, Behaviour::AtRcpt("550 5.1.1 user unknown")]);
    let id = world.relay(&["gone@dest.example", "grey@other.example"], "hello").await;
    let is_attempted = |email: &store::email::EmailWithRecipients| email.recipients.iter().all(|r| r.attempts == 1);
    world.wait(id, is_attempted).await;
    assert!(world.sink.received().is_empty(), "the report waits");
    let world = world.restart("").await;
    world.server.clock.advance(Duration::from_secs(75));
    world.wait(id, |email| email.recipients.iter().all(|r| r.state.is_terminal())).await;
    let report = world.sink.wait_for(1).await.remove(0).content;
    assert!(report.contains("rfc822; gone@dest.example") && report.contains("rfc822; grey@other.example"));
    let world = world.restart("").await;
    world.server.clock.advance(Duration::from_secs(3600));
    let emails = store::email::list(&world.server.store, world.account, None, 10).await.unwrap();
    assert_eq!((emails.len(), world.sink.received().len()), (2, 1), "one DSN");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_with_smtputf8_gets_a_dsn_in_utf8() {
    let world = TestWorld::start().await;
    // The sink does not offer SMTPUTF8.
    let lines = [
        "EHLO test",
        "MAIL FROM:<ada@acme.example> SMTPUTF8",
        "RCPT TO:<gr\u{fc}\u{df}e@dest.example> ORCPT=utf-8;gr\\x{FC}\\x{DF}e@dest.example",
        "DATA",
        "From: Ada <ada@acme.example>\r\nTo: gr\u{fc}\u{df}e@dest.example\r\nSubject: gr\u{fc}\u{df}e\r\n\r\nhello\r\n.",
    ];
    let replies = submit::dialog(world.relay, &lines).await;
    assert!(replies[5].starts_with("250 "), "{replies:#?}");
    let report = world.sink.wait_for(1).await.remove(0).content;
    for expected in [
        "report-type=global-delivery-status;",
        "Content-Type: message/global-delivery-status\r\nContent-Transfer-Encoding: quoted-printable\r\n",
        "Original-Recipient: utf-8;gr=C3=BC=C3=9Fe@dest.example\r\n",
        "Final-Recipient: utf-8; gr=C3=BC=C3=9Fe@dest.example\r\n",
        "Content-Type: message/global-headers\r\n",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    world.end().await;
}

/// Sends a bounce from the recipient's host to a return path. Returns the last reply.
async fn return_bounce(world: &TestWorld, return_path: &str) -> String {
    let report = "From: MAILER-DAEMON@mx.dest.example\r\nSubject: Undelivered Mail Returned to Sender\r\n\
        Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
        --b\r\n\r\nSorry.\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.dest.example\r\n\r\n\
        Final-Recipient: rfc822; someone@inside.example\r\nAction: failed\r\nStatus: 5.1.1\r\n\
        Remote-MTA: dns; inside.example\r\nDiagnostic-Code: smtp; 550 5.1.1 user unknown\r\n\r\n--b--\r\n.";
    let to = format!("RCPT TO:<{return_path}>");
    let lines = ["EHLO mx.dest.example", "MAIL FROM:<>", &to, "DATA", report];
    submit::dialog(world.mx, &lines).await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_bounce_is_reported_once_to_the_sender() {
    let world = TestWorld::start().await;
    let orcpt = " ORCPT=rfc822;one@alias.example";
    let id = world.relay_with(&["one@dest.example"], orcpt, "told").await;
    let quiet = world.relay_with(&["two@dest.example"], " NOTIFY=NEVER", "not told").await;
    for id in [id, quiet] {
        world.wait(id, |email| email.recipients[0].state == RecipientState::Delivered).await;
    }
    let paths: Vec<String> = world.sink.wait_for(2).await.into_iter().map(|received| received.sender).collect();
    for path in paths.iter().chain(&paths) {
        let reply = return_bounce(&world, path).await;
        assert!(reply.starts_with("250 "), "{reply}");
    }
    for id in [id, quiet] {
        world.wait(id, |email| email.recipients[0].state == RecipientState::Bounced).await;
    }
    let reported = |received: &crate::world::sink::ReceivedMessage| received.recipient == "ada@acme.example";
    let report = world.sink.wait_for(3).await.into_iter().find(reported).unwrap();
    assert_eq!(report.sender, "", "null sender");
    for line in [
        "Original-Recipient: rfc822;one@alias.example\r\nFinal-Recipient: rfc822; one@dest.example\r\nAction: failed\r\nStatus: 5.1.1\r\n",
        "Remote-MTA: dns; inside.example\r\nDiagnostic-Code: smtp; 550 5.1.1 user unknown\r\n",
        "\r\nSubject: told\r\n",
    ] {
        assert!(report.content.contains(line), "{line}: {}", report.content);
    }
    // A last email proves that no second DSN was sent before it.
    world.relay(&["three@other.example"], "last").await;
    let received = world.sink.wait_for(4).await;
    assert_eq!((received.len(), received.iter().filter(|one| reported(one)).count()), (4, 1));
    world.end().await;
}
