//! Automations that answer mail: what comes from a person is answered once, in its thread; what does not is not
//! answered, and the run says why.

use serde_json::{Value, json};

use crate::world::submit::dialog;
use crate::world::{DOMAIN, PATIENCE, TestWorld, ZONE};

/// Authors of `dest.example` are who they say they are, those of `hard.example` are not, and of
/// `soft.example` hardly.
async fn receiving() -> TestWorld {
    let world = TestWorld::start().await;
    world.names.set(&format!(
        "{ZONE}\ndest.example TXT \"v=spf1 ip4:127.0.0.1 -all\"\n_dmarc.dest.example TXT \"v=DMARC1; p=none\"\n\
         hard.example TXT \"v=spf1 -all\"\nsoft.example TXT \"v=spf1 ~all\""
    ));
    ask(&world, "PATCH", &format!("/domains/{DOMAIN}"), json!({"inbound_enabled": true})).await;
    world
}

async fn ask(world: &TestWorld, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = world.call(method, path, &body).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    answer
}

/// An automation that answers whatever comes in, and tells the team.
async fn automation(world: &TestWorld) -> String {
    let letter = |subject: &str| json!({"type": "send_email", "from": format!("help@{DOMAIN}"), "subject": subject, "text": "t"});
    let mut team = letter("mail from {{event.email}}");
    team["to"] = json!("team@dest.example");
    let steps = json!([letter("we look into {{event.data.subject}}"), team]);
    let definition = json!({"name": "A", "trigger": {"event": "email.received"}, "steps": steps});
    let made = ask(world, "POST", "/automations", definition).await;
    let path = format!("/automations/{}", made["automation"]["id"].as_str().unwrap());
    ask(world, "POST", &path, json!({"action": "activate"})).await;
    path
}

/// Somebody writes: the steps of the run that comes of it, once it is over.
async fn written(world: &TestWorld, path: &str, (sender, author, more): (&str, &str, &str)) -> Vec<Value> {
    let id = if more.contains("Message-ID:") { "" } else { "Message-ID: <1@far>\r\n" };
    let letter = format!("From: {author}\r\nSubject: help\r\n{id}References: <0@far>\r\n{more}\r\nHi\r\n.");
    let sender = format!("MAIL FROM:<{sender}>");
    let lines = ["EHLO host.dest.example", &sender, "RCPT TO:<help@acme.example>", "DATA", &letter];
    let reply = dialog(world.mx, &lines).await.pop().unwrap();
    let id = reply.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{reply}"));
    let id: mail::id::ReceivedId = id.parse().unwrap();
    let events = store::event::list(&world.world.store, world.account, id, 10).await.unwrap();
    let event = events[0].id.to_string();
    let over = async {
        loop {
            let runs = ask(world, "GET", &format!("{path}/runs?limit=1"), Value::Null).await;
            let run = &runs["runs"][0];
            if run["event_id"] == event.as_str() && run["status"] == "completed" {
                return run["steps"].as_array().unwrap().clone();
            }
        }
    };
    let over = tokio::time::timeout(PATIENCE, over).await;
    over.unwrap_or_else(|_| panic!("{author} {more}: no run ends"))
}

fn withheld(steps: &[Value]) -> Option<&str> {
    steps[0]["output"]["withheld"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_is_answered_once_and_in_the_thread() {
    let world = receiving().await;
    let path = automation(&world).await;
    let ada = ("ada@dest.example", "Ada <ada@dest.example>", "");
    let steps = written(&world, &path, ada).await;
    assert!(steps[0]["output"]["email_id"].is_string() && withheld(&steps).is_none(), "{steps:?}");
    let sent = world.sink.wait_for(2).await;
    let of = |to: &str| sent.iter().find(|mail| mail.recipient == to).unwrap();
    let (answer, told) = (of("ada@dest.example"), of("team@dest.example"));
    for field in ["Auto-Submitted: auto-replied", "In-Reply-To: <1@far>", "References: <0@far> <1@far>"] {
        assert!(answer.content.contains(&format!("{field}\r\n")), "{field}: {}", answer.content);
    }
    assert!(told.content.contains("Auto-Submitted: auto-generated\r\n") && !told.content.contains("\nIn-Reply-To:"));
    // The same automation answers her again in an hour; all else goes on.
    let again = written(&world, &path, ada).await;
    assert_eq!(withheld(&again), Some("answered_lately"));
    assert!(again[1]["output"]["email_id"].is_string(), "{again:?}");
    let bob = written(&world, &path, ("bob@dest.example", "bob@dest.example", "")).await;
    assert_eq!(withheld(&bob), None, "each author for themselves");
    world.world.clock.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(withheld(&written(&world, &path, ada).await), None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_person_wrote_is_not_answered() {
    let world = receiving().await;
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
        (ada, "boss@acme.example", "", "unauthenticated"),
        // What stands by the envelope's sender says nothing of another's name in the header.
        (ada, "victim@none.example", "", "unauthenticated"),
        (ada, "team@dest.example", "Precedence: junk\r\n", "bulk"),
    ];
    for (sender, author, more, why) in cases {
        let steps = written(&world, &path, (sender, author, more)).await;
        assert_eq!(withheld(&steps), Some(why), "{author} {more} {steps:?}");
        // Who is named by the step, and did not write, is told all the same.
        let told = steps[1]["output"]["email_id"].is_string();
        assert_eq!(told, author != "team@dest.example", "{author} {more} {steps:?}");
    }
    assert!(world.sink.wait_for(cases.len() - 1).await.iter().all(|mail| mail.recipient == "team@dest.example"));
    // It was no answer, and is counted as none.
    assert_eq!(withheld(&written(&world, &path, (ada, ada, "Auto-Submitted: no\r\n")).await), None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_machine_of_ours_wrote_makes_no_other_write() {
    let world = receiving().await;
    let path = automation(&world).await;
    let ada = "ada@dest.example";
    // As a list or a forwarder passes it on.
    let ours = "Auto-Submitted: auto-generated\r\nMessage-ID: <01arz3ndektsv4rrffq69g5fav@acme.example>\r\n";
    let steps = written(&world, &path, (ada, ada, ours)).await;
    assert_eq!(withheld(&steps), Some("auto_submitted"));
    assert_eq!(steps[1]["output"]["withheld"], "auto_submitted", "not even a fixed address: {steps:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_of_absence_ends_no_wait() {
    let world = receiving().await;
    let wait = json!({"type": "wait_for_event", "event": "email.received", "match": "email", "timeout": "1d"});
    let letter = json!({"type": "send_email", "from": format!("help@{DOMAIN}"), "subject": "thanks", "text": "t"});
    let definition = json!({"name": "W", "trigger": {"event": "asked"}, "steps": [wait, letter]});
    let made = ask(&world, "POST", "/automations", definition).await;
    let path = format!("/automations/{}", made["automation"]["id"].as_str().unwrap());
    ask(&world, "POST", &path, json!({"action": "activate"})).await;
    // Its end says that what came before it has been heard.
    let other = automation(&world).await;
    let told = ask(&world, "POST", "/events", json!({"name": "asked", "email": "ada@dest.example"})).await;
    assert_eq!(told["matched_automations"], 1);
    let counts =
        async |state: &str| ask(&world, "GET", &path, Value::Null).await["automation"]["counts"][state].clone();
    let until = async |state: &str| {
        let coming = async { while counts(state).await != json!(1) {} };
        tokio::time::timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("it is not {state}"));
    };
    until("waiting").await;
    let ada = "ada@dest.example";
    written(&world, &other, (ada, ada, "Auto-Submitted: auto-replied\r\n")).await;
    assert_eq!(counts("waiting").await, json!(1));
    written(&world, &other, (ada, ada, "")).await;
    until("completed").await;
    world.end().await;
}
