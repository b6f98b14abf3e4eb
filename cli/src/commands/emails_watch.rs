//! `emails watch`: what happens to emails, as it happens; with an id, until nothing more is awaited.

use clap::{Arg, Command};
use serde_json::Value;

use super::workflow::WorkflowRun;
use crate::client::Call;
use crate::error::CliError;
use crate::event_stream::EventStream;
use crate::operation::OperationTable;
use crate::output::{self, Format};
use mcp::arguments::encode;

/// States of a recipient in which nothing more is awaited.
const FINAL_STATES: &[&str] = &["delivered", "bounced", "failed", "complained", "cancelled", "suppressed"];

pub(super) fn command() -> Command {
    super::described(
        "emails watch",
        &["postrider emails watch", "postrider emails watch msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"],
    )
    .arg(Arg::new("id").value_name("ID").help("Only this email; ends when every recipient has a final status"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let kinds = table.webhook_events().map(|event| event.kind).filter(|kind| kind.starts_with("email.")).collect();
    let mut stream = EventStream::new(&client, kinds, None);
    let id = run.text("id");
    let target = id.map(|id| format!("/emails/{}", encode(id)));
    // Events from now on must not be lost.
    stream.begin().await?;
    if target.is_none() {
        eprintln!("watching the emails of {}; press Ctrl-C to stop", client.base_url());
    }
    if let Some(target) = &target {
        let email = client.call(&Call::get(target.clone())).await?.json()?;
        print_state(&email["email"], run.format())?;
        if is_final(&email["email"]) {
            return Ok(());
        }
    }
    loop {
        let event = stream.next().await?.event;
        if id.is_some_and(|id| event["data"]["email_id"] != id) {
            continue;
        }
        print_event(&event, run.format())?;
        if let Some(target) = &target
            && is_final(&client.call(&Call::get(target.clone())).await?.json()?["email"])
        {
            return Ok(());
        }
    }
}

fn is_final(email: &Value) -> bool {
    let mut recipients = email["recipients"].as_array().into_iter().flatten();
    recipients.all(|recipient| recipient["status"].as_str().is_some_and(|status| FINAL_STATES.contains(&status)))
}

fn print_state(email: &Value, format: Format) -> Result<(), CliError> {
    if format != Format::Text {
        return output::print_json_line(email);
    }
    for recipient in email["recipients"].as_array().into_iter().flatten() {
        let text = |name: &str| recipient[name].as_str().unwrap_or_default();
        let said = recipient["last_response"].as_str().or(recipient["error"].as_str()).unwrap_or_default();
        output::print(output::safe_text(&format!("{:12} {}  {said}", text("status"), text("email"))).trim_end())?;
    }
    Ok(())
}

fn print_event(event: &Value, format: Format) -> Result<(), CliError> {
    if format != Format::Text {
        return output::print_json_line(event);
    }
    let data = &event["data"];
    let paths =
        ["/delivery/smtp_response", "/delay/diagnostic", "/bounce/diagnostic", "/failure/message", "/click/url"];
    let said = paths.iter().find_map(|path| data.pointer(path)?.as_str()).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let recipient = match data["rcpt_to"].as_str() {
        Some(recipient) => recipient.to_owned(),
        None => data["to"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
    };
    let line = format!(
        "{}  {:22} {recipient}  {}  {said}",
        text(&event["created_at"]),
        text(&event["type"]),
        text(&data["subject"])
    );
    output::print(output::safe_text(&line).trim_end())
}
