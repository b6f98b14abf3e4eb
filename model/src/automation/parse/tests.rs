//! Tests of valid and invalid definitions.

use serde_json::json;

use super::*;

/// The worked example.
fn trial() -> (Value, Value) {
    let trigger = json!({"event": "user.created", "cancel_on_events": ["subscription.started"]});
    let steps = json!([
        {"type": "send_email", "template": "welcome", "variables": {"name": "{{event.data.name}}"}},
        {"type": "wait_for_event", "event": "user.activated", "match": "user_id", "timeout": "3d",
         "on_timeout": "continue"},
        {"type": "condition", "all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]},
        {"type": "delay", "until": "{{event.data.trial_ends_at}}"},
        {"type": "send_email", "template": "trial-ending"},
    ]);
    (trigger, steps)
}

fn errors(trigger: &Value, steps: &Value) -> Vec<String> {
    let mut notes = ParseNotes::default();
    assert!(parse_definition(trigger, steps, &mut notes).is_none());
    notes.errors.into_iter().map(|(field, _)| field).collect()
}

#[test]
fn the_worked_example_round_trips() {
    let (trigger, steps) = trial();
    let mut notes = ParseNotes::default();
    let read = parse_definition(&trigger, &steps, &mut notes).unwrap();
    assert!(notes.ignored.is_empty());
    assert_eq!(read.steps.len(), 5);
    let written = read.to_json();
    assert_eq!(parse_stored(&written).unwrap(), read);
    assert_eq!(written["trigger"]["reentry"], "always");
    assert_eq!(written["steps"][0]["to"], "{{event.email}}");
}

#[test]
fn every_field_round_trips() {
    let trigger = json!({
        "event": "email.opened", "include_machine": true, "reentry": "once", "cancel_on_events": [],
        "filter": {"any": [{"field": "event.data.tags", "op": "contains", "value": "x"},
                           {"field": "event.user_id", "op": "exists"}]},
    });
    let steps = json!([
        {"type": "send_email", "key": "first", "name": "First", "subject": "Hi {{event.name}}", "to": ["a@x.example", "{{event.email}}"],
         "html": "<p>{{plan}}</p>", "variables": {"plan": "{{event.data.plan}}"}, "from": "Ada <ada@x.example>",
         "reply_to": "r@x.example", "category": "product", "tags": [{"name": "a", "value": "{{event.name}}"}]},
        {"type": "delay", "duration": "2d4h", "window": {"tz": "Europe/Berlin", "days": ["mon", "fri"], "hours": "09:00-17:00"}},
        {"type": "wait_for_event", "event": "x", "match": "email", "timeout": "3d", "on_timeout": "fail", "include_machine": true,
         "filter": {"all": [{"field": "wait.data.n", "op": "eq", "value": "{{event.data.n}}"}]}},
        {"type": "condition", "any": [{"field": "wait.received", "op": "eq", "value": true}], "on_false": "skip_to", "target": "last"},
        {"type": "condition", "all": [{"field": "event.data.a", "op": "in", "value": [1, "b"]}], "on_false": "skip_to", "target": 5},
        {"type": "sms", "key": "last", "to": "{{event.data.phone}}", "body": "Hi"},
    ]);
    let mut notes = ParseNotes::default();
    let read = parse_definition(&trigger, &steps, &mut notes).unwrap_or_else(|| panic!("{:?}", notes.errors));
    let written = read.to_json();
    assert_eq!(written["trigger"], trigger);
    assert_eq!(written["steps"], steps);
    assert_eq!(parse_stored(&written).unwrap(), read);
}

#[test]
fn errors_of_a_target_say_how_steps_are_counted() {
    let all = json!([{"field": "event.name", "op": "exists"}]);
    for target in [json!(null), json!("x"), json!(2)] {
        let step = json!({"type": "condition", "all": all, "on_false": "skip_to", "target": target});
        let mut notes = ParseNotes::default();
        assert!(parse_definition(&json!({"event": "x"}), &json!([step]), &mut notes).is_none());
        assert!(notes.errors[0].1.ends_with("key, or its index counted from 0"), "{:?}", notes.errors);
    }
}

#[test]
fn a_fraction_of_zero_is_no_fraction() {
    let steps = json!([
        {"type": "condition", "all": [{"field": "event.name", "op": "exists"}], "on_false": "skip_to", "target": 1.0},
        {"type": "send_email", "template": {"alias": "welcome", "version": 3.0}},
    ]);
    let read = parse_definition(&json!({"event": "x"}), &steps, &mut ParseNotes::default()).unwrap();
    let written = read.to_json();
    assert_eq!((&written["steps"][0]["target"], &written["steps"][1]["template"]["version"]), (&json!(1), &json!(3)));
}

#[test]
fn a_fixed_end_of_a_delay_is_parsed() {
    let trigger = json!({"event": "x"});
    let steps = |until: &str| json!([{"type": "delay", "until": until}]);
    for until in ["2026-12-24T10:00:00+01:00", "2026-12-24T10:00:00Z", "2026-12-24", "{{event.data.day}}T10:00:00"] {
        let mut notes = ParseNotes::default();
        assert!(parse_definition(&trigger, &steps(until), &mut notes).is_some(), "{until}: {:?}", notes.errors);
    }
    // An earlier release has stored such a text.
    let stored = json!({"trigger": trigger, "steps": steps("2026-12-24T10:00:00")});
    assert!(parse_stored(&stored).is_ok());
    let mut notes = ParseNotes::of_stored_steps();
    assert!(parse_definition(&stored["trigger"], &stored["steps"], &mut notes).is_some(), "a rename keeps the steps");
}

fn invalid_times() -> Vec<(Value, &'static str)> {
    vec![
        (json!(5), "steps[0]"),
        (json!({}), "steps[0].type"),
        (json!({"type": "webhook"}), "steps[0].type"),
        (json!({"type": "delay"}), "steps[0].duration"),
        (json!({"type": "delay", "duration": "soon"}), "steps[0].duration"),
        (json!({"type": "delay", "duration": "366d"}), "steps[0].duration"),
        (json!({"type": "delay", "duration": 5}), "steps[0].duration"),
        (json!({"type": "delay", "duration": "1d", "until": "x"}), "steps[0].until"),
        (json!({"type": "delay", "until": "{{event"}), "steps[0].until"),
        (json!({"type": "delay", "until": "2026-12-24T10:00:00"}), "steps[0].until"),
        (json!({"type": "delay", "until": "soon"}), "steps[0].until"),
        (json!({"type": "delay", "duration": "1d", "window": {"days": ["mon"]}}), "steps[0].window.tz"),
        (json!({"type": "delay", "duration": "1d", "window": {"tz": "X"}}), "steps[0].window.tz"),
        (json!({"type": "delay", "duration": "1d", "window": {"tz": "UTC", "days": ["x"]}}), "steps[0].window.days[0]"),
        (json!({"type": "delay", "duration": "1d", "window": {"tz": "UTC", "hours": "9"}}), "steps[0].window.hours"),
        (json!({"type": "wait_for_event", "timeout": "1d"}), "steps[0].event"),
        (json!({"type": "wait_for_event", "event": "a"}), "steps[0].timeout"),
        (json!({"type": "wait_for_event", "event": "a", "timeout": "1d", "match": "x"}), "steps[0].match"),
        (json!({"type": "wait_for_event", "event": "a", "timeout": "1d", "on_timeout": "x"}), "steps[0].on_timeout"),
        (
            json!({"type": "wait_for_event", "event": "a", "timeout": "1d", "filter": {"all": []}}),
            "steps[0].filter.all",
        ),
    ]
}

fn invalid_actions() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"type": "condition"}), "steps[0].all"),
        (json!({"type": "condition", "all": [{"op": "eq", "value": 1}]}), "steps[0].all[0].field"),
        (json!({"type": "condition", "all": [{"field": "data.x", "op": "eq", "value": 1}]}), "steps[0].all[0].field"),
        (json!({"type": "condition", "all": [{"field": "event..x", "op": "eq", "value": 1}]}), "steps[0].all[0].field"),
        (json!({"type": "condition", "any": [{"field": "event.data.x", "op": "like"}]}), "steps[0].any[0].op"),
        (json!({"type": "condition", "all": [{"field": "event.data.x", "op": "gt"}]}), "steps[0].all[0].value"),
        (
            json!({"type": "condition", "all": [{"field": "event.data.x", "op": "in", "value": "a"}]}),
            "steps[0].all[0].value",
        ),
        (json!({"type": "condition", "all": [{"all": [{"all": []}]}]}), "steps[0].all[0].field"),
        (
            json!({"type": "condition", "all": [{"field": "event.name", "op": "exists"}], "on_false": "skip_to"}),
            "steps[0].target",
        ),
        (
            json!({"type": "condition", "all": [{"field": "event.name", "op": "exists"}], "on_false": "skip_to", "target": 0}),
            "steps[0].target",
        ),
        (
            json!({"type": "condition", "all": [{"field": "event.name", "op": "exists"}], "on_false": "skip_to", "target": "x"}),
            "steps[0].target",
        ),
        (json!({"type": "sms", "body": "x"}), "steps[0].to"),
        (json!({"type": "sms", "to": "1", "body": "x".repeat(2_000)}), "steps[0].body"),
        (json!({"type": "send_email"}), "steps[0].template"),
        (json!({"type": "send_email", "template": ""}), "steps[0].template"),
        (json!({"type": "send_email", "template": "a", "html": "b"}), "steps[0].html"),
        (json!({"type": "send_email", "html": "b"}), "steps[0].subject"),
        (json!({"type": "send_email", "subject": "s", "html": "{{#if}}"}), "steps[0].html"),
        (json!({"type": "send_email", "template": "a", "variables": {"x": ["{{"]}}), "steps[0].variables.x[0]"),
        (json!({"type": "send_email", "template": "a", "to": "a\r\nb"}), "steps[0].to"),
        (json!({"type": "send_email", "template": "a", "category": "x"}), "steps[0].category"),
        (json!({"type": "send_email", "template": "a", "tags": {"a:b": "c"}}), "steps[0].tags[0]"),
        (json!({"type": "delay", "duration": "1d", "key": "5"}), "steps[0].key"),
    ]
}

#[test]
fn errors_name_the_field() {
    let sound = json!({"event": "a"});
    for (step, field) in invalid_times().into_iter().chain(invalid_actions()) {
        let found = errors(&sound, &json!([step]));
        assert!(found.contains(&field.to_owned()), "{step}: {found:?}");
    }
    for (trigger, field) in [
        (json!(null), "trigger"),
        (json!({}), "trigger.event"),
        (json!({"event": ""}), "trigger.event"),
        (json!({"event": "x".repeat(201)}), "trigger.event"),
        (json!({"event": "a", "reentry": "never"}), "trigger.reentry"),
        (json!({"event": "a", "cancel_on_events": "b"}), "trigger.cancel_on_events"),
        (json!({"event": "a", "cancel_on_events": [1]}), "trigger.cancel_on_events[0]"),
        (json!({"event": "a", "filter": 5}), "trigger.filter"),
        (
            json!({"event": "a", "filter": {"all": [{"field": "wait.received", "op": "exists"}]}}),
            "trigger.filter.all[0].field",
        ),
    ] {
        assert_eq!(errors(&trigger, &json!([])), [field], "{trigger}");
    }
}

#[test]
fn hostile_definitions_are_bounded() {
    let sound = json!({"event": "a"});
    let many: Value = (0..51).map(|_| json!({"type": "delay", "duration": "1d"})).collect();
    assert_eq!(errors(&sound, &many), ["steps"]);
    let large = json!([{"type": "send_email", "subject": "s", "html": "x".repeat(600_000)}]);
    assert_eq!(errors(&sound, &large), ["steps"]);
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let question = json!([{"type": "condition", "all": [{"field": "event.data.x", "op": "eq", "value": deep}]}]);
    assert_eq!(errors(&sound, &question), ["steps[0].all[0].value"]);
    let variables = json!([{"type": "send_email", "template": "a", "variables": {"x": deep}}]);
    assert_eq!(errors(&sound, &variables), ["steps[0].variables"]);
    let twice =
        json!([{"type": "delay", "duration": "1d", "key": "a"}, {"type": "delay", "duration": "1d", "key": "a"}]);
    assert_eq!(errors(&sound, &twice), ["steps[1].key"]);
    let back = json!([
        {"type": "delay", "duration": "1d", "key": "a"},
        {"type": "condition", "all": [{"field": "event.name", "op": "exists"}], "on_false": "skip_to", "target": "a"},
    ]);
    assert_eq!(errors(&sound, &back), ["steps[1].target"]);
    let mut notes = ParseNotes::default();
    let odd = json!([{"type": "delay", "duration": "1d", "colour": "red"}]);
    assert!(parse_definition(&sound, &odd, &mut notes).is_some());
    assert_eq!(notes.ignored, ["steps[0].colour"]);
}
