//! Logging: accepted mail, the result of each attempt with its reason, and failed authentication.

use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, OnceLock};

use model::recipient::RecipientState;
use postrider::config::log::{LogFormat, filter};
use postrider::reload::{ConfigReloader, ReloadTargets};
use postrider::store_references::relay_account_missing;
use serde_json::Value;

use crate::world::TestWorld;
use crate::world::sink::{Behaviour, Sink};

#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Captures everything that the process logs from now on, as JSON.
    pub(crate) fn start() -> Self {
        static LINES: OnceLock<Lines> = OnceLock::new();
        let lines = LINES.get_or_init(|| {
            let lines = Lines::default();
            let writer = lines.clone();
            let subscriber =
                postrider::log::subscriber(LogFormat::Json, filter("info").unwrap(), false, move || writer.clone());
            tracing::subscriber::set_global_default(subscriber).unwrap();
            lines
        });
        lines.clone()
    }

    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// Lines whose field has this value.
    fn with(&self, field: &str, value: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line[field] == value).collect()
    }

    /// Waits until there are `count` such lines.
    pub(crate) async fn wait_for(&self, field: &str, value: &str, count: usize) -> Vec<Value> {
        let waiting = async {
            loop {
                let lines = self.with(field, value);
                if lines.len() >= count {
                    return lines;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::world::PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| panic!("{field}={value}: {:#?}", self.with(field, value)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_finished_attempt_logs_one_line_with_its_reason() {
    let lines = Lines::start();
    let world = TestWorld::start().await;
    let id = world.relay(&["one@dest.example"], "good").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let [accepted, delivered] = &lines.wait_for("email.id", &id.to_string(), 2).await[..] else { panic!() };
    assert_eq!((&accepted["message"], &accepted["source"]), (&"accepted".into(), &"relay".into()));
    assert_eq!((&accepted["recipients"], &accepted["level"]), (&1.into(), &"INFO".into()));
    assert_eq!(accepted["account.id"], world.account.to_string());
    assert!(accepted["bytes"].as_u64().unwrap() > 0);
    assert_eq!((&delivered["message"], &delivered["domain"]), (&"delivered".into(), &"dest.example".into()));
    assert_eq!((&delivered["host"], &delivered["ip"]), (&"mx.dest.example".into(), &"127.0.0.1".into()));
    assert_eq!((&delivered["code"], &delivered["attempt"]), (&250.into(), &1.into()));
    assert!(delivered["next_attempt_at"].is_null() && delivered["to"].is_null());

    // The text of a reply can neither inject a log line nor reveal an address.
    let reply = "451 4.7.1 <one@dest.example> is\u{1b}[2J greylisted\u{b}x";
    world.sink.script("one@dest.example", &[Behaviour::AtRcpt(reply)]);
    let id = world.relay(&["one@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let lines_of = lines.wait_for("email.id", &id.to_string(), 2).await;
    let deferred = &lines_of[1];
    assert_eq!((&deferred["message"], &deferred["code"]), (&"deferred".into(), &451.into()));
    assert_eq!(deferred["enhanced"], "4.7.1");
    let text = deferred["text"].as_str().unwrap();
    assert!(text.starts_with("<***@dest.example> is") && !text.contains(char::is_control), "{text:?}");
    assert!(deferred["next_attempt_at"].is_string());

    // A local error has no reply code.
    let id = world.relay(&["one@null.example"], "nowhere").await;
    world.wait(id, |e| e.recipients[0].state.is_terminal()).await;
    let lines_of = lines.wait_for("email.id", &id.to_string(), 2).await;
    assert!(lines_of[1]["error"].is_string() && lines_of[1]["code"].is_null(), "{lines_of:#?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_warns_of_relay_accounts_that_do_not_exist() {
    let lines = Lines::start();
    let world = TestWorld::start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("postrider.toml");
    let text = |account: &str| {
        format!(
            "hostname = \"out.postrider.example\"\ndata_dir = {:?}\n[api]\nlisten = \"127.0.0.1:0\"\n\
             [[relay]]\nlisten = \"127.0.0.1:0\"\nnetworks = [\"127.0.0.0/8\"]\naccount = \"{account}\"\n",
            directory.path()
        )
    };
    let running = postrider::config::from_text(&text("ada@acme.example"), []).unwrap();
    std::fs::write(&file, text("nobody@x.test")).unwrap();
    let targets = ReloadTargets { server: &world.server, listeners: world.listeners(), certificates: None };
    ConfigReloader::new(file, running).reload(&targets);
    let warning = relay_account_missing("***@x.test");
    assert_eq!(lines.wait_for("message", &warning, 1).await[0]["level"], "WARN");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_authentication_is_logged_with_the_client_address() {
    let lines = Lines::start();
    let mut world = TestWorld::start().await;
    for _ in 0..50 {
        world.api_key = model::credential::CredentialSecret::new("rnl_", [b'x'; 32]);
        assert_eq!(world.call("GET", "/account", "").await.0, 401);
    }
    let refused = lines.wait_for("by", "api_key", 1).await;
    assert!(refused.len() <= 10, "{} lines", refused.len());
    assert_eq!((&refused[0]["level"], &refused[0]["reason"]), (&"WARN".into(), &"unknown".into()));
    assert_eq!(refused[0]["ip"], "127.0.0.1");

    let sign_in = r#"{"email":"owner@acme.example","password":"not the right one"}"#;
    assert_eq!(world.call("POST", "/auth/sign-in", sign_in).await.0, 401);
    let refused = lines.wait_for("by", "password", 1).await;
    assert_eq!((&refused[0]["ip"], &refused[0]["user"]), (&"127.0.0.1".into(), &"***@acme.example".into()));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_dns_servers_are_logged_once() {
    let lines = Lines::start();
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let settings = dns::resolver::ResolverSettings {
        servers: vec![silent.local_addr().unwrap()],
        try_timeout: std::time::Duration::from_millis(1),
        retries: 0,
        deadline: std::time::Duration::from_millis(20),
        ..dns::resolver::ResolverSettings::default()
    };
    let resolver = dns::resolver::Resolver::new(&settings).unwrap();
    for n in 0..6 {
        assert!(resolver.txt(&format!("silent{n}.example").parse().unwrap()).await.is_err());
    }
    let warnings: Vec<Value> = lines
        .with("message", "the DNS servers are not responding")
        .into_iter()
        .filter(|line| line["name"].as_str().is_some_and(|name| name.starts_with("silent")))
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert_eq!((&warnings[0]["level"], &warnings[0]["unanswered"]), (&"WARN".into(), &3.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smarthost_without_the_required_tls_is_not_logged_as_silent() {
    let lines = Lines::start();
    let host = Sink::start().await;
    let smarthost = format!(
        "[[delivery.smarthosts]]\nname = \"cleartext\"\nhosts = \"{}\"\ndomains = [\"dest.example\"]\n\
         tls = \"required\"\n",
        host.address
    );
    let world = TestWorld::start_with(&smarthost).await;
    let id = world.relay(&["a@dest.example"], "not in the clear").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let warnings = lines.wait_for("smarthost", "cleartext", 1).await;
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    let message = "the smarthost responds, but cannot be used";
    assert_eq!((&warnings[0]["message"], &warnings[0]["level"]), (&message.into(), &"WARN".into()));
    assert!(warnings[0]["error"].as_str().unwrap().contains("TLS"), "{warnings:#?}");
    world.end().await;
}
