//! Outcome of an attempt: decides the next action and builds the commit for it. Pure.
//!
//! ```text
//! Outcome ─► NextAction ─► [ task removed or rescheduled + recipient + attempt + event + suppression ]
//! ```
//!
//! The commit checks the partition's epoch and the task's row, so an attempt is recorded once and by the partition's
//! owner. A 5yz about the recipient is a bounce; a 5yz about the sender is a failure. Expiry
//! after a 4yz reply of the destination is a soft bounce; expiry without any reply is a failure.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use message::classify::{BounceClass, classify};
use message::outcome::{AttemptPhase, Outcome};
use message::reply::{Severity, SmtpReply};
use model::attempt::{Attempt, AttemptTls};
use model::event::{Event, EventKind};
use model::id::EventId;
use model::recipient::{Recipient, RecipientState};
use model::suppression::{SmtpDiagnostic, Suppression, SuppressionCause, SuppressionReason, SuppressionSource};
use model::task::Task;
use model::{simulator, timestamp};
use serde_json::json;
use store::engine::{Batch, Value};

use crate::delivery::retry_schedule::RetrySchedule;
use crate::dsn::dsn_request;
use crate::scheduler::ready_queue::DeliveryObstacle;

/// Failure reason of a permanent rejection that is about the sender.
const REJECTED_REASON: &str = "rejected";

/// Result of a finished attempt.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    pub outcome: Outcome,
    /// Phase in which the attempt ended.
    pub phase: AttemptPhase,
    pub began_at: Timestamp,
    pub duration: Duration,
    pub mx_host: Option<String>,
    /// IP address of the host.
    pub ip: Option<IpAddr>,
    /// Local source address.
    pub source: Option<IpAddr>,
    pub tls: Option<AttemptTls>,
    /// Transcript of the SMTP session.
    pub transcript: String,
    /// True if no attempt was made because the task expired while it waited.
    pub is_untried: bool,
    /// Reply to an earlier attempt, where this one had none.
    pub earlier_reply: Option<SmtpReply>,
}

impl AttemptResult {
    /// Error text with the name of the host.
    pub(crate) fn error_text(&self) -> String {
        let diagnostic = self.diagnostic();
        match &self.mx_host {
            Some(host) if !diagnostic.contains(host.as_str()) => format!("{host}: {diagnostic}"),
            _ => diagnostic,
        }
    }

    /// Reply of the host, or the error if there was none.
    pub(crate) fn diagnostic(&self) -> String {
        let reply = || self.outcome.reply().map(ToString::to_string).unwrap_or_default();
        self.outcome.error().map_or_else(reply, Cow::into_owned)
    }

    /// Last reply of a host, to this or an earlier attempt.
    fn last_reply(&self) -> Option<&SmtpReply> {
        self.outcome.reply().or(self.earlier_reply.as_ref())
    }

    /// Classifies a reply by host, codes, text and phase.
    fn classify_reply(&self, reply: &SmtpReply) -> BounceClass {
        classify(self.mx_host.as_deref(), reply, self.phase)
    }
}

/// Next action for a recipient after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAction {
    /// Delivered; no further action.
    Delivered,
    /// Another attempt is scheduled.
    Retry { at: Timestamp },
    /// The recipient's server rejects the recipient or message permanently.
    Bounce {
        reason: BounceClass,
        /// The message was deferred until it expired, or the class is temporary.
        soft: bool,
    },
    /// Permanent failure that is not about the recipient.
    Fail {
        /// `expired`, `dns_error`, `tls_required`, `rejected`, `unconfirmed`.
        reason: &'static str,
    },
}

/// Decides the next action after an attempt.
pub fn decide_next_action(
    task: &Task,
    attempted: &AttemptResult,
    schedule: &RetrySchedule,
    now: Timestamp,
    seed: u64,
) -> NextAction {
    let time_is_up =
        |replies: u32, reason: &'static str| match schedule.next_attempt(task.attempts + 1, now, task.expires_at, seed)
        {
            Some(at) => NextAction::Retry { at },
            None if replies > 0 => {
                let reason = attempted
                    .outcome
                    .reply()
                    .map_or(BounceClass::Undetermined, |reply| attempted.classify_reply(reply));
                let reason = if reason.is_about_recipient() { reason } else { BounceClass::Undetermined };
                NextAction::Bounce { reason, soft: true }
            }
            None => NextAction::Fail { reason },
        };
    match &attempted.outcome {
        Outcome::Delivered(_) => NextAction::Delivered,
        Outcome::Withheld(_) => time_is_up(task.replies, "tls_required"),
        Outcome::Deferred(_) | Outcome::Unreachable(_) if attempted.phase == AttemptPhase::Tls => {
            time_is_up(task.replies, "tls_required")
        }
        // A reply before MAIL is about this host, not about the recipient.
        Outcome::Deferred(_) if !is_about_message(attempted.phase) => time_is_up(task.replies, "expired"),
        Outcome::Deferred(_) => time_is_up(task.replies + 1, "expired"),
        Outcome::Unconfirmed(_) => time_is_up(task.replies, "unconfirmed"),
        Outcome::Unreachable(_) if attempted.phase == AttemptPhase::Dns => time_is_up(task.replies, "dns_error"),
        Outcome::Unreachable(_) => time_is_up(task.replies, "expired"),
        // A routing loop is not about the address.
        Outcome::Undeliverable(reply) if is_routing_loop(reply) => NextAction::Fail { reason: "dns_error" },
        // A verdict of this server about the message and the host's capabilities is not about the recipient.
        Outcome::Undeliverable(reply) if attempted.phase != AttemptPhase::Dns && !is_requiretls_failure(reply) => {
            NextAction::Fail { reason: REJECTED_REASON }
        }
        Outcome::Failed(reply) | Outcome::Undeliverable(reply) => {
            decide_rejection(reply, attempted.classify_reply(reply))
        }
    }
}

/// Decides the next action after a permanent rejection of this class.
pub fn decide_rejection(reply: &SmtpReply, reason: BounceClass) -> NextAction {
    match reason {
        BounceClass::Undetermined if is_routing_loop(reply) => NextAction::Fail { reason: "dns_error" },
        // A 4yz classified as permanent is a soft bounce, unless the user does not exist.
        reason if reason.is_about_recipient() => NextAction::Bounce {
            reason,
            soft: reply.severity() == Severity::Transient && reason != BounceClass::UnknownUser,
        },
        _ if is_requiretls_failure(reply) => NextAction::Fail { reason: "tls_required" },
        _ => NextAction::Fail { reason: REJECTED_REASON },
    }
}

/// True for a routing loop (RFC 3463 3.5).
fn is_routing_loop(reply: &SmtpReply) -> bool {
    reply.enhanced.is_some_and(|enhanced| (enhanced.subject, enhanced.detail) == (4, 6))
}

/// True if REQUIRETLS cannot be satisfied (RFC 8689 5).
fn is_requiretls_failure(reply: &SmtpReply) -> bool {
    reply.enhanced.is_some_and(|enhanced| (enhanced.subject, enhanced.detail) == (7, 30))
}

fn is_about_message(phase: AttemptPhase) -> bool {
    matches!(phase, AttemptPhase::Mail | AttemptPhase::Rcpt | AttemptPhase::Data | AttemptPhase::Final)
}

/// Returns the task as rescheduled for its next attempt.
#[must_use]
pub fn rescheduled_task(task: &Task, attempted: &AttemptResult, at: Timestamp, now: Timestamp) -> Task {
    let has_reply = matches!(attempted.outcome, Outcome::Deferred(_)) && is_about_message(attempted.phase);
    let mut rescheduled =
        Task { due: at, attempts: task.attempts + 1, replies: task.replies + u32::from(has_reply), ..task.clone() };
    // The delay DSN is sent once.
    rescheduled.notify.delay &= !dsn_request::is_delay_dsn_due(task, now);
    rescheduled
}

/// The reason for which a final action suppresses the address.
pub fn suppression_reason(next: &NextAction) -> Option<SuppressionReason> {
    match next {
        NextAction::Bounce { soft: false, reason } if reason.is_permanent() => Some(SuppressionReason::HardBounce),
        NextAction::Bounce { .. } => Some(SuppressionReason::SoftBounce),
        NextAction::Fail { reason: REJECTED_REASON } => Some(SuppressionReason::SmtpFailure),
        _ => None,
    }
}

/// Returns the suppression cause of a final action: a bounce, or a rejection that is about
/// the sender. A failure without a reply of the host suppresses nothing, nor do addresses of the [`simulator`].
pub fn suppression_cause(task: &Task, attempted: &AttemptResult, next: &NextAction) -> Option<SuppressionCause> {
    if simulator::is_simulated(&task.address) {
        return None;
    }
    let reason = suppression_reason(next)?;
    if reason == SuppressionReason::SmtpFailure && matches!(attempted.outcome, Outcome::Undeliverable(_)) {
        return None;
    }
    let mut grounds =
        SuppressionCause::new(task.address.clone(), reason, SuppressionSource::System).with_email(task.id.email);
    let text_only = |text: Cow<'_, str>| SmtpDiagnostic {
        smtp_code: None,
        enhanced_code: None,
        diagnostic: message::reply::truncate_diagnostic(&text),
    };
    grounds.detail =
        attempted.outcome.error().map(text_only).or_else(|| attempted.outcome.reply().map(SmtpDiagnostic::from));
    Some(grounds)
}

/// Builds the commit of an attempt's outcome: the task removed or rescheduled, the recipient, the attempt and the
/// event. The event names the current suppression. Returns the event too, for the cache of recent events.
pub fn outcome_batch(
    task: &Task,
    row: Option<&Value>,
    attempted: &AttemptResult,
    next: &NextAction,
    suppression: Option<&Suppression>,
    now: Timestamp,
    event: EventId,
) -> (Batch, Event) {
    let mut batch = Batch::progress();
    store::task::remove(&mut batch, task, row);
    let next_attempt_at = match next {
        NextAction::Retry { at } => {
            store::task::put(&mut batch, &rescheduled_task(task, attempted, *at, now));
            Some(*at)
        }
        _ => None,
    };
    let (state, kind) = match next {
        NextAction::Delivered => (RecipientState::Delivered, EventKind::Delivered),
        NextAction::Retry { .. } => (RecipientState::Deferred, EventKind::DeliveryDelayed),
        NextAction::Bounce { .. } => (RecipientState::Bounced, EventKind::Bounced),
        NextAction::Fail { .. } => (RecipientState::Failed, EventKind::Failed),
    };
    let recipient = Recipient {
        index: task.id.recipient,
        address: task.address.clone(),
        kind: task.kind,
        state,
        attempts: task.attempts + u32::from(!attempted.is_untried),
        last_response: attempted.last_reply().cloned(),
        error: attempted.outcome.error().map(Cow::into_owned),
        mx_host: attempted.mx_host.clone(),
        last_event: (kind, now),
        delivered_at: (state == RecipientState::Delivered).then_some(now),
        bounced_at: (state == RecipientState::Bounced).then_some(now),
        complained_at: None,
        next_attempt_at,
        notify: task.notify.clone(),
    };
    store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
    if !attempted.is_untried {
        let attempt = attempt_record(task, attempted, next_attempt_at);
        store::attempt::put(&mut batch, task.account, task.id.email, &attempt);
    }
    let detail = event_data(task, attempted, next, suppression);
    let event = Event::new(event, task.account, task.id.email, kind, now, detail);
    let event = Event { recipient: Some(task.address.clone()), ..event };
    store::event::record(&mut batch, &event, task.partition);
    (batch, event)
}

/// Builds the delay event of an email that waits because of an obstacle at its destination.
pub(crate) fn delayed_event(task: &Task, obstacle: &DeliveryObstacle, now: Timestamp, event: EventId) -> Event {
    let detail = json!({"delay": {
        "smtp_code": null,
        "enhanced_code": null,
        "diagnostic": obstacle.reason,
        "attempt": task.attempts,
        "next_attempt_at": timestamp::to_rfc3339(obstacle.until.min(task.expires_at)),
        "expires_at": timestamp::to_rfc3339(task.expires_at),
        "unconfirmed": false,
    }});
    let event = Event::new(event, task.account, task.id.email, EventKind::DeliveryDelayed, now, detail);
    Event { recipient: Some(task.address.clone()), ..event }
}

fn attempt_record(task: &Task, attempted: &AttemptResult, next_attempt_at: Option<Timestamp>) -> Attempt {
    let error = match &attempted.outcome {
        Outcome::Unconfirmed(text) => Some(format!("it may have arrived: {text}")),
        outcome => outcome.error().map(Cow::into_owned),
    };
    Attempt {
        recipient: task.id.recipient,
        number: task.attempts + 1,
        created_at: attempted.began_at,
        duration_ms: millis(attempted.duration),
        phase: attempted.phase,
        mx_host: attempted.mx_host.clone(),
        ip: attempted.ip,
        source: attempted.source,
        tls: attempted.tls.clone(),
        reply: attempted.outcome.reply().cloned(),
        error,
        transcript: attempted.transcript.clone(),
        next_attempt_at,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Builds the event's data, as webhooks show it.
fn event_data(
    task: &Task,
    attempted: &AttemptResult,
    next: &NextAction,
    suppression: Option<&Suppression>,
) -> serde_json::Value {
    let suppression_id = suppression.map(|suppression| suppression.id);
    let suppressed_until = suppression.and_then(|suppression| suppression.expires_at).map(timestamp::to_rfc3339);
    let reply = attempted.outcome.reply();
    let code = reply.map(|r| r.code);
    let enhanced = reply.and_then(|r| r.enhanced);
    let diagnostic = attempted.diagnostic();
    // A verdict of this server has no SMTP code of a host.
    let answer = attempted.last_reply().filter(|_| attempted.outcome.verdict().is_none());
    let kind = if attempted.outcome.verdict().is_some() { "x-postrider" } else { "smtp" };
    match next {
        NextAction::Delivered => json!({"delivery": {
            "mx_host": attempted.mx_host,
            "smtp_response": reply.map(SmtpReply::to_string),
            "tls": attempted.tls.as_ref().map(|tls| tls.version.as_str()),
            "attempts": task.attempts + 1,
            "duration_ms": millis(attempted.duration),
        }}),
        NextAction::Retry { at } => json!({"delay": {
            "smtp_code": code,
            "enhanced_code": enhanced,
            "diagnostic": diagnostic,
            "attempt": task.attempts + 1,
            "next_attempt_at": timestamp::to_rfc3339(*at),
            "expires_at": timestamp::to_rfc3339(task.expires_at),
            "unconfirmed": matches!(attempted.outcome, Outcome::Unconfirmed(_)),
        }}),
        NextAction::Bounce { reason, soft } => json!({"bounce_reason": diagnostic, "bounce": {
            "type": if *soft { "soft" } else { "hard" },
            "category": reason,
            "smtp_code": answer.map(|r| r.code),
            "enhanced_code": answer.and_then(|r| r.enhanced),
            "diagnostic": format!("{kind}; {diagnostic}"),
            "mx_host": attempted.mx_host,
            "async": false,
        }, "suppression_id": suppression_id, "suppressed_until": suppressed_until}),
        NextAction::Fail { reason } => json!({
            "failure": {"reason": reason, "message": diagnostic, "smtp_code": code},
            "suppression_id": suppression_id,
            "suppressed_until": suppressed_until,
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use message::reply::Enhanced;
    use model::id::{AccountId, EmailId};
    use model::recipient::{DsnOptions, RecipientKind};
    use model::task::{TaskClass, TaskId};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The recipient of a queued task.
    pub(crate) fn queued_recipient(task: &Task) -> Recipient {
        Recipient {
            index: task.id.recipient,
            address: task.address.clone(),
            kind: RecipientKind::To,
            state: RecipientState::Queued,
            attempts: 0,
            last_response: None,
            error: None,
            mx_host: None,
            last_event: (model::event::EventKind::Sent, task.accepted_at),
            delivered_at: None,
            bounced_at: None,
            complained_at: None,
            next_attempt_at: Some(task.due),
            notify: task.notify.clone(),
        }
    }

    /// A task created and due in the first second.
    pub(crate) fn task() -> Task {
        Task {
            id: TaskId { email: EmailId::new(at(1), 1), recipient: 0 },
            partition: 0,
            account: AccountId::new(at(1), 1),
            class: TaskClass::Transactional,
            due: at(1),
            address: "a@example.net".parse().unwrap(),
            kind: RecipientKind::To,
            domain: None,
            attempts: 0,
            replies: 0,
            accepted_at: at(1),
            expires_at: at(1_000),
            has_deadline: false,
            size_bytes: 1,
            smtputf8: false,
            require_tls: false,
            tls_optional: false,
            tls_enforced: false,
            eight_bit: false,
            notify: DsnOptions::default(),
            envelope_id: None,
            return_full: false,
            deliver_by: None,
            priority: None,
            held: false,
            route: None,
            plan: None,
        }
    }

    fn attempted(outcome: Outcome, phase: AttemptPhase) -> AttemptResult {
        AttemptResult {
            outcome,
            phase,
            began_at: at(10),
            duration: Duration::from_millis(5),
            mx_host: Some("mx.example.net".into()),
            ip: None,
            source: None,
            tls: None,
            transcript: String::new(),
            is_untried: false,
            earlier_reply: None,
        }
    }

    fn reply(code: u16, enhanced: (u8, u16, u16)) -> SmtpReply {
        SmtpReply::new(code, Enhanced::new(enhanced.0, enhanced.1, enhanced.2), "text")
    }

    fn next(task: &Task, outcome: Outcome, phase: AttemptPhase, now: i64) -> NextAction {
        decide_next_action(task, &attempted(outcome, phase), &RetrySchedule::default(), at(now), 0)
    }

    #[test]
    fn every_outcome_has_a_next_action() {
        let first_attempt = task();
        let retried = Task { replies: 1, attempts: 1, ..task() };
        let retry = NextAction::Retry { at: at(10 + 60) };
        let deferred = || Outcome::Deferred(reply(451, (4, 7, 1)));
        let unreachable = || Outcome::Unreachable("refused".into());
        assert_eq!(
            next(&first_attempt, Outcome::Delivered(reply(250, (2, 0, 0))), AttemptPhase::Final, 10),
            NextAction::Delivered
        );
        assert_eq!(next(&first_attempt, deferred(), AttemptPhase::Rcpt, 10), retry);
        assert_eq!(next(&first_attempt, unreachable(), AttemptPhase::Connect, 10), retry);
        assert_eq!(next(&first_attempt, Outcome::Unconfirmed("lost".into()), AttemptPhase::Final, 10), retry);
        let soft = NextAction::Bounce { reason: BounceClass::Undetermined, soft: true };
        assert_eq!(next(&first_attempt, deferred(), AttemptPhase::Rcpt, 1_000), soft);
        assert_eq!(next(&retried, unreachable(), AttemptPhase::Connect, 1_000), soft);
        assert_eq!(
            next(&first_attempt, unreachable(), AttemptPhase::Connect, 1_000),
            NextAction::Fail { reason: "expired" }
        );
        assert_eq!(
            next(&first_attempt, unreachable(), AttemptPhase::Dns, 1_000),
            NextAction::Fail { reason: "dns_error" }
        );
        let hard = NextAction::Bounce { reason: BounceClass::UnknownUser, soft: false };
        assert_eq!(next(&first_attempt, Outcome::Failed(reply(550, (5, 1, 1))), AttemptPhase::Rcpt, 10), hard);
        let rejected = NextAction::Fail { reason: "rejected" };
        assert_eq!(next(&first_attempt, Outcome::Failed(reply(550, (5, 7, 26))), AttemptPhase::Final, 10), rejected);
        // Replies classified differently from their code.
        let reply_with = |code, enhanced, text| SmtpReply::new(code, Enhanced::new(enhanced, 2, 0), text);
        let permanent = Outcome::Failed(reply_with(450, 4, "mailbox disabled"));
        assert_eq!(
            next(&first_attempt, permanent, AttemptPhase::Rcpt, 10),
            NextAction::Bounce { reason: BounceClass::Inactive, soft: true }
        );
        let permanent = Outcome::Failed(reply_with(450, 4, "user unknown"));
        assert_eq!(next(&first_attempt, permanent, AttemptPhase::Rcpt, 10), hard);
        assert_eq!(
            next(&first_attempt, Outcome::Deferred(reply_with(550, 5, "not now")), AttemptPhase::Rcpt, 10),
            retry
        );
        let loop_failure = NextAction::Fail { reason: "dns_error" };
        assert_eq!(
            next(&first_attempt, Outcome::Undeliverable(reply(550, (5, 4, 6))), AttemptPhase::Dns, 10),
            loop_failure
        );
        assert_eq!(next(&first_attempt, Outcome::Failed(reply(550, (5, 4, 6))), AttemptPhase::Rcpt, 10), loop_failure);
        // Some hosts use this code for other rejections.
        let odd = SmtpReply::new(550, Enhanced::new(5, 4, 6), "Unusual sending activity detected");
        assert_eq!(
            next(&first_attempt, Outcome::Failed(odd), AttemptPhase::Rcpt, 10),
            NextAction::Fail { reason: "rejected" }
        );
        let none = NextAction::Bounce { reason: BounceClass::DomainNotFound, soft: false };
        assert_eq!(next(&first_attempt, Outcome::Undeliverable(reply(556, (5, 1, 10))), AttemptPhase::Dns, 10), none);
    }

    #[test]
    fn final_actions_suppress_by_their_cause() {
        let task = task();
        let cause = |outcome: Outcome, phase, now| {
            let attempted = attempted(outcome, phase);
            let next = decide_next_action(&task, &attempted, &RetrySchedule::default(), at(now), 0);
            suppression_cause(&task, &attempted, &next)
        };
        use SuppressionReason as R;
        let reason = |outcome, phase, now| cause(outcome, phase, now).map(|grounds| grounds.reason);
        let hard = cause(Outcome::Failed(reply(550, (5, 1, 1))), AttemptPhase::Rcpt, 10).unwrap();
        let refused = attempted(Outcome::Failed(reply(550, (5, 1, 1))), AttemptPhase::Rcpt);
        let next = decide_next_action(&task, &refused, &RetrySchedule::default(), at(10), 0);
        let simulated = Task { address: "bounced@simulator.postrider.test".parse().unwrap(), ..task.clone() };
        assert_eq!(suppression_cause(&simulated, &refused, &next), None);
        assert_eq!((hard.reason, hard.email), (R::HardBounce, Some(task.id.email)));
        assert_eq!(hard.detail.unwrap().smtp_code, Some(550));
        // A full mailbox or a message that is too large does not suppress permanently.
        for code in [(5, 2, 2), (5, 2, 3), (5, 1, 0)] {
            assert_eq!(
                reason(Outcome::Failed(reply(552, code)), AttemptPhase::Rcpt, 10),
                Some(R::SoftBounce),
                "{code:?}"
            );
        }
        // A verdict of this server suppresses no address and is not a bounce.
        let too_large = Outcome::Undeliverable(reply(552, (5, 3, 4)));
        let local = decide_next_action(
            &task,
            &attempted(too_large.clone(), AttemptPhase::Mail),
            &RetrySchedule::default(),
            at(10),
            0,
        );
        assert_eq!(local, NextAction::Fail { reason: REJECTED_REASON });
        assert_eq!(reason(too_large, AttemptPhase::Mail, 10), None);
        let deferred = || Outcome::Deferred(reply(452, (4, 2, 2)));
        assert_eq!(reason(deferred(), AttemptPhase::Rcpt, 10), None, "a retry suppresses nothing");
        assert_eq!(reason(deferred(), AttemptPhase::Rcpt, 1_000), Some(R::SoftBounce));
        let policy = Outcome::Failed(reply(550, (5, 7, 26)));
        assert_eq!(reason(policy, AttemptPhase::Final, 10), Some(R::SmtpFailure));
        assert_eq!(reason(Outcome::Unreachable("refused".into()), AttemptPhase::Connect, 1_000), None);
        assert_eq!(reason(Outcome::Delivered(reply(250, (2, 0, 0))), AttemptPhase::Final, 10), None);
    }

    #[tokio::test]
    async fn an_outcome_is_committed_once() {
        let store = store::engine::Store::memory();
        let mut batch = Batch::intake();
        store::task::put(&mut batch, &task());
        store.commit(batch).await.unwrap();
        let done = attempted(Outcome::Delivered(reply(250, (2, 0, 0))), AttemptPhase::Final);
        let (batch, _) =
            outcome_batch(&task(), None, &done, &NextAction::Delivered, None, at(11), EventId::new(at(11), 1));
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "the task is gone");
        let left = store::task::list_all(&store, None, 10).await.unwrap();
        assert!(left.tasks.is_empty());
    }
}
