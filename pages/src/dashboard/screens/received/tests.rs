//! The pages of received mail with fixed answers: list, detail, frames, reply and forward.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

fn item() -> Value {
    json!({
        "email_id": "inb_1", "from": HOSTILE, "to": [HOSTILE], "rcpt_to": HOSTILE, "subject": HOSTILE,
        "spam_status": "spam", "attachment_count": 1, "received_at": "2026-11-26T10:00:00Z", "domain": HOSTILE,
        "auth": {"spf": "pass", "dkim": HOSTILE, "dmarc": "fail"},
    })
}

fn with_mail() -> FakeBackend {
    let mut mail = item();
    let more = json!({
        "message_id": HOSTILE, "text": HOSTILE, "html": "<script>alert(1)</script><img src=\"cid:a\">",
        "stripped_text": format!("{HOSTILE}!"), "headers": [{"name": HOSTILE, "value": HOSTILE}], "spam_score": 7.5,
        "size": 300, "envelope_from": HOSTILE,
        "attachments": [{"id": "att_0", "filename": HOSTILE, "content_type": "image/png", "size": 3, "content_id": "a",
            "disposition": "inline", "data": "QUJD"}],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        mail[name] = value.clone();
    }
    FakeBackend::new()
        .answer("get_received_email", json!({"received_email": mail}))
        .answer("get_received_email_raw", Value::String(HOSTILE.into()))
        .answer("list_domains", json!({"domains": []}))
        .answer("list_received_emails", json!({"received_emails": [item()], "next_cursor": null}))
}

#[test]
fn every_page_shows_strangers_texts_harmlessly() {
    let backend = with_mail();
    for path in [
        "/received",
        "/received/inb_1",
        "/received/inb_1?view=text",
        "/received/inb_1?view=new",
        "/received/inb_1?view=fields",
        "/received/inb_1/source",
        "/received/inb_1/reply",
        "/received/inb_1/forward",
        "/received/inb_1/delete",
    ] {
        assert_harmless(&html(backend.get(path)));
    }
    let page = html(backend.get("/received/inb_1"));
    assert!(page.contains("the sender may be forged") && page.contains("iframe sandbox="));
    let page = html(with_mail().forbid("delete_received_email").get("/received/inb_1"));
    assert!(!page.contains("inb_1/delete"));
}

#[test]
fn foreign_html_has_its_own_pictures_only() {
    let PageContent::Foreign { html, remote } = with_mail().get("/received/inb_1/html").content else { panic!() };
    assert!(html.contains("data:image/png;base64,QUJD") && !remote);
}

#[test]
fn lists_filter_and_export() {
    let backend = with_mail();
    backend.get("/received?from=a&after=2026-11-01&spam_status=spam");
    let call = &backend.calls("list_received_emails")[0];
    for (name, value) in [("from", "a"), ("received_after", "2026-11-01T00:00:00Z"), ("spam_status", "spam")] {
        assert!(call.query.contains(&(name.into(), value.into())), "{name}");
    }
    let PageContent::File { content, file_name, .. } = backend.get("/received/export.csv").content else { panic!() };
    assert_eq!((file_name.as_str(), content.lines().count()), ("received-2026-11-26.csv", 2));
    let backend = FakeBackend::new()
        .answer("list_received_emails", json!({"received_emails": []}))
        .answer("list_domains", json!({"domains": []}));
    assert!(html(backend.get("/received")).contains("Turn on receiving"));
    assert!(html(backend.get("/received?from=x")).contains("No emails match"));
    let backend = FakeBackend::new()
        .refuse("list_received_emails", Failure::field("domain_id", "no id"))
        .answer("list_domains", json!({"domains": []}));
    assert!(html(backend.get("/received?domain_id=x")).contains("The list could not be read"));
}

#[test]
fn files_are_downloaded_under_their_name() {
    let PageContent::Download { call, file_name } = with_mail().get("/received/inb_1/attachments/att_0").content else {
        panic!()
    };
    assert_eq!((call.operation, file_name.as_str()), ("get_received_email_attachment", HOSTILE));
    assert_eq!(with_mail().get("/received/inb_1/attachments/att_1").status, 404);
}

#[test]
fn mail_is_answered_and_deleted() {
    let sent = json!({"id": "msg_1", "status": "sent"});
    let backend = with_mail()
        .answer("reply_to_received_email", sent.clone())
        .answer("forward_received_email", sent)
        .answer("delete_received_email", json!({"ok": true}));
    let answer = backend.post("/received/inb_1/reply", "reply", &[("form_key", "k"), ("text", "Hi")]);
    assert_eq!(location(answer), "/dashboard/emails/msg_1?done=sent");
    let call = &backend.calls("reply_to_received_email")[0];
    assert_eq!(call.body, CallBody::Json(json!({"text": "Hi"})));
    assert!(call.idempotency_key.is_some());
    backend.post("/received/inb_1/forward", "forward", &[("to", "a@example.net, b@example.net")]);
    let body = json!({"to": ["a@example.net", "b@example.net"]});
    assert_eq!(backend.calls("forward_received_email")[0].body, CallBody::Json(body));
    assert_eq!(location(backend.post("/received/inb_1/delete", "delete", &[])), "/dashboard/received?done=deleted");
}
