//! Webhook payloads of email events: the common fields, then those of the event type. The
//! key order is stable. [`delivery_body`] builds the body for any event; the body is deterministic and bounded.

use serde_json::{Map, Value, json};

use crate::email::{Email, EmailStatus};
use crate::event::{Event, EventKind, Subject};
use crate::timestamp;
use crate::webhook::WebhookBody;

/// Fields of `detail` that are internal and not sent.
const INTERNAL_DETAILS: &[&str] = &["uncounted", "given_back", "accepted_at"];

/// Builds the data of an email event. `status` is used for event types that imply no status of their own.
pub fn email_event_data(email: &Email, event: &Event, status: EmailStatus) -> Map<String, Value> {
    let texts = |boxes: &[message::address::Mailbox]| boxes.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut data = Map::new();
    let mut put = |name: &str, value: Value| drop(data.insert(name.to_owned(), value));
    put("event_id", json!(event.id));
    put("email_id", json!(email.id));
    if event.kind == EventKind::Unsubscribed {
        // An unsubscribe concerns a contact.
        data.extend(event_details(event));
        return data;
    }
    put("message_id", json!(format!("<{}>", email.header.message_id)));
    put("status", json!(status_at_event(event.kind, status)));
    put("from", json!(email.from.to_string()));
    put("to", json!(texts(&email.header.to)));
    put("cc", json!(texts(&email.header.cc)));
    if let Some(recipient) = &event.recipient {
        put("rcpt_to", json!(recipient));
    }
    put("subject", json!(email.header.subject));
    put("tags", json!(email.tags));
    put("category", json!(email.category));
    put("template_id", json!(email.template.as_ref().map(|template| template.id)));
    put("domain", json!(email.domain));
    // Scheduled, cancelled and suppressed emails were not sent.
    let unsent = matches!(event.kind, EventKind::Scheduled | EventKind::Cancelled | EventKind::Suppressed);
    put("sent_at", json!((!unsent).then(|| timestamp::to_rfc3339(email.created_at))));
    if event.kind == EventKind::Delivered {
        put("delivered_at", json!(timestamp::to_rfc3339(event.created_at)));
    }
    data.extend(event_details(event));
    data
}

/// Maximum size of a body.
pub const BODY_BYTES_MAX: usize = 20 * 1000;

/// Builds the data of an event. Returns `None` for an email event whose email no longer exists.
pub fn event_data(event: &Event, email: Option<&Email>) -> Option<Map<String, Value>> {
    let mut data = match event.subject {
        // Opened, clicked and complained emails were delivered.
        Subject::Email(_) => email_event_data(email?, event, EmailStatus::Delivered),
        _ => {
            let mut data = Map::new();
            data.insert("event_id".to_owned(), json!(event.id));
            data.extend(event_details(event));
            data
        }
    };
    truncate_to_limit(&mut data);
    Some(data)
}

/// Builds the body of a webhook delivery. Returns `None` if the event's email no longer exists.
pub fn delivery_body(event: &Event, email: Option<&Email>) -> Option<Vec<u8>> {
    let data = event_data(event, email)?;
    let envelope =
        WebhookBody { r#type: event.kind.name(), created_at: timestamp::to_rfc3339(event.created_at), data: &data };
    serde_json::to_vec(&envelope).ok()
}

/// Size reserved for the envelope around the data.
const ENVELOPE_BYTES: usize = 200;

/// Truncates long texts and lists until the data fits, for example of an email with a thousand recipients. The API
/// returns the complete values.
fn truncate_to_limit(data: &mut Map<String, Value>) {
    for (chars, entries) in [(2_000, 100), (500, 25), (100, 5), (30, 2)] {
        let size = serde_json::to_vec(data).map_or(0, |text| text.len());
        if size <= BODY_BYTES_MAX - ENVELOPE_BYTES {
            return;
        }
        data.values_mut().for_each(|value| truncate_value(value, chars, entries));
    }
}

fn truncate_value(value: &mut Value, chars: usize, entries: usize) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(chars) {
                text.truncate(end);
            }
        }
        Value::Array(list) => {
            list.truncate(entries);
            list.iter_mut().for_each(|value| truncate_value(value, chars, entries));
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| truncate_value(value, chars, entries)),
        _ => {}
    }
}

/// The fields that the event type adds, without internal ones.
pub fn event_details(event: &Event) -> impl Iterator<Item = (String, Value)> + '_ {
    let detail = event.detail.as_object().into_iter().flatten();
    let is_internal = |name: &&String| INTERNAL_DETAILS.contains(&name.as_str());
    detail.filter(move |(name, _)| !is_internal(name)).map(|(name, value)| (name.clone(), value.clone()))
}

/// The status that an event type implies, which may differ from the email's current status.
fn status_at_event(kind: EventKind, status: EmailStatus) -> EmailStatus {
    match kind {
        EventKind::Sent | EventKind::DeliveryDelayed => EmailStatus::Sent,
        EventKind::Scheduled => EmailStatus::Scheduled,
        EventKind::Delivered => EmailStatus::Delivered,
        EventKind::Bounced => EmailStatus::Bounced,
        EventKind::Failed | EventKind::Suppressed => EmailStatus::Failed,
        EventKind::Cancelled => EmailStatus::Cancelled,
        _ => status,
    }
}
