//! `POST /emails/batch`: a fate for each email, all or none where asked for, once with a key.

use crate::world::{Answered, World};
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

fn mail(to: &str) -> Value {
    json!({"from": "Ada <ada@example.com>", "to": to, "subject": "s", "text": "t"})
}

async fn post(world: &World, headers: &[(&str, &str)], body: Value) -> Answered {
    let mut request = world.request(Method::POST, "/emails/batch").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

async fn count(world: &World) -> usize {
    world.get("/emails?limit=100").await.json()["emails"].as_array().unwrap().len()
}

#[tokio::test]
async fn each_email_has_its_own_fate() {
    let world = World::start().await;
    let mut odd = mail("d@example.net");
    odd["colour"] = json!("blue");
    let emails = json!([
        mail("a@example.net"),
        {"from": "ada@example.com", "to": "no address", "text": "t"},
        mail("b@example.net"),
        {"from": "ada@elsewhere.example", "to": "c@example.net", "subject": "s", "text": "t"},
        odd,
    ]);
    // The list alone is taken too.
    for body in [json!({"emails": emails}), emails.clone()] {
        let answer = post(&world, &[], body).await;
        assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
        let data = answer.json()["data"].as_array().unwrap().clone();
        let shown =
            |n: usize| (data[n]["index"].as_u64().unwrap(), data[n]["status"].as_str().unwrap().to_owned());
        assert_eq!(
            [0, 1, 2, 3, 4].map(shown),
            [(0, "sent"), (1, "failed"), (2, "sent"), (3, "failed"), (4, "sent")]
                .map(|(n, s)| (n, s.to_owned()))
        );
        assert!(data[0]["id"].as_str().unwrap().starts_with("msg_") && data[0].get("error").is_none());
        assert_eq!(data[1]["id"], Value::Null);
        assert_eq!(data[1]["error"]["code"], "validation_error");
        assert!(
            data[1]["error"]["details"]["fields"]["to"].is_string()
                && data[1]["error"]["details"]["subject"].is_string()
        );
        assert_eq!(data[3]["error"]["code"], "domain_not_verified");
        assert!(data[4]["warnings"][0].as_str().unwrap().contains("colour"));
    }
    assert_eq!(count(&world).await, 6);
    world.end().await;
}

#[tokio::test]
async fn all_or_none_where_asked_for() {
    let world = World::start().await;
    let strict = [("batch-validation", "strict")];
    for (bad, told) in [
        (json!({"from": "ada@example.com", "to": "b@example.net", "text": "t"}), "subject"),
        (
            json!({"from": "ada@elsewhere.example", "to": "b@example.net", "subject": "s", "text": "t"}),
            "not verified",
        ),
    ] {
        let answer = post(&world, &strict, json!([mail("a@example.net"), bad])).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
        assert!(answer.json()["error"]["details"]["fields"]["emails[1]"].as_str().unwrap().contains(told));
    }
    assert_eq!(count(&world).await, 0);
    let good = post(&world, &strict, json!([mail("a@example.net"), mail("b@example.net")])).await;
    assert_eq!(good.status, StatusCode::OK);
    assert_eq!(count(&world).await, 2);
    assert_eq!(
        post(&world, &[("batch-validation", "loose")], json!([mail("a@x.example")])).await.status,
        StatusCode::BAD_REQUEST
    );
    world.end().await;
}

#[tokio::test]
async fn what_refuses_the_batch_whole() {
    let world = World::start().await;
    let mut attached = mail("a@example.net");
    attached["attachments"] = json!([{"name": "a.txt", "data": "aGk="}]);
    let many = vec![mail("a@example.net"); 101];
    for (body, field) in [
        (json!({"emails": []}), "emails"),
        (json!({"emails": many}), "emails"),
        (json!({"emails": [mail("a@example.net"), attached]}), "emails[1].attachments"),
        (json!({"emails": [1]}), "emails[0]"),
        (json!({"emails": "x"}), "emails"),
        (json!({"Messages": [mail("a@example.net")]}), "Messages"),
        (json!({}), "emails"),
    ] {
        let answer = post(&world, &[], body.clone()).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (StatusCode::BAD_REQUEST, "validation_error"),
            "{body}"
        );
        assert!(answer.json()["error"]["details"]["fields"][field].is_string(), "{field}: {:?}", answer.body);
    }
    assert_eq!(post(&world, &[], json!("x")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(count(&world).await, 0);
    let most = post(&world, &[], json!(vec![mail("a@example.net"); 100])).await;
    assert_eq!(most.json()["data"].as_array().unwrap().len(), 100);
    world.end().await;
}

#[tokio::test]
async fn a_key_covers_the_whole_batch() {
    let world = World::start().await;
    let body = json!({"emails": [mail("a@example.net"), {"from": "x"}]});
    let first = post(&world, &[("idempotency-key", "k")], body.clone()).await;
    assert_eq!(first.status, StatusCode::OK);
    let again = post(&world, &[("idempotency-key", "k")], body).await;
    assert_eq!((&again.body, again.headers["idempotent-replayed"].to_str().unwrap()), (&first.body, "true"));
    let other = post(&world, &[("idempotency-key", "k")], json!([mail("b@example.net")])).await;
    assert_eq!(other.code(), "idempotency_conflict");
    assert_eq!(count(&world).await, 1);
    // The same key for another operation is another key.
    let single = world.request(Method::POST, "/emails").header("content-type", "application/json");
    let single =
        single.header("idempotency-key", "k").body(Full::new(mail("a@example.net").to_string().into()));
    assert_eq!(world.send(single.unwrap()).await.status, StatusCode::OK);
    world.end().await;
}
