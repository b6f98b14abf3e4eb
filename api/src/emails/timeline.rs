//! Events and delivery attempts of an email.

use std::net::IpAddr;

use mail::attempt::{Attempt, AttemptTls, TlsPolicy};
use mail::event::{Event, EventKind};
use mail::id::EventId;
use mail::outcome::AttemptPhase;
use mail::recipient::Recipient;
use mail::webhook_payload::event_details;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json_timestamp::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// Maximum number of timeline entries read: a thousand recipients, each attempted as often as the retry schedule
/// allows.
pub const TIMELINE_MAX: usize = 24_000;

#[derive(Debug, Serialize)]
pub struct EmailEventView {
    id: EventId,
    r#type: EventKind,
    recipient: Option<String>,
    created_at: JsonTimestamp,
    detail: Value,
}

impl EmailEventView {
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

#[derive(Debug, Serialize)]
pub struct EmailEventList {
    pub events: Vec<EmailEventView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
}

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
    /// The view of an attempt; `recipients` are those of its email.
    #[must_use]
    pub fn from_attempt(attempt: Attempt, recipients: &[Recipient]) -> Self {
        let recipient = recipients.iter().find(|r| r.index == attempt.recipient);
        let smtp_reply = attempt.reply.as_ref();
        Self {
            n: attempt.number,
            recipient: recipient.map(|r| r.address.to_string()),
            mx_host: attempt.mx_host,
            ip: attempt.ip,
            tls: attempt.tls.map(AttemptTlsView::from_facts),
            smtp_code: smtp_reply.map(|reply| reply.code),
            enhanced_code: smtp_reply.and_then(|reply| reply.enhanced).map(|code| code.to_string()),
            response: smtp_reply.map(|reply| reply.text().into_owned()),
            error: attempt.error,
            phase: attempt.phase,
            duration_ms: attempt.duration_ms,
            created_at: JsonTimestamp(attempt.created_at),
            next_attempt_at: attempt.next_attempt_at.map(JsonTimestamp),
            transcript: attempt.transcript,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct DeliveryAttemptList {
    pub attempts: Vec<DeliveryAttemptView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
}

impl ToSchema for EmailEventList {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = schemas.component("EmailEvent", |_| {
            schema::object(
                "An event of an email",
                [
                    ("id", schema::string("The event's id (`evt_…`)")),
                    ("type", schema::string("The event name, like `email.delivered`")),
                    ("recipient", schema::nullable_string("The recipient; null if the event concerns all")),
                    ("created_at", schema::time("When it happened")),
                    ("detail", json!({"type": "object", "description": "Details of the event"})),
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
                    ("verified", schema::boolean("Whether the certificate was verified")),
                    (
                        "policy",
                        schema::string_enum(
                            &["dane", "mta-sts", "opportunistic"],
                            "The policy that required or offered TLS",
                        ),
                    ),
                ],
            );
            schema::object(
                "A delivery attempt",
                [
                    ("n", schema::count("Number of the attempt for this recipient, from 1")),
                    ("recipient", schema::nullable_string("The recipient")),
                    ("mx_host", schema::nullable_string("The host")),
                    ("ip", schema::nullable_string("The host's IP address")),
                    ("tls", json!({"oneOf": [{"type": "null"}, tls], "description": "null for plain text"})),
                    ("smtp_code", schema::nullable_count("The three-digit SMTP reply code")),
                    ("enhanced_code", schema::nullable_string("The enhanced status code (RFC 3463)")),
                    ("response", schema::nullable_string("The text of the response")),
                    ("error", schema::nullable_string("The error, if it was not a response of a host")),
                    ("phase", schema::string("The phase that the attempt reached")),
                    ("duration_ms", schema::count("Duration in milliseconds")),
                    ("created_at", schema::time("When it started")),
                    ("next_attempt_at", schema::nullable_time("When the next attempt is due")),
                    ("transcript", schema::string("The SMTP transcript")),
                ],
            )
        });
        schemas.component("AttemptList", |_| schema::list_page("attempts", attempt))
    }
}
