//! The pages of automations with fixed answers.

use serde_json::{Value, json};

use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

const PATH: &str = "/automations/aut_1";

fn automation() -> Value {
    json!({
        "id": "aut_1", "name": HOSTILE, "status": "active", "version": 3, "activated_at": "2026-11-01T00:00:00Z",
        "updated_at": "2026-11-26T10:00:00.000Z",
        "trigger": {"event": "user.created", "cancel_on_events": [], "reentry": "always"},
        "steps": [
            {"type": "send_email", "name": HOSTILE, "template": HOSTILE, "to": "{{event.email}}"},
            {"type": "delay", "duration": "2d"},
        ],
        "counts": {"running": 0, "waiting": 1, "completed": 2, "failed": 0, "cancelled": 0},
    })
}

fn run() -> Value {
    json!({
        "id": "run_1", "automation_version": 3, "status": "waiting", "event_id": "ae_1", "event_name": HOSTILE,
        "email": HOSTILE, "user_id": null, "current_step_index": 1, "created_at": "2026-11-26T11:00:00Z",
        "steps": [
            {"index": 0, "type": "send_email", "status": "completed", "output": {"subject": HOSTILE, "html": "<p>x"}},
            {"index": 1, "type": "delay", "status": "waiting", "output": null, "error": HOSTILE},
        ],
        "wait": {"event": HOSTILE, "until": "2026-11-28T11:00:00Z"},
    })
}

fn event() -> Value {
    json!({"id": "ae_1", "name": "user.created", "email": HOSTILE, "data": {"plan": HOSTILE}, "created_at": "2026-11-26T11:00:00Z"})
}

fn fake() -> FakeBackend {
    FakeBackend::new()
        .answer("list_automations", json!({"automations": [automation()], "next_cursor": null}))
        .answer("get_automation", json!({"automation": automation()}))
        .answer("update_automation", json!({"automation": automation()}))
        .answer("delete_automation", json!({"ok": true}))
        .answer("list_templates", json!({"templates": [{"id": "tpl_1", "alias": HOSTILE, "name": HOSTILE}]}))
        .answer("list_automation_runs", json!({"runs": [run()], "next_cursor": null}))
        .answer("get_automation_run", json!({"run": run()}))
        .answer("list_automation_versions", json!({"versions": [
            {"version": 3, "trigger": automation()["trigger"], "steps": automation()["steps"], "created_at": "2026-11-26T11:00:00Z"},
            {"version": 2, "trigger": automation()["trigger"], "steps": [], "created_at": "2026-11-25T11:00:00Z"},
        ], "next_cursor": null}))
        .answer("list_events", json!({"events": [event()], "next_cursor": null}))
        .answer("get_event", json!({"event": event()}))
        .answer("send_event", json!({"run": run()}))
        .answer("dry_run_automation", json!({"run": run()}))
        .answer("replay_automation", json!({"replay": replay()}))
        .answer("count_automation_steps", json!({"step_counts": {
            "version": 3, "runs": 1_200, "has_more": true,
            "steps": [{"index": 0, "passed": 7, "ended": 2}, {"index": 1, "waiting": 5, "cancelled": 1}],
        }}))
}

fn replay() -> Value {
    json!({
        "totals": {"events": 2, "runs": 1, "reached": 1, "messages": 1, "suppressed": 1, "failed": 0, "past_runs": 1, "past_messages": 3},
        "events": [
            {"event_id": "ae_1", "created_at": "2026-11-26T11:00:00Z", "email": HOSTILE, "effect": "run",
             "messages": [
                 {"step_index": 0, "type": "send_email", "text": HOSTILE},
                 {"step_index": 1, "type": "send_email", "text": "b", "suppressed": true},
             ], "status": "completed",
             "ended_by": "condition", "last_step_index": 1,
             "past_run": {"id": "run_1", "automation_version": 2, "status": "completed", "messages_sent": 3}},
            {"event_id": "ae_2", "created_at": "2026-11-26T10:00:00Z", "user_id": "u", "effect": "filtered"},
        ],
        "complete": false,
    })
}

#[test]
fn hostile_texts_cannot_act() {
    let fake = fake();
    let pages = ["", "/test", "/test?event=ae_1", "/runs", "/runs/run_1", "/versions?from=2&to=3", "/delete"];
    assert_harmless(&html(fake.get("/automations")));
    for page in pages {
        assert_harmless(&html(fake.get(&format!("{PATH}{page}"))));
    }
    assert_harmless(&html(fake.post(&format!("{PATH}/test"), "test", &[("mode", "dry_run")])));
    assert_harmless(&html(fake.post(&format!("{PATH}/replay"), "saved", &[("events", "25")])));
    let entered = [
        ("name", HOSTILE),
        ("trigger.event", HOSTILE),
        ("steps[0].type", "sms"),
        ("steps[0].body", HOSTILE),
        ("preview", "1"),
    ];
    assert_harmless(&html(fake.post(PATH, "steps", &entered)));
}

#[test]
fn a_change_of_somebody_else_is_kept() {
    let fake = fake();
    let page = html(fake.get(PATH));
    let (_, rest) = page.split_once(r#"name="seen_version" value=""#).expect("the version is shown");
    let current = rest.split('"').next().unwrap_or_default().to_owned();
    let entered = |seen: &'static str| [("name", "Trial"), ("trigger.event", "user.created"), ("seen_version", seen)];
    let page = html(fake.post(PATH, "steps", &entered("2020-01-01T00:00:00.000Z")));
    assert!(page.contains("Someone else has changed this") && fake.calls("update_automation").is_empty(), "{page}");
    assert!(page.contains(r#"name="seen_version" value="2020-01-01T00:00:00.000Z""#), "{page}");
    assert!(!current.is_empty());
}

#[test]
fn a_preview_saves_nothing() {
    let fake = fake();
    let entered = [
        ("name", "Trial"),
        ("trigger.event", "user.created"),
        ("steps[0].type", "delay"),
        ("steps[0].duration", "5d"),
        ("steps[1].type", "sms"),
        ("preview", "up-1"),
    ];
    let answer = fake.post(PATH, "steps", &entered);
    assert_eq!(answer.status, 200);
    let page = html(answer);
    let (sms, delay) = (page.find("value=\"sms\""), page.find("value=\"5d\""));
    assert!(sms.is_some() && sms < delay, "{page}");
    assert!(!page.contains("role=\"alert\""), "{page}");
    assert!(page.contains("Changes against the active version"));
    assert!(fake.calls("update_automation").is_empty());
}

#[test]
fn spaces_that_the_form_trims_are_no_change() {
    let mut stored = automation();
    stored["name"] = "Trial".into();
    stored["steps"] = json!([{"type": "send_email", "subject": " Hello ", "text": "Hello,\r\n\r\nAda\n"}]);
    let fake = fake().answer("get_automation", json!({"automation": stored}));
    let page = html(fake.get(PATH));
    assert!(page.contains("Hello") && !page.contains("Changes against the active version"), "{page}");
    let entered = [
        ("name", "Trial"),
        ("trigger.event", "user.created"),
        ("trigger.reentry", "always"),
        ("steps[0].type", "send_email"),
        ("steps[0].subject", "Bye"),
        ("preview", "1"),
    ];
    assert!(html(fake.post(PATH, "steps", &entered)).contains("Changes against the active version"));
}

#[test]
fn activation_without_steps_asks_for_one() {
    let failure = Failure { message: "Invalid".into(), ..Failure::field("steps", "must have at least one step") };
    let page = html(fake().refuse("update_automation", failure).post(PATH, "activate", &[]));
    assert!(page.contains("Add at least one step") && !page.contains("must have at least one step"), "{page}");
}

#[test]
fn steps_are_saved_as_the_api_takes_them() {
    let fake = fake();
    let entered = [
        ("name", "Trial"),
        ("trigger.event", "user.created"),
        ("trigger.reentry", "once"),
        ("steps[0].type", "wait_for_event"),
        ("steps[0].event", "user.activated"),
        ("steps[0].timeout", "3d"),
        ("steps[0].on_timeout", "stop"),
        ("steps[0].match", "auto"),
    ];
    assert_eq!(location(fake.post(PATH, "steps", &entered)), format!("/dashboard{PATH}?done=changed"));
    let step = json!({
        "type": "wait_for_event", "event": "user.activated", "timeout": "3d", "on_timeout": "stop", "match": "auto",
        "include_machine": false,
    });
    let trigger = json!({"event": "user.created", "reentry": "once", "include_machine": false});
    let body = json!({"name": "Trial", "trigger": trigger, "steps": [step]});
    assert_eq!(fake.calls("update_automation")[0].body, CallBody::Json(body));
}

#[test]
fn errors_stand_beside_their_controls() {
    let failure = Failure {
        fields: [
            ("steps[0].any[0].field".to_owned(), "wrong field".to_owned()),
            ("steps[0]".to_owned(), "wrong step".to_owned()),
        ]
        .into(),
        message: "It is wrong".into(),
        status: 400,
        ..Failure::default()
    };
    let fake = fake().refuse("update_automation", failure);
    let entered = [
        ("trigger.event", "e"),
        ("steps[0].type", "condition"),
        ("steps[0].mode", "any"),
        ("steps[0].all[0].field", "x"),
        ("steps[0].all[0].op", "exists"),
    ];
    let answer = fake.post(PATH, "steps", &entered);
    assert_eq!(answer.status, 400);
    let page = html(answer);
    assert_eq!(page.to_lowercase().matches("wrong field").count(), 1, "{page}");
    assert_eq!(page.to_lowercase().matches("wrong step").count(), 1, "{page}");
}

#[test]
fn entered_steps_are_replayed_and_tested_without_being_saved() {
    let fake = fake();
    let entered = [("trigger.event", "user.created"), ("steps[0].type", "delay"), ("steps[0].duration", "5d")];
    let page = html(fake.post(&format!("{PATH}/replay"), "steps", &entered));
    assert!(page.contains("1</strong> more would not be sent") && page.contains("not sent: suppressed"), "{page}");
    for part in ["not saved", "run_1", "3 messages", "Ends at step 2", "the filter excludes", "no time for more"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let CallBody::Json(sent) = &fake.calls("replay_automation")[0].body else { panic!("no body") };
    assert_eq!((&sent["limit"], &sent["steps"][0]["duration"]), (&json!(100), &json!("5d")));
    let page = html(fake.post(&format!("{PATH}/test"), "steps", &entered));
    assert_harmless(&page);
    assert!(page.contains("which are not saved, ran") && !page.contains("<iframe"), "{page}");
    let CallBody::Json(sent) = &fake.calls("dry_run_automation")[0].body else { panic!("no body") };
    assert_eq!((&sent["email"], &sent["trigger"]["event"]), (&json!(HOSTILE), &json!("user.created")));
    assert!(fake.calls("update_automation").is_empty() && fake.calls("create_automation").is_empty());
}

#[test]
fn the_runs_are_counted_beside_the_steps() {
    let page = html(fake().get(PATH));
    for part in ["7 passed", "2 ended here", "5 here", "1 cancelled", "in the latest 1,000 runs"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn readers_get_no_buttons() {
    let forbidden = ["update_automation", "send_event", "list_templates", "dry_run_automation", "replay_automation"];
    let fake = forbidden.into_iter().fold(fake(), FakeBackend::forbid);
    let page = html(fake.get(PATH));
    for hidden in ["Remove", "Insert a step", "Activate", "Replay past events", "Test these steps", ">Save"] {
        assert!(!page.contains(hidden), "{hidden}");
    }
    assert_eq!(fake.get(&format!("{PATH}/test")).status, 403);
}

#[test]
fn a_dragged_step_is_moved_and_not_saved() {
    let fake = fake();
    let entered = [
        ("trigger.event", "e"),
        ("steps[0].type", "delay"),
        ("steps[0].duration", "1d"),
        ("steps[1].type", "sms"),
        ("from", "1"),
        ("to", "0"),
    ];
    let page = html(fake.post(PATH, "steps", &entered));
    assert!(page.find("value=\"sms\"") < page.find("value=\"1d\""), "{page}");
    assert!(fake.calls("update_automation").is_empty());
    // A page from the browser's history still has the positions.
    let saved = [&entered[..], &[("save", "1")]].concat();
    assert_eq!(fake.post(PATH, "steps", &saved).status, 303);
    assert_eq!(fake.calls("update_automation").len(), 1);
}
