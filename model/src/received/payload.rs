//! The payload of `email.received`: the contract's 14 fields and later additions, except the
//! event id. Lists show the same fields. The key order is stable.

use serde_json::{Map, Value, json};

use super::ReceivedEmail;
use crate::timestamp;

pub fn received_event_data(received: &ReceivedEmail) -> Map<String, Value> {
    let heading = &received.heading;
    let files: Vec<Value> = heading
        .attachments
        .iter()
        .map(|file| json!({"filename": file.filename, "content_type": file.content_type, "size": file.size_bytes}))
        .collect();
    let auth = &received.auth;
    let mut data = Map::new();
    let mut put = |name: &str, value: Value| drop(data.insert(name.to_owned(), value));
    put("email_id", json!(received.id));
    put("to", json!(heading.to));
    put("from", json!(heading.from));
    put("subject", json!(heading.subject));
    put("status", json!("received"));
    put("rcpt_to", json!(received.rcpt_to));
    put("cc", json!(heading.cc));
    put("message_id", json!(heading.message_id));
    put("in_reply_to", json!(heading.in_reply_to));
    put("references", json!(heading.references));
    put("spam_status", json!(received.spam_status));
    put("attachment_count", json!(heading.attachment_count));
    put("attachments", Value::Array(files));
    put("received_at", json!(timestamp::to_rfc3339(received.received_at)));
    put("domain", json!(received.rcpt_to.domain()));
    put("envelope_from", json!(received.envelope_from));
    put("auth", json!({"spf": auth.spf, "dkim": auth.dkim, "dmarc": auth.dmarc}));
    data
}
