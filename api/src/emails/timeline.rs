//! What happened to an email: its events and its delivery attempts (completions-email.md 2.3).

use std::net::IpAddr;

use mail::attempt::{Attempt, AttemptTls, TlsPolicy};
use mail::event::{Event, EventKind};
use mail::id::EventId;
use mail::outcome::AttemptPhase;
use mail::payload::event_details;
use mail::recipient::Recipient;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::view::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// The most entries of an email's timeline that are looked through: a thousand recipients, each
/// tried as often as the retry schedule allows.
pub const TIMELINE_MAX: usize = 24_000;

/// Something that happened.
#[derive(Debug, Serialize)]
pub struct EmailEventView {
    id: EventId,
    r#type: EventKind,
    recipient: Option<String>,
    created_at: JsonTimestamp,
    detail: Value,
}

impl EmailEventView {
    /// What is shown of an event.
    #[must_use]
    pub fn from_event(event: Event) -> Self {
        Self {
            id: event.id,
            r#type: event.kind,
            recipient: event.recipient.as_ref().map(ToString::to_string),
            created_at: JsonTimestamp(event.created_at),
            detail: event_details(&event).collect::<Map<_, _>>().into(),
        }
    }
}

/// A page of events.
#[derive(Debug, Serialize)]
pub struct EmailEventList {
    /// The events, newest first.
    pub events: Vec<EmailEventView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

/// A try at a recipient.
#[derive(Debug, Serialize)]
pub struct DeliveryAttemptView {
    n: u32,
    recipient: Option<String>,
    mx_host: Option<String>,
    ip: Option<IpAddr>,
    tls: Option<AttemptTlsView>,
    smtp_code: Option<u16>,
    enhanced_code: Option<String>,
    response: Option<String>,
    error: Option<String>,
    phase: AttemptPhase,
    duration_ms: u64,
    created_at: JsonTimestamp,
    next_attempt_at: Option<JsonTimestamp>,
    transcript: String,
}

/// The TLS of an attempt.
#[derive(Debug, Serialize)]
struct AttemptTlsView {
    version: String,
    cipher: String,
    verified: bool,
    policy: TlsPolicy,
}

impl AttemptTlsView {
    fn from_facts(facts: AttemptTls) -> Self {
        let AttemptTls { version, cipher, verified, policy } = facts;
        Self { version, cipher, verified, policy }
    }
}

impl DeliveryAttemptView {
    /// What is shown of an attempt at one of these recipients.
    #[must_use]
    pub fn from_attempt(attempt: Attempt, recipients: &[Recipient]) -> Self {
        let recipient = recipients.iter().find(|r| r.index == attempt.recipient);
        let said = attempt.reply.as_ref();
        Self {
            n: attempt.number,
            recipient: recipient.map(|r| r.address.to_string()),
            mx_host: attempt.mx_host,
            ip: attempt.ip,
            tls: attempt.tls.map(AttemptTlsView::from_facts),
            smtp_code: said.map(|reply| reply.code),
            enhanced_code: said.and_then(|reply| reply.enhanced).map(|code| code.to_string()),
            response: said.map(|reply| reply.text().into_owned()),
            error: attempt.error,
            phase: attempt.phase,
            duration_ms: attempt.duration_ms,
            created_at: JsonTimestamp(attempt.created_at),
            next_attempt_at: attempt.next_attempt_at.map(JsonTimestamp),
            transcript: attempt.transcript,
        }
    }
}

/// A page of attempts.
#[derive(Debug, Serialize)]
pub struct DeliveryAttemptList {
    /// The attempts, newest first.
    pub attempts: Vec<DeliveryAttemptView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

impl ToSchema for EmailEventList {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = schemas.component("EmailEvent", |_| {
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
        schemas.component("EmailEventList", |_| schema::list_page("events", event))
    }
}

impl ToSchema for DeliveryAttemptList {
    fn schema(schemas: &mut Schemas) -> Value {
        let attempt = schemas.component("Attempt", |_| {
            let tls = schema::object(
                "TLS",
                [
                    ("version", schema::string("`TLSv1.3`")),
                    ("cipher", schema::string("The cipher suite")),
                    ("verified", schema::boolean("Whether the certificate was checked and held")),
                    ("policy", schema::string_enum(&["dane", "mta-sts", "opportunistic"], "What was demanded")),
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
        schemas.component("AttemptList", |_| schema::list_page("attempts", attempt))
    }
}
