//! The log line of a finished attempt: the reply or the error, and when the next attempt is due.
//!
//! One line for each attempt, at INFO. With a lower log level the cost is one comparison; at INFO most replies need no
//! allocation.

use message::reply::SmtpReply;
use model::log_text;
use model::task::Task;

use crate::delivery::outcome::{AttemptResult, NextAction};

pub(crate) fn log_attempt(task: &Task, attempted: &AttemptResult, next: &NextAction) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let (word, next_attempt_at) = match next {
        NextAction::Delivered => ("delivered", None),
        NextAction::Retry { at } => ("deferred", Some(*at)),
        NextAction::Bounce { .. } => ("bounced", None),
        NextAction::Fail { .. } => ("failed", None),
    };
    let (reply, error) = (attempted.outcome.reply(), attempted.outcome.error());
    let text = reply.map(SmtpReply::text);
    let number = if attempted.is_untried { task.attempts } else { task.attempts.saturating_add(1) };
    tracing::info!(
        email.id = %task.id.email,
        recipient = task.id.recipient,
        domain = task.address.domain().as_str(),
        to = log_text::shows_addresses().then(|| tracing::field::display(&task.address)),
        host = attempted.mx_host.as_deref(),
        ip = attempted.ip.map(tracing::field::display),
        attempt = number,
        code = reply.map(|reply| reply.code),
        enhanced = reply.and_then(|reply| reply.enhanced).map(tracing::field::display),
        text = text.as_deref(),
        error = error.as_deref(),
        next_attempt_at = next_attempt_at.map(tracing::field::display),
        "{word}"
    );
}
