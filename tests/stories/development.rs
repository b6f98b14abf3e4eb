//! `postrider dev`: its API key and inbox survive a restart, it accepts mail without a login, shows it in a browser,
//! and has simulator recipients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Timeout for a response.
const PATIENCE: Duration = Duration::from_secs(30);
const PROGRAM: &str = env!("CARGO_BIN_EXE_postrider");

struct Dev {
    child: Child,
    ready: Value,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(data_home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    let any = "127.0.0.1:0";
    command.args(["dev", "--json", "--submission", any, "--mx", any]).args(arguments);
    command.env("XDG_DATA_HOME", data_home).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Dev {
    fn start(data_home: &Path, arguments: &[&str]) -> Self {
        let mut child =
            command(data_home, arguments).args(["--api", "127.0.0.1:0"]).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON line: {line:?}"));
        Self { child, ready }
    }

    fn at(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap().trim_start_matches("http://").split('/').next().unwrap()
    }

    /// Sends a request to the API port. Returns the status, the header and the body of the response.
    fn request(&self, request: &str, fields: &str, body: &str) -> (u16, String, String) {
        let host = self.at("api");
        let host = if fields.contains("Host:") { String::new() } else { format!("Host: {host}\r\n") };
        let mut stream = TcpStream::connect(self.at("api")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\n{host}Connection: close\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    fn inbox(&self, path: &str) -> Value {
        let (status, _, body) = self.request(&format!("GET /inbox{path}"), "", "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn api(&self, request: &str, body: &Value) -> Value {
        let key = self.ready["api_key"].as_str().unwrap();
        let fields = format!("Authorization: Bearer {key}\r\nContent-Type: application/json\r\n");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, body) = self.request(request, &fields, &body);
        assert!(status < 300, "{request}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn send(&self, to: &str) -> String {
        let email = json!({"from": "ada@example.com", "to": to, "subject": "First light", "text": "It works"});
        self.api("POST /emails", &email)["id"].as_str().unwrap().to_owned()
    }

    /// Waits for an event of this kind about an email.
    fn event(&self, id: &str, kind: &str) -> Value {
        let found = self.wait_until(|| {
            let events = self.api(&format!("GET /emails/{id}/events"), &Value::Null);
            let events = events["events"].as_array().cloned().unwrap_or_default();
            events.into_iter().find(|event| event["type"] == kind)
        });
        found.unwrap_or_else(|| panic!("no {kind}: {}", self.api(&format!("GET /emails/{id}"), &Value::Null)))
    }

    /// Polls until there is a result, up to the timeout.
    fn wait_until<T>(&self, read_state: impl Fn() -> Option<T>) -> Option<T> {
        let (sender, done) = std::sync::mpsc::channel::<()>();
        let mut waited = Duration::ZERO;
        let pause = Duration::from_millis(25);
        while waited < PATIENCE {
            if let Some(found) = read_state() {
                drop(sender);
                return Some(found);
            }
            let _ = done.recv_timeout(pause);
            waited += pause;
        }
        None
    }
}

/// Sends lines to an SMTP server. Returns the last line of each reply.
fn dialog(address: &str, lines: &[&str]) -> Vec<String> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut reply = move || loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.as_bytes().get(3) != Some(&b'-') {
            return line.trim_end().to_owned();
        }
    };
    let mut replies = vec![reply()];
    for line in lines {
        (&stream).write_all(format!("{line}\r\n").as_bytes()).unwrap();
        replies.push(reply());
    }
    replies
}

#[test]
fn the_key_and_the_inbox_survive_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let first = Dev::start(home.path(), &[]);
    let secrets = |dev: &Dev| (dev.ready["api_key"].clone(), dev.ready["smtp_password"].clone());
    let first_secrets = secrets(&first);
    assert!(home.path().join("postrider/dev/store").exists());
    first.send("you@example.net");
    let arrived = first.wait_until(|| Some(first.inbox("/messages")).filter(|inbox| inbox["total"] == 1)).unwrap();
    let message = &arrived["messages"][0];
    assert_eq!(message["dkim"][0]["result"], "pass", "{message}");
    assert_eq!((&message["source"], &message["preview"]), (&json!("delivered"), &json!("It works")));
    drop(first);

    let second = Dev::start(home.path(), &[]);
    assert_eq!(secrets(&second), first_secrets);
    assert_eq!(second.inbox("/messages")["messages"][0], *message);
    second.send("you@example.net");
    drop(second);

    let cleared = Dev::start(home.path(), &["--fresh"]);
    assert_ne!(secrets(&cleared), first_secrets);
    assert_eq!(cleared.inbox("/messages")["total"], 0);
}

#[test]
fn mail_without_a_login_is_stored_in_the_inbox() {
    let home = tempfile::tempdir().unwrap();
    let dev = Dev::start(home.path(), &[]);
    let replies = dialog(
        dev.at("mx"),
        &[
            "EHLO app.local",
            "MAIL FROM:<app@shop.example>",
            "RCPT TO:<anybody@nowhere.example>",
            "RCPT TO:<else@nowhere.example>",
            "RCPT TO:<bounced@simulator.postrider.test>",
            "DATA",
            "From: app@shop.example\r\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n\
             <html><head><title>x</title></head><script>1</script><p>Code 4711</p></html>\r\n--b\r\n\
             Content-Type: text/csv; name=\"a b.csv\"\r\nContent-Disposition: attachment; filename=\"a b.csv\"\r\n\r\n\
             a,b\r\n--b--\r\n.",
        ],
    );
    let codes: Vec<&str> = replies.iter().map(|line| &line[..3]).collect();
    assert_eq!(codes, ["220", "250", "250", "250", "250", "550", "354", "250"], "{replies:#?}");
    assert!(!replies[1].contains("STARTTLS"), "{replies:#?}");
    let found = dev.inbox("/messages?search=4711%20nobody");
    assert_eq!(found["messages"], json!([]));
    let found = dev.inbox("/messages?search=4711%20gr%C3%BC%C3%9Fe");
    let message = &found["messages"][0];
    assert_eq!((&message["subject"], &message["source"]), (&json!("Grüße"), &json!("handed_in")));
    assert_eq!(message["to"], json!(["anybody@nowhere.example", "else@nowhere.example"]));
    let message = dev.inbox("/messages/1");
    assert_eq!((&message["has_html"], &message["attachments"][0]["filename"]), (&json!(true), &json!("a b.csv")));
    let (_, head, html) = dev.request("GET /inbox/messages/1/html", "", "");
    assert!(head.contains("content-security-policy: sandbox ") && html.contains("<base target=\"_blank\"><title>"));
    let (_, head, file) = dev.request("GET /inbox/messages/1/attachments/0", "", "");
    assert!(head.contains("attachment; filename*=utf-8''a%20b.csv") && file.starts_with("a,b"), "{head}");
    // An unchanged version returns no messages.
    let version = found["version"].as_str().unwrap();
    assert_eq!(dev.inbox(&format!("/messages?since={version}")), json!({"version": version}));
    let (status, ..) = dev.request("DELETE /inbox/messages/1", "", "");
    assert_eq!((status, &dev.inbox("/messages")["total"]), (200, &json!(0)));
}

#[test]
fn the_inbox_and_the_api_share_a_port() {
    let home = tempfile::tempdir().unwrap();
    let dev = Dev::start(home.path(), &[]);
    let (status, head, page) = dev.request("GET /", "", "");
    assert!(status == 200 && head.contains("text/html") && page.contains("<title>Inbox"), "{head}");
    assert!(page.contains("<noscript><p class=\"empty\">The inbox needs JavaScript."), "{page}");
    let (status, head, _) = dev.request("GET /emails", "", "");
    assert!(status == 401 && head.contains("application/json"), "{head}");
    assert_eq!(dev.request("POST /inbox/messages", "", "").0, 405);
    assert_eq!(dev.request("GET /inboxes", "", "").0, 404);
    // A foreign Host header is refused, so that DNS rebinding by a web site cannot read the mail.
    assert_eq!(dev.request("GET /inbox/messages", "Host: evil.example\r\n", "").0, 404);
    let features = &dev.api("GET /account", &Value::Null)["account"]["features"];
    assert_eq!(
        *features,
        json!({"inbound": true, "automations": true, "sms": false, "affiliates": true}),
        "features of `postrider dev`"
    );
}

#[test]
fn recipients_of_the_simulator_behave() {
    let home = tempfile::tempdir().unwrap();
    let dev = Dev::start(home.path(), &[]);
    let at = |local: &str| format!("{local}@simulator.postrider.test");
    let [bounced, deferred, complained, delivered] =
        ["bounced+42", "deferred", "complained", "delivered"].map(|local| dev.send(&at(local)));
    let bounce = dev.event(&bounced, "email.bounced");
    assert!(bounce.to_string().contains("550 5.1.1"), "{bounce}");
    let delay = dev.event(&deferred, "email.delivery_delayed");
    assert!(delay.to_string().contains("451 4.2.1"), "{delay}");
    dev.event(&complained, "email.complained");
    dev.event(&delivered, "email.delivered");
    // These addresses are not suppressed: a second send has the same result.
    dev.event(&dev.send(&at("bounced+42")), "email.bounced");
    dev.event(&dev.send(&at("complained")), "email.complained");
}

#[test]
fn foreign_directories_are_not_modified() {
    let home = tempfile::tempdir().unwrap();
    let stderr_of = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let at = home.path().join("others");
    std::fs::create_dir_all(at.join("inbox")).unwrap();
    std::fs::write(at.join("inbox/notes.txt"), "x").unwrap();
    let data_dir = at.to_str().unwrap();
    for options in [&[][..], &["--fresh"]] {
        let arguments = [&["--api", "127.0.0.1:0", "--data-dir", data_dir], options].concat();
        let output = command(home.path(), &arguments).output().unwrap();
        assert!(!output.status.success() && stderr_of(&output).lines().count() == 1, "{output:?}");
        let reason = "not a directory of `postrider dev`";
        assert!(stderr_of(&output).contains(reason) && stderr_of(&output).contains("--data-dir"), "{output:?}");
        assert!(at.join("inbox/notes.txt").exists() && !at.join("dev.json").exists());
    }
}

#[test]
fn fresh_removes_nothing_if_the_configuration_is_invalid() {
    let home = tempfile::tempdir().unwrap();
    drop(Dev::start(home.path(), &[]));
    let output = command(home.path(), &["--api", "127.0.0.1:0", "--fresh"])
        .env("POSTRIDER_STORE_ENGINE", "postgres")
        .output()
        .unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("postgres"), "{output:?}");
    assert!(home.path().join("postrider/dev/store").exists());
    drop(Dev::start(home.path(), &["--fresh"]));
}

#[test]
fn a_port_in_use_is_reported_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let dev = Dev::start(home.path(), &[]);
    let stderr_of = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let output = command(home.path(), &["--api", dev.at("api")]).output().unwrap();
    let line = format!("postrider: {} is in use by another program", dev.at("api"));
    assert!(!output.status.success() && stderr_of(&output).starts_with(&line), "{output:?}");
    assert!(stderr_of(&output).lines().count() == 1 && stderr_of(&output).contains("--api"), "{output:?}");
    let output = command(home.path(), &["--api", "127.0.0.1:0"]).output().unwrap();
    assert!(!output.status.success() && stderr_of(&output).lines().count() == 1, "{output:?}");
    assert!(
        stderr_of(&output).contains("in use by another process") && stderr_of(&output).contains("--data-dir"),
        "{output:?}"
    );
}

#[test]
fn stripe_can_be_configured() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path(), &["--api", "127.0.0.1:0"])
        .env("POSTRIDER_BILLING_UPGRADE_URL", "https://pay.example.com/upgrade")
        .env("POSTRIDER_BILLING_COLOUR", "blue")
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let dev = Dev { child, ready: serde_json::from_str(&line).unwrap() };
    // The request is refused for its signature: the signing secret is configured.
    let (status, _, body) = dev.request("POST /billing/stripe", "Content-Type: application/json\r\n", "{}");
    assert!(status == 400 || status == 401, "{status} {body}");
}
