//! Telling the sender of SMTP mail that it could not be delivered: a DSN, made in the commit that
//! gives the recipient up.
//!
//! Only mail that came in by SMTP is answered, only to a reverse path on a verified domain of the
//! account it came from (anything else would be backscatter), and never a notification itself: it
//! has the null reverse path.

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::Address;
use mail::domain::DomainState;
use mail::dsn::{self, Report};
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

/// The notification that giving up this recipient calls for, if any.
pub(crate) async fn of(
    worker: &Worker,
    task: &Task,
    attempted: &Attempted,
    next: &Next,
) -> Result<Option<Staged>, ReadError> {
    if !matches!(next, Next::Bounced { .. } | Next::Failed { .. }) || !task.notify.on_failure() {
        return Ok(None);
    }
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
    let now = worker.clock.now();
    let id = EmailId::new(now, worker.entropy.u128());
    Ok(compose(worker, &Lost { task, attempted, next, email: &email, to, returned: &returned }, id, now))
}

/// A recipient given up, and all that the report says about it.
struct Lost<'a> {
    task: &'a Task,
    attempted: &'a Attempted,
    next: &'a Next,
    email: &'a Email,
    to: &'a Address,
    returned: &'a Bytes,
}

fn explanation(lost: &Lost<'_>) -> String {
    match (&lost.attempted.outcome, lost.next) {
        (Outcome::Unreachable(text) | Outcome::Unconfirmed(text), _) => {
            format!("It was tried until its time was up. The last attempt: {text}")
        }
        (_, Next::Bounced { soft: true, .. }) => {
            "The destination put it off until its time was up.".to_owned()
        }
        _ => "It was refused for good; it will not be tried again.".to_owned(),
    }
}

fn compose(worker: &Worker, lost: &Lost<'_>, id: EmailId, now: Timestamp) -> Option<Staged> {
    let host = &worker.settings.hostname;
    let from = Address::new("MAILER-DAEMON", host.clone()).ok()?;
    let message_id = message::message_id(id, &from);
    let explanation = explanation(lost);
    let bytes = dsn::compose(&Report {
        reporting_host: host,
        to: lost.to,
        message_id: &message_id,
        recipient: &lost.task.address,
        original_recipient: lost.task.notify.original_recipient.as_deref(),
        envelope_id: lost.task.envelope_id.as_deref(),
        reply: lost.attempted.outcome.reply(),
        remote_host: lost.attempted.mx_host.as_deref(),
        explanation: &explanation,
        arrived_at: lost.task.accepted_at,
        last_attempt_at: now,
        returned: lost.returned,
        return_full: lost.task.return_full,
    });
    let email = Email {
        id,
        account: lost.email.account,
        door: Door::System,
        from: from.into(),
        reverse_path: None,
        domain: None,
        facts: HeaderFacts {
            to: vec![lost.to.clone().into()],
            subject: "Undelivered mail returned to sender".to_owned(),
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
        template: None,
        created_at: now,
    };
    let expires_at = now.checked_add(worker.manners().schedule.give_up_after).unwrap_or(Timestamp::MAX);
    let smtputf8 = lost.to.needs_smtputf8();
    Some(Staged {
        email,
        addressees: vec![Addressee {
            address: lost.to.clone(),
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
