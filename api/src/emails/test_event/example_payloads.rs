//! Example payloads of webhook events.

use mail::address::Address;
use mail::id::EventId;
use serde_json::{Map, Value, json};

use super::affiliate_examples;

const EMAIL: &str = "msg_00000000000000000000000000";
const AUTOMATION: &str = "aut_00000000000000000000000000";
const DOMAIN: &str = "dom_00000000000000000000000000";
const SUPPRESSION: &str = "sup_00000000000000000000000000";
const RUN: &str = "run_00000000000000000000000000";
/// Recipient of the example email.
const RECIPIENT: &str = "grace@example.net";
/// An event about a contact, not about an email.
pub(super) const UNSUBSCRIBED: &str = "contact.unsubscribed";
/// Events that concern all recipients of an email.
pub(super) const WHOLE_EMAIL_EVENTS: &[&str] =
    &["email.sent", "email.scheduled", "email.suppressed", "email.cancelled"];

/// The example fields of an event; `None` if there is no such event.
pub(crate) fn example_for(event: &str) -> Option<Value> {
    let at = "2026-01-01T10:00:00.812Z";
    Some(match event {
        "email.sent" => json!({"status": "sent", "recipients_count": 1}),
        "email.scheduled" => json!({"status": "scheduled", "scheduled_at": "2026-01-02T09:00:00.000Z"}),
        "email.cancelled" => json!({"status": "cancelled", "by": "customer", "recipients_count": 1}),
        "email.delivered" => json!({"status": "delivered", "delivered_at": at, "delivery": {
            "mx_host": "mx.example.net", "smtp_response": "250 2.0.0 OK", "tls": "TLSv1.3", "attempts": 1,
            "duration_ms": 812}}),
        "email.delivery_delayed" => json!({"status": "sent", "delay": {
            "smtp_code": 451, "enhanced_code": "4.7.1", "diagnostic": "451 4.7.1 greylisted", "attempt": 1,
            "next_attempt_at": "2026-01-01T10:01:00.000Z", "expires_at": "2026-01-03T10:00:00.000Z",
            "unconfirmed": false}}),
        "email.bounced" => json!({"status": "bounced", "bounce_reason": "550 5.1.1 user unknown", "bounce": {
            "type": "hard", "category": "unknown_user", "smtp_code": 550, "enhanced_code": "5.1.1",
            "diagnostic": "smtp; 550 5.1.1 user unknown", "mx_host": "mx.example.net", "async": false},
            "suppression_id": null, "suppressed_until": null}),
        "email.failed" => json!({"status": "failed", "failure": {
            "reason": "rejected", "message": "554 5.7.1 refused", "smtp_code": 554}, "suppression_id": null,
            "suppressed_until": null}),
        "email.complained" => json!({"status": "delivered", "complaint": {
            "feedback_type": "abuse", "source": "fbl", "user_agent": "Example/1.0", "arrived_at": at},
            "suppression_id": null}),
        "email.opened" => {
            json!({"status": "delivered", "open": {"ip": "192.0.2.1", "user_agent": "Mozilla/5.0", "machine": false,
            "proxy": null, "first": true}})
        }
        "email.clicked" => {
            json!({"status": "delivered", "click": {"url": "https://example.com/", "ip": "192.0.2.1",
            "user_agent": "Mozilla/5.0", "machine": false, "first": true}})
        }
        "email.suppressed" => json!({"status": "failed", "suppressed": [{
            "email": RECIPIENT, "reason": "hard_bounce", "suppression_id": null, "category": null,
            "category_opt_out_id": null}]}),
        "contact.unsubscribed" => json!({"email": RECIPIENT, "source": "recipient",
            "scope": "category", "category": "product", "category_label": "Product", "suppression_id": null,
            "category_opt_out_id": "opt_00000000000000000000000000"}),
        "email.received" => json!({
            "email_id": "inb_00000000000000000000000000", "to": ["support@example.com"],
            "from": "Grace <grace@example.net>", "subject": "Re: An example", "status": "received",
            "rcpt_to": "support@example.com", "cc": [], "message_id": "<2@example.net>",
            "in_reply_to": "<1@example.com>", "references": ["<1@example.com>"], "spam_status": "not_spam",
            "attachment_count": 1,
            "attachments": [{"filename": "a.pdf", "content_type": "application/pdf", "size": 1024}],
            "received_at": at, "domain": "example.com", "envelope_from": "grace@example.net",
            "auth": {"spf": "pass", "dkim": "pass", "dmarc": "pass"}}),
        "automation.started" => automation_run("running", None),
        "automation.completed" => automation_run("completed", None),
        "automation.failed" => automation_run("failed", Some("The template was not found")),
        "automation.step_completed" => json!({
            "automation_id": AUTOMATION, "automation_name": "Trial", "run_id": RUN, "status": "running",
            "event_name": "user.created", "step_index": 0, "step_type": "send_email", "error": null,
            "output": {"email_id": EMAIL}}),
        "domain.verified" => json!({"domain_id": DOMAIN, "domain": "example.com", "status": "verified",
            "verified_at": at, "degraded_since": null}),
        "domain.degraded" => json!({"domain_id": DOMAIN, "domain": "example.com", "status": "verified",
            "verified_at": at, "degraded_since": at}),
        "suppression.created" => json!({"suppression_id": SUPPRESSION, "email": "grace@example.net",
            "reason": "manual", "source": "api", "email_id": null, "expires_at": null, "created_at": at}),
        "suppression.deleted" => json!({"suppression_id": SUPPRESSION, "email": "grace@example.net",
            "reason": "manual", "source": "api", "email_id": null, "expires_at": null, "created_at": at}),
        "webhook.disabled" => json!({"webhook_id": "whk_00000000000000000000000000",
            "url": "https://example.com/hooks", "disabled_reason": "failing",
            "failing_since": "2026-01-01T10:00:00.000Z"}),
        _ => return affiliate_examples::example_for(event),
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

/// Returns whether the event's payload is complete by itself, because it is not about a sent email.
pub(crate) fn has_own_payload(event: &str) -> bool {
    let others = ["automation.", "domain.", "suppression.", "webhook."];
    let mut others = others.into_iter().chain(affiliate_examples::EVENT_PREFIXES);
    event == "email.received" || others.any(|start| event.starts_with(start))
}

/// The common fields of an event's payload, for an example email.
pub(crate) fn common_fields(name: &str, id: EventId) -> Map<String, Value> {
    let data = if has_own_payload(name) {
        json!({"event_id": id})
    } else if name == UNSUBSCRIBED {
        json!({"event_id": id, "email_id": EMAIL})
    } else {
        json!({
            "event_id": id, "email_id": EMAIL, "message_id": "<00000000000000000000000000@example.com>",
            "from": "Ada <ada@example.com>", "to": ["grace@example.net"], "cc": [],
            "rcpt_to": "grace@example.net", "subject": "An example",
            "tags": [{"name": "flow", "value": "welcome"}], "category": "transactional", "template_id": null,
            "domain": "example.com", "sent_at": "2026-01-01T10:00:00.000Z",
        })
    };
    let Value::Object(mut data) = data else { return Map::new() };
    if WHOLE_EMAIL_EVENTS.contains(&name) {
        data.remove("rcpt_to");
    }
    data
}

#[cfg(test)]
mod tests {
    use mail::event::EventKind;

    use super::*;

    #[test]
    fn every_event_has_an_example() {
        let missing: Vec<_> =
            EventKind::ALL.iter().map(|kind| kind.name()).filter(|name| example_for(name).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
