//! Explains an SMTP error reply: its category, and what happens to the email, the address and the destination.
//!
//! ```text
//! reply ─► rules ─► category ─► outcome (retry, bounce or fail), suppression
//!             └──► back-pressure on the destination
//! ```
//!
//! The reply counts as one to RCPT, at the first attempt.

use std::time::Duration;

use ::queue::delivery::client::smtp::{TransactionPhase, TransactionVerdict};
use ::queue::delivery::outcome::{self, NextAction};
use ::queue::delivery::reply_policy::classify_reply;
use ::queue::scheduler::pacing::{Backoff, Backpressure};
use explain::explanation::{RecipientDelivery, explain};
use explain::reply::SmtpResponse;
use explain::wait::WaitReason;
use jiff::Timestamp;
use message::classify::{ClassifierInput, ReplyRules};
use message::outcome::AttemptPhase;
use message::reply::{Severity, SmtpReply};
use model::suppression::SuppressionReason;
use serde_json::{Value, json};

use super::error::AdminResult;
use super::request::ReplyQuery;

/// Explains a reply by the current reply rules.
pub(super) fn explain_reply(rules: &ReplyRules, query: &ReplyQuery, now: Timestamp) -> AdminResult {
    let ReplyQuery { reply, host } = query;
    let parsed = SmtpReply::parse_line(reply).filter(|reply| reply.code >= 400);
    let reply =
        parsed.ok_or_else(|| format!("`{reply}` is not an SMTP error reply (example: \"550 5.1.1 user unknown\")"))?;
    Ok(reply_view(rules, &reply, host.as_deref(), now))
}

fn reply_view(rules: &ReplyRules, reply: &SmtpReply, host: Option<&str>, now: Timestamp) -> Value {
    let classification = rules.classify(&ClassifierInput::new(host, reply, AttemptPhase::Rcpt));
    let verdict = match reply.severity() {
        Severity::Permanent => TransactionVerdict::PermanentFailure,
        _ => TransactionVerdict::TransientFailure,
    };
    let decision = classify_reply(rules, host.unwrap_or_default(), verdict, TransactionPhase::Rcpt, Some(reply));
    let rejection = (decision.verdict == TransactionVerdict::PermanentFailure)
        .then(|| outcome::decide_rejection(reply, classification.reason));
    let (outcome, status, last_event) = match &rejection {
        None => ("retry", "queued", "email.delivery_delayed"),
        Some(NextAction::Bounce { .. }) => ("bounce", "bounced", "email.bounced"),
        Some(_) => ("fail", "failed", "email.failed"),
    };
    let delivery = RecipientDelivery {
        status: status.to_owned(),
        attempts: 1,
        last_response: Some(SmtpResponse {
            smtp_code: reply.code,
            enhanced_code: reply.enhanced.map(|code| code.to_string()),
            text: reply.text().into_owned(),
        }),
        mx_host: host.map(str::to_owned),
        waits_for: rejection.is_none().then(|| WaitReason { cause: "schedule".to_owned(), ..WaitReason::default() }),
        ..RecipientDelivery::default()
    };
    // The sentences of the dashboard and of `trace`.
    let explanation = explain(&delivery, last_event, now);
    let sentences: Vec<String> = std::iter::once(explanation.place).chain(explanation.reason).collect();
    json!({
        "reply": reply.to_string(),
        "category": classification.reason,
        "about": if classification.reason.is_about_recipient() { "recipient" } else { "sender" },
        "action": classification.action.map(|action| action.to_string()),
        "outcome": outcome,
        "explanation": sentences.join(" "),
        "advice": explanation.advice,
        "suppression": rejection.as_ref().and_then(outcome::suppression_reason).map(suppression_sentence),
        "destination": destination_sentence(&decision.backpressure),
    })
}

fn suppression_sentence(reason: SuppressionReason) -> &'static str {
    match reason {
        SuppressionReason::HardBounce => "The address is suppressed permanently.",
        _ => "The address is suppressed for a limited time.",
    }
}

/// The consequence for the destination: all domains behind the same mail hosts.
fn destination_sentence(backpressure: &Backpressure) -> Option<String> {
    match backpressure {
        Backpressure::FewerConnections => Some("It gets half as many connections.".to_owned()),
        Backpressure::SlowDown => {
            Some("It gets half as many connections and half as many messages a second.".to_owned())
        }
        Backpressure::BackOff(Backoff::Exponential, _) => {
            Some("Nothing is sent to it for a minute; each further reply of this kind doubles the time.".to_owned())
        }
        Backpressure::BackOff(Backoff::Fixed(duration), _) => {
            Some(format!("Nothing is sent to it for {}.", duration_text(*duration)))
        }
        Backpressure::Unchanged | Backpressure::Answered | Backpressure::Accepted => None,
    }
}

/// A duration in its largest whole unit: `90 seconds`, `1 hour`.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [("hour", 3_600), ("minute", 60)];
    let fits = |(_, size): &(&str, u64)| seconds >= *size && seconds.is_multiple_of(*size);
    let (unit, size) = units.into_iter().find(fits).unwrap_or(("second", 1));
    let count = seconds / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (seconds, text) in
            [(1, "1 second"), (30, "30 seconds"), (60, "1 minute"), (90, "90 seconds"), (900, "15 minutes")]
        {
            assert_eq!(duration_text(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn every_reply_is_explained_with_what_the_server_does() {
        let outlook = Some("contoso-com.mail.protection.outlook.com");
        for (line, host, outcome, explained, suppression, destination) in [
            ("550 5.1.1 User unknown", None, "bounce", "The mailbox does not exist.", "permanently", ""),
            ("552 5.2.2 Mailbox full", None, "bounce", "The mailbox is full.", "limited time", ""),
            (
                "550 5.7.26 Unauthenticated email is not accepted",
                None,
                "fail",
                "(SPF, DKIM or DMARC)",
                "limited time",
                "",
            ),
            ("451 4.7.1 Greylisted", None, "retry", "(greylisting)", "", "half as many connections"),
            ("421 4.3.2 Busy", None, "retry", "cannot accept it at the moment", "", "half as many connections"),
            (
                "550 5.7.1 on our block list (S3140)",
                outlook,
                "retry",
                "after 1 attempt",
                "",
                "Nothing is sent to it for 1 hour",
            ),
        ] {
            let query = ReplyQuery { reply: line.to_owned(), host: host.map(str::to_owned) };
            let view = explain_reply(&ReplyRules::default(), &query, Timestamp::UNIX_EPOCH).unwrap();
            let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
            assert_eq!(text("outcome"), outcome, "{view}");
            for (name, part) in [("explanation", explained), ("suppression", suppression), ("destination", destination)]
            {
                assert!(text(name).contains(part) && (part.is_empty() == text(name).is_empty()), "{name}: {view}");
            }
            assert!(!text("advice").is_empty(), "{view}");
        }
    }
}
