//! Telling the sender of SMTP mail what became of it: a DSN, made in the commit that gives the recipient
//! up; and, where the client asked for it (RFC 3461 4.1), in the one that delivers, or puts off what is late.
//!
//! Only mail that came in by SMTP is answered, only to a reverse path on a verified domain of the
//! account it came from (anything else would be backscatter), and never a notification itself: it
//! has the null reverse path.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::Address;
use mail::domain::DomainState;
use mail::dsn::{self, Action, Report};
use mail::email::{Category, Door, Email, HeaderFacts};
use mail::id::EmailId;
use mail::message;
use mail::outcome::Outcome;
use mail::recipient::{Notify, RecipientKind};
use mail::task::Task;
use store::engine::ReadError;

use crate::settle::{Attempted, Next};
use crate::staged::{Addressee, Fate, Staged, Transport};
use crate::worker::Worker;

/// How old undelivered mail is when its sender hears of it who asked to.
const LATE_AFTER: Duration = Duration::from_secs(4 * 3600);

/// What the sender is to be told, if anything.
fn action(task: &Task, next: &Next, now: Timestamp) -> Option<Action> {
    match next {
        Next::Bounced { .. } | Next::Failed { .. } => task.notify.on_failure().then_some(Action::Failed),
        Next::Delivered => task.notify.success.then_some(Action::Relayed),
        Next::Retry { .. } => is_told_late(task, now).then_some(Action::Delayed(task.expires_at)),
    }
}

/// Whether the sender hears now that it is late: once, whatever comes of that.
pub(crate) fn is_told_late(task: &Task, now: Timestamp) -> bool {
    task.notify.delay && now.duration_since(task.accepted_at).unsigned_abs() >= LATE_AFTER
}

/// The notification that what comes next for this recipient calls for, if any.
pub(crate) async fn of(
    worker: &Worker,
    task: &Task,
    attempted: &Attempted,
    next: &Next,
    now: Timestamp,
) -> Result<Option<Staged>, ReadError> {
    let Some(action) = action(task, next, now) else { return Ok(None) };
    let Some(email) = store::email::get_bare(&worker.store, task.account, task.id.email).await? else {
        return Ok(None);
    };
    if !matches!(email.door, Door::Submission | Door::Relay) {
        return Ok(None);
    }
    let Some(to) = &email.reverse_path else { return Ok(None) };
    match store::domain::by_name(&worker.store, to.domain()).await? {
        Some(domain) if domain.account == email.account && domain.state == DomainState::Verified => {}
        _ => return Ok(None),
    }
    let returned = store::email::raw(&worker.store, task.account, task.id.email).await?.unwrap_or_default();
    let id = EmailId::new(now, worker.entropy.u128());
    let told = Told { action, task, attempted, next, email: &email, to, returned: &returned };
    Ok(compose(worker, &told, id, now))
}

/// A recipient, and all that the report says about it.
struct Told<'a> {
    action: Action,
    task: &'a Task,
    attempted: &'a Attempted,
    next: &'a Next,
    email: &'a Email,
    to: &'a Address,
    returned: &'a Bytes,
}

fn explanation(told: &Told<'_>) -> String {
    match (&told.attempted.outcome, told.next) {
        (_, Next::Delivered) => "What becomes of it there is not reported any more.".to_owned(),
        (Outcome::Unreachable(text) | Outcome::Unconfirmed(text), Next::Retry { .. }) => {
            format!("It is tried again and again. The last attempt: {text}")
        }
        (_, Next::Retry { .. }) => "The destination puts it off; it is tried again and again.".to_owned(),
        (Outcome::Unreachable(text) | Outcome::Unconfirmed(text), _) => {
            format!("It was tried until its time was up. The last attempt: {text}")
        }
        (_, Next::Bounced { soft: true, .. }) => {
            "The destination put it off until its time was up.".to_owned()
        }
        _ => "It was refused for good; it will not be tried again.".to_owned(),
    }
}

fn compose(worker: &Worker, told: &Told<'_>, id: EmailId, now: Timestamp) -> Option<Staged> {
    let host = &worker.settings.hostname;
    let from = Address::new("MAILER-DAEMON", host.clone()).ok()?;
    let message_id = message::message_id(id, &from);
    let explanation = explanation(told);
    let bytes = dsn::compose(&Report {
        action: told.action,
        reporting_host: host,
        to: told.to,
        message_id: &message_id,
        recipient: &told.task.address,
        original_recipient: told.task.notify.original_recipient.as_deref(),
        envelope_id: told.task.envelope_id.as_deref(),
        reply: told.attempted.outcome.reply(),
        remote_host: told.attempted.mx_host.as_deref(),
        explanation: &explanation,
        arrived_at: told.task.accepted_at,
        last_attempt_at: now,
        returned: told.returned,
        return_full: told.task.return_full,
    });
    let email = Email {
        id,
        account: told.email.account,
        door: Door::System,
        from: from.into(),
        reverse_path: None,
        domain: None,
        facts: HeaderFacts {
            to: vec![told.to.clone().into()],
            subject: told.action.subject().to_owned(),
            message_id,
            ..HeaderFacts::default()
        },
        tags: Vec::new(),
        category: Category::Transactional,
        size_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        envelope_id: None,
        return_full: false,
        unsubscribe: false,
        scheduled: false,
        expires_in: None,
        resent_from: None,
        sent_by: None,
        template: None,
        created_at: now,
    };
    let expires_at = now.checked_add(worker.manners().schedule.give_up_after).unwrap_or(Timestamp::MAX);
    let smtputf8 = told.to.needs_smtputf8();
    Some(Staged {
        email,
        addressees: vec![Addressee {
            address: told.to.clone(),
            kind: RecipientKind::To,
            notify: Notify::default(),
            suppressed: false,
        }],
        chunks: vec![Bytes::from(bytes)],
        transport: Transport { smtputf8, require_tls: false, tls_enforced: false, expires_at },
        fate: Fate::Send,
        appointment: None,
        reserved: None,
        now,
    })
}
