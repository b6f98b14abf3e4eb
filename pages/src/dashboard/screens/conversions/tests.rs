//! Tests of the pages of conversions with fixed answers.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};

fn conversion() -> Value {
    json!({
        "event_id": "ae_1", "kind": "subscription", "subject_id": HOSTILE, "user_id": "u_1", "email": "g@example.net",
        "visitor_id": null, "source": HOSTILE, "came_from": HOSTILE, "signup_method": HOSTILE, "gclid": HOSTILE,
        "value": 29.0, "currency": "eur", "occurred_at": "2026-11-26T10:00:00.000Z",
    })
}

fn backend() -> FakeBackend {
    FakeBackend::new()
        .answer("list_conversions", json!({"conversions": [conversion()], "next_cursor": null}))
        .answer("get_event", json!({"event": {
            "id": "ae_1", "name": "subscription.started", "user_id": "u_1", "email": "g@example.net", "data": {},
            "source": "api", "created_at": "2026-11-26T10:00:00.000Z",
        }}))
        .answer("list_emails", json!({"emails": [
            {"id": "msg_1", "subject": HOSTILE, "last_event": "email.clicked", "created_at": "2026-11-26T08:00:00.000Z"},
        ]}))
}

#[test]
fn conversions_are_listed_and_exported() {
    let page = html(backend().get("/conversions"));
    assert_harmless(&page);
    assert!(page.contains(">From date<") && page.contains(">To date<"), "as in the other lists: {page}");
    assert!(page.contains("29.00 EUR") && page.contains("/dashboard/conversions/ae_1"));
    let filtered = backend();
    filtered.get("/conversions?kind=sign_up&source=+google.com&before=2026-11-26");
    let expected = [("created_before", "2026-11-27T00:00:00Z"), ("kind", "sign_up"), ("source", "google.com")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(filtered.calls("list_conversions")[0].query, expected);
    let none = FakeBackend::new().answer("list_conversions", json!({"conversions": []}));
    assert!(html(none.get("/conversions?kind=sign_up")).contains("No matching conversions"));
    assert!(html(none.get("/conversions")).contains("No conversions yet"));
    let PageContent::File { content, .. } = backend().get("/conversions/export.csv").content else { panic!("no file") };
    assert!(content.contains("ae_1,subscription"));
}

#[test]
fn a_conversion_has_the_emails_before_it() {
    let backend = backend();
    let page = html(backend.get("/conversions/ae_1"));
    assert_harmless(&page);
    assert!(page.contains("/dashboard/emails/msg_1") && page.contains("2\u{202f}h") && page.contains("Clicked"));
    let call = &backend.calls("list_emails")[0];
    assert!(call.query.contains(&("created_after".to_owned(), "2026-10-27T10:00:00Z".to_owned())));
}
