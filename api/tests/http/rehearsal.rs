//! `POST /emails/test`: the webhook body of a test event.

use crate::world::World;
use http::StatusCode;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

#[tokio::test]
async fn test_event_payload() {
    let world = World::start().await;
    let mail = json!({"from": "Ada <ada@example.com>", "to": "b@example.net", "subject": "s", "text": "t",
                      "tags": {"flow": "x"}});
    let id = world.post("/emails", mail.to_string()).await.json()["id"].clone();
    let send_request = async |body: Value| world.post("/emails/test", body.to_string()).await;
    let real = send_request(json!({"event": "email.sent", "email_id": id})).await;
    assert_eq!(real.status, StatusCode::OK, "{real:?}");
    let real = real.json();
    assert_eq!((&real["queued"], &real["deliveries"]), (&json!(false), &json!([])));
    let data = &real["payload"]["data"];
    assert_eq!((&data["email_id"], &data["test"], &data["recipients_count"]), (&id, &json!(true), &json!(1)));
    assert_eq!((&data["subject"], &data["status"]), (&json!("s"), &json!("sent")));
    assert_eq!(data["tags"], json!([{"name": "flow", "value": "x"}]));
    let yet_to_come = send_request(json!({"event": "email.bounced", "email_id": id, "deliver": false})).await.json();
    let data = &yet_to_come["payload"]["data"];
    assert_eq!((&data["status"], &data["bounce"]["type"]), (&json!("bounced"), &json!("hard")));
    assert_eq!(data["rcpt_to"], "b@example.net");
    let sample = send_request(json!({"event": "email.clicked"})).await.json();
    assert_eq!(sample["payload"]["type"], "email.clicked");
    assert!(sample["payload"]["data"]["click"]["url"].is_string());
    let cancelled = send_request(json!({"event": "email.cancelled", "email_id": id})).await.json();
    let data = &cancelled["payload"]["data"];
    assert_eq!((&data["status"], data.get("rcpt_to")), (&json!("cancelled"), None));
    let remaining = send_request(json!({"event": "contact.unsubscribed", "email_id": id})).await.json();
    let data = &remaining["payload"]["data"];
    assert_eq!((&data["email"], &data["email_id"]), (&json!("b@example.net"), &id));
    let blocked = send_request(json!({"event": "email.suppressed", "email_id": id})).await.json();
    assert_eq!(blocked["payload"]["data"]["suppressed"][0]["email"], "b@example.net");
    for (event, own) in [
        ("email.received", "received_at"),
        ("automation.started", "started_at"),
        ("automation.step_completed", "step_index"),
        ("automation.completed", "ended_by"),
        ("automation.failed", "error"),
        ("affiliate.created", "affiliate"),
        ("referral.converted", "referral"),
        ("commission.earned", "commission"),
        ("payout.paid", "payout_id"),
    ] {
        let view = send_request(json!({"event": event})).await.json()["payload"].clone();
        assert_eq!((&view["type"], &view["data"]["test"]), (&json!(event), &json!(true)));
        assert!(!view["data"][own].is_null() && view["data"].get("tags").is_none(), "{view}");
        let of_an_email = send_request(json!({"event": event, "email_id": id})).await;
        assert_eq!(of_an_email.code(), "validation_error");
    }
    for bad in [json!({}), json!({"event": "email.eaten"}), json!({"event": "email.sent", "deliver": 1})] {
        assert_eq!(send_request(bad.clone()).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    let nothing = send_request(json!({"event": "email.sent", "email_id": "msg_00000000000000000000000000"})).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    let sending = world.account(2, ApiKeyScope::Sending).await;
    let request = http::Request::post("/emails/test").header("host", "t").header("content-type", "application/json");
    let request = request.header("authorization", format!("Bearer {sending}"));
    let refused = world.send(request.body(http_body_util::Full::new("{}".into())).unwrap()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    world.end().await;
}
