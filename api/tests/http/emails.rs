//! Emails over HTTP: accepted and refused requests, views, isolation of accounts.

use crate::world::World;
use http::StatusCode;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

fn email_body() -> Value {
    json!({"from": "Ada <ada@example.com>", "to": "b@example.net", "subject": "s", "text": "t"})
}

/// The smallest valid email with these fields set; null removes a field.
fn body_with(fields: Value) -> Value {
    let mut mail = email_body();
    for (name, value) in fields.as_object().unwrap() {
        if value.is_null() {
            mail.as_object_mut().unwrap().remove(name);
        } else {
            mail[name] = value.clone();
        }
    }
    mail
}

fn file(name: &str) -> Value {
    json!({"name": name, "data": "aGk="})
}

#[tokio::test]
async fn valid_requests_are_accepted() {
    let world = World::start().await;
    for fields in [
        json!({}),
        json!({"from": "ada@example.com"}),
        json!({"from": {"email": "ada@example.com", "name": "Ada, \"L\""}}),
        json!({"from": {"email": "ada@example.com", "name": null}}),
        json!({"to": ["B <b@example.net>", "c@example.net"], "cc": "d@example.net", "bcc": ["e@example.net"]}),
        json!({"to": "Doe, John <j@example.net>"}),
        json!({"to": (0..1000).map(|n| format!("r{n}@example.net")).collect::<Vec<_>>()}),
        json!({"text": null, "html": "<p>h</p>"}),
        json!({"text": null, "htmlBody": "<p>h</p>"}),
        json!({"text": null, "html_body": "<p>h</p>", "plain_body": "t"}),
        json!({"text": null, "textBody": "t"}),
        json!({"text": null, "text_body": "t", "replyTo": "r@example.net"}),
        json!({"reply_to": ["r@example.net", "R <s@example.net>"]}),
        json!({"headers": {"X-Order": "12", "In-Reply-To": "<a@b>", "List-Unsubscribe": "<https://x.example>"}}),
        json!({"tags": [{"name": "a", "value": "b"}], "category": "newsletter"}),
        json!({"tags": {"a": "b", "c": ""}}),
        json!({"attachments": [file("a.pdf"), {"filename": "b.png", "contentType": "image/png", "content": "aGk", "contentId": "<b@x>"}]}),
        json!({"attachments": (0..10).map(|n| file(&format!("{n}.txt"))).collect::<Vec<_>>()}),
        json!({"unsubscribe": false, "attachments": [], "tags": [], "headers": {}, "cc": []}),
    ] {
        let response = world.post("/emails", body_with(fields.clone()).to_string()).await;
        assert_eq!(response.status, StatusCode::OK, "{fields}: {:?}", response.body);
        let body = response.json();
        assert!(body["id"].as_str().unwrap().starts_with("msg_"));
        assert_eq!(body["status"], "sent");
        assert_eq!(body.get("warnings"), None, "{fields}");
    }
    world.end().await;
}

/// Checks that each request is refused with one field error of this name.
async fn assert_refused(cases: impl IntoIterator<Item = (Value, &'static str)>) {
    let world = World::start().await;
    for (fields, named) in cases {
        let response = world.post("/emails", body_with(fields.clone()).to_string()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{fields}");
        let error = &response.json()["error"];
        assert_eq!(error["code"], "validation_error", "{fields}");
        let message = &error["details"]["fields"][named];
        assert!(message.is_string(), "{fields}: {error}");
        assert_eq!(&error["details"][named], message, "{fields}");
        assert_eq!(error["details"]["fields"].as_object().unwrap().len(), 1, "{fields}: {error}");
    }
    world.end().await;
}

#[tokio::test]
async fn bad_addresses_and_texts() {
    let long = "x".repeat(5000);
    assert_refused([
        (json!({"from": null}), "from"),
        (json!({"from": ""}), "from"),
        (json!({"from": "ada"}), "from"),
        (json!({"from": 5}), "from"),
        (json!({"from": "a@example.com, b@example.com"}), "from"),
        (json!({"from": {"name": "x"}}), "from.email"),
        (json!({"from": {"email": "a@example.com", "name": "x\r\nBcc: y"}}), "from.name"),
        (json!({"from": {"Email": "a@example.com"}}), "from.Email"),
        (json!({"from": "A\r\nBcc: x@y.example <a@example.com>"}), "from"),
        (json!({"to": null}), "to"),
        (json!({"to": []}), "to"),
        (json!({"to": {}}), "to"),
        (json!({"to": ["b@example.net", "x"]}), "to[1]"),
        (json!({"to": [null]}), "to[0]"),
        (json!({"to": "A <a@example.net>, B <b@example.net>"}), "to"),
        (json!({"to": "a@example.net,b@example.net"}), "to"),
        (json!({"to": (0..1001).map(|n| format!("r{n}@example.net")).collect::<Vec<_>>()}), "to"),
        (json!({"cc": (0..1000).map(|n| format!("r{n}@example.net")).collect::<Vec<_>>()}), "cc"),
        (json!({"reply_to": "x"}), "reply_to"),
        (json!({"subject": null}), "subject"),
        (json!({"subject": " "}), "subject"),
        (json!({"subject": ["s"]}), "subject"),
        (json!({"subject": "a\r\nBcc: x@y.example"}), "subject"),
        (json!({"subject": "a\u{0}"}), "subject"),
        (json!({"subject": long}), "subject"),
        (json!({"text": null}), "html"),
        (json!({"text": ""}), "html"),
        (json!({"text": 5}), "text"),
        (json!({"text": "a\u{0}"}), "text"),
        (json!({"text": null, "HtmlBody": "x"}), "HtmlBody"),
        (json!({"html": "a", "htmlBody": "b"}), "html"),
    ])
    .await;
}

#[tokio::test]
async fn bad_labels_and_files() {
    assert_refused([
        (json!({"headers": []}), "headers"),
        (json!({"headers": {"Bcc": "x@y.example"}}), "headers.Bcc"),
        (json!({"headers": {"X-A": "a\nb"}}), "headers.X-A"),
        (json!({"headers": {"X-A": 5}}), "headers.X-A"),
        (json!({"headers": {"X-L": "x".repeat(2000)}}), "headers.X-L"),
        (json!({"headers": {"Errors-To": "x@y.example"}}), "headers.Errors-To"),
        (json!({"headers": {"X-A": "a", "x-a": "b"}}), "headers.x-a"),
        (json!({"tags": "a"}), "tags"),
        (json!({"tags": [{"name": "a"}]}), "tags[0].value"),
        (json!({"tags": {"a": 1}}), "tags.a"),
        (json!({"tags": {"a:b": "c"}}), "tags.a:b"),
        (json!({"tags": [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]}), "tags"),
        (json!({"tags": (0..11).map(|n| json!({"name": n.to_string(), "value": ""})).collect::<Vec<_>>()}), "tags"),
        (json!({"tags": (0..11).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>()}), "tags"),
        (json!({"attachments": {}}), "attachments"),
        (json!({"attachments": [5]}), "attachments[0]"),
        (json!({"attachments": [{"name": "a.txt"}]}), "attachments[0].data"),
        (json!({"attachments": [{"data": "aGk="}]}), "attachments[0].name"),
        (json!({"attachments": [file("a.EXE")]}), "attachments[0].name"),
        (
            json!({"attachments": [{"name": "a.eml", "content": "Q29udGVudC1UeXBlOiB4L3k7IG5hbWU9YS5leGUNCg0KeA=="}]}),
            "attachments[0].data",
        ),
        (json!({"attachments": [{"name": "a.txt", "data": "?"}]}), "attachments[0].data"),
        (
            json!({"attachments": [{"name": "a.txt", "data": "aGk=", "content_type": "x"}]}),
            "attachments[0].content_type",
        ),
        (json!({"attachments": [{"name": "a.txt", "data": "aGk=", "content_id": "a b"}]}), "attachments[0].content_id"),
        (json!({"attachments": [{"Name": "a.txt", "data": "aGk="}]}), "attachments[0].Name"),
        (json!({"attachments": (0..11).map(|n| file(&format!("{n}.txt"))).collect::<Vec<_>>()}), "attachments"),
        (json!({"category": "x"}), "category"),
        (json!({"scheduledAt": "2020-01-01T00:00:00Z"}), "scheduled_at"),
        (json!({"expires_in": 0}), "expires_in"),
        (json!({"on_suppressed": "ignore"}), "on_suppressed"),
        (json!({"unsubscribe": "yes"}), "unsubscribe"),
        (json!({"variables": {}}), "variables"),
        (json!({"unsubscribe": "no"}), "unsubscribe"),
        (json!({"TextBody": "x"}), "TextBody"),
        (json!({"MessageStream": "x"}), "MessageStream"),
    ])
    .await;
}

#[tokio::test]
async fn all_errors_are_reported_at_once() {
    let world = World::start().await;
    let response = world.post("/emails", json!({"HtmlBody": "x", "to": "y", "tags": 5}).to_string()).await;
    let error = &response.json()["error"];
    let fields: Vec<_> = error["details"]["fields"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["HtmlBody", "from", "subject", "tags", "to"]);
    assert_eq!(error["message"], "`HtmlBody` is not accepted; use `html` (and 4 more errors)");
    assert!(error["doc_url"].as_str().unwrap().ends_with("/docs/errors#validation_error"));
    world.end().await;
}

#[tokio::test]
async fn invalid_json_is_reported() {
    let world = World::start().await;
    for body in ["", "{", "{\"a\":}", "\u{feff}{}", "{} {}", "{\"a\": \"\u{1}\"}", "nul"] {
        assert_eq!(world.post("/emails", body.to_owned()).await.code(), "invalid_json", "{body:?}");
    }
    assert_eq!(world.post("/emails", &b"{\"from\": \"\xff\"}"[..]).await.code(), "invalid_json");
    for body in ["5", "[]", "\"x\"", "null"] {
        assert_eq!(world.post("/emails", body).await.code(), "validation_error", "{body:?}");
    }
    // A deeply nested value is refused, even in an unknown field.
    let deep = format!("{{\"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(world.post("/emails", deep).await.code(), "invalid_json");
    world.end().await;
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_named() {
    let world = World::start().await;
    let fields = json!({"foo": 1, "attachments": [{"name": "a.txt", "data": "aGk=", "size": 2}]});
    let response = world.post("/emails", body_with(fields).to_string()).await;
    assert_eq!(
        response.json()["warnings"],
        json!([
            "`foo` is not a known field and was ignored",
            "`attachments[0].size` is not a known field and was ignored"
        ])
    );
    world.end().await;
}

#[tokio::test]
async fn intake_errors_map_to_responses() {
    let world = World::start().await;
    let response = world.post("/emails", body_with(json!({"from": "x@other.example"})).to_string()).await;
    assert_eq!((response.status, response.code().as_str()), (StatusCode::FORBIDDEN, "domain_not_verified"));
    assert_eq!(response.json()["error"]["details"]["domain"], "other.example");
    world.end().await;
}

#[tokio::test]
async fn shown_email_has_the_documented_fields() {
    let world = World::start().await;
    let fields = json!({
        "to": ["B <b@example.net>", "c@example.net"],
        "cc": ["c@example.net", "d@example.net"],
        "bcc": "D <d@example.net>",
        "reply_to": "r@example.net",
        "tags": {"k": "v"},
        "category": "product",
    });
    let id = world.post("/emails", body_with(fields).to_string()).await.json()["id"].clone();
    let list = world.get("/emails").await.json();
    assert_eq!((&list["has_more"], &list["next_cursor"]), (&json!(false), &Value::Null));
    let email = &list["emails"][0];
    let created_at = email["created_at"].as_str().unwrap();
    assert!(created_at.len() == 24 && created_at.ends_with('Z'), "{created_at}");
    let expected = json!({
        "id": id, "from": "Ada <ada@example.com>", "to": ["B <b@example.net>", "c@example.net"],
        "cc": ["d@example.net"], "bcc": [], "reply_to": ["r@example.net"], "subject": "s",
        "status": "sent", "last_event": "email.sent", "bounce_reason": null,
        "tags": [{"name": "k", "value": "v"}], "confidential": false, "scheduled_at": null, "cancelled_at": null,
        "created_at": created_at, "sent_at": created_at, "delivered_at": null, "bounced_at": null,
    });
    assert_eq!(email, &expected);
    let path = format!("/emails/{}", id.as_str().unwrap());
    let one = &world.get(&path).await.json()["email"];
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&one[name], value, "{name}");
    }
    assert_eq!((&one["category"], &one["counts"]["queued"]), (&json!("product"), &json!(3)));
    let kinds: Vec<_> = one["recipients"].as_array().unwrap().iter().map(|r| (&r["email"], &r["type"])).collect();
    assert_eq!(
        kinds,
        [("b@example.net", "to"), ("c@example.net", "to"), ("d@example.net", "cc")]
            .map(|(e, t)| (json!(e), json!(t)))
            .iter()
            .map(|(e, t)| (e, t))
            .collect::<Vec<_>>()
    );
    let message_id = one["message_id"].as_str().unwrap();
    assert!(message_id.starts_with('<') && message_id.ends_with("@example.com>"), "{message_id}");
    let raw = world.get(&format!("{path}/raw")).await;
    assert_eq!(raw.headers["content-type"], "message/rfc822");
    let raw = String::from_utf8(raw.body.to_vec()).unwrap();
    assert!(raw.contains(message_id) && raw.contains("Subject: s\r\n"), "{raw}");
    assert_eq!(one["size"], raw.len());
    let events = world.get(&format!("{path}/events")).await.json();
    assert_eq!(events["events"][0]["type"], "email.sent", "{events}");
    assert_eq!(world.get(&format!("{path}/attempts")).await.json()["attempts"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn pages_contain_every_entry_once() {
    let world = World::start().await;
    let mut sent = Vec::new();
    for _ in 0..7 {
        sent.push(world.post("/emails", email_body().to_string()).await.json()["id"].clone());
    }
    sent.sort_by_key(|id| std::cmp::Reverse(id.to_string()));
    let mut collected = Vec::new();
    let mut path = "/emails?limit=3".to_owned();
    loop {
        let page = world.get(&path).await.json();
        collected.extend(page["emails"].as_array().unwrap().iter().map(|email| email["id"].clone()));
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/emails?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(collected, sent);
    assert_eq!(world.get("/emails?limit=101").await.code(), "validation_error");
    assert_eq!(world.get("/emails?cursor=x").await.code(), "invalid_cursor");
    assert_eq!(world.get("/emails?status=eaten").await.code(), "validation_error");
    world.end().await;
}

/// Every operation answers 404 for another account's email.
#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let world = World::start().await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let id = world.post("/emails", email_body().to_string()).await.json()["id"].as_str().unwrap().to_owned();
    for rest in ["", "/events", "/attempts", "/raw"] {
        let path = format!("/emails/{id}{rest}");
        assert_eq!(world.get(&path).await.status, StatusCode::OK, "{path}");
        let response = world.get_as(&other, &path).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::NOT_FOUND, "not_found"), "{path}");
    }
    assert_eq!(world.get_as(&other, "/emails").await.json()["emails"], json!([]));
    for id in ["x", "msg_", "evt_00000000000000000000000000", "msg_zzzzzzzzzzzzzzzzzzzzzzzzzz"] {
        assert_eq!(world.get(&format!("/emails/{id}")).await.code(), "not_found", "{id}");
    }
    world.end().await;
}

#[tokio::test]
async fn an_email_has_the_documented_fields() {
    let world = World::start().await;
    let sent = world.post("/emails", email_body().to_string()).await.json();
    let view = world.get(&format!("/emails/{}", sent["id"].as_str().unwrap())).await.json();
    let document = api::openapi::document(&api::operations::operation_table(), crate::world::BASE_URL);
    let schemas = &document["components"]["schemas"];
    let fields = |properties: &Value| properties.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let described = [&schemas["Email"]["properties"], &schemas["EmailDetail"]["allOf"][1]["properties"]];
    let mut described = described.map(fields).concat();
    let mut view = fields(&view["email"]);
    described.sort();
    view.sort();
    assert_eq!(view, described);
    world.end().await;
}
