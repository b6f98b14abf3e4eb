//! The pages of the console, with fixed answers.

use html::document::{Head, PageStyle};

use crate::console::fake_admin::{FakeAdmin, HOSTILE, assert_harmless, html, location};
use crate::console::table::pages;
use crate::dashboard::prelude::*;
use crate::dashboard::request::PageRequest;
use crate::dashboard::table::PageAccess;

const EMAIL: &str = "msg_01M8B3X1C0000111BYPG4CM23J";

fn status() -> Value {
    json!({
        "ok": false, "problems": [format!("{HOSTILE}: `queue top` shows it")], "hostname": "mx1.example.net",
        "version": "1.0.0", "nodes": 1, "members": [{"name": HOSTILE, "started_at": "2026-11-26T10:00:00Z", "partitions": 64}],
        "partitions": 64, "store": {"state": "away", "reason": HOSTILE}, "listeners": [{"name": "mx", "address": "[::]:25", "open": true}],
        "queue": {"recipients": 12_345, "has_more": true, "held": 1, "due": 2, "oldest": "2026-11-26T09:00:00Z",
                  "hold": {"recipients": 5, "since": "2026-11-26T09:00:00Z"}, "paused": false},
        "dns": {"answers": false, "took_ms": 5_000, "error": HOSTILE}, "disk": {"free_bytes": 1_u64 << 31, "bytes": 1_u64 << 32},
        "certificate": {"source": "acme", "expires_at": "2027-01-01T00:00:00Z"},
        "last_hour": {"accepted": 7, "delivered": 6, "deferred": 5, "bounced": 4, "failed": 3, "received": 2},
    })
}

fn top() -> Value {
    json!({"hold": null, "tasks": 9, "count": 2, "destinations": [
        {"name": "10 mx.a.example", "domain": "a.example", "pool": "default", "tasks": 8, "due": 1, "later": 5, "held": 2,
         "oldest": "2026-11-26T09:00:00Z", "next_due": "2026-11-26T12:10:00Z", "connections": 3, "limit": "resting",
         "until": "2026-11-26T12:05:00Z", "last_reply": HOSTILE, "slowed": HOSTILE},
        {"name": HOSTILE, "domain": null, "pool": null, "tasks": 1, "due": 0, "later": 1, "held": 0,
         "oldest": "2026-11-26T11:59:00Z", "next_due": "2026-11-26T12:10:00Z", "connections": 0, "limit": "schedule"},
    ]})
}

fn depth() -> Value {
    json!({"period_minutes": 5, "nodes": 1, "domain": "a.example", "now": {"queued": 3, "deferred": 4, "held": 5},
           "periods": [{"at": "2026-11-26T11:50:00Z", "queued": null, "waiting": null},
                       {"at": "2026-11-26T11:55:00Z", "queued": 7, "deferred": 8, "held": 0, "waiting": 1_234}]})
}

fn task() -> Value {
    json!({"email": EMAIL, "recipient": HOSTILE, "account": "acct_1", "class": "transactional", "due": "2026-11-26T12:10:00Z",
           "attempts": 3, "held": true, "held_by": "operator", "way": HOSTILE})
}

fn trace() -> Value {
    json!({
        "id": EMAIL, "account": "acct_1", "door": "http", "from": HOSTILE, "subject": HOSTILE, "size_bytes": 1_000,
        "created_at": "2026-11-26T09:00:00Z", "status": "deferred",
        "recipients": [{"index": 0, "email": HOSTILE, "status": "deferred", "attempts": 1, "last_response": HOSTILE}],
        "events": [{"type": "email.deferred", "means": null, "recipient": HOSTILE, "at": "2026-11-26T09:00:00Z", "detail": {"x": HOSTILE}}],
        "attempts": [{"recipient": 0, "n": 1, "created_at": "2026-11-26T09:00:00Z", "duration_ms": 12, "phase": "rcpt",
                      "mx_host": HOSTILE, "ip": "192.0.2.1", "source": null, "tls": {"version": "TLSv1.3", "cipher": HOSTILE},
                      "response": HOSTILE, "transcript": format!("  1 < 451 {HOSTILE}"), "next_attempt_at": "2026-11-26T12:10:00Z"}],
        "waiting": [{"recipient": 0, "for": HOSTILE, "cause": "resting", "destination": HOSTILE, "place": 3,
                     "until": "2026-11-26T12:10:00Z", "destination_error": HOSTILE}],
    })
}

fn account() -> Value {
    json!({"account": {"id": "acct_1", "email": "owner@example.com", "plan": "pro", "production": false, "suspended": false,
                       "created_at": "2026-11-01T00:00:00Z", "payment_method": false},
           "nearest_to_full": {"limit": "templates", "used": 9, "cap": 10}, "queued": {"recipients": 2, "oldest": "2026-11-26T09:00:00Z"},
           "pool_ordered": null})
}

fn pools() -> Value {
    json!({"pools": [{"name": "warm", "addresses": ["192.0.2.1"], "hostname": "out.example.net", "plans": ["pro"], "accounts": ["acct_1"],
        "spill_over": null, "curve": [50, 100, 200], "ready": 4, "warm_up_ordered": {"since": "2026-11-25"},
        "warm_up": {"since": "2026-11-25", "day": 2, "days": 3, "messages_per_day": 100,
                    "used_up": [{"provider": HOSTILE, "until": "2026-11-27T00:00:00Z"}]}}],
        "not_configured": {"accounts": {"gone": ["acct_2"]}, "warm_up_ordered": {}}})
}

/// A server with data in every list, written by strangers where they can.
fn full() -> FakeAdmin {
    FakeAdmin::default()
        .answer("status", status())
        .answer("queue_top", top())
        .answer("queue_depth", depth())
        .answer("queue_count", json!({"recipients": 12}))
        .answer("queue_many", json!({"number": 3}))
        .answer("queue", json!({"recipients": 1}))
        .answer("destination", json!({}))
        .answer("trace", trace())
        .answer("account_show", account())
        .answer("pool_list", pools())
        .answer("certificate_show", json!({"names": ["mx1.example.net"], "last_failure": HOSTILE}))
        .answer("reply", json!({"reply": HOSTILE, "category": "rate_limited", "about": "sender", "action": "pause for 10m"}))
        .answer("account_list", json!({"accounts": [account()["account"]], "next_cursor": "acct_1"}))
        .answer("queue_list", json!({
            "hold": {"recipients": 5, "since": "2026-11-26T09:00:00Z"}, "tasks": [task()], "has_more": true, "next_cursor": "00ff",
            "tasks_read": 1, "damaged": 1, "in_memory": 3, "queues_on_disk": 1,
            "sites": [{"name": HOSTILE, "pool": "default", "ready": 1, "connections": 1, "connections_max": 5,
                       "messages_per_second": 0.25, "slowed": HOSTILE, "last_error": HOSTILE, "dead_until": "2026-11-26T12:10:00Z",
                       "resting": {"action": "back-off", "until": "2026-11-26T12:10:00Z", "because": HOSTILE}}],
        }))
        .answer("email_list", json!({
            "emails": [{"id": EMAIL, "account": "acct_1", "from": "a@b.example", "recipients": [HOSTILE, "x@y.example"],
                        "subject": HOSTILE, "status": "bounced", "created_at": "2026-11-26T09:00:00Z"}],
            "has_more": true, "next_cursor": "acct_1/x", "accounts_searched": 3, "emails_read": 1_000,
            "searched_back_to": "2026-11-20T00:00:00Z", "as_of": "2026-11-26T11:59:00Z",
        }))
        .answer("destination_list", json!({"destinations": [
            {"to": "a.example", "mail_host": null, "suspended": {"since": "2026-11-26T09:00:00Z", "until": null, "because": HOSTILE},
             "connections_max": null, "messages_per_second": null, "way": "smarthost partner"},
            {"to": null, "mail_host": "mx.b.example", "suspended": null, "connections_max": 2, "messages_per_second": 0.5, "way": null},
        ]}))
        .answer("doctor_findings", json!({"run": {
            "started_at": "2026-11-26T11:00:00Z", "ended_at": null, "running": ["port_25_out"], "error": null,
            "findings": [{"name": "spf", "status": "failed", "fix": format!("Publish:\n{HOSTILE}"),
                          "notes": [{"status": "failed", "text": HOSTILE}, {"status": "ok", "text": "fine"}]},
                         {"name": "dns", "status": "ok", "fix": null, "notes": [{"status": "ok", "text": "answers"}]}],
        }}))
        .answer("command_runs", json!({"runs": [{"number": 2, "request": {"ask": "queue_many", "order": "hold", "filter": {"account": HOSTILE}},
            "started_at": "2026-11-26T11:00:00Z", "progress": HOSTILE, "ended_at": null, "result": null, "error": null}]}))
        .answer("command_run", json!({"number": 2, "request": {"ask": "store_check"}, "started_at": "2026-11-26T11:00:00Z",
            "progress": null, "ended_at": "2026-11-26T11:01:00Z", "error": null,
            "result": {"sound": false, "rows": 1_000, "bodies": 3, "problems": [HOSTILE]}}))
}

/// Paths of all pages with objects of [`full`].
fn example_paths() -> Vec<String> {
    let parts = |path: &str| {
        path.replace("{token}", "wrong")
            .replace("/emails/{id}", &format!("/emails/{EMAIL}"))
            .replace("{id}", "acct_1")
            .replace("{name}", "warm")
            .replace("{number}", "2")
            .replace("{domain}", "a.example")
    };
    let orders = ["retry", "hold", "release", "reroute", "fail", "drop"]
        .map(|order| format!("/mail/{order}?to=a.example&older=2h"));
    let mut paths: Vec<_> = pages().map(|row| parts(row.path)).filter(|path| !path.contains('{')).collect();
    paths.extend(orders);
    paths.push("/replies?reply=421+busy&host=mx.example.com".into());
    paths
}

#[test]
fn every_page_shows_strangers_text_harmlessly() {
    let admin = full();
    for path in example_paths() {
        let answer = admin.get(&path);
        if path == "/sign-in" {
            assert_eq!(location(answer), "/console");
            continue;
        }
        assert_eq!(answer.answer.status, 200, "{path}");
        let html = html(answer);
        assert!(!html.contains("<script>alert") && !html.contains('\u{202e}') && !html.contains('\u{1}'), "{path}");
        assert!(!html.contains("style=") && !html.contains("onclick"), "{path}");
    }
    for path in ["", "/queue", "/mail", "/emails", "/destinations", "/pools", "/doctor", "/server", "/commands"] {
        assert_harmless(&html(admin.get(path)));
    }
    assert_harmless(&html(admin.get(&format!("/emails/{EMAIL}"))));
}

#[test]
fn empty_lists_say_what_they_are_for() {
    let admin = FakeAdmin::default();
    let admin = admin.answer("status", json!({})).answer("doctor_findings", json!({"run": null}));
    let mut admin = admin.answer("queue_depth", json!({"period_minutes": 5, "periods": []}));
    for operation in ["queue_top", "queue_list", "email_list", "destination_list", "pool_list"] {
        admin = admin.answer(operation, json!({}));
    }
    let admin = admin
        .answer("account_list", json!({"accounts": []}))
        .answer("command_runs", json!({"runs": []}))
        .answer("queue_count", json!({"recipients": 0}));
    for (path, text) in [
        ("", "Nothing at the moment"),
        ("", "No data in this range"),
        ("/queue", "The queue is empty"),
        ("/mail", "The queue is empty"),
        ("/mail?to=a.example", "Nothing in the queue matches"),
        ("/mail/hold?to=a.example", "Nothing matches"),
        ("/emails", "No emails yet"),
        ("/destinations", "No overrides"),
        ("/accounts", "No accounts yet"),
        ("/doctor", "have not run"),
        ("/commands", "No commands yet"),
    ] {
        let html = html(admin.get(path));
        assert!(html.contains(text), "{path}: {html}");
    }
}

#[test]
fn signed_out_everything_leads_to_the_sign_in_page() {
    let admin = full();
    for row in pages().filter(|row| row.access == PageAccess::SignedIn) {
        let path = row.path.replace(['{', '}'], "");
        for is_post in [false, true] {
            let answer = admin.send(&path, PageRequest { is_post, ..PageRequest::default() }, false);
            assert_eq!(location(answer), "/console/sign-in", "{path}");
        }
    }
    for operation in ["status", "queue_top", "queue_many", "trace"] {
        assert!(admin.bodies(operation).is_empty(), "{operation} was called");
    }
}

#[test]
fn forms_need_the_token() {
    let admin = full();
    for row in pages() {
        let path = row
            .path
            .replace("{id}", "acct_1")
            .replace("{name}", "warm")
            .replace("{order}", "hold")
            .replace("{token}", "x");
        for form in row.forms {
            let answer = admin.post(&path, form.name, &[]);
            let status = answer.answer.status;
            assert_ne!(status, 403, "{path} {}", form.name);
            let forged = crate::dashboard::request::Fields::from_pairs(vec![
                ("csrf".into(), "forged".into()),
                ("form".into(), form.name.to_owned()),
            ]);
            let request = PageRequest { is_post: true, form: forged, ..PageRequest::default() };
            assert!([303, 403].contains(&admin.send(&path, request, true).answer.status), "{path} {}", form.name);
        }
    }
    let before = admin.bodies("queue_many").len();
    let forged = crate::dashboard::request::Fields::from_pairs(vec![("form".into(), "apply".into())]);
    let answer = admin.send("/mail/hold", PageRequest { is_post: true, form: forged, ..PageRequest::default() }, true);
    assert_eq!((answer.answer.status, admin.bodies("queue_many").len()), (403, before));
}

#[test]
fn commands_are_shown_before_they_run() {
    let admin = full();
    let page = html(admin.get("/mail/drop?to=a.example&held=held"));
    assert!(page.contains("12 recipients") && page.contains("to a.example, held"), "{page}");
    assert!(page.contains("postrider admin queue drop --to a.example --held"), "{page}");
    let refused = admin.post("/mail/drop?to=a.example", "apply", &[("confirm", "yes")]);
    assert_eq!((refused.answer.status, admin.bodies("queue_many").len()), (400, 0));
    let done = admin.post("/mail/drop?to=a.example", "apply", &[("confirm", "confirm"), SHOWN_AT]);
    assert_eq!(location(done), "/console/commands/3");
    let filter = json!({"to": "a.example", "accepted_before": SHOWN_AT.1});
    assert_eq!(admin.bodies("queue_many"), [json!({"order": "drop", "filter": filter})]);
    admin.post("/mail/reroute", "apply", &[("route", "smarthost"), ("smarthost", "partner"), SHOWN_AT]);
    let filter = json!({"accepted_before": SHOWN_AT.1});
    assert_eq!(admin.bodies("queue_many")[1], json!({"order": "reroute by partner", "filter": filter}));
    let refused = admin.post("/mail/reroute", "apply", &[("route", "smarthost"), ("smarthost", "a b")]);
    assert!(html(refused).contains("Enter the name of a configured smarthost"));
    assert_eq!(admin.get("/mail/bury").answer.status, 404);
}

/// The time of the fake's clock, as a form has it.
const SHOWN_AT: (&str, &str) = ("shown_at", "2026-11-26T12:00:00Z");

#[test]
fn commands_leave_mail_alone_that_arrived_after_the_page() {
    let admin = full();
    let page = html(admin.get("/mail/hold?to=a.example"));
    assert!(page.contains("name=\"shown_at\" value=\"2026-11-26T12:00:00Z\""), "{page}");
    assert!(page.contains("Mail that arrives after this page was made"), "{page}");
    for wrong in [&[][..], &[("shown_at", "soon")], &[("shown_at", "2026-11-26T12:00:01Z")]] {
        let refused = admin.post("/mail/hold?to=a.example", "apply", wrong);
        assert_eq!((refused.answer.status, admin.bodies("queue_many").len()), (400, 0), "{wrong:?}");
    }
    let earlier = ("shown_at", "2026-11-26T11:59:58.25Z");
    assert_eq!(location(admin.post("/mail/hold?to=a.example", "apply", &[earlier])), "/console/commands/3");
    let filter = json!({"to": "a.example", "accepted_before": earlier.1});
    assert_eq!(admin.bodies("queue_many"), [json!({"order": "hold", "filter": filter})]);
}

#[test]
fn the_release_of_everything_applies_to_all_mail() {
    let admin = full();
    let page = html(admin.get("/mail/release"));
    assert!(page.contains("that hold is lifted for all mail") && !page.contains("is left alone"), "{page}");
    admin.post("/mail/release", "apply", &[SHOWN_AT]);
    assert_eq!(admin.bodies("queue_many"), [json!({"order": "release", "filter": {}})]);
    let page = html(admin.get("/mail/release?to=a.example"));
    assert!(page.contains("is left alone") && !page.contains("that hold is lifted"), "{page}");
    admin.post("/mail/release?to=a.example", "apply", &[SHOWN_AT]);
    let filter = json!({"to": "a.example", "accepted_before": SHOWN_AT.1});
    assert_eq!(admin.bodies("queue_many")[1], json!({"order": "release", "filter": filter}));
}

#[test]
fn counts_that_stopped_early_say_so() {
    let queued = |recipients: u64, has_more: bool| {
        let mut state = account();
        state["queued"] = json!({"recipients": recipients, "oldest": null, "has_more": has_more});
        full().answer("account_show", state)
    };
    let released = |recipients: u64| {
        full().answer("command_run", json!({"number": 2, "request": {"ask": "queue_many", "order": "release", "filter": {}},
            "ended_at": "2026-11-26T11:01:00Z", "result": {"recipients": recipients, "has_more": true, "being_tried": 0}}))
    };
    for (admin, path, expected) in [
        (queued(2, false), "/accounts/acct_1", "2 recipients; the oldest was accepted"),
        (queued(2, true), "/accounts/acct_1", "At least 2 recipients; the oldest of these was accepted"),
        (queued(0, true), "/accounts/acct_1", "Not counted: the queue is too long"),
        (queued(2, true), "/accounts/acct_1/suspension", "and at least 2 recipients in the queue are held"),
        (queued(0, true), "/accounts/acct_1/suspension", "and the recipients (not counted) in the queue are held"),
        (released(2), "/commands/2", "At least 2 recipients were changed."),
        (released(0), "/commands/2", "The changed recipients were not counted"),
    ] {
        let page = html(admin.get(path));
        assert!(page.contains(expected), "{path}: {expected}: {page}");
    }
    assert!(!html(queued(0, false).get("/accounts/acct_1")).contains("In the queue"));
}

#[test]
fn only_mail_by_smtp_causes_bounce_messages() {
    let admin = full();
    for path in ["/mail/fail?to=a.example".to_owned(), format!("/emails/{EMAIL}/fail")] {
        let page = html(admin.get(&path));
        assert!(page.contains("email.failed") && page.contains("by SMTP"), "{path}: {page}");
        assert!(!page.contains("Return"), "{path}: {page}");
    }
}

#[test]
fn long_queues_are_not_counted_whole() {
    let admin = full().answer("queue_count", json!({"recipients": 12, "has_more": true}));
    let page = html(admin.get("/mail/hold?to=a.example"));
    assert!(page.contains("At least 12 recipients"), "{page}");
    assert_eq!(admin.bodies("queue_count")[0]["rows_max"], 100_000);
    let mut long = top();
    long["counted"] = "memory".into();
    let admin = full().answer("queue_top", long);
    assert!(html(admin.get("/queue")).contains("The queue is long, so it is counted in memory"));
    assert!(!html(full().get("/queue")).contains("The queue is long"));
}

#[test]
fn forms_of_destinations_have_the_present_values() {
    let admin = full();
    let page = html(admin.get("/destinations/pace?mail_host=MX.b.example"));
    assert!(page.contains("value=\"2\"") && page.contains("value=\"0.5\""), "{page}");
    let page = html(admin.get("/destinations/route?to=a.example"));
    assert!(page.contains("value=\"partner\"") && page.contains("value=\"smarthost\" checked"), "{page}");
    let page = html(admin.get("/destinations/route?to=other.example"));
    assert!(page.contains("value=\"usual\" checked"), "{page}");
}

#[test]
fn the_depth_of_the_queue_is_a_picture_with_figures() {
    let whole = {
        let mut depth = depth();
        depth["now"] = Value::Null;
        depth
    };
    let admin = full().answer("queue_depth", whole);
    let page = html(admin.get("?depth=24h"));
    assert!(page.contains("<svg") && page.contains("Queued") && page.contains("Deferred"), "{page}");
    assert!(page.contains("data-label=\"From (UTC)\">11:55</td>"), "{page}");
    assert!(page.contains("aria-current=\"true\">24 hours</a>"), "{page}");
    assert_eq!(admin.bodies("queue_depth"), [json!({"range": "24h"})]);
    let admin = full();
    let page = html(admin.get("/queue/a.example?depth=evil"));
    assert!(page.contains("<svg") && page.contains("1\u{202f}234"), "{page}");
    assert!(page.contains("Not attempted yet") && page.contains("/console/mail?to=a.example"), "{page}");
    assert_eq!(admin.bodies("queue_depth"), [json!({"range": "6h", "domain": "a.example"})]);
}

#[test]
fn pages_have_the_head_of_all_pages() {
    let page = html(full().get("/queue"));
    let style = PageStyle::File(crate::console::ASSETS.paths().0);
    let title = "Queue by destination · postrider console";
    let head = Head { title, style, icon: Some(crate::layout::ICON), is_indexed: false };
    assert!(page.contains(&crate::dashboard::page::render(head)), "{page}");
}

#[test]
fn destinations_are_named_once() {
    let admin = full();
    let send = |fields: &[(&str, &str)]| admin.post("/destinations/suspend", "suspend", fields);
    assert_eq!(send(&[]).answer.status, 400);
    assert_eq!(send(&[("to", "a.example"), ("mail_host", "b.example")]).answer.status, 400);
    assert!(html(send(&[("to", "a.example"), ("for", "soon")])).contains("Enter a duration"));
    assert_eq!(
        location(send(&[("to", "a.example"), ("for", "2h"), ("because", " asked ")])),
        "/console/destinations?done=suspended"
    );
    let order = json!({"suspend": {"seconds": 7200, "because": "asked"}});
    assert_eq!(admin.bodies("destination"), [json!({"to": "a.example", "order": order})]);
    let paced = admin.post("/destinations/pace", "pace", &[("mail_host", "mx.example"), ("connections", "0")]);
    assert!(html(paced).contains("Enter a whole number above 0"));
}

#[test]
fn failures_are_shown_on_the_page() {
    let refused = Failure { status: 400, message: "`x` is being attempted right now".into(), ..Failure::default() };
    let admin = full().refuse("queue", refused);
    let page = html(admin.post(&format!("/emails/{EMAIL}"), "hold", &[]));
    assert!(page.contains("x is being attempted right now"), "{page}");
    let gone = full().refuse("trace", Failure { status: 404, message: "no such email".into(), ..Failure::default() });
    assert_eq!(gone.get(&format!("/emails/{EMAIL}")).answer.status, 404);
}

#[test]
fn work_in_progress_is_loaded_again() {
    let admin = full();
    assert!(admin.get("/doctor").is_in_progress && admin.get("/commands").is_in_progress);
    assert!(!admin.get("/commands/2").is_in_progress && !admin.get("/queue").is_in_progress);
}

#[test]
fn secrets_are_shown_once() {
    let admin = full().answer("account_create", json!({
        "account": account()["account"], "api_key": {"secret": "re_secret"},
        "smtp_credential": {"username": "postrider", "password": "hunter2"}, "sign_in": {"link": "https://x/auth/link/1"},
    }));
    let answer =
        admin.post("/accounts/new", "create", &[("email", "owner@example.com"), ("plan", ""), ("production", "true")]);
    assert_eq!(answer.answer.status, 200);
    let page = html(answer);
    for secret in ["re_secret", "hunter2", "https://x/auth/link/1"] {
        assert!(page.contains(secret), "{secret}");
    }
    assert_eq!(admin.bodies("account_create"), [json!({"email": "owner@example.com", "production": true})]);
}
