//! The operator's command line over the admin socket: finding accounts, domains and emails, creating secrets, and the
//! status screen.

use std::path::PathBuf;
use std::process::{Command, Output};

use mail::recipient::RecipientState;
use postrider::{admin, serve};
use serde_json::Value;

use crate::world::sink::Behaviour;
use crate::world::{DOMAIN, OWNER, TestWorld};

/// Runs the command line against this server.
#[derive(Clone)]
struct Operator(PathBuf);

impl Operator {
    fn of(world: &TestWorld) -> Self {
        let config = world.config();
        let listener = admin::bind(&config.data_dir).unwrap();
        serve::open_admin_socket(&config, &world.world, world.doors(), (listener, None));
        Self(config.data_dir)
    }

    async fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(line.split(' ')).arg("--data-dir").arg(&self.0);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    async fn json(&self, line: &str) -> Value {
        let done = self.run(&format!("admin --json {line}")).await;
        assert!(done.status.success(), "{line}: {done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    }

    async fn text(&self, line: &str) -> String {
        let done = self.run(&format!("admin {line}")).await;
        assert!(done.status.success(), "{line}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }
}

fn ids(shown: &Value) -> Vec<&str> {
    shown["emails"].as_array().unwrap().iter().map(|email| email["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn emails_are_found_by_recipient_sender_and_message_id() {
    let world = TestWorld::start().await;
    let operator = Operator::of(&world);
    world.sink.script("late@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let first = world.relay(&["ann@dest.example"], "the first").await;
    let late = world.relay(&["late@dest.example"], "late").await;
    let last = world.relay(&["ann@dest.example", "bob@other.example"], "the last").await;
    world.wait(last, |e| e.recipients.iter().all(|r| r.state == RecipientState::Delivered)).await;
    world.wait(late, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let (first, late, last) = (first.to_string(), late.to_string(), last.to_string());

    let all = operator.json("email list").await;
    assert_eq!(ids(&all), [&last, &late, &first], "newest first: {all}");
    assert_eq!(ids(&operator.json("email list --recipient ANN@dest.example").await), [&last, &first]);
    let page = operator.json("email list --recipient ann@dest.example --limit 1").await;
    assert_eq!((ids(&page), &page["has_more"]), (vec![last.as_str()], &Value::from(true)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = operator.json(&format!("email list --recipient ann@dest.example --cursor {cursor}")).await;
    assert_eq!((ids(&rest), &rest["has_more"]), (vec![first.as_str()], &Value::from(false)));
    let delivered = operator.json(&format!("email list --account {OWNER} --status delivered")).await;
    assert_eq!(ids(&delivered), [&last, &first]);
    assert_eq!(ids(&operator.json("email list --since 2099-01-01T00:00:00Z").await), Vec::<&str>::new());
    let table = operator.text("email list --recipient bob@other.example").await;
    assert!(table.contains("ann@dest.example and 1 more") && table.contains("the last"), "{table}");

    // `trace` explains a single match and lists several.
    assert_eq!(operator.json("trace --recipient bob@other.example").await["id"], last.as_str());
    assert_eq!(ids(&operator.json("trace --recipient ann@dest.example").await), [&last, &first]);
    let message_id = all["emails"][1]["message_id"].as_str().unwrap();
    assert_eq!(operator.json(&format!("trace --message-id <{message_id}>")).await["id"], late.as_str());
    let sender = all["emails"][1]["from"].as_str().unwrap();
    assert_eq!(ids(&operator.json(&format!("trace --sender {sender}")).await).len(), 3);
    let nobody = operator.run("admin --json trace --recipient nobody@dest.example").await;
    assert!(!nobody.status.success() && String::from_utf8_lossy(&nobody.stdout).contains("not_found"));

    let found = async |words: &str| {
        let shown = operator.json(&format!("queue list {words}")).await;
        let tasks: Vec<String> =
            shown["tasks"].as_array().unwrap().iter().map(|task| task["email"].as_str().unwrap().to_owned()).collect();
        tasks
    };
    assert_eq!(found("--recipient late@dest.example").await, [late.as_str()]);
    assert_eq!(found("--recipient other@dest.example").await, Vec::<String>::new());
    assert_eq!(found(&format!("--sender {sender}")).await, [late.as_str()]);
    assert_eq!(found(&format!("--message-id {message_id}")).await, [late.as_str()]);
    assert_eq!(found("--message-id nothing@like.it").await, Vec::<String>::new());
    assert!(operator.text("queue list").await.contains("late@dest.example"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_list_pages_by_cursor() {
    let world = TestWorld::start_with("paused = true\n").await;
    let operator = Operator::of(&world);
    let mut sent = Vec::new();
    for n in 0..7 {
        let domain = ["dest.example", "other.example", "slow.example"][n % 3];
        sent.push(world.relay(&[&format!("r{n}@{domain}")], "waits").await.to_string());
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let shown = operator.json(&format!("queue list --limit 2{cursor}")).await;
        seen.extend(shown["tasks"].as_array().unwrap().iter().map(|task| task["email"].as_str().unwrap().to_owned()));
        match shown["next_cursor"].as_str() {
            Some(next) => cursor = format!(" --cursor {next}"),
            None => break,
        }
    }
    seen.sort();
    sent.sort();
    assert_eq!(seen, sent, "each once");
    let wrong = operator.run("admin queue list --cursor zz").await;
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("cursor"));
    operator.json("queue drop --all --yes").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_domains_and_secrets_are_listed_and_created() {
    let world = TestWorld::start().await;
    let operator = Operator::of(&world);
    for n in 0..3 {
        operator.json(&format!("account create --email owner{n}@b.example --plan free")).await;
    }
    let accounts = operator.json("account list --limit 3").await;
    let cursor = accounts["next_cursor"].as_str().unwrap();
    assert_eq!(accounts["accounts"][0]["email"], OWNER);
    let rest = operator.json(&format!("account list --cursor {cursor}")).await;
    assert_eq!(rest["accounts"][0]["email"], "owner2@b.example");
    operator.json("domain create b.example --account owner0@b.example").await;
    let domains = operator.json("domain list").await;
    assert_eq!((&domains["domains"][0]["name"], &domains["domains"][1]["name"]), (&DOMAIN.into(), &"b.example".into()));
    let of_one = operator.text("domain list --account owner0@b.example").await;
    assert!(of_one.contains("b.example") && of_one.contains("unverified") && !of_one.contains(DOMAIN), "{of_one}");

    let made = operator.json(&format!("key create --account {OWNER} --name deploy --sending")).await;
    let (id, secret) = (made["api_key"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    assert!(secret.starts_with("rnl_") || secret.starts_with("stx_"), "{made}");
    assert_eq!(made["api_key"]["scope"], "sending");
    let listed = operator.text(&format!("key list --account {OWNER}")).await;
    assert!(listed.contains(id) && !listed.contains(secret), "a secret is shown once: {listed}");
    let rotated = operator.json(&format!("key rotate {id} --account {OWNER}")).await;
    assert_ne!(rotated["secret"].as_str(), Some(secret));
    operator.run(&format!("admin key delete {id} --account {OWNER}")).await;
    assert!(!operator.text(&format!("key list --account {OWNER}")).await.contains(id));
    let made = operator.json(&format!("credential create --account {OWNER} --name printer")).await;
    let password = made["password"].as_str().or(made["secret"].as_str()).unwrap();
    assert!(password.starts_with("stxsmtp_"), "{made}");
    let refused = operator.run(&format!("admin --json key delete key_nothing --account {OWNER}")).await;
    assert!(!refused.status.success(), "{refused:?}");
    let refused = operator.run("admin --json key create").await;
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stdout).contains("several accounts"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_reports_problems() {
    let world = TestWorld::start().await;
    let operator = Operator::of(&world);
    let id = world.relay(&["ann@dest.example"], "one").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let done = operator.run("status --json").await;
    let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(shown["problems"], serde_json::json!([]), "{shown}");
    assert!(done.status.success() && shown["ok"] == true);
    assert_eq!((&shown["last_hour"]["accepted"], &shown["last_hour"]["delivered"]), (&1.into(), &1.into()));
    assert_eq!((&shown["queue"]["recipients"], &shown["dns"]["answers"]), (&0.into(), &true.into()));
    let screen = operator.run("status").await;
    assert!(String::from_utf8_lossy(&screen.stdout).starts_with("status       ok ("), "{screen:?}");

    world.reload("paused = true\n");
    let done = operator.run("status").await;
    let screen = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(!done.status.success() && screen.contains("problem      delivery is paused"), "{screen}");
    world.end().await;
    let gone = operator.run("status --json").await;
    assert!(!gone.status.success() && String::from_utf8_lossy(&gone.stdout).contains("admin.sock"), "{gone:?}");
}
