//! The pages of emails with fixed answers: filters, detail, frames, compose, bulk actions.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};
use crate::dashboard::request::UploadedFile;

fn item(status: &str) -> Value {
    json!({
        "id": "msg_1", "from": HOSTILE, "to": [HOSTILE], "cc": ["c@example.net"], "bcc": [], "subject": HOSTILE,
        "status": status, "tags": [{"name": HOSTILE, "value": HOSTILE}], "created_at": "2026-11-26T10:00:00Z",
        "scheduled_at": "2026-12-01T09:00:00.000Z",
    })
}

fn whole(status: &str) -> Value {
    let mut email = item(status);
    let more = json!({
        "message_id": HOSTILE, "html": "<p>Hi <img src=\"https://example.org/a.png\"></p>", "text": HOSTILE,
        "headers": {HOSTILE: HOSTILE}, "category": "newsletter",
        "attachments": [{"name": HOSTILE, "content_type": HOSTILE, "size": 3}],
        "template": {"id": "tpl_1", "alias": HOSTILE, "version": 2}, "size": 2000,
        "recipients": [{
            "email": HOSTILE, "type": "to", "status": "deferred", "attempts": 1, "mx_host": HOSTILE,
            "last_response": {"smtp_code": 451, "enhanced_code": "4.2.1", "text": HOSTILE},
            "next_attempt_at": "2026-11-26T13:00:00Z", "waits_for": {"cause": "schedule", "text": HOSTILE},
        }, {"email": "c@example.net", "type": "cc", "status": "failed", "attempts": 0, "error": HOSTILE}],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        email[name] = value.clone();
    }
    json!({"email": email})
}

fn with_email(status: &str) -> FakeBackend {
    let attempt = json!({
        "n": 1, "recipient": HOSTILE, "mx_host": HOSTILE, "ip": "192.0.2.1", "smtp_code": 451, "response": HOSTILE,
        "tls": {"version": "TLSv1.3", "cipher": HOSTILE, "verified": true, "policy": "mta-sts"}, "phase": "rcpt",
        "duration_ms": 7, "created_at": "2026-11-26T10:00:00Z", "transcript": format!("  1 < 451 {HOSTILE}\n"),
    });
    let event = json!({
        "type": "email.delivery_delayed", "recipient": HOSTILE, "created_at": "2026-11-26T10:00:00Z",
        "detail": {"delay": {"diagnostic": HOSTILE}},
    });
    FakeBackend::new()
        .answer("get_email", whole(status))
        .answer("list_email_attempts", json!({"attempts": [attempt], "next_cursor": "n"}))
        .answer("list_email_events", json!({"events": [event], "has_more": false}))
        .answer("get_email_raw", Value::String(HOSTILE.into()))
}

#[test]
fn a_recipient_learns_that_another_one_is_suppressed() {
    let mut email = whole("failed");
    email["email"]["last_event"] = "email.suppressed".into();
    let page = html(with_email("failed").answer("get_email", email.clone()).get("/emails/msg_1"));
    assert!(page.contains("Nobody got this email, because another recipient is on your suppression list"), "{page}");
    email["email"]["last_event"] = "email.failed".into();
    let page = html(with_email("failed").answer("get_email", email).get("/emails/msg_1"));
    assert!(!page.contains("Nobody got this email"), "{page}");
}

#[test]
fn the_list_shows_and_filters() {
    let backend = FakeBackend::new()
        .answer("list_emails", json!({"emails": [item("scheduled")], "has_more": true, "next_cursor": "next"}))
        .answer("list_domains", json!({"domains": [{"id": "dom_1", "name": HOSTILE}]}));
    let page = html(backend.get("/emails?status=scheduled&q=a&tag=x:1"));
    assert_harmless(&page);
    for part in ["and 1 more", "cursor=next", "/dashboard/emails/export.csv?status=scheduled&amp;q=a&amp;tag=x%3A1"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let call = &backend.calls("list_emails")[0];
    for (name, value) in [("status", "scheduled"), ("q", "a"), ("tag", "x:1"), ("limit", "50")] {
        assert!(call.query.contains(&(name.into(), value.into())), "{name}");
    }
}

#[test]
fn an_empty_list_says_what_to_do() {
    let empty = |has_more: bool| json!({"emails": [], "has_more": has_more, "next_cursor": has_more.then_some("n")});
    let backend = FakeBackend::new().answer("list_emails", empty(false)).answer("list_domains", json!({"domains": []}));
    assert!(html(backend.get("/emails")).contains("Write the first one"));
    assert!(html(backend.get("/emails?q=x")).contains("No emails match the filters"));
    let backend = FakeBackend::new().answer("list_emails", empty(true)).answer("list_domains", json!({"domains": []}));
    let page = html(backend.get("/emails?q=x"));
    assert!(page.contains("Nothing found so far") && page.contains("Continue the search"));
    let failure = Failure::field("status", "`status`: must be one of <b>");
    let backend = FakeBackend::new().refuse("list_emails", failure).answer("list_domains", json!({"domains": []}));
    let page = html(backend.get("/emails?status=x"));
    assert!(page.contains("The list could not be read: status: must be one of &lt;b&gt;") && page.contains("filter-q"));
}

#[test]
fn a_search_goes_on_until_it_finds_something() {
    let empty = |next: &str| json!({"emails": [], "has_more": true, "next_cursor": next, "searched_until": "2026-11-20T10:00:00Z"});
    let found = json!({"emails": [item("delivered")], "next_cursor": null});
    let backend = FakeBackend::new()
        .answer("list_emails", empty("second"))
        .answer_after("list_emails", "second", empty("third"))
        .answer_after("list_emails", "third", found)
        .answer("list_domains", json!({"domains": []}));
    let page = html(backend.get("/emails?status=delivered"));
    assert!(page.contains("<tbody>") && !page.contains("Nothing found so far"), "{page}");
    let calls = backend.calls("list_emails");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.query.contains(&("status".into(), "delivered".into()))));

    let backend =
        FakeBackend::new().answer("list_emails", empty("again")).answer("list_domains", json!({"domains": []}));
    let page = html(backend.get("/emails?status=delivered"));
    assert_eq!(backend.calls("list_emails").len(), 5, "the search of one page is bounded");
    assert!(page.contains("cursor=again") && page.contains("Continue the search"), "{page}");
    assert!(page.contains("2026-11-20T10:00:00"), "how far the search has come: {page}");
}

#[test]
fn the_export_follows_the_cursors_and_ends() {
    let backend = FakeBackend::new().answer("list_emails", json!({"emails": [item("sent")], "next_cursor": "again"}));
    let PageContent::File { content, file_name, .. } = backend.get("/emails/export.csv?q=a").content else { panic!() };
    assert_eq!((file_name.as_str(), content.lines().count()), ("emails-2026-11-26-newest-part.csv", 201));
    assert!(backend.calls("list_emails")[1].query.contains(&("cursor".into(), "again".into())));
}

#[test]
fn the_detail_answers_why_it_is_not_there() {
    let backend = with_email("sent");
    let page = html(backend.get("/emails/msg_1"));
    assert_harmless(&page);
    for part in [
        "Why it has not arrived yet",
        "It is in the queue after 1 attempt.",
        "Next attempt: ",
        "MTA-STS policy names",
        "iframe sandbox=",
        "/dashboard/emails/msg_1/html",
        "Show images",
        "All attempts",
        "data-live=",
        "?category=newsletter",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("pictures=show\" title"), "pictures are loaded only when asked for");
    assert_harmless(&html(backend.get("/emails/msg_1?view=fields")));
    assert_harmless(&html(backend.get("/emails/msg_1?view=text")));
    assert_harmless(&html(backend.get("/emails/msg_1/attempts")));
    assert_harmless(&html(backend.get("/emails/msg_1/source")));
    let page = html(with_email("sent").forbid("resend_email").get("/emails/msg_1"));
    assert!(!page.contains("msg_1/resend"), "the role may not resend");
}

#[test]
fn html_is_shown_in_a_frame_only() {
    let backend = with_email("sent");
    for (path, expected) in [("/emails/msg_1/html", false), ("/emails/msg_1/html?pictures=show", true)] {
        let PageContent::Foreign { html, remote } = backend.get(path).content else { panic!("{path}") };
        assert_eq!(remote, expected);
        assert!(html.starts_with("<base target=\"_blank\"><p>Hi"));
    }
}

#[test]
fn emails_are_changed() {
    let backend = with_email("scheduled").answer("cancel_email", json!({})).answer("update_email", json!({}));
    for page in ["cancel", "reschedule"] {
        assert_harmless(&html(backend.get(&format!("/emails/msg_1/{page}"))));
    }
    assert_eq!(location(backend.post("/emails/msg_1/cancel", "cancel", &[])), "/dashboard/emails/msg_1?done=cancelled");
    backend.post("/emails/msg_1/reschedule", "reschedule", &[("scheduled_at", "2026-12-02T08:30")]);
    let body = json!({"scheduled_at": "2026-12-02T08:30:00Z"});
    assert_eq!(backend.calls("update_email")[0].body, CallBody::Json(body));
    assert!(html(with_email("delivered").get("/emails/msg_1/cancel")).contains("no longer scheduled"));
    assert!(html(with_email("queued").get("/emails/msg_1/resend")).contains("has not been sent yet"));
}

#[test]
fn a_confidential_email_is_not_sent_again() {
    let mut email = whole("bounced");
    email["email"]["confidential"] = true.into();
    email["email"]["recipients"][0]["status"] = "bounced".into();
    let list = json!({"emails": [email["email"].clone()], "next_cursor": null});
    let backend = with_email("bounced").answer("get_email", email).answer("list_emails", list);
    let page = html(backend.get("/emails/msg_1"));
    assert!(page.contains("Why it did not arrive") && !page.contains("msg_1/resend"), "{page}");
    let page = html(backend.get("/emails/msg_1/resend"));
    assert!(page.contains("it cannot be sent again") && !page.contains("value=\"resend\""), "{page}");
    let page = html(backend.get("/emails/selected?id=msg_1"));
    assert!(page.contains("cannot be sent again: 1 email") && !page.contains("Resend 1 email"), "{page}");
}

#[test]
fn the_same_form_sends_once() {
    let backend = with_email("delivered").answer("resend_email", json!({"id": "msg_2", "status": "sent"}));
    for _ in 0..2 {
        let answer = backend.post("/emails/msg_1/resend", "resend", &[("form_key", "k")]);
        assert_eq!(location(answer), "/dashboard/emails/msg_2?done=sent");
    }
    backend.post("/emails/msg_1/resend", "resend", &[("form_key", "other")]);
    let keys: Vec<_> = backend.calls("resend_email").into_iter().map(|call| call.idempotency_key.unwrap()).collect();
    assert!(keys[0] == keys[1] && keys[0] != keys[2]);
    let shown = |page: String| page.split("name=\"form_key\" value=\"").nth(1).unwrap()[..32].to_owned();
    let (one, two) = (html(backend.get("/emails/msg_1/resend")), html(backend.get("/emails/msg_1/resend")));
    assert_ne!(shown(one), shown(two));
}

#[test]
fn an_email_is_written() {
    let backend = FakeBackend::new()
        .answer("list_templates", json!({"templates": [{"id": "tpl_1", "name": HOSTILE}]}))
        .answer("list_domains", json!({"domains": [{"name": HOSTILE, "status": "verified"}]}))
        .answer("send_email", json!({"id": "msg_3", "status": "sent"}));
    assert_harmless(&html(backend.get("/emails/new")));
    let fields =
        [("from", "a@example.com"), ("to", "b@example.net"), ("subject", "S"), ("text", "T"), ("tags", "order: 7")];
    let file = UploadedFile { field: "attachments".into(), file_name: "a.txt".into(), content: "abc".into() };
    let answer = backend.post_files("/emails/new", "send", &fields, vec![file]);
    assert_eq!(location(answer), "/dashboard/emails/msg_3?done=sent");
    let expected = json!({
        "from": "a@example.com", "to": ["b@example.net"], "subject": "S", "text": "T", "tags": {"order": "7"},
        "attachments": [{"name": "a.txt", "content_type": "text/plain", "data": "YWJj"}],
    });
    let CallBody::Json(body) = &backend.calls("send_email")[0].body else { panic!() };
    assert_eq!(*body, expected);
    let page = html(backend.post("/emails/new", "send", &[("subject", HOSTILE), ("tags", "x")]));
    assert!(page.contains("“x” is not a tag") && page.contains("&#x202E;"), "the person's text stays: {page}");
}

#[test]
fn templates_ask_for_their_variables() {
    let template = json!({"template": {
        "id": "tpl_1", "name": HOSTILE, "subject": HOSTILE, "category": "product", "variables": [
            {"key": "name", "type": "string", "required": true}, {"key": "count", "type": "number", "fallback_value": 3},
        ],
    }});
    let backend = FakeBackend::new()
        .answer("get_template", template)
        .answer("list_domains", json!({"domains": []}))
        .answer("send_email", json!({"id": "msg_3", "warnings": [HOSTILE]}));
    assert_harmless(&html(backend.get("/emails/new?template=tpl_1")));
    let fields = [
        ("to", "b@example.net"),
        ("template.id", "tpl_1"),
        ("template.variables.name", "G"),
        ("template.variables.count", "7"),
    ];
    assert_harmless(&html(backend.post("/emails/new?template=tpl_1", "send", &fields)));
    let CallBody::Json(body) = &backend.calls("send_email")[0].body else { panic!() };
    assert_eq!(body["template"], json!({"id": "tpl_1", "variables": {"name": "G", "count": 7}}));
}

#[test]
fn several_emails_are_changed_at_once() {
    let other = json!({"emails": [], "next_cursor": null});
    let backend = with_email("scheduled").answer("list_emails", other.clone()).answer("cancel_email", json!({}));
    let page = html(backend.get("/emails/selected?id=msg_1&id=msg_1"));
    assert_harmless(&page);
    assert!(page.contains("Cancel 1 email") && !page.contains("Resend 1 email"));
    let answer = backend.post("/emails/selected", "cancel", &[("ids", "msg_1 msg_2")]);
    assert_eq!(location(answer), "/dashboard/emails?done=cancelled");
    let failure = Failure { status: 409, message: HOSTILE.into(), ..Failure::default() };
    let backend = with_email("delivered").answer("list_emails", other).refuse("resend_email", failure);
    let page = html(backend.post("/emails/selected", "resend", &[("ids", "msg_1")]));
    assert!(page.contains("1 of 1 email could not be changed"));
    assert_harmless(&page);
    assert!(html(backend.get("/emails/selected")).contains("No emails selected"));
    let backend = with_email("scheduled").answer("list_emails", json!({"emails": [item("scheduled")]}));
    assert!(html(backend.get("/emails/selected?q=a&id=msg_1")).contains("Cancel 1 email"));
    assert!(backend.calls("get_email").is_empty(), "the list has them");
}

#[test]
fn the_content_of_a_scheduled_email_is_still_to_be_sent() {
    assert!(html(with_email("scheduled").get("/emails/msg_1")).contains("What will be sent"));
    assert!(html(with_email("delivered").get("/emails/msg_1")).contains("What was sent"));
}

#[test]
fn the_sender_names_some_verified_domains() {
    let help = |count: usize| {
        let domains: Vec<_> =
            (1..=count).map(|n| json!({"name": format!("d{n}.example"), "status": "verified"})).collect();
        let backend = FakeBackend::new()
            .answer("list_domains", json!({"domains": domains}))
            .answer("list_templates", json!({"templates": []}));
        html(backend.get("/emails/new"))
    };
    let five = "d1.example, d2.example, d3.example, d4.example, d5.example";
    assert!(help(5).contains(five) && !help(5).contains("d5.example and"));
    assert!(help(7).contains(&format!("{five} and 2 more")), "{}", help(7));
    assert!(help(100).contains(&format!("{five} and more")));
}

#[test]
fn a_scheduled_time_is_shown_in_utc() {
    let page = html(with_email("scheduled").get("/emails/msg_1/reschedule"));
    assert_eq!(page.matches("1 Dec 2026, 09:00 UTC").count(), 1, "{page}");
    assert!(page.contains("value=\"2026-12-01T09:00\""), "{page}");
}

#[test]
fn a_refused_form_asks_for_its_files_again() {
    let backend = FakeBackend::new()
        .answer("list_domains", json!({"domains": []}))
        .answer("list_templates", json!({"templates": []}))
        .refuse("send_email", Failure::field("to", "is missing"));
    let file = |name: &str| UploadedFile { field: "attachments".into(), file_name: name.into(), content: "abc".into() };
    let send = |name: &str| html(backend.post_files("/emails/new", "send", &[("subject", "S")], vec![file(name)]));
    assert!(send("a.txt").contains("Choose the files again"));
    assert!(!send("").contains("Choose the files again"), "the control had no file");
}

#[test]
fn an_email_without_attempts_says_so() {
    let backend = with_email("cancelled").answer("list_email_attempts", json!({"attempts": [], "next_cursor": null}));
    let page = html(backend.get("/emails/msg_1/attempts"));
    assert!(page.contains("No delivery has been attempted."), "{page}");
}
