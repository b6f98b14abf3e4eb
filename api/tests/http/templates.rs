//! Templates over HTTP: from draft to version, errors, previews.

use crate::world::{TestResponse, World};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

pub(crate) async fn call(world: &World, method: Method, path: &str, body: Value) -> TestResponse {
    let request = world.request(method, path).header("content-type", "application/json");
    world.send(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await
}

pub(crate) async fn post(world: &World, path: &str, body: Value) -> TestResponse {
    call(world, Method::POST, path, body).await
}

pub(crate) async fn patch(world: &World, path: &str, body: Value) -> TestResponse {
    call(world, Method::PATCH, path, body).await
}

async fn delete(world: &World, path: &str) -> TestResponse {
    world.send(world.request(Method::DELETE, path).body(Full::default()).unwrap()).await
}

fn welcome_template() -> Value {
    json!({
        "name": "Welcome", "alias": "welcome", "from": "Ada <ada@example.com>", "reply_to": "r@example.com",
        "subject": "Hi {{name}}", "html": "<p>Hi {{name}}</p>{{#each items}}{{title}} {{/each}}",
        "text": "Hi {{name}}", "category": "product",
        "variables": [{"key": "name", "type": "string", "fallback_value": "friend"}, {"key": "items", "type": "list"}],
    })
}

#[tokio::test]
async fn template_has_the_documented_fields() {
    let world = World::start().await;
    let made = post(&world, "/templates", welcome_template()).await;
    assert_eq!(made.status, StatusCode::OK, "{:?}", made.body);
    let template = made.json()["template"].clone();
    let id = template["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("tpl_"));
    let at = template["created_at"].clone();
    let mut expected = json!({
        "id": id, "alias": "welcome", "name": "Welcome", "category": "product", "unsubscribe_enabled": true,
        "from": "Ada <ada@example.com>", "reply_to": ["r@example.com"], "subject": "Hi {{name}}",
        "preheader": null, "html": "<p>Hi {{name}}</p>{{#each items}}{{title}} {{/each}}",
        "mjml": null, "text": "Hi {{name}}",
        "variables": [
            {"key": "name", "type": "string", "required": false, "fallback_value": "friend"},
            {"key": "items", "type": "list", "required": true, "fallback_value": null},
        ],
        "status": "draft", "draft_version": 1, "published_version": null, "has_unpublished_changes": true,
        "published_at": null, "created_at": at, "updated_at": at,
    });
    assert_eq!(template, expected);
    for path in [format!("/templates/{id}"), "/templates/welcome".to_owned(), "/templates/WELCOME".to_owned()] {
        assert_eq!(world.get(&path).await.json()["template"], expected, "{path}");
    }
    let list = world.get("/templates").await.json();
    for body in ["html", "mjml", "text"] {
        expected.as_object_mut().unwrap().remove(body);
    }
    assert_eq!(list, json!({"templates": [expected], "has_more": false, "next_cursor": null}));
    world.end().await;
}

#[tokio::test]
async fn template_lifecycle() {
    let world = World::start().await;
    post(&world, "/templates", welcome_template()).await;
    let path = "/templates/welcome";
    let first = post(&world, &format!("{path}/publish"), json!({"note": "first"})).await.json();
    assert_eq!((&first["version"]["number"], &first["version"]["note"]), (&json!(1), &json!("first")));
    assert_eq!(first["version"]["published_by"], "owner1@example.com");
    let template = &first["template"];
    assert_eq!((&template["status"], &template["published_version"]), (&json!("published"), &json!(1)));
    assert_eq!(template["has_unpublished_changes"], false);
    assert_eq!(template["published_at"], first["version"]["published_at"]);

    let change = json!({"html": "two", "if_version": 1, "subject": null});
    let changed = patch(&world, path, change.clone()).await.json()["template"].clone();
    assert_eq!((&changed["html"], &changed["subject"]), (&json!("two"), &Value::Null));
    assert_eq!((&changed["draft_version"], &changed["has_unpublished_changes"]), (&json!(2), &json!(true)));
    let late = patch(&world, path, change).await;
    assert_eq!((late.status, late.code().as_str()), (StatusCode::CONFLICT, "conflict"));
    // The published version is unchanged; after a rollback the draft equals it.
    let version = world.get(&format!("{path}/versions/1")).await.json()["version"].clone();
    assert_eq!((&version["number"], &version["subject"]), (&json!(1), &json!("Hi {{name}}")));
    let back = json!({"html": welcome_template()["html"], "subject": "Hi {{name}}"});
    assert_eq!(patch(&world, path, back).await.json()["template"]["has_unpublished_changes"], false);

    patch(&world, path, json!({"html": "two"})).await;
    // Without a body, too.
    let second = world.post(&format!("{path}/publish"), "").await.json();
    assert_eq!((&second["version"]["number"], &second["version"]["note"]), (&json!(2), &Value::Null));
    let third = post(&world, &format!("{path}/rollback"), json!({"version": 1})).await.json();
    assert_eq!(third["version"]["number"], 3);
    assert_eq!(third["version"]["note"], "Rollback to version 1");
    assert_eq!(third["template"]["html"], welcome_template()["html"]);
    // A draft with unpublished changes is not replaced.
    patch(&world, path, json!({"html": "mine"})).await;
    let fourth = post(&world, &format!("{path}/rollback"), json!({"version": 2, "note": "again"})).await.json();
    assert_eq!(
        (&fourth["template"]["html"], &fourth["template"]["has_unpublished_changes"]),
        (&json!("mine"), &json!(true))
    );
    assert_eq!(world.get(&format!("{path}/versions/4")).await.json()["version"]["html"], "two");

    let page = world.get(&format!("{path}/versions?limit=3")).await.json();
    let numbers: Vec<_> = page["versions"].as_array().unwrap().iter().map(|v| v["number"].clone()).collect();
    assert_eq!((numbers, &page["has_more"]), (vec![json!(4), json!(3), json!(2)], &json!(true)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = world.get(&format!("{path}/versions?cursor={cursor}")).await.json();
    assert_eq!((&page["versions"][0]["number"], &page["next_cursor"]), (&json!(1), &Value::Null));

    assert_eq!(patch(&world, path, json!({"status": "archived"})).await.json()["template"]["status"], "archived");
    assert_eq!(patch(&world, path, json!({"status": "draft"})).await.code(), "validation_error");
    assert_eq!(patch(&world, path, json!({"status": "published"})).await.json()["template"]["status"], "published");
    assert_eq!(delete(&world, path).await.json(), json!({"ok": true}));
    for rest in ["", "/versions", "/versions/1"] {
        assert_eq!(world.get(&format!("{path}{rest}")).await.code(), "not_found", "{rest}");
    }
    world.end().await;
}

#[tokio::test]
async fn names_and_aliases_are_taken_once() {
    let world = World::start().await;
    post(&world, "/templates", welcome_template()).await;
    for (fields, field) in [
        (json!({"name": "Other", "alias": "Welcome"}), "alias"),
        (json!({"name": "welcome", "alias": "other"}), "name"),
    ] {
        let response = post(&world, "/templates", fields).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::CONFLICT, "conflict"));
        assert_eq!(response.json()["error"]["details"]["field"], field);
    }
    // The alias also serves as name; with neither, the error is about the name.
    let other = post(&world, "/templates", json!({"alias": "other"})).await.json();
    assert_eq!(other["template"]["name"], "other");
    assert_eq!(patch(&world, "/templates/other", json!({"alias": "welcome"})).await.code(), "conflict");
    assert_eq!(patch(&world, "/templates/other", json!({"name": "Welcome"})).await.code(), "conflict");
    patch(&world, "/templates/other", json!({"alias": "another"})).await;
    assert_eq!(world.get("/templates/other").await.code(), "not_found");
    assert_eq!(world.get("/templates/another").await.status, StatusCode::OK);
    // Copies get generated names.
    for expected in ["Welcome (copy)", "Welcome (copy 2)"] {
        let copy = world.post("/templates/welcome/duplicate", "").await.json()["template"].clone();
        assert_eq!((&copy["name"], &copy["alias"], &copy["status"]), (&json!(expected), &Value::Null, &json!("draft")));
        assert_eq!(copy["html"], welcome_template()["html"]);
    }
    let named = post(&world, "/templates/welcome/duplicate", json!({"name": "New", "alias": "new"})).await;
    assert_eq!(named.json()["template"]["alias"], "new");
    for duplicate in [json!({"name": "New"}), json!({"alias": "new"}), json!({"name": "Newer", "alias": "new"})] {
        assert_eq!(post(&world, "/templates/welcome/duplicate", duplicate).await.code(), "conflict");
    }
    world.end().await;
}

#[tokio::test]
async fn template_errors_name_the_field() {
    let world = World::start().await;
    for (fields, named) in [
        (json!({"name": null}), "name"),
        (json!({"name": " "}), "name"),
        (json!({"name": "x".repeat(201)}), "name"),
        (json!({"alias": "a b"}), "alias"),
        (json!({"alias": "tpl_x"}), "alias"),
        (json!({"category": "x"}), "category"),
        (json!({"unsubscribe_enabled": "yes"}), "unsubscribe_enabled"),
        (json!({"from": "x"}), "from"),
        (json!({"reply_to": ["x"]}), "reply_to[0]"),
        (json!({"subject": "a\r\nBcc: x"}), "subject"),
        (json!({"subject": "{{a"}), "subject"),
        (json!({"html": "x".repeat(600_000)}), "html"),
        (json!({"html": "a\u{1}"}), "html"),
        (json!({"text": "{{> partial}}"}), "text"),
        (json!({"preheader": "{{#if a}}"}), "preheader"),
        (json!({"variables": {}}), "variables"),
        (json!({"variables": [5]}), "variables[0]"),
        (json!({"variables": [{}]}), "variables[0].key"),
        (json!({"variables": [{"key": "if"}]}), "variables[0].key"),
        (json!({"variables": [{"key": "a"}, {"key": "a"}]}), "variables[1].key"),
        (json!({"variables": [{"key": "a", "type": "date"}]}), "variables[0].type"),
        (json!({"variables": [{"key": "a", "required": 1}]}), "variables[0].required"),
        (json!({"variables": [{"key": "a", "type": "list", "fallback_value": "x"}]}), "variables[0].fallback_value"),
        (json!({"variables": [{"key": "a", "fallback_value": "x".repeat(20_000)}]}), "variables"),
        (json!({"HtmlBody": "x"}), "HtmlBody"),
    ] {
        let mut body = json!({"name": "T"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let response = post(&world, "/templates", body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{fields}");
        let error = &response.json()["error"];
        assert_eq!(error["code"], "validation_error", "{fields}");
        let field_errors = error["details"]["fields"].as_object().unwrap();
        assert!(field_errors.len() == 1 && field_errors.contains_key(named), "{fields}: {error}");
    }
    let response = post(&world, "/templates", json!({"name": "T", "html": "a\n  {{#if x}}b{{/each}}"})).await;
    let details = &response.json()["error"]["details"];
    assert_eq!((&details["line"], &details["column"]), (&json!(2), &json!(13)), "{details}");
    assert_eq!(details["fields"]["html"], "line 2, column 13: `{{#if}}` is closed by `{{/each}}`");
    assert_eq!(details["markup"][0]["field"], "html");
    let made = post(&world, "/templates", json!({"name": "T", "colour": "red", "if_version": 1})).await.json();
    assert_eq!(made["warnings"].as_array().unwrap().len(), 2, "{made}");
    let id = made["template"]["id"].as_str().unwrap();
    // A template without a body cannot be published; null removes a field, but not the name.
    assert_eq!(post(&world, &format!("/templates/{id}/publish"), json!({})).await.code(), "validation_error");
    assert_eq!(post(&world, &format!("/templates/{id}/rollback"), json!({})).await.code(), "validation_error");
    assert_eq!(post(&world, &format!("/templates/{id}/rollback"), json!({"version": 1})).await.code(), "not_found");
    assert_eq!(patch(&world, &format!("/templates/{id}"), json!({"name": null})).await.code(), "validation_error");
    assert_eq!(
        patch(&world, &format!("/templates/{id}"), json!({"status": "published"})).await.code(),
        "validation_error"
    );
    world.end().await;
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let world = World::start().await;
    for n in 0..7 {
        let category = if n % 2 == 0 { "transactional" } else { "newsletter" };
        let body = json!({"name": format!("T{n}"), "alias": format!("t{n}"), "category": category, "text": "x"});
        post(&world, "/templates", body).await;
    }
    post(&world, "/templates/t1/publish", json!({})).await;
    patch(&world, "/templates/t2", json!({"status": "archived"})).await;
    let names = async |query: &str| {
        let mut names = Vec::new();
        let mut path = format!("/templates?limit=2&{query}");
        loop {
            let page = world.get(&path).await.json();
            names.extend(page["templates"].as_array().unwrap().iter().map(|t| t["alias"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(cursor) => path = format!("/templates?limit=2&{query}&cursor={cursor}"),
                None => break names.sort(),
            }
        }
        names.join(" ")
    };
    assert_eq!(names("").await, "t0 t1 t2 t3 t4 t5 t6");
    assert_eq!(names("category=newsletter").await, "t1 t3 t5");
    assert_eq!(names("status=published,archived").await, "t1 t2");
    assert_eq!(names("status=draft&category=transactional").await, "t0 t4 t6");
    assert_eq!(names("category=product").await, "");
    assert_eq!(world.get("/templates?status=gone").await.code(), "validation_error");
    assert_eq!(world.get("/templates?cursor=x").await.code(), "invalid_cursor");
    world.end().await;
}

#[tokio::test]
async fn preview_returns_warnings() {
    let world = World::start().await;
    post(&world, "/templates", welcome_template()).await;
    let path = "/templates/welcome/preview";
    let preview = world.post(path, "").await.json();
    assert_eq!(preview["subject"], "Hi friend");
    assert_eq!(preview["missing_variables"], json!(["items"]));
    assert_eq!(preview["suggested_variables"], json!({"items": [{"title": "title_value"}], "name": "friend"}));
    let variables = json!({"name": "<Ada>", "items": [{"title": "one"}, {}], "more": 1});
    let preview = post(&world, path, json!({"variables": variables})).await.json();
    assert_eq!(preview["html"], "<p>Hi &lt;Ada&gt;</p>one {{title}} ");
    assert_eq!((&preview["subject"], &preview["text"]), (&json!("Hi <Ada>"), &json!("Hi <Ada>")));
    assert_eq!(preview["missing_variables"], json!(["items[1].title"]));
    assert_eq!(preview["unused_variables"], json!(["more"]));
    assert_eq!(preview["size_bytes"], 35 + 8);
    assert!(preview["warnings"][0].as_str().unwrap().contains("Managed unsubscribe"), "{preview}");
    // The published version renders differently from the draft.
    post(&world, "/templates/welcome/publish", json!({})).await;
    patch(&world, "/templates/welcome", json!({"html": "{{{big}}}", "text": null, "variables": []})).await;
    let variables = json!({"big": "x".repeat(105_000)});
    let preview = post(&world, path, json!({"variables": variables, "version": "draft"})).await.json();
    let warnings = preview["warnings"].to_string();
    assert!(warnings.contains("Gmail") && warnings.contains("no text"), "{warnings}");
    let preview = post(&world, path, json!({"variables": {"items": []}, "version": 1})).await.json();
    assert_eq!(preview["html"], "<p>Hi friend</p>");
    assert_eq!(post(&world, path, json!({"version": 2})).await.code(), "not_found");
    for bad in [json!({"version": "x"}), json!({"version": 0}), json!({"variables": []})] {
        assert_eq!(post(&world, path, bad).await.code(), "validation_error");
    }
    world.end().await;
}

#[tokio::test]
async fn unsaved_content_is_previewed_without_storing_it() {
    let world = World::start().await;
    post(&world, "/templates", welcome_template()).await;
    let path = "/templates/welcome/preview";
    let changes = json!({
        "subject": "New {{name}}", "html": "<b>{{name}} {{age}}</b>",
        "variables": [{"key": "name", "fallback_value": "you"}, {"key": "age", "type": "number"}],
    });
    let preview = post(&world, path, json!({"changes": changes, "variables": {"age": 7}})).await.json();
    assert_eq!((&preview["subject"], &preview["html"]), (&json!("New you"), &json!("<b>you 7</b>")));
    assert_eq!(preview["missing_variables"], json!([]), "{preview}");
    let preview = post(&world, path, json!({"changes": {"html": null}, "version": "draft"})).await.json();
    assert_eq!((&preview["html"], &preview["subject"]), (&Value::Null, &json!("Hi friend")));
    let stored = world.get("/templates/welcome").await.json()["template"].clone();
    assert_eq!((&stored["subject"], &stored["draft_version"]), (&json!("Hi {{name}}"), &json!(1)), "{stored}");
    let refused = post(&world, path, json!({"changes": {"html": "{{#if x}}", "variables": [{"key": "a b"}]}})).await;
    assert_eq!(refused.code(), "validation_error");
    let fields = refused.json()["error"]["details"]["fields"].clone();
    assert!(fields["changes.html"].is_string() && fields["changes.variables[0].key"].is_string(), "{fields}");
    post(&world, "/templates/welcome/publish", json!({})).await;
    for bad in [json!({"changes": {"html": "x"}, "version": 1}), json!({"changes": "x"})] {
        assert_eq!(post(&world, path, bad).await.code(), "validation_error");
    }
    world.end().await;
}

#[tokio::test]
async fn test_send_is_a_regular_email() {
    let world = World::start().await;
    post(&world, "/templates", welcome_template()).await;
    let path = "/templates/welcome/test-send";
    let items = json!({"items": [{"title": "one"}], "name": "Ada\r\nBcc: x@y.example"});
    let sent = post(&world, path, json!({"to": "b@example.net", "variables": items})).await;
    assert_eq!(sent.status, StatusCode::OK, "{:?}", sent.body);
    let id = sent.json()["id"].as_str().unwrap().to_owned();
    let email = &world.get(&format!("/emails/{id}")).await.json()["email"];
    assert_eq!((&email["subject"], &email["category"]), (&json!("Hi Ada Bcc: x@y.example"), &json!("product")));
    assert_eq!((&email["from"], &email["reply_to"]), (&json!("Ada <ada@example.com>"), &json!(["r@example.com"])));

    let response = post(&world, path, json!({"to": "b@example.net", "variables": {"items": [{}]}})).await;
    let details = &response.json()["error"]["details"];
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(details["missing_variables"], json!(["items[0].title"]), "{details}");
    assert!(details["fields"]["variables.items[0].title"].is_string());
    let response = post(&world, path, json!({"to": "b@example.net", "variables": {"items": "x"}})).await;
    assert_eq!(response.json()["error"]["details"]["fields"]["variables.items"], "must be a list");
    assert_eq!(post(&world, path, json!({"variables": {}})).await.code(), "validation_error");
    let from = json!({"to": "b@example.net", "variables": items, "from": "x@other.example"});
    assert_eq!(post(&world, path, from).await.code(), "domain_not_verified");
    patch(&world, "/templates/welcome", json!({"from": null})).await;
    let response = post(&world, path, json!({"to": "b@example.net", "variables": items})).await;
    assert!(response.json()["error"]["details"]["fields"]["from"].is_string());
    world.end().await;
}

/// Another account's template is answered 404, and a sending key changes nothing.
#[tokio::test]
async fn tenants_and_scopes() {
    let world = World::start().await;
    let id = post(&world, "/templates", welcome_template()).await.json()["template"]["id"].as_str().unwrap().to_owned();
    post(&world, "/templates/welcome/publish", json!({})).await;
    let other = world.account(2, ApiKeyScope::Full).await;
    for path in ["welcome", &id, "tpl_x", "none", "%00", "welcome/versions", "welcome/versions/1"] {
        let response = world.get_as(&other, &format!("/templates/{path}")).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::NOT_FOUND, "not_found"), "{path}");
    }
    assert_eq!(world.get_as(&other, "/templates").await.json()["templates"], json!([]));
    for number in ["0", "2", "x", "99999999999"] {
        assert_eq!(world.get(&format!("/templates/welcome/versions/{number}")).await.code(), "not_found");
    }
    let sending = world.account(3, ApiKeyScope::Sending).await;
    assert_eq!(world.get_as(&sending, "/templates").await.status, StatusCode::FORBIDDEN);
    world.end().await;
}

/// Each of many concurrent changes is applied or answered 409.
#[tokio::test]
async fn concurrent_changes_are_not_lost() {
    let world = World::start().await;
    post(&world, "/templates", welcome_template()).await;
    let guarded = (0..8).map(|n| {
        let body = json!({"text": format!("v{n}"), "if_version": 1});
        let world = &world;
        async move { patch(world, "/templates/welcome", body).await.status }
    });
    let outcomes = futures_util::future::join_all(guarded).await;
    assert_eq!(outcomes.iter().filter(|status| **status == StatusCode::OK).count(), 1, "{outcomes:?}");
    let published = (0..4).map(|_| post(&world, "/templates/welcome/publish", json!({})));
    let outcomes = futures_util::future::join_all(published).await;
    let done = outcomes.iter().filter(|response| response.status == StatusCode::OK).count();
    let last = world.get("/templates/welcome").await.json()["template"]["published_version"].clone();
    assert_eq!(last, done);
    world.end().await;
}
