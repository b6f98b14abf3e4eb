//! Automations that reply to received mail: a person gets one reply, in the thread. Automatic or unauthenticated mail
//! gets none, and the run records why (RFC 3834).

use serde_json::{Value, json};

use crate::world::submit::dialog;
use crate::world::{DOMAIN, PATIENCE, TestWorld, ZONE};

/// SPF passes for `dest.example`, fails for `hard.example` and softfails for `soft.example`. `plain.example` publishes no
/// policy.
async fn start_receiving() -> TestWorld {
    let world = TestWorld::start().await;
    world.names.set(&format!(
        "{ZONE}\ndest.example TXT \"v=spf1 ip4:127.0.0.1 -all\"\n_dmarc.dest.example TXT \"v=DMARC1; p=none\"\n\
         hard.example TXT \"v=spf1 -all\"\nsoft.example TXT \"v=spf1 ~all\"\nplain.example TXT \"no policy\""
    ));
    call_api(&world, "PATCH", &format!("/domains/{DOMAIN}"), json!({"inbound_enabled": true})).await;
    world
}

async fn call_api(world: &TestWorld, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, response) = world.call(method, path, &body).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {response}");
    response
}

/// Creates an automation that replies to every received email and also notifies the team.
async fn automation(world: &TestWorld) -> String {
    let email_step = |subject: &str| json!({"type": "send_email", "from": format!("help@{DOMAIN}"), "subject": subject, "text": "t"});
    let mut team = email_step("mail from {{event.email}}");
    team["to"] = json!("team@dest.example");
    let steps = json!([email_step("we look into {{event.data.subject}}"), team]);
    let definition = json!({"name": "A", "trigger": {"event": "email.received"}, "steps": steps});
    let created = call_api(world, "POST", "/automations", definition).await;
    let path = format!("/automations/{}", created["automation"]["id"].as_str().unwrap());
    call_api(world, "POST", &path, json!({"action": "activate"})).await;
    path
}

/// Receives an email and returns the steps of its run once the run is completed.
async fn receive_and_run(world: &TestWorld, path: &str, sender: &str, author: &str, fields: &str) -> Vec<Value> {
    let id = if fields.contains("Message-ID:") { "" } else { "Message-ID: <1@far>\r\n" };
    let message = format!("From: {author}\r\nSubject: help\r\n{id}References: <0@far>\r\n{fields}\r\nHi\r\n.");
    let sender = format!("MAIL FROM:<{sender}>");
    let lines = ["EHLO host.dest.example", &sender, "RCPT TO:<help@acme.example>", "DATA", &message];
    let reply = dialog(world.mx, &lines).await.pop().unwrap();
    let id = reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}"));
    let id: model::id::ReceivedId = id.parse().unwrap();
    let events = store::event::list(&world.server.store, world.account, id, 10).await.unwrap();
    let event = events[0].id.to_string();
    let completed = async {
        loop {
            let runs = call_api(world, "GET", &format!("{path}/runs?limit=1"), Value::Null).await;
            let run = &runs["runs"][0];
            if run["event_id"] == event.as_str() && run["status"] == "completed" {
                return run["steps"].as_array().unwrap().clone();
            }
        }
    };
    let completed = tokio::time::timeout(PATIENCE, completed).await;
    completed.unwrap_or_else(|_| panic!("{author} {fields}: the run did not complete"))
}

fn withheld_reason(steps: &[Value]) -> Option<&str> {
    steps[0]["output"]["withheld"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_author_gets_one_reply_in_the_thread() {
    let world = start_receiving().await;
    let path = automation(&world).await;
    let mail_of_ada = async || receive_and_run(&world, &path, "ada@dest.example", "Ada <ada@dest.example>", "").await;
    let steps = mail_of_ada().await;
    assert!(steps[0]["output"]["email_id"].is_string() && withheld_reason(&steps).is_none(), "{steps:?}");
    let sent = world.sink.wait_for(2).await;
    let of = |to: &str| sent.iter().find(|mail| mail.recipient == to).unwrap();
    let (reply, notice) = (of("ada@dest.example"), of("team@dest.example"));
    for field in ["Auto-Submitted: auto-replied", "In-Reply-To: <1@far>", "References: <0@far> <1@far>"] {
        assert!(reply.content.contains(&format!("{field}\r\n")), "{field}: {}", reply.content);
    }
    assert!(
        notice.content.contains("Auto-Submitted: auto-generated\r\n") && !notice.content.contains("\nIn-Reply-To:")
    );
    // The same author gets no second reply within an hour; the other steps still run.
    let again = mail_of_ada().await;
    assert_eq!(withheld_reason(&again), Some("answered_lately"));
    assert!(again[1]["output"]["email_id"].is_string(), "{again:?}");
    let bob = receive_and_run(&world, &path, "bob@dest.example", "bob@dest.example", "").await;
    assert_eq!(withheld_reason(&bob), None, "the limit is per author");
    world.server.clock.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(withheld_reason(&mail_of_ada().await), None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn automatic_and_unauthenticated_mail_gets_no_reply() {
    let world = start_receiving().await;
    let path = automation(&world).await;
    let ada = "ada@dest.example";
    let cases = [
        (ada, ada, "Auto-Submitted: auto-replied (vacation)\r\n", "auto_submitted"),
        (ada, ada, "X-Auto-Response-Suppress: All\r\n", "auto_submitted"),
        ("", "mailer-daemon@dest.example", "", "report"),
        (ada, ada, "Content-Type: multipart/report; boundary=x\r\n", "report"),
        (ada, ada, "List-Id: <talk.dest.example>\r\n", "mailing_list"),
        (ada, ada, "Precedence: bulk\r\n", "bulk"),
        (ada, "noreply@dest.example", "", "no_author"),
        ("x@hard.example", "victim@hard.example", "", "spam"),
        ("x@soft.example", "victim@soft.example", "", "unauthenticated"),
        // Nothing authenticates the author.
        ("x@plain.example", "victim@plain.example", "", "unauthenticated"),
        (ada, "boss@acme.example", "", "unauthenticated"),
        // SPF authenticates the envelope sender only, not the domain of From.
        (ada, "victim@none.example", "", "unauthenticated"),
        (ada, "team@dest.example", "Precedence: junk\r\n", "bulk"),
    ];
    for (sender, author, fields, reason) in cases {
        let steps = receive_and_run(&world, &path, sender, author, fields).await;
        assert_eq!(withheld_reason(&steps), Some(reason), "{author} {fields} {steps:?}");
        // A step with a fixed recipient still sends, unless that recipient is the author.
        let is_sent = steps[1]["output"]["email_id"].is_string();
        assert_eq!(is_sent, author != "team@dest.example", "{author} {fields} {steps:?}");
    }
    assert!(world.sink.wait_for(cases.len() - 1).await.iter().all(|mail| mail.recipient == "team@dest.example"));
    // A withheld reply does not count towards the limit of one reply per hour.
    assert_eq!(withheld_reason(&receive_and_run(&world, &path, ada, ada, "Auto-Submitted: no\r\n").await), None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_generated_by_this_server_triggers_no_other_mail() {
    let world = start_receiving().await;
    let path = automation(&world).await;
    let ada = "ada@dest.example";
    // A message of this server that a list or a forwarder returns.
    let own_fields = "Auto-Submitted: auto-generated\r\nMessage-ID: <01arz3ndektsv4rrffq69g5fav@acme.example>\r\n";
    let steps = receive_and_run(&world, &path, ada, ada, own_fields).await;
    assert_eq!(withheld_reason(&steps), Some("auto_submitted"));
    assert_eq!(steps[1]["output"]["withheld"], "auto_submitted", "also to a fixed address: {steps:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_out_of_office_reply_does_not_resume_a_waiting_run() {
    let world = start_receiving().await;
    let wait = json!({"type": "wait_for_event", "event": "email.received", "match": "email", "timeout": "1d"});
    let email_step = json!({"type": "send_email", "from": format!("help@{DOMAIN}"), "subject": "thanks", "text": "t"});
    let definition = json!({"name": "W", "trigger": {"event": "asked"}, "steps": [wait, email_step]});
    let created = call_api(&world, "POST", "/automations", definition).await;
    let path = format!("/automations/{}", created["automation"]["id"].as_str().unwrap());
    call_api(&world, "POST", &path, json!({"action": "activate"})).await;
    // Its run ends after the email has been processed by the waiting automation as well.
    let other = automation(&world).await;
    let posted = call_api(&world, "POST", "/events", json!({"name": "asked", "email": "ada@dest.example"})).await;
    assert_eq!(posted["matched_automations"], 1);
    let counts =
        async |state: &str| call_api(&world, "GET", &path, Value::Null).await["automation"]["counts"][state].clone();
    let until = async |state: &str| {
        let poll = async { while counts(state).await != json!(1) {} };
        tokio::time::timeout(PATIENCE, poll).await.unwrap_or_else(|_| panic!("the run is not {state}"));
    };
    until("waiting").await;
    let ada = "ada@dest.example";
    receive_and_run(&world, &other, ada, ada, "Auto-Submitted: auto-replied\r\n").await;
    assert_eq!(counts("waiting").await, json!(1));
    receive_and_run(&world, &other, ada, ada, "").await;
    until("completed").await;
    world.end().await;
}
