//! JSON views of accounts, domains, tasks, destinations, attempts and traces for the admin socket.

use ::accounts::domains::DomainWithSetup;
use ::accounts::provisioning::ProvisionedAccount;
use ::accounts::subsystems::Subsystems;
use ::queue::admin::hold_admin::HeldMail;
use ::queue::admin::queue_admin::{EmailTrace, TopDestination, WaitStatus};
use ::queue::scheduler::pacing::{Backoff, BackoffState};
use ::queue::scheduler::ready_queue::ReadyQueueStatus;
use api::emails::view::RecipientView;
use explain::explanation::{Explanation, RecipientDelivery, explain};
use jiff::Timestamp;
use model::account::Account;
use model::attempt::Attempt;
use model::destination::{Destination, DestinationOverrides, RouteOverride};
use model::domain::SendingDomain;
use model::domain_setup::{RecordStatus, ServiceHosts};
use model::event::{Event, EventKind};
use model::recipient::Recipient;
use model::task::Task;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::email_state::EmailState;

pub(super) fn account_view(account: &Account) -> Value {
    json!({
        "id": account.id,
        "email": account.email,
        "plan": account.plan,
        "production": account.production,
        "payment_method": account.payment_method,
        "suspended": account.suspended,
        "created_at": account.created_at,
    })
}

pub(super) fn provisioned_account_view(provisioned: &ProvisionedAccount, username: &str) -> Value {
    json!({
        "account": account_view(&provisioned.account),
        "api_key": {"secret": provisioned.api_key.expose()},
        "smtp_credential": {"username": username, "password": provisioned.smtp_password.expose()},
    })
}

pub(super) fn domain_view(domain: &DomainWithSetup, facts: &ServiceHosts) -> Value {
    let (domain, setup) = (&domain.domain, &domain.setup);
    let records = facts.required_records(domain).into_iter().map(|record| {
        let mut view = json!(record);
        let finding = setup.finding(&record);
        view["status"] = json!(finding.map_or(RecordStatus::Pending, |finding| finding.status));
        view["error"] = json!(finding.and_then(|finding| finding.error.as_deref()));
        view
    });
    json!({
        "id": domain.id,
        "account": domain.account,
        "name": domain.name,
        "status": domain.state,
        "open_tracking": domain.delivery.open_tracking,
        "click_tracking": domain.delivery.click_tracking,
        "tls_mode": domain.delivery.tls_mode,
        "tracking_host": domain.delivery.tracking_host,
        "dkim": {"selector": domain.dkim.selector, "ed25519_published": domain.dkim.ed25519_published},
        "records": records.collect::<Vec<_>>(),
        "degraded_since": setup.degraded_since,
        "last_checked_at": setup.last_checked_at,
        "created_at": domain.created_at,
        "verified_at": domain.verified_at,
    })
}

pub(super) fn domain_in_list(domain: &SendingDomain) -> Value {
    json!({
        "id": domain.id,
        "name": domain.name,
        "account": domain.account,
        "status": domain.state,
        "inbound": domain.inbound_enabled,
        "created_at": domain.created_at,
        "verified_at": domain.verified_at,
    })
}

pub(super) fn held_mail_view(waiting: HeldMail) -> Value {
    json!({"recipients": waiting.recipients, "oldest": waiting.oldest, "has_more": waiting.has_more})
}

/// A number of recipients in words.
pub(super) fn recipients_text(count: u64) -> String {
    if count == 1 { "1 recipient".to_owned() } else { format!("{count} recipients") }
}

pub(super) fn task_view(task: &Task, queue: &Subsystems) -> Value {
    json!({
        "email": task.id.email,
        "recipient": task.address,
        "account": task.account,
        "class": task.class,
        "due": task.due,
        "attempts": task.attempts,
        "expires_at": task.expires_at,
        "size_bytes": task.size_bytes,
        "held": task.held,
        "held_by": blocked_by(task, queue),
        "way": task.route.as_ref().map(route_text),
    })
}

/// Returns what holds a task, with the word that a trace uses; none if it is not held.
fn blocked_by(task: &Task, queue: &Subsystems) -> Option<&'static str> {
    if task.held {
        Some("operator")
    } else if queue.delivery.queues.is_account_held(task.account) {
        Some("account_suspended")
    } else {
        queue.delivery.queues.queue_hold().map(|_| "queue_held")
    }
}

pub(super) fn ready_queue_view(site: &ReadyQueueStatus) -> Value {
    json!({
        "name": site.name,
        "pool": site.pool,
        "ready": site.ready,
        "connections": site.connections.open,
        "connections_max": site.connections.max,
        "slowed": site.connections.slowed(),
        "last_error": site.throttle.last_error,
        "messages_per_second": site.throttle.messages_per_second,
        "dead_until": site.throttle.dead_until,
        "resting": site.throttle.resting.as_ref().map(backoff_view),
        "rate_until": site.throttle.rate_until,
        "warm_up_until": site.throttle.warm_up.map(|(until, _)| until),
        "parked_queues": site.parked,
    })
}

fn backoff_view(backoff: &BackoffState) -> Value {
    let action = match backoff.kind {
        Backoff::Exponential => "back-off",
        Backoff::Fixed(_) => "pause",
    };
    json!({"action": action, "until": backoff.until, "because": backoff.reason})
}

fn route_text(route: &RouteOverride) -> String {
    match route {
        RouteOverride::MailHosts => "mx".to_owned(),
        RouteOverride::Smarthost(name) => format!("smarthost {name}"),
    }
}

/// Formats an age in its two largest units.
pub(super) fn age_text(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m{:02}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h{minutes:02}m"),
        (days, hours, _) => format!("{days}d{hours:02}h"),
    }
}

pub(super) fn top_destination_view(destination: &TopDestination, now: Timestamp) -> Value {
    json!({
        "name": destination.name,
        "domain": destination.domain,
        "pool": destination.pool,
        "tasks": destination.tasks,
        "due": destination.due,
        "later": destination.later,
        "held": destination.held,
        "oldest": destination.oldest,
        "oldest_age": age_text(destination.oldest, now),
        "next_due": destination.next_due,
        "connections": destination.connections,
        "limit": destination.limit.word(),
        "until": destination.until,
        "last_reply": destination.last_reply,
        "slowed": destination.slowed,
    })
}

pub(super) fn destination_view(destination: &Destination, overrides: &DestinationOverrides, now: Timestamp) -> Value {
    let (to, mail_host) = match destination {
        Destination::Domain(name) => (Some(name), None),
        Destination::MailHost(name) => (None, Some(name)),
    };
    let suspension = overrides.suspension.as_ref().filter(|suspension| suspension.is_active(now));
    json!({
        "to": to,
        "mail_host": mail_host,
        "suspended": suspension.map(|s| json!({"since": s.since, "until": s.until, "because": s.because})),
        "connections_max": overrides.pace.connections_max,
        "messages_per_second": overrides.pace.messages_per_second,
        "way": overrides.route.as_ref().map(route_text),
    })
}

fn recipient_view(recipient: &Recipient, wait: Option<&WaitStatus>, now: Timestamp) -> Value {
    // The sentences of the dashboard, the command line and the assistants' tools.
    let standing = json!(RecipientView::from_recipient(recipient, None, wait));
    let next_attempt_at =
        wait.map_or(recipient.next_attempt_at, |wait| wait.next_attempt_at(recipient.next_attempt_at));
    let last_event = recipient.last_event.0.name();
    let explanation = RecipientDelivery::deserialize(standing).ok().map(|delivery| explain(&delivery, last_event, now));
    json!({
        "explanation": explanation.as_ref().map(Explanation::statement),
        "advice": explanation.as_ref().map(|explanation| &explanation.advice),
        "index": recipient.index,
        "email": recipient.address,
        "status": recipient.state,
        "attempts": recipient.attempts,
        "last_response": recipient.last_response.as_ref().map(ToString::to_string),
        "error": recipient.error,
        "mx_host": recipient.mx_host,
        "next_attempt_at": next_attempt_at,
    })
}

fn attempt_view(attempt: &Attempt) -> Value {
    json!({
        "recipient": attempt.recipient,
        "n": attempt.number,
        "created_at": attempt.created_at,
        "duration_ms": attempt.duration_ms,
        "phase": attempt.phase,
        "mx_host": attempt.mx_host,
        "ip": attempt.ip,
        "source": attempt.source,
        "tls": attempt.tls,
        "response": attempt.reply.as_ref().map(ToString::to_string),
        "error": attempt.error,
        "transcript": attempt.transcript,
        "next_attempt_at": attempt.next_attempt_at,
    })
}

/// A recipient domain's TLS sessions of one day by policy, and the state of its report.
pub(super) fn tls_day_view(found: &store::tls_daily_stats::StoredTlsStats) -> Value {
    json!({
        "day": found.day.to_string(),
        "domain": found.domain,
        "policies": found.stats.counts.policies,
        "dropped": found.stats.counts.dropped,
        "report": found.stats.book,
    })
}

/// Event types are those of webhooks; `means` explains that `email.sent` means accepted.
fn event(event: &Event) -> Value {
    let means = (event.kind == EventKind::Sent).then_some("accepted into the queue");
    json!({
        "type": event.kind,
        "means": means,
        "recipient": event.recipient,
        "at": event.created_at,
        "detail": event.detail,
    })
}

pub(super) fn trace_view(trace: &EmailTrace, now: Timestamp) -> Value {
    let email = &trace.email.email;
    let events: Vec<Value> = trace.events.iter().map(event).collect();
    let wait_of = |recipient: &Recipient| trace.waits.iter().find(|wait| wait.recipient == recipient.index);
    let recipients: Vec<Value> =
        trace.email.recipients.iter().map(|recipient| recipient_view(recipient, wait_of(recipient), now)).collect();
    let waits: Vec<Value> = trace
        .waits
        .iter()
        .map(|wait| {
            json!({
                "recipient": wait.recipient,
                "for": wait.cause.to_string(),
                "cause": wait.cause.word(),
                "destination": wait.destination,
                "place": wait.position,
                "until": wait.until,
                "destination_error": wait.destination_error,
            })
        })
        .collect();
    json!({
        "id": email.id,
        "account": email.account,
        "door": email.ingress,
        "from": email.from.to_string(),
        "subject": email.header.subject,
        "size_bytes": email.size_bytes,
        "created_at": email.created_at,
        "status": EmailState::of(&trace.email.recipients),
        "recipients": recipients,
        "events": events,
        "attempts": trace.attempts.iter().map(attempt_view).collect::<Vec<_>>(),
        "waiting": waits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::queue::admin::queue_admin::WaitCause;
    use model::recipient::{DsnOptions, RecipientKind, RecipientState};

    fn recipient(state: RecipientState, attempts: u32) -> Recipient {
        Recipient {
            index: 0,
            address: "a@example.net".parse().unwrap(),
            kind: RecipientKind::To,
            state,
            attempts,
            last_response: None,
            error: None,
            mx_host: None,
            last_event: (EventKind::Sent, Timestamp::UNIX_EPOCH),
            delivered_at: None,
            bounced_at: None,
            complained_at: None,
            next_attempt_at: None,
            notify: DsnOptions::default(),
        }
    }

    #[test]
    fn one_recipient_is_singular() {
        assert_eq!((recipients_text(1).as_str(), recipients_text(2).as_str()), ("1 recipient", "2 recipients"));
    }

    #[test]
    fn a_trace_has_the_sentences_of_the_dashboard() {
        let bounced = recipient_view(&recipient(RecipientState::Bounced, 1), None, Timestamp::UNIX_EPOCH);
        let sentences = (bounced["explanation"].as_str().unwrap(), bounced["advice"].as_str().unwrap());
        assert!(
            sentences.0.starts_with("It bounced: the recipient's mail host refused it permanently."),
            "{sentences:?}"
        );
        assert!(sentences.1.starts_with("Read the mail host's reply"), "{sentences:?}");
        let blocked = Recipient {
            last_event: (EventKind::Suppressed, Timestamp::UNIX_EPOCH),
            ..recipient(RecipientState::Failed, 0)
        };
        let text = recipient_view(&blocked, None, Timestamp::UNIX_EPOCH)["explanation"].to_string();
        assert!(text.contains("Nobody got this email"), "{text}");
        let wait = WaitStatus {
            recipient: 0,
            cause: WaitCause::AccountSuspended,
            destination: None,
            position: None,
            until: None,
            destination_error: None,
        };
        let queued = Recipient { next_attempt_at: Some(Timestamp::UNIX_EPOCH), ..recipient(RecipientState::Queued, 0) };
        let suspended = recipient_view(&queued, Some(&wait), Timestamp::UNIX_EPOCH);
        let text = suspended["explanation"].as_str().unwrap();
        assert!(
            text.starts_with("It is in the queue and has not been attempted yet.") && text.contains("suspended"),
            "{text}"
        );
        assert!(!text.contains("next attempt") && suspended["next_attempt_at"].is_null(), "{suspended}");
    }

    #[test]
    fn an_email_without_attempts_is_queued() {
        assert_eq!(EmailState::of(&[recipient(RecipientState::Queued, 0)]), EmailState::Queued);
        assert_eq!(EmailState::of(&[recipient(RecipientState::Deferred, 1)]), EmailState::Deferred);
        assert_eq!(EmailState::of(&[recipient(RecipientState::Delivered, 1)]), EmailState::Delivered);
    }
}
