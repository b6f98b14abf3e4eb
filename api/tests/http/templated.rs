//! Emails from templates over HTTP.

use crate::world::{TestResponse, World};
use http::StatusCode;
use serde_json::{Value, json};

async fn publish(world: &World, template: Value) {
    let made = world.post("/templates", template.to_string()).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let id = made.json()["template"]["id"].as_str().unwrap().to_owned();
    let published = world.post(&format!("/templates/{id}/publish"), "{}").await;
    assert_eq!(published.status, StatusCode::OK, "{published:?}");
}

async fn show(world: &World, id: &Value) -> Value {
    world.get(&format!("/emails/{}", id.as_str().unwrap())).await.json()["email"].clone()
}

fn welcome_template() -> Value {
    json!({
        "name": "Welcome", "alias": "welcome", "from": "Ada <ada@example.com>", "reply_to": ["help@example.com"],
        "subject": "Hello {{name}}", "html": "<p>{{name}}</p><a href=\"{{unsubscribe_url}}\">leave</a>",
        "text": "{{name}}: {{order.id}}", "category": "product",
        "variables": [{"key": "name", "type": "string", "required": true}],
    })
}

#[tokio::test]
async fn template_fills_missing_fields() {
    let world = World::start().await;
    publish(&world, welcome_template()).await;
    let variables = json!({"name": "B & C", "order": {"id": 7}});
    for body in [
        json!({"to": "b@example.net", "template": "welcome", "variables": variables}),
        json!({"to": "b@example.net", "template": {"alias": "welcome", "version": 1, "variables": variables}}),
        json!({"to": "b@example.net", "templateAlias": "welcome", "dynamic_template_data": variables}),
    ] {
        let sent = world.post("/emails", body.to_string()).await;
        assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
        let view = show(&world, &sent.json()["id"]).await;
        assert_eq!(view["subject"], "Hello B & C");
        assert_eq!(view["from"], "Ada <ada@example.com>");
        assert_eq!(view["reply_to"], json!(["help@example.com"]));
        assert_eq!(view["text"], "B & C: 7");
        assert_eq!(view["category"], "product");
        let html = view["html"].as_str().unwrap();
        assert!(html.contains("B &amp; C") && html.contains("href=\"{{unsubscribe_url}}\""), "{html}");
        assert_eq!((&view["unsubscribe"], &view["headers"]), (&json!(true), &json!({})));
        assert_eq!((&view["template"]["alias"], &view["template"]["version"]), (&json!("welcome"), &json!(1)));
    }
    let own = json!({
        "to": "b@example.net", "template": "welcome", "variables": variables, "subject": "Mine {{name}}",
        "from": "ada@example.com", "category": "transactional", "unsubscribe": false, "reply_to": [],
    });
    let sent = world.post("/emails", own.to_string()).await;
    let view = show(&world, &sent.json()["id"]).await;
    assert_eq!((&view["subject"], &view["category"]), (&json!("Mine {{name}}"), &json!("transactional")));
    assert_eq!(view["unsubscribe"], false);
    world.end().await;
}

fn text(response: &TestResponse) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

/// Numbers keep their notation in emails and in responses, whichever way the variables are sent.
#[tokio::test]
async fn numbers_are_kept_to_the_digit() {
    const EXACT: &str = r#"{"price":19.90,"order":12345678901234567890123,"owed":-0,"list":[1.10]}"#;
    let world = World::start().await;
    let made = world
        .post(
            "/templates",
            r#"{"name":"Bill","alias":"bill","from":"ada@example.com","subject":"{{price}}","text":"{{order}}: {{price}} {{rate}}{{#if owed}} owed{{/if}}{{#each list}} {{this}}{{/each}}",
                "variables":[{"key":"price","type":"number"},{"key":"rate","type":"number","fallback_value":1.50}]}"#,
        )
        .await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    assert!(text(&made).contains(r#""fallback_value":1.50"#), "{made:?}");
    world.post("/templates/bill/publish", "{}").await;
    let preview = world.post("/templates/bill/preview", format!(r#"{{"variables":{EXACT}}}"#)).await;
    assert_eq!(preview.json()["text"], "12345678901234567890123: 19.90 1.50 1.10", "{preview:?}");
    assert!(text(&preview).contains(r#""rate":1.50"#), "{preview:?}");
    let item = format!(r#"{{"to":"b@example.net","template":"bill","variables":{EXACT}}}"#);
    let inner = format!(r#"{{"to":"b@example.net","template":{{"alias":"bill","variables":{EXACT}}}}}"#);
    let sent = [world.post("/emails", item.clone()).await.json(), world.post("/emails", inner.clone()).await.json()];
    let batch = world.post("/emails/batch", format!(r#"{{"emails":[{item},{inner}]}}"#)).await.json();
    for id in sent.iter().map(|entry| &entry["id"]).chain([&batch["data"][0]["id"], &batch["data"][1]["id"]]) {
        let view = show(&world, id).await;
        assert_eq!(view["subject"], "19.90", "{view}");
        assert_eq!(view["text"], "12345678901234567890123: 19.90 1.50 1.10", "{view}");
    }
    world.end().await;
}

#[tokio::test]
async fn missing_variables_are_named() {
    let world = World::start().await;
    publish(&world, welcome_template()).await;
    let post = async |body: Value| world.post("/emails", body.to_string()).await;
    let missing = post(json!({"to": "b@example.net", "template": "welcome", "variables": {"x": 1}})).await;
    assert_eq!((missing.status, missing.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
    let mut named: Vec<_> = missing.json()["error"]["details"]["missing_variables"].as_array().unwrap().clone();
    named.sort_by_key(ToString::to_string);
    assert_eq!(named, [json!("name"), json!("order.id")]);
    let unknown = post(json!({"to": "b@example.net", "template": "welcomed"})).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (StatusCode::NOT_FOUND, "not_found"));
    assert_eq!(unknown.json()["error"]["message"], "No such template");
    let draft = json!({"name": "Draft", "alias": "draft", "subject": "s", "text": "t"});
    assert_eq!(world.post("/templates", draft.to_string()).await.status, StatusCode::OK);
    let draft = post(json!({"to": "b@example.net", "template": "draft"})).await;
    assert_eq!((draft.status, draft.code().as_str()), (StatusCode::NOT_FOUND, "not_found"));
    let message = draft.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The template has no published version"), "{message}");
    let both = post(json!({"to": "b@example.net", "template": "welcome", "html": "<p>", "variables": {}})).await;
    assert!(both.json()["error"]["details"]["html"].is_string(), "{both:?}");
    let alone = post(json!({"to": "b@example.net", "variables": {}})).await;
    let details = alone.json()["error"]["details"].clone();
    for name in ["from", "subject", "html", "variables"] {
        assert!(details[name].is_string(), "{details}");
    }
    let batch = json!({"emails": [
        {"to": "b@example.net", "template": "welcome", "variables": {"name": "a", "order": {"id": 1}}},
        {"to": "c@example.net", "template": "welcome", "variables": {"name": "a"}},
        {"to": "d@example.net", "template": "none"},
    ]});
    let entries = world.post("/emails/batch", batch.to_string()).await.json()["data"].clone();
    assert_eq!(entries[0]["status"], "sent", "{entries}");
    assert_eq!(entries[1]["error"]["details"]["missing_variables"], json!(["order.id"]));
    assert_eq!(entries[2]["error"]["code"], "not_found");
    world.end().await;
}
