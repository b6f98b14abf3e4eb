//! `explain`: where each recipient of an email stands, why, and what to do.

use clap::{Arg, Command};
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::client::Call;
use crate::error::CliError;
use crate::example;
use crate::operation::OperationTable;
use crate::operation_command::encode;
use crate::output::{self, Format};

pub(super) fn command() -> Command {
    Command::new("explain")
        .about("Explain what happened to an email, recipient by recipient")
        .after_help(example::section(&["postrider explain msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"]))
        .arg(Arg::new("id").value_name("ID").required(true).help("Id of the email"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table);
    let client = run.client()?;
    let target = format!("/emails/{}", encode(run.text("id").unwrap_or_default()));
    let answer = client.call(&Call::get(target)).await?.json()?;
    let email = &answer["email"];
    let recipients: Vec<Value> = email["recipients"].as_array().into_iter().flatten().map(explanation).collect();
    if run.format() != Format::Text {
        return output::print_json(&json!({"id": email["id"], "status": email["status"], "recipients": recipients}));
    }
    let text = |value: &Value| output::safe_text(value.as_str().unwrap_or_default());
    output::print(&format!("{}  {}  {}", text(&email["id"]), text(&email["status"]), text(&email["subject"])))?;
    for recipient in &recipients {
        output::print(&format!("\n{}\n  {}", text(&recipient["email"]), text(&recipient["explanation"])))?;
        if let Some(advice) = recipient["what_to_do"].as_str() {
            output::print(&format!("  {}", output::safe_text(advice)))?;
        }
    }
    Ok(())
}

fn explanation(recipient: &Value) -> Value {
    let text = |name: &str| recipient[name].as_str();
    let status = text("status").unwrap_or("unknown");
    let attempts = recipient["attempts"].as_u64().unwrap_or(0);
    let tried = match attempts {
        0 => "It was not tried yet.".to_owned(),
        1 => "It was tried once.".to_owned(),
        n => format!("It was tried {n} times."),
    };
    let host = text("mx_host").map(|host| format!(" at {host}")).unwrap_or_default();
    let said = match (text("last_response"), text("error")) {
        (Some(reply), _) => format!(" The last reply{host} was: {reply}"),
        (None, Some(error)) => format!(" The last error{host} was: {error}"),
        (None, None) => String::new(),
    };
    let waits = text("waits_for").map(|reason| format!(" It waits for: {reason}.")).unwrap_or_default();
    let next = text("next_attempt_at").map(|at| format!(" The next attempt is at {at}.")).unwrap_or_default();
    let (explanation, advice) = match status {
        "delivered" => {
            let at = text("delivered_at").unwrap_or("an unknown time");
            (format!("Delivered at {at}{host}.{}", said_reply(recipient)), None)
        }
        "bounced" => (
            format!("Bounced. {tried}{said}"),
            Some("The address is suppressed if the mailbox does not exist; correct it before you send again."),
        ),
        "complained" => ("The recipient reported it as spam.".to_owned(), Some("Do not send to this address again.")),
        "suppressed" => (
            "Not sent: the address is on the suppression list, or it opted out of the category.".to_owned(),
            Some("`postrider suppressions get ADDRESS` shows why."),
        ),
        "cancelled" => ("Cancelled before it was sent.".to_owned(), None),
        "scheduled" => (format!("Scheduled.{next}"), None),
        "failed" => (format!("Failed. {tried}{said}"), Some("Correct the cause, then `postrider emails resend ID`.")),
        _ => (
            format!("Under way. {tried}{said}{waits}{next}"),
            Some("Nothing to do: it is retried until it expires. `postrider emails watch ID` shows each attempt."),
        ),
    };
    json!({"email": recipient["email"], "status": status, "explanation": explanation, "what_to_do": advice})
}

fn said_reply(recipient: &Value) -> String {
    recipient["last_response"].as_str().map(|reply| format!(" The host said: {reply}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_recipient_is_explained() {
        let recipient = json!({
            "email": "a@example.net", "status": "sent", "attempts": 2, "last_response": "451 4.7.1 greylisted", "error": null,
            "mx_host": "mx.example.net", "next_attempt_at": "2026-01-01T10:00:00.000Z", "waits_for": null,
        });
        let explained = explanation(&recipient);
        assert_eq!(
            explained["explanation"],
            "Under way. It was tried 2 times. The last reply at mx.example.net was: 451 4.7.1 greylisted The next attempt is at \
             2026-01-01T10:00:00.000Z."
        );
    }
}
