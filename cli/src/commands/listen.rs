//! `listen`: shows the events of the account as they happen, and posts each to a local URL as a webhook.
//!
//! The events come over the API's event stream, so no tunnel is needed. Each is posted once, in order; the position is
//! kept in a file, and `--resume` goes on there.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Command;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::arguments::{option, switch};
use crate::base_url::BaseUrl;
use crate::clock;
use crate::connection::Connection;
use crate::duration;
use crate::error::CliError;
use crate::event_stream::EventStream;
use crate::file_value;
use crate::operation::OperationTable;
use crate::output::{self, Format};
use crate::webhook_signature;

/// Longest time of one forwarded webhook, as at the server.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn command() -> Command {
    super::described(
        "listen",
        &[
            "postrider listen",
            "postrider listen --forward-to http://localhost:3000/webhooks --types email.bounced",
            "postrider listen --since 1h --forward-to localhost:3000/webhooks",
        ],
    )
    .arg(option("forward-to", "URL", "Post each event to this URL, signed"))
    .arg(option("types", "A,B", "Only these event types").value_delimiter(','))
    .arg(option("since", "TIME", "Start with events from this long ago, for example 1h"))
    .arg(switch("resume", "Start where the last run stopped"))
    .arg(option("secret", "WHSEC", "Signing secret, or @file [default: a new one]"))
    .arg(option("count", "N", "Stop after N events").value_parser(clap::value_parser!(u64)))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let forward = match run.text("forward-to") {
        Some(url) => Some(Forwarder::new(url, run.text("secret"))?),
        None => None,
    };
    let position = PositionFile::new(&client.base_url().to_string(), client.credential().hint().as_str())?;
    let types = run.texts("types");
    let mut stream = match run.text("since") {
        Some(time) => {
            let age = duration::parse(time)?;
            let now = clock::now()?;
            EventStream::since(&client, types, now - jiff::SignedDuration::try_from(age).unwrap_or_default()).await?
        }
        None => EventStream::new(&client, types, if run.flag("resume") { position.read() } else { None }),
    };
    // Events from now on must not be lost.
    stream.begin().await?;
    eprintln!("listening to {}; press Ctrl-C to stop", client.base_url());
    if let Some(forward) = &forward {
        match forward.new_secret() {
            Some(secret) => eprintln!("forwarding to {}; the signing secret is {secret}", forward.shown),
            None => eprintln!("forwarding to {}", forward.shown),
        }
    }
    let (mut seen, last) = (0_u64, run.matches.get_one::<u64>("count").copied());
    while last.is_none_or(|last| seen < last) {
        let event = stream.next().await?;
        let outcome = match &forward {
            Some(forward) => Some(forward.post(&event.event).await),
            None => None,
        };
        print_event(&event.event, outcome.as_ref(), run.format())?;
        position.write(&event.cursor);
        seen += 1;
    }
    Ok(())
}

fn print_event(event: &Value, outcome: Option<&ForwardOutcome>, format: Format) -> Result<(), CliError> {
    if format != Format::Text {
        let mut event = event.clone();
        if let Some(outcome) = outcome {
            event["forwarded"] = json!({"status": outcome.status, "duration_ms": outcome.duration.as_millis() as u64, "error": outcome.error});
        }
        return output::print_json_line(&event);
    }
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let data = &event["data"];
    let subject =
        ["rcpt_to", "email", "from", "domain"].iter().find_map(|name| data[*name].as_str()).unwrap_or_default();
    let answer = match outcome {
        None => String::new(),
        Some(ForwardOutcome { status: Some(status), duration, .. }) => {
            format!("  → {status} in {} ms", duration.as_millis())
        }
        Some(ForwardOutcome { error, .. }) => format!("  → {}", error.as_deref().unwrap_or("no answer")),
    };
    let line = format!("{}  {:26} {}  {subject}{answer}", text("created_at"), text("type"), text("id"));
    output::print(&output::safe_text(&line))
}

/// The answer of a local program.
pub(super) struct ForwardOutcome {
    pub(super) status: Option<u16>,
    pub(super) duration: Duration,
    pub(super) error: Option<String>,
}

/// Posts events to a URL as webhooks.
pub(super) struct Forwarder {
    url: BaseUrl,
    shown: String,
    secret: String,
    /// True if the caller did not give the secret.
    is_new: bool,
}

impl Forwarder {
    pub(super) fn new(url: &str, secret: Option<&str>) -> Result<Self, CliError> {
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let is_new = secret.is_none();
        let secret = match secret {
            // A file keeps the secret out of the list of processes.
            Some(secret) => file_value::expand(secret)?.trim().to_owned(),
            None => webhook_signature::new_secret()?,
        };
        Ok(Self { url: BaseUrl::parse(&url, true)?, shown: url, secret, is_new })
    }

    /// The secret, if it has to be shown: nobody else knows it.
    pub(super) fn new_secret(&self) -> Option<&str> {
        self.is_new.then_some(self.secret.as_str())
    }

    pub(super) async fn post(&self, event: &Value) -> ForwardOutcome {
        let started = tokio::time::Instant::now();
        let result = tokio::time::timeout(FORWARD_TIMEOUT, self.deliver(event)).await;
        let duration: Duration = started.elapsed();
        match result {
            Ok(Ok(status)) => ForwardOutcome { status: Some(status), duration, error: None },
            Ok(Err(error)) => ForwardOutcome { status: None, duration, error: Some(error.to_string()) },
            Err(_) => {
                let error = format!("no answer within {} s", FORWARD_TIMEOUT.as_secs());
                ForwardOutcome { status: None, duration, error: Some(error) }
            }
        }
    }

    async fn deliver(&self, event: &Value) -> Result<u16, CliError> {
        let id = event["id"].as_str().unwrap_or_default();
        // The body of a webhook: the envelope without the stream's id.
        let body = json!({"type": event["type"], "created_at": event["created_at"], "data": event["data"]}).to_string();
        let seconds = clock::now()?.as_second();
        let mut request = Request::new(Full::new(Bytes::from(body.clone())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.target("").parse().unwrap_or_else(|_| http::Uri::from_static("/"));
        let headers = request.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::USER_AGENT, HeaderValue::from_static("postrider-cli"));
        if let Ok(host) = HeaderValue::from_str(&self.url.authority()) {
            headers.insert(http::header::HOST, host);
        }
        for (name, value) in webhook_signature::headers(&self.secret, id, seconds, &body) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let mut connection = Connection::open_to(&self.url, &format!("the URL {}", self.shown)).await?;
        let response = connection.send(request).await?;
        let status = response.status().as_u16();
        // The program may still be writing.
        let _ = response.into_body().frame().await;
        Ok(status)
    }
}

/// The position of the last run, one file for each server and key.
struct PositionFile(PathBuf);

impl PositionFile {
    fn new(base_url: &str, key_hint: &str) -> Result<Self, CliError> {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        let directory = state.ok_or_else(|| CliError::usage("HOME is not set"))?.join("postrider");
        let name: String =
            format!("{base_url} {key_hint}").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        Ok(Self(directory.join(format!("listen-{name}"))))
    }

    fn read(&self) -> Option<String> {
        std::fs::read_to_string(&self.0).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Remembers a position. A failure only means that `--resume` begins earlier.
    fn write(&self, cursor: &str) {
        if let Some(directory) = self.0.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        let new = self.0.with_extension("new");
        let _ = std::fs::write(&new, cursor).and_then(|()| std::fs::rename(&new, &self.0));
    }
}
