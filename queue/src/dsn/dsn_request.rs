//! DSN requests: for which recipients a delivery status notification (RFC 3464) is due.
//!
//! A DSN is requested when a recipient is given up, or when a bounce report arrives after delivery. It is also
//! requested on delivery or delay if the client requested that (RFC 3461 4.1). The request is a [`PendingDsn`] row
//! in the same commit as the outcome; [`crate::dsn::dsn_builder`] builds and sends the message.
//!
//! Only mail submitted by SMTP with a reverse path is reported. DSNs themselves have the null reverse path and are
//! never reported.

use jiff::Timestamp;
use message::bounce::BounceDetail;
use message::outcome::Outcome;
use message::pending_dsn::{DsnAction, PendingDsn};
use model::email::{Email, Ingress};
use model::recipient::Recipient;
use model::task::{DELAY_REPORT_AFTER, Task};
use store::engine::Store;

use crate::delivery::outcome::{AttemptResult, NextAction};

/// Returns the DSN action that the next action calls for, if the recipient's NOTIFY options ask for it.
fn dsn_action(task: &Task, next: &NextAction, now: Timestamp) -> Option<DsnAction> {
    match next {
        NextAction::Bounce { .. } | NextAction::Fail { .. } => task.notify.wants_failure().then_some(DsnAction::Failed),
        NextAction::Delivered => task.notify.success.then_some(DsnAction::Relayed),
        NextAction::Retry { .. } => is_delay_dsn_due(task, now).then_some(DsnAction::Delayed(task.expires_at)),
    }
}

/// True if a delay DSN is due: the client requested it and the mail is older than [`DELAY_REPORT_AFTER`].
pub(crate) fn is_delay_dsn_due(task: &Task, now: Timestamp) -> bool {
    task.notify.delay && now.duration_since(task.accepted_at).unsigned_abs() >= DELAY_REPORT_AFTER
}

/// True if an email can have DSNs: it was submitted by SMTP and has a reverse path.
pub(crate) fn sends_dsn(email: &Email) -> bool {
    matches!(email.ingress, Ingress::Submission | Ingress::Relay) && email.reverse_path.is_some()
}

/// Returns the DSN request for a recipient's next action, if one is due.
pub(crate) async fn dsn_for_outcome(
    store: &Store,
    task: &Task,
    attempted: &AttemptResult,
    next: &NextAction,
    now: Timestamp,
) -> Option<PendingDsn> {
    let action = dsn_action(task, next, now)?;
    match store::email::get_without_recipients(store, task.account, task.id.email).await {
        Ok(Some(email)) if sends_dsn(&email) => {}
        Ok(_) => return None,
        // The DSN builder reads the email again, so a read error here loses nothing.
        Err(error) => tracing::warn!(%error, email.id = %task.id.email, "cannot read the email of a DSN"),
    }
    // A verdict is a reply written by this server, so no remote host is named for it.
    let verdict = attempted.outcome.verdict();
    Some(PendingDsn {
        recipient: task.id.recipient,
        address: task.address.clone(),
        action,
        original_recipient: task.notify.original_recipient.clone(),
        expired: action == DsnAction::Failed && is_retried(&attempted.outcome),
        reply: attempted.outcome.reply().or(verdict).cloned(),
        remote_host: attempted.mx_host.clone().filter(|_| verdict.is_none()),
        explanation: dsn_explanation(attempted, next),
        accepted_at: task.accepted_at,
        last_attempt_at: now,
        smtputf8: task.smtputf8,
    })
}

/// Returns the DSN request for a bounce that was reported after delivery, if its sender requested one.
pub fn dsn_for_bounce(
    email: &Email,
    recipient: &Recipient,
    failure: &BounceDetail,
    now: Timestamp,
) -> Option<PendingDsn> {
    if !sends_dsn(email) || !recipient.notify.wants_failure() {
        return None;
    }
    let host = failure.host.clone().or_else(|| recipient.mx_host.clone());
    let mut explanation = "The remote server accepted the message and later reported it as undeliverable.".to_owned();
    // Quote a reply only if the report contained a code.
    let reply = (failure.has_code || failure.reply.enhanced.is_some()).then(|| failure.reply.clone());
    if reply.is_none() {
        explanation.push_str(" Report: ");
        explanation.push_str(&failure.diagnostic);
    }
    Some(PendingDsn {
        recipient: recipient.index,
        address: recipient.address.clone(),
        action: DsnAction::Failed,
        original_recipient: recipient.notify.original_recipient.clone(),
        expired: false,
        reply,
        remote_host: host,
        explanation,
        accepted_at: email.created_at,
        last_attempt_at: recipient.delivered_at.unwrap_or(now),
        smtputf8: recipient.address.needs_smtputf8(),
    })
}

/// True for an outcome after which only expiry ends delivery. A missing TLS has a status code of its own (RFC 8689 5).
fn is_retried(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Deferred(_) | Outcome::Unreachable(_) | Outcome::Unconfirmed(_))
}

fn dsn_explanation(attempted: &AttemptResult, next: &NextAction) -> String {
    let error = match &attempted.outcome {
        // The DSN's own fields carry a permanent verdict.
        Outcome::Undeliverable(_) => None,
        outcome => outcome.error(),
    };
    match (&attempted.outcome, error, next) {
        (_, _, NextAction::Delivered) => "You will be notified again only if the message bounces.".to_owned(),
        (_, Some(text), NextAction::Retry { .. }) => {
            format!("Delivery will be retried. Last attempt: {text}")
        }
        (_, None, NextAction::Retry { .. }) => {
            "The destination deferred the message; delivery will be retried.".to_owned()
        }
        (_, Some(text), _) => format!("Delivery was retried until the message expired. Last attempt: {text}"),
        (_, None, NextAction::Bounce { soft: true, .. }) => {
            "The destination deferred the message until it expired.".to_owned()
        }
        (Outcome::Undeliverable(_), ..) => "The message cannot be delivered and will not be retried.".to_owned(),
        _ => "The message was permanently rejected and will not be retried.".to_owned(),
    }
}
