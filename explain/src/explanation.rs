//! "Why is it not there yet": where each recipient of an email stands, why, when the next try is, the words of the far
//! end, and what to do.
//!
//! It reads the `recipients` of `GET /emails/{id}`. The dashboard and the command line show the same words.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::reply::{ReplyCause, SmtpResponse};
use crate::wait::WaitReason;

/// A recipient as the API shows it. Only the fields that the explanation needs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RecipientDelivery {
    pub email: String,
    /// `to`, `cc` or `bcc`.
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub attempts: u64,
    pub last_response: Option<SmtpResponse>,
    pub error: Option<String>,
    pub mx_host: Option<String>,
    pub delivered_at: Option<Timestamp>,
    pub bounced_at: Option<Timestamp>,
    pub opened_at: Option<Timestamp>,
    pub clicked_at: Option<Timestamp>,
    pub complained_at: Option<Timestamp>,
    pub next_attempt_at: Option<Timestamp>,
    pub waits_for: Option<WaitReason>,
}

impl RecipientDelivery {
    /// True if no mail host was tried: the domain has none, or it could not be determined.
    pub(crate) fn lacks_mail_host(&self) -> bool {
        self.error.is_some() && self.last_response.is_none() && self.mx_host.is_none()
    }
}

/// State of the delivery to a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// The recipient's mail host accepted it.
    Arrived,
    /// It is under way, or waits.
    Waiting,
    /// It will not arrive.
    Stopped,
}

/// An action that the person can take, for a button or a command beside the advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NextStep {
    /// Send the email again after a correction.
    Resend,
    /// Look at the address's suppression.
    ShowSuppression,
    /// Send it at another time, or cancel it.
    Reschedule,
    /// Check the records of the sending domain.
    CheckDomain,
}

/// The explanation for one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub standing: DeliveryState,
    /// A sentence: where it is.
    pub place: String,
    /// A sentence: why it is there.
    pub reason: Option<String>,
    /// When the next try or check is; known for a waiting recipient only.
    pub next_try_at: Option<Timestamp>,
    /// The last words of the recipient's mail host, or the last error of the connection to it.
    pub last_words: Option<LastWords>,
    /// Sentences: what to do.
    pub advice: String,
    pub next_step: Option<NextStep>,
}

/// The last reply or error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LastWords {
    /// The host's SMTP reply.
    Reply { host: Option<String>, text: String },
    /// There was no reply.
    Error { host: Option<String>, text: String },
}

impl LastWords {
    /// `mx.example.net said`, or `The last error at mx.example.net was`.
    pub fn lead(&self) -> String {
        match self {
            Self::Reply { host: Some(host), .. } => format!("{host} said"),
            Self::Reply { host: None, .. } => "The mail host said".into(),
            Self::Error { host: Some(host), .. } => format!("The last error at {host} was"),
            Self::Error { host: None, .. } => "The last error was".into(),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Reply { text, .. } | Self::Error { text, .. } => text,
        }
    }
}

impl Explanation {
    /// The explanation without the advice, with times in UTC.
    pub fn statement(&self) -> String {
        let mut sentences = vec![self.place.clone()];
        sentences.extend(self.reason.clone());
        sentences.extend(self.next_try_at.map(|at| format!("The next attempt is at {}.", utc(at))));
        sentences.extend(self.last_words.as_ref().map(|words| format!("{}: “{}”.", words.lead(), words.text())));
        sentences.join(" ")
    }

    /// The whole explanation as one paragraph, with times in UTC.
    pub fn paragraph(&self) -> String {
        format!("{} {}", self.statement(), self.advice).trim_end().to_owned()
    }
}

/// `26 Nov 2026, 09:30 UTC`.
pub fn utc(time: Timestamp) -> String {
    time.strftime("%-d %b %Y, %H:%M UTC").to_string()
}

/// The last event of an email that was not sent because a recipient is suppressed or has opted out.
const SUPPRESSED_EVENT: &str = "email.suppressed";

/// Explains how it stands for a recipient. `last_event` is the latest event of the email, or of the recipient; `now`
/// tells whether a scheduled email is overdue.
pub fn explain(recipient: &RecipientDelivery, last_event: &str, now: Timestamp) -> Explanation {
    let explained = match recipient.status.as_str() {
        "delivered" => delivered(recipient),
        "bounced" => bounced(recipient),
        "failed" if last_event == SUPPRESSED_EVENT => blocked_by_another_recipient(),
        "failed" => failed(recipient),
        "suppressed" => suppressed(),
        "cancelled" => stopped(
            "It was cancelled before it was sent.",
            "Nothing was sent. Send it again if you still want to.",
            Some(NextStep::Resend),
        ),
        _ => crate::wait::waiting(recipient, now),
    };
    Explanation { last_words: last_words(recipient), ..explained }
}

fn stopped(place: impl Into<String>, advice: impl Into<String>, next_step: Option<NextStep>) -> Explanation {
    Explanation {
        standing: DeliveryState::Stopped,
        place: place.into(),
        reason: None,
        next_try_at: None,
        last_words: None,
        advice: advice.into(),
        next_step,
    }
}

fn last_words(recipient: &RecipientDelivery) -> Option<LastWords> {
    let host = recipient.mx_host.clone();
    match (&recipient.last_response, &recipient.error) {
        (Some(reply), _) => Some(LastWords::Reply { host, text: reply.line() }),
        (None, Some(error)) => Some(LastWords::Error { host, text: error.clone() }),
        (None, None) => None,
    }
}

fn delivered(recipient: &RecipientDelivery) -> Explanation {
    let host = recipient.mx_host.as_deref().unwrap_or("the recipient's mail host");
    let at = recipient.delivered_at.map(|at| format!(" on {}", utc(at))).unwrap_or_default();
    let tries = if recipient.attempts > 1 { format!(", on attempt {}", recipient.attempts) } else { String::new() };
    let seen = recipient.clicked_at.map(|at| ("a link in it was clicked", at));
    let seen = seen.or(recipient.opened_at.map(|at| ("it was opened", at)));
    let (reason, advice) = match (recipient.complained_at, seen) {
        (Some(at), _) => (
            Some(format!("The recipient reported it as spam on {}.", utc(at))),
            "Do not send to this address again unless the person asks for it.",
        ),
        (None, Some((what, at))) => (Some(format!("The recipient saw it: {what} on {}.", utc(at))), ""),
        (None, None) => (
            None,
            "If the recipient cannot find it, it may be in the spam folder, or a filter behind that host may hold it. \
             The host's administrator can trace it with the host's reply.",
        ),
    };
    Explanation {
        standing: DeliveryState::Arrived,
        place: format!("It was delivered: {host} accepted it{at}{tries}."),
        reason,
        advice: advice.into(),
        ..stopped("", "", None)
    }
}

fn bounced(recipient: &RecipientDelivery) -> Explanation {
    let at = recipient.bounced_at.map(|at| format!(" on {}", utc(at))).unwrap_or_default();
    // A delivered email can bounce later: a host behind the first one refuses it.
    let place = match recipient.delivered_at {
        Some(_) => format!("It was accepted first, but bounced later{at}. It will not be retried."),
        None if recipient.lacks_mail_host() => format!("It bounced{at}, and will not be retried."),
        None => format!("It bounced{at}: the recipient's mail host refused it permanently. It will not be retried."),
    };
    let cause = match &recipient.last_response {
        Some(reply) => reply.cause(),
        None => recipient.lacks_mail_host().then_some(ReplyCause::UnknownDomain),
    };
    match cause {
        Some(cause) => {
            Explanation { reason: Some(cause.sentence().into()), ..stopped(place, cause.advice(), cause.next_step()) }
        }
        None => {
            stopped(place, "Read the mail host's reply, correct the cause, and send it again.", Some(NextStep::Resend))
        }
    }
}

fn failed(recipient: &RecipientDelivery) -> Explanation {
    let place = match recipient.attempts {
        0 => "It was not sent: no delivery was attempted.".to_owned(),
        1 => "Delivery was given up after 1 attempt.".to_owned(),
        n => format!("Delivery was given up after {n} attempts."),
    };
    let cause = recipient.last_response.as_ref().and_then(SmtpResponse::cause);
    match (cause, &recipient.error) {
        (Some(cause), _) => {
            Explanation { reason: Some(cause.sentence().into()), ..stopped(place, cause.advice(), cause.next_step()) }
        }
        (None, Some(_)) if recipient.mx_host.is_some() => stopped(
            place,
            "Send it again later. If that fails too, tell the recipient's administrator the last error.",
            Some(NextStep::Resend),
        ),
        (None, Some(_)) => stopped(
            place,
            "If the last error names the domain after the @, check that it is spelled correctly and accepts mail. Then \
             send it again.",
            Some(NextStep::Resend),
        ),
        (None, None) => stopped(place, "Correct the cause, and send it again.", Some(NextStep::Resend)),
    }
}

fn suppressed() -> Explanation {
    Explanation {
        reason: Some(
            "The address is on your suppression list, or the recipient has opted out of this \
            category."
                .into(),
        ),
        ..stopped(
            "It was not sent to this address.",
            "Look at the suppression. Remove it only if you know that the address is correct and the person wants \
             your mail.",
            Some(NextStep::ShowSuppression),
        )
    }
}

fn blocked_by_another_recipient() -> Explanation {
    Explanation {
        reason: Some(
            "Nobody got this email, because another recipient is on your suppression list or has opted out of this \
             category."
                .into(),
        ),
        ..stopped("It was not sent: no delivery was attempted.", "Send the email again without that recipient.", None)
    }
}

#[cfg(test)]
mod tests;
