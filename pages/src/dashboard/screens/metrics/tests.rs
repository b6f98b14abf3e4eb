//! Tests of the metrics page with fixed answers.

use crate::dashboard::answer::PageContent;
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};
use crate::dashboard::prelude::*;

fn metrics(rows: Value) -> Value {
    json!({"metrics": {"totals": {}, "rows": rows}})
}

fn row(day: &str, value: &str, sent: u64) -> Value {
    json!({
        "period_start": format!("2026-11-{day}T00:00:00.000Z"), "dimension": "domain", "value": value, "sent": sent,
        "delivered": sent - 3, "bounced": 3, "complained": 1, "opened": sent / 2,
        "delivery_time": {"measured": sent - 3, "p50_seconds": 1.5, "p99_seconds": 40.0},
    })
}

fn backend() -> FakeBackend {
    FakeBackend::new()
        .answer("get_email_metrics", metrics(json!([row("20", HOSTILE, 100), row("21", "b.example", 50)])))
        .answer("list_domains", json!({"domains": [{"name": "b.example"}]}))
        .answer("list_emails", json!({"emails": [], "has_more": false}))
}

#[test]
fn the_page_shows_rates_advice_and_charts() {
    let page = html(backend().get("/metrics"));
    assert_harmless(&page);
    for part in
        ["Complaints are above 0.1 %", "Bounces are above 2 %", "Time to inbox", "By domain", "<svg", "Friday, 00:00"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("style="), "the policy forbids styles in pages");
}

#[test]
fn emails_that_are_not_delivered_yet_are_counted() {
    assert!(!html(backend().get("/metrics")).contains("Not delivered yet"));
    let waiting = |emails: Value| {
        backend().answer("list_emails", json!({"emails": emails, "has_more": true, "next_cursor": "x"}))
    };
    let (queued, deferred) = (json!({"last_event": "email.sent"}), json!({"last_event": "email.delivery_delayed"}));
    let backend = waiting(json!([queued, deferred, deferred]));
    let page = html(backend.get("/metrics"));
    for part in ["Not delivered yet", ">3+<", ">1+<", ">2+<", "/dashboard/emails?status=sent"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let has = |status: &str| {
        let of_status = ("status".to_owned(), status.to_owned());
        backend.calls("list_emails").iter().any(|call| call.query.contains(&of_status))
    };
    assert!(has("scheduled") && has("queued,sent"));
    assert_eq!(page.matches("/dashboard/emails?status=sent").count(), 1, "the list has no filter for deferred emails");
    let page = html(waiting(json!([])).get("/metrics"));
    assert!(page.contains("Not delivered yet") && page.contains(">0+<"), "the search stopped early: {page}");
}

#[test]
fn filters_reach_the_operations() {
    let backend = backend();
    let page = html(backend.get("/metrics?from=2026-11-20&to=2026-11-21&only=domain:b.example&by=tag&rate=bounce"));
    assert!(page.contains("Domain b.example, 20 Nov 2026 to 21 Nov 2026.") && page.contains("Bounce rate by tag"));
    let calls = backend.calls("get_email_metrics");
    let has =
        |name: &str, value: &str| calls.iter().any(|call| call.query.iter().any(|(a, b)| a == name && b == value));
    assert!(has("from", "2026-11-20T00:00:00Z") && has("to", "2026-11-22T00:00:00Z"), "the range");
    assert!(has("from", "2026-11-18T00:00:00Z"), "the range before");
    assert!(has("domain", "b.example") && has("dimensions", "tag") && has("granularity", "hour"));
    let page = html(backend.get("/metrics?from=2026-11-21&to=2026-11-20"));
    assert!(page.contains("The first day is after the last day."));
}

#[test]
fn figures_are_of_a_category_and_a_domain() {
    let by_category = metrics(json!([
        {"period_start": "2026-11-20T00:00:00.000Z", "value": "newsletter", "sent": 10, "delivered": 9},
        {"period_start": "2026-11-20T00:00:00.000Z", "value": "(unknown)", "sent": 1_234},
    ]));
    let backend = backend().answer("get_email_metrics", by_category);
    let page = html(backend.get("/metrics?only=domain:b.example&category=newsletter&by=category"));
    assert!(page.contains("Domain b.example, category newsletter,"), "{page}");
    assert!(page.contains("1\u{202f}234 recipients in this range were counted before"), "{page}");
    assert!(page.contains("category=newsletter&amp;by=category") || page.contains("category=newsletter"), "{page}");
    let calls = backend.calls("get_email_metrics");
    let of_both = |call: &&crate::dashboard::backend::Call| {
        let has = |name: &str, value: &str| call.query.iter().any(|(a, b)| a == name && b == value);
        has("domain", "b.example") && has("category", "newsletter")
    };
    assert!(calls.iter().filter(of_both).count() >= 3, "now, before, opens: {calls:?}");
    let page = html(backend.get("/metrics?only=tag:a:b&category=newsletter"));
    assert!(page.contains("The figures cover all categories"), "{page}");
}

#[test]
fn all_deliveries_are_in_the_time_to_inbox() {
    let backend = backend();
    let page = html(backend.get("/metrics"));
    assert!(page.contains("measured on all deliveries") && page.contains("Half of the emails within (p50)"), "{page}");
    let page = html(backend.get("/metrics?only=domain:b.example&by=domain"));
    assert!(page.contains("measured on all deliveries"), "{page}");
}

#[test]
fn overflow_rows_are_named_and_have_no_link() {
    let rows = json!([
        {"period_start": "2026-11-20T00:00:00.000Z", "value": "(other)", "sent": 70},
        {"period_start": "2026-11-20T00:00:00.000Z", "value": "newsletter", "sent": 10},
    ]);
    let backend = backend().answer("get_email_metrics", metrics(rows));
    let page = html(backend.get("/metrics?only=domain:b.example&category=newsletter&by=category"));
    assert!(page.contains("Other categories") && page.contains("each hour counts 100 values separately"), "{page}");
    assert!(page.contains("70 recipients of this domain were counted under other categories"), "{page}");
    assert_eq!(super::recipients_were(1, "of this domain"), "1 recipient of this domain was");
    assert!(!page.contains("(other)"), "{page}");
    assert!(html(backend.get("/metrics?by=tag")).contains("Other tags"));
}

#[test]
fn pages_without_figures_say_what_to_do() {
    let none = || {
        let backend = FakeBackend::new().answer("get_email_metrics", metrics(json!([])));
        backend.answer("list_emails", json!({"emails": []}))
    };
    assert!(html(none().get("/metrics")).contains("Send the first email"));
    assert!(html(none().get("/metrics?range=7")).contains("Nothing was sent in this range"));
    let page = html(none().forbid("send_email").get("/metrics"));
    assert!(page.contains("No data yet") && !page.contains("Send the first email"));
}

#[test]
fn too_many_values_are_explained() {
    let failure = Failure::field("dimensions", "yields more than 10000 rows");
    let backend = FakeBackend::new().refuse("get_email_metrics", failure);
    assert_eq!(backend.get("/metrics").status, 400);
}

#[test]
fn figures_are_exported() {
    let PageContent::File { content, file_name, .. } =
        backend().get("/metrics/export.csv?only=domain:b.example").content
    else {
        panic!("no file")
    };
    assert_eq!(file_name, "email-metrics-2026-11-26.csv");
    assert_eq!(content.lines().count(), 3);
    assert!(content.contains("2026-11-21T00:00:00.000Z,b.example,50,47,3,0,0,1,25,0,0,0,1.5,40"));
}
