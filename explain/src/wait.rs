//! Recipients that wait.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::explanation::{DeliveryState, Explanation, NextStep, RecipientDelivery};
use crate::reply::SmtpResponse;

/// The reason of a wait: `waits_for` of the API.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WaitReason {
    pub cause: String,
    /// The reason in the words of the queue.
    pub text: String,
    pub destination: Option<String>,
    /// Number of emails before this one.
    pub place: Option<u64>,
    pub until: Option<Timestamp>,
}

impl WaitReason {
    /// True if a scheduled email is still not released, although it was due some time ago.
    fn is_overdue_release(&self, now: Timestamp) -> bool {
        let is_overdue = |until| now.duration_since(until) > RELEASE_GRACE;
        self.cause == "scheduled_at" && self.until.is_some_and(is_overdue)
    }
}

/// How long a due email may still be called scheduled: many emails can be due at once, and the clock of this machine may
/// differ from the server's.
const RELEASE_GRACE: SignedDuration = SignedDuration::from_mins(5);

const RETRIED: &str = "Nothing to do: it is retried automatically until it is delivered or expires.";
const LOOKED_UP_AGAIN: &str =
    "It is retried automatically. If it fails again, the operator of this server can run `postrider doctor`.";
const SOON: &str = "Nothing to do: it will be sent when its turn comes.";
const IN_ATTEMPT: &str = "Nothing to do: wait for the host's reply.";
const OPERATOR: &str = "Only the operator of this server can release it; ask them.";

/// Explains a recipient that is neither delivered nor given up.
pub(crate) fn waiting(recipient: &RecipientDelivery, now: Timestamp) -> Explanation {
    let wait = recipient.waits_for.as_ref();
    if wait.is_some_and(|wait| wait.is_overdue_release(now)) {
        return overdue_release();
    }
    let (reason, advice, next_step) = match wait {
        Some(wait) => reason(wait, recipient),
        None => (None, RETRIED, None),
    };
    Explanation {
        standing: DeliveryState::Waiting,
        place: place(recipient, wait),
        reason,
        next_try_at: recipient.next_attempt_at.or(wait.and_then(|wait| wait.until)),
        last_words: None,
        advice: advice.into(),
        next_step,
    }
}

/// A release stores the whole message, so it waits while the store refuses new mail.
fn overdue_release() -> Explanation {
    Explanation {
        standing: DeliveryState::Waiting,
        place: "It is due, and waits until the server can store new mail (its disk may be full).".into(),
        reason: None,
        next_try_at: None,
        last_words: None,
        advice: "Nothing to do: it is sent as soon as the server can store it.".into(),
        next_step: None,
    }
}

fn place(recipient: &RecipientDelivery, wait: Option<&WaitReason>) -> String {
    match (wait.map(|wait| wait.cause.as_str()), recipient.attempts) {
        (Some("scheduled_at"), _) => "It is scheduled and waits for its time.".into(),
        (Some("reply"), _) => "It is being delivered right now.".into(),
        (_, 0) => "It is in the queue and has not been attempted yet.".into(),
        (_, 1) => "It is in the queue after 1 attempt.".into(),
        (_, n) => format!("It is in the queue after {n} attempts."),
    }
}

fn reason(wait: &WaitReason, recipient: &RecipientDelivery) -> (Option<String>, &'static str, Option<NextStep>) {
    let ahead = match wait.place {
        None | Some(0) => String::new(),
        Some(1) => " One other email is ahead of it.".to_owned(),
        Some(n) => format!(" {n} other emails are ahead of it."),
    };
    let sentence = |text: &str| Some(format!("{text}{ahead}"));
    match wait.cause.as_str() {
        "scheduled_at" => (None, "Nothing to do. You can reschedule or cancel it.", Some(NextStep::Reschedule)),
        "not_allowed" => (
            sentence(
                "It cannot be sent at the moment: the sending domain is not verified, or the plan's quota is used up.",
            ),
            "Verify the domain, or change the plan; it is then sent automatically.",
            Some(NextStep::CheckDomain),
        ),
        "held" => (sentence("The operator of this server is holding it."), OPERATOR, None),
        "account_suspended" => (sentence("Your account is suspended."), OPERATOR, None),
        "queue_held" => (sentence("The queue is held because a backup was restored."), OPERATOR, None),
        "paused" => (sentence("The operator has paused all delivery."), OPERATOR, None),
        "suspended" => (sentence("The operator has paused delivery to this destination."), OPERATOR, None),
        "schedule" if recipient.lacks_mail_host() => (
            Some("The mail hosts of the recipient's domain could not be determined or used.".into()),
            LOOKED_UP_AGAIN,
            None,
        ),
        "schedule" => (retry_reason(recipient), RETRIED, None),
        "resting" => (sentence("The destination pushed back, so nothing is sent to it for a while."), RETRIED, None),
        "unreachable" => (sentence("None of the recipient's mail hosts can be reached."), RETRIED, None),
        "rate" => (sentence("The destination accepts only a limited number of emails per second."), SOON, None),
        "warm_up" => (
            sentence(
                "The sending IP address is being warmed up, so only a limited number of emails per day go to \
                this provider.",
            ),
            SOON,
            None,
        ),
        "connections" => (sentence("All connections that the destination permits are busy."), SOON, None),
        "turn" => (sentence("It is next for a connection."), SOON, None),
        "reply" => (Some("The recipient's mail host has not answered yet.".into()), IN_ATTEMPT, None),
        "look_up" => (Some("The recipient's mail hosts are being looked up.".into()), SOON, None),
        "memory" => (sentence("Many emails are due at once; it is stored until it is its turn."), SOON, None),
        "other_node" => (Some("Another node of this server delivers it.".into()), RETRIED, None),
        _ => (Some(format!("It waits for: {}.", wait.text)), RETRIED, None),
    }
}

fn retry_reason(recipient: &RecipientDelivery) -> Option<String> {
    let reply = recipient.last_response.as_ref();
    match reply.and_then(SmtpResponse::cause) {
        Some(cause) => Some(cause.sentence().to_owned()),
        None if reply.is_some() => Some("The recipient's mail host deferred it.".into()),
        None if recipient.error.is_some() => {
            Some("The recipient's mail host could not be reached, or dropped the connection.".into())
        }
        None => None,
    }
}
