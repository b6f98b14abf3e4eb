//! The operator's console on the `[ops]` listener: sign-in, sessions, hosts, CSRF, and changes through the pages.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use metrics_exporter_prometheus::PrometheusBuilder;
use model::recipient::RecipientState;
use pages::console::table::pages;
use pages::dashboard::table::PageAccess;
use postrider::config::Config;
use postrider::{admin, serve};
use queue::admin::queue_admin::WaitCause;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::sink::Behaviour;
use crate::world::{PATIENCE, TestWorld};

const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}fdp.exe";

/// The console of a server.
struct Console {
    address: SocketAddr,
    data_dir: PathBuf,
}

impl Console {
    async fn start(world: &TestWorld, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = world.config();
        config.ops.listen = vec!["127.0.0.1:0".parse().unwrap()];
        change(&mut config);
        let (server, listeners) = (&world.server, world.listeners());
        let permissions = serve::admin_permissions(&config, server, listeners, None);
        let recorder = PrometheusBuilder::new().build_recorder().handle();
        let opened = serve::open_ops_listeners(&config, server, listeners, &permissions, &recorder).await.unwrap();
        let socket = admin::bind(&config.data_dir).unwrap();
        listeners.spawn(admin::serve(socket, server.clone(), permissions, listeners.stop.clone()));
        Self { address: opened[0], data_dir: config.data_dir }
    }

    /// Runs `postrider admin` on this server.
    async fn admin(&self, line: &str) -> Result<Value, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["admin", "--json"]).args(line.split(' ')).arg("--data-dir").arg(&self.data_dir);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        if output.status.success() { Ok(value) } else { Err(value["error"]["message"].to_string()) }
    }

    /// The path of a new sign-in link.
    async fn link(&self) -> String {
        let link = self.admin("console").await.unwrap();
        let prefix = format!("http://{}", self.address);
        link["url"].as_str().unwrap().strip_prefix(&prefix).unwrap().to_owned()
    }

    fn signed_out(&self) -> Browser {
        Browser { address: self.address, host: self.address.to_string(), cookie: String::new(), headers: String::new() }
    }

    async fn sign_in(&self) -> Browser {
        let link = self.link().await;
        let answer = self.signed_out().send("POST", &link, "form=sign-in").await;
        assert_eq!((answer.status, answer.header("location")), (303, "/console"), "{answer:?}");
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        Browser { cookie, ..self.signed_out() }
    }
}

/// A browser without JavaScript.
#[derive(Clone)]
struct Browser {
    address: SocketAddr,
    host: String,
    cookie: String,
    /// Further header lines.
    headers: String,
}

#[derive(Debug)]
struct PageResponse {
    status: u16,
    head: String,
    body: String,
}

impl PageResponse {
    fn header(&self, name: &str) -> &str {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default()
    }

    /// The token of the page's forms.
    fn csrf(&self) -> &str {
        self.field("csrf")
    }

    /// The value of the page's first field with this name.
    fn field(&self, name: &str) -> &str {
        let (_, rest) = self.body.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap()
    }
}

impl Browser {
    async fn send(&self, method: &str, path: &str, body: &str) -> PageResponse {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nConnection: close\r\n{}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            self.cookie,
            self.headers,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        PageResponse { status, head: head.replace("\r\n", "\n"), body: body.to_owned() }
    }

    async fn get(&self, path: &str) -> PageResponse {
        self.send("GET", path, "").await
    }

    /// Sends a form with the token of the session.
    async fn post(&self, path: &str, fields: &str) -> PageResponse {
        let csrf = self.get("/console").await.csrf().to_owned();
        self.send("POST", path, &format!("csrf={csrf}&{fields}")).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_until_the_session_ends() {
    let world = TestWorld::start().await;
    let console = Console::start(&world, |_| {}).await;
    let signed_out = console.signed_out();
    for row in pages().filter(|row| row.access == PageAccess::SignedIn) {
        let path = format!("/console{}", row.path.replace(['{', '}'], ""));
        for method in ["GET", "POST"] {
            let answer = signed_out.send(method, &path, "").await;
            assert_eq!((answer.status, answer.header("location")), (303, "/console/sign-in"), "{method} {path}");
        }
    }
    let link = console.link().await;
    let shown = signed_out.get(&link).await;
    assert!(shown.status == 200 && shown.header("set-cookie").is_empty(), "looking at a link does not use it");
    assert!(shown.header("content-security-policy").contains("script-src 'self'"), "{shown:?}");
    assert!(shown.header("cache-control") == "no-store" && shown.header("x-content-type-options") == "nosniff");
    let answer = signed_out.send("POST", &link, "form=sign-in").await;
    let cookie = answer.header("set-cookie");
    assert!(cookie.ends_with("; Path=/console; HttpOnly; SameSite=Strict"), "{cookie}");
    let used = signed_out.send("POST", &link, "form=sign-in").await;
    assert!(used.status == 403 && used.body.contains("has already been used"), "{used:?}");
    let browser = Browser { cookie: cookie.split(';').next().unwrap().to_owned(), ..signed_out.clone() };
    assert_eq!(browser.get("/console").await.status, 200);
    assert_eq!(browser.send("POST", "/console/sign-in", "form=sign-out&csrf=forged").await.status, 403);
    assert_eq!(browser.get("/console").await.status, 200, "a forged form does not sign out");
    let left = browser.post("/console/sign-in", "form=sign-out").await;
    assert!(left.header("set-cookie").starts_with("postrider_console=; Max-Age=0;"), "{left:?}");
    assert_eq!(browser.get("/console").await.header("location"), "/console/sign-in");

    let idle = console.sign_in().await;
    world.server.clock.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(idle.get("/console").await.header("location"), "/console/sign-in");
    for _ in 0..10 {
        let refused = signed_out.send("POST", "/console/sign-in/wrong", "form=sign-in").await.status;
        assert!([403, 429].contains(&refused));
    }
    assert_eq!(signed_out.send("POST", "/console/sign-in/wrong", "form=sign-in").await.status, 429);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sites_cannot_use_the_console() {
    let world = TestWorld::start().await;
    let console = Console::start(&world, |_| {}).await;
    let browser = console.sign_in().await;
    // A name that somebody pointed at this address.
    for host in ["evil.example", "evil.example:9025", "127.0.0.1.evil.example", "192.0.2.1", "user@127.0.0.1"] {
        for path in ["/console", "/console/sign-in", "/console/queue"] {
            let answer = Browser { host: host.to_owned(), ..browser.clone() }.get(path).await;
            assert!([400, 421].contains(&answer.status) && !answer.body.contains("<html"), "{host}: {answer:?}");
        }
    }
    for host in ["localhost", "[::1]:9025", "127.0.0.1"] {
        assert_eq!(Browser { host: host.to_owned(), ..browser.clone() }.get("/console").await.status, 200, "{host}");
    }
    // A form of another site, even with the token.
    for headers in
        ["Sec-Fetch-Site: cross-site\r\n", "Origin: https://evil.example\r\n", "Sec-Fetch-Site: same-site\r\n"]
    {
        let foreign = Browser { headers: headers.to_owned(), ..browser.clone() };
        assert_eq!(foreign.post("/console/mail/hold", "form=apply").await.status, 403, "{headers}");
    }
    let forged = browser.send("POST", "/console/mail/hold", "form=apply&csrf=forged").await;
    assert!(forged.status == 403 && forged.body.contains("older than your session"), "{forged:?}");
    let unused = browser.get("/console/commands").await;
    assert!(unused.body.contains("No commands yet"), "{unused:?}");
    for (path, status) in [("/metrics", 200), ("/healthz", 200), ("/", 404), ("/consoles", 404)] {
        assert_eq!(browser.get(path).await.status, status, "{path}");
    }
    assert_eq!(browser.send("DELETE", "/console", "").await.status, 405);
    assert_eq!(browser.send("POST", "/console/mail/hold", &"x".repeat(70_000)).await.status, 413);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_than_loopback_needs_a_url() {
    let world = TestWorld::start().await;
    let anywhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let console = Console::start(&world, |config| config.ops.listen = vec![anywhere]).await;
    let address = SocketAddr::from(([127, 0, 0, 1], console.address.port()));
    let browser = Browser { address, host: "localhost".into(), ..console.signed_out() };
    assert_eq!(browser.get("/console/sign-in").await.status, 404);
    assert_eq!(browser.get("/healthz").await.status, 200);
    let refused = console.admin("console").await.unwrap_err();
    assert!(refused.contains("console_url"), "{refused}");
    world.close().await;

    let world = TestWorld::start().await;
    let console = Console::start(&world, |config| {
        config.ops.listen = vec![anywhere];
        config.ops.console_url = Some("https://ops.example.net/".to_owned());
    })
    .await;
    let link = console.admin("console").await.unwrap();
    let path = link["url"].as_str().unwrap().strip_prefix("https://ops.example.net").unwrap().to_owned();
    let address = SocketAddr::from(([127, 0, 0, 1], console.address.port()));
    let browser = Browser { address, host: "ops.example.net".into(), ..console.signed_out() };
    let proxied = Browser { headers: "Origin: https://ops.example.net\r\n".into(), ..browser.clone() };
    let signed_in = proxied.send("POST", &path, "form=sign-in").await;
    assert!(signed_in.header("set-cookie").ends_with("SameSite=Strict; Secure"), "{signed_in:?}");
    assert_eq!(Browser { host: "evil.example".into(), ..browser }.get("/console").await.status, 421);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_do_what_the_commands_do() {
    let world = TestWorld::start().await;
    let console = Console::start(&world, |_| {}).await;
    world.sink.script("grey@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted <script>alert(1)</script>")]);
    let id = world.relay(&["grey@dest.example"], HOSTILE).await;
    world.wait(id, |email| email.recipients[0].state == RecipientState::Deferred).await;
    let browser = console.sign_in().await;
    let top = browser.get("/console/queue").await;
    assert!(top.body.contains("dest.example") && top.body.contains("Next attempt"), "{top:?}");
    for path in ["/console", "/console/queue", "/console/mail", "/console/emails", &format!("/console/emails/{id}")] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("<script>alert") && !page.body.contains('\u{202e}'), "{path}");
    }
    let question = browser.get("/console/mail/hold?to=dest.example").await;
    assert!(question.body.contains("1 recipient") && question.body.contains("grey@dest.example"), "{question:?}");
    assert!(question.body.contains("postrider admin queue hold --to dest.example"), "{question:?}");
    // It arrives between the look and the click.
    world.sink.script("later@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let later = world.relay(&["later@dest.example"], "after the page").await;
    let old_form = browser.post("/console/mail/hold?to=dest.example", "form=apply").await;
    assert!(old_form.status == 400 && old_form.body.contains("reload the page"), "{old_form:?}");
    let fields = format!("form=apply&shown_at={}", question.field("shown_at"));
    let begun = browser.post("/console/mail/hold?to=dest.example", &fields).await;
    assert_eq!((begun.status, begun.header("location")), (303, "/console/commands/1"), "{begun:?}");
    let cause = async || world.server.queue.delivery.admin.trace_email(id).await.unwrap().waits[0].cause.clone();
    let held = async {
        while cause().await != WaitCause::Held {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.unwrap();
    let done = async {
        while !browser.get("/console/commands/1").await.body.contains("1 recipient was changed") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, done).await.unwrap();
    world.wait(later, |email| email.recipients[0].state == RecipientState::Deferred).await;
    let waits = world.server.queue.delivery.admin.trace_email(later).await.unwrap().waits;
    assert_ne!(waits[0].cause, WaitCause::Held, "it was not on the page");
    let destination = browser.get("/console/queue/dest.example").await;
    assert!(destination.status == 200 && destination.body.contains("Queue depth"), "{destination:?}");
    assert_eq!(browser.get("/console/queue/not%20a%20domain").await.status, 404);
    let retried = browser.post(&format!("/console/emails/{id}"), "form=retry").await;
    assert!(retried.header("location").ends_with("?done=retried"), "{retried:?}");
    world.wait(id, |email| email.recipients[0].state == RecipientState::Delivered).await;

    let suspended =
        browser.post("/console/destinations/suspend", "form=suspend&to=other.example&because=They+asked").await;
    assert_eq!(suspended.header("location"), "/console/destinations?done=suspended", "{suspended:?}");
    let listed = console.admin("destination list").await.unwrap();
    assert_eq!(listed["destinations"][0]["suspended"]["because"], "They asked");
    let refused = browser.post("/console/destinations/suspend", "form=suspend&to=not+a+domain").await;
    assert!(refused.status == 400 && refused.body.contains("This is not a domain name"), "{refused:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_managed() {
    let world = TestWorld::start().await;
    let console = Console::start(&world, |_| {}).await;
    let browser = console.sign_in().await;
    let created = browser.post("/console/accounts/new", "form=create&email=new%40example.net&plan=free").await;
    assert!(created.status == 200 && created.body.contains("/auth/link/"), "{created:?}");
    let account = console.admin("account show new@example.net").await.unwrap();
    let id = account["account"]["id"].as_str().unwrap().to_owned();
    let path = format!("/console/accounts/{id}");
    assert!(browser.get(&path).await.body.contains("new@example.net"));
    for (page, form) in [
        ("", "form=plan&plan=scale"),
        ("", "form=production&production=on"),
        ("/suspension", "form=suspension&suspended=on"),
    ] {
        let changed = browser.post(&format!("{path}{page}"), form).await;
        assert_eq!(changed.status, 303, "{changed:?}");
    }
    let account = console.admin(&format!("account show {id}")).await.unwrap();
    let account = &account["account"];
    assert_eq!(
        (&account["plan"], &account["production"], &account["suspended"]),
        (&"scale".into(), &true.into(), &true.into())
    );
    let session = browser.post(&path, "form=session").await;
    assert!(session.status == 200 && session.body.contains("__Host-postrider_session="), "{session:?}");
    let reset = browser.post(&format!("{path}/reset"), "form=reset&email=new%40example.net").await;
    assert!(reset.status == 200 && reset.body.contains("has been reset"), "{reset:?}");
    let unknown = browser.post("/console/accounts", "form=find&account=nobody%40example.net").await;
    assert!(unknown.status == 400 && unknown.body.contains("does not exist"), "{unknown:?}");
    for unknown in ["accounts/acct_x", "emails/msg_01KDXJ2Y0Q4ZB6R8T3W5V7X9ZA"] {
        assert_eq!(browser.get(&format!("/console/{unknown}")).await.status, 404, "{unknown}");
    }
    world.close().await;
}
