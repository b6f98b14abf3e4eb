//! Descriptions of the fields of webhook events: from a table, or from the component whose fields the event has.
//!
//! Most descriptions serve several events, so they are not part of an event's row (`example_payloads::example_for`).

use serde_json::{Value, json};

/// `(begin of the event's name, path within `data`, description)`; the first that fits counts.
const FIELDS: &[(&str, &str, &str)] = &[
    ("", "event_id", "The event's id (`evt_…`), the same in every delivery: use it to recognise repetitions"),
    // Emails that were sent.
    ("suppression.", "email_id", "The email that caused the suppression (`msg_…`)"),
    ("email.received", "email_id", "The received email (`inb_…`)"),
    ("email.received", "status", "Always `received`"),
    ("email.received", "message_id", "The Message-ID (RFC 5322) with its angle brackets; empty if it has none"),
    ("contact.", "email_id", "The email whose link or button was used (`msg_…`)"),
    ("email.", "email_id", "The email (`msg_…`)"),
    ("email.", "message_id", "The Message-ID (RFC 5322) with its angle brackets"),
    ("email.received", "rcpt_to", "The envelope recipient at your domain"),
    ("email.", "rcpt_to", "The recipient that the event is about"),
    ("email.received", "domain", "The receiving domain"),
    ("email.", "domain", "The sending domain"),
    ("email.", "status", "The status that belongs to the event; `delivered` for opens, clicks and complaints"),
    ("email.received", "from", "The author, as in the `From` header field"),
    ("email.", "from", "The author, as it was sent"),
    ("email.received", "to", "The addresses of the `To` header field"),
    ("email.received", "cc", "The addresses of the `Cc` header field"),
    ("email.", "to", "The recipients"),
    ("email.", "cc", "The copied recipients"),
    ("email.", "subject", "The subject"),
    ("email.", "tags", "The tags that the send request gave"),
    ("email.", "tags[].name", "The tag's name"),
    ("email.", "tags[].value", "The tag's value"),
    ("email.", "category", "The category: `transactional`, `product` or `newsletter`"),
    ("email.", "template_id", "The template that was used (`tpl_…`); null if none was"),
    (
        "email.",
        "sent_at",
        "When the email entered the queue; null in `email.scheduled`, `email.cancelled` and `email.suppressed`",
    ),
    ("email.", "recipients_count", "How many recipients the event is about"),
    ("email.scheduled", "scheduled_at", "When the email is to be sent"),
    ("email.cancelled", "by", "Who cancelled it: `customer` or `operator`"),
    // Results of deliveries.
    ("email.delivered", "delivered_at", "When the mail host accepted the email"),
    ("email.delivered", "delivery", "The successful attempt"),
    ("email.delivered", "delivery.mx_host", "The mail host that accepted it"),
    ("email.delivered", "delivery.smtp_response", "The mail host's last reply"),
    (
        "email.delivered",
        "delivery.tls",
        "The TLS version, for example `TLSv1.3`; null if the connection was not encrypted",
    ),
    ("email.delivered", "delivery.attempts", "How many attempts were made, with this one"),
    ("email.delivered", "delivery.duration_ms", "Time of the attempt in milliseconds"),
    ("email.delivery_delayed", "delay", "The attempt that failed for now"),
    ("email.delivery_delayed", "delay.smtp_code", "The reply's SMTP code; null if there was no reply"),
    (
        "email.delivery_delayed",
        "delay.enhanced_code",
        "The reply's enhanced status code (RFC 3463), for example `4.7.1`",
    ),
    ("email.delivery_delayed", "delay.diagnostic", "The reply, or the error of the attempt"),
    (
        "email.delivery_delayed",
        "delay.attempt",
        "The number of the attempt, from 1; null if another host reported the delay",
    ),
    ("email.delivery_delayed", "delay.next_attempt_at", "When it will be retried; null if another host retries it"),
    ("email.delivery_delayed", "delay.expires_at", "When delivery is given up; null if another host retries it"),
    (
        "email.delivery_delayed",
        "delay.unconfirmed",
        "Whether the connection was lost before the reply to the content, so that the recipient may get the email twice",
    ),
    ("email.bounced", "bounce_reason", "The reply of the mail host that refused the email"),
    ("email.bounced", "bounce", "The refusal"),
    (
        "email.bounced",
        "bounce.type",
        "`hard`: the host refused permanently; `soft`: it kept refusing until the email expired",
    ),
    (
        "email.bounced",
        "bounce.category",
        "`unknown_user`, `mailbox_full`, `inactive`, `domain_not_found`, `message_too_large` or `undetermined`; also \
         `content_rejected`, `policy` or `reputation` if a report came after the delivery",
    ),
    ("email.bounced", "bounce.smtp_code", "The reply's SMTP code"),
    ("email.bounced", "bounce.enhanced_code", "The reply's enhanced status code (RFC 3463), for example `5.1.1`"),
    ("email.bounced", "bounce.diagnostic", "The reply with its kind (RFC 3464 2.3.6), for example `smtp; 550 5.1.1 …`"),
    ("email.bounced", "bounce.mx_host", "The mail host that refused"),
    ("email.bounced", "bounce.async", "Whether the host first accepted the email and reported the failure later"),
    ("email.failed", "failure", "Why delivery was given up"),
    (
        "email.failed",
        "failure.reason",
        "`expired`, `tls_required`, `dns_error`, `rejected`, `render_error`, `unconfirmed`, or a refusal of the sender: \
         `content_rejected`, `policy`, `reputation`",
    ),
    ("email.failed", "failure.message", "The last reply or error"),
    ("email.failed", "failure.smtp_code", "The last reply's SMTP code; null if there was no reply"),
    ("email.complained", "complaint", "The recipient's report of spam"),
    ("email.complained", "complaint.feedback_type", "The kind of report (RFC 5965), for example `abuse`"),
    ("email.complained", "complaint.source", "`fbl`: the feedback loop of a mailbox provider"),
    ("email.complained", "complaint.user_agent", "The program that wrote the report"),
    ("email.complained", "complaint.arrived_at", "When the reported email arrived, if the report says so"),
    ("suppression.", "suppression_id", "The suppression (`sup_…`)"),
    ("contact.", "suppression_id", "The new suppression (`sup_…`), if `scope` is `all`"),
    ("email.", "suppression_id", "The suppression that this led to (`sup_…`); null if it led to none"),
    ("email.", "suppressed_until", "When that suppression ends; null if it does not end, or if there is none"),
    ("email.opened", "open", "The fetch of the tracking image"),
    (
        "email.opened",
        "open.proxy",
        "The image proxy that fetched it: `apple_mpp`, `gmail` or `yahoo`; null if none did",
    ),
    (
        "email.opened",
        "open.machine",
        "Whether a program fetched it, for example a scanner: it does not count as an open",
    ),
    ("email.opened", "open.first", "Whether it is the recipient's first open"),
    ("email.opened", "open.ip", "The IP address that fetched it"),
    ("email.opened", "open.user_agent", "The `User-Agent` of the fetch"),
    ("email.clicked", "click", "The visit of the link"),
    ("email.clicked", "click.url", "The link's target"),
    (
        "email.clicked",
        "click.machine",
        "Whether a program followed it, for example a scanner: it does not count as a click",
    ),
    ("email.clicked", "click.first", "Whether it is the recipient's first click"),
    ("email.clicked", "click.ip", "The IP address of the visitor"),
    ("email.clicked", "click.user_agent", "The visitor's `User-Agent`"),
    ("email.suppressed", "suppressed", "The recipients to whom the email was not sent"),
    ("email.suppressed", "suppressed[].email", "The address"),
    (
        "email.suppressed",
        "suppressed[].reason",
        "The suppression's reason, for example `hard_bounce`; `unsubscribe` for an opt-out",
    ),
    ("email.suppressed", "suppressed[].suppression_id", "The suppression (`sup_…`); null for an opt-out"),
    ("email.suppressed", "suppressed[].category", "The category that the recipient opted out of"),
    ("email.suppressed", "suppressed[].category_opt_out_id", "The opt-out (`opt_…`)"),
    // Contacts, automations, domains, webhooks.
    ("contact.", "email", "The address that unsubscribed"),
    ("contact.", "source", "Always `recipient`"),
    ("contact.", "scope", "`all`: from all email that is not transactional; `category`: from one category"),
    ("contact.", "category", "The category, if `scope` is `category`"),
    ("contact.", "category_label", "The category's name, as the recipient sees it"),
    ("contact.", "category_opt_out_id", "The opt-out (`opt_…`), if `scope` is `category`"),
    ("automation.", "automation_name", "The automation's name when the run started"),
    ("automation.", "run_id", "The run (`run_…`)"),
    ("automation.", "status", "The run's status: `running`, `completed` or `failed`"),
    ("automation.", "source_event_id", "The event that started the run (`ae_…`, `evt_…`)"),
    ("automation.", "step_index", "The step that the event is about, counted from 0; null if it is about none"),
    ("automation.", "step_type", "The type of that step, for example `send_email`"),
    ("automation.step_completed", "output", "What the step produced"),
    (
        "automation.step_completed",
        "output.email_id",
        "The email that the step sent (`msg_…`); only of steps that send one",
    ),
    ("automation.", "started_at", "When the run was created"),
    ("domain.", "domain_id", "The domain (`dom_…`)"),
    ("domain.", "domain", "The domain's name"),
    ("webhook.", "webhook_id", "The endpoint (`whk_…`)"),
    // The affiliate program.
    ("", "program_id", "The affiliate program (`prog_…`)"),
    ("", "affiliate_id", "The partner (`aff_…`)"),
    ("affiliate.", "affiliate", "The partner after the change"),
    ("referral.", "referral", "The referral after the change"),
    ("commission.", "commission", "The commission after the change"),
    ("commission.paid", "payout_id", "The payout that paid it (`pay_…`)"),
    ("payout.", "payout_id", "The payout (`pay_…`)"),
];

/// `(begin of the event's name, path of an object within `data`, component with its fields)`.
const COMPONENTS: &[(&str, &str, &str)] = &[
    ("email.received", "", "ReceivedEmail"),
    ("automation.", "", "AutomationRun"),
    ("domain.", "", "Domain"),
    ("suppression.", "", "Suppression"),
    ("webhook.", "", "Webhook"),
    ("affiliate.", "affiliate", "Affiliate"),
    ("referral.", "referral", "AffiliateReferral"),
    ("commission.", "commission", "AffiliateCommission"),
];

/// Adds the descriptions of all fields to the schema of an event's `data`.
pub(super) fn describe(event: &str, data: &mut Value, components: &Value) {
    describe_below(event, "", data, components);
}

fn describe_below(event: &str, path: &str, schema: &mut Value, components: &Value) {
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, field) in fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if let Some(description) = description(event, &path, components) {
                field["description"] = json!(description);
            }
            describe_below(event, &path, field, components);
        }
    } else if let Some(items) = schema.get_mut("items") {
        describe_below(event, &format!("{path}[]"), items, components);
    }
}

fn description<'a>(event: &str, path: &str, components: &'a Value) -> Option<&'a str> {
    let fits = |(begin, at, _): &&(&str, &str, &str)| event.starts_with(begin) && *at == path;
    if let Some((.., description)) = FIELDS.iter().find(fits) {
        return Some(description);
    }
    COMPONENTS.iter().filter(|(begin, ..)| event.starts_with(begin)).find_map(|(_, base, component)| {
        let rest = if base.is_empty() { path } else { path.strip_prefix(base)?.strip_prefix('.')? };
        component_field(components.get(component)?, rest, components)?["description"].as_str()
    })
}

/// The field of a component at a path such as `links[].url`.
fn component_field<'a>(component: &'a Value, path: &str, components: &'a Value) -> Option<&'a Value> {
    path.split('.').try_fold(component, |object, name| {
        let (name, is_list) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
        let field = object.get("properties")?.get(name)?;
        let field = if is_list { field.get("items")? } else { field };
        match field["$ref"].as_str() {
            Some(reference) => components.get(reference.rsplit('/').next()?),
            None => Some(field),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_every_event_is_described() {
        let document = crate::openapi::document(&crate::operations::operation_table(), "https://mail.example.com");
        let mut missing = Vec::new();
        let mut find_missing = |event: &str, data: &Value| {
            let mut open = vec![(String::new(), data)];
            while let Some((path, schema)) = open.pop() {
                for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                    let path = format!("{path}.{name}");
                    if field["description"].as_str().is_none_or(str::is_empty) {
                        missing.push(format!("{event}: {path}"));
                    }
                    open.push((path, field));
                }
                if let Some(items) = schema.get("items") {
                    open.push((format!("{path}[]"), items));
                }
            }
        };
        for (event, entry) in document["webhooks"].as_object().unwrap() {
            let body = &entry["post"]["requestBody"]["content"]["application/json"]["schema"];
            find_missing(event, &body["properties"]["data"]);
        }
        assert!(missing.is_empty(), "{missing:#?}");
    }

    #[test]
    fn every_description_is_used() {
        let document = crate::openapi::document(&crate::operations::operation_table(), "https://mail.example.com");
        let used = document["webhooks"].to_string();
        let unused: Vec<_> = FIELDS.iter().filter(|(.., text)| !used.contains(&*json!(text).to_string())).collect();
        assert!(unused.is_empty(), "{unused:#?}");
    }
}
