//! Error messages, warnings and views with their exact words.

use std::time::Duration;

use crate::world::World;
use http::{Method, StatusCode};
use serde_json::{Value, json};

fn email_body(extra: Value) -> Value {
    let mut mail = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
    mail.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    mail
}

async fn send(world: &World, extra: Value) -> Value {
    let response = world.post("/emails", email_body(extra).to_string()).await;
    assert_eq!(response.status, StatusCode::OK, "{response:?}");
    response.json()
}

#[tokio::test]
async fn field_errors_say_how_to_fix_them() {
    let world = World::start().await;
    for (extra, field, words) in [
        (json!({"from": "a@example.com, b@example.com"}), "from", "must be a single address"),
        (json!({"from": "a, b"}), "from", "must be a single address"),
        (json!({"from": ["a@example.com"]}), "from", "must be an address or an object"),
        (json!({"to": "a@example.net; b@example.net"}), "to", "use a list for several"),
        (json!({"to": ["a@example.net, b@example.net"]}), "to[0]", "use a list for several"),
        (json!({"scheduled_at": "9999-12-31T23:59:59Z"}), "scheduled_at", "too far in the future"),
        (json!({"scheduled_at": "9999-01-01T00:00:00Z"}), "scheduled_at", "must be within a year"),
        (json!({"scheduled_at": "tomorrow"}), "scheduled_at", "ISO 8601"),
    ] {
        let response = world.post("/emails", email_body(extra.clone()).to_string()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{extra}");
        let message = response.json()["error"]["details"]["fields"][field].to_string();
        assert!(message.contains(words), "{extra}: {message}");
    }
    world.end().await;
}

#[tokio::test]
async fn production_access_error_has_the_upgrade_url() {
    let world = World::start().await;
    world.change_account(|account| account.production = false).await;
    let refused = world.post("/emails", email_body(json!({})).to_string()).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "production_access_required"));
    let error = refused.json()["error"].clone();
    // No upgrade page is configured.
    assert_eq!((error.get("upgrade_url"), &error["details"]["upgrade_url"]), (None, &Value::Null));
    world.end().await;
    let world = World::with_options(|options| options.upgrade_url = Some("/settings/billing".to_owned())).await;
    world.change_account(|account| account.production = false).await;
    let refused = world.post("/emails", email_body(json!({})).to_string()).await;
    let error = refused.json()["error"].clone();
    assert_eq!(error["details"]["upgrade_url"], "/settings/billing");
    assert_eq!(error["upgrade_url"], error["details"]["upgrade_url"]);
    world.end().await;
}

/// A change of the account applies to the next email, also for a tenant that was authenticated before.
#[tokio::test]
async fn a_suspended_account_sends_nothing_more() {
    let world = World::start().await;
    let (before, author) = (world.tenant().await, "ada@example.com".parse().unwrap());
    for suspended in [false, true, false, true] {
        world.change_account(|account| account.suspended = suspended).await;
        let response = world.post("/emails", email_body(json!({})).to_string()).await;
        let (status, code) = if suspended { (403, "account_suspended") } else { (200, "") };
        assert_eq!((response.status.as_u16(), response.code().as_str()), (status, code));
        assert_eq!(world.accounts.intake.authorize_sender(&before, &author).await.is_err(), suspended);
    }
    world.end().await;
}

/// An email that cannot be signed is not accepted, and its idempotency key is released.
#[tokio::test]
async fn signing_failure_is_a_server_error() {
    let world = World::with_lost_keys().await;
    for _ in 0..2 {
        let request = world.request(Method::POST, "/emails").header("idempotency-key", "k");
        let body = email_body(json!({})).to_string();
        let response = world.send(request.body(http_body_util::Full::new(body.into())).unwrap()).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::BAD_GATEWAY, "mail_server_error"));
        assert_eq!(response.json()["error"]["details"], json!({"idempotency_key_released": true}));
    }
    let batch = json!([email_body(json!({}))]).to_string();
    let entry = world.post("/emails/batch", batch).await.json()["data"][0].clone();
    assert_eq!(entry["error"]["code"], "mail_server_error");
    world.end().await;
}

#[tokio::test]
async fn header_fields_round_trip() {
    let world = World::start().await;
    let headers =
        json!({"X-Plain": "12", "X-Greeting": "Gr\u{fc}\u{df}e aus K\u{f6}ln, \u{20ac} und 日本語 ".repeat(5).trim()});
    let id = send(&world, json!({"headers": headers})).await["id"].clone();
    let again = world.post(&format!("/emails/{}/resend", id.as_str().unwrap()), "").await.json()["id"].clone();
    for id in [id, again] {
        let view = world.get(&format!("/emails/{}", id.as_str().unwrap())).await.json();
        assert_eq!(view["email"]["headers"], headers);
    }
    world.end().await;
}

#[tokio::test]
async fn event_times_use_the_common_format() {
    let world = World::start().await;
    let at = world.services.clock.now().round(jiff::Unit::Second).unwrap() + Duration::from_secs(3_600);
    let sent = send(&world, json!({"scheduled_at": at.to_string()})).await;
    let path = format!("/emails/{}/events", sent["id"].as_str().unwrap());
    let event = world.get(&path).await.json()["events"][0].clone();
    assert_eq!(event["type"], "email.scheduled");
    assert_eq!(event["detail"]["scheduled_at"], format!("{at:.3}"));
    let body = json!({"event": "email.scheduled", "email_id": sent["id"]});
    let payload = world.post("/emails/test", body.to_string()).await.json();
    assert_eq!(payload["payload"]["data"]["scheduled_at"], format!("{at:.3}"));
    world.end().await;
}

/// Managed unsubscribe replaces the customer's own header field, with a warning.
#[tokio::test]
async fn replaced_header_field_is_reported() {
    let world = World::start().await;
    let own = json!({"List-Unsubscribe": "<https://example.com/u>"});
    let is_replaced =
        |response: &Value| response["warnings"].to_string().contains("`headers.List-Unsubscribe` was replaced");
    for (extra, replaced) in [
        (json!({"unsubscribe": true}), true),
        (json!({"category": "newsletter"}), true),
        (json!({"category": "newsletter", "unsubscribe": false}), false),
        (json!({}), false),
    ] {
        let mut extra = extra;
        extra["headers"] = own.clone();
        let sent = send(&world, extra.clone()).await;
        assert_eq!(is_replaced(&sent), replaced, "{extra}: {sent}");
        let batch = json!({"emails": [email_body(extra.clone())]}).to_string();
        let entry = world.post("/emails/batch", batch).await.json()["data"][0].clone();
        assert_eq!(is_replaced(&entry), replaced, "{extra}: {entry}");
    }
    world.end().await;
}

#[tokio::test]
async fn mandatory_unsubscribe_is_reported() {
    let world = World::start().await;
    let template = |category: &str| json!({"alias": category, "subject": "s", "text": "t", "category": category, "unsubscribe_enabled": false});
    for (category, stays_on) in [("product", true), ("newsletter", true), ("transactional", false)] {
        let made = world.post("/templates", template(category).to_string()).await.json();
        assert_eq!(made["template"]["unsubscribe_enabled"], stays_on);
        assert_eq!(made["warnings"].to_string().contains("stays on"), stays_on, "{made}");
        let path = format!("/templates/{category}");
        let changed = world.call(Method::PATCH, &path, &json!({"unsubscribe_enabled": false})).await.json();
        assert_eq!(changed["warnings"].to_string().contains("stays on"), stays_on, "{changed}");
        let named = world.call(Method::PATCH, &path, &json!({"name": category})).await.json();
        assert!(!named["warnings"].to_string().contains("stays on"), "{named}");
    }
    world.end().await;
}

/// Each recipient is counted in exactly one state.
#[tokio::test]
async fn recipients_are_counted_by_state() {
    let world = World::start().await;
    world.post("/suppressions", json!({"email": "gone@example.net"}).to_string()).await;
    let counts = async |id: &Value| {
        let view = world.get(&format!("/emails/{}", id.as_str().unwrap())).await.json();
        view["email"]["counts"].clone()
    };
    let some = json!({"to": ["b@example.net", "gone@example.net"], "on_suppressed": "skip"});
    let sent = send(&world, some).await;
    let usual = json!({"queued": 1, "delivered": 0, "bounced": 0, "failed": 0, "suppressed": 1});
    assert_eq!(counts(&sent["id"]).await, usual);
    let blocked = world.post("/emails", email_body(json!({"to": "gone@example.net"})).to_string()).await.json();
    let none = json!({"queued": 0, "delivered": 0, "bounced": 0, "failed": 0, "suppressed": 1});
    assert_eq!(counts(&blocked["error"]["details"]["email_id"]).await, none);
    let at = format!("{:.3}", world.services.clock.now() + Duration::from_secs(3_600));
    let later = send(&world, json!({"scheduled_at": at})).await;
    world.post(&format!("/emails/{}/cancel", later["id"].as_str().unwrap()), "").await;
    let cancelled = json!({"queued": 0, "delivered": 0, "bounced": 0, "failed": 0, "cancelled": 1});
    assert_eq!(counts(&later["id"]).await, cancelled);
    world.end().await;
}
