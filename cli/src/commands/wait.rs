//! `wait`: waits for an email to an address and shows its text, links and one-time codes, for tests of applications.
//!
//! `postrider dev` answers from its inbox; another server from the received emails.

use clap::{Arg, Command};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::client::{ApiClient, Call};
use crate::clock;
use crate::duration;
use crate::error::CliError;
use crate::example;
use crate::message_content;
use crate::operation::OperationTable;
use mcp::arguments::encode;

/// Longest wait of one request to the inbox.
const REQUEST_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(20);
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

pub(super) fn command() -> Command {
    Command::new("wait")
        .about("Wait for an email and show its links and one-time codes")
        .after_help(example::section(&[
            "postrider wait --to ada@example.net",
            "postrider wait --to ada@example.net --subject Welcome --for 1m",
        ]))
        .arg(Arg::new("to").long("to").value_name("ADDRESS").required(true).help("Its recipient"))
        .arg(Arg::new("subject").long("subject").value_name("TEXT").help("Part of its subject"))
        .arg(Arg::new("for").long("for").value_name("TIME").default_value("30s").help("Maximum time to wait"))
        .arg(
            Arg::new("since")
                .long("since")
                .value_name("TIME")
                .help("Also accept an email that arrived up to this long ago, for example 1m"),
        )
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table);
    let client = run.client()?;
    let longest = duration::parse(run.text("for").unwrap_or("30s"))?;
    let age = run.text("since").map(duration::parse).transpose()?.unwrap_or_default();
    let mut wanted = WantedEmail {
        to: run.text("to").unwrap_or_default().to_owned(),
        subject: run.text("subject").map(str::to_lowercase),
        since: clock::now()? - SignedDuration::try_from(age).unwrap_or_default(),
    };
    let late = format!("no email to {} arrived within {} s", wanted.to, longest.as_secs());
    let waiting = async {
        let ahead = server_ahead(&client).await?;
        wanted.since = wanted.since.checked_add(ahead).unwrap_or(wanted.since);
        wanted.wait(&client).await
    };
    let found = tokio::time::timeout(longest, waiting).await.map_err(|_| CliError::Failed(late))??;
    run.print(&found)
}

/// How much the server's clock is ahead: the emails have its times. Any answer tells it, also a refusal.
async fn server_ahead(client: &ApiClient) -> Result<SignedDuration, CliError> {
    match client.call(&Call::get("/account")).await {
        Ok(_) | Err(CliError::Api(_) | CliError::UnexpectedResponse { .. }) => Ok(client.server_ahead()),
        Err(error) => Err(error),
    }
}

struct WantedEmail {
    to: String,
    subject: Option<String>,
    since: jiff::Timestamp,
}

impl WantedEmail {
    async fn wait(&self, client: &ApiClient) -> Result<Value, CliError> {
        loop {
            let email = match self.read_inbox(client).await {
                // A server for production has no such inbox.
                Err(CliError::Api(error)) if error.status == 404 => self.read_received(client).await?,
                Err(CliError::UnexpectedResponse { status: 404, .. }) => self.read_received(client).await?,
                other => other?,
            };
            if let Some(email) = email {
                return Ok(email);
            }
        }
    }

    async fn read_inbox(&self, client: &ApiClient) -> Result<Option<Value>, CliError> {
        let subject = self.subject.as_ref().map(|subject| format!("&subject={}", encode(subject))).unwrap_or_default();
        // The answer comes within the client's own timeout.
        let wait = REQUEST_WAIT_MAX.min(client.timeout() / 2);
        let target = format!("/messages?to={}{subject}&limit=1&wait={}ms", encode(&self.to), wait.as_millis());
        let started = tokio::time::Instant::now();
        let page = client.call(&Call::get(target)).await?.json()?;
        let Some(message) = page["messages"].as_array().and_then(|messages| messages.first()) else {
            // A server that does not wait is not asked without a pause.
            if started.elapsed() < wait / 2 {
                tokio::time::sleep(PAUSE).await;
            }
            return Ok(None);
        };
        if !self.is_new(&message["received_at"]) {
            tokio::time::sleep(PAUSE).await;
            return Ok(None);
        }
        let detail = client.call(&Call::get(format!("/messages/{}", message["id"]))).await?.json()?;
        Ok(Some(shown(&detail)))
    }

    async fn read_received(&self, client: &ApiClient) -> Result<Option<Value>, CliError> {
        let target = format!(
            "/received-emails?to={}&limit=20&received_after={}",
            encode(&self.to),
            encode(&self.since.to_string())
        );
        let page = client.call(&Call::get(target)).await?.json()?;
        let fits = |email: &&Value| {
            let subject = email["subject"].as_str().unwrap_or_default().to_lowercase();
            self.subject.as_ref().is_none_or(|wanted| subject.contains(wanted))
        };
        let Some(email) = page["received_emails"].as_array().into_iter().flatten().find(fits) else {
            tokio::time::sleep(PAUSE).await;
            return Ok(None);
        };
        let id = encode(email["id"].as_str().unwrap_or_default());
        let detail = client.call(&Call::get(format!("/received-emails/{id}"))).await?.json()?;
        Ok(Some(shown(&detail["received_email"])))
    }

    fn is_new(&self, received_at: &Value) -> bool {
        received_at.as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok()).is_none_or(|at| at >= self.since)
    }
}

fn shown(email: &Value) -> Value {
    let text = |name: &str| email[name].as_str().unwrap_or_default();
    let plain = ["text", "plain_body", "text_body"].iter().find_map(|name| email[*name].as_str()).unwrap_or_default();
    let html = ["html", "html_body"].iter().find_map(|name| email[*name].as_str()).unwrap_or_default();
    json!({
        "id": email["id"],
        "from": email["from"],
        "to": email["to"],
        "subject": email["subject"],
        "text": plain,
        "codes": message_content::one_time_codes(text("subject"), if plain.is_empty() { html } else { plain }),
        "links": message_content::links(message_content::href_urls(html), plain),
    })
}
