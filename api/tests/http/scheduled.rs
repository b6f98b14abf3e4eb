//! Scheduled emails over HTTP: schedule, get, reschedule, cancel, resend.

use std::time::Duration;

use crate::world::{TestResponse, World};
use http::{Method, StatusCode};
use http_body_util::Full;
use message::header::{SubmittedMessage, parse_header};
use serde_json::{Value, json};

fn email_body(extra: Value) -> Value {
    let mut mail = json!({"from": "Ada <ada@example.com>", "to": ["b@example.net"], "subject": "s", "text": "t"});
    mail.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    mail
}

fn in_hours(world: &World, hours: u64) -> String {
    format!("{:.3}", world.services.clock.now() + Duration::from_secs(hours * 3600))
}

async fn post(world: &World, extra: Value) -> TestResponse {
    world.post("/emails", email_body(extra).to_string()).await
}

async fn patch(world: &World, id: &str, body: Value) -> TestResponse {
    let request = world.request(Method::PATCH, &format!("/emails/{id}"));
    let request = request.header("content-type", "application/json");
    world.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

async fn schedule(world: &World) -> String {
    let sent = post(world, json!({"scheduled_at": in_hours(world, 1)})).await;
    assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
    assert_eq!(sent.json()["status"], "scheduled");
    sent.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_email_is_scheduled_and_amended() {
    let world = World::start().await;
    let id = schedule(&world).await;
    let view = world.get(&format!("/emails/{id}")).await.json()["email"].clone();
    assert_eq!(view["status"], "scheduled");
    assert_eq!(view["last_event"], "email.scheduled");
    assert_eq!((&view["sent_at"], &view["text"]), (&Value::Null, &json!("t")));
    assert_eq!(view["recipients"][0]["status"], "queued");
    let later = in_hours(&world, 48);
    let amended = patch(&world, &id, json!({"scheduledAt": later})).await;
    assert_eq!(amended.status, StatusCode::OK, "{amended:?}");
    assert_eq!(amended.json()["email"]["scheduled_at"], later);
    let listed = world.get("/emails").await.json()["emails"][0].clone();
    assert_eq!((&listed["scheduled_at"], &listed["status"]), (&json!(later), &json!("scheduled")));
    let cancelled = patch(&world, &id, json!({"cancel": true})).await.json()["email"].clone();
    assert_eq!((&cancelled["status"], &cancelled["sent_at"]), (&json!("cancelled"), &Value::Null));
    assert!(cancelled["cancelled_at"].is_string());
    // Cancelling again succeeds; rescheduling a cancelled email does not.
    assert_eq!(patch(&world, &id, json!({"cancel": true})).await.status, StatusCode::OK);
    let deleted = patch(&world, &id, json!({"scheduled_at": in_hours(&world, 2)})).await;
    assert_eq!((deleted.status, deleted.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
    assert_eq!(deleted.json()["error"]["details"]["status"], "cancelled");
    let events = world.get(&format!("/emails/{id}/events")).await.json()["events"].clone();
    let kinds: Vec<_> = events.as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["email.cancelled", "email.scheduled"]);
    world.end().await;
}

#[tokio::test]
async fn cancel_has_its_own_path() {
    let world = World::start().await;
    let id = schedule(&world).await;
    let cancelled = world.post(&format!("/emails/{id}/cancel"), "").await;
    assert_eq!(cancelled.json()["email"]["status"], "cancelled", "{cancelled:?}");
    world.end().await;
}

#[tokio::test]
async fn invalid_times_and_changes_are_named() {
    let world = World::start().await;
    let past = format!("{:.0}", world.services.clock.now() - Duration::from_secs(1));
    for at in [json!(past), json!("tomorrow"), json!("2030-01-01T00:00:00"), json!(7), json!("2999-01-01T00:00:00Z")] {
        let refused = post(&world, json!({"scheduled_at": at})).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{at}");
        assert!(refused.json()["error"]["details"]["scheduled_at"].is_string(), "{refused:?}");
    }
    let file = json!({"scheduled_at": in_hours(&world, 1), "attachments": [{"name": "a.txt", "data": "aGk="}]});
    assert!(post(&world, file).await.json()["error"]["details"]["attachments"].is_string());
    let id = schedule(&world).await;
    for body in [json!({}), json!({"cancel": false}), json!({"cancel": true, "scheduled_at": in_hours(&world, 1)})] {
        assert_eq!(patch(&world, &id, body.clone()).await.status, StatusCode::BAD_REQUEST, "{body}");
    }
    let sent = post(&world, json!({})).await.json()["id"].as_str().unwrap().to_owned();
    let refused = patch(&world, &sent, json!({"cancel": true})).await;
    assert_eq!(refused.json()["error"]["details"]["status"], "sent");
    let mut other = world;
    other.key = other.account(2, model::credential::ApiKeyScope::Full).await;
    assert_eq!(patch(&other, &id, json!({"cancel": true})).await.status, StatusCode::NOT_FOUND);
    other.end().await;
}

#[tokio::test]
async fn resend_omits_attachments() {
    let world = World::start().await;
    let extra = json!({
        "html": "<p>ü</p>", "cc": ["c@example.net"], "bcc": ["d@example.net"], "headers": {"X-Order": "7"},
        "tags": {"kind": "order"}, "attachments": [{"name": "a.txt", "data": "aGk="}],
    });
    let first = post(&world, extra).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/emails/{first}/resend");
    let again = world.post(&path, "").await;
    assert_eq!(again.status, StatusCode::OK, "{again:?}");
    assert_eq!(again.json()["warnings"], json!(["attachments_omitted"]));
    let attached = world.get(&format!("/emails/{first}")).await.json()["email"]["attachments"][0].clone();
    let file = world.get(&format!("/emails/{first}/attachments/{}", attached["id"].as_str().unwrap())).await;
    assert_eq!(file.headers["content-type"], "application/octet-stream");
    assert_eq!(file.body.len() as u64, attached["size"].as_u64().unwrap());
    let with_files = world.post(&path, r#"{"attachments": true}"#).await.json();
    assert!(with_files.get("warnings").is_none(), "{with_files}");
    let resent = with_files["id"].as_str().unwrap();
    let same = world.get(&format!("/emails/{resent}/attachments/att_0")).await;
    assert_eq!((same.body, &same.headers["content-disposition"]), (file.body, &file.headers["content-disposition"]));
    for gone in [format!("/emails/{first}/attachments/att_1"), format!("/emails/{first}/attachments/x")] {
        assert_eq!(world.get(&gone).await.status, StatusCode::NOT_FOUND);
    }
    let id = again.json()["id"].as_str().unwrap().to_owned();
    assert_ne!(id, first);
    let show = async |id: &str| world.get(&format!("/emails/{id}")).await.json()["email"].clone();
    let (one, two) = (show(&first).await, show(&id).await);
    for same in ["from", "to", "cc", "bcc", "subject", "html", "text", "headers", "tags"] {
        assert_eq!(one[same], two[same], "{same}");
    }
    assert_eq!(two["resent_from"], json!(first));
    assert_eq!((one["attachments"][0]["name"].clone(), two["attachments"].clone()), (json!("a.txt"), json!([])));
    assert_eq!(two["recipients"].as_array().unwrap().len(), 3);
    assert_eq!(world.post("/emails/msg_00000000000000000000000000/resend", "").await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn scheduled_email_cannot_be_resent() {
    let world = World::start().await;
    let id = schedule(&world).await;
    let path = format!("/emails/{id}/resend");
    let refused = world.post(&path, "").await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
    assert_eq!(refused.json()["error"]["details"]["status"], "scheduled");
    // A cancelled email may be resent: then it is sent at once.
    assert_eq!(patch(&world, &id, json!({"cancel": true})).await.status, StatusCode::OK);
    let again = world.post(&path, "").await;
    assert_eq!(again.json()["status"], "sent", "{again:?}");
    world.end().await;
}

#[tokio::test]
async fn resent_email_has_its_own_unsubscribe_link() {
    let world = World::start().await;
    let extra = json!({
        "category": "newsletter", "subject": "Leave: {{unsubscribe_url}}",
        "html": "<p><a href=\"{{unsubscribe_url}}\">leave</a></p>",
        "text": "To leave, go to {{unsubscribe_url}} today.",
    });
    let first = post(&world, extra).await.json()["id"].as_str().unwrap().to_owned();
    let second = world.post(&format!("/emails/{first}/resend"), "").await.json()["id"].as_str().unwrap().to_owned();
    let account = world.tenant().await.account().id;
    let link = |id: &str| {
        let (id, to) = (id.parse().unwrap(), "b@example.net".parse().unwrap());
        world.accounts.links.unsubscribe_links().unwrap().link(account, id, &to, model::email::Category::Newsletter)
    };
    let (old, new) = (link(&first), link(&second));
    let view = world.get(&format!("/emails/{second}")).await.json()["email"].clone();
    let raw = world.get(&format!("/emails/{second}/raw")).await;
    let message = model::parsed_body::ParsedBody::parse(&raw.body);
    let subject = parse_header(&SubmittedMessage::new(raw.body.clone())).unwrap().summary.subject;
    for (field, text) in [("subject", subject), ("html", message.html.unwrap()), ("text", message.text.unwrap())] {
        assert!(text.contains(&new) && !text.contains(&old), "{field}: {text}");
        assert!(view[field].as_str().unwrap().contains("{{unsubscribe_url}}"), "{field}: {view}");
    }
    assert_eq!(String::from_utf8_lossy(&raw.body).matches("\r\nList-Unsubscribe:").count(), 1);
    world.end().await;
}
