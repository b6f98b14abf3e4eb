//! What a sender is to be told of a recipient: that it was given up, or came back after it was delivered; and,
//! where the client asked for it (RFC 3461 4.1), that it was delivered, or is late. Decided when the recipient is
//! settled, or when the report of its bounce comes back, and written in that commit as a notice;
//! [`crate::report`] tells it.
//!
//! Only mail that came in by SMTP is answered, and never a notification itself: it has the null reverse path.

use jiff::Timestamp;
use mail::email::{Email, Ingress};
use mail::notice::{DsnAction, PendingDsn};
use mail::outcome::Outcome;
use mail::recipient::Recipient;
use mail::returned::BounceDetail;
use mail::task::{DELAY_REPORT_AFTER, Task};

use crate::settle::{AttemptResult, NextAction};
use crate::worker::Worker;

/// What the sender is to be told, if anything.
fn dsn_action(task: &Task, next: &NextAction, now: Timestamp) -> Option<DsnAction> {
    match next {
        NextAction::Bounce { .. } | NextAction::Fail { .. } => task.notify.wants_failure().then_some(DsnAction::Failed),
        NextAction::Delivered => task.notify.success.then_some(DsnAction::Relayed),
        NextAction::Retry { .. } => is_delay_dsn_due(task, now).then_some(DsnAction::Delayed(task.expires_at)),
    }
}

/// Whether the sender hears now that it is late: once, whatever comes of that.
pub(crate) fn is_delay_dsn_due(task: &Task, now: Timestamp) -> bool {
    task.notify.delay && now.duration_since(task.accepted_at).unsigned_abs() >= DELAY_REPORT_AFTER
}

/// Whether anybody is told what becomes of an email.
pub(crate) fn sends_dsn(email: &Email) -> bool {
    matches!(email.door, Ingress::Submission | Ingress::Relay) && email.reverse_path.is_some()
}

/// The notice that what comes next for this recipient calls for, if any.
pub(crate) async fn dsn_for_outcome(
    worker: &Worker,
    task: &Task,
    attempted: &AttemptResult,
    next: &NextAction,
    now: Timestamp,
) -> Option<PendingDsn> {
    let action = dsn_action(task, next, now)?;
    match store::email::get_without_recipients(&worker.store, task.account, task.id.email).await {
        Ok(Some(email)) if sends_dsn(&email) => {}
        Ok(_) => return None,
        // Who is told is looked at again when it is: nothing is lost.
        Err(error) => tracing::warn!(%error, email.id = %task.id.email, "an email cannot be read"),
    }
    // What we say in the destination's stead no host has said.
    let verdict = attempted.outcome.verdict();
    Some(PendingDsn {
        recipient: task.id.recipient,
        address: task.address.clone(),
        action,
        original_recipient: task.notify.original_recipient.clone(),
        reply: attempted.outcome.reply().or(verdict).cloned(),
        remote_host: attempted.mx_host.clone().filter(|_| verdict.is_none()),
        explanation: dsn_explanation(attempted, next),
        accepted_at: task.accepted_at,
        last_attempt_at: now,
        smtputf8: task.smtputf8,
    })
}

/// The notice of a bounce of what was delivered, if its sender is to have one.
pub(crate) fn dsn_for_bounce(
    email: &Email,
    recipient: &Recipient,
    failure: &BounceDetail,
    now: Timestamp,
) -> Option<PendingDsn> {
    if !sends_dsn(email) || !recipient.notify.wants_failure() {
        return None;
    }
    let host = failure.host.clone().or_else(|| recipient.mx_host.clone());
    let mut explanation = "It was taken there first, and was reported as undeliverable later.".to_owned();
    // A code that nobody said is not quoted.
    let reply = (failure.has_code || failure.reply.enhanced.is_some()).then(|| failure.reply.clone());
    if reply.is_none() {
        explanation.push_str(" The report says: ");
        explanation.push_str(&failure.diagnostic);
    }
    Some(PendingDsn {
        recipient: recipient.index,
        address: recipient.address.clone(),
        action: DsnAction::Failed,
        original_recipient: recipient.notify.original_recipient.clone(),
        reply,
        remote_host: host,
        explanation,
        accepted_at: email.created_at,
        last_attempt_at: recipient.delivered_at.unwrap_or(now),
        smtputf8: recipient.address.needs_smtputf8(),
    })
}

fn dsn_explanation(attempted: &AttemptResult, next: &NextAction) -> String {
    let untold = match &attempted.outcome {
        // What a report says of our verdicts for good stands in its fields.
        Outcome::Undeliverable(_) => None,
        outcome => outcome.error(),
    };
    match (&attempted.outcome, untold, next) {
        (_, _, NextAction::Delivered) => "You will hear of it again only if it comes back.".to_owned(),
        (_, Some(text), NextAction::Retry { .. }) => {
            format!("It is tried again and again. The last attempt: {text}")
        }
        (_, None, NextAction::Retry { .. }) => "The destination puts it off; it is tried again and again.".to_owned(),
        (_, Some(text), _) => format!("It was tried until its time was up. The last attempt: {text}"),
        (_, None, NextAction::Bounce { soft: true, .. }) => {
            "The destination put it off until its time was up.".to_owned()
        }
        (Outcome::Undeliverable(_), ..) => "It cannot be delivered; it will not be tried again.".to_owned(),
        _ => "It was refused for good; it will not be tried again.".to_owned(),
    }
}
