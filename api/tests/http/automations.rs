//! Automations: definitions over the API, and runs from first to last step.

use std::time::Duration;

use events::automations::SignalEffects;
use http::{Method, StatusCode};
use jiff::Timestamp;
use model::credential::ApiKeyScope;
use model::id::{AccountId, ProductEventId};
use model::trigger_event::TriggerEvent;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::world::{Backend, TestResponse, World, store};

async fn post(world: &World, path: &str, body: Value) -> TestResponse {
    world.post(path, body.to_string()).await
}

/// Ingests a product event, as `POST /events` does.
async fn ingest_event(
    backend: &Backend,
    account: AccountId,
    name: &str,
    identity: (Option<&str>, Option<&str>),
    data: Value,
) -> SignalEffects {
    let Backend { services, accounts, .. } = backend;
    let (now, automations) = (services.clock.now(), &accounts.automations.engine);
    loop {
        let signal = TriggerEvent {
            account,
            name,
            id: ProductEventId::new(now, services.entropy.u128()).to_bytes(),
            user_id: identity.0,
            email: identity.1,
            data: &data,
            at: now,
        };
        let mut batch = Batch::intake();
        let reaction = automations.apply_event(&signal, &mut batch).await.unwrap();
        let partitions = store::automation_run::due_work::partitions_of(&batch);
        if services.store.commit(batch).await.is_ok() {
            automations.wake(&partitions);
            return reaction;
        }
    }
}

struct Product<'a> {
    world: &'a World,
    account: AccountId,
}

impl<'a> Product<'a> {
    async fn new(world: &'a World) -> Self {
        Self { world, account: world.tenant().await.account().id }
    }

    /// Ingests an event of user 7.
    async fn ingest(&self, name: &str, data: Value) -> (u64, u64, u64) {
        self.ingest_for(name, (Some("7"), Some("b@example.net")), data).await
    }

    async fn ingest_for(&self, name: &str, identity: (Option<&str>, Option<&str>), data: Value) -> (u64, u64, u64) {
        let reaction = ingest_event(self.world, self.account, name, identity, data).await;
        self.world.accounts.automations.run_due().await;
        (reaction.matched, reaction.resumed, reaction.cancelled)
    }

    async fn advance(&self, time: &str) {
        let span = model::automation::time_span::TimeSpan::parse(time).unwrap();
        self.world.services.clock.advance(Duration::from_secs(span.seconds()));
        self.world.accounts.automations.run_due().await;
    }

    async fn runs(&self, automation: &str) -> Vec<Value> {
        let response = self.world.get(&format!("/automations/{automation}/runs")).await.json();
        response["runs"].as_array().unwrap().clone()
    }

    /// The events emitted about a run, in order.
    async fn emitted_events(&self, run: &Value) -> Vec<(String, Value)> {
        let id: model::id::RunId = run["id"].as_str().unwrap().parse().unwrap();
        let events = store::event::list(&self.world.services.store, self.account, id, 100).await.unwrap();
        events.into_iter().map(|event| (event.kind.name().to_owned(), event.detail)).collect()
    }

    async fn counts(&self, automation: &str) -> [u64; 5] {
        let view = self.world.get(&format!("/automations/{automation}")).await.json();
        let counts = &view["automation"]["counts"];
        ["running", "waiting", "completed", "failed", "cancelled"].map(|name| counts[name].as_u64().unwrap())
    }
}

/// Creates an automation and activates it.
async fn create_active(world: &World, trigger: Value, steps: Value) -> String {
    let made = post(world, "/automations", json!({"name": "A", "trigger": trigger, "steps": steps})).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let id = made.json()["automation"]["id"].as_str().unwrap().to_owned();
    let activated = post(world, &format!("/automations/{id}"), json!({"action": "activate"})).await;
    assert_eq!(activated.status, StatusCode::OK, "{activated:?}");
    assert_eq!(activated.json()["automation"]["status"], "active");
    id
}

fn email_step(text: &str) -> Value {
    json!({"type": "send_email", "from": "ada@example.com", "subject": "Hi", "text": text})
}

async fn template(world: &World, alias: &str, html: &str) {
    let body = json!({"name": alias, "alias": alias, "from": "Ada <ada@example.com>", "subject": alias, "html": html});
    post(world, "/templates", body).await;
    let published = world.post(&format!("/templates/{alias}/publish"), "").await;
    assert_eq!(published.status, StatusCode::OK);
}

/// The worked example, from sign-up to the end of the trial.
#[tokio::test]
async fn documented_example_runs_to_its_end() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    template(&world, "welcome", "Hi {{name}}").await;
    template(&world, "trial-ending", "It ends, {{event.data.name}}: {{wait.received}} {{wait.data.how}}").await;
    let id = create_active(
        &world,
        json!({"event": "user.created", "cancel_on_events": ["subscription.started"]}),
        json!([
            {"type": "send_email", "template": "welcome", "variables": {"name": "{{event.data.name}}"}},
            {"type": "wait_for_event", "event": "user.activated", "match": "user_id", "timeout": "3d", "on_timeout": "continue"},
            {"type": "condition", "all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]},
            {"type": "delay", "until": "{{event.data.trial_ends_at}}"},
            {"type": "send_email", "template": "trial-ending"},
        ]),
    )
    .await;
    let ends_at = world.services.clock.now() + Duration::from_secs(14 * 86_400);
    let data = json!({"name": "Ada", "plan": "trial", "trial_ends_at": ends_at.to_string()});
    assert_eq!(product.ingest("user.created", data).await, (1, 0, 0));
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["status"], &run["current_step_index"]), (&json!("waiting"), &json!(1)), "{run}");
    assert_eq!(run["wait"]["event"], "user.activated");
    assert!(run["steps"][0]["output"]["email_id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(product.counts(&id).await, [0, 1, 0, 0, 0]);

    // Another person's activation does not match.
    assert_eq!(product.ingest_for("user.activated", (Some("8"), Some("b@example.net")), json!({})).await, (0, 0, 0));
    assert_eq!(product.ingest("user.activated", json!({"how": "click"})).await, (0, 1, 0));
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["status"], &run["current_step_index"]), (&json!("waiting"), &json!(3)), "{run}");
    assert_eq!(run["wait"]["event"], Value::Null);
    assert_eq!(run["steps"][1]["output"]["received"], true);
    product.advance("14d").await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["status"], &run["ended_by"]), (&json!("completed"), &json!("all_steps")), "{run}");
    assert_eq!(product.counts(&id).await, [0, 0, 1, 0, 0]);
    let last = run["steps"][4]["output"]["email_id"].as_str().unwrap();
    let email = world.get(&format!("/emails/{last}")).await.json()["email"].clone();
    assert_eq!((&email["html"], &email["to"]), (&json!("It ends, Ada: true click"), &json!(["b@example.net"])));

    assert_run_events(&product.emitted_events(&run).await);
    world.end().await;
}

/// Checks the events of a run with five steps.
fn assert_run_events(events: &[(String, Value)]) {
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let step = "automation.step_completed";
    assert_eq!(names, ["automation.started", step, step, step, step, step, "automation.completed"]);
    let keys = |detail: &Value| detail.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&events[1].1),
        [
            "automation_id",
            "automation_name",
            "run_id",
            "status",
            "event_name",
            "step_index",
            "step_type",
            "error",
            "output"
        ]
    );
    assert_eq!(
        keys(&events[6].1),
        [
            "automation_id",
            "automation_name",
            "run_id",
            "status",
            "event_name",
            "source_event_id",
            "user_id",
            "email",
            "step_index",
            "step_type",
            "error",
            "ended_by",
            "started_at",
            "completed_at",
        ]
    );
    assert_eq!((&events[6].1["step_index"], &events[6].1["ended_by"]), (&json!(4), &json!("all_steps")));
    assert!(events[0].1["source_event_id"].as_str().unwrap().starts_with("ae_"));
    assert_eq!(events[0].1["started_at"], events[6].1["started_at"], "a run starts once");
}

#[tokio::test]
async fn unknown_system_events_are_refused() {
    let world = World::start().await;
    let made = async |trigger: Value, event: &str| {
        let wait = json!({"type": "wait_for_event", "event": event, "match": "auto", "timeout": "1d"});
        post(&world, "/automations", json!({"name": "A", "trigger": trigger, "steps": [wait]})).await
    };
    let trigger = json!({"event": "email.deliverd", "cancel_on_events": ["email.opened", "email.open"]});
    let response = made(trigger, "email.seen").await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let fields = response.json()["error"]["details"]["fields"].clone();
    for field in ["trigger.event", "trigger.cancel_on_events[1]", "steps[0].event"] {
        let text = fields[field].as_str().unwrap_or_default();
        assert!(text.contains("email.delivered, email.delivery_delayed"), "{field}: {fields}");
    }
    assert_eq!(fields.as_object().unwrap().len(), 3, "{fields}");
    // System events that automations do not support, and names that resemble system events.
    for (event, expected) in [
        ("domain.verified", "cannot trigger automations; these events can: email.received, "),
        ("automation.completed", "cannot trigger automations"),
        ("suppression.created", "cannot trigger automations"),
        ("Webhook.Disabled", "cannot trigger automations"),
        ("Email.Delivered", "must be written `email.delivered`"),
        ("EMAIL.verified", "is unknown: it is not an event of the service (email.received, "),
        (&"x".repeat(201), "is longer than 200 bytes"),
    ] {
        let response = made(json!({"event": event}), event).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{event}");
        let fields = response.json()["error"]["details"]["fields"].clone();
        for field in ["trigger.event", "steps[0].event"] {
            assert!(fields[field].as_str().unwrap_or_default().starts_with(expected), "{event}: {fields}");
        }
    }
    for event in ["domain.moved", "contact.unsubscribed", &"x".repeat(200)] {
        let response = made(json!({"event": event}), "email.opened").await;
        assert_eq!(response.status, StatusCode::OK, "{response:?}");
    }
    // Clients cannot send system events.
    for name in ["email.delivered", "Email.Received", "contact.unsubscribed", "domain.verified"] {
        let body = json!({"name": name, "email": "b@example.net"});
        let event_response = post(&world, "/events", body).await;
        assert_eq!(event_response.status, StatusCode::BAD_REQUEST, "{name}");
        assert!(event_response.json()["error"]["details"]["fields"]["name"].is_string(), "{event_response:?}");
    }
    // A product event may have this name, because no system event has it.
    assert_eq!(made(json!({"event": "email.verified"}), "email.clicked").await.status, StatusCode::BAD_REQUEST);
    let event_response = world.post("/events", r#"{"name": "email.verified", "user_id": "7"}"#).await;
    assert_eq!(event_response.status, StatusCode::ACCEPTED);
    let response = made(json!({"event": "email.verified"}), "email.clicked").await;
    assert_eq!(response.status, StatusCode::OK, "{response:?}");
    let path = format!("/automations/{}", response.json()["automation"]["id"].as_str().unwrap());
    let edited = post(&world, &path, json!({"trigger": {"event": "email.verifyed"}})).await;
    assert_eq!(edited.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test]
async fn definitions_are_checked() {
    let world = World::start().await;
    let bad = json!({"name": " ", "trigger": {}, "steps": [{"type": "delay", "duration": "1d"}, {"type": "delay"},
                     {"type": "sms", "to": "1", "body": "x"}]});
    let response = post(&world, "/automations", bad).await;
    let fields = response.json()["error"]["details"]["fields"].clone();
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    for field in ["name", "trigger.event", "steps[1].duration"] {
        assert!(fields[field].is_string(), "{field}: {fields}");
    }
    let texts = json!({"name": "S", "trigger": {"event": "a"}, "steps": [{"type": "sms", "to": "1", "body": "x"}]});
    let response = post(&world, "/automations", texts).await;
    assert!(response.json()["error"]["details"]["steps[0]"].as_str().unwrap().contains("[sms]"), "{response:?}");

    let steps = json!([{"type": "send_email", "template": "nothing"}, email_step("x"),
                       {"type": "send_email", "from": "x@other.example", "subject": "s", "text": "t"}]);
    let body = json!({"name": "A", "trigger": {"event": "a", "colour": 1}, "steps": steps});
    let made = post(&world, "/automations", body).await.json();
    assert_eq!(made["warnings"], json!(["`trigger.colour` is not a known field and was ignored"]));
    let path = format!("/automations/{}", made["automation"]["id"].as_str().unwrap());
    assert_eq!((&made["automation"]["status"], &made["automation"]["version"]), (&json!("draft"), &json!(1)));
    let response = post(&world, &path, json!({"action": "activate"})).await;
    let details = response.json()["error"]["details"].clone();
    assert_eq!(response.code(), "validation_error");
    assert!(details["steps[0]"].as_str().unwrap().contains("nothing"), "{details}");
    assert!(details["steps[2]"].as_str().unwrap().contains("other.example"), "{details}");
    assert!(details.get("steps[1]").is_none());
    for (body, field) in [
        (json!({}), "action"),
        (json!({"action": "explode"}), "action"),
        (json!({"action": "pause", "name": "x"}), "action"),
        (json!({"steps": [5]}), "steps[0]"),
    ] {
        let response = post(&world, &path, body.clone()).await;
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{body}: {response:?}");
    }
    let response = post(&world, &path, json!({"action": "pause"})).await;
    assert_eq!(
        (response.code().as_str(), &response.json()["error"]["details"]["status"]),
        ("validation_error", &json!("draft"))
    );
    world.end().await;
}

/// A draft is changed in place; an automation that was active gets a new version.
#[tokio::test]
async fn definitions_are_stored_and_updated() {
    let world = World::start().await;
    let body = json!({"name": "A", "trigger": {"event": "a"}, "steps": [email_step("zero")]});
    let made = post(&world, "/automations", body).await.json();
    let path = format!("/automations/{}", made["automation"]["id"].as_str().unwrap());
    let edited = post(&world, &path, json!({"steps": [email_step("one")]})).await.json();
    assert_eq!(edited["automation"]["version"], 1);
    let activated = post(&world, &path, json!({"action": "activate"})).await.json();
    assert!(activated["automation"]["activated_at"].is_string());
    let edited = post(&world, &path, json!({"steps": [email_step("two")], "name": "B"})).await.json();
    assert_eq!((&edited["automation"]["version"], &edited["automation"]["name"]), (&json!(2), &json!("B")));
    assert_eq!(post(&world, &path, json!({"name": "C"})).await.json()["automation"]["version"], 2);
    let versions = world.get(&format!("{path}/versions?limit=1")).await.json();
    assert_eq!((&versions["versions"][0]["version"], &versions["has_more"]), (&json!(2), &json!(true)));
    let cursor = versions["next_cursor"].as_str().unwrap();
    let versions = world.get(&format!("{path}/versions?limit=1&cursor={cursor}")).await.json();
    assert_eq!((&versions["versions"][0]["steps"][0]["text"], &versions["has_more"]), (&json!("one"), &json!(false)));

    let copy = world.post(&format!("{path}/duplicate"), "").await.json()["automation"].clone();
    assert_eq!((&copy["name"], &copy["status"], &copy["version"]), (&json!("C (copy)"), &json!("draft"), &json!(1)));
    let listed = async |query: &str| {
        let list = world.get(&format!("/automations?{query}")).await.json();
        list["automations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|a| a["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["C (copy)", "C"]);
    assert_eq!(listed("status=active,paused").await, ["C"]);
    assert_eq!(world.get("/automations?status=gone").await.code(), "validation_error");
    assert_eq!(world.call(Method::DELETE, &path, &json!({})).await.json(), json!({"ok": true}));
    for rest in ["", "/versions", "/runs"] {
        assert_eq!(world.get(&format!("{path}{rest}")).await.code(), "not_found");
    }
    assert_eq!(listed("").await, ["C (copy)"]);
    world.end().await;
}

#[tokio::test]
async fn reentry_rules_apply() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let steps = json!([{"type": "delay", "duration": "1h"}]);
    for (reentry, expected) in [("always", [1, 1, 1]), ("once", [1, 0, 0]), ("while_not_running", [1, 0, 1])] {
        let trigger = json!({"event": reentry, "reentry": reentry});
        create_active(&world, trigger, steps.clone()).await;
        let mut matched = Vec::new();
        for n in 0..3 {
            if n == 2 {
                product.advance("1h").await;
            }
            matched.push(product.ingest(reentry, json!({})).await.0);
        }
        assert_eq!(matched, expected, "{reentry}");
        // Another id is another person; the same address without an id is the same person.
        assert_eq!(product.ingest_for(reentry, (Some("9"), Some("b@example.net")), json!({})).await.0, 1, "{reentry}");
    }
    // Many concurrent events start one run.
    let trigger = json!({"event": "rush", "reentry": "once"});
    create_active(&world, trigger, steps.clone()).await;
    let ingest_rush = || ingest_event(&world, product.account, "rush", (Some("7"), None), json!({}));
    let all = futures_util::future::join_all((0..8).map(|_| ingest_rush())).await;
    assert_eq!(all.iter().map(|reaction| reaction.matched).sum::<u64>(), 1);
    world.end().await;
}

#[tokio::test]
async fn filters_branches_and_timeouts() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let id = create_active(
        &world,
        json!({"event": "order", "filter": {"all": [{"field": "event.data.total", "op": "gt", "value": 10}]}}),
        json!([
            {"type": "wait_for_event", "event": "paid", "match": "auto", "timeout": "1h",
             "filter": {"all": [{"field": "wait.data.order", "op": "eq", "value": "{{event.data.order}}"}]}},
            {"type": "condition", "all": [{"field": "wait.received", "op": "eq", "value": true}], "on_false": "skip_to", "target": "late"},
            {"type": "condition", "all": [{"field": "event.data.never", "op": "exists"}]},
            {"type": "delay", "key": "late", "duration": "1h"},
        ]),
    )
    .await;
    assert_eq!(product.ingest("order", json!({"total": 5, "order": 1})).await, (0, 0, 0));
    assert_eq!(product.ingest("order", json!({"total": 50, "order": 1})).await, (1, 0, 0));
    assert_eq!(product.ingest("order", json!({"total": 50, "order": 2})).await, (1, 0, 0));
    assert_eq!(product.ingest_for("paid", (None, Some("B@example.net")), json!({"order": 2})).await, (0, 1, 0));
    let runs = product.runs(&id).await;
    let (two, one) = (&runs[0], &runs[1]);
    assert_eq!((&two["status"], &two["ended_by"]), (&json!("completed"), &json!("condition")));
    assert_eq!(two["steps"][3]["status"], "skipped");
    assert_eq!(one["status"], "waiting");
    product.advance("1h").await;
    let one = product.runs(&id).await.remove(1);
    assert_eq!((&one["current_step_index"], &one["steps"][2]["status"]), (&json!(3), &json!("skipped")), "{one}");
    for (on_timeout, status) in [("stop", "completed"), ("fail", "failed")] {
        let wait = json!([{"type": "wait_for_event", "event": "x", "timeout": "1h", "on_timeout": on_timeout}, email_step("x")]);
        let id = create_active(&world, json!({"event": on_timeout}), wait).await;
        product.ingest(on_timeout, json!({})).await;
        product.advance("1h").await;
        let run = product.runs(&id).await.remove(0);
        assert_eq!((&run["status"], &run["ended_by"]), (&json!(status), &Value::Null), "{run}");
    }
    world.end().await;
}

#[tokio::test]
async fn runs_pause_resume_and_cancel() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let trigger = json!({"event": "a", "cancel_on_events": ["stop"]});
    let id = create_active(
        &world,
        trigger,
        json!([{"type": "delay", "duration": "1h"}, {"type": "delay", "duration": "1h"}]),
    )
    .await;
    let path = format!("/automations/{id}");
    product.ingest("a", json!({})).await;
    post(&world, &path, json!({"action": "pause"})).await;
    assert_eq!(product.ingest("a", json!({})).await, (0, 0, 0));
    product.advance("5h").await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["status"], &run["current_step_index"]), (&json!("waiting"), &json!(0)), "{run}");
    // An edit creates a new version; the run stays on its own.
    post(&world, &path, json!({"steps": [email_step("x")]})).await;
    post(&world, &path, json!({"action": "activate"})).await;
    world.accounts.automations.run_due().await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["current_step_index"], &run["automation_version"]), (&json!(1), &json!(1)), "{run}");
    assert_eq!(product.ingest_for("stop", (Some("8"), None), json!({})).await, (0, 0, 0));
    assert_eq!(product.ingest("stop", json!({})).await, (0, 0, 1));
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["status"], &run["cancelled_by"]), (&json!("cancelled"), &json!("event")));
    assert_eq!(product.counts(&id).await, [0, 0, 0, 0, 1]);

    // Cancel one run, then all.
    post(&world, &path, json!({"steps": [{"type": "delay", "duration": "1h"}]})).await;
    for _ in 0..3 {
        product.ingest("a", json!({})).await;
    }
    let one = product.runs(&id).await.remove(0)["id"].as_str().unwrap().to_owned();
    let cancelled = world.post(&format!("{path}/runs/{one}/cancel"), "").await.json()["run"].clone();
    assert_eq!((&cancelled["status"], &cancelled["cancelled_by"]), (&json!("cancelled"), &json!("api")));
    assert_eq!(product.counts(&id).await, [0, 2, 0, 0, 2]);
    // The response reports the number of cancelled runs.
    let response = post(&world, &path, json!({"action": "cancel_runs"})).await;
    let counts = &response.json()["automation"]["counts"];
    assert_eq!((&counts["waiting"], &counts["cancelled"]), (&json!(0), &json!(4)), "{response:?}");
    world.accounts.automations.run_due().await;
    assert_eq!(product.counts(&id).await, [0, 0, 0, 0, 4]);
    for (query, count) in [
        ("status=cancelled", 4),
        ("status=waiting,running", 0),
        ("email=B@example.net", 4),
        ("user_id=8", 0),
        ("user_id=7&status=cancelled", 4),
    ] {
        let runs = world.get(&format!("{path}/runs?{query}")).await.json()["runs"].as_array().unwrap().len();
        assert_eq!(runs, count, "{query}");
    }
    product.ingest("a", json!({})).await;
    post(&world, &path, json!({"action": "archive"})).await;
    world.accounts.automations.run_due().await;
    assert_eq!(product.counts(&id).await, [0, 0, 0, 0, 5]);
    assert_eq!(product.ingest("a", json!({})).await, (0, 0, 0));
    // Deletion leaves no rows behind.
    world.call(Method::DELETE, &path, &json!({})).await;
    world.accounts.automations.run_due().await;
    let (account, automation) = (product.account, id.parse().unwrap());
    assert!(
        store::automation_run::list_oldest(&world.services.store, account, automation, None, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store::automation::list_trigger_events(&world.services.store, account).await.unwrap().unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn failed_sends_are_recorded_in_the_run() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    post(&world, "/suppressions", json!({"email": "gone@example.net"})).await;
    let id =
        create_active(&world, json!({"event": "a"}), json!([email_step("Hi {{event.data.name}}"), email_step("more")]))
            .await;
    let run = async |email: Option<&str>, data: Value| {
        product.ingest_for("a", (None, email), data).await;
        product.runs(&id).await.remove(0)
    };
    let skipped = run(Some("gone@example.net"), json!({"name": "x"})).await;
    assert_eq!((&skipped["status"], &skipped["steps"][0]["output"]["suppressed"]), (&json!("completed"), &json!(true)));
    let missing = run(Some("b@example.net"), json!({})).await;
    assert_eq!(missing["status"], "failed");
    assert!(missing["error"].as_str().unwrap().contains("event.data.name"), "{missing}");
    assert_eq!(product.emitted_events(&missing).await.last().unwrap().0, "automation.failed");
    let nobody = run(None, json!({"name": "x"})).await;
    assert!(nobody["error"].as_str().unwrap().contains("`to`"), "{nobody}");
    let multiple = run(Some("a@x.example, b@y.example"), json!({"name": "x"})).await;
    assert_eq!(multiple["status"], "failed", "{multiple}");
    // The domain is deleted, and is restored too late for a step that does not wait.
    let domain = world.domain(product.account).await;
    world.call(Method::DELETE, &format!("/domains/{}?force=true", domain.id), &json!({})).await;
    world.services.clock.advance(Duration::from_secs(5));
    let refused = run(Some("b@example.net"), json!({"name": "x"})).await;
    assert!(refused["error"].as_str().unwrap().contains("not verified"), "{refused}");
    world.end().await;
}

/// Email events start runs, but emails of an automation do not start it again.
#[tokio::test]
async fn events_about_emails_start_runs_but_not_endlessly() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let sent =
        create_active(&world, json!({"event": "email.sent"}), json!([email_step("again, {{event.data.subject}}")]))
            .await;
    let other = create_active(
        &world,
        json!({"event": "email.sent", "filter": {"all": [{"field": "event.data.subject", "op": "eq", "value": "Hi"}]}}),
        json!([email_step("b")]),
    )
    .await;
    let mail = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "first", "text": "t"});
    post(&world, "/emails", mail).await;
    for _ in 0..6 {
        world.queue.events.outbox.dispatch_outbox().await.unwrap();
        world.accounts.automations.run_due().await;
    }
    // The first email starts one run; that run's email starts one run of the other; its email starts none.
    let (one, two) = (product.runs(&sent).await, product.runs(&other).await);
    assert_eq!((one.len(), two.len()), (1, 1), "{one:#?} {two:#?}");
    assert!(one[0]["event_id"].as_str().unwrap().starts_with("evt_"));
    assert_eq!((&one[0]["email"], &one[0]["status"]), (&json!("b@example.net"), &json!("completed")));
    world.end().await;
}

/// The process is stopped at any moment and another one continues: each step is done once.
#[tokio::test]
async fn run_survives_a_crash() {
    for patience in (0..60).step_by(4) {
        let store = store().await;
        let world = World::with_backend(Backend::new(store.clone()).await).await;
        let product = Product::new(&world).await;
        let id = create_active(
            &world,
            json!({"event": "a"}),
            json!([email_step("one"), {"type": "condition", "all": [{"field": "event.name", "op": "eq", "value": "a"}]}, email_step("two")]),
        )
        .await;
        ingest_event(&world, product.account, "a", (Some("7"), Some("b@example.net")), json!({})).await;
        let cut = world.accounts.automations.clone();
        let running = tokio::spawn(async move { cut.run_due().await });
        for _ in 0..patience {
            tokio::task::yield_now().await;
        }
        running.abort();
        let _ = running.await;
        Backend::new(store.clone()).await.accounts.automations.run_due().await;
        let run = product.runs(&id).await.remove(0);
        assert_eq!(run["status"], "completed", "{patience}: {run}");
        assert_eq!(product.emitted_events(&run).await.len(), 5, "{patience}");
        let emails = world.get("/emails").await.json()["emails"].as_array().unwrap().len();
        assert_eq!(emails, 2, "{patience}");
        world.end().await;
    }
}

/// A run waits before the response to the event that leads it to its wait: no later event is missed.
#[tokio::test]
async fn events_right_after_a_response_resume_runs() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let wait = |event: &str| json!({"type": "wait_for_event", "event": event, "match": "user_id", "timeout": "1h"});
    let id = create_active(
        &world,
        json!({"event": "go"}),
        json!([
            {"type": "condition", "all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]},
            wait("act"),
            {"type": "condition", "all": [{"field": "wait.data.n", "op": "eq", "value": 2}]},
            wait("act"),
            {"type": "delay", "duration": "1h"},
        ]),
    )
    .await;
    // No step is executed by the runner between these events.
    let ingest = async |name: &str, data: Value| {
        let reaction = ingest_event(&world, product.account, name, (Some("7"), None), data).await;
        (reaction.matched, reaction.resumed)
    };
    assert_eq!(ingest("go", json!({"plan": "paid"})).await, (1, 0));
    assert_eq!(product.counts(&id).await, [0, 0, 1, 0, 0], "the condition is false");
    assert_eq!(ingest("act", json!({"n": 2})).await, (0, 0));
    assert_eq!(ingest("go", json!({"plan": "trial"})).await, (1, 0));
    assert_eq!(product.counts(&id).await, [0, 1, 1, 0, 0]);
    assert_eq!(ingest("act", json!({"n": 2})).await, (0, 1), "the first wait");
    assert_eq!(ingest("act", json!({"n": 3})).await, (0, 1), "the second wait");
    product.advance("1h").await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!(run["status"], "waiting", "{run}");
    let kinds: Vec<String> = product.emitted_events(&run).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "automation.step_completed").count(), 4, "{kinds:?}");
    product.advance("1h").await;
    assert_eq!(product.counts(&id).await, [0, 0, 2, 0, 0]);
    world.end().await;
}

/// A wait after an email counts the events that came before the email was sent, but none before the run.
#[tokio::test]
async fn events_before_the_email_of_the_step_before_a_wait_resume_runs() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let wait = json!({"type": "wait_for_event", "event": "act", "match": "user_id", "timeout": "1h",
        "filter": {"all": [{"field": "event.data.n", "op": "gt", "value": 1}]}});
    let id = create_active(&world, json!({"event": "go"}), json!([email_step("x"), wait, wait, email_step("y")])).await;
    let send = async |name: &str, n: u64| {
        let event = json!({"name": name, "user_id": "7", "email": "b@example.net", "data": {"n": n}});
        let response = post(&world, "/events", event).await;
        assert_eq!(response.status, StatusCode::ACCEPTED, "{response:?}");
        world.services.clock.advance(Duration::from_secs(1));
        response.json()["event"]["id"].as_str().unwrap().to_owned()
    };
    send("act", 2).await;
    send("go", 0).await;
    // The runner has not executed the first step when these events arrive.
    send("act", 1).await;
    let counted = send("act", 3).await;
    world.accounts.automations.run_due().await;
    let run = product.runs(&id).await.remove(0);
    let run = world.get(&format!("/automations/{id}/runs/{}", run["id"].as_str().unwrap())).await.json()["run"].clone();
    assert_eq!(run["steps"][1]["output"], json!({"received": true, "event_id": counted}), "{run}");
    assert_eq!((&run["current_step_index"], &run["status"]), (&json!(2), &json!("waiting")), "counted once: {run}");
    product.advance("2h").await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!(run["status"], "completed", "{run}");
    // Without such an event, the run waits for its time.
    send("go", 0).await;
    world.accounts.automations.run_due().await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["current_step_index"], &run["status"]), (&json!(1), &json!("waiting")), "{run}");
    send("act", 4).await;
    world.accounts.automations.run_due().await;
    assert_eq!(product.runs(&id).await.remove(0)["current_step_index"], 2);
    world.end().await;
}

/// Each of several waits counts its event, although all of them came before the first step was executed.
#[tokio::test]
async fn waits_in_a_row_count_earlier_events() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let wait = |event: &str| json!({"type": "wait_for_event", "event": event, "match": "user_id", "timeout": "1h"});
    let steps = json!([email_step("x"), wait("a"), wait("b"), email_step("y"), wait("c"), wait("b")]);
    let id = create_active(&world, json!({"event": "go"}), steps).await;
    for name in ["go", "a", "b", "c"] {
        let event = json!({"name": name, "user_id": "7", "email": "b@example.net"});
        assert_eq!(post(&world, "/events", event).await.status, StatusCode::ACCEPTED);
        world.services.clock.advance(Duration::from_secs(1));
    }
    world.accounts.automations.run_due().await;
    let run = product.runs(&id).await.remove(0);
    assert_eq!((&run["current_step_index"], &run["status"]), (&json!(5), &json!("waiting")), "{run}");
    world.end().await;
}

/// One event that matches more runs than one commit can change: all are counted and all continue.
#[tokio::test]
async fn many_waiting_runs_resume_in_slices() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let wait = json!([{"type": "wait_for_event", "event": "go", "timeout": "1d"}]);
    let id = create_active(&world, json!({"event": "a", "cancel_on_events": ["stop"]}), wait).await;
    for _ in 0..1_100 {
        ingest_event(&world, product.account, "a", (Some("7"), None), json!({})).await;
    }
    world.accounts.automations.run_due().await;
    assert_eq!(product.counts(&id).await, [0, 1_100, 0, 0, 0]);
    assert_eq!(product.ingest("go", json!({})).await, (0, 1_100, 0));
    assert_eq!(product.counts(&id).await, [0, 0, 1_100, 0, 0]);
    for _ in 0..1_100 {
        ingest_event(&world, product.account, "a", (Some("7"), None), json!({})).await;
    }
    assert_eq!(product.ingest("stop", json!({})).await, (0, 0, 1_100));
    assert_eq!(product.counts(&id).await, [0, 0, 1_100, 0, 1_100]);
    world.end().await;
}

#[tokio::test]
async fn accounts_do_not_see_each_other() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let id = create_active(&world, json!({"event": "a"}), json!([{"type": "delay", "duration": "1h"}])).await;
    product.ingest("a", json!({})).await;
    let run = product.runs(&id).await.remove(0)["id"].as_str().unwrap().to_owned();
    let other = world.account(2, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, "/automations").await.json()["automations"], json!([]));
    for (method, path) in [
        (Method::GET, format!("/automations/{id}")),
        (Method::POST, format!("/automations/{id}")),
        (Method::DELETE, format!("/automations/{id}")),
        (Method::POST, format!("/automations/{id}/duplicate")),
        (Method::GET, format!("/automations/{id}/versions")),
        (Method::GET, format!("/automations/{id}/runs")),
        (Method::GET, format!("/automations/{id}/runs/{run}")),
        (Method::POST, format!("/automations/{id}/runs/{run}/cancel")),
        (Method::GET, "/automations/none".to_owned()),
    ] {
        let response = world.call_as(&other, method, &path, &json!({"action": "pause"})).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::NOT_FOUND, "not_found"), "{path}");
    }
    let foreign = AccountId::new(Timestamp::from_second(1_700_000_000).unwrap(), 2);
    assert_eq!(ingest_event(&world, foreign, "a", (Some("7"), None), json!({})).await, SignalEffects::default());
    assert_eq!(product.counts(&id).await, [0, 1, 0, 0, 0]);
    world.end().await;
}

#[tokio::test]
async fn emails_of_a_suspended_account_wait() {
    let world = World::start().await;
    let product = Product::new(&world).await;
    let steps = json!([{"type": "delay", "duration": "1h"}, email_step("x")]);
    let id = create_active(&world, json!({"event": "a"}), steps).await;
    product.ingest("a", json!({})).await;
    world.change_account(|account| account.suspended = true).await;
    product.advance("2h").await;
    world.change_account(|account| account.suspended = false).await;
    let [_, _, completed, failed, _] = product.counts(&id).await;
    assert_eq!((completed, failed), (0, 0), "the run waits");
    product.advance("1h").await;
    assert_eq!(product.counts(&id).await, [0, 0, 1, 0, 0]);
    world.end().await;
}
