//! The web inbox: a page that shows what was caught and refreshes itself, and the JSON behind it.
//!
//! ```text
//! GET /                          the page
//! GET /messages                  {messages: [{id, from, to, subject, received_at, size, tls, dkim}]}
//! GET /messages/{id}             one, with headers, text and parts
//! GET /messages/{id}/raw         message/rfc822
//! GET /messages/{id}/html        the HTML part alone, scripts and remote content shut off
//! GET /dkim-records              [{name, value}] of all domains here
//! DELETE /messages               throws everything away
//! ```

use std::sync::Arc;

use api::serve::pages::Page;
use bytes::Bytes;
use http::{Method, StatusCode};
use mail::message;
use mail_parser::{MessageParser, MimeHeaders as _};
use serde_json::{Value, json};

use super::inbox::{Caught, Inbox};

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
/// The page itself: one file, no other resource.
const PAGE: &str = include_str!("inbox.html");

/// Answers for the inbox. `records` lists the DKIM records of the domains here.
pub fn answer(inbox: &Arc<Inbox>, records: &[(String, String)], method: &Method, path: &str) -> Page {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", [""]) => Page::of(HTML, PAGE),
        ("GET", ["messages"]) => {
            let messages: Vec<Value> = inbox.list().iter().map(summary).collect();
            Page::of(JSON, json!({"messages": messages}).to_string())
        }
        ("DELETE", ["messages"]) => {
            inbox.clear();
            Page::of(JSON, json!({"ok": true}).to_string())
        }
        ("GET", ["dkim-records"]) => {
            let records: Vec<Value> =
                records.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            Page::of(JSON, Value::Array(records).to_string())
        }
        ("GET", ["messages", id, rest @ ..]) => match id.parse().ok().and_then(|id| inbox.get(id)) {
            Some(caught) => part(&caught, rest),
            None => Page::not_found("no such message\n"),
        },
        ("GET" | "DELETE", _) => Page::not_found("no such page\n"),
        _ => {
            Page { status: StatusCode::METHOD_NOT_ALLOWED, ..Page::of("text/plain", "GET or DELETE only\n") }
        }
    }
}

fn part(caught: &Caught, rest: &[&str]) -> Page {
    match rest {
        [] => Page::of(JSON, whole(caught).to_string()),
        ["raw"] => Page::foreign("message/rfc822", caught.raw.clone()),
        ["html"] => {
            let html = read(caught).and_then(|content| content.html).unwrap_or_default();
            Page::foreign(HTML, html)
        }
        _ => Page::not_found("no such part\n"),
    }
}

fn summary(caught: &Caught) -> Value {
    let header = message::read(&caught.raw).ok();
    let from = header.as_ref().and_then(|h| h.from.as_ref()).map(ToString::to_string);
    json!({
        "id": caught.id,
        "from": from,
        "envelope_from": caught.sender,
        "to": caught.recipients,
        "subject": header.map(|h| h.facts.subject).unwrap_or_default(),
        "received_at": caught.received_at,
        "size": caught.raw.len(),
        "tls": caught.tls,
        "dkim": caught.dkim,
    })
}

fn whole(caught: &Caught) -> Value {
    let mut shown = summary(caught);
    let (fields, body) = message::fields(&caught.raw);
    let headers: Vec<Value> = fields
        .iter()
        .map(|field| {
            let name = caught.raw.get(field.start..field.name_end).unwrap_or_default();
            let value = caught.raw.get(field.name_end..field.end).unwrap_or_default();
            let value = String::from_utf8_lossy(value);
            json!({
                "name": String::from_utf8_lossy(name),
                "value": value.trim_start_matches([' ', '\t']).strip_prefix(':').unwrap_or(&value).trim(),
            })
        })
        .collect();
    let content = read(caught);
    let content = content.unwrap_or_else(|| Content {
        text: Some(String::from_utf8_lossy(caught.raw.get(body..).unwrap_or_default()).into_owned()),
        html: None,
        attachments: Vec::new(),
    });
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("headers".to_owned(), Value::Array(headers));
        fields.insert("text".to_owned(), json!(content.text));
        fields.insert("has_html".to_owned(), json!(content.html.is_some()));
        fields.insert("attachments".to_owned(), Value::Array(content.attachments));
    }
    shown
}

struct Content {
    text: Option<String>,
    html: Option<String>,
    attachments: Vec<Value>,
}

/// The readable parts of a message; none when the parser meets a bug of its own, which hostile mail
/// is known to find.
fn read(caught: &Caught) -> Option<Content> {
    let raw: Bytes = caught.raw.clone();
    std::panic::catch_unwind(move || {
        let parsed = mail::mime::parse(&MessageParser::default(), raw.as_ref())?;
        let attachments = parsed
            .attachments()
            .map(|part| {
                let kind = part.content_type().map(|c| format!("{}/{}", c.ctype(), c.subtype().unwrap_or("*")));
                json!({"filename": part.attachment_name(), "content_type": kind, "size": part.contents().len()})
            })
            .collect();
        let is_html = |n: usize| parsed.html_body.get(n).is_some();
        Some(Content {
            text: parsed.body_text(0).map(std::borrow::Cow::into_owned),
            html: is_html(0).then(|| parsed.body_html(0)).flatten().map(std::borrow::Cow::into_owned),
            attachments,
        })
    })
    .ok()
    .flatten()
}
