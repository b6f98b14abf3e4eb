//! What happened to an email: its events and its delivery attempts (completions-email.md 2.3).

use std::net::IpAddr;

use mail::attempt::{Attempt, TlsFacts, TlsPolicy};
use mail::event::{Event, EventKind};
use mail::id::EventId;
use mail::outcome::Phase;
use mail::payload::particulars;
use mail::recipient::Recipient;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::view::Moment;
use crate::schema::{self, Describe, Schemas};

/// The most entries of an email's timeline that are looked through: a thousand recipients, each
/// tried as often as the retry schedule allows.
pub const TIMELINE_MAX: usize = 24_000;

/// Something that happened.
#[derive(Debug, Serialize)]
pub struct EventView {
    id: EventId,
    r#type: EventKind,
    recipient: Option<String>,
    created_at: Moment,
    detail: Value,
}

impl EventView {
    /// What is shown of an event.
    #[must_use]
    pub fn of(event: Event) -> Self {
        Self {
            id: event.id,
            r#type: event.kind,
            recipient: event.recipient.as_ref().map(ToString::to_string),
            created_at: Moment(event.created_at),
            detail: particulars(&event).collect::<Map<_, _>>().into(),
        }
    }
}

/// A page of events.
#[derive(Debug, Serialize)]
pub struct EventList {
    /// The events, newest first.
    pub events: Vec<EventView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

/// A try at a recipient.
#[derive(Debug, Serialize)]
pub struct AttemptView {
    n: u32,
    recipient: Option<String>,
    mx_host: Option<String>,
    ip: Option<IpAddr>,
    tls: Option<TlsView>,
    smtp_code: Option<u16>,
    enhanced_code: Option<String>,
    response: Option<String>,
    error: Option<String>,
    phase: Phase,
    duration_ms: u64,
    created_at: Moment,
    next_attempt_at: Option<Moment>,
    transcript: String,
}

/// The TLS of an attempt.
#[derive(Debug, Serialize)]
struct TlsView {
    version: String,
    cipher: String,
    verified: bool,
    policy: TlsPolicy,
}

impl TlsView {
    fn of(facts: TlsFacts) -> Self {
        let TlsFacts { version, cipher, verified, policy } = facts;
        Self { version, cipher, verified, policy }
    }
}

impl AttemptView {
    /// What is shown of an attempt at one of these recipients.
    #[must_use]
    pub fn of(attempt: Attempt, recipients: &[Recipient]) -> Self {
        let recipient = recipients.iter().find(|r| r.index == attempt.recipient);
        let said = attempt.reply.as_ref();
        Self {
            n: attempt.number,
            recipient: recipient.map(|r| r.address.to_string()),
            mx_host: attempt.mx_host,
            ip: attempt.ip,
            tls: attempt.tls.map(TlsView::of),
            smtp_code: said.map(|reply| reply.code),
            enhanced_code: said.and_then(|reply| reply.enhanced).map(|code| code.to_string()),
            response: said.map(|reply| reply.text().into_owned()),
            error: attempt.error,
            phase: attempt.phase,
            duration_ms: attempt.duration_ms,
            created_at: Moment(attempt.created_at),
            next_attempt_at: attempt.next_attempt_at.map(Moment),
            transcript: attempt.transcript,
        }
    }
}

/// A page of attempts.
#[derive(Debug, Serialize)]
pub struct AttemptList {
    /// The attempts, newest first.
    pub attempts: Vec<AttemptView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

impl Describe for EventList {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = schemas.named("EmailEvent", |_| {
            schema::object(
                "Something that happened to an email",
                [
                    ("id", schema::string("Its id (`evt_…`)")),
                    ("type", schema::string("What: `email.delivered`")),
                    ("recipient", schema::nullable_string("To whom; null when to all")),
                    ("created_at", schema::time("When")),
                    ("detail", json!({"type": "object", "description": "Particulars"})),
                ],
            )
        });
        schemas.named("EmailEventList", |_| schema::page("events", event))
    }
}

impl Describe for AttemptList {
    fn schema(schemas: &mut Schemas) -> Value {
        let attempt = schemas.named("Attempt", |_| {
            let tls = schema::object(
                "TLS",
                [
                    ("version", schema::string("`TLSv1.3`")),
                    ("cipher", schema::string("The cipher suite")),
                    ("verified", schema::boolean("Whether the certificate was checked and held")),
                    ("policy", schema::words(&["dane", "mta-sts", "opportunistic"], "What was demanded")),
                ],
            );
            schema::object(
                "A try at a recipient",
                [
                    ("n", schema::count("1 for the recipient's first")),
                    ("recipient", schema::nullable_string("At whom")),
                    ("mx_host", schema::nullable_string("The host")),
                    ("ip", schema::nullable_string("Its address")),
                    ("tls", json!({"oneOf": [{"type": "null"}, tls], "description": "null for plain text"})),
                    ("smtp_code", schema::nullable_count("What it said: three digits")),
                    ("enhanced_code", schema::nullable_string("RFC 3463")),
                    ("response", schema::nullable_string("The text")),
                    ("error", schema::nullable_string("What went wrong, where no host said so")),
                    ("phase", schema::string("How far it got")),
                    ("duration_ms", schema::count("How long it took")),
                    ("created_at", schema::time("When it began")),
                    ("next_attempt_at", schema::nullable_time("When the next one is due")),
                    ("transcript", schema::string("The dialog")),
                ],
            )
        });
        schemas.named("AttemptList", |_| schema::page("attempts", attempt))
    }
}
