//! Tests of the pages of people with fixed answers.

use serde_json::json;

use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

fn backend() -> FakeBackend {
    let at = "2026-11-26T10:00:00.000Z";
    FakeBackend::new()
        .answer("list_events", json!({"events": [
            {"id": "ae_1", "name": HOSTILE, "user_id": "u_1", "email": HOSTILE, "data": {"a": HOSTILE}, "created_at": at},
        ]}))
        .answer("list_emails", json!({"emails": [
            {"id": "msg_1", "subject": HOSTILE, "status": "delivered", "last_event": "email.clicked", "created_at": at},
        ]}))
        .answer("list_category_opt_outs", json!({"category_opt_outs": [
            {"email": HOSTILE, "category": "newsletter", "source": "recipient", "created_at": at},
        ]}))
        .answer("get_suppression", json!({"suppression": {
            "email": HOSTILE, "reason": "hard_bounce", "source": "system", "created_at": at,
        }}))
}

#[test]
fn people_are_listed() {
    let page = html(backend().get("/people"));
    assert_harmless(&page);
    assert!(page.contains("/dashboard/people/person?user_id=u_1&amp;email="));
    let none = || FakeBackend::new().answer("list_events", json!({"events": []}));
    assert!(html(none().get("/people")).contains("No people yet"));
    assert!(html(none().get("/people?email=a%40b.example")).contains("Look for emails and opt-outs of a@b.example"));
}

#[test]
fn a_person_has_one_line_of_time() {
    let page = html(backend().get("/people/person?user_id=u_1"));
    assert_harmless(&page);
    for part in ["Opted out of newsletter", "Suppressed: hard bounce", "last: clicked", "no: hard bounce"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(location(backend().get("/people/person")), "/dashboard/people");
}

#[test]
fn roles_see_what_they_may_read() {
    let backend = backend().forbid("list_emails").forbid("get_suppression").forbid("list_category_opt_outs");
    let page = html(backend.get("/people/person?user_id=u_1"));
    assert!(page.contains("ae_1") && !page.contains("msg_1") && !page.contains("Opted out of newsletter"));
    let unknown = FakeBackend::new()
        .answer("list_events", json!({"events": []}))
        .answer("list_emails", json!({"emails": []}))
        .answer("list_category_opt_outs", json!({"category_opt_outs": []}));
    assert!(html(unknown.get("/people/person?email=x%40y.example")).contains("Nothing is known about this person"));
}
