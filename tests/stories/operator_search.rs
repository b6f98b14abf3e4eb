//! The operator's command line over the admin socket: finding accounts, domains and emails, creating secrets, and the
//! status screen.

use std::path::PathBuf;
use std::process::{Command, Output};

use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::recipient::RecipientState;
use model::user::SignInLinkKind;
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
        let permissions = serve::admin_permissions(&config, &world.server, world.listeners(), None);
        let stop = world.listeners().stop.clone();
        world.listeners().spawn(admin::serve(listener, world.server.clone(), permissions, stop));
        Self(config.data_dir)
    }

    async fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(line.split(' ')).arg("--data-dir").arg(&self.0);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    async fn json(&self, line: &str) -> Value {
        let output = self.run(&format!("admin --json {line}")).await;
        assert!(output.status.success(), "{line}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn text(&self, line: &str) -> String {
        let output = self.run(&format!("admin {line}")).await;
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn ids(result: &Value) -> Vec<&str> {
    result["emails"].as_array().unwrap().iter().map(|email| email["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn emails_are_found_by_recipient_sender_and_message_id() {
    let world = TestWorld::start().await;
    let operator = Operator::of(&world);
    world.sink.script("late@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let first = world.relay(&["ann@dest.example"], "the first").await;
    let deferred_id = world.relay(&["late@dest.example"], "late").await;
    let last = world.relay(&["ann@dest.example", "bob@other.example"], "the last").await;
    world.wait(last, |e| e.recipients.iter().all(|r| r.state == RecipientState::Delivered)).await;
    world.wait(deferred_id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let (first, deferred_id, last) = (first.to_string(), deferred_id.to_string(), last.to_string());

    let all = operator.json("email list").await;
    assert_eq!(ids(&all), [&last, &deferred_id, &first], "newest first: {all}");
    assert_eq!(ids(&operator.json("email list --recipient ANN@dest.example").await), [&last, &first]);
    let page = operator.json("email list --recipient ann@dest.example --limit 1").await;
    assert_eq!((ids(&page), &page["has_more"]), (vec![last.as_str()], &Value::from(true)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let next_page = operator.json(&format!("email list --recipient ann@dest.example --cursor {cursor}")).await;
    assert_eq!((ids(&next_page), &next_page["has_more"]), (vec![first.as_str()], &Value::from(false)));
    let delivered = operator.json(&format!("email list --account {OWNER} --status delivered")).await;
    assert_eq!(ids(&delivered), [&last, &first]);
    assert_eq!(ids(&operator.json("email list --since 2099-01-01T00:00:00Z").await), Vec::<&str>::new());
    let table = operator.text("email list --recipient bob@other.example").await;
    assert!(table.contains("ann@dest.example and 1 more") && table.contains("the last"), "{table}");

    // `trace` explains a single match and lists several.
    assert_eq!(operator.json("trace --recipient bob@other.example").await["id"], last.as_str());
    assert_eq!(ids(&operator.json("trace --recipient ann@dest.example").await), [&last, &first]);
    let message_id = all["emails"][1]["message_id"].as_str().unwrap();
    assert_eq!(operator.json(&format!("trace --message-id <{message_id}>")).await["id"], deferred_id.as_str());
    let sender = all["emails"][1]["from"].as_str().unwrap();
    assert_eq!(ids(&operator.json(&format!("trace --sender {sender}")).await).len(), 3);
    let nobody = operator.run("admin --json trace --recipient nobody@dest.example").await;
    assert!(!nobody.status.success() && String::from_utf8_lossy(&nobody.stdout).contains("not_found"));

    let found = async |words: &str| {
        let result = operator.json(&format!("queue list {words}")).await;
        let tasks: Vec<String> =
            result["tasks"].as_array().unwrap().iter().map(|task| task["email"].as_str().unwrap().to_owned()).collect();
        tasks
    };
    assert_eq!(found("--recipient late@dest.example").await, [deferred_id.as_str()]);
    assert_eq!(found("--recipient other@dest.example").await, Vec::<String>::new());
    assert_eq!(found(&format!("--sender {sender}")).await, [deferred_id.as_str()]);
    assert_eq!(found(&format!("--message-id {message_id}")).await, [deferred_id.as_str()]);
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
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let result = operator.json(&format!("queue list --limit 2{cursor}")).await;
        listed
            .extend(result["tasks"].as_array().unwrap().iter().map(|task| task["email"].as_str().unwrap().to_owned()));
        match result["next_cursor"].as_str() {
            Some(next) => cursor = format!(" --cursor {next}"),
            None => break,
        }
    }
    listed.sort();
    sent.sort();
    assert_eq!(listed, sent, "each once");
    let output = operator.run("admin queue list --cursor zz").await;
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("cursor"));
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
    let next_page = operator.json(&format!("account list --cursor {cursor}")).await;
    assert_eq!(next_page["accounts"][0]["email"], "owner2@b.example");
    operator.json("domain create b.example --account owner0@b.example").await;
    let domains = operator.json("domain list").await;
    assert_eq!((&domains["domains"][0]["name"], &domains["domains"][1]["name"]), (&DOMAIN.into(), &"b.example".into()));
    let table = operator.text("domain list --account owner0@b.example").await;
    assert!(table.contains("b.example") && table.contains("unverified") && !table.contains(DOMAIN), "{table}");

    let created = operator.json(&format!("key create --account {OWNER} --name deploy --sending")).await;
    let (id, secret) = (created["api_key"]["id"].as_str().unwrap(), created["secret"].as_str().unwrap());
    assert!(secret.starts_with("rnl_") || secret.starts_with("stx_"), "{created}");
    assert_eq!(created["api_key"]["scope"], "sending");
    let listed = operator.text(&format!("key list --account {OWNER}")).await;
    assert!(listed.contains(id) && !listed.contains(secret), "a secret is shown once: {listed}");
    let rotated = operator.json(&format!("key rotate {id} --account {OWNER}")).await;
    assert_ne!(rotated["secret"].as_str(), Some(secret));
    operator.run(&format!("admin key delete {id} --account {OWNER}")).await;
    assert!(!operator.text(&format!("key list --account {OWNER}")).await.contains(id));
    let created = operator.json(&format!("credential create --account {OWNER} --name printer")).await;
    let password = created["password"].as_str().or(created["secret"].as_str()).unwrap();
    assert!(password.starts_with("stxsmtp_"), "{created}");
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
    let output = operator.run("status --json").await;
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["problems"], serde_json::json!([]), "{result}");
    assert!(output.status.success() && result["ok"] == true);
    assert_eq!((&result["last_hour"]["accepted"], &result["last_hour"]["delivered"]), (&1.into(), &1.into()));
    assert_eq!((&result["queue"]["recipients"], &result["dns"]["answers"]), (&0.into(), &true.into()));
    let screen = operator.run("status").await;
    assert!(String::from_utf8_lossy(&screen.stdout).starts_with("status       ok ("), "{screen:?}");

    world.reload("paused = true\n");
    let output = operator.run("status").await;
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && screen.contains("problem      delivery is paused"), "{screen}");
    world.end().await;
    let output = operator.run("status --json").await;
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stdout).contains("admin.sock"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_accounts_and_sessions_come_with_a_link_for_a_browser() {
    let world = TestWorld::start().await;
    let operator = Operator::of(&world);
    let created = operator.json("account create --email first@b.example --plan free").await;
    let session = operator.json("session create --account first@b.example").await;
    assert!(session["cookie"].is_string() && session["csrf_token"].is_string(), "{session}");
    let links = [
        (&created["sign_in"]["link"], &created["sign_in"]["expires_at"], SignInLinkKind::SignIn),
        (&session["url"], &session["expires_at"], SignInLinkKind::Operator),
    ];
    for (url, expires_at, kind) in links {
        let (path, token) = url.as_str().unwrap().rsplit_once('/').unwrap();
        assert!(path.ends_with("/auth/link"), "{url}");
        let token = ExpiringSecret::parse(SecretKind::SignInLink, token).unwrap();
        let link = store::sign_in_link::get(&world.server.store, &token).await.unwrap().unwrap();
        assert_eq!(link.kind, kind);
        let shown: jiff::Timestamp = expires_at.as_str().unwrap().parse().unwrap();
        assert!(shown.duration_since(link.expires_at).abs() < jiff::SignedDuration::from_secs(60), "{expires_at}");
    }
    let text = operator.text("session create --account first@b.example").await;
    assert!(text.contains("/auth/link/"), "{text}");
    world.end().await;
}
