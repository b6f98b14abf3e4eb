//! Events and delivery attempts of an email.

use std::net::IpAddr;

use message::outcome::AttemptPhase;
use model::attempt::{Attempt, AttemptTls, TlsPolicy};
use model::event::{Event, EventKind};
use model::recipient::Recipient;
use model::webhook_payload::event_details;
use serde_json::Map;

use crate::prelude::*;

/// Maximum number of timeline entries read: a thousand recipients, each attempted as often as the retry schedule
/// allows.
pub const TIMELINE_MAX: usize = 24_000;

object_view! {
    /// An event of an email
    #[schema(name = "EmailEvent")]
    pub struct EmailEventView, pub fn from_event(event: Event) {
        /// The event's id (`evt_…`)
        id: EventId = event.id,
        /// The event name, like `email.delivered`
        r#type: EventKind = event.kind,
        /// The recipient; null if the event concerns all
        recipient: Option<String> = event.recipient.as_ref().map(ToString::to_string),
        /// When it happened
        created_at: JsonTimestamp = JsonTimestamp(event.created_at),
        /// Details of the event
        #[schema(type = "object")]
        detail: Value = event_details(&event).collect::<Map<_, _>>().into(),
    }
}

list_response! { pub EmailEventList { events: EmailEventView } as "EmailEventList" }

object_view! {
    /// A delivery attempt
    #[schema(name = "Attempt")]
    pub struct DeliveryAttemptView,
    /// The view of an attempt; `recipients` are those of its email.
    pub fn from_attempt(
        attempt: Attempt, recipients: &[Recipient];
        let recipient = recipients.iter().find(|r| r.index == attempt.recipient);
        let smtp_reply = attempt.reply.as_ref()
    ) {
        /// Number of the attempt for this recipient, from 1
        n: u32 = attempt.number,
        /// The recipient
        recipient: Option<String> = recipient.map(|r| r.address.to_string()),
        /// The host
        mx_host: Option<String> = attempt.mx_host,
        /// The host's IP address
        ip: Option<IpAddr> = attempt.ip,
        /// Null for plain text
        tls: Option<AttemptTlsView> = attempt.tls.map(AttemptTlsView::from_facts),
        /// The three-digit SMTP reply code
        smtp_code: Option<u16> = smtp_reply.map(|reply| reply.code),
        /// The enhanced status code (RFC 3463)
        enhanced_code: Option<String> = smtp_reply.and_then(|reply| reply.enhanced).map(|code| code.to_string()),
        /// The text of the response
        response: Option<String> = smtp_reply.map(|reply| reply.text().into_owned()),
        /// The error, if it was not a response of a host
        error: Option<String> = attempt.error,
        /// The phase that the attempt reached
        #[schema(as = String)]
        phase: AttemptPhase = attempt.phase,
        /// Duration in milliseconds
        duration_ms: u64 = attempt.duration_ms,
        /// When it started
        created_at: JsonTimestamp = JsonTimestamp(attempt.created_at),
        /// When the next attempt is due
        next_attempt_at: Option<JsonTimestamp> = attempt.next_attempt_at.map(JsonTimestamp),
        /// The SMTP transcript
        transcript: String = attempt.transcript,
    }
}

/// TLS
#[derive(Debug, Serialize, ToSchema)]
struct AttemptTlsView {
    /// `TLSv1.3`
    version: String,
    /// The cipher suite
    cipher: String,
    /// Whether the certificate was verified
    verified: bool,
    /// The policy that required or offered TLS
    #[schema(as = String, enum = ["dane", "mta-sts", "opportunistic"])]
    policy: TlsPolicy,
}

impl AttemptTlsView {
    fn from_facts(facts: AttemptTls) -> Self {
        let AttemptTls { version, cipher, verified, policy } = facts;
        Self { version, cipher, verified, policy }
    }
}

list_response! { pub DeliveryAttemptList { attempts: DeliveryAttemptView } as "AttemptList" }
