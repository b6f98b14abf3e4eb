//! Bounces and complaints as the API shows them: worked examples, and DMARC reports.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use inbound::bounces::BounceMailbox;
use message::bounce::feedback_reporter::FeedbackReporter;
use message::inbound_message::InboundMessage;
use model::event::EventKind;
use model::id::EmailId;
use model::recipient::RecipientState;
use model::task::TaskId;
use model::verp::VerpKey;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::world::World;

/// Sends an email to these recipients and marks it as delivered.
async fn send_delivered(world: &World, to: &[&str]) -> EmailId {
    send_delivered_from(world, "a@example.com", to).await
}

async fn send_delivered_from(world: &World, from: &str, to: &[&str]) -> EmailId {
    let body = json!({"from": from, "to": to, "subject": "s", "text": "t"});
    let response = world.post("/emails", body.to_string()).await;
    let email: EmailId = response.json()["id"].as_str().unwrap().parse().unwrap();
    let (store, account) = (&world.services.store, world.tenant().await.account().id);
    world.services.clock.advance(Duration::from_secs(1));
    let now = world.services.clock.now();
    let found = store::email::get(store, account, email).await.unwrap().unwrap();
    let mut batch = Batch::progress();
    for mut recipient in found.recipients {
        (recipient.state, recipient.attempts, recipient.delivered_at) = (RecipientState::Delivered, 1, Some(now));
        recipient.last_event = (EventKind::Delivered, now);
        store::email::put_recipient(&mut batch, account, email, &recipient);
    }
    store.commit(batch).await.unwrap();
    email
}

fn inbound_message(world: &World, recipient: &str, message: &str) -> InboundMessage {
    InboundMessage {
        received_at: world.services.clock.now(),
        peer: "192.0.2.9".parse().unwrap(),
        helo: "mx.dest.example".to_owned(),
        reverse_path: None,
        recipient: recipient.parse().unwrap(),
        message: Bytes::from(message.replace('\n', "\r\n")),
        authenticated: vec!["reporter.example".parse().unwrap()],
    }
}

fn return_path(email: EmailId) -> String {
    let task = TaskId { email, recipient: 0 };
    VerpKey::new([1; 32]).address(task, &"rp.example.com".parse().unwrap()).unwrap().to_string()
}

fn trusted_reporters() -> Vec<FeedbackReporter> {
    vec!["reporter.example".parse().unwrap()]
}

/// Delivers a message to the mailbox that handles it.
async fn receive_message(world: &World, recipient: &str, message: &str) {
    let returned = &world.accounts.bounces;
    let mailbox = returned.find_mailbox(&recipient.parse().unwrap()).await.unwrap().unwrap();
    returned.process(mailbox, &inbound_message(world, recipient, message), &trusted_reporters()).await.unwrap();
}

const DSN: &str = "From: MAILER-DAEMON@mx.dest.example\nAuto-Submitted: auto-replied\n\
    Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nSorry.\n\
    --b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.dest.example\n\n\
    Final-Recipient: rfc822; ada@dest.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 user unknown\n\n--b--\n";

fn complaint(enclosed: &str) -> String {
    format!(
        "From: fbl@dest.example\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n\
         --b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nUser-Agent: Some/1\nVersion: 1\n\
         Original-Rcpt-To: ada@dest.example\n\n--b\nContent-Type: message/rfc822\n\n{enclosed}\n\nHello\n--b--\n"
    )
}

async fn get_email(world: &World, email: EmailId) -> Value {
    world.get(&format!("/emails/{email}")).await.json()["email"].clone()
}

#[tokio::test]
async fn late_bounce_and_complaint() {
    let world = World::start().await;
    let email = send_delivered(&world, &["ada@dest.example"]).await;
    assert_eq!(get_email(&world, email).await["status"], "delivered");
    world.services.clock.advance(Duration::from_secs(24 * 3_600));
    for _ in 0..2 {
        receive_message(&world, &return_path(email), DSN).await;
    }
    let bounced = get_email(&world, email).await;
    assert_eq!((&bounced["status"], &bounced["last_event"]), (&json!("bounced"), &json!("email.bounced")));
    assert_eq!(bounced["bounce_reason"], "550 5.1.1 user unknown");
    assert!(bounced["delivered_at"].is_string() && bounced["bounced_at"].is_string(), "{bounced}");
    assert_eq!(bounced["counts"]["bounced"], 1);
    let suppressed = world.get("/suppressions/ada@dest.example").await.json()["suppression"].clone();
    assert_eq!((&suppressed["reason"], &suppressed["email_id"]), (&json!("hard_bounce"), &json!(email)));
    assert_eq!(suppressed["detail"]["enhanced_code"], "5.1.1");
    world.services.clock.advance(Duration::from_secs(3_600));
    receive_message(&world, "fbl@rp.example.net", &complaint(&format!("Return-Path: <{}>", return_path(email)))).await;
    let complained = get_email(&world, email).await;
    assert_eq!((&complained["status"], &complained["last_event"]), (&json!("bounced"), &json!("email.complained")));
    assert!(complained["recipients"][0]["complained_at"].is_string(), "{complained}");
    let upgraded = world.get("/suppressions/ada@dest.example").await.json()["suppression"].clone();
    assert_eq!((&upgraded["reason"], &upgraded["id"]), (&json!("complaint"), &suppressed["id"]));
    let events = world.get(&format!("/emails/{email}/events")).await.json()["events"].clone();
    let kinds: Vec<&str> = events.as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["email.complained", "email.bounced", "email.sent"]);
    assert_eq!(
        (&events[1]["detail"]["bounce"]["async"], &events[1]["detail"]["suppression_id"]),
        (&json!(true), &suppressed["id"])
    );
    assert_eq!(events[0]["detail"]["complaint"]["source"], "fbl");
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    assert_eq!(world.get("/emails?status=bounced").await.json()["emails"][0]["id"], json!(email));
    let totals = world.get("/emails/metrics").await.json()["metrics"]["totals"].clone();
    assert_eq!((&totals["bounced"], &totals["complained"]), (&json!(1), &json!(1)));
    let again = json!({"from": "a@example.com", "to": "ada@dest.example", "subject": "s", "text": "t"});
    assert_eq!(world.post("/emails", again.to_string()).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    world.end().await;
}

#[tokio::test]
async fn complaint_without_return_path_needs_proof() {
    let world = World::with_signing().await;
    let added = world.post("/domains", json!({"name": "shop.test"}).to_string()).await;
    assert_eq!(added.json()["domain"]["status"], "verified", "{added:?}");
    let send_from_shop = async |to: &[&str]| send_delivered_from(&world, "a@shop.test", to).await;
    let single = send_from_shop(&["ada@dest.example"]).await;
    let multiple = send_from_shop(&["ada@dest.example", "bob@dest.example"]).await;
    let complained = async |email| {
        let recipients = get_email(&world, email).await["recipients"].clone();
        let all = recipients.as_array().unwrap().iter();
        all.map(|entry| entry["complained_at"].is_string()).collect::<Vec<bool>>()
    };
    let header = async |email| {
        let raw = world.get(&format!("/emails/{email}/raw")).await.body;
        let raw = String::from_utf8(raw.to_vec()).unwrap();
        raw.split_once("\r\n\r\n").unwrap().0.replace("\r\n", "\n")
    };
    // A Message-ID is not secret: anyone can use it and sign mail with a domain of their own.
    let report_as = async |authenticated: &str, message: &str| {
        let authenticated = vec![authenticated.parse().unwrap()];
        let arrival = InboundMessage { authenticated, ..inbound_message(&world, "fbl@rp.example.net", message) };
        world.accounts.bounces.process(BounceMailbox::Complaints, &arrival, &trusted_reporters()).await.unwrap();
    };
    let (single_header, multiple_header) = (header(single).await, header(multiple).await);
    for (email, header) in [(single, &single_header), (multiple, &multiple_header)] {
        let id = get_email(&world, email).await["message_id"].as_str().unwrap().to_owned();
        report_as("evil.example", &complaint(&format!("Message-ID: {id}"))).await;
        report_as("dest.example", &complaint(&format!("Message-ID: {id}"))).await;
        let forged = header.replace("\tb=", "\tb=AAAA");
        report_as("dest.example", &complaint(&forged)).await;
        let foreign_report = format!("{}\nMessage-ID: {id}", multiple_header.replace("Message-ID", "X-Was"));
        if email == single {
            report_as("dest.example", &complaint(&foreign_report)).await;
        }
    }
    assert_eq!((complained(single).await, complained(multiple).await), (vec![false], vec![false, false]));
    assert_eq!(world.get("/suppressions/ada@dest.example").await.status, StatusCode::NOT_FOUND);
    // A reporter that returns the header has received the email. With several recipients it may be any of them.
    report_as("evil.example", &complaint(&multiple_header)).await;
    assert_eq!(complained(multiple).await, [false, false]);
    report_as("evil.example", &complaint(&single_header)).await;
    assert_eq!(complained(single).await, [true]);
    report_as("mail.dest.example", &complaint(&multiple_header)).await;
    assert_eq!(complained(multiple).await, [false, false]);
    // A reporter that the operator trusts needs no proof.
    let other = send_from_shop(&["bob@far.example"]).await;
    let id = get_email(&world, other).await["message_id"].as_str().unwrap().to_owned();
    let foreign = complaint(&format!("Message-ID: {id}")).replace("fbl@dest.example", "fbl@reporter.example");
    report_as("evil.example", &foreign).await;
    assert_eq!(complained(other).await, [false]);
    receive_message(&world, "fbl@rp.example.net", &foreign).await;
    assert_eq!(complained(other).await, [true]);
    receive_message(&world, "abuse@rp.example.net", &complaint("Message-ID: <nonsense@example.com>")).await;
    receive_message(&world, "abuse@rp.example.net", "Subject: please stop\n\nThanks.\n").await;
    world.end().await;
}

#[tokio::test]
async fn dmarc_reports_are_aggregated() {
    let world = World::start().await;
    let empty = world.get("/domains/example.com/dmarc").await.json()["dmarc"].clone();
    assert_eq!((&empty["policy"], &empty["totals"]["messages"]), (&Value::Null, &json!(0)));
    assert_eq!(empty["days"].as_array().unwrap().len(), 31);
    send_delivered(&world, &["ada@dest.example", "bob@dest.example"]).await;
    let day = world.services.clock.now().as_second().div_euclid(86_400) * 86_400;
    let report = format!(
        "From: dmarc@reporter.example\nContent-Type: text/xml\n\n<?xml version=\"1.0\"?><feedback><report_metadata>\
         <org_name>Reporter</org_name><email>x@reporter.example</email><report_id>7</report_id><date_range><begin>{day}</begin>\
         <end>{}</end></date_range></report_metadata><policy_published><domain>example.com</domain><p>reject</p></policy_published>\
         <record><row><source_ip>192.0.2.1</source_ip><count>3</count><policy_evaluated><disposition>none</disposition>\
         <dkim>pass</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>example.com</header_from></identifiers></record>\
         <record><row><source_ip>198.51.100.1</source_ip><count>8</count><policy_evaluated><disposition>reject</disposition>\
         <dkim>fail</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>example.com</header_from></identifiers></record>\
         </feedback>\n",
        day + 86_399
    );
    for _ in 0..2 {
        receive_message(&world, "dmarc@rp.example.net", &report).await;
    }
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    let dmarc = world.get("/domains/example.com/dmarc").await.json()["dmarc"].clone();
    assert_eq!(dmarc["policy"], json!({"p": "reject", "sp": null, "adkim": "relaxed", "aspf": "relaxed"}));
    assert_eq!(
        dmarc["totals"],
        json!({"messages": 11, "passed": 3, "failed": 8, "dkim_aligned": 3, "spf_aligned": 0, "quarantined": 0, "rejected": 8})
    );
    assert_eq!((&dmarc["sources"][0]["ip"], &dmarc["sources"][0]["ours"]), (&json!("198.51.100.1"), &json!(false)));
    assert_eq!(
        (&dmarc["reporters"][0]["domain"], &dmarc["reporters"][0]["reports"]),
        (&json!("reporter.example"), &json!(1))
    );
    let days = dmarc["days"].as_array().unwrap();
    let today = days.iter().find(|day| day["reported"] == json!(11)).unwrap();
    assert_eq!((&today["sent"], &today["passed"], &today["failed"]), (&json!(2), &json!(3), &json!(8)));
    for (query, status) in [
        ("from=2026-01-01&to=2026-03-01", StatusCode::OK),
        ("from=2026-01-01&to=2026-09-01", StatusCode::BAD_REQUEST),
        ("from=2026-03-01&to=2026-01-01", StatusCode::BAD_REQUEST),
        ("from=yesterday", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(world.get(&format!("/domains/example.com/dmarc?{query}")).await.status, status, "{query}");
    }
    let other = world.account(2, model::credential::ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, "/domains/example.com/dmarc").await.status, StatusCode::NOT_FOUND);
    world.end().await;
}
