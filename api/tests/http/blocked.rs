//! Sends to suppressed or opted-out recipients, and managed unsubscribe, over HTTP.

use crate::world::World;
use http::StatusCode;
use message::header::{SubmittedMessage, parse_header};
use serde_json::{Value, json};

fn email_body(to: Value, extra: Value) -> String {
    let mut mail = json!({"from": "Ada <ada@example.com>", "to": to, "subject": "s", "text": "t"});
    mail.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    mail.to_string()
}

async fn show(world: &World, id: &Value) -> Value {
    world.get(&format!("/emails/{}", id.as_str().unwrap())).await.json()["email"].clone()
}

#[tokio::test]
async fn suppressed_recipient_blocks_the_email() {
    let world = World::start().await;
    let made = world.post("/suppressions", json!({"email": "Gone@example.net"}).to_string()).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let refused = world.post("/emails", email_body(json!(["gone@example.net", "b@example.net"]), json!({}))).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "validation_error"));
    assert_eq!(refused.json()["error"]["message"], "Recipient is suppressed: gone@example.net");
    let details = refused.json()["error"]["details"].clone();
    assert_eq!(details["suppressed"], json!(["gone@example.net"]));
    let blocked = show(&world, &details["email_id"]).await;
    assert_eq!((&blocked["status"], &blocked["last_event"]), (&json!("failed"), &json!("email.suppressed")));
    assert_eq!((&blocked["sent_at"], &blocked["text"]), (&Value::Null, &json!("t")));
    let states: Vec<_> = blocked["recipients"].as_array().unwrap().iter().map(|r| r["status"].clone()).collect();
    assert_eq!(states, [json!("suppressed"), json!("failed")]);
    let used = world.queue.events.outbox.plan_usage(&world.tenant().await).await.unwrap();
    assert_eq!(used.month, 0, "a blocked email uses no quota");
    // With `on_suppressed: skip` the other recipients are sent to.
    let skip = json!({"on_suppressed": "skip"});
    let sent = world.post("/emails", email_body(json!(["gone@example.net", "b@example.net"]), skip.clone())).await;
    assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
    assert!(sent.json()["warnings"][0].as_str().unwrap().contains("gone@example.net"));
    assert_eq!(show(&world, &sent.json()["id"]).await["status"], "sent");
    assert_eq!(world.queue.events.outbox.plan_usage(&world.tenant().await).await.unwrap().month, 1);
    let nobody = world.post("/emails", email_body(json!("gone@example.net"), skip)).await;
    assert_eq!(nobody.status, StatusCode::UNPROCESSABLE_ENTITY);
    // In a batch only that entry fails.
    let email_to = |to: &str| serde_json::from_str::<Value>(&email_body(json!(to), json!({}))).unwrap();
    let batch = json!({"emails": [email_to("b@example.net"), email_to("gone@example.net")]}).to_string();
    let entries = world.post("/emails/batch", batch).await.json()["data"].clone();
    assert_eq!((&entries[0]["status"], &entries[1]["status"]), (&json!("sent"), &json!("failed")));
    assert!(entries[1]["error"]["details"]["email_id"].is_string(), "{entries}");
    world.end().await;
}

#[tokio::test]
async fn an_opt_out_counts_for_its_category_alone() {
    let world = World::start().await;
    let body = json!({"email": "b@example.net", "category": "newsletter"}).to_string();
    assert_eq!(world.post("/category-opt-outs", body).await.status, StatusCode::OK);
    let refused = world.post("/emails", email_body(json!("b@example.net"), json!({"category": "newsletter"}))).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    let error = refused.json()["error"].clone();
    assert_eq!(error["message"], "Recipients have opted out of this category: b@example.net");
    assert_eq!(error["details"]["category_unsubscribed"], json!(["b@example.net"]));
    assert_eq!(error["details"]["category"], "newsletter");
    assert!(error["details"]["suppressed"].is_null());
    for category in ["transactional", "product"] {
        let sent = world.post("/emails", email_body(json!("b@example.net"), json!({"category": category}))).await;
        assert_eq!(sent.status, StatusCode::OK, "{category}");
    }
    world.end().await;
}

#[tokio::test]
async fn managed_unsubscribe_adds_working_links() {
    let world = World::start().await;
    let extra = json!({
        "category": "product", "subject": "Leave: {{unsubscribe_url}}", "text": "Leave: {{ unsubscribe_url }}",
        "html": "<a href=\"{{unsubscribe_url}}\">leave</a>", "headers": {"List-Unsubscribe": "<mailto:x@example.com>"},
    });
    let sent = world.post("/emails", email_body(json!(["b@example.net", "c@example.net"]), extra)).await;
    assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
    let id = sent.json()["id"].clone();
    // The sent email has a working link for its recipient; the API shows the placeholder.
    let view = show(&world, &id).await;
    assert_eq!(view["subject"], "Leave: {{unsubscribe_url}}");
    assert_eq!(view["text"].as_str().unwrap().trim(), "Leave: {{unsubscribe_url}}");
    assert_eq!(view["html"].as_str().unwrap().trim(), "<a href=\"{{unsubscribe_url}}\">leave</a>");
    assert_eq!((&view["headers"], &view["unsubscribe"]), (&json!({}), &json!(true)));
    let raw = world.get(&format!("/emails/{}/raw", id.as_str().unwrap())).await;
    let message = model::parsed_body::ParsedBody::parse(&raw.body);
    let link = message.text.unwrap().trim().strip_prefix("Leave: ").unwrap().to_owned();
    assert!(link.starts_with("https://api.example.test/u/"), "{link}");
    assert!(message.html.unwrap().contains(&format!("href=\"{link}\"")));
    let header = parse_header(&SubmittedMessage::new(raw.body.clone())).unwrap();
    assert_eq!(header.summary.subject, format!("Leave: {link}"));
    let expected = model::unsubscribe::headers(&link).map(|(name, value)| (name.to_owned(), value));
    assert_eq!(message.headers, expected);
    let path = link.strip_prefix("https://api.example.test").unwrap();
    let page = world.get(path).await;
    assert_eq!(page.status, StatusCode::OK);
    let again = || email_body(json!("b@example.net"), json!({"category": "product"}));
    assert_eq!(world.post("/emails", again()).await.status, StatusCode::OK, "GET changes nothing");
    let request = world.request(http::Method::POST, path);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let body = http_body_util::Full::new("List-Unsubscribe=One-Click".into());
    assert_eq!(world.send(request.body(body).unwrap()).await.status, StatusCode::OK);
    assert_eq!(world.post("/emails", again()).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    // Transactional email has no link unless requested; product email has none if it is switched off.
    for (extra, has) in [
        (json!({}), false),
        (json!({"unsubscribe": true}), true),
        (json!({"unsubscribe": false, "category": "newsletter"}), false),
    ] {
        let sent = world.post("/emails", email_body(json!("d@example.net"), extra.clone())).await.json();
        assert_eq!(show(&world, &sent["id"]).await["unsubscribe"], has, "{extra}");
        let raw = world.get(&format!("/emails/{}/raw", sent["id"].as_str().unwrap())).await;
        assert_eq!(String::from_utf8_lossy(&raw.body).contains("\r\nList-Unsubscribe:"), has, "{extra}");
    }
    // Without managed unsubscribe a customer's own header field remains, and an unreplaced placeholder is reported.
    let extra = json!({"headers": {"List-Unsubscribe": "<mailto:x@example.com>"}, "text": "{{unsubscribe_url}}"});
    let sent = world.post("/emails", email_body(json!("d@example.net"), extra)).await.json();
    assert!(sent["warnings"][0].as_str().unwrap().contains("`unsubscribe: true`"), "{sent}");
    assert_eq!(show(&world, &sent["id"]).await["headers"]["List-Unsubscribe"], "<mailto:x@example.com>");
    world.end().await;
}
