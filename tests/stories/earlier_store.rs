//! Compatibility: a store written by an earlier release opens and works.
//!
//! `tests/earlier/store-1.json.gz` holds the files of a data directory and the ids of its objects. It was written with
//! the clock at [`WRITTEN_AT`] and is opened with a slightly later clock, so that nothing in it ever expires.
//! [`a_store_is_written`] wrote it. The stores of releases are beside it; `tests/earlier/store.py` writes and reads them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use model::recipient::RecipientState;
use net::clock::Clock;
use postrider::config::Config;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::sink::Behaviour;
use crate::world::submit::dialog;
use crate::world::{DOMAIN, TestWorld};

/// The time at which the store was written.
const WRITTEN_AT: &str = "2036-01-01T00:00:00Z";

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/earlier/store-1.json.gz")
}

/// A data directory in one JSON value.
#[derive(Serialize, Deserialize)]
struct Written {
    /// Ids of the objects in the store, by name.
    made: BTreeMap<String, String>,
    files: BTreeMap<String, WrittenFile>,
}

#[derive(Serialize, Deserialize)]
struct WrittenFile {
    size_bytes: u64,
    /// Base64, without trailing zeros.
    content: String,
}

fn at(offset: Duration) -> impl FnOnce(&mut Config) {
    let written: Timestamp = WRITTEN_AT.parse().unwrap();
    let ahead = Duration::try_from(written.duration_since(Clock::default().now())).unwrap() + offset;
    move |config| config.testing.clock_offset = Some(ahead)
}

async fn call_api(world: &TestWorld, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, response) = world.call(method, path, &body).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {response}");
    response
}

fn email_id(response: &Value) -> String {
    response["id"].as_str().unwrap().to_owned()
}

fn email(to: &str, extra: Value) -> Value {
    let mut body = json!({"from": "Ada <ada@acme.example>", "to": to, "subject": "Kept", "text": "for ever"});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

/// Creates one object of each kind. Returns their ids by name.
async fn fill(world: &TestWorld) -> BTreeMap<String, String> {
    let mut created = BTreeMap::new();
    let webhook = json!({"url": "https://hooks.example/", "events": ["email.delivered"]});
    created.insert(
        "webhook",
        call_api(world, "POST", "/webhooks", webhook).await["webhook"]["id"].as_str().unwrap().to_owned(),
    );
    let template = json!({"name": "Welcome", "alias": "welcome", "subject": "Hello {{name}}", "text": "Dear {{name}}"});
    let template = call_api(world, "POST", "/templates", template).await["template"]["id"].as_str().unwrap().to_owned();
    call_api(world, "POST", &format!("/templates/{template}/publish"), Value::Null).await;
    created.insert("template", template);
    let automation = json!({
        "name": "A", "trigger": {"event": "signed_up"},
        "steps": [{"type": "delay", "duration": "1h"}, {"type": "send_email", "template": "welcome", "variables": {"name": "U"}, "from": "ada@acme.example"}],
    });
    let automation =
        call_api(world, "POST", "/automations", automation).await["automation"]["id"].as_str().unwrap().to_owned();
    call_api(world, "POST", &format!("/automations/{automation}"), json!({"action": "activate"})).await;
    created.insert("automation", automation);
    call_api(world, "POST", "/events", json!({"name": "signed_up", "user_id": "7", "email": "u7@dest.example"})).await;
    call_api(world, "POST", "/suppressions", json!({"email": "gone@dest.example"})).await;
    call_api(world, "PATCH", &format!("/domains/{DOMAIN}"), json!({"inbound_enabled": true})).await;
    let message = "From: <bob@far.example>\r\nSubject: hi\r\n\r\nGood day\r\n.";
    let lines = ["EHLO far.example", "MAIL FROM:<bob@far.example>", "RCPT TO:<info@acme.example>", "DATA", message];
    assert!(dialog(world.mx, &lines).await.pop().unwrap().starts_with("250 "));
    let tags = json!({"tags": [{"name": "kind", "value": "first"}]});
    let delivered = email_id(&call_api(world, "POST", "/emails", email("one@dest.example", tags)).await);
    world.wait(delivered.parse().unwrap(), |e| e.recipients[0].state == RecipientState::Delivered).await;
    created.insert("delivered", delivered);
    world.sink.script("later@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let deferred = email_id(&call_api(world, "POST", "/emails", email("later@dest.example", json!({}))).await);
    world.wait(deferred.parse().unwrap(), |e| e.recipients[0].state == RecipientState::Deferred).await;
    created.insert("deferred", deferred);
    let in_two_hours = (world.server.clock.now() + Duration::from_secs(7_200)).to_string();
    let scheduled = json!({"scheduled_at": in_two_hours});
    created.insert(
        "scheduled",
        email_id(&call_api(world, "POST", "/emails", email("soon@dest.example", scheduled)).await),
    );
    created.into_iter().map(|(name, id)| (name.to_owned(), id)).collect()
}

fn collect_files(root: &Path, directory: &Path, found: &mut BTreeMap<String, WrittenFile>) {
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            collect_files(root, &path, found);
        } else if path.is_file() && !name.ends_with("reserve") {
            let content = std::fs::read(&path).unwrap();
            let end = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let size_bytes = content.len() as u64;
            found.insert(name, WrittenFile { size_bytes, content: STANDARD.encode(&content[..end]) });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes the store that the other test reads; a file that exists is not written again"]
async fn a_store_is_written() {
    assert!(!file().exists());
    let directory = tempfile::tempdir().unwrap();
    let store_directory = directory.path().to_owned();
    let world = TestWorld::start_in_directory(directory, at(Duration::ZERO)).await;
    let created = fill(&world).await;
    let directory = world.close().await;
    let mut files = BTreeMap::new();
    collect_files(&store_directory, &store_directory, &mut files);
    drop(directory);
    let text = serde_json::to_vec(&Written { made: created, files }).unwrap();
    let mut out = flate2::write::GzEncoder::new(std::fs::File::create(file()).unwrap(), flate2::Compression::best());
    out.write_all(&text).unwrap();
    out.finish().unwrap();
}

fn unpack(directory: &Path) -> BTreeMap<String, String> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file()).unwrap()).read_to_end(&mut text).unwrap();
    let written: Written = serde_json::from_slice(&text).unwrap();
    for (name, written) in written.files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, STANDARD.decode(written.content).unwrap()).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(written.size_bytes).unwrap();
    }
    written.made
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_an_earlier_release_opens_and_works() {
    let directory = tempfile::tempdir().unwrap();
    let created = unpack(directory.path());
    let world = TestWorld::start_in_directory(directory, at(Duration::from_secs(600))).await;
    let get = async |path: String| call_api(&world, "GET", &path, Value::Null).await;

    // The delivered email has its body and tags, and is found by a tag.
    let email = get(format!("/emails/{}", created["delivered"])).await;
    assert_eq!(
        (&email["email"]["status"], &email["email"]["text"]),
        (&json!("delivered"), &json!("for ever")),
        "{email}"
    );
    let found = get("/emails?tag=kind:first".to_owned()).await;
    assert_eq!(found["emails"][0]["id"], json!(created["delivered"]), "{found}");
    let received = get("/received-emails".to_owned()).await;
    assert_eq!(received["received_emails"][0]["from"], json!("bob@far.example"), "{received}");
    let webhook = get(format!("/webhooks/{}", created["webhook"])).await;
    assert_eq!(webhook["webhook"]["url"], json!("https://hooks.example/"), "{webhook}");
    let suppressed = get("/suppressions".to_owned()).await;
    assert_eq!(suppressed["suppressions"][0]["email"], json!("gone@dest.example"), "{suppressed}");
    let welcome = json!({"from": "ada@acme.example", "to": "two@dest.example", "template": "welcome", "variables": {"name": "Zo\u{eb}"}});
    let sent = email_id(&call_api(&world, "POST", "/emails", welcome).await);
    world.wait(sent.parse().unwrap(), |e| e.recipients[0].state == RecipientState::Delivered).await;

    // Pending work continues: the retry, the automation's delay, the scheduled email.
    world.server.clock.advance(Duration::from_secs(3 * 3_600));
    for name in ["deferred", "scheduled"] {
        world.wait(created[name].parse().unwrap(), |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    world
        .wait_for_emails(|emails| {
            emails.iter().any(|e| {
                e.recipients[0].address.to_string() == "u7@dest.example"
                    && e.recipients[0].state == RecipientState::Delivered
            })
        })
        .await;
    let automation = get(format!("/automations/{}", created["automation"])).await;
    assert_eq!(automation["automation"]["status"], json!("active"), "{automation}");
    world.end().await;
}
