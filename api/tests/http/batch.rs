//! `POST /emails/batch`: an entry for each email, all-or-nothing mode, idempotency.

use crate::world::{TestResponse, World};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use http_body_util::Full;
use model::account::Plan;
use model::plan::Plans;
use serde_json::{Value, json};

fn email_body(to: &str) -> Value {
    json!({"from": "Ada <ada@example.com>", "to": to, "subject": "s", "text": "t"})
}

async fn post(world: &World, headers: &[(&str, &str)], body: Value) -> TestResponse {
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
async fn each_email_has_its_own_result() {
    let world = World::start().await;
    let mut odd = email_body("d@example.net");
    odd["colour"] = json!("blue");
    let emails = json!([
        email_body("a@example.net"),
        {"from": "ada@example.com", "to": "no address", "text": "t"},
        email_body("b@example.net"),
        {"from": "ada@elsewhere.example", "to": "c@example.net", "subject": "s", "text": "t"},
        odd,
    ]);
    // A bare list is accepted too.
    for body in [json!({"emails": emails}), emails.clone()] {
        let response = post(&world, &[], body).await;
        assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
        let data = response.json()["data"].as_array().unwrap().clone();
        let view = |n: usize| (data[n]["index"].as_u64().unwrap(), data[n]["status"].as_str().unwrap().to_owned());
        assert_eq!(
            [0, 1, 2, 3, 4].map(view),
            [(0, "sent"), (1, "failed"), (2, "sent"), (3, "failed"), (4, "sent")].map(|(n, s)| (n, s.to_owned()))
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

const STRICT: [(&str, &str); 1] = [("batch-validation", "strict")];

#[tokio::test]
async fn all_or_nothing_mode() {
    let world = World::start().await;
    let unfit = json!({"from": "ada@example.com", "to": "b@example.net", "text": "t"});
    let mut foreign = email_body("b@example.net");
    foreign["from"] = json!("ada@elsewhere.example");
    let blocked = email_body("blocked@example.net");
    let suppress = json!({"email": "blocked@example.net"}).to_string();
    assert_eq!(world.post("/suppressions", suppress).await.status, StatusCode::OK);
    let (good, bad_request, forbidden) = (email_body("a@example.net"), StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN);
    for (batch, status, code, errors) in [
        (json!([good, unfit]), bad_request, "validation_error", "subject"),
        (json!([good, foreign, foreign]), forbidden, "domain_not_verified", "not verified"),
        // Without a common status the whole request is a 400.
        (json!([good, foreign, blocked]), bad_request, "validation_error", "not verified"),
    ] {
        let response = post(&world, &STRICT, batch).await;
        assert_eq!((response.status, response.code().as_str()), (status, code), "{:?}", response.body);
        let details = response.json()["error"]["details"].clone();
        assert!(details["fields"]["emails[1]"].as_str().unwrap().contains(errors), "{details}");
        assert!(details["errors"][0]["message"].as_str().unwrap().contains(errors), "{details}");
    }
    // Each error has the email's index and the same content as in a single send.
    let both = post(&world, &STRICT, json!([blocked, good, foreign])).await.json()["error"]["details"].clone();
    let errors: Vec<_> =
        both["errors"].as_array().unwrap().iter().map(|e| (e["index"].clone(), e["code"].clone())).collect();
    assert_eq!(errors, [(json!(0), json!("validation_error")), (json!(2), json!("domain_not_verified"))], "{both}");
    assert_eq!(both["errors"][1]["details"], json!({"domain": "elsewhere.example"}));
    assert_eq!(count(&world).await, 0);
    let good = post(&world, &STRICT, json!([email_body("a@example.net"), email_body("b@example.net")])).await;
    assert_eq!(good.status, StatusCode::OK);
    assert_eq!(count(&world).await, 2);
    assert_eq!(
        post(&world, &[("batch-validation", "loose")], json!([email_body("a@x.example")])).await.status,
        StatusCode::BAD_REQUEST
    );
    world.end().await;
}

#[tokio::test]
async fn all_or_nothing_reports_plan_and_recipient_errors() {
    let world = World::start().await.with_plan(Plan::Free).await;
    let suppress = json!({"email": "b@example.net"}).to_string();
    assert_eq!(world.post("/suppressions", suppress).await.status, StatusCode::OK);
    let blocked = post(&world, &STRICT, json!([email_body("a@example.net"), email_body("b@example.net")])).await;
    assert_eq!((blocked.status, blocked.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "validation_error"));
    let details = blocked.json()["error"]["details"].clone();
    assert_eq!(details["suppressed"], json!(["b@example.net"]));
    // No email is stored with this error.
    assert_eq!((&details["email_id"], count(&world).await), (&Value::Null, 0));
    let many: Vec<_> = (0..60).map(|_| json!({"from": "ada@example.com", "to": ["c@example.net", "d@example.net"], "subject": "s", "text": "t"})).collect();
    let full = post(&world, &STRICT, json!(many)).await;
    assert_eq!((full.status, full.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "plan_limit"));
    let error = full.json()["error"].clone();
    assert_eq!((error.get("upgrade_url"), &error["details"]["cap"]), (None, &json!(100)));
    assert_eq!(count(&world).await, 0);
    world.end().await;
}

/// An entry that is not an object is refused alone; unknown fields next to `emails` are reported.
#[tokio::test]
async fn invalid_entries_in_a_batch() {
    let world = World::start().await;
    let body = json!({"emails": [5, email_body("a@example.net"), null, [], "x"], "attachments": [{"name": "a"}]});
    let response = post(&world, &[], body).await.json();
    let data = response["data"].as_array().unwrap();
    let codes: Vec<_> = data.iter().map(|entry| entry["error"]["code"].as_str()).collect();
    let invalid = Some("validation_error");
    assert_eq!(codes, [invalid, None, invalid, invalid, invalid], "{response}");
    assert_eq!(data[0]["error"]["message"], "An email of a batch must be an object");
    assert_eq!(response["warnings"], json!(["`attachments` is not a known field and was ignored"]));
    let strict = post(&world, &STRICT, json!([email_body("a@example.net"), 5])).await;
    assert_eq!(strict.status, StatusCode::BAD_REQUEST);
    assert!(strict.json()["error"]["details"]["fields"]["emails[1]"].is_string());
    assert_eq!(count(&world).await, 1);
    world.end().await;
}

#[tokio::test]
async fn errors_that_refuse_the_whole_batch() {
    let world = World::start().await;
    let mut attached = email_body("a@example.net");
    attached["attachments"] = json!([{"name": "a.txt", "data": "aGk="}]);
    let many = vec![email_body("a@example.net"); 101];
    for (body, field) in [
        (json!({"emails": []}), "emails"),
        (json!({"emails": many}), "emails"),
        (json!({"emails": [email_body("a@example.net"), attached]}), "emails[1].attachments"),
        (json!({"emails": "x"}), "emails"),
        (json!({"Messages": [email_body("a@example.net")]}), "Messages"),
        (json!({}), "emails"),
    ] {
        let response = post(&world, &[], body.clone()).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (StatusCode::BAD_REQUEST, "validation_error"),
            "{body}"
        );
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{field}: {:?}", response.body);
    }
    assert_eq!(post(&world, &[], json!("x")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(count(&world).await, 0);
    let largest = post(&world, &[], json!(vec![email_body("a@example.net"); 100])).await;
    assert_eq!(largest.json()["data"].as_array().unwrap().len(), 100);
    world.end().await;
}

#[tokio::test]
async fn a_key_covers_the_whole_batch() {
    let world = World::start().await;
    let body = json!({"emails": [email_body("a@example.net"), {"from": "x"}]});
    let first = post(&world, &[("idempotency-key", "k")], body.clone()).await;
    assert_eq!(first.status, StatusCode::OK);
    let again = post(&world, &[("idempotency-key", "k")], body).await;
    assert_eq!((&again.body, again.headers["idempotent-replayed"].to_str().unwrap()), (&first.body, "true"));
    let other = post(&world, &[("idempotency-key", "k")], json!([email_body("b@example.net")])).await;
    assert_eq!(other.code(), "idempotency_conflict");
    assert_eq!(count(&world).await, 1);
    // The same key is free for another operation.
    let single = world.request(Method::POST, "/emails").header("content-type", "application/json");
    let single = single.header("idempotency-key", "k").body(Full::new(email_body("a@example.net").to_string().into()));
    assert_eq!(world.send(single.unwrap()).await.status, StatusCode::OK);
    world.end().await;
}

/// A plan with two emails a day.
async fn with_two_a_day() -> World {
    let world = World::start().await.with_plan(Plan::Free).await;
    set_daily_quota(&world, 2);
    world
}

fn set_daily_quota(world: &World, emails: u64) {
    let mut plans = Plans::default();
    plans.free.emails_per_day = Some(emails);
    world.accounts.limits.plans.replace(plans);
}

fn entries(response: &TestResponse) -> Vec<Value> {
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
    response.json()["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn transient_refusals_are_sent_on_retry() {
    let world = with_two_a_day().await;
    let key = [("idempotency-key", "k")];
    let body =
        json!([email_body("a@example.net"), {"from": "x"}, email_body("b@example.net"), email_body("c@example.net")]);
    let first = entries(&post(&world, &key, body.clone()).await);
    let refused = first.iter().position(|entry| entry["error"]["code"] == "plan_limit").unwrap();
    assert_eq!(first[refused]["error"].get("upgrade_url"), None);
    assert_eq!(count(&world).await, 2);
    // While nothing has changed, nothing is sent and the response is the same.
    assert_eq!(entries(&post(&world, &key, body.clone()).await), first);
    set_daily_quota(&world, 100);
    let again = post(&world, &key, body.clone()).await;
    assert!(again.headers.get("idempotent-replayed").is_none());
    let second = entries(&again);
    assert_eq!(second[refused]["status"], "sent", "{second:?}");
    assert_eq!(second[1]["error"]["code"], "validation_error");
    for (n, (one, other)) in first.iter().zip(&second).enumerate() {
        assert_eq!(one == other, n != refused, "{one} {other}");
    }
    assert_eq!(count(&world).await, 3);
    // Now all are sent.
    let replayed = post(&world, &key, body).await;
    assert_eq!(replayed.headers["idempotent-replayed"], "true");
    assert_eq!(replayed.body, again.body);
    assert_eq!(post(&world, &key, json!([email_body("z@example.net")])).await.code(), "idempotency_conflict");
    assert_eq!(count(&world).await, 3);
    world.end().await;
}

fn email_with_key(to: &str, key: &str) -> Value {
    let mut mail = email_body(to);
    mail["idempotency_key"] = json!(key);
    mail
}

#[tokio::test]
async fn an_email_of_a_batch_may_have_a_key_of_its_own() {
    let world = World::start().await;
    let first =
        entries(&post(&world, &[], json!([email_with_key("a@example.net", "1"), email_body("b@example.net")])).await);
    assert!(first[0].get("replayed").is_none());
    let mut later = email_with_key("c@example.net", "2");
    later["scheduled_at"] = json!("2999-01-01T00:00:00Z");
    let second = json!([
        email_body("b@example.net"),
        // The same email written differently; another email; a refused one.
        {"text": "t", "idempotencyKey": "1", "subject": "s", "to": ["a@example.net"], "from": "Ada <ada@example.com>"},
        email_with_key("x@example.net", "1"),
        later,
        email_with_key("d@example.net", "3"),
        email_with_key("e@example.net", "3"),
        email_with_key("f@example.net", ""),
    ]);
    let second = entries(&post(&world, &[], second).await);
    assert_eq!((&second[1]["id"], &second[1]["index"]), (&first[0]["id"], &json!(1)));
    assert_eq!((&second[1]["status"], &second[1]["replayed"]), (&json!("sent"), &json!(true)));
    assert_eq!(second[2]["error"]["details"]["fields"]["idempotency_key"], "is also the key of emails[1]");
    assert_eq!(second[3]["error"]["code"], "validation_error");
    assert_eq!(second[4]["status"], "sent");
    assert_eq!(second[5]["error"]["details"]["fields"]["idempotency_key"], "is also the key of emails[4]");
    assert_eq!(second[6]["error"]["code"], "invalid_idempotency_key");
    assert_eq!(count(&world).await, 4);
    // A used key with another email; a refused email left its key free.
    let third = json!([email_with_key("y@example.net", "1"), email_with_key("c@example.net", "2")]);
    let third = entries(&post(&world, &[], third).await);
    assert_eq!(third[0]["error"]["code"], "idempotency_conflict");
    assert_eq!(third[1]["status"], "sent", "{third:?}");
    // All-or-nothing: an email that was sent before does not prevent the others.
    let strict = json!([email_with_key("a@example.net", "1"), email_with_key("g@example.net", "4")]);
    let strict = entries(&post(&world, &STRICT, strict).await);
    assert_eq!((&strict[0]["id"], &strict[1]["status"]), (&first[0]["id"], &json!("sent")));
    assert_eq!(count(&world).await, 6);
    // Keys of batch entries and of single emails are separate; a single email has its key in the header field.
    let single = world.post("/emails", email_with_key("a@example.net", "1").to_string()).await;
    assert!(single.json()["error"]["details"]["idempotency_key"].as_str().unwrap().contains("header"));
    world.end().await;
}

#[tokio::test]
async fn concurrent_batches_send_a_common_email_once() {
    let worlds = World::start_pair().await;
    let batch = |n: usize| {
        json!([email_with_key("a@example.net", "common"), email_with_key("b@example.net", &format!("own {n}"))])
    };
    let responses = join_all((0..8).map(|n| post(&worlds[n % 2], &[], batch(n)))).await;
    let mut common: Vec<String> = Vec::new();
    for response in &responses {
        // Another request may be in progress; the entry or the whole response reports that.
        if response.status == StatusCode::CONFLICT {
            assert_eq!(response.code(), "idempotency_in_progress");
            continue;
        }
        match &entries(response)[0] {
            entry if entry["status"] == "failed" => {
                assert_eq!(entry["error"]["code"], "idempotency_in_progress");
            }
            entry => common.push(entry["id"].to_string()),
        }
    }
    common.dedup();
    assert_eq!(common.len(), 1, "{common:?}");
    for world in worlds {
        world.end().await;
    }
}
