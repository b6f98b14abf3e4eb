//! Example payloads of webhook events, a row per kind: `example_for` is a `match` without a default, so that a new kind
//! does not compile without its example.

use message::address::Address;
use model::event::EventKind;
use model::id::EventId;
use serde_json::{Map, Value, json};

use self::PayloadSubject::{Contact, Object, Recipient, WholeEmail};
use super::affiliate_examples::{commission, in_program, partner, payout, referral};

const EMAIL: &str = "msg_00000000000000000000000000";
const AUTOMATION: &str = "aut_00000000000000000000000000";
const DOMAIN: &str = "dom_00000000000000000000000000";
const SUPPRESSION: &str = "sup_00000000000000000000000000";
const RUN: &str = "run_00000000000000000000000000";
/// Recipient of the example email.
const RECIPIENT: &str = "grace@example.net";
const AT: &str = "2026-01-01T10:00:00.812Z";

/// The subject of an event; it decides the common fields of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadSubject {
    /// One recipient of a sent email: the email's fields and `rcpt_to`.
    Recipient,
    /// A sent email with all its recipients: the email's fields.
    WholeEmail,
    /// A person who used a link of a sent email: the email's id.
    Contact,
    /// Another object: the event's own fields are the payload.
    Object,
}

#[derive(Debug)]
pub(crate) struct EventExample {
    pub(crate) subject: PayloadSubject,
    /// Fields that only this event has, as a JSON object.
    pub(crate) fields: Value,
}

pub(crate) fn example_for(kind: EventKind) -> EventExample {
    let (subject, fields) = match kind {
        EventKind::Received => (Object, received()),
        EventKind::Sent => (WholeEmail, json!({"status": "sent", "recipients_count": 1})),
        EventKind::Delivered => (Recipient, delivered()),
        EventKind::DeliveryDelayed => (Recipient, delivery_delayed()),
        EventKind::Bounced => (Recipient, bounced()),
        EventKind::Complained => (Recipient, complained()),
        EventKind::Opened => (Recipient, opened()),
        EventKind::Clicked => (Recipient, clicked()),
        EventKind::Failed => (Recipient, failed()),
        EventKind::Suppressed => (WholeEmail, suppressed()),
        EventKind::Scheduled => {
            (WholeEmail, json!({"status": "scheduled", "scheduled_at": "2026-01-02T09:00:00.000Z"}))
        }
        EventKind::Unsubscribed => (Contact, unsubscribed()),
        EventKind::AutomationStarted => (Object, automation_run("running", None)),
        EventKind::AutomationStepCompleted => (Object, step_completed()),
        EventKind::AutomationCompleted => (Object, automation_run("completed", None)),
        EventKind::AutomationFailed => (Object, automation_run("failed", Some("The template was not found"))),
        EventKind::Cancelled => (WholeEmail, json!({"status": "cancelled", "by": "customer", "recipients_count": 1})),
        EventKind::DomainVerified => (Object, domain(None)),
        EventKind::DomainDegraded => (Object, domain(Some(AT))),
        EventKind::SuppressionCreated | EventKind::SuppressionDeleted => (Object, suppression()),
        EventKind::WebhookDisabled => (Object, webhook_disabled()),
        EventKind::AffiliateCreated | EventKind::AffiliateApproved | EventKind::AffiliateUpdated => {
            (Object, in_program(json!({"affiliate": partner()})))
        }
        EventKind::ReferralCreated => (Object, in_program(json!({"referral": referral("lead")}))),
        EventKind::ReferralConverted => (Object, in_program(json!({"referral": referral("active")}))),
        EventKind::CommissionCreated => (Object, in_program(json!({"commission": commission("pending")}))),
        EventKind::CommissionEarned => (Object, in_program(json!({"commission": commission("earned")}))),
        EventKind::CommissionReversed => (Object, in_program(json!({"commission": commission("reversed")}))),
        EventKind::CommissionPaid => (Object, in_program(payout(json!({"commission": commission("paid")})))),
        EventKind::PayoutCreated | EventKind::PayoutPaid | EventKind::PayoutFailed => {
            (Object, in_program(payout(json!({}))))
        }
    };
    EventExample { subject, fields }
}

impl EventExample {
    /// The payload's `data` for an example email.
    pub(crate) fn data(self, id: EventId) -> Map<String, Value> {
        let mut data = common_fields(self.subject, id);
        add_missing(&mut data, self.fields);
        data
    }
}

/// Adds the fields that an object does not have.
pub(super) fn add_missing(data: &mut Map<String, Value>, fields: Value) {
    if let Value::Object(fields) = fields {
        for (name, value) in fields {
            data.entry(name).or_insert(value);
        }
    }
}

/// The fields that all events about a subject have.
fn common_fields(subject: PayloadSubject, id: EventId) -> Map<String, Value> {
    let data = match subject {
        Object => json!({"event_id": id}),
        Contact => json!({"event_id": id, "email_id": EMAIL}),
        Recipient | WholeEmail => json!({
            "event_id": id, "email_id": EMAIL, "message_id": "<00000000000000000000000000@example.com>",
            "from": "Ada <ada@example.com>", "to": ["grace@example.net"], "cc": [],
            "rcpt_to": "grace@example.net", "subject": "An example",
            "tags": [{"name": "flow", "value": "welcome"}], "category": "transactional", "template_id": null,
            "domain": "example.com", "sent_at": "2026-01-01T10:00:00.000Z",
        }),
    };
    let Value::Object(mut data) = data else { return Map::new() };
    if subject == WholeEmail {
        data.remove("rcpt_to");
    }
    data
}

fn received() -> Value {
    json!({
        "email_id": "inb_00000000000000000000000000", "to": ["support@example.com"],
        "from": "Grace <grace@example.net>", "subject": "Re: An example", "status": "received",
        "rcpt_to": "support@example.com", "cc": [], "message_id": "<2@example.net>",
        "in_reply_to": "<1@example.com>", "references": ["<1@example.com>"], "spam_status": "not_spam",
        "attachment_count": 1,
        "attachments": [{"filename": "a.pdf", "content_type": "application/pdf", "size": 1024}],
        "received_at": AT, "domain": "example.com", "envelope_from": "grace@example.net",
        "auth": {"spf": "pass", "dkim": "pass", "dmarc": "pass"}})
}

fn delivered() -> Value {
    json!({"status": "delivered", "delivered_at": AT, "delivery": {
        "mx_host": "mx.example.net", "smtp_response": "250 2.0.0 OK", "tls": "TLSv1.3", "attempts": 1,
        "duration_ms": 812}})
}

fn delivery_delayed() -> Value {
    json!({"status": "sent", "delay": {
        "smtp_code": 451, "enhanced_code": "4.7.1", "diagnostic": "451 4.7.1 greylisted", "attempt": 1,
        "next_attempt_at": "2026-01-01T10:01:00.000Z", "expires_at": "2026-01-03T10:00:00.000Z",
        "unconfirmed": false}})
}

fn bounced() -> Value {
    json!({"status": "bounced", "bounce_reason": "550 5.1.1 user unknown", "bounce": {
        "type": "hard", "category": "unknown_user", "smtp_code": 550, "enhanced_code": "5.1.1",
        "diagnostic": "smtp; 550 5.1.1 user unknown", "mx_host": "mx.example.net", "async": false},
        "suppression_id": null, "suppressed_until": null})
}

fn complained() -> Value {
    json!({"status": "delivered", "complaint": {
        "feedback_type": "abuse", "source": "fbl", "user_agent": "Example/1.0", "arrived_at": AT},
        "suppression_id": null})
}

fn opened() -> Value {
    json!({"status": "delivered", "open": {"ip": "192.0.2.1", "user_agent": "Mozilla/5.0", "machine": false,
        "proxy": null, "first": true}})
}

fn clicked() -> Value {
    json!({"status": "delivered", "click": {"url": "https://example.com/", "ip": "192.0.2.1",
        "user_agent": "Mozilla/5.0", "machine": false, "first": true}})
}

fn failed() -> Value {
    json!({"status": "failed", "failure": {
        "reason": "rejected", "message": "554 5.7.1 refused", "smtp_code": 554}, "suppression_id": null,
        "suppressed_until": null})
}

fn suppressed() -> Value {
    json!({"status": "failed", "suppressed": [{
        "email": RECIPIENT, "reason": "hard_bounce", "suppression_id": null, "category": null,
        "category_opt_out_id": null}]})
}

fn unsubscribed() -> Value {
    json!({"email": RECIPIENT, "source": "recipient",
        "scope": "category", "category": "product", "category_label": "Product", "suppression_id": null,
        "category_opt_out_id": "opt_00000000000000000000000000"})
}

fn step_completed() -> Value {
    json!({
        "automation_id": AUTOMATION, "automation_name": "Trial", "run_id": RUN, "status": "running",
        "event_name": "user.created", "step_index": 0, "step_type": "send_email", "error": null,
        "output": {"email_id": EMAIL}})
}

fn suppression() -> Value {
    json!({"suppression_id": SUPPRESSION, "email": "grace@example.net",
        "reason": "manual", "source": "api", "email_id": null, "expires_at": null, "created_at": AT})
}

fn webhook_disabled() -> Value {
    json!({"webhook_id": "whk_00000000000000000000000000",
        "url": "https://example.com/hooks", "disabled_reason": "failing",
        "failing_since": "2026-01-01T10:00:00.000Z"})
}

fn domain(degraded_since: Option<&str>) -> Value {
    json!({
        "domain_id": DOMAIN, "domain": "example.com", "status": "verified", "verified_at": AT,
        "degraded_since": degraded_since,
    })
}

/// Replaces the example recipient by `recipient`.
pub(super) fn set_recipient(example: &mut Value, recipient: &Address) {
    match example {
        Value::String(text) if text == RECIPIENT => *text = recipient.to_string(),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| set_recipient(entry, recipient)),
        Value::Object(fields) => fields.values_mut().for_each(|value| set_recipient(value, recipient)),
        _ => {}
    }
}

/// Example fields of an automation run.
fn automation_run(status: &str, error: Option<&str>) -> Value {
    let has_ended = status != "running";
    let step = error.map(|_| (0, "send_email"));
    json!({
        "automation_id": AUTOMATION, "automation_name": "Trial", "run_id": RUN, "status": status,
        "event_name": "user.created", "source_event_id": "ae_00000000000000000000000000", "user_id": "u_1",
        "email": "grace@example.net", "step_index": step.map(|(index, _)| index),
        "step_type": step.map(|(_, kind)| kind), "error": error,
        "ended_by": (status == "completed").then_some("all_steps"), "started_at": "2026-01-01T10:00:00.000Z",
        "completed_at": has_ended.then_some("2026-01-04T10:00:00.000Z"),
    })
}
