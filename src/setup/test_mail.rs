//! Sends an email to the owner over the real path, and shows the transcript of each attempt.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::dialog::{Dialog, printable};
use super::error::SetupError;
use super::installation::Installation;
use super::options::SetupOptions;
use crate::admin::{AdminRequest, EmailQuery, EmailState, PageQuery};

/// Time in which the email is delivered. A host that defers it at first (greylisting) takes longer.
const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(300);
const SUBJECT: &str = "Your mail server works";

/// Sends the email, unless one was delivered already.
pub(super) async fn deliver(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    let owner = &installation.answers.owner;
    let email = match find_earlier(installation).await? {
        Some((_, EmailState::Delivered)) => {
            dialog.print(&format!("A test email has already been delivered to {owner}."));
            return Ok(());
        }
        Some((email, EmailState::Queued | EmailState::Deferred)) => {
            dialog.print(&format!("The test email {email} to {owner} is in the queue."));
            // Its next attempt may be an hour away.
            let _ = installation
                .admin()
                .request(&AdminRequest::Queue { order: "retry".to_owned(), email: email.clone() })
                .await;
            email
        }
        _ => {
            let email = send(installation).await?;
            dialog.print(&format!("Sent the email {email} from {} to {owner}.", installation.answers.sender()));
            email
        }
    };
    follow(dialog, options, installation, &email).await
}

/// The newest test email to the owner.
async fn find_earlier(installation: &Installation) -> Result<Option<(String, EmailState)>, SetupError> {
    const ACTION: &str = "search for the test email";
    let answers = &installation.answers;
    let filter = EmailQuery {
        account: Some(answers.owner.to_string()),
        recipient: Some(answers.owner.clone()),
        sender: answers.sender().parse().ok(),
        ..EmailQuery::default()
    };
    let request = AdminRequest::EmailList { filter, page: PageQuery { limit: 20, cursor: None } };
    let page = installation.admin().request(&request).await.map_err(SetupError::admin(ACTION))?;
    let emails = page["emails"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(email) = emails.iter().find(|email| email["subject"] == SUBJECT) else { return Ok(None) };
    let state = serde_json::from_value(email["status"].clone()).ok();
    let id = email["id"].as_str();
    id.zip(state)
        .map(|(id, state)| Some((id.to_owned(), state)))
        .ok_or(SetupError::UnexpectedResponse { action: ACTION })
}

async fn send(installation: &Installation) -> Result<String, SetupError> {
    const ACTION: &str = "send the test email";
    let answers = &installation.answers;
    let text = format!(
        "This email was sent by `postrider setup` on {}.\n\nIf you can read this, the server delivers mail for {}. If \
         it was in the spam folder, that is common for a new server: the guide \"Sending domains and deliverability\" \
         explains what helps.\n",
        answers.hostname, answers.domain
    );
    let body = json!({
        "from": format!("Postrider <{}>", answers.sender()),
        "to": answers.owner,
        "subject": SUBJECT,
        "text": text,
    });
    let owner = answers.owner.to_string();
    let sent = installation.admin().call_as_owner(&owner, "POST", "/emails".to_owned(), body).await;
    let sent = sent.map_err(SetupError::admin(ACTION))?;
    sent["id"].as_str().map(str::to_owned).ok_or(SetupError::UnexpectedResponse { action: ACTION })
}

/// Prints the attempts until the email is delivered or given up.
async fn follow(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
    email: &str,
) -> Result<(), SetupError> {
    const ACTION: &str = "follow the test email";
    let (mut printed, until) = (0, Instant::now() + WAIT_MAX);
    loop {
        let request = AdminRequest::Trace { email: email.to_owned() };
        let trace = installation.admin().request(&request).await.map_err(SetupError::admin(ACTION))?;
        let attempts = trace["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
        for attempt in attempts.iter().skip(printed) {
            attempt_lines(attempt).iter().for_each(|line| dialog.print(line));
        }
        printed = printed.max(attempts.len());
        let state = serde_json::from_value(trace["status"].clone());
        match state.map_err(|_| SetupError::UnexpectedResponse { action: ACTION })? {
            EmailState::Delivered => {
                dialog.print(&format!("Delivered. Look for it in the mailbox of {}.", installation.answers.owner));
                return Ok(());
            }
            EmailState::Bounced | EmailState::Failed | EmailState::Cancelled => {
                let reason =
                    attempts.last().map_or_else(|| "the email was removed from the queue".to_owned(), outcome_text);
                return Err(SetupError::TestMailFailed { reason, again: options.command_again() });
            }
            EmailState::Scheduled | EmailState::Queued | EmailState::Deferred => {}
        }
        if Instant::now() >= until {
            return Err(SetupError::TestMailDeferred { again: options.command_again() });
        }
        dialog.show_live(&["  waiting for the recipient's mail host".to_owned()]);
        sleep(POLL).await;
    }
}

/// The reply that decided an attempt, or its error.
fn outcome_text(attempt: &Value) -> String {
    let text = attempt["response"].as_str().or(attempt["error"].as_str()).unwrap_or("no reply");
    printable(text)
}

/// An attempt: host, TLS, transcript, outcome.
fn attempt_lines(attempt: &Value) -> Vec<String> {
    let text = |name: &str| attempt[name].as_str().map(printable);
    let host = match (text("mx_host"), text("ip")) {
        (Some(host), Some(ip)) => format!("{host} [{ip}]"),
        (Some(host), None) => host,
        (None, _) => "no mail host".to_owned(),
    };
    let mut lines = vec![format!("Attempt {}: {host}, {} ms", attempt["n"], attempt["duration_ms"])];
    let tls = &attempt["tls"];
    lines.push(match tls["version"].as_str() {
        Some(version) => {
            let verified = if tls["verified"] == true { "verified" } else { "not verified (opportunistic TLS)" };
            let cipher = tls["cipher"].as_str().unwrap_or_default();
            format!("  TLS: {}, {}, certificate {verified}", printable(version), printable(cipher))
        }
        None => "  TLS: none".to_owned(),
    });
    let transcript = attempt["transcript"].as_str().unwrap_or_default();
    lines.extend(transcript.lines().map(|line| format!("  | {}", printable(line))));
    lines.push(format!("  Result: {}", outcome_text(attempt)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_shows_host_tls_transcript_and_outcome() {
        let attempt = json!({
            "n": 1, "duration_ms": 42, "mx_host": "mx.example.org", "ip": "192.0.2.7", "response": "250 2.0.0 ok",
            "tls": {"version": "TLSv1.3", "cipher": "TLS13_AES_256_GCM_SHA384", "verified": true},
            "transcript": "< 220 mx\u{1b}[1m\n> EHLO mx1.example.net",
        });
        assert_eq!(
            attempt_lines(&attempt),
            [
                "Attempt 1: mx.example.org [192.0.2.7], 42 ms",
                "  TLS: TLSv1.3, TLS13_AES_256_GCM_SHA384, certificate verified",
                "  | < 220 mx [1m",
                "  | > EHLO mx1.example.net",
                "  Result: 250 2.0.0 ok",
            ]
        );
        let refused =
            json!({"n": 1, "duration_ms": 3, "mx_host": null, "error": "no address", "tls": null, "transcript": ""});
        assert_eq!(attempt_lines(&refused), ["Attempt 1: no mail host, 3 ms", "  TLS: none", "  Result: no address"]);
    }
}
