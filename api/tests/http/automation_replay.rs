//! Dry runs and replays of automations with steps that are not saved, and the counts beside the steps.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use crate::world::{TestResponse, World};

async fn post(world: &World, path: &str, body: Value) -> TestResponse {
    world.post(path, body.to_string()).await
}

fn email_step(subject: &str) -> Value {
    json!({"type": "send_email", "from": "ada@example.com", "subject": subject, "text": "Hi {{event.data.name}}"})
}

/// Creates an active automation that starts at `user.created`.
async fn create_active(world: &World, steps: Value) -> String {
    let body = json!({"name": "A", "trigger": {"event": "user.created"}, "steps": steps});
    let made = post(world, "/automations", body).await.json();
    let id = made["automation"]["id"].as_str().unwrap().to_owned();
    let activated = post(world, &format!("/automations/{id}"), json!({"action": "activate"})).await;
    assert_eq!(activated.status, StatusCode::OK, "{activated:?}");
    id
}

async fn sign_up(world: &World, user: &str, plan: &str) {
    let event = json!({
        "name": "user.created", "user_id": user, "email": format!("{user}@example.net"),
        "data": {"name": user, "plan": plan},
    });
    assert_eq!(post(world, "/events", event).await.status, StatusCode::ACCEPTED);
    world.services.clock.advance(Duration::from_secs(1));
    world.accounts.automations.run_due().await;
}

fn only_trial() -> Value {
    json!({"event": "user.created", "filter": {"all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]}})
}

#[tokio::test]
async fn unsaved_steps_run_as_a_test() {
    let world = World::start().await;
    let id = create_active(&world, json!([email_step("Old")])).await;
    let path = format!("/automations/{id}/dry-run");
    let data = json!({"name": "Grace"});
    let stored = post(&world, &path, json!({"email": "g@example.net", "data": data})).await.json()["run"].clone();
    assert_eq!((&stored["mode"], &stored["status"]), (&json!("dry_run"), &json!("completed")));
    assert_eq!(stored["steps"][0]["output"]["subject"], "Old");
    let steps = json!([{"type": "delay", "duration": "3d"}, email_step("New {{event.data.name}}")]);
    let unsaved = post(&world, &path, json!({"email": "g@example.net", "data": data, "steps": steps})).await;
    let unsaved = unsaved.json()["run"].clone();
    let output = &unsaved["steps"][1]["output"];
    assert_eq!((&output["subject"], &output["text"]), (&json!("New Grace"), &json!("Hi Grace")));
    let automation = world.get(&format!("/automations/{id}")).await.json()["automation"].clone();
    assert_eq!((&automation["version"], &automation["steps"][0]["subject"]), (&json!(1), &json!("Old")));
    assert_eq!(world.get(&format!("/automations/{id}/runs")).await.json()["runs"], json!([]));
    assert_eq!(world.get("/emails").await.json()["emails"], json!([]), "nothing is sent");
    let refused = post(&world, &path, json!({"steps": [{"type": "dance"}]})).await;
    assert!(refused.json()["error"]["details"]["fields"]["steps[0].type"].is_string(), "{refused:?}");
    world.end().await;
}

#[tokio::test]
async fn past_events_are_replayed_beside_their_runs() {
    let world = World::start().await;
    sign_up(&world, "early", "trial").await;
    let id = create_active(&world, json!([email_step("Old")])).await;
    sign_up(&world, "anna", "trial").await;
    sign_up(&world, "bert", "free").await;
    sign_up(&world, "anna", "trial").await;
    let path = format!("/automations/{id}/replay");
    let same = post(&world, &path, json!({})).await.json()["replay"].clone();
    assert_eq!(
        same["totals"],
        json!({
            "events": 4, "runs": 4, "reached": 4, "messages": 4, "suppressed": 0, "failed": 0, "past_runs": 3,
            "past_messages": 3,
        })
    );
    assert_eq!((&same["complete"], &same["events"][3]["past_run"]), (&json!(true), &Value::Null));

    let mut trigger = only_trial();
    trigger["reentry"] = json!("once");
    let steps = json!([email_step("One"), {"type": "condition", "all": [
        {"field": "event.user_id", "op": "eq", "value": "anna"}]}, email_step("Two {{event.data.name}}")]);
    let changed = post(&world, &path, json!({"trigger": trigger, "steps": steps, "limit": 1000})).await.json();
    let events = changed["replay"]["events"].as_array().unwrap();
    let effects: Vec<_> = events.iter().map(|event| (&event["user_id"], &event["effect"])).collect();
    let expected = [("anna", "repeated"), ("bert", "filtered"), ("anna", "run"), ("early", "run")];
    assert_eq!(json!(effects), json!(expected));
    let anna = &events[2];
    assert_eq!(
        anna["messages"][1],
        json!({"step_index": 2, "type": "send_email", "text": "Two anna", "suppressed": false})
    );
    assert_eq!((&anna["status"], &anna["ended_by"]), (&json!("completed"), &json!("all_steps")));
    assert_eq!((&anna["past_run"]["automation_version"], &anna["past_run"]["messages_sent"]), (&json!(1), &json!(1)));
    assert_eq!((&events[3]["ended_by"], &events[3]["last_step_index"]), (&json!("condition"), &json!(1)));
    assert_eq!(changed["replay"]["totals"]["messages"], 3);

    let failing = post(&world, &path, json!({"steps": [{"type": "send_email", "template": "gone"}], "limit": 1})).await;
    let failing = failing.json()["replay"].clone();
    assert_eq!((&failing["totals"]["failed"], &failing["events"][0]["status"]), (&json!(1), &json!("failed")));
    assert!(failing["events"][0]["error"].is_string(), "{failing}");
    assert_eq!(world.get("/automations").await.json()["automations"].as_array().unwrap().len(), 1, "no draft is left");
    assert_eq!(post(&world, &path, json!({"limit": 1001})).await.code(), "validation_error");
    world.end().await;
}

#[tokio::test]
async fn a_replay_applies_suppressions() {
    let world = World::start().await;
    let news = json!({
        "type": "send_email", "from": "ada@example.com", "subject": "News", "text": "Hi {{event.data.name}}",
        "category": "newsletter",
    });
    let id = create_active(&world, json!([email_step("Hi"), news])).await;
    for user in ["anna", "bert", "carl"] {
        sign_up(&world, user, "trial").await;
    }
    assert!(post(&world, "/suppressions", json!({"email": "Anna@example.net"})).await.status.is_success());
    let opt_out = json!({"email": "bert@example.net", "category": "newsletter"});
    assert!(post(&world, "/category-opt-outs", opt_out).await.status.is_success());
    let replay = post(&world, &format!("/automations/{id}/replay"), json!({})).await.json()["replay"].clone();
    let suppressed = |event: &Value| -> Vec<_> {
        let messages = event["messages"].as_array().unwrap();
        messages.iter().map(|message| message["suppressed"].as_bool().unwrap()).collect()
    };
    let events: Vec<_> = replay["events"].as_array().unwrap().iter().map(suppressed).collect();
    assert_eq!(events, [[false, false], [false, true], [true, true]], "carl, bert, anna: {replay}");
    let totals = &replay["totals"];
    assert_eq!((&totals["messages"], &totals["suppressed"], &totals["reached"]), (&json!(3), &json!(3), &json!(2)));
    let dry_run = json!({"email": "anna@example.net", "data": {"name": "Anna"}});
    let run = post(&world, &format!("/automations/{id}/dry-run"), dry_run).await.json()["run"].clone();
    assert_eq!(run["steps"][0]["output"]["suppressed"], true, "{run}");
    world.end().await;
}

#[tokio::test]
async fn a_replay_knows_runs_before_its_events() {
    let world = World::start().await;
    let mut body = json!({"name": "A", "trigger": {"event": "user.created", "reentry": "once"}});
    body["steps"] = json!([email_step("Hi")]);
    let made = post(&world, "/automations", body).await.json();
    let id = made["automation"]["id"].as_str().unwrap().to_owned();
    post(&world, &format!("/automations/{id}"), json!({"action": "activate"})).await;
    sign_up(&world, "anna", "trial").await;
    sign_up(&world, "bert", "trial").await;
    sign_up(&world, "anna", "trial").await;
    // The same person, without a user id.
    let by_address = json!({"name": "user.created", "email": "Bert@example.net", "data": {"name": "b"}});
    assert_eq!(post(&world, "/events", by_address).await.status, StatusCode::ACCEPTED);
    world.accounts.automations.run_due().await;
    let path = format!("/automations/{id}/replay");
    let effects = async |limit: usize| {
        let replay = post(&world, &path, json!({"limit": limit})).await.json()["replay"].clone();
        let events = replay["events"].as_array().unwrap().iter();
        events.map(|event| event["effect"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(effects(4).await, ["repeated", "repeated", "run", "run"], "as the real runs");
    assert_eq!(effects(2).await, ["repeated", "repeated"], "their runs began before the replayed events");
    world.end().await;
}

#[tokio::test]
async fn runs_are_counted_by_step() {
    let world = World::start().await;
    let steps = json!([
        {"type": "condition", "all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]},
        {"type": "delay", "duration": "1d"}, email_step("Hi"),
    ]);
    let id = create_active(&world, steps).await;
    for (user, plan) in [("a", "trial"), ("b", "free"), ("c", "trial")] {
        sign_up(&world, user, plan).await;
    }
    let run = world.get(&format!("/automations/{id}/runs?user_id=c")).await.json()["runs"][0]["id"].clone();
    post(&world, &format!("/automations/{id}/runs/{}/cancel", run.as_str().unwrap()), json!({})).await;
    let path = format!("/automations/{id}/step-counts");
    let counts = world.get(&path).await.json()["step_counts"].clone();
    let numbers = |step: &Value| ["waiting", "passed", "failed", "ended", "cancelled"].map(|name| step[name].clone());
    let steps: Vec<_> = counts["steps"].as_array().unwrap().iter().map(numbers).collect();
    assert_eq!(json!(steps), json!([[0, 2, 0, 1, 0], [1, 0, 0, 0, 1], [0, 0, 0, 0, 0]]), "{counts}");
    assert_eq!((&counts["runs"], &counts["has_more"], &counts["version"]), (&json!(3), &json!(false), &json!(1)));
    assert_eq!(world.get(&format!("{path}?version=2")).await.code(), "not_found");
    assert_eq!(world.get(&format!("{path}?version=x")).await.code(), "validation_error");
    world.end().await;
}
