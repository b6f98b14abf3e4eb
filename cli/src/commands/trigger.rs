//! `trigger`: a test event, delivered by the server to the account's webhooks, or posted to a local URL.

use clap::{Arg, Command};
use http::Method;
use serde_json::{Map, Value, json};

use super::listen::Forwarder;
use super::workflow::WorkflowRun;
use crate::arguments::{option, switch};
use crate::client::Call;
use crate::error::CliError;
use crate::field::scalar;
use crate::operation::OperationTable;

pub(super) fn command() -> Command {
    super::described("trigger", &[
            "postrider trigger email.bounced",
            "postrider trigger email.bounced --forward-to http://localhost:3000/webhooks --set data.rcpt_to=ada@example.net",
        ])
        .arg(Arg::new("event").value_name("EVENT").required(true).help("Event type, for example email.delivered"))
        .arg(option("forward-to", "URL", "Post it to this URL instead, signed"))
        .arg(option("secret", "WHSEC", "Signing secret, or @file [default: a new one]"))
        .arg(
            option("set", "PATH=VALUE", "Change a field of the payload, for example data.subject=Hello")
                .action(clap::ArgAction::Append)
                .requires("forward-to"),
        )
        .arg(switch("dry-run", "Show what would be sent"))
        .arg(option("email-id", "ID", "Fill the payload with this email's values").conflicts_with("forward-to"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let kind = run.text("event").unwrap_or_default();
    let Some(url) = run.text("forward-to") else {
        let mut body = json!({"event": kind, "deliver": true});
        if let Some(id) = run.text("email-id") {
            body["email_id"] = json!(id);
        }
        if run.flag("dry-run") {
            let request = json!({"method": "POST", "path": "/emails/test", "body": body});
            return run.print(&json!({"dry_run": true, "request": request}));
        }
        let answer = run.client()?.call(&Call::with_json(Method::POST, "/emails/test", &body)).await?;
        return run.print(&answer.json()?);
    };
    let Some(event) = table.webhook_events().find(|event| event.kind == kind) else {
        let kinds: Vec<String> = table.webhook_events().map(|event| event.kind).collect();
        return Err(CliError::usage(format!(
            "`{kind}` is not an event type; the event types are {}",
            kinds.join(", ")
        )));
    };
    let mut payload = event.example;
    for change in run.texts("set") {
        set(&mut payload, &change)?;
    }
    payload["id"] = payload["data"]["event_id"].clone();
    let forwarder = Forwarder::new(url, run.text("secret"))?;
    if run.flag("dry-run") {
        return run.print(&json!({"dry_run": true, "event": payload, "forward_to": url}));
    }
    let outcome = forwarder.post(&payload).await;
    if let Some(error) = outcome.error {
        return Err(CliError::Failed(format!("{url}: {error}")));
    }
    run.print(&json!({
        "event": kind, "forwarded_to": url, "status": outcome.status, "duration_ms": outcome.duration.as_millis() as u64,
        "secret": forwarder.new_secret(),
    }))
}

/// Sets the field at a path such as `data.bounce.type`.
fn set(payload: &mut Value, change: &str) -> Result<(), CliError> {
    let invalid = || CliError::usage(format!("--set {change}: use PATH=VALUE, for example data.subject=Hello"));
    let (path, value) = change.split_once('=').ok_or_else(invalid)?;
    if path.split('.').any(str::is_empty) {
        return Err(invalid());
    }
    let mut at = payload;
    for name in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = at.as_object_mut().ok_or_else(invalid)?.entry(name).or_insert(Value::Null);
    }
    *at = scalar(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_by_path() {
        let mut payload = json!({"data": {"a": 1}});
        set(&mut payload, "data.a=2").unwrap();
        set(&mut payload, "data.b.c=x=y").unwrap();
        assert_eq!(payload, json!({"data": {"a": 2, "b": {"c": "x=y"}}}));
        for wrong in ["data", "=5", "data.=5"] {
            assert!(set(&mut payload, wrong).is_err(), "{wrong}");
        }
    }
}
