//! `wait`: waits for an email to an address and shows its text, links and one-time codes, for tests of applications.
//!
//! `postrider dev` answers from its inbox; another server from the received emails. The emails that are there at the
//! start are remembered by their ids, because the server's clock can differ from this machine's.

use std::collections::BTreeSet;

use clap::Command;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::arguments::option;
use crate::client::{ApiClient, Call};
use crate::clock;
use crate::duration;
use crate::error::CliError;
use crate::message_content;
use crate::operation::OperationTable;
use mcp::arguments::encode;

/// Longest wait of one request to the inbox.
const REQUEST_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(20);
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
/// Messages of the inbox that are looked at for `--since`.
const INBOX_PAGE: u32 = 1_000;
/// Largest page of received emails.
const RECEIVED_PAGE: u32 = 100;

pub(super) fn command() -> Command {
    super::described(
        "wait",
        &["postrider wait --to ada@example.net", "postrider wait --to ada@example.net --subject Welcome --for 1m"],
    )
    .arg(option("to", "ADDRESS", "Its recipient").required(true))
    .arg(option("subject", "TEXT", "Part of its subject"))
    .arg(option("for", "TIME", "Maximum time to wait").default_value("30s"))
    .arg(option("since", "TIME", "Also accept an email that arrived up to this long ago, for example 1m"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let longest = duration::parse(run.text("for").unwrap_or("30s"))?;
    let age = run.text("since").map(duration::parse).transpose()?;
    let wanted = WantedEmail {
        to: run.text("to").unwrap_or_default().to_owned(),
        subject: run.text("subject").map(str::to_lowercase),
        age: age.map(|age| SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX)),
    };
    let late = format!("no email to {} arrived within {} s", wanted.to, longest.as_secs());
    let found = tokio::time::timeout(longest, wanted.wait(&client)).await.map_err(|_| CliError::Failed(late))??;
    run.print(&found)
}

struct WantedEmail {
    to: String,
    subject: Option<String>,
    /// Emails that arrived up to this long before the start are accepted too.
    age: Option<SignedDuration>,
}

/// The emails to the address that are too old, as they are found at the start.
enum OldEmails {
    /// In the inbox: those up to this number.
    Inbox { last_id: u64 },
    /// Ids of the newest ones among the received emails.
    Received { ids: BTreeSet<String> },
}

impl WantedEmail {
    async fn wait(&self, client: &ApiClient) -> Result<Value, CliError> {
        let old = self.old_emails(client).await?;
        loop {
            let email = match &old {
                OldEmails::Inbox { last_id } => self.read_inbox(client, *last_id).await?,
                OldEmails::Received { ids } => self.read_received(client, ids).await?,
            };
            if let Some(email) = email {
                return Ok(email);
            }
        }
    }

    async fn old_emails(&self, client: &ApiClient) -> Result<OldEmails, CliError> {
        let limit = if self.age.is_some() { INBOX_PAGE } else { 1 };
        let target = format!("/messages?to={}&limit={limit}", encode(&self.to));
        let answer = match client.call(&Call::get(target)).await {
            // A server for production has no such inbox.
            Err(error) if is_not_found(&error) => None,
            other => Some(other?),
        };
        if let Some(answer) = answer {
            let page = answer.json()?;
            let messages = self.skip_accepted(client, &page["messages"])?;
            let last_id = messages.first().and_then(|message| message["id"].as_u64()).unwrap_or(0);
            return Ok(OldEmails::Inbox { last_id });
        }
        let page = client.call(&Call::get(self.received_target())).await?.json()?;
        let emails = self.skip_accepted(client, &page["received_emails"])?;
        let ids = emails.iter().filter_map(|email| email["email_id"].as_str()).map(str::to_owned).collect();
        Ok(OldEmails::Received { ids })
    }

    /// The emails of a list, newest first, without those that are young enough. The server's clock can be moved
    /// (`[testing]`), which `Date` does not show: it is at least at the newest email.
    fn skip_accepted<'a>(&self, client: &ApiClient, emails: &'a Value) -> Result<&'a [Value], CliError> {
        let emails = emails.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(age) = self.age else { return Ok(emails) };
        let now = clock::now()?;
        let now = now.checked_add(client.server_ahead()).unwrap_or(now);
        let now = emails.first().and_then(received_at).map_or(now, |newest| now.max(newest));
        let since = now.checked_sub(age).unwrap_or(Timestamp::MIN);
        let count = emails.iter().take_while(|email| received_at(email).is_some_and(|at| at >= since)).count();
        Ok(emails.get(count..).unwrap_or_default())
    }

    async fn read_inbox(&self, client: &ApiClient, last_id: u64) -> Result<Option<Value>, CliError> {
        let subject = self.subject.as_ref().map(|subject| format!("&subject={}", encode(subject))).unwrap_or_default();
        // The answer comes within the client's own timeout.
        let wait = REQUEST_WAIT_MAX.min(client.timeout() / 2);
        let to = encode(&self.to);
        let target = format!("/messages?to={to}{subject}&after={last_id}&limit=1&wait={}ms", wait.as_millis());
        let started = tokio::time::Instant::now();
        let page = client.call(&Call::get(target)).await?.json()?;
        let Some(message) = page["messages"].as_array().and_then(|messages| messages.first()) else {
            // A server that does not wait is not asked without a pause.
            if started.elapsed() < wait / 2 {
                tokio::time::sleep(PAUSE).await;
            }
            return Ok(None);
        };
        let detail = read_detail(client, format!("/messages/{}", message["id"])).await?;
        Ok(detail.map(|detail| shown(&detail, "id")))
    }

    async fn read_received(&self, client: &ApiClient, old: &BTreeSet<String>) -> Result<Option<Value>, CliError> {
        let page = client.call(&Call::get(self.received_target())).await?.json()?;
        let is_old = |email: &Value| email["email_id"].as_str().is_some_and(|id| old.contains(id));
        let fits = |email: &&Value| {
            let subject = email["subject"].as_str().unwrap_or_default().to_lowercase();
            self.subject.as_ref().is_none_or(|wanted| subject.contains(wanted))
        };
        let emails = page["received_emails"].as_array().map(Vec::as_slice).unwrap_or_default();
        // Emails behind the last one of the start are older. A new one can stand behind others of the start.
        let end = emails.iter().rposition(is_old).unwrap_or(emails.len());
        let Some(email) = emails.iter().take(end).filter(|email| !is_old(email)).find(fits) else {
            tokio::time::sleep(PAUSE).await;
            return Ok(None);
        };
        let id = encode(email["email_id"].as_str().unwrap_or_default());
        let detail = read_detail(client, format!("/received-emails/{id}")).await?;
        Ok(detail.map(|detail| shown(&detail["received_email"], "email_id")))
    }

    /// The newest received emails to the address.
    fn received_target(&self) -> String {
        format!("/received-emails?to={}&limit={RECEIVED_PAGE}", encode(&self.to))
    }
}

/// Reads an email of a list; `None` if it was deleted since.
async fn read_detail(client: &ApiClient, target: String) -> Result<Option<Value>, CliError> {
    match client.call(&Call::get(target)).await {
        Err(error) if is_not_found(&error) => {
            tokio::time::sleep(PAUSE).await;
            Ok(None)
        }
        answer => answer?.json().map(Some),
    }
}

fn is_not_found(error: &CliError) -> bool {
    match error {
        CliError::Api(error) => error.status == 404,
        CliError::UnexpectedResponse { status, .. } => *status == 404,
        _ => false,
    }
}

fn received_at(email: &Value) -> Option<Timestamp> {
    email["received_at"].as_str()?.parse().ok()
}

/// The printed fields of an email; `id` is the name of the field with its id.
fn shown(email: &Value, id: &str) -> Value {
    let text = |name: &str| email[name].as_str().unwrap_or_default();
    let plain = ["text", "plain_body", "text_body"].iter().find_map(|name| email[*name].as_str()).unwrap_or_default();
    let html = ["html", "html_body"].iter().find_map(|name| email[*name].as_str()).unwrap_or_default();
    json!({
        "id": email[id],
        "from": email["from"],
        "to": email["to"],
        "subject": email["subject"],
        "text": plain,
        "codes": message_content::one_time_codes(text("subject"), if plain.is_empty() { html } else { plain }),
        "links": message_content::links(message_content::href_urls(html), plain),
    })
}
