//! `explain`: where each recipient of an email stands, why, and what to do.

use clap::{Arg, Command};
use explain::explanation::{DeliveryState, NextStep, RecipientDelivery, explain};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::client::Call;
use crate::clock;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output::{self, Format};
use mcp::arguments::encode;

pub(super) fn command() -> Command {
    super::described("explain", &["postrider explain msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"])
        .arg(Arg::new("id").value_name("ID").required(true).help("Id of the email"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let target = format!("/emails/{}", encode(run.text("id").unwrap_or_default()));
    let answer = client.call(&Call::get(target)).await?.json()?;
    let email = &answer["email"];
    let recipients = email["recipients"].as_array().into_iter().flatten();
    let now = clock::now()?;
    let recipients: Vec<Value> = recipients.map(|recipient| explanation(recipient, email, now)).collect();
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

/// Explains a recipient in the words that the dashboard shows too.
fn explanation(recipient: &Value, email: &Value, now: Timestamp) -> Value {
    let standing = RecipientDelivery::deserialize(recipient).unwrap_or_default();
    let explained = explain(&standing, email["last_event"].as_str().unwrap_or_default(), now);
    let command = match explained.next_step {
        // The API refuses to resend what only the recipient may read.
        Some(NextStep::Resend) if email["confidential"] == true => "",
        Some(NextStep::Resend) => " Use `postrider emails resend ID`.",
        Some(NextStep::ShowSuppression) => " Use `postrider suppressions get ADDRESS`.",
        Some(NextStep::Reschedule) => " Use `postrider emails update ID` or `postrider emails cancel ID`.",
        Some(NextStep::CheckDomain) => " Use `postrider domains verify DOMAIN` to check the records.",
        None if explained.standing == DeliveryState::Waiting => " `postrider emails watch ID` shows each attempt.",
        None => "",
    };
    let advice = format!("{}{command}", explained.advice);
    let advice = Some(advice.trim()).filter(|advice| !advice.is_empty());
    json!({
        "email": recipient["email"], "status": recipient["status"], "explanation": explained.statement(),
        "what_to_do": advice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_recipient_is_explained() {
        let recipient = json!({
            "email": "a@example.net", "status": "deferred", "attempts": 2, "error": null, "mx_host": "mx.example.net",
            "last_response": {"smtp_code": 451, "enhanced_code": "4.7.1", "text": "greylisted"},
            "next_attempt_at": "2026-01-01T10:00:00.000Z",
            "waits_for": {"cause": "schedule", "text": "the next attempt (number 3)", "until": null},
        });
        let explained =
            explanation(&recipient, &json!({"last_event": "email.delivery_delayed"}), Timestamp::UNIX_EPOCH);
        let text = explained["explanation"].as_str().unwrap();
        assert!(text.starts_with("It is in the queue after 2 attempts."), "{text}");
        assert!(text.ends_with("1 Jan 2026, 10:00 UTC. mx.example.net said: “451 4.7.1 greylisted”."), "{text}");
        assert!(explained["what_to_do"].as_str().unwrap().ends_with("`postrider emails watch ID` shows each attempt."));
    }

    #[test]
    fn a_confidential_email_is_not_resent() {
        let recipient = json!({"email": "a@example.net", "status": "cancelled"});
        let explained = |email: Value| explanation(&recipient, &email, Timestamp::UNIX_EPOCH);
        let advice = |email: Value| explained(email)["what_to_do"].as_str().unwrap().to_owned();
        assert!(advice(json!({})).ends_with("Use `postrider emails resend ID`."));
        assert!(!advice(json!({"confidential": true})).contains("resend"));
    }
}
