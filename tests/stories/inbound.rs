//! Inbound mail: which recipients are accepted, how messages are stored, and what must never happen.

use std::collections::HashSet;
use std::time::Duration;

use accounts::domains::NewDomain;
use message::address::DomainName;
use model::recipient::RecipientState;
use model::system_email::SystemEmail;
use queue::intake::system_mailer::SystemMailer;
use serde_json::Value;

use crate::world::sink::Behaviour;
use crate::world::submit::dialog;
use crate::world::{DOMAIN, TestWorld, ZONE};

/// Starts a server whose domain receives mail.
async fn start_receiving(zone: &str) -> TestWorld {
    let world = TestWorld::start().await;
    world.names.set(&format!("{ZONE}\n{zone}"));
    let (status, _) = world.call("PATCH", &format!("/domains/{DOMAIN}"), r#"{"inbound_enabled":true}"#).await;
    assert_eq!(status, 200);
    world
}

fn format_message(author: &str, fields: &str) -> String {
    format!(
        "From: {author}\r\nSubject: hello\r\nMessage-ID: <1@far.example>\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\n{fields}\r\nHi\r\n."
    )
}

/// Submits a message to the MX listener. Returns the last reply.
async fn submit(world: &TestWorld, sender: &str, to: &[&str], message: &str) -> String {
    let mut lines = vec!["EHLO host.far.example".to_owned(), format!("MAIL FROM:<{sender}>")];
    lines.extend(to.iter().map(|to| format!("RCPT TO:<{to}>")));
    lines.extend(["DATA".to_owned(), message.to_owned()]);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    dialog(world.mx, &lines).await.pop().unwrap()
}

async fn list_received(world: &TestWorld, query: &str) -> Vec<Value> {
    let (status, page) = world.call("GET", &format!("/received-emails{query}"), "").await;
    assert_eq!(status, 200, "{page}");
    page["received_emails"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_for_a_customer_is_stored_reported_and_readable() {
    let world =
        start_receiving("far.example TXT \"v=spf1 ip4:127.0.0.1 -all\"\n_dmarc.far.example TXT \"v=DMARC1; p=reject\"")
            .await;
    let to = ["support+7@acme.example", "info@acme.example"];
    let forged = "Authentication-Results: out.postrider.example; dkim=pass\r\n";
    let reply = submit(&world, "ada@far.example", &to, &format_message("Ada <ada@far.example>", forged)).await;
    let id = reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}"));
    let all = list_received(&world, "?order=asc").await;
    let of: Vec<&str> = all.iter().map(|one| one["rcpt_to"].as_str().unwrap()).collect();
    assert_eq!(of, to, "two recipients are two received emails");
    assert_eq!((&all[0]["email_id"], &all[0]["from"]), (&id.into(), &"Ada <ada@far.example>".into()));
    let auth = serde_json::json!({"spf": "pass", "dkim": "none", "dmarc": "pass"});
    assert_eq!((&all[0]["auth"], &all[0]["spam_status"]), (&auth, &"not_spam".into()));
    let events =
        store::event::list(&world.server.store, world.account, id.parse::<model::id::ReceivedId>().unwrap(), 10);
    let events = events.await.unwrap();
    assert_eq!((events.len(), events[0].kind.name()), (1, "email.received"));
    assert_eq!(events[0].detail, all[0], "events and lists show the same");
    let (_, one) = world.call("GET", &format!("/received-emails/{id}"), "").await;
    let headers = one["received_email"]["headers"].as_array().unwrap();
    let named = |name: &str| headers.iter().filter(|field| field["name"] == name).collect::<Vec<_>>();
    assert_eq!(named("Return-Path")[0]["value"], "<ada@far.example>");
    assert_eq!(named("Delivered-To")[0]["value"], "support+7@acme.example");
    let results = named("Authentication-Results");
    assert!(results.len() == 1 && results[0]["value"].as_str().unwrap().contains("dmarc=pass"), "{results:?}");
    // Deleting one leaves the other complete.
    assert_eq!(world.call("DELETE", &format!("/received-emails/{id}"), "").await.0, 200);
    let left = list_received(&world, "").await;
    let other = left[0]["email_id"].as_str().unwrap();
    assert_eq!(world.call("GET", &format!("/received-emails/{other}"), "").await.1["received_email"]["text"], "Hi\n");
    world.end().await;
}

/// A sign-in link that this server sends to an address whose mail it receives: whoever reads the account's received mail
/// must not get it, and neither must the reader of a backup.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_link_is_withheld_and_stored_sealed() {
    let world = start_receiving("").await;
    world.sink.script("user@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let from = "no-reply@acme.example".parse().unwrap();
    let email =
        SystemEmail::new("user@dest.example".parse().unwrap(), "Sign in", "https://x.example/auth/link/s3cret\n");
    let mailer = SystemMailer::for_service(&world.server.store, from).await.unwrap();
    let draft_of = |email: SystemEmail| vec![email.with_secret_link()];
    let sent = mailer.send_batch_with(&world.server.accounts.intake, draft_of(email), &|_, _| {}).await.unwrap();
    let id = sent[0].as_ref().unwrap().id;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let stored = store::email::get_body(&world.server.store, world.account, id).await.unwrap().unwrap();
    assert!(memchr::memmem::find(&stored, b"s3cret").is_none() && memchr::memmem::find(&stored, b"Sign in").is_none());
    // The retry reads the sealed body.
    world.server.clock.advance(Duration::from_secs(75));
    let delivered = world.sink.wait_for(1).await.remove(0);
    assert!(delivered.content.contains("https://x.example/auth/link/s3cret"), "{delivered:?}");

    let content = format!("{}\r\n.", delivered.content.trim_end());
    let reply = submit(&world, &delivered.sender, &["user@acme.example"], &content).await;
    let received = reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}"));
    let (_, one) = world.call("GET", &format!("/received-emails/{received}"), "").await;
    assert!(!one.to_string().contains("s3cret"), "{one}");
    let one = &one["received_email"];
    assert!(one["subject"] == "Sign in" && one["text"].as_str().unwrap().contains("is not shown here"), "{one}");
    // The same content by another way, for example forwarded by a person, is received as it is.
    let reply = submit(&world, "ada@far.example", &["user@acme.example"], &content).await;
    let received = reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}"));
    let (_, one) = world.call("GET", &format!("/received-emails/{received}"), "").await;
    assert!(one.to_string().contains("s3cret"), "{one}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mx_listener_relays_for_nobody() {
    let world = start_receiving("").await;
    for address in [
        "a@elsewhere.example",
        "a%elsewhere.example@acme.example",
        "elsewhere.example!a@acme.example",
        "\"a@elsewhere.example\"@acme.example",
        "@acme.example:a@elsewhere.example",
        "a@acme.example.elsewhere.example",
        "a@sub.acme.example",
        "a@xacme.example",
    ] {
        let lines = ["EHLO x", "MAIL FROM:<b@far.example>", &format!("RCPT TO:<{address}>")];
        let replies = dialog(world.mx, &lines).await;
        assert!(replies[3].starts_with("550 5.7.1 Relaying denied"), "{address}: {replies:?}");
    }
    // The server's own domains have no such mailbox.
    for address in ["postmaster", "postmaster@out.postrider.example", "a@rp.out.postrider.example"] {
        let lines = ["EHLO x", "MAIL FROM:<b@far.example>", &format!("RCPT TO:<{address}>")];
        assert!(dialog(world.mx, &lines).await[3].starts_with("550 5."), "{address}");
    }
    // A DSN (null sender) has exactly one recipient.
    let lines = ["EHLO x", "MAIL FROM:<>", "RCPT TO:<a@acme.example>", "RCPT TO:<b@acme.example>"];
    assert!(dialog(world.mx, &lines).await[4].starts_with("550 5.5.3 "));
    assert!(list_received(&world, "").await.is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receiving_can_be_switched_on_and_off_without_delay() {
    let world = TestWorld::start().await;
    let rcpt = ["EHLO x", "MAIL FROM:<b@far.example>", "RCPT TO:<a@acme.example>"];
    for (on, code) in [(false, "550 5.7.1"), (true, "250 2.1.5"), (false, "550 5.7.1")] {
        let body = format!(r#"{{"inbound_enabled":{on}}}"#);
        assert_eq!(world.call("PATCH", "/domains/acme.example", &body).await.0, 200);
        assert!(dialog(world.mx, &rcpt).await[3].starts_with(code), "{on}");
    }
    // Only listed addresses and patterns are accepted, and always postmaster (RFC 5321 4.5.1).
    let some = r#"{"inbound_enabled":true,"inbound_addresses":["support@acme.example","support+*@acme.example"]}"#;
    assert_eq!(world.call("PATCH", "/domains/acme.example", some).await.0, 200);
    for (local, code) in [
        ("Support", "250 2.1.5"),
        ("support+7", "250 2.1.5"),
        ("Postmaster", "250 2.1.5"),
        ("a", "550 5.1.1"),
        ("supporter", "550 5.1.1"),
    ] {
        let rcpt = ["EHLO x", "MAIL FROM:<b@far.example>", &format!("RCPT TO:<{local}@acme.example>")];
        assert!(dialog(world.mx, &rcpt).await[3].starts_with(code), "{local}");
    }
    let foreign = r#"{"inbound_addresses":["support@far.example"]}"#;
    let (status, refused) = world.call("PATCH", "/domains/acme.example", foreign).await;
    assert_eq!(status, 400);
    assert!(refused["error"]["details"]["fields"]["inbound_addresses"].is_string(), "{refused}");
    // An unverified domain receives nothing.
    let name: DomainName = "new.example".parse().unwrap();
    let new = NewDomain { inbound_enabled: true, ..NewDomain::with_name(name) };
    world.server.accounts.domains.create(world.account, new, None).await.unwrap();
    let rcpt = ["EHLO x", "MAIL FROM:<b@far.example>", "RCPT TO:<a@new.example>"];
    assert!(dialog(world.mx, &rcpt).await[3].starts_with("550 5.7.1"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_name_is_verified_forward_and_reverse() {
    let zone = "9.2.0.192.in-addr.arpa PTR mx.far.example.\nmx.far.example A 192.0.2.9\n\
                8.2.0.192.in-addr.arpa PTR mx.far.example.";
    let world = start_receiving(zone).await;
    let addresses = ["192.0.2.9", "192.0.2.8", "192.0.2.7"].map(|ip| ip.parse().unwrap());
    let hosts = world.server.accounts.bounces.verified_host_names(addresses.to_vec()).await;
    let name: DomainName = "mx.far.example".parse().unwrap();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), [(addresses[0], name)]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_mail_is_marked_or_refused() {
    let zone = "hard.example TXT \"v=spf1 -all\"\n_dmarc.strict.example TXT \"v=DMARC1; p=reject\"";
    let world = start_receiving(zone).await;
    let to = ["a@acme.example"];
    let reply = submit(&world, "x@hard.example", &to, &format_message("x@hard.example", "")).await;
    assert!(reply.starts_with("250 "), "{reply}");
    assert_eq!(list_received(&world, "?spam_status=spam").await.len(), 1);
    let refused = submit(&world, "x@far.example", &to, &format_message("boss@strict.example", "")).await;
    assert!(refused.starts_with("550 5.7.1 strict.example "), "{refused}");
    world.reload_with(|config| config.mx.dmarc_reject = inbound::service::OnPolicyFail::MarkAsSpam);
    let marked = submit(&world, "x@far.example", &to, &format_message("boss@strict.example", "")).await;
    assert!(marked.starts_with("250 "), "{marked}");
    // Two From fields: neither author is authenticated.
    let with_two_authors = format_message("boss@strict.example", "From: x@far.example\r\n");
    assert!(submit(&world, "x@far.example", &to, &with_two_authors).await.starts_with("250 "));
    assert_eq!(list_received(&world, "?spam_status=spam").await.len(), 3);
    for (fields, code) in [
        ("Delivered-To: A@acme.example\r\n".to_owned(), "554 5.4.6 Mail loop"),
        ("Received: x\r\n".repeat(100), "554 5.4.6 The message has passed through 100 hosts"),
        (format!("X: {}\r\n", "y".repeat(900)).repeat(400), "554 5.6.0"),
    ] {
        let reply = submit(&world, "x@far.example", &to, &format_message("x@far.example", &fields)).await;
        assert!(reply.starts_with(code), "{reply}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poller_misses_no_email_under_concurrent_arrivals() {
    // The connection limit of one address.
    const MESSAGES: usize = 40;
    let world = std::sync::Arc::new(start_receiving("").await);
    let poll = tokio::spawn({
        let world = std::sync::Arc::clone(&world);
        async move {
            let (mut listed_ids, mut cursor) = (Vec::new(), String::new());
            while listed_ids.len() < MESSAGES {
                let path = format!("/received-emails?order=asc&limit=7{cursor}");
                let (_, page) = world.call("GET", &path, "").await;
                cursor = format!("&cursor={}", page["next_cursor"].as_str().unwrap());
                let ids = page["received_emails"].as_array().unwrap().iter();
                listed_ids.extend(ids.map(|one| one["email_id"].as_str().unwrap().to_owned()));
            }
            listed_ids
        }
    });
    let submissions = (0..MESSAGES).map(|n| {
        let world = std::sync::Arc::clone(&world);
        tokio::spawn(async move {
            let to = format!("box{n}@acme.example");
            submit(&world, "x@far.example", &[&to], &format_message("x@far.example", "")).await
        })
    });
    let mut expected_ids = HashSet::new();
    for submission in submissions.collect::<Vec<_>>() {
        let reply = submission.await.unwrap();
        expected_ids.insert(reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}")).to_owned());
    }
    let listed_ids = tokio::time::timeout(crate::world::PATIENCE, poll).await.unwrap().unwrap();
    assert_eq!(listed_ids.len(), MESSAGES, "each once");
    assert_eq!(listed_ids.into_iter().collect::<HashSet<_>>(), expected_ids);
    std::sync::Arc::into_inner(world).unwrap().end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn received_mail_survives_a_restart_and_is_purged_after_its_retention() {
    let world = start_receiving("").await;
    assert!(submit(&world, "", &["a@acme.example"], &format_message("x@far.example", "")).await.starts_with("250 "));
    let world = world.restart("").await;
    let stored = list_received(&world, "").await;
    assert_eq!((stored.len(), &stored[0]["envelope_from"]), (1, &Value::Null));
    let id = stored[0]["email_id"].as_str().unwrap().to_owned();
    assert_eq!(world.call("GET", &format!("/received-emails/{id}"), "").await.0, 200);
    world.server.clock.advance(std::time::Duration::from_secs(31 * 24 * 3600));
    let purged = async {
        while !list_received(&world, "").await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, purged).await.expect("the email is purged");
    assert_eq!(world.call("GET", &format!("/received-emails/{id}"), "").await.0, 404);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_one_mailbox_get_one_copy() {
    let world = start_receiving("far.example TXT \"v=spf1 ip4:127.0.0.1 -all\"").await;
    let to = ["support@acme.example", "SUPPORT@acme.example", "\"support\"@acme.example"];
    let reply = submit(&world, "ada@far.example", &to, &format_message("Ada <ada@far.example>", "")).await;
    assert!(reply.starts_with("250 2.0.0 OK "), "{reply}");
    assert_eq!(list_received(&world, "").await.len(), 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_sent_to_reply_to_of_the_header_not_of_the_body() {
    let world = start_receiving("far.example TXT \"v=spf1 ip4:127.0.0.1 -all\"").await;
    let long = format!("reply+{}@far.example", "x".repeat(90));
    let message = format!(
        "From: Ada <ada@far.example>\r\nReply-To: {long}\r\nSubject: =?utf-8?Q?Anfrage_von_J=C3=B6?=\r\n\r\n \
         =?utf-8?Q?x?=\r\nReply-To: evil@far.example\r\nCc: third@far.example\r\n\r\nHi\r\n."
    );
    let sender = format!("bounce+{}@far.example", "y".repeat(90));
    let reply = submit(&world, &sender, &["support@acme.example"], &message).await;
    let id = reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}"));
    let one = &list_received(&world, "").await[0];
    assert_eq!((&one["subject"], &one["cc"]), (&"Anfrage von Jö".into(), &serde_json::json!([])));
    let (status, answer) = world.call("POST", &format!("/received-emails/{id}/reply"), r#"{"text":"Hello"}"#).await;
    assert_eq!(status, 200, "{answer}");
    let (_, sent) = world
        .call("GET", &format!("/emails/{}", answer["id"].as_str().unwrap_or_else(|| panic!("{answer}"))), "")
        .await;
    assert_eq!(sent["email"]["to"], serde_json::json!([long]), "{sent}");
    world.end().await;
}

/// RCPT to a mailbox over its storage quota gets 452 until a received email is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_mailbox_refuses_mail_until_an_email_is_deleted() {
    let world = start_receiving("").await;
    let account = store::account::get(&world.server.store, world.account).await.unwrap().unwrap();
    let free = |account: &mut model::account::Account| account.plan = model::account::Plan::Free;
    world.server.provisioning.change_account(&account.email.to_string(), free).await.unwrap();
    let mut plans = model::plan::Plans::default();
    plans.free.storage.set(model::quota::Noun::ReceivedEmails, Some(1));
    world.server.accounts.limits.plans.replace(plans);
    let submit = async || {
        let message = format_message("Ada <ada@far.example>", "");
        submit(&world, "ada@far.example", &["info@acme.example"], &message).await
    };
    let first = submit().await;
    let id = first.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{first}"));
    let rcpt = ["EHLO host.far.example", "MAIL FROM:<ada@far.example>", "RCPT TO:<info@acme.example>"];
    let full = dialog(world.mx, &rcpt).await.pop().unwrap();
    assert!(full.starts_with("452 4.2.2 "), "{full}");
    let (status, _) = world.call("DELETE", &format!("/received-emails/{id}"), "").await;
    assert_eq!(status, 200);
    let again = submit().await;
    assert!(again.starts_with("250 "), "{again}");
    world.end().await;
}
